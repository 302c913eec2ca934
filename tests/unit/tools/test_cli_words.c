/* Splitting lines into words, and the byte string with its quoted forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tools/common/text.h"
#include "tools/common/words.h"

/* The words of `line` as quoted literals with a bar behind each; "?" when quotes are unbalanced. */
static void check(const char *line, size_t len, const char *expected)
{
    struct words words;
    struct text out;
    text_init(&out);
    if (words_split(line, len, &words)) {
        for (size_t i = 0; i < words.count; i++) {
            text_append_quoted(&out, words.list[i].data, words.list[i].len);
            assert_int_equal(words.list[i].data[words.list[i].len], 0);
        }
        words_deinit(&words);
    } else {
        text_append_char(&out, '?');
        assert_null(words.list);
        assert_int_equal(words.count, 0);
    }
    assert_string_equal(out.data, expected);
    text_deinit(&out);
}

#define CHECK(line, expected) check(line, sizeof(line) - 1, expected)

static void plain_words(void **state)
{
    (void)state;
    CHECK("", "");
    CHECK("  \t\r\n ", "");
    CHECK("get a", "\"get\"\"a\"");
    CHECK("  get \t a\r\n", "\"get\"\"a\"");
    CHECK("a\\n\\x41", "\"a\\\\n\\\\x41\"");
    CHECK("a\0b c", "\"a\\x00b\"\"c\"");
}

static void quotes(void **state)
{
    (void)state;
    CHECK("\"a b\" 'c d'", "\"a b\"\"c d\"");
    CHECK("\"\" ''", "\"\"\"\"");
    CHECK("a\"b\" c", "\"ab\"\"c\"");
    CHECK("\"\\x41\\x4g\\n\\r\\t\\a\\b\\\\\\\"\\q\"", "\"Ax4g\\n\\r\\t\\a\\b\\\\\\\"q\"");
    CHECK("'\\n\\'\\x41'", "\"\\\\n'\\\\x41\"");
    CHECK("\"\\x00\\xff\"", "\"\\x00\\xff\"");
    CHECK("\"\\xFf\"", "\"\\xff\"");
}

static void unbalanced(void **state)
{
    (void)state;
    CHECK("\"a", "?");
    CHECK("'a", "?");
    CHECK("a \"b\"c", "?");
    CHECK("'b'c", "?");
    CHECK("\"a\\\"", "?");
    CHECK("\"a\\", "?");
    CHECK("'a\\'", "?");
    CHECK("ok \"", "?");
}

static void partial_lines(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        size_t count;
        bool open;
    } rows[] = {
        {"", 0, false},         {"get", 1, true},         {"get ", 1, false},
        {"get \"a b", 2, true}, {"get \"a b\"", 2, true}, {"get \"a b\" ", 2, false},
        {" ", 0, false},        {"get '", 2, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct words words;
        bool open;
        words_split_partial(rows[i].line, strlen(rows[i].line), &words, &open);
        assert_int_equal(words.count, rows[i].count);
        assert_int_equal(open, rows[i].open);
        words_deinit(&words);
    }
}

/* What text_append_quoted() writes is read back as the same bytes. */
static void quoting_round_trip(void **state)
{
    (void)state;
    char all[256];
    for (int i = 0; i < 256; i++) {
        all[i] = (char)i;
    }
    struct text quoted;
    struct words words;
    text_init(&quoted);
    text_append_quoted(&quoted, all, sizeof(all));
    assert_true(words_split(quoted.data, quoted.len, &words));
    assert_int_equal(words.count, 1);
    assert_int_equal(words.list[0].len, 256);
    assert_memory_equal(words.list[0].data, all, 256);
    words_deinit(&words);
    text_deinit(&quoted);
}

static void word_lists(void **state)
{
    (void)state;
    struct words words = {NULL, 0};
    words_add_strings(&words, "a", "b", "c", NULL);
    words_add(&words, "d\0e", 3);
    assert_true(words_is(&words, 0, "A"));
    assert_false(words_is(&words, 3, "d"));
    assert_false(words_is(&words, 4, "x"));
    words_drop_first(&words, 2);
    assert_int_equal(words.count, 2);
    assert_true(words_is(&words, 0, "c"));
    words_drop_first(&words, 2);
    assert_int_equal(words.count, 0);
    words_deinit(&words);
}

static void json_strings(void **state)
{
    (void)state;
    struct text out;
    text_init(&out);
    text_append_json(&out, "a\"\\\n\r\t\b\f\a\x01\x1f\x7f\xc3\xa9/\0", 16);
    assert_string_equal(out.data,
                        "\"a\\\"\\\\\\n\\r\\t\\b\\f\\u0007\\u0001\\u001f\x7f\xc3\xa9/\\u0000\"");
    text_deinit(&out);
}

static void text_editing(void **state)
{
    (void)state;
    struct text t;
    text_init(&t);
    assert_string_equal(t.data, "");
    text_truncate(&t, 0);
    text_remove(&t, 0, 0);
    text_insert(&t, 0, "world", 5);
    text_insert(&t, 0, "hello ", 6);
    text_insert(&t, 11, "!", 1);
    assert_string_equal(t.data, "hello world!");
    text_remove(&t, 5, 6);
    assert_string_equal(t.data, "hello!");
    text_remove(&t, 5, 1);
    text_append_format(&t, "%d-%s", 42, "x");
    text_append_fill(&t, '.', 3);
    assert_string_equal(t.data, "hello42-x...");
    for (int i = 0; i < 10000; i++) {
        text_append_char(&t, 'y');
    }
    assert_int_equal(t.len, 10012);
    assert_int_equal(strlen(t.data), t.len);
    text_clear(&t);
    assert_string_equal(t.data, "");
    text_deinit(&t);
    text_deinit(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_words),        cmocka_unit_test(quotes),
        cmocka_unit_test(unbalanced),         cmocka_unit_test(partial_lines),
        cmocka_unit_test(quoting_round_trip), cmocka_unit_test(word_lists),
        cmocka_unit_test(json_strings),       cmocka_unit_test(text_editing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
