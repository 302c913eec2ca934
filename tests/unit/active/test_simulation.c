/* Random histories of a group of active replicas: clients write on all nodes at once, messages
 * arrive when chance says so, links are cut, nodes restart from old files, logs overflow. Then
 * everything is mended, and
 *   - the group comes to rest, and all nodes hold the same;
 *   - each element was pushed once, and stands at most once in its list;
 *   - where no log overflowed and nobody restarted, keys written by commands of the classes whole,
 *     assign and add hold the fold of all writes in the one order of writes, and no element pushed
 *     to a list is lost (one that was taken may come back: README, "Lists");
 *   - states were told for conflicts only, a bounded number.
 * Then with one rule broken at a time: the same histories must find each.
 *
 * KEYDB_TEST_HISTORIES, KEYDB_TEST_NARROW: how many, of those about one key (0: without end);
 * KEYDB_TEST_HISTORY: the one with this seed only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "group.h"

#include "active/merge_priv.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
/* One thread: there is nothing to find for it, and it takes ten times as long. */
#define HISTORIES 100
#elif defined(__SANITIZE_ADDRESS__)
/* What is right is seen without it; and it takes four times as long. */
#define HISTORIES 1000
#else
#define HISTORIES 2500
#endif
/* Histories in which each broken rule must have shown. */
#define BROKEN_HISTORIES 1500

#define LIST_HISTORIES (HISTORIES / 5)
#define LIST_SEED UINT64_C(77000000)
#define NARROW_HISTORIES (HISTORIES / 5)

/* What the keys of each database are for. */
enum purpose {
    KEY_COUNTER,  /* INCRBY, SET, DEL: exact */
    KEY_HASH,     /* exact */
    KEY_SET,      /* exact */
    KEY_ZSET,     /* with integers: exact */
    KEY_QUEUE,    /* pushes and pops: nothing is lost */
    KEY_ANYTHING, /* of all types, with deadlines */
    KEY_TEXT,     /* APPEND, SET, deadlines */
    KEY_DATED,    /* members and a key with deadlines */
    KEY_FLOATS,   /* a sorted set with fractions */
    KEY_PUSHED,   /* pushes only */
};

enum kind {
    HISTORY_BROAD,
    HISTORY_LISTS, /* nothing else, in a mesh in which 0's link to slow_to is slow */
    /* One key in each database, of one type, with two members: what is rare among others, for it
     * takes three or four certain writes of one member, is usual here. */
    HISTORY_NARROW,
};

struct history {
    struct group group;
    enum kind kind;
    bool overflows, restarts, flushes;
    int slow_to;
    enum purpose purpose; /* of a narrow one, */
    uint64_t family;      /* and of KEY_ANYTHING */
    uint32_t pushed;      /* elements, all different */
};

/* ---- what clients write ---- */

static void words(struct buf *out, int argc, const char *const *argv)
{
    buf_printf(out, "*%d\r\n", argc);
    for (int i = 0; i < argc; i++) {
        buf_printf(out, "$%zu\r\n%s\r\n", strlen(argv[i]), argv[i]);
    }
}
#define WORDS(out, ...)                                                                            \
    words((out), (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                    \
          (const char *[]){__VA_ARGS__})

/* Texts of one command, made anew for each. */
struct texts {
    char key[4], member[3][4], number[24], other[24], when[24];
};

static struct texts make_texts(struct history *h, enum purpose purpose)
{
    struct texts t;
    snprintf(t.key, sizeof(t.key), "k%d", (int)purpose);
    for (int i = 0; i < 3; i++) {
        snprintf(t.member[i], sizeof(t.member[i]), "m%d",
                 (int)rand_below(h->kind == HISTORY_NARROW ? 2 : MODEL_MEMBERS));
    }
    snprintf(t.number, sizeof(t.number), "%d", (int)rand_below(9) + 1);
    snprintf(t.other, sizeof(t.other), "%d", (int)rand_below(9) + 11);
    snprintf(t.when, sizeof(t.when), "%d", (int)rand_below(3) + 1);
    if (purpose == KEY_QUEUE || purpose == KEY_PUSHED) {
        snprintf(t.number, sizeof(t.number), "%u", ++h->pushed);
    }
    return t;
}

static void write_string(struct buf *out, const struct texts *t, uint64_t kind)
{
    switch (kind) {
    case 0:
        WORDS(out, "SET", t->key, t->number);
        break;
    case 1:
        WORDS(out, "SET", t->key, t->number, "PXAT", t->when);
        break;
    case 2:
        WORDS(out, "APPEND", t->key, t->number);
        break;
    case 3:
        WORDS(out, "DEL", t->key);
        break;
    default:
        WORDS(out, "INCRBY", t->key, t->number);
    }
}

static void write_hash(struct buf *out, const struct texts *t, uint64_t kind)
{
    switch (kind) {
    case 0:
        WORDS(out, "HSET", t->key, t->member[0], t->number);
        break;
    case 1:
        WORDS(out, "HSET", t->key, t->member[0], t->number, t->member[1], t->other);
        break;
    case 2:
        WORDS(out, "HDEL", t->key, t->member[0]);
        break;
    case 3:
        WORDS(out, "HDEL", t->key, t->member[0], t->member[1], t->member[2]);
        break;
    default:
        WORDS(out, "HINCRBY", t->key, t->member[0], t->number);
    }
}

static void write_set(struct buf *out, const struct texts *t, uint64_t kind)
{
    switch (kind) {
    case 0:
    case 1:
        WORDS(out, "SREM", t->key, t->member[0]);
        break;
    case 2:
        WORDS(out, "SADD", t->key, t->member[0], t->member[1]);
        break;
    case 3:
        WORDS(out, "SREM", t->key, t->member[0], t->member[1]);
        break;
    default:
        WORDS(out, "SADD", t->key, t->member[0]);
    }
}

static void write_zset(struct buf *out, const struct texts *t, uint64_t kind, bool fractions)
{
    switch (kind) {
    case 0:
    case 1:
        WORDS(out, "ZADD", t->key, t->number, t->member[0]);
        break;
    case 2:
        WORDS(out, "ZREM", t->key, t->member[0]);
        break;
    case 3:
        WORDS(out, "ZADD", t->key, t->number, t->member[0], t->other, t->member[1]);
        break;
    default:
        WORDS(out, "ZINCRBY", t->key, fractions ? (kind % 2 ? "0.1" : "0.7") : t->number,
              t->member[0]);
    }
}

static void write_dated(struct buf *out, const struct texts *t, uint64_t kind)
{
    switch (kind) {
    case 0:
        WORDS(out, "PEXPIREAT", t->key, t->when);
        break;
    case 1:
        WORDS(out, "PEXPIREMEMBERAT", t->key, t->member[0], t->when);
        break;
    case 2:
        WORDS(out, "PERSIST", t->key);
        break;
    case 3:
        WORDS(out, "KEYDB.EXPIRED", t->key, t->when);
        break;
    case 4:
        WORDS(out, "KEYDB.EXPIRED", t->key, t->when, t->member[0]);
        break;
    default:
        WORDS(out, "PERSIST", t->key, t->member[0]);
    }
}

/* An element is taken by whoever sees it at an end. */
static void write_queue(struct buf *out, const struct texts *t, const struct model_value *v)
{
    char element[8];
    bool head = rand_below(2);
    if (v->type == MODEL_LIST && v->len > 0 && rand_below(5) < 2) {
        snprintf(element, sizeof(element), "%u", v->list[head ? 0 : v->len - 1]);
        WORDS(out, "LREM", t->key, head ? "1" : "-1", element);
    } else {
        WORDS(out, head ? "LPUSH" : "RPUSH", t->key, t->number);
    }
}

#define FAMILIES 6
#define FAMILY_DATED 4

static uint64_t draw_family(const struct history *h)
{
    if (h->kind == HISTORY_NARROW) {
        return rand_below(3) ? h->family : FAMILY_DATED;
    }
    return rand_below(FAMILIES);
}

static void write_anything(const struct history *h, struct buf *out, const struct texts *t,
                           const struct model_value *v)
{
    uint64_t kind = rand_below(6);
    switch (draw_family(h)) {
    case 0:
        write_string(out, t, kind);
        break;
    case 1:
        write_hash(out, t, kind);
        break;
    case 2:
        write_set(out, t, kind);
        break;
    case 3:
        write_zset(out, t, kind, rand_below(2));
        break;
    case FAMILY_DATED:
        write_dated(out, t, kind);
        break;
    default:
        write_queue(out, t, v);
    }
}

static enum purpose draw_purpose(const struct history *h)
{
    switch (h->kind) {
    case HISTORY_LISTS:
        return rand_below(2) ? KEY_QUEUE : KEY_PUSHED;
    case HISTORY_NARROW:
        return h->purpose;
    default:
        return (enum purpose)rand_below(MODEL_KEYS);
    }
}

static void write_command(struct history *h, const struct node *n, int db, struct buf *out)
{
    enum purpose purpose = draw_purpose(h);
    struct texts t = make_texts(h, purpose);
    const struct model_value *v = &n->model.values[db][purpose];
    uint64_t kind = rand_below(6);
    switch (purpose) {
    case KEY_COUNTER:
        write_string(out, &t, kind == 0 && rand_below(3) == 0 ? 3 * rand_below(2) : 9);
        break;
    case KEY_HASH:
        write_hash(out, &t, kind);
        break;
    case KEY_SET:
        write_set(out, &t, kind);
        break;
    case KEY_ZSET:
    case KEY_FLOATS:
        write_zset(out, &t, kind, purpose == KEY_FLOATS);
        break;
    case KEY_QUEUE:
        write_queue(out, &t, v);
        break;
    case KEY_ANYTHING:
        write_anything(h, out, &t, v);
        break;
    case KEY_TEXT:
        kind == 5 ? write_dated(out, &t, rand_below(4)) : write_string(out, &t, rand_below(4));
        break;
    case KEY_DATED:
        kind < 3 ? write_dated(out, &t, rand_below(6)) : write_set(out, &t, rand_below(6));
        break;
    case KEY_PUSHED:
        WORDS(out, kind < 3 ? "LPUSH" : "RPUSH", t.key, t.number);
        break;
    }
}

static void write_unit(struct history *h, struct node *n)
{
    struct buf commands = {0};
    int db = (int)rand_below(MODEL_DBS);
    uint64_t count = rand_below(4) ? 1 : 2 + rand_below(3);
    if (h->flushes && rand_below(60) == 0) {
        rand_below(3) ? WORDS(&commands, "FLUSHDB") : WORDS(&commands, "SWAPDB", "0", "1");
    } else if (rand_below(80) == 0) {
        WORDS(&commands, "PUBLISH", "channel", "hello");
    } else {
        write_command(h, n, db, &commands);
        for (uint64_t i = 1; i < count; i++) {
            int other = (int)rand_below(MODEL_DBS);
            WORDS(&commands, "SELECT", other ? "1" : "0");
            write_command(h, n, other, &commands);
        }
    }
    node_write(n, db, buf_slice(&commands));
    buf_deinit(&commands);
}

/* ---- what happens ---- */

static void step(struct history *h)
{
    struct group *g = &h->group;
    int a = (int)rand_below((uint64_t)g->options.nodes);
    int b = (int)rand_below((uint64_t)g->options.nodes);
    uint64_t what = rand_below(100);
    if (what < 22) {
        write_unit(h, &g->nodes[a]);
    } else if (what < 55) {
        lane_send(g, a, b);
    } else if (what < 85) {
        link_deliver(g, a, b);
    } else if (what < 90) {
        link_send_clocks(g, a, b);
    } else if (what < 94) {
        g->now_ms += (int64_t)rand_below(300);
    } else if (what < 97) {
        node_tend(&g->nodes[a]);
    } else if (what < 98) {
        node_save(&g->nodes[a]);
    } else if (what < 99) {
        group_cut(g, a, b, rand_below(2));
    } else if (h->restarts && rand_below(4) == 0) {
        node_restart(&g->nodes[a]);
    }
}

/* Every node is in conflict now and then, and some begin anew with all that they had. */
static void step_lists(struct history *h)
{
    struct group *g = &h->group;
    int a = (int)rand_below((uint64_t)g->options.nodes);
    int b = (int)rand_below((uint64_t)g->options.nodes);
    uint64_t what = rand_below(100);
    if (what < 10) {
        write_unit(h, &g->nodes[a]);
    } else if (what < 45) {
        lane_send(g, a, b);
    } else if (what < 85) {
        if (b != 0 || a != h->slow_to || rand_below(8) == 0) {
            link_deliver(g, a, b);
        }
    } else if (what < 88) {
        link_send_clocks(g, a, b);
    } else if (what < 92) {
        g->now_ms += 50;
    } else if (what < 97) {
        node_tend(&g->nodes[a]);
    } else if (what < 99) {
        merge_conflict(&g->nodes[a].merge, (int)rand_below(MODEL_DBS),
                       model_key_name(rand_below(2) ? KEY_QUEUE : KEY_PUSHED), g->now_ms);
    } else if (!g->nodes[a].merged && rand_below(3) == 0) {
        node_save(&g->nodes[a]);
        node_restart(&g->nodes[a]);
    }
}

static struct group_options draw_options(struct history *h, unsigned broken)
{
    if (h->kind == HISTORY_LISTS) {
        h->restarts = true;
        h->slow_to = 1 + (int)rand_below(2);
        return (struct group_options){.nodes = 3 + (int)rand_below(2),
                                      .topology = GROUP_MESH,
                                      .directly = true,
                                      .log_bytes = 1 << 24,
                                      .broken = broken};
    }
    struct group_options o = {.nodes = 2 + (int)rand_below(4), .broken = broken};
    o.topology = o.nodes == 2 ? GROUP_PAIR : (enum group_topology)(1 + rand_below(4));
    h->overflows = rand_below(4) == 0;
    h->restarts = rand_below(4) == 0;
    h->flushes = rand_below(3) == 0;
    o.strangers = rand_below(8) == 0;
    o.log_bytes = h->overflows ? 1500 + rand_below(8000) : 1 << 24;
    return o;
}

/* ---- what must hold at the end ---- */

static int compare_made(const void *left, const void *right)
{
    const struct made *a = left, *b = right;
    uint64_t stamp_a = a->unit->dot.stamp, stamp_b = b->unit->dot.stamp;
    if (stamp_a != stamp_b) {
        return stamp_a < stamp_b ? -1 : 1;
    }
    int order = memcmp(a->id.node, b->id.node, ORIGIN_NODE_BYTES);
    return order ? order : a->id.epoch < b->id.epoch ? -1 : a->id.epoch > b->id.epoch;
}

/* All units that have not been lost, run in their order. */
static void fold_all(struct group *g, struct model *m)
{
    memset(m, 0, sizeof(*m));
    m->origins = &g->nodes[0].origins;
    qsort(g->made, g->made_count, sizeof(*g->made), compare_made);
    for (uint32_t i = 0; i < g->made_count; i++) {
        const struct unit *unit = g->made[i].unit;
        if (dot_sequence(unit->dot) > group_position(g, &g->made[i].id)) {
            continue;
        }
        struct unit_command c = unit_command_before(unit);
        while (unit_command_next(unit, &c)) {
            if (slice_equal_nocase(c.argv[0], "flushdb")) {
                memset(m->values[c.db], 0, sizeof(m->values[0]));
            } else if (!slice_equal_nocase(c.argv[0], "keydb.state")) {
                model_run(m, c.db, c.argc, c.argv);
            }
        }
    }
}

static bool has_element(const struct model_value *v, uint16_t element)
{
    for (int i = 0; i < v->len; i++) {
        if (v->list[i] == element) {
            return true;
        }
    }
    return false;
}

static const char *compare_with_fold(struct history *h)
{
    static char text[4096];
    struct group *g = &h->group;
    struct model fold;
    fold_all(g, &fold);
    for (int i = 0; i < MODEL_DBS * MODEL_KEYS; i++) {
        int db = i / MODEL_KEYS, k = i % MODEL_KEYS;
        const struct model_value *is = &g->nodes[0].model.values[db][k],
                                 *should = &fold.values[db][k];
        bool wrong = k <= KEY_ZSET && memcmp(is, should, sizeof(*is)) != 0;
        bool queue = (k == KEY_QUEUE || k == KEY_PUSHED) && !h->flushes;
        for (int e = 0; queue && e < should->len; e++) {
            wrong = wrong || !has_element(is, should->list[e]);
        }
        if (wrong || (k == KEY_PUSHED && queue && is->len != should->len)) {
            struct buf both = {0};
            buf_printf(&both, "db %d k%d is ", db, k);
            model_describe(is, &both);
            buf_append_cstr(&both, "; the fold is ");
            model_describe(should, &both);
            snprintf(text, sizeof(text), "%s", buf_cstr(&both));
            buf_deinit(&both);
            return text;
        }
    }
    return NULL;
}

/* Content that has a write which the positions do not cover would have it run once more. */
static const char *find_twice(const struct group *g)
{
    static char text[80];
    for (int i = 0; i < MODEL_DBS * MODEL_KEYS; i++) {
        int db = i / MODEL_KEYS, k = i % MODEL_KEYS;
        const struct model_value *v = &g->nodes[0].model.values[db][k];
        for (int e = 0; e < v->len && (k == KEY_QUEUE || k == KEY_PUSHED); e++) {
            struct model_value before = *v;
            before.len = (uint16_t)e;
            if (has_element(&before, v->list[e])) {
                snprintf(text, sizeof(text), "db %d k%d has %u twice", db, k, v->list[e]);
                return text;
            }
        }
    }
    return NULL;
}

static struct {
    uint64_t histories, units, states, merges, restarts, exact;
    uint64_t plans[MERGE_PLANS];
} totals;

static void add_totals(const struct group *g)
{
    totals.histories++;
    totals.units += g->made_count;
    totals.states += g->states;
    totals.merges += g->merges;
    totals.restarts += g->restarts;
    for (int i = 0; i < g->options.nodes; i++) {
        for (int p = 0; p < MERGE_PLANS; p++) {
            totals.plans[p] += g->nodes[i].merge.plans[p];
        }
    }
}

/* Runs the history with this seed. NULL when all holds that must. */
static const char *run_one(uint64_t seed, unsigned broken, enum kind kind)
{
    static struct history h;
    memset(&h, 0, sizeof(h));
    h.kind = kind;
    rand_set_seed(seed);
    if (kind == HISTORY_NARROW) {
        static const enum purpose purposes[] = {KEY_ANYTHING, KEY_ANYTHING, KEY_DATED,
                                                KEY_TEXT,     KEY_FLOATS,   KEY_HASH};
        h.purpose = purposes[rand_below(sizeof(purposes) / sizeof(purposes[0]))];
        h.family = rand_below(FAMILIES);
    }
    struct group *g = &h.group;
    struct group_options options = draw_options(&h, broken);
    /* Every other history meets data sets piece by piece. */
    options.pieces = seed % 2 ? seed : 0;
    group_init(g, &options);
    /* In a long one some conflict mends what a rule gets wrong. */
    bool is_short = kind == HISTORY_NARROW && rand_below(2);
    uint64_t steps = is_short ? 10 + rand_below(90) : 100 + rand_below(700);
    for (uint64_t i = 0; i < steps && !g->fault; i++) {
        kind == HISTORY_LISTS ? step_lists(&h) : step(&h);
    }
    bool rests = group_settle(g);
    const char *wrong = g->fault;
    wrong = wrong ? wrong : rests ? group_difference(g) : "does not come to rest";
    wrong = wrong ? wrong : find_twice(g);
    if (!wrong && !h.overflows && g->restarts == 0 && g->merges == 0 && !options.strangers) {
        wrong = compare_with_fold(&h);
        totals.exact++;
    }
    if (!wrong && g->states > (uint64_t)g->made_count) {
        wrong = "more states than writes";
    }
    add_totals(g);
    group_deinit(g);
    return wrong;
}

static const char *run_history(uint64_t seed, unsigned broken)
{
    return run_one(seed, broken, HISTORY_BROAD);
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_histories(void **state)
{
    (void)state;
    uint64_t count = number_of("KEYDB_TEST_HISTORIES", HISTORIES);
    uint64_t only = number_of("KEYDB_TEST_HISTORY", 0);
    uint64_t first = only ? only : number_of("KEYDB_TEST_SEED", 1) * 1000003;
    printf("histories from seed %llu on\n", (unsigned long long)first);
    memset(&totals, 0, sizeof(totals));
    for (uint64_t i = 0; count == 0 || i < (only ? 1 : count); i++) {
        const char *wrong = run_history(first + i, 0);
        if (wrong) {
            fail_msg("KEYDB_TEST_HISTORY=%llu: %s", (unsigned long long)(first + i), wrong);
        }
    }
    printf(
        "%llu histories, %llu units, %llu states, %llu merges, %llu restarts, %llu compared with "
        "the fold\n",
        (unsigned long long)totals.histories, (unsigned long long)totals.units,
        (unsigned long long)totals.states, (unsigned long long)totals.merges,
        (unsigned long long)totals.restarts, (unsigned long long)totals.exact);
    static const char *const names[] = {"run", "over", "repeat", "refold", "guess", "neither"};
    for (int p = 0; p < MERGE_PLANS; p++) {
        printf("  %s: %llu\n", names[p], (unsigned long long)totals.plans[p]);
        assert_true(only || totals.plans[p] > 0);
    }
}

/* Lists alone, of nodes that restart from old files, with a link that is slow. */
static void test_nothing_stands_twice(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < LIST_HISTORIES; i++) {
        const char *wrong = run_one(LIST_SEED + i, 0, HISTORY_LISTS);
        if (wrong) {
            fail_msg("history %llu: %s", (unsigned long long)(LIST_SEED + i), wrong);
        }
    }
}

/* As test_histories, by KEYDB_TEST_NARROW, how many, and KEYDB_TEST_HISTORY. */
static void test_one_key(void **state)
{
    (void)state;
    uint64_t count = number_of("KEYDB_TEST_NARROW", NARROW_HISTORIES);
    uint64_t only = number_of("KEYDB_TEST_HISTORY", 0);
    uint64_t first = only ? only : number_of("KEYDB_TEST_SEED", 1) * 1000003;
    for (uint64_t i = 0; count == 0 || i < (only ? 1 : count); i++) {
        const char *wrong = run_one(first + i, 0, HISTORY_NARROW);
        if (wrong) {
            fail_msg("narrow, KEYDB_TEST_HISTORY=%llu: %s", (unsigned long long)(first + i), wrong);
        }
    }
}

/* A chain of four that had never met, with logs that the states of all keys do not fit: they have a
 * pace, or their readers fall behind for ever. */
static void test_states_beyond_the_logs(void **state)
{
    (void)state;
    const char *wrong = run_history(31007040, 0);
    if (wrong) {
        fail_msg("%s", wrong);
    }
}

#if !defined(__SANITIZE_THREAD__)
/* Each broken rule shows in the histories of the test above. */
static void test_broken_rules_are_found(void **state)
{
    (void)state;
    static const struct {
        unsigned broken;
        const char *name;
    } rules[] = {
        {MERGE_BREAK_REPEAT, "repeat"}, {MERGE_BREAK_STAMP, "stamp"},
        {MERGE_BREAK_COVER, "cover"},   {MERGE_BREAK_FLOOR, "floor"},
        {MERGE_BREAK_WHOLE, "whole"},   {MERGE_BREAK_CONFLICT, "conflict"},
    };
    for (size_t r = 0; r < sizeof(rules) / sizeof(rules[0]); r++) {
        uint64_t i = 0;
        const char *wrong = NULL;
        for (; !wrong && i < BROKEN_HISTORIES; i++) {
            wrong = run_history(1000003 + i, rules[r].broken);
        }
        printf("%s broken: after %llu histories: %s\n", rules[r].name, (unsigned long long)i,
               wrong ? wrong : "not found");
        assert_non_null(wrong);
    }
    uint64_t i = 0;
    const char *wrong;
    while (!(wrong = run_one(LIST_SEED + i, MERGE_BREAK_CAUSES, HISTORY_LISTS))) {
        assert_true(++i < LIST_HISTORIES);
    }
    printf("causes broken: after %llu histories: %s\n", (unsigned long long)i + 1, wrong);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histories),
        cmocka_unit_test(test_one_key),
        cmocka_unit_test(test_nothing_stands_twice),
        cmocka_unit_test(test_states_beyond_the_logs),
#if !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(test_broken_rules_are_found),
#endif
    };
    hash_set_secret(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
