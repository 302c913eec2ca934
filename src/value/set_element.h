/* A member of a set's table, as its slot holds it. Up to seven bytes stand in the slot itself;
 * longer ones are one allocation.
 *
 *   in the slot (no address looks like this: user space has the top bit clear)
 *   bit 63      1
 *   bits 60-62  length
 *   bits 4-59   bytes, the first one lowest, zero behind the last
 *   bits 0-3    the table's tags, not used
 *
 *   allocated
 *   1 byte  length, or 255
 *   8       length, when the byte is 255
 *   n       bytes
 *
 * State: keyspace. */
#ifndef VALUE_SET_ELEMENT_H
#define VALUE_SET_ELEMENT_H

#include "base/hash.h"
#include "base/mem.h"
#include "base/slice.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static_assert(sizeof(uintptr_t) == 8, "members stand in slots of eight bytes");

#define SET_ELEMENT_INLINE_MAX 7
#define SET_ELEMENT_INLINE_BIT ((uintptr_t)1 << 63)
#define SET_ELEMENT_LONG 255

struct set_element {
    unsigned char len;
    char bytes[];
};

/* The slot's content for up to seven bytes; 0 for more. */
static inline uintptr_t set_element_word(struct slice s)
{
    uint64_t payload = 0;
    if (s.len > SET_ELEMENT_INLINE_MAX) {
        return 0;
    }
    if (s.len >= 4) {
        uint64_t high = hash_load32(s.ptr + s.len - 4);
        payload = hash_load32(s.ptr) | high << (8 * (s.len - 4));
    } else if (s.len > 0) {
        payload = (uint64_t)(unsigned char)s.ptr[0] |
                  (uint64_t)(unsigned char)s.ptr[s.len / 2] << (8 * (s.len / 2)) |
                  (uint64_t)(unsigned char)s.ptr[s.len - 1] << (8 * (s.len - 1));
    }
    return SET_ELEMENT_INLINE_BIT | (uintptr_t)s.len << 60 | payload << 4;
}

static inline bool set_element_is_inline(const void *entry)
{
    return ((uintptr_t)entry & SET_ELEMENT_INLINE_BIT) != 0;
}

static inline size_t set_element_block_bytes(size_t len)
{
    return 1 + len + (len >= SET_ELEMENT_LONG ? sizeof(uint64_t) : 0);
}

/* What a slot holds for the member `s`. */
static inline uintptr_t set_element_create(struct slice s)
{
    uintptr_t word = set_element_word(s);
    if (word != 0) {
        return word;
    }
    /* More than eight bytes: blocks are 16-byte aligned, as the table wants them. */
    struct set_element *e = mem_alloc(set_element_block_bytes(s.len));
    char *at = e->bytes;
    assert(((uintptr_t)e & 15) == 0 && !set_element_is_inline(e));
    e->len = (unsigned char)(s.len < SET_ELEMENT_LONG ? s.len : SET_ELEMENT_LONG);
    if (unlikely(e->len == SET_ELEMENT_LONG)) {
        uint64_t len = s.len;
        memcpy(at, &len, sizeof(len));
        at += sizeof(len);
    }
    memcpy(at, s.ptr, s.len);
    return (uintptr_t)e;
}

/* The member's bytes: in its block, or copied to `text` (8 bytes). */
static inline struct slice set_element_bytes(const void *entry, char *text)
{
    if (set_element_is_inline(entry)) {
        uint64_t payload = (uintptr_t)entry >> 4;
        memcpy(text, &payload, sizeof(payload));
        return slice_of(text, ((uintptr_t)entry >> 60) & SET_ELEMENT_INLINE_MAX);
    }
    const struct set_element *e = entry;
    if (unlikely(e->len == SET_ELEMENT_LONG)) {
        uint64_t len;
        memcpy(&len, e->bytes, sizeof(len));
        return slice_of(e->bytes + sizeof(len), len);
    }
    return slice_of(e->bytes, e->len);
}

static inline void set_element_destroy(void *entry)
{
    if (!set_element_is_inline(entry)) {
        mem_free_sized(entry, set_element_block_bytes(set_element_bytes(entry, NULL).len));
    }
}

#endif
