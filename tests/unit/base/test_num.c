/* Numbers as text and back: base/num.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/num.h"
#include "base/rand.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_parse_i64_takes_the_canonical_form_only(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"1", 1},
                {"-1", -1},
                {"42", 42},
                {"12345678", 12345678},
                {"123456789", 123456789},
                {"-1234567890123456", -1234567890123456},
                {"999999999999999999", 999999999999999999},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    for (size_t i = 0; i < COUNT(good); i++) {
        int64_t value = 7;
        assert_true(num_parse_i64(slice_cstr(good[i].text), &value));
        assert_true(value == good[i].value);
    }
    static const char *const bad[] = {"",
                                      "-",
                                      "+1",
                                      "-0",
                                      "00",
                                      "01",
                                      "-01",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "1e3",
                                      "0x10",
                                      "abc",
                                      "--1",
                                      "12345678x",
                                      "1234567:",
                                      "1234567/",
                                      "x2345678",
                                      "1234\xb5\x36\x37\x38",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "18446744073709551616",
                                      "99999999999999999999",
                                      "100000000000000000000"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        int64_t value = 7;
        assert_false(num_parse_i64(slice_cstr(bad[i]), &value));
        assert_true(value == 7);
    }
    int64_t value = 7;
    assert_false(num_parse_i64(slice_of("1\0", 2), &value));
}

/* Any byte but a digit, at any place of any length, is refused. */
static void test_parse_refuses_every_foreign_byte(void **state)
{
    (void)state;
    for (size_t len = 1; len <= 18; len++) {
        for (size_t at = 0; at < len; at++) {
            for (int c = 0; c < 256; c++) {
                char text[18];
                memset(text, '5', sizeof(text));
                text[at] = (char)c;
                int64_t value;
                bool is_digit = (c >= '1' && c <= '9') || (c == '0' && (at > 0 || len == 1));
                bool is_sign = c == '-' && at == 0 && len > 1;
                assert_true(num_parse_i64(slice_of(text, len), &value) == (is_digit || is_sign));
            }
        }
    }
}

static void test_parse_u64_knows_its_limits(void **state)
{
    (void)state;
    uint64_t value = 7;
    assert_true(num_parse_u64(SLICE("18446744073709551615"), &value));
    assert_true(value == UINT64_MAX);
    assert_true(num_parse_u64(SLICE("10000000000000000000"), &value));
    assert_true(value == 10000000000000000000ULL);
    assert_false(num_parse_u64(SLICE("18446744073709551616"), &value));
    assert_false(num_parse_u64(SLICE("18446744073709551620"), &value));
    assert_false(num_parse_u64(SLICE("99999999999999999999"), &value));
    assert_false(num_parse_u64(SLICE("-1"), &value));
    assert_false(num_parse_u64(SLICE(""), &value));
}

static void check_integer(uint64_t v)
{
    char out[20], expected[32];
    int len = snprintf(expected, sizeof(expected), "%" PRIu64, v);
    assert_int_equal(num_format_u64(out, v), len);
    assert_memory_equal(out, expected, (size_t)len);
    assert_int_equal(num_count_digits(v), len);
    uint64_t u;
    assert_true(num_parse_u64(slice_of(out, (size_t)len), &u));
    assert_true(u == v);

    int64_t i;
    len = snprintf(expected, sizeof(expected), "%" PRId64, (int64_t)v);
    assert_int_equal(num_format_i64(out, (int64_t)v), len);
    assert_memory_equal(out, expected, (size_t)len);
    assert_true(num_parse_i64(slice_of(out, (size_t)len), &i));
    assert_true(i == (int64_t)v);
}

static void test_integers_survive_a_round_trip(void **state)
{
    (void)state;
    for (uint64_t power = 1, i = 0; i < 20; i++, power *= 10) {
        check_integer(power - 1);
        check_integer(power);
        check_integer(power + 1);
        check_integer(0 - power);
    }
    for (int bit = 0; bit < 64; bit++) {
        check_integer(1ULL << bit);
        check_integer((1ULL << bit) - 1);
    }
    for (int i = 0; i < 100000; i++) {
        check_integer(rand_u64() >> rand_below(64));
    }
}

static void check_double_text(double value, const char *expected)
{
    char out[33];
    size_t len = num_format_double(out, value);
    assert_true(len < sizeof(out));
    out[len] = '\0';
    assert_string_equal(out, expected);
}

/* The forms of Redis 7.2 (shortest digits); the integers up to 2^53 and those with few digits read
 * the same in 7.0.15. */
static void test_doubles_are_written_as_redis_does(void **state)
{
    (void)state;
    check_double_text(0, "0");
    check_double_text(-0.0, "-0");
    check_double_text(3, "3");
    check_double_text(-1.5, "-1.5");
    check_double_text(0.1, "0.1");
    check_double_text(0.3, "0.3");
    check_double_text(0.1 + 0.2, "0.30000000000000004");
    check_double_text(3.14159265358979, "3.14159265358979");
    check_double_text(100000.5, "100000.5");
    check_double_text(1e15, "1000000000000000");
    check_double_text(9007199254740992, "9007199254740992");
    check_double_text(1e17, "100000000000000000");
    check_double_text(123456789012345680, "123456789012345680");
    check_double_text(0x1p62, "4611686018427387904");
    check_double_text(-0x1p62, "-4611686018427387904");
    check_double_text(0x1p63, "9223372036854776000");
    check_double_text(1e19, "1e+19");
    check_double_text(1e20, "1e+20");
    check_double_text(1e21, "1e+21");
    check_double_text(-1e22, "-1e+22");
    check_double_text(1e300, "1e+300");
    check_double_text(1.7976931348623157e308, "1.7976931348623157e+308");
    check_double_text(0.0001, "0.0001");
    check_double_text(1e-6, "0.000001");
    check_double_text(1e-7, "1e-7");
    check_double_text(5.5e-10, "5.5e-10");
    check_double_text(1e-100, "1e-100");
    check_double_text(0.001234567, "0.001234567");
    check_double_text(0.0001234567, "1.234567e-4");
    check_double_text(12345.678901234567, "1.2345678901234567e+4");
    check_double_text(5e-324, "5e-324");
    /* Powers of two whose shortest digits are not the nearest ones. */
    check_double_text(0x1p-296, "7.854549544476363e-90");
    check_double_text(0x1p-1017, "7.120236347223045e-307");
    check_double_text(2.2250738585072014e-308, "2.2250738585072014e-308");
    check_double_text(INFINITY, "inf");
    check_double_text(-INFINITY, "-inf");
    check_double_text(NAN, "nan");
    check_double_text(-NAN, "nan");
}

static size_t count_significant(const char *text, size_t len)
{
    size_t first = len, last = 0, point = 0;
    for (size_t i = 0; i < len && text[i] != 'e'; i++) {
        if (text[i] >= '1' && text[i] <= '9') {
            first = first == len ? i : first;
            last = i;
        }
        if (text[i] == '.') {
            point = i;
        }
    }
    return last - first + 1 - (point > first && point < last);
}

static void check_double_round_trip(double value)
{
    char out[33], shorter[64];
    size_t len = num_format_double(out, value);
    assert_true(len < sizeof(out));
    double back;
    assert_true(num_parse_double(slice_of(out, len), &back));
    assert_memory_equal(&back, &value, sizeof(back));
    /* One digit less does not read back, unless it is a whole number, whose digits are all shown.
     */
    size_t digits = count_significant(out, len);
    if (digits > 1 && fabs(value) > 0x1p62) {
        snprintf(shorter, sizeof(shorter), "%.*e", (int)digits - 2, value);
        assert_true(strtod(shorter, NULL) != value);
    }
}

static void test_doubles_survive_a_round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < 50000; i++) {
        uint64_t bits = rand_u64();
        double value;
        memcpy(&value, &bits, sizeof(value));
        if (isfinite(value)) {
            check_double_round_trip(value);
        }
        check_double_round_trip((double)(int64_t)rand_below(1000000000) / 1000);
        check_double_round_trip((double)rand_u64() / 0x1p64);
        check_double_round_trip((double)(int64_t)rand_u64());
    }
    for (int exponent = -1074; exponent < 1024; exponent++) {
        double power = ldexp(1, exponent);
        check_double_round_trip(power);
        check_double_round_trip(nextafter(power, 0));
        check_double_round_trip(-nextafter(power, INFINITY));
    }
}

static void test_parse_double_takes_what_strtod_takes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},
                {"1", 1},
                {"-1.5", -1.5},
                {"+2", 2},
                {".5", .5},
                {"5.", 5},
                {"1e3", 1000},
                {"1E-3", 0.001},
                {"0x10", 16},
                {"0x1p-2", .25},
                {"007", 7},
                {"inf", INFINITY},
                {"+inf", INFINITY},
                {"-inf", -INFINITY},
                {"INFINITY", INFINITY},
                {"5e-324", 5e-324},
                {"123456789012345678901234567890", 123456789012345678901234567890.0},
                {"0.1", 0.1},
                {"123456.789012345", 123456.789012345}};
    for (size_t i = 0; i < COUNT(good); i++) {
        double value = 7;
        assert_true(num_parse_double(slice_cstr(good[i].text), &value));
        assert_true(value == good[i].value);
        long double wide = 7;
        assert_true(num_parse_long_double(slice_cstr(good[i].text), &wide));
        assert_true((double)wide == good[i].value);
    }
    double zero = 7;
    assert_true(num_parse_double(SLICE("-0"), &zero));
    assert_true(zero == 0 && signbit(zero));
    static const char *const bad[] = {"",     "-",      "+",     ".",       "-.",     "nan",
                                      "-nan", "nan(1)", " 1",    "1 ",      "1.2.3",  "1e",
                                      "1e+",  "abc",    "1e400", "-1e400",  "1e-400", "\t1",
                                      "\n",   "1x",     "--1",   "infinit", "1,5"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        double value = 7;
        assert_false(num_parse_double(slice_cstr(bad[i]), &value));
        assert_true(value == 7);
        if (strstr(bad[i], "e400") == NULL && strstr(bad[i], "e-400") == NULL) {
            long double wide = 7;
            assert_false(num_parse_long_double(slice_cstr(bad[i]), &wide));
        }
    }
    double value = 7;
    assert_false(num_parse_double(slice_of("1\0", 2), &value));
    assert_false(num_parse_double(slice_of("1.5\0e3", 6), &value));
    long double wide;
    assert_false(num_parse_long_double(SLICE("1e5000"), &wide));
}

static void test_parse_double_bears_long_texts(void **state)
{
    (void)state;
    size_t len = 100000;
    char *text = malloc(len);
    memset(text, '0', len);
    text[1] = '.';
    text[3] = '5';
    double value;
    assert_true(num_parse_double(slice_of(text, len), &value));
    assert_true(value == 0.05);
    long double wide;
    assert_false(num_parse_long_double(slice_of(text, len), &wide));
    assert_true(num_parse_long_double(slice_of(text, NUM_DOUBLE_MAX_CHARS - 1), &wide));
    free(text);
}

/* The quick path of short decimals agrees with libc. */
static void test_parse_double_is_exact(void **state)
{
    (void)state;
    for (int i = 0; i < 100000; i++) {
        char text[64];
        int places = (int)rand_below(14);
        double drawn = (double)(int64_t)rand_u64() / 0x1p50;
        snprintf(text, sizeof(text), "%.*f", places, drawn);
        double value;
        assert_true(num_parse_double(slice_cstr(text), &value));
        assert_true(value == strtod(text, NULL));
    }
}

static void check_long_double(long double value, const char *expected)
{
    static char out[NUM_DOUBLE_MAX_CHARS];
    size_t len = num_format_long_double(out, value);
    assert_int_equal(len, strlen(expected));
    assert_memory_equal(out, expected, len);
}

static void test_long_doubles_have_the_human_form(void **state)
{
    (void)state;
    check_long_double(0, "0");
    check_long_double(-0.0L, "0");
    check_long_double(3, "3");
    check_long_double(10.5L, "10.5");
    check_long_double(-10.10L, "-10.1");
    check_long_double(1e17L, "100000000000000000");
    check_long_double(100, "100");
    check_long_double(1e-17L, "0.00000000000000001");
    check_long_double(1e-20L, "0");
    check_long_double(-1e-20L, "0");
    check_long_double(3.0e3L, "3000");
    static char out[NUM_DOUBLE_MAX_CHARS];
    assert_int_equal(num_format_long_double(out, 1e4932L), 4933);
}

static void test_memory_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"100", 100},
                {"010", 10},
                {"5b", 5},
                {"1k", 1000},
                {"1KB", 1024},
                {"2m", 2000000},
                {"2Mb", 2097152},
                {"1g", 1000000000},
                {"3gb", 3221225472},
                {"18446744073709551615", UINT64_MAX},
                {"17179869183gb", 17179869183ULL << 30},
                /* As in Redis: no digits are 0, what does not fit is the most there is. */
                {"", 0},
                {"b", 0},
                {"kb", 0},
                {"18446744073709551616", UINT64_MAX},
                {"18446744073709551620", UINT64_MAX},
                {"184467440737095516160", UINT64_MAX},
                {"17179869184gb", UINT64_MAX},
                {"99999999999999999999gb", UINT64_MAX}};
    for (size_t i = 0; i < COUNT(good); i++) {
        uint64_t bytes = 7;
        assert_true(num_parse_memory(slice_cstr(good[i].text), &bytes));
        assert_true(bytes == good[i].bytes);
    }
    static const char *const bad[] = {
        "-1", "+1", "1.5g", "1 kb", "1x", "1kbb", " 1", "1t", "1%", "0x10", "99999999999999999999x",
        "kbb"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        uint64_t bytes = 7;
        assert_false(num_parse_memory(slice_cstr(bad[i]), &bytes));
        assert_true(bytes == 7);
    }
}

static void check_human(uint64_t bytes, const char *expected)
{
    char out[32];
    num_format_bytes_human(out, sizeof(out), bytes);
    assert_string_equal(out, expected);
}

static void test_human_sizes(void **state)
{
    (void)state;
    check_human(0, "0B");
    check_human(512, "512B");
    check_human(1023, "1023B");
    check_human(1024, "1.00K");
    check_human(953876, "931.52K");
    check_human(1572864, "1.50M");
    check_human(2147483648, "2.00G");
    check_human(1ULL << 40, "1.00T");
    check_human(1ULL << 50, "1.00P");
    check_human(UINT64_MAX, "16384.00P");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_i64_takes_the_canonical_form_only),
        cmocka_unit_test(test_parse_refuses_every_foreign_byte),
        cmocka_unit_test(test_parse_u64_knows_its_limits),
        cmocka_unit_test(test_integers_survive_a_round_trip),
        cmocka_unit_test(test_doubles_are_written_as_redis_does),
        cmocka_unit_test(test_doubles_survive_a_round_trip),
        cmocka_unit_test(test_parse_double_takes_what_strtod_takes),
        cmocka_unit_test(test_parse_double_bears_long_texts),
        cmocka_unit_test(test_parse_double_is_exact),
        cmocka_unit_test(test_long_doubles_have_the_human_form),
        cmocka_unit_test(test_memory_sizes),
        cmocka_unit_test(test_human_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
