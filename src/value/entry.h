/* An entry: a key with its value in one allocation.
 *
 *   bytes  field
 *   4      word: access clock in bits 0-23, type in bits 24-27, what the clock counts (LRU/LFU) in
 *          bit 28, the low three bits of the encoding in bits 29-31 (its fourth follows from the
 *          type)
 *   1      flags (enum entry_flag)
 *   1      key length, when not ENTRY_LONG_KEY
 *   2      length of an embedded value, or room for the payload of a collection
 *   8      expiry in Unix milliseconds, when ENTRY_EXPIRES
 *   8      pointer or integer, when ENTRY_EXTERNAL; with ENTRY_MEMBER_TTL the pointer stands at the
 *          start of a struct that hangs in between (member_ttl.h)
 *   16     replication stamp, when ENTRY_STAMPED: only on active replicas. Bytes that go with the
 *          key through all that happens to its value; who writes them knows what they mean
 *          (active/origins.h)
 *   4      key length, when ENTRY_LONG_KEY
 *   n      key bytes
 *   m      when not ENTRY_EXTERNAL: the bytes of an ENCODING_EMBEDDED string, or the payload of a
 *          small collection (entry_create_payload)
 *
 * This is in value/ and not in keyspace/ because where a string's bytes stand is its encoding.
 * State: keyspace; the access clock alone is atomic (readers under shared mode store it, relaxed).
 * An entry's block is allocated in steps of the allocator's size classes, so that an overwrite
 * within the class happens in place. */
#ifndef VALUE_ENTRY_H
#define VALUE_ENTRY_H

#include "base/compiler.h"
#include "base/slice.h"
#include "value/blob.h"
#include "value/type.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum entry_flag {
    ENTRY_EXPIRES = 1 << 0,
    ENTRY_EXTERNAL = 1 << 1, /* an 8-byte pointer or integer instead of embedded bytes */
    ENTRY_STAMPED = 1 << 2,
    ENTRY_LONG_KEY = 1 << 3,
    ENTRY_RAW = 1 << 4,        /* a string that was changed in place: OBJECT ENCODING says raw */
    ENTRY_MEMBER_TTL = 1 << 5, /* a collection with deadlines of members: member_ttl.h */
};

enum encoding {
    ENCODING_EMBEDDED = 0, /* string bytes in the entry */
    ENCODING_INTEGER = 1,  /* string that is the canonical text of an int64 */
    ENCODING_BLOB = 2,     /* string bytes in a blob */
    /* Collections: what the pointer of an ENTRY_EXTERNAL entry points to, or its payload holds. */
    ENCODING_LISTPACK = 3,
    ENCODING_INTSET = 4,
    ENCODING_TABLE = 5,    /* OBJECT ENCODING says hashtable */
    ENCODING_SKIPLIST = 6, /* with a table */
    ENCODING_QUICKLIST = 7,
    ENCODING_STREAM = 8,
    ENCODING_NESTED = 9,
    ENCODING_JOB = 10,
    ENCODING_MODULE = 11,
};

struct entry {
    _Atomic uint32_t word;
    uint8_t flags;
    uint8_t short_key_len;
    uint16_t embedded_len;
    char body[];
};

static_assert(sizeof(struct entry) == 8, "the head of an entry is 8 bytes");

/* Longest value that is embedded, whatever the length of the key before it. */
#define ENTRY_EMBEDDED_MAX 1024

/* The access clock: 24 bits, and one that says what they count. */
#define ENTRY_CLOCK_MASK 0xffffffu
#define ENTRY_CLOCK_KIND (1u << 28)
#define ENTRY_CLOCK_ALL (ENTRY_CLOCK_MASK | ENTRY_CLOCK_KIND)
/* Types from this one on have one encoding each, which begin here. */
#define ENTRY_LONE_TYPE VALUE_STREAM
#define ENTRY_LONE_ENCODING ENCODING_STREAM
static_assert((int)ENTRY_LONE_ENCODING == 8 && VALUE_NESTED > ENTRY_LONE_TYPE &&
                  VALUE_CRON > ENTRY_LONE_TYPE && VALUE_MODULE > ENTRY_LONE_TYPE,
              "the encoding's fourth bit");

static inline uint32_t entry_word(const struct entry *e)
{
    return atomic_load_explicit(&((struct entry *)e)->word, memory_order_relaxed);
}
static inline enum value_type entry_type(const struct entry *e)
{
    return (enum value_type)((entry_word(e) >> 24) & 15);
}
static inline enum encoding entry_encoding(const struct entry *e)
{
    uint32_t word = entry_word(e);
    return (enum encoding)(word >> 29 | (((word >> 24) & 15) >= ENTRY_LONE_TYPE) << 3);
}
/* The access clock (ENTRY_CLOCK_ALL); keyspace/access.h gives it its meaning. */
static inline uint32_t entry_clock(const struct entry *e)
{
    return entry_word(e) & ENTRY_CLOCK_ALL;
}
/* Sets the access clock. Shared mode suffices: only these bits change under it, and a lost update
 * between two readers loses nothing but one of two near-equal times. */
static inline void entry_set_clock(struct entry *e, uint32_t clock)
{
    uint32_t word = entry_word(e);
    if ((word & ENTRY_CLOCK_ALL) != clock) {
        atomic_store_explicit(&e->word, (word & ~ENTRY_CLOCK_ALL) | clock, memory_order_relaxed);
    }
}

/* Offset in body[] of the key length field (or of the key, without one). */
static inline size_t entry_fixed_bytes(uint8_t flags)
{
    return (size_t)((flags & ENTRY_EXPIRES) << 3) + ((flags & ENTRY_EXTERNAL) << 2) +
           ((flags & ENTRY_STAMPED) << 2);
}

#define ENTRY_STAMP_BYTES 16
/* The replication stamp, ENTRY_STAMP_BYTES without alignment; NULL when the entry has none. */
static inline const void *entry_stamp(const struct entry *e)
{
    uint8_t before = e->flags & (ENTRY_EXPIRES | ENTRY_EXTERNAL);
    return e->flags & ENTRY_STAMPED ? e->body + entry_fixed_bytes(before) : NULL;
}

/* Another stamp, where there is one. Exclusive mode. */
static inline void entry_set_stamp(struct entry *e, const void *stamp)
{
    uint8_t before = e->flags & (ENTRY_EXPIRES | ENTRY_EXTERNAL);
    assert(e->flags & ENTRY_STAMPED);
    memcpy(e->body + entry_fixed_bytes(before), stamp, ENTRY_STAMP_BYTES);
}

/* The stamp, where there is one, becomes all 0. Exclusive mode. */
static inline void entry_void_stamp(struct entry *e)
{
    if (e->flags & ENTRY_STAMPED) {
        uint8_t before = e->flags & (ENTRY_EXPIRES | ENTRY_EXTERNAL);
        memset(e->body + entry_fixed_bytes(before), 0, ENTRY_STAMP_BYTES);
    }
}

/* When the key was last written, by its stamp, whose first 8 bytes are a clock with the
 * milliseconds since 1970 in the upper 48 bits; -1 when nobody knows. */
static inline int64_t entry_written_ms(const struct entry *e)
{
    uint64_t clock = 0;
    const void *stamp = entry_stamp(e);
    if (stamp) {
        memcpy(&clock, stamp, sizeof(clock));
    }
    return clock ? (int64_t)(clock >> 16) : -1;
}

static inline struct slice entry_key(const struct entry *e)
{
    if (likely(!(e->flags & (ENTRY_EXPIRES | ENTRY_EXTERNAL | ENTRY_STAMPED | ENTRY_LONG_KEY)))) {
        return slice_of(e->body, e->short_key_len);
    }
    const char *at = e->body + entry_fixed_bytes(e->flags);
    if (unlikely(e->flags & ENTRY_LONG_KEY)) {
        uint32_t len;
        memcpy(&len, at, sizeof(len));
        return slice_of(at + sizeof(len), len);
    }
    return slice_of(at, e->short_key_len);
}

/* Expiry in Unix milliseconds, or ENTRY_NO_EXPIRY, the one time that nobody can ask for: those
 * before 1970 are over for all, while the last of all is one that Redis keeps, too. */
#define ENTRY_NO_EXPIRY INT64_MIN
static inline int64_t entry_expiry_ms(const struct entry *e)
{
    int64_t at = ENTRY_NO_EXPIRY;
    if (e->flags & ENTRY_EXPIRES) {
        memcpy(&at, e->body, sizeof(at));
    }
    return at;
}

/* True when the time `at_ms`, which can be ENTRY_NO_EXPIRY, has come. */
static inline bool entry_is_over(int64_t at_ms, int64_t now_ms)
{
    return at_ms <= now_ms && at_ms != ENTRY_NO_EXPIRY;
}

/* The pointer of an ENTRY_EXTERNAL entry. */
static inline void *entry_pointer(const struct entry *e)
{
    void *p;
    assert(e->flags & ENTRY_EXTERNAL);
    memcpy(&p, e->body + ((e->flags & ENTRY_EXPIRES) << 3), sizeof(p));
    if (unlikely(e->flags & ENTRY_MEMBER_TTL)) {
        memcpy(&p, p, sizeof(p));
    }
    return p;
}
/* The integer of an ENCODING_INTEGER entry. */
static inline int64_t entry_integer(const struct entry *e)
{
    int64_t value;
    memcpy(&value, e->body + ((e->flags & ENTRY_EXPIRES) << 3), sizeof(value));
    return value;
}

/* A new entry whose value is an 8-byte pointer (owned from now on) or integer. */
struct entry *entry_create_pointer(struct slice key, enum value_type type, enum encoding encoding,
                                   void *pointer_take, int64_t expiry_ms);
struct entry *entry_create_integer(struct slice key, int64_t value, int64_t expiry_ms);
/* A new string entry; the value is copied: embedded up to ENTRY_EMBEDDED_MAX, else in a blob. Never
 * encodes as integer (string.h decides that). */
struct entry *entry_create_string(struct slice key, struct slice value, int64_t expiry_ms);
/* Replaces the pointer or integer in place. */
void entry_set_pointer(struct entry *e, void *pointer_take);
void entry_set_integer(struct entry *e, int64_t value);
/* Sets the encoding of a collection (exclusive mode). */
void entry_set_encoding(struct entry *e, enum encoding encoding);

/* ---- payloads: the packed bytes of a small collection in the entry's own block ---- */

/* True when `bytes` cost no more inside the entry than in a block of their own. */
bool entry_embeds(struct slice key, int64_t expiry_ms, size_t bytes);
/* A new entry with room for a payload of at least `bytes` (at most ENTRY_EMBEDDED_MAX), not
 * initialised. */
struct entry *entry_create_payload(struct slice key, enum value_type type, enum encoding encoding,
                                   size_t bytes, int64_t expiry_ms);
/* The payload of an entry that is not ENTRY_EXTERNAL, and the room it has. */
static inline char *entry_payload(const struct entry *e)
{
    assert(!(e->flags & ENTRY_EXTERNAL));
    struct slice key = entry_key(e);
    return (char *)key.ptr + key.len;
}
static inline size_t entry_payload_room(const struct entry *e)
{
    assert(!(e->flags & ENTRY_EXTERNAL));
    return e->embedded_len;
}
/* A block like `e` with a payload of at least `bytes`, as much of the old one in it as fits; where
 * `e` had a pointer, that is the caller's from now on. `e`'s block is freed, and the caller puts
 * the result where `e` was. */
struct entry *entry_with_room(struct entry *e, size_t bytes);
/* The same with a pointer instead of a payload; in place where there was a pointer, which is the
 * caller's then. */
struct entry *entry_with_pointer(struct entry *e, enum encoding encoding, void *pointer_take);
/* The same with its payload in a block of its own, to which it points: what has members with
 * deadlines must (member_ttl.h). In place where there is a pointer already. */
struct entry *entry_with_block(struct entry *e);

/* Overwrites an embedded value in place if the block has room and the shape fits; false otherwise.
 */
bool entry_overwrite_embedded(struct entry *e, struct slice value);
/* A block like `e` under another key and/or expiry; the value moves over (what hangs off is not
 * copied), and `e`'s block is freed. The caller puts the result where `e` was. With the expiry's
 * presence unchanged and no new key it works in place and returns `e`. */
struct entry *entry_with_expiry(struct entry *e, int64_t expiry_ms);
struct entry *entry_with_key(struct entry *e, struct slice key);
/* The same with another replication stamp (ENTRY_STAMP_BYTES; NULL: without one). In place where
 * there is one already. */
struct entry *entry_with_stamp(struct entry *e, const void *stamp);
/* A deep copy of `e` under `key` with `expiry_ms`, without a replication stamp. Not of a module's
 * value (module.h). */
struct entry *entry_copy(const struct entry *e, struct slice key, int64_t expiry_ms);
/* Frees the entry and all that hangs off it. Nulls the caller's pointer. The entry is unlinked: no
 * lock. */
void entry_destroy(struct entry **e);
/* How much work freeing it is, in allocations; decides about lazy freeing. */
size_t entry_free_effort(const struct entry *e);
/* Bytes of the entry's own block. */
size_t entry_block_bytes(const struct entry *e);
/* Bytes of the entry and what hangs off it, looking at `samples` elements (0 = all). */
size_t entry_memory_bytes(const struct entry *e, size_t samples);

#endif
