/* HyperLogLog: ds/hll.h, against an array of registers, and with bytes that nobody meant. That the
 * bytes are Redis's is checked against a redis-server in tests/differential/test_hyperloglog.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "ds/hll.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPARSE_MAX_BYTES 3000

static uint64_t rng_state;

static uint64_t next_random(void)
{
    uint64_t z = rng_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static uint64_t below(uint64_t bound)
{
    return next_random() % bound;
}

/* The model: what the registers must be. */
struct model {
    uint8_t registers[HLL_REGISTERS];
};

static bool model_add(struct model *model, struct slice element)
{
    uint64_t hash = hll_hash(element);
    uint8_t *at = &model->registers[hash % HLL_REGISTERS];
    uint8_t value = 1;
    for (hash /= HLL_REGISTERS; value < 51 && !(hash & 1); hash >>= 1) {
        value++;
    }
    if (*at >= value) {
        return false;
    }
    *at = value;
    return true;
}

static void assert_like_model(const struct buf *value, const struct model *model)
{
    static struct hll_registers registers;
    memset(&registers, 0, sizeof(registers));
    assert_true(hll_is_valid_head(buf_slice(value)));
    assert_true(hll_check(buf_slice(value)));
    assert_true(hll_merge(&registers, buf_slice(value)));
    assert_memory_equal(registers.at, model->registers, HLL_REGISTERS);
    uint64_t one;
    assert_true(hll_estimate(buf_slice(value), &one));
    assert_int_equal(one, hll_estimate_registers(&registers));
}

/* What a redis-server 7.0 shows (PFDEBUG DECODE) after PFADD of one element to a new key. */
static void test_registers_of_known_elements(void **state)
{
    (void)state;
    static const struct {
        const char *element, *runs;
    } known[] = {
        {"", "Z:5938 v:2,1 Z:10445"},
        {"a", "Z:12711 v:2,1 Z:3672"},
        {"hello w", "Z:1685 v:3,1 Z:14698"},
        {"hello world", "Z:9399 v:4,1 Z:6984"},
        {"0123456789abcdef", "Z:5949 v:1,1 Z:10434"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct buf value = {0}, text = {0};
        hll_init(&value);
        assert_int_equal(hll_add(&value, slice_cstr(known[i].element), SPARSE_MAX_BYTES),
                         HLL_CHANGED);
        assert_true(hll_describe(buf_slice(&value), &text));
        assert_string_equal(buf_cstr(&text), known[i].runs);
        buf_deinit(&value);
        buf_deinit(&text);
    }
}

static void test_an_empty_value(void **state)
{
    (void)state;
    struct buf value = {0};
    uint64_t cardinality = 7;
    hll_init(&value);
    assert_int_equal(value.len, 18);
    assert_memory_equal(value.data, "HYLL\1\0\0\0\0\0\0\0\0\0\0\0\x7f\xff", 18);
    assert_true(hll_cached(buf_slice(&value), &cardinality));
    assert_int_equal(cardinality, 0);
    hll_invalidate((uint8_t *)value.data);
    assert_false(hll_cached(buf_slice(&value), &cardinality));
    assert_true(hll_estimate(buf_slice(&value), &cardinality));
    assert_int_equal(cardinality, 0);
    assert_int_equal(hll_make_dense(&value), HLL_CHANGED);
    assert_int_equal(value.len, HLL_DENSE_BYTES);
    assert_true(hll_estimate(buf_slice(&value), &cardinality));
    assert_int_equal(cardinality, 0);
    assert_int_equal(hll_make_dense(&value), HLL_UNCHANGED);
    buf_deinit(&value);
}

/* Adds random elements up to `count` and compares on the way. */
static void grow(size_t max_bytes, uint64_t count)
{
    static struct model model;
    memset(&model, 0, sizeof(model));
    struct buf value = {0};
    hll_init(&value);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number = next_random();
        struct slice element = slice_of((const char *)&number, 1 + below(8));
        bool changed = model_add(&model, element);
        enum hll_result result = hll_add(&value, element, max_bytes);
        assert_int_equal(result, changed ? HLL_CHANGED : HLL_UNCHANGED);
        if ((i & (i - 1)) == 0 || i % 997 == 0) {
            assert_like_model(&value, &model);
        }
        if (hll_encoding_of(buf_slice(&value)) == HLL_SPARSE) {
            assert_true(value.len <= (max_bytes > 18 ? max_bytes : 18));
        }
    }
    assert_like_model(&value, &model);
    buf_deinit(&value);
}

static void test_against_the_model(void **state)
{
    (void)state;
    rng_state = 1;
    grow(SPARSE_MAX_BYTES, 20000);
    grow(0, 2000);
    grow(100, 2000);
    grow(1 << 20, 20000);
}

/* Raising registers in ascending order gives the same as adding one by one. */
static void test_merge_against_the_model(void **state)
{
    (void)state;
    rng_state = 2;
    for (int round = 0; round < 60; round++) {
        static struct model model;
        static struct hll_registers registers;
        struct buf one = {0}, other = {0};
        memset(&model, 0, sizeof(model));
        memset(&registers, 0, sizeof(registers));
        hll_init(&one);
        hll_init(&other);
        for (uint64_t left = below(3000); left > 0; left--) {
            uint64_t number = next_random();
            struct slice element = slice_of((const char *)&number, sizeof(number));
            struct buf *to = left % 2 ? &one : &other;
            model_add(&model, element);
            assert_int_not_equal(hll_add(to, element, SPARSE_MAX_BYTES), HLL_CORRUPT);
        }
        assert_true(hll_merge(&registers, buf_slice(&one)));
        assert_int_not_equal(hll_raise(&other, &registers, SPARSE_MAX_BYTES), HLL_CORRUPT);
        assert_like_model(&other, &model);
        buf_deinit(&one);
        buf_deinit(&other);
    }
}

static void test_estimates(void **state)
{
    (void)state;
    struct buf value = {0};
    hll_init(&value);
    for (uint64_t i = 1; i <= 300000; i++) {
        assert_int_not_equal(
            hll_add(&value, slice_of((const char *)&i, sizeof(i)), SPARSE_MAX_BYTES), HLL_CORRUPT);
        if ((i & (i - 1)) == 0) {
            uint64_t estimate;
            assert_true(hll_estimate(buf_slice(&value), &estimate));
            assert_true(fabs((double)estimate - (double)i) <= fmax(2, (double)i * 0.04));
        }
    }
    buf_deinit(&value);
}

static void test_dense_in_place(void **state)
{
    (void)state;
    struct buf value = {0};
    static struct model model;
    rng_state = 3;
    memset(&model, 0, sizeof(model));
    hll_init(&value);
    assert_int_equal(hll_make_dense(&value), HLL_CHANGED);
    for (int i = 0; i < 30000; i++) {
        uint64_t number = next_random();
        struct slice element = slice_of((const char *)&number, sizeof(number));
        bool changes = model_add(&model, element);
        assert_int_equal(hll_dense_would_add(buf_slice(&value), element), changes);
        assert_int_equal(hll_dense_add((uint8_t *)value.data, element), changes);
    }
    assert_like_model(&value, &model);
    buf_deinit(&value);
}

static void test_refused_heads(void **state)
{
    (void)state;
    char bytes[HLL_DENSE_BYTES + 1] = "HYLL";
    assert_false(hll_is_valid_head(SLICE("")));
    assert_false(hll_is_valid_head(slice_of(bytes, 15)));
    assert_false(hll_is_valid_head(slice_of(bytes, 16)));
    assert_false(hll_is_valid_head(slice_of(bytes, HLL_DENSE_BYTES - 1)));
    assert_false(hll_is_valid_head(slice_of(bytes, HLL_DENSE_BYTES + 1)));
    assert_true(hll_is_valid_head(slice_of(bytes, HLL_DENSE_BYTES)));
    bytes[4] = 1;
    assert_true(hll_is_valid_head(slice_of(bytes, 16)));
    bytes[4] = 2;
    assert_false(hll_is_valid_head(slice_of(bytes, HLL_DENSE_BYTES)));
    bytes[4] = (char)0xff;
    assert_false(hll_is_valid_head(slice_of(bytes, HLL_DENSE_BYTES)));
    bytes[4] = 0;
    bytes[3] = 'l';
    assert_false(hll_is_valid_head(slice_of(bytes, HLL_DENSE_BYTES)));
}

/* Runs that do not cover the registers exactly. */
static void test_corrupt_runs(void **state)
{
    (void)state;
    const struct slice runs[] = {
        SLICE(""),
        SLICE("\x7f"),             /* a long run cut in the middle */
        SLICE("\x7f\xfe"),         /* one register short */
        SLICE("\x7f\xff\x00"),     /* one too many */
        SLICE("\x7f\xff\x7f\xff"), /* twice as many */
        SLICE("\x80\x7f\xff"),     /* one too many, by a long run */
        SLICE("\x7f\xfe\x81"),     /* one too many, by a value's run */
        SLICE("\x7f\xfe\x80\x40"), /* right, with half a run behind */
    };
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct buf value = {0}, text = {0};
        struct hll_registers registers = {{0}};
        uint64_t cardinality;
        buf_append(&value, "HYLL\1\0\0\0\0\0\0\0\0\0\0\x80", 16);
        buf_append_slice(&value, runs[i]);
        assert_false(hll_check(buf_slice(&value)));
        assert_false(hll_estimate(buf_slice(&value), &cardinality));
        assert_false(hll_merge(&registers, buf_slice(&value)));
        assert_false(hll_describe(buf_slice(&value), &text));
        assert_int_equal(hll_make_dense(&value), HLL_CORRUPT);
        assert_int_equal(value.len, 16 + runs[i].len);
        buf_deinit(&value);
        buf_deinit(&text);
    }
}

static void test_impossible_registers(void **state)
{
    (void)state;
    struct buf value = {0};
    struct hll_registers registers = {{0}};
    uint64_t cardinality;
    hll_init(&value);
    assert_int_equal(hll_make_dense(&value), HLL_CHANGED);
    value.data[16] = 51;
    assert_true(hll_estimate(buf_slice(&value), &cardinality));
    assert_true(hll_merge(&registers, buf_slice(&value)));
    value.data[16] = 52;
    assert_false(hll_estimate(buf_slice(&value), &cardinality));
    assert_false(hll_merge(&registers, buf_slice(&value)));
    buf_deinit(&value);
}

/* Everything that reads a value, on a copy of exactly its size. */
static void use_all(const struct buf *value)
{
    static struct hll_registers registers;
    uint64_t cardinality;
    if (!hll_is_valid_head(buf_slice(value))) {
        return;
    }
    char *exact = mem_dup(value->data, value->len);
    struct slice bytes = slice_of(mem_realloc(exact, value->len), value->len);
    struct buf text = {0}, copy = {0};
    bool whole = hll_check(bytes);
    memset(&registers, 0, sizeof(registers));
    bool merged = hll_merge(&registers, bytes);
    assert_int_equal(hll_estimate(bytes, &cardinality), merged);
    bool cached = hll_cached(bytes, &cardinality);
    assert_true(cached == !((uint8_t)bytes.ptr[15] & 0x80));
    if (hll_encoding_of(bytes) == HLL_SPARSE) {
        assert_int_equal(merged, whole);
        assert_int_equal(hll_describe(bytes, &text), whole);
    }
    buf_append_slice(&copy, bytes);
    for (uint64_t i = 0; i < 20; i++) {
        enum hll_result result =
            hll_add(&copy, slice_of((const char *)&i, sizeof(i)), SPARSE_MAX_BYTES);
        assert_true(result != HLL_CORRUPT || !whole);
        assert_int_equal(hll_check(buf_slice(&copy)), whole);
    }
    if (merged) {
        assert_int_not_equal(hll_raise(&copy, &registers, SPARSE_MAX_BYTES), HLL_CORRUPT);
    }
    assert_int_equal(hll_make_dense(&copy) != HLL_CORRUPT, whole);
    mem_free((void *)(uintptr_t)bytes.ptr);
    buf_deinit(&text);
    buf_deinit(&copy);
}

static void mutate(struct buf *value)
{
    for (uint64_t left = 1 + below(4); left > 0; left--) {
        size_t at =
            below(3) ? HLL_HEAD_BYTES + below(value->len - HLL_HEAD_BYTES) : below(value->len);
        switch (below(4)) {
        case 0:
            value->data[at] = (char)next_random();
            break;
        case 1:
            value->data[at] ^= (char)(1 << below(8));
            break;
        case 2:
            value->len = at > HLL_HEAD_BYTES ? at : value->len;
            break;
        default:
            buf_append(value, "\x7f\xff\x80\xff", 1 + below(4));
            break;
        }
    }
}

static void test_mutations(void **state)
{
    (void)state;
    rng_state = 4;
    for (int round = 0; round < 4000; round++) {
        struct buf value = {0};
        hll_init(&value);
        for (uint64_t left = below(200); left > 0; left--) {
            uint64_t number = next_random();
            assert_int_not_equal(hll_add(&value, slice_of((const char *)&number, 8),
                                         below(50) ? SPARSE_MAX_BYTES : 0),
                                 HLL_CORRUPT);
        }
        mutate(&value);
        use_all(&value);
        buf_deinit(&value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers_of_known_elements),
        cmocka_unit_test(test_an_empty_value),
        cmocka_unit_test(test_against_the_model),
        cmocka_unit_test(test_merge_against_the_model),
        cmocka_unit_test(test_estimates),
        cmocka_unit_test(test_dense_in_place),
        cmocka_unit_test(test_refused_heads),
        cmocka_unit_test(test_corrupt_runs),
        cmocka_unit_test(test_impossible_registers),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
