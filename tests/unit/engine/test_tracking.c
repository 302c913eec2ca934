/* The log of changed keys and the notes of reads: engine/tracking.h. */
#include "engine/helpers.h"

#include "base/mem.h"
#include "base/thread.h"
#include "engine/tracking.h"
#include "keyspace/db.h"

#include <stdio.h>
#include <string.h>

static uint64_t told;
static struct tracking_position at[2];

static void posted(uint64_t readers)
{
    told |= readers;
}

static int setup(void **state)
{
    (void)state;
    thread_enter("main");
    hash_set_secret(1);
    tracking_setup(posted);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tracking_teardown();
    thread_leave();
    return 0;
}

static void join(int reader)
{
    gil_wake();
    gil_stop_world();
    tracking_join(reader, &at[reader]);
    gil_resume_world();
    gil_sleep();
}

static void change(struct slice key)
{
    keyspace_lock_exclusive();
    event_key_changed(NULL, key);
    keyspace_unlock_exclusive();
}

static void flush(void)
{
    keyspace_lock_exclusive();
    tracking_flushed();
    keyspace_unlock_exclusive();
}

/* What the reader has not read yet, joined by '|'; '*' is everything. */
static const char *unread(int reader)
{
    static char out[256];
    struct tracking_change c;
    size_t len = 0;
    out[0] = '\0';
    while (tracking_next(&at[reader], UINT64_MAX, &c)) {
        struct slice s = c.key.ptr ? c.key : SLICE("*");
        len += (size_t)snprintf(out + len, sizeof(out) - len, "%.*s|", (int)s.len, s.ptr);
    }
    tracking_caught_up(reader, &at[reader]);
    return out;
}

static void test_each_reader_sees_what_came_after_it(void **state)
{
    (void)state;
    change(SLICE("early"));
    assert_int_equal(told, 0);
    join(0);
    change(SLICE("a"));
    assert_int_equal(told, 1);
    join(1);
    change(SLICE(""));
    flush();
    change(SLICE("12345678"));
    assert_int_equal(told, 3);
    assert_string_equal(unread(0), "a||*|12345678|");
    assert_string_equal(unread(1), "|*|12345678|");
    assert_string_equal(unread(0), "");
    tracking_leave(0, &at[0]);
    change(SLICE("b"));
    assert_string_equal(unread(1), "b|");
    tracking_leave(1, &at[1]);
}

static void test_a_read_stands_between_the_changes(void **state)
{
    (void)state;
    struct session s = {.tracking = TRACKING_ON};
    struct command cmd = {.flags = CMD_READONLY};
    struct command_row row = {.name = "get"};
    struct key key = key_of(SLICE("k"));
    struct call c = {
        .cmd = &cmd, .session = &s, .keys = &key, .key_count = 1, .held = ACCESS_SHARED};
    struct tracking_change seen;
    struct tracking_read read;
    size_t offset = 0;
    cmd.row = &row;
    join(0);
    change(SLICE("before"));
    keyspace_lock_shared();
    tracking_after_call(&c);
    keyspace_unlock_shared();
    change(SLICE("after"));
    assert_true(tracking_has_reads());
    assert_true(tracking_next_read(&offset, &read));
    assert_true(read.session == &s && slice_equal(read.key.name, SLICE("k")));
    assert_true(tracking_next(&at[0], read.seq, &seen));
    assert_true(slice_equal(seen.key, SLICE("before")));
    assert_false(tracking_next(&at[0], read.seq, &seen));
    assert_false(tracking_next_read(&offset, &read));
    assert_false(tracking_has_reads());
    assert_string_equal(unread(0), "after|");
    tracking_leave(0, &at[0]);
}

/* Two readers, one of which sleeps: the log stops growing with what is changed, and both are told
 * enough. */
static void test_the_log_is_bounded(void **state)
{
    (void)state;
    static char big[1 << 20];
    uint64_t keys = 0, all = 0;
    struct tracking_change c;
    memset(big, 'x', sizeof(big));
    join(0);
    join(1);
    size_t before = mem_used_bytes();
    for (int i = 0; i < 200; i++) {
        change(slice_of(big, sizeof(big)));
    }
    assert_true(mem_used_bytes() - before < (size_t)80 << 20);
    while (tracking_next(&at[1], UINT64_MAX, &c)) {
        keys += c.key.ptr != NULL;
        all += c.key.ptr == NULL;
    }
    tracking_caught_up(1, &at[1]);
    assert_true(keys >= 60 && keys <= 64);
    assert_int_equal(all, 1);
    change(slice_of(big,
                    sizeof(big))); /* the first one still sleeps; what stood for changes is taken */
    assert_string_equal(unread(1), "*|");
    while (tracking_next(&at[0], UINT64_MAX, &c)) {
    }
    tracking_caught_up(0, &at[0]);
    change(SLICE("k"));
    assert_string_equal(unread(0), "k|");
    assert_string_equal(unread(1), "k|");
    tracking_leave(0, &at[0]);
    tracking_leave(1, &at[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_reader_sees_what_came_after_it),
        cmocka_unit_test(test_a_read_stands_between_the_changes),
        cmocka_unit_test(test_the_log_is_bounded),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
