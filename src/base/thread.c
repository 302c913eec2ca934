/* See thread.h. */
#include "base/thread.h"

#include "base/mem.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic bool slot_taken[THREAD_MAX];
static _Atomic unsigned slots_used; /* highest slot ever taken + 1 */
static _Thread_local unsigned my_slot;

static unsigned take_free_slot(void)
{
    for (unsigned i = 0; i < THREAD_MAX; i++) {
        bool expected = false;
        if (atomic_compare_exchange_strong(&slot_taken[i], &expected, true)) {
            return i;
        }
    }
    fprintf(stderr, "more than %d threads want a slot\n", THREAD_MAX);
    abort();
}

unsigned thread_enter(const char *name)
{
    my_slot = take_free_slot();
    unsigned used = atomic_load(&slots_used);
    while (used < my_slot + 1 && !atomic_compare_exchange_weak(&slots_used, &used, my_slot + 1)) {
    }
    /* Writers must look at this line before this thread first reads. The thread that starts others
     * has not let them run by then, or holds no lock that they could miss: raising the count early
     * is always safe. */
    brlock_set_thread_count(atomic_load(&slots_used));
    char short_name[16];
    snprintf(short_name, sizeof(short_name), "%s", name);
    pthread_setname_np(pthread_self(), short_name);
    mem_thread_enter();
    return my_slot;
}

void thread_leave(void)
{
    mem_thread_leave();
    atomic_store(&slot_taken[my_slot], false);
    my_slot = 0;
}

unsigned thread_slot(void)
{
    return my_slot;
}

int thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

unsigned thread_core_count(void)
{
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
        return (unsigned)CPU_COUNT(&cores);
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

int thread_pin(unsigned core)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core % CPU_SETSIZE, &cores);
    return pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
}
