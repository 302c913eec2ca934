/* Line editing without a terminal: keys out of bytes, the buffer, the picture of a row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>

#include "tools/cli/key.h"
#include "tools/cli/line.h"

static void check_key(const char *bytes, enum key_code code, size_t used)
{
    struct key key;
    size_t len = strlen(bytes);
    assert_int_equal(key_decode(bytes, len, false, false, &key), used);
    if (used == 0) {
        return;
    }
    assert_int_equal(key.code, code);
    for (size_t cut = 1; cut < used; cut++) { /* a part of a key is no key yet */
        assert_int_equal(key_decode(bytes, cut, false, false, &key), 0);
    }
}

static void keys(void **state)
{
    (void)state;
    check_key("a", KEY_TEXT, 1);
    check_key("\xc3\xa9x", KEY_TEXT, 2);
    check_key("\xe2\x82\xac", KEY_TEXT, 3);
    check_key("\xf0\x9f\x98\x80", KEY_TEXT, 4);
    check_key("\r", KEY_ENTER, 1);
    check_key("\n", KEY_ENTER, 1);
    check_key("\t", KEY_TAB, 1);
    check_key("\x7f", KEY_BACKSPACE, 1);
    check_key("\b", KEY_BACKSPACE, 1);
    check_key("\x01", KEY_CONTROL, 1);
    check_key("\x1b[A", KEY_UP, 3);
    check_key("\x1bOB", KEY_DOWN, 3);
    check_key("\x1b[3~", KEY_DELETE, 4);
    check_key("\x1b[1;5C", KEY_WORD_RIGHT, 6);
    check_key("\x1b[200~", KEY_PASTE_BEGIN, 6);
    check_key("\x1b[Z", KEY_BACK_TAB, 3);
    check_key("\x1b"
              "b",
              KEY_WORD_LEFT, 2);
    check_key("\x1b[99;99X", KEY_UNKNOWN, 8);
    check_key("\x1b[11111111111111111111", KEY_UNKNOWN, 16);
    check_key("\x1b", KEY_ESCAPE, 0);
    check_key("\xe2\x82", KEY_TEXT, 0);
}

static void keys_when_no_more_comes(void **state)
{
    (void)state;
    struct key key;
    assert_int_equal(key_decode("\x1b", 1, true, false, &key), 1);
    assert_int_equal(key.code, KEY_ESCAPE);
    assert_int_equal(key_decode("\x1b[1", 3, true, false, &key), 3);
    assert_int_equal(key.code, KEY_UNKNOWN);
    assert_int_equal(key_decode("\xe2\x82", 2, true, false, &key), 1);
    assert_int_equal(key.code, KEY_TEXT);
}

static void bytes_that_are_no_utf8(void **state)
{
    (void)state;
    static const char *const bad[] = {"\x80", "\xff", "\xc0\x80", "\xc3(", "\xe2\x82(", "\xf5\x80"};
    struct key key;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(key_decode(bad[i], strlen(bad[i]), false, false, &key), 1);
        assert_int_equal(key.code, KEY_TEXT);
        assert_int_equal(key.len, 1);
    }
}

static void pasted_controls_are_text(void **state)
{
    (void)state;
    struct key key;
    assert_int_equal(key_decode("\t", 1, false, true, &key), 1);
    assert_int_equal(key.code, KEY_TEXT);
    assert_int_equal(key_decode("\x03", 1, false, true, &key), 1);
    assert_int_equal(key.code, KEY_TEXT);
    assert_int_equal(key_decode("\r", 1, false, true, &key), 1);
    assert_int_equal(key.code, KEY_ENTER);
    assert_int_equal(key_decode("\x1b[201~", 6, false, true, &key), 6);
    assert_int_equal(key.code, KEY_PASTE_END);
}

static void put(struct line *l, const char *text)
{
    line_set(l, text, strlen(text));
}

static void moving_and_deleting(void **state)
{
    (void)state;
    struct line l;
    line_init(&l);
    line_left(&l);
    line_right(&l);
    line_backspace(&l);
    line_delete(&l);
    line_kill_left(&l);
    line_transpose(&l);
    line_yank(&l);
    assert_string_equal(l.text.data, "");
    put(&l, "a\xc3\xa9\xe2\x82\xac");
    line_left(&l);
    assert_int_equal(l.cursor, 3);
    line_left(&l);
    assert_int_equal(l.cursor, 1);
    line_delete(&l);
    assert_string_equal(l.text.data, "a\xe2\x82\xac");
    line_right(&l);
    line_backspace(&l);
    assert_string_equal(l.text.data, "a");
    put(&l, "one two  three");
    line_word_left(&l);
    assert_int_equal(l.cursor, 9);
    line_word_left(&l);
    assert_int_equal(l.cursor, 4);
    line_kill_word_right(&l);
    assert_string_equal(l.text.data, "one   three");
    line_yank(&l);
    assert_string_equal(l.text.data, "one two  three");
    line_kill_left(&l);
    assert_string_equal(l.text.data, "  three");
    line_kill_right(&l);
    assert_string_equal(l.text.data, "");
    line_deinit(&l);
}

static void transposing(void **state)
{
    (void)state;
    struct line l;
    line_init(&l);
    put(&l, "ab");
    line_transpose(&l);
    assert_string_equal(l.text.data, "ba");
    put(&l, "a\xc3\xa9");
    line_left(&l);
    line_transpose(&l);
    assert_string_equal(l.text.data, "\xc3\xa9"
                                     "a");
    assert_int_equal(l.cursor, 3);
    l.cursor = 0;
    line_transpose(&l);
    assert_string_equal(l.text.data, "\xc3\xa9"
                                     "a");
    line_deinit(&l);
}

/* Any sequence of verbs keeps the cursor between characters of the line. */
static void random_verbs(void **state)
{
    (void)state;
    struct line l;
    line_init(&l);
    unsigned int seed = 12345;
    static const char *const pieces[] = {
        "a", " ", "\xc3\xa9", "\xe2\x82\xac", "\xff", "\xf0\x9f\x98\x80"};
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1103515245u + 12345u;
        unsigned int pick = (seed >> 16) % 17;
        if (pick < 6) {
            line_insert(&l, pieces[pick], strlen(pieces[pick]));
            continue;
        }
        void (*const verbs[])(struct line *) = {
            line_left,      line_right,     line_word_left,      line_word_right,
            line_backspace, line_delete,    line_kill_word_left, line_kill_word_right,
            line_transpose, line_transpose, line_left,
        };
        verbs[pick - 6](&l);
        assert_true(l.cursor <= l.text.len);
        struct text out;
        text_init(&out);
        line_draw(&out, &l, "p> ", "hint", 20);
        text_deinit(&out);
    }
    line_deinit(&l);
}

static void check_draw(const char *text, size_t cursor, const char *hint, size_t columns,
                       const char *expected)
{
    struct line l;
    struct text out;
    line_init(&l);
    text_init(&out);
    put(&l, text);
    l.cursor = cursor;
    line_draw(&out, &l, "p> ", hint, columns);
    assert_string_equal(out.data, expected);
    text_deinit(&out);
    line_deinit(&l);
}

static void drawing(void **state)
{
    (void)state;
    check_draw("", 0, "", 20, "\rp> \x1b[0K\r\x1b[3C");
    check_draw("get", 3, " key", 20, "\rp> get\x1b[0;90;49m key\x1b[0m\x1b[0K\r\x1b[6C");
    check_draw("get", 3, " key is long and cut", 20,
               "\rp> get\x1b[0;90;49m key is long \x1b[0m\x1b[0K\r\x1b[6C");
    check_draw("0123456789012345", 16, "hint", 20, "\rp> 0123456789012345\x1b[0K\r\x1b[19C");
    check_draw("01234567890123456789", 20, "hint", 20, "\rp> 4567890123456789\x1b[0K\r\x1b[19C");
    check_draw("01234567890123456789", 0, "hint", 20, "\rp> 0123456789012345\x1b[0K\r\x1b[3C");
    check_draw("a\x01\xff"
               "b",
               4, "", 20, "\rp> a^A?b\x1b[0K\r\x1b[8C");
    check_draw("\xc3\xa9", 2, "", 20, "\rp> \xc3\xa9\x1b[0K\r\x1b[4C");
    check_draw("\xe4\xb8\xad", 3, "", 20, "\rp> \xe4\xb8\xad\x1b[0K\r\x1b[5C");
    check_draw("abcdef", 6, "", 4, "\rdef\x1b[0K\r\x1b[3C");
}

int main(void)
{
    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
        fputs("no C.UTF-8\n", stderr);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys),
        cmocka_unit_test(keys_when_no_more_comes),
        cmocka_unit_test(bytes_that_are_no_utf8),
        cmocka_unit_test(pasted_controls_are_text),
        cmocka_unit_test(moving_and_deleting),
        cmocka_unit_test(transposing),
        cmocka_unit_test(random_verbs),
        cmocka_unit_test(drawing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
