/* Random programs on several real nodes, which must end with the same content, which is that of a
 * node that was told everything in order; also with one rule broken at a time, which the same
 * programs must find.
 *
 * KEYDB_TEST_PROGRAMS, KEYDB_TEST_NARROW: how many, of those about two keys; KEYDB_TEST_SEED: from
 * that one on; KEYDB_TEST_PROGRAM: that one only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"

#include "base/rand.h"
#include "long.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS 150
#define NARROW UNIT_LONG(40)
#define STEPS 250
#define LOG_BYTES ((size_t)16 << 20)

static struct real_group group;

static void run_step(bool flushes)
{
    int a = (int)rand_below((uint64_t)group.nodes), b = (int)rand_below((uint64_t)group.nodes);
    uint64_t what = rand_below(100);
    if (what < 25) {
        real_write_something(&group, a);
    } else if (what < 58) {
        a == b ? (void)0 : (void)real_send(&group, a, b);
    } else if (what < 88) {
        real_deliver(&group, a, b);
    } else if (what < 92) {
        group.now_ms += (int64_t)rand_below(200);
    } else if (what < 96) {
        real_tick(&group, a);
    } else if (what < 98 && a != b) {
        real_tell_clocks(&group, a, b);
    } else if (flushes && what == 99 && rand_below(4) == 0) {
        if (rand_below(2)) {
            real_run_one(&group, a, (int)rand_below(REAL_DBS), "flushdb");
        } else {
            real_swap_databases(&group, a);
        }
    }
}

/* For who looks at a failure: all that was written to a key, in order. */
static void print_history(int db, struct slice key)
{
    uint64_t told[REAL_NODES_MAX + 1] = {0};
    for (struct unit *u; (u = real_next_in_order(&group, told)) != NULL;) {
        struct unit_command c = unit_command_before(u);
        told[dot_origin(u->dot)]++;
        while (unit_command_next(u, &c)) {
            bool names = c.argc < 2; /* FLUSHDB */
            for (int a = 1; a < c.argc && a <= 2; a++) {
                names = names || slice_equal(c.argv[a], key);
            }
            if (c.db != db || !names) {
                continue;
            }
            printf("%llx %u:%llu", (unsigned long long)u->dot.stamp, dot_origin(u->dot),
                   (unsigned long long)dot_sequence(u->dot));
            for (int a = 0; a < c.argc; a++) {
                printf(" %.*s", c.argv[a].len > 40 ? 40 : (int)c.argv[a].len, c.argv[a].ptr);
            }
            printf("\n");
        }
    }
}

static void print_content(int node, int db, const char *key)
{
    static const char *const asks[] = {"type K",
                                       "get K",
                                       "lrange K 0 -1",
                                       "hgetall K",
                                       "zrange K 0 -1 withscores",
                                       "smembers K",
                                       "xrange K - +",
                                       "xpending K g0 - + 9",
                                       "xpending K g1 - + 9",
                                       "dump K",
                                       "pttl K"};
    printf("node %d:", node);
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        char line[64];
        size_t begin = strcspn(asks[i], "K");
        snprintf(line, sizeof(line), "%.*s%s%s", (int)begin, asks[i], key, asks[i] + begin + 1);
        const char *reply = real_run_one(&group, node, db, line);
        for (bool error = *reply == '-'; *reply && !error; reply++) {
            putchar(*reply == '\r' || *reply == '\n' ? ' ' : *reply);
        }
    }
    putchar('\n');
}

static void print_conflict(int db, struct slice key, void *context)
{
    printf("node %d conflicts %.*s in %d\n", *(int *)context, (int)key.len, key.ptr, db);
    print_history(db, key);
}

/* A referee that sees a sign that nodes might have come to something else, as here they have: all
 * to the same, or one of them had told a state. */
static bool sees_conflict(int referee, int db, const char *key)
{
    return conflicts_has(node_merge(group.node[referee])->conflicts, db, slice_cstr(key));
}

/* True when the node holds what node 0 does; else it is said, if it should be. */
static bool holds_the_same(int node, bool silent)
{
    for (int i = 0; i < REAL_DBS * 12; i++) {
        char key[4], type[16];
        int db = i / 12, number = i % 12;
        snprintf(key, sizeof(key), "%c%d", number < 10 ? 'k' : 's', number % 10);
        snprintf(type, sizeof(type), "type %s", key);
        if (real_digest(&group, node, db, key) == real_digest(&group, 0, db, key) ||
            (node >= group.nodes && sees_conflict(node, db, key))) {
            continue;
        }
        if (!silent) {
            printf("%s in %d, ", key, db);
            print_content(0, db, key);
            print_content(node, db, key);
            print_history(db, slice_cstr(key));
        }
        return false;
    }
    return true;
}

static bool settles(bool silent)
{
    if (real_settle(&group)) {
        return true;
    }
    for (int i = 0; i < group.nodes && !silent; i++) {
        conflicts_each(node_merge(group.node[i])->conflicts, print_conflict, &i);
    }
    return false;
}

/* What happened in all programs, so that one knows that they were worth it. */
static uint64_t plans[MERGE_PLANS], conflicts_seen, states;

static void count_up(void)
{
    for (int i = 0; i < group.nodes; i++) {
        const struct merge *m = node_merge(group.node[i]);
        for (int p = 0; p < MERGE_PLANS; p++) {
            plans[p] += m->plans[p];
        }
        conflicts_seen += m->conflicts_seen;
        states += node_states(group.node[i]);
    }
}

static bool program_holds(uint64_t seed, unsigned broken, bool narrow)
{
    rand_set_seed(seed);
    real_group_init(&group, 2 + (int)rand_below(3), LOG_BYTES, broken);
    if (narrow) {
        real_narrow(&group);
    }
    for (int i = 0; i < group.nodes; i++) {
        group.skew_ms[i] = rand_below(3) ? (int64_t)rand_below(7200000) - 3600000 : 0;
    }
    bool flushes = rand_below(3) == 0;
    /* In a long one some conflict mends what a rule gets wrong. */
    int steps = narrow ? 20 + (int)rand_below(STEPS) : STEPS;
    for (int i = 0; i < steps; i++) {
        run_step(flushes);
    }
    bool good = settles(broken);
    for (int i = 1; good && i < group.nodes; i++) {
        good = holds_the_same(i, broken);
    }
    good = good && holds_the_same(real_add_referee(&group), broken);
    count_up();
    real_group_deinit(&group);
    return good;
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void converge(bool narrow, uint64_t count)
{
    uint64_t one = number_of("KEYDB_TEST_PROGRAM", 0);
    uint64_t first = one ? one : number_of("KEYDB_TEST_SEED", 1);
    for (uint64_t i = first; i < first + (one ? 1 : count); i++) {
        if (!program_holds(i, 0, narrow)) {
            fail_msg("KEYDB_TEST_PROGRAM=%llu", (unsigned long long)i);
        }
    }
}

static void test_broad(void **state)
{
    (void)state;
    converge(false, number_of("KEYDB_TEST_PROGRAMS", PROGRAMS));
    for (int p = 0; p < MERGE_NEITHER && !getenv("KEYDB_TEST_PROGRAM"); p++) {
        assert_true(plans[p] > 0);
    }
    assert_true(getenv("KEYDB_TEST_PROGRAM") || (conflicts_seen > 0 && states > 0));
}

/* Two keys of one type with two members. */
static void test_narrow(void **state)
{
    (void)state;
    converge(true, number_of("KEYDB_TEST_NARROW", NARROW));
}

/* ---- with time ---- */

#define DATED_KEYS 4
/* So many keys and members a program has: with few it is about them, of any length. */
static int dated_keys, dated_members;

/* K: a key, M and O: members, E: a time that comes soon. */
static const char *const dated_lines[] = {
    "set K N pxat E",
    "hset K M N",
    "hset K M N",
    "hpexpireat K E fields 1 M",
    "hpersist K fields 1 M",
    "hpexpireat K E fields 2 M O",
    "hpersist K fields 2 M O",
    "hdel K M",
    "hincrby K M 1",
    "sadd K M",
    "sadd K M",
    "pexpirememberat K M E",
    "pexpirememberat K M E",
    "persist K M",
    "zadd K 1 M",
    "pexpireat K E",
    "pexpireat K E",
    "persist K",
    "getex K pxat E",
    "getex K persist",
    "incrby K 1",
    "exists K",
    "hlen K",
    "del K",
    "srem K M",
    "set K 1 keepttl",
};

static void write_dated_thing(int node)
{
    char line[128];
    size_t at = 0;
    const char *pattern = dated_lines[rand_below(sizeof(dated_lines) / sizeof(dated_lines[0]))];
    for (const char *c = pattern; *c; c++) {
        char text[24] = {*c, '\0'};
        if (*c == 'K') {
            snprintf(text, sizeof(text), "k%d", (int)rand_below((uint64_t)dated_keys));
        } else if (*c == 'M' || *c == 'O') {
            snprintf(text, sizeof(text), "m%d", (int)rand_below((uint64_t)dated_members));
        } else if (*c == 'N') {
            snprintf(text, sizeof(text), "%d", (int)rand_below(9));
        } else if (*c == 'E') { /* some of them the same */
            snprintf(text, sizeof(text), "%lld",
                     (long long)(group.now_ms / 200 + (int64_t)rand_below(3)) * 200);
        }
        at += (size_t)snprintf(line + at, sizeof(line) - at, "%s", text);
    }
    real_run_one(&group, node, 0, line);
}

static void sweep_something(int node)
{
    char key[4];
    snprintf(key, sizeof(key), "k%d", (int)rand_below(DATED_KEYS));
    real_sweep(&group, node, 0, key);
}

static void run_dated_step(void)
{
    int a = (int)rand_below((uint64_t)group.nodes), b = (int)rand_below((uint64_t)group.nodes);
    uint64_t what = rand_below(100);
    if (what < 30) {
        write_dated_thing(a);
    } else if (what < 55) {
        a == b ? (void)0 : (void)real_send(&group, a, b);
    } else if (what < 80) {
        real_deliver(&group, a, b);
    } else if (what < 88) {
        group.now_ms += (int64_t)rand_below(150);
    } else if (what < 94) {
        sweep_something(a);
    } else if (what < 97) {
        real_tick(&group, a);
    } else if (what < 99 && a != b) {
        real_tell_clocks(&group, a, b);
    } else if (rand_below(20) == 0) {
        group.now_ms += 61000; /* all seem silent: each tells what it finds */
    }
}

/* Until nothing more is due anywhere. */
static bool comes_to_an_end(void)
{
    bool good = true;
    for (int round = 0; good && round < 3; round++) {
        good = settles(false);
        group.now_ms += 8000000;
        for (int i = 0; i < group.nodes; i++) {
            real_tick(&group, i);
        }
        good = good && settles(false);
        for (int i = 0; i < group.nodes * DATED_KEYS; i++) {
            char key[4];
            snprintf(key, sizeof(key), "k%d", i % DATED_KEYS);
            real_sweep(&group, i / DATED_KEYS, 0, key);
        }
    }
    return good && settles(false);
}

static void test_with_time(void **state)
{
    (void)state;
    uint64_t one = number_of("KEYDB_TEST_PROGRAM", 0);
    uint64_t count = one ? 1 : number_of("KEYDB_TEST_PROGRAMS", PROGRAMS);
    uint64_t first = one ? one : number_of("KEYDB_TEST_SEED", 1);
    for (uint64_t seed = first; seed < first + count; seed++) {
        rand_set_seed(seed);
        real_group_init(&group, 2 + (int)rand_below(3), LOG_BYTES, 0);
        for (int i = 0; i < group.nodes; i++) {
            group.skew_ms[i] = rand_below(3) ? (int64_t)rand_below(7200000) - 3600000 : 0;
        }
        bool few = seed % 2;
        dated_keys = few ? 1 : DATED_KEYS;
        dated_members = few ? 2 : 3;
        int steps = few ? 20 + (int)rand_below(STEPS) : STEPS;
        for (int i = 0; i < steps; i++) {
            run_dated_step();
        }
        bool good = comes_to_an_end();
        for (int i = 1; good && i < group.nodes; i++) {
            good = holds_the_same(i, false);
        }
        good = good && holds_the_same(real_add_referee(&group), false);
        real_group_deinit(&group);
        if (!good) {
            fail_msg("KEYDB_TEST_PROGRAM=%llu", (unsigned long long)seed);
        }
    }
}

/* The same programs find a broken rule. */
static void test_broken_rules_are_found(void **state)
{
    (void)state;
    static const unsigned rules[] = {MERGE_BREAK_REPEAT, MERGE_BREAK_STAMP, MERGE_BREAK_WHOLE,
                                     MERGE_BREAK_CONFLICT};
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        uint64_t seed = 1;
        while (seed <= PROGRAMS && program_holds(seed, rules[i], false)) {
            seed++;
        }
        if (seed > PROGRAMS) {
            fail_msg("rule %u", rules[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_with_time),
        cmocka_unit_test(test_broad),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_broken_rules_are_found),
    };
    return cmocka_run_group_tests(tests, real_setup, real_teardown);
}
