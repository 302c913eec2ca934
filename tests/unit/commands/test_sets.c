/* The set commands' events, in their order, and what they leave when destination and source are
 * one. */
#include "commands/caller.h"

#include "keyspace/event.h"
#include "value/set.h"

#include <string.h>

static struct buf told;

static void record(const char *event, int db, struct slice key, unsigned mask)
{
    (void)mask;
    buf_printf(&told, "%s@%d:%.*s ", event, db, (int)key.len, key.ptr);
}

static void listen_to(const char *letters)
{
    const char *error;
    struct slice word = slice_cstr(letters);
    assert_true(option_store(event_options, &word, 1, &error));
}

static int setup(void **state)
{
    caller_setup(state);
    event_add_listener(record);
    listen_to("AKE");
    return 0;
}

static int teardown(void **state)
{
    listen_to("");
    buf_deinit(&told);
    return caller_teardown(state);
}

/* Runs `line`, which replies `reply` and tells of `events`. */
static void check(const char *line, const char *reply, const char *events)
{
    buf_clear(&told);
    assert_string_equal(caller_run(line), reply);
    assert_string_equal(buf_cstr(&told), events);
}

/* The reply does not matter. */
static void quietly(const char *line)
{
    caller_run(line);
}

static void test_members_in_and_out(void **state)
{
    (void)state;
    quietly("del a b");
    check("sadd a 1 2 2 3", ":3\r\n", "sadd@0:a ");
    check("sadd a 1 2", ":0\r\n", "");
    check("srem a 7", ":0\r\n", "");
    check("srem a 1 7", ":1\r\n", "srem@0:a ");
    check("smove a b 2", ":1\r\n", "srem@0:a sadd@0:b ");
    check("smove a b 2", ":0\r\n", "");
    check("sadd a 2", ":1\r\n", "sadd@0:a ");
    check("smove a b 2", ":1\r\n", "srem@0:a ");
    check("smove a a 3", ":1\r\n", "");
    check("smove a b 3", ":1\r\n", "srem@0:a del@0:a sadd@0:b ");
    check("srem b 2 3 4", ":2\r\n", "srem@0:b del@0:b ");
    check("exists a b", ":0\r\n", "");
}

static void test_pops(void **state)
{
    (void)state;
    quietly("del a");
    quietly("sadd a 1");
    check("spop a", "$1\r\n1\r\n", "spop@0:a del@0:a ");
    quietly("sadd a 1");
    check("spop a 5", "*1\r\n$1\r\n1\r\n", "spop@0:a del@0:a ");
    quietly("sadd a 1 1 1");
    check("spop a 0", "*0\r\n", "");
    check("spop a 1", "*1\r\n$1\r\n1\r\n", "spop@0:a del@0:a ");
    quietly("sadd a 1 2 3 4 5 6 7 8 9 10 11 12");
    buf_clear(&told);
    quietly("spop a 10");
    assert_string_equal(buf_cstr(&told), "spop@0:a ");
    check("scard a", ":2\r\n", "");
    check("spop a 1 2", "-ERR syntax error\r\n", "");
}

static void test_stores(void **state)
{
    (void)state;
    quietly("del a b d");
    quietly("sadd a 1 2 3");
    quietly("sadd b 2 3 4");
    check("sinterstore d a b", ":2\r\n", "sinterstore@0:d ");
    check("sunionstore d a b", ":4\r\n", "sunionstore@0:d ");
    check("sdiffstore d a b", ":1\r\n", "sdiffstore@0:d ");
    check("sdiffstore d a a", ":0\r\n", "del@0:d ");
    check("sdiffstore d a a", ":0\r\n", "");
    quietly("set d text px 100000");
    check("sunionstore d a a", ":3\r\n", "sunionstore@0:d ");
    check("ttl d", ":-1\r\n", "");
    quietly("set d text");
    check("sinterstore d a missing", ":0\r\n", "del@0:d ");
}

static void test_destination_is_a_source(void **state)
{
    (void)state;
    quietly("del a b");
    quietly("sadd a 1 2 3");
    quietly("sadd b 2 3 4");
    check("sinterstore a a b", ":2\r\n", "sinterstore@0:a ");
    check("smembers a", "*2\r\n$1\r\n2\r\n$1\r\n3\r\n", "");
    check("sunionstore a b a b", ":3\r\n", "sunionstore@0:a ");
    check("sdiffstore b a b", ":0\r\n", "del@0:b ");
    check("sunionstore a a", ":3\r\n", "sunionstore@0:a ");
    check("smembers a", "*3\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n", "");
    check("sinterstore a a a a", ":3\r\n", "sinterstore@0:a ");
    check("sdiffstore a a", ":3\r\n", "sdiffstore@0:a ");
    check("sintercard 3 a a a limit 2", ":2\r\n", "");
}

/* A set that has expired is missing, also as a source of what overwrites it. */
static void test_expired_sources(void **state)
{
    (void)state;
    quietly("del a b");
    quietly("sadd a 1");
    quietly("sadd b 2");
    quietly("pexpireat a 1");
    check("sunionstore a a b", ":1\r\n", "sunionstore@0:a ");
    check("smembers a", "*1\r\n$1\r\n2\r\n", "");
    check("ttl a", ":-1\r\n", "");
}

/* More sets than the list of sources has room for, and than a union looks back at. */
static void test_many_sources(void **state)
{
    (void)state;
    struct slice words[41];
    quietly("del a b c");
    quietly("sadd a 1 2 x");
    quietly("sadd b 1 2 y");
    quietly("sadd c 2 1 z");
    for (int i = 1; i <= 40; i++) {
        words[i] = i % 3 == 0 ? SLICE("a") : i % 3 == 1 ? SLICE("b") : SLICE("c");
    }
    words[0] = SLICE("sunion");
    assert_int_equal(strncmp(caller_run_args(41, words), "*5\r\n", 4), 0);
    words[0] = SLICE("sinter");
    assert_int_equal(strncmp(caller_run_args(41, words), "*2\r\n", 4), 0);
    words[0] = SLICE("sdiff");
    assert_int_equal(strncmp(caller_run_args(41, words), "*0\r\n", 4), 0);
    words[7] = SLICE("missing");
    words[0] = SLICE("sinter");
    assert_string_equal(caller_run_args(41, words), "*0\r\n");
    words[0] = SLICE("sunion");
    assert_int_equal(strncmp(caller_run_args(41, words), "*5\r\n", 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_in_and_out),
        cmocka_unit_test(test_pops),
        cmocka_unit_test(test_stores),
        cmocka_unit_test(test_destination_is_a_source),
        cmocka_unit_test(test_expired_sources),
        cmocka_unit_test(test_many_sources),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
