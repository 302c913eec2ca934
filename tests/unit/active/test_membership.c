/* Who serves a key (active/membership.h), in a simulation: nodes that tell their views and what
 * they gave over links that keep the order, come, go, and are cut off. No two give the same element
 * unless they were cut off from one another; and when nothing happens any more, each key has one
 * home. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "active/membership.h"

#include <stdio.h>
#include <string.h>

#define NODES 4
#define KEYS 8
#define QUEUE 4096
#define TICK_MS 50
#define DELAY_MS 400
#define BEAT_MS 1000

enum kind { BEAT, VIEW, GAVE };
struct message {
    enum kind kind;
    uint64_t value; /* the view; the key */
    uint64_t entry;
    uint64_t life;
    uint64_t number; /* the sender's, from 1 */
    int64_t due_ms;
};
struct link {
    struct message queue[QUEUE];
    int first, count;
    bool cut;
    int64_t last_due_ms;
};
static struct node_at {
    struct membership m;
    bool up;
    uint64_t life, lives[NODES];          /* of the others, as far as heard */
    int64_t beat_ms, start_ms, merges_ms; /* it takes no part before the latter */
    uint64_t sent, got[NODES];            /* messages; the last one of each other node */
    uint64_t given[KEYS]; /* elements of each key that are gone, as far as this node knows */
} nodes[NODES];
static struct link links[NODES][NODES]; /* from, to */
static int64_t now_ms;

static void id_of(int i, uint8_t id[ORIGIN_NODE_BYTES])
{
    memset(id, 'a' + i, ORIGIN_NODE_BYTES);
}

static struct slice key_of_number(int k, char text[8])
{
    return slice_of(text, (size_t)snprintf(text, 8, "k%d", k));
}

static void send(int from, enum kind kind, uint64_t value)
{
    uint64_t number = ++nodes[from].sent;
    for (int to = 0; to < NODES; to++) {
        struct link *l = &links[from][to];
        if (to == from) {
            continue;
        }
        assert_true(l->count < QUEUE);
        int64_t due_ms = now_ms + (int64_t)rand_below(DELAY_MS);
        l->last_due_ms = due_ms > l->last_due_ms ? due_ms : l->last_due_ms;
        l->queue[(l->first + l->count++) % QUEUE] = (struct message){
            kind, value, nodes[from].m.entry, nodes[from].life, number, l->last_due_ms};
    }
}

static void receive(int to, int from, const struct message *message)
{
    struct node_at *n = &nodes[to];
    uint8_t id[ORIGIN_NODE_BYTES];
    id_of(from, id);
    n->got[from] = message->number;
    if (message->life != n->lives[from]) {
        n->lives[from] = message->life;
        membership_reborn(&n->m, id);
    }
    membership_hear(&n->m, id, now_ms);
    if (message->kind == VIEW) {
        membership_told(&n->m, id, message->value, message->entry, now_ms);
    } else if (message->kind == GAVE) {
        n->given[message->value / 1000000] |= UINT64_C(1) << message->value % 1000000;
    }
}

/* What has come by now. A node that is down gets it when it is up again: the logs keep it. */
static void deliver(void)
{
    for (int from = 0; from < NODES; from++) {
        for (int to = 0; to < NODES; to++) {
            struct link *l = &links[from][to];
            while (l->count > 0 && !l->cut && nodes[to].up && l->queue[l->first].due_ms <= now_ms) {
                struct message message = l->queue[l->first];
                l->first = (l->first + 1) % QUEUE;
                l->count--;
                receive(to, from, &message);
            }
        }
    }
}

static void look(int i, bool willing)
{
    if (membership_look(&nodes[i].m, willing, now_ms)) {
        send(i, VIEW, nodes[i].m.view);
    }
}

/* A data set of another node comes in place of all that this one has by now. */
static void merge(int to, int from)
{
    struct node_at *n = &nodes[to];
    const struct node_at *other = &nodes[from];
    for (int k = 0; k < KEYS; k++) {
        n->given[k] |= other->given[k];
    }
    for (int by = 0; by < NODES; by++) {
        struct link *l = &links[by][to];
        uint64_t upto = by == from ? other->sent : other->got[by];
        while (by != to && l->count > 0 && l->queue[l->first].number <= upto) {
            l->first = (l->first + 1) % QUEUE;
            l->count--;
        }
        n->got[by] = by != to && upto > n->got[by] ? upto : n->got[by];
    }
    membership_missed(&n->m);
    look(to, false);
}

static void start(int i)
{
    struct node_at *n = &nodes[i];
    uint8_t id[ORIGIN_NODE_BYTES];
    id_of(i, id);
    membership_deinit(&n->m);
    n->life++;
    membership_init(&n->m, id, n->life << 32);
    n->up = true;
    n->beat_ms = n->start_ms = now_ms;
}

/* Elements that two nodes gave, each to somebody else. */
static uint64_t everywhere[KEYS];
static int twice, given;

/* As home the node gives the first element of the key that it has, if it has one. */
static void give(int i)
{
    char text[8];
    int k = (int)rand_below(KEYS);
    struct node_at *n = &nodes[i];
    if (!n->up || n->given[k] == UINT64_MAX ||
        !membership_is_home(&n->m, 0, key_of_number(k, text))) {
        return;
    }
    int element = __builtin_ctzll(~n->given[k]);
    twice += (everywhere[k] >> element & 1) != 0;
    everywhere[k] |= UINT64_C(1) << element;
    n->given[k] |= UINT64_C(1) << element;
    given++;
    send(i, GAVE, (uint64_t)k * 1000000 + (uint64_t)element);
}

static void step(void)
{
    now_ms += TICK_MS;
    deliver();
    for (int i = 0; i < NODES; i++) {
        if (nodes[i].up && now_ms - nodes[i].beat_ms >= BEAT_MS) {
            nodes[i].beat_ms = now_ms;
            send(i, BEAT, 0);
        }
        if (nodes[i].up) {
            /* It may have lived before: others are heard first. */
            look(i, now_ms - nodes[i].start_ms >= MEMBER_SILENT_MS && now_ms >= nodes[i].merges_ms);
        }
    }
    if (rand_below(4) == 0) {
        give((int)rand_below(NODES));
    }
}

static void begin(uint64_t seed)
{
    rand_set_seed(seed);
    memset(links, 0, sizeof(links));
    memset(everywhere, 0, sizeof(everywhere));
    for (int i = 0; i < NODES; i++) {
        membership_deinit(&nodes[i].m);
        memset(&nodes[i], 0, sizeof(nodes[i]));
    }
    now_ms = 1000000;
    twice = given = 0;
}

static void settle(void)
{
    char text[8];
    for (int i = 0; i < NODES; i++) {
        for (int j = 0; j < NODES; j++) {
            links[i][j].cut = false;
        }
        if (!nodes[i].up) {
            start(i);
        }
    }
    for (int s = 0; s < 200; s++) {
        step();
    }
    for (int k = 0; k < KEYS; k++) {
        int homes = 0;
        for (int i = 0; i < NODES; i++) {
            assert_true(membership_is_settled(&nodes[i].m));
            homes += membership_is_home(&nodes[i].m, 0, key_of_number(k, text));
        }
        assert_int_equal(homes, 1);
    }
}

static void assert_once(uint64_t seed)
{
    if (twice > 0) {
        fail_msg("seed %llu: %d of %d given twice", (unsigned long long)seed, twice, given);
    }
}

/* Nodes come, and end and come again, and whoever is up is heard: nothing is given twice. (One that
 * has ended in the middle of telling what it gave is away before others give: see the silence.) */
static void test_comings_and_goings(void **state)
{
    (void)state;
    int all = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        begin(seed);
        start(0);
        for (int s = 0; s < 2000; s++) {
            int i = (int)rand_below(NODES);
            if (rand_below(100) == 0 && !nodes[i].up) {
                start(i);
            } else if (rand_below(300) == 0 && nodes[i].up) {
                nodes[i].up = false;
            }
            step();
        }
        settle();
        assert_once(seed);
        all += given;
    }
    assert_true(all > 2000);
}

/* A whole group begins, with all in it that is to be given: nobody gives before it has agreed with
 * the others whom it hears. */
static void test_all_begin(void **state)
{
    (void)state;
    int all = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        begin(seed);
        for (int s = 0; s < 400; s++) {
            for (int i = 0; i < NODES; i++) {
                if (!nodes[i].up && (s == 40 || rand_below(20) == 0)) {
                    start(i);
                }
            }
            step();
        }
        settle();
        assert_once(seed);
        all += given;
    }
    assert_true(all > 2000);
}

/* Data sets come in place of words: between two looks, or while nobody takes part for some time. */
static void test_words_are_missed(void **state)
{
    (void)state;
    int all = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        begin(seed);
        for (int i = 0; i < NODES; i++) {
            start(i);
        }
        for (int s = 0; s < 2000; s++) {
            int i = (int)rand_below(NODES), j = (int)rand_below(NODES);
            if (i != j && rand_below(100) == 0) {
                nodes[i].merges_ms = rand_below(2) ? now_ms : now_ms + (int64_t)rand_below(15000);
                merge(i, j);
            }
            step();
        }
        for (int s = 0; s < 400; s++) {
            step(); /* who merges has done so */
        }
        settle();
        assert_once(seed);
        all += given;
    }
    assert_true(all > 2000);
}

/* A node is heard from the look on behind its first word, until one that finds it silent. */
static void test_who_is_heard(void **state)
{
    uint8_t id[ORIGIN_NODE_BYTES];
    struct membership m;
    (void)state;
    id_of(0, id);
    membership_init(&m, id, 1);
    id_of(1, id);
    assert_true(membership_look(&m, true, 0));
    assert_true(membership_is_settled(&m));
    assert_false(membership_hears(&m, id));
    membership_told(&m, id, 7, 1, 0);
    assert_false(membership_hears(&m, id)); /* and nothing has changed here as yet */
    assert_true(membership_is_settled(&m));
    assert_true(membership_look(&m, true, 0));
    assert_true(membership_hears(&m, id));
    assert_false(membership_is_settled(&m));
    assert_true(membership_look(&m, true, MEMBER_SILENT_MS));
    assert_false(membership_hears(&m, id));
    membership_deinit(&m);
}

/* A view is given up, and is told by the other one at last: nobody gives by it before who gave it
 * up has come back to it. */
static void test_back_from_alone(void **state)
{
    uint8_t id[ORIGIN_NODE_BYTES];
    struct membership m;
    (void)state;
    id_of(0, id);
    membership_init(&m, id, 1);
    id_of(1, id);
    membership_hear(&m, id, 0);
    assert_true(membership_look(&m, true, 0));
    uint64_t both = m.view;
    assert_false(membership_is_settled(&m)); /* it is heard, and has told nothing */
    membership_hear(&m, id, MEMBERSHIP_UNSETTLED_MS);
    assert_true(membership_look(&m, true, MEMBERSHIP_UNSETTLED_MS));
    assert_true(m.view != both && !membership_is_settled(&m)); /* it may be on its way */
    int64_t later_ms = MEMBERSHIP_UNSETTLED_MS + MEMBER_SILENT_MS;
    membership_hear(&m, id, later_ms);
    assert_false(membership_look(&m, true, later_ms));
    assert_true(membership_is_settled(&m) && membership_is_home(&m, 0, SLICE("k")));
    membership_told(&m, id, both, 0, later_ms);
    assert_true(membership_look(&m, true, later_ms));
    assert_true(m.view == both && membership_is_settled(&m) && membership_has(&m, id));
    membership_missed(&m);
    assert_false(membership_is_settled(&m) || membership_told_by(&m, id) != 0);
    assert_true(membership_look(&m, false, later_ms) && m.view == 0);
    assert_false(membership_look(&m, false, later_ms));
    assert_true(membership_look(&m, true, later_ms) && m.view != both); /* another entry */
    assert_false(membership_is_settled(&m));
    membership_told(&m, id, 0, 0,
                    later_ms); /* two who have missed words tell no noughts for ever */
    assert_false(membership_look(&m, false, later_ms) && m.view != 0);
    assert_false(membership_look(&m, false, later_ms));
    membership_deinit(&m);
}

/* Cut off, each side gives what it has; afterwards each key has one home again. */
static void test_cuts(void **state)
{
    (void)state;
    int all = 0, doubled = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        begin(seed);
        for (int i = 0; i < NODES; i++) {
            start(i);
        }
        for (int s = 0; s < 2000; s++) {
            int i = (int)rand_below(NODES), j = (int)rand_below(NODES);
            if (i != j && rand_below(60) == 0) {
                links[i][j].cut = rand_below(2);
                links[j][i].cut = rand_below(4) ? links[i][j].cut : rand_below(2);
            }
            step();
        }
        settle();
        all += given;
        doubled += twice;
    }
    assert_true(all > 1000 && doubled > 0 && doubled < all);
}

/* A node that is heard and does not hear us: after a while each gives on its own. */
static void test_one_way(void **state)
{
    (void)state;
    begin(1);
    start(0);
    start(1);
    links[0][1].cut = true;
    bool waited = false;
    for (int s = 0; s < 400; s++) {
        step();
        waited = waited || !membership_is_home(&nodes[0].m, 0, SLICE("k"));
    }
    assert_true(waited && membership_is_home(&nodes[0].m, 0, SLICE("k")));
    assert_true(membership_is_home(&nodes[1].m, 0, SLICE("k")));
    look(0, false);
    assert_false(membership_is_home(&nodes[0].m, 0, SLICE("k")));
}

static int teardown(void **state)
{
    (void)state;
    begin(1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comings_and_goings),
        cmocka_unit_test(test_all_begin),
        cmocka_unit_test(test_words_are_missed),
        cmocka_unit_test(test_who_is_heard),
        cmocka_unit_test(test_back_from_alone),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_one_way),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
