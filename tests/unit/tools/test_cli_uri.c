/* URIs and numbers as they stand on the command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tools/cli/number.h"
#include "tools/cli/uri.h"
#include "tools/common/text.h"

/* A URI's parts on one line, "-" for what is absent; or the mistake. */
static void check(const char *uri, const char *expected)
{
    struct uri u;
    struct text out;
    text_init(&out);
    const char *wrong = uri_parse(uri, &u);
    if (wrong != NULL) {
        text_append_string(&out, wrong);
    } else {
        text_append_format(&out, "%s %s %s %d %s %d", u.user != NULL ? u.user : "-",
                           u.password != NULL ? u.password : "-", u.host != NULL ? u.host : "-",
                           u.port, u.unix_path != NULL ? u.unix_path : "-", u.db);
        uri_deinit(&u);
    }
    assert_string_equal(out.data, expected);
    text_deinit(&out);
}

static void tcp(void **state)
{
    (void)state;
    check("redis://", "- - - 0 - -1");
    check("redis://h", "- - h 0 - -1");
    check("redis://h/", "- - h 0 - -1");
    check("keydb://h:1/15", "- - h 1 - 15");
    check("redis://:65535", "- - - 65535 - -1");
    check("redis:///7", "- - - 0 - 7");
    check("redis://[::1]:6380/2", "- - ::1 6380 - 2");
    check("redis://[::1]", "- - ::1 0 - -1");
    check("redis://u:p@h:5", "u p h 5 - -1");
    check("redis://p@h", "- p h 0 - -1");
    check("redis://:p@h", "- p h 0 - -1");
    check("redis://u:@h", "u - h 0 - -1");
    check("redis://@h", "- - h 0 - -1");
    check("redis://%75%3a:p%40%2F%25@h", "u: p@/% h 0 - -1");
}

static void unix_socket(void **state)
{
    (void)state;
    check("unix:///run/s.sock", "- - - 0 /run/s.sock -1");
    check("unix:///run/a@b?db=3", "- - - 0 /run/a@b 3");
    check("unix://u:p@/s", "u p - 0 /s -1");
    check("redis+socket:///a%20b", "- - - 0 /a b -1");
}

static void mistakes(void **state)
{
    (void)state;
    check("", "Invalid URI scheme");
    check("h:1", "Invalid URI scheme");
    check("http://h", "Invalid URI scheme");
    check("redis:/h", "Invalid URI scheme");
    check("rediss:/h", "Invalid URI scheme");
    check("rediss://h:0", "Invalid port in URI");
    check("redis://h:", "Invalid port in URI");
    check("redis://h:0", "Invalid port in URI");
    check("redis://h:65536", "Invalid port in URI");
    check("redis://h:1x", "Invalid port in URI");
    check("redis://h:1/x", "Invalid database number in URI");
    check("redis://h:1/-1", "Invalid database number in URI");
    check("redis://h/99999999999999999999", "Invalid database number in URI");
    check("redis://[::1", "Invalid host in URI");
    check("redis://[::1]x", "Invalid host in URI");
    check("redis://u:%@h", "Incorrect URI encoding");
    check("redis://u:%4@h", "Incorrect URI encoding");
    check("redis://u:%4g@h", "Incorrect URI encoding");
    check("redis://%00:p@h", "Incorrect URI encoding");
    check("unix://", "Missing socket path in URI");
    check("unix://?db=1", "Missing socket path in URI");
    check("unix:///s?d=1", "Unknown parameter in URI");
    check("unix:///s?db=x", "Invalid database number in URI");
    check("unix:///%zz", "Incorrect URI encoding");
}

static void numbers(void **state)
{
    (void)state;
    long long n = 77;
    assert_true(number_parse("0", 0, 5, &n));
    assert_int_equal(n, 0);
    assert_true(number_parse("-9223372036854775808", INT64_MIN, INT64_MAX, &n));
    assert_true(n == INT64_MIN);
    assert_true(number_parse("+3", 0, 5, &n));
    static const char *const bad[] = {
        "", "-", "+", " 1", "1 ", "1.0", "0x1", "6", "-1", "--1", "9223372036854775808"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(number_parse(bad[i], 0, 5, &n));
        assert_int_equal(n, 3);
    }
}

static void seconds(void **state)
{
    (void)state;
    long long us = 5;
    assert_true(number_parse_seconds("0", &us));
    assert_int_equal(us, 0);
    assert_true(number_parse_seconds("0.25", &us));
    assert_int_equal(us, 250000);
    assert_true(number_parse_seconds(".5", &us));
    assert_int_equal(us, 500000);
    assert_true(number_parse_seconds("1000000", &us));
    static const char *const bad[] = {"", "-1", "nan", "inf", "1e3", "1.2.3", ".", "1000001", "1s"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(number_parse_seconds(bad[i], &us));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp),     cmocka_unit_test(unix_socket), cmocka_unit_test(mistakes),
        cmocka_unit_test(numbers), cmocka_unit_test(seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
