/* Integers and memory sizes. Doubles are in num_double.c. */
#include "base/num.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Digits that always fit 64 bits. */
#define SAFE_DIGITS 18

/* ---- integers from text ---- */

/* Loads 8 bytes so that the first one is the lowest. */
static uint64_t num_load8(const char *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* True when all 8 bytes are '0'..'9': the high nibble is 3, and adding 6 does not carry out of the
 * low one. */
static bool num_all_digits8(uint64_t word)
{
    return ((word & 0xf0f0f0f0f0f0f0f0ULL) |
            (((word + 0x0606060606060606ULL) & 0xf0f0f0f0f0f0f0f0ULL) >> 4)) ==
           0x3333333333333333ULL;
}

/* The value of 8 digits: neighbours are joined to pairs, pairs to fours, fours to the whole. */
static uint64_t num_value8(uint64_t word)
{
    word = (word & 0x0f0f0f0f0f0f0f0fULL) * 2561 >> 8;               /* 10 * 256 + 1 */
    word = (word & 0x00ff00ff00ff00ffULL) * 6553601 >> 16;           /* 100 * 65536 + 1 */
    return (word & 0x0000ffff0000ffffULL) * 42949672960001ULL >> 32; /* 10^4 * 2^32 + 1 */
}

/* Reads 1 to 20 digits without a leading zero (but "0") into *value. */
static bool num_parse_digits(const char *p, size_t len, uint64_t *value)
{
    if (len == 0 || len > 20 || (*p == '0' && len > 1)) {
        return false;
    }
    uint64_t sum = 0;
    const char *safe_end = p + (len > SAFE_DIGITS ? SAFE_DIGITS : len);
    const char *end = p + len;
    while (safe_end - p >= 8) {
        uint64_t word = num_load8(p);
        if (!num_all_digits8(word)) {
            return false;
        }
        sum = sum * 100000000 + num_value8(word);
        p += 8;
    }
    for (; p < safe_end; p++) {
        unsigned digit = (unsigned char)*p - (unsigned)'0';
        if (digit > 9) {
            return false;
        }
        sum = sum * 10 + digit;
    }
    for (; p < end; p++) {
        unsigned digit = (unsigned char)*p - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, digit, &sum)) {
            return false;
        }
    }
    *value = sum;
    return true;
}

bool num_parse_u64(struct slice text, uint64_t *value)
{
    return num_parse_digits(text.ptr, text.len, value);
}

bool num_parse_i64(struct slice text, int64_t *value)
{
    uint64_t magnitude;
    if (text.len > 0 && text.ptr[0] == '-') {
        if (!num_parse_digits(text.ptr + 1, text.len - 1, &magnitude) || magnitude == 0 ||
            magnitude > (uint64_t)INT64_MAX + 1) {
            return false;
        }
        *value = (int64_t)(0 - magnitude);
        return true;
    }
    if (!num_parse_digits(text.ptr, text.len, &magnitude) || magnitude > INT64_MAX) {
        return false;
    }
    *value = (int64_t)magnitude;
    return true;
}

/* ---- integers to text ---- */

unsigned num_count_digits(uint64_t value)
{
    static const uint64_t power[20] = {1ULL,
                                       10ULL,
                                       100ULL,
                                       1000ULL,
                                       10000ULL,
                                       100000ULL,
                                       1000000ULL,
                                       10000000ULL,
                                       100000000ULL,
                                       1000000000ULL,
                                       10000000000ULL,
                                       100000000000ULL,
                                       1000000000000ULL,
                                       10000000000000ULL,
                                       100000000000000ULL,
                                       1000000000000000ULL,
                                       10000000000000000ULL,
                                       100000000000000000ULL,
                                       1000000000000000000ULL,
                                       10000000000000000000ULL};
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    unsigned guess = bits * 1233 >> 12; /* bits * log10(2), rounded down */
    return guess + (guess < 20 && value >= power[guess]) + (value == 0);
}

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324"
                                  "25262728293031323334353637383940414243444546474849"
                                  "50515253545556575859606162636465666768697071727374"
                                  "75767778798081828384858687888990919293949596979899";

size_t num_format_u64(char *out, uint64_t value)
{
    size_t len = num_count_digits(value);
    char *p = out + len;
    while (value >= 100) {
        p -= 2;
        memcpy(p, digit_pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10) {
        memcpy(p - 2, digit_pairs + 2 * value, 2);
    } else {
        p[-1] = (char)('0' + value);
    }
    return len;
}

size_t num_format_i64(char *out, int64_t value)
{
    if (value < 0) {
        *out = '-';
        return 1 + num_format_u64(out + 1, 0 - (uint64_t)value);
    }
    return num_format_u64(out, (uint64_t)value);
}

/* ---- memory sizes ---- */

/* The factor of a unit, or 0. */
static uint64_t num_memory_unit(struct slice unit)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {{"", 1},
                 {"b", 1},
                 {"k", 1000},
                 {"kb", 1024},
                 {"m", 1000 * 1000},
                 {"mb", 1024 * 1024},
                 {"g", 1000ULL * 1000 * 1000},
                 {"gb", 1024ULL * 1024 * 1024}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (slice_equal_nocase(unit, units[i].name)) {
            return units[i].bytes;
        }
    }
    return 0;
}

bool num_parse_memory(struct slice text, uint64_t *bytes)
{
    uint64_t number = 0;
    size_t i = 0;
    for (; i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9'; i++) {
        unsigned digit = (unsigned)(text.ptr[i] - '0');
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, digit, &number)) {
            number = UINT64_MAX; /* and so it stays: each further digit overflows again */
        }
    }
    uint64_t unit = num_memory_unit(slice_of(text.ptr + i, text.len - i));
    if (unit == 0) {
        return false;
    }
    if (__builtin_mul_overflow(number, unit, bytes)) {
        *bytes = UINT64_MAX;
    }
    return true;
}

void num_format_bytes_human(char *out, size_t out_size, uint64_t bytes)
{
    static const char letters[] = "KMGTP";
    assert(out_size >= 32);
    if (bytes < 1024) {
        snprintf(out, out_size, "%lluB", (unsigned long long)bytes);
        return;
    }
    int step = 0;
    double scaled = (double)bytes / 1024;
    while (step < 4 && bytes >> (10 * (step + 2)) != 0) {
        scaled /= 1024;
        step++;
    }
    snprintf(out, out_size, "%.2f%c", scaled, letters[step]);
}
