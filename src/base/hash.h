/* The keyed hash of the keyspace and of every table that holds a client's bytes. A
 * multiply-and-fold hash over two 64-bit secrets drawn at boot (the construction of
 * wyhash/rapidhash: 128-bit products of secret-masked words, folded by xor; public domain idea by
 * Wang Yi). Without the secrets collisions cannot be prepared, which is what stops hash flooding.
 * State: immutable after hash_setup. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/slice.h"

#include <stdint.h>
#include <string.h>

struct hash_secret {
    uint64_t word[4];
};
extern struct hash_secret hash_secret;

/* Draws the secrets. Call once before the first table. */
void hash_setup(void);
/* Test seam: fixes the secrets. */
void hash_set_secret(uint64_t seed);

static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_load64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static inline uint64_t hash_load32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* Hashes more than 16 bytes; see hash_bytes. */
uint64_t hash_long(const char *bytes, size_t len);

/* The hash of `len` bytes. All 64 bits are usable: the table takes its position from the high ones
 * and its fingerprint from the low ones. */
static inline uint64_t hash_bytes(const char *bytes, size_t len)
{
    uint64_t a, b;
    if (len > 16) {
        return hash_long(bytes, len);
    }
    if (len >= 8) {
        a = hash_load64(bytes);
        b = hash_load64(bytes + len - 8);
    } else if (len >= 4) {
        a = hash_load32(bytes);
        b = hash_load32(bytes + len - 4);
    } else if (len > 0) {
        a = ((uint64_t)(unsigned char)bytes[0] << 16) |
            ((uint64_t)(unsigned char)bytes[len >> 1] << 8) | (unsigned char)bytes[len - 1];
        b = 0;
    } else {
        a = b = 0;
    }
    uint64_t mixed = hash_fold(a ^ hash_secret.word[0], b ^ hash_secret.word[1]);
    return hash_fold(mixed ^ hash_secret.word[2], hash_secret.word[3] ^ len);
}

static inline uint64_t hash_slice(struct slice s)
{
    return hash_bytes(s.ptr, s.len);
}

#endif
