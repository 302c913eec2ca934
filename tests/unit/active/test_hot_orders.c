/* Histories of a few writes, each by another node, in every order in which they may arrive at a
 * node of which the key is hot (merge_hot.c): without a conflict the content is what the writes
 * give in their own order. Each history is one that a rule could get wrong. It is tried plainly,
 * where those that the rules are for leave no conflict at all; with bases too expensive to be begun
 * from; and with the window swept at each place, up to each write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sides.h"

#include "active/hot_keys.h"
#include "long.h"

#include <string.h>

#define WRITES_MAX 5
#define STATES_MAX 2
/* Origins: 1 to WRITES_MAX write; then who tell states, and who wrote what was there before. */
#define BEFORE (WRITES_MAX + STATES_MAX + 1)
/* Stamps: of what was there before, then that many from one write to the next. */
#define FIRST 1000
#define STEP 10

struct history {
    const char *before; /* commands, with ';' between; it has left the window */
    const char *writes[WRITES_MAX];
    bool is_exact; /* no order leaves a conflict */
    /* A node that knows those writes (bits) tells its state behind the first `behind` writes; 0:
     * nobody does. The second such node has guessed wrongly before. */
    struct {
        unsigned known;
        int behind;
    } told[STATES_MAX];
};

#define LIST "RPUSH k0 1 2 3"
#define TWINS "RPUSH k0 1 2 1 3 1"
#define DATED "RPUSH k0 1;PEXPIREAT k0 5000"
#define HASH "HSET k0 m0 1 m1 2"

static const struct history histories[] = {
    /* Pushes stand in their order, at either end, one or several at once. */
    {LIST, {"RPUSH k0 11", "RPUSH k0 12", "RPUSH k0 13", "RPUSH k0 14"}, true, {{0}}},
    {LIST, {"LPUSH k0 11", "RPUSH k0 12", "LPUSH k0 13", "RPUSH k0 14"}, true, {{0}}},
    {LIST, {"RPUSH k0 11 12", "LPUSH k0 13 14", "RPUSH k0 15 16", "LPUSH k0 17"}, true, {{0}}},
    {"", {"RPUSH k0 11", "LPUSH k0 12", "RPUSH k0 13", "LPUSH k0 14"}, true, {{0}}},
    /* Equal ones, of which all are there. */
    {LIST, {"RPUSH k0 11", "RPUSH k0 11", "RPUSH k0 12", "RPUSH k0 13 13"}, true, {{0}}},
    {LIST, {"RPUSH k0 3", "RPUSH k0 3", "RPUSH k0 12", "RPUSH k0 3"}, true, {{0}}},
    /* Takings commute, from both ends, with pushes of others, and where too few are there. */
    {LIST, {"LREM k0 1 1", "LREM k0 -1 3", "LREM k0 1 2", "LREM k0 1 1"}, true, {{0}}},
    {TWINS, {"LREM k0 1 1", "LREM k0 -1 1", "LREM k0 1 3"}, true, {{0}}},
    {TWINS, {"LREM k0 1 1", "LREM k0 -1 1", "LREM k0 1 1", "LREM k0 -1 1"}, true, {{0}}},
    {TWINS, {"LREM k0 -1 1", "RPUSH k0 11", "LREM k0 1 2", "LPUSH k0 12"}, true, {{0}}},
    /* The key goes, and is made anew. */
    {"RPUSH k0 1", {"LREM k0 1 1", "RPUSH k0 11", "LPUSH k0 12"}, true, {{0}}},
    {"RPUSH k0 1", {"RPUSH k0 11", "LREM k0 1 1", "RPUSH k0 12", "RPUSH k0 13"}, true, {{0}}},
    /* An element that is taken behind its push; one of the same bytes was there before. */
    {LIST, {"RPUSH k0 11", "LREM k0 1 11", "RPUSH k0 12"}, false, {{0}}},
    {LIST, {"RPUSH k0 3", "LREM k0 1 3", "RPUSH k0 12"}, false, {{0}}},
    {LIST, {"LREM k0 -1 3", "RPUSH k0 3", "RPUSH k0 12"}, false, {{0}}},
    {LIST, {"RPUSH k0 1", "RPUSH k0 11", "LREM k0 1 1", "RPUSH k0 12"}, false, {{0}}},
    {TWINS, {"RPUSH k0 11", "RPUSH k0 1", "LREM k0 1 1", "RPUSH k0 12"}, false, {{0}}},
    {TWINS, {"RPUSH k0 11", "RPUSH k0 1", "LREM k0 -1 1", "RPUSH k0 12"}, false, {{0}}},
    {TWINS, {"RPUSH k0 11", "RPUSH k0 12", "RPUSH k0 1", "LREM k0 1 1"}, false, {{0}}},
    {TWINS, {"RPUSH k0 11", "LPUSH k0 1", "RPUSH k0 1", "LREM k0 -1 1"}, false, {{0}}},
    {"",
     {"RPUSH k0 11", "LPUSH k0 12", "RPUSH k0 12", "LREM k0 1 12", "RPUSH k0 13"},
     false,
     {{0}}},
    {"", {"RPUSH k0 1 2", "LREM k0 1 1", "RPUSH k0 1", "LREM k0 1 1", "LPUSH k0 1"}, false, {{0}}},
    /* What depends on places. */
    {LIST, {"RPUSH k0 11", "LSET k0 0 12", "RPUSH k0 13", "LREM k0 1 1"}, false, {{0}}},
    {LIST, {"LPUSH k0 11", "LSET k0 0 12", "LPUSH k0 13"}, false, {{0}}},
    {LIST, {"LREM k0 1 1", "LSET k0 1 12", "RPUSH k0 13"}, false, {{0}}},
    {LIST, {"RPUSH k0 11", "LINSERT k0 BEFORE 11 12", "RPUSH k0 13"}, false, {{0}}},
    {LIST, {"LINSERT k0 BEFORE 3 11", "RPUSH k0 3", "LREM k0 1 3", "RPUSH k0 12"}, false, {{0}}},
    {LIST, {"RPUSH k0 11", "LREM k0 0 11", "RPUSH k0 11", "RPUSH k0 12"}, false, {{0}}},
    /* A base between them, and other types. */
    {LIST, {"RPUSH k0 11", "DEL k0", "RPUSH k0 12", "LREM k0 1 11", "RPUSH k0 13"}, false, {{0}}},
    {LIST, {"RPUSH k0 11", "DEL k0", "SADD k0 m0", "SREM k0 m0"}, false, {{0}}},
    {LIST, {"DEL k0", "SADD k0 m0", "DEL k0", "RPUSH k0 11", "RPUSH k0 12"}, false, {{0}}},
    {LIST, {"RPUSH k0 11", "SET k0 5", "INCRBY k0 2", "INCRBY k0 3"}, false, {{0}}},
    {LIST, {"SADD k0 m0", "RPUSH k0 11", "LREM k0 1 1", "RPUSH k0 12"}, false, {{0}}},
    {"", {"SADD k0 m0", "SREM k0 m0", "RPUSH k0 11", "LREM k0 1 11", "SADD k0 m1"}, false, {{0}}},
    /* Deadlines: given, taken back, passed; and with the key gone between. */
    {DATED, {"RPUSH k0 11", "LREM k0 1 1", "RPUSH k0 12"}, false, {{0}}},
    {DATED, {"RPUSH k0 11", "KEYDB.EXPIRED k0 5000", "RPUSH k0 12", "LREM k0 1 11"}, false, {{0}}},
    {DATED, {"RPUSH k0 11", "PERSIST k0", "LREM k0 1 1", "RPUSH k0 12"}, false, {{0}}},
    {"RPUSH k0 1",
     {"PEXPIREAT k0 5000", "RPUSH k0 11", "LREM k0 1 1", "RPUSH k0 12"},
     false,
     {{0}}},
    {"RPUSH k0 1",
     {"RPUSH k0 11", "LREM k0 1 1", "PEXPIREAT k0 5000", "RPUSH k0 12"},
     false,
     {{0}}},
    {HASH ";PEXPIREAT k0 5000", {"HSET k0 m2 1", "HDEL k0 m0 m1", "HSET k0 m0 7"}, false, {{0}}},
    {HASH ";PEXPIREMEMBERAT k0 m0 5000",
     {"HSET k0 m0 3", "KEYDB.EXPIRED k0 5000 m0", "HINCRBY k0 m0 2", "HDEL k0 m1"},
     false,
     {{0}}},
    /* Members given, overwritten, taken and added to, some of a write's and all of them. */
    {HASH, {"HSET k0 m0 5 m1 6", "HDEL k0 m0", "HSET k0 m0 7", "HSET k0 m1 8"}, true, {{0}}},
    {HASH, {"HSET k0 m0 5", "HINCRBY k0 m0 2", "HINCRBY k0 m0 3", "HSET k0 m1 4"}, true, {{0}}},
    {HASH, {"HDEL k0 m0", "HINCRBY k0 m0 2", "HDEL k0 m1", "HINCRBY k0 m1 3"}, true, {{0}}},
    {HASH, {"HINCRBY k0 m0 2", "HSET k0 m0 5", "HINCRBY k0 m0 3", "HDEL k0 m0"}, true, {{0}}},
    {HASH,
     {"HSET k0 m0 5 m1 6", "HINCRBY k0 m1 2", "HDEL k0 m0 m1", "HINCRBY k0 m0 1"},
     true,
     {{0}}},
    {HASH, {"HDEL k0 m0 m1", "HSET k0 m2 1", "HDEL k0 m2", "HSET k0 m0 2"}, true, {{0}}},
    {"SADD k0 m0", {"SADD k0 m1 m2", "SREM k0 m0 m1", "SADD k0 m0", "SREM k0 m2"}, true, {{0}}},
    {"SADD k0 m0", {"SREM k0 m0", "SADD k0 m0 m1", "SREM k0 m1", "SREM k0 m0"}, true, {{0}}},
    {"ZADD k0 1 m0",
     {"ZADD k0 5 m0", "ZINCRBY k0 2 m0", "ZREM k0 m0", "ZINCRBY k0 3 m0"},
     true,
     {{0}}},
    {"ZADD k0 1 m0",
     {"ZINCRBY k0 2 m0", "ZADD k0 5 m0 6 m1", "ZREM k0 m1", "ZADD k0 7 m1"},
     true,
     {{0}}},
    {"INCRBY k0 5", {"INCRBY k0 1", "INCRBY k0 2", "INCRBY k0 3", "INCRBY k0 4"}, true, {{0}}},
    {"INCRBY k0 5", {"INCRBY k0 1", "APPEND k0 7", "INCRBY k0 3", "SET k0 4"}, false, {{0}}},
    /* Several commands of one write: what is before in the same one is not behind. */
    {LIST, {"LREM k0 1 1;RPUSH k0 1", "RPUSH k0 11", "LREM k0 1 2;RPUSH k0 2"}, false, {{0}}},
    {LIST, {"RPUSH k0 11;LREM k0 1 11", "RPUSH k0 12;LPUSH k0 12", "RPUSH k0 13"}, false, {{0}}},
    {LIST,
     {"RPUSH k0 11", "DEL k0;RPUSH k0 12;LREM k0 1 12", "RPUSH k0 13;LREM k0 1 11"},
     false,
     {{0}}},
    {LIST, {"SET k0 1;INCRBY k0 2", "INCRBY k0 3;INCRBY k0 4", "INCRBY k0 5"}, false, {{0}}},
    {HASH,
     {"HSET k0 m0 5;HINCRBY k0 m0 1", "HDEL k0 m0;HSET k0 m1 4", "HINCRBY k0 m1 2"},
     true,
     {{0}}},
    {HASH, {"HINCRBY k0 m0 1;HSET k0 m0 5", "HINCRBY k0 m0 2;HINCRBY k0 m0 3"}, true, {{0}}},
    /* A state that knows some of them: with all of them below it, or not; with a whole write that
     * it knows, and with one that it does not. */
    {LIST, {"RPUSH k0 11", "LREM k0 1 1", "RPUSH k0 12", "RPUSH k0 13"}, false, {{0x5, 3}}},
    {LIST, {"RPUSH k0 11", "LREM k0 1 11", "RPUSH k0 12", "RPUSH k0 13"}, false, {{0x2, 2}}},
    {LIST, {"RPUSH k0 11", "RPUSH k0 12", "RPUSH k0 13", "LREM k0 1 12"}, false, {{0x1, 2}}},
    {LIST, {"RPUSH k0 11", "DEL k0", "RPUSH k0 12", "RPUSH k0 13"}, false, {{0x5, 3}}},
    {LIST, {"RPUSH k0 11", "DEL k0", "RPUSH k0 12", "RPUSH k0 13"}, false, {{0x2, 3}}},
    {LIST, {"RPUSH k0 11", "DEL k0", "RPUSH k0 12", "LREM k0 1 12"}, false, {{0x7, 3}}},
    {LIST, {"DEL k0", "LREM k0 1 1", "RPUSH k0 12", "RPUSH k0 13"}, false, {{0x4, 4}}},
    {LIST, {"RPUSH k0 11", "DEL k0", "RPUSH k0 12", "RPUSH k0 13"}, false, {{0x8, 4}}},
    {LIST, {"DEL k0", "DEL k0;RPUSH k0 11", "RPUSH k0 12"}, false, {{0x2, 3}}},
    {LIST, {"DEL k0", "RPUSH k0 11", "RPUSH k0 12"}, false, {{0x4, 3}, {0x3, 2}}},
    {LIST, {"DEL k0", "RPUSH k0 11"}, false, {{0x2, 2}, {0x3, 2}}},
    {HASH, {"HSET k0 m0 5", "HINCRBY k0 m0 2", "HDEL k0 m1", "HINCRBY k0 m0 3"}, false, {{0x2, 3}}},
    {HASH, {"HDEL k0 m0 m1", "DEL k0", "HINCRBY k0 m0 2", "HSET k0 m1 3"}, false, {{0x5, 3}}},
    {"INCRBY k0 5",
     {"INCRBY k0 1", "INCRBY k0 2", "INCRBY k0 3", "INCRBY k0 4"},
     false,
     {{0x6, 3}}},
};

/* What a history's orders are made of: its writes, and the state. */
struct pieces {
    const struct history *history;
    struct unit *before, *units[WRITES_MAX + STATES_MAX];
    int count;                  /* of both together */
    int writes, of[STATES_MAX]; /* units[writes + i] is history->told[of[i]] */
    struct side in_order;
};

static struct unit *unit_of(const char *lines, uint64_t stamp, int origin)
{
    struct buf commands = {0};
    char copy[200], *line, *rest = copy;
    assert_true(strlen(lines) < sizeof(copy));
    memcpy(copy, lines, strlen(lines) + 1);
    while ((line = strtok_r(rest, ";", &rest)) != NULL) {
        side_put_words(&commands, line, NULL, NULL);
    }
    struct unit *u = unit_create(dot_of(stamp, (uint16_t)origin, 1), 0, buf_slice(&commands));
    assert_non_null(u);
    buf_deinit(&commands);
    return u;
}

static void take(struct side *s, struct unit *u)
{
    assert_true(merge_acceptable(&s->merge, u));
    merge_apply(&s->merge, u, 0);
}

/* A node that has what was there before. */
static void set_up(const struct pieces *p, struct side *s, unsigned broken)
{
    side_set_up(s, 1000000, broken);
    if (p->before) {
        take(s, p->before);
    }
    (void)window_sweep(s->merge.window, FIRST, UINT64_MAX);
}

/* The stamp of the n-th write; a state behind it has half a step more. */
static uint64_t stamp_of(int n)
{
    return FIRST + (uint64_t)STEP * (uint64_t)n;
}

static uint64_t stamp_of_state(const struct history *h, int told)
{
    return stamp_of(h->told[told].behind) + STEP / 2 + (uint64_t)told;
}

/* What it has of the key, as a state or as a digest. */
static void tell(const struct merge *m, bool as_digest, struct buf *command)
{
    struct buf words = {0};
    if (as_digest) {
        assert_true(merge_put_digest(m, 0, SLICE("k0"), &words));
        merge_digests(m, 1, buf_slice(&words), command);
    } else {
        merge_state(m, 0, SLICE("k0"), command);
    }
    buf_deinit(&words);
}

static struct unit *state_of(const struct pieces *p, int told, bool as_digest)
{
    struct side s;
    struct buf command = {0};
    unsigned known = p->history->told[told].known;
    set_up(p, &s, MERGE_BREAK_HOT);
    for (int i = 0; known >> i; i++) {
        if (known >> i & 1) {
            take(&s, p->units[i]);
        }
    }
    if (told > 0) {
        const struct slice words[] = {SLICE("RPUSH"), SLICE("k0"), SLICE("19")};
        assert_true(s.merge.executor->run(s.merge.context, 0, 3, words));
    }
    tell(&s.merge, as_digest, &command);
    struct dot dot = dot_of(stamp_of_state(p->history, told), (uint16_t)(WRITES_MAX + 1 + told), 1);
    struct unit *u = unit_create(dot, 0, buf_slice(&command));
    assert_non_null(u);
    buf_deinit(&command);
    side_tear_down(&s);
    return u;
}

static void make_pieces(struct pieces *p, const struct history *h)
{
    *p = (struct pieces){.history = h};
    p->before = *h->before ? unit_of(h->before, FIRST, BEFORE) : NULL;
    for (; p->writes < WRITES_MAX && h->writes[p->writes]; p->writes++) {
        p->units[p->writes] = unit_of(h->writes[p->writes], stamp_of(p->writes + 1), p->writes + 1);
    }
    p->count = p->writes;
    for (int told = 0; told < STATES_MAX; told++) {
        if (h->told[told].behind) {
            p->of[p->count - p->writes] = told;
            p->units[p->count++] = state_of(p, told, false);
        }
    }
    set_up(p, &p->in_order, MERGE_BREAK_HOT);
    for (int i = 0; i < p->writes; i++) {
        take(&p->in_order, p->units[i]);
        for (int n = p->writes; n < p->count; n++) {
            if (i + 1 == h->told[p->of[n - p->writes]].behind) {
                take(&p->in_order, p->units[n]);
            }
        }
    }
}

static void drop_pieces(struct pieces *p)
{
    side_tear_down(&p->in_order);
    for (int i = 0; i < p->count; i++) {
        unit_release(p->units[i]);
    }
    if (p->before) {
        unit_release(p->before);
    }
}

struct way {
    bool is_dear;     /* each base has been begun from just now */
    bool hot;         /* false: as keys that are not */
    int swept_behind; /* so many arrivals; 0: never */
    uint64_t swept_upto;
};

static void fail_order(const struct pieces *p, const int *order, const struct way *way,
                       const char *why, const struct side *s)
{
    struct buf text = {0};
    for (int i = 0; i < p->count; i++) {
        int told = order[i] < p->writes ? -1 : p->of[order[i] - p->writes];
        buf_printf(&text, "%s; ",
                   told < 0    ? p->history->writes[order[i]]
                   : told == 0 ? "the state"
                               : "the guess");
        if (i + 1 == way->swept_behind) {
            buf_printf(&text, "(swept up to %d); ", (int)way->swept_upto);
        }
    }
    buf_printf(&text, "%s%s", way->hot ? "" : "not hot, ", way->is_dear ? "dear, " : "");
    buf_printf(&text, "%s: ", why);
    model_describe(&s->model.values[0][0], &text);
    buf_append_cstr(&text, ", in order ");
    model_describe(&p->in_order.model.values[0][0], &text);
    fail_msg("%.*s", (int)text.len, text.data);
}

/* What the node has in the end. */
static void take_all(const struct pieces *p, const int *order, const struct way *way,
                     struct side *s)
{
    set_up(p, s, way->hot ? 0 : MERGE_BREAK_HOT);
    for (int i = 0; i < p->count; i++) {
        if (way->hot) {
            struct hot_key *k = window_hot(s->merge.window, 0, SLICE("k0"), true);
            k->fold_after_ms = way->is_dear ? INT64_MAX : 0;
        }
        take(s, p->units[order[i]]);
        if (i + 1 == way->swept_behind) {
            (void)window_sweep(s->merge.window, way->swept_upto, UINT64_MAX);
        }
    }
}

static bool is_of_state(const struct pieces *p, uint64_t stamp)
{
    for (int i = p->writes; i < p->count; i++) {
        if (p->units[i]->dot.stamp == stamp) {
            return true;
        }
    }
    return false;
}

static void check_order(const struct pieces *p, const int *order, struct way way)
{
    struct side s;
    bool is_plain = !way.is_dear && way.swept_behind == 0;
    take_all(p, order, &way, &s);
    const struct model *m = &s.model, *in_order = &p->in_order.model;
    bool doubts = conflicts_has(s.merge.conflicts, 0, SLICE("k0"));
    if (doubts && p->history->is_exact && way.hot && is_plain) {
        fail_order(p, order, &way, "a conflict", &s);
    }
    if (!doubts && memcmp(&m->values[0][0], &in_order->values[0][0], sizeof(m->values[0][0]))) {
        fail_order(p, order, &way, "another content", &s);
    }
    /* A state that is not in force leaves its dot, or none. */
    uint64_t dot = m->dots[0][0].stamp;
    if (!doubts && dot != in_order->dots[0][0].stamp && !is_of_state(p, dot)) {
        fail_order(p, order, &way, "another dot", &s);
    }
    side_tear_down(&s);
}

/* All orders of those from `from` on. */
static void check_orders(const struct pieces *p, int *order, int from)
{
    if (from == p->count) {
        check_order(p, order, (struct way){.hot = true, .is_dear = true});
        for (int hot = 0; hot < 2; hot++) {
            check_order(p, order, (struct way){.hot = hot});
            for (int i = 0; i < p->count * p->count; i++) {
                check_order(p, order,
                            (struct way){.hot = hot,
                                         .swept_behind = 1 + i / p->count,
                                         .swept_upto = stamp_of(1 + i % p->count)});
            }
        }
        return;
    }
    for (int i = from; i < p->count; i++) {
        int first = order[i];
        order[i] = order[from];
        order[from] = first;
        check_orders(p, order, from + 1);
        order[from] = order[i];
        order[i] = first;
    }
}

static void test_every_order(void **state)
{
    (void)state;
    size_t step = 8 / UNIT_LONG(8);
    for (size_t i = 0; i < sizeof(histories) / sizeof(histories[0]); i += step) {
        struct pieces p;
        int order[WRITES_MAX + STATES_MAX];
        make_pieces(&p, &histories[i]);
        for (int n = 0; n < p.count; n++) {
            order[n] = n;
        }
        check_orders(&p, order, 0);
        drop_pieces(&p);
    }
}

/* A digest says what a state would: the content should begin from it, if it does not yet. */
static void test_a_digest_before_a_doubtful_state(void **state)
{
    (void)state;
    static const struct history history = {
        LIST, {"DEL k0", "RPUSH k0 11", "RPUSH k0 12"}, false, {{0x4, 3}, {0x3, 2}}};
    struct pieces p;
    struct side s;
    make_pieces(&p, &history);
    struct unit *digest = state_of(&p, 1, true);
    set_up(&p, &s, 0);
    for (int i = 0; i <= p.writes; i++) {
        take(&s, p.units[i]);
    }
    (void)window_sweep(s.merge.window, stamp_of(1), UINT64_MAX);
    assert_false(conflicts_has(s.merge.conflicts, 0, SLICE("k0")));
    take(&s, digest);
    assert_true(conflicts_has(s.merge.conflicts, 0, SLICE("k0")));
    side_tear_down(&s);
    unit_release(digest);
    drop_pieces(&p);
}

/* A node that has INCRBY k0 1, so often. */
static void count_up(struct side *s, int count)
{
    struct buf command = {0};
    side_set_up(s, 100000000, 0);
    side_put_words(&command, "INCRBY k0 1", NULL, NULL);
    for (int i = 1; i <= count; i++) {
        struct unit *u = unit_create(dot_of(FIRST + (uint64_t)(STEP * i), 1, (uint64_t)i), 0,
                                     buf_slice(&command));
        assert_non_null(u);
        take(s, u);
        unit_release(u);
    }
    buf_deinit(&command);
}

/* A state below more writes than may be run in one hold is not begun from, when what it has is
 * here; that is put in. */
static void test_a_state_below_very_much(void **state)
{
    (void)state;
    struct unit *five = unit_of("INCRBY k0 5", FIRST + 1, 2);
    for (int more = 0; more < 2; more++) {
        int count = MERGE_REFOLD_MAX + more;
        struct side s, other, in_order;
        struct buf command = {0};
        count_up(&s, count);
        count_up(&other, 0);
        count_up(&in_order, count + 5);
        take(&other, five);
        tell(&other.merge, false, &command);
        uint64_t stamp = FIRST + (uint64_t)(STEP * count + 1);
        struct unit *told = unit_create(dot_of(stamp, 3, 1), 0, buf_slice(&command));
        assert_non_null(told);
        take(&s, told);
        assert_int_equal(s.merge.plans[MERGE_REFOLD], 0);
        take(&s, five);
        assert_int_equal(conflicts_has(s.merge.conflicts, 0, SLICE("k0")), more);
        assert_int_equal(s.merge.plans[MERGE_REFOLD], 1 - more);
        assert_memory_equal(&s.model.values[0][0], &in_order.model.values[0][0],
                            sizeof(s.model.values[0][0]));
        buf_deinit(&command);
        unit_release(told);
        side_tear_down(&s);
        side_tear_down(&other);
        side_tear_down(&in_order);
    }
    unit_release(five);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_order),
        cmocka_unit_test(test_a_digest_before_a_doubtful_state),
        cmocka_unit_test(test_a_state_below_very_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
