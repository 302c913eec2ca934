/* What the walks over the keyspace gather: the histogram of sizes, the list of the largest, types.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/histogram.h"
#include "tools/cli/kinds.h"
#include "tools/cli/number.h"
#include "tools/cli/top.h"
#include "tools/common/text.h"

static void tell(void *context, double percentile, unsigned long long size,
                 unsigned long long count)
{
    text_append_format(context, "%.4f:%llu:%llu ", percentile, size, count);
}

static void percentiles_are(const unsigned long long *sizes, size_t count, const char *wanted)
{
    struct histogram h;
    struct text told;
    histogram_init(&h);
    text_init(&told);
    for (size_t i = 0; i < count; i++) {
        histogram_add(&h, sizes[i]);
    }
    histogram_percentiles(&h, tell, &told);
    assert_string_equal(told.data, wanted);
    text_deinit(&told);
    histogram_deinit(&h);
}

/* Recorded from redis-cli 7.4.1. */
static void percentiles(void **state)
{
    (void)state;
    static const unsigned long long sizes[] = {327728, 4728, 144, 80, 64, 64, 64, 64, 48};
    percentiles_are(NULL, 0, "");
    percentiles_are(sizes, 9,
                    "0.0000:48:1 50.0000:64:5 75.0000:144:7 87.5000:4728:8 100.0000:327743:9 ");
    percentiles_are(sizes + 4, 2, "100.0000:64:2 ");
    static const unsigned long long ends[] = {0, 32767, 32768, ULLONG_MAX};
    percentiles_are(ends, 4,
                    "0.0000:0:1 50.0000:32767:2 75.0000:32769:3 "
                    "100.0000:18446744073709551615:4 ");
}

/* Each size is told as one that is not smaller, and larger by a ten-thousandth at most. */
static void precision(void **state)
{
    (void)state;
    for (int bit = 0; bit < 64; bit++) {
        for (int delta = -1; delta <= 1; delta++) {
            unsigned long long size = (1ULL << bit) + (unsigned long long)(long long)delta;
            struct histogram h;
            struct text told;
            histogram_init(&h);
            text_init(&told);
            histogram_add(&h, size);
            histogram_percentiles(&h, tell, &told);
            unsigned long long seen;
            assert_int_equal(sscanf(told.data, "100.0000:%llu:1", &seen), 1);
            assert_true(seen >= size && seen - size <= size / 10000);
            double off = histogram_mean(&h) - (double)size;
            assert_true(fabs(off) <= (double)size / 10000);
            assert_true(histogram_deviation(&h) == 0);
            text_deinit(&told);
            histogram_deinit(&h);
        }
    }
}

static void mean_and_deviation(void **state)
{
    (void)state;
    struct histogram h;
    histogram_init(&h);
    assert_true(histogram_mean(&h) == 0 && histogram_deviation(&h) == 0);
    for (unsigned long long size = 2; size <= 6; size += 2) {
        histogram_add(&h, size);
    }
    assert_true(histogram_mean(&h) == 4);
    assert_true(fabs(histogram_deviation(&h) - sqrt(8.0 / 3)) < 1e-9);
    histogram_deinit(&h);
}

static void the_largest(void **state)
{
    (void)state;
    struct top t;
    top_init(&t, 3);
    assert_true(top_offer(&t, 5, "a", 1, NULL));
    assert_true(top_offer(&t, 5, "b", 1, NULL));
    assert_true(top_offer(&t, 7, "c", 1, NULL));
    assert_false(top_offer(&t, 5, "d", 1, NULL)); /* does not drive an equal one out */
    assert_true(top_offer(&t, 6, "e\0f", 3, state));
    assert_int_equal(t.count, 3);
    assert_string_equal(t.list[0].name, "c");
    assert_memory_equal(t.list[1].name, "e\0f", 4);
    assert_ptr_equal(t.list[1].tag, state);
    assert_string_equal(t.list[2].name, "a");
    top_deinit(&t);
    top_init(&t, 0);
    assert_false(top_offer(&t, 5, "a", 1, NULL));
    top_deinit(&t);
    top_init(&t, 100);
    for (unsigned long long i = 0; i < 1000; i++) {
        (void)top_offer(&t, i * 7919 % 1000, "x", 1, NULL);
    }
    assert_int_equal(t.count, 100);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(t.list[i].figure, 999 - i);
    }
    top_deinit(&t);
}

static void types(void **state)
{
    (void)state;
    struct kinds k;
    char name[KIND_NAME_MAX + 2];
    kinds_init(&k);
    struct kind *list = kinds_find(&k, "list", 4);
    assert_string_equal(list->command, "LLEN");
    assert_ptr_not_equal(kinds_find(&k, "lis", 3), list);
    assert_null(kinds_find(&k, "lis", 3)->command);
    assert_ptr_equal(kinds_find(&k, "lis", 3), kinds_find(&k, "lis", 3));
    assert_null(kinds_find(&k, "", 0));
    assert_null(kinds_find(&k, "a\0b", 3));
    assert_null(kinds_find(&k, "a b", 3));
    assert_null(kinds_find(&k, "\x1b[2J", 4));
    assert_null(kinds_find(&k, "\xc3\xa9", 2));
    memset(name, 'x', sizeof(name));
    assert_non_null(kinds_find(&k, name, KIND_NAME_MAX));
    assert_null(kinds_find(&k, name, KIND_NAME_MAX + 1));
    for (int i = 0; i < KINDS_MAX; i++) {
        snprintf(name, sizeof(name), "type%d", i);
        (void)kinds_find(&k, name, strlen(name));
    }
    assert_int_equal(k.count, KINDS_MAX);
    assert_null(kinds_find(&k, "another", 7));
    assert_true(measure_add(&list->length, 5, "a", 1));
    assert_false(measure_add(&list->length, 5, "b", 1));
    assert_true(measure_add(&list->length, ULLONG_MAX, "c", 1));
    assert_string_equal(list->length.biggest_name, "c");
    assert_true(list->length.sum == ULLONG_MAX);
    kinds_deinit(&k);
}

static void human(long long bytes, const char *wanted)
{
    char text[NUMBER_HUMAN_BYTES];
    number_human_bytes(text, bytes);
    assert_string_equal(text, wanted);
}

static void bytes_for_people(void **state)
{
    (void)state;
    human(0, "0B");
    human(1023, "1023B");
    human(1024, "1.00K");
    human(4728, "4.62K");
    human(1536LL * 1024, "1.50M");
    human(LLONG_MAX, "8.00E");
}

static void readable(const char *source, size_t len, const char *wanted)
{
    struct text t;
    text_init(&t);
    text_append_string(&t, "\"");
    text_append_readable(&t, source, len);
    assert_string_equal(t.data + 1, wanted);
    text_deinit(&t);
}

static void names_in_sentences(void **state)
{
    (void)state;
    readable("", 0, "");
    readable("a b:c", 5, "a b:c");
    readable("a\"b", 3, "\"a\\\"b\"");
    readable("\x1b[2J", 4, "\"\\x1b[2J\"");
    readable("a\0", 2, "\"a\\x00\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles),
        cmocka_unit_test(precision),
        cmocka_unit_test(mean_and_deviation),
        cmocka_unit_test(the_largest),
        cmocka_unit_test(types),
        cmocka_unit_test(bytes_for_people),
        cmocka_unit_test(names_in_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
