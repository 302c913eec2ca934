/* The skiplist against a sorted array: ds/skiplist.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "ds/skiplist.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MODEL_MAX 1500

static const double odd_scores[] = {-INFINITY, -1e308, -1.5, -5e-324, -0.0,    0.0,
                                    5e-324,    0.1,    1,    1e308,   INFINITY};

struct model {
    struct skiplist_node *nodes[MODEL_MAX];
    uint64_t count;
};

static int order(double score, struct slice bytes, const struct skiplist_node *n)
{
    if (score != n->score) {
        return score < n->score ? -1 : 1;
    }
    return slice_compare(bytes, skiplist_bytes(n));
}

static uint64_t model_place(const struct model *m, double score, struct slice bytes)
{
    uint64_t i = 0;
    while (i < m->count && order(score, bytes, m->nodes[i]) > 0) {
        i++;
    }
    return i;
}

static void model_insert(struct model *m, struct skiplist_node *n)
{
    uint64_t at = model_place(m, n->score, skiplist_bytes(n));
    memmove(&m->nodes[at + 1], &m->nodes[at], (m->count - at) * sizeof(m->nodes[0]));
    m->nodes[at] = n;
    m->count++;
}

static void model_remove(struct model *m, uint64_t at, uint64_t count)
{
    memmove(&m->nodes[at], &m->nodes[at + count], (m->count - at - count) * sizeof(m->nodes[0]));
    m->count -= count;
}

static double random_score(void)
{
    if (rand_below(3) == 0) {
        return odd_scores[rand_below(sizeof(odd_scores) / sizeof(odd_scores[0]))];
    }
    return (double)rand_below(40);
}

static bool below_score(const struct skiplist_node *n, const void *context)
{
    return n->score < *(const double *)context;
}

static void compare(const struct skiplist *s, const struct model *m)
{
    skiplist_check(s);
    assert_int_equal(s->count, m->count);
    const struct skiplist_node *n = skiplist_first(s);
    for (uint64_t i = 0; i < m->count; i++, n = n->next) {
        assert_ptr_equal(n, m->nodes[i]);
    }
    assert_null(n);
    for (int probe = 0; probe < 8 && m->count > 0; probe++) {
        uint64_t rank = rand_below(m->count);
        assert_ptr_equal(skiplist_at(s, rank), m->nodes[rank]);
        assert_int_equal(skiplist_rank(s, m->nodes[rank]), rank);
    }
    double bound = random_score();
    uint64_t below = 0;
    while (below < m->count && m->nodes[below]->score < bound) {
        below++;
    }
    assert_int_equal(skiplist_partition(s, below_score, &bound), below);
}

static void destroy_node(struct skiplist_node *n, void *context)
{
    uint64_t *seen = context;
    (*seen)++;
    skiplist_node_destroy(n);
}

static void step(struct skiplist *s, struct model *m, uint64_t grow_percent)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%x", (unsigned)rand_below(100000));
    struct slice bytes = slice_of(text, (size_t)len * (rand_below(20) != 0));
    double score = random_score();
    uint64_t choice = rand_below(100);
    if (choice < grow_percent && m->count < MODEL_MAX) {
        uint64_t at = model_place(m, score, bytes);
        if (at == m->count || order(score, bytes, m->nodes[at]) != 0) {
            struct skiplist_node *n = skiplist_node_create(score, bytes);
            skiplist_insert(s, n);
            model_insert(m, n);
        }
    } else if (choice < 90 && m->count > 0) {
        uint64_t rank = rand_below(m->count);
        struct skiplist_node *n = m->nodes[rank];
        model_remove(m, rank, 1);
        uint64_t at = model_place(m, score, skiplist_bytes(n));
        bool taken = at < m->count && order(score, skiplist_bytes(n), m->nodes[at]) == 0;
        if (choice % 2 && !taken) {
            skiplist_move(s, n, score);
            model_insert(m, n);
        } else {
            skiplist_remove(s, n);
            skiplist_node_destroy(n);
        }
    } else if (choice >= 97) {
        uint64_t start = rand_below(m->count + 1), seen = 0;
        uint64_t count = rand_below((m->count - start) / 4 + 1);
        skiplist_remove_ranks(s, start, count, destroy_node, &seen);
        assert_int_equal(seen, count);
        model_remove(m, start, count);
    }
}

static void test_against_a_sorted_array(void **state)
{
    static struct model m;
    struct skiplist s;
    (void)state;
    skiplist_init(&s);
    m.count = 0;
    for (int i = 0; i < 6000; i++) {
        step(&s, &m, i < 3000 ? 75 : 40);
        if (i % 50 == 0) {
            compare(&s, &m);
        }
    }
    compare(&s, &m);
    uint64_t seen = 0;
    skiplist_remove_ranks(&s, 0, s.count, destroy_node, &seen);
    assert_int_equal(seen, m.count);
    m.count = 0;
    compare(&s, &m);
    assert_null(s.tail);
    assert_int_equal(s.levels, 1);
    skiplist_deinit(&s);
}

static void test_load(void **state)
{
    (void)state;
    for (uint64_t count = 0; count < 700; count = count * 3 + 1) {
        struct skiplist s;
        struct skiplist_node *nodes[700];
        for (uint64_t i = 0; i < count; i++) {
            char text[8];
            int len = snprintf(text, sizeof(text), "%05u", (unsigned)i);
            nodes[i] = skiplist_node_create((double)(i / 3), slice_of(text, (size_t)len));
        }
        skiplist_init(&s);
        skiplist_load(&s, nodes, count);
        skiplist_check(&s);
        for (uint64_t i = 0; i < count; i++) {
            assert_ptr_equal(skiplist_at(&s, i), nodes[i]);
        }
        skiplist_deinit(&s);
    }
}

static void test_nodes_bear_tags_and_any_length(void **state)
{
    static char long_bytes[5000];
    (void)state;
    for (size_t len = 0; len < sizeof(long_bytes); len = len * 2 + 1) {
        for (int i = 0; i < 100; i++) {
            struct skiplist_node *n = skiplist_node_create(1, slice_of(long_bytes, len));
            assert_int_equal((uintptr_t)n & 15, 0);
            assert_true(n->height >= 1 && n->height <= SKIPLIST_MAX_HEIGHT);
            assert_true(skiplist_node_memory_bytes(n) >= 29 + len);
            assert_true(slice_equal(skiplist_bytes(n), slice_of(long_bytes, len)));
            skiplist_node_destroy(n);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_a_sorted_array),
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_nodes_bear_tags_and_any_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
