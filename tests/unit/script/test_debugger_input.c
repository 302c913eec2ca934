/* Requests of a debugger's client, in any portions, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "script/debugger_input.h"

static struct debugger_input in;

static enum debugger_input_result give(const char *bytes)
{
    debugger_input_add(&in, slice_cstr(bytes));
    return debugger_input_next(&in);
}

static void forget(void)
{
    debugger_input_deinit(&in);
}

static void test_one_request(void **state)
{
    (void)state;
    assert_int_equal(debugger_input_next(&in), DEBUGGER_INPUT_MORE);
    assert_int_equal(give("*2\r\n$5\r\nbreak\r\n$1\r\n3\r\n"), DEBUGGER_INPUT_DONE);
    assert_int_equal(in.count, 2);
    assert_true(slice_equal(in.words[0], SLICE("break")));
    assert_true(slice_equal(in.words[1], SLICE("3")));
    assert_int_equal(debugger_input_next(&in), DEBUGGER_INPUT_MORE);
    forget();
}

static void test_several_in_one_portion(void **state)
{
    (void)state;
    assert_int_equal(give("*1\r\n$1\r\ns\r\n*1\r\n$2\r\n\r\n\r\n*1\r\n$1"), DEBUGGER_INPUT_DONE);
    assert_true(slice_equal(in.words[0], SLICE("s")));
    assert_int_equal(debugger_input_next(&in), DEBUGGER_INPUT_DONE);
    assert_true(slice_equal(in.words[0], SLICE("\r\n")));
    assert_int_equal(debugger_input_next(&in), DEBUGGER_INPUT_MORE);
    assert_int_equal(give("\r\nc\r\n"), DEBUGGER_INPUT_DONE);
    assert_true(slice_equal(in.words[0], SLICE("c")));
    forget();
}

static void test_byte_by_byte(void **state)
{
    static const char request[] = "*3\r\n$4\r\neval\r\n$2\r\n\r\n\r\n$10\r\n0123456789\r\n";
    (void)state;
    for (size_t i = 0; i + 1 < sizeof(request) - 1; i++) {
        char byte[2] = {request[i], '\0'};
        assert_int_equal(give(byte), DEBUGGER_INPUT_MORE);
    }
    assert_int_equal(give("\n"), DEBUGGER_INPUT_DONE);
    assert_int_equal(in.count, 3);
    assert_true(slice_equal(in.words[2], SLICE("0123456789")));
    forget();
}

static void test_what_is_none(void **state)
{
    static const char *const broken[] = {
        "x",
        "s\r\n",
        "*0\r\n",
        "*-1\r\n",
        "*1025\r\n",
        "*1x\r\n",
        "* 1\r\n",
        "*\r\n",
        "*1\rx",
        "*99999999999999",
        "*1\r\n*1\r\n",
        "*1\r\n$0\r\n",
        "*1\r\n$1025\r\n",
        "*1\r\n$1\r\ncXY",
        "*1\r\n$-1\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        assert_int_equal(give(broken[i]), DEBUGGER_INPUT_BROKEN);
        forget();
    }
}

static void test_the_largest(void **state)
{
    (void)state;
    char word[DEBUGGER_WORD_BYTES + 1];
    memset(word, 'w', sizeof(word));
    word[DEBUGGER_WORD_BYTES] = '\0';
    debugger_input_add(&in, SLICE("*1000\r\n"));
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(give("$1024\r\n"), DEBUGGER_INPUT_MORE);
        debugger_input_add(&in, slice_cstr(word));
        debugger_input_add(&in, SLICE("\r\n"));
    }
    assert_int_equal(debugger_input_next(&in), DEBUGGER_INPUT_DONE);
    assert_int_equal(in.count, 1000);
    forget();
}

static void test_more_than_may_wait(void **state)
{
    (void)state;
    char word[DEBUGGER_WORD_BYTES + 1];
    memset(word, 'w', sizeof(word));
    word[DEBUGGER_WORD_BYTES] = '\0';
    debugger_input_add(&in, SLICE("*1024\r\n"));
    enum debugger_input_result result = DEBUGGER_INPUT_MORE;
    for (int i = 0; i < 1023 && result == DEBUGGER_INPUT_MORE; i++) {
        debugger_input_add(&in, SLICE("$1024\r\n"));
        debugger_input_add(&in, slice_cstr(word));
        result = give("\r\n");
    }
    assert_int_equal(result, DEBUGGER_INPUT_FULL);
    forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_request),  cmocka_unit_test(test_several_in_one_portion),
        cmocka_unit_test(test_byte_by_byte), cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_the_largest),  cmocka_unit_test(test_more_than_may_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
