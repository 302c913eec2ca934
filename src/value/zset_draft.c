/* Members gathered for a result: see zset.h. Nodes of a skiplist from the start, so that a large
 * result takes them over. */
#include "base/hash.h"
#include "base/mem.h"
#include "value/zset_priv.h"

#include <math.h>
#include <stdlib.h>

#define FIRST_CAPACITY 16
/* Members from this length on are asked for before they are copied. */
#define LARGE_MEMBER_BYTES ((size_t)1 << 20)
#define LARGE_EXTRA_BYTES 4096

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
    for (uint64_t i = 0; i < d->count; i++) {
        skiplist_node_destroy(d->nodes[i]);
    }
    if (d->index) {
        table_deinit(d->index, NULL, NULL);
    }
    mem_free(d->index);
    mem_free(d->nodes);
    *d = (struct zset_draft){0};
}

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

void zset_draft_add(struct zset_draft *d, struct slice member, double score)
{
    d->lost = d->lost || (d->count == d->capacity && !grow(d));
    struct skiplist_node *n = d->lost ? NULL : create_node(member, score);
    if (!n) {
        d->lost = true;
        return;
    }
    d->nodes[d->count++] = n;
    d->bytes += member.len;
    d->longest = member.len > d->longest ? member.len : d->longest;
    if (d->index) {
        table_insert(d->index, hash_slice(member), (uintptr_t)n);
    }
}

double *zset_draft_find(struct zset_draft *d, struct slice member)
{
    assert(d->index);
    uintptr_t *slot = zset_index_find(d->index, member, hash_slice(member));
    return slot ? &((struct skiplist_node *)table_entry(*slot))->score : NULL;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct skiplist_node *x = *(struct skiplist_node *const *)a;
    const struct skiplist_node *y = *(struct skiplist_node *const *)b;
    if (x->score != y->score) {
        return x->score < y->score ? -1 : 1;
    }
    return slice_compare(skiplist_bytes(x), skiplist_bytes(y));
}

void zset_draft_sort(struct zset_draft *d)
{
    for (uint64_t i = 1; i < d->count; i++) {
        if (compare_nodes(&d->nodes[i - 1], &d->nodes[i]) > 0) {
            qsort(d->nodes, d->count, sizeof(struct skiplist_node *), compare_nodes);
            return;
        }
    }
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
    struct zset *z = zset_large_create();
    if (d->index) {
        table_deinit(&z->members, NULL, NULL);
        z->members = *d->index;
        mem_free(d->index);
        d->index = NULL;
    } else {
        for (uint64_t i = 0; i < d->count; i++) {
            table_insert(&z->members, hash_slice(skiplist_bytes(d->nodes[i])),
                         (uintptr_t)d->nodes[i]);
        }
    }
    skiplist_load(&z->list, d->nodes, d->count);
    d->count = 0;
    return entry_create_pointer(key, VALUE_ZSET, ENCODING_SKIPLIST, z, expiry_ms);
}

struct entry *zset_draft_finish(struct zset_draft *d, struct slice key, int64_t expiry_ms)
{
    assert(d->count > 0 && !d->lost);
    struct entry *e = zset_is_small(d->count, d->longest, d->bytes)
                          ? finish_small(d, key, expiry_ms)
                          : finish_large(d, key, expiry_ms);
    zset_draft_deinit(d);
    return e;
}
