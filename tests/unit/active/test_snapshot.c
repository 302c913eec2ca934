/* MERGE, key by key, over real nodes: what frames before the data set have brought
 * (active/merge.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"

#include "base/mem.h"
#include "keyspace/reclaim.h"
#include "active/earlier_lives.h"

#include <string.h>

#define LOG_BYTES ((size_t)16 << 20)

static struct real_group group;

static void take(const struct origin_id *id, uint64_t sequence, uint64_t stamp,
                 const char *commands)
{
    keyspace_lock_exclusive();
    assert_int_equal(
        node_take(group.node[0], id, sequence, stamp, 0, slice_cstr(commands), group.now_ms),
        RECEIVED);
    keyspace_unlock_exclusive();
    reclaim_run();
}

/* A data set has brought writes of somebody else, which the window has never had. */
static void let_go(const struct origin_id *id, uint64_t clock)
{
    struct origins *o = node_origins(group.node[0]);
    uint16_t origin = origins_enter(o, id);
    struct version_vector *positions = version_vector_create(o);
    struct merge_snapshot snapshot = {.positions = positions, .clock = clock};
    const char *error = NULL;
    positions->sequence[origin] = 5;
    keyspace_lock_exclusive();
    assert_true(node_snapshot_begin(group.node[0], &snapshot, &error));
    node_snapshot_end(group.node[0]);
    keyspace_unlock_exclusive();
    mem_free(positions);
}

/* A key as node 1 has it, with a dot of node 0's table. */
static void meet(const char *key, struct dot dot) REQUIRES(keyspace_lock);
static void meet(const char *key, struct dot dot)
{
    const struct merge *m = node_merge(group.node[1]);
    struct buf payload = {0};
    int64_t deadline_ms = 0;
    assert_true(m->executor->dump(m->context, 0, slice_cstr(key), &deadline_ms, &payload));
    assert_true(node_snapshot_key(group.node[0], 0, slice_cstr(key), dot, 0, buf_slice(&payload),
                                  group.now_ms));
    buf_deinit(&payload);
}

/* The peer has begun anew, and its logs have the writes of its new life only: those come first, and
 * are run on what lacks the last ones of the old life. That their dots are here then does not say
 * that what the data set has is known. `asked_late`: they have come by a link, maybe another one,
 * that had not found out that a data set is needed. */
static void meet_what_came_before(bool asked_late)
{
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct origin_id old = origin_named('p', 7), new = origin_named('p', 8),
                     other = origin_named('q', 9);
    uint64_t now = (uint64_t)REAL_START_MS << 16;
    take(&old, 1, now, "*4\r\n$4\r\nHSET\r\n$1\r\nk\r\n$1\r\na\r\n$1\r\n0\r\n");
    real_run_one(&group, 0, 0, "set mine x");
    let_go(&other, now + 2);
    struct origins *o = node_origins(group.node[0]);
    struct version_vector *had = asked_late ? NULL : version_vector_create(o);
    take(&new, 1, now + 8, "*4\r\n$4\r\nHSET\r\n$1\r\nk\r\n$1\r\nf\r\n$1\r\nv\r\n");
    take(&new, 2, now + 10, "*3\r\n$4\r\nHDEL\r\n$1\r\ng\r\n$1\r\nf\r\n");
    real_run_one(&group, 1, 0, "hset k a 1 f v");
    real_run_one(&group, 1, 0, "hset g h v");
    real_run_one(&group, 1, 0, "hset d h v");
    real_run_one(&group, 0, 0, "hset d h v");
    real_run_one(&group, 0, 0, "del d"); /* that the window has: it is later than what is there */

    had = had ? had : version_vector_create(o);
    struct version_vector *positions = version_vector_create(o);
    uint16_t at_old = origins_find(o, &old), at_new = origins_find(o, &new);
    positions->sequence[node_self(group.node[0])] = 0;
    positions->sequence[origins_find(o, &other)] = 0; /* so one of the two is chosen */
    positions->sequence[at_old] = 3;                  /* HSET k a 1, HSET g f v h v */
    struct merge_snapshot snapshot = {.positions = positions, .clock = now + 12, .had = had};
    const char *error = NULL;
    keyspace_lock_exclusive();
    assert_true(node_snapshot_begin(group.node[0], &snapshot, &error));
    meet("k", dot_of(now + 8, at_new, 1));
    meet("g", dot_of(now + 10, at_new, 2));
    meet("d", dot_of(now + 10, at_new, 2));
    node_snapshot_end(group.node[0]);
    keyspace_unlock_exclusive();
    reclaim_run();
    assert_string_equal(real_run_one(&group, 0, 0, "hget k a"), "$1\r\n1\r\n");
    assert_string_equal(real_run_one(&group, 0, 0, "hget g h"), "$1\r\nv\r\n");
    assert_string_equal(real_run_one(&group, 0, 0, "exists d"), ":0\r\n");
    assert_string_equal(real_run_one(&group, 0, 0, "get mine"), "$1\r\nx\r\n");
    mem_free(positions);
    mem_free(had);
    real_group_deinit(&group);
}

static void test_what_came_before_it_is_not_known(void **state)
{
    (void)state;
    meet_what_came_before(false);
    meet_what_came_before(true);
}

/* The other way round: it is they who have run what a node wrote in its new life on what lacks the
 * last writes of the old one. What went by that there was not deleted by anybody. */
static void test_what_they_have_without_what_came_before(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct origin_id old = origin_named('p', 7), new = origin_named('p', 8);
    uint64_t now = (uint64_t)REAL_START_MS << 16;
    struct origins *o = node_origins(group.node[0]);
    uint16_t at_old = origins_enter(o, &old);
    real_run_one(&group, 1, 0, "hset d f v");
    real_run_one(&group, 1, 0, "hset g f v h v");
    struct version_vector *positions = version_vector_create(o);
    struct merge_snapshot snapshot = {.positions = positions, .clock = now + 2};
    const char *error = NULL;
    positions->sequence[at_old] = 2; /* which have come without writes: the window has them not */
    keyspace_lock_exclusive();
    assert_true(node_snapshot_begin(group.node[0], &snapshot, &error));
    meet("d", dot_of(now, at_old, 1));
    meet("g", dot_of(now + 1, at_old, 2));
    node_snapshot_end(group.node[0]);
    keyspace_unlock_exclusive();
    mem_free(positions);
    take(&new, 1, now + 8, "*3\r\n$4\r\nHDEL\r\n$1\r\ng\r\n$1\r\nf\r\n");

    positions = version_vector_create(o);
    positions->sequence[at_old] = 1;
    snapshot = (struct merge_snapshot){.positions = positions, .clock = now + 12};
    keyspace_lock_exclusive();
    assert_true(node_snapshot_begin(group.node[0], &snapshot, &error));
    for (int i = 0; i < 2; i++) { /* `d` was deleted there, `g` is gone */
        assert_true(node_snapshot_key(group.node[0], 0, slice_cstr(i ? "d" : "g"), (struct dot){0},
                                      0, SLICE(""), group.now_ms));
    }
    node_snapshot_end(group.node[0]);
    keyspace_unlock_exclusive();
    reclaim_run();
    assert_string_equal(real_run_one(&group, 0, 0, "hget g h"), "$1\r\nv\r\n");
    assert_string_equal(real_run_one(&group, 0, 0, "exists d"), ":0\r\n");
    mem_free(positions);
    real_group_deinit(&group);
}

/* Which lives are left, of nodes in any order of their origins. */
static void test_lives_that_were_made_on_less(void **state)
{
    (void)state;
    struct origins o;
    origins_init(&o);
    static const struct {
        char node;
        uint64_t epoch, known, other, left;
    } rows[] = {{'p', 3, 5, 5, 0}, {'q', 1, 2, 9, 2}, {'p', 1, 4, 4, 4}, {'r', 2, 1, 0, 1},
                {'p', 2, 6, 7, 6}, {'q', 0, 3, 3, 3}, {'r', 1, 1, 1, 1}, {'p', 4, 1, 0, 0}};
    size_t count = sizeof(rows) / sizeof(rows[0]);
    for (size_t i = 0; i < count; i++) {
        struct origin_id id = {.epoch = rows[i].epoch};
        memset(id.node, rows[i].node, sizeof(id.node));
        assert_int_equal(origins_enter(&o, &id), i + 1);
    }
    struct version_vector *known = version_vector_create(&o), *other = version_vector_create(&o);
    for (size_t i = 0; i < count; i++) {
        known->sequence[i + 1] = rows[i].known;
        other->sequence[i + 1] = rows[i].other;
    }
    earlier_lives_forget(&o, known, other);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(known->sequence[i + 1], rows[i].left);
    }
    mem_free(known);
    mem_free(other);
    origins_deinit(&o);
}

/* From the moment that a data set is on its way no state is told: it would stand over the write
 * that came with the frames, and of two contents the one of a client's write, though earlier,
 * stands then. */
static void test_no_state_before_it(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct origin_id old = origin_named('p', 7), new = origin_named('r', 8),
                     other = origin_named('q', 9);
    uint64_t now = (uint64_t)REAL_START_MS << 16;
    struct origins *o = node_origins(group.node[0]);
    let_go(&other, now + 2);
    keyspace_lock_exclusive();
    node_expects_data(group.node[0], true);
    keyspace_unlock_exclusive();
    take(&new, 1, now + 8, "*4\r\n$4\r\nHSET\r\n$1\r\nk\r\n$1\r\nf\r\n$1\r\nv\r\n");
    conflicts_note(node_merge(group.node[0])->conflicts, 0, SLICE("k"), 0, group.now_ms);
    group.now_ms += CONFLICT_MAX_MS;
    real_tick(&group, 0);
    assert_int_equal(node_states(group.node[0]), 0);
    real_run_one(&group, 1, 0, "hset k a 1");

    uint16_t at_old = origins_enter(o, &old);
    struct version_vector *positions = version_vector_create(o);
    memset(positions->sequence, 0, positions->count * sizeof(positions->sequence[0]));
    positions->sequence[at_old] = 1;
    struct merge_snapshot snapshot = {.positions = positions, .clock = now + 12};
    const char *error = NULL;
    keyspace_lock_exclusive();
    assert_true(node_snapshot_begin(group.node[0], &snapshot, &error));
    meet("k", dot_of(now + 4, at_old, 1));
    node_snapshot_end(group.node[0]);
    node_expects_data(group.node[0], false);
    keyspace_unlock_exclusive();
    reclaim_run();
    assert_string_equal(real_run_one(&group, 0, 0, "hget k f"), "$1\r\nv\r\n");
    real_tick(&group, 0);
    assert_int_equal(node_states(group.node[0]), 1);
    mem_free(positions);
    real_group_deinit(&group);
}

/* Node 0 has let go of what the data set lacks, and has pushed to a list since then; so has the
 * peer, with other writes before it. */
static void meet_list(bool have_met, bool is_state, const char *list)
{
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct origin_id peer = origin_named('p', 7), other = origin_named('q', 9);
    uint64_t now = (uint64_t)REAL_START_MS << 16;
    struct origins *o = node_origins(group.node[0]);
    uint16_t at_peer = origins_enter(o, &peer);
    if (have_met) {
        take(&peer, 1, now, "*3\r\n$5\r\nRPUSH\r\n$1\r\nk\r\n$1\r\na\r\n");
    }
    let_go(&other, now + 8);
    struct version_vector *had = version_vector_create(o);
    real_run_one(&group, 0, 0, "rpush k mine");
    real_run_one(&group, 1, 0, "rpush k a b c");
    struct version_vector *positions = version_vector_create(o);
    memset(positions->sequence, 0, positions->count * sizeof(positions->sequence[0]));
    positions->sequence[at_peer] = 3;
    struct merge_snapshot snapshot = {.positions = positions, .clock = now + 12, .had = had};
    const char *error = NULL;
    keyspace_lock_exclusive();
    assert_true(node_snapshot_begin(group.node[0], &snapshot, &error));
    meet("k", dot_of(now + 4 + is_state, at_peer, 3));
    node_snapshot_end(group.node[0]);
    keyspace_unlock_exclusive();
    reclaim_run();
    assert_string_equal(real_run_one(&group, 0, 0, "lrange k 0 -1"), list);
    assert_true(conflicts_has(node_merge(group.node[0])->conflicts, 0, SLICE("k")));
    mem_free(positions);
    mem_free(had);
    real_group_deinit(&group);
}

/* Of two contents theirs stands, with our last write on top. */
static void test_ours_on_top(void **state)
{
    (void)state;
    meet_list(true, false, "*4\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$4\r\nmine\r\n");
}

/* But not of a state, by which nobody wrote: what has left our window is in ours only. */
static void test_ours_instead_of_a_state(void **state)
{
    (void)state;
    meet_list(true, true, "*2\r\n$1\r\na\r\n$4\r\nmine\r\n");
}

/* Nodes that never met have no past in common: the later one. */
static void test_the_later_one(void **state)
{
    (void)state;
    meet_list(false, false, "*1\r\n$4\r\nmine\r\n");
}

static size_t window_after_a_while(void)
{
    for (int i = 0; i < 50; i++) {
        group.now_ms += CONFLICT_QUIET_MS;
        real_tick(&group, 0);
    }
    return window_bytes(node_merge(group.node[0])->window);
}

static void keep_window(bool keeps)
{
    keyspace_lock_exclusive();
    node_keeps_window(group.node[0], keeps);
    keyspace_unlock_exclusive();
}

/* What is written before somebody is met is put on top of what he has: alone, nobody is who has not
 * seen it. */
static void test_the_window_is_kept_for_who_is_to_be_met(void **state)
{
    (void)state;
    real_group_init(&group, 1, LOG_BYTES, 0);
    keep_window(true);
    real_run_one(&group, 0, 0, "rpush k a");
    assert_true(window_after_a_while() > 0);
    keep_window(false);
    assert_int_equal(window_after_a_while(), 0);
    real_group_deinit(&group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_came_before_it_is_not_known),
        cmocka_unit_test(test_what_they_have_without_what_came_before),
        cmocka_unit_test(test_lives_that_were_made_on_less),
        cmocka_unit_test(test_no_state_before_it),
        cmocka_unit_test(test_ours_on_top),
        cmocka_unit_test(test_ours_instead_of_a_state),
        cmocka_unit_test(test_the_later_one),
        cmocka_unit_test(test_the_window_is_kept_for_who_is_to_be_met),
    };
    return cmocka_run_group_tests(tests, real_setup, real_teardown);
}
