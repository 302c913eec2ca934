/* Threads of modules: alone under the server's lock, first come, first served among themselves, and
 * neither side starves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/thread.h"
#include "keyspace/lock.h"
#include "module/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#define MODULE_THREADS 4
#define SERVER_THREADS 2
#define ROUNDS 2000

static struct {
    uint64_t count; /* under the lock */
    unsigned inside;
    _Atomic int ready;
    _Atomic bool go, stop;
} shared;

static void note(void)
{
    assert_int_equal(shared.inside, 0); /* others fail their tests by the count as well */
    shared.inside++;
    shared.count++;
    shared.inside--;
}

static void wait_for_go(void)
{
    atomic_fetch_add(&shared.ready, 1);
    while (!atomic_load(&shared.go)) {
        sched_yield();
    }
}

static void *run_module_thread(void *tries)
{
    wait_for_go();
    for (int i = 0; i < ROUNDS; i++) {
        if (tries) {
            while (!threads_try_enter()) {
                sched_yield();
            }
        } else {
            threads_enter();
        }
        note();
        threads_leave();
    }
    return NULL;
}

static void *run_server_thread(void *unused)
{
    (void)unused;
    thread_enter("server");
    wait_for_go();
    for (int i = 0; i < ROUNDS; i++) {
        keyspace_lock_exclusive();
        note();
        keyspace_unlock_exclusive();
    }
    thread_leave();
    return NULL;
}

static void test_nobody_is_lost(void **state)
{
    (void)state;
    for (int tries = 0; tries < 2; tries++) {
        pthread_t threads[MODULE_THREADS + SERVER_THREADS];
        shared.count = 0;
        shared.ready = 0;
        shared.go = false;
        for (int i = 0; i < MODULE_THREADS; i++) {
            assert_int_equal(
                pthread_create(&threads[i], NULL, run_module_thread, tries ? &shared : NULL), 0);
        }
        for (int i = MODULE_THREADS; i < MODULE_THREADS + SERVER_THREADS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, run_server_thread, NULL), 0);
        }
        while (atomic_load(&shared.ready) < MODULE_THREADS + SERVER_THREADS) {
            sched_yield();
        }
        shared.go = true;
        for (int i = 0; i < MODULE_THREADS + SERVER_THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
        assert_int_equal(shared.count, (MODULE_THREADS + SERVER_THREADS) * ROUNDS);
    }
}

/* ---- fairness ---- */

/* All go on until each has had so many turns, which must have come before so many of all together:
 * a thread that the kernel leaves without a core for a hundred milliseconds misses some 100,000. */
#define TURNS_OF_EACH 100
#define MOST_TURNS 40000000

static struct {
    uint64_t of[MODULE_THREADS + SERVER_THREADS];
    uint64_t all;
    int served; /* threads that have had theirs */
} turns;        /* under the lock */

/* False when all have had enough, or never will. */
static bool take_turn(int number)
{
    turns.served += ++turns.of[number] == TURNS_OF_EACH;
    return ++turns.all < MOST_TURNS && turns.served < MODULE_THREADS + SERVER_THREADS;
}

static void *compete_as_module(void *number)
{
    bool more = true;
    wait_for_go();
    while (more) {
        threads_enter();
        more = take_turn((int)(intptr_t)number);
        threads_leave();
    }
    return NULL;
}

static void *compete_as_server(void *number)
{
    bool more = true;
    thread_enter("server");
    wait_for_go();
    while (more) {
        keyspace_lock_exclusive();
        more = take_turn((int)(intptr_t)number);
        keyspace_unlock_exclusive();
    }
    thread_leave();
    return NULL;
}

/* All want the lock all the time. */
static void test_neither_side_starves(void **state)
{
    pthread_t threads[MODULE_THREADS + SERVER_THREADS];
    (void)state;
    shared.ready = 0;
    shared.go = false;
    for (intptr_t i = 0; i < MODULE_THREADS + SERVER_THREADS; i++) {
        void *(*run)(void *) = i < MODULE_THREADS ? compete_as_module : compete_as_server;
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)i), 0);
    }
    while (atomic_load(&shared.ready) < MODULE_THREADS + SERVER_THREADS) {
        sched_yield();
    }
    shared.go = true;
    for (int i = 0; i < MODULE_THREADS + SERVER_THREADS; i++) {
        pthread_join(threads[i], NULL);
        print_message("%s thread: %llu turns\n", i < MODULE_THREADS ? "a module's" : "a server's",
                      (unsigned long long)turns.of[i]);
    }
    assert_int_equal(turns.served, MODULE_THREADS + SERVER_THREADS);
}

static void *hold_until_told(void *unused)
{
    (void)unused;
    threads_enter();
    shared.ready = 1;
    while (!atomic_load(&shared.stop)) {
        sched_yield();
    }
    threads_leave();
    return NULL;
}

/* Who can do without does not wait for another module's thread. */
static void test_trying(void **state)
{
    (void)state;
    pthread_t holder, tries;
    shared.ready = 0;
    shared.stop = false;
    assert_int_equal(pthread_create(&holder, NULL, hold_until_told, NULL), 0);
    while (!atomic_load(&shared.ready)) {
        sched_yield();
    }
    assert_false(threads_try_enter());
    shared.stop = true;
    pthread_join(holder, NULL);
    shared.go = true;
    assert_int_equal(pthread_create(&tries, NULL, run_module_thread, &shared), 0);
    pthread_join(tries, NULL);
}

int main(void)
{
    thread_enter("main");
    threads_setup();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_is_lost),
        cmocka_unit_test(test_trying),
        cmocka_unit_test(test_neither_side_starves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
