/* The merge's short way against its long one: random writes of three nodes, which come in any order
 * that keeps each one's own, are given to a merge of each kind. A late write that is looked at with
 * nothing but what is behind it (merge.c, open_short) gets the same plan as with all of its key,
 * does the same, and leaves the same conflicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sides.h"

#include "base/mem.h"
#include "base/rand.h"
#include "long.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEERS 3
#define SELF (PEERS + 1)
#define EACH 400

/* K: a key, M: a member, N: a number, D: a deadline. */
static const char *const lines[] = {
    "SET K N",
    "SET K N PXAT D",
    "APPEND K N",
    "DEL K",
    "INCRBY K N",
    "INCRBY K N",
    "HSET K M N",
    "HSET K M N M N",
    "HDEL K M",
    "HINCRBY K M N",
    "HINCRBY K M N",
    "SADD K M",
    "SADD K M M",
    "SREM K M",
    "ZADD K N M",
    "ZREM K M",
    "ZINCRBY K N M",
    "PEXPIREAT K D",
    "PEXPIREMEMBERAT K M D",
    "PERSIST K",
    "RPUSH K N",
    "LPUSH K N",
    "LREM K 1 N",
    "FLUSHDB",
};

/* What a word of a line stands for; `context`: how many keys there are. */
static bool stands_for(const char *word, char text[SIDE_WORD_MAX], void *context)
{
    const int *keys = context;
    if (strcmp(word, "K") == 0) {
        snprintf(text, SIDE_WORD_MAX, "k%d", (int)rand_below((uint64_t)*keys));
    } else if (strcmp(word, "M") == 0) {
        snprintf(text, SIDE_WORD_MAX, "m%d", (int)rand_below(MODEL_MEMBERS));
    } else if (strcmp(word, "N") == 0) {
        snprintf(text, SIDE_WORD_MAX, "%d", (int)rand_below(10));
    } else if (strcmp(word, "D") == 0) {
        snprintf(text, SIDE_WORD_MAX, "%d", 1000000 + (int)rand_below(3));
    } else {
        return false;
    }
    return true;
}

static void assert_same(const struct side *a, const struct side *b)
{
    assert_memory_equal(a->model.values, b->model.values, sizeof(a->model.values));
    assert_memory_equal(a->model.dots, b->model.dots, sizeof(a->model.dots));
    assert_memory_equal(a->merge.plans, b->merge.plans, sizeof(a->merge.plans));
    assert_true(a->merge.conflicts_seen == b->merge.conflicts_seen);
    assert_true(conflicts_count(a->merge.conflicts) == conflicts_count(b->merge.conflicts));
    assert_true(window_bytes(a->merge.window) == window_bytes(b->merge.window));
    assert_true(window_floor(a->merge.window) == window_floor(b->merge.window));
}

struct world {
    struct side sides[2];
    struct unit *units[PEERS][EACH];
    int taken[PEERS];
    uint64_t stamp, own;
    int keys;
};

static void make_units(struct world *w)
{
    for (int i = 0; i < PEERS * EACH; i++) {
        int peer = i % PEERS, number = i / PEERS;
        struct buf commands = {0};
        w->stamp += 1 + rand_below(3);
        for (uint64_t more = rand_below(8) == 0 ? 3 : 1; more > 0; more--) {
            size_t kinds = sizeof(lines) / sizeof(lines[0]);
            size_t kind = (size_t)rand_below(rand_below(8) ? kinds - 1 : kinds);
            side_put_words(&commands, lines[kind], stands_for, &w->keys);
        }
        w->units[peer][number] = unit_create(
            dot_of(w->stamp, (uint16_t)(peer + 1), (uint64_t)number + 1), 0, buf_slice(&commands));
        assert_non_null(w->units[peer][number]);
        buf_deinit(&commands);
    }
}

/* This node tells its state of a key, which is the same on both sides. */
static void tell_state(struct world *w)
{
    struct buf command = {0};
    struct slice key = model_key_name((int)rand_below((uint64_t)w->keys));
    merge_state(&w->sides[0].merge, 0, key, &command);
    struct unit *u = unit_create(dot_of(++w->stamp, SELF, ++w->own), 0, buf_slice(&command));
    assert_non_null(u);
    for (int i = 0; i < 2; i++) {
        merge_own(&w->sides[i].merge, u);
    }
    unit_release(u);
    buf_deinit(&command);
}

static void take_one(struct world *w, int peer)
{
    struct unit *u = w->units[peer][w->taken[peer]++];
    for (int i = 0; i < 2; i++) {
        struct merge *m = &w->sides[i].merge;
        if (merge_acceptable(m, u)) {
            merge_apply(m, u, 1000);
        }
    }
    assert_same(&w->sides[0], &w->sides[1]);
}

static void run_history(struct world *w, bool states)
{
    int left = PEERS * EACH;
    while (left > 0) {
        int peer = (int)rand_below(PEERS);
        uint64_t burst = rand_below(4) ? 1 + rand_below(4) : 1 + rand_below(100);
        for (; burst > 0 && w->taken[peer] < EACH; burst--, left--) {
            take_one(w, peer);
        }
        if (states && rand_below(10) == 0) {
            tell_state(w);
        }
        if (rand_below(20) == 0) {
            uint64_t stable = rand_below(w->stamp + 1);
            (void)window_sweep(w->sides[0].merge.window, stable, UINT64_MAX);
            (void)window_sweep(w->sides[1].merge.window, stable, UINT64_MAX);
        }
    }
}

static void test_the_same(void **state)
{
    (void)state;
    uint64_t plans[MERGE_PLANS] = {0};
    for (int round = 0; round < UNIT_LONG(24); round++) {
        struct world *w = mem_calloc(1, sizeof(*w));
        size_t bytes = rand_below(2) ? 1000000 : 2000 + rand_below(50000);
        w->stamp = 1000;
        w->keys = 1 + (int)rand_below(MODEL_KEYS);
        side_set_up(&w->sides[0], bytes, MERGE_BREAK_HOT);
        side_set_up(&w->sides[1], bytes, MERGE_BREAK_SHORT);
        make_units(w);
        run_history(w, rand_below(2) == 0);
        for (int i = 0; i < MERGE_PLANS; i++) {
            plans[i] += w->sides[0].merge.plans[i];
        }
        for (int i = 0; i < PEERS * EACH; i++) {
            unit_release(w->units[i % PEERS][i / PEERS]);
        }
        side_tear_down(&w->sides[0]);
        side_tear_down(&w->sides[1]);
        mem_free(w);
    }
    for (int i = 0; i < MERGE_PLANS; i++) {
        assert_true(plans[i] > 0); /* else they say nothing of it */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
