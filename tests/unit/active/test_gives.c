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

static void id_of(char letter, uint8_t id[ORIGIN_NODE_BYTES])
{
    memset(id, letter, ORIGIN_NODE_BYTES);
}

static void add(struct gives *g, char node, uint64_t number, const char *back)
{
    struct give give = {
        .number = number, .stamp = 10 * number, .db = 1, .words = 3, .back = slice_cstr(back)};
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
    while (gives_take_missed(g, id, from, upto, &left, &give)) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missed),
        cmocka_unit_test(test_arrived),
        cmocka_unit_test(test_cleared),
        cmocka_unit_test(test_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
