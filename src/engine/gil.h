/* The GIL: a big-reader lock that every server thread holds in shared mode while it is awake. Who
 * takes it exclusively has the world standing still: every server thread sleeps in its event loop
 * or waits at its safe point between turns. Configuration, another thread's clients and the thread
 * count are touched under it, and modules run under it. It is the outermost lock: nobody takes it
 * while holding the keyspace lock. State: atomic. */
#ifndef ENGINE_GIL_H
#define ENGINE_GIL_H

#include "base/brlock.h"

#include <stdbool.h>

extern struct brlock gil;

/* A server thread wakes up from its event loop / goes to sleep in it. */
void gil_wake(void) ACQUIRE_SHARED(gil);
void gil_sleep(void) RELEASE_SHARED(gil);
/* An awake server thread stops all others: gives up its shared hold and takes the GIL. */
void gil_stop_world(void) RELEASE_SHARED(gil) ACQUIRE(gil);
/* The same, but it does not wait for a script that has said it takes long (keyspace_set_busy):
 * false, and the world goes on. */
bool gil_try_stop_world(void) MUST_CHECK;
/* And back: all go on. */
void gil_resume_world(void) RELEASE(gil) ACQUIRE_SHARED(gil);
/* The same with no moment in between in which another one may stop the world, so the keyspace lock
 * may be held meanwhile. */
void gil_keep_awake(void) RELEASE(gil) ACQUIRE_SHARED(gil);
/* True when it is the calling thread that has stopped the world. */
bool gil_has_world(void);
/* For callbacks behind function pointers. */
void gil_assert_world(void) ASSERT_HELD(gil);
void gil_assert_awake(void) ASSERT_HELD_SHARED(gil);

#endif
