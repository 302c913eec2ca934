/* Clocks: base/clock.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"

#include <time.h>

static void test_wall_clock_is_the_systems(void **state)
{
    (void)state;
    int64_t before = (int64_t)time(NULL);
    int64_t us = clock_wall_us();
    int64_t ms = clock_wall_ms();
    int64_t after = (int64_t)time(NULL);
    /* time() may lag by a tick of the coarse clock. */
    assert_true(us / 1000000 >= before && us / 1000000 <= after + 1);
    assert_true(ms >= us / 1000);
    assert_true(ms / 1000 <= after + 1);
}

static void test_skew_moves_the_wall_clock_only(void **state)
{
    (void)state;
    uint64_t mono = clock_mono_ns();
    int64_t before = clock_wall_ms();
    clock_set_skew_ms(3600000);
    assert_true(clock_wall_ms() >= before + 3600000);
    clock_set_skew_ms(-3600000);
    assert_true(clock_wall_ms() < before);
    clock_set_skew_ms(0);
    assert_true(clock_wall_ms() >= before);
    assert_true(clock_mono_ns() >= mono);
    assert_true(clock_mono_us() >= mono / 1000);
}

/* Waits until 20 ms of the monotonic clock have passed, and looks what the ticks say about them. */
static void test_ticks_agree_with_the_monotonic_clock(void **state)
{
    (void)state;
    clock_setup();
    uint64_t outer_start = clock_mono_ns();
    uint64_t start = clock_ticks();
    uint64_t inner_start = clock_mono_ns();
    while (clock_mono_ns() < inner_start + 20000000) {
    }
    uint64_t inner_end = clock_mono_ns();
    uint64_t ticks = clock_ticks() - start;
    uint64_t outer_end = clock_mono_ns();
    uint64_t ns = clock_ticks_to_ns(ticks);
    /* Between the two measures around it, give or take 1 % for the scale. */
    assert_true(ns >= (inner_end - inner_start) * 99 / 100);
    assert_true(ns <= (outer_end - outer_start) * 101 / 100);
    assert_int_equal(clock_ticks_to_ns(0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wall_clock_is_the_systems),
        cmocka_unit_test(test_skew_moves_the_wall_clock_only),
        cmocka_unit_test(test_ticks_agree_with_the_monotonic_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
