/* Numbers to text and back, exactly as Redis's protocol and values want them. Pure functions. */
#ifndef BASE_NUM_H
#define BASE_NUM_H

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* Longest decimal text of a 64-bit integer with sign, and room for a NUL. */
#define NUM_I64_MAX_CHARS 21
/* Enough for num_format_double and num_format_long_double (human form of 5 Ki digits and more). */
#define NUM_DOUBLE_MAX_CHARS (5 * 1024)

/* Parses the canonical decimal text of a signed 64-bit integer: the whole slice, no leading zeros,
 * no plus sign, no blanks, no "-0". Returns false and leaves *value alone for anything else. */
bool num_parse_i64(struct slice text, int64_t *value) MUST_CHECK;
/* The same for unsigned 64-bit integers. */
bool num_parse_u64(struct slice text, uint64_t *value) MUST_CHECK;
/* Writes the decimal text of `value` (no NUL); returns its length (<= 20). `out` holds 20 bytes. */
size_t num_format_i64(char *out, int64_t value);
size_t num_format_u64(char *out, uint64_t value);
/* Number of decimal digits of `value` (1 for 0). */
unsigned num_count_digits(uint64_t value);

/* Parses a double as Redis does for scores and floats: the whole slice, no leading blanks, C99
 * decimal or hexadecimal forms, "inf", "+inf", "-inf", "infinity" in any case; false for "nan", for
 * empty text, for overflow to infinity of finite text, and for denormal results that strtod reports
 * as ERANGE with value 0. */
bool num_parse_double(struct slice text, double *value) MUST_CHECK;
bool num_parse_long_double(struct slice text, long double *value) MUST_CHECK;
/* The shortest text that reads back as the same double, as Redis 7.2 replies scores and RESP3
 * doubles: integers without point, exponents as "1e+20", "inf", "-inf", "nan". Returns the length;
 * no NUL. `out` holds at least 32 bytes. */
size_t num_format_double(char *out, double value);
/* The text that INCRBYFLOAT and HINCRBYFLOAT store: "%.17Lf" with trailing zeros (and a bare point)
 * removed; "-0" becomes "0". Returns the length, or 0 when it does not fit. `out` holds
 * NUM_DOUBLE_MAX_CHARS. */
size_t num_format_long_double(char *out, long double value);

/* Memory sizes as configuration writes them: "100", "1k" (1000), "1kb" (1024), "1m", "1mb", "1g",
 * "1gb", any case; as in Redis no digits are 0 ("", "kb"), and what does not fit is UINT64_MAX.
 * False for anything else. */
bool num_parse_memory(struct slice text, uint64_t *bytes) MUST_CHECK;
/* INFO's human form: "931.52K", "1.50M", "2.00G", "512B". NUL-terminated in `out` (>= 32 bytes). */
void num_format_bytes_human(char *out, size_t out_size, uint64_t bytes);

#endif
