/* THE lock: one big-reader lock over all databases, registries of blocked calls and watched keys,
 * and the tails of the logs. Shared mode reads, exclusive mode writes. Rank: LOCK_RANK_KEYSPACE,
 * after the GIL and before every leaf lock. State: atomic. */
#ifndef KEYSPACE_LOCK_H
#define KEYSPACE_LOCK_H

#include "base/brlock.h"
#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern struct brlock keyspace_lock;

/* Something is to be done before the exclusive mode is let go of: waiters to be served, units of an
 * active replica to be put in order. Each letting go tests it; changed in exclusive mode. */
extern bool keyspace_has_work;
/* Boot, or world: called then, behind the serving of waiters, in exclusive mode and amid no
 * command. NULL: nobody. */
void keyspace_set_end_work(void (*work)(void));
/* The same, before the serving of waiters: modules are told of what happened to keys. */
void keyspace_set_listener_work(void (*work)(void));

/* The time that deadlines are judged by: the wall clock's, but on an active replica, whose clock
 * runs with those of its peers (active/hlc.h). */
struct keyspace_clock {
    int64_t last_ms;       /* it is no earlier than this */
    int64_t ahead_ms;      /* nor than this was, and has become since, slowed; 0: no such time */
    int64_t heard_mono_ms; /* ... at this moment of the monotonic clock */
};
/* Sets it, in exclusive mode. What was ahead before goes on where `clock` is not ahead. */
void keyspace_set_clock(struct keyspace_clock clock) REQUIRES(keyspace_lock);
/* From this on the wall clock is that time without a further look. Any thread reads it. */
extern _Atomic int64_t keyspace_wall_from_ms;
/* The further look. */
int64_t keyspace_group_time_ms(int64_t wall_ms);
/* That time, when the wall clock shows `wall_ms`. Any thread. */
static inline int64_t keyspace_time_ms(int64_t wall_ms)
{
    int64_t from_ms = atomic_load_explicit(&keyspace_wall_from_ms, memory_order_relaxed);
    return likely(wall_ms >= from_ms) ? wall_ms : keyspace_group_time_ms(wall_ms);
}

/* Take and release it for the calling thread, in shared and in exclusive mode. Not recursive; a
 * holder in shared mode cannot raise it. */
/* Take and release it in shared mode. The calling thread has entered (thread.h) and holds it in no
 * mode. */
void keyspace_lock_shared(void) ACQUIRE_SHARED(keyspace_lock);
void keyspace_unlock_shared(void) RELEASE_SHARED(keyspace_lock);
/* The same in exclusive mode. Letting go of it first serves those who wait for what was changed and
 * were not served yet (waiting.h). */
void keyspace_lock_exclusive(void) ACQUIRE(keyspace_lock);
void keyspace_unlock_exclusive(void) RELEASE(keyspace_lock);
/* The same for callers that can do without it for now: false, and nothing is held, when whoever
 * holds it has said that this will take long (keyspace_set_busy), before or while they wait. */
bool keyspace_try_shared(void) MUST_CHECK TRY_ACQUIRE_SHARED(true, keyspace_lock);
bool keyspace_try_exclusive(void) MUST_CHECK TRY_ACQUIRE(true, keyspace_lock);
/* The same in shared mode, for callers that wait `patience_ms` at most, however long it may be held
 * without a word. */
bool keyspace_try_shared_for(unsigned patience_ms) MUST_CHECK
    TRY_ACQUIRE_SHARED(true, keyspace_lock);
/* A holder in exclusive mode (a script past its threshold) says that the others had better not
 * wait, and takes it back. It still stands while a script is at its end because the server is. */
void keyspace_set_busy(bool busy);
bool keyspace_is_busy(void);
/* The word that says so, for waits on other locks. */
const _Atomic bool *keyspace_busy_flag(void);
/* True when the calling thread holds it in exclusive mode. */
bool keyspace_is_exclusive(void);
/* For readers that are called with and without it (INFO and MEMORY, which may stand alone or
 * between writes of one hold): takes it in shared mode unless the calling thread holds it in some
 * mode, and tells whether it did; the end gets that word back. */
bool keyspace_visit(void) MUST_CHECK ASSERT_HELD_SHARED(keyspace_lock);
void keyspace_leave(bool taken);
/* Debug builds: abort unless the calling thread holds it (in that mode). Also tells the analysis
 * so, for callbacks that are reached through function pointers. */
void keyspace_assert_shared(void) ASSERT_HELD_SHARED(keyspace_lock);
void keyspace_assert_exclusive(void) ASSERT_HELD(keyspace_lock);

#endif
