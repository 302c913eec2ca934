/* Counters of the whole server: base/stats.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/stats.h"

#include <sched.h>

#define COUNTERS 5
#define STEPS 20000

static int enter_process(void **state)
{
    (void)state;
    thread_enter("test");
    return 0;
}

static _Atomic bool go;

static void *count(void *arg)
{
    (void)arg;
    thread_enter("counter");
    while (!atomic_load(&go)) {
        sched_yield();
    }
    for (int i = 1; i <= STEPS; i++) {
        stats_add(STAT_COMMANDS, 1);
        stats_add(STAT_NET_INPUT_BYTES, (uint64_t)i);
        stats_max(STAT_BATCH_MAX, (uint64_t)(i % 777));
    }
    thread_leave();
    return NULL;
}

/* No count is lost, whoever asks meanwhile; also where a slot passes from one thread to the next.
 */
static void test_threads_count(void **state)
{
    (void)state;
    uint64_t before = stats_sum(STAT_COMMANDS);
    for (int round = 0; round < 3; round++) {
        pthread_t threads[COUNTERS];
        atomic_store(&go, false);
        for (int i = 0; i < COUNTERS; i++) {
            assert_int_equal(thread_start(&threads[i], count, NULL), 0);
        }
        atomic_store(&go, true);
        uint64_t last = 0;
        for (int i = 0; i < 100; i++) {
            uint64_t now = stats_sum(STAT_COMMANDS);
            assert_true(now >= last);
            last = now;
        }
        for (int i = 0; i < COUNTERS; i++) {
            pthread_join(threads[i], NULL);
        }
    }
    assert_int_equal(stats_sum(STAT_COMMANDS) - before, 3 * COUNTERS * STEPS);
    assert_int_equal(stats_sum(STAT_NET_INPUT_BYTES),
                     3 * COUNTERS * (uint64_t)STEPS * (STEPS + 1) / 2);
    for (unsigned i = 0; i < THREAD_MAX; i++) {
        assert_true(stats_of_thread(i, STAT_BATCH_MAX) == 0 ||
                    stats_of_thread(i, STAT_BATCH_MAX) == 776);
    }
}

static void test_a_thread_counts_for_its_slot(void **state)
{
    (void)state;
    stats_reset();
    stats_add(STAT_READS, 3);
    stats_add(STAT_READS, 4);
    stats_max(STAT_BATCH_MAX, 9);
    stats_max(STAT_BATCH_MAX, 5);
    assert_int_equal(stats_of_thread(thread_slot(), STAT_READS), 7);
    assert_int_equal(stats_of_thread(thread_slot(), STAT_BATCH_MAX), 9);
    assert_int_equal(stats_of_thread(thread_slot() + 1, STAT_READS), 0);
}

/* CONFIG RESETSTAT: what has changed since the last save is no statistic. */
static void test_reset_keeps_the_changes(void **state)
{
    (void)state;
    for (int s = 0; s < STAT_COUNT; s++) {
        stats_add((enum counter)s, 5);
    }
    stats_reset();
    for (int s = 0; s < STAT_COUNT; s++) {
        assert_int_equal(stats_sum((enum counter)s), s == STAT_DIRTY ? 5 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_count),
        cmocka_unit_test(test_a_thread_counts_for_its_slot),
        cmocka_unit_test(test_reset_keeps_the_changes),
    };
    return cmocka_run_group_tests(tests, enter_process, NULL);
}
