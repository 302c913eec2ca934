/* Consumer groups against a naive model, and how far they have come: value/stream_group.h,
 * value/stream_lag.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rand.h"
#include "value/stream_group.h"
#include "value/stream_lag.h"

#include <stdio.h>
#include <string.h>

#define IDS 400
#define CONSUMERS 6

/* What is to be known of each ID: whose it is (-1: not pending), since when, how often. */
struct model {
    int owner[IDS];
    int64_t delivered_ms[IDS], deliveries[IDS];
    bool exists[CONSUMERS];
    int64_t active_ms[CONSUMERS];
};

/* IDs that differ in either half, also in their highest bytes. */
static struct stream_id id_of(int i)
{
    return (struct stream_id){(uint64_t)(i / 8) << (i < 150 ? 0 : 50), (uint64_t)(i % 8)
                                                                           << (i % 8 * 8)};
}

static struct slice name_of(int i, char *text)
{
    static const char *const names[CONSUMERS] = {"", "a", "aa", "ab", "b", "\xff long name"};
    return slice_of(text, (size_t)snprintf(text, 32, "%s", names[i]));
}

static struct stream_consumer *consumer_of(const struct stream_group *g, int i)
{
    char text[32];
    return stream_consumer_find(g, name_of(i, text));
}

static void compare_set(const struct model *m, const struct stream_group *g,
                        const struct stream_consumer *only, int owner)
{
    struct stream_pending_cursor at = stream_pending_seek(g, only, STREAM_ID_MIN);
    uint64_t count = 0;
    for (int i = 0; i < IDS; i++) {
        if (m->owner[i] < 0 || (owner >= 0 && m->owner[i] != owner)) {
            continue;
        }
        assert_true(stream_pending_valid(&at));
        const struct stream_pending *p = stream_pending_at(&at);
        assert_int_equal(stream_id_compare(p->id, id_of(i)), 0);
        assert_ptr_equal(p->consumer, consumer_of(g, m->owner[i]));
        assert_int_equal(p->delivered_ms, m->delivered_ms[i]);
        assert_int_equal(p->deliveries, m->deliveries[i]);
        stream_pending_next(&at);
        count++;
    }
    assert_false(stream_pending_valid(&at));
    assert_int_equal(only ? only->pending.count : g->pending.count, count);
}

static void compare(const struct model *m, const struct radix *groups, struct stream_group *g)
{
    char text[32];
    stream_groups_check(groups);
    compare_set(m, g, NULL, -1);
    struct radix_cursor at = radix_first(&g->consumers);
    for (int i = 0; i < CONSUMERS; i++) {
        if (!m->exists[i]) {
            assert_null(consumer_of(g, i));
            continue;
        }
        struct stream_consumer *c = stream_consumer_at(&at);
        assert_true(slice_equal(stream_consumer_name(c), name_of(i, text)));
        assert_int_equal(c->active_ms, m->active_ms[i]);
        compare_set(m, g, c, i);
        radix_cursor_next(&at);
    }
    assert_false(radix_cursor_valid(&at));
}

static void give(struct model *m, struct stream_group *g, int i, int owner, int64_t now)
{
    int64_t deliveries = (int64_t)rand_below(4);
    struct stream_pending *p =
        stream_pending_give(g, consumer_of(g, owner), id_of(i), now, deliveries);
    assert_ptr_equal(p, stream_pending_find(g, id_of(i)));
    m->owner[i] = owner;
    m->delivered_ms[i] = now;
    m->deliveries[i] = deliveries;
}

static void add_or_remove_consumer(struct model *m, struct stream_group *g, int who, int64_t now)
{
    char text[32];
    if (!m->exists[who] || rand_below(8)) {
        struct stream_consumer *c = stream_consumer_add(g, name_of(who, text), now);
        assert_int_equal(c == NULL, m->exists[who]);
        m->active_ms[who] = m->exists[who] ? m->active_ms[who] : STREAM_NEVER;
        m->exists[who] = true;
        return;
    }
    uint64_t had = 0;
    for (int i = 0; i < IDS; i++) {
        had += m->owner[i] == who;
        m->owner[i] = m->owner[i] == who ? -1 : m->owner[i];
    }
    assert_int_equal(stream_consumer_remove(g, consumer_of(g, who)), had);
    m->exists[who] = false;
}

/* Drops every other one of what is pending from an ID on, as XAUTOCLAIM does what it does not find.
 */
static void drop_run(struct model *m, struct stream_group *g, int from)
{
    struct stream_pending_cursor at = stream_pending_seek(g, NULL, id_of(from));
    bool drop = rand_below(2);
    for (int i = from; i < IDS && i < from + 10; i++) {
        if (m->owner[i] < 0) {
            continue;
        }
        assert_int_equal(stream_id_compare(stream_pending_at(&at)->id, id_of(i)), 0);
        if (drop) {
            stream_pending_remove_at(g, &at);
            m->owner[i] = -1;
        } else {
            stream_pending_next(&at);
        }
        drop = !drop;
    }
}

static void step(struct model *m, struct stream_group *g, int64_t now)
{
    int i = (int)rand_below(IDS), who = (int)rand_below(CONSUMERS);
    struct stream_pending *p = stream_pending_find(g, id_of(i));
    assert_int_equal(p != NULL, m->owner[i] >= 0);
    switch (rand_below(8)) {
    case 0:
        add_or_remove_consumer(m, g, who, now);
        break;
    case 1:
    case 2:
    case 3:
        if (m->exists[who]) {
            give(m, g, i, who, now);
        }
        break;
    case 4:
        if (p && m->exists[who]) {
            stream_pending_move(p, consumer_of(g, who));
            stream_pending_count_delivery(p);
            m->owner[i] = who;
            m->deliveries[i]++;
        }
        break;
    case 5:
        assert_int_equal(stream_pending_remove(g, id_of(i)), p != NULL);
        m->owner[i] = -1;
        break;
    case 6:
        if (rand_below(4) == 0) {
            drop_run(m, g, i);
        }
        break;
    default:
        if (m->exists[who]) {
            consumer_of(g, who)->active_ms = m->active_ms[who] = now;
        }
    }
}

static void test_against_model(void **state)
{
    (void)state;
    for (int round = 0; round < 15; round++) {
        struct radix groups, copy;
        struct model m = {0};
        memset(m.owner, -1, sizeof(m.owner));
        radix_init(&groups);
        struct stream_group *g =
            stream_group_add(&groups, SLICE("group"), STREAM_ID_MIN, STREAM_READ_UNKNOWN);
        assert_non_null(g);
        assert_null(stream_group_add(&groups, SLICE("group"), STREAM_ID_MIN, 0));
        for (int n = 0; n < 1500; n++) {
            step(&m, g, n);
            if (n % 64 == 0) {
                compare(&m, &groups, g);
            }
        }
        radix_init(&copy);
        stream_groups_copy(&groups, &copy);
        struct stream_group *twin = stream_group_find(&copy, SLICE("group"));
        compare(&m, &copy, twin);
        uint8_t one[20] = {0}, other[20] = {0};
        stream_groups_digest(&groups, one);
        stream_groups_digest(&copy, other);
        assert_memory_equal(one, other, sizeof(one));
        assert_true(stream_groups_memory(&groups, 0) >=
                    g->pending.count * sizeof(struct stream_pending) + sizeof(*g));
        assert_true(stream_groups_memory(&groups, 1) > 0);
        step(&m, g, 2000);
        stream_groups_check(&copy);
        stream_groups_destroy(&groups);
        stream_groups_destroy(&copy);
        assert_int_equal(groups.count, 0);
    }
}

/* Each change that a client can see changes the digest. */
static void test_digest_tells_changes(void **state)
{
    (void)state;
    struct radix groups;
    uint8_t seen[9][20] = {{0}};
    int n = 1; /* the first: no group */
    radix_init(&groups);
    stream_groups_digest(&groups, seen[0]);
    struct stream_group *g = stream_group_add(&groups, SLICE("g"), STREAM_ID_MIN, 0);
    stream_groups_digest(&groups, seen[n++]);
    g->last_id.seq = 1;
    stream_groups_digest(&groups, seen[n++]);
    g->entries_read = 1;
    stream_groups_digest(&groups, seen[n++]);
    struct stream_consumer *a = stream_consumer_add(g, SLICE("a"), 0);
    struct stream_consumer *b = stream_consumer_add(g, SLICE("b"), 0);
    stream_groups_digest(&groups, seen[n++]);
    struct stream_pending *p = stream_pending_give(g, a, id_of(1), 5, 1);
    stream_groups_digest(&groups, seen[n++]);
    stream_pending_move(p, b);
    stream_groups_digest(&groups, seen[n++]);
    p->delivered_ms++;
    stream_groups_digest(&groups, seen[n++]);
    p->deliveries++;
    stream_groups_digest(&groups, seen[n++]);
    assert_int_equal(n, 9);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) {
            assert_memory_not_equal(seen[i], seen[k], 20);
        }
    }
    uint8_t again[20] = {0};
    a->seen_ms = b->active_ms = 99;
    stream_groups_digest(&groups, again);
    assert_memory_equal(again, seen[n - 1], 20);
    stream_groups_destroy(&groups);
}

static void test_groups_by_name(void **state)
{
    (void)state;
    struct radix groups, other;
    radix_init(&groups);
    radix_init(&other);
    assert_null(stream_group_take(&groups, SLICE("")));
    struct stream_group *empty = stream_group_add(&groups, SLICE(""), STREAM_ID_MAX, 7);
    struct stream_group *b = stream_group_add(&groups, SLICE("b"), STREAM_ID_MIN, 0);
    struct stream_group *a = stream_group_add(&groups, SLICE("a\0x"), STREAM_ID_MIN, 0);
    assert_ptr_equal(stream_group_find(&groups, SLICE("")), empty);
    assert_null(stream_group_find(&groups, SLICE("a")));
    struct radix_cursor at = radix_first(&groups);
    assert_ptr_equal(stream_group_at(&at), empty);
    radix_cursor_next(&at);
    assert_ptr_equal(stream_group_at(&at), a);
    radix_cursor_next(&at);
    assert_ptr_equal(stream_group_at(&at), b);
    assert_ptr_equal(stream_group_take(&groups, SLICE("a\0x")), a);
    stream_group_put(&other, a);
    stream_groups_check(&groups);
    stream_groups_check(&other);
    assert_int_equal(stream_groups_free_effort(&groups), 2);
    stream_groups_destroy(&groups);
    stream_groups_destroy(&other);
}

static void test_deliveries_end(void **state)
{
    (void)state;
    struct stream_pending p = {.deliveries = INT64_MAX - 1};
    stream_pending_count_delivery(&p);
    assert_int_equal(p.deliveries, INT64_MAX);
    stream_pending_count_delivery(&p);
    assert_int_equal(p.deliveries, INT64_MAX);
}

/* What is to be known of a stream and one of its groups, by looking at everything. Entries have the
 * IDs 1-0, 2-0 ... */
struct history {
    struct entry *e;
    struct stream_group *g;
    bool there[300];
    uint64_t added;
    bool with_deletes;
};

static struct history history_begin(void)
{
    return (struct history){.e = stream_create(SLICE("k")),
                            .g = mem_calloc(1, sizeof(struct stream_group))};
}

static void history_end(struct history *h)
{
    mem_free(h->g);
    entry_destroy(&h->e);
}

static struct stream_id id_after(const struct history *h, uint64_t ms)
{
    for (ms++; ms <= h->added && !h->there[ms]; ms++) {
    }
    return (struct stream_id){ms <= h->added ? ms : 0, 0};
}

static void history_step(struct history *h)
{
    struct slice words[2] = {SLICE("f"), SLICE("v")};
    const struct stream_facts *facts = stream_facts(h->e);
    uint64_t some = 1 + rand_below((uint32_t)h->added + 1);
    struct stream_id next = id_after(h, h->g->last_id.ms);
    switch (rand_below(h->with_deletes ? 8 : 6)) {
    case 0:
    case 1:
        h->there[++h->added] = true;
        stream_append(h->e, (struct stream_id){h->added, 0}, words, 2);
        break;
    case 2:
    case 3:
    case 4:
        if (next.ms) {
            stream_group_advance(facts, h->g, next);
        }
        break;
    case 5:
        if (rand_below(8) == 0) {
            struct stream_trim trim = {.kind = STREAM_TRIM_ID, .id = {some, 0}};
            stream_trim(h->e, &trim);
            for (uint64_t i = 1; i < some; i++) {
                h->there[i] = false;
            }
        } else if (rand_below(16) == 0) { /* the group goes anywhere, counts unknown */
            stream_group_place(facts, h->g, (struct stream_id){some - 1, 0}, STREAM_READ_UNKNOWN);
        }
        break;
    default: /* the last that was read, or any */
        some = rand_below(2) ? h->g->last_id.ms : some;
        if (stream_delete(h->e, (struct stream_id){some, 0})) {
            assert_true(h->there[some]);
            h->there[some] = false;
        }
    }
}

/* Returns whether the lag is known. */
static bool history_check(const struct history *h)
{
    int64_t right = 0, lag;
    for (uint64_t i = h->g->last_id.ms + 1; i <= h->added; i++) {
        right += h->there[i];
    }
    if (h->g->entries_read != STREAM_READ_UNKNOWN && h->there[h->g->last_id.ms]) {
        assert_int_equal(h->g->entries_read, h->g->last_id.ms);
    }
    bool known = stream_group_lag(stream_facts(h->e), h->g, &lag);
    if (known) {
        assert_int_equal(lag, right);
    }
    return known;
}

/* A lag that is told is the number of entries behind last_id, whatever was deleted and trimmed. */
static void test_lag_counts(void **state)
{
    (void)state;
    int known = 0, all = 0;
    for (int round = 0; round < 300; round++) {
        struct history h = history_begin();
        h.with_deletes = round % 3;
        h.g->entries_read = round % 2 ? 0 : STREAM_READ_UNKNOWN;
        for (int n = 0; n < 250; n++) {
            history_step(&h);
            known += history_check(&h);
            all++;
        }
        history_end(&h);
    }
    assert_true(known > all / 2); /* it is not always unknown */
}

/* Where nothing was deleted and nobody moved the group, it is always known. */
static void test_lag_is_known(void **state)
{
    (void)state;
    struct history h = history_begin();
    h.g->entries_read = STREAM_READ_UNKNOWN;
    struct slice words[2] = {SLICE("f"), SLICE("v")};
    for (int n = 0; n < 500 && h.added < 250; n++) {
        struct stream_id next = id_after(&h, h.g->last_id.ms);
        if (rand_below(2)) {
            h.there[++h.added] = true;
            stream_append(h.e, (struct stream_id){h.added, 0}, words, 2);
        } else if (next.ms) {
            stream_group_advance(stream_facts(h.e), h.g, next);
        }
        assert_true(history_check(&h));
    }
    history_end(&h);
}

static const struct {
    uint64_t length, added;
    struct stream_id first, last, deleted, group;
    int64_t read;
    int64_t rank, lag; /* lag INT64_MIN: unknown */
} lags[] = {
    /* Never used, emptied, and behind the end. */
    {0, 0, {0, 0}, {0, 0}, {0, 0}, {5, 0}, -1, 0, 0},
    {0, 3, {0, 0}, {9, 0}, {9, 0}, {5, 0}, -1, 3, 0},
    {3, 3, {1, 0}, {3, 0}, {0, 0}, {5, 0}, -1, -1, INT64_MIN},
    /* Before the first, on it, on the last, between. */
    {3, 5, {3, 0}, {5, 0}, {0, 0}, {2, 9}, -1, 2, 3},
    {3, 5, {3, 0}, {5, 0}, {0, 0}, {3, 0}, -1, 3, 2},
    {3, 5, {3, 0}, {5, 0}, {0, 0}, {5, 0}, -1, 5, 0},
    {3, 5, {3, 0}, {5, 0}, {0, 0}, {4, 0}, -1, -1, INT64_MIN},
    {3, 5, {3, 0}, {5, 0}, {0, 0}, {4, 0}, 4, -1, 1},
    /* A tombstone before the first does no harm, one behind the group does. */
    {3, 5, {3, 0}, {5, 0}, {2, 0}, {2, 0}, -1, 2, 3},
    {3, 6, {3, 0}, {6, 0}, {4, 0}, {2, 0}, 2, -1, INT64_MIN},
    {3, 6, {3, 0}, {6, 0}, {4, 0}, {3, 0}, 3, -1, INT64_MIN},
    {3, 6, {3, 0}, {6, 0}, {4, 0}, {4, 0}, 4, -1, 2},
    {3, 6, {3, 0}, {6, 0}, {4, 0}, {5, 0}, 5, -1, 1},
    /* What was counted before those up to the first had gone. */
    {1, 4, {4, 0}, {4, 0}, {3, 0}, {2, 0}, 2, 3, 1},
    {1, 5, {5, 0}, {5, 0}, {0, 0}, {1, 0}, 1, 4, 1},
    /* Counters set by hand: the end is known all the same, and nothing that cannot be is told. */
    {3, 6, {3, 0}, {6, 0}, {4, 0}, {6, 0}, 9, 6, 0},
    {1, INT64_MAX, {3, 0}, {3, 0}, {0, 0}, {3, 0}, 0, INT64_MAX, 0},
    {1, 1, {3, 0}, {3, 0}, {0, 0}, {2, 0}, INT64_MAX, 0, 1},
    {3, 5, {3, 0}, {5, 0}, {0, 0}, {4, 0}, 6, -1, INT64_MIN},
    {3, 5, {3, 0}, {5, 0}, {0, 0}, {4, 0}, 2, -1, INT64_MIN},
    {3, INT64_MAX, {3, 0}, {5, 0}, {0, 0}, {4, 0}, INT64_MAX - 1, -1, INT64_MIN},
};

static void test_lag_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lags) / sizeof(lags[0]); i++) {
        struct stream_facts facts = {.length = lags[i].length,
                                     .entries_added = lags[i].added,
                                     .first_id = lags[i].first,
                                     .last_id = lags[i].last,
                                     .max_deleted_id = lags[i].deleted};
        struct stream_group g = {.last_id = lags[i].group, .entries_read = lags[i].read};
        int64_t lag = 0;
        assert_int_equal(stream_rank(&facts, g.last_id), lags[i].rank);
        bool known = stream_group_lag(&facts, &g, &lag);
        assert_int_equal(known, lags[i].lag != INT64_MIN);
        assert_int_equal(known ? lag : INT64_MIN, lags[i].lag);
    }
}

/* A count that is given is cut to what was ever added, and not kept for a place that the stream has
 * not reached, or that it goes back from. */
static void test_place(void **state)
{
    (void)state;
    struct entry *e = stream_create(SLICE("k"));
    struct slice words[2] = {SLICE("f"), SLICE("v")};
    const struct stream_facts *facts = stream_facts(e);
    uint64_t same = 3, other = 9;
    for (uint64_t i = 1; i <= 3; i++) {
        stream_append(e, (struct stream_id){i, 0}, words, 2);
    }
    struct stream_group *g = stream_group_add(stream_groups(e), SLICE("g"), STREAM_ID_MIN, 0);
    static const struct {
        uint64_t ms;
        int64_t given, kept;
    } cases[] = {{2, 2, 2},  {2, 7, 3},           {2, -1, -1}, {3, INT64_MAX, 3},
                 {4, 2, -1}, {UINT64_MAX, 0, -1}, {0, 0, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stream_group_place(facts, g, (struct stream_id){cases[i].ms, 0}, cases[i].given);
        assert_int_equal(g->last_id.ms, cases[i].ms);
        assert_int_equal(g->entries_read, cases[i].kept);
    }
    stream_group_place(facts, g, (struct stream_id){2, 0}, 2);
    stream_set_facts(e, (struct stream_id){5, 0}, &same, NULL);
    assert_int_equal(g->entries_read, 2);
    stream_set_facts(e, (struct stream_id){5, 0}, &other, NULL);
    assert_int_equal(g->entries_read, STREAM_READ_UNKNOWN);
    stream_group_place(facts, g, (struct stream_id){5, 0}, 9);
    stream_set_facts(e, (struct stream_id){4, 0}, NULL, NULL);
    assert_int_equal(g->entries_read, STREAM_READ_UNKNOWN);
    entry_destroy(&e);
}

/* Pending entries are counted once: about as many bytes as their records have. */
static void test_memory_of_pending_entries(void **state)
{
    (void)state;
    const uint64_t count = 20000;
    struct radix groups;
    radix_init(&groups);
    struct stream_group *g = stream_group_add(&groups, SLICE("group"), STREAM_ID_MIN, 0);
    struct stream_consumer *c = stream_consumer_add(g, SLICE("consumer"), 1);
    for (uint64_t i = 0; i < count; i++) {
        stream_pending_give(g, c, (struct stream_id){i, 1}, 1, 1);
    }
    size_t least = count * (sizeof(struct stream_pending) + sizeof(struct stream_id));
    assert_in_range(stream_groups_memory(&groups, 0), least, least + least / 4);
    stream_groups_destroy(&groups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_of_pending_entries),
        cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_digest_tells_changes),
        cmocka_unit_test(test_groups_by_name),
        cmocka_unit_test(test_deliveries_end),
        cmocka_unit_test(test_lag_counts),
        cmocka_unit_test(test_lag_is_known),
        cmocka_unit_test(test_lag_cases),
        cmocka_unit_test(test_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
