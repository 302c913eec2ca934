/* Pairs: ds/pairs.h, against a naive model (an array of texts), and foreign bytes against the
 * check.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "ds/pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODEL_MAX 60
#define TEXT_MAX 5000

/* splitmix64: a fixed sequence for each seed. */
static uint64_t rng_state;

static uint64_t next_random(void)
{
    uint64_t z = rng_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t bound)
{
    return next_random() % bound;
}

struct text {
    size_t len;
    char bytes[TEXT_MAX];
};

struct model {
    struct text field[MODEL_MAX], value[MODEL_MAX];
    uint32_t count;
};

static struct slice slice_of_text(const struct text *t)
{
    return slice_of(t->bytes, t->len);
}

/* Lengths around every border of the two forms, and integers of all widths. */
static void random_text(struct text *t)
{
    static const size_t edges[] = {0, 1, 2, 3, 14, 15, 16, 17, 18, 63, 64, 65, 300, 4095, 4096};
    if (below(3) == 0) {
        int64_t integer = (int64_t)(next_random() >> below(64));
        integer = below(2) ? -(integer / 2) : integer / 2;
        t->len = (size_t)snprintf(t->bytes, sizeof(t->bytes), "%lld", (long long)integer);
        return;
    }
    /* Mostly short, and of few letters: fields that nearly equal others. */
    t->len = below(8) == 0 ? edges[below(sizeof(edges) / sizeof(edges[0]))] : below(20);
    for (size_t i = 0; i < t->len; i++) {
        t->bytes[i] = (char)(below(20) == 0 ? below(256) : 'a' + below(2));
    }
}

static uint32_t model_find(const struct model *m, const struct text *field)
{
    uint32_t i = 0;
    while (i < m->count && !slice_equal(slice_of_text(&m->field[i]), slice_of_text(field))) {
        i++;
    }
    return i;
}

/* The block is always exactly as large as the pairs, so that AddressSanitizer sees a step beyond.
 */
static unsigned char *set(unsigned char *p, const struct text *field, const struct text *value,
                          bool *is_new)
{
    struct pairs_change change;
    pairs_plan_set(p, slice_of_text(field), slice_of_text(value), &change);
    size_t before = pairs_bytes(p);
    unsigned char *fresh = mem_alloc(change.bytes_after > before ? change.bytes_after : before);
    memcpy(fresh, p, before);
    mem_free(p);
    pairs_apply(fresh, &change);
    *is_new = change.is_new;
    return mem_realloc(fresh, pairs_bytes(fresh));
}

static void assert_text(struct slice got, const struct text *expected)
{
    assert_int_equal(got.len, expected->len);
    assert_true(slice_equal(got, slice_of_text(expected)));
}

static void assert_same(const unsigned char *p, const struct model *m)
{
    char field[PAIRS_TEXT_BYTES], value[PAIRS_TEXT_BYTES];
    size_t bytes = PAIRS_HEADER_BYTES;
    assert_true(pairs_are_valid(p, pairs_bytes(p)));
    assert_int_equal(pairs_count(p), m->count);
    const unsigned char *at = pairs_first(p);
    for (uint32_t i = 0; i < m->count; i++) {
        assert_non_null(at);
        assert_ptr_equal(pairs_seek(p, i), at);
        assert_text(pairs_field(at, field), &m->field[i]);
        assert_text(pairs_value(at, value), &m->value[i]);
        assert_ptr_equal(pairs_find(p, slice_of_text(&m->field[i])), at);
        bytes += pairs_pair_bytes(slice_of_text(&m->field[i]), slice_of_text(&m->value[i]));
        at = pairs_next(p, at);
    }
    assert_null(at);
    assert_int_equal(pairs_bytes(p), bytes);
}

static unsigned char *change(unsigned char *p, struct model *m)
{
    static struct text field, value;
    random_text(&field);
    random_text(&value);
    if (m->count > 0 && below(3) == 0) {
        field = m->field[below(m->count)];
    }
    uint32_t i = model_find(m, &field);
    if (i < m->count && below(2)) {
        pairs_remove(p, pairs_seek(p, i));
        m->count--;
        memmove(&m->field[i], &m->field[i + 1], (m->count - i) * sizeof(field));
        memmove(&m->value[i], &m->value[i + 1], (m->count - i) * sizeof(value));
        return p;
    }
    if (i == m->count && m->count == MODEL_MAX) {
        return p;
    }
    bool is_new;
    p = set(p, &field, &value, &is_new);
    assert_int_equal(is_new, i == m->count);
    m->count += is_new;
    m->field[i] = field;
    m->value[i] = value;
    return p;
}

static void test_as_model(void **state)
{
    (void)state;
    struct model *m = mem_calloc(1, sizeof(*m));
    rng_state = 1;
    for (unsigned round = 0; round < 60; round++) {
        unsigned char *p = mem_alloc(PAIRS_HEADER_BYTES);
        pairs_init(p);
        m->count = 0;
        for (unsigned i = 0; i < 150; i++) {
            p = change(p, m);
            assert_same(p, m);
        }
        mem_free(p);
    }
    mem_free(m);
}

static size_t bytes_of(const char *field, const char *value)
{
    return pairs_pair_bytes(slice_cstr(field), slice_cstr(value));
}

static void test_short_texts_cost_one_byte_a_pair(void **state)
{
    (void)state;
    assert_int_equal(bytes_of("f", "ab"), 1 + 1 + 2);
    assert_int_equal(bytes_of("fifteen bytes..", "sixteen bytes..."), 1 + 15 + 16);
    assert_int_equal(bytes_of("sixteen bytes...", "seventeen bytes.."), 1 + 17 + 18);
    assert_int_equal(bytes_of("count", "7"), 1 + 5 + 1);
    assert_int_equal(bytes_of("count", "1234567890"), 1 + 5 + 5);
    assert_int_equal(bytes_of("", ""), 1 + 1 + 1);
}

static void test_a_longer_field_than_fits_is_not_there(void **state)
{
    (void)state;
    unsigned char p[PAIRS_HEADER_BYTES];
    char *large = mem_calloc(1, PAIRS_MAX_BYTES + 1);
    pairs_init(p);
    assert_null(pairs_find(p, slice_of(large, PAIRS_MAX_BYTES + 1)));
    assert_null(pairs_find(p, slice_of(NULL, 0)));
    mem_free(large);
}

/* Bytes that were never written by us are refused or can be walked: nothing reads beyond them. */
static void test_damaged_bytes_are_told(void **state)
{
    (void)state;
    struct model *m = mem_calloc(1, sizeof(*m));
    rng_state = 2;
    for (unsigned round = 0; round < 3000; round++) {
        unsigned char *p = mem_alloc(PAIRS_HEADER_BYTES);
        pairs_init(p);
        m->count = 0;
        for (unsigned i = 0; i < 5; i++) {
            p = change(p, m);
        }
        size_t size = pairs_bytes(p);
        unsigned char *damaged = memcpy(mem_alloc(size), p, size);
        for (unsigned i = 0; i <= below(3); i++) {
            damaged[below(size)] ^= (unsigned char)(1u << below(8));
        }
        if (pairs_are_valid(damaged, size)) {
            char text[PAIRS_TEXT_BYTES];
            uint32_t seen = 0;
            for (const unsigned char *at = pairs_first(damaged); at; at = pairs_next(damaged, at)) {
                assert_true(pairs_field(at, text).len + pairs_value(at, text).len <=
                            size + 2 * sizeof(text));
                seen++;
            }
            assert_int_equal(seen, pairs_count(damaged));
        }
        assert_false(pairs_are_valid(p, size - 1));
        mem_free(damaged);
        mem_free(p);
    }
    mem_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_model),
        cmocka_unit_test(test_short_texts_cost_one_byte_a_pair),
        cmocka_unit_test(test_a_longer_field_than_fits_is_not_there),
        cmocka_unit_test(test_damaged_bytes_are_told),
    };
    return cmocka_run_group_tests_name("pairs", tests, NULL, NULL);
}
