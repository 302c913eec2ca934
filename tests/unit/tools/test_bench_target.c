/* Where the benchmark connects to and how a connection opens: URIs and greetings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tools/benchmark/target.h"

static int setup(void **state)
{
    static struct bench_target target;
    *state = &target;
    return bench_target_init(&target);
}

static int teardown(void **state)
{
    bench_target_deinit(*state);
    return 0;
}

struct good_uri {
    const char *uri, *host, *user, *password;
    int port, dbnum;
};

static void expect_field(const char *seen, const char *expected)
{
    if (expected == NULL) {
        assert_null(seen);
    } else {
        assert_non_null(seen);
        assert_string_equal(seen, expected);
    }
}

static void uris_are_taken_apart(void **state)
{
    (void)state;
    static const struct good_uri rows[] = {
        {"redis://", "127.0.0.1", NULL, NULL, 6379, 0},
        {"redis://example", "example", NULL, NULL, 6379, 0},
        {"REDIS://example:7000", "example", NULL, NULL, 7000, 0},
        {"redis://example:7000/", "example", NULL, NULL, 7000, 0},
        {"redis://example/3", "example", NULL, NULL, 6379, 3},
        {"redis://:pass@example", "example", NULL, "pass", 6379, 0},
        {"redis://user:pass@example:1/15", "example", "user", "pass", 1, 15},
        {"redis://u%40x:p%3A%2f@example", "example", "u@x", "p:/", 6379, 0},
        {"redis://user:p@ss@example", "example", "user", "p@ss", 6379, 0},
        {"redis://[::1]:7000/2", "::1", NULL, NULL, 7000, 2},
        {"redis://[::1]", "::1", NULL, NULL, 6379, 0},
        {"redis://:7000", "127.0.0.1", NULL, NULL, 7000, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench_target target;
        assert_int_equal(bench_target_init(&target), 0);
        assert_null(bench_target_parse_uri(&target, rows[i].uri));
        expect_field(target.host, rows[i].host);
        expect_field(target.user, rows[i].user);
        expect_field(target.password, rows[i].password);
        assert_int_equal(target.port, rows[i].port);
        assert_int_equal(target.dbnum, rows[i].dbnum);
        bench_target_deinit(&target);
    }
}

static void wrong_uris_are_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "example",
        "http://example",
        "redissx://example",
        "redis://h:",
        "redis://h:x",
        "redis://h:123456",
        "redis://h:99999999999",
        "redis://[x",
        "redis://[::1]x",
        "redis://h/x",
        "redis://h/-1",
        "redis://h/99999999999999999999",
        "redis://%zz@h",
        "redis://a%4@h",
        "redis://a:%00@h",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_non_null(bench_target_parse_uri(*state, rows[i]));
    }
}

static void expect_greeting(const struct bench_target *target, const char *bytes, int replies)
{
    struct bench_greeting greeting;
    assert_int_equal(bench_target_greeting(target, &greeting), 0);
    assert_int_equal(greeting.replies, replies);
    assert_int_equal(greeting.len, strlen(bytes));
    if (greeting.len > 0) {
        assert_memory_equal(greeting.bytes, bytes, greeting.len);
    }
    free(greeting.bytes);
}

static void greetings_say_what_was_asked_for(void **state)
{
    struct bench_target *target = *state;
    expect_greeting(target, "", 0);
    assert_int_equal(bench_target_set(&target->password, "pw"), 0);
    expect_greeting(target, "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n", 1);
    assert_int_equal(bench_target_set(&target->user, "me"), 0);
    expect_greeting(target, "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$2\r\npw\r\n", 1);
    target->resp3 = true;
    expect_greeting(target,
                    "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$2\r\npw\r\n", 1);
    target->dbnum = 12;
    target->tracking = true;
    expect_greeting(target,
                    "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$2\r\npw\r\n"
                    "*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n"
                    "*3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n",
                    3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uris_are_taken_apart),
        cmocka_unit_test_setup_teardown(wrong_uris_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(greetings_say_what_was_asked_for, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
