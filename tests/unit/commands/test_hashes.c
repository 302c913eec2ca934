/* What the hash commands announce: events in their order, changes counted one by one, and nothing
 * where nothing changed. */
#include "commands/caller.h"

#include "base/stats.h"
#include "keyspace/event.h"
#include "value/hash.h"

#include <stdio.h>
#include <string.h>

static struct buf events;

static void listen(const char *event, int db, struct slice key, unsigned mask)
{
    (void)db;
    (void)key;
    (void)mask;
    buf_append_cstr(&events, event);
    buf_append_char(&events, ' ');
}

static uint64_t changes;

static void count_change(struct db *db, struct slice key)
{
    assert_ptr_equal(db, db_at(0));
    assert_true(key.len > 0);
    changes++;
}

/* The command's reply, the events it fired, and its changes: "<reply> | <event> <event> | dirty n".
 */
static const char *run(const char *line)
{
    static struct buf text;
    buf_clear(&events);
    changes = 0;
    int64_t before = (int64_t)stats_sum(STAT_DIRTY);
    buf_clear(&text);
    const char *reply = caller_run(line);
    buf_append(&text, reply, strcspn(reply, "\r"));
    buf_append_cstr(&text, " | ");
    buf_append_slice(&text, buf_slice(&events));
    buf_printf(&text, "| dirty %lld", (long long)((int64_t)stats_sum(STAT_DIRTY) - before));
    return buf_cstr(&text);
}

static int setup(void **state)
{
    const char *error;
    struct slice mask = SLICE("KEAn");
    event_add_listener(listen);
    event_add_change_listener(count_change);
    assert_true(option_store(event_options, &mask, 1, &error));
    return caller_setup(state);
}

static int teardown(void **state)
{
    buf_deinit(&events);
    return caller_teardown(state);
}

static int without_key(void **state)
{
    (void)state;
    caller_run("del h");
    return 0;
}

static void test_setting(void **state)
{
    (void)state;
    assert_string_equal(run("hset h a 1"), ":1 | new hset | dirty 1");
    assert_string_equal(run("hset h a 2 b 3 c 4"), ":2 | hset | dirty 3");
    assert_int_equal(changes, 1);
    assert_string_equal(run("hset h a 2"), ":0 | hset | dirty 1");
    assert_string_equal(run("hmset h a 1 b 2"), "+OK | hset | dirty 2");
    assert_string_equal(run("hsetnx h a 2"), ":0 | | dirty 0");
    assert_int_equal(changes, 0);
    assert_string_equal(run("hsetnx h d 2"), ":1 | hset | dirty 1");
    assert_string_equal(run("hset h a"),
                        "-ERR wrong number of arguments for 'hset' command | | dirty 0");
    assert_string_equal(run("hset h a 1 b"),
                        "-ERR wrong number of arguments for 'hset' command | | dirty 0");
}

static void test_numbers(void **state)
{
    (void)state;
    assert_string_equal(run("hincrby h n 5"), ":5 | new hincrby | dirty 1");
    assert_string_equal(run("hincrby h n x"),
                        "-ERR value is not an integer or out of range | | dirty 0");
    assert_string_equal(run("hincrbyfloat h n 0.5"), "$3 | hincrbyfloat | dirty 1");
    assert_string_equal(run("hincrby h n 1"), "-ERR hash value is not an integer | | dirty 0");
    assert_string_equal(run("hincrbyfloat new n inf"), "-ERR value is NaN or Infinity | | dirty 0");
    assert_null(caller_entry("new"));
    assert_string_equal(caller_run("hget h n"), "$3\r\n5.5\r\n");
}

static void test_removing(void **state)
{
    (void)state;
    caller_run("hset h a 1 b 2 c 3 d 4");
    assert_string_equal(run("hdel h x y"), ":0 | | dirty 0");
    assert_string_equal(run("hdel h a a b x"), ":2 | hdel | dirty 2");
    assert_string_equal(run("hdel h c d c"), ":2 | hdel del | dirty 2");
    assert_int_equal(changes, 1);
    assert_null(caller_entry("h"));
    assert_string_equal(run("hdel h c"), ":0 | | dirty 0");
}

static void test_renaming(void **state)
{
    (void)state;
    assert_string_equal(run("keydb.hrename h a b"), "$-1 | | dirty 0");
    caller_run("hset h a 1 b 2");
    assert_string_equal(run("keydb.hrename h x y"), "-ERR hash key doesn't exist | | dirty 0");
    assert_string_equal(run("keydb.hrename h a c"), ":1 | hdel hset | dirty 1");
    assert_string_equal(caller_run("hgetall h"),
                        "*4\r\n$1\r\nb\r\n$1\r\n2\r\n$1\r\nc\r\n$1\r\n1\r\n");
    assert_string_equal(run("keydb.hrename h b b"), ":1 | | dirty 0");
    assert_string_equal(run("keydb.hrename h b c"), ":1 | hdel hset | dirty 1");
    assert_string_equal(caller_run("hgetall h"), "*2\r\n$1\r\nc\r\n$1\r\n2\r\n");
    caller_run("set s text");
    assert_string_equal(
        run("keydb.hrename s a b"),
        "-WRONGTYPE Operation against a key holding the wrong kind of value | | dirty 0");
}

static void test_renaming_in_a_table(void **state)
{
    (void)state;
    static char text[20000];
    memset(text, 'v', sizeof(text));
    struct slice argv[4] = {SLICE("hset"), SLICE("h"), SLICE("a"), slice_of(text, sizeof(text))};
    caller_run_args(4, argv);
    caller_run("hset h b 2");
    assert_string_equal(run("keydb.hrename h a c"), ":1 | hdel hset | dirty 1");
    assert_string_equal(run("keydb.hrename h b a"), ":1 | hdel hset | dirty 1");
    assert_string_equal(caller_run("hstrlen h c"), ":20000\r\n");
    assert_string_equal(caller_run("hget h a"), "$1\r\n2\r\n");
    hash_check(caller_entry("h"));
}

static void test_random_counts_are_bounded(void **state)
{
    (void)state;
    caller_run("hset h a 1");
    assert_string_equal(run("hrandfield h -524288"), "*524288 | | dirty 0");
    assert_string_equal(run("hrandfield h -524289"), "-ERR value is out of range | | dirty 0");
    assert_string_equal(run("hrandfield h -9223372036854775807"),
                        "-ERR value is out of range | | dirty 0");
    assert_string_equal(run("hrandfield missing -9223372036854775807"), "*0 | | dirty 0");
    /* Half a million times 16 KB would be copied. */
    static char text[16000];
    memset(text, 'v', sizeof(text));
    struct slice argv[4] = {SLICE("hset"), SLICE("h"), SLICE("a"), slice_of(text, sizeof(text))};
    caller_run_args(4, argv);
    assert_string_equal(run("hrandfield h -524288 withvalues"),
                        "-ERR value is out of range | | dirty 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_setting, without_key),
        cmocka_unit_test_setup(test_numbers, without_key),
        cmocka_unit_test_setup(test_removing, without_key),
        cmocka_unit_test_setup(test_renaming, without_key),
        cmocka_unit_test_setup(test_renaming_in_a_table, without_key),
        cmocka_unit_test_setup(test_random_counts_are_bounded, without_key),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
