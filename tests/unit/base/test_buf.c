/* Growable buffers: base/buf.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"

#include <string.h>

static void assert_content(const struct buf *b, const char *expected)
{
    assert_int_equal(b->len, strlen(expected));
    assert_memory_equal(buf_slice(b).ptr, expected, b->len);
}

static void test_an_empty_buffer_owns_nothing(void **state)
{
    (void)state;
    struct buf b = {NULL, 0, 0};
    assert_int_equal(buf_slice(&b).len, 0);
    assert_non_null(buf_slice(&b).ptr);
    buf_append(&b, NULL, 0);
    buf_append_slice(&b, slice_of(NULL, 0));
    assert_int_equal(b.capacity, 0);
    buf_consume(&b, 0);
    buf_clear(&b);
    buf_deinit(&b);
    assert_string_equal(buf_cstr(&b), "");
    buf_deinit(&b);
}

static void test_appending(void **state)
{
    (void)state;
    struct buf b = {NULL, 0, 0};
    buf_append_cstr(&b, "one");
    buf_append_char(&b, ' ');
    buf_append_slice(&b, SLICE("two"));
    buf_printf(&b, " %d %s", 3, "four");
    assert_content(&b, "one two 3 four");
    assert_string_equal(buf_cstr(&b), "one two 3 four");
    buf_consume(&b, 4);
    assert_content(&b, "two 3 four");
    buf_consume(&b, b.len);
    assert_content(&b, "");
    memcpy(buf_reserve(&b, 5), "five!", 5);
    b.len += 5;
    assert_content(&b, "five!");
    size_t capacity = b.capacity;
    buf_clear(&b);
    assert_int_equal(b.len, 0);
    assert_int_equal(b.capacity, capacity);
    buf_deinit(&b);
    assert_null(b.data);
    assert_int_equal(b.capacity, 0);
}

static void test_printf_grows(void **state)
{
    (void)state;
    struct buf b = {NULL, 0, 0};
    for (int width = 1; width < 3000; width += 61) {
        buf_clear(&b);
        buf_append_cstr(&b, "<");
        buf_printf(&b, "%*d>", width, 7);
        assert_int_equal(b.len, width + 2);
        assert_memory_equal(b.data + b.len - 2, "7>", 2);
    }
    buf_deinit(&b);
}

static void test_growth_is_bounded_and_keeps_content(void **state)
{
    (void)state;
    struct buf b = {NULL, 0, 0};
    unsigned growths = 0;
    size_t capacity = 0;
    for (uint32_t i = 0; i < 4 << 20; i += sizeof(i)) {
        buf_append(&b, (const char *)&i, sizeof(i));
        if (b.capacity != capacity) {
            assert_true(b.capacity <= b.len * 2 + 64 ||
                        b.capacity <= b.len + b.len / 8 + (2 << 20));
            capacity = b.capacity;
            growths++;
        }
    }
    assert_in_range(growths, 5, 25);
    for (uint32_t i = 0; i < 4 << 20; i += sizeof(i)) {
        assert_memory_equal(b.data + i, &i, sizeof(i));
    }
    buf_deinit(&b);
}

static void test_quoting(void **state)
{
    (void)state;
    struct buf b = {NULL, 0, 0};
    buf_append_quoted(&b, SLICE(""));
    assert_content(&b, "\"\"");
    buf_clear(&b);
    buf_append_quoted(&b, SLICE("plain 'text'"));
    assert_content(&b, "\"plain 'text'\"");
    buf_clear(&b);
    buf_append_quoted(&b, SLICE("\\\"\n\r\t\a\b\0\x01\x7f\x80\xff~"));
    assert_content(&b, "\"\\\\\\\"\\n\\r\\t\\a\\b\\x00\\x01\\x7f\\x80\\xff~\"");
    buf_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_buffer_owns_nothing),
        cmocka_unit_test(test_appending),
        cmocka_unit_test(test_printf_grows),
        cmocka_unit_test(test_growth_is_bounded_and_keeps_content),
        cmocka_unit_test(test_quoting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
