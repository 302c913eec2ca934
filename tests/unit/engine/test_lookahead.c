/* Looking ahead for a batch: engine/lookahead.h. Which members are looked for, where, and that it
 * leaves nothing behind: no trace in the keyspace, and nothing that a later call could trip over.
 */
#include "engine/helpers.h"

#include "base/clock.h"
#include "base/stats.h"
#include "base/thread.h"
#include "engine/lookahead.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "value/hash.h"
#include "value/set.h"
#include "value/string.h"
#include "value/zset.h"

#include <stdio.h>
#include <stdlib.h>

#define NOW 1700000000000
#define MEMBERS 1000

static void run_nothing(struct call *c)
{
    (void)c;
}

#define ROW(n, ...)                                                                                \
    {                                                                                              \
        .name = n, .run = run_nothing, .arity = -1, .flags = CMD_READONLY, .group = "t",           \
        .since = "1", .summary = "s", .keys = "i1/r0,1,0/RO", __VA_ARGS__                          \
    }
static const struct command_row rows[] = {
    ROW("all", .members = {2, 1}),
    ROW("pairs", .members = {2, 2}),
    ROW("one", .members = {2, 0}),
    ROW("third", .members = {3, 0}),
    ROW("behind", .members = {-1, -2}),
    ROW("none", .complexity = "O(1)"),
    {.name = NULL},
};

static struct lookahead ahead;
static struct session session;

static struct entry *large_set(struct slice key)
{
    struct entry *e = set_create(key, NULL, 0, ENTRY_NO_EXPIRY);
    for (int i = 0; i < MEMBERS; i++) {
        char text[24];
        struct set_member m;
        set_member_init(&m, slice_of(text, (size_t)snprintf(text, sizeof(text), "member:%08d", i)));
        set_add(e, &m);
    }
    return e;
}

static struct entry *large_hash(struct slice key)
{
    struct entry *e = hash_create(key, NULL, 0);
    for (int i = 0; i < MEMBERS; i++) {
        char text[24];
        struct slice field = slice_of(text, (size_t)snprintf(text, sizeof(text), "member:%08d", i));
        hash_set(&e, field, field, NULL);
    }
    return e;
}

static struct entry *large_zset(struct slice key)
{
    struct entry *e = zset_create(key, 100);
    for (int i = 0; i < MEMBERS; i++) {
        char text[24];
        double score = i;
        size_t len = (size_t)snprintf(text, sizeof(text), "member:%08d", i);
        assert_int_equal(zset_add(e, slice_of(text, len), 0, &score), ZSET_ADDED);
    }
    return e;
}

static struct entry *small_set(struct slice key)
{
    struct set_member m;
    set_member_init(&m, slice_cstr("a"));
    struct entry *e = set_create(key, &m, 1, ENTRY_NO_EXPIRY);
    set_add(e, &m);
    return e;
}

static struct entry *text_of(struct slice key)
{
    return entry_create_string(key, slice_cstr("text"), ENTRY_NO_EXPIRY);
}

static struct entry *number_of(struct slice key)
{
    return entry_create_integer(key, -1, ENTRY_NO_EXPIRY);
}

static void put(const char *name, struct entry *(*make)(struct slice key)) NO_THREAD_SAFETY_ANALYSIS
{
    struct keyref ref;
    struct key key = key_of(slice_cstr(name));
    keyspace_lock_exclusive();
    db_open(&ref, db_at(0), &key, NOW, 0);
    db_put(&ref, make(key.name));
    keyspace_unlock_exclusive();
    reclaim_run();
}

static void drop(const char *name) NO_THREAD_SAFETY_ANALYSIS
{
    struct keyref ref;
    struct key key = key_of(slice_cstr(name));
    keyspace_lock_exclusive();
    db_open(&ref, db_at(0), &key, NOW, 0);
    db_delete(&ref, false);
    keyspace_unlock_exclusive();
    reclaim_run();
}

/* The table under a key's value. Under the lock. */
static const struct table *table_of(const char *name) NO_THREAD_SAFETY_ANALYSIS
{
    struct key key = key_of(slice_cstr(name));
    const struct entry *e = db_look(db_at(0), &key);
    assert_non_null(e);
    return value_ops_of[entry_type(e)]->table(e);
}

/* Adds a request to the look-ahead; it and its words live to the end of the test. */
static bool add(const char *line) NO_THREAD_SAFETY_ANALYSIS
{
    static char words[16][4096];
    static struct slice argv[16][512];
    static struct key keys[16];
    static int next;
    int k = next++ % 16;
    snprintf(words[k], sizeof(words[k]), "%s", line);
    struct call c = {.argc = helper_words(words[k], argv[k], 512), .argv = argv[k]};
    c.cmd = command_find(c.argv[0]);
    c.db = db_at(0);
    c.session = &session;
    c.keys = &keys[k];
    if (c.argc > 1) {
        keys[k] = key_of(c.argv[1]);
        c.key_count = 1;
    }
    return lookahead_add(&ahead, &c);
}

/* The lookups noted since the look-ahead began are just of these members, in that order. */
static void assert_noted(const char *key, const char *members)
{
    struct slice words[LOOKAHEAD_MAX];
    int count = helper_words(members, words, LOOKAHEAD_MAX);
    assert_int_equal(ahead.count, count);
    for (int i = 0; i < count; i++) {
        assert_ptr_equal(ahead.lookups[i].table, table_of(key));
        assert_true(ahead.lookups[i].hash == hash_slice(words[i]));
    }
}

static int begin(void **state)
{
    (void)state;
    db_setup(1);
    put("set", large_set);
    put("hash", large_hash);
    put("zset", large_zset);
    put("small", small_set);
    put("text", text_of);
    put("number", number_of);
    keyspace_lock_shared();
    lookahead_begin(&ahead);
    return 0;
}

static int end(void **state) NO_THREAD_SAFETY_ANALYSIS
{
    (void)state;
    lookahead_fetch(&ahead);
    keyspace_unlock_shared();
    db_teardown();
    return 0;
}

static void test_notes_what_rows_name(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *key = i == 0 ? "set" : i == 1 ? "hash" : "zset";
        char line[64];
        static const struct {
            const char *verb, *rest, *members; /* rest NULL: not even a key */
        } cases[] = {
            {"all", "a", "a"},
            {"all", "a b c d e", "a b c d e"},
            {"ALL", "1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 7 8"},
            {"pairs", "a 1 b 2 c 3", "a b c"},
            {"pairs", "a 1 b", "a b"},
            {"one", "a b c", "a"},
            {"third", "5 a", "a"},
            {"behind", "NX CH 1 a 2 b", "b a CH"},
            {"behind", "1 a", "a"},
            {"none", "a", ""},
            {"third", "a", ""},
            {"all", "", ""},
            {"behind", "", ""},
            {"all", NULL, ""},
        };
        for (size_t k = 0; k < COUNT(cases); k++) {
            lookahead_begin(&ahead);
            const char *rest = cases[k].rest;
            snprintf(line, sizeof(line), "%s%s%s%s%s", cases[k].verb, rest ? " " : "",
                     rest ? key : "", rest && *rest ? " " : "", rest ? rest : "");
            assert_true(add(line));
            assert_noted(key, cases[k].members);
            lookahead_fetch(&ahead);
            assert_int_equal(ahead.count, 0);
        }
    }
}

/* The type is the entry's, whatever the command expects: what has no table has nothing to note. */
static void test_follows_the_entry_alone(void **state)
{
    (void)state;
    assert_true(add("all missing a"));
    assert_true(add("all small a"));
    assert_true(add("all text a"));
    assert_true(add("all number a"));
    assert_true(add("unknown set a"));
    assert_int_equal(ahead.count, 0);
    assert_true(add("pairs set a 1"));
    assert_noted("set", "a");
    assert_true(add("all missing a"));
    assert_true(add("pairs set b 1"));
    assert_noted("set", "a b");
}

static void test_fetches_the_buckets_of_several_tables(void **state)
{
    (void)state;
    assert_true(add("all set member:00000001 x"));
    assert_true(add("all hash member:00000002"));
    assert_true(add("all set member:00000003"));
    assert_true(add("one zset member:00000004"));
    assert_int_equal(ahead.count, 5);
    lookahead_fetch(&ahead);
    for (int i = 0; i < 5; i++) {
        const struct table_ahead *a = &ahead.lookups[i];
        assert_ptr_equal(a->bucket, table_bucket_of(a->table, a->hash));
    }
    assert_ptr_equal(ahead.lookups[2].table, table_of("hash"));
    assert_ptr_equal(ahead.lookups[4].table, table_of("zset"));
}

static void test_has_an_end(void **state)
{
    (void)state;
    int calls = 0;
    while (add("all set 1 2 3 4 5 6 7")) {
        calls++;
    }
    assert_int_equal(calls, LOOKAHEAD_MAX / 7);
    assert_int_equal(ahead.count, LOOKAHEAD_MAX);
}

/* A key that is over is looked at like any other, and nothing is noted of it; no figure, no access
 * clock moves. */
static void test_leaves_no_trace(void **state) NO_THREAD_SAFETY_ANALYSIS
{
    (void)state;
    struct key key = key_of(slice_cstr("set"));
    struct keyref ref;
    keyspace_unlock_shared();
    keyspace_lock_exclusive();
    db_open(&ref, db_at(0), &key, NOW, 0);
    db_set_expiry(&ref, 1); /* long ago */
    entry_set_clock(ref.entry, 77);
    keyspace_unlock_exclusive();
    keyspace_lock_shared();
    uint64_t hits = stats_sum(STAT_KEYSPACE_HITS), misses = stats_sum(STAT_KEYSPACE_MISSES);
    assert_true(add("all set a b"));
    assert_true(add("all missing a b"));
    lookahead_fetch(&ahead);
    assert_int_equal(entry_clock(db_look(db_at(0), &key)), 77);
    assert_false(expire_has_notes());
    assert_false(expire_must_rerun());
    assert_int_equal(stats_sum(STAT_KEYSPACE_HITS), hits);
    assert_int_equal(stats_sum(STAT_KEYSPACE_MISSES), misses);
}

/* Between a look-ahead and the calls keys go, and come back as something else. What was found is
 * never touched again (AddressSanitizer would see it), and the next look-ahead sees what is there
 * then. */
static void test_keys_go_between(void **state) NO_THREAD_SAFETY_ANALYSIS
{
    (void)state;
    assert_true(add("all set member:00000001 member:00000002"));
    assert_true(add("all hash member:00000001"));
    lookahead_fetch(&ahead);
    keyspace_unlock_shared();
    drop("set");
    put("hash", text_of);
    put("small", large_zset);
    keyspace_lock_shared();
    lookahead_begin(&ahead);
    assert_true(add("all set member:00000001 member:00000002"));
    assert_true(add("all hash member:00000001"));
    assert_int_equal(ahead.count, 0);
    assert_true(add("all small member:00000001"));
    assert_noted("small", "member:00000001");
    lookahead_fetch(&ahead);
}

static int setup(void **state)
{
    (void)state;
    clock_setup();
    thread_enter("test");
    hash_set_secret(1);
    command_register(rows);
    for (const struct option *o = zset_options; o->name; o++) {
        const char *error = NULL;
        struct slice initial = slice_cstr(o->initial);
        assert_true(option_store(o, &initial, 1, &error));
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    command_teardown();
    thread_leave();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_notes_what_rows_name, begin, end),
        cmocka_unit_test_setup_teardown(test_follows_the_entry_alone, begin, end),
        cmocka_unit_test_setup_teardown(test_fetches_the_buckets_of_several_tables, begin, end),
        cmocka_unit_test_setup_teardown(test_has_an_end, begin, end),
        cmocka_unit_test_setup_teardown(test_leaves_no_trace, begin, end),
        cmocka_unit_test_setup_teardown(test_keys_go_between, begin, end),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
