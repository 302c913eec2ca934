/* See sets_operation.h. */
#include "commands/sets_operation.h"

#include "base/clock.h"
#include "base/mem.h"
#include "commands/sets_priv.h"

#include <stdlib.h>

/* A union of up to so many sets asks the earlier ones about each member; one of more collects what
 * it has seen. */
#define UNION_LOOKS_BACK 4
/* Members between two looks at the clock: 10 to 30 microseconds. */
#define LOOK_EVERY_MEMBERS 64
/* What the copy of a large member takes beside its bytes, generously. */
#define LARGE_EXTRA_BYTES 4096
/* Packed sets with fewer members together are searched faster than indexed. */
#define INDEX_FROM_MEMBERS 32

void sets_operation_init(struct sets_operation *o, enum sets_operation_kind kind, int count)
{
    assert(count >= 1);
    *o = (struct sets_operation){.kind = kind, .count = count, .sink.limit = UINT64_MAX};
    o->sets = count <= SETS_INLINE ? o->room : mem_calloc((size_t)count, sizeof(struct entry *));
}

void sets_operation_deinit(struct sets_operation *o)
{
    if (o->sets != o->room) {
        mem_free(o->sets);
    }
    if (o->own) {
        entry_destroy(&o->own);
    }
    if (o->index) {
        sets_index_destroy(o->index);
    }
}

/* ---- order of sets ---- */

/* Drops missing sets and, after the first `kept`, those that stand there already. */
static void drop_missing(struct sets_operation *o, int kept)
{
    int left = kept;
    for (int i = kept; i < o->count; i++) {
        if (o->sets[i]) {
            o->sets[left++] = o->sets[i];
        }
    }
    o->count = left;
}

static int by_count(const void *a, const void *b)
{
    uint64_t x = set_count(*(struct entry *const *)a), y = set_count(*(struct entry *const *)b);
    return (x > y) - (x < y);
}

static int by_count_falling(const void *a, const void *b)
{
    return by_count(b, a);
}

uint64_t sets_operation_work(const struct sets_operation *o)
{
    uint64_t all = 0, least = UINT64_MAX;
    for (int i = 0; i < o->count; i++) {
        uint64_t count = o->sets[i] ? set_count(o->sets[i]) : 0;
        all += count;
        least = count < least ? count : least;
    }
    if (o->kind == SETS_INTER) {
        least = least < o->sink.limit ? least : o->sink.limit;
        return least * (uint64_t)o->count;
    }
    return all;
}

/* ---- small sets ---- */

/* Makes the index where all sets are packed and have few members, but enough of them to pay. */
static void create_index(struct sets_operation *o)
{
    uint64_t members = 0;
    for (int i = 0; i < o->count; i++) {
        if (!set_is_packed(o->sets[i])) {
            return;
        }
        members += set_count(o->sets[i]);
    }
    if (o->count > 1 && members >= INDEX_FROM_MEMBERS && members <= SETS_INDEX_MEMBERS) {
        o->index = sets_index_create();
    }
}

/* Adds all members of some packed sets to it. */
static void index_sets(struct sets_operation *o, struct entry *const *sets, int count)
{
    for (int i = 0; i < count; i++) {
        struct set_walk walk;
        struct set_member m;
        set_walk_begin(&walk, sets[i]);
        while (set_walk_next(&walk, &m)) {
            sets_index_add(o->index, &m);
        }
    }
}

/* ---- members ---- */

/* Sets memory aside for the copy of a member where it is a large one; false when there is none. */
static bool copy_fits(struct sets_sink *sink, struct set_member *m)
{
    size_t len = set_member_bytes(m).len;
    if (unlikely(len >= CALL_RESERVE_FROM_BYTES) && !mem_reserve(len + LARGE_EXTRA_BYTES)) {
        sink->lost = true;
    }
    return !sink->lost;
}

/* Passes a member on; true when the sink wants no more. */
static inline bool sink_pass(struct sets_sink *sink, struct set_member *m)
{
    if (sink->reply) {
        sets_reply_member(sink->reply, m);
    } else if (sink->gathered && !gathered_add(sink->gathered, set_member_bytes(m))) {
        sink->lost = true;
    }
    return ++sink->count == sink->limit || sink->lost;
}

/* The same of one that is not in the set that grows. */
static inline bool sink_add(struct sets_sink *sink, struct set_member *m)
{
    if (sink->into) {
        if (!copy_fits(sink, m)) {
            return true;
        }
        set_add_new(sink->into, m);
    }
    return sink_pass(sink, m);
}

/* The next member of the set `e`, which is walked until there is none. */
static inline bool walk_next(struct sets_operation *o, const struct entry *e, struct set_member *m)
{
    if (unlikely(!o->walking)) {
        set_walk_begin(&o->walk, e);
        o->walking = true;
    }
    return likely(set_walk_next(&o->walk, m)) || (o->walking = false);
}

static bool look_at_clock(struct sets_operation *o)
{
    o->until_look = LOOK_EVERY_MEMBERS / (unsigned)(o->count + 1) + 1; /* looked up in all sets */
    return o->budget_ns && o->walk.encoding == ENCODING_TABLE &&
           clock_ticks_to_ns(clock_ticks() - o->begin_ticks) >= o->budget_ns;
}

static inline bool is_late(struct sets_operation *o)
{
    return unlikely(--o->until_look == 0) && look_at_clock(o);
}

static inline bool all_contain(struct entry *const *sets, int count, struct set_member *m)
{
    for (int i = 0; i < count; i++) {
        if (!set_contains(sets[i], m)) {
            return false;
        }
    }
    return true;
}

static inline bool one_contains(struct entry *const *sets, int count, struct set_member *m)
{
    for (int i = 0; i < count; i++) {
        if (set_contains(sets[i], m)) {
            return true;
        }
    }
    return false;
}

/* ---- the three operations: true at the end ---- */

static bool intersect(struct sets_operation *o)
{
    struct set_member m;
    if (!o->begun) {
        for (int i = 0; i < o->count; i++) {
            if (!o->sets[i]) {
                return true;
            }
        }
        /* The smallest is walked, the next smallest rules out most. */
        qsort(o->sets, (size_t)o->count, sizeof(*o->sets), by_count);
        create_index(o);
        if (o->index) {
            index_sets(o, o->sets + 1, 1);
        }
        o->begun = true;
    }
    int looked_up = o->index ? 2 : 1; /* from this set on */
    while (walk_next(o, o->sets[0], &m)) {
        if ((!o->index || sets_index_has(o->index, &m)) &&
            all_contain(o->sets + looked_up, o->count - looked_up, &m) && sink_add(&o->sink, &m)) {
            return true;
        }
        if (is_late(o)) {
            return false;
        }
    }
    return true;
}

/* Adds to the set that grows; false when it was there. */
static inline bool collect(struct sets_operation *o, struct entry *seen, struct set_member *m)
{
    uint64_t hash = set_member_hash(m), mark = UINT64_C(1) << (hash & 63);
    uint64_t *word = &o->seen_bits[(hash >> 6) % SETS_SEEN_WORDS];
    if (*word & mark) {
        return set_add(seen, m);
    }
    *word |= mark;
    set_add_new(seen, m);
    return true;
}

/* Into a set, or of many sets: each member is new if the set that grows says so. */
static bool unite_collecting(struct sets_operation *o)
{
    struct entry *seen = o->sink.into ? o->sink.into : o->own;
    for (; o->at < o->count; o->at++) {
        struct set_member m;
        while (walk_next(o, o->sets[o->at], &m)) {
            if (!copy_fits(&o->sink, &m) || (collect(o, seen, &m) && sink_pass(&o->sink, &m))) {
                return true;
            }
            if (is_late(o)) {
                return false;
            }
        }
    }
    return true;
}

/* Of small sets: each member is new that the index has not. */
static bool unite_indexed(struct sets_operation *o)
{
    for (; o->at < o->count; o->at++) {
        struct set_member m;
        while (walk_next(o, o->sets[o->at], &m)) {
            if (sets_index_add(o->index, &m) && sink_add(&o->sink, &m)) {
                return true;
            }
        }
    }
    return true;
}

static bool unite(struct sets_operation *o)
{
    if (!o->begun) {
        drop_missing(o, 0);
        create_index(o);
        o->begun = true;
        if (!o->index && !o->sink.into && o->count > UNION_LOOKS_BACK) {
            o->own = set_create(SLICE(""), NULL, 0, ENTRY_NO_EXPIRY);
        }
    }
    if (o->index) {
        return unite_indexed(o);
    }
    if (o->sink.into || o->own) {
        return unite_collecting(o);
    }
    for (; o->at < o->count; o->at++) {
        struct set_member m;
        while (walk_next(o, o->sets[o->at], &m)) {
            if (!one_contains(o->sets, o->at, &m) && sink_add(&o->sink, &m)) {
                return true;
            }
            if (is_late(o)) {
                return false;
            }
        }
    }
    return true;
}

/* Chooses the way: looking up each member of the first set in all others, or each of the others in
 * the first, what is less. False when nothing is left anyway. */
static bool subtract_begin(struct sets_operation *o)
{
    struct entry *first = o->sets[0];
    uint64_t members_of_others = 0;
    if (!first) {
        return false;
    }
    drop_missing(o, 1);
    struct entry **others = o->sets + 1;
    int count = o->count - 1;
    for (int i = 0; i < count; i++) {
        if (others[i] == first) {
            return false;
        }
        members_of_others += set_count(others[i]);
    }
    create_index(o);
    o->filtering =
        !o->index && set_count(first) * (uint64_t)count > members_of_others * 2 + set_count(first);
    if (o->index) {
        index_sets(o, others, count);
    } else if (o->filtering) {
        o->own = set_create(SLICE(""), NULL, 0, ENTRY_NO_EXPIRY);
    } else {
        qsort(others, (size_t)count, sizeof(*others), by_count_falling);
    }
    o->at = 1;
    o->begun = true;
    return true;
}

/* Collects what the others have of the first. */
static bool filter(struct sets_operation *o)
{
    for (; o->at < o->count; o->at++) {
        struct set_member m;
        while (walk_next(o, o->sets[o->at], &m)) {
            if (set_contains(o->sets[0], &m) && copy_fits(&o->sink, &m)) {
                set_add(o->own, &m);
            }
            if (is_late(o)) {
                return false;
            }
        }
    }
    o->filtering = false;
    return true;
}

static bool subtract(struct sets_operation *o)
{
    struct set_member m;
    if (!o->begun && !subtract_begin(o)) {
        return true;
    }
    if (o->filtering && !filter(o)) {
        return false;
    }
    struct entry *const *others = o->own ? &o->own : o->sets + 1;
    int count = o->own ? 1 : o->count - 1;
    while (walk_next(o, o->sets[0], &m)) {
        bool has = o->index ? sets_index_has(o->index, &m) : one_contains(others, count, &m);
        if (!has && sink_add(&o->sink, &m)) {
            return true;
        }
        if (is_late(o)) {
            return false;
        }
    }
    return true;
}

bool sets_operation_run(struct sets_operation *o, uint64_t budget_ns)
{
    static bool (*const operations[])(struct sets_operation *) = {intersect, unite, subtract};
    o->budget_ns = budget_ns;
    o->begin_ticks = budget_ns ? clock_ticks() : 0;
    o->until_look = budget_ns ? LOOK_EVERY_MEMBERS : 0; /* 0: after 2^32 members, in vain */
    bool done = operations[o->kind](o);
    mem_unreserve();
    return done;
}
