/* Members gathered for a result: see zset.h. Nodes of a skiplist from the start, so that a large
 * result takes them over. */
#include "base/hash.h"
#include "base/mem.h"
#include "value/zset_order.h"
#include "value/zset_priv.h"

#define FIRST_CAPACITY 16
/* Members from this length on are asked for before they are copied. */
#define LARGE_MEMBER_BYTES ((size_t)1 << 20)
#define LARGE_EXTRA_BYTES 4096
/* Further beginnings that members share are not looked for. */
#define SHARED_MAX_BYTES 64

/* The large sorted set that a sorted draft becomes: its first `done` nodes are in it already, and
 * are its own. */
struct zset_building {
    struct zset *z;
    bool indexed; /* its table has all nodes */
    uint64_t done;
    struct skiplist_path end;
};

void zset_draft_init(struct zset_draft *d, bool indexed)
{
    *d = (struct zset_draft){0};
    if (indexed) {
        d->index = mem_alloc(sizeof(*d->index));
        zset_index_init(d->index);
    }
}

void zset_draft_deinit(struct zset_draft *d)
{
    uint64_t done = d->building ? d->building->done : 0;
    zset_order_destroy(&d->order);
    for (uint64_t i = done; i < d->count; i++) {
        skiplist_node_destroy(d->nodes[i]);
    }
    if (d->building) {
        zset_large_destroy(d->building->z);
        mem_free(d->building);
    }
    if (d->index) {
        table_deinit(d->index, NULL, NULL);
    }
    mem_free(d->index);
    mem_free(d->nodes);
    *d = (struct zset_draft){0};
}

/* ---- gathering ---- */

static bool grow(struct zset_draft *d)
{
    uint64_t capacity = d->capacity ? d->capacity * 2 : FIRST_CAPACITY;
    void *nodes = mem_try_realloc(d->nodes, capacity * sizeof(struct skiplist_node *));
    if (nodes) {
        d->nodes = nodes;
        d->capacity = capacity;
    }
    return nodes != NULL;
}

/* NULL without memory for it. */
static struct skiplist_node *create_node(struct slice member, double score)
{
    if (likely(member.len < LARGE_MEMBER_BYTES)) {
        return skiplist_node_create(score, member);
    }
    if (!mem_reserve(member.len + LARGE_EXTRA_BYTES)) {
        return NULL;
    }
    struct skiplist_node *n = skiplist_node_create(score, member);
    mem_unreserve();
    return n;
}

/* How many of the first `max` bytes are the same. */
static size_t same_bytes(struct slice a, struct slice b, size_t max)
{
    size_t i = 0;
    max = a.len < max ? a.len : max;
    max = b.len < max ? b.len : max;
    while (i < max && a.ptr[i] == b.ptr[i]) {
        i++;
    }
    return i;
}

/* Adds a member under its hash, which is of no matter without an index. */
static void add(struct zset_draft *d, struct slice member, uint64_t hash, double score)
{
    assert(!d->sorted && !d->order && !d->building);
    d->lost = d->lost || (d->count == d->capacity && !grow(d));
    struct skiplist_node *n = d->lost ? NULL : create_node(member, score);
    if (!n) {
        d->lost = true;
        return;
    }
    d->shared = d->count == 0 ? (member.len < SHARED_MAX_BYTES ? member.len : SHARED_MAX_BYTES)
                              : same_bytes(member, skiplist_bytes(d->nodes[0]), d->shared);
    d->nodes[d->count++] = n;
    d->bytes += member.len;
    d->longest = member.len > d->longest ? member.len : d->longest;
    if (d->index) {
        table_insert(d->index, hash, (uintptr_t)n);
    }
}

void zset_draft_add(struct zset_draft *d, struct slice member, double score)
{
    add(d, member, d->index ? hash_slice(member) : 0, score);
}

static double *find(struct zset_draft *d, struct slice member, uint64_t hash)
{
    assert(d->index);
    uintptr_t *slot = zset_index_find(d->index, member, hash);
    return slot ? &((struct skiplist_node *)table_entry(*slot))->score : NULL;
}

double *zset_draft_find(struct zset_draft *d, struct slice member)
{
    return find(d, member, hash_slice(member));
}

double *zset_draft_find_or_add(struct zset_draft *d, struct slice member, double score)
{
    uint64_t hash = hash_slice(member);
    double *there = find(d, member, hash);
    if (!there) {
        add(d, member, hash, score);
    }
    return there;
}

/* ---- sorting ---- */

bool zset_draft_sort_some(struct zset_draft *d, uint64_t steps)
{
    if (d->sorted || d->lost || d->count <= 1) {
        d->sorted = !d->lost;
        return true;
    }
    if (!d->order) {
        d->order = zset_order_create(d->nodes, d->count, d->shared);
    }
    if (!d->order) {
        zset_order_in_place(d->nodes, d->count);
    } else if (!zset_order_run(d->order, steps)) {
        return false;
    }
    zset_order_destroy(&d->order);
    d->sorted = true;
    return true;
}

void zset_draft_sort(struct zset_draft *d)
{
    while (!zset_draft_sort_some(d, UINT64_MAX)) {
    }
}

/* ---- finishing ---- */

static bool is_small(const struct zset_draft *d)
{
    return zset_is_small(d->count, d->longest, d->bytes);
}

static void begin_building(struct zset_draft *d)
{
    struct zset_building *b = mem_calloc(1, sizeof(*b));
    b->z = zset_large_create();
    if (d->index) {
        table_deinit(&b->z->members, NULL, NULL);
        b->z->members = *d->index;
        mem_free(d->index);
        d->index = NULL;
        b->indexed = true;
    }
    skiplist_filling_begin(&b->end, &b->z->list);
    d->building = b;
}

bool zset_draft_build_some(struct zset_draft *d, uint64_t steps)
{
    assert(d->sorted || d->lost);
    if (d->lost || d->count == 0 || (!d->building && is_small(d))) {
        return true;
    }
    if (!d->building) {
        begin_building(d);
    }
    struct zset_building *b = d->building;
    uint64_t left = d->count - b->done;
    uint64_t count = steps < left ? steps : left;
    if (count == 0) {
        return left == 0;
    }
    for (uint64_t i = b->done; !b->indexed && i < b->done + count; i++) {
        table_insert(&b->z->members, hash_slice(skiplist_bytes(d->nodes[i])),
                     (uintptr_t)d->nodes[i]);
    }
    skiplist_fill(&b->z->list, &b->end, d->nodes + b->done, count);
    b->done += count;
    if (b->done < d->count) {
        return false;
    }
    mem_free(d->nodes);
    d->nodes = NULL;
    d->capacity = 0;
    return true;
}

static struct entry *finish_small(const struct zset_draft *d, struct slice key, int64_t expiry_ms)
{
    unsigned char *lp = listpack_create(d->bytes + d->count * 8);
    for (uint64_t i = 0; i < d->count; i++) {
        lp = zset_listpack_append(lp, skiplist_bytes(d->nodes[i]), d->nodes[i]->score);
    }
    return entry_create_pointer(key, VALUE_ZSET, ENCODING_LISTPACK, listpack_shrink(lp), expiry_ms);
}

static struct entry *finish_large(struct zset_draft *d, struct slice key, int64_t expiry_ms)
{
    struct zset *z = d->building->z;
    assert(d->building->done == d->count);
    mem_free(d->building);
    d->building = NULL;
    d->count = 0;
    return entry_create_pointer(key, VALUE_ZSET, ENCODING_SKIPLIST, z, expiry_ms);
}

struct entry *zset_draft_finish(struct zset_draft *d, struct slice key, int64_t expiry_ms)
{
    assert(d->count > 0 && d->sorted && !d->lost);
    while (!zset_draft_build_some(d, UINT64_MAX)) {
    }
    struct entry *e =
        d->building ? finish_large(d, key, expiry_ms) : finish_small(d, key, expiry_ms);
    zset_draft_deinit(d);
    return e;
}
