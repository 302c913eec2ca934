/* The bitmap and HyperLogLog commands: the events they fire, and what they leave alone. */
#include "commands/caller.h"

#include "keyspace/event.h"
#include "value/string.h"

#include <string.h>

static struct buf events;

static void note_event(const char *event, int db, struct slice key, unsigned mask)
{
    (void)db;
    (void)mask;
    buf_printf(&events, "%s(%.*s) ", event, (int)key.len, key.ptr);
}

/* Runs a command and checks its events, blank-separated, each followed by a blank. */
static void assert_events(const char *line, const char *expected)
{
    buf_clear(&events);
    caller_run(line);
    assert_string_equal(buf_cstr(&events), expected);
}

static void test_events_of_bitmaps(void **state)
{
    (void)state;
    caller_run("del k k2 k3 d");
    assert_events("setbit k 5 1", "new(k) setbit(k) ");
    assert_events("setbit k 5 1", "");
    assert_events("setbit k 9 0", "setbit(k) ");
    assert_events("setbit k 3 0", "");
    assert_events("bitfield k set u8 0 4 incrby u8 0 0 set u8 0 9", "setbit(k) ");
    assert_events("bitfield k set u8 0 9", "");
    assert_events("bitfield k get u8 0", "");
    assert_events("bitfield k3 set u8 0 0", "new(k3) setbit(k3) ");
    assert_events("bitop and d k", "new(d) set(d) ");
    assert_events("bitop lshift d k 3", "set(d) ");
    assert_events("bitop and d nothing", "keymiss(nothing) del(d) ");
    assert_events("bitop rshift d nothing 1", "keymiss(nothing) ");
    /* Redis is silent about a key that was made although its only operation failed. */
    assert_events("bitfield k2 overflow fail set u2 0 9", "new(k2) setbit(k2) ");
    assert_string_equal(caller_run("get k2"), "$1\r\n\0\r\n");
}

static void test_events_of_hyperloglogs(void **state)
{
    (void)state;
    caller_run("del h h2 h3");
    assert_events("pfadd h", "new(h) pfadd(h) ");
    assert_events("pfadd h", "");
    assert_events("pfadd h a b c", "pfadd(h) ");
    assert_events("pfadd h a", "");
    assert_events("pfmerge h", "pfadd(h) ");
    assert_events("pfmerge h2 h", "keymiss(h2) new(h2) pfadd(h2) ");
    assert_events("pfdebug todense h", "");
    assert_events("pfadd h c b a", "");
    assert_events("pfadd h d", "pfadd(h) ");
    assert_events("pfmerge h3 nothing", "keymiss(h3) keymiss(nothing) new(h3) pfadd(h3) ");
}

/* A result has no expiry, whatever was there, and takes the place of any string. */
static void test_bitop_overwrites(void **state)
{
    (void)state;
    caller_run("set d 12345 ex 1000");
    caller_run("set s 12");
    assert_string_equal(caller_run("bitop or d s"), ":2\r\n");
    assert_string_equal(caller_run("ttl d"), ":-1\r\n");
    assert_string_equal(caller_run("get d"), "$2\r\n12\r\n");
    assert_string_equal(caller_run("object encoding d"), "$3\r\nraw\r\n");
    assert_string_equal(caller_run("object encoding s"), "$3\r\nint\r\n");
}

static void test_changes_keep_the_expiry(void **state)
{
    (void)state;
    caller_run("del h");
    caller_run("set k a pxat 99999999999999");
    caller_run("setbit k 9000 1");
    caller_run("bitfield k set u8 #2000 5");
    assert_string_equal(caller_run("pexpiretime k"), ":99999999999999\r\n");
    caller_run("pfadd h a");
    caller_run("pexpireat h 99999999999999");
    caller_run("pfdebug todense h");
    caller_run("pfadd h b");
    caller_run("pfmerge h h");
    assert_string_equal(caller_run("pexpiretime h"), ":99999999999999\r\n");
}

static void test_aliases(void **state)
{
    (void)state;
    caller_run("set a abc");
    assert_string_equal(caller_run("bitop xor a a a"), ":3\r\n");
    assert_string_equal(caller_run("bitcount a"), ":0\r\n");
    assert_string_equal(caller_run("bitop not a a"), ":3\r\n");
    assert_string_equal(caller_run("bitcount a"), ":24\r\n");
    assert_string_equal(caller_run("bitop lshift a a 4"), ":4\r\n");
    assert_string_equal(caller_run("bitop rshift a a 20"), ":2\r\n");
    assert_string_equal(caller_run("bitcount a"), ":8\r\n");
    assert_string_equal(caller_run("bitop lshift a a -16"), ":0\r\n");
    assert_string_equal(caller_run("exists a"), ":0\r\n");
}

/* A copy shares the bytes until one of both changes. */
static void test_shared_values(void **state)
{
    (void)state;
    caller_run("del h b c");
    caller_run("pfadd h a");
    caller_run("pfdebug todense h");
    caller_run("copy h b replace");
    caller_run("pfadd h x y z");
    assert_string_equal(caller_run("pfcount h"), ":4\r\n");
    assert_string_equal(caller_run("pfcount b"), ":1\r\n");
    caller_run("setbit c 100000 1");
    caller_run("copy c d replace");
    caller_run("setbit c 100000 0");
    assert_string_equal(caller_run("bitcount c"), ":0\r\n");
    assert_string_equal(caller_run("bitcount d"), ":1\r\n");
}

static void test_selftest(void **state)
{
    (void)state;
    assert_string_equal(caller_run("pfselftest"), "+OK\r\n");
}

static int setup(void **state)
{
    int result = caller_setup(state);
    const char *error;
    struct slice all = SLICE("KEAmn");
    for (const struct option *o = event_options; o->name; o++) {
        option_store_initial(o);
        if (strcmp(o->name, "notify-keyspace-events") == 0 && !option_store(o, &all, 1, &error)) {
            return -1;
        }
    }
    event_add_listener(note_event);
    return result;
}

static int teardown(void **state)
{
    buf_deinit(&events);
    return caller_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_of_bitmaps), cmocka_unit_test(test_events_of_hyperloglogs),
        cmocka_unit_test(test_bitop_overwrites),  cmocka_unit_test(test_changes_keep_the_expiry),
        cmocka_unit_test(test_aliases),           cmocka_unit_test(test_shared_values),
        cmocka_unit_test(test_selftest),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
