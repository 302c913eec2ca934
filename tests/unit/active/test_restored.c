/* What files say of a node's past: damage of every kind is refused, whatever its lengths say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "active/restored.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/rand.h"

#include <stdio.h>
#include <string.h>

#define DBS 2

static struct restored past;

static void test_damaged_fields_are_refused(void **state)
{
    (void)state;
    struct buf table = {0};
    bool known;
    restored_init(&past, 0, DBS);
    origins_enter(&past.origins, &(struct origin_id){.epoch = 1});
    origins_enter(&past.origins, &(struct origin_id){.epoch = 2});
    dot_table_put(&past.origins, &table);
    struct slice whole = buf_slice(&table);
    for (size_t len = 0; len < whole.len; len++) {
        assert_non_null(
            restored_take(&past, SLICE("active-positions"), slice_of(whole.ptr, len), &known));
        assert_true(known);
    }
    assert_null(restored_take(&past, SLICE("active-positions"), whole, &known));
    char bytes[256];
    memcpy(bytes, whole.ptr, whole.len);
    bytes[4 + 16] = 2; /* the same origin twice */
    assert_non_null(
        restored_take(&past, SLICE("active-positions"), slice_of(bytes, whole.len), &known));
    memcpy(bytes, whole.ptr, whole.len);
    memset(bytes + 4 + 24, 0xff, 8); /* a position beyond all */
    assert_non_null(
        restored_take(&past, SLICE("active-positions"), slice_of(bytes, whole.len), &known));
    memset(bytes, 0xff, 4);
    assert_non_null(
        restored_take(&past, SLICE("active-positions"), slice_of(bytes, whole.len), &known));
    static const char *const bad[][2] = {
        {"active-node", ""},
        {"active-node", "0123456789abcdef0123456789abcde"},
        {"active-node", "0123456789abcdef0123456789abcdeg"},
        {"active-node", "0123456789abcdef0123456789abcdef0"},
        {"active-clock", ""},
        {"active-clock", "-1"},
        {"active-clock", "18446744073709551616"},
        {"active-conflicts", "x"},
        {"active-conflicts", "123456789012345"},
        {"active-gives", "x"},
        {"active-conflicts", "\377\1\1\1aaaaaaaa\1\1\1\1k"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_non_null(restored_take(&past, slice_cstr(bad[i][0]), slice_cstr(bad[i][1]), &known));
        assert_true(known);
    }
    assert_non_null(restored_take(&past, SLICE("active-conflicts"),
                                  slice_of("\0\0\0\0aaaaaaaa\2\0\0\0k", 17), &known));
    assert_non_null(restored_take(&past, SLICE("active-conflicts"),
                                  slice_of("\2\0\0\0aaaaaaaa\1\0\0\0k", 17), &known));
    assert_null(restored_take(&past, SLICE("active-conflicts"),
                              slice_of("\1\0\0\0aaaaaaaa\1\0\0\0k", 17), &known));
    assert_true(conflicts_has(past.conflicts, 1, SLICE("k")));
    assert_null(restored_take(&past, SLICE("active-others"), SLICE("?"), &known));
    assert_false(known);
    buf_deinit(&table);
    restored_deinit(&past);
}

static void test_damaged_dots_are_refused(void **state)
{
    (void)state;
    struct buf table = {0};
    bool known;
    struct dot dot;
    char bytes[DOT_BYTES + 1] = {0};
    restored_init(&past, 0, DBS);
    dot_put(dot_of(5, 1, 3), bytes);
    struct slice whole = slice_of(bytes, DOT_BYTES);
    assert_non_null(restored_take_dot(&past, whole, &dot)); /* no table */
    origins_enter(&past.origins, &(struct origin_id){.epoch = 9});
    origins_advance(&past.origins, 1, 3);
    dot_table_put(&past.origins, &table);
    assert_null(restored_take(&past, SLICE("active-positions"), buf_slice(&table), &known));
    assert_non_null(restored_take_dot(&past, whole, &dot)); /* later than the clock */
    assert_null(restored_take(&past, SLICE("active-clock"), SLICE("5"), &known));
    assert_null(restored_take_dot(&past, whole, &dot));
    assert_true(dot.stamp == 5 && dot_origin(dot) == 1 && dot_sequence(dot) == 3);
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        assert_true((restored_take_dot(&past, slice_of(bytes, len), &dot) == NULL) ==
                    (len == DOT_BYTES));
    }
    const struct dot bad[] = {dot_of(5, 1, 4), dot_of(5, 1, 0),     dot_of(5, 2, 1),
                              dot_of(5, 0, 1), dot_of(5, 65535, 1), dot_of(0, 1, 1)};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dot_put(bad[i], bytes);
        assert_non_null(restored_take_dot(&past, whole, &dot));
    }
    buf_deinit(&table);
    restored_deinit(&past);
}

#define ORIGIN "616161616161616161616161616161610000000000000001"
#define OTHER "616161616161616161616161616161610000000000000002"

static const char *take_record(const char *line, bool *alone)
{
    static struct slice words[32];
    int count = 0;
    while (*line) {
        size_t len = strcspn(line, " ");
        words[count++] = slice_of(line, len);
        line += len + (line[len] == ' ');
    }
    return restored_take_record(&past, count, words, alone);
}

static void test_damaged_heads_are_refused(void **state)
{
    (void)state;
    bool alone;
    static const char *const bad[] = {
        "KEYDB.DOT",
        "KEYDB.DOT " ORIGIN " 1",
        "KEYDB.DOT x 1 7",
        "KEYDB.DOT " ORIGIN "0 1 7",
        "KEYDB.DOT " ORIGIN " 0 7",
        "KEYDB.DOT " ORIGIN " 2 7",
        "KEYDB.DOT " ORIGIN " -1 7",
        "KEYDB.DOT " ORIGIN " 281474976710656 7",
        "KEYDB.DOT " ORIGIN " 1 0",
        "KEYDB.DOT " ORIGIN " 1 7 KEY",
        "KEYDB.DOT " ORIGIN " 1 7 KEY 0",
        "KEYDB.DOT " ORIGIN " 1 7 KEY 2 k",
        "KEYDB.DOT " ORIGIN " 1 7 KEY -1 k",
        "KEYDB.DOT " ORIGIN " 1 7 KEY 4294967296 k",
        "KEYDB.DOT " ORIGIN " 1 7 ALONE NOKEY",
        "KEYDB.DOT " ORIGIN " 1 7 DOT 0 k " OTHER " 1 7",
        "KEYDB.DOT " ORIGIN " 1 7 DOT 0 k " ORIGIN " 1",
        "KEYDB.DOT " ORIGIN " 1 7 CONFLICT 0 k",
        "KEYDB.DOT " ORIGIN " 1 7 CONFLICT 0 k x",
        "KEYDB.DOT " ORIGIN " 1 7 RESOLVED 0",
        "KEYDB.DOT " ORIGIN " 1 7 WHAT 0 k",
        "KEYDB.AUX",
        "KEYDB.AUX active-clock",
        "KEYDB.AUX active-clock x",
        "KEYDB.AUX active-dot x",
        "KEYDB.AUX active-clock 1 1",
        "KEYDB.PARTED x",
    };
    restored_init(&past, 0, DBS);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (!take_record(bad[i], &alone)) {
            fail_msg("%s", bad[i]);
        }
    }
    assert_null(take_record("KEYDB.DOT " ORIGIN " 1 7", &alone));
    assert_false(alone);
    assert_null(take_record("KEYDB.DOT " ORIGIN " 1 7 KEY 1 k CONFLICT 0 j 3 ALONE", &alone));
    assert_true(alone);
    assert_null(take_record("KEYDB.AUX unknown what", &alone));
    assert_true(alone);
    restored_deinit(&past);
}

/* The first word of a data set that is being merged has positions, and they are gone with it. */
static void test_merging(void **state)
{
    (void)state;
    struct buf bytes = {0};
    bool alone;
    restored_init(&past, 0, DBS);
    origins_enter(&past.origins, &(struct origin_id){.epoch = 1});
    origins_advance(&past.origins, 1, 7);
    struct version_vector *had = version_vector_create(&past.origins);
    version_vector_encode(&past.origins, had, &bytes);
    mem_free(had);
    struct slice words[] = {SLICE("KEYDB.MERGING"), SLICE("one"), SLICE("0"), buf_slice(&bytes)};
    assert_null(restored_take_record(&past, 4, words, &alone));
    assert_true(past.merging_had && version_vector_at(past.merging_had, 1) == 7);
    words[2] = SLICE("5");
    assert_null(restored_take_record(&past, 3, words, &alone));
    assert_true(past.merging_done == 5 && past.merging_had);
    words[1] = SLICE("two");
    assert_null(restored_take_record(&past, 3, words, &alone));
    assert_true(past.merging_done == 5 && !past.merging_had);
    assert_null(restored_take_record(&past, 4, words, &alone));
    assert_non_null(past.merging_had);
    words[3].len--;
    assert_non_null(restored_take_record(&past, 4, words, &alone));
    restored_deinit(&past);
    buf_deinit(&bytes);
}

static const char *take_row(const char *sequence, const char *what, struct slice row)
{
    bool alone;
    struct slice words[] = {
        SLICE("KEYDB.DOT"), SLICE(ORIGIN), slice_cstr(sequence), SLICE("7"), SLICE("NOKEY"),
        slice_cstr(what),   row,           SLICE("ALONE")};
    const char *error = restored_take_record(&past, 8, words, &alone);
    if (!error) {
        keyspace_lock_exclusive();
        restored_apply(&past, -1, SLICE(""));
        keyspace_unlock_exclusive();
    }
    return error;
}

/* What was given to clients of others, and not heard of when the files end. */
static void test_what_was_given(void **state)
{
    (void)state;
    struct buf first = {0}, last = {0}, both = {0}, other_db = {0}, heard = {0};
    struct give give = {
        .epoch = 5, .number = 7, .stamp = 70, .db = 1, .words = 1, .back = SLICE("$1\r\nx\r\n")};
    bool known, alone;
    gives_put_row(&give, &first);
    gives_put_heard(give.node, give.stamp, &heard);
    give.number = 8;
    give.stamp = 80;
    gives_put_row(&give, &last);
    give.db = DBS;
    gives_put_row(&give, &other_db);
    restored_init(&past, 0, DBS);
    assert_non_null(take_row("1", "GAVE", buf_slice(&other_db)));
    assert_non_null(take_row("1", "GAVE", slice_of(first.data, first.len - 1)));
    assert_non_null(take_row("1", "HEARD", slice_of(heard.data, heard.len - 1)));
    assert_null(take_row("1", "GAVE", buf_slice(&first)));
    assert_null(take_row("2", "GAVE", buf_slice(&last)));
    assert_int_equal(past.gives.count, 2);
    assert_null(take_row("3", "HEARD", buf_slice(&heard)));
    assert_int_equal(past.gives.count, 1);
    assert_int_equal(gives_at(&past.gives, 0)->number, 8);
    restored_deinit(&past);
    restored_init(&past, 0, DBS);
    buf_append_slice(&both, buf_slice(&first));
    buf_append_slice(&both, buf_slice(&last));
    assert_null(restored_take(&past, SLICE("active-gives"), buf_slice(&both), &known));
    assert_int_equal(past.gives.count, 2);
    assert_non_null(restored_take(&past, SLICE("active-gives"), buf_slice(&other_db), &known));
    assert_null(take_record("KEYDB.PARTED", &alone));
    assert_int_equal(past.gives.count, 0);
    restored_deinit(&past);
    buf_deinit(&first);
    buf_deinit(&last);
    buf_deinit(&both);
    buf_deinit(&other_db);
    buf_deinit(&heard);
}

/* Words put together from those that heads have, and from junk: taken or refused, and no more. */
static void test_random_heads(void **state)
{
    (void)state;
    static const char *const words[] = {
        ORIGIN, OTHER,   "0",  "1",   "2",        "7",        "-1",    "18446744073709551615",
        "KEY",  "DOT",   "k",  "",    "CONFLICT", "RESOLVED", "ALONE", "281474976710656",
        "x",    "1e3",   "+1", "0x1", "NOKEY",    "key",      "65536", "active-dot",
        "\377", "alone", "00"};
    int taken = 0;
    rand_set_seed(1);
    for (int i = 0; i < 200000; i++) {
        struct slice argv[12] = {SLICE("KEYDB.DOT"), SLICE(ORIGIN), SLICE("1"), SLICE("7")};
        int argc = 1 + (int)rand_below(12);
        for (int w = rand_below(4) ? 4 : 1; w < argc; w++) {
            argv[w] = slice_cstr(words[rand_below(sizeof(words) / sizeof(words[0]))]);
        }
        bool alone;
        if (i % 1000 == 0) {
            restored_deinit(&past);
            restored_init(&past, 0, DBS);
        }
        taken += !restored_take_record(&past, argc, argv, &alone);
    }
    assert_true(taken > 1000);
    restored_deinit(&past);
}

static int setup(void **state)
{
    (void)state;
    hash_set_secret(1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_fields_are_refused),
        cmocka_unit_test(test_damaged_dots_are_refused),
        cmocka_unit_test(test_damaged_heads_are_refused),
        cmocka_unit_test(test_merging),
        cmocka_unit_test(test_what_was_given),
        cmocka_unit_test(test_random_heads),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
