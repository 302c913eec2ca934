/* See zset_order.h. The phases: fill the keys (which shows whether they are in order already); sort
 * runs of a few by insertion; merge neighbouring runs until there is one; write the nodes back. */
#include "value/zset_order.h"

#include "base/mem.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* Keys of a run that is sorted by insertion. */
#define RUN_KEYS 16

struct order_key {
    double score;
    uint64_t word; /* the member's bytes behind the shared ones, highest first, then zeros */
    struct skiplist_node *node;
};

enum phase { FILLING, INSERTING, MERGING, WRITING, DONE };

struct zset_order {
    struct skiplist_node **nodes;
    uint64_t count;
    size_t shared;
    enum phase phase;
    bool ascending; /* FILLING: so far */
    uint64_t at;    /* the next key of the phase */
    struct order_key *from, *to;
    /* MERGING: runs of `width` keys; the two in hand, of `from`, go to `to` from `at` on. */
    uint64_t width, left, left_end, right, right_end;
};

static uint64_t word_of(const struct skiplist_node *n, size_t shared)
{
    uint64_t word = 0;
    size_t len = n->len - shared;
    memcpy(&word, n->bytes + shared, len < sizeof(word) ? len : sizeof(word));
    return be64toh(word);
}

static inline bool is_less(const struct order_key *a, const struct order_key *b)
{
    if (a->score != b->score) {
        return a->score < b->score;
    }
    if (a->word != b->word) {
        return a->word < b->word;
    }
    return slice_compare(skiplist_bytes(a->node), skiplist_bytes(b->node)) < 0;
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

void zset_order_in_place(struct skiplist_node **nodes, uint64_t count)
{
    qsort(nodes, count, sizeof(*nodes), compare_nodes);
}

struct zset_order *zset_order_create(struct skiplist_node **nodes, uint64_t count, size_t shared)
{
    assert(count > 0);
    struct zset_order *o = mem_calloc(1, sizeof(*o));
    o->nodes = nodes;
    o->count = count;
    o->shared = shared;
    o->ascending = true;
    o->from = mem_try_alloc(count * sizeof(*o->from));
    o->to = o->from && count > RUN_KEYS ? mem_try_alloc(count * sizeof(*o->to)) : NULL;
    if (!o->from || (count > RUN_KEYS && !o->to)) {
        zset_order_destroy(&o);
    }
    return o;
}

static void next_phase(struct zset_order *o, enum phase phase)
{
    o->phase = phase;
    o->at = 0;
}

/* ---- phases: each takes steps off, and ends when there are none left ---- */

static void fill(struct zset_order *o, uint64_t *steps)
{
    for (; *steps > 0 && o->at < o->count; --*steps, o->at++) {
        struct skiplist_node *n = o->nodes[o->at];
        o->from[o->at] = (struct order_key){n->score, word_of(n, o->shared), n};
        o->ascending =
            o->ascending && (o->at == 0 || is_less(&o->from[o->at - 1], &o->from[o->at]));
    }
    if (o->at == o->count) {
        next_phase(o, o->ascending ? DONE : INSERTING);
    }
}

/* Sorts from[begin .. end-1]. */
static void insert_all(struct order_key *keys, uint64_t begin, uint64_t end)
{
    for (uint64_t i = begin + 1; i < end; i++) {
        struct order_key key = keys[i];
        uint64_t place = i;
        for (; place > begin && is_less(&key, &keys[place - 1]); place--) {
            keys[place] = keys[place - 1];
        }
        keys[place] = key;
    }
}

/* The pair of runs from key `begin` on. */
static void take_runs(struct zset_order *o, uint64_t begin)
{
    o->left = begin;
    o->left_end = o->count - begin < o->width ? o->count : begin + o->width;
    o->right = o->left_end;
    o->right_end = o->count - o->right < o->width ? o->count : o->right + o->width;
}

static void insert_runs(struct zset_order *o, uint64_t *steps)
{
    while (*steps > 0 && o->at < o->count) {
        uint64_t end = o->count - o->at < RUN_KEYS ? o->count : o->at + RUN_KEYS;
        insert_all(o->from, o->at, end);
        *steps = *steps > RUN_KEYS ? *steps - RUN_KEYS : 0;
        o->at = end;
    }
    if (o->at == o->count) {
        o->width = RUN_KEYS;
        next_phase(o, o->width < o->count ? MERGING : WRITING);
        take_runs(o, 0);
    }
}

static void merge_pair(struct zset_order *o, uint64_t *steps)
{
    const struct order_key *from = o->from;
    for (; *steps > 0 && o->at < o->right_end; --*steps, o->at++) {
        bool takes_right = o->left == o->left_end ||
                           (o->right < o->right_end && is_less(&from[o->right], &from[o->left]));
        o->to[o->at] = from[takes_right ? o->right++ : o->left++];
    }
}

static void merge(struct zset_order *o, uint64_t *steps)
{
    while (*steps > 0 && o->phase == MERGING) {
        merge_pair(o, steps);
        if (o->at < o->right_end) {
            continue;
        }
        if (o->at < o->count) {
            take_runs(o, o->at);
            continue;
        }
        struct order_key *sorted = o->to;
        o->to = o->from;
        o->from = sorted;
        o->width *= 2;
        next_phase(o, o->width < o->count ? MERGING : WRITING);
        take_runs(o, 0);
    }
}

static void write_back(struct zset_order *o, uint64_t *steps)
{
    for (; *steps > 0 && o->at < o->count; --*steps, o->at++) {
        o->nodes[o->at] = o->from[o->at].node;
    }
    if (o->at == o->count) {
        next_phase(o, DONE);
    }
}

bool zset_order_run(struct zset_order *o, uint64_t steps)
{
    static void (*const phases[])(struct zset_order *, uint64_t *) = {
        [FILLING] = fill, [INSERTING] = insert_runs, [MERGING] = merge, [WRITING] = write_back};
    while (steps > 0 && o->phase != DONE) {
        phases[o->phase](o, &steps);
    }
    return o->phase == DONE;
}

void zset_order_destroy(struct zset_order **o)
{
    if (*o && (*o)->phase == WRITING) {
        uint64_t steps = UINT64_MAX;
        write_back(*o, &steps);
    }
    if (*o) {
        mem_free((*o)->from);
        mem_free((*o)->to);
        mem_free(*o);
    }
    *o = NULL;
}
