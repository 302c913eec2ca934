/* Which key events the commands of consumer groups announce (observed at Redis 7.0; that asking in
 * vain makes a consumer is of 7.2), and the groups' invariants after random commands. */
#include "commands/caller.h"

#include "base/rand.h"
#include "keyspace/event.h"
#include "keyspace/reclaim.h"
#include "value/stream.h"
#include "value/stream_group.h"

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

/* A stream s of three entries whose group g gave the first one to a, and a string k. */
static void start_afresh(void) NO_THREAD_SAFETY_ANALYSIS;
static void start_afresh(void)
{
    set_classes("");
    keyspace_lock_exclusive();
    db_flush(db_at(0), false);
    keyspace_unlock_exclusive();
    reclaim_run();
    caller_run("xadd s 1-1 f v");
    caller_run("xadd s 2-1 f v");
    caller_run("xadd s 3-1 f v");
    caller_run("xgroup create s g 0");
    caller_run("xreadgroup group g a count 1 streams s >");
    caller_run("set k v");
}

static const char *events_of(const char *line)
{
    start_afresh();
    set_classes("KEAn");
    buf_clear(&told);
    caller_run(line);
    return buf_cstr(&told);
}

/* clang-format off */
static const struct {
    const char *line, *events;
} cases[] = {
    {"xgroup create s h $", "xgroup-create@0:s"},
    {"xgroup create s g $", ""},
    {"xgroup create e g $", ""},
    {"xgroup create e g $ mkstream", "new@0:e xgroup-create@0:e"},
    {"xgroup create e g x mkstream", ""},
    {"xgroup create s g x mkstream", ""},
    {"xgroup create k g $ mkstream", ""},
    {"xgroup setid s g 0", "xgroup-setid@0:s"},
    {"xgroup setid s h 0", ""},
    {"xgroup destroy s g", "xgroup-destroy@0:s"},
    {"xgroup destroy s h", ""},
    {"xgroup createconsumer s g b", "xgroup-createconsumer@0:s"},
    {"xgroup createconsumer s g a", ""},
    {"xgroup delconsumer s g a", "xgroup-delconsumer@0:s"},
    {"xgroup delconsumer s g b", ""},
    {"xreadgroup group g a streams s >", ""},
    {"xreadgroup group g a streams s 0", ""},
    {"xreadgroup group g b streams s >", "xgroup-createconsumer@0:s"},
    {"xreadgroup group g b streams s 0", "xgroup-createconsumer@0:s"},
    {"xreadgroup group g b noack streams s >", "xgroup-createconsumer@0:s"},
    {"xreadgroup group g b streams s e > >", ""},
    {"xreadgroup group g b streams s k > >", ""},
    {"xack s g 1-1", ""},
    {"xack s g 9-9", ""},
    {"xclaim s g a 0 1-1", ""},
    {"xclaim s g b 0 1-1", "xgroup-createconsumer@0:s"},
    {"xclaim s g b 0 9-9", "xgroup-createconsumer@0:s"},
    {"xclaim s g b 0 1-1 lastid x", ""},
    {"xautoclaim s g b 0 0", "xgroup-createconsumer@0:s"},
    {"xautoclaim s g b 1000000 0", "xgroup-createconsumer@0:s"},
    {"xautoclaim s g b 0 0 count 0", ""},
    {"xpending s g - + 10 b", ""},
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

/* What fails changes nothing, wherever in the request the fault is. */
static void test_faults_leave_everything(void **state)
{
    (void)state;
    static const char *const faulty[] = {
        "xreadgroup group g b streams s e > >",
        "xreadgroup group g b streams s s > x",
        "xreadgroup group g b streams s k > >",
        "xreadgroup group g b block x streams s >",
        "xclaim s g b 0 1-1 x",
        "xclaim s g b 0 1-1 lastid 9 idle x",
        "xautoclaim s g b 0 0 count x",
        "xack s g 1-1 x",
        "xgroup create s h 0 entriesread -2",
        "xgroup setid s g 0 entriesread x",
        "xgroup setid s g x",
    };
    start_afresh();
    for (size_t i = 0; i < sizeof(faulty) / sizeof(faulty[0]); i++) {
        uint8_t one[20], other[20];
        const struct entry *e = caller_entry("s");
        value_ops_of[VALUE_STREAM]->digest(e, one);
        assert_int_equal(caller_run(faulty[i])[0], '-');
        value_ops_of[VALUE_STREAM]->digest(e, other);
        assert_memory_equal(one, other, sizeof(one));
    }
}

static void test_removed_groups_are_freed(void **state)
{
    (void)state;
    start_afresh();
    assert_false(reclaim_has_work());
    assert_string_equal(caller_run("xgroup destroy s g"), ":1\r\n");
    reclaim_run();
    assert_int_equal(stream_groups(caller_entry("s"))->count, 0);
}

/* ---- Random commands ---- */

static const char *random_id(char *text)
{
    snprintf(text, 32, "%u-1", (unsigned)rand_below(60));
    return text;
}

/* A random command about the stream r, of those that change groups or what they are about. */
static void random_line(char *line, size_t size, int n)
{
    char one[32], other[32];
    unsigned who = (unsigned)rand_below(4);
    random_id(one);
    random_id(other);
    switch (rand_below(14)) {
    case 0:
        snprintf(line, size, "xgroup create r g%u %s mkstream", who % 2, one);
        break;
    case 1:
        snprintf(line, size, "xgroup setid r g%u %s", who % 2, one);
        break;
    case 2:
        snprintf(line, size, rand_below(6) ? "xlen r" : "xgroup destroy r g%u", who % 2);
        break;
    case 3:
        snprintf(line, size, "xgroup delconsumer r g0 c%u", who);
        break;
    case 4:
        snprintf(line, size, "xdel r %s %s", one, other);
        break;
    case 5:
        snprintf(line, size, rand_below(3) ? "xlen r" : "xtrim r maxlen 20");
        break;
    case 6:
        snprintf(line, size, "xclaim r g0 c%u 0 %s %s force", who, one, other);
        break;
    case 7:
        snprintf(line, size, "xautoclaim r g0 c%u 0 %s count 3", who, one);
        break;
    case 8:
        snprintf(line, size, "xack r g0 %s %s", one, other);
        break;
    case 9:
        snprintf(line, size, "xreadgroup group g0 c%u streams r %s", who, one);
        break;
    case 10:
    case 11:
        snprintf(line, size, "xreadgroup group g%u c%u count 3 streams r >", who % 2, who);
        break;
    default:
        snprintf(line, size, "xadd r %d-1 f v", n);
    }
}

static void test_invariants_hold(void **state)
{
    (void)state;
    uint64_t seen = 0;
    for (int round = 0; round < 20; round++) {
        start_afresh();
        for (int n = 1; n < 300; n++) {
            char line[128];
            random_line(line, sizeof(line), n / 3 + 1);
            caller_run(line);
            const struct entry *e = caller_entry("r");
            if (e) {
                stream_check(e);
                const struct stream_group *g = stream_group_find(stream_groups(e), SLICE("g0"));
                seen += g ? g->pending.count : 0;
            }
        }
        caller_run("copy r t");
        if (caller_entry("t")) {
            stream_check(caller_entry("t"));
        }
    }
    /* They hold of something. */
    assert_true(seen > 1000);
}

int main(void)
{
    event_add_listener(record);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_faults_leave_everything),
        cmocka_unit_test(test_removed_groups_are_freed),
        cmocka_unit_test(test_invariants_hold),
    };
    int failures = cmocka_run_group_tests(tests, caller_setup, caller_teardown);
    buf_deinit(&told);
    return failures;
}
