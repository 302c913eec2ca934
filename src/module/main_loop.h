/* What modules do in the main thread's event loop: jobs that any thread posts (clients to unblock,
 * one-shot callbacks), timers and descriptors. All of it runs on the main thread, awake, with the
 * keyspace lock in exclusive mode, in holds of a bounded number of steps. While a script takes long
 * (keyspace_is_busy) it is put off. State: the queue of jobs is atomic, the rest is the main
 * thread's. */
#ifndef MODULE_MAIN_LOOP_H
#define MODULE_MAIN_LOOP_H

#include "base/inbox.h"
#include "keyspace/lock.h"

#include <stdint.h>

struct event_base;

/* Work for the main thread; in its owner's memory, which is posted once until it has run. */
struct main_job {
    struct inbox_message message; /* first */
    struct main_job *next;
    /* With the lock. `alive`: false while the server ends, when no module is called any more and
     * what belongs to the job is to be freed. */
    void (*run)(struct main_job *job, bool alive);
};

/* Boot and its reverse, when no other thread is left; jobs that are still there run as not alive.
 */
void main_loop_setup(void);
void main_loop_teardown(void);
/* The loop is there: what was posted before runs in it; and it ends. Main thread. */
void main_loop_start(struct event_base *base);
void main_loop_stop(void);
/* The loop, NULL before and after. Main thread. */
struct event_base *main_loop_base(void);
/* Hands the job over. Any thread, any lock held; never waits. */
void main_loop_post(struct main_job *job);
/* Boot: `step` is called at the times that main_loop_arm asks for; it does one thing that is due
 * and returns true, or false when there is none. */
void main_loop_set_timer(bool (*step)(void));
/* The next time, by clock_mono_us; INT64_MAX: none. Main thread. */
void main_loop_arm(int64_t at_us);
/* Wakes up and takes the lock, for callbacks of descriptors; false, after a short sleep, when it is
 * not to be had for now. */
bool main_loop_begin_hold(void) MUST_CHECK TRY_ACQUIRE(true, keyspace_lock);
void main_loop_end_hold(void) RELEASE(keyspace_lock);
/* Lets go of the lock and leaves nothing behind that a turn would see to: what reads have found to
 * be over, what is to be freed. For threads that have no turns, awake. */
void main_loop_let_go(void) RELEASE(keyspace_lock);

#endif
