/* The replication stamp of a key (entry.h) through commands: whatever happens to the value, and
 * whatever block it moves to, a key that stays has its stamp, and one that is new has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "commands/caller.h"

#include "keyspace/db.h"

#include <string.h>

#define LINE_BYTES 32768

static const char stamp_a[] = "aaaabbbbccccdddd", stamp_b[] = "0000111122223333";

static bool stamp(const char *name, const char *bytes)
{
    struct key key = key_of(slice_cstr(name));
    keyspace_lock_exclusive();
    bool there = db_set_stamp(db_at(0), &key, bytes);
    db_check(db_at(0));
    keyspace_unlock_exclusive();
    return there;
}

/* The stamp as text; "" for a key without one, NULL for a missing one. */
static const char *stamp_of(int db, const char *name)
{
    static char text[ENTRY_STAMP_BYTES + 1];
    struct key key = key_of(slice_cstr(name));
    keyspace_lock_shared();
    const struct entry *e = db_look(db_at(db), &key);
    const void *bytes = e ? entry_stamp(e) : NULL;
    memcpy(text, bytes ? bytes : "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", ENTRY_STAMP_BYTES);
    db_check(db_at(db));
    keyspace_unlock_shared();
    return e ? text : NULL;
}

/* "V" stands for a word of so many bytes. */
static void run(const char *line, size_t bytes)
{
    static char filled[LINE_BYTES];
    size_t at = 0;
    for (const char *c = line; *c; c++) {
        if (*c == 'V') {
            memset(filled + at, 'v', bytes);
            at += bytes;
        } else {
            filled[at++] = *c;
        }
    }
    filled[at] = '\0';
    const char *reply = caller_run(filled);
    if (reply[0] == '-') {
        fail_msg("%.60s: %s", line, reply);
    }
}

/* Each begins a key; what follows changes it. */
static const char *const families[][16] = {
    {"set k V", "set k 12", "incrby k 3", "append k V", "setrange k 2000 V", "set k V", "set k V2",
     "pexpire k 100000", "set k V keepttl", "persist k", "incrbyfloat n 1", "setbit k 3 1",
     "getset k V", "setex k 100 V", "setbit k 20000 1", "bitop not k k"},
    {"hset k a V", "hset k b 1", "hincrby k b 2", "hset k c V d V", "hexpire k 100 fields 1 a",
     "hdel k a", "hset k V x", "pexpire k 100000", "hset k V2 V V3 V V4 V", "persist k",
     "hincrbyfloat k b 1", "hdel k c"},
    {"sadd k 1 2 3", "sadd k a", "sadd k V b", "srem k a", "pexpire k 100000", "expiremember k b 9",
     "srem k 1", "persist k", "spop k 2", "sadd k x y z", "spop k 3", "sadd k V2 V3"},
    {"zadd k 1 a 2 b", "zincrby k 1 a", "zadd k 3 V 4 V2 5 V3", "zrem k a", "pexpire k 100000",
     "zadd k 5 z", "zremrangebyrank k 0 0", "persist k"},
    {"rpush k a V", "lpush k V V V", "lrem k 1 a", "lset k 0 V", "pexpire k 100000", "ltrim k 0 1",
     "linsert k before V V", "persist k"},
    {"xadd k 1-1 f V", "xadd k 2-1 f V g V", "xgroup create k g 0", "xtrim k maxlen 1",
     "pexpire k 100000", "xadd k 3-1 f V", "xdel k 2-1", "persist k"},
    {"pfadd k V a b", "pfadd k c V2", "pexpire k 100000", "pfadd k d", "persist k"},
    {"keydb.nhset k.a.b V", "pexpire k 100000", "persist k"},
};

static void test_a_key_that_stays_has_its_stamp(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 30, 70, 300, 900, 1100, 2000};
    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            caller_run("del k");
            run(families[f][0], sizes[s]);
            assert_string_equal(stamp_of(0, "k"), "");
            assert_true(stamp("k", stamp_a));
            for (int i = 1; i < 16 && families[f][i]; i++) {
                run(families[f][i], sizes[(s + (size_t)i) % 7]);
                const char *left = stamp_of(0, "k");
                if (!left || strcmp(left, stamp_a) != 0) {
                    fail_msg("%s after %s: %s", families[f][0], families[f][i],
                             left ? left : "missing");
                }
            }
        }
    }
}

static void test_overwrites_by_another_type(void **state)
{
    (void)state;
    run("set k V", 10);
    run("sadd s a b", 0);
    run("zadd z 1 a", 0);
    run("rpush l b a", 0);
    stamp("k", stamp_a);
    static const char *const lines[] = {"sunionstore k s s", "zunionstore k 1 z", "set k 1",
                                        "sort s alpha store k", "set k 1"};
    for (size_t i = 0; i < 5; i++) {
        run(lines[i], 0);
        assert_string_equal(stamp_of(0, "k"), stamp_a);
    }
    run("copy s k replace", 0);
    assert_string_equal(stamp_of(0, "k"), stamp_a); /* it is the key's, and s had none */
    run("del k", 0);
    assert_null(stamp_of(0, "k"));
    run("set k 1", 0);
    assert_string_equal(stamp_of(0, "k"), "");
    assert_false(stamp("missing", stamp_a));
}

static void test_copy_gets_none_and_rename_keeps(void **state)
{
    (void)state;
    run("del k k2 k3", 0);
    run("hset k f V", 50);
    stamp("k", stamp_a);
    run("copy k k2", 0);
    assert_string_equal(stamp_of(0, "k2"), "");
    stamp("k2", stamp_b);
    run("copy k k2 replace", 0);
    assert_string_equal(stamp_of(0, "k2"), stamp_b);
    run("rename k k3", 0);
    assert_string_equal(stamp_of(0, "k3"), stamp_a);
    run("rename k3 a-name-that-is-longer-than-before", 0);
    assert_string_equal(stamp_of(0, "a-name-that-is-longer-than-before"), stamp_a);
    run("move k2 3", 0);
    assert_string_equal(stamp_of(3, "k2"), stamp_b);
}

static void test_memory_usage_counts_it(void **state)
{
    (void)state;
    run("set m V", 64);
    const struct entry *e = caller_entry("m");
    size_t before = entry_memory_bytes(e, 0);
    stamp("m", stamp_a);
    assert_int_equal(entry_memory_bytes(caller_entry("m"), 0), before + ENTRY_STAMP_BYTES);
    stamp("m", stamp_b);
    assert_int_equal(entry_memory_bytes(caller_entry("m"), 0), before + ENTRY_STAMP_BYTES);
    stamp("m", NULL);
    assert_string_equal(stamp_of(0, "m"), "");
    assert_int_equal(entry_memory_bytes(caller_entry("m"), 0), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_that_stays_has_its_stamp),
        cmocka_unit_test(test_overwrites_by_another_type),
        cmocka_unit_test(test_copy_gets_none_and_rename_keeps),
        cmocka_unit_test(test_memory_usage_counts_it),
    };
    return cmocka_run_group_tests(tests, caller_setup, caller_teardown);
}
