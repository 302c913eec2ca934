/* Long work on several keys in slices (engine/call.h), between which others run. The work gathers a
 * result of its own from the keys, arranges it, and replies it or puts it in its place at the end.
 *
 *   GATHER --done--> ARRANGE --replies--> end          lock: GATHER shared, ARRANGE none,
 *     ^  a key has      |                                    PUBLISH exclusive
 *     '--changed        '--stores--> PUBLISH --> end
 *     ^                                 |
 *     '---------a key has changed-------'
 *
 * The result is that of one moment: work whose keys have changed since its beginning is thrown away
 * (the background thread frees it) and begins anew; what is stored is that of the moment in which
 * it is. What has begun so often that it might never end is done in one hold. SLICES.md has the
 * argument. State: keyspace while it runs, owned by the call. */
#ifndef COMMANDS_SLICED_H
#define COMMANDS_SLICED_H

#include "engine/call.h"

/* How long a slice may take, about. */
#define SLICE_NS ((uint64_t)200 * 1000)

/* A kind of work. `request` is what the handler has read from the arguments, `work` what one
 * beginning has made of it. */
struct sliced_kind {
    /* Begins on the values of the `count` keys, NULL where one is missing; NULL, and an error
     * replied, when they are of a wrong type. Shared. */
    void *(*begin)(struct call *c, const void *request, struct entry *const *values, int count);
    /* Goes on for `budget_ns` (0: to the end); true at the end. Shared. */
    bool (*gather)(void *work, uint64_t budget_ns);
    /* The same of what takes no more look at the keys. NULL: nothing. No lock. */
    bool (*arrange)(void *work, uint64_t budget_ns);
    /* Gives the result: replies it (no lock), or stores it at the call's first key (exclusive). */
    void (*finish)(struct call *c, void *work);
    /* Frees the work; on any thread, no lock. */
    void (*release)(void *work);
};

/* Whether a call that will look at about `members` members may go in slices, and is worth it. What
 * is replied at once to other requests of the client, or told to those who track keys, would come
 * between what it reads and what it replies; calls within others are whole. */
bool sliced_fits(const struct call *c, uint64_t members);
/* Begins, in the handler's hold: with `count` keys from the request's key `first` on. Takes
 * `request`, one block. Whoever stores has the destination as the request's first key. */
void sliced_begin(struct call *c, const struct sliced_kind *kind, void *request_take, int first,
                  int count, bool stores) REQUIRES_SHARED(keyspace_lock);

#endif
