/* Which key events each command of strings and keys announces, in which order; what they are was
 * observed at Redis 7.0. And that a class that is off is not announced. */
#include "commands/caller.h"

#include "keyspace/event.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"

#include "base/clock.h"

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

/* Database 0 holds k, n (a number) and t (which expires); the others nothing. */
static void start_afresh(void) NO_THREAD_SAFETY_ANALYSIS;
static void start_afresh(void)
{
    set_classes("");
    keyspace_lock_exclusive();
    for (int i = 0; i < db_count(); i++) {
        db_flush(db_at(i), false);
    }
    keyspace_unlock_exclusive();
    reclaim_run();
    caller_run("mset k v n 7");
    caller_run("set t v ex 1000");
}

/* What a command announces, with what is told later of what it met under shared mode. */
static const char *events_of(const char *line, const char *classes) NO_THREAD_SAFETY_ANALYSIS;
static const char *events_of(const char *line, const char *classes)
{
    start_afresh();
    set_classes(classes);
    buf_clear(&told);
    caller_run(line);
    if (expire_has_notes()) {
        keyspace_lock_exclusive();
        expire_run_notes(clock_wall_ms());
        keyspace_unlock_exclusive();
    }
    return buf_cstr(&told);
}

/* clang-format off */
static const struct {
    const char *line, *events;
} cases[] = {
    {"set k v", "set@0:k"},
    {"set k v ex 100", "set@0:k expire@0:k"},
    {"set k v px 100000", "set@0:k expire@0:k"},
    {"set k v exat 99999999999", "set@0:k expire@0:k"},
    {"set k v keepttl", "set@0:k"},
    {"set k v nx", ""},
    {"set k v xx", "set@0:k"},
    {"set k v get", "set@0:k"},
    {"set e v xx", ""},
    {"set e v nx", "new@0:e set@0:e"},
    {"setnx k v", ""},
    {"setnx e v", "new@0:e set@0:e"},
    {"setex k 100 v", "set@0:k expire@0:k"},
    {"psetex e 100000 v", "new@0:e set@0:e expire@0:e"},
    {"getset k w", "set@0:k"},
    {"getset e w", "keymiss@0:e new@0:e set@0:e"},
    {"getdel k", "del@0:k"},
    {"getdel e", "keymiss@0:e"},
    {"getex k", ""},
    {"getex k ex 10", "expire@0:k"},
    {"getex k px 10000", "expire@0:k"},
    {"getex k persist", ""},
    {"getex t persist", "persist@0:t"},
    {"getex k pxat 1", "del@0:k"},
    {"append k x", "append@0:k"},
    {"append e x", "new@0:e append@0:e"},
    {"append k", ""},
    {"setrange k 1 x", "setrange@0:k"},
    {"setrange e 1 x", "new@0:e setrange@0:e"},
    {"setrange e 0", ""},
    {"setrange k 0", ""},
    {"incr n", "incrby@0:n"},
    {"incr e", "new@0:e incrby@0:e"},
    {"decr n", "incrby@0:n"},
    {"incrby n 5", "incrby@0:n"},
    {"decrby n 5", "incrby@0:n"},
    {"incrbyfloat n 1.5", "incrbyfloat@0:n"},
    {"incrbyfloat e 1.5", "new@0:e incrbyfloat@0:e"},
    {"mset k 1 e 2", "set@0:k new@0:e set@0:e"},
    {"msetnx k 1 e 2", ""},
    {"msetnx e 1 f 2", "new@0:e set@0:e new@0:f set@0:f"},
    {"get k", ""},
    {"get e", "keymiss@0:e"},
    {"mget k e", "keymiss@0:e"},
    {"strlen e", "keymiss@0:e"},
    {"exists e", "keymiss@0:e"},
    {"type e", "keymiss@0:e"},
    {"getrange e 0 1", "keymiss@0:e"},
    {"ttl e", "keymiss@0:e"},
    {"object encoding e", ""},
    {"lcs k e", "keymiss@0:e"},
    {"touch e", "keymiss@0:e"},
    {"del k", "del@0:k"},
    {"del k n e", "del@0:k del@0:n"},
    {"unlink k", "del@0:k"},
    {"unlink e", ""},
    {"expire k 100", "expire@0:k"},
    {"expire k -1", "del@0:k"},
    {"expire e 10", ""},
    {"expire k 100 xx", ""},
    {"pexpire k 1000", "expire@0:k"},
    {"expireat k 1", "del@0:k"},
    {"pexpireat k 99999999999999", "expire@0:k"},
    {"persist k", ""},
    {"persist t", "persist@0:t"},
    {"rename k f", "new@0:f rename_from@0:k rename_to@0:f"},
    {"rename k n", "new@0:n rename_from@0:k rename_to@0:n"},
    {"rename k k", ""},
    {"rename t n", "new@0:n rename_from@0:t rename_to@0:n"},
    {"renamenx k e", "new@0:e rename_from@0:k rename_to@0:e"},
    {"renamenx k n", ""},
    {"copy k e", "new@0:e copy_to@0:e"},
    {"copy k n", ""},
    {"copy k n replace", "new@0:n copy_to@0:n"},
    {"copy t e", "new@0:e copy_to@0:e"},
    {"copy k e db 3", "new@3:e copy_to@3:e"},
    {"move k 1", "new@1:k move_from@0:k move_to@1:k"},
    {"move e 1", ""},
    {"move t 1", "new@1:t move_from@0:t move_to@1:t"},
    {"randomkey", ""},
};
/* clang-format on */

static void test_events_of_each_command(void **state)
{
    unsigned wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *events = events_of(cases[i].line, "EKAnm");
        if (strcmp(events, cases[i].events) != 0) {
            print_error("%s: announces \"%s\" instead of \"%s\"\n", cases[i].line, events,
                        cases[i].events);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

static void test_classes_that_are_off(void **state)
{
    (void)state;
    assert_string_equal(events_of("set e v ex 10", ""), "");
    assert_string_equal(events_of("set e v ex 10", "E$"), "set@0:e");
    assert_string_equal(events_of("set e v ex 10", "Kg"), "expire@0:e");
    assert_string_equal(events_of("set e v ex 10", "En"), "new@0:e");
    assert_string_equal(events_of("get e", "EA"), "");
    assert_string_equal(events_of("get e", "Km"), "keymiss@0:e");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_of_each_command),
        cmocka_unit_test(test_classes_that_are_off),
    };
    event_add_listener(record);
    int failed = cmocka_run_group_tests(tests, caller_setup, caller_teardown);
    buf_deinit(&told);
    return failed;
}
