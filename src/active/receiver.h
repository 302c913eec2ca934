/* What comes over a link from a peer that we pull from: frames (frame.h), one after the
 * other. Writes are given to the node once and in the order of their numbers; what is told of
 * clocks is believed as far as we have the writes that it is about.
 *
 * A frame that is wrong (an unknown handle, a gap, commands that are none, a clock a day ahead) is
 * an error of the link: it is to be closed, and made anew from the positions. State: its fields
 * belong to the link; the origins are keyspace, changed in exclusive mode. */
#ifndef ACTIVE_RECEIVER_H
#define ACTIVE_RECEIVER_H

#include "base/compiler.h"
#include "active/frame.h"
#include "active/origins.h"
#include "active/unit.h"

#include <stdbool.h>
#include <stdint.h>

/* Where what comes goes. */
struct receiver_sink {
    /* A stamp was seen; false when it is too far ahead (hlc_see). */
    bool (*see)(void *context, uint64_t stamp);
    /* The origin's next write: applies it, after which its position covers it. False, with *error,
     * when nobody may tell such a write. The unit stays the caller's. */
    bool (*unit)(void *context, struct unit *unit, const char **error);
    void *context;
    /* True while the origin's writes are coming by another way (MERGE): none is taken. NULL: never.
     */
    bool (*awaits)(void *context, uint16_t origin);
    /* True while the origin's writes up to that position are worth waiting for: they come soon, by
     * another link, and what comes next by this one may be their consequence. NULL: never. */
    bool (*comes)(void *link, uint16_t origin, uint64_t position);
    void *link;
};

enum receiver_result {
    RECEIVED,
    RECEIVED_BEFORE, /* a duplicate, dropped */
    RECEIVED_GAP,    /* something before it is missing, or it is in our own name */
    RECEIVED_NEVER,  /* no unit that a node may tell, or a broken clock */
    RECEIVED_LATER,  /* MERGE is bringing it, or a cause is to come first: to come again then */
};
/* A write of some origin has come: it goes to the sink, once and in the order of its origin's
 * numbers; `self` is our own origin. GAP and NEVER are errors of who sent it, and *error says
 * which. */
enum receiver_result receiver_unit(const struct origins *o, uint16_t self, struct dot dot, int db,
                                   struct slice commands, const struct receiver_sink *sink,
                                   const char **error) MUST_CHECK;

struct receiver {
    uint16_t *origins; /* by the peer's handle: our index, 0 where it was not named */
    uint32_t handles;
    uint64_t *positions; /* by our index: what the peer told last that it has */
    uint32_t count;
    bool *brought; /* by our index: whether a write of it has come by this link */
    uint32_t brought_count;
    uint16_t self; /* our own origin of this life: nobody else writes in its name */
};

/* A link on which nothing has come. */
void receiver_init(struct receiver *t, uint16_t self);
void receiver_deinit(struct receiver *t);
/* Takes a frame; S is its caller's, where one is due. LATER: the link is to be read no further for
 * now, and the frame given once more then. GAP, NEVER: the link is to be closed, *error says why.
 */
enum receiver_result receiver_frame(struct receiver *t, struct origins *o, const struct frame *f,
                                    const struct receiver_sink *sink,
                                    const char **error) MUST_CHECK;
/* The position of an origin that the peer told last; 0 when it told none. */
uint64_t receiver_position(const struct receiver *t, uint16_t origin);
/* True when a write of the origin has come by the link, and was not here before. */
bool receiver_brings(const struct receiver *t, uint16_t origin);

#endif
