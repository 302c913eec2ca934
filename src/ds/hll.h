/* HyperLogLog in the bytes that Redis 2.8.9 and later keep in a string, so that values, estimates
 * and files can be exchanged. 16384 registers of 6 bits; an element's hash (MurmurHash64A of the
 * element, seed 0xadc83b19) names with its low 14 bits the register, and the position of the first
 * set bit in the other 50 is what the register keeps the maximum of.
 *
 *   bytes  field
 *   4      "HYLL"
 *   1      encoding: 0 dense, 1 sparse
 *   3      zero
 *   8      cached cardinality, little-endian; the highest bit of the last byte set: not valid
 *   n      registers
 *
 * Dense: 12288 bytes, register i in bits 6i..6i+5, counted from the least significant bit of byte
 * 0. Sparse: runs of equal registers, from register 0 on:
 *
 *   00nnnnnn           ZERO   n+1 registers (1..64) are 0
 *   01nnnnnn nnnnnnnn  XZERO  n+1 registers (1..16384) are 0
 *   1vvvvvnn           VAL    n+1 registers (1..4) are v+1 (1..32)
 *
 * Values come from clients, who can write them byte by byte: every function that reads registers
 * says when they are corrupt, and none reads or writes outside of what it is given. Pure functions
 * over values that the caller owns. */
#ifndef DS_HLL_H
#define DS_HLL_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define HLL_REGISTERS 16384
#define HLL_HEAD_BYTES 16
#define HLL_DENSE_BYTES (HLL_HEAD_BYTES + HLL_REGISTERS * 6 / 8)

enum hll_encoding { HLL_DENSE = 0, HLL_SPARSE = 1 };

enum hll_result { HLL_UNCHANGED, HLL_CHANGED, HLL_CORRUPT };

/* One of each register's values, unpacked. */
struct hll_registers {
    uint8_t at[HLL_REGISTERS];
};

/* True when the bytes begin as a value does: magic, a known encoding, and the exact length when
 * dense. All other functions want that. */
bool hll_is_valid_head(struct slice value);
/* The encoding of a value with a valid head. */
enum hll_encoding hll_encoding_of(struct slice value);
/* True when a sparse value's runs cover all registers exactly (dense ones are not looked into). */
bool hll_check(struct slice value) MUST_CHECK;

/* Makes `value` an empty one: sparse, with a valid cached cardinality of 0. */
void hll_init(struct buf *value);
/* Adds an element. A sparse value becomes dense when it needs more than `sparse_max_bytes` or a
 * register beyond 32. The cached cardinality is not touched. HLL_CORRUPT leaves the value as it
 * is. */
enum hll_result hll_add(struct buf *value, struct slice element,
                        size_t sparse_max_bytes) MUST_CHECK;
/* The same for a dense value where it stands. True when a register changed. */
bool hll_dense_add(uint8_t value[HLL_DENSE_BYTES], struct slice element);
/* True when the element would change a register of a dense value. */
bool hll_dense_would_add(struct slice value, struct slice element);
/* Makes a sparse value dense; its cached cardinality stays. HLL_UNCHANGED when it is already. */
enum hll_result hll_make_dense(struct buf *value) MUST_CHECK;
/* Raises every register of `value` to that of `registers`; conversions as in hll_add. */
enum hll_result hll_raise(struct buf *value, const struct hll_registers *registers,
                          size_t sparse_max_bytes) MUST_CHECK;

/* Raises `registers` to those of `value`. False when it is corrupt: `registers` is useless then. */
bool hll_merge(struct hll_registers *registers, struct slice value) MUST_CHECK;
/* Estimates how many different elements were added, by Ertl's improved estimator ("New
 * cardinality estimation algorithms for HyperLogLog sketches", 2017, algorithm 6), which Redis uses
 * since 5.0. The first looks at the registers in any case, and returns false when they are corrupt.
 */
bool hll_estimate(struct slice value, uint64_t *cardinality) MUST_CHECK;
uint64_t hll_estimate_registers(const struct hll_registers *registers);

/* The cached cardinality; false when it is not valid. */
bool hll_cached(struct slice value, uint64_t *cardinality) MUST_CHECK;
/* Caches it. */
void hll_keep(uint8_t *value, uint64_t cardinality);
/* Marks it as not valid: after every change. */
void hll_invalidate(uint8_t *value);

/* Appends a sparse value's runs in the text of PFDEBUG DECODE: "Z:100 v:3,1 z:20". False when it is
 * corrupt. */
bool hll_describe(struct slice value, struct buf *out) MUST_CHECK;

/* MurmurHash64A, for tests. */
uint64_t hll_hash(struct slice element);

#endif
