/* What large operations on sets and sorted sets store, and what those on sorted sets reply, in
 * slices, while keys change and time passes between them: the result is what the same command run
 * whole gives at the moment of the last slice. */
#include "commands/caller.h"

#include "base/clock.h"
#include "engine/propagate.h"
#include "keyspace/expire.h"
#include "long.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than goes at once, and than a slice takes, whatever the machine: it ends by time, so that
 * fewer do under ThreadSanitizer. A multiple of ten. */
#if defined(__SANITIZE_THREAD__)
#define MEMBERS 10000
#else
#define MEMBERS 20000
#endif
#define SLICES_MAX 100000

static uint64_t told_commands;
static struct buf told; /* the last command, as it was told */

static void record(int db, struct slice commands)
{
    (void)db;
    told_commands++;
    buf_clear(&told);
    buf_append_slice(&told, commands);
}

static int log_number;

static void switch_log(bool on) NO_THREAD_SAFETY_ANALYSIS;
static void switch_log(bool on)
{
    keyspace_lock_exclusive();
    propagate_switch(log_number, on);
    keyspace_unlock_exclusive();
}

static int score_z(int i)
{
    return 1 + i % 1000 * 7919 % 1000;
}

static int score_y(int i)
{
    return 1 + i * 10007 % MEMBERS;
}

/* All members from `first` on, ten a command; with scores where `score` says them. */
static void add(const char *command, const char *key, int first, int (*score)(int i))
{
    struct buf line = {0};
    for (int i = 0; i < MEMBERS; i++) {
        if (i % 10 == 0) {
            buf_clear(&line);
            buf_printf(&line, "%s %s", command, key);
        }
        if (score) {
            buf_printf(&line, " %d", score(i));
        }
        buf_printf(&line, " member:%d", first + i);
        if (i % 10 == 9) {
            caller_run(buf_cstr(&line));
        }
    }
    buf_deinit(&line);
}

/* Sets "a", "b" and sorted sets "z", "y", which share two thirds; "c" and "x" are small. */
static int make_keys(void **state)
{
    (void)state;
    add("sadd", "a", 0, NULL);
    add("sadd", "b", MEMBERS / 3, NULL);
    add("zadd", "z", 0, score_z);
    add("zadd", "y", MEMBERS / 3, score_y);
    caller_run("sadd c x y z member:5");
    caller_run("zadd x 1 one 2 two 3 member:7");
    return 0;
}

static int delete_keys(void **state)
{
    (void)state;
    caller_run("del a b c z y x out whole");
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* The value of a key, of whatever type, as text to compare; freed by the caller. */
static char *content_of(const char *key)
{
    struct entry *e = caller_entry(key);
    struct buf text = {0};
    char line[64];
    if (!e) {
        return strdup("missing");
    }
    bool is_set = entry_type(e) == VALUE_SET;
    snprintf(line, sizeof(line), is_set ? "smembers %s" : "zrange %s 0 -1 withscores", key);
    int proto = caller_session()->proto;
    caller_session()->proto = 2;
    const char *reply = caller_run(line);
    caller_session()->proto = proto;
    char *end;
    size_t count = strtoul(reply + 1, &end, 10);
    const char *at = end + 2;
    struct slice *members = calloc(count + 1, sizeof(*members));
    for (size_t i = 0; i < count; i++) {
        size_t len = strtoul(at + 1, &end, 10);
        members[i] = slice_of(end + 2, len);
        at = end + 2 + len + 2;
    }
    if (is_set) {
        qsort(members, count, sizeof(*members), by_text);
    }
    buf_printf(&text, "%d %d", (int)entry_encoding(e), (int)count);
    for (size_t i = 0; i < count; i++) {
        buf_append_char(&text, ' ');
        buf_append_slice(&text, members[i]);
    }
    free(members);
    char *copy = strdup(buf_cstr(&text));
    buf_deinit(&text);
    return copy;
}

/* A line with another destination. */
static const char *with_destination(const char *line, const char *key)
{
    static char text[256];
    size_t word = strcspn(line, " ");
    const char *rest = line + word + 1 + strcspn(line + word + 1, " ");
    snprintf(text, sizeof(text), "%.*s %s%s", (int)word, line, key, rest);
    return text;
}

/* The sliced call has ended with what `line` gives when it is run whole, now. */
static void expect_as_now(const char *line)
{
    char *reply = strdup(caller_sliced_reply().ptr);
    if (!strstr(line, "store")) {
        assert_string_equal(reply, caller_run_whole(line));
        free(reply);
        return;
    }
    assert_string_equal(reply, caller_run_whole(with_destination(line, "whole")));
    char *whole = content_of("whole"), *ours = content_of("out");
    assert_string_equal(ours, whole);
    free(whole);
    free(ours);
    free(reply);
    caller_run("del out whole");
}

static const char *const lines[] = {
    "sinterstore out a b",
    "sunionstore out a b c",
    "sunionstore out a",
    "sdiffstore out a b",
    "sdiffstore out a a",
    "zunionstore out 2 z y weights 2 -3 aggregate max",
    "zunionstore out 3 z a x",
    "zinterstore out 2 y z weights 0.5 1",
    "zinterstore out 3 b z a aggregate min",
    "zdiffstore out 3 z x none",
    "zdiffstore out 2 a z",
    "zunion 2 z y",
    "zunion 2 y a weights 3 1 aggregate min withscores",
    "zinter 2 z y withscores",
    "zdiff 2 y z withscores",
    "zintercard 2 z b",
    "zintercard 2 z b limit 17000",
};
#define LINES (sizeof(lines) / sizeof(lines[0]))

/* Begins a line; it must not be done in its first hold. */
static void begin(const char *line)
{
    assert_false(caller_begin_line(line));
}

static int run_slices(void (*disturb)(int round))
{
    int slices = 1;
    do {
        if (disturb) {
            disturb(slices);
        }
        slices++;
        assert_true(slices < SLICES_MAX);
    } while (!caller_continue());
    return slices;
}

static void test_undisturbed(void **state)
{
    (void)state;
    for (unsigned proto = 2; proto <= 3; proto++) {
        int slices = 0;
        caller_session()->proto = (int)proto;
        for (size_t i = 0; i < UNIT_LONG(LINES); i++) {
            begin(lines[i]);
            slices += run_slices(NULL);
            expect_as_now(lines[i]);
        }
        assert_true(slices > 4 * (int)UNIT_LONG(LINES));
    }
    caller_session()->proto = 2;
}

static void change_few(int round)
{
    char text[64];
    if (round == 2) {
        caller_run("srem a member:1 member:2 member:9000");
        caller_run("zrem z member:1 member:2 member:9000");
        caller_run("zincrby y 5.5 member:8000");
    } else if (round == 5) {
        caller_run("sadd a late:1 late:2");
        caller_run("zadd y 7 late:1");
    } else {
        /* Of no matter. */
        snprintf(text, sizeof(text), "set other:%d x", round);
        caller_run(text);
    }
}

/* Compares with the moment of the end, at which the keys are as after the last disturbance: replies
 * of what only reads are of the last beginning, which is none other here. */
static void test_changed_meanwhile(void **state)
{
    (void)state;
    for (size_t i = 0; i < UNIT_LONG(LINES); i++) {
        begin(lines[i]);
        run_slices(change_few);
        if (strstr(lines[i], "store")) {
            expect_as_now(lines[i]);
        }
    }
}

static int change_number;

static void change_always(int round)
{
    char text[64];
    (void)round;
    snprintf(text, sizeof(text), "sadd a always:%d", change_number);
    caller_run(text);
    snprintf(text, sizeof(text), "zadd z %d always:%d", change_number, change_number);
    caller_run(text);
    change_number++;
    caller_run("zincrby y 1 member:8000");
    caller_run("srem b member:8000");
    caller_run("sadd b member:8000");
}

/* It ends nevertheless, soon after it has begun anew too often. */
static void test_changed_without_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < UNIT_LONG(LINES); i++) {
        if (strstr(lines[i], "store")) {
            begin(lines[i]);
            assert_in_range(run_slices(change_always), 2, 12);
            expect_as_now(lines[i]);
        }
    }
}

/* Slices until the next one is to publish. */
static void run_to_publishing(void)
{
    for (int slices = 0; caller_next_access() != ACCESS_EXCLUSIVE; slices++) {
        assert_false(caller_continue());
        assert_true(slices < SLICES_MAX);
    }
}

static void test_changed_before_publishing(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "zadd z 5 new",      "del z",       "rename x z",   "set out text", "expire y 0",
        "sunionstore a c b", "lpush out 1", "zadd y 1 one", "sadd a b",
    };
    for (size_t i = 0; i < UNIT_LONG(sizeof(changes) / sizeof(changes[0])); i++) {
        for (size_t k = 0; k < LINES; k++) {
            if (strncmp(lines[k], "zunionstore", 11) != 0 && strncmp(lines[k], "sunionstore", 11)) {
                continue;
            }
            delete_keys(NULL);
            make_keys(NULL);
            begin(lines[k]);
            run_to_publishing();
            caller_run(changes[i]);
            run_slices(NULL);
            expect_as_now(lines[k]);
        }
    }
}

/* A source that expires, and members that do, while the result is made. */
static void test_expired_before_publishing(void **state)
{
    (void)state;
    static const char *const deadlines[] = {"pexpire z 100000", "expiremember z member:17 100",
                                            "expiremember a member:18 100"};
    for (size_t i = 0; i < sizeof(deadlines) / sizeof(deadlines[0]); i++) {
        for (int early = 0; early < 2; early++) {
            delete_keys(NULL);
            make_keys(NULL);
            caller_run(deadlines[i]);
            begin("zunionstore out 3 z a x");
            if (!early) {
                run_to_publishing();
            }
            clock_set_skew_ms(200000);
            run_slices(early ? change_few : NULL);
            expect_as_now("zunionstore out 3 z a x");
            clock_set_skew_ms(0);
        }
    }
}

static void test_wrong_type_meanwhile(void **state)
{
    (void)state;
    for (size_t i = 0; i < UNIT_LONG(LINES); i++) {
        delete_keys(NULL);
        make_keys(NULL);
        begin(lines[i]);
        caller_run("set a text");
        caller_run("set z text");
        caller_run("set b text");
        caller_run("set y text");
        run_slices(NULL);
        assert_memory_equal(caller_sliced_reply().ptr, "-WRONGTYPE ", 11);
        assert_null(caller_entry("out"));
    }
}

static void test_destination_is_a_source(void **state)
{
    (void)state;
    caller_run("copy z z0");
    begin("zunionstore z 2 z y");
    run_slices(NULL);
    caller_run_whole("zunionstore whole 2 z0 y");
    char *ours = content_of("z"), *whole = content_of("whole");
    assert_string_equal(ours, whole);
    free(ours);
    free(whole);
    /* An empty result deletes it. */
    begin("sdiffstore a a a");
    run_slices(NULL);
    assert_string_equal(caller_sliced_reply().ptr, ":0\r\n");
    assert_null(caller_entry("a"));
    caller_run("del z0");
}

/* One command goes to the logs, when it is done; and what replaces a key takes its expiry away. */
static void test_told_once(void **state)
{
    (void)state;
    caller_run("set out text");
    caller_run("pexpire out 1000000");
    switch_log(true);
    told_commands = 0;
    begin("zunionstore out 2 z y");
    run_to_publishing();
    assert_int_equal(told_commands, 0);
    assert_true(caller_continue());
    assert_int_equal(told_commands, 1);
    assert_string_equal(buf_cstr(&told), "*5\r\n$11\r\nzunionstore\r\n$3\r\nout\r\n$1\r\n2\r\n"
                                         "$1\r\nz\r\n$1\r\ny\r\n");
    switch_log(false);
    assert_string_equal(caller_run("pttl out"), ":-1\r\n");
}

static void test_given_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < UNIT_LONG(LINES); i++) {
        /* After each number of slices from 0 on, in larger and larger steps. */
        for (int slices = 0; slices < 5000; slices += 1 + slices / 2) {
            bool done = false;
            begin(lines[i]);
            for (int k = 0; k < slices && !done; k++) {
                done = caller_continue();
            }
            caller_abandon();
            if (done) {
                break;
            }
        }
        caller_run("del out");
    }
}

static void test_what_is_little_goes_at_once(void **state)
{
    (void)state;
    assert_true(caller_begin_line("zinterstore out 2 x z"));
    assert_true(caller_begin_line("zdiffstore out 2 x z"));
    assert_true(caller_begin_line("zintercard 2 z y limit 10"));
    assert_true(caller_begin_line("sinterstore out a b c"));
}

/* Without memory for the large arrays it says so, or does without, and nothing has changed. */
static void test_without_memory(void **state)
{
    (void)state;
    caller_run("set out text");
    caller_refuse_above((size_t)64 << 10);
    begin("zunionstore out 2 z y");
    run_slices(NULL);
    caller_refuse_above(SIZE_MAX);
    assert_memory_equal(caller_sliced_reply().ptr, "-OOM ", 5);
    assert_string_equal(caller_run("get out"), "$4\r\ntext\r\n");
    /* Here only what sorting would like to have is refused. */
    caller_refuse_above((size_t)1 << 20);
    begin("zunionstore out 2 z y");
    run_slices(NULL);
    caller_refuse_above(SIZE_MAX);
    expect_as_now("zunionstore out 2 z y");
}

static int setup(void **state)
{
    int error = caller_setup(state);
    propagate_setup();
    log_number = propagate_register(PROPAGATE_TO_AOF, record);
    return error;
}

static int teardown(void **state)
{
    propagate_teardown();
    buf_deinit(&told);
    return caller_teardown(state);
}

#define WITH_KEYS(test) cmocka_unit_test_setup_teardown(test, make_keys, delete_keys)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_KEYS(test_undisturbed),
        WITH_KEYS(test_changed_meanwhile),
        WITH_KEYS(test_changed_without_end),
        WITH_KEYS(test_changed_before_publishing),
        WITH_KEYS(test_expired_before_publishing),
        WITH_KEYS(test_wrong_type_meanwhile),
        WITH_KEYS(test_destination_is_a_source),
        WITH_KEYS(test_told_once),
        WITH_KEYS(test_given_up),
        WITH_KEYS(test_what_is_little_goes_at_once),
        WITH_KEYS(test_without_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
