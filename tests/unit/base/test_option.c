/* Configuration options: base/option.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/option.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool flag;
static int64_t number, mode, memory, clients_memory, raised;
static char *text, *nullable;
static int choice;
static char custom[64];

static const struct option_enum colours[] = {{"red", 3}, {"dark-green", 5}, {"blue", 9}, {NULL, 0}};

static bool parse_custom(const struct option *option, const struct slice *words, int count,
                         const char **error)
{
    (void)option;
    if (count % 2 != 0 && words[0].len != 0) {
        *error = "Pairs, please";
        return false;
    }
    size_t len = 0;
    for (int i = 0; i < count; i++) {
        assert_true(len + words[i].len + 2 <= sizeof(custom));
        memcpy(custom + len, words[i].ptr, words[i].len);
        len += words[i].len;
        custom[len++] = '|';
    }
    custom[len] = '\0';
    return true;
}

static void format_custom(const struct option *option, struct buf *out)
{
    (void)option;
    buf_append_cstr(out, custom);
}

static bool check_not_13(const struct option *option, struct slice value, const char **error)
{
    (void)option;
    if (slice_equal(value, SLICE("13")) || slice_equal(value, SLICE("blue"))) {
        *error = "unlucky";
        return false;
    }
    return true;
}

enum { FLAG, NUMBER, MODE, MEMORY, CLIENTS_MEMORY, RAISED, TEXT, NULLABLE, CHOICE, CUSTOM };
static const struct option options[] = {
    [FLAG] = {.name = "flag", .type = OPTION_BOOL, .target = &flag, .initial = "yes"},
    [NUMBER] = {.name = "number",
                .alias = "nombre",
                .type = OPTION_INT,
                .target = &number,
                .initial = "10",
                .min = -5,
                .max = 500,
                .check = check_not_13},
    [MODE] = {.name = "mode",
              .type = OPTION_INT,
              .flags = OPTION_OCTAL,
              .target = &mode,
              .initial = "0",
              .min = 0,
              .max = 0777},
    [MEMORY] = {.name = "memory",
                .type = OPTION_MEMORY,
                .target = &memory,
                .initial = "1mb",
                .min = 0,
                .max = INT64_MAX},
    [CLIENTS_MEMORY] = {.name = "clients-memory",
                        .type = OPTION_MEMORY,
                        .flags = OPTION_PERCENT,
                        .target = &clients_memory,
                        .initial = "5%",
                        .min = -100,
                        .max = INT64_MAX},
    [RAISED] = {.name = "raised",
                .type = OPTION_MEMORY,
                .target = &raised,
                .initial = "50",
                .min = 1,
                .max = 100,
                .floor = 16},
    [TEXT] = {.name = "text", .type = OPTION_STRING, .target = &text, .initial = "hello"},
    [NULLABLE] = {.name = "nullable",
                  .type = OPTION_STRING,
                  .flags = OPTION_NULLABLE,
                  .target = &nullable},
    [CHOICE] = {.name = "choice",
                .type = OPTION_ENUM,
                .target = &choice,
                .initial = "dark-green",
                .enum_names = colours,
                .check = check_not_13},
    [CUSTOM] = {.name = "custom",
                .type = OPTION_CUSTOM,
                .flags = OPTION_MULTI,
                .initial = "1 \"2 3\"",
                .parse = parse_custom,
                .format = format_custom},
};

static void assert_shown(int which, const char *expected)
{
    struct buf out = {NULL, 0, 0};
    option_format(&options[which], &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_deinit(&out);
}

static void assert_taken(int which, const char *value, const char *shown)
{
    struct slice word = slice_cstr(value);
    const char *error = "?";
    assert_true(option_store(&options[which], &word, 1, &error));
    assert_shown(which, shown);
}

/* Refused with this error, and the old value stays. */
static void assert_refused(int which, const char *value, const char *expected)
{
    struct buf before = {NULL, 0, 0};
    option_format(&options[which], &before);
    struct slice word = slice_cstr(value);
    const char *error = NULL;
    assert_false(option_store(&options[which], &word, 1, &error));
    assert_non_null(error);
    assert_string_equal(error, expected);
    assert_shown(which, buf_cstr(&before));
    buf_deinit(&before);
}

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(options); i++) {
        option_store_initial(&options[i]);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mem_free(text);
    mem_free(nullable);
    text = nullable = NULL;
    return 0;
}

static void test_initial_values(void **state)
{
    (void)state;
    assert_shown(FLAG, "yes");
    assert_shown(NUMBER, "10");
    assert_shown(MODE, "0");
    assert_shown(MEMORY, "1048576");
    assert_shown(CLIENTS_MEMORY, "5%");
    assert_int_equal(clients_memory, -5);
    assert_shown(TEXT, "hello");
    assert_shown(NULLABLE, "");
    assert_null(nullable);
    assert_shown(CHOICE, "dark-green");
    assert_int_equal(choice, 5);
    assert_shown(CUSTOM, "1|2 3|");
}

/* The error texts are those that CONFIG SET and the configuration file gave on redis-server 7.0.15.
 */
static void test_bool(void **state)
{
    (void)state;
    assert_taken(FLAG, "no", "no");
    assert_taken(FLAG, "YES", "yes");
    assert_refused(FLAG, "maybe", "argument must be 'yes' or 'no'");
    assert_refused(FLAG, "", "argument must be 'yes' or 'no'");
    assert_refused(FLAG, "1", "argument must be 'yes' or 'no'");
}

static void test_int(void **state)
{
    (void)state;
    assert_taken(NUMBER, "-5", "-5");
    assert_taken(NUMBER, "500", "500");
    static const char *const bad[] = {"", "1.5", " 1", "+5", "05", "5b", "99999999999999999999"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_refused(NUMBER, bad[i], "argument couldn't be parsed into an integer");
    }
    assert_refused(NUMBER, "501", "argument must be between -5 and 500 inclusive");
    assert_refused(NUMBER, "-6", "argument must be between -5 and 500 inclusive");
    assert_refused(NUMBER, "13", "unlucky");
}

static void test_octal(void **state)
{
    (void)state;
    assert_taken(MODE, "755", "755");
    assert_int_equal(mode, 0755);
    assert_taken(MODE, "0700", "700");
    assert_refused(MODE, "999", "argument couldn't be parsed as an octal number");
    assert_taken(MODE, "", "0"); /* as in Redis */
    assert_taken(MODE, " +17", "17");
    assert_refused(MODE, "-1", "argument must be between 0 and 777 inclusive");
    assert_refused(MODE, "-", "argument couldn't be parsed as an octal number");
    assert_refused(MODE, " ", "argument couldn't be parsed as an octal number");
    assert_refused(MODE, "1 ", "argument couldn't be parsed as an octal number");
    assert_refused(MODE, "7777777777777777777777777",
                   "argument couldn't be parsed as an octal number");
    assert_refused(MODE, "1000", "argument must be between 0 and 777 inclusive");
}

static void test_memory(void **state)
{
    (void)state;
    assert_taken(MEMORY, "10GB", "10737418240");
    assert_taken(MEMORY, "1k", "1000");
    assert_taken(MEMORY, "9223372036854775807", "9223372036854775807");
    assert_taken(MEMORY, "", "0"); /* as in Redis: no digits are 0 */
    assert_taken(MEMORY, "kb", "0");
    static const char *const bad[] = {"abc", "1x", "-5", "1 kb", "1.5gb", "-0", "5%"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_refused(MEMORY, bad[i], "argument must be a memory value");
    }
    static const char *const high[] = {"9223372036854775808", "18446744073709551616",
                                       "9999999999gb"};
    for (size_t i = 0; i < COUNT(high); i++) {
        assert_refused(MEMORY, high[i],
                       "argument must be between 0 and 9223372036854775807 inclusive");
    }
}

static void test_floor(void **state)
{
    (void)state;
    assert_refused(RAISED, "0", "argument must be between 1 and 100 inclusive");
    assert_taken(RAISED, "1", "16");
    assert_taken(RAISED, "15", "16");
    assert_taken(RAISED, "17", "17");
}

static void test_percent(void **state)
{
    (void)state;
    assert_taken(CLIENTS_MEMORY, "100%", "100%");
    assert_taken(CLIENTS_MEMORY, "0%", "0");
    assert_taken(CLIENTS_MEMORY, "1gb", "1073741824");
    static const char *const bad[] = {"%", "5x%", " 5%", "+5%", "05%", "-5%", "abc"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_refused(CLIENTS_MEMORY, bad[i], "argument must be a memory or percent value");
    }
    static const char *const high[] = {"101%", "9223372036854775808", "18446744073709551615",
                                       "99999999999999999999"};
    for (size_t i = 0; i < COUNT(high); i++) {
        assert_refused(CLIENTS_MEMORY, high[i], "percentage argument must be less or equal to 100");
    }
}

static void test_string(void **state)
{
    (void)state;
    assert_taken(TEXT, "other", "other");
    assert_taken(TEXT, "", "");
    assert_non_null(text);
    assert_taken(NULLABLE, "x", "x");
    assert_taken(NULLABLE, "", "");
    assert_null(nullable);
    const char *error = NULL;
    struct slice nul = slice_of("a\0b", 3);
    assert_false(option_store(&options[TEXT], &nul, 1, &error));
    assert_non_null(error);
}

static void test_enum(void **state)
{
    (void)state;
    assert_taken(CHOICE, "RED", "red");
    assert_int_equal(choice, 3);
    assert_refused(CHOICE, "pink",
                   "argument(s) must be one of the following: red, dark-green, blue");
    assert_refused(CHOICE, "", "argument(s) must be one of the following: red, dark-green, blue");
    assert_refused(CHOICE, "blue", "unlucky");
}

static void test_word_counts(void **state)
{
    (void)state;
    const struct slice words[] = {SLICE("1"), SLICE("2"), SLICE("3")};
    const char *error = NULL;
    assert_false(option_store(&options[NUMBER], words, 2, &error));
    assert_string_equal(error, "wrong number of arguments");
    assert_false(option_store(&options[NUMBER], words, 0, &error));
    assert_string_equal(error, "wrong number of arguments");
    assert_true(option_store(&options[CUSTOM], words, 2, &error));
    assert_shown(CUSTOM, "1|2|");
    assert_false(option_store(&options[CUSTOM], words, 3, &error));
    assert_string_equal(error, "Pairs, please");
}

static void test_names(void **state)
{
    (void)state;
    assert_true(option_named(&options[NUMBER], SLICE("number")));
    assert_true(option_named(&options[NUMBER], SLICE("Nombre")));
    assert_false(option_named(&options[NUMBER], SLICE("numbe")));
    assert_false(option_named(&options[FLAG], SLICE("")));
}

static void assert_split(const char *line, int count, ...)
{
    struct buf scratch = {NULL, 0, 0};
    struct slice words[4];
    assert_int_equal(option_split_line(slice_cstr(line), words, 4, &scratch), count);
    va_list expected;
    va_start(expected, count);
    for (int i = 0; i < count; i++) {
        const char *word = va_arg(expected, const char *);
        assert_int_equal(words[i].len, strlen(word));
        assert_memory_equal(words[i].ptr, word, words[i].len);
    }
    va_end(expected);
    buf_deinit(&scratch);
}

static void test_splitting(void **state)
{
    (void)state;
    assert_split("", 0);
    assert_split(" \t\r\n", 0);
    assert_split("  port   6379\r\n", 2, "port", "6379");
    assert_split("a \"b c\" 'd e' f", 4, "a", "b c", "d e", "f");
    assert_split("\"\\n\\r\\t\\b\\a\\\\\\\"\\q\\x41\\xe\"", 1, "\n\r\t\b\a\\\"qAxe");
    assert_split("'it\\'s \\n'", 1, "it's \\n");
    assert_split("\"\" ''", 2, "", "");
    assert_split("foo\"bar baz\"", 1, "foobar baz");
    assert_split("a\\b", 1, "a\\b");
    assert_split("\"a", -1);
    assert_split("'a", -1);
    assert_split("\"a\"b", -1);
    assert_split("'a'b", -1);
    assert_split("\"a\\", -1);
    assert_split("\"a\\\"", -1);
    assert_split("\"\\x4", -1);
    assert_split("1 2 3 4", 4, "1", "2", "3", "4");
    assert_split("1 2 3 4 5", -1);
    struct buf scratch = {NULL, 0, 0};
    struct slice words[4];
    assert_int_equal(option_split_line(slice_of("a\0b", 3), words, 4, &scratch), 1);
    assert_int_equal(option_split_line(slice_of("\"\\x00\"", 6), words, 4, &scratch), 1);
    assert_int_equal(words[0].len, 1);
    assert_int_equal(words[0].ptr[0], 0);
    assert_int_equal(option_split_line(slice_of(NULL, 0), words, 4, &scratch), 0);
    buf_deinit(&scratch);
}

/* What buf_append_quoted writes, option_split_line reads back: CONFIG REWRITE stands on it. */
static void test_quoting_round_trip(void **state)
{
    (void)state;
    struct buf line = {NULL, 0, 0}, scratch = {NULL, 0, 0};
    char all[256];
    for (int i = 0; i < 256; i++) {
        all[i] = (char)i;
    }
    buf_append_quoted(&line, slice_of(all, sizeof(all)));
    struct slice words[2];
    assert_int_equal(option_split_line(buf_slice(&line), words, 2, &scratch), 1);
    assert_int_equal(words[0].len, 256);
    assert_memory_equal(words[0].ptr, all, 256);
    buf_deinit(&line);
    buf_deinit(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_initial_values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bool, setup, teardown),
        cmocka_unit_test_setup_teardown(test_int, setup, teardown),
        cmocka_unit_test_setup_teardown(test_octal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_floor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_percent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_string, setup, teardown),
        cmocka_unit_test_setup_teardown(test_enum, setup, teardown),
        cmocka_unit_test_setup_teardown(test_word_counts, setup, teardown),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_splitting),
        cmocka_unit_test(test_quoting_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
