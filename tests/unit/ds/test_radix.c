/* The radix tree against a sorted array: ds/radix.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "ds/radix.h"
#include "long.h"

#include <stdio.h>
#include <string.h>

#define MODEL_MAX 1200
#define KEY_MAX 24

struct model_key {
    char bytes[KEY_MAX];
    size_t len;
    void *value;
};
struct model {
    struct model_key keys[MODEL_MAX];
    int count;
};

static struct slice key_slice(const struct model_key *k)
{
    return slice_of(k->bytes, k->len);
}

/* How many keys of the model are less than `key`. */
static int model_rank(const struct model *m, struct slice key)
{
    int low = 0, high = m->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (slice_compare(key_slice(&m->keys[middle]), key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool model_has(const struct model *m, struct slice key)
{
    int i = model_rank(m, key);
    return i < m->count && slice_equal(key_slice(&m->keys[i]), key);
}

static void model_insert(struct model *m, struct slice key, void *value)
{
    int i = model_rank(m, key);
    memmove(&m->keys[i + 1], &m->keys[i], (size_t)(m->count - i) * sizeof(m->keys[0]));
    memcpy(m->keys[i].bytes, key.ptr, key.len);
    m->keys[i].len = key.len;
    m->keys[i].value = value;
    m->count++;
}

static void *model_remove(struct model *m, int i)
{
    void *value = m->keys[i].value;
    m->count--;
    memmove(&m->keys[i], &m->keys[i + 1], (size_t)(m->count - i) * sizeof(m->keys[0]));
    return value;
}

/* Keys that share much, that are prefixes of one another, that fan out wide, and IDs. */
static struct slice random_key(char *out, int style)
{
    size_t len = rand_below(style == 3 ? KEY_MAX : 5);
    switch (style) {
    case 0: /* two letters: dense, all prefixes there */
    case 3: /* the same, long: deep trees, long prefixes */
        for (size_t i = 0; i < len; i++) {
            out[i] = rand_below(style == 3 ? 9 : 2) ? 'a' : 'b';
        }
        return slice_of(out, len);
    case 1: /* every byte: nodes of all shapes */
        for (size_t i = 0; i < len / 2; i++) {
            out[i] = (char)rand_below(256);
        }
        return slice_of(out, len / 2);
    default: /* fixed length, numbers near one another */
        memset(out, 0, 16);
        out[6] = (char)rand_below(3);
        out[7] = (char)rand_below(256);
        out[15] = (char)rand_below(4);
        return slice_of(out, 16);
    }
}

static void expect_at(const struct model *m, int i, const struct radix_cursor *c)
{
    if (i < 0 || i >= m->count) {
        assert_false(radix_cursor_valid(c));
        return;
    }
    char key[KEY_MAX];
    assert_true(radix_cursor_valid(c));
    assert_int_equal(radix_cursor_key_bytes(c), m->keys[i].len);
    radix_cursor_copy_key(c, key);
    assert_memory_equal(key, m->keys[i].bytes, m->keys[i].len);
    assert_ptr_equal(radix_cursor_value(c), m->keys[i].value);
}

static void check_seeks(const struct radix *r, const struct model *m, struct slice key)
{
    int rank = model_rank(m, key);
    bool there = model_has(m, key);
    static const enum radix_seek ways[] = {RADIX_LESS, RADIX_LESS_EQUAL, RADIX_EQUAL,
                                           RADIX_GREATER_EQUAL, RADIX_GREATER};
    int wanted[] = {rank - 1, there ? rank : rank - 1, there ? rank : -1, rank, rank + there};
    for (int i = 0; i < 5; i++) {
        struct radix_cursor c = radix_seek(r, ways[i], key);
        expect_at(m, wanted[i], &c);
    }
    assert_ptr_equal(radix_find(r, key), there ? m->keys[rank].value : NULL);
}

static void check_walks(const struct radix *r, const struct model *m)
{
    radix_check(r);
    assert_int_equal(r->count, m->count);
    struct radix_cursor c = radix_first(r);
    for (int i = 0; i < m->count; i++) {
        expect_at(m, i, &c);
        radix_cursor_next(&c);
    }
    assert_false(radix_cursor_valid(&c));
    c = radix_last(r);
    for (int i = m->count; i-- > 0;) {
        expect_at(m, i, &c);
        radix_cursor_prev(&c);
    }
    assert_false(radix_cursor_valid(&c));
}

/* Removes from a random place on by the cursor, which must go on with the next key each time. */
static void remove_run(struct radix *r, struct model *m, int count)
{
    int i = (int)rand_below((uint64_t)m->count);
    struct radix_cursor c = radix_seek(r, RADIX_EQUAL, key_slice(&m->keys[i]));
    for (; count > 0 && i < m->count; count--) {
        expect_at(m, i, &c);
        assert_ptr_equal(radix_remove_at(r, &c), model_remove(m, i));
    }
    expect_at(m, i, &c);
}

static void count_release(void *value, void *context)
{
    assert_non_null(value);
    (*(int *)context)++;
}

static void run_style(int style)
{
    static struct model m;
    static char values[1 << 16];
    struct radix r;
    char bytes[KEY_MAX];
    uintptr_t stamp = 0;
    radix_init(&r);
    m.count = 0;
    for (int step = 0; step < UNIT_LONG(12000); step++) {
        struct slice key = random_key(bytes, style);
        bool there = model_has(&m, key);
        bool growing = step % 4000 < 2000;
        if (rand_below(10) < (growing ? 8 : 3) && (there || m.count < MODEL_MAX)) {
            void *value = &values[stamp++ % sizeof(values)];
            void *before = radix_find(&r, key);
            assert_ptr_equal(radix_insert(&r, key, value), before);
            assert_int_equal(before != NULL, there);
            if (!there) {
                model_insert(&m, key, value);
            }
        } else {
            void *value = there ? model_remove(&m, model_rank(&m, key)) : NULL;
            assert_ptr_equal(radix_remove(&r, key), value);
        }
        check_seeks(&r, &m, random_key(bytes, style));
        if (!growing && m.count > 0 && rand_below(20) == 0) {
            remove_run(&r, &m, (int)rand_below(8));
        }
        if (step % 500 == 0) {
            check_walks(&r, &m);
        }
    }
    check_walks(&r, &m);
    int released = 0;
    radix_deinit(&r, count_release, &released);
    assert_int_equal(released, m.count);
    radix_check(&r);
}

static void test_dense(void **state)
{
    (void)state;
    run_style(0);
}
static void test_wide(void **state)
{
    (void)state;
    run_style(1);
}
static void test_ids(void **state)
{
    (void)state;
    run_style(2);
}
static void test_long(void **state)
{
    (void)state;
    run_style(3);
}

static void test_empty(void **state)
{
    (void)state;
    struct radix r;
    struct model m = {.count = 0};
    radix_init(&r);
    check_seeks(&r, &m, SLICE("x"));
    check_seeks(&r, &m, slice_of(NULL, 0));
    check_walks(&r, &m);
    assert_null(radix_remove(&r, SLICE("x")));
    radix_deinit(&r, NULL, NULL);
}

/* The empty key is a key, and the first. */
static void test_empty_key(void **state)
{
    (void)state;
    struct radix r;
    int a, b;
    radix_init(&r);
    assert_null(radix_insert(&r, slice_of(NULL, 0), &a));
    assert_null(radix_insert(&r, SLICE("k"), &b));
    assert_ptr_equal(radix_insert(&r, slice_of(NULL, 0), &b), &a);
    struct radix_cursor c = radix_first(&r);
    assert_int_equal(radix_cursor_key_bytes(&c), 0);
    radix_cursor_set_value(&c, &b);
    assert_ptr_equal(radix_remove(&r, slice_of(NULL, 0)), &b);
    radix_check(&r);
    assert_int_equal(r.node_count, 1);
    radix_deinit(&r, NULL, NULL);
    assert_int_equal(radix_memory_bytes(&r), 0);
}

/* A chain of a hundred thousand nodes: nothing may recurse, and memory stays in proportion. */
static void test_deep(void **state)
{
    (void)state;
    static char bytes[UNIT_LONG(100000)];
    struct radix r;
    memset(bytes, 'x', sizeof(bytes));
    radix_init(&r);
    for (size_t len = sizeof(bytes); len > 0; len -= 10) {
        assert_null(radix_insert(&r, slice_of(bytes, len), bytes));
    }
    radix_check(&r);
    assert_int_equal(r.count, sizeof(bytes) / 10);
    assert_true(radix_memory_bytes(&r) <= r.count * 64);
    struct radix_cursor c = radix_last(&r);
    assert_int_equal(radix_cursor_key_bytes(&c), sizeof(bytes));
    c = radix_seek(&r, RADIX_LESS, slice_of(bytes, 55));
    assert_int_equal(radix_cursor_key_bytes(&c), 50);
    radix_deinit(&r, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty), cmocka_unit_test(test_empty_key),
        cmocka_unit_test(test_dense), cmocka_unit_test(test_wide),
        cmocka_unit_test(test_ids),   cmocka_unit_test(test_long),
        cmocka_unit_test(test_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
