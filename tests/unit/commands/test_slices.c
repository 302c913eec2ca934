/* Commands that run in slices: KEYS, SCAN and LCS while the database changes between the slices. */
#include "commands/caller.h"
#include "long.h"

#include "base/mem.h"
#include "base/rand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than a slice can walk over, whatever the machine. */
#define KEY_COUNT UNIT_LONG(200000)
/* Keys in the way of others that come and go. */
#define STAYS(i) ((i) % 3 == 0)

static const char *name_of(char *out, size_t size, char kind, int i)
{
    snprintf(out, size, "%c%d", kind, i);
    return out;
}

static void set_key(char kind, int i)
{
    char name[24];
    struct slice argv[] = {SLICE("set"), slice_cstr(name_of(name, sizeof(name), kind, i)),
                           SLICE("v")};
    assert_string_equal(caller_run_args(3, argv), "+OK\r\n");
}

static void delete_key(char kind, int i)
{
    char name[24];
    struct slice argv[] = {SLICE("del"), slice_cstr(name_of(name, sizeof(name), kind, i))};
    caller_run_args(2, argv);
}

static void delete_all(void)
{
    for (int i = 0; i < KEY_COUNT; i++) {
        delete_key('k', i);
        delete_key('n', i);
    }
    assert_string_equal(caller_run("keys *"), "*0\r\n");
}

/* Reads the array of bulk strings at `at`, counts how often each k-key is there, returns what
 * follows. */
static const char *count_keys(const char *at, unsigned char *seen)
{
    char *end;
    assert_int_equal(*at, '*');
    unsigned long count = strtoul(at + 1, &end, 10);
    at = end + 2;
    while (count-- > 0) {
        assert_int_equal(*at, '$');
        unsigned long len = strtoul(at + 1, &end, 10);
        const char *name = end + 2;
        assert_memory_equal(name + len, "\r\n", 2);
        if (name[0] == 'k') {
            unsigned long i = strtoul(name + 1, NULL, 10);
            assert_true(i < KEY_COUNT);
            seen[i]++;
        }
        at = name + len + 2;
    }
    return at;
}

static void assert_stayers_seen_once(const unsigned char *seen)
{
    for (int i = 0; i < KEY_COUNT; i++) {
        assert_true(seen[i] <= 1);
        if (STAYS(i)) {
            assert_int_equal(seen[i], 1);
        }
    }
}

/* Between slices: first the table grows, then it shrinks to a third. */
static void disturb(int round)
{
    const int step = KEY_COUNT / 8;
    if (round < 8) {
        for (int i = round * step; i < (round + 1) * step; i++) {
            set_key('n', i);
        }
    } else if (round < 16) {
        for (int i = (round - 8) * step; i < (round - 7) * step; i++) {
            delete_key('n', i);
            if (!STAYS(i)) {
                delete_key('k', i);
            }
        }
    }
}

static unsigned char *walk_disturbed(int argc, const struct slice *argv, const char *expected_head)
{
    unsigned char *seen = mem_calloc(KEY_COUNT, 1);
    for (int i = 0; i < KEY_COUNT; i++) {
        set_key('k', i);
    }
    assert_false(caller_begin(argc, argv));
    int slices = 1;
    do {
        disturb(slices - 1);
        slices++;
    } while (!caller_continue());
    struct slice reply = caller_sliced_reply();
    size_t head = strlen(expected_head);
    assert_memory_equal(reply.ptr, expected_head, head);
    assert_ptr_equal(count_keys(reply.ptr + head, seen), reply.ptr + reply.len);
    return seen;
}

static void test_keys_while_the_table_changes(void **state)
{
    (void)state;
    struct slice argv[] = {SLICE("keys"), SLICE("[kn]*")};
    unsigned char *seen = walk_disturbed(2, argv, "");
    assert_stayers_seen_once(seen);
    mem_free(seen);
    delete_all();
}

static void test_scan_of_everything_goes_in_slices(void **state)
{
    (void)state;
    struct slice argv[] = {SLICE("scan"), SLICE("0"), SLICE("count"), SLICE("1000000000")};
    unsigned char *seen = walk_disturbed(4, argv, "*2\r\n$1\r\n0\r\n");
    assert_stayers_seen_once(seen);
    mem_free(seen);
    delete_all();
}

static void test_scan_calls_while_the_table_changes(void **state)
{
    (void)state;
    unsigned char *seen = mem_calloc(KEY_COUNT, 1);
    char cursor[32] = "0";
    int round = 0;
    for (int i = 0; i < KEY_COUNT; i++) {
        set_key('k', i);
    }
    do {
        struct slice argv[] = {SLICE("scan"), slice_cstr(cursor), SLICE("count"), SLICE("1000")};
        const char *reply = caller_run_args(4, argv);
        char *end;
        assert_memory_equal(reply, "*2\r\n$", 5);
        unsigned long len = strtoul(reply + 5, &end, 10);
        assert_true(len < sizeof(cursor));
        memcpy(cursor, end + 2, len);
        cursor[len] = '\0';
        const char *rest = count_keys(end + 2 + len + 2, seen);
        assert_int_equal(*rest, '\0');
        disturb(round++);
    } while (strcmp(cursor, "0") != 0);
    assert_true(round > 16);
    assert_stayers_seen_once(seen);
    mem_free(seen);
    delete_all();
}

static void test_walk_given_up(void **state)
{
    (void)state;
    for (int i = 0; i < KEY_COUNT; i++) {
        set_key('k', i);
    }
    struct slice argv[] = {SLICE("keys"), SLICE("k?*")};
    assert_false(caller_begin(2, argv));
    caller_abandon();
    delete_all();
}

/* ---- LCS ---- */

#define TEXT_MAX 48

/* Length by the definition, filled from the other end than the command does. */
static unsigned naive_length(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned best[TEXT_MAX + 1][TEXT_MAX + 1] = {{0}};
    for (size_t i = a_len; i-- > 0;) {
        for (size_t j = b_len; j-- > 0;) {
            unsigned skip = best[i + 1][j] > best[i][j + 1] ? best[i + 1][j] : best[i][j + 1];
            best[i][j] = a[i] == b[j] ? best[i + 1][j + 1] + 1 : skip;
        }
    }
    return best[0][0];
}

static bool is_subsequence(const char *part, size_t part_len, const char *whole, size_t whole_len)
{
    size_t at = 0;
    for (size_t i = 0; i < whole_len && at < part_len; i++) {
        at += whole[i] == part[at];
    }
    return at == part_len;
}

static size_t random_text(char *out)
{
    size_t len = rand_below(TEXT_MAX + 1);
    for (size_t i = 0; i < len; i++) {
        out[i] = (char)('a' + rand_below(3));
    }
    return len;
}

static void set_text(const char *key, const char *text, size_t len)
{
    struct slice argv[] = {SLICE("set"), slice_cstr(key), slice_of(text, len)};
    assert_string_equal(caller_run_args(3, argv), "+OK\r\n");
}

static void test_lcs_against_the_definition(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        char a[TEXT_MAX], b[TEXT_MAX], expected[32];
        size_t a_len = random_text(a), b_len = random_text(b);
        unsigned length = naive_length(a, a_len, b, b_len);
        set_text("a", a, a_len);
        set_text("b", b, b_len);
        snprintf(expected, sizeof(expected), ":%u\r\n", length);
        assert_string_equal(caller_run("lcs a b len"), expected);
        char *end;
        const char *reply = caller_run("lcs a b");
        assert_int_equal(strtoul(reply + 1, &end, 10), length);
        assert_true(is_subsequence(end + 2, length, a, a_len));
        assert_true(is_subsequence(end + 2, length, b, b_len));
    }
}

static void test_lcs_keeps_its_strings(void **state)
{
    (void)state;
    const size_t len = 4000;
    char *text = mem_alloc(len);
    memset(text, 'x', len);
    set_text("a", text, len);
    memset(text, 'y', len / 2);
    set_text("b", text, len);
    struct slice argv[] = {SLICE("lcs"), SLICE("a"), SLICE("b"), SLICE("len")};
    assert_false(caller_begin(4, argv));
    caller_run("del a");
    caller_run("setrange b 0 zzzzzzzz");
    caller_run("append b xxxx");
    while (!caller_continue()) {
    }
    assert_string_equal(caller_sliced_reply().ptr, ":2000\r\n");
    mem_free(text);
}

static void test_lcs_matches(void **state)
{
    (void)state;
    caller_run("mset a ohmytext b mynewtext");
    assert_string_equal(caller_run("lcs a b idx withmatchlen"),
                        "*4\r\n$7\r\nmatches\r\n*2\r\n"
                        "*3\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n:4\r\n"
                        "*3\r\n*2\r\n:2\r\n:3\r\n*2\r\n:0\r\n:1\r\n:2\r\n"
                        "$3\r\nlen\r\n:6\r\n");
    assert_string_equal(caller_run("lcs a b idx minmatchlen 4"),
                        "*4\r\n$7\r\nmatches\r\n*1\r\n"
                        "*2\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n"
                        "$3\r\nlen\r\n:6\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_while_the_table_changes),
        cmocka_unit_test(test_scan_of_everything_goes_in_slices),
        cmocka_unit_test(test_scan_calls_while_the_table_changes),
        cmocka_unit_test(test_walk_given_up),
        cmocka_unit_test(test_lcs_against_the_definition),
        cmocka_unit_test(test_lcs_keeps_its_strings),
        cmocka_unit_test(test_lcs_matches),
    };
    return cmocka_run_group_tests(tests, caller_setup, caller_teardown);
}
