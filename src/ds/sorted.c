/* See sorted.h. */
#include "ds/sorted.h"

#include "base/mem.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

struct block {
    uint16_t count;
    uint16_t
        capacity; /* 1, 3, 7 ... SORTED_BLOCK_MAX: with the head powers of two, times a record */
    uint32_t unused[3];
    char records[];
};

static_assert(sizeof(struct block) == 16, "the head of a block is as long as the least record");

#define KEY_BYTES sizeof(struct sorted_key)

/* ---- keys and blocks ---- */

/* As bytes whose memcmp order is the keys' order. */
static struct slice tree_key(struct sorted_key key, char bytes[KEY_BYTES])
{
    uint64_t parts[2] = {htobe64(key.high), htobe64(key.low)};
    memcpy(bytes, parts, KEY_BYTES);
    return slice_of(bytes, KEY_BYTES);
}

static inline int compare(struct sorted_key a, struct sorted_key b)
{
    if (a.high != b.high) {
        return a.high < b.high ? -1 : 1;
    }
    return (a.low > b.low) - (a.low < b.low);
}

static inline char *record_at(const struct sorted *s, const struct block *b, unsigned i)
{
    return (char *)b->records + (size_t)i * s->record_bytes;
}

static inline struct sorted_key key_at(const struct sorted *s, const struct block *b, unsigned i)
{
    struct sorted_key key;
    memcpy(&key, record_at(s, b, i), sizeof(key));
    return key;
}

static inline size_t block_bytes(const struct sorted *s, unsigned capacity)
{
    return sizeof(struct block) + (size_t)capacity * s->record_bytes;
}

/* Gives a block (NULL: a new one) room for `capacity` records. */
static struct block *resize(struct sorted *s, struct block *b, unsigned capacity)
{
    s->bytes -= b ? block_bytes(s, b->capacity) : 0;
    struct block *to = mem_realloc(b, block_bytes(s, capacity));
    to->count = b ? to->count : 0;
    to->capacity = (uint16_t)capacity;
    s->bytes += block_bytes(s, capacity);
    assert(to->count <= to->capacity);
    return to;
}

/* The place of the first record of the block whose key is not less. */
static unsigned rank(const struct sorted *s, const struct block *b, struct sorted_key key)
{
    unsigned low = 0, high = b->count;
    if (high > 0 && compare(key_at(s, b, high - 1), key) < 0) {
        return high;
    }
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (compare(key_at(s, b, middle), key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static inline bool is_at(const struct sorted *s, const struct block *b, unsigned i,
                         struct sorted_key key)
{
    return i < b->count && compare(key_at(s, b, i), key) == 0;
}

/* The block where a key belongs; nowhere only in an empty set. */
static struct radix_cursor find_block(const struct sorted *s, struct sorted_key key)
{
    char bytes[KEY_BYTES];
    struct radix_cursor at = radix_seek(&s->blocks, RADIX_LESS_EQUAL, tree_key(key, bytes));
    return radix_cursor_valid(&at) ? at : radix_first(&s->blocks);
}

/* ---- life ---- */

void sorted_init(struct sorted *s, uint32_t record_bytes)
{
    assert(record_bytes >= KEY_BYTES && record_bytes <= SORTED_RECORD_MAX_BYTES &&
           record_bytes % 8 == 0);
    *s = (struct sorted){.record_bytes = record_bytes};
    radix_init(&s->blocks);
}

static void release_block(void *value, void *context)
{
    (void)context;
    mem_free(value);
}

void sorted_deinit(struct sorted *s)
{
    radix_deinit(&s->blocks, release_block, NULL);
    s->count = 0;
    s->bytes = 0;
}

/* ---- single records ---- */

void *sorted_find(const struct sorted *s, struct sorted_key key)
{
    struct radix_cursor at = find_block(s, key);
    if (!radix_cursor_valid(&at)) {
        return NULL;
    }
    const struct block *b = radix_cursor_value(&at);
    unsigned i = rank(s, b, key);
    return is_at(s, b, i, key) ? record_at(s, b, i) : NULL;
}

/* A new block with room for one record, in the tree under `key`. */
static struct block *add_block(struct sorted *s, struct sorted_key key, unsigned capacity)
{
    char bytes[KEY_BYTES];
    struct block *b = resize(s, NULL, capacity);
    void *there = radix_insert(&s->blocks, tree_key(key, bytes), b);
    assert(!there);
    (void)there;
    return b;
}

/* The first block may hold what is less than its key in the tree: before another one comes beside
 * it it gets its least record's. Cursors are void then. */
static void name_first(struct sorted *s, const struct radix_cursor *at)
{
    char bytes[KEY_BYTES];
    struct radix_cursor first = radix_first(&s->blocks);
    if (first.node == at->node) {
        struct block *b = radix_remove_at(&s->blocks, &first);
        void *there = radix_insert(&s->blocks, tree_key(key_at(s, b, 0), bytes), b);
        assert(!there);
        (void)there;
    }
}

/* Moves the upper half of a full block to a new one behind it. */
static void split(struct sorted *s, const struct radix_cursor *at)
{
    struct block *b = radix_cursor_value(at);
    unsigned kept = b->count / 2, moved = b->count - kept;
    name_first(s, at);
    struct block *upper = add_block(s, key_at(s, b, kept), SORTED_BLOCK_MAX);
    memcpy(upper->records, record_at(s, b, kept), (size_t)moved * s->record_bytes);
    upper->count = (uint16_t)moved;
    b->count = (uint16_t)kept;
}

/* Makes room at place `i` of the cursor's block, which is not full. */
static char *open_gap(struct sorted *s, struct radix_cursor *at, unsigned i)
{
    struct block *b = radix_cursor_value(at);
    if (b->count == b->capacity) {
        b = resize(s, b, b->capacity * 2u + 1);
        radix_cursor_set_value(at, b);
    }
    char *gap = record_at(s, b, i);
    memmove(gap + s->record_bytes, gap, (size_t)(b->count - i) * s->record_bytes);
    b->count++;
    return gap;
}

static void *put_key(struct sorted *s, char *record, struct sorted_key key)
{
    memcpy(record, &key, sizeof(key));
    s->count++;
    return record;
}

/* The first record of a new block, which goes to the end. */
static void *begin_block(struct sorted *s, struct sorted_key key)
{
    struct block *b = add_block(s, key, 1);
    b->count = 1;
    return put_key(s, b->records, key);
}

void *sorted_insert(struct sorted *s, struct sorted_key key, bool *added)
{
    struct radix_cursor at = find_block(s, key);
    *added = true;
    if (!radix_cursor_valid(&at)) {
        return begin_block(s, key);
    }
    struct block *b = radix_cursor_value(&at);
    unsigned i = rank(s, b, key);
    if (is_at(s, b, i, key)) {
        *added = false;
        return record_at(s, b, i);
    }
    if (b->count == SORTED_BLOCK_MAX) {
        struct radix_cursor next = at;
        radix_cursor_next(&next);
        if (i == b->count && !radix_cursor_valid(&next)) {
            name_first(s, &at);
            return begin_block(s, key);
        }
        split(s, &at);
        at = find_block(s, key);
        i = rank(s, radix_cursor_value(&at), key);
    }
    return put_key(s, open_gap(s, &at, i), key);
}

bool sorted_remove(struct sorted *s, struct sorted_key key)
{
    struct radix_cursor at = find_block(s, key);
    if (!radix_cursor_valid(&at)) {
        return false;
    }
    const struct block *b = radix_cursor_value(&at);
    struct sorted_cursor c = {at, rank(s, b, key)};
    if (!is_at(s, b, c.index, key)) {
        return false;
    }
    sorted_remove_at(s, &c);
    return true;
}

/* ---- walking ---- */

struct sorted_cursor sorted_first(const struct sorted *s)
{
    return (struct sorted_cursor){radix_first(&s->blocks), 0};
}

struct sorted_cursor sorted_last(const struct sorted *s)
{
    struct sorted_cursor c = {radix_last(&s->blocks), 0};
    if (sorted_cursor_valid(&c)) {
        const struct block *b = radix_cursor_value(&c.block);
        c.index = b->count - 1u;
    }
    return c;
}

/* From behind the last record of a block to the first one of the next. */
static void settle(struct sorted_cursor *c)
{
    const struct block *b = radix_cursor_value(&c->block);
    if (c->index == b->count) {
        radix_cursor_next(&c->block);
        c->index = 0;
    }
}

struct sorted_cursor sorted_seek(const struct sorted *s, struct sorted_key key)
{
    struct sorted_cursor c = {find_block(s, key), 0};
    if (sorted_cursor_valid(&c)) {
        c.index = rank(s, radix_cursor_value(&c.block), key);
        settle(&c);
    }
    return c;
}

void *sorted_cursor_record(const struct sorted *s, const struct sorted_cursor *c)
{
    const struct block *b = radix_cursor_value(&c->block);
    assert(c->index < b->count);
    return record_at(s, b, c->index);
}

void sorted_cursor_next(struct sorted_cursor *c)
{
    c->index++;
    settle(c);
}

void sorted_remove_at(struct sorted *s, struct sorted_cursor *c)
{
    struct block *b = radix_cursor_value(&c->block);
    assert(c->index < b->count);
    s->count--;
    if (b->count == 1) {
        radix_remove_at(&s->blocks, &c->block);
        s->bytes -= block_bytes(s, b->capacity);
        mem_free(b);
        return;
    }
    char *gap = record_at(s, b, c->index);
    b->count--;
    memmove(gap, gap + s->record_bytes, (size_t)(b->count - c->index) * s->record_bytes);
    if (b->count <= b->capacity / 4) {
        b = resize(s, b, b->capacity / 2u);
        radix_cursor_set_value(&c->block, b);
    }
    settle(c);
}

size_t sorted_memory_bytes(const struct sorted *s)
{
    return s->bytes + radix_memory_bytes(&s->blocks);
}

/* ---- checking ---- */

void sorted_check(const struct sorted *s)
{
    uint64_t count = 0;
    size_t bytes = 0;
    struct sorted_key last = {0, 0};
    radix_check(&s->blocks);
    struct radix_cursor at = radix_first(&s->blocks);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        const struct block *b = radix_cursor_value(&at);
        char tree[KEY_BYTES], own[KEY_BYTES], before[KEY_BYTES];
        assert(b->count > 0 && b->count <= b->capacity && b->capacity <= SORTED_BLOCK_MAX &&
               (b->capacity & (b->capacity + 1u)) == 0);
        radix_cursor_copy_key(&at, tree);
        tree_key(key_at(s, b, 0), own);
        tree_key(last, before);
        assert(count == 0 ||
               (memcmp(tree, own, KEY_BYTES) <= 0 && memcmp(before, tree, KEY_BYTES) < 0));
        for (unsigned i = 0; i < b->count; i++, count++) {
            assert(count == 0 || compare(last, key_at(s, b, i)) < 0);
            last = key_at(s, b, i);
        }
        bytes += block_bytes(s, b->capacity);
    }
    assert(count == s->count && bytes == s->bytes);
}
