/* See thread.h. */
#include "base/thread.h"

#include "base/mem.h"
#include "base/thread_cpus.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic bool slot_taken[THREAD_MAX];
static _Atomic unsigned slots_used; /* highest slot ever taken + 1 */
static _Thread_local unsigned my_slot;

/* For the handler of a crash: a thread may crash because its stack has run out. */
#define HANDLER_STACK_BYTES ((size_t)64 * 1024)

static _Thread_local void *handler_stack;

/* Sanitizers may have given the thread one: it stays. */
static void provide_handler_stack(void)
{
    stack_t now;
    if (handler_stack || sigaltstack(NULL, &now) != 0 || !(now.ss_flags & SS_DISABLE)) {
        return;
    }
    handler_stack = mem_alloc(HANDLER_STACK_BYTES);
    stack_t own = {.ss_sp = handler_stack, .ss_size = HANDLER_STACK_BYTES};
    if (sigaltstack(&own, NULL) != 0) {
        mem_free(handler_stack);
        handler_stack = NULL;
    }
}

static void withdraw_handler_stack(void)
{
    stack_t none = {.ss_flags = SS_DISABLE};
    if (handler_stack && sigaltstack(&none, NULL) == 0) {
        mem_free(handler_stack);
        handler_stack = NULL;
    }
}

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

/* A free slot, and from now on writers look at its line: before its thread first reads. The thread
 * that starts others has not let them run by then, or holds no lock that they could miss: raising
 * the count early is always safe. */
static unsigned open_slot(void)
{
    unsigned slot = take_free_slot();
    unsigned used = atomic_load(&slots_used);
    while (used < slot + 1 && !atomic_compare_exchange_weak(&slots_used, &used, slot + 1)) {
    }
    brlock_set_thread_count(atomic_load(&slots_used));
    return slot;
}

unsigned thread_keep_slot(void)
{
    return open_slot();
}

void thread_borrow(unsigned slot)
{
    my_slot = slot;
}

void thread_return(void)
{
    my_slot = 0;
}

unsigned thread_enter(const char *name)
{
    my_slot = open_slot();
    char short_name[16];
    snprintf(short_name, sizeof(short_name), "%s", name);
    pthread_setname_np(pthread_self(), short_name);
    mem_thread_enter();
    provide_handler_stack();
    return my_slot;
}

void thread_leave(void)
{
    withdraw_handler_stack();
    mem_thread_leave();
    atomic_store(&slot_taken[my_slot], false);
    my_slot = 0;
}

unsigned thread_slots_used(void)
{
    return atomic_load_explicit(&slots_used, memory_order_acquire);
}

unsigned thread_slot(void)
{
    return my_slot;
}

int thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t all, before;
    cpu_set_t cores;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    bool confined = thread_cpus_of(THREAD_WORK_BACKGROUND, &cores) &&
                    pthread_attr_setaffinity_np(&attributes, sizeof(cores), &cores) == 0;
    sigfillset(&all);
    /* A fault whose signal is blocked ends the process without a word. */
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        sigdelset(&all, faults[i]);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, &attributes, run, arg);
    if (error && confined) {
        /* Cores that are not there, or not ours: better anywhere than not at all. */
        error = pthread_create(thread, NULL, run, arg);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
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
    if (core >= CPU_SETSIZE) {
        return EINVAL;
    }
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    return pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
}
