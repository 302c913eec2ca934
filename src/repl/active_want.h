/* From which of our links each origin's writes are wanted: from one at a time, so that in a mesh a
 * write crosses each pair of nodes once. From the node itself while there is a lively link to it,
 * else from the link that is furthest ahead. What came by a link that is gone or silent is wanted
 * from another one, from our position on.
 *
 * Links are numbers of the caller's, from 0. State: that of who has the links (one lock or thread);
 * the origins are keyspace, read. */
#ifndef REPL_ACTIVE_WANT_H
#define REPL_ACTIVE_WANT_H

#include "base/buf.h"
#include "repl/active_origins.h"
#include "repl/active_take.h"

#include <stdbool.h>
#include <stdint.h>

/* A peer tells its clocks once a second: one that has not for so long is as good as away. */
#define ACTIVE_WANT_SILENT_MS 3000
/* A link that brings nothing, while another one has more, is left after so long. */
#define ACTIVE_WANT_STALLED_MS 2000

struct active_want_link {
    bool up; /* asks, or has been answered */
    uint8_t node[ACTIVE_NODE_BYTES];
    const struct active_take *take;
    int64_t heard_ms; /* when its last frame came, or it was asked */
};

struct active_want_row {
    int link; /* the one that it is wanted from; -1: none */
    uint64_t position;
    int64_t moved_ms; /* since when the position has been this, by this link */
};

struct active_wants {
    struct active_want_row *rows; /* by origin's index */
    uint32_t count;
    bool forwards; /* of nodes that we have no link to as well; not: multi-master-no-forward */
};

/* Nothing is wanted yet; forwards: see struct active_wants. */
void active_wants_init(struct active_wants *w, bool forwards);
/* Frees what it holds. */
void active_wants_deinit(struct active_wants *w);
/* Chooses anew: when a link comes up or ends, when clocks were told, and once a second. `self` is
 * our own origin, wanted from nobody. True when anything has changed: then all links that are up
 * are to be told. */
bool active_wants_judge(struct active_wants *w, const struct active_origins *o, uint16_t self,
                        const struct active_want_link *links, int count, int64_t now_ms);
/* Whether the origin is wanted from the link. */
bool active_wants_from(const struct active_wants *w, uint16_t origin, int link);
/* What a link's peer was told last: a link that begins has told nothing (all zero). */
struct active_want_told {
    uint64_t *rows; /* by origin's index: twice the position, and 1 when it is wanted; plus 1 */
    uint32_t count;
};
/* Frees what it holds; as a link that begins then. */
void active_want_told_deinit(struct active_want_told *t);
/* Appends the words that tell it to the link's peer, as far as they are news to him: an origin's
 * text, our position and 0 or 1, as elements of a request ("$48\r\n..."); their number. */
int active_wants_put_words(const struct active_wants *w, const struct active_origins *o, int link,
                           struct active_want_told *told, struct buf *out);

#endif
