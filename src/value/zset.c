/* See zset.h. */
#include "value/zset.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rand.h"
#include "value/member_ttl.h"
#include "value/zset_priv.h"

#include <math.h>
#include <openssl/sha.h>

/* Room for a score's text. */
#define SCORE_TEXT_BYTES 40
/* Scores beyond this are text in a listpack, whole or not, as in Redis's. */
#define SCORE_INTEGER_MAX 4611686018427387904.0 /* 2^62 */
/* Bytes that a member and its score take in a listpack beyond the member's own, at most. */
#define PAIR_EXTRA_BYTES 64
/* Cursors of the table have 48 bits; a greater one is behind its end. */
#define SCAN_CURSOR_END ((uint64_t)1 << 48)

static int64_t max_listpack_entries, max_listpack_value;

const struct option zset_options[] = {
    {.name = "zset-max-listpack-entries",
     .alias = "zset-max-ziplist-entries",
     .type = OPTION_INT,
     .target = &max_listpack_entries,
     .initial = "128",
     .min = 0,
     .max = INT64_MAX},
    {.name = "zset-max-listpack-value",
     .alias = "zset-max-ziplist-value",
     .type = OPTION_MEMORY,
     .target = &max_listpack_value,
     .initial = "64",
     .min = 0,
     .max = INT64_MAX},
    {.name = NULL},
};

static inline uint64_t entries_limit(void)
{
    return (uint64_t)(max_listpack_entries < ZSET_LISTPACK_ENTRIES_CAP ? max_listpack_entries
                                                                       : ZSET_LISTPACK_ENTRIES_CAP);
}

static inline size_t value_limit(void)
{
    return (size_t)(max_listpack_value < ZSET_LISTPACK_VALUE_CAP ? max_listpack_value
                                                                 : ZSET_LISTPACK_VALUE_CAP);
}

bool zset_is_small(uint64_t count, size_t longest_bytes, size_t bytes)
{
    return count <= entries_limit() && longest_bytes <= value_limit() &&
           bytes + count * PAIR_EXTRA_BYTES <= LISTPACK_MAX_BYTES / 2;
}

static inline unsigned char *listpack_of(const struct entry *e)
{
    assert(entry_type(e) == VALUE_ZSET && entry_encoding(e) == ENCODING_LISTPACK);
    return entry_pointer(e);
}

static inline struct zset *large_of(const struct entry *e)
{
    assert(entry_type(e) == VALUE_ZSET && entry_encoding(e) == ENCODING_SKIPLIST);
    return entry_pointer(e);
}

static inline bool is_large(const struct entry *e)
{
    assert(entry_type(e) == VALUE_ZSET);
    return entry_encoding(e) == ENCODING_SKIPLIST;
}

/* ---- Listpacks ---- */

/* The score at a score's position. */
static double listpack_score(const unsigned char *at)
{
    int64_t integer;
    double score = 0;
    char text[LISTPACK_TEXT_BYTES];
    if (listpack_get_integer(at, &integer)) {
        return (double)integer;
    }
    bool is_number = num_parse_double(listpack_get(at, text), &score);
    assert(is_number);
    (void)is_number;
    return score;
}

static struct slice score_text(double score, char *text)
{
    if (score >= -SCORE_INTEGER_MAX && score <= SCORE_INTEGER_MAX &&
        score == (double)(int64_t)score) {
        return slice_of(text, num_format_i64(text, (int64_t)score));
    }
    return slice_of(text, num_format_double(text, score));
}

unsigned char *zset_listpack_append(unsigned char *lp, struct slice member, double score)
{
    char text[SCORE_TEXT_BYTES];
    return listpack_append(listpack_append(lp, member), score_text(score, text));
}

static unsigned char *listpack_member(const unsigned char *lp, struct slice member)
{
    unsigned char *first = listpack_first(lp);
    return first ? listpack_find(lp, first, member, 1) : NULL;
}

static inline bool comes_before(double score, struct slice member, double other_score,
                                struct slice other)
{
    return score != other_score ? score < other_score : slice_compare(member, other) < 0;
}

/* The position of the first member behind (score, member), which is not there; NULL when all are
 * before it. */
static unsigned char *listpack_place(const unsigned char *lp, struct slice member, double score)
{
    char text[LISTPACK_TEXT_BYTES];
    unsigned char *last = listpack_last(lp);
    if (last) {
        double last_score = listpack_score(last);
        if (last_score < score) {
            return NULL;
        }
    }
    for (unsigned char *at = listpack_first(lp); at;) {
        unsigned char *at_score = listpack_next(lp, at);
        double its = listpack_score(at_score);
        if (its >= score && !comes_before(its, listpack_get(at, text), score, member)) {
            return at;
        }
        at = listpack_next(lp, at_score);
    }
    return NULL;
}

static unsigned char *listpack_put(unsigned char *lp, struct slice member, double score)
{
    char text[SCORE_TEXT_BYTES];
    unsigned char *at = listpack_place(lp, member, score);
    if (!at) {
        return zset_listpack_append(lp, member, score);
    }
    lp = listpack_insert(lp, &at, member, false);
    return listpack_insert(lp, &at, score_text(score, text), true);
}

/* Removes the member at `at` with its score. */
static unsigned char *listpack_drop(unsigned char *lp, unsigned char *at)
{
    lp = listpack_remove(lp, &at);
    return listpack_remove(lp, &at);
}

/* ---- Large sets ---- */

static uint64_t node_hash(const void *entry)
{
    return hash_slice(skiplist_bytes(entry));
}

static inline bool node_matches(const void *entry, const void *key)
{
    return slice_equal(skiplist_bytes(entry), *(const struct slice *)key);
}

void zset_index_init(struct table *index)
{
    table_init(index, node_hash);
}

uintptr_t *zset_index_find(const struct table *index, struct slice member, uint64_t hash)
{
    return table_find(index, hash, node_matches, &member);
}

struct zset *zset_large_create(void)
{
    struct zset *z = mem_alloc(sizeof(*z));
    zset_index_init(&z->members);
    skiplist_init(&z->list);
    return z;
}

void zset_large_destroy(struct zset *z)
{
    table_deinit(&z->members, NULL, NULL);
    skiplist_deinit(&z->list);
    mem_free(z);
}

static struct skiplist_node *large_find(const struct zset *z, struct slice member)
{
    uintptr_t *slot = zset_index_find(&z->members, member, hash_slice(member));
    return slot ? table_entry(*slot) : NULL;
}

static void large_put(struct zset *z, struct slice member, uint64_t hash, double score)
{
    struct skiplist_node *n = skiplist_node_create(score, member);
    table_insert(&z->members, hash, (uintptr_t)n);
    skiplist_insert(&z->list, n);
}

/* The same members in a set of its own; walks in order. */
static struct zset *large_copy_of(const struct entry *e)
{
    struct zset_draft d;
    char text[ZSET_TEXT_BYTES];
    struct zset *z = zset_large_create();
    zset_draft_init(&d, false);
    struct zset_cursor c = zset_cursor_at(e, 0, false);
    for (; zset_cursor_valid(&c); zset_cursor_step(&c)) {
        zset_draft_add(&d, zset_cursor_member(&c, text), zset_cursor_score(&c));
    }
    for (uint64_t i = 0; i < d.count; i++) {
        table_insert(&z->members, node_hash(d.nodes[i]), (uintptr_t)d.nodes[i]);
    }
    skiplist_load(&z->list, d.nodes, d.count);
    d.count = 0;
    zset_draft_deinit(&d);
    return z;
}

static void make_large(struct entry *e)
{
    unsigned char *lp = listpack_of(e);
    struct zset *z = large_copy_of(e);
    entry_set_pointer(e, z);
    entry_set_encoding(e, ENCODING_SKIPLIST);
    listpack_destroy(lp);
}

/* ---- Verbs ---- */

struct entry *zset_create(struct slice key, size_t first_member_bytes)
{
    if (zset_is_small(1, first_member_bytes, first_member_bytes)) {
        return entry_create_pointer(key, VALUE_ZSET, ENCODING_LISTPACK, listpack_create(0),
                                    ENTRY_NO_EXPIRY);
    }
    return entry_create_pointer(key, VALUE_ZSET, ENCODING_SKIPLIST, zset_large_create(),
                                ENTRY_NO_EXPIRY);
}

uint64_t zset_count(const struct entry *e)
{
    return is_large(e) ? large_of(e)->list.count : listpack_count(listpack_of(e)) / 2;
}

bool zset_score(const struct entry *e, struct slice member, double *score)
{
    if (is_large(e)) {
        const struct skiplist_node *n = large_find(large_of(e), member);
        if (n) {
            *score = n->score;
        }
        return n != NULL;
    }
    const unsigned char *lp = listpack_of(e);
    const unsigned char *at = listpack_member(lp, member);
    if (at) {
        *score = listpack_score(listpack_next(lp, at));
    }
    return at != NULL;
}

bool zset_rank(const struct entry *e, struct slice member, uint64_t *rank, double *score)
{
    if (is_large(e)) {
        const struct zset *z = large_of(e);
        const struct skiplist_node *n = large_find(z, member);
        if (n) {
            *rank = skiplist_rank(&z->list, n);
            *score = n->score;
        }
        return n != NULL;
    }
    const unsigned char *lp = listpack_of(e);
    *rank = 0;
    for (const unsigned char *at = listpack_first(lp); at; (*rank)++) {
        const unsigned char *at_score = listpack_next(lp, at);
        if (listpack_equals(at, member)) {
            *score = listpack_score(at_score);
            return true;
        }
        at = listpack_next(lp, at_score);
    }
    return false;
}

/* What becomes of a member that has the score `old`: the new one in *score. */
static enum zset_added weigh(double old, unsigned flags, double *score)
{
    if (flags & ZSET_ADD_NX) {
        return ZSET_SKIPPED;
    }
    double wanted = flags & ZSET_ADD_INCR ? old + *score : *score;
    if (isnan(wanted)) {
        return ZSET_NAN;
    }
    if (((flags & ZSET_ADD_LT) && wanted >= old) || ((flags & ZSET_ADD_GT) && wanted <= old)) {
        return ZSET_SKIPPED;
    }
    *score = wanted;
    return wanted == old ? ZSET_UNCHANGED : ZSET_UPDATED;
}

static enum zset_added large_add(struct zset *z, struct slice member, unsigned flags, double *score)
{
    uint64_t hash = hash_slice(member);
    uintptr_t *slot = zset_index_find(&z->members, member, hash);
    if (slot) {
        struct skiplist_node *n = table_entry(*slot);
        enum zset_added result = weigh(n->score, flags, score);
        if (result == ZSET_UPDATED) {
            skiplist_move(&z->list, n, *score);
        }
        return result;
    }
    if (flags & ZSET_ADD_XX) {
        return ZSET_SKIPPED;
    }
    large_put(z, member, hash, *score);
    return ZSET_ADDED;
}

enum zset_added zset_add(struct entry *e, struct slice member, unsigned flags, double *score)
{
    assert(!isnan(*score) && member.len <= ZSET_MAX_MEMBER_BYTES);
    if (is_large(e)) {
        return large_add(large_of(e), member, flags, score);
    }
    unsigned char *lp = listpack_of(e);
    unsigned char *at = listpack_member(lp, member);
    if (at) {
        enum zset_added result = weigh(listpack_score(listpack_next(lp, at)), flags, score);
        if (result == ZSET_UPDATED) {
            entry_set_pointer(e, listpack_put(listpack_drop(lp, at), member, *score));
        }
        return result;
    }
    if (flags & ZSET_ADD_XX) {
        return ZSET_SKIPPED;
    }
    if (!zset_is_small(zset_count(e) + 1, member.len, listpack_bytes(lp) + member.len)) {
        make_large(e);
        return large_add(large_of(e), member, flags, score);
    }
    entry_set_pointer(e, listpack_put(lp, member, *score));
    return ZSET_ADDED;
}

bool zset_remove(struct entry *e, struct slice member)
{
    member_ttl_forget(e, member);
    if (is_large(e)) {
        struct zset *z = large_of(e);
        uint64_t hash = hash_slice(member);
        uintptr_t *slot = zset_index_find(&z->members, member, hash);
        if (!slot) {
            return false;
        }
        struct skiplist_node *n = table_entry(table_remove(&z->members, hash, slot));
        skiplist_remove(&z->list, n);
        skiplist_node_destroy(n);
        return true;
    }
    unsigned char *lp = listpack_of(e);
    unsigned char *at = listpack_member(lp, member);
    if (at) {
        entry_set_pointer(e, listpack_drop(lp, at));
    }
    return at != NULL;
}

/* A node that has left the list leaves the table. */
static void forget_node(struct skiplist_node *n, void *context)
{
    struct entry *e = context;
    struct zset *z = large_of(e);
    member_ttl_forget(e, skiplist_bytes(n));
    uint64_t hash = node_hash(n);
    uintptr_t *slot = zset_index_find(&z->members, skiplist_bytes(n), hash);
    assert(slot && table_entry(*slot) == n);
    table_remove(&z->members, hash, slot);
    skiplist_node_destroy(n);
}

/* Drops the deadlines of members of a listpack that are about to go. */
static void forget_ranks(struct entry *e, uint64_t start, uint64_t stop)
{
    char text[ZSET_TEXT_BYTES];
    struct zset_cursor c = zset_cursor_at(e, start, false);
    for (; start < stop; start++) {
        member_ttl_forget(e, zset_cursor_member(&c, text));
        zset_cursor_step(&c);
    }
}

void zset_remove_ranks(struct entry *e, uint64_t start, uint64_t stop)
{
    assert(start <= stop && stop <= zset_count(e));
    if (start == stop) {
        return;
    }
    if (is_large(e)) {
        skiplist_remove_ranks(&large_of(e)->list, start, stop - start, forget_node, e);
        return;
    }
    if (member_ttl_any(e)) {
        forget_ranks(e, start, stop);
    }
    entry_set_pointer(
        e, listpack_remove_range(listpack_of(e), (int64_t)start * 2, (uint32_t)(stop - start) * 2));
}

/* ---- Ranges ---- */

bool zset_parse_lex_bound(struct slice text, struct zset_lex_bound *bound)
{
    char kind = text.len > 0 ? text.ptr[0] : '\0';
    *bound = (struct zset_lex_bound){.kind = ZSET_LEX_MEMBER, .excluded = kind == '('};
    if (kind == '(' || kind == '[') {
        bound->member = slice_of(text.ptr + 1, text.len - 1);
        return true;
    }
    bound->kind = kind == '-' ? ZSET_LEX_LOWEST : ZSET_LEX_HIGHEST;
    return text.len == 1 && (kind == '-' || kind == '+');
}

/* What stands before a bound: less than it, or equal where `or_equal`. */
struct bound {
    bool by_score, or_equal;
    double score;
    struct zset_lex_bound lex;
};

static bool member_before(struct slice member, const struct bound *b)
{
    if (b->lex.kind != ZSET_LEX_MEMBER) {
        return b->lex.kind == ZSET_LEX_HIGHEST;
    }
    int order = slice_compare(member, b->lex.member);
    return order < 0 || (order == 0 && b->or_equal);
}

static inline bool score_before(double score, const struct bound *b)
{
    return score < b->score || (b->or_equal && score == b->score);
}

static bool node_before(const struct skiplist_node *n, const void *context)
{
    const struct bound *b = context;
    return b->by_score ? score_before(n->score, b) : member_before(skiplist_bytes(n), b);
}

/* How many members are before the bound. */
static uint64_t partition(const struct entry *e, const struct bound *b)
{
    if (is_large(e)) {
        return skiplist_partition(&large_of(e)->list, node_before, b);
    }
    const unsigned char *lp = listpack_of(e);
    char text[LISTPACK_TEXT_BYTES];
    uint64_t rank = 0;
    for (const unsigned char *at = listpack_first(lp); at; rank++) {
        const unsigned char *at_score = listpack_next(lp, at);
        bool before = b->by_score ? score_before(listpack_score(at_score), b)
                                  : member_before(listpack_get(at, text), b);
        if (!before) {
            break;
        }
        at = listpack_next(lp, at_score);
    }
    return rank;
}

static struct zset_span span_between(const struct entry *e, const struct bound *from,
                                     const struct bound *to)
{
    struct zset_span s = {partition(e, from), partition(e, to)};
    s.stop = s.stop < s.start ? s.start : s.stop;
    return s;
}

struct zset_span zset_span_of_scores(const struct entry *e, const struct zset_score_range *range)
{
    struct bound from = {true, range->min_excluded, range->min, {0}};
    struct bound to = {true, !range->max_excluded, range->max, {0}};
    return span_between(e, &from, &to);
}

struct zset_span zset_span_of_members(const struct entry *e, const struct zset_lex_range *range)
{
    struct bound from = {false, range->min.excluded, 0, range->min};
    struct bound to = {false, !range->max.excluded, 0, range->max};
    return span_between(e, &from, &to);
}

/* ---- Walking ---- */

struct zset_cursor zset_cursor_at(const struct entry *e, uint64_t rank, bool down)
{
    struct zset_cursor c = {.down = down};
    if (rank >= zset_count(e)) {
        return c;
    }
    if (is_large(e)) {
        const struct zset *z = large_of(e);
        c.node = rank == 0 ? skiplist_first(&z->list) : skiplist_at(&z->list, rank);
    } else {
        c.listpack = listpack_of(e);
        c.at = listpack_seek(c.listpack, (int64_t)rank * 2);
    }
    return c;
}

struct slice zset_cursor_member(const struct zset_cursor *c, char *text)
{
    return c->node ? skiplist_bytes(c->node) : listpack_get(c->at, text);
}

double zset_cursor_score(const struct zset_cursor *c)
{
    return c->node ? c->node->score : listpack_score(listpack_next(c->listpack, c->at));
}

void zset_cursor_step(struct zset_cursor *c)
{
    if (c->node) {
        c->node = c->down ? c->node->prev : c->node->next;
        if (c->node) {
            __builtin_prefetch(c->down ? c->node->prev : c->node->next);
        }
        return;
    }
    if (c->down) {
        const unsigned char *score = listpack_prev(c->listpack, c->at);
        c->at = score ? listpack_prev(c->listpack, score) : NULL;
    } else {
        c->at = listpack_next(c->listpack, listpack_next(c->listpack, c->at));
    }
}

struct scan {
    zset_visit_fn visit;
    void *context;
    uint64_t seen;
};

static void scan_node(uintptr_t *slot, void *context)
{
    struct scan *s = context;
    const struct skiplist_node *n = table_entry(*slot);
    s->seen++;
    s->visit(skiplist_bytes(n), n->score, s->context);
}

uint64_t zset_scan(const struct entry *e, uint64_t cursor, uint64_t count, zset_visit_fn visit,
                   void *context)
{
    if (is_large(e)) {
        struct scan s = {visit, context, 0};
        if (cursor >= SCAN_CURSOR_END) {
            return 0;
        }
        do {
            cursor = table_scan(&large_of(e)->members, cursor, scan_node, &s);
        } while (cursor != 0 && s.seen < count);
        return cursor;
    }
    char text[ZSET_TEXT_BYTES];
    struct zset_cursor c = zset_cursor_at(e, 0, false);
    for (; zset_cursor_valid(&c); zset_cursor_step(&c)) {
        visit(zset_cursor_member(&c, text), zset_cursor_score(&c), context);
    }
    return 0;
}

/* Members of a large set drawn at once. */
#define DRAWN_TOGETHER 64

static void draw_large(const struct zset *z, uint64_t count, zset_visit_fn visit, void *context)
{
    while (count > 0) {
        uintptr_t *slots[DRAWN_TOGETHER];
        unsigned some = count < DRAWN_TOGETHER ? (unsigned)count : DRAWN_TOGETHER;
        table_draw(&z->members, slots, some);
        for (unsigned i = 0; i < some; i++) {
            const struct skiplist_node *n = table_entry(*slots[i]);
            visit(skiplist_bytes(n), n->score, context);
        }
        count -= some;
    }
}

void zset_draw(const struct entry *e, uint64_t count, zset_visit_fn visit, void *context)
{
    uint64_t size = zset_count(e);
    char text[ZSET_TEXT_BYTES];
    assert(size > 0);
    if (is_large(e)) {
        draw_large(large_of(e), count, visit, context);
        return;
    }
    for (; count > 0; count--) {
        struct zset_cursor at = zset_cursor_at(e, rand_below(size), false);
        visit(zset_cursor_member(&at, text), zset_cursor_score(&at), context);
    }
}

void zset_check(const struct entry *e)
{
    member_ttl_check(e);
    if (is_large(e)) {
        const struct zset *z = large_of(e);
        table_check(&z->members);
        skiplist_check(&z->list);
        assert(z->members.count == z->list.count);
        for (const struct skiplist_node *n = skiplist_first(&z->list); n; n = n->next) {
            assert(large_find(z, skiplist_bytes(n)) == n);
        }
        return;
    }
    const unsigned char *lp = listpack_of(e);
    char text[LISTPACK_TEXT_BYTES], before_text[LISTPACK_TEXT_BYTES];
    const unsigned char *before = NULL;
    assert(listpack_count(lp) % 2 == 0);
    for (const unsigned char *at = listpack_first(lp); at;
         at = listpack_next(lp, listpack_next(lp, at))) {
        if (before) {
            assert(comes_before(listpack_score(listpack_next(lp, before)),
                                listpack_get(before, before_text),
                                listpack_score(listpack_next(lp, at)), listpack_get(at, text)));
        }
        before = at;
    }
}

/* ---- The table of operations ---- */

static void destroy(struct entry *e)
{
    if (is_large(e)) {
        zset_large_destroy(large_of(e));
    } else {
        listpack_destroy(listpack_of(e));
    }
}

static void *copy(const struct entry *e)
{
    return is_large(e) ? (void *)large_copy_of(e) : listpack_copy(listpack_of(e));
}

static size_t memory(const struct entry *e, size_t samples)
{
    if (!is_large(e)) {
        return mem_usable_size(listpack_of(e));
    }
    const struct zset *z = large_of(e);
    size_t nodes = 0;
    uint64_t seen = 0;
    for (const struct skiplist_node *n = skiplist_first(&z->list);
         n && (samples == 0 || seen < samples); n = n->next) {
        nodes += skiplist_node_memory_bytes(n);
        seen++;
    }
    size_t all = seen ? (size_t)((double)nodes / (double)seen * (double)z->list.count) : 0;
    return mem_usable_size(z) + table_memory_bytes(&z->members) + skiplist_memory_bytes(&z->list) +
           all;
}

static size_t free_effort(const struct entry *e)
{
    return is_large(e) ? large_of(e)->list.count : 1;
}

static const char *encoding(const struct entry *e)
{
    return is_large(e) ? "skiplist" : "listpack";
}

/* The sum without carry of one hash for each member with its score; -0 counts as 0, since a
 * listpack does not tell them apart. */
static void digest(const struct entry *e, uint8_t sum[20])
{
    char text[ZSET_TEXT_BYTES];
    struct zset_cursor c = zset_cursor_at(e, 0, false);
    memset(sum, 0, 20);
    for (; zset_cursor_valid(&c); zset_cursor_step(&c)) {
        uint8_t part[40];
        struct slice member = zset_cursor_member(&c, text);
        double score = zset_cursor_score(&c) + 0.0;
        SHA1((const unsigned char *)member.ptr, member.len, part);
        memcpy(part + 20, &score, sizeof(score));
        SHA1(part, 20 + sizeof(score), part);
        for (int i = 0; i < 20; i++) {
            sum[i] ^= part[i];
        }
    }
}

static bool has_member(const struct entry *e, struct slice member)
{
    double score;
    return zset_score(e, member, &score);
}

/* For DEBUG HTSTATS-KEY. */
static const struct table *table_under(const struct entry *e)
{
    const struct zset *z = entry_encoding(e) == ENCODING_SKIPLIST ? entry_pointer(e) : NULL;
    return z ? &z->members : NULL;
}

static void describe(const struct entry *e, bool elements UNUSED, struct buf *out)
{
    assert(entry_encoding(e) == ENCODING_LISTPACK);
    listpack_describe(entry_pointer(e), out);
}

const struct value_ops zset_ops = {
    .name = "zset",
    .destroy = destroy,
    .copy = copy,
    .memory = memory,
    .free_effort = free_effort,
    .encoding = encoding,
    .digest = digest,
    .table = table_under,
    .count = zset_count,
    .has = has_member,
    .remove = zset_remove,
    .describe = describe,
};
