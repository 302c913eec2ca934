/* The listpack: ds/listpack.h, against a naive model (an array of texts), every width and boundary
 * length, and foreign bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/num.h"
#include "ds/listpack.h"

#include <stdlib.h>
#include <string.h>

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

#define MODEL_MAX 400

struct model {
    char *text[MODEL_MAX];
    size_t len[MODEL_MAX];
    uint32_t count;
};

static void model_insert(struct model *m, uint32_t at, struct slice s)
{
    assert_true(m->count < MODEL_MAX);
    memmove(&m->text[at + 1], &m->text[at], (m->count - at) * sizeof(m->text[0]));
    memmove(&m->len[at + 1], &m->len[at], (m->count - at) * sizeof(m->len[0]));
    m->text[at] = mem_dup(s.ptr, s.len);
    m->len[at] = s.len;
    m->count++;
}

static void model_remove(struct model *m, uint32_t at, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        mem_free(m->text[at + i]);
    }
    m->count -= count;
    memmove(&m->text[at], &m->text[at + count], (m->count - at) * sizeof(m->text[0]));
    memmove(&m->len[at], &m->len[at + count], (m->count - at) * sizeof(m->len[0]));
}

static void check_element(const unsigned char *at, const struct model *m, uint32_t i)
{
    char text[LISTPACK_TEXT_BYTES];
    struct slice want = slice_of(m->text[i], m->len[i]);
    assert_non_null(at);
    assert_true(slice_equal(listpack_get(at, text), want));
    assert_true(listpack_equals(at, want));
    int64_t value, parsed;
    bool numeric = num_parse_i64(want, &parsed);
    assert_int_equal(listpack_get_integer(at, &value), numeric);
    assert_true(!numeric || value == parsed);
}

static void check_same(const unsigned char *lp, const struct model *m)
{
    assert_true(listpack_validate(lp, listpack_bytes(lp), NULL, NULL));
    assert_int_equal(listpack_count(lp), m->count);
    const unsigned char *at = listpack_first(lp);
    for (uint32_t i = 0; i < m->count; i++) {
        check_element(at, m, i);
        at = listpack_next(lp, at);
    }
    assert_null(at);
    at = listpack_last(lp);
    for (uint32_t i = m->count; i-- > 0;) {
        check_element(at, m, i);
        at = listpack_prev(lp, at);
    }
    assert_null(at);
}

static const int64_t edge_numbers[] = {
    0,
    1,
    63,
    64,
    127,
    128,
    -1,
    -4096,
    -4097,
    4095,
    4096,
    32767,
    32768,
    -32768,
    -32769,
    8388607,
    8388608,
    -8388608,
    -8388609,
    2147483647,
    2147483648,
    -2147483648LL,
    -2147483649LL,
    INT64_MAX,
    INT64_MIN,
    INT64_MAX - 1,
};
#define EDGE_NUMBERS (sizeof(edge_numbers) / sizeof(edge_numbers[0]))

static const size_t edge_lengths[] = {0,  1,   19,  20,  21,  62,   63,   64,
                                      65, 125, 126, 127, 128, 4095, 4096, 4097};
#define EDGE_LENGTHS (sizeof(edge_lengths) / sizeof(edge_lengths[0]))

/* An element: an edge number, a text of an edge length, or a near-number that must stay a text. */
static struct slice random_element(char *room)
{
    static const char *const odd[] = {
        "",    "-",  "+1", "01", "-0", " 1", "1 ", "9223372036854775808", "-9223372036854775809",
        "1e3", "00", "0x1"};
    uint64_t kind = below(4);
    if (kind == 0) {
        return slice_of(room, num_format_i64(room, edge_numbers[below(EDGE_NUMBERS)]));
    }
    if (kind == 1) {
        return slice_of(room, num_format_i64(room, (int64_t)(next_random() >> below(64))));
    }
    if (kind == 2) {
        return slice_cstr(odd[below(sizeof(odd) / sizeof(odd[0]))]);
    }
    size_t len = below(8) ? below(70) : edge_lengths[below(EDGE_LENGTHS)];
    memset(room, 'a' + (int)below(26), len);
    return slice_of(room, len);
}

static unsigned char *change(unsigned char *lp, struct model *m, char *room)
{
    struct slice s = random_element(room);
    uint32_t at = m->count ? (uint32_t)below(m->count) : 0;
    int64_t index = below(2) ? (int64_t)at : (int64_t)at - m->count;
    unsigned char *p = m->count ? listpack_seek(lp, index) : NULL;
    switch (below(m->count == 0 ? 2 : m->count > MODEL_MAX - 5 ? 3 : 8)) {
    case 0:
        if (m->count > MODEL_MAX - 5) {
            break;
        }
        model_insert(m, m->count, s);
        return listpack_append(lp, s);
    case 1:
        if (m->count > MODEL_MAX - 5) {
            break;
        }
        model_insert(m, 0, s);
        return listpack_prepend(lp, s);
    case 2: {
        uint32_t count = (uint32_t)below(m->count > MODEL_MAX - 5 ? MODEL_MAX : 4);
        uint32_t there = count < m->count - at ? count : m->count - at;
        model_remove(m, at, there);
        return listpack_remove_range(lp, index, count);
    }
    case 3:
    case 4: {
        bool after = below(2);
        lp = listpack_insert(lp, &p, s, after);
        model_insert(m, at + after, s);
        check_element(p, m, at + after);
        return lp;
    }
    case 5:
        lp = listpack_replace(lp, &p, s);
        model_remove(m, at, 1);
        model_insert(m, at, s);
        check_element(p, m, at);
        return lp;
    default:
        lp = listpack_remove(lp, &p);
        model_remove(m, at, 1);
        if (at < m->count) {
            check_element(p, m, at);
        } else {
            assert_null(p);
        }
        return lp;
    }
    return lp;
}

static void test_random_operations(void **state)
{
    (void)state;
    char room[5000];
    for (uint64_t seed = 1; seed <= 40; seed++) {
        rng_state = seed;
        struct model m = {.count = 0};
        unsigned char *lp = listpack_create(below(2) * 100);
        for (int step = 0; step < 400; step++) {
            lp = change(lp, &m, room);
            check_same(lp, &m);
        }
        unsigned char *copy = listpack_copy(lp);
        check_same(copy, &m);
        listpack_destroy(copy);
        lp = listpack_shrink(lp);
        check_same(lp, &m);
        model_remove(&m, 0, m.count);
        listpack_destroy(lp);
    }
}

static void test_numbers_keep_their_width(void **state)
{
    (void)state;
    char text[LISTPACK_TEXT_BYTES];
    static const struct {
        int64_t value;
        size_t bytes;
    } cases[] = {{0, 2},          {127, 2},         {128, 3},       {-1, 3},      {-4096, 3},
                 {4095, 3},       {4096, 4},        {-4097, 4},     {32767, 4},   {-32768, 4},
                 {32768, 5},      {-8388608, 5},    {8388607, 5},   {8388608, 6}, {-8388609, 6},
                 {2147483647, 6}, {2147483648, 10}, {INT64_MIN, 10}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char *lp = listpack_append_integer(listpack_create(0), cases[i].value);
        assert_int_equal(listpack_bytes(lp), 7 + cases[i].bytes);
        int64_t value;
        assert_true(listpack_get_integer(listpack_first(lp), &value));
        assert_true(value == cases[i].value);
        size_t len = num_format_i64(text, cases[i].value);
        unsigned char *by_text = listpack_append(listpack_create(0), slice_of(text, len));
        assert_memory_equal(lp, by_text, listpack_bytes(lp));
        listpack_destroy(lp);
        listpack_destroy(by_text);
    }
}

/* The bytes as the format's description has them. */
static void test_bytes(void **state)
{
    (void)state;
    static const unsigned char want[] = {25,  0,    0,   0,    5,    0, 0x05, 1,    0x82,
                                         'h', 'i',  3,   0xdf, 0xff, 2, 0xf1, 0x00, 0x10,
                                         3,   0x83, 'x', 'y',  'z',  4, 0xff};
    unsigned char *lp = listpack_create(0);
    lp = listpack_append(lp, SLICE("5"));
    lp = listpack_append(lp, SLICE("hi"));
    lp = listpack_append(lp, SLICE("-1"));
    lp = listpack_append(lp, SLICE("4096"));
    lp = listpack_append(lp, SLICE("xyz"));
    assert_int_equal(listpack_bytes(lp), sizeof(want));
    assert_memory_equal(lp, want, sizeof(want));
    listpack_destroy(lp);
}

/* Lengths around those at which the length behind an element takes another byte. */
static void test_long_elements(void **state)
{
    (void)state;
    static const size_t lengths[] = {63,    64,    4095,    4096,    16376,   16377,   16378,
                                     16379, 16380, 2097144, 2097145, 2097146, 2097147, 2097150};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t len = lengths[i];
        char *bytes = mem_alloc(len);
        memset(bytes, 'q', len);
        unsigned char *lp = listpack_append(listpack_create(0), SLICE("before"));
        lp = listpack_append(lp, slice_of(bytes, len));
        lp = listpack_append(lp, SLICE("7"));
        assert_true(listpack_validate(lp, listpack_bytes(lp), NULL, NULL));
        unsigned char *middle = listpack_prev(lp, listpack_last(lp));
        assert_true(middle == listpack_next(lp, listpack_first(lp)));
        assert_true(listpack_equals(middle, slice_of(bytes, len)));
        assert_true(listpack_equals(listpack_prev(lp, middle), SLICE("before")));
        lp = listpack_replace(lp, &middle, SLICE("short"));
        assert_int_equal(listpack_bytes(lp), 7 + 8 + 7 + 2);
        listpack_destroy(lp);
        mem_free(bytes);
    }
}

static void test_count_of_many(void **state)
{
    (void)state;
    unsigned char *lp = listpack_create(0);
    for (int i = 0; i < 65537; i++) {
        lp = listpack_append_integer(lp, i & 63);
        if (i + 1 >= 65533) {
            assert_int_equal(listpack_count(lp), i + 1);
        }
    }
    assert_true(listpack_validate(lp, listpack_bytes(lp), NULL, NULL));
    int64_t value;
    assert_true(listpack_get_integer(listpack_seek(lp, 65536), &value));
    assert_int_equal(value, 65536 & 63);
    assert_true(listpack_get_integer(listpack_seek(lp, -65537), &value));
    assert_int_equal(value, 0);
    assert_null(listpack_seek(lp, 65537));
    assert_null(listpack_seek(lp, -65538));
    lp = listpack_remove_range(lp, 10, 65000);
    assert_int_equal(listpack_count(lp), 537);
    assert_true(listpack_validate(lp, listpack_bytes(lp), NULL, NULL));
    listpack_destroy(lp);
}

static void test_find(void **state)
{
    (void)state;
    unsigned char *lp = listpack_create(0);
    static const char *const words[] = {"field", "17", "17", "field2", "x", "-300"};
    for (size_t i = 0; i < 6; i++) {
        lp = listpack_append(lp, slice_cstr(words[i]));
    }
    unsigned char *first = listpack_first(lp);
    assert_true(listpack_find(lp, first, SLICE("field"), 1) == first);
    assert_true(listpack_find(lp, first, SLICE("17"), 1) == listpack_seek(lp, 2));
    assert_true(listpack_find(lp, first, SLICE("17"), 0) == listpack_seek(lp, 1));
    assert_true(listpack_find(lp, first, SLICE("-300"), 0) == listpack_seek(lp, 5));
    assert_null(listpack_find(lp, first, SLICE("-300"), 1));
    assert_null(listpack_find(lp, first, SLICE("fiel"), 0));
    assert_null(listpack_find(lp, first, SLICE("017"), 0));
    assert_null(listpack_find(lp, first, SLICE("x"), 5));
    assert_null(listpack_find(lp, NULL, SLICE("x"), 0));
    listpack_destroy(lp);
}

static void test_join(void **state)
{
    (void)state;
    for (int left = 0; left < 3; left++) {
        for (int right = 0; right < 3; right++) {
            unsigned char *a = listpack_create(0), *b = listpack_create(0);
            struct model m = {.count = 0};
            for (int i = 0; i < left + right; i++) {
                struct slice s = i & 1 ? SLICE("1234") : SLICE("text");
                model_insert(&m, m.count, s);
                if (i < left) {
                    a = listpack_append(a, s);
                } else {
                    b = listpack_append(b, s);
                }
            }
            a = listpack_join(a, b);
            check_same(a, &m);
            model_remove(&m, 0, m.count);
            listpack_destroy(a);
        }
    }
}

static bool refuse_third(const unsigned char *at, uint32_t index, void *context)
{
    assert_non_null(at);
    *(uint32_t *)context = index;
    return index != 2;
}

static void test_visit_refuses(void **state)
{
    (void)state;
    unsigned char *lp = listpack_create(0);
    for (int i = 0; i < 5; i++) {
        lp = listpack_append_integer(lp, i);
    }
    uint32_t seen = 0;
    assert_false(listpack_validate(lp, listpack_bytes(lp), refuse_third, &seen));
    assert_int_equal(seen, 2);
    listpack_destroy(lp);
}

/* Every element, both ways, of bytes that were found good: nothing of it may lie outside (the
 * sanitizer looks). */
static void walk_both_ways(const unsigned char *lp)
{
    char text[LISTPACK_TEXT_BYTES];
    uint32_t forwards = 0, backwards = 0;
    size_t sum = 0;
    for (const unsigned char *at = listpack_first(lp); at; at = listpack_next(lp, at)) {
        struct slice s = listpack_get(at, text);
        for (size_t i = 0; i < s.len; i++) {
            sum += (unsigned char)s.ptr[i];
        }
        forwards++;
    }
    for (const unsigned char *at = listpack_last(lp); at; at = listpack_prev(lp, at)) {
        backwards++;
    }
    assert_int_equal(forwards, backwards);
    assert_true(sum < SIZE_MAX);
}

/* Changed bytes are refused, or are a listpack again; the block is as large as the bytes, so that a
 * read outside is seen. */
static void test_mutated_bytes(void **state)
{
    (void)state;
    char room[5000];
    int refused = 0, taken = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        rng_state = seed;
        unsigned char *lp = listpack_create(0);
        for (uint64_t i = below(12); i-- > 0;) {
            lp = listpack_append(lp, random_element(room));
        }
        size_t size = listpack_bytes(lp);
        size_t kept = below(4) ? size : below(size + 1);
        unsigned char *bytes = mem_alloc(kept);
        memcpy(bytes, lp, kept);
        for (uint64_t i = below(4); i-- > 0 && kept > 0;) {
            static const unsigned char nasty[] = {0,    0x7f, 0x80, 0xbf, 0xc0, 0xe0,
                                                  0xef, 0xf0, 0xf4, 0xf5, 0xff};
            bytes[below(kept)] =
                below(2) ? nasty[below(sizeof(nasty))] : (unsigned char)next_random();
        }
        if (listpack_validate(bytes, kept, NULL, NULL)) {
            walk_both_ways(bytes);
            taken++;
        } else {
            refused++;
        }
        mem_free(bytes);
        listpack_destroy(lp);
    }
    assert_true(refused > 100 && taken > 100);
}

static void test_fits(void **state)
{
    (void)state;
    unsigned char *lp = listpack_create(0);
    assert_true(listpack_fits(lp, 0));
    assert_true(listpack_fits(lp, LISTPACK_MAX_BYTES - 17));
    assert_false(listpack_fits(lp, LISTPACK_MAX_BYTES - 16));
    assert_false(listpack_fits(lp, SIZE_MAX));
    listpack_destroy(lp);
}

/* Elements written behind the end are the same bytes as elements appended one by one; skipping
 * finds what seeking finds. */
static void test_many_at_once(void **state)
{
    (void)state;
    char room[5000];
    for (uint64_t seed = 1; seed <= 200; seed++) {
        rng_state = seed;
        unsigned char *one = listpack_create(0), *many = listpack_create(below(2) * 50);
        while (listpack_count(one) < 60) {
            uint32_t count = (uint32_t)below(6);
            many = listpack_reserve(many, count * (sizeof(room) + LISTPACK_SLACK_BYTES));
            unsigned char *end = listpack_end(many);
            for (uint32_t i = 0; i < count; i++) {
                int64_t number;
                struct slice s = random_element(room);
                one = listpack_append(one, s);
                end = num_parse_i64(s, &number) && below(2) ? listpack_write_integer(end, number)
                                                            : listpack_write(end, s);
            }
            listpack_extend(many, end, count);
            assert_int_equal(listpack_bytes(one), listpack_bytes(many));
            assert_memory_equal(one, many, listpack_bytes(one));
        }
        uint32_t count = listpack_count(one), from = (uint32_t)below(count);
        const unsigned char *at = listpack_seek(one, from);
        for (uint32_t i = 0; from + i <= count; i++) {
            assert_ptr_equal(listpack_skip(at, i), listpack_seek(one, from + i));
        }
        listpack_destroy(one);
        listpack_destroy(many);
    }
}

static void test_integers_in_a_row(void **state)
{
    (void)state;
    unsigned char *lp = listpack_create(0), *end = NULL;
    lp = listpack_reserve(lp, EDGE_NUMBERS * LISTPACK_INTEGER_BYTES);
    end = listpack_end(lp);
    for (size_t i = 0; i < EDGE_NUMBERS; i++) {
        end = listpack_write_integer(end, edge_numbers[i]);
    }
    listpack_extend(lp, end, EDGE_NUMBERS);
    const unsigned char *at = listpack_first(lp);
    for (size_t i = 0; i < EDGE_NUMBERS; i++) {
        assert_true(listpack_take_integer(&at) == edge_numbers[i]);
    }
    assert_ptr_equal(at, listpack_end(lp));
    for (size_t i = 0; i < EDGE_NUMBERS * EDGE_NUMBERS; i++) {
        int64_t value;
        unsigned char *place = listpack_seek(lp, (int64_t)(i % EDGE_NUMBERS));
        lp = listpack_replace_integer(lp, &place, edge_numbers[i / EDGE_NUMBERS]);
        assert_true(listpack_get_integer(place, &value) && value == edge_numbers[i / EDGE_NUMBERS]);
        assert_true(listpack_validate(lp, listpack_bytes(lp), NULL, NULL));
        assert_int_equal(listpack_count(lp), EDGE_NUMBERS);
    }
    listpack_destroy(lp);
}

/* Strings of every length about where their form changes, each between two integers. */
static void test_short_strings(void **state)
{
    char text[80];
    (void)state;
    memset(text, 'x', sizeof(text));
    for (size_t len = 1; len <= sizeof(text); len++) {
        unsigned char *lp = listpack_create(0);
        lp = listpack_append_integer(lp, 5);
        lp = listpack_append(lp, slice_of(text, len));
        lp = listpack_append_integer(lp, 70000);
        lp = listpack_append(lp, slice_of(text, len));
        const unsigned char *at = listpack_first(lp), *before = at;
        for (int i = 0; i < 2; i++) {
            struct slice taken = {NULL, 0};
            assert_false(listpack_take_short(&at, &taken));
            assert_ptr_equal(at, before); /* an integer stays where it is */
            at = before = listpack_next(lp, at);
            assert_int_equal(listpack_take_short(&at, &taken), len < 64);
            if (len < 64) {
                assert_true(slice_equal(taken, slice_of(text, len)));
                assert_ptr_equal(at, listpack_next(lp, before));
            }
            at = before = listpack_next(lp, before);
        }
        assert_null(at);
        listpack_destroy(lp);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations),
        cmocka_unit_test(test_numbers_keep_their_width),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_long_elements),
        cmocka_unit_test(test_count_of_many),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_visit_refuses),
        cmocka_unit_test(test_mutated_bytes),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_integers_in_a_row),
        cmocka_unit_test(test_short_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
