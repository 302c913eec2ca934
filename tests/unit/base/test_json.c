/* JSON strings: what is escaped, and that the result is valid whatever the bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"

static void assert_json(struct slice text, const char *expected)
{
    struct buf out = {0};
    json_append_string(&out, text);
    assert_string_equal(buf_cstr(&out), expected);
    buf_deinit(&out);
}

static void test_escapes(void **state)
{
    (void)state;
    assert_json(SLICE(""), "\"\"");
    assert_json(SLICE("plain / text"), "\"plain / text\"");
    assert_json(SLICE("\"\\"), "\"\\\"\\\\\"");
    assert_json(SLICE("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"");
    assert_json(SLICE("\0\x01\x1f\x7f"), "\"\\u0000\\u0001\\u001f\x7f\"");
}

static void test_utf8(void **state)
{
    (void)state;
    assert_json(SLICE("\xc3\xa5\xe2\x82\xac\xf0\x9f\x98\x80"),
                "\"\xc3\xa5\xe2\x82\xac\xf0\x9f\x98\x80\"");
    /* Cut short, alone, overlong, a surrogate, beyond the last character. */
    assert_json(SLICE("\xc3"), "\"\\u00c3\"");
    assert_json(SLICE("\xe2\x82"), "\"\\u00e2\\u0082\"");
    assert_json(SLICE("\x80z"), "\"\\u0080z\"");
    assert_json(SLICE("\xc0\x80"), "\"\\u00c0\\u0080\"");
    assert_json(SLICE("\xe0\x80\x80"), "\"\\u00e0\\u0080\\u0080\"");
    assert_json(SLICE("\xed\xa0\x80"), "\"\\u00ed\\u00a0\\u0080\"");
    assert_json(SLICE("\xf4\x90\x80\x80"), "\"\\u00f4\\u0090\\u0080\\u0080\"");
    assert_json(SLICE("\xff\""), "\"\\u00ff\\\"\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
