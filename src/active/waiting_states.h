/* States that cover writes which have not come here yet, of which nobody sees them until those
 * have (DESIGN.md, "Conflicts"): each with the first write that it lacks.
 *
 * State: the window's. */
#ifndef ACTIVE_WAITING_STATES_H
#define ACTIVE_WAITING_STATES_H

#include "active/origins.h"

/* Rows. What is beyond them does not wait. */
#define WAITING_STATES_MAX 1024

struct waiting_states {
    struct waiting_state {
        uint64_t number; /* of its effect in the window's index */
        uint32_t count;  /* so many, one behind the other: a unit's digests have one cause */
        struct dot cause;
        int64_t until_ms;
    } * rows; /* in the order in which they began to wait */
    uint32_t count, capacity;
};

/* Zero: none. Frees what it holds. */
void waiting_states_deinit(struct waiting_states *s);
/* One more waits for the write, until that time; false: too many do. */
bool waiting_states_add(struct waiting_states *s, uint64_t number, struct dot cause,
                        int64_t until_ms) MUST_CHECK;
/* Takes out the first one whose write is here or, unless `also` is NULL, covered by that, or whose
 * time is over (cause.place is 0 then): row->number. False: there is none. */
bool waiting_states_next(struct waiting_states *s, const struct origins *o,
                         const struct version_vector *also, int64_t now_ms,
                         struct waiting_state *row) MUST_CHECK;

#endif
