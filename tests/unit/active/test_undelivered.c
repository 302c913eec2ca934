/* Entries of a stream that nobody was given, or that were given to somebody who had gone, as nodes
 * tell one another of them (value/stream_undelivered.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"

#include <string.h>

#define LOG_BYTES ((size_t)16 << 20)

static struct real_group group;

/* What is put back, and is gone, leaves nothing: nobody is told of a consumer that has none. */
static void test_nothing_is_put_back(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "xadd s 5-1 f v");
    real_run_one(&group, 0, 0, "xgroup create s g 9-9");
    uint64_t before = real_position(&group, 0);
    const char *gone = "xclaim s g (undelivered) 0 6-6 time 0 retrycount 0 justid force";
    const char *back = "xclaim s g (undelivered) 0 5-1 time 0 retrycount 0 justid force";
    assert_string_equal(real_run_one(&group, 0, 0, gone), "*0\r\n");
    assert_int_equal(real_position(&group, 0), before);
    assert_string_equal(real_run_one(&group, 0, 0, back), "*1\r\n$3\r\n5-1\r\n");
    assert_int_equal(real_position(&group, 0), before + 1);
    assert_non_null(strstr(real_unit_text(&group, 0, before + 1), " (undelivered) 5-1"));
    assert_true(real_settle(&group));
    assert_int_equal(real_digest(&group, 1, 0, "s"), real_digest(&group, 0, 0, "s"));
    real_group_deinit(&group);
}

/* What was given to a client that had gone is put back before the entry itself is here. */
static void test_put_back_before_it_is_there(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct origin_id writer = origin_named('p', 7), home = origin_named('q', 8);
    const char *given =
        "*8\r\n$11\r\nKEYDB.XPEND\r\n$1\r\ns\r\n$1\r\ng\r\n$3\r\n5-1\r\n$1\r\n7\r\n$1\r\n1\r\n"
        "$1\r\nc\r\n$3\r\n5-1\r\n";
    const char *insert =
        "*5\r\n$13\r\nKEYDB.XINSERT\r\n$1\r\ns\r\n$3\r\n5-1\r\n$1\r\nf\r\n$4\r\nlate\r\n";
    real_run_one(&group, 0, 0, "xgroup create s g 0 mkstream");
    uint64_t later = node_clock(group.node[0])->last;
    assert_int_equal(real_take(&group, 0, &home, 1, later + 4, 0, given), RECEIVED);
    real_run_one(&group, 0, 0, "xclaim s g (undelivered) 0 5-1 time 0 retrycount 0 justid");
    assert_null(strstr(real_unit_text(&group, 0, real_position(&group, 0)), "XACK"));
    assert_int_equal(real_take(&group, 0, &writer, 1, later + 2, 0, insert), RECEIVED);
    const char *read = "xreadgroup group g other streams s >";
    assert_non_null(strstr(real_run_one(&group, 0, 0, read), "late"));
    real_group_deinit(&group);
}

/* An entry that was put back is known to be undelivered before it is here itself: it is not given,
 * nor forgotten, and is given once it is here. A consumer that another node makes passes nothing
 * by. */
static void test_undelivered_before_it_is_there(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct origin_id writer = origin_named('p', 7), teller = origin_named('q', 8);
    uint64_t now = (uint64_t)REAL_START_MS << 16;
    const char *read = "xreadgroup group g c streams s >";
    const char *pend =
        "*8\r\n$11\r\nKEYDB.XPEND\r\n$1\r\ns\r\n$1\r\ng\r\n$3\r\n5-1\r\n$1\r\n0\r\n$1\r\n0\r\n"
        "$13\r\n(undelivered)\r\n$3\r\n5-1\r\n";
    const char *insert =
        "*5\r\n$13\r\nKEYDB.XINSERT\r\n$1\r\ns\r\n$3\r\n5-1\r\n$1\r\nf\r\n$4\r\nlate\r\n";
    const char *made =
        "*7\r\n$11\r\nKEYDB.XPEND\r\n$1\r\ns\r\n$1\r\ng\r\n$3\r\n0-0\r\n$1\r\n0\r\n$1\r\n0\r\n"
        "$5\r\nother\r\n";
    assert_string_equal(real_run_one(&group, 0, 0, "xgroup create s g 0 mkstream"), "+OK\r\n");
    uint64_t later = node_clock(group.node[0])->last;
    assert_int_equal(real_take(&group, 0, &teller, 1, later + 4, 0, pend), RECEIVED);
    assert_string_equal(real_run_one(&group, 0, 0, read), "*-1\r\n");
    assert_int_equal(real_take(&group, 0, &writer, 1, later + 2, 0, insert), RECEIVED);
    assert_non_null(strstr(real_run_one(&group, 0, 0, read), "late"));
    assert_string_equal(real_run_one(&group, 0, 0, read), "*-1\r\n");
    assert_int_equal(real_take(&group, 0, &teller, 2, now + (UINT64_C(1000) << 16), 0, made),
                     RECEIVED);
    real_run_one(&group, 1, 0, "xgroup create t g 7-7 mkstream");
    real_run_one(&group, 1, 0, "xgroup createconsumer t g mine");
    assert_non_null(strstr(real_unit_text(&group, 1, 2), "g 0-0 0 0 mine"));
    real_group_deinit(&group);
}

/* Reading without acknowledgement passes by what has not come here yet: it is given to somebody, on
 * all nodes alike; and what was read is not given again where it comes later. */
static void test_read_without_acknowledgement(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "xgroup create s g 0 mkstream");
    assert_true(real_settle(&group));
    real_run_one(&group, 0, 0, "xadd s 5-1 f zero");
    real_run_one(&group, 1, 0, "xadd s 6-1 f one");
    uint64_t before = real_position(&group, 1);
    const char *read = "xreadgroup group g c noack streams s >";
    assert_non_null(strstr(real_run_one(&group, 1, 0, read), "one"));
    assert_non_null(strstr(real_unit_text(&group, 1, before + 1), "XACK s g 6-1"));
    assert_true(real_settle(&group));
    assert_int_equal(real_digest(&group, 1, 0, "s"), real_digest(&group, 0, 0, "s"));
    const char *reply = real_run_one(&group, 0, 0, read);
    assert_non_null(strstr(reply, "zero"));
    assert_null(strstr(reply, "one"));
    assert_true(real_settle(&group));
    assert_string_equal(real_run_one(&group, 1, 0, read), "*-1\r\n");
    assert_int_equal(real_digest(&group, 1, 0, "s"), real_digest(&group, 0, 0, "s"));
    real_group_deinit(&group);
}

/* The entry comes behind what somebody has read of it. */
static void test_read_before_it_is_there(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct origin_id writer = origin_named('p', 7), reader = origin_named('q', 8);
    const char *has_read =
        "*8\r\n$11\r\nKEYDB.XPEND\r\n$1\r\ns\r\n$1\r\ng\r\n$3\r\n5-1\r\n$1\r\n7\r\n$1\r\n1\r\n"
        "$1\r\nc\r\n$3\r\n5-1\r\n*4\r\n$4\r\nXACK\r\n$1\r\ns\r\n$1\r\ng\r\n$3\r\n5-1\r\n";
    const char *insert =
        "*5\r\n$13\r\nKEYDB.XINSERT\r\n$1\r\ns\r\n$3\r\n5-1\r\n$1\r\nf\r\n$4\r\nlate\r\n";
    real_run_one(&group, 0, 0, "xgroup create s g 0 mkstream");
    uint64_t later = node_clock(group.node[0])->last;
    assert_int_equal(real_take(&group, 0, &reader, 1, later + 4, 0, has_read), RECEIVED);
    assert_int_equal(real_take(&group, 0, &writer, 1, later + 2, 0, insert), RECEIVED);
    assert_string_equal(real_run_one(&group, 0, 0, "xreadgroup group g c streams s >"), "*-1\r\n");
    real_group_deinit(&group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_put_back),
        cmocka_unit_test(test_put_back_before_it_is_there),
        cmocka_unit_test(test_undelivered_before_it_is_there),
        cmocka_unit_test(test_read_without_acknowledgement),
        cmocka_unit_test(test_read_before_it_is_there),
    };
    return cmocka_run_group_tests(tests, real_setup, real_teardown);
}
