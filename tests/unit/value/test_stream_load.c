/* Nodes of streams that come from outside: value/stream_load.h. What is taken must hold the
 * stream's invariants, whatever is done with it afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "value/stream_load.h"

#include <string.h>

#define KEY SLICE("key")
#define NODE_MAX 32
#define END INT64_MIN
/* An element of a node that is the text "f". */
#define TEXT (INT64_MIN + 1)

/* A node's elements one after the other, END behind them. */
struct node {
    struct stream_id master;
    int64_t elements[NODE_MAX];
};

static unsigned char *listpack_of(const int64_t *elements)
{
    unsigned char *lp = listpack_create(0);
    for (; *elements != END; elements++) {
        lp = *elements == TEXT ? listpack_append(lp, SLICE("f"))
                               : listpack_append_integer(lp, *elements);
    }
    return lp;
}

static bool load(struct entry *e, const struct node *node)
{
    unsigned char *lp = listpack_of(node->elements);
    bool taken = stream_load_node(e, node->master, slice_of((char *)lp, listpack_bytes(lp)));
    listpack_destroy(lp);
    return taken;
}

static int setup(void **state)
{
    (void)state;
    hash_set_secret(1);
    return 0;
}

/* The number of entries from `first` to `last`, checked both ways. */
static int count_range(const struct entry *e, struct stream_id first, struct stream_id last)
{
    struct stream_cursor c;
    int up = 0, down = 0;
    stream_walk(&c, e, first, last, false);
    for (; stream_walk_next(&c); up++) {
        assert_true(stream_id_compare(c.id, first) >= 0 && stream_id_compare(c.id, last) <= 0);
    }
    stream_walk(&c, e, first, last, true);
    for (; stream_walk_next(&c); down++) {
    }
    assert_int_equal(up, down);
    return up;
}

/* Appends, trims and deletes; the invariants hold throughout, and the count is right. */
static void change(struct entry *e)
{
    struct slice words[] = {SLICE("f"), SLICE("v")};
    struct stream_trim trim = {.kind = STREAM_TRIM_LENGTH};
    struct stream_id id;
    uint64_t length = stream_facts(e)->length;
    for (int i = 0; i < 3; i++) {
        assert_true(stream_next_id(stream_facts(e), 0, &id));
        stream_append(e, id, words, 2);
        stream_check(e);
    }
    while (length > 0) {
        assert_true(stream_delete(e, stream_facts(e)->first_id));
        stream_check(e);
        length--;
    }
    assert_int_equal(count_range(e, STREAM_ID_MIN, STREAM_ID_MAX), 3);
    assert_int_equal(stream_trim(e, &trim), 3);
    stream_check(e);
}

/* Where the master's ID is not the first entry's, but before it. Redis takes that, and gives the
 * entries the IDs that the differences say. */
static void test_master_before_first(void **state)
{
    (void)state;
    const struct node node = {{1, 1},
                              {2, 0, 1, TEXT, 0, 2, 0, 9, TEXT, 4, 0, 1, 0, 1, TEXT, TEXT, 6, END}};
    struct entry *e = stream_create(KEY);
    assert_true(load(e, &node));
    assert_true(stream_load_facts(e, 2, (struct stream_id){2, 1}, STREAM_ID_MIN, 2));
    stream_check(e);
    assert_int_equal(stream_id_compare(stream_facts(e)->first_id, (struct stream_id){1, 10}), 0);
    assert_int_equal(count_range(e, STREAM_ID_MIN, STREAM_ID_MAX), 2);
    assert_int_equal(count_range(e, (struct stream_id){1, 1}, (struct stream_id){1, 9}), 0);
    assert_int_equal(count_range(e, (struct stream_id){1, 10}, (struct stream_id){1, 10}), 1);
    change(e);
    entry_destroy(&e);
}

/* A node of deleted entries only, before one that has others. */
static void test_deleted_only(void **state)
{
    (void)state;
    const struct node gone = {{1, 1}, {0, 1, 1, TEXT, 0, 3, 0, 0, TEXT, 4, END}};
    const struct node there = {{2, 5}, {1, 0, 1, TEXT, 0, 2, 1, -5, TEXT, 4, END}};
    struct entry *e = stream_create(KEY);
    assert_true(load(e, &gone) && load(e, &there));
    assert_true(stream_load_facts(e, 1, (struct stream_id){3, 0}, STREAM_ID_MIN, 2));
    stream_check(e);
    change(e);
    entry_destroy(&e);
}

/* Deleted entries behind which XSETID went back. */
static void test_set_back(void **state)
{
    (void)state;
    const struct node node = {{5, 0}, {2,    2, 1, TEXT, 0, 2,    0, 0, TEXT, 4, 3,    4, 0,
                                       TEXT, 4, 2, 3,    0, TEXT, 4, 3, 2,    0, TEXT, 4, END}};
    struct entry *e = stream_create(KEY);
    assert_true(load(e, &node));
    assert_true(stream_load_facts(e, 2, (struct stream_id){8, 0}, (struct stream_id){9, 0}, 4));
    stream_check(e);
    assert_int_equal(count_range(e, (struct stream_id){6, 0}, (struct stream_id){8, 0}), 1);
    assert_int_equal(count_range(e, (struct stream_id){9, 0}, (struct stream_id){9, 0}), 0);
    assert_int_equal(count_range(e, STREAM_ID_MIN, STREAM_ID_MAX), 2);
    change(e);
    entry_destroy(&e);
}

/* Nothing is there, and what comes stands before the deleted entries' node. */
static void test_set_back_before_all(void **state)
{
    (void)state;
    const struct node gone = {{5, 0}, {0, 1, 1, TEXT, 0, 3, 0, 0, TEXT, 4, END}};
    struct entry *e = stream_create(KEY);
    assert_true(load(e, &gone));
    assert_true(stream_load_facts(e, 0, (struct stream_id){3, 0}, (struct stream_id){5, 0}, 1));
    stream_check(e);
    change(e);
    entry_destroy(&e);
}

/* A last node of deleted entries, whose ID is behind what would be added. */
static void test_tail_behind_last_id(void **state)
{
    (void)state;
    const struct node there = {{1, 1}, {1, 0, 1, TEXT, 0, 2, 0, 0, TEXT, 4, END}};
    const struct node gone = {{9, 0}, {0, 1, 1, TEXT, 0, 3, 0, 0, TEXT, 4, END}};
    struct entry *e = stream_create(KEY);
    assert_true(load(e, &there) && load(e, &gone));
    assert_false(stream_load_facts(e, 1, (struct stream_id){3, 0}, STREAM_ID_MIN, 2));
    assert_false(load(e, &gone));
    entry_destroy(&e);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct node rows[] = {
        {{9, 9}, {1, 0, 1, TEXT, 0, 2, 0, -1, TEXT, 4, END}},                  /* before it */
        {{9, 9}, {2, 0, 1, TEXT, 0, 2, 0, 0, TEXT, 4, 2, 0, 0, TEXT, 4, END}}, /* twice */
        {{9, 9}, {2, 0, 1, TEXT, 0, 2, 0, 5, TEXT, 4, 2, 0, 4, TEXT, 4, END}}, /* descending */
        {{9, 9}, {2, 0, 1, TEXT, 0, 2, 0, 0, TEXT, 4, END}},                   /* counts */
        {{9, 9}, {0, 1, 1, TEXT, 0, 2, 0, 0, TEXT, 4, END}},
        {{9, 9}, {-1, 2, 1, TEXT, 0, 2, 0, 0, TEXT, 4, END}},
        {{9, 9}, {1, 0, 0, 0, 2, 0, 0, 3, END}}, /* no fields */
        {{9, 9}, {1, 0, 1, TEXT, 0, 0, 0, 0, 0, 4, END}},
        {{9, 9}, {1, 0, 1, TEXT, 0, 0, 0, 0, -1, 4, END}},
        {{9, 9}, {1, 0, 1, TEXT, 0, 0, 0, 0, (int64_t)1 << 40, TEXT, TEXT, 6, END}},
        {{9, 9}, {1, 0, 1, TEXT, 0, 2, 0, 0, TEXT, 5, END}}, /* its length */
        {{9, 9}, {1, 0, 1, TEXT, 0, 2, 0, 0, TEXT, TEXT, END}},
        {{9, 9}, {1, 0, 1, TEXT, 0, 2, 0, 0, TEXT, END}}, /* cut */
        {{9, 9}, {1, 0, 1, TEXT, 0, 2, 0, 0, END}},
        {{9, 9}, {1, 0, 1, TEXT, 0, TEXT, 0, 0, TEXT, 4, END}}, /* no flags */
        {{9, 9}, {1, 0, 1, TEXT, 0, 4, 0, 0, TEXT, 4, END}},
        {{9, 9}, {1, 0, 1, TEXT, 1, 2, 0, 0, TEXT, 4, END}}, /* terminator */
        {{9, 9}, {0, 0, 1, TEXT, 0, END}},                   /* empty */
        {{9, 9}, {END}},
        {{1, 2}, {1, 0, 1, TEXT, 0, 2, 1, 1, TEXT, 4, END}}, /* its master is among the others */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct node before = {{1, 1},
                                    {2, 0, 1, TEXT, 0, 2, 0, 0, TEXT, 4, 2, 0, 7, TEXT, 4, END}};
        struct entry *e = stream_create(KEY);
        assert_true(load(e, &before));
        assert_false(load(e, &rows[i]));
        assert_true(stream_load_facts(e, 2, (struct stream_id){1, 8}, STREAM_ID_MIN, 2));
        stream_check(e);
        entry_destroy(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_master_before_first),
        cmocka_unit_test(test_deleted_only),
        cmocka_unit_test(test_set_back),
        cmocka_unit_test(test_set_back_before_all),
        cmocka_unit_test(test_tail_behind_last_id),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
