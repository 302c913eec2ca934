/* Whole writes that come to a node below its window's floor: which of them stand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"

#include "base/mem.h"

#include <string.h>

#define LOG_BYTES ((size_t)16 << 20)

static struct real_group group;

/* A data set that has nothing new raises the floor. */
static void raise_floor(int node, uint64_t clock)
{
    struct version_vector *positions = version_vector_create(node_origins(group.node[node]));
    struct merge_snapshot snapshot = {.positions = positions, .clock = clock};
    const char *error = NULL;
    keyspace_lock_exclusive();
    assert_true(node_snapshot_begin(group.node[node], &snapshot, &error));
    node_snapshot_end(group.node[node]);
    keyspace_unlock_exclusive();
    mem_free(positions);
}

/* Whole writes of a key that is not here, all below the window's floor: whether there was something
 * later nobody knows, but each is later than the one before it. */
static void test_late_writes_of_a_key_that_was_not_there(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct origin_id writer = origin_named('p', 7);
    uint64_t now = (uint64_t)REAL_START_MS << 16;
    const char *old = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\nold\r\n";
    const char *new = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\nnew\r\n";
    const char *del = "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n";
    raise_floor(0, now + (UINT64_C(1000) << 16));
    assert_int_equal(real_take(&group, 0, &writer, 1, now, 0, old), RECEIVED);
    assert_true(conflicts_has(node_merge(group.node[0])->conflicts, 0, SLICE("k")));
    assert_int_equal(real_take(&group, 0, &writer, 2, now + 2, 0, new), RECEIVED);
    assert_string_equal(real_run_one(&group, 0, 0, "get k"), "$3\r\nnew\r\n");
    assert_true(conflicts_has(node_merge(group.node[0])->conflicts, 0, SLICE("k")));
    assert_int_equal(real_take(&group, 0, &writer, 3, now + 4, 0, del), RECEIVED);
    assert_string_equal(real_run_one(&group, 0, 0, "exists k"), ":0\r\n");
    assert_int_equal(real_take(&group, 0, &writer, 4, now + 6, 0, old), RECEIVED);
    assert_int_equal(real_take(&group, 0, &writer, 5, now + 8, 0, new), RECEIVED);
    group.now_ms += CONFLICT_QUIET_MS;
    real_tick(&group, 0);
    assert_int_equal(node_states(group.node[0]), 1);
    assert_string_equal(real_run_one(&group, 0, 0, "get k"), "$3\r\nnew\r\n");
    real_group_deinit(&group);
}

/* A SET that is above the last client's write, and below a state that does not cover it, stands:
 * what came before the window's floor is in that state, and nobody wrote by it. */
static void test_a_state_overwrites_nothing_that_comes_late(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct origin_id writer = origin_named('p', 7), other = origin_named('q', 8);
    uint64_t now = (uint64_t)REAL_START_MS << 16;
    const char *old = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\nold\r\n";
    const char *new = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\nnew\r\n";
    const char *fails = "*3\r\n$4\r\nSADD\r\n$1\r\nk\r\n$1\r\nb\r\n";
    assert_int_equal(real_take(&group, 0, &writer, 1, now, 0, old), RECEIVED);
    assert_int_equal(real_take(&group, 0, &other, 1, now + 2, 0, fails), RECEIVED);
    raise_floor(0, now + (UINT64_C(1000) << 16));
    group.now_ms += CONFLICT_QUIET_MS;
    real_tick(&group, 0);
    assert_int_equal(node_states(group.node[0]), 1);
    assert_string_equal(real_run_one(&group, 0, 0, "get k"), "$3\r\nold\r\n");
    assert_int_equal(real_take(&group, 0, &writer, 2, now + 4, 0, new), RECEIVED);
    assert_string_equal(real_run_one(&group, 0, 0, "get k"), "$3\r\nnew\r\n");
    assert_true(conflicts_has(node_merge(group.node[0])->conflicts, 0, SLICE("k")));
    group.now_ms += CONFLICT_QUIET_MS;
    real_tick(&group, 0);
    assert_int_equal(node_states(group.node[0]), 2); /* which covers it, and has it */
    assert_string_equal(real_run_one(&group, 0, 0, "get k"), "$3\r\nnew\r\n");
    real_group_deinit(&group);
}

/* So do those behind it, where the state is another node's. */
static void test_a_peers_state_overwrites_nothing_that_comes_late(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct origin_id writer = origin_named('p', 7);
    uint64_t now = (uint64_t)REAL_START_MS << 16;
    const char *one = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\none\r\n";
    const char *two = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\ntwo\r\n";
    const char *del = "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n";
    real_run_one(&group, 0, 0, "rpush k a");
    real_run_one(&group, 1, 0, "sadd k b"); /* each fails there */
    while ((int)real_send(&group, 0, 1) | (int)real_send(&group, 1, 0)) {
    }
    while ((int)real_deliver(&group, 0, 1) | (int)real_deliver(&group, 1, 0)) {
    }
    group.now_ms += CONFLICT_QUIET_MS;
    real_tick(&group, 1);
    assert_int_equal(node_states(group.node[1]), 1);
    while ((int)real_send(&group, 0, 1) | (int)real_send(&group, 1, 0)) {
    }
    while ((int)real_deliver(&group, 0, 1) | (int)real_deliver(&group, 1, 0)) {
    }
    assert_int_equal(node_states(group.node[0]), 0);
    assert_int_equal(real_digest(&group, 0, 0, "k"), real_digest(&group, 1, 0, "k"));
    raise_floor(0, now + (UINT64_C(1000000) << 16));
    uint64_t late = now + 4;
    assert_int_equal(real_take(&group, 0, &writer, 1, late, 0, one), RECEIVED);
    assert_string_equal(real_run_one(&group, 0, 0, "get k"), "$3\r\none\r\n");
    assert_int_equal(real_take(&group, 0, &writer, 2, late + 2, 0, two), RECEIVED);
    assert_string_equal(real_run_one(&group, 0, 0, "get k"), "$3\r\ntwo\r\n");
    assert_int_equal(real_take(&group, 0, &writer, 3, late + 4, 0, del), RECEIVED);
    assert_string_equal(real_run_one(&group, 0, 0, "exists k"), ":0\r\n");
    real_group_deinit(&group);
}

/* Nor is there after a flush what it should have taken away: of one database, or all. */
static void test_a_state_keeps_nothing_from_a_flush(void **state)
{
    (void)state;
    static const char *const flushes[] = {"*1\r\n$8\r\nFLUSHALL\r\n", "*1\r\n$7\r\nFLUSHDB\r\n"};
    const char *old = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\nold\r\n";
    const char *other_type = "*3\r\n$4\r\nSADD\r\n$1\r\nk\r\n$1\r\nb\r\n";
    uint64_t now = (uint64_t)REAL_START_MS << 16;
    for (size_t i = 0; i < sizeof(flushes) / sizeof(flushes[0]); i++) {
        real_group_init(&group, 2, LOG_BYTES, 0);
        struct origin_id writer = origin_named('p', 7), other = origin_named('q', 8);
        assert_int_equal(real_take(&group, 0, &writer, 1, now, 0, old), RECEIVED);
        assert_int_equal(real_take(&group, 0, &other, 1, now + 2, 0, other_type), RECEIVED);
        raise_floor(0, now + (UINT64_C(1000) << 16));
        group.now_ms += CONFLICT_QUIET_MS;
        real_tick(&group, 0);
        assert_int_equal(node_states(group.node[0]), 1);
        assert_int_equal(real_take(&group, 0, &writer, 2, now + 4, 0, flushes[i]), RECEIVED);
        assert_string_equal(real_run_one(&group, 0, 0, "exists k"), ":0\r\n");
        assert_int_equal(real_take(&group, 0, &writer, 3, now + 6, 0, other_type), RECEIVED);
        group.now_ms += CONFLICT_QUIET_MS;
        real_tick(&group, 0);
        assert_string_equal(real_run_one(&group, 0, 0, "smembers k"), "*1\r\n$1\r\nb\r\n");
        real_group_deinit(&group);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late_writes_of_a_key_that_was_not_there),
        cmocka_unit_test(test_a_state_overwrites_nothing_that_comes_late),
        cmocka_unit_test(test_a_peers_state_overwrites_nothing_that_comes_late),
        cmocka_unit_test(test_a_state_keeps_nothing_from_a_flush),
    };
    return cmocka_run_group_tests(tests, real_setup, real_teardown);
}
