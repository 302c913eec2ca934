/* The latency monitor: engine/latency.h. */
#include "engine/helpers.h"

#include "base/thread.h"
#include "engine/config.h"
#include "engine/latency.h"
#include "engine/slowlog.h"

static void set_option(const char *name, const char *value)
{
    struct slice pair[] = {slice_cstr(name), slice_cstr(value)}, failed;
    const char *error;
    assert_true(config_set(pair, 1, &failed, &error));
}

static int setup(void **state)
{
    (void)state;
    config_register(latency_options);
    config_register(slowlog_options);
    set_option("latency-monitor-threshold", "100");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    latency_reset(NULL, 0);
    config_teardown();
    return 0;
}

static void assert_latest(const char *expected)
{
    struct reply r;
    struct buf text = {0};
    reply_init(&r);
    reply_begin(&r, 2);
    latency_reply_latest(&r);
    assert_string_equal(helper_reply_text(&r, &text), expected);
    buf_deinit(&text);
    reply_deinit(&r);
}

static const char *history(const char *event)
{
    static struct buf text;
    struct reply r;
    reply_init(&r);
    reply_begin(&r, 2);
    latency_reply_history(&r, slice_cstr(event));
    helper_reply_text(&r, &text);
    reply_deinit(&r);
    return buf_cstr(&text);
}

static void test_threshold(void **state)
{
    (void)state;
    assert_true(latency_wants(100));
    assert_false(latency_wants(99));
    latency_note("command", 99, 1);
    assert_latest("*0\r\n");
    set_option("latency-monitor-threshold", "0");
    assert_false(latency_wants(UINT64_MAX));
    latency_note("command", 1000, 1);
    assert_latest("*0\r\n");
}

static void test_samples(void **state)
{
    (void)state;
    assert_string_equal(history("command"), "*0\r\n");
    latency_note("command", 100, 1000);
    latency_note("command", 300, 1000); /* the worst of its second */
    latency_note("command", 200, 1000);
    latency_note("command", 150, 1002);
    latency_note("fork", 500, 1003);
    assert_string_equal(history("command"), "*2\r\n*2\r\n:1000\r\n:300\r\n*2\r\n:1002\r\n:150\r\n");
    assert_latest("*2\r\n*4\r\n$7\r\ncommand\r\n:1002\r\n:150\r\n:300\r\n"
                  "*4\r\n$4\r\nfork\r\n:1003\r\n:500\r\n:500\r\n");
    /* Names are exact. */
    assert_string_equal(history("Command"), "*0\r\n");
    assert_string_equal(history("comman"), "*0\r\n");
}

static void test_ring(void **state)
{
    (void)state;
    for (int i = 0; i < 500; i++) {
        latency_note("command", 1000 - (uint64_t)i, 1000 + i);
    }
    const char *text = history("command");
    assert_true(strncmp(text, "*160\r\n*2\r\n:1340\r\n:660\r\n", 23) == 0);
    assert_non_null(strstr(text, "*2\r\n:1499\r\n:501\r\n"));
    assert_latest("*1\r\n*4\r\n$7\r\ncommand\r\n:1499\r\n:501\r\n:1000\r\n");
}

static void test_reset(void **state)
{
    (void)state;
    latency_note("a", 100, 1);
    latency_note("b", 100, 1);
    latency_note("c", 100, 1);
    struct slice names[] = {SLICE("b"), SLICE("nope"), SLICE("b")};
    assert_int_equal(latency_reset(names, 3), 1);
    assert_string_equal(history("b"), "*0\r\n");
    assert_latest("*2\r\n*4\r\n$1\r\na\r\n:1\r\n:100\r\n:100\r\n"
                  "*4\r\n$1\r\nc\r\n:1\r\n:100\r\n:100\r\n");
    assert_int_equal(latency_reset(NULL, 0), 2);
    assert_latest("*0\r\n");
    /* Nothing old shows through when the place is used anew. */
    latency_note("a", 150, 9);
    assert_string_equal(history("a"), "*1\r\n*2\r\n:9\r\n:150\r\n");
}

#define RULE "--------------------------------------------------------------------------------\n"

static void assert_graph(const char *event, int64_t now_s, const char *expected)
{
    struct buf text = {0};
    assert_true(latency_graph(slice_cstr(event), now_s, &text));
    assert_string_equal(buf_cstr(&text), expected);
    buf_deinit(&text);
}

static void test_graph(void **state)
{
    (void)state;
    struct buf text = {0};
    assert_false(latency_graph(SLICE("command"), 1, &text));
    assert_int_equal(text.len, 0);
    latency_note("command", 100, 1000);
    latency_note("command", 200, 1057);
    latency_note("command", 800, 1060);
    latency_note("command", 400, 1062);
    assert_graph("command", 1065,
                 "command - high 800 ms, low 100 ms (all time high 800 ms)\n" RULE "  # \n"
                 "  | \n"
                 "  |#\n"
                 "_#||\n"
                 "\n"
                 "1853\nmsss\n");
    /* One sample is a full bar; ages have the largest unit that fits. */
    latency_note("fork", 100, 0);
    assert_graph("fork", 3 * 86400,
                 "fork - high 100 ms, low 100 ms (all time high 100 ms)\n" RULE
                 "#\n|\n|\n|\n\n3\nd\n");
    /* A clock that went back is no age. */
    latency_note("back", 100, 50);
    assert_graph("back", 10,
                 "back - high 100 ms, low 100 ms (all time high 100 ms)\n" RULE
                 "#\n|\n|\n|\n\n0\ns\n");
    buf_deinit(&text);
}

static void test_graph_is_bounded(void **state)
{
    (void)state;
    struct buf text = {0};
    for (int i = 0; i < 160; i++) {
        latency_note("command", 100 + (uint64_t)i, 1000 + i);
    }
    assert_true(latency_graph(SLICE("command"), 1200, &text));
    const char *line = buf_cstr(&text);
    assert_non_null(strstr(line, "high 259 ms, low 180 ms (all time high 259 ms)"));
    for (int i = 0; (line = strchr(line, '\n')) != NULL; i++) {
        line++;
        assert_true(strcspn(line, "\n") <= 80);
        assert_true(i < 20);
    }
    buf_deinit(&text);
}

static const char *doctor(int64_t now_s)
{
    static struct buf text;
    buf_clear(&text);
    latency_doctor(now_s, &text);
    return buf_cstr(&text);
}

static void test_doctor(void **state)
{
    (void)state;
    assert_non_null(strstr(doctor(1), "No latency spike"));
    latency_note("command", 100, 1000);
    latency_note("command", 300, 1010);
    latency_note("aof-fsync-always", 100, 1010);
    const char *text = doctor(1020);
    assert_non_null(strstr(text,
                           "1. command: 2 latency spikes (average 200ms, mean deviation 100ms, "
                           "period 10.00 sec). Worst all time event 300ms.\n"));
    assert_non_null(strstr(text,
                           "2. aof-fsync-always: 1 latency spikes (average 100ms, mean "
                           "deviation 0ms, period 10.00 sec). Worst all time event 100ms.\n"));
    assert_non_null(strstr(text, "SLOWLOG GET"));
    assert_non_null(strstr(text, "The disk is slow"));
    /* 10 ms of the slow log is below the monitor's 100 ms: no advice about that. */
    assert_null(strstr(text, "slowlog-log-slower-than"));
    set_option("slowlog-log-slower-than", "1000000");
    assert_non_null(strstr(doctor(1020), "slowlog-log-slower-than"));
    set_option("latency-monitor-threshold", "0");
    assert_non_null(strstr(doctor(1020), "latency monitor is off"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_threshold), TEST(test_samples),          TEST(test_ring),   TEST(test_reset),
        TEST(test_graph),     TEST(test_graph_is_bounded), TEST(test_doctor),
    };
    thread_enter("test");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
