/* Operations on runs of bits, as the bitmap commands define them. Bit 0 is the highest bit of byte
 * 0; a field's first bit is its most significant. Pure functions: no state, no failures, no
 * allocation.
 *
 * The shifts are KeyDB's and count the other way round: there the string is one number whose byte 0
 * is the least significant, so that AA shifted left by 4 is A0 0A. */
#ifndef DS_BITS_H
#define DS_BITS_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* Widest field of bits_get_field and bits_set_field. */
#define BITS_FIELD_MAX_WIDTH 64

/* Number of bits set in `len` bytes. */
uint64_t bits_count(const uint8_t *bytes, size_t len);
/* The same of the bits first..last, both included; first <= last, and the bytes of both are there.
 */
uint64_t bits_count_range(const uint8_t *bytes, uint64_t first, uint64_t last);
/* Position of the first bit of that value in first..last (as above), -1 when there is none. */
int64_t bits_find(const uint8_t *bytes, uint64_t first, uint64_t last, bool value);

/* The `width` (1..64) bits from `offset` on as an unsigned number; bits beyond `len` bytes are
 * zero. */
uint64_t bits_get_field(const uint8_t *bytes, size_t len, uint64_t offset, unsigned width);
/* Stores the low `width` bits of `value` there; all their bytes are there. */
void bits_set_field(uint8_t *bytes, uint64_t offset, unsigned width, uint64_t value);
/* The number that the low `width` bits of `field` are in two's complement. */
int64_t bits_sign_extend(uint64_t field, unsigned width);

enum bits_overflow { BITS_OVERFLOW_WRAP, BITS_OVERFLOW_SATURATE, BITS_OVERFLOW_FAIL };

/* value + increment in a signed field of `width` bits. True when it fits; otherwise *sum is what
 * `policy` makes of it (nothing sensible for BITS_OVERFLOW_FAIL). A value so low that the field's
 * maximum minus it is no 64-bit number saturates upwards: Redis does so by an overflow of its own,
 * and a BITFIELD must do the same on a primary and on its replicas, whichever of both they are. */
bool bits_add_signed(int64_t value, int64_t increment, unsigned width, enum bits_overflow policy,
                     int64_t *sum);
/* The same in an unsigned field of up to 63 bits. A `value` beyond the field is an overflow by
 * itself, upwards. */
bool bits_add_unsigned(uint64_t value, int64_t increment, unsigned width, enum bits_overflow policy,
                       uint64_t *sum);

enum bits_operation { BITS_AND, BITS_OR, BITS_XOR, BITS_NOT };

/* Combines `count` (>= 1) sources into `out` of `len` bytes, the length of the longest; shorter
 * ones are continued with zeros. BITS_NOT takes one source. `out` overlaps none of them. */
void bits_combine(enum bits_operation operation, uint8_t *out, size_t len,
                  const struct slice *sources, int count);

/* Length in bytes of `len` bytes shifted left by `by` bits (by whole bytes begun), or right. */
size_t bits_shifted_left_len(size_t len, uint64_t by);
size_t bits_shifted_right_len(size_t len, uint64_t by);
/* Writes the shifted source to `out`, which has the length above and does not overlap it. */
void bits_shift_left(uint8_t *out, struct slice source, uint64_t by);
void bits_shift_right(uint8_t *out, struct slice source, uint64_t by);

#endif
