/* Hot keys. Their table beside a plain list of the same writes; and random late writes that are put
 * in by it (merge_hot.c) beside the plain way, which begins anew from the key's first write for
 * each: what neither is in doubt about is the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sides.h"

#include "active/hot_keys.h"
#include "base/mem.h"
#include "base/rand.h"
#include "long.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEERS 3

/* ---- the table ---- */

#define ADDED 3000

static struct {
    struct unit *units[ADDED];
    uint64_t stamp[ADDED];
    int member[ADDED];
    int count;
} plain;

static struct slice word_of(char text[SIDE_WORD_MAX], const char *kind, int number)
{
    return slice_of(text, (size_t)snprintf(text, SIDE_WORD_MAX, "%s%d", kind, number));
}

/* SADD k0 m<member>, with a stamp of its own. */
static void add_one(struct window *w, uint64_t stamp, int member)
{
    char text[SIDE_WORD_MAX];
    struct buf commands = {0};
    buf_append_cstr(&commands, "*3\r\n");
    unit_put_word(&commands, SLICE("SADD"));
    unit_put_word(&commands, SLICE("k0"));
    unit_put_word(&commands, word_of(text, "m", member));
    /* Each origin's stamps ascend: one for each place in a row of three. */
    struct unit *u = unit_create(
        dot_of(stamp, (uint16_t)(1 + plain.count % PEERS), (uint64_t)plain.count / PEERS + 1), 0,
        buf_slice(&commands));
    assert_non_null(u);
    buf_deinit(&commands);
    struct unit_command c = unit_command_before(u);
    struct effect effect;
    assert_true(unit_command_next(u, &c) && effect_of(c.argc, c.argv, 0, &effect));
    window_add(w, u, &c, &effect, hash_slice(effect_key(&effect, c.argv)));
    window_close(w, u);
    unit_command_end(&c);
    plain.units[plain.count] = u;
    plain.stamp[plain.count] = stamp;
    plain.member[plain.count++] = member;
}

/* Of each member, what is above the floor is there, the last that came first. */
static void check_table(struct window *w, int members)
{
    struct hot_key *k = window_hot(w, 0, SLICE("k0"), true);
    assert_non_null(k);
    assert_true(k->type == (k->last.stamp ? EFFECT_SET : EFFECT_ANY) && k->other == 0);
    for (int m = 0; m < members; m++) {
        char text[SIDE_WORD_MAX];
        const struct hot_write *at = hot_key_named(k, hot_member(word_of(text, "m", m)));
        for (int i = plain.count - 1; i >= 0; i--) {
            if (plain.member[i] != m || plain.stamp[i] <= window_floor(w)) {
                continue;
            }
            while (at && at->stamp <= window_floor(w)) {
                at = hot_key_before(k, at);
            }
            assert_non_null(at);
            assert_true(at->stamp == plain.stamp[i] && at->effect->unit == plain.units[i]);
            assert_true(at->latest[0] >= at->stamp && at->latest[1] == 0 && at->does == HOT_GIVES);
            at = hot_key_before(k, at);
        }
        for (; at; at = hot_key_before(k, at)) {
            assert_true(at->stamp <= window_floor(w));
        }
    }
}

static void test_table(void **state)
{
    (void)state;
    for (int round = 0; round < UNIT_LONG(16); round++) {
        struct side s;
        uint64_t stamps[PEERS] = {1000, 1000, 1000}, highest = 1000;
        int members = 1 + (int)rand_below(200), hot_from = (int)rand_below(ADDED);
        plain.count = 0;
        side_set_up(&s, 100000000, 0);
        while (plain.count < ADDED) {
            uint64_t *last = &stamps[plain.count % PEERS];
            *last += 1 + rand_below(20);
            highest = *last > highest ? *last : highest;
            add_one(s.merge.window, *last, (int)rand_below((uint64_t)members));
            if (plain.count == hot_from) {
                check_table(s.merge.window, members);
            }
            if (rand_below(100) == 0) {
                (void)window_sweep(s.merge.window, rand_below(highest + 1), UINT64_MAX);
            }
        }
        check_table(s.merge.window, members);
        side_tear_down(&s);
        for (int i = 0; i < plain.count; i++) {
            unit_release(plain.units[i]);
        }
    }
}

/* An effect as the window has it, of a unit with that line. */
static struct window_effect effect_with(const char *line, uint64_t stamp, uint16_t origin,
                                        struct unit_command *c)
{
    struct window_effect e = {0};
    struct buf commands = {0};
    side_put_words(&commands, line, NULL, NULL);
    e.unit = unit_create(dot_of(stamp, origin, stamp), 0, buf_slice(&commands));
    buf_deinit(&commands);
    assert_non_null(e.unit);
    *c = unit_command_before(e.unit);
    assert_true(unit_command_next(e.unit, c) && effect_of(c->argc, c->argv, 0, &e.effect));
    return e;
}

#define FULL 4000
#define FULL_MAX 512

/* Where there is no room it begins anew: behind what it says that it does not know, it knows all.
 */
static void test_a_full_table(void **state)
{
    (void)state;
    static struct window_effect effects[FULL];
    struct side s;
    struct hot_keys h = {0};
    side_set_up(&s, 1000, 0);
    struct hot_key *k = hot_keys_make(&h, 5, 0, SLICE("k0"));
    for (int i = 0; i < FULL; i++) {
        char line[SIDE_WORD_MAX];
        struct unit_command c;
        uint64_t stamp = 1000 + (uint64_t)i - (i > 50 ? rand_below(50) : 0);
        snprintf(line, sizeof(line), "SADD k0 m%d n%d", i, i % 7);
        effects[i] = effect_with(line, stamp, 1, &c);
        hot_key_add(&h, k, &s.origins, &effects[i], c.argv, (struct hot_room){900, FULL_MAX});
        unit_command_end(&c);
        assert_true(h.writes <= FULL_MAX && k->count <= k->capacity);
        for (int n = i > FULL_MAX ? i - FULL_MAX : 0; i % 16 == 0 && n <= i; n++) {
            char text[SIDE_WORD_MAX];
            const struct hot_write *at = hot_key_named(k, hot_member(word_of(text, "m", n)));
            bool known = effects[n].unit->dot.stamp > k->other;
            assert_true(known ? at && at->effect == &effects[n] : !at || at->effect == &effects[n]);
        }
    }
    assert_true(k->other > 1000 + FULL / 2 && k->whole == 0);
    hot_keys_deinit(&h);
    side_tear_down(&s);
    for (int i = 0; i < FULL; i++) {
        unit_release(effects[i].unit);
    }
}

/* Of keys that want the same places that goes which nobody has wanted for longest. */
static void test_who_goes(void **state)
{
    (void)state;
    enum { ALL = 9, WAITS = 3 };
    struct hot_keys h = {0};
    char text[SIDE_WORD_MAX];
    for (int i = 0; i < ALL - 1; i++) {
        hot_keys_make(&h, 7, 0, word_of(text, "k", i));
    }
    for (int i = 0; i < ALL - 1; i++) {
        struct hot_key *k = hot_keys_find(&h, 7, 0, word_of(text, "k", i));
        assert_non_null(k);
        if (i != WAITS) {
            hot_keys_want(&h, k);
        }
    }
    hot_keys_make(&h, 7, 0, word_of(text, "k", ALL - 1));
    for (int i = 0; i < ALL; i++) {
        assert_true((hot_keys_find(&h, 7, 0, word_of(text, "k", i)) == NULL) == (i == WAITS));
    }
    assert_true(h.count == ALL - 1);
    hot_keys_deinit(&h);
}

/* Of two with one stamp the later origin's, whichever came last. */
static void test_the_last_state(void **state)
{
    (void)state;
    static const char line[] = "KEYDB.DIGESTS p k0 d 0";
    struct side s;
    side_set_up(&s, 1000, 0);
    for (uint16_t first = 1; first <= 2; first++) {
        struct hot_keys h = {0};
        struct hot_key *k = hot_keys_make(&h, 5, 0, SLICE("k0"));
        struct window_effect effects[2];
        for (int i = 0; i < 2; i++) {
            struct unit_command c;
            effects[i] = effect_with(line, 2000, (uint16_t)(i ? 3 - first : first), &c);
            hot_key_add(&h, k, &s.origins, &effects[i], c.argv, (struct hot_room){0, FULL_MAX});
            unit_command_end(&c);
        }
        assert_int_equal(dot_origin(k->state_dot), 2);
        assert_true(k->state == &effects[first == 2 ? 0 : 1] && k->other == 2000);
        hot_keys_deinit(&h);
        unit_release(effects[0].unit);
        unit_release(effects[1].unit);
    }
    side_tear_down(&s);
}

static void test_what_is_not_plain(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool is_plain;
    } cases[] = {
        {"SADD k m", true},
        {"HSET k m 1", true},
        {"INCRBY k 1", true},
        {"ZINCRBY k 1 m", true},
        {"RPUSH k a b", true},
        {"LREM k -1 a", true},
        {"LREM k 2 a", false},
        {"LTRIM k 0 1", false},
        {"SET k v", false},
        {"PEXPIREAT k 5", false},
        {"HPERSIST k FIELDS 1 f", false},
        {"PEXPIREMEMBERAT k m 5", false},
        {"KEYDB.EXPIRED k 5 m", false},
        {"KEYDB.XINSERT k 5-0 f v", true},
        {"XGROUP CREATE k g 0", false},
        {"APPEND k x", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice argv[8];
        struct effect effect;
        int argc = 0;
        for (const char *at = cases[i].line; *at;) {
            size_t len = strcspn(at, " ");
            argv[argc++] = slice_of(at, len);
            at += len + (at[len] == ' ');
        }
        assert_true(effect_of(argc, argv, 0, &effect));
        assert_true(hot_is_plain(&effect) == cases[i].is_plain);
    }
}

/* ---- late writes ---- */

#define EACH 250
#define KINDS_MAX 8
#define RECENT 24

/* K: a key; M: a member; N: a number; F: an element that was never pushed; E: one that was, not
 * long ago, mostly by the same node. */
static const char *const families[][KINDS_MAX] = {
    {"RPUSH K F", "LPUSH K F", "LREM K 1 E", "LREM K -1 E", "LREM K 1 E"},
    {"RPUSH K F", "RPUSH K F F", "LREM K 1 E", "LREM K 1 E", "LREM K 1 E"},
    {"RPUSH K F", "LPUSH K E", "RPUSH K E", "LREM K 1 E", "LREM K -1 E", "LREM K 1 E"},
    {"HSET K M N", "HSET K M N M N", "HDEL K M", "HINCRBY K M N", "HINCRBY K M N"},
    {"SADD K M", "SADD K M M", "SREM K M"},
    {"ZADD K N M", "ZREM K M", "ZINCRBY K N M", "ZINCRBY K N M"},
    {"INCRBY K N"},
    {"RPUSH K F", "LREM K 1 E", "LREM K -1 E", "LREM K 1 E", "DEL K", "PERSIST K", "LREM K 0 E"},
};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

struct world {
    struct side sides[2]; /* by hot keys; without */
    struct unit *units[PEERS][EACH];
    int taken[PEERS];
    uint64_t stamp;
    int64_t now_ms, step_ms;
    int keys;
    int pushed; /* elements so far: 1 to that */
    int maker;  /* whose unit is being made */
    int recent[PEERS][RECENT], recent_count[PEERS];
    uint64_t states;
};

/* How often elements were taken off an end to put something below them. */
static uint64_t lifts;
static struct merge_executor counting;

static bool run_counted(void *context, int db, int argc, const struct slice *argv)
{
    lifts += slice_equal_nocase(argv[0], "rpop") || slice_equal_nocase(argv[0], "lpop");
    return model_executor.run(context, db, argc, argv);
}

static int recent_element(const struct world *w)
{
    int count = w->recent_count[w->maker] < RECENT ? w->recent_count[w->maker] : RECENT;
    if (count > 0 && rand_below(6) > 0) {
        return w->recent[w->maker][rand_below((uint64_t)count)];
    }
    int number = w->pushed - (int)rand_below(RECENT);
    return number > 0 ? number : 1;
}

static bool stands_for(const char *word, char text[SIDE_WORD_MAX], void *context)
{
    struct world *w = context;
    int number = 0;
    const char *kind = "";
    if (word[1] != '\0') {
        return false;
    }
    switch (word[0]) {
    case 'K':
        kind = "k";
        number = (int)rand_below((uint64_t)w->keys);
        break;
    case 'M':
        kind = "m";
        number = (int)rand_below(MODEL_MEMBERS);
        break;
    case 'N':
        number = (int)rand_below(10);
        break;
    case 'F':
        number = ++w->pushed;
        w->recent[w->maker][w->recent_count[w->maker]++ % RECENT] = number;
        break;
    case 'E':
        number = recent_element(w);
        break;
    default:
        return false;
    }
    word_of(text, kind, number);
    return true;
}

static void make_unit(struct world *w, int i, const char *const *kinds)
{
    int peer = i % PEERS, number = i / PEERS, count = 0;
    struct buf commands = {0};
    while (count < KINDS_MAX && kinds[count]) {
        count++;
    }
    w->stamp += 1 + rand_below(3);
    w->maker = peer;
    for (int key = 0; number == 0 && key < w->keys; key++) {
        char line[SIDE_WORD_MAX];
        snprintf(line, sizeof(line), "DEL k%d", key); /* what the plain way begins from */
        side_put_words(&commands, line, stands_for, w);
    }
    for (uint64_t more = rand_below(8) == 0 ? 3 : 1; number > 0 && more > 0; more--) {
        /* Of a family of more than six, those behind the fourth are rare: they are not plain. */
        int usual = count > 6 && rand_below(30) > 0 ? 4 : count;
        side_put_words(&commands, kinds[rand_below((uint64_t)usual)], stands_for, w);
    }
    w->units[peer][number] = unit_create(
        dot_of(w->stamp, (uint16_t)(peer + 1), (uint64_t)number + 1), 0, buf_slice(&commands));
    assert_non_null(w->units[peer][number]);
    buf_deinit(&commands);
}

static bool is_doubtful(const struct world *w, struct slice key)
{
    return conflicts_has(w->sides[0].merge.conflicts, 0, key) ||
           conflicts_has(w->sides[1].merge.conflicts, 0, key);
}

/* Compares what nobody doubts; returns how many keys that was. */
static uint64_t compare_sides(const struct world *w)
{
    const struct model *hot = &w->sides[0].model, *without = &w->sides[1].model;
    uint64_t compared = 0;
    for (int key = 0; key < w->keys; key++) {
        if (is_doubtful(w, model_key_name(key))) {
            continue;
        }
        compared++;
        if (memcmp(&hot->values[0][key], &without->values[0][key], sizeof(hot->values[0][key]))) {
            struct buf text = {0};
            model_describe(&hot->values[0][key], &text);
            buf_append_cstr(&text, "\nis not\n");
            model_describe(&without->values[0][key], &text);
            fail_msg("%.*s", (int)text.len, text.data);
        }
        assert_memory_equal(&hot->dots[0][key], &without->dots[0][key], sizeof(struct dot));
    }
    return compared;
}

static uint64_t take_burst(struct world *w, int peer, uint64_t count)
{
    uint64_t compared = 0;
    for (; count > 0 && w->taken[peer] < EACH; count--) {
        struct unit *u = w->units[peer][w->taken[peer]++];
        w->now_ms += w->step_ms;
        for (int i = 0; i < 2; i++) {
            assert_true(merge_acceptable(&w->sides[i].merge, u));
            merge_apply(&w->sides[i].merge, u, w->now_ms);
        }
        compared += compare_sides(w);
    }
    return compared;
}

/* A fourth node tells the state of a key as it is without hot keys. */
static void take_state(struct world *w)
{
    struct buf command = {0};
    struct slice key = model_key_name((int)rand_below((uint64_t)w->keys));
    merge_state(&w->sides[1].merge, 0, key, &command);
    struct unit *u =
        unit_create(dot_of(++w->stamp, SIDE_ORIGINS, ++w->states), 0, buf_slice(&command));
    assert_non_null(u);
    for (int i = 0; i < 2; i++) {
        assert_true(merge_acceptable(&w->sides[i].merge, u));
        merge_apply(&w->sides[i].merge, u, w->now_ms);
    }
    compare_sides(w);
    unit_release(u);
    buf_deinit(&command);
}

/* Everybody's first unit, then bursts of each in turn, by chance. */
static uint64_t run_history(struct world *w, bool sweeps)
{
    uint64_t compared = 0;
    int left = PEERS * EACH;
    for (int peer = 0; peer < PEERS; peer++, left--) {
        compared += take_burst(w, peer, 1);
    }
    while (left > 0) {
        int peer = (int)rand_below(PEERS), before = w->taken[peer];
        compared += take_burst(w, peer, rand_below(4) ? 1 + rand_below(10) : 1 + rand_below(200));
        left -= w->taken[peer] - before;
        if (sweeps && rand_below(12) == 0) {
            take_state(w);
        }
        if (sweeps && rand_below(10) == 0) {
            uint64_t stable = rand_below(w->stamp + 1);
            (void)window_sweep(w->sides[0].merge.window, stable, UINT64_MAX);
            (void)window_sweep(w->sides[1].merge.window, stable, UINT64_MAX);
        }
    }
    return compared;
}

/* A history of that family; adds what plans there were. */
static uint64_t run_round(size_t family, bool whole_window, uint64_t plans[2][MERGE_PLANS])
{
    struct world *w = mem_calloc(1, sizeof(*w));
    size_t bytes = whole_window || rand_below(3) == 0 ? 100000000 : 2000 + rand_below(50000);
    w->stamp = w->now_ms = 1000;
    w->step_ms = whole_window ? 1000 : 0; /* no fold waits for another; or all of them */
    w->keys = 1 + (int)rand_below(2);
    for (int i = 0; i < 2; i++) {
        side_set_up(&w->sides[i], bytes, i == 0 ? 0 : MERGE_BREAK_HOT);
        w->sides[i].merge.executor = &counting;
    }
    for (int i = 0; i < PEERS * EACH; i++) {
        make_unit(w, i, families[family]);
    }
    uint64_t compared = run_history(w, !whole_window);
    for (int i = 0; i < 2 * MERGE_PLANS; i++) {
        plans[i / MERGE_PLANS][i % MERGE_PLANS] +=
            w->sides[i / MERGE_PLANS].merge.plans[i % MERGE_PLANS];
    }
    for (int i = 0; i < PEERS * EACH; i++) {
        unit_release(w->units[i % PEERS][i / PEERS]);
    }
    side_tear_down(&w->sides[0]);
    side_tear_down(&w->sides[1]);
    mem_free(w);
    return compared;
}

static void test_the_same(void **state)
{
    (void)state;
    uint64_t in_lists[2][MERGE_PLANS] = {{0}}, others[2][MERGE_PLANS] = {{0}}, compared = 0;
    counting = model_executor;
    counting.run = run_counted;
    lifts = 0;
    for (int round = 0; round < UNIT_LONG(32); round++) {
        size_t family = (size_t)round % FAMILIES;
        bool of_lists = strncmp(families[family][0], "RPUSH", 5) == 0;
        compared += run_round(family, true, of_lists ? in_lists : others);
    }
    assert_true(compared > 1000 && lifts > 10);
    assert_true(in_lists[0][MERGE_REPEAT] > in_lists[1][MERGE_REPEAT]);
    assert_true(in_lists[0][MERGE_REFOLD] < in_lists[1][MERGE_REFOLD]);
    assert_true(others[0][MERGE_REPEAT] > 0);
}

/* What has left the window is in doubt for both, and so is what is not begun from a base for its
 * price, until somebody tells his state; and nothing else is wrong. */
static void test_a_short_window(void **state)
{
    (void)state;
    uint64_t plans[2][MERGE_PLANS] = {{0}}, compared = 0;
    counting = model_executor;
    counting.run = run_counted;
    for (int round = 0; round < UNIT_LONG(32); round++) {
        compared += run_round((size_t)round % FAMILIES, false, plans);
    }
    assert_true(compared > 1000);
    assert_true(plans[0][MERGE_GUESS] > 0 && plans[0][MERGE_REPEAT] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_a_full_table),
        cmocka_unit_test(test_who_goes),
        cmocka_unit_test(test_the_last_state),
        cmocka_unit_test(test_what_is_not_plain),
        cmocka_unit_test(test_the_same),
        cmocka_unit_test(test_a_short_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
