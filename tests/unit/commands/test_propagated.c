/* What goes to the logs for a command: itself, where replaying that does the same, and otherwise a
 * form that does not depend on clock, chance or waiting. That nothing goes out for what changed
 * nothing, and that several commands of one call go out as a unit. */
#include "commands/caller.h"

#include "base/clock.h"
#include "engine/propagate.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct buf told;
static int log_number;

/* The number at *at, and behind the end of its line. */
static long take_number(const char **at, const char *end)
{
    long number = 0;
    for (; *at < end && **at != '\r'; (*at)++) {
        assert_in_range(**at, '0', '9');
        number = number * 10 + (**at - '0');
    }
    *at += 2;
    return number;
}

/* Commands as words with blanks between, " | " between commands; the bytes are parsed strictly. */
static void record(int db, struct slice commands)
{
    const char *at = commands.ptr, *end = commands.ptr + commands.len;
    while (at < end) {
        assert_int_equal(*at++, '*');
        long words = take_number(&at, end);
        buf_append_cstr(&told, told.len ? " | " : "");
        if (db > 0) {
            buf_printf(&told, "%d: ", db);
        }
        for (long i = 0; i < words; i++) {
            assert_int_equal(*at++, '$');
            long len = take_number(&at, end);
            buf_append_cstr(&told, i ? " " : "");
            buf_append(&told, at, (size_t)len);
            at += len + 2;
            assert_true(at <= end);
        }
    }
}

static void start_afresh(void) NO_THREAD_SAFETY_ANALYSIS;
static void start_afresh(void)
{
    keyspace_lock_exclusive();
    propagate_switch(log_number, false);
    for (int i = 0; i < db_count(); i++) {
        db_flush(db_at(i), false);
    }
    propagate_switch(log_number, true);
    keyspace_unlock_exclusive();
    reclaim_run();
}

static const char *told_of(const char *line)
{
    buf_clear(&told);
    caller_run(line);
    return buf_cstr(&told);
}

#define FAR "4102444800000" /* milliseconds: the year 2100 */

/* clang-format off */
static const struct {
    const char *before, *line, *propagated;
} cases[] = {
    {NULL, "set k v", "set k v"},
    {NULL, "set k v nx", "set k v nx"},
    {"set k v", "set k w nx", ""},
    {NULL, "set k v pxat " FAR, "SET k v PXAT " FAR},
    {NULL, "set k v get exat 4102444800", "SET k v PXAT " FAR},
    {"set k v", "getex k", ""},
    {"set k v", "getex k pxat " FAR, "PEXPIREAT k " FAR},
    {"set k v", "getex k exat 1", "DEL k"},
    {"set k v pxat " FAR, "getex k persist", "PERSIST k"},
    {"set k v", "getdel k", "DEL k"},
    {"set k v", "expdel k l", "DEL k l"},
    {"set k v", "expireat k 4102444800 nx", "PEXPIREAT k " FAR},
    {"set k v", "expire k -1", "DEL k"},
    {NULL, "expire k 10", ""},
    {"set k 10.5", "incrbyfloat k 0.1", "SET k 10.6 KEEPTTL"},
    {NULL, "incr k", "incr k"},
    {NULL, "hincrbyfloat k f 1.5", "HSET k f 1.5"},
    {"hset k f 1 g 2", "hexpireat k 4102444800 fields 2 f x", "HPEXPIREAT k " FAR " FIELDS 1 f"},
    {"hset k f 1 g 2", "hexpireat k 1 fields 2 f x", "HDEL k f"},
    {"sadd k a", "expirememberat k a 4102444800", "PEXPIREMEMBERAT k a " FAR},
    {"sadd k a b", "pexpirememberat k a 1", "SREM k a"},
    {"sadd k a", "spop k", "SREM k a"},
    {"sadd k a a", "spop k 2", "DEL k"},
    {NULL, "spop k", ""},
    {"rpush k a b c", "lmpop 2 x k left count 2", "LPOP k 2"},
    {"rpush k a b c", "lpop k", "lpop k"},
    {"rpush k a b c", "rpop k 9", "RPOP k 3"},
    {"rpush k a b c", "lmove k l left right", "lmove k l left right"},
    {"zadd k 1 a 2 b", "zmpop 1 k max", "ZPOPMAX k 1"},
    {"zadd k 1 a 2 b", "zpopmin k 5", "ZPOPMIN k 2"},
    {NULL, "zadd k 1 a", "zadd k 1 a"},
    {"zadd k 1 a", "zadd k 1 a", ""},
    {NULL, "pfadd k a", "pfadd k a"},
    {"pfadd k a", "pfadd k a", ""},
    {NULL, "xadd k 5-* f v", "XADD k 5-0 f v"},
    {"xadd k 1-1 f v", "xadd k maxlen 1 2-2 g w", "XADD k MAXLEN = 1 2-2 g w"},
    {"xadd k 1-1 f v", "xadd k maxlen ~ 1 2-2 g w", "XADD k 2-2 g w"},
    {"xadd k 1-1 f v", "xtrim k maxlen 0", "XTRIM k MAXLEN = 0"},
    {"sort_source", "sort k store l", ""},
    {"rpush k 2 1", "sort k store l", "sort k store l"},
    {"set k v", "move k 3", "move k 3"},
    {"set k v", "rename k l", "rename k l"},
    {"set k v", "del k l", "del k l"},
    {"set k v", "get k", ""},
};
/* clang-format on */

static void test_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        start_afresh();
        if (cases[i].before) {
            caller_run(cases[i].before);
        }
        assert_string_equal(told_of(cases[i].line), cases[i].propagated);
    }
}

static void test_hincrbyfloat_keeps_the_deadline(void **state)
{
    (void)state;
    start_afresh();
    caller_run("hset k f 1 g 1");
    caller_run("hpexpireat k " FAR " fields 1 f");
    assert_string_equal(told_of("hincrbyfloat k f 2"),
                        "MULTI | HSET k f 3 | HPEXPIREAT k " FAR " FIELDS 1 f | EXEC");
}

/* Whatever was popped is named, by each way of popping. */
static void test_spop_names_members(void **state)
{
    (void)state;
    const int takes[] = {3, 97};
    for (size_t i = 0; i < sizeof(takes) / sizeof(takes[0]); i++) {
        char line[64];
        start_afresh();
        for (int m = 0; m < 100; m++) {
            snprintf(line, sizeof(line), "sadd k m%d", m);
            caller_run(line);
        }
        snprintf(line, sizeof(line), "spop k %d", takes[i]);
        const char *text = told_of(line);
        assert_memory_equal(text, "SREM k m", 8);
        int words = 1;
        for (; *text; text++) {
            words += *text == ' ';
        }
        assert_int_equal(words, takes[i] + 2);
    }
}

static void test_groups(void **state)
{
    (void)state;
    char deliveries[400];
    start_afresh();
    caller_run("xadd k 1-1 f v");
    caller_run("xadd k 2-1 f v");
    caller_run("xgroup create k g 0");
    const char *text = told_of("xreadgroup group g c streams k >");
    snprintf(deliveries, sizeof(deliveries), "%s", text);
    char *time = strstr(deliveries, " TIME ");
    assert_non_null(time);
    *time = '\0';
    assert_string_equal(deliveries, "MULTI | XGROUP CREATECONSUMER k g c | XCLAIM k g c 0 1-1 2-1");
    time = strstr(time + 1, " RETRYCOUNT ");
    assert_string_equal(time, " RETRYCOUNT 1 FORCE JUSTID LASTID 2-1 | XGROUP SETID k g 2-1 "
                              "ENTRIESREAD 2 | EXEC");
    assert_string_equal(told_of("xreadgroup group g c streams k >"), "");
    caller_run("xdel k 1-1");
    assert_non_null(strstr(told_of("xclaim k g c 0 1-1 2-1 time 5"), "XACK k g 1-1"));
    assert_non_null(strstr(told_of("xautoclaim k g d 0 0"), "| XCLAIM k g d 0 2-1 TIME "));
}

/* A key or member that expires is told as a deletion, before what finds it gone. */
static void test_expiry(void **state) NO_THREAD_SAFETY_ANALYSIS;
static void test_expiry(void **state)
{
    (void)state;
    start_afresh();
    caller_run("set k v px 1");
    caller_run("sadd s a b");
    caller_run("expiremember s a 1 ms");
    int64_t begin_ms = clock_wall_ms();
    while (clock_wall_ms() < begin_ms + 3) {
    }
    assert_string_equal(told_of("append k w"), "DEL k | append k w");
    assert_string_equal(told_of("sunionstore t s"), "SREM s a | sunionstore t s");
    /* Found by a write that only reads it: told, though it is deleted later. */
    caller_run("set k1 5 px 1");
    begin_ms = clock_wall_ms();
    while (clock_wall_ms() < begin_ms + 3) {
    }
    caller_run("sadd u 1");
    assert_string_equal(told_of("sort u by k* store w"), "DEL k1 | sort u by k* store w");
    /* Who replays lets nothing expire. */
    expire_frozen = true;
    caller_run("set k v px 1");
    begin_ms = clock_wall_ms();
    while (clock_wall_ms() < begin_ms + 3) {
    }
    assert_string_equal(told_of("append k w"), "append k w");
    assert_string_equal(told_of("pexpireat k 1"), "PEXPIREAT k 1");
    assert_string_equal(told_of("persist k"), "persist k");
    expire_frozen = false;
}

static void test_units(void **state) NO_THREAD_SAFETY_ANALYSIS;
static void test_units(void **state)
{
    (void)state;
    start_afresh();
    buf_clear(&told);
    propagate_begin_unit();
    caller_run("set a 1");
    assert_string_equal(buf_cstr(&told), ""); /* one alone needs no MULTI */
    propagate_end_unit();
    assert_string_equal(buf_cstr(&told), "set a 1");
    buf_clear(&told);
    propagate_begin_unit();
    caller_run("set a 1");
    propagate_begin_unit();
    caller_run("get a");
    caller_run("set b 1");
    propagate_end_unit();
    caller_run("set c 1");
    propagate_end_unit();
    assert_string_equal(buf_cstr(&told), "MULTI | set a 1 | set b 1 | set c 1 | EXEC");
}

/* A log of replicas beside the other one. */
static struct buf also_told;
static int also_number, peers_number;

static void record_also(int db, struct slice commands)
{
    struct buf swap = told;
    told = also_told;
    record(db, commands);
    also_told = told;
    told = swap;
}

static void assert_both(const char *aof, const char *replicas)
{
    assert_string_equal(buf_cstr(&told), aof);
    assert_string_equal(buf_cstr(&also_told), replicas);
    buf_clear(&told);
    buf_clear(&also_told);
}

/* What calls do goes where it is aimed, each log with a unit of its own. */
static void test_aims(void **state) NO_THREAD_SAFETY_ANALYSIS;
static void test_aims(void **state)
{
    (void)state;
    start_afresh();
    buf_clear(&told);
    propagate_switch(also_number, true);
    propagate_begin_unit();
    caller_run("set a 1");
    propagate_aim(PROPAGATE_TO_AOF);
    caller_run("set b 1");
    propagate_aim(0);
    caller_run("set c 1");
    propagate_aim(PROPAGATE_TO_ALL);
    propagate_end_unit();
    assert_both("MULTI | set a 1 | set b 1 | EXEC", "set a 1");

    propagate_begin_unit();
    propagate_aim(PROPAGATE_TO_REPLICAS);
    caller_run("set a 1");
    caller_run("sadd s a");
    propagate_aim(PROPAGATE_TO_AOF);
    caller_run("set b 1");
    propagate_aim(PROPAGATE_TO_REPLICAS);
    caller_run("spop s");
    propagate_aim(PROPAGATE_TO_ALL);
    propagate_end_unit();
    assert_both("set b 1", "MULTI | set a 1 | sadd s a | SREM s a | EXEC");

    propagate_begin_unit();
    propagate_aim(0);
    caller_run("set a 1");
    propagate_aim(PROPAGATE_TO_ALL);
    propagate_end_unit();
    assert_both("", "");

    /* What expires meanwhile is told to all. */
    caller_run("set d 1 px 1");
    int64_t begin_ms = clock_wall_ms();
    while (clock_wall_ms() < begin_ms + 3) {
    }
    buf_clear(&told);
    buf_clear(&also_told);
    propagate_aim(PROPAGATE_TO_AOF);
    caller_run("append d x");
    propagate_aim(PROPAGATE_TO_ALL);
    assert_both("DEL d | append d x", "DEL d");
    propagate_switch(also_number, false);
}

/* ---- what peers are told ---- */

static void write_payload(struct buf *out, const struct entry *e)
{
    buf_printf(out, "<%s>", value_ops_of[entry_type(e)]->name);
}

/* clang-format off */
static const struct {
    const char *before[3], *line, *told;
} peer_cases[] = {
    {{NULL}, "set k v", "set k v"},
    {{NULL}, "set k v nx", "SET k v"},
    {{"set k v pxat " FAR}, "set k w keepttl get", "SET k w PXAT " FAR},
    {{NULL}, "setex k 4102444800 v", NULL},
    {{"set k v"}, "getset k w", "SET k w"},
    {{NULL}, "msetnx k v l w", "MSET k v l w"},
    {{NULL}, "incr k", "INCRBY k 1"},
    {{NULL}, "decrby k 5", "INCRBY k -5"},
    {{NULL}, "incrbyfloat k 1.5", "incrbyfloat k 1.5"},
    {{"set k v"}, "getdel k", "DEL k"},
    {{"set k v"}, "getex k exat 4102444800", "PEXPIREAT k " FAR},
    {{"set k v"}, "rename k l", "MULTI | DEL k | RESTORE l 0 <string> REPLACE ABSTTL | EXEC"},
    {{"set k v"}, "move k 1", "MULTI | DEL k | 1: RESTORE k 0 <string> REPLACE ABSTTL | EXEC"},
    {{"sadd k v"}, "copy k l db 1", "1: RESTORE l 0 <set> REPLACE ABSTTL"},
    {{"set l w"}, "sinterstore l k", "DEL l"},
    {{"rpush k a b"}, "lpushx k c", "LPUSH k c"},
    {{"rpush k a b"}, "rpop k", "LREM k -1 b"},
    {{"rpush k a b"}, "lpop k 9", "MULTI | LREM k 1 a | LREM k 1 b | EXEC"},
    {{"rpush k a b"}, "lmove k l left right", "MULTI | RPUSH l a | LREM k 1 a | EXEC"},
    {{"rpush k a", "pexpireat k " FAR}, "lmove k k left right",
     "MULTI | RPUSH k a | LREM k 1 a | EXEC"},
    {{"rpush k a", "pexpireat k " FAR}, "rpop k", "MULTI | LREM k -1 a | PERSIST k | EXEC"},
    {{"hset k f 1"}, "hsetnx k g 2", "HSET k g 2"},
    {{"hset k f 1"}, "hincrbyfloat k f 2", "hincrbyfloat k f 2"},
    {{"hset k f 1", "hpexpireat k " FAR " fields 1 f"}, "keydb.hrename k f g",
     "MULTI | HSET k g 1 | PEXPIREMEMBERAT k g " FAR " | HDEL k f | EXEC"},
    {{"hset k f 1 g 2"}, "hexpireat k 4102444800 fields 3 f g x",
     "MULTI | PEXPIREMEMBERAT k f " FAR " | PEXPIREMEMBERAT k g " FAR " | EXEC"},
    {{"hset k f 1", "pexpireat k " FAR}, "hdel k f g", "MULTI | hdel k f g | PERSIST k | EXEC"},
    {{"hset k f 1", "pexpireat k " FAR}, "hexpireat k 1 fields 1 f",
     "MULTI | HDEL k f | PERSIST k | EXEC"},
    {{"sadd k a", "pexpireat k " FAR}, "spop k 2", "MULTI | SREM k a | PERSIST k | EXEC"},
    {{"sadd k a", "pexpireat k " FAR}, "smove k l a",
     "MULTI | SADD l a | SREM k a | PERSIST k | EXEC"},
    {{"zadd k 1 a 2 b"}, "zadd k gt ch 0 a 3 b 4 c", "ZADD k 3 b 4 c"},
    {{"zadd k 1 a 2 b"}, "zadd k xx incr 5 a", "ZINCRBY k 5 a"},
    {{"zadd k 1 a 2 b"}, "zpopmax k 9", "ZREM k a b"},
    {{"zadd k 1 a 2 b"}, "zremrangebyscore k 2 9", "ZREM k b"},
    {{NULL}, "geoadd k nx 0 0 a", "ZADD k 3377699720527872 a"},
    {{"xadd k 1-1 f v"}, "xadd k nomkstream maxlen 1 2-2 g w",
     "MULTI | KEYDB.XINSERT k 2-2 g w | XDEL k 1-1 | EXEC"},
    {{"xadd k 1-1 f v", "xadd k 2-1 f v"}, "xtrim k minid 2", "XDEL k 1-1"},
    {{NULL}, "keydb.nhset k.a v", "RESTORE k 0 <nestedhash> REPLACE ABSTTL"},
    {{"set k v px 1"}, "append k w", "append k w"}, /* what expires is not told as gone */
};
/* clang-format on */

static void test_peers(void **state) NO_THREAD_SAFETY_ANALYSIS;
static void test_peers(void **state)
{
    (void)state;
    propagate_set_payload_writer(write_payload);
    for (size_t i = 0; i < sizeof(peer_cases) / sizeof(peer_cases[0]); i++) {
        start_afresh();
        for (int b = 0; b < 3 && peer_cases[i].before[b]; b++) {
            caller_run(peer_cases[i].before[b]);
        }
        int64_t begin_ms = clock_wall_ms();
        while (clock_wall_ms() < begin_ms + 2) {
        }
        propagate_switch(peers_number, true);
        buf_clear(&also_told);
        caller_run(peer_cases[i].line);
        if (peer_cases[i].told) {
            assert_string_equal(buf_cstr(&also_told), peer_cases[i].told);
        } else {
            assert_memory_equal(buf_cstr(&also_told), "SET k v PXAT ", 13);
        }
        propagate_switch(peers_number, false);
    }
    buf_clear(&also_told);
}

/* Whoever keeps account of what expires for peers is told of it. */
static int expired_keys, expired_members;

static void on_expired(const struct expired *x)
{
    assert_true(x->due && x->db->id == 0 && x->key.len == 1);
    assert_true(x->count == 0 ? x->at_ms == entry_expiry_ms(x->entry) : x->type == VALUE_SET);
    expired_keys += x->count == 0;
    expired_members += x->count;
    for (int i = 0; i < x->count; i++) {
        assert_true(x->members_at_ms[i] <= clock_wall_ms());
    }
}

static void test_peers_and_expiry(void **state) NO_THREAD_SAFETY_ANALYSIS;
static void test_peers_and_expiry(void **state)
{
    (void)state;
    start_afresh();
    propagate_switch(peers_number, true);
    propagate_set_expired_listener(on_expired);
    caller_run("set k v px 1");
    caller_run("sadd s a b");
    caller_run("expiremember s a 1 ms");
    int64_t begin_ms = clock_wall_ms();
    while (clock_wall_ms() < begin_ms + 3) {
    }
    buf_clear(&also_told);
    caller_run("append k w");
    caller_run("sadd s c");
    assert_string_equal(buf_cstr(&also_told), "append k w | sadd s c");
    assert_int_equal(expired_keys, 1);
    assert_int_equal(expired_members, 1);
    propagate_set_expired_listener(NULL);
    propagate_switch(peers_number, false);
    buf_clear(&also_told);
}

static int setup(void **state)
{
    int result = caller_setup(state);
    propagate_setup();
    peers_number = propagate_register(PROPAGATE_TO_PEERS, record_also);
    also_number = propagate_register(PROPAGATE_TO_REPLICAS, record_also);
    log_number = propagate_register(PROPAGATE_TO_AOF, record);
    return result;
}

static int teardown(void **state)
{
    buf_deinit(&told);
    buf_deinit(&also_told);
    propagate_teardown();
    return caller_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_hincrbyfloat_keeps_the_deadline),
        cmocka_unit_test(test_spop_names_members),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_expiry),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_aims),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_peers_and_expiry),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
