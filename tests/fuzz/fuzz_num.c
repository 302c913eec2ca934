/* Numbers as text (base/num.h) under arbitrary bytes. Oracles: round trips. What is parsed as an
 * integer is written as the very same text; every number that is written is read as itself; doubles
 * bit for bit. */
#include "base/num.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "num: %s\n", what);
        abort();
    }
}

static void check_integer(int64_t value)
{
    char text[NUM_I64_MAX_CHARS];
    int64_t back;
    size_t len = num_format_i64(text, value);
    require(len <= 20 && num_parse_i64(slice_of(text, len), &back) && back == value,
            "i64 comes back");
    uint64_t unsigned_back;
    len = num_format_u64(text, (uint64_t)value);
    require(len == num_count_digits((uint64_t)value), "u64 has as many digits");
    require(num_parse_u64(slice_of(text, len), &unsigned_back) && unsigned_back == (uint64_t)value,
            "u64 comes back");
}

static void check_double(double value)
{
    char text[64];
    double back;
    size_t len = num_format_double(text, value);
    require(len > 0 && len < 32, "a double is short");
    bool parsed = num_parse_double(slice_of(text, len), &back);
    if (isnan(value)) {
        require(!parsed, "nan is no number");
    } else if (!parsed) {
        /* The C library reports some denormals as out of range. */
        require(value != 0 && fabs(value) < 0x1p-1022, "a double is readable");
    } else {
        require(back == value && signbit(back) == signbit(value), "a double comes back");
    }
}

static void check_long_double(long double value)
{
    static char text[NUM_DOUBLE_MAX_CHARS];
    long double back;
    size_t len = num_format_long_double(text, value);
    require(len <= sizeof(text), "a long double fits");
    require(len == 0 || isnan(value) || isinf(value) ||
                num_parse_long_double(slice_of(text, len), &back),
            "a long double is readable");
}

static void check_text(struct slice text)
{
    int64_t integer;
    uint64_t natural;
    double real;
    long double long_real;
    char again[32];
    if (num_parse_i64(text, &integer)) {
        require(slice_equal(slice_of(again, num_format_i64(again, integer)), text),
                "only canonical text is an i64");
    }
    if (num_parse_u64(text, &natural)) {
        require(slice_equal(slice_of(again, num_format_u64(again, natural)), text),
                "only canonical text is a u64");
    }
    if (num_parse_double(text, &real)) {
        require(!isnan(real), "no text is nan");
        check_double(real);
    }
    if (num_parse_long_double(text, &long_real)) {
        require(!isnan(long_real), "no text is nan");
        check_long_double(long_real);
    }
    if (num_parse_memory(text, &natural)) {
        num_format_bytes_human(again, sizeof(again), natural);
        require(strlen(again) > 1, "a size has a human form");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    /* An allocation of exactly this length: reading beyond is seen. */
    char *text = malloc(len + 1);
    memcpy(text, bytes, len);
    check_text(slice_of(text, len));
    if (len >= sizeof(int64_t)) {
        int64_t integer;
        double real;
        memcpy(&integer, text, sizeof(integer));
        memcpy(&real, text, sizeof(real));
        check_integer(integer);
        check_integer(integer >> (integer & 63));
        check_double(real);
        check_double((double)integer);
        check_long_double(real);
    }
    free(text);
    return 0;
}
