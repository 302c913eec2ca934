/* Operations on large sets, in slices, while the sets change between them: the result is that of
 * one moment, as the same command run whole has it. */
#include "commands/caller.h"

#include "base/rand.h"
#include "long.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than goes at once, and than a slice takes, whatever the machine: it ends by time, so that
 * fewer do under ThreadSanitizer. A multiple of ten. */
#if defined(__SANITIZE_THREAD__)
#define MEMBERS 40000
#else
#define MEMBERS 60000
#endif
#define SLICES_MAX 100000

/* Members from `first` on, ten a command. */
static void add(const char *key, int first)
{
    struct buf line = {0};
    for (int i = 0; i < MEMBERS; i++) {
        if (i % 10 == 0) {
            buf_clear(&line);
            buf_printf(&line, "sadd %s", key);
        }
        buf_printf(&line, " member:%d", first + i);
        if (i % 10 == 9) {
            caller_run(buf_cstr(&line));
        }
    }
    buf_deinit(&line);
}

/* "a" has 0 .. MEMBERS - 1, "b" those from MEMBERS / 3 on and as many more; "c" is small. */
static int make_sets(void **state)
{
    (void)state;
    add("a", 0);
    add("b", MEMBERS / 3);
    caller_run("sadd c x y z");
    return 0;
}

static int delete_sets(void **state)
{
    (void)state;
    caller_run("del a b c d out");
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* The members that a reply holds, in order; ends the test when one is there twice. */
static size_t sorted_members(struct slice reply, struct slice *members)
{
    char *end;
    assert_true(*reply.ptr == '*' || *reply.ptr == '~');
    size_t count = strtoul(reply.ptr + 1, &end, 10);
    const char *at = end + 2;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(*at, '$');
        size_t len = strtoul(at + 1, &end, 10);
        members[i] = slice_of(end + 2, len);
        at = end + 2 + len + 2;
    }
    assert_ptr_equal(at, reply.ptr + reply.len);
    qsort(members, count, sizeof(*members), by_text);
    for (size_t i = 1; i < count; i++) {
        assert_true(slice_compare(members[i - 1], members[i]) != 0);
    }
    return count;
}

/* The sliced call has ended with what `line` gives when it is run whole, now. */
static void expect_as_now(const char *line)
{
    static struct slice sliced[3 * MEMBERS], whole[3 * MEMBERS];
    char text[128];
    snprintf(text, sizeof(text), "%.*sstore out %s", (int)strcspn(line, " "), line,
             line + strcspn(line, " ") + 1);
    caller_run_whole(text);
    size_t count = sorted_members(caller_sliced_reply(), sliced);
    const char *reply = caller_run("smembers out");
    size_t wanted = sorted_members(slice_cstr(reply), whole);
    assert_int_equal(count, wanted);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(slice_compare(sliced[i], whole[i]), 0);
    }
    caller_run("del out");
}

static const char *const lines[] = {"sinter a b", "sunion a b",       "sunion c a b a b c a",
                                    "sdiff a b",  "sdiff b c a none", "sdiff c a b",
                                    "sunion a",   "sinter b a b"};
#define LINES (sizeof(lines) / sizeof(lines[0]))

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
    int slices = 0;
    for (size_t i = 0; i < UNIT_LONG(LINES); i++) {
        assert_false(caller_begin_line(lines[i]));
        slices += run_slices(NULL);
        expect_as_now(lines[i]);
    }
    /* Some are done in their first slice, after none in the hold that began them. */
    assert_true(slices > 2 * (int)UNIT_LONG(LINES));
}

static void change_few(int round)
{
    char text[64];
    if (round == 2) {
        caller_run("srem a member:1 member:2 member:30000");
        caller_run("sadd b more");
    } else if (round == 5) {
        caller_run("sadd a late:1 late:2");
        caller_run("spop b 10");
    } else {
        /* Of no matter. */
        snprintf(text, sizeof(text), "set other:%d x", round);
        caller_run(text);
    }
}

static void test_changed_meanwhile(void **state)
{
    (void)state;
    for (size_t i = 0; i < UNIT_LONG(LINES); i++) {
        assert_false(caller_begin_line(lines[i]));
        run_slices(change_few);
        expect_as_now(lines[i]);
    }
}

static void change_always(int round)
{
    static int changes;
    char text[64];
    (void)round;
    snprintf(text, sizeof(text), "sadd a always:%d", changes++);
    caller_run(text);
    caller_run("srem b member:25000");
    caller_run("sadd b member:25000");
}

/* It ends nevertheless, soon. */
static void test_changed_without_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < UNIT_LONG(LINES); i++) {
        assert_false(caller_begin_line(lines[i]));
        assert_in_range(run_slices(change_always), 2, 8);
        expect_as_now(lines[i]);
    }
}

static const char *replacement;

static void replace(int round)
{
    if (round == 2) {
        caller_run(replacement);
    }
}

static void test_replaced_meanwhile(void **state)
{
    (void)state;
    static const char *const replacements[] = {"del a",           "rename c a", "copy c a replace",
                                               "sinterstore a c", "expire a 0", "flushdb"};
    for (size_t i = 0; i < UNIT_LONG(sizeof(replacements) / sizeof(replacements[0])); i++) {
        delete_sets(NULL);
        make_sets(NULL);
        replacement = replacements[i];
        assert_false(caller_begin_line("sunion b a"));
        run_slices(replace);
        expect_as_now("sunion b a");
    }
    delete_sets(NULL);
    make_sets(NULL);
    replacement = "set a text";
    assert_false(caller_begin_line("sdiff b a"));
    run_slices(replace);
    assert_memory_equal(caller_sliced_reply().ptr, "-WRONGTYPE ", 11);
    delete_sets(NULL);
    make_sets(NULL);
}

static void test_counted(void **state)
{
    (void)state;
    char wanted[32], line[48];
    const int limit = MEMBERS / 12 * 7;
    snprintf(wanted, sizeof(wanted), ":%d\r\n", MEMBERS - MEMBERS / 3);
    assert_false(caller_begin_line("sintercard 2 a b"));
    run_slices(NULL);
    assert_string_equal(caller_sliced_reply().ptr, wanted);
    snprintf(line, sizeof(line), "sintercard 2 a b limit %d", limit);
    snprintf(wanted, sizeof(wanted), ":%d\r\n", limit);
    assert_false(caller_begin_line(line));
    run_slices(NULL);
    assert_string_equal(caller_sliced_reply().ptr, wanted);
    /* What is little goes at once. */
    assert_true(caller_begin_line("sintercard 2 a b limit 10"));
    assert_true(caller_begin_line("sinter a b c"));
}

static void test_given_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < UNIT_LONG(LINES); i++) {
        assert_false(caller_begin_line(lines[i]));
        if (!caller_continue()) {
            caller_abandon();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_undisturbed, make_sets, delete_sets),
        cmocka_unit_test_setup_teardown(test_changed_meanwhile, make_sets, delete_sets),
        cmocka_unit_test_setup_teardown(test_changed_without_end, make_sets, delete_sets),
        cmocka_unit_test_setup_teardown(test_replaced_meanwhile, make_sets, delete_sets),
        cmocka_unit_test_setup_teardown(test_counted, make_sets, delete_sets),
        cmocka_unit_test_setup_teardown(test_given_up, make_sets, delete_sets),
    };
    return cmocka_run_group_tests(tests, caller_setup, caller_teardown);
}
