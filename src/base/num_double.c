/* Floating point numbers as text. The process stays in the "C" locale, on which libc's part here
 * depends. */
#include "base/num.h"

#include "base/mem.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Powers of ten that a double holds exactly. */
#define EXACT_POWERS 23
static const double exact_power[EXACT_POWERS] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
/* Decimal digits whose integer a double always holds exactly. */
#define EXACT_DIGITS 15
/* Digits that tell every double from its neighbours. */
#define MAX_DIGITS 17

/* ---- from text ---- */

/* Plain decimals of at most 15 digits: the digits' integer and the power of ten are exact, and one
 * division rounds once, so the result is the nearest double. False: not of that form. */
static bool num_parse_plain_double(struct slice text, double *value)
{
    size_t i = 0;
    bool negative = false;
    if (text.len > 0 && (text.ptr[0] == '-' || text.ptr[0] == '+')) {
        negative = text.ptr[0] == '-';
        i = 1;
    }
    int64_t number = 0;
    unsigned digits = 0, fraction = 0;
    bool point = false;
    if (text.len - i > EXACT_DIGITS + 1) {
        return false;
    }
    for (; i < text.len; i++) {
        char c = text.ptr[i];
        if (c >= '0' && c <= '9') {
            number = number * 10 + (c - '0');
            digits++;
            fraction += point;
        } else if (c == '.' && !point) {
            point = true;
        } else {
            return false;
        }
    }
    if (digits == 0 || digits > EXACT_DIGITS) {
        return false;
    }
    double magnitude = (double)number / exact_power[fraction];
    *value = negative ? -magnitude : magnitude;
    return true;
}

/* A NUL-terminated copy in `local` or, where it is too small, from the heap; NULL when there is no
 * memory or the text cannot be a number. */
static char *num_copy_text(struct slice text, char *local, size_t local_size)
{
    if (text.len == 0 || isspace((unsigned char)text.ptr[0])) {
        return NULL;
    }
    char *copy = text.len < local_size ? local : mem_try_alloc(text.len + 1);
    if (copy != NULL) {
        memcpy(copy, text.ptr, text.len);
        copy[text.len] = '\0';
    }
    return copy;
}

bool num_parse_double(struct slice text, double *value)
{
    if (num_parse_plain_double(text, value)) {
        return true;
    }
    char local[512];
    char *copy = num_copy_text(text, local, sizeof(local));
    if (copy == NULL) {
        return false;
    }
    char *end;
    errno = 0;
    double parsed = strtod(copy, &end);
    bool whole = end == copy + text.len;
    bool in_range = errno != ERANGE || (!isinf(parsed) && parsed != 0);
    if (copy != local) {
        mem_free(copy);
    }
    if (!whole || !in_range || isnan(parsed)) {
        return false;
    }
    *value = parsed;
    return true;
}

bool num_parse_long_double(struct slice text, long double *value)
{
    char copy[NUM_DOUBLE_MAX_CHARS];
    if (text.len >= sizeof(copy) || num_copy_text(text, copy, sizeof(copy)) == NULL) {
        return false;
    }
    char *end;
    errno = 0;
    long double parsed = strtold(copy, &end);
    if (end != copy + text.len || isnan(parsed) ||
        (errno == ERANGE && (isinf(parsed) || parsed == 0))) {
        return false;
    }
    *value = parsed;
    return true;
}

/* ---- to text ---- */

/* A positive number as digits * 10^exponent, without trailing zeros in the digits. */
struct num_decimal {
    char digits[MAX_DIGITS + 1];
    int count;
    int exponent;
};

static void num_decimal_strip_zeros(struct num_decimal *d)
{
    while (d->count > 1 && d->digits[d->count - 1] == '0') {
        d->count--;
        d->exponent++;
    }
}

/* Finds the shortest digits of numbers with few decimals: where an integer of at most 15 digits
 * over a small power of ten is the number, no shorter text can be (15 digits never share a double).
 */
static bool num_short_decimal(double value, struct num_decimal *d)
{
    if (value >= 1e15 || value < 1e-5) {
        return false;
    }
    for (int places = 0; places <= 8; places++) {
        double scaled = rint(value * exact_power[places]);
        if (scaled >= 1e15) {
            return false;
        }
        if (scaled / exact_power[places] == value) {
            d->count = (int)num_format_u64(d->digits, (uint64_t)scaled);
            d->exponent = -places;
            num_decimal_strip_zeros(d);
            return true;
        }
    }
    return false;
}

/* Fills `d` with `value` rounded to `count` digits and says whether that reads back as `value`. */
static bool num_round_decimal(double value, int count, struct num_decimal *d)
{
    char text[40];
    int len = snprintf(text, sizeof(text), "%.*e", count - 1, value);
    assert(len > 0 && (size_t)len < sizeof(text));
    const char *mark = memchr(text, 'e', (size_t)len);
    assert(mark != NULL);
    d->digits[0] = text[0];
    if (count > 1) {
        memcpy(d->digits + 1, text + 2, (size_t)(count - 1));
    }
    d->count = count;
    d->exponent = (int)strtol(mark + 1, NULL, 10) - (count - 1);
    num_decimal_strip_zeros(d);
    return strtod(text, NULL) == value;
}

/* Fills `d` with the 16-digit decimal next above the nearest one and says whether that reads back
 * as `value`. A power of two has a gap above it that is twice the gap below, so the nearest decimal
 * of a length may lie too far below while the next one up is close enough. */
static bool num_round_up_decimal(double value, struct num_decimal *d)
{
    if (!num_round_decimal(value, MAX_DIGITS - 1, d)) {
        uint64_t number = 0;
        for (int i = 0; i < d->count; i++) {
            number = number * 10 + (uint64_t)(d->digits[i] - '0');
        }
        for (; d->count < MAX_DIGITS - 1; d->count++) {
            number *= 10;
            d->exponent--;
        }
        d->count = (int)num_format_u64(d->digits, number + 1);
        num_decimal_strip_zeros(d);
    }
    char text[40];
    snprintf(text, sizeof(text), "%.*se%d", d->count, d->digits, d->exponent);
    return strtod(text, NULL) == value;
}

/* The shortest digits that read back as `value` (positive, finite). Normal numbers are told apart
 * by 15 digits at least, so none shorter than "%.15g" shows needs trying; subnormal ones have
 * fewer. */
static void num_shortest_decimal(double value, struct num_decimal *d)
{
    if (num_short_decimal(value, d)) {
        return;
    }
    int count = isnormal(value) ? EXACT_DIGITS : 1;
    while (!num_round_decimal(value, count, d)) {
        assert(count < MAX_DIGITS);
        count++;
        if (count == MAX_DIGITS && num_round_up_decimal(value, d)) {
            return;
        }
    }
}

static size_t num_write_scientific(char *out, const struct num_decimal *d)
{
    char *p = out;
    *p++ = d->digits[0];
    if (d->count > 1) {
        *p++ = '.';
        memcpy(p, d->digits + 1, (size_t)(d->count - 1));
        p += d->count - 1;
    }
    int power = d->exponent + d->count - 1;
    *p++ = 'e';
    *p++ = power < 0 ? '-' : '+';
    p += num_format_u64(p, (uint64_t)(power < 0 ? -power : power));
    return (size_t)(p - out);
}

/* Writes the decimal in the form that Redis 7.2 picks (its fpconv library): whole numbers plainly
 * while fewer than eight zeros have to be added; fractions plainly with at most six decimals or an
 * exponent of one to three either way; everything else with an exponent, which has no padding. */
static size_t num_write_decimal(char *out, const struct num_decimal *d)
{
    int power = d->exponent + d->count - 1;
    if (d->exponent >= 0 && d->exponent <= 7) {
        memcpy(out, d->digits, (size_t)d->count);
        memset(out + d->count, '0', (size_t)d->exponent);
        return (size_t)(d->count + d->exponent);
    }
    if (d->exponent >= 0 || (d->exponent <= -7 && abs(power) >= 4)) {
        return num_write_scientific(out, d);
    }
    int before = d->count + d->exponent; /* digits before the point */
    if (before > 0) {
        memcpy(out, d->digits, (size_t)before);
        out[before] = '.';
        memcpy(out + before + 1, d->digits + before, (size_t)(d->count - before));
        return (size_t)d->count + 1;
    }
    memcpy(out, "0.", 2);
    memset(out + 2, '0', (size_t)-before);
    memcpy(out + 2 - before, d->digits, (size_t)d->count);
    return (size_t)(2 - before + d->count);
}

size_t num_format_double(char *out, double value)
{
    if (isnan(value)) {
        memcpy(out, "nan", 3);
        return 3;
    }
    size_t sign = 0;
    if (signbit(value)) {
        out[0] = '-';
        sign = 1;
        value = -value;
    }
    if (isinf(value)) {
        memcpy(out + sign, "inf", 3);
        return sign + 3;
    }
    /* Redis 7.2 prints whole numbers up to 2^62 digit by digit. */
    if (value <= 0x1p62) {
        uint64_t whole = (uint64_t)value;
        if ((double)whole == value) {
            return sign + num_format_u64(out + sign, whole);
        }
    }
    struct num_decimal d;
    num_shortest_decimal(value, &d);
    return sign + num_write_decimal(out + sign, &d);
}

size_t num_format_long_double(char *out, long double value)
{
    if (isinf(value)) {
        memcpy(out, value > 0 ? "inf" : "-inf", value > 0 ? 3 : 4);
        return value > 0 ? 3 : 4;
    }
    int printed = snprintf(out, NUM_DOUBLE_MAX_CHARS, "%.17Lf", value);
    if (printed <= 0 || printed >= NUM_DOUBLE_MAX_CHARS) {
        return 0;
    }
    size_t len = (size_t)printed;
    if (memchr(out, '.', len) != NULL) {
        while (out[len - 1] == '0') {
            len--;
        }
        if (out[len - 1] == '.') {
            len--;
        }
    }
    if (len == 2 && out[0] == '-' && out[1] == '0') {
        out[0] = '0';
        return 1;
    }
    return len;
}
