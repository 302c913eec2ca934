/* A few writes of one key, each by another node, of one type, with two members, come to three
 * nodes, each in an order of its own (one in theirs). In the end any two have the same, unless one
 * of them knows that it may not (the key is in conflict). Short, so that nothing mends what a rule
 * gets wrong; half of the keys are hot. Drawn from a seed.
 *
 * KEYDB_TEST_HISTORIES: how many; KEYDB_TEST_SEED: from that one on; KEYDB_TEST_HISTORY: that one
 * only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"
#include "sides.h"

#include "active/hot_keys.h"
#include "base/rand.h"
#include "long.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HISTORIES UNIT_LONG(8000)
#define LOG_BYTES ((size_t)16 << 20)
#define WRITES_MIN 3
#define WRITES_MAX 7
#define LINE_MAX 100
#define NODES 3 /* the last one has them in order */

/* What nodes tell, by the type that it is of. M, O: members; N: a small number; D: a deadline. (Of
 * streams not all that could be told makes sense.) */
static const char *const strings[] = {
    "SET k N",       "SET k N PXAT D", "INCRBY k N", "INCRBY k N", "DECR k",        "APPEND k N",
    "PEXPIREAT k D", "PEXPIREAT k D",  "PERSIST k",  "DEL k",      "SETRANGE k 0 N"};
static const char *const hashes[] = {"HSET k M N",
                                     "HSET k M N O N",
                                     "HDEL k M",
                                     "HDEL k M O",
                                     "HINCRBY k M N",
                                     "HINCRBY k M N",
                                     "PEXPIREMEMBERAT k M D",
                                     "HPEXPIREAT k D FIELDS 1 M",
                                     "HPEXPIREAT k D FIELDS 2 M O",
                                     "PERSIST k M",
                                     "HPERSIST k FIELDS 2 M O",
                                     "KEYDB.EXPIRED k D M"};
static const char *const sets[] = {"SADD k M",
                                   "SADD k M O",
                                   "SADD k M O",
                                   "SREM k M",
                                   "SREM k M O",
                                   "PEXPIREMEMBERAT k M D",
                                   "PEXPIREMEMBERAT k M D",
                                   "PERSIST k M",
                                   "KEYDB.EXPIRED k D M",
                                   "KEYDB.EXPIRED k D M"};
static const char *const zsets[] = {
    "ZADD k N M",  "ZADD k N M N O",        "ZADD k GT N M",       "ZREM k M",
    "ZREM k M O",  "ZINCRBY k N M",         "ZINCRBY k 0.1 M",     "ZINCRBY k -1 M",
    "PERSIST k M", "PEXPIREMEMBERAT k M D", "KEYDB.EXPIRED k D M", "ZADD k 0.1 M"};
static const char *const lists[] = {"RPUSH k N",   "RPUSH k N N",   "LPUSH k N",    "LPUSH k N N",
                                    "LREM k 1 N",  "LREM k -1 N",   "LREM k 0 N",   "LSET k 0 N",
                                    "LTRIM k 0 2", "PEXPIREAT k D", "RPUSH k M O M"};
static const char *const counts[] = {"PFADD k M", "PFADD k M O",   "PFADD k N",
                                     "DEL k",     "PEXPIREAT k D", "PERSIST k"};
/* Of any of these, a few. */
static const char *const keys[] = {"DEL k",     "PEXPIREAT k D",     "PEXPIREAT k D",
                                   "PERSIST k", "KEYDB.EXPIRED k D", "FLUSHDB",
                                   "SADD k M",  "SET k N",           "HSET k M N"};

#define TYPE(lines)                                                                                \
    {                                                                                              \
        (lines), sizeof(lines) / sizeof((lines)[0])                                                \
    }
static const struct {
    const char *const *lines;
    size_t count;
} types[] = {TYPE(strings), TYPE(hashes), TYPE(sets), TYPE(zsets), TYPE(lists), TYPE(counts)};
#define TYPES (sizeof(types) / sizeof(types[0]))

struct history {
    int count, known; /* of these, so many are known to both nodes before the others come */
    bool hot;
    char lines[WRITES_MAX][LINE_MAX];
    int order[NODES][WRITES_MAX];
};

static struct real_group group;

/* So many writes were put in by rules, and so many nodes ended without a conflict. */
static uint64_t by_rules, without_conflict;

static bool draw_word(const char *word, char text[SIDE_WORD_MAX])
{
    if (word[0] == '\0' || word[1] != '\0') {
        return false;
    }
    switch (word[0]) {
    case 'M':
    case 'O':
        snprintf(text, SIDE_WORD_MAX, "m%d", (int)rand_below(2));
        return true;
    case 'N':
        snprintf(text, SIDE_WORD_MAX, "%d", (int)rand_below(3) + 1);
        return true;
    case 'D':
        snprintf(text, SIDE_WORD_MAX, "410244480000%d", (int)rand_below(2));
        return true;
    default:
        return false;
    }
}

/* Draws what the letters of a line stand for. */
static void draw_line(char line[LINE_MAX], const char *pattern)
{
    char copy[LINE_MAX], *rest = copy, text[SIDE_WORD_MAX];
    size_t at = 0;
    snprintf(copy, sizeof(copy), "%s", pattern);
    line[0] = '\0';
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        const char *drawn = draw_word(word, text) ? text : word;
        at += (size_t)snprintf(line + at, LINE_MAX - at, "%s%s", at ? " " : "", drawn);
    }
}

static void draw_order(const struct history *h, int order[WRITES_MAX], bool in_order)
{
    for (int i = 0; i < h->count; i++) {
        order[i] = i;
    }
    for (int i = h->count - 1; i > h->known && !in_order; i--) {
        int with = h->known + (int)rand_below((uint64_t)(i - h->known + 1));
        int other = order[with];
        order[with] = order[i];
        order[i] = other;
    }
}

static void draw_history(struct history *h)
{
    size_t type = rand_below(TYPES), any = sizeof(keys) / sizeof(keys[0]);
    h->count = WRITES_MIN + (int)rand_below(WRITES_MAX - WRITES_MIN + 1);
    h->known = (int)rand_below((uint64_t)h->count);
    h->hot = rand_below(2);
    for (int i = 0; i < h->count; i++) {
        draw_line(h->lines[i], rand_below(5) == 0
                                   ? keys[rand_below(any)]
                                   : types[type].lines[rand_below(types[type].count)]);
    }
    for (int n = 0; n < NODES; n++) {
        draw_order(h, h->order[n], n == NODES - 1);
    }
}

/* A write comes to a node. */
static void take(const struct history *h, int node, int number)
{
    struct buf words = {0};
    struct origin_id writer = {.epoch = 7};
    uint64_t stamp = ((uint64_t)REAL_START_MS << 16) + 2 * (uint64_t)number;
    memset(writer.node, 'a' + number, sizeof(writer.node));
    side_put_words(&words, h->lines[number], NULL, NULL);
    if (h->hot) {
        (void)window_hot(node_merge(group.node[node])->window, 0, SLICE("k"), true);
    }
    assert_int_equal(real_take(&group, node, &writer, 1, stamp, 0, buf_cstr(&words)), RECEIVED);
    buf_deinit(&words);
}

static void fail_history(const struct history *h, uint64_t seed, const char *why)
{
    struct buf text = {0};
    for (int i = 0; i < h->count; i++) {
        buf_printf(&text, "%d: %s; ", i, h->lines[i]);
    }
    buf_append_cstr(&text, h->hot ? "hot; came as" : "came as");
    for (int n = 0; n < NODES; n++) {
        for (int i = 0; i < h->count; i++) {
            buf_printf(&text, " %d", h->order[n][i]);
        }
        buf_append_cstr(&text, n < NODES - 1 ? "," : ": ");
    }
    fail_msg("KEYDB_TEST_HISTORY=%llu: %s%s", (unsigned long long)seed, buf_cstr(&text), why);
}

/* NULL, or what is wrong. */
static const char *run_history(const struct history *h)
{
    static char why[64];
    uint64_t digest = 0;
    int sure = -1;
    real_group_init(&group, NODES, LOG_BYTES, 0);
    why[0] = '\0';
    for (int n = 0; n < NODES; n++) {
        const struct merge *m = node_merge(group.node[n]);
        for (int i = 0; i < h->count; i++) {
            take(h, n, h->order[n][i]);
        }
        by_rules += m->plans[MERGE_REPEAT];
        if (conflicts_has(m->conflicts, 0, SLICE("k"))) {
            continue;
        }
        without_conflict++;
        if (sure >= 0 && digest != real_digest(&group, n, 0, "k")) {
            snprintf(why, sizeof(why), "node %d has not what %d has", n, sure);
        }
        digest = real_digest(&group, n, 0, "k");
        sure = n;
    }
    real_group_deinit(&group);
    return why[0] ? why : NULL;
}

/* What rules got wrong before, or could: the write marked by '!' comes last. */
static const char *const exact[][WRITES_MAX] = {
    /* Repeating the SADD whole would bring back what had gone by the deadline it had before. */
    {"SADD k m1 m0 x", "PEXPIREMEMBERAT k m0 4102444800001", "!SREM k m1", "SADD k m1 m0",
     "KEYDB.EXPIRED k 4102444800001 m0"},
    {"ZADD k 1 m1 1 m0 1 x", "PEXPIREMEMBERAT k m0 4102444800001", "!ZREM k m1", "ZADD k 2 m1 2 m0",
     "KEYDB.EXPIRED k 4102444800001 m0", "ZINCRBY k 1 m0"},
    /* The second XINSERT would count twice. */
    {"KEYDB.XINSERT k 1-1 f 1", "KEYDB.XINSERT k 2-1 f 1", "!XDEL k 1-1", "XDEL k 1-1 2-1",
     "KEYDB.XINSERT k 2-1 f 2"},
    /* Somebody's pending entries make no key, which could have a deadline. */
    {"!KEYDB.XPEND k g 2-1 2 1 d 2-1", "PEXPIREAT k 4102444800001", "KEYDB.XINSERT k 2-1 f 3"},
    /* To whom an entry was given before it came, with another one, and that it was acknowledged. */
    {"XGROUP CREATE k g 0 MKSTREAM", "!KEYDB.XINSERT k 1-1 f 1", "KEYDB.XINSERT k 2-1 f 2",
     "KEYDB.XPEND k g 2-1 5 1 c 1-1 2-1"},
    {"XGROUP CREATE k g 0 MKSTREAM", "!KEYDB.XINSERT k 1-1 f 1", "KEYDB.XINSERT k 2-1 f 2",
     "KEYDB.XPEND k g 2-1 5 1 c 1-1 2-1", "XACK k g 2-1 1-1"},
};
/* These it is not possible to be sure of. */
static const char *const doubtful[][WRITES_MAX] = {
    /* Behind the HPERSIST the HINCRBY would be repeated, of a member that nobody has touched. */
    {"HSET k m1 1 m0 1 x 1", "!PEXPIREMEMBERAT k m1 4102444800001", "HPERSIST k FIELDS 2 m1 m0",
     "HINCRBY k m0 6"},
    /* 0.7 + 0.1 + 0.1 + 0.1 is not 1; 0.1 + 0.1 + 0.1 + 0.7 is. Likewise with an integer,
     * and with what was there. */
    {"!ZINCRBY k 0.7 m0", "ZINCRBY k 0.1 m0", "ZINCRBY k 0.1 m0", "ZINCRBY k 0.1 m0"},
    {"ZADD k 0.1 m0", "!ZINCRBY k 1 m0", "ZINCRBY k -1 m0"},
    {"!ZINCRBY k 7 m0", "ZINCRBY k 0.1 m0", "ZINCRBY k 0.1 m0", "ZINCRBY k 0.8 m0"},
};

static void run_found(const char *const lines[WRITES_MAX], bool hot, bool is_exact)
{
    struct history h = {.hot = hot};
    uint64_t sure = without_conflict;
    int late = 0;
    for (; h.count < WRITES_MAX && lines[h.count]; h.count++) {
        bool is_late = lines[h.count][0] == '!';
        late = is_late ? h.count : late;
        snprintf(h.lines[h.count], LINE_MAX, "%s", lines[h.count] + is_late);
    }
    for (int n = 0; n < NODES; n++) {
        draw_order(&h, h.order[n], true);
    }
    memmove(h.order[0] + late, h.order[0] + late + 1,
            (size_t)(h.count - late - 1) * sizeof(h.order[0][0]));
    h.order[0][h.count - 1] = late;
    const char *why = run_history(&h);
    bool is_sure = without_conflict - sure == NODES;
    if (why || is_sure != is_exact) {
        fail_history(&h, 0, why ? why : is_sure ? "no doubt" : "in doubt");
    }
}

static void test_what_was_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(exact) / sizeof(exact[0]); i++) {
        run_found(exact[i / 2], i % 2, true);
    }
    for (size_t i = 0; i < 2 * sizeof(doubtful) / sizeof(doubtful[0]); i++) {
        run_found(doubtful[i / 2], i % 2, false);
    }
}

/* A word that a member has expired, which it had not: node 0, which it comes to last, is in doubt,
 * for whoever said so may lack it, but has what it should, and not the addition twice. */
static void test_what_is_not_repeated(void **state)
{
    (void)state;
    struct history h = {.count = 4,
                        .lines = {"HSET k m0 1", "PEXPIREMEMBERAT k m0 4102444800001",
                                  "KEYDB.EXPIRED k 4102444800000 m0", "HINCRBY k m0 5"},
                        .order = {{0, 1, 3, 2}, {0, 1, 2, 3}}};
    real_group_init(&group, NODES, LOG_BYTES, 0);
    for (int n = 0; n < 2; n++) {
        for (int i = 0; i < h.count; i++) {
            take(&h, n, h.order[n][i]);
        }
        assert_string_equal(real_run_one(&group, n, 0, "hget k m0"), "$1\r\n6\r\n");
    }
    assert_int_equal(node_merge(group.node[0])->plans[MERGE_REPEAT], 1);
    assert_true(conflicts_has(node_merge(group.node[0])->conflicts, 0, SLICE("k")));
    real_group_deinit(&group);
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Seeds from `first` up to `end`. */
struct seeds {
    uint64_t first, end;
};

static struct seeds seeds_wanted(void)
{
    uint64_t only = number_of("KEYDB_TEST_HISTORY", 0);
    uint64_t first = only ? only : number_of("KEYDB_TEST_SEED", 1) * 1000003;
    return (struct seeds){first,
                          only ? only + 1 : first + number_of("KEYDB_TEST_HISTORIES", HISTORIES)};
}

static void test_whatever_the_order(void **state)
{
    (void)state;
    struct seeds seeds = seeds_wanted();
    uint64_t count = seeds.end - seeds.first, sure = without_conflict, put_in = by_rules;
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        struct history h;
        rand_set_seed(seed);
        draw_history(&h);
        const char *why = run_history(&h);
        if (why) {
            fail_history(&h, seed, why);
        }
    }
    sure = without_conflict - sure;
    put_in = by_rules - put_in;
    print_message("%llu without a conflict, %llu writes put in by rules\n",
                  (unsigned long long)sure, (unsigned long long)put_in);
    assert_true(count == 1 || (sure > count && put_in > count / 20));
}

/* ---- what clients write ---- */

static void write_and_send(int steps)
{
    for (int i = 0; i < steps; i++) {
        int a = (int)rand_below(NODES), b = (int)rand_below(NODES);
        uint64_t what = rand_below(10);
        if (what < 3) {
            real_write_something(&group, a);
        } else if (what < 6 && a != b) {
            (void)real_send(&group, a, b);
        } else {
            real_deliver(&group, a, b);
        }
    }
}

/* All comes everywhere, with nobody to tell a state. */
static void let_all_come(void)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (int i = 0; i < NODES * NODES; i++) {
            moved = real_send(&group, i / NODES, i % NODES) || moved;
        }
        for (int i = 0; i < NODES * NODES; i++) {
            moved = real_deliver(&group, i / NODES, i % NODES) || moved;
        }
    }
}

/* NULL, or a key of which two nodes have not the same, and neither knows. */
static const char *differing_key(int *db)
{
    static const char *const names[] = {"k0", "k1", "s0", "s1"};
    for (int i = 0; i < REAL_DBS * 4; i++) {
        uint64_t digest = 0;
        int sure = -1;
        *db = i / 4;
        for (int n = 0; n < NODES; n++) {
            const char *name = names[i % 4];
            if (conflicts_has(node_merge(group.node[n])->conflicts, *db, slice_cstr(name))) {
                continue;
            }
            if (sure >= 0 && real_digest(&group, n, *db, name) != digest) {
                return name;
            }
            digest = real_digest(&group, n, *db, name);
            sure = n;
        }
    }
    return NULL;
}

static void print_writes(void)
{
    for (int n = 0; n < NODES; n++) {
        for (uint64_t s = 1; s <= real_position(&group, n); s++) {
            struct unit *u = origin_log_find(node_log(group.node[n]), node_self(group.node[n]), s);
            print_message("%llx %d: %s\n", u ? (unsigned long long)u->dot.stamp : 0ULL, n,
                          real_unit_text(&group, n, s));
        }
    }
}

static void test_what_clients_write(void **state)
{
    (void)state;
    struct seeds seeds = seeds_wanted();
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        int db;
        rand_set_seed(seed);
        real_group_init(&group, NODES, LOG_BYTES, 0);
        real_narrow(&group);
        write_and_send(10 + (int)rand_below(50));
        let_all_come();
        const char *key = differing_key(&db);
        if (key) {
            print_writes();
            fail_msg("KEYDB_TEST_HISTORY=%llu: %s in %d", (unsigned long long)seed, key, db);
        }
        real_group_deinit(&group);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_wrong),
        cmocka_unit_test(test_what_is_not_repeated),
        cmocka_unit_test(test_whatever_the_order),
        cmocka_unit_test(test_what_clients_write),
    };
    return cmocka_run_group_tests(tests, real_setup, real_teardown);
}
