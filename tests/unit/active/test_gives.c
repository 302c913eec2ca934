/* What was given and may have been missed (active/gives.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "active/gives.h"

#include <stdio.h>
#include <string.h>

#define EPOCH 8

static void id_of(char letter, uint8_t id[ORIGIN_NODE_BYTES])
{
    memset(id, letter, ORIGIN_NODE_BYTES);
}

static void add(struct gives *g, char node, uint64_t number, const char *back)
{
    struct give give = {.epoch = EPOCH,
                        .number = number,
                        .stamp = 10 * number,
                        .db = 1,
                        .words = 3,
                        .back = slice_cstr(back)};
    id_of(node, give.node);
    gives_add(g, &give);
}

/* What is taken, in order, as text. */
static const char *missed(struct gives *g, char node, uint64_t from, uint64_t upto)
{
    static char text[2000];
    uint8_t id[ORIGIN_NODE_BYTES];
    struct give give;
    size_t left = g->count, used = 0;
    text[0] = '\0';
    id_of(node, id);
    while (gives_take_missed(g, id, EPOCH, from, upto, &left, &give)) {
        assert_true(give.db == 1 && give.words == 3 && give.stamp == 10 * give.number);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s ", (int)give.back.len,
                                 give.back.ptr);
        mem_free((char *)give.back.ptr);
    }
    return text;
}

/* Of a node, of units behind `from` up to `upto`, the last one first, and once. */
static void test_missed(void **state)
{
    struct gives g = {.rows = NULL};
    (void)state;
    assert_string_equal(missed(&g, 'a', 0, UINT64_MAX), "");
    add(&g, 'a', 5, "five");
    add(&g, 'b', 6, "six");
    add(&g, 'a', 7, "seven");
    add(&g, 'a', 9, "nine");
    add(&g, 'a', 12, "twelve");
    assert_string_equal(missed(&g, 'a', 5, 9), "nine seven ");
    assert_string_equal(missed(&g, 'a', 5, 9), "");
    assert_string_equal(missed(&g, 'b', 6, 9), "");
    assert_string_equal(missed(&g, 'b', 5, 6), "six ");
    assert_string_equal(missed(&g, 'a', 0, 100), "twelve five ");
    gives_deinit(&g);
}

/* The first ones go as they arrive, whether or not they were taken. */
static void test_arrived(void **state)
{
    struct gives g = {.rows = NULL};
    (void)state;
    for (uint64_t i = 1; i <= 1000; i++) {
        add(&g, 'a', 2 * i, "x");
        add(&g, 'b', 2 * i + 1, "y");
        if (i % 3 == 0) {
            gives_drop(&g);
        }
    }
    missed(&g, 'b', 0, 701);
    uint64_t last = 0;
    while (g.count > 0) {
        const struct give *first = gives_at(&g, 0);
        assert_true(first->number > last && (first->words == 0) == (first->back.len == 0));
        last = first->number;
        gives_drop(&g);
    }
    assert_true(last == 2001 && g.bytes == 0 && g.count == 0);
    gives_deinit(&g);
}

/* What has arrived behind one that has not is not there to be missed. */
static void test_cleared(void **state)
{
    struct gives g = {.rows = NULL};
    (void)state;
    add(&g, 'a', 5, "five");
    add(&g, 'b', 6, "six");
    add(&g, 'b', 7, "seven");
    size_t bytes = g.bytes;
    gives_clear(&g, 1);
    assert_true(g.count == 3 && gives_at(&g, 1)->words == 0 && g.bytes == bytes - 3);
    assert_string_equal(missed(&g, 'b', 0, 100), "seven ");
    assert_string_equal(missed(&g, 'a', 0, 100), "five ");
    gives_deinit(&g);
}

/* What is more than the bound pushes out the oldest, and stays itself. */
static void test_bound(void **state)
{
    struct gives g = {.rows = NULL};
    (void)state;
    size_t len = GIVES_BYTES / 4;
    char *bytes = mem_alloc(len + 1);
    memset(bytes, 'x', len);
    bytes[len] = '\0';
    for (uint64_t i = 1; i <= 10; i++) {
        add(&g, 'a', i, bytes);
        assert_true(g.bytes <= GIVES_BYTES);
    }
    assert_true(g.count == 3 && gives_at(&g, 0)->number == 8);
    mem_free(bytes);
    gives_deinit(&g);
}

/* Of one life only. */
static void test_lives(void **state)
{
    struct gives g = {.rows = NULL};
    struct give give;
    uint8_t id[ORIGIN_NODE_BYTES];
    (void)state;
    add(&g, 'a', 5, "five");
    id_of('a', id);
    size_t left = g.count;
    assert_false(gives_take_missed(&g, id, EPOCH + 1, 0, 100, &left, &give));
    assert_string_equal(missed(&g, 'a', 0, 100), "five ");
    gives_deinit(&g);
}

/* ---- in files ---- */

#define WORDS "$1\r\n3\r\n$5\r\nLPUSH\r\n$1\r\nk\r\n$2\r\n\r\n\r\n"

static void put(struct buf *out, const char *back, int words)
{
    struct give give = {
        .epoch = 1, .number = 2, .stamp = 3, .db = 4, .words = words, .back = slice_cstr(back)};
    id_of('a', give.node);
    gives_put_row(&give, out);
}

/* Rows are read as they were written, and no part of one is a row. */
static void test_rows(void **state)
{
    struct buf rows = {0};
    struct give give;
    (void)state;
    put(&rows, WORDS, 4);
    for (size_t len = 0; len < rows.len; len++) {
        struct slice part = slice_of(rows.data, len);
        assert_false(gives_next_row(&part, &give));
    }
    put(&rows, "$1\r\nx\r\n", 1);
    struct slice rest = buf_slice(&rows);
    assert_true(gives_next_row(&rest, &give));
    assert_true(give.node[0] == 'a' && give.epoch == 1 && give.number == 2 && give.stamp == 3 &&
                give.db == 4 && give.words == 4 && slice_equal(give.back, slice_cstr(WORDS)));
    assert_true(gives_next_row(&rest, &give));
    assert_true(give.words == 1 && rest.len == 0);
    buf_deinit(&rows);
}

/* Nor is one whose words are not as many as it says, or none. */
static void test_rows_that_are_none(void **state)
{
    static const struct {
        const char *back;
        int words;
    } bad[] = {{"", 0},
               {WORDS, 3},
               {WORDS, 5},
               {WORDS, -1},
               {WORDS "x", 4},
               {WORDS "$", 4},
               {"$2\r\nx\r\n", 1},
               {"$9223372036854775807\r\nx\r\n", 1},
               {"$18446744073709551615\r\nx\r\n", 1},
               {"$-1\r\n", 1},
               {"*1\r\n$1\r\nx\r\n", 1},
               {",1\r\n", 1},
               {"+x\r\n", 1},
               {"$1\r\nxyz", 1},
               {"$1\nx\r\n", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct buf row = {0};
        struct give give;
        put(&row, bad[i].back, bad[i].words);
        struct slice rest = buf_slice(&row);
        if (gives_next_row(&rest, &give)) {
            fail_msg("%zu", i);
        }
        buf_deinit(&row);
    }
}

static void hear(struct gives *g, char node, uint64_t stamp)
{
    struct buf row = {0};
    uint8_t id[ORIGIN_NODE_BYTES];
    id_of(node, id);
    gives_put_heard(id, stamp, &row);
    assert_true(gives_hear_row(g, buf_slice(&row)));
    assert_false(gives_hear_row(g, slice_of(row.data, row.len - 1)));
    buf_append_char(&row, 'x');
    assert_false(gives_hear_row(g, buf_slice(&row)));
    buf_deinit(&row);
}

/* Who has heard of something has heard of what he was given before; no place is left of it, nor of
 * what was taken. */
static void test_heard(void **state)
{
    struct gives g = {.rows = NULL};
    (void)state;
    hear(&g, 'a', UINT64_MAX);
    add(&g, 'b', 4, "four");
    add(&g, 'a', 5, "five");
    add(&g, 'a', 6, "six");
    add(&g, 'a', 7, "seven");
    hear(&g, 'a', 69);
    assert_int_equal(g.count, 2);
    assert_string_equal(missed(&g, 'a', 0, 100), "seven ");
    hear(&g, 'b', 39);
    assert_int_equal(g.count, 1);
    hear(&g, 'b', 40);
    assert_true(g.count == 0 && g.bytes == 0);
    add(&g, 'a', 8, "eight");
    assert_string_equal(missed(&g, 'a', 0, 100), "eight ");
    gives_deinit(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missed),
        cmocka_unit_test(test_arrived),
        cmocka_unit_test(test_cleared),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_lives),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rows_that_are_none),
        cmocka_unit_test(test_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
