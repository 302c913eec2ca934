/* What lock.c is with KEYDB_BREAK_LOCK: a server for the test of the tests (make broken-lock). One
 * in so many exclusive holds of a thread excludes nobody. And each thread is often made to let
 * others run, wherever it stands: on one core, or on two with much to do, threads are otherwise
 * hardly ever inside a hold at the same time, and what the lock spoils would not be seen. State:
 * each thread's own. */
#ifndef KEYSPACE_LOCK_BROKEN_H
#define KEYSPACE_LOCK_BROKEN_H

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#define BROKEN_HOLDS 16
#define BROKEN_RUN_NS 200000
#define BROKEN_REST_NS 100000
#define BROKEN_SIGNAL SIGALRM

static _Thread_local unsigned hold_number;

static void let_others_run(int number)
{
    (void)number;
    int kept = errno;
    nanosleep(&(struct timespec){0, BROKEN_REST_NS}, NULL);
    errno = kept;
}

/* Has the calling thread interrupted from now on. */
static void begin_resting(void)
{
    struct sigaction action = {.sa_handler = let_others_run, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = BROKEN_SIGNAL};
    struct itimerspec period = {{0, BROKEN_RUN_NS}, {0, BROKEN_RUN_NS}};
    sigset_t mine;
    timer_t timer;
    event._sigev_un._tid = gettid();
    sigemptyset(&action.sa_mask);
    sigaction(BROKEN_SIGNAL, &action, NULL);
    sigemptyset(&mine);
    sigaddset(&mine, BROKEN_SIGNAL);
    bool begun = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
                 timer_settime(timer, 0, &period, NULL) == 0;
    assert(begun);
    (void)begun;
    pthread_sigmask(SIG_UNBLOCK, &mine, NULL);
}

/* Before each exclusive hold: whether it is one that excludes nobody. */
static bool begin_hold(void)
{
    if (hold_number++ == 0) {
        begin_resting();
    }
    return hold_number % BROKEN_HOLDS == 0;
}

/* The same of the hold that ends. */
static bool is_broken(void)
{
    return hold_number % BROKEN_HOLDS == 0;
}

#endif
