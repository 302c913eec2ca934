/* The intset: ds/intset.h, against a naive model (a sorted array of int64). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "ds/intset.h"

#include <string.h>

static uint64_t rng_state;

static uint64_t next_random(void)
{
    uint64_t z = rng_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#define MODEL_MAX 2000

struct model {
    int64_t value[MODEL_MAX];
    uint32_t count;
};

static uint32_t model_place(const struct model *m, int64_t value, bool *there)
{
    uint32_t i = 0;
    while (i < m->count && m->value[i] < value) {
        i++;
    }
    *there = i < m->count && m->value[i] == value;
    return i;
}

static void check_same(const struct intset *s, const struct model *m)
{
    assert_int_equal(s->count, m->count);
    assert_true(intset_validate(s, intset_bytes(s)));
    for (uint32_t i = 0; i < m->count; i++) {
        assert_true(intset_at(s, i) == m->value[i]);
        assert_true(intset_contains(s, m->value[i]));
    }
}

static int64_t random_value(unsigned widest)
{
    static const int64_t edges[] = {0,
                                    -1,
                                    INT16_MAX,
                                    INT16_MIN,
                                    INT16_MAX + 1,
                                    INT16_MIN - 1,
                                    INT32_MAX,
                                    INT32_MIN,
                                    (int64_t)INT32_MAX + 1,
                                    (int64_t)INT32_MIN - 1,
                                    INT64_MAX,
                                    INT64_MIN};
    if (next_random() % 8 == 0) {
        return edges[next_random() % (widest == 64 ? 12 : widest == 32 ? 8 : 4)];
    }
    uint64_t small = next_random() % 40;
    return next_random() % 3 ? (int64_t)small - 20
                             : (int64_t)(next_random() << (64 - widest)) >> (64 - widest);
}

static void test_random_operations(void **state)
{
    (void)state;
    static const unsigned widths[] = {16, 32, 64};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        rng_state = seed;
        struct model m = {.count = 0};
        struct intset *s = intset_create();
        for (int step = 0; step < 600; step++) {
            int64_t value = random_value(widths[step < 200 ? 0 : (seed + step / 200) % 3]);
            bool there, changed;
            uint32_t at = model_place(&m, value, &there);
            assert_int_equal(intset_contains(s, value), there);
            if (next_random() % 3) {
                s = intset_add(s, value, &changed);
                assert_int_equal(changed, !there);
                if (!there) {
                    memmove(&m.value[at + 1], &m.value[at], (m.count - at) * sizeof(int64_t));
                    m.value[at] = value;
                    m.count++;
                }
            } else {
                s = intset_remove(s, value, &changed);
                assert_int_equal(changed, there);
                if (there) {
                    m.count--;
                    memmove(&m.value[at], &m.value[at + 1], (m.count - at) * sizeof(int64_t));
                }
            }
            check_same(s, &m);
        }
        struct intset *copy = intset_copy(s);
        check_same(copy, &m);
        intset_destroy(copy);
        intset_destroy(s);
    }
}

static void test_widens(void **state)
{
    (void)state;
    bool added;
    struct intset *s = intset_create();
    assert_int_equal(s->width, 2);
    s = intset_add(s, 5, &added);
    s = intset_add(s, 70000, &added);
    assert_int_equal(s->width, 4);
    s = intset_add(s, INT64_MIN, &added);
    assert_int_equal(s->width, 8);
    assert_int_equal(intset_bytes(s), 8 + 24);
    assert_true(intset_at(s, 0) == INT64_MIN && intset_at(s, 1) == 5 && intset_at(s, 2) == 70000);
    intset_destroy(s);
}

static void test_random_member_is_any(void **state)
{
    (void)state;
    bool added;
    unsigned seen = 0;
    struct intset *s = intset_create();
    for (int i = 0; i < 8; i++) {
        s = intset_add(s, i, &added);
    }
    for (int i = 0; i < 1000; i++) {
        int64_t value = intset_random(s);
        assert_true(value >= 0 && value < 8);
        seen |= 1u << value;
    }
    assert_int_equal(seen, 255);
    intset_destroy(s);
}

static void test_foreign_bytes(void **state)
{
    (void)state;
    int taken = 0, refused = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        rng_state = seed;
        bool added;
        struct intset *s = intset_create();
        for (uint64_t i = next_random() % 6; i-- > 0;) {
            s = intset_add(s, random_value(64), &added);
        }
        size_t size = intset_bytes(s);
        size_t kept = next_random() % 3 ? size : next_random() % (size + 1);
        char *bytes = mem_alloc(kept);
        memcpy(bytes, s, kept);
        for (uint64_t i = next_random() % 3; i-- > 0 && kept > 0;) {
            bytes[next_random() % kept] = (char)next_random();
        }
        if (intset_validate(bytes, kept)) {
            taken++;
        } else {
            refused++;
        }
        mem_free(bytes);
        intset_destroy(s);
    }
    assert_true(taken > 100 && refused > 100);
    static const char repeated[] = {2, 0, 0, 0, 2, 0, 0, 0, 7, 0, 7, 0};
    assert_false(intset_validate(repeated, sizeof(repeated)));
    static const char odd_width[] = {3, 0, 0, 0, 0, 0, 0, 0};
    assert_false(intset_validate(odd_width, sizeof(odd_width)));
    static const char huge[] = {8, 0, 0, 0, -1, -1, -1, -1};
    assert_false(intset_validate(huge, sizeof(huge)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations),
        cmocka_unit_test(test_widens),
        cmocka_unit_test(test_random_member_is_any),
        cmocka_unit_test(test_foreign_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
