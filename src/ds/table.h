/* The hash table: one for each database, and under large hashes, sets and sorted sets.
 *
 * A bucket is one cache line: eight bytes of metadata and seven slots. Metadata bytes 0-6 are
 * fingerprints (the low eight bits of the hash), byte 7 has a presence bit for each slot and the
 * chain bit; with the chain bit set the seventh slot points to a further bucket. Buckets live in
 * segments of up to 2^8, ordered by the hash's high bits (extendible hashing): a directory of
 * 2^depth rows maps a hash prefix to its segment. A small table has one segment that doubles until
 * it is full size.
 *
 * Invariants: (1) an entry is in the chain of the bucket that its hash's high bits name; (2)
 * walking buckets in directory order is walking hashes in ascending order, whatever was split or
 * merged meanwhile, so a scan cursor is the lower bound of the next bucket's hash range and what is
 * there throughout is visited exactly once; (3) one insertion splits at most one segment, one
 * removal merges at most one pair: bounded steps, never a second table. Hashes that agree in many
 * high bits (the keyed hash makes none) cost time, in long chains, but no memory: the directory's
 * rows are bounded by the number of entries.
 *
 * Peeking: a table may be looked at without its owner's lock, to bring lines towards the cache. For
 * that it publishes a map, one word a row (address of the buckets, depth, bucket bits), at a place
 * of its owner's; buckets and maps that it has done with are retired, not freed, so that who found
 * them may go on reading; and what peekers read is written atomically. What they learn is a guess,
 * good for nothing but prefetching.
 *
 * Slots hold pointers to entries, 16-byte aligned; their four low bits are the owner's tags
 * (TABLE_TAG_MASK). The table owns its memory, not the entries. State: that of its owner (keyspace
 * for databases). */
#ifndef DS_TABLE_H
#define DS_TABLE_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define TABLE_BUCKET_SLOTS 7
#define TABLE_SEGMENT_BITS 8
#define TABLE_TAG_MASK ((uintptr_t)15)

struct table_bucket {
    uint64_t meta;
    uintptr_t slot[TABLE_BUCKET_SLOTS];
} ALIGNED(CACHE_LINE_BYTES);

/* A directory row. Rows that share a segment repeat its fields, except `count`, which only the
 * first one keeps. */
struct table_row {
    struct table_bucket *buckets;
    uint32_t count;      /* entries in the segment */
    uint8_t depth;       /* hash bits that select the segment */
    uint8_t bucket_bits; /* log2 of its buckets */
};

/* The hash of an entry, for splits and merges. */
typedef uint64_t (*table_hash_fn)(const void *entry);
/* True when `entry` has the key. */
typedef bool (*table_match_fn)(const void *entry, const void *key);

/* Takes a block that peekers may still read; frees it with mem_free when they have gone. */
typedef void (*table_retire_fn)(void *block_take);

struct table {
    struct table_row *rows; /* 2^depth */
    uint8_t depth;
    uint32_t deepest; /* segments whose depth is the directory's */
    uint64_t count;
    uint64_t bucket_count; /* chained ones included */
    table_hash_fn hash;
    struct table_row *spare; /* memory for the next directory, or NULL */
    _Atomic uint64_t *map;   /* 2^depth words for peekers; NULL when nobody peeks */
    _Atomic uintptr_t
        *published; /* the owner's place: address of the map, depth in its low six bits */
    table_retire_fn retire;
};

/* An empty table; allocates one bucket. */
void table_init(struct table *t, table_hash_fn hash);
/* The same for a table that is peeked at: `published` is where its map is told (0: nothing there).
 */
void table_init_peekable(struct table *t, table_hash_fn hash, _Atomic uintptr_t *published,
                         table_retire_fn retire);
/* Moves the place where the map is told (the table has moved), or takes the map from there (NULL):
 * peekers find nothing any more. */
void table_publish(struct table *t, _Atomic uintptr_t *published);
/* Frees the table's memory. `release` (may be NULL) gets every entry, tags removed. */
void table_deinit(struct table *t, void (*release)(void *entry, void *context), void *context);

static inline void *table_entry(uintptr_t slot)
{
    return (void *)(slot & ~TABLE_TAG_MASK);
}

static inline const struct table_row *table_row_of(const struct table *t, uint64_t hash)
{
    return &t->rows[(hash >> 1) >> (63 - t->depth)];
}

static inline struct table_bucket *table_bucket_of(const struct table *t, uint64_t hash)
{
    const struct table_row *row = table_row_of(t, hash);
    return &row->buckets[((hash << row->depth) >> 1) >> (63 - row->bucket_bits)];
}

#define TABLE_CHAIN_BIT ((uint64_t)1 << 63)

/* Candidate slots of a bucket: bit i set where slot i is present and its fingerprint equals that of
 * `hash` (and, seldom, in slots above a true match). */
static inline unsigned table_candidates_portable(uint64_t meta, uint64_t hash)
{
    const uint64_t ones = 0x0001010101010101u;
    uint64_t differ = (meta ^ ((hash & 0xff) * ones)) | 0xff00000000000000u;
    uint64_t zero = (((differ - ones) & ~differ) >> 7) & ones;
    uint64_t gathered = (zero * 0x0102040810204080u) >> 56; /* bits 0, 8, ... 48 */
    return (unsigned)(gathered & meta >> 56);
}

/* The same, exact, where all bytes can be compared at once: a third of the instructions. */
static inline unsigned table_candidates(uint64_t meta, uint64_t hash)
{
#ifdef __SSE2__
    __m128i equal = _mm_cmpeq_epi8(_mm_cvtsi64_si128((int64_t)meta), _mm_set1_epi8((char)hash));
    return (unsigned)_mm_movemask_epi8(equal) & (unsigned)(meta >> 56) & 0x7f;
#else
    return table_candidates_portable(meta, hash);
#endif
}

/* ---- peeking: no lock, a published map, see above ---- */

#define TABLE_MAP_DEPTH_MASK ((uint64_t)63)
#define TABLE_MAP_BITS_SHIFT 60
#define TABLE_MAP_BUCKETS_MASK ((((uint64_t)1 << TABLE_MAP_BITS_SHIFT) - 1) & ~TABLE_MAP_DEPTH_MASK)

/* The bucket where `hash` belongs, as far as can be seen; NULL when nothing is published. */
static inline struct table_bucket *table_peek_bucket(_Atomic uintptr_t *published, uint64_t hash)
{
    /* Acquire: pairs with the release of whoever published map and buckets, after filling them. */
    uintptr_t told = atomic_load_explicit(published, memory_order_acquire);
    if (unlikely(!told)) {
        return NULL;
    }
    _Atomic uint64_t *map = (_Atomic uint64_t *)(told & ~(uintptr_t)TABLE_MAP_DEPTH_MASK);
    uint64_t row = atomic_load_explicit(&map[(hash >> 1) >> (63 - (told & TABLE_MAP_DEPTH_MASK))],
                                        memory_order_acquire);
    uint64_t index =
        ((hash << (row & TABLE_MAP_DEPTH_MASK)) >> 1) >> (63 - (row >> TABLE_MAP_BITS_SHIFT));
    return (struct table_bucket *)(uintptr_t)(row & TABLE_MAP_BUCKETS_MASK) + index;
}

/* Brings the candidates' entries of a peeked bucket towards the cache. Reads the bucket, so its
 * line should have come. */
static inline void table_peek_entries(const struct table_bucket *b, uint64_t hash)
{
    unsigned found = table_candidates(__atomic_load_n(&b->meta, __ATOMIC_RELAXED), hash);
    while (found) {
        unsigned i = (unsigned)__builtin_ctz(found);
        const char *entry = table_entry(__atomic_load_n(&b->slot[i], __ATOMIC_RELAXED));
        __builtin_prefetch(entry);
        __builtin_prefetch((const void *)((uintptr_t)entry + CACHE_LINE_BYTES)); /* may be NULL */
        found &= found - 1;
    }
}

/* Stores a slot's pointer and tags: how owners change `*slot` in place. */
static inline void table_set_slot(uintptr_t *slot, uintptr_t tagged)
{
    __atomic_store_n(slot, tagged, __ATOMIC_RELAXED);
}

/* The slot that holds the entry with this hash for which `match` says yes, or NULL. Inlined, so
 * that a constant `match` costs no call. */
static inline uintptr_t *table_find(const struct table *t, uint64_t hash, table_match_fn match,
                                    const void *key)
{
    struct table_bucket *b = table_bucket_of(t, hash);
    for (;;) {
        unsigned found = table_candidates(b->meta, hash);
        while (found) {
            unsigned i = (unsigned)__builtin_ctz(found);
            if (likely(match(table_entry(b->slot[i]), key))) {
                return &b->slot[i];
            }
            found &= found - 1;
        }
        if (likely(!(b->meta & TABLE_CHAIN_BIT))) {
            return NULL;
        }
        b = (struct table_bucket *)b->slot[TABLE_BUCKET_SLOTS - 1];
    }
}

/* Sizes a table that never had an entry for `count` of them at once, so that filling it splits
 * (nearly) nothing. Not bounded in time: about 16 bytes an entry are cleared. */
void table_reserve(struct table *t, uint64_t count);
/* Puts `tagged_entry` in. The caller knows that no equal key is there. Returns its slot. Slots
 * found before are void afterwards (a split may have moved them). */
uintptr_t *table_insert(struct table *t, uint64_t hash, uintptr_t tagged_entry);
/* Takes the entry in `slot` (just found under `hash`) out and returns it with its tags. Slots found
 * before are void afterwards. */
uintptr_t table_remove(struct table *t, uint64_t hash, uintptr_t *slot);

/* Doubling the directory is a copy, but fresh memory costs a page fault for every 4 KiB, which at
 * 16 M entries is most of a millisecond. Whoever has time may prepare it: bytes of a block that the
 * table could use next (0: none, or it is too small to matter), and handing over such a block,
 * allocated by mem_alloc and touched; one that does not fit any more is freed. */
size_t table_spare_wanted(const struct table *t);
void table_give_spare(struct table *t, void *spare_take, size_t bytes);

/* Visits one bucket's entries. May change tags and the pointers in slots (table_set_slot), not the
 * table. */
typedef void (*table_visit_fn)(uintptr_t *slot, void *context);
/* Visits the entries of one bucket from `cursor` on (0 starts) and returns the next cursor, 0 at
 * the end. Cursors have 48 bits, higher ones are ignored. */
uint64_t table_scan(const struct table *t, uint64_t cursor, table_visit_fn visit, void *context);
/* A random slot, every entry about equally likely; NULL when the table is empty. */
uintptr_t *table_random(const struct table *t);
/* Fills `slots` with `count` such draws, each from all entries (the table is not empty). In a third
 * of the time: several draws' buckets, then their entries, are on their way to the cache at once.
 */
void table_draw(const struct table *t, uintptr_t **slots, unsigned count);
/* Collects up to `max` different slots from around a random place (for sampling), looking at no
 * more than ten buckets for each; returns how many. */
unsigned table_sample(const struct table *t, uintptr_t **slots, unsigned max);
/* Bytes of the table's own memory. */
size_t table_memory_bytes(const struct table *t);
/* Aborts when an invariant does not hold (tests, DEBUG). Walks everything. */
void table_check(const struct table *t);

#endif
