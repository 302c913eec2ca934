/* The benchmark's histogram: precision, percentiles against a sorted list, merging, walks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "tools/benchmark/hist.h"

static int setup(void **state)
{
    *state = bench_hist_create();
    return *state == NULL;
}

static int teardown(void **state)
{
    struct bench_hist *hist = *state;
    bench_hist_destroy(&hist);
    assert_null(hist);
    return 0;
}

static void empty_one_says_zero(void **state)
{
    struct bench_hist_walk walk;
    struct bench_hist_row row;
    assert_int_equal(bench_hist_count(*state), 0);
    assert_int_equal(bench_hist_percentile(*state, 99), 0);
    assert_int_equal(bench_hist_min(*state), 0);
    assert_int_equal(bench_hist_max(*state), 0);
    bench_hist_walk_start(&walk, *state);
    assert_false(bench_hist_walk_percentile(&walk, &row));
    bench_hist_walk_start(&walk, *state);
    assert_false(bench_hist_walk_linear(&walk, &row));
}

/* Every value is found again within a thousandth, at all bucket borders. */
static void three_digits_are_kept(void **state)
{
    (void)state;
    for (int bit = 0; bit < 40; bit++) {
        for (int delta = -1; delta <= 1; delta++) {
            uint64_t value = (UINT64_C(1) << bit) + (uint64_t)(int64_t)delta;
            struct bench_hist *hist = bench_hist_create();
            bench_hist_record(hist, value, 1);
            bench_hist_record(hist, BENCH_HIST_MAX_NS, 1);
            uint64_t seen = bench_hist_percentile(hist, 50);
            assert_true(seen >= value);
            assert_true(seen - value <= value / 1024);
            bench_hist_destroy(&hist);
        }
    }
}

static void too_large_values_are_capped(void **state)
{
    bench_hist_record(*state, UINT64_MAX, 3);
    assert_int_equal(bench_hist_count(*state), 3);
    assert_int_equal(bench_hist_max(*state), BENCH_HIST_MAX_NS);
    assert_int_equal(bench_hist_percentile(*state, 100), BENCH_HIST_MAX_NS);
}

static void nothing_recorded_zero_times(void **state)
{
    bench_hist_record(*state, 7, 0);
    assert_int_equal(bench_hist_count(*state), 0);
    assert_int_equal(bench_hist_max(*state), 0);
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void percentiles_agree_with_a_sorted_list(void **state)
{
    enum { COUNT = 20000 };
    static uint64_t values[COUNT];
    uint64_t seed = 12345;
    uint64_t sum = 0;
    for (int i = 0; i < COUNT; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        values[i] = (seed >> 33) >> (seed % 24);
        sum += values[i];
        bench_hist_record(*state, values[i], 1);
    }
    qsort(values, COUNT, sizeof(values[0]), compare_u64);
    assert_int_equal(bench_hist_min(*state), values[0]);
    assert_int_equal(bench_hist_max(*state), values[COUNT - 1]);
    assert_int_equal(bench_hist_sum(*state), sum);
    for (int permille = 1; permille <= 1000; permille++) {
        uint64_t exact = values[(size_t)COUNT * (size_t)permille / 1000 - 1];
        uint64_t seen = bench_hist_percentile(*state, permille / 10.0);
        assert_true(seen >= exact);
        assert_true(seen - exact <= exact / 1024);
    }
}

static void merged_is_as_if_recorded_in_one(void **state)
{
    struct bench_hist *other = bench_hist_create();
    struct bench_hist *both = bench_hist_create();
    for (uint64_t i = 1; i < 3000; i += 7) {
        bench_hist_record(*state, i * 100, 1);
        bench_hist_record(other, i * 3001, 2);
        bench_hist_record(both, i * 100, 1);
        bench_hist_record(both, i * 3001, 2);
    }
    bench_hist_merge(*state, other);
    assert_int_equal(bench_hist_count(*state), bench_hist_count(both));
    assert_int_equal(bench_hist_sum(*state), bench_hist_sum(both));
    assert_int_equal(bench_hist_min(*state), bench_hist_min(both));
    assert_int_equal(bench_hist_max(*state), bench_hist_max(both));
    for (int p = 0; p <= 100; p++) {
        assert_int_equal(bench_hist_percentile(*state, p), bench_hist_percentile(both, p));
    }
    bench_hist_destroy(&other);
    bench_hist_destroy(&both);
}

static void merging_an_empty_one_keeps_the_minimum(void **state)
{
    struct bench_hist *other = bench_hist_create();
    bench_hist_record(*state, 5, 1);
    bench_hist_merge(*state, other);
    assert_int_equal(bench_hist_min(*state), 5);
    bench_hist_merge(other, *state);
    assert_int_equal(bench_hist_min(other), 5);
    bench_hist_destroy(&other);
}

static void percentile_walk_halves_what_is_left(void **state)
{
    static const struct bench_hist_row expected[] = {
        {0, 1, 1},        {50, 50, 50},      {75, 75, 75},         {87.5, 88, 88},  {93.75, 94, 94},
        {96.875, 97, 97}, {98.4375, 99, 99}, {99.21875, 100, 100}, {100, 100, 100},
    };
    for (uint64_t i = 1; i <= 100; i++) {
        bench_hist_record(*state, i, 1);
    }
    struct bench_hist_walk walk;
    struct bench_hist_row row;
    bench_hist_walk_start(&walk, *state);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_true(bench_hist_walk_percentile(&walk, &row));
        assert_true(row.percentile > expected[i].percentile - 1e-9);
        assert_true(row.percentile < expected[i].percentile + 1e-9);
        assert_int_equal(row.upper_ns, expected[i].upper_ns);
        assert_int_equal(row.count, expected[i].count);
    }
    assert_false(bench_hist_walk_percentile(&walk, &row));
}

/* redis-benchmark prints three values of which two are equal as 0 %, 75 %, 100 %. */
static void percentile_walk_leaves_out_what_is_passed(void **state)
{
    bench_hist_record(*state, 39, 2);
    bench_hist_record(*state, 87, 1);
    struct bench_hist_walk walk;
    struct bench_hist_row row;
    bench_hist_walk_start(&walk, *state);
    assert_true(bench_hist_walk_percentile(&walk, &row));
    assert_true(row.percentile < 1 && row.count == 2 && row.upper_ns == 39);
    assert_true(bench_hist_walk_percentile(&walk, &row));
    assert_true(row.percentile > 74.9 && row.percentile < 75.1);
    assert_int_equal(row.count, 3);
    assert_true(bench_hist_walk_percentile(&walk, &row));
    assert_true(row.percentile > 99.9);
    assert_false(bench_hist_walk_percentile(&walk, &row));
}

static void linear_walk_counts_each_value_once(void **state)
{
    static const struct bench_hist_row expected[] = {
        {20, 100000, 1}, {40, 300000, 2}, {60, 2000000, 3}, {100, 4000000, 5}};
    bench_hist_record(*state, 1, 1);
    bench_hist_record(*state, 250000, 1);
    bench_hist_record(*state, 1950000, 1);
    bench_hist_record(*state, 3100000, 1);
    bench_hist_record(*state, 3900000, 1);
    struct bench_hist_walk walk;
    struct bench_hist_row row;
    bench_hist_walk_start(&walk, *state);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_true(bench_hist_walk_linear(&walk, &row));
        assert_int_equal(row.upper_ns, expected[i].upper_ns);
        assert_int_equal(row.count, expected[i].count);
        assert_true(row.percentile > expected[i].percentile - 1e-9);
        assert_true(row.percentile < expected[i].percentile + 1e-9);
    }
    assert_false(bench_hist_walk_linear(&walk, &row));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(empty_one_says_zero, setup, teardown),
        cmocka_unit_test(three_digits_are_kept),
        cmocka_unit_test_setup_teardown(too_large_values_are_capped, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_recorded_zero_times, setup, teardown),
        cmocka_unit_test_setup_teardown(percentiles_agree_with_a_sorted_list, setup, teardown),
        cmocka_unit_test_setup_teardown(merged_is_as_if_recorded_in_one, setup, teardown),
        cmocka_unit_test_setup_teardown(merging_an_empty_one_keeps_the_minimum, setup, teardown),
        cmocka_unit_test_setup_teardown(percentile_walk_halves_what_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(percentile_walk_leaves_out_what_is_passed, setup, teardown),
        cmocka_unit_test_setup_teardown(linear_walk_counts_each_value_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
