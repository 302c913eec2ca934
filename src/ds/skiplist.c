/* See skiplist.h. */
#include "ds/skiplist.h"

#include "base/mem.h"
#include "base/rand.h"

#include <assert.h>
#include <math.h>

struct link {
    struct skiplist_node *next;
    uint64_t span;
};

static_assert(sizeof(struct link) == 16, "links keep nodes 16-byte aligned");
static_assert(offsetof(struct skiplist_node, bytes) == 29, "29 bytes before a node's own");

/* The link of level 1 and above; level 0 is `next`. */
static inline struct link *link_of(const struct skiplist_node *n, unsigned level)
{
    return (struct link *)(uintptr_t)n - level;
}

/* ---- Nodes ---- */

static size_t node_size(unsigned height, size_t len)
{
    size_t body = offsetof(struct skiplist_node, bytes) + len;
    body = body < sizeof(struct skiplist_node) ? sizeof(struct skiplist_node) : body;
    return (height - 1) * sizeof(struct link) + body;
}

static struct skiplist_node *node_alloc(unsigned height, size_t len)
{
    assert(height >= 1 && height <= SKIPLIST_MAX_HEIGHT && len <= SKIPLIST_MAX_BYTES);
    struct link *block = mem_alloc(node_size(height, len));
    struct skiplist_node *n = (struct skiplist_node *)(void *)(block + (height - 1));
    n->prev = n->next = NULL;
    n->len = (uint32_t)len;
    n->height = (uint8_t)height;
    return n;
}

static unsigned random_height(void)
{
    /* Two zero bits for each further level; the bit set ends the search at 32. */
    uint64_t bits = rand_u64() | (uint64_t)1 << 62;
    return 1 + (unsigned)__builtin_ctzll(bits) / 2;
}

struct skiplist_node *skiplist_node_create(double score, struct slice bytes)
{
    assert(!isnan(score));
    struct skiplist_node *n = node_alloc(random_height(), bytes.len);
    n->score = score;
    if (bytes.len > 0) {
        memcpy(n->bytes, bytes.ptr, bytes.len);
    }
    return n;
}

void skiplist_node_destroy(struct skiplist_node *n)
{
    mem_free_sized(link_of(n, n->height - 1u), node_size(n->height, n->len));
}

size_t skiplist_node_memory_bytes(const struct skiplist_node *n)
{
    return mem_good_size(node_size(n->height, n->len));
}

/* ---- The list ---- */

void skiplist_init(struct skiplist *s)
{
    s->head = node_alloc(SKIPLIST_MAX_HEIGHT, 0);
    s->head->score = -INFINITY;
    s->tail = NULL;
    s->count = 0;
    s->levels = 1;
}

void skiplist_deinit(struct skiplist *s)
{
    struct skiplist_node *n = s->head;
    while (n) {
        struct skiplist_node *next = n->next;
        __builtin_prefetch(next);
        skiplist_node_destroy(n);
        n = next;
    }
    s->head = s->tail = NULL;
    s->count = 0;
}

static inline bool precedes(const struct skiplist_node *n, double score, struct slice bytes)
{
    if (n->score != score) {
        return n->score < score;
    }
    return slice_compare(skiplist_bytes(n), bytes) < 0;
}

/* Finds the place of (score, bytes). `known` is what the level above found not to precede: it need
 * not be compared again. */
static void find_path(const struct skiplist *s, double score, struct slice bytes,
                      struct skiplist_path *p)
{
    struct skiplist_node *at = s->head;
    const struct skiplist_node *known = NULL;
    uint64_t rank = 0;
    for (unsigned level = s->levels - 1; level > 0; level--) {
        struct link *l = link_of(at, level);
        while (l->next && l->next != known && precedes(l->next, score, bytes)) {
            rank += l->span;
            at = l->next;
            l = link_of(at, level);
        }
        known = l->next;
        p->pred[level] = at;
        p->rank[level] = rank;
    }
    while (at->next && at->next != known && precedes(at->next, score, bytes)) {
        rank++;
        at = at->next;
    }
    p->pred[0] = at;
    p->rank[0] = rank;
}

/* A search that goes on in steps, so that two of them can wait for memory together. `next` is the
 * node to look at in the next step, on its way into the cache since the last one. */
struct descent {
    struct skiplist_node *at, *next;
    const struct skiplist_node *known; /* as in find_path */
    uint64_t rank, span;               /* of `at`, plus one; from there to `next` */
    double score;
    unsigned level;
    bool done;
};

/* Notes the levels on which nothing is to be looked at, down to one with a node to look at. */
static inline void descent_settle(struct descent *d, struct skiplist_path *p)
{
    for (;;) {
        const struct link *l = link_of(d->at, d->level);
        d->next = d->level > 0 ? l->next : d->at->next;
        d->span = d->level > 0 ? l->span : 1;
        if (d->next && d->next != d->known) {
            __builtin_prefetch(d->next);
            return;
        }
        d->known = d->next;
        p->pred[d->level] = d->at;
        p->rank[d->level] = d->rank;
        if (d->level == 0) {
            d->done = true;
            return;
        }
        d->level--;
    }
}

static inline void descent_begin(struct descent *d, const struct skiplist *s, double score,
                                 struct skiplist_path *p)
{
    *d = (struct descent){.at = s->head, .score = score, .level = s->levels - 1};
    descent_settle(d, p);
}

static inline void descent_step(struct descent *d, struct slice bytes, struct skiplist_path *p)
{
    if (precedes(d->next, d->score, bytes)) {
        d->rank += d->span;
        d->at = d->next;
    } else {
        d->known = d->next;
    }
    descent_settle(d, p);
}

/* Both places of the same bytes with two scores, each as find_path finds it. */
static void find_two_paths(const struct skiplist *s, struct slice bytes, double score,
                           struct skiplist_path *p, double score_two, struct skiplist_path *p_two)
{
    struct descent one, two;
    descent_begin(&one, s, score, p);
    descent_begin(&two, s, score_two, p_two);
    while (!one.done && !two.done) {
        descent_step(&one, bytes, p);
        descent_step(&two, bytes, p_two);
    }
    while (!one.done) {
        descent_step(&one, bytes, p);
    }
    while (!two.done) {
        descent_step(&two, bytes, p_two);
    }
}

/* Finds the place of the node of a rank (0-based); the end's for `count`. */
static void find_rank_path(const struct skiplist *s, uint64_t target, struct skiplist_path *p)
{
    struct skiplist_node *at = s->head;
    uint64_t rank = 0;
    for (unsigned level = s->levels - 1; level > 0; level--) {
        struct link *l = link_of(at, level);
        while (l->next && rank + l->span <= target) {
            rank += l->span;
            at = l->next;
            l = link_of(at, level);
        }
        p->pred[level] = at;
        p->rank[level] = rank;
    }
    for (; rank < target; rank++) {
        at = at->next;
    }
    p->pred[0] = at;
    p->rank[0] = rank;
}

/* Makes the levels up to `height` exist: links from the head to the end. */
static void raise_levels(struct skiplist *s, unsigned height)
{
    for (; s->levels < height; s->levels++) {
        *link_of(s->head, s->levels) = (struct link){NULL, s->count + 1};
    }
}

static void link_at(struct skiplist *s, struct skiplist_node *n, struct skiplist_path *p)
{
    for (unsigned level = s->levels; level < n->height; level++) {
        p->pred[level] = s->head;
        p->rank[level] = 0;
    }
    raise_levels(s, n->height);
    struct skiplist_node *before = p->pred[0];
    n->next = before->next;
    n->prev = before == s->head ? NULL : before;
    if (n->next) {
        n->next->prev = n;
    } else {
        s->tail = n;
    }
    before->next = n;
    for (unsigned level = 1; level < n->height; level++) {
        struct link *left = link_of(p->pred[level], level);
        uint64_t distance = p->rank[0] - p->rank[level] + 1;
        *link_of(n, level) = (struct link){left->next, left->span + 1 - distance};
        *left = (struct link){n, distance};
    }
    for (unsigned level = n->height; level < s->levels; level++) {
        link_of(p->pred[level], level)->span++;
    }
    s->count++;
}

/* Takes out the node behind the path, which stays right for the one after it. */
static void unlink_at(struct skiplist *s, struct skiplist_node *n, const struct skiplist_path *p)
{
    assert(p->pred[0]->next == n);
    for (unsigned level = 1; level < s->levels; level++) {
        struct link *left = link_of(p->pred[level], level);
        if (level < n->height) {
            assert(left->next == n);
            struct link *own = link_of(n, level);
            *left = (struct link){own->next, left->span + own->span - 1};
        } else {
            left->span--;
        }
    }
    p->pred[0]->next = n->next;
    if (n->next) {
        n->next->prev = n->prev;
    } else {
        s->tail = n->prev;
    }
    s->count--;
}

static void lower_levels(struct skiplist *s)
{
    while (s->levels > 1 && !link_of(s->head, s->levels - 1)->next) {
        s->levels--;
    }
}

/* Makes a path that was found with the node in the list, whose own path is `own`, the one that
 * would be found without it. */
static void path_without(const struct skiplist *s, struct skiplist_path *p,
                         const struct skiplist_node *n, const struct skiplist_path *own)
{
    uint64_t rank = own->rank[0] + 1;
    for (unsigned level = 0; level < s->levels; level++) {
        if (p->pred[level] == n) {
            p->pred[level] = own->pred[level];
            p->rank[level] = own->rank[level];
        } else if (p->rank[level] > rank) {
            p->rank[level]--;
        }
    }
}

/* ---- Verbs ---- */

void skiplist_insert(struct skiplist *s, struct skiplist_node *n)
{
    struct skiplist_path p;
    find_path(s, n->score, skiplist_bytes(n), &p);
    link_at(s, n, &p);
}

void skiplist_remove(struct skiplist *s, struct skiplist_node *n)
{
    struct skiplist_path p;
    find_path(s, n->score, skiplist_bytes(n), &p);
    unlink_at(s, n, &p);
    lower_levels(s);
}

void skiplist_move(struct skiplist *s, struct skiplist_node *n, double score)
{
    assert(!isnan(score));
    struct slice bytes = skiplist_bytes(n);
    bool after_prev = !n->prev || precedes(n->prev, score, bytes);
    bool before_next = !n->next || !precedes(n->next, score, bytes);
    if (after_prev && before_next) {
        n->score = score;
        return;
    }
    struct skiplist_path from, to;
    find_two_paths(s, bytes, n->score, &from, score, &to);
    path_without(s, &to, n, &from);
    unlink_at(s, n, &from);
    n->score = score;
    link_at(s, n, &to);
    lower_levels(s);
}

void skiplist_filling_begin(struct skiplist_path *end, struct skiplist *s)
{
    assert(s->count == 0 && s->levels == 1);
    *end = (struct skiplist_path){{s->head}, {0}};
}

void skiplist_fill(struct skiplist *s, struct skiplist_path *end,
                   struct skiplist_node *const *nodes, uint64_t count)
{
    assert(end->rank[0] == s->count);
    for (uint64_t i = 0; i < count; i++) {
        struct skiplist_node *n = nodes[i];
        link_at(s, n, end);
        for (unsigned level = 0; level < n->height; level++) {
            end->pred[level] = n;
            end->rank[level] = s->count;
        }
    }
}

void skiplist_load(struct skiplist *s, struct skiplist_node *const *nodes, uint64_t count)
{
    struct skiplist_path end;
    skiplist_filling_begin(&end, s);
    skiplist_fill(s, &end, nodes, count);
}

void skiplist_remove_ranks(struct skiplist *s, uint64_t start, uint64_t count,
                           void (*release)(struct skiplist_node *n, void *context), void *context)
{
    struct skiplist_path p;
    assert(count <= s->count && start <= s->count - count);
    find_rank_path(s, start, &p);
    for (; count > 0; count--) {
        struct skiplist_node *n = p.pred[0]->next;
        unlink_at(s, n, &p);
        release(n, context);
    }
    lower_levels(s);
}

uint64_t skiplist_rank(const struct skiplist *s, const struct skiplist_node *n)
{
    struct skiplist_path p;
    find_path(s, n->score, skiplist_bytes(n), &p);
    assert(p.pred[0]->next == n);
    return p.rank[0];
}

struct skiplist_node *skiplist_at(const struct skiplist *s, uint64_t rank)
{
    assert(rank < s->count);
    if (rank == s->count - 1) {
        return s->tail;
    }
    struct skiplist_path p;
    find_rank_path(s, rank, &p);
    return p.pred[0]->next;
}

uint64_t skiplist_partition(const struct skiplist *s, skiplist_before_fn before,
                            const void *context)
{
    const struct skiplist_node *at = s->head;
    uint64_t rank = 0;
    for (unsigned level = s->levels - 1; level > 0; level--) {
        const struct link *l = link_of(at, level);
        while (l->next && before(l->next, context)) {
            rank += l->span;
            at = l->next;
            l = link_of(at, level);
        }
    }
    for (at = at->next; at && before(at, context); at = at->next) {
        rank++;
    }
    return rank;
}

size_t skiplist_memory_bytes(const struct skiplist *s)
{
    return skiplist_node_memory_bytes(s->head);
}

/* ---- Check ---- */

static void check_level(const struct skiplist *s, unsigned level)
{
    const struct skiplist_node *at = s->head;
    uint64_t rank = 0; /* of `at`, plus one */
    while (at) {
        const struct link *l = link_of(at, level);
        uint64_t steps = 0;
        do {
            at = at->next;
            steps++;
        } while (at && at->height <= level);
        assert(l->next == at);
        assert(l->span == steps);
        rank += steps;
    }
    assert(rank == s->count + 1);
}

void skiplist_check(const struct skiplist *s)
{
    const struct skiplist_node *before = NULL;
    uint64_t count = 0;
    unsigned highest = 1;
    for (const struct skiplist_node *n = s->head->next; n; n = n->next) {
        assert(n->prev == before);
        assert(n->height >= 1 && n->height <= SKIPLIST_MAX_HEIGHT && !isnan(n->score));
        assert(!before || precedes(before, n->score, skiplist_bytes(n)));
        highest = n->height > highest ? n->height : highest;
        before = n;
        count++;
    }
    assert(s->tail == before && s->count == count && s->levels == highest);
    for (unsigned level = 1; level < s->levels; level++) {
        check_level(s, level);
    }
}
