/* See table.h for the shape and the invariants. */
#include "ds/table.h"

#include "base/mem.h"
#include "base/rand.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct table_bucket) == CACHE_LINE_BYTES, "a bucket is one cache line");

/* A segment splits (or the only one doubles) above this mean load of its buckets, in 1/32 slots a
 * bucket: 5.5 of 7. Poisson(5.5) leaves 19 % of the buckets with a chain just before a split, 2.7 %
 * right after it. */
#define SPLIT_LOAD_32NDS 176
/* Buddies merge (the only segment halves) when together they would stay below this: 2 of 7, far
 * enough from the split that no sequence of insertions and removals flips to and fro. */
#define MERGE_LOAD_32NDS 64
/* The directory's limit: cursors have 48 bits, eight of them name a bucket of a segment. */
#define MAX_DEPTH 40
/* The directory doubles only while it has this many entries for each of its rows then (16 bytes
 * each). With hashes that differ the deepest segment is hardly deeper than the mean, which makes
 * 350 a row and more; hashes that agree in their high bits would double the directory with every
 * insertion. */
#define ENTRIES_A_ROW_MIN 64

#define PRESENCE_SHIFT 56

static inline unsigned presence(uint64_t meta)
{
    return (unsigned)(meta >> PRESENCE_SHIFT) & 0x7f;
}

/* Slots that may hold entries: the last one holds the chain pointer where there is a chain. */
static inline unsigned entry_slots(uint64_t meta)
{
    return meta & TABLE_CHAIN_BIT ? TABLE_BUCKET_SLOTS - 1 : TABLE_BUCKET_SLOTS;
}

static inline struct table_bucket *chain_of(const struct table_bucket *b)
{
    return b->meta & TABLE_CHAIN_BIT ? (struct table_bucket *)b->slot[TABLE_BUCKET_SLOTS - 1]
                                     : NULL;
}

/* Peekers read metadata and slots meanwhile. */
static inline void set_meta(struct table_bucket *b, uint64_t meta)
{
    __atomic_store_n(&b->meta, meta, __ATOMIC_RELAXED);
}

static void put_slot(struct table_bucket *b, unsigned i, uint64_t hash, uintptr_t tagged)
{
    uint64_t cleared = b->meta & ~((uint64_t)0xff << (8 * i));
    table_set_slot(&b->slot[i], tagged);
    set_meta(b, cleared | ((hash & 0xff) << (8 * i)) | ((uint64_t)1 << (PRESENCE_SHIFT + i)));
}

static void clear_slot(struct table_bucket *b, unsigned i)
{
    set_meta(b, b->meta & ~((uint64_t)1 << (PRESENCE_SHIFT + i)));
    table_set_slot(&b->slot[i], 0);
}

static struct table_bucket *create_buckets(struct table *t, unsigned bits)
{
    size_t bytes = sizeof(struct table_bucket) << bits;
    struct table_bucket *buckets = mem_alloc_aligned(CACHE_LINE_BYTES, bytes);
    memset(buckets, 0, bytes);
    t->bucket_count += (uint64_t)1 << bits;
    return buckets;
}

/* Frees a block, later if peekers may be reading it. */
static void retire(struct table *t, void *block)
{
    if (t->retire && block) {
        t->retire(block);
    } else {
        mem_free(block);
    }
}

static void free_chain(struct table *t, struct table_bucket *b)
{
    while (b) {
        struct table_bucket *next = chain_of(b);
        mem_free(b);
        t->bucket_count--;
        b = next;
    }
}

/* Frees a segment's buckets and their chains; the entries live on. */
static void free_buckets(struct table *t, struct table_bucket *buckets, unsigned bits)
{
    for (size_t i = 0; i < (size_t)1 << bits; i++) {
        free_chain(t, chain_of(&buckets[i]));
    }
    t->bucket_count -= (uint64_t)1 << bits;
    retire(t, buckets);
}

/* ---- the map for peekers ---- */

static uint64_t map_word(const struct table_row *row)
{
    uint64_t address = (uintptr_t)row->buckets;
    assert((address & ~TABLE_MAP_BUCKETS_MASK) == 0 && row->depth <= MAX_DEPTH);
    return address | row->depth | (uint64_t)row->bucket_bits << TABLE_MAP_BITS_SHIFT;
}

/* Tells peekers that rows [first, first + span) have changed. Release: the buckets were filled
 * before. */
static void update_map(struct table *t, uint64_t first, uint64_t span)
{
    for (uint64_t i = first; t->map && i < first + span; i++) {
        atomic_store_explicit(&t->map[i], map_word(&t->rows[i]), memory_order_release);
    }
}

static void tell_map(struct table *t)
{
    if (t->published) {
        atomic_store_explicit(t->published, t->map ? (uintptr_t)t->map | t->depth : 0,
                              memory_order_release);
    }
}

/* Makes a map for the directory as it is now, and retires the one before. */
static void renew_map(struct table *t)
{
    _Atomic uint64_t *before = t->map;
    if (!t->retire) {
        return;
    }
    t->map = mem_alloc_aligned(CACHE_LINE_BYTES, sizeof(*t->map) << t->depth);
    update_map(t, 0, (uint64_t)1 << t->depth);
    tell_map(t);
    retire(t, before);
}

void table_init(struct table *t, table_hash_fn hash)
{
    *t = (struct table){.hash = hash, .deepest = 1};
    t->rows = mem_alloc(sizeof(*t->rows));
    t->rows[0] = (struct table_row){.buckets = create_buckets(t, 0)};
}

void table_init_peekable(struct table *t, table_hash_fn hash, _Atomic uintptr_t *published,
                         table_retire_fn retire_block)
{
    table_init(t, hash);
    t->published = published;
    t->retire = retire_block;
    renew_map(t);
}

void table_publish(struct table *t, _Atomic uintptr_t *published)
{
    if (!published && t->published) {
        atomic_store_explicit(t->published, 0, memory_order_release);
    }
    t->published = published;
    tell_map(t);
}

/* Calls `visit` for each slot of a bucket and its chain. */
static void visit_chain(struct table_bucket *b, table_visit_fn visit, void *context)
{
    for (; b; b = chain_of(b)) {
        for (unsigned present = presence(b->meta); present; present &= present - 1) {
            visit(&b->slot[__builtin_ctz(present)], context);
        }
    }
}

/* Rows of the directory that share row `i`'s segment. */
static inline uint64_t row_span(const struct table *t, const struct table_row *row)
{
    return (uint64_t)1 << (t->depth - row->depth);
}

struct release_context {
    void (*release)(void *entry, void *context);
    void *context;
};

static void release_slot(uintptr_t *slot, void *context)
{
    struct release_context *rc = context;
    rc->release(table_entry(*slot), rc->context);
}

static void drop_spare(struct table *t)
{
    mem_free(t->spare);
    t->spare = NULL;
}

void table_deinit(struct table *t, void (*release)(void *entry, void *context), void *context)
{
    struct release_context rc = {release, context};
    for (uint64_t i = 0; i < (uint64_t)1 << t->depth;) {
        struct table_row row = t->rows[i];
        for (size_t b = 0; release && b < (size_t)1 << row.bucket_bits; b++) {
            visit_chain(&row.buckets[b], release_slot, &rc);
        }
        i += row_span(t, &row);
        free_buckets(t, row.buckets, row.bucket_bits);
    }
    table_publish(t, NULL);
    retire(t, t->map);
    drop_spare(t);
    mem_free(t->rows);
    *t = (struct table){.hash = t->hash};
}

/* ---- growing ---- */

static uintptr_t *put_in_chain(struct table *t, struct table_bucket *b, uint64_t hash,
                               uintptr_t tagged)
{
    for (;;) {
        unsigned slots = entry_slots(b->meta);
        unsigned free_slots = ~presence(b->meta) & ((1u << slots) - 1);
        if (free_slots) {
            unsigned i = (unsigned)__builtin_ctz(free_slots);
            put_slot(b, i, hash, tagged);
            return &b->slot[i];
        }
        struct table_bucket *next = chain_of(b);
        if (!next) {
            /* The last slot's entry moves into the new bucket; its place becomes the chain pointer.
             */
            next = create_buckets(t, 0);
            unsigned last = TABLE_BUCKET_SLOTS - 1;
            put_slot(next, 0, b->meta >> (8 * last), b->slot[last]);
            clear_slot(b, last);
            table_set_slot(&b->slot[last], (uintptr_t)next);
            set_meta(b, b->meta | TABLE_CHAIN_BIT);
        }
        b = next;
    }
}

/* The bucket of a segment of this shape for `hash`. */
static inline struct table_bucket *bucket_in(struct table_bucket *buckets, unsigned depth,
                                             unsigned bits, uint64_t hash)
{
    return &buckets[((hash << depth) >> 1) >> (63 - bits)];
}

static void prefetch_chain(const struct table_bucket *b)
{
    for (; b; b = chain_of(b)) {
        for (unsigned present = presence(b->meta); present; present &= present - 1) {
            __builtin_prefetch(table_entry(b->slot[__builtin_ctz(present)]));
        }
    }
}

struct move_context {
    struct table *table;
    struct table_bucket *half[2]; /* targets; equal when the segment only doubles */
    unsigned depth, bits;         /* of the targets; `depth` bits before select the half */
    uint32_t moved[2];
};

static void move_slot(uintptr_t *slot, void *context)
{
    struct move_context *m = context;
    uint64_t hash = m->table->hash(table_entry(*slot));
    unsigned half = m->depth ? (unsigned)(hash >> (64 - m->depth)) & 1 : 0;
    put_in_chain(m->table, bucket_in(m->half[half], m->depth, m->bits, hash), hash, *slot);
    m->moved[half]++;
}

/* How many buckets ahead entries are prefetched while a segment moves: their keys are hashed again.
 */
#define MOVE_AHEAD 4

static void move_buckets(struct move_context *m, struct table_bucket *from, unsigned bits)
{
    size_t count = (size_t)1 << bits;
    for (size_t i = 0; i < count; i++) {
        if (i + MOVE_AHEAD < count) {
            prefetch_chain(&from[i + MOVE_AHEAD]);
        }
        visit_chain(&from[i], move_slot, m);
    }
    free_buckets(m->table, from, bits);
}

/* Doubles or halves the only segment. */
static void resize_only_segment(struct table *t, unsigned bits)
{
    struct table_row *row = &t->rows[0];
    assert(t->depth == 0 && bits <= TABLE_SEGMENT_BITS);
    struct table_bucket *from = row->buckets;
    unsigned from_bits = row->bucket_bits;
    row->buckets = create_buckets(t, bits);
    row->bucket_bits = (uint8_t)bits;
    struct move_context m = {t, {row->buckets, row->buckets}, 0, bits, {0, 0}};
    move_buckets(&m, from, from_bits);
    update_map(t, 0, 1);
    assert(m.moved[0] == row->count);
}

/* A directory of at least this size is worth a spare block: 16 page faults. */
#define SPARE_MIN_BYTES ((size_t)64 * 1024)

static size_t next_directory_bytes(const struct table *t)
{
    return 2 * (sizeof(*t->rows) << t->depth);
}

size_t table_spare_wanted(const struct table *t)
{
    size_t bytes = next_directory_bytes(t);
    return t->spare || bytes < SPARE_MIN_BYTES ? 0 : bytes;
}

void table_give_spare(struct table *t, void *spare_take, size_t bytes)
{
    if (t->spare || bytes != next_directory_bytes(t)) {
        mem_free(spare_take);
    } else {
        t->spare = spare_take;
    }
}

/* False without memory for it: then chains grow instead, until a later insertion finds some. */
static bool double_directory(struct table *t)
{
    uint64_t rows = (uint64_t)1 << t->depth;
    struct table_row *doubled = t->spare ? t->spare : mem_try_alloc(next_directory_bytes(t));
    if (!doubled) {
        return false;
    }
    t->spare = NULL;
    for (uint64_t i = 0; i < rows; i++) {
        doubled[2 * i + 1] = doubled[2 * i] = t->rows[i];
    }
    mem_free(t->rows);
    t->rows = doubled;
    t->depth++;
    t->deepest = 0;
    renew_map(t);
    return true;
}

/* First row of the segment that row `i` belongs to. */
static inline uint64_t first_row(const struct table *t, uint64_t i)
{
    return i & ~(row_span(t, &t->rows[i]) - 1);
}

static void set_rows(struct table *t, uint64_t first, uint64_t span, struct table_row row)
{
    for (uint64_t i = 0; i < span; i++) {
        t->rows[first + i] = row;
    }
    update_map(t, first, span);
}

static void split_segment(struct table *t, uint64_t hash)
{
    uint64_t i = (hash >> 1) >> (63 - t->depth);
    if (t->rows[i].depth == t->depth) {
        if (!double_directory(t)) {
            return;
        }
        i *= 2;
    }
    i = first_row(t, i);
    struct table_row old = t->rows[i];
    unsigned depth = old.depth + 1u;
    uint64_t span = row_span(t, &old) / 2;
    struct move_context m = {
        t,
        {create_buckets(t, TABLE_SEGMENT_BITS), create_buckets(t, TABLE_SEGMENT_BITS)},
        depth,
        TABLE_SEGMENT_BITS,
        {0, 0}};
    move_buckets(&m, old.buckets, old.bucket_bits);
    for (unsigned half = 0; half < 2; half++) {
        set_rows(t, i + half * span, span,
                 (struct table_row){.buckets = m.half[half],
                                    .count = m.moved[half],
                                    .depth = (uint8_t)depth,
                                    .bucket_bits = TABLE_SEGMENT_BITS});
    }
    t->deepest += depth == t->depth ? 2 : 0;
    assert(m.moved[0] + m.moved[1] == old.count);
}

static inline struct table_row *counting_row(struct table *t, uint64_t hash)
{
    return &t->rows[first_row(t, (hash >> 1) >> (63 - t->depth))];
}

static bool may_split(const struct table *t, const struct table_row *row)
{
    return row->depth < t->depth ||
           (t->depth < MAX_DEPTH && t->count >> (t->depth + 1u) >= ENTRIES_A_ROW_MIN);
}

uintptr_t *table_insert(struct table *t, uint64_t hash, uintptr_t tagged_entry)
{
    assert(table_entry(tagged_entry) != NULL);
    struct table_row *row = counting_row(t, hash);
    if (unlikely(row->count >= ((uint64_t)SPLIT_LOAD_32NDS << row->bucket_bits) / 32)) {
        if (row->bucket_bits < TABLE_SEGMENT_BITS) {
            resize_only_segment(t, row->bucket_bits + 1u);
        } else if (may_split(t, row)) {
            split_segment(t, hash);
        }
        row = counting_row(t, hash);
    }
    row->count++;
    t->count++;
    return put_in_chain(t, table_bucket_of(t, hash), hash, tagged_entry);
}

/* The mean load to which segments are laid out ahead, in percent of that at which they split: a
 * segment has 1,400 entries then, whose spread (37) makes splits seldom. */
#define RESERVE_PERCENT 90
#define RESERVE_MAX_DEPTH 30

void table_reserve(struct table *t, uint64_t count)
{
    uint64_t fit = ((uint64_t)SPLIT_LOAD_32NDS << TABLE_SEGMENT_BITS) / 32 * RESERVE_PERCENT / 100;
    unsigned depth = 0;
    assert(t->count == 0);
    while (depth < RESERVE_MAX_DEPTH && count >> depth > fit) {
        depth++;
    }
    if (depth == 0 || t->depth > 0) {
        return;
    }
    free_buckets(t, t->rows[0].buckets, t->rows[0].bucket_bits);
    drop_spare(t);
    t->rows = mem_realloc(t->rows, sizeof(*t->rows) << depth);
    for (uint64_t i = 0; i < (uint64_t)1 << depth; i++) {
        t->rows[i] = (struct table_row){.buckets = create_buckets(t, TABLE_SEGMENT_BITS),
                                        .depth = (uint8_t)depth,
                                        .bucket_bits = TABLE_SEGMENT_BITS};
    }
    t->depth = (uint8_t)depth;
    t->deepest = 1u << depth;
    renew_map(t);
}

/* ---- shrinking ---- */

static void halve_directory(struct table *t)
{
    uint64_t rows = (uint64_t)1 << (t->depth - 1);
    drop_spare(t);
    t->depth--;
    t->deepest = 0;
    for (uint64_t i = 0; i < rows; i++) {
        /* Two rows of one segment, or (never, deepest was 0) of two. */
        t->rows[i] = t->rows[2 * i];
    }
    for (uint64_t i = 0; i < rows;) {
        t->deepest += t->rows[i].depth == t->depth;
        i += row_span(t, &t->rows[i]);
    }
    t->rows = mem_realloc(t->rows, rows * sizeof(*t->rows));
    renew_map(t);
}

/* Merges the segment of `hash` with its buddy when both are of one depth and light. */
static void merge_segment(struct table *t, uint64_t hash)
{
    uint64_t i = first_row(t, (hash >> 1) >> (63 - t->depth));
    struct table_row one = t->rows[i];
    uint64_t span = row_span(t, &one);
    uint64_t buddy_first = i ^ span;
    struct table_row buddy = t->rows[buddy_first];
    uint64_t limit = ((uint64_t)MERGE_LOAD_32NDS << TABLE_SEGMENT_BITS) / 32;
    if (buddy.depth != one.depth || (uint64_t)one.count + buddy.count >= limit) {
        return;
    }
    unsigned depth = one.depth - 1u;
    struct table_bucket *joint = create_buckets(t, TABLE_SEGMENT_BITS);
    struct move_context m = {t, {joint, joint}, depth, TABLE_SEGMENT_BITS, {0, 0}};
    move_buckets(&m, one.buckets, one.bucket_bits);
    move_buckets(&m, buddy.buckets, buddy.bucket_bits);
    set_rows(t, i < buddy_first ? i : buddy_first, 2 * span,
             (struct table_row){.buckets = joint,
                                .count = one.count + buddy.count,
                                .depth = (uint8_t)depth,
                                .bucket_bits = TABLE_SEGMENT_BITS});
    if (one.depth == t->depth) {
        t->deepest -= 2;
        if (t->deepest == 0) {
            halve_directory(t);
        }
    }
}

/* Unlinks an empty chained bucket; `b` lies in the chain of `hash`. */
static void unlink_if_empty(struct table *t, uint64_t hash, struct table_bucket *b)
{
    struct table_bucket *before = table_bucket_of(t, hash);
    if (b == before || presence(b->meta)) {
        return;
    }
    while (chain_of(before) != b) {
        before = chain_of(before);
        assert(before);
    }
    unsigned last = TABLE_BUCKET_SLOTS - 1;
    table_set_slot(&before->slot[last], b->slot[last]);
    if (!(b->meta & TABLE_CHAIN_BIT)) {
        set_meta(before, before->meta & ~TABLE_CHAIN_BIT);
        table_set_slot(&before->slot[last], 0);
    }
    mem_free(b);
    t->bucket_count--;
}

uintptr_t table_remove(struct table *t, uint64_t hash, uintptr_t *slot)
{
    struct table_bucket *b =
        (struct table_bucket *)((uintptr_t)slot & ~(uintptr_t)(CACHE_LINE_BYTES - 1));
    unsigned i = (unsigned)(slot - b->slot);
    assert(i < entry_slots(b->meta) && presence(b->meta) & (1u << i));
    uintptr_t tagged = *slot;
    clear_slot(b, i);
    unlink_if_empty(t, hash, b);
    struct table_row *row = counting_row(t, hash);
    assert(row->count > 0);
    row->count--;
    t->count--;
    if (row->depth > 0) {
        if (unlikely(row->count < ((uint64_t)MERGE_LOAD_32NDS << TABLE_SEGMENT_BITS) / 64)) {
            merge_segment(t, hash);
        }
    } else if (unlikely(row->bucket_bits > 0 &&
                        row->count < ((uint64_t)MERGE_LOAD_32NDS << (row->bucket_bits - 1)) / 32)) {
        resize_only_segment(t, row->bucket_bits - 1u);
    }
    return tagged;
}

/* ---- walking ---- */

#define CURSOR_SHIFT 16

/* Hashes that a bucket of the row stands for: its range is [hash & -span, + span). 0 stands for all
 * 2^64. */
static inline uint64_t bucket_span(const struct table_row *row)
{
    unsigned bits = row->depth + row->bucket_bits;
    return bits ? (uint64_t)1 << (64 - bits) : 0;
}

static inline uint64_t span_start(uint64_t hash, uint64_t span)
{
    return hash & ~(span - 1);
}

struct tail_context {
    const struct table *table;
    uint64_t from; /* hashes below were visited before the table shrank */
    table_visit_fn visit;
    void *context;
};

static void visit_tail(uintptr_t *slot, void *context)
{
    struct tail_context *tc = context;
    if (tc->table->hash(table_entry(*slot)) >= tc->from) {
        tc->visit(slot, tc->context);
    }
}

uint64_t table_scan(const struct table *t, uint64_t cursor, table_visit_fn visit, void *context)
{
    uint64_t hash = cursor << CURSOR_SHIFT;
    uint64_t span = bucket_span(table_row_of(t, hash));
    uint64_t start = span_start(hash, span), next = start + span;
    if (likely(next != 0)) {
        prefetch_chain(table_bucket_of(t, next));
    }
    if (likely(hash == start)) {
        visit_chain(table_bucket_of(t, hash), visit, context);
    } else {
        /* Two buckets have become one since the cursor was made, which points between them. */
        struct tail_context tc = {t, hash, visit, context};
        visit_chain(table_bucket_of(t, hash), visit_tail, &tc);
    }
    return next >> CURSOR_SHIFT; /* wraps to 0 after the last bucket */
}

static uintptr_t *slot_of_chain(struct table_bucket *b, unsigned index)
{
    for (; b; b = chain_of(b)) {
        for (unsigned present = presence(b->meta); present; present &= present - 1) {
            if (index-- == 0) {
                return &b->slot[__builtin_ctz(present)];
            }
        }
    }
    return NULL;
}

static unsigned chain_len(const struct table_bucket *b)
{
    unsigned len = 0;
    for (; b; b = chain_of(b)) {
        len += (unsigned)__builtin_popcount(presence(b->meta));
    }
    return len;
}

/* A bucket is drawn by its share of the hashes, then a place among as many as the fullest usual
 * bucket has, doubled for each level that the segment lies above the deepest ones (its buckets are
 * drawn so much oftener): places that are empty are drawn again, so that entries of crowded and of
 * lonely buckets are equally likely. Only what a chain holds beyond that many places is drawn a
 * little too seldom. */
#define RANDOM_PLACES 12
/* Levels that count; more only come from hashes that agree in their high bits, and would make the
 * draw long. */
#define RANDOM_LEVELS_MAX 6

/* One draw from the bucket of a random hash: NULL when it hit an empty place. */
static uintptr_t *draw_at(const struct table *t, uint64_t hash)
{
    unsigned levels = (unsigned)t->depth - table_row_of(t, hash)->depth;
    unsigned places = RANDOM_PLACES << (levels < RANDOM_LEVELS_MAX ? levels : RANDOM_LEVELS_MAX);
    struct table_bucket *b = table_bucket_of(t, hash);
    unsigned len = chain_len(b);
    uint64_t place = rand_below(len > places ? len : places);
    return place < len ? slot_of_chain(b, (unsigned)place) : NULL;
}

uintptr_t *table_random(const struct table *t)
{
    uintptr_t *slot = NULL;
    while (t->count > 0 && !slot) {
        slot = draw_at(t, rand_u64());
    }
    return slot;
}

/* Buckets that table_draw asks for together. */
#define DRAW_AHEAD 32

void table_draw(const struct table *t, uintptr_t **slots, unsigned count)
{
    unsigned drawn = 0;
    assert(t->count > 0);
    while (drawn < count) {
        uint64_t hashes[DRAW_AHEAD];
        for (unsigned i = 0; i < DRAW_AHEAD; i++) {
            hashes[i] = rand_u64();
            __builtin_prefetch(table_bucket_of(t, hashes[i]));
        }
        for (unsigned i = 0; i < DRAW_AHEAD && drawn < count; i++) {
            uintptr_t *slot = draw_at(t, hashes[i]);
            if (slot) {
                __builtin_prefetch(table_entry(*slot));
                slots[drawn++] = slot;
            }
        }
    }
}

static unsigned collect_chain(struct table_bucket *b, uintptr_t **slots, unsigned max)
{
    unsigned found = 0;
    for (; b; b = chain_of(b)) {
        for (unsigned present = presence(b->meta); present && found < max; present &= present - 1) {
            slots[found++] = &b->slot[__builtin_ctz(present)];
        }
    }
    return found;
}

unsigned table_sample(const struct table *t, uintptr_t **slots, unsigned max)
{
    uint64_t hash = rand_u64();
    uint64_t first = span_start(hash, bucket_span(table_row_of(t, hash)));
    unsigned found = 0;
    hash = first;
    for (uint64_t step = 0; step < 10 * (uint64_t)max && found < max; step++) {
        found += collect_chain(table_bucket_of(t, hash), slots + found, max - found);
        hash += bucket_span(table_row_of(t, hash));
        if (hash == first) {
            break;
        }
    }
    return found;
}

size_t table_memory_bytes(const struct table *t)
{
    return t->bucket_count * sizeof(struct table_bucket) + (sizeof(struct table_row) << t->depth) +
           (t->spare ? next_directory_bytes(t) : 0) + (t->map ? sizeof(*t->map) << t->depth : 0);
}

/* ---- checking ---- */

static uint64_t check_bucket(const struct table *t, const struct table_row *row, uint64_t first,
                             size_t index)
{
    uint64_t count = 0, links = 0;
    for (const struct table_bucket *b = &row->buckets[index]; b; b = chain_of(b)) {
        assert(links++ == 0 || presence(b->meta) != 0);
        for (unsigned present = presence(b->meta); present; present &= present - 1) {
            unsigned i = (unsigned)__builtin_ctz(present);
            assert(i < entry_slots(b->meta));
            uint64_t hash = t->hash(table_entry(b->slot[i]));
            assert((hash & 0xff) == ((b->meta >> (8 * i)) & 0xff));
            assert(&row->buckets[index] == table_bucket_of(t, hash));
            assert(first == first_row(t, (hash >> 1) >> (63 - t->depth)));
            count++;
        }
    }
    return count;
}

void table_check(const struct table *t)
{
    uint64_t total = 0, deepest = 0;
    for (uint64_t i = 0; i < (uint64_t)1 << t->depth;) {
        const struct table_row *row = &t->rows[i];
        uint64_t in_segment = 0;
        assert(row->depth <= t->depth && i == first_row(t, i));
        for (size_t b = 0; b < (size_t)1 << row->bucket_bits; b++) {
            in_segment += check_bucket(t, row, i, b);
        }
        assert(in_segment == row->count);
        total += in_segment;
        deepest += row->depth == t->depth;
        i += row_span(t, row);
    }
    assert(total == t->count && deepest == t->deepest);
}
