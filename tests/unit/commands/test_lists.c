/* Which key events the commands of lists announce, in which order (observed at Redis 7.0).
 */
#include "commands/caller.h"

#include "keyspace/event.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"

#include "base/clock.h"

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

/* Lists k of four and o of one element, and a string s. */
static void start_afresh(void) NO_THREAD_SAFETY_ANALYSIS;
static void start_afresh(void)
{
    set_classes("");
    keyspace_lock_exclusive();
    db_flush(db_at(0), false);
    keyspace_unlock_exclusive();
    reclaim_run();
    caller_run("rpush k a b c a");
    caller_run("rpush o x");
    caller_run("set s v");
}

/* What a command announces, with what is told later of what it met under shared mode. */
static const char *events_of(const char *line) NO_THREAD_SAFETY_ANALYSIS;
static const char *events_of(const char *line)
{
    start_afresh();
    set_classes("KEAnm");
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
    {"lpush k x y", "lpush@0:k"},
    {"lpush e x", "new@0:e lpush@0:e"},
    {"rpush k x", "rpush@0:k"},
    {"rpush e x", "new@0:e rpush@0:e"},
    {"lpushx k x", "lpush@0:k"},
    {"lpushx e x", ""},
    {"rpushx k x", "rpush@0:k"},
    {"rpushx e x", ""},
    {"lpop k", "lpop@0:k"},
    {"rpop k", "rpop@0:k"},
    {"lpop o", "lpop@0:o del@0:o"},
    {"rpop o", "rpop@0:o del@0:o"},
    {"lpop e", ""},
    {"lpop k 0", ""},
    {"lpop k 2", "lpop@0:k"},
    {"rpop k 9", "rpop@0:k del@0:k"},
    {"rpop e 2", ""},
    {"lmpop 2 e k left", "lpop@0:k"},
    {"lmpop 2 e k right count 9", "rpop@0:k del@0:k"},
    {"lmpop 1 e left", ""},
    {"llen k", ""},
    {"llen e", "keymiss@0:e"},
    {"lindex k 0", ""},
    {"lindex e 0", "keymiss@0:e"},
    {"lset k 0 x", "lset@0:k"},
    {"lset k 9 x", ""},
    {"lset e 0 x", ""},
    {"linsert k before b x", "linsert@0:k"},
    {"linsert k after z x", ""},
    {"linsert e after z x", ""},
    {"lrange k 0 -1", ""},
    {"lrange e 0 -1", "keymiss@0:e"},
    {"ltrim k 1 2", "ltrim@0:k"},
    {"ltrim k 0 -1", "ltrim@0:k"},
    {"ltrim k 9 9", "ltrim@0:k del@0:k"},
    {"ltrim e 0 1", ""},
    {"lrem k 0 a", "lrem@0:k"},
    {"lrem k -1 a", "lrem@0:k"},
    {"lrem k 0 z", ""},
    {"lrem o 1 x", "lrem@0:o del@0:o"},
    {"lrem e 0 a", ""},
    {"lpos k a", ""},
    {"lpos e a", "keymiss@0:e"},
    {"lmove k o left right", "rpush@0:o lpop@0:k"},
    {"lmove o k left right", "rpush@0:k lpop@0:o del@0:o"},
    {"lmove o e right left", "new@0:e lpush@0:e rpop@0:o del@0:o"},
    {"lmove e k left left", ""},
    {"lmove k k left right", "rpush@0:k lpop@0:k"},
    {"lmove o o left left", "lpush@0:o lpop@0:o"},
    {"rpoplpush k k", "lpush@0:k rpop@0:k"},
    {"rpoplpush k e", "new@0:e lpush@0:e rpop@0:k"},
    {"rpoplpush o k", "lpush@0:k rpop@0:o del@0:o"},
    {"rpoplpush e e", ""},
    {"lpush s x", ""},
    {"lmove k s left left", ""},
};
/* clang-format on */

static void test_events(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *events = events_of(cases[i].line);
        if (strcmp(events, cases[i].events) != 0) {
            fail_msg("%s: told \"%s\", not \"%s\"", cases[i].line, events, cases[i].events);
        }
    }
    set_classes("");
}

static void test_a_class_that_is_off_is_silent(void **state)
{
    (void)state;
    start_afresh();
    set_classes("KE$g");
    buf_clear(&told);
    caller_run("lpush k x");
    caller_run("lpop o");
    assert_string_equal(buf_cstr(&told), "del@0:o");
    set_classes("");
}

/* A list without elements never stays behind. */
static void test_an_empty_list_is_no_key(void **state)
{
    (void)state;
    static const char *const last[] = {"lpop o",          "rpop o 5",
                                       "lmpop 1 o left",  "ltrim o 5 6",
                                       "lrem o 0 x",      "lmove o k left left",
                                       "rpoplpush o new", "lmove o n2 left right"};
    for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++) {
        start_afresh();
        caller_run(last[i]);
        assert_null(caller_entry("o"));
        assert_string_equal(caller_run("exists o"), ":0\r\n");
    }
    /* But the last element may go round. */
    start_afresh();
    caller_run("lmove o o left right");
    assert_string_equal(caller_run("lrange o 0 -1"), "*1\r\n$1\r\nx\r\n");
}

/* A move may make the table grow, or find its target expired, between the two lists. */
static void test_moves_while_the_table_grows(void **state)
{
    (void)state;
    start_afresh();
    for (int i = 0; i < 3000; i++) {
        char line[64];
        snprintf(line, sizeof(line), "rpush source%d a", i);
        caller_run(line);
        snprintf(line, sizeof(line), "lmove source%d target%d left left", i, i);
        assert_string_equal(caller_run(line), "$1\r\na\r\n");
        snprintf(line, sizeof(line), "exists source%d target%d", i, i);
        assert_string_equal(caller_run(line), ":1\r\n");
    }
}

int main(void)
{
    event_add_listener(record);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_a_class_that_is_off_is_silent),
        cmocka_unit_test(test_an_empty_list_is_no_key),
        cmocka_unit_test(test_moves_while_the_table_grows),
    };
    int failures = cmocka_run_group_tests(tests, caller_setup, caller_teardown);
    buf_deinit(&told);
    return failures;
}
