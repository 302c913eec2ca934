/* What concerns whole databases, on real nodes: flushes, and databases that change places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"

#define LOG_BYTES ((size_t)16 << 20)

static struct real_group group;

static void assert_same(int db, const char *key)
{
    for (int i = 1; i < group.nodes; i++) {
        assert_int_equal(real_digest(&group, i, db, key), real_digest(&group, 0, db, key));
    }
}

/* ---- flush ---- */

static void test_flushes_cross_writes(void **state)
{
    (void)state;
    real_group_init(&group, 3, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "set old 1");
    real_run_one(&group, 0, 1, "set other 1");
    assert_true(real_settle(&group));
    real_run_one(&group, 1, 0, "flushdb");
    real_run_one(&group, 2, 0, "set new 1");
    real_run_one(&group, 0, 0, "append old 2");
    assert_true(real_settle(&group));
    for (const char *const *k = (const char *const[]){"old", "new", "other", NULL}; *k; k++) {
        assert_same(0, *k);
        assert_same(1, *k);
    }
    assert_int_not_equal(real_digest(&group, 0, 0, "new"), 0);
    assert_int_not_equal(real_digest(&group, 0, 1, "other"), 0);
    real_group_deinit(&group);
}

/* ---- databases that change places ---- */

static void test_a_swap_is_a_write_of_each_key(void **state)
{
    (void)state;
    real_group_init(&group, 3, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "set a 1");
    real_run_one(&group, 0, 0, "set b 1");
    real_run_one(&group, 0, 0, "sadd s m0 m1");
    real_run_one(&group, 0, 0, "pexpireat s 4102444800000");
    real_run_one(&group, 0, 1, "set a 2");
    assert_true(real_settle(&group));
    real_run_one(&group, 2, 0, "set c 1");    /* unknown to who swaps: stays where it is */
    real_run_one(&group, 2, 1, "append a x"); /* earlier than what he says of the key: gone */
    group.now_ms += 5;
    real_swap_databases(&group, 1);
    real_run_one(&group, 1, 0, "append b y");
    group.now_ms += 5;
    real_run_one(&group, 0, 1, "append a z"); /* later: to what is there then */
    assert_true(real_settle(&group));
    for (const char *const *k = (const char *const[]){"a", "b", "c", "s", NULL}; *k; k++) {
        assert_same(0, *k);
        assert_same(1, *k);
    }
    for (int node = 0; node < 3; node++) {
        assert_string_equal(real_run_one(&group, node, 0, "get a"), "$1\r\n2\r\n");
        assert_string_equal(real_run_one(&group, node, 1, "get a"), "$2\r\n1z\r\n");
        assert_string_equal(real_run_one(&group, node, 0, "get b"), "$1\r\ny\r\n");
        assert_string_equal(real_run_one(&group, node, 1, "pexpiretime s"), ":4102444800000\r\n");
        assert_int_not_equal(real_digest(&group, node, 0, "c"), 0);
        assert_int_equal(real_digest(&group, node, 1, "c"), 0);
    }
    real_group_deinit(&group);
}

/* Two at once: the later one is what both databases are. */
static void test_swaps_cross(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "set a 1");
    assert_true(real_settle(&group));
    real_swap_databases(&group, 0);
    group.now_ms += 5;
    real_swap_databases(&group, 1);
    real_run_one(&group, 0, 1, "set b 1"); /* later than the one, and perhaps than the other */
    assert_true(real_settle(&group));
    for (int node = 0; node < 2; node++) {
        assert_string_equal(real_run_one(&group, node, 1, "get a"), "$1\r\n1\r\n");
        assert_int_equal(real_digest(&group, node, 0, "a"), 0);
    }
    assert_same(1, "b");
    assert_same(0, "b");
    real_group_deinit(&group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flushes_cross_writes),
        cmocka_unit_test(test_a_swap_is_a_write_of_each_key),
        cmocka_unit_test(test_swaps_cross),
    };
    return cmocka_run_group_tests(tests, real_setup, real_teardown);
}
