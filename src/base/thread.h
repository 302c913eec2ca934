/* Threads of this process: each has a slot, a small number below THREAD_MAX that indexes per-thread
 * lines and counters. Slot 0 is the main thread's; server threads and helpers take the next free
 * one. State: atomic. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include "base/brlock.h"

#include <pthread.h>

#define THREAD_MAX BRLOCK_MAX_THREADS

/* Registers the calling thread under `name` (shown by ps -L, at most 15 bytes) and gives it the
 * lowest free slot; aborts when there is none. Every thread of ours calls it once before any lock;
 * again after a leave. Handlers of signals that want a stack of their own (SA_ONSTACK) find one. */
unsigned thread_enter(const char *name);
/* Gives the slot back. The thread holds no lock. */
void thread_leave(void);
/* The calling thread's slot. */
unsigned thread_slot(void);
/* A slot that is kept for threads which are not ours (modules'): they use it one at a time, each
 * from thread_borrow to thread_return, and whoever lends it sees to that. It is never free again.
 */
unsigned thread_keep_slot(void);
/* The calling thread, which has no slot, has this one; and has none. */
void thread_borrow(unsigned slot);
void thread_return(void);
/* One more than the highest slot ever taken: who adds up per-thread lines need not look further.
 * Any thread. */
unsigned thread_slots_used(void);
/* Starts a joinable thread with all signals blocked but those of a crash, on the cores of
 * background work (thread_cpus.h); returns an errno value. */
int thread_start(pthread_t *thread, void *(*run)(void *), void *arg);
/* Number of cores this process may run on. */
unsigned thread_core_count(void);
/* Pins the calling thread to `core`; returns an errno value (EPERM and ENOSYS under seccomp are
 * warnings). */
int thread_pin(unsigned core);

#endif
