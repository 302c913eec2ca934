/* Which key events members with deadlines bring about, in which order: of the commands that set and
 * drop deadlines, and of members whose time comes, whoever meets them. */
#include "commands/caller.h"

#include "keyspace/event.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"

#include "base/clock.h"
#include "base/stats.h"

#include <stdio.h>
#include <string.h>

static struct buf told;

static void record(const char *event, int db, struct slice key, unsigned mask)
{
    (void)mask;
    buf_printf(&told, "%s%s@%d:%.*s", told.len ? " " : "", event, db, (int)key.len, key.ptr);
}

static void set_classes(const char *letters)
{
    const char *error = NULL;
    struct slice word = slice_cstr(letters);
    assert_true(event_options[0].parse(&event_options[0], &word, 1, &error));
}

static void empty_databases(void)
{
    keyspace_lock_exclusive();
    for (int i = 0; i < db_count(); i++) {
        db_flush(db_at(i), false);
    }
    keyspace_unlock_exclusive();
    reclaim_run();
}

static void start_afresh(void)
{
    empty_databases();
    caller_run("hset h a 1 b 2 c 3");
    caller_run("hset h1 a 1");
    caller_run("hpexpireat h1 4000000000000 fields 1 a");
    caller_run("sadd s a b");
    caller_run("sadd s1 a");
    caller_run("zadd z 1 a 2 b");
    caller_run("zadd z1 1 a");
    caller_run("pexpirememberat z a 4000000000000");
}

static void run_notes(void)
{
    while (expire_has_notes()) {
        keyspace_lock_exclusive();
        expire_run_notes(clock_wall_ms());
        keyspace_unlock_exclusive();
        reclaim_run();
    }
}

static const char *events_of(const char *line)
{
    set_classes("EKAnm");
    buf_clear(&told);
    caller_run(line);
    run_notes();
    return buf_cstr(&told);
}

struct event_case {
    const char *line, *events;
};

static unsigned compare(const struct event_case *c)
{
    const char *events = events_of(c->line);
    if (strcmp(events, c->events) != 0) {
        print_error("%s: announces \"%s\" instead of \"%s\"\n", c->line, events, c->events);
        return 1;
    }
    return 0;
}

/* clang-format off */
static const struct event_case commands[] = {
    {"hexpire h 100 fields 2 a b", "hexpire@0:h"},
    {"hpexpire h 100000 fields 1 a", "hexpire@0:h"},
    {"hexpireat h 4000000000 fields 1 a", "hexpire@0:h"},
    {"hpexpireat h 4000000000000 fields 2 a x", "hexpire@0:h"},
    {"hexpire h 100 fields 1 x", ""},
    {"hexpire h 100 xx fields 1 a", ""},
    {"hexpire e 100 fields 1 a", ""},
    {"hexpire h 0 fields 2 a b", "hdel@0:h"},
    {"hpexpireat h 1 fields 3 a b c", "hdel@0:h del@0:h"},
    {"hpersist h1 fields 1 a", "hpersist@0:h1"},
    {"hpersist h fields 1 a", ""},
    {"hpersist e fields 1 a", ""},
    {"httl e fields 1 a", "keymiss@0:e"},
    {"hdel h1 a", "hdel@0:h1 del@0:h1"},
    {"hset h1 a 2", "hset@0:h1"},
    {"keydb.hrename h1 a b", "hdel@0:h1 hset@0:h1"},
    {"expiremember h a 100", "expiremember@0:h"},
    {"expiremember h x 100", ""},
    {"expiremember h a -1", "hdel@0:h"},
    {"expiremember s a 100 ms", "expiremember@0:s"},
    {"expirememberat s a 4000000000", "expiremember@0:s"},
    {"expirememberat s a 1", "srem@0:s"},
    {"expirememberat s1 a 1", "srem@0:s1 del@0:s1"},
    {"pexpirememberat z1 a 1", "zrem@0:z1 del@0:z1"},
    {"pexpirememberat z b 4000000000000", "expiremember@0:z"},
    {"persist z a", "persist@0:z"},
    {"persist z b", ""},
    {"zadd z 3 a", "zadd@0:z"},
    {"zrem z a", "zrem@0:z"},
};

/* Behind the deadline of members a and b. */
static const struct event_case later[] = {
    {"hget h a", "hexpired@0:h"},
    {"hgetall h", "hexpired@0:h"},
    {"hset h d 1", "hexpired@0:h hset@0:h"},
    {"hdel h a", "hexpired@0:h"},
    {"exists h", "hexpired@0:h"},
    {"hget h1 a", "hexpired@0:h1 del@0:h1 keymiss@0:h1"},
    {"hset h1 a 1", "hexpired@0:h1 del@0:h1 new@0:h1 hset@0:h1"},
    {"del h1", "hexpired@0:h1 del@0:h1"},
    {"smembers s", "srem@0:s del@0:s keymiss@0:s"},
    {"sadd s a", "srem@0:s del@0:s new@0:s sadd@0:s"},
    {"zcard z", "zrem@0:z"},
    {"zadd z 1 x", "zrem@0:z zadd@0:z"},
    {"zunionstore e 1 z", "zrem@0:z new@0:e zunionstore@0:e"},
    {"sunion s s1", "srem@0:s del@0:s keymiss@0:s"},
    {"rename h e", "hexpired@0:h new@0:e rename_from@0:h rename_to@0:e"},
};
/* clang-format on */

static void test_events_of_commands(void **state)
{
    unsigned wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        start_afresh();
        wrong += compare(&commands[i]);
    }
    assert_int_equal(wrong, 0);
}

/* False when that time is over already. */
static bool expire_member(const char *key, const char *member, long long at_ms)
{
    char line[100];
    snprintf(line, sizeof(line), "pexpirememberat %s %s %lld", key, member, at_ms);
    return strcmp(caller_run(line), ":1\r\n") == 0 && clock_wall_ms() < at_ms;
}

/* Members that will be due in so many milliseconds; false when this took longer. */
static bool make_due_soon(int ms)
{
    empty_databases();
    caller_run("hset h a 1 b 2 c 3");
    caller_run("hset h1 a 1");
    caller_run("sadd s a b");
    caller_run("sadd s1 x");
    caller_run("zadd z 1 a 2 b 3 c");
    long long at_ms = clock_wall_ms() + ms;
    if (!expire_member("h", "a", at_ms) || !expire_member("h", "b", at_ms) ||
        !expire_member("h1", "a", at_ms) || !expire_member("s", "a", at_ms) ||
        !expire_member("s", "b", at_ms) || !expire_member("z", "a", at_ms)) {
        return false;
    }
    while (clock_wall_ms() <= at_ms) {
    }
    return true;
}

/* A busy machine may stop us for longer than a few milliseconds. */
static void make_due(void)
{
    for (int ms = 2; !make_due_soon(ms); ms *= 2) {
        assert_true(ms < 60000);
    }
}

static void test_events_of_members_that_expire(void **state)
{
    unsigned wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        set_classes("");
        make_due();
        wrong += compare(&later[i]);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_of_commands),
        cmocka_unit_test(test_events_of_members_that_expire),
    };
    event_add_listener(record);
    int failed = cmocka_run_group_tests(tests, caller_setup, caller_teardown);
    buf_deinit(&told);
    return failed;
}
