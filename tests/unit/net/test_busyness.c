/* Tests of net/busyness.h: when it helps to give clients of a busy thread to another one, by
 * figures and not by the machine that the test runs on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/busyness.h"

#define MS UINT64_C(1000000)

/* Of one second, as parts of a core in percent; idle: of the machine, -1 unknown. */
static bool helps(int thread, int process, int idle, unsigned cores)
{
    struct busyness from = {.mono_ns = 7000 * MS,
                            .thread_ns = 3 * MS,
                            .process_ns = 5 * MS,
                            .idle_ns = idle < 0 ? 0 : 900 * MS};
    struct busyness to = {.mono_ns = 8000 * MS,
                          .thread_ns = from.thread_ns + (uint64_t)thread * 10 * MS,
                          .process_ns = from.process_ns + (uint64_t)process * 10 * MS,
                          .idle_ns = idle < 0 ? 0 : from.idle_ns + (uint64_t)idle * 10 * MS};
    return busyness_would_help(&from, &to, cores);
}

static void test_a_busy_thread_beside_an_idle_core(void **state)
{
    (void)state;
    assert_true(helps(100, 100, 100, 2));
    assert_true(helps(40, 40, 60, 2));
    assert_true(helps(100, 150, 50, 2));
    assert_true(helps(100, 100, -1, 2)); /* /proc/stat does not tell */
}

static void test_who_has_time_keeps_its_clients(void **state)
{
    (void)state;
    assert_false(helps(39, 39, 160, 2));
    assert_false(helps(0, 0, 200, 2));
}

static void test_nowhere_to_go(void **state)
{
    (void)state;
    assert_false(helps(100, 100, 0, 1));   /* the one core that we may use */
    assert_false(helps(100, 151, 60, 2));  /* our own threads fill what we may use */
    assert_false(helps(100, 100, 49, 2));  /* others fill the machine */
    assert_false(helps(100, 100, 700, 1)); /* a machine of eight, of which one is ours */
}

static void test_clocks_run(void **state)
{
    (void)state;
    struct busyness from = busyness_look(pthread_self()), to;
    do { /* work */
        to = busyness_look(pthread_self());
    } while (to.thread_ns - from.thread_ns < 5 * MS);
    assert_true(to.mono_ns > from.mono_ns);
    assert_true(to.process_ns - from.process_ns >= to.thread_ns - from.thread_ns - MS);
    assert_true(to.idle_ns >= from.idle_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_busy_thread_beside_an_idle_core),
        cmocka_unit_test(test_who_has_time_keeps_its_clients),
        cmocka_unit_test(test_nowhere_to_go),
        cmocka_unit_test(test_clocks_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
