/* What was removed before it has come (active/merge.h): it does not come back, where that is known
 * here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"

#include "base/mem.h"
#include "base/rand.h"
#include "keyspace/reclaim.h"
#include "active/missed_takings.h"

#include <stdio.h>
#include <string.h>

#define LOG_BYTES ((size_t)16 << 20)
#define NOW ((uint64_t)REAL_START_MS << 16)

static struct real_group group;
/* Who writes first, in a life that has ended; and who has that, and removes it. */
static struct origin_id first, second;

static int set_up(void **state)
{
    (void)state;
    first = origin_named('p', 7);
    second = origin_named('q', 8);
    real_group_init(&group, 2, LOG_BYTES, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    real_group_deinit(&group);
    return 0;
}

/* Words that are one letter each, but the first one. */
static void take(const struct origin_id *from, uint64_t sequence, uint64_t stamp, const char *line)
{
    struct buf words = {0}, unit = {0};
    char copy[80], *word, *rest = copy;
    int count = 0;
    snprintf(copy, sizeof(copy), "%s", line);
    while ((word = strtok_r(rest, " ", &rest)) != NULL) {
        unit_put_word(&words, slice_cstr(word));
        count++;
    }
    buf_printf(&unit, "*%d\r\n", count);
    buf_append_slice(&unit, buf_slice(&words));
    buf_append(&unit, "", 1);
    assert_int_equal(real_take(&group, 0, from, sequence, NOW + stamp, 0, unit.data), RECEIVED);
    buf_deinit(&words);
    buf_deinit(&unit);
}

static void expect(const char *line, const char *reply)
{
    assert_string_equal(real_run_one(&group, 0, 0, line), reply);
}

static bool in_conflict(void)
{
    return conflicts_has(node_merge(group.node[0])->conflicts, 0, SLICE("k"));
}

/* A data set that has nothing new raises the floor. */
static void raise_floor(uint64_t stamp)
{
    struct version_vector *positions = version_vector_create(node_origins(group.node[0]));
    struct merge_snapshot snapshot = {.positions = positions, .clock = NOW + stamp};
    const char *error = NULL;
    keyspace_lock_exclusive();
    assert_true(node_snapshot_begin(group.node[0], &snapshot, &error));
    node_snapshot_end(group.node[0]);
    keyspace_unlock_exclusive();
    mem_free(positions);
}

static void test_an_element(void **state)
{
    (void)state;
    take(&second, 1, 10, "RPUSH k x");
    take(&second, 2, 20, "LREM k 1 w");
    take(&second, 3, 30, "LREM k 0 v");
    take(&first, 1, 2, "RPUSH k w");
    expect("lrange k 0 -1", "*1\r\n$1\r\nx\r\n");
    assert_true(in_conflict());
    take(&first, 2, 4, "LPUSH k v u v");
    expect("lrange k 0 -1", "*2\r\n$1\r\nu\r\n$1\r\nx\r\n");
    take(&first, 3, 6, "LPUSH k v");
    expect("lrange k 0 -1", "*2\r\n$1\r\nu\r\n$1\r\nx\r\n");
}

/* One taking is one element, and what was there for it is no other's. */
static void test_equal_elements(void **state)
{
    (void)state;
    take(&second, 1, 10, "RPUSH k w x");
    take(&second, 2, 20, "LREM k 1 w");
    take(&first, 1, 2, "RPUSH k w");
    expect("lrange k 0 -1", "*2\r\n$1\r\nx\r\n$1\r\nw\r\n");
    take(&second, 3, 30, "LREM k -1 w");
    take(&second, 4, 40, "LREM k -1 w");
    expect("lrange k 0 -1", "*1\r\n$1\r\nx\r\n");
    take(&first, 2, 4, "RPUSH k w");
    expect("lrange k 0 -1", "*1\r\n$1\r\nx\r\n");
    take(&first, 3, 6, "RPUSH k w");
    expect("lrange k 0 -1", "*2\r\n$1\r\nx\r\n$1\r\nw\r\n");
}

static void test_an_element_below_the_floor(void **state)
{
    (void)state;
    take(&second, 1, 10, "RPUSH k x");
    take(&second, 2, 20, "LREM k 1 w");
    raise_floor(100);
    take(&first, 1, 2, "RPUSH k w");
    expect("lrange k 0 -1", "*1\r\n$1\r\nx\r\n");
    assert_true(in_conflict());
}

/* Also where the taking is in a state, and the push is not. */
static void test_an_element_and_a_state(void **state)
{
    (void)state;
    take(&second, 1, 10, "RPUSH k x");
    take(&second, 2, 20, "LREM k 1 w");
    conflicts_note(node_merge(group.node[0])->conflicts, 0, SLICE("k"), 0, group.now_ms);
    group.now_ms += CONFLICT_MAX_MS;
    real_tick(&group, 0);
    assert_int_equal(node_states(group.node[0]), 1);
    assert_false(in_conflict());
    take(&first, 1, 2, "RPUSH k w");
    expect("lrange k 0 -1", "*1\r\n$1\r\nx\r\n");
    assert_true(in_conflict());
}

/* A push that is later than the taking is none of it. */
static void test_a_later_push(void **state)
{
    (void)state;
    take(&second, 1, 10, "RPUSH k x");
    take(&second, 2, 20, "LREM k 1 w");
    take(&first, 1, 24, "RPUSH k w");
    expect("lrange k 0 -1", "*2\r\n$1\r\nx\r\n$1\r\nw\r\n");
    assert_false(in_conflict());
}

/* Members that a later write has removed, below the floor: a guess, but not of that. */
static void test_members_below_the_floor(void **state)
{
    (void)state;
    take(&second, 1, 10, "SADD k x");
    take(&second, 2, 20, "SREM k w");
    raise_floor(100);
    take(&first, 1, 2, "SADD k w");
    take(&first, 2, 4, "SADD k v");
    expect("sismember k w", ":0\r\n");
    expect("sismember k v", ":1\r\n");
    assert_true(in_conflict());
}

/* There is a bound, beyond which the oldest are not known. */
static void test_bound(void **state)
{
    struct missed_takings all = {0};
    struct origins o;
    (void)state;
    origins_init(&o);
    uint16_t from = origins_enter(&o, &first);
    struct dot push = dot_of(1, from, 1);
    assert_null(missed_takings_of(&all, &o, 1, push));
    for (uint64_t i = 1; i <= MISSED_TAKINGS_MAX + 1; i++) {
        struct missed_taking taking = {.element = i, .dot = dot_of(i + 1, from, i + 1), .count = 1};
        missed_takings_note(&all, &taking, true);
        missed_takings_note(&all, &taking, true);
    }
    assert_int_equal(all.count, MISSED_TAKINGS_MAX);
    assert_null(missed_takings_of(&all, &o, 1, push));
    assert_non_null(missed_takings_of(&all, &o, 2, push));
    assert_null(missed_takings_of(&all, &o, 2, dot_of(3, from, 4)));
    struct missed_taking taking = {.element = 2, .dot = dot_of(3, from, 3)};
    missed_takings_note(&all, &taking, false);
    missed_takings_note(&all, &taking, false);
    assert_int_equal(all.count, MISSED_TAKINGS_MAX - 1);
    assert_null(missed_takings_of(&all, &o, 2, push));
    missed_takings_deinit(&all);
    origins_deinit(&o);
}

/* Many that come, are noted again and go, some with one element, some in one chain: what is found
 * is what a list that is gone through says. */
static void test_many(void **state)
{
    enum { DOTS = 4000, ELEMENTS = 50, STEPS = 60000 };
    static uint64_t came[DOTS]; /* when it was noted first; 0: it is not missed */
    struct missed_takings all = {0};
    struct origins o;
    (void)state;
    origins_init(&o);
    uint16_t from = origins_enter(&o, &first);
    struct dot push = dot_of(1, from, 1);
    for (uint64_t step = 1; step <= STEPS; step++) {
        uint64_t i = rand_u64() % DOTS;
        uint64_t element = i % ELEMENTS * (2 * MISSED_TAKINGS_MAX / 4) + 1;
        bool missed = rand_u64() % 4 > 0;
        struct missed_taking taking = {.element = element, .dot = dot_of(i + 2, from, i + 2)};
        missed_takings_note(&all, &taking, missed);
        came[i] = missed ? (came[i] ? came[i] : step) : 0;
        const struct missed_taking *found = missed_takings_of(&all, &o, element, push);
        if (found) { /* nothing is found that is not missed, nor one of another element */
            uint64_t which = dot_sequence(found->dot) - 2;
            assert_true(came[which] != 0 && which % ELEMENTS == i % ELEMENTS);
        }
        assert_true(!missed || (found && dot_sequence(found->dot) <= i + 2));
    }
    assert_in_range(all.count, 1, MISSED_TAKINGS_MAX);
    missed_takings_deinit(&all);
    origins_deinit(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_element, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_equal_elements, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_element_below_the_floor, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_element_and_a_state, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_later_push, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_members_below_the_floor, set_up, tear_down),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, real_setup, real_teardown);
}
