/* The sorted set of records against an array of flags: ds/sorted.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rand.h"
#include "ds/sorted.h"

#include <string.h>

#define KEYS 2000

struct record {
    struct sorted_key key;
    uint64_t number;
};

struct model {
    bool there[KEYS];
    uint64_t number[KEYS];
};

/* In the order of their number, different in either half. */
static struct sorted_key key_of(int i)
{
    return (struct sorted_key){(uint64_t)(i / 7) << (i > KEYS / 2 ? 40 : 0), (uint64_t)(i % 7)
                                                                                 << 60};
}

static void compare_at(const struct model *m, const struct sorted *s, struct sorted_cursor at,
                       int i)
{
    while (i < KEYS && !m->there[i]) {
        i++;
    }
    assert_int_equal(sorted_cursor_valid(&at), i < KEYS);
    if (i < KEYS) {
        const struct record *r = sorted_cursor_record(s, &at);
        struct sorted_key key = key_of(i);
        assert_memory_equal(&r->key, &key, sizeof(key));
        assert_int_equal(r->number, m->number[i]);
    }
}

static void compare(const struct model *m, const struct sorted *s)
{
    uint64_t count = 0;
    sorted_check(s);
    struct sorted_cursor at = sorted_first(s);
    for (int i = 0; i < KEYS; i++) {
        const struct record *r = sorted_find(s, key_of(i));
        assert_int_equal(r != NULL, m->there[i]);
        if (m->there[i]) {
            compare_at(m, s, at, i);
            sorted_cursor_next(&at);
            count++;
        }
    }
    assert_false(sorted_cursor_valid(&at));
    assert_int_equal(s->count, count);
}

static void insert(struct model *m, struct sorted *s, int i)
{
    bool added;
    struct record *r = sorted_insert(s, key_of(i), &added);
    assert_int_equal(added, !m->there[i]);
    if (added) {
        r->number = m->number[i] = rand_u64();
        m->there[i] = true;
    }
    assert_int_equal(r->number, m->number[i]);
}

/* Takes out some of what follows a key, by cursor. */
static void remove_run(struct model *m, struct sorted *s, int i)
{
    struct sorted_cursor at = sorted_seek(s, key_of(i));
    for (int end = i + (int)rand_below(150); i < end && i < KEYS; i++) {
        if (!m->there[i]) {
            continue;
        }
        compare_at(m, s, at, i);
        if (rand_below(8)) {
            sorted_remove_at(s, &at);
            m->there[i] = false;
        } else {
            sorted_cursor_next(&at);
        }
        compare_at(m, s, at, i + 1);
    }
}

/* Keys come in runs up or down, or anywhere. */
static void step(struct model *m, struct sorted *s)
{
    int i = (int)rand_below(KEYS), size = (int)rand_below(200);
    switch (rand_below(6)) {
    case 0:
        for (int k = i; k < KEYS && k < i + size; k++) {
            insert(m, s, k);
        }
        break;
    case 1:
        for (int k = i; k >= 0 && k > i - size; k--) {
            insert(m, s, k);
        }
        break;
    case 2:
        for (int n = 0; n < size; n++) {
            insert(m, s, (int)rand_below(KEYS));
        }
        break;
    case 3:
        for (int n = 0; n < size; n++) {
            int k = (int)rand_below(KEYS);
            assert_int_equal(sorted_remove(s, key_of(k)), m->there[k]);
            m->there[k] = false;
        }
        break;
    case 4:
        for (int k = 0; k < KEYS && rand_below(300); k++) {
            assert_int_equal(sorted_remove(s, key_of(k)), m->there[k]);
            m->there[k] = false;
        }
        break;
    default:
        remove_run(m, s, i);
    }
}

static void test_against_model(void **state)
{
    (void)state;
    for (int round = 0; round < 25; round++) {
        struct model m = {0};
        struct sorted s;
        sorted_init(&s, sizeof(struct record));
        for (int n = 0; n < 120; n++) {
            step(&m, &s);
            compare(&m, &s);
        }
        int last = KEYS - 1;
        while (last >= 0 && !m.there[last]) {
            last--;
        }
        if (last >= 0) {
            compare_at(&m, &s, sorted_last(&s), last);
        }
        sorted_deinit(&s);
        assert_int_equal(s.count, 0);
        assert_int_equal(sorted_memory_bytes(&s), 0);
    }
}

/* In order, a set costs little beside its records; one that shrinks gives memory back. */
static void test_memory(void **state)
{
    (void)state;
    struct sorted s;
    bool added;
    sorted_init(&s, sizeof(struct sorted_key));
    for (uint64_t i = 0; i < 63 * 1000; i++) {
        sorted_insert(&s, (struct sorted_key){i / 50, i % 50}, &added);
    }
    assert_true(sorted_memory_bytes(&s) < 63 * 1000 * 18);
    for (uint64_t i = 0; i < 63 * 1000; i++) {
        if (i % 63 > 0) {
            sorted_remove(&s, (struct sorted_key){i / 50, i % 50});
        }
    }
    sorted_check(&s);
    assert_int_equal(s.count, 1000);
    assert_true(sorted_memory_bytes(&s) < 1000 * 128);
    sorted_deinit(&s);
}

/* A first block that is full of what is less than its key in the tree. */
static void test_a_first_block_below_its_key(void **state)
{
    (void)state;
    for (uint64_t next = 70; next <= 100; next += 30) {
        struct sorted s;
        bool added;
        sorted_init(&s, sizeof(struct record));
        sorted_insert(&s, (struct sorted_key){100, 0}, &added);
        for (uint64_t i = 1; i < 63; i++) {
            sorted_insert(&s, (struct sorted_key){i, 0}, &added);
        }
        assert_true(sorted_remove(&s, (struct sorted_key){100, 0}));
        sorted_insert(&s, (struct sorted_key){63, 0}, &added);
        assert_int_equal(s.blocks.count, 1);
        sorted_insert(&s, (struct sorted_key){next, 0}, &added);
        sorted_check(&s);
        assert_int_equal(s.blocks.count, 2);
        assert_non_null(sorted_find(&s, (struct sorted_key){next, 0}));
        assert_non_null(sorted_find(&s, (struct sorted_key){1, 0}));
        sorted_deinit(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_a_first_block_below_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
