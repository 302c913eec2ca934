/* The clock of an active replica: stamps that give all writes of all nodes one order.
 *
 *   bits 16-63  milliseconds since 1970       bits 0-15  a counter, odd for states
 *
 * Invariants: a clock never goes back; what it gives is above all that it gave or saw before. So a
 * write that was made after another one was seen has the greater stamp, whatever the wall clocks
 * say. And its time goes on where it was heard to be later than our wall clock, also while nobody
 * is heard any more (a node that is cut off would else let nothing expire until its wall clock has
 * come so far): a hundredth slower, so that what a wrong clock has done is over some day. State:
 * keyspace (exclusive mode). */
#ifndef ACTIVE_HLC_H
#define ACTIVE_HLC_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

#define HLC_COUNTER_BITS 16
/* A stamp further ahead of our own wall clock is a broken clock's, and would drag everyone along.
 */
#define HLC_AHEAD_MAX_MS (24 * 3600 * 1000LL)

struct hlc {
    uint64_t last;
    int64_t (*wall_ms)(void *context); /* NULL: the process's wall clock; else a test's */
    void *context;
    /* private: the group's time when it was last heard to be later than ours, and when that was */
    int64_t ahead_ms, heard_mono_ms;
    int64_t hold_ms; /* the group's time as this hold has read it; 0: not */
};

static inline int64_t hlc_stamp_ms(uint64_t stamp)
{
    return (int64_t)(stamp >> HLC_COUNTER_BITS);
}

/* From now until hlc_end_hold it is one moment, or the later one that a stamp tells which is seen
 * meanwhile: what gives or sees stamps does not read the wall clock each time. Begun already:
 * nothing. A hold that is not ended makes stamps late, and nothing else: each is above the last
 * one, whatever the time. */
void hlc_begin_hold(struct hlc *c);
void hlc_end_hold(struct hlc *c);

/* A stamp for a write of a client: an even one. */
uint64_t hlc_next(struct hlc *c);
/* One for a state, by which a node says what it has and nobody writes: an odd one. */
uint64_t hlc_next_state(struct hlc *c);
static inline bool hlc_is_state(uint64_t stamp)
{
    return stamp & 1;
}

/* The clock as a promise: every later write's stamp is above it. */
uint64_t hlc_tell(struct hlc *c);
/* A stamp was seen. False, and nothing changes, when it is too far ahead: refuse its link. */
bool hlc_see(struct hlc *c, uint64_t stamp) MUST_CHECK;
/* `last` was read from a file: time goes on from there. */
void hlc_go_on(struct hlc *c);
/* How far the group's time is ahead of our own wall clock. */
int64_t hlc_ahead_ms(const struct hlc *c);
/* The time by which deadlines are judged and relative ones made absolute. */
int64_t hlc_ms(const struct hlc *c);
/* The same at the moment of the hold, where one has begun. */
int64_t hlc_hold_ms(const struct hlc *c);

#endif
