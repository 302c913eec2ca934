/* Threads of modules: the module lock, and contexts that a thread may keep.
 *
 * ThreadSafeContextLock is three steps: the module lock, for which modules' threads alone queue
 * (first come, first served); awake (the GIL in shared mode) with the slot that the holder of the
 * module lock has; the keyspace lock in exclusive mode. So one module thread at a time competes
 * with the server threads. It ranks before the GIL; server threads never take it, so nobody who
 * waits for the world is waited for. State: the lock is atomic; a context is its thread's. */
#ifndef MODULE_THREADS_H
#define MODULE_THREADS_H

#include "module/context.h"

/* Boot: the slot of modules' threads. The server ends: from now on none of them comes in any more;
 * waits for the one that is in. Main thread, nothing held. */
void threads_setup(void);
void threads_stop(void);
/* Takes all that a module's thread needs to call the server, and gives it back. The calling thread
 * is none of the server's and holds nothing. */
void threads_enter(void) ACQUIRE(keyspace_lock);
void threads_leave(void) RELEASE(keyspace_lock);
/* The same for who can do without: it waits for a server thread's present hold at most. */
bool threads_try_enter(void) MUST_CHECK TRY_ACQUIRE(true, keyspace_lock);

#endif
