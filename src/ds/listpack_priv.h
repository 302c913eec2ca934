/* The bytes of one listpack element, for the listpack and for pairs (pairs.h), whose elements are
 * the same. State: pure functions. */
#ifndef DS_LISTPACK_PRIV_H
#define DS_LISTPACK_PRIV_H

#include "ds/listpack.h"

#include <assert.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little-endian");

#define LISTPACK_END 0xff /* listpack_take_short knows it, and the form of short strings */
#define LISTPACK_UNKNOWN_COUNT 65535u

/* First bytes. */
enum listpack_code {
    LISTPACK_STRING_6 = 0x80,
    LISTPACK_INT_13 = 0xc0,
    LISTPACK_STRING_12 = 0xe0,
    LISTPACK_STRING_32 = 0xf0,
    LISTPACK_INT_16 = 0xf1,
    LISTPACK_INT_24 = 0xf2,
    LISTPACK_INT_32 = 0xf3,
    LISTPACK_INT_64 = 0xf4,
};

static inline uint32_t listpack_load32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

/* Bytes of encoding and data before the string's own bytes; for integers the whole element. 0 for a
 * byte that starts none. */
static inline size_t listpack_head_bytes(unsigned char first)
{
    static const uint8_t wide[16] = {5, 3, 4, 5, 9};
    if (first < LISTPACK_INT_13) {
        return 1;
    }
    return first < LISTPACK_STRING_32 ? 2 : wide[first & 15];
}

/* Bytes of encoding and data of the element at `p`, whose head is there. */
static inline size_t listpack_element_bytes(const unsigned char *p)
{
    unsigned char first = *p;
    if (first < LISTPACK_STRING_6) {
        return 1;
    }
    if (first < LISTPACK_INT_13) {
        return 1 + (size_t)(first & 63);
    }
    if (first < LISTPACK_STRING_12) {
        return 2;
    }
    if (first < LISTPACK_STRING_32) {
        return 2 + (((size_t)(first & 15) << 8) | p[1]);
    }
    if (first == LISTPACK_STRING_32) {
        return 5 + (size_t)listpack_load32(p + 1);
    }
    return listpack_head_bytes(first);
}

/* Bytes that the length `size` takes behind an element. The limits are the format's: three of them
 * are one below what fits. */
static inline size_t listpack_back_bytes(size_t size)
{
    if (likely(size <= 127)) {
        return 1;
    }
    if (size < 16383) {
        return 2;
    }
    if (size < 2097151) {
        return 3;
    }
    return size < 268435455 ? 4 : 5;
}

/* Writes `size` so that it is read from its last byte on; returns the bytes written. */
static inline size_t listpack_write_back(unsigned char *out, size_t size)
{
    size_t count = listpack_back_bytes(size);
    for (size_t i = count; i-- > 0; size >>= 7) {
        out[i] = (unsigned char)((size & 127) | (i > 0 ? 128 : 0));
    }
    return count;
}

/* Bytes of the element at `p` with its length behind it. */
static inline size_t listpack_step(const unsigned char *p)
{
    size_t size = listpack_element_bytes(p);
    return size + listpack_back_bytes(size);
}

/* An element before it is written: the head, then a string's bytes. */
struct listpack_coded {
    unsigned char head[9];
    uint8_t head_len;
    struct slice tail;
    size_t bytes; /* head and tail */
};

/* How a text or an integer is written. A text that is a canonical int64 is kept as an integer. */
struct listpack_coded listpack_code_bytes(struct slice bytes);
struct listpack_coded listpack_code_integer(int64_t value);
/* Writes the element's `bytes` bytes, without its length behind it. */
static inline void listpack_write_coded(unsigned char *at, const struct listpack_coded *c)
{
    memcpy(at, c->head, c->head_len);
    if (c->tail.len > 0) {
        memcpy(at + c->head_len, c->tail.ptr, c->tail.len);
    }
}
/* The integer at `at`, which is no string. */
int64_t listpack_decode_integer(const unsigned char *at);

static inline bool listpack_is_string(unsigned char first)
{
    return (first & 0xc0) == LISTPACK_STRING_6 || (first & 0xf0) == LISTPACK_STRING_12 ||
           first == LISTPACK_STRING_32;
}

/* True when the string element of `size` bytes at `at` holds `bytes`, which are not empty. The last
 * byte is where similar names differ. */
static inline bool listpack_same_string(const unsigned char *at, size_t size, struct slice bytes)
{
    size_t head = size - bytes.len;
    return at[size - 1] == (unsigned char)bytes.ptr[bytes.len - 1] && size > bytes.len &&
           head == listpack_head_bytes(*at) && memcmp(at + head, bytes.ptr, bytes.len) == 0;
}

#endif
