/* Quicklists: ds/quicklist.h, against a naive model (an array of strings), over several limits and
 * compression depths; the invariants are checked as they go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "ds/quicklist.h"

#include <stdio.h>
#include <string.h>

/* splitmix64: a fixed sequence for each seed. */
static uint64_t rng_state;

static uint64_t below(uint64_t bound)
{
    uint64_t z = rng_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % bound;
}

/* ---- the model ---- */

#define MODEL_MAX 4000
/* Longer than a node of 8 KiB. */
#define ELEMENT_MAX 9000

static struct slice model[MODEL_MAX];
static size_t model_len;

static void model_insert(size_t at, struct slice element)
{
    assert_true(model_len < MODEL_MAX && at <= model_len);
    memmove(&model[at + 1], &model[at], (model_len - at) * sizeof(*model));
    model[at] = slice_of(mem_dup(element.ptr, element.len), element.len);
    model_len++;
}

static void model_remove(size_t at)
{
    mem_free((char *)model[at].ptr);
    model_len--;
    memmove(&model[at], &model[at + 1], (model_len - at) * sizeof(*model));
}

static void model_clear(void)
{
    while (model_len > 0) {
        model_remove(model_len - 1);
    }
}

static void assert_slices_equal(struct slice got, struct slice expected)
{
    assert_int_equal(got.len, expected.len);
    assert_memory_equal(got.ptr, expected.ptr, expected.len);
}

static void assert_like_model(const struct quicklist *q)
{
    struct quicklist_cursor c;
    quicklist_check(q);
    assert_int_equal(quicklist_count(q), model_len);
    for (int backward = 0; backward < 2; backward++) {
        size_t seen = 0;
        quicklist_cursor_open(&c, q, backward && model_len ? model_len - 1 : 0, backward);
        while (quicklist_cursor_next(&c)) {
            assert_true(seen < model_len);
            struct slice expected = model[backward ? model_len - 1 - seen : seen];
            assert_slices_equal(quicklist_cursor_get(&c), expected);
            assert_true(quicklist_cursor_equals(&c, expected));
            assert_false(quicklist_cursor_equals(&c, SLICE("not in any list")));
            seen++;
        }
        assert_false(quicklist_cursor_next(&c));
        quicklist_cursor_close(&c);
        assert_int_equal(seen, model_len);
    }
}

/* An element of few kinds, so that equal ones exist; some are integers, some larger than a node. */
static struct slice random_element(void)
{
    static char bytes[ELEMENT_MAX];
    switch (below(10)) {
    case 0:
    case 1:
    case 2:
        return slice_of(bytes, (size_t)snprintf(bytes, sizeof(bytes), "%d", (int)below(5)));
    case 3:
        return slice_of(
            bytes, (size_t)snprintf(bytes, sizeof(bytes), "%lld", (long long)(below(5) << 60)));
    case 4:
        return SLICE("");
    default: {
        static const size_t lengths[] = {1, 2, 63, 64, 100, 500, 4095, 4096, 5000, ELEMENT_MAX};
        size_t len = lengths[below(below(20) == 0 ? 10 : 6)];
        if (below(4) == 0) {
            /* nothing that LZF could make shorter */
            for (size_t i = 0; i < len; i++) {
                bytes[i] = (char)below(256);
            }
        } else {
            memset(bytes, 'a' + (int)below(3), len);
        }
        return slice_of(bytes, len);
    }
    }
}

static void step_remove_equal(struct quicklist *q)
{
    struct slice element = random_element();
    bool from_tail = below(2);
    uint64_t max = below(2) ? UINT64_MAX : 1 + below(3);
    uint64_t expected = 0;
    for (size_t i = 0; i < model_len && expected < max;) {
        size_t at = from_tail ? model_len - 1 - i : i;
        if (slice_equal(model[at], element)) {
            model_remove(at);
            expected++;
        } else {
            i++;
        }
    }
    assert_int_equal(quicklist_remove_equal(q, element, max, from_tail), expected);
}

static void step(struct quicklist *q)
{
    struct slice element = random_element();
    uint64_t kind = below(model_len < 300 ? 14 : 20);
    if (kind < 4 || model_len == 0) {
        bool at_tail = below(2);
        model_insert(at_tail ? model_len : 0, element);
        quicklist_push(q, element, at_tail);
    } else if (kind < 10) {
        size_t at = below(model_len + 1);
        model_insert(at, element);
        quicklist_insert(q, at, element);
    } else if (kind < 12) {
        size_t at = below(model_len);
        model_remove(at);
        model_insert(at, element);
        quicklist_replace(q, at, element);
    } else if (kind < 14) {
        bool at_tail = below(2);
        model_remove(at_tail ? model_len - 1 : 0);
        quicklist_pop(q, at_tail);
    } else if (kind < 18) {
        size_t start = below(model_len), count = below(model_len - start + 1) % 60;
        for (size_t i = 0; i < count; i++) {
            model_remove(start);
        }
        quicklist_remove_range(q, start, count);
    } else {
        step_remove_equal(q);
    }
}

static void test_against_the_model(void **state)
{
    (void)state;
    static const int64_t fills[] = {-2, -1, -5, 1, 2, 3, 7, 128, 0, -99, 100000};
    for (size_t f = 0; f < sizeof(fills) / sizeof(fills[0]); f++) {
        for (uint32_t depth = 0; depth < 4; depth++) {
            struct quicklist *q = quicklist_create(fills[f], depth);
            rng_state = f * 100 + depth;
            for (int i = 0; i < 700; i++) {
                step(q);
                quicklist_check(q);
                if (i % 50 == 0) {
                    assert_like_model(q);
                }
            }
            assert_like_model(q);
            struct quicklist *copy = quicklist_copy(q);
            quicklist_destroy(q);
            assert_like_model(copy);
            quicklist_remove_range(copy, 0, quicklist_count(copy));
            model_clear();
            assert_like_model(copy);
            quicklist_destroy(copy);
        }
    }
}

/* Every index can be sought, from either side. */
static void test_seeking(void **state)
{
    (void)state;
    for (uint32_t depth = 0; depth < 3; depth++) {
        struct quicklist *q = quicklist_create(4, depth);
        for (int i = 0; i < 100; i++) {
            char text[32];
            struct slice element =
                slice_of(text, (size_t)snprintf(text, sizeof(text), "element number %06d", i));
            model_insert(model_len, element);
            quicklist_push(q, element, true);
        }
        struct quicklist_cursor c;
        for (size_t i = 0; i < model_len; i++) {
            quicklist_cursor_open(&c, q, i, i % 2);
            assert_true(quicklist_cursor_next(&c));
            assert_slices_equal(quicklist_cursor_get(&c), model[i]);
            quicklist_cursor_close(&c);
        }
        quicklist_cursor_open(&c, q, model_len, false);
        assert_false(quicklist_cursor_next(&c));
        quicklist_cursor_close(&c);
        quicklist_destroy(q);
        model_clear();
    }
}

static void test_limits(void **state)
{
    (void)state;
    static const struct {
        int64_t fill;
        uint32_t bytes, count;
    } cases[] = {
        {-1, 4096, UINT32_MAX},
        {-2, 8192, UINT32_MAX},
        {-3, 16384, UINT32_MAX},
        {-4, 32768, UINT32_MAX},
        {-5, 65536, UINT32_MAX},
        {-6, 65536, UINT32_MAX},
        {INT64_MIN, 65536, UINT32_MAX},
        {0, 8192, 1},
        {1, 8192, 1},
        {128, 8192, 128},
        {INT64_MAX, 8192, UINT32_MAX - 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct quicklist_limits limits = quicklist_limits_of(cases[i].fill);
        assert_int_equal(limits.bytes, cases[i].bytes);
        assert_int_equal(limits.count, cases[i].count);
    }
}

/* A million elements of 100 bytes: what the issue allows them. Ten thousand tell as well. */
static void test_memory_of_an_element(void **state)
{
    (void)state;
    char bytes[100];
    memset(bytes, 'x', sizeof(bytes));
    for (int at_tail = 0; at_tail < 2; at_tail++) {
        struct quicklist *q = quicklist_create(-2, 0);
        for (int i = 0; i < 10000; i++) {
            quicklist_push(q, slice_of(bytes, sizeof(bytes)), at_tail);
        }
        assert_true(quicklist_memory(q, 0) / 10000 <= 110);
        /* All nodes but the last are alike. */
        assert_true(quicklist_memory(q, 5) / 10000 <= 112);
        quicklist_destroy(q);
    }
}

static void test_inner_nodes_are_compressed(void **state)
{
    (void)state;
    char bytes[100];
    memset(bytes, 'x', sizeof(bytes));
    struct quicklist *plain = quicklist_create(-2, 0), *packed = quicklist_create(-2, 1);
    for (int i = 0; i < 5000; i++) {
        quicklist_push(plain, slice_of(bytes, sizeof(bytes)), i % 2);
        quicklist_push(packed, slice_of(bytes, sizeof(bytes)), i % 2);
    }
    assert_true(quicklist_memory(packed, 0) < quicklist_memory(plain, 0) / 4);
    /* A large element in a node of its own is compressed, too. */
    struct quicklist *large = quicklist_create(-2, 1);
    char big[ELEMENT_MAX];
    memset(big, 'y', sizeof(big));
    for (int i = 0; i < 20; i++) {
        quicklist_push(large, slice_of(big, sizeof(big)), true);
    }
    assert_int_equal(quicklist_node_count(large), 20);
    assert_true(quicklist_memory(large, 0) < 20 * sizeof(big) / 4);
    quicklist_destroy(plain);
    quicklist_destroy(packed);
    quicklist_destroy(large);
}

static void test_listpacks_in_and_out(void **state)
{
    (void)state;
    unsigned char *lp = listpack_create(0);
    for (int i = 0; i < 50; i++) {
        model_insert(model_len, SLICE("abc"));
        lp = listpack_append(lp, SLICE("abc"));
    }
    /* Beyond this list's limit; nothing is added to it then. */
    struct quicklist *q = quicklist_create(10, 0);
    assert_int_equal(quicklist_single_bytes(q), 0);
    quicklist_append_listpack(q, lp);
    assert_int_equal(quicklist_single_bytes(q), listpack_bytes(lp));
    model_insert(model_len, SLICE("d"));
    quicklist_push(q, SLICE("d"), true);
    assert_int_equal(quicklist_node_count(q), 2);
    assert_int_equal(quicklist_single_bytes(q), 0);
    assert_like_model(q);
    model_insert(20, SLICE("e"));
    quicklist_insert(q, 20, SLICE("e"));
    assert_like_model(q);
    quicklist_remove_range(q, 5, 47);
    model_clear();
    for (int i = 0; i < 5; i++) {
        model_insert(model_len, SLICE("abc"));
    }
    assert_like_model(q);
    lp = quicklist_take_listpack(q);
    assert_int_equal(listpack_count(lp), 5);
    listpack_destroy(lp);
    model_clear();
}

static void test_threshold_of_plain_nodes(void **state)
{
    (void)state;
    struct quicklist *q = quicklist_create(-2, 0);
    quicklist_set_packed_threshold(3);
    for (int i = 0; i < 6; i++) {
        struct slice element = i % 2 ? SLICE("abc") : SLICE("ab");
        model_insert(model_len, element);
        quicklist_push(q, element, true);
    }
    assert_int_equal(quicklist_node_count(q), 6);
    quicklist_set_packed_threshold(0);
    assert_like_model(q);
    quicklist_destroy(q);
    model_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_model),
        cmocka_unit_test(test_seeking),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_memory_of_an_element),
        cmocka_unit_test(test_inner_nodes_are_compressed),
        cmocka_unit_test(test_listpacks_in_and_out),
        cmocka_unit_test(test_threshold_of_plain_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
