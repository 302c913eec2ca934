/* Ranked leaf locks: base/lock.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/lock.h"
#include "base/thread.h"

#include <assert.h>
#include <sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lock lock = LOCK_INIT(LOCK_RANK_TEST, "test");

/* Guarded by the lock. */
static uint64_t one, two;

#define WORKERS 5
#define WORKER_STEPS 30000

static void *work(void *arg)
{
    (void)arg;
    thread_enter("worker");
    for (int i = 0; i < WORKER_STEPS; i++) {
        lock_acquire(&lock);
        assert(one == two);
        one++;
        if (i % 1000 == 0) {
            sched_yield(); /* others park */
        }
        two++;
        lock_release(&lock);
    }
    thread_leave();
    return NULL;
}

static void test_exclusion(void **state)
{
    (void)state;
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(thread_start(&threads[i], work, NULL), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(one, WORKERS * WORKER_STEPS);
    assert_int_equal(two, one);
    assert_int_equal(lock.word, 0);
    assert_int_equal(lock.owner_slot, 0);
}

static _Atomic int parked_done;

static void *take_once(void *arg)
{
    (void)arg;
    thread_enter("parker");
    lock_acquire(&lock);
    lock_release(&lock);
    atomic_fetch_add(&parked_done, 1);
    thread_leave();
    return NULL;
}

static void test_parked_threads_are_woken(void **state)
{
    (void)state;
    pthread_t threads[4];
    atomic_store(&parked_done, 0);
    lock_acquire(&lock);
    assert_int_equal(lock.owner_slot, thread_slot() + 1);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(thread_start(&threads[i], take_once, NULL), 0);
    }
    while (atomic_load(&lock.word) != 2) {
        sched_yield();
    }
    assert_int_equal(atomic_load(&parked_done), 0);
    lock_release(&lock);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&parked_done), 4);
}

/* ---- misuse ---- */

static bool aborts(void (*run)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr)) {
            _exit(3);
        }
        run();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static struct lock outer = LOCK_INIT(LOCK_RANK_CLIENTS, "outer");
static struct lock inner = LOCK_INIT(LOCK_RANK_LOG, "inner");

static void release_what_is_free(void)
{
    lock_release(&outer);
}

static void take_in_order(void)
{
    lock_acquire(&outer);
    lock_acquire(&inner);
    lock_rank_assert_held(LOCK_RANK_CLIENTS);
    lock_rank_assert_held(LOCK_RANK_LOG);
    lock_release(&inner);
    lock_release(&outer);
}

static void test_misuse_aborts(void **state)
{
    (void)state;
    assert_false(aborts(take_in_order));
    assert_true(aborts(release_what_is_free));
}

#if KEYDB_DEBUG
static void take_out_of_order(void)
{
    lock_acquire(&inner);
    lock_acquire(&outer);
}

static void take_twice(void)
{
    lock_acquire(&outer);
    lock_acquire(&outer);
}

static void release_out_of_order(void)
{
    lock_acquire(&outer);
    lock_acquire(&inner);
    lock_release(&outer);
}

static void assert_after_release(void)
{
    lock_acquire(&outer);
    lock_release(&outer);
    lock_rank_assert_held(LOCK_RANK_CLIENTS);
}

static void test_ranks_are_checked(void **state)
{
    (void)state;
    assert_true(aborts(take_out_of_order));
    assert_true(aborts(take_twice));
    assert_true(aborts(release_out_of_order));
    assert_true(aborts(assert_after_release));
}
#endif

#define FORKS 50

/* What the child of a fork under all locks finds: the lock free, and nothing half changed. It says
 * so by a signal: at an exit ThreadSanitizer asks for threads that the child does not have. */
static bool child_is_well(void)
{
    lock_take_all();
    pid_t child = fork();
    lock_let_go_of_all();
    if (child == 0) {
        alarm(60);
        lock_acquire(&lock);
        bool well = one == two;
        lock_release(&lock);
        raise(well ? SIGKILL : SIGTERM);
        _exit(1);
    }
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGKILL;
}

static void test_children_may_take_locks(void **state)
{
    (void)state;
    pthread_t threads[WORKERS];
    take_in_order();
    one = two = 0;
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(thread_start(&threads[i], work, NULL), 0);
    }
    for (int i = 0; i < FORKS; i++) {
        assert_true(child_is_well());
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(one, WORKERS * WORKER_STEPS);
    assert_int_equal(two, one);
}

/* Locks that nobody has taken before, each within another one: who takes it waits to make it known
 * while lock_take_all wants the outer one. */
#define FRESH 2000
static struct lock fresh[FRESH];
static _Atomic bool all_fresh_taken;

static void *take_fresh(void *arg)
{
    (void)arg;
    for (int i = 0; i < FRESH; i++) {
        fresh[i] = (struct lock)LOCK_INIT(LOCK_RANK_TEST, "fresh");
        lock_acquire(&outer);
        sched_yield();
        lock_acquire(&fresh[i]);
        lock_release(&fresh[i]);
        lock_release(&outer);
    }
    atomic_store(&all_fresh_taken, true);
    return NULL;
}

static void test_all_are_taken_while_others_become_known(void **state)
{
    (void)state;
    pthread_t thread;
    alarm(300);
    assert_int_equal(thread_start(&thread, take_fresh, NULL), 0);
    while (!atomic_load(&all_fresh_taken)) {
        lock_take_all();
        lock_let_go_of_all();
        sched_yield();
    }
    pthread_join(thread, NULL);
    lock_take_all();
    lock_let_go_of_all();
    alarm(0);
}

static int enter_process(void **state)
{
    (void)state;
    thread_enter("test");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exclusion),
        cmocka_unit_test(test_parked_threads_are_woken),
        cmocka_unit_test(test_misuse_aborts),
        cmocka_unit_test(test_children_may_take_locks),
        cmocka_unit_test(test_all_are_taken_while_others_become_known),
#if KEYDB_DEBUG
        cmocka_unit_test(test_ranks_are_checked),
#endif
    };
    return cmocka_run_group_tests(tests, enter_process, NULL);
}
