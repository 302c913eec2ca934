/* Statistics of commands and errors: engine/cmdstats.h. */
#include "engine/helpers.h"

#include "base/thread.h"
#include "engine/cmdstats.h"
#include "engine/config.h"

#include <pthread.h>
#include <stdio.h>

static void run(struct call *c)
{
    (void)c;
}

static const struct command_row rows[] = {
    {.name = "get", .run = run, .arity = 2, .group = "t", .since = "1", .summary = "S."},
    {.name = "set", .run = run, .arity = 3, .group = "t", .since = "1", .summary = "S."},
    {0},
};

static const struct command *get, *set;

static int setup(void **state)
{
    (void)state;
    command_register(rows);
    config_register(cmdstats_options);
    cmdstats_setup();
    get = command_find(SLICE("get"));
    set = command_find(SLICE("set"));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cmdstats_teardown();
    config_teardown();
    command_teardown();
    return 0;
}

static void test_one_thread(void **state)
{
    (void)state;
    struct histogram h = {0};
    assert_false(cmdstats_histogram(get, &h));
    cmdstats_record(get, 3, 3000);
    cmdstats_record(get, 1, 500);
    cmdstats_record(set, 0, 100);
    cmdstats_rejected(set);
    cmdstats_failed(get);
    cmdstats_failed(get);
    struct cmdstats sum = cmdstats_sum(get);
    assert_int_equal(sum.calls, 4);
    assert_int_equal(sum.time_ns, 3500);
    assert_int_equal(sum.failed, 2);
    assert_int_equal(sum.rejected, 0);
    sum = cmdstats_sum(set);
    assert_int_equal(sum.calls, 0);
    assert_int_equal(sum.time_ns, 0);
    assert_int_equal(sum.rejected, 1);
    assert_true(cmdstats_histogram(get, &h));
    assert_int_equal(histogram_total(&h), 4);
    assert_int_equal(h.count[histogram_bucket_of(1000)], 3);
    assert_int_equal(h.count[histogram_bucket_of(500)], 1);
    assert_false(cmdstats_histogram(set, &h));
    cmdstats_reset();
    assert_int_equal(cmdstats_sum(get).calls, 0);
    assert_int_equal(cmdstats_sum(set).rejected, 0);
    assert_false(cmdstats_histogram(get, &h));
    cmdstats_record(get, 1, 1);
    assert_int_equal(cmdstats_sum(get).calls, 1);
}

enum { THREADS = 4, ROUNDS = 20000 };

static void *record_much(void *arg)
{
    (void)arg;
    thread_enter("test");
    for (int i = 0; i < ROUNDS; i++) {
        cmdstats_record(get, 2, 100);
        cmdstats_failed(set);
        errorstats_record(i % 2 ? SLICE("ERR a") : SLICE("WRONGTYPE b"));
        errorstats_record(SLICE("SAME x"));
    }
    thread_leave();
    return NULL;
}

static void add_count(const char *code, uint64_t count, void *context)
{
    buf_printf(context, "%s=%lu ", code, (unsigned long)count);
}

static void test_threads_are_summed(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(thread_start(&threads[i], record_much, NULL), 0);
    }
    /* Sums while they write are never more than there is. */
    for (int i = 0; i < 1000; i++) {
        assert_true(cmdstats_sum(get).calls <= 2 * THREADS * ROUNDS);
        struct histogram h = {0};
        cmdstats_histogram(get, &h);
        assert_true(histogram_total(&h) <= 2 * THREADS * ROUNDS);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(cmdstats_sum(get).calls, 2 * THREADS * ROUNDS);
    assert_int_equal(cmdstats_sum(get).time_ns, 100 * THREADS * ROUNDS);
    assert_int_equal(cmdstats_sum(set).failed, THREADS * ROUNDS);
    struct buf text = {0};
    errorstats_each(add_count, &text);
    assert_non_null(strstr(buf_cstr(&text), "ERR=40000 "));
    assert_non_null(strstr(buf_cstr(&text), "WRONGTYPE=40000 "));
    assert_non_null(strstr(buf_cstr(&text), "SAME=80000 "));
    buf_deinit(&text);
}

static void test_tracking_off(void **state)
{
    (void)state;
    struct slice pair[] = {SLICE("latency-tracking"), SLICE("no")}, failed;
    const char *error;
    struct histogram h = {0};
    assert_true(cmdstats_tracking());
    assert_true(config_set(pair, 1, &failed, &error));
    assert_false(cmdstats_tracking());
    cmdstats_record(get, 1, 1000);
    assert_int_equal(cmdstats_sum(get).calls, 1);
    assert_false(cmdstats_histogram(get, &h));
}

static void assert_errors(const char *expected)
{
    struct buf text = {0};
    errorstats_each(add_count, &text);
    assert_string_equal(buf_cstr(&text), expected);
    buf_deinit(&text);
}

static void test_error_codes(void **state)
{
    (void)state;
    assert_errors("");
    errorstats_record(SLICE("ERR unknown command"));
    errorstats_record(SLICE("WRONGTYPE Operation"));
    errorstats_record(SLICE("ERR other"));
    errorstats_record(SLICE("ERRX other"));
    assert_errors("ERR=2 WRONGTYPE=1 ERRX=1 ");
    /* Without a sensible first word an error counts as ERR, as in Redis. */
    errorstats_record(SLICE("word"));
    errorstats_record(SLICE(""));
    errorstats_record(SLICE(" blank"));
    errorstats_record(SLICE("aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd rest"));
    errorstats_record(slice_of(NULL, 0));
    assert_errors("ERR=7 WRONGTYPE=1 ERRX=1 ");
    /* Scripts choose codes: none may break INFO's lines. */
    errorstats_record(SLICE("A:b\r\n#x, y"));
    assert_errors("ERR=7 WRONGTYPE=1 ERRX=1 A_b___x_=1 ");
    cmdstats_reset();
    assert_errors("");
    errorstats_record(SLICE("NEW one"));
    assert_errors("NEW=1 ");
}

static void count_codes(const char *code, uint64_t count, void *context)
{
    unsigned *counts = context;
    counts[0]++;
    counts[1] += (unsigned)count;
    counts[2] += strcmp(code, "ERRORSTATS_OVERFLOW") == 0 ? (unsigned)count : 0;
}

static void test_error_codes_are_bounded(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        char text[32];
        snprintf(text, sizeof(text), "CODE%d text", i);
        errorstats_record(slice_cstr(text));
    }
    unsigned counts[3] = {0};
    errorstats_each(count_codes, counts);
    assert_int_equal(counts[0], 129);
    assert_int_equal(counts[1], 1000);
    assert_int_equal(counts[2], 1000 - 128);
    /* The known ones go on. */
    errorstats_record(SLICE("CODE5 text"));
    counts[0] = counts[1] = counts[2] = 0;
    errorstats_each(count_codes, counts);
    assert_int_equal(counts[2], 1000 - 128);
}

static void assert_percentiles(const char *text, const char *expected)
{
    struct slice pair[] = {SLICE("latency-tracking-info-percentiles"), slice_cstr(text)}, failed;
    const char *error;
    if (!config_set(pair, 1, &failed, &error)) {
        assert_string_equal(error, expected);
        return;
    }
    struct buf shown = {0};
    option_format(config_find(pair[0]), &shown);
    assert_string_equal(buf_cstr(&shown), expected);
    buf_deinit(&shown);
}

static void test_percentiles(void **state)
{
    (void)state;
    const double *values;
    assert_int_equal(cmdstats_percentiles(&values), 3);
    assert_true(values[0] == 50.0 && values[1] == 99.0 && values[2] == 99.9);
    assert_percentiles("50 99 99.99", "50 99 99.99");
    assert_percentiles("0 100", "0 100");
    assert_percentiles(
        "100.1", "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
    assert_percentiles(
        "-1", "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
    assert_percentiles("50 ab", "Invalid latency-tracking-info-percentiles parameters");
    assert_percentiles("50 nan", "Invalid latency-tracking-info-percentiles parameters");
    assert_percentiles("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17",
                       "Too many latency-tracking-info-percentiles parameters");
    assert_int_equal(cmdstats_percentiles(&values), 2);
    assert_percentiles("", "");
    assert_int_equal(cmdstats_percentiles(&values), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_thread),  TEST(test_threads_are_summed),      TEST(test_tracking_off),
        TEST(test_error_codes), TEST(test_error_codes_are_bounded), TEST(test_percentiles),
    };
    thread_enter("test");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
