/* From which of our links each origin's writes are requested: from one at a time, so that in a mesh
 * a write crosses each pair of nodes once. From the node itself while there is a lively link to it,
 * else from the link that is furthest ahead. What came by a link that is gone or silent is
 * requested from another one, from our position on.
 *
 * Links are numbers of the caller's, from 0. State: that of who has the links (one lock or thread);
 * the origins are keyspace, read. */
#ifndef ACTIVE_SOURCES_H
#define ACTIVE_SOURCES_H

#include "base/buf.h"
#include "active/origins.h"
#include "active/receiver.h"

#include <stdbool.h>
#include <stdint.h>

/* A peer tells its clocks once a second: one that has not for so long is as good as away. */
#define SOURCE_SILENT_MS 3000
/* A link that brings nothing any more, while another one has more, is left after so long. */
#define SOURCE_STALLED_MS 2000
/* What a peer says that it has of an origin, and does not bring for so long though it is asked, is
 * not waited for any more (struct origin, told). */
#define SOURCE_GIVEN_UP_MS 60000

struct source_link {
    bool up;   /* asks, or has been answered */
    bool busy; /* brings a data set, or that is merged: it is we who do not listen, so that nothing
                  that is requested by it is left to another one */
    uint8_t node[ORIGIN_NODE_BYTES];
    const struct receiver *take;
    int64_t heard_ms; /* when its last frame came, or it was asked */
};

struct source_row {
    int link; /* the one that it is requested from; -1: none */
    uint64_t position;
    int64_t moved_ms; /* since when the position has been this, by this link */
    int64_t still_ms; /* the same by whatever link, or since when nobody had more */
};

struct sources {
    struct source_row *rows; /* by origin's index */
    uint32_t count;
};

/* Nothing is requested yet. */
void sources_init(struct sources *w);
/* Frees what it holds. */
void sources_deinit(struct sources *w);
/* Chooses anew: when a link comes up or ends, when clocks were told, and once a second. `self` is
 * our own origin, requested from nobody. Notes how far those are who have the origins. True when
 * anything has changed: then all links that are up are to be told. */
bool sources_choose(struct sources *w, struct origins *o, uint16_t self,
                    const struct source_link *links, int count, int64_t now_ms);
/* The link is bringing a whole data set: what is requested from others that never brought anything
 * of it is requested from this one, until it is chosen anew. Those that are up are to be told. */
void sources_prefer(struct sources *w, const struct origins *o, const struct source_link *links,
                    int count, int link, int64_t now_ms);
/* Whether the origin is requested from the link. */
bool sources_from(const struct sources *w, uint16_t origin, int link);
/* What a link's peer was told last: a link that begins has told nothing (all zero). */
struct source_told {
    uint64_t *rows; /* by origin's index: twice the position, and 1 when it is requested; plus 1 */
    uint32_t count;
};
/* Frees what it holds; as a link that begins then. */
void source_told_deinit(struct source_told *t);
/* Appends the words that tell it to the link's peer, as far as they are news to him: an origin's
 * text, our position and 0 or 1, as elements of a request ("$48\r\n..."); their number. */
int sources_put_words(const struct sources *w, const struct origins *o, int link,
                      struct source_told *told, struct buf *out);

#endif
