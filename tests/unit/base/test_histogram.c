/* Histograms: base/histogram.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/histogram.h"
#include "base/rand.h"

#include <string.h>

static void test_buckets_cover_everything_in_order(void **state)
{
    (void)state;
    assert_int_equal(histogram_bucket_of(0), 0);
    assert_int_equal(histogram_bucket_edge_ns(0), 0);
    for (unsigned i = 1; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t before = histogram_bucket_edge_ns(i - 1), edge = histogram_bucket_edge_ns(i);
        assert_true(edge > before);
        assert_int_equal(histogram_bucket_of(before + 1), i);
        assert_int_equal(histogram_bucket_of(edge), i);
        /* Not wider than a sixteenth of what it holds. */
        assert_true(edge - before <= 1 + before / 16);
    }
    assert_true(histogram_bucket_edge_ns(HISTOGRAM_BUCKETS - 1) > 3600ULL * 1000000000);
    assert_int_equal(histogram_bucket_of(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

static void test_percentiles(void **state)
{
    (void)state;
    static struct histogram h;
    assert_int_equal(histogram_percentile_ns(&h, 50), 0);
    for (uint64_t i = 1; i <= 10; i++) {
        histogram_record(&h, i, 1);
    }
    assert_int_equal(histogram_total(&h), 10);
    assert_int_equal(histogram_percentile_ns(&h, 0), 1);
    assert_int_equal(histogram_percentile_ns(&h, 10), 1);
    assert_int_equal(histogram_percentile_ns(&h, 50), 5);
    assert_int_equal(histogram_percentile_ns(&h, 51), 6);
    assert_int_equal(histogram_percentile_ns(&h, 99.9), 10);
    assert_int_equal(histogram_percentile_ns(&h, 100), 10);
    assert_int_equal(histogram_percentile_ns(&h, 101), 10);
    assert_int_equal(histogram_percentile_ns(&h, -1), 1);
    histogram_record(&h, 1000000, 990);
    uint64_t median = histogram_percentile_ns(&h, 50);
    assert_in_range(median, 1000000, 1062500);
    assert_int_equal(histogram_percentile_ns(&h, 1), 10);
    static const double several[] = {100, 0, 51, 1, 0.51};
    uint64_t values[5];
    histogram_percentiles_ns(&h, several, 5, values);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(values[i], histogram_percentile_ns(&h, several[i]));
    }
    assert_int_equal(values[1], 1);
    assert_int_equal(values[4], 6);
    assert_false(histogram_is_empty(&h));
    histogram_clear(&h);
    assert_int_equal(histogram_total(&h), 0);
    assert_true(histogram_is_empty(&h));
    histogram_percentiles_ns(&h, several, 5, values);
    assert_int_equal(values[0], 0);
}

static void test_sums(void **state)
{
    (void)state;
    static struct histogram one, two, sum;
    for (int i = 0; i < 1000; i++) {
        uint64_t value = rand_u64() >> rand_below(64);
        histogram_record(i % 2 ? &one : &two, value, 3);
    }
    histogram_add_relaxed(&sum, &one);
    histogram_add_relaxed(&sum, &two);
    assert_int_equal(histogram_total(&sum), 3000);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        assert_int_equal(sum.count[i], one.count[i] + two.count[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets_cover_everything_in_order),
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
