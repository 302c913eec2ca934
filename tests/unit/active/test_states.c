/* States that cover what has not come here yet (active/merge.h): real nodes take them when that
 * has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"

#include "base/mem.h"
#include "keyspace/reclaim.h"
#include "active/full_sync_send.h"
#include "active/waiting_states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_BYTES ((size_t)16 << 20)
#define NOW ((uint64_t)REAL_START_MS << 16)
#define PUSH "*3\r\n$5\r\nRPUSH\r\n$1\r\nk\r\n$1\r\nw\r\n"

static struct real_group group;
/* Who pushes "w", and who has that and tells a state of it. */
static struct origin_id writer, teller;

static int set_up(void **state)
{
    (void)state;
    writer = origin_named('p', 7);
    teller = origin_named('q', 8);
    /* The last one is none of the group's: its database is where contents are made. */
    real_group_init(&group, 3, LOG_BYTES, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    real_group_deinit(&group);
    return 0;
}

/* A state of k, with `content` elements, that covers so many units of the writer. */
static void put_state(const char *content, uint64_t covers, bool as_digest, struct buf *unit)
{
    struct merge m = *node_merge(group.node[2]);
    char line[80];
    real_run_one(&group, 2, 0, "del k");
    snprintf(line, sizeof(line), "rpush k %s", content);
    real_run_one(&group, 2, 0, line);
    /* As if it had nothing but those. */
    struct origins positions = {0};
    origins_init(&positions);
    origins_advance(&positions, origins_enter(&positions, &writer), covers);
    keyspace_lock_exclusive();
    m.origins = &positions;
    if (as_digest) {
        struct buf words = {0};
        assert_true(merge_put_digest(&m, 0, SLICE("k"), &words));
        merge_digests(&m, 1, buf_slice(&words), unit);
        buf_deinit(&words);
    } else {
        merge_state(&m, 0, SLICE("k"), unit);
    }
    keyspace_unlock_exclusive();
    origins_deinit(&positions);
}

/* It comes to node 0, as the teller's unit with that number. */
static void take_state(uint64_t sequence, const char *content, uint64_t covers, bool as_digest)
{
    struct buf unit = {0};
    put_state(content, covers, as_digest, &unit);
    keyspace_lock_exclusive();
    assert_int_equal(node_take(group.node[0], &teller, sequence, NOW + 100 * sequence + 1, 0,
                               buf_slice(&unit), group.now_ms),
                     RECEIVED);
    keyspace_unlock_exclusive();
    reclaim_run();
    buf_deinit(&unit);
}

static void take_push(int node)
{
    assert_int_equal(real_take(&group, node, &writer, 1, NOW, 0, PUSH), RECEIVED);
}

/* The writer's next one, which is of another key. */
static void take_other(void)
{
    assert_int_equal(real_take(&group, 0, &writer, 2, NOW + 2, 0, "*2\r\n$3\r\nDEL\r\n$1\r\nx\r\n"),
                     RECEIVED);
}

static bool in_conflict(void)
{
    return conflicts_has(node_merge(group.node[0])->conflicts, 0, SLICE("k"));
}

static void pass(int64_t ms)
{
    group.now_ms += ms;
    real_tick(&group, 0);
}

static void expect_data(bool expects)
{
    keyspace_lock_exclusive();
    node_expects_data(group.node[0], expects);
    keyspace_unlock_exclusive();
}

/* The fault that this is for: taken at once, the content has "w", and our next own state says so
 * without covering it, so everybody runs it once more. */
static void test_nothing_is_run_twice(void **state)
{
    (void)state;
    take_state(1, "w", 1, false);
    conflicts_note(node_merge(group.node[0])->conflicts, 0, SLICE("k"), 0, group.now_ms);
    pass(CONFLICT_CAUSES_MS + CONFLICT_QUIET_MS);
    assert_int_equal(node_states(group.node[0]), 1);
    while (real_send(&group, 1, 0)) {
        assert_true(real_deliver(&group, 1, 0));
    }
    for (int node = 0; node < 2; node++) {
        take_push(node);
        assert_string_equal(real_run_one(&group, node, 0, "lrange k 0 -1"), "*1\r\n$1\r\nw\r\n");
    }
}

/* It is taken when all is here: then nothing is left to be told. */
static void test_it_is_taken_in_the_end(void **state)
{
    (void)state;
    real_run_one(&group, 0, 0, "rpush k x");
    take_state(1, "v w", 1, false);
    assert_string_equal(real_run_one(&group, 0, 0, "lrange k 0 -1"), "*1\r\n$1\r\nx\r\n");
    assert_true(in_conflict());
    pass(CONFLICT_MAX_MS + CONFLICT_QUIET_MS);
    assert_true(in_conflict());
    take_push(0);
    assert_false(in_conflict());
    assert_string_equal(real_run_one(&group, 0, 0, "lrange k 0 -1"),
                        "*3\r\n$1\r\nv\r\n$1\r\nw\r\n$1\r\nx\r\n");
    pass(CONFLICT_CAUSES_MS + CONFLICT_QUIET_MS);
    assert_int_equal(node_states(group.node[0]), 0);
}

/* The same of one that came to be the second last, and of a digest. */
static void test_several_wait(void **state)
{
    (void)state;
    take_state(1, "v w", 1, false);
    take_state(2, "w v", 1, false);
    take_push(0);
    assert_false(in_conflict());
    assert_string_equal(real_run_one(&group, 0, 0, "lrange k 0 -1"),
                        "*2\r\n$1\r\nw\r\n$1\r\nv\r\n");
    take_state(3, "w v", 2, true);
    assert_true(in_conflict());
    take_other();
    assert_false(in_conflict());
    assert_int_equal(real_dot(&group, 0, 0, "k").stamp, NOW + 301);
}

/* Ours that was told meanwhile is later, and stands; with what it does not cover on top. */
static void test_one_of_ours_is_later(void **state)
{
    (void)state;
    real_run_one(&group, 0, 0, "rpush k x");
    take_state(1, "v w", 1, false);
    pass(CONFLICT_CAUSES_MS);
    expect_data(true); /* it may have what is lacking, and anything else */
    pass(CONFLICT_CAUSES_MS);
    assert_int_equal(node_states(group.node[0]), 0);
    expect_data(false);
    pass(1);
    assert_int_equal(node_states(group.node[0]), 1);
    take_push(0);
    assert_false(in_conflict());
    assert_string_equal(real_run_one(&group, 0, 0, "lrange k 0 -1"),
                        "*2\r\n$1\r\nx\r\n$1\r\nw\r\n");
}

static bool drop(struct slice bytes, void *context)
{
    (void)bytes;
    (void)context;
    return true;
}

/* Who was sent our data set meanwhile has neither the state nor its content: ours is told. */
static void test_a_data_set_that_was_told(void **state)
{
    (void)state;
    take_state(1, "v w", 1, false);
    keyspace_lock_exclusive();
    struct full_sync_moment moment = full_sync_now(group.node[0]);
    assert_true(full_sync_tell(&moment, drop, NULL));
    keyspace_unlock_exclusive();
    take_push(0);
    assert_true(in_conflict());
    assert_string_equal(real_run_one(&group, 0, 0, "lrange k 0 -1"),
                        "*2\r\n$1\r\nv\r\n$1\r\nw\r\n");
    pass(CONFLICT_CAUSES_MS + CONFLICT_QUIET_MS);
    assert_int_equal(node_states(group.node[0]), 1);
}

/* A data set has what it lacks. It is taken before that is merged: else one of two contents may be
 * chosen, and the other one has what nobody will send any more. */
static void test_a_data_set_that_comes(void **state)
{
    (void)state;
    real_run_one(&group, 0, 0, "rpush k x");
    take_state(1, "v w", 1, false);
    struct origins *o = node_origins(group.node[0]);
    struct version_vector *positions = version_vector_create(o);
    memset(positions->sequence, 0, positions->count * sizeof(positions->sequence[0]));
    positions->sequence[origins_find(o, &writer)] = 1;
    struct merge_snapshot snapshot = {.positions = positions, .clock = NOW + 200};
    const char *error = NULL;
    keyspace_lock_exclusive();
    assert_true(node_snapshot_begin(group.node[0], &snapshot, &error));
    keyspace_unlock_exclusive();
    assert_string_equal(real_run_one(&group, 0, 0, "lrange k 0 -1"),
                        "*3\r\n$1\r\nv\r\n$1\r\nw\r\n$1\r\nx\r\n");
    keyspace_lock_exclusive();
    node_snapshot_end(group.node[0]);
    keyspace_unlock_exclusive();
    mem_free(positions);
}

/* Nobody forwards: what it lacks may never come. */
static void test_nobody_forwards(void **state)
{
    (void)state;
    keyspace_lock_exclusive();
    node_take_directly(group.node[0], true);
    keyspace_unlock_exclusive();
    take_state(1, "v w", 1, false);
    pass(CONFLICT_PATIENCE_MS - 1);
    assert_string_equal(real_run_one(&group, 0, 0, "exists k"), ":0\r\n");
    pass(1);
    assert_false(in_conflict());
    assert_string_equal(real_run_one(&group, 0, 0, "lrange k 0 -1"),
                        "*2\r\n$1\r\nv\r\n$1\r\nw\r\n");
    assert_int_equal(node_states(group.node[0]), 0);
}

/* Beyond the bound a state is one that cannot be begun from. */
static void test_too_many_wait(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= WAITING_STATES_MAX + 1; i++) {
        take_state(i, "v w", 1 + i % 2, false); /* two with one cause behind one another are one */
    }
    pass(CONFLICT_MAX_MS);
    assert_true(in_conflict()); /* put off by the first one */
    take_push(0);
    take_other();
    assert_true(in_conflict());
    pass(CONFLICT_CAUSES_MS + CONFLICT_QUIET_MS);
    assert_false(in_conflict());
    assert_int_equal(node_states(group.node[0]), 1);
    assert_string_equal(real_run_one(&group, 0, 0, "lrange k 0 -1"),
                        "*2\r\n$1\r\nv\r\n$1\r\nw\r\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_run_twice),
        TEST(test_it_is_taken_in_the_end),
        TEST(test_several_wait),
        TEST(test_one_of_ours_is_later),
        TEST(test_a_data_set_that_was_told),
        TEST(test_a_data_set_that_comes),
        TEST(test_nobody_forwards),
        TEST(test_too_many_wait),
    };
    return cmocka_run_group_tests(tests, real_setup, real_teardown);
}
