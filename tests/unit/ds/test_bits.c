/* Bit operations: ds/bits.h, against loops over single bits, at all alignments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "ds/bits.h"

#include <stdlib.h>
#include <string.h>

/* splitmix64: a fixed sequence for each seed. */
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

static bool bit_at(const uint8_t *bytes, uint64_t position)
{
    return bytes[position / 8] >> (7 - position % 8) & 1;
}

/* Bytes with long runs of zeros and ones, so that words are skipped. */
static void fill(uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t run = 1 + below(30);
        uint64_t kind = below(3);
        for (; run > 0 && i < len; run--) {
            bytes[i++] = (uint8_t)(kind == 0 ? 0 : kind == 1 ? 0xff : next_random());
        }
    }
}

/* Exactly `len` bytes, so that AddressSanitizer sees each step beyond them. */
static uint8_t *exact(size_t len)
{
    uint8_t *bytes = mem_alloc(len);
    fill(bytes, len);
    return bytes;
}

static void test_count_and_find(void **state)
{
    (void)state;
    rng_state = 1;
    for (int round = 0; round < 4000; round++) {
        size_t len = 1 + below(70);
        uint8_t *bytes = exact(len);
        uint64_t first = below(len * 8), last = first + below(len * 8 - first);
        uint64_t count = 0;
        int64_t at[2] = {-1, -1};
        for (uint64_t i = first; i <= last; i++) {
            bool bit = bit_at(bytes, i);
            count += bit;
            at[bit] = at[bit] < 0 ? (int64_t)i : at[bit];
        }
        assert_int_equal(bits_count_range(bytes, first, last), count);
        assert_int_equal(bits_find(bytes, first, last, false), at[0]);
        assert_int_equal(bits_find(bytes, first, last, true), at[1]);
        mem_free(bytes);
    }
}

static void test_count_whole(void **state)
{
    (void)state;
    rng_state = 2;
    for (size_t len = 0; len < 600; len++) {
        uint8_t *bytes = exact(len);
        uint64_t count = 0;
        for (uint64_t i = 0; i < len * 8; i++) {
            count += bit_at(bytes, i);
        }
        assert_int_equal(bits_count(bytes, len), count);
        mem_free(bytes);
    }
}

static void test_fields(void **state)
{
    (void)state;
    rng_state = 3;
    for (unsigned width = 1; width <= 64; width++) {
        for (uint64_t offset = 0; offset < 150; offset++) {
            size_t len = 1 + below(24);
            uint8_t *bytes = exact(len);
            uint64_t expected = 0;
            for (unsigned i = 0; i < width; i++) {
                uint64_t at = offset + i;
                expected = expected << 1 | (at < len * 8 && bit_at(bytes, at));
            }
            assert_true(bits_get_field(bytes, len, offset, width) == expected);
            if (offset + width <= len * 8) {
                uint8_t before[24];
                memcpy(before, bytes, len);
                uint64_t value = next_random();
                bits_set_field(bytes, offset, width, value);
                uint64_t low = width == 64 ? value : value & (((uint64_t)1 << width) - 1);
                assert_true(bits_get_field(bytes, len, offset, width) == low);
                for (uint64_t i = 0; i < len * 8; i++) {
                    bool inside = i >= offset && i < offset + width;
                    assert_true(inside || bit_at(bytes, i) == bit_at(before, i));
                }
            }
            mem_free(bytes);
        }
    }
}

static void test_sign_extension(void **state)
{
    (void)state;
    assert_true(bits_sign_extend(1, 1) == -1);
    assert_true(bits_sign_extend(0, 1) == 0);
    assert_true(bits_sign_extend(0x7f, 8) == 127);
    assert_true(bits_sign_extend(0x80, 8) == -128);
    assert_true(bits_sign_extend(0xfff80, 8) == -128);
    assert_true(bits_sign_extend(UINT64_MAX, 64) == -1);
    assert_true(bits_sign_extend((uint64_t)1 << 63, 64) == INT64_MIN);
}

/* A sum in 128 bits, brought into the range min..max as the policy says. */
static __int128 settled(__int128 sum, __int128 min, __int128 max, enum bits_overflow policy)
{
    if (policy == BITS_OVERFLOW_SATURATE) {
        return sum > max ? max : sum < min ? min : sum;
    }
    __int128 span = max - min + 1;
    sum = (sum - min) % span;
    return (sum < 0 ? sum + span : sum) + min;
}

static int64_t some_number(unsigned width)
{
    const int64_t edges[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1};
    switch (below(3)) {
    case 0:
        return edges[below(7)];
    case 1:
        return bits_sign_extend(next_random(), width);
    default:
        return (int64_t)next_random() >> below(64);
    }
}

static void test_sums(void **state)
{
    (void)state;
    rng_state = 4;
    for (int round = 0; round < 60000; round++) {
        unsigned width = 1 + (unsigned)below(64);
        enum bits_overflow policy = below(2) ? BITS_OVERFLOW_WRAP : BITS_OVERFLOW_SATURATE;
        __int128 max = ((__int128)1 << (width - 1)) - 1;
        int64_t value = some_number(width), increment = some_number(width), sum;
        __int128 exact_sum = (__int128)value + increment;
        bool fits = exact_sum >= -max - 1 && exact_sum <= max;
        assert_true(bits_add_signed(value, increment, width, policy, &sum) == fits);
        bool redis_wraps = !fits && width < 64 && max - value > INT64_MAX;
        if (redis_wraps && policy == BITS_OVERFLOW_SATURATE) {
            assert_true(sum == max);
        } else {
            assert_true(sum == settled(exact_sum, -max - 1, max, policy));
        }
        if (width == 64) {
            continue;
        }
        max = ((__int128)1 << width) - 1;
        uint64_t field = (uint64_t)value & (uint64_t)max, field_sum;
        exact_sum = (__int128)field + increment;
        fits = exact_sum >= 0 && exact_sum <= max;
        assert_true(bits_add_unsigned(field, increment, width, policy, &field_sum) == fits);
        assert_true(field_sum == settled(exact_sum, 0, max, policy));
    }
}

static void test_unsigned_beyond_the_field(void **state)
{
    (void)state;
    uint64_t sum;
    assert_false(bits_add_unsigned((uint64_t)-1, 0, 8, BITS_OVERFLOW_SATURATE, &sum));
    assert_int_equal(sum, 255);
    assert_false(bits_add_unsigned(256, 0, 8, BITS_OVERFLOW_WRAP, &sum));
    assert_int_equal(sum, 0);
    assert_false(bits_add_unsigned(256, -1, 8, BITS_OVERFLOW_FAIL, &sum));
}

static uint8_t combined(enum bits_operation operation, uint8_t a, uint8_t b)
{
    return (uint8_t)(operation == BITS_AND ? a & b : operation == BITS_OR ? a | b : a ^ b);
}

/* min_len: sources as long as that or longer. */
static void check_combine(size_t min_len, size_t max_len, int max_count)
{
    struct slice sources[8];
    int count = 1 + (int)below((uint64_t)max_count);
    size_t len = 0;
    for (int k = 0; k < count; k++) {
        size_t one = min_len + below(max_len - min_len);
        sources[k] = slice_of((const char *)exact(one), one);
        len = one > len ? one : len;
    }
    enum bits_operation operation =
        count == 1 && below(2) ? BITS_NOT : (enum bits_operation)below(3);
    uint8_t *out = mem_alloc(len);
    bits_combine(operation, out, len, sources, count);
    for (size_t i = 0; i < len; i++) {
        uint8_t expected = i < sources[0].len ? (uint8_t)sources[0].ptr[i] : 0;
        for (int k = 1; k < count; k++) {
            uint8_t byte = i < sources[k].len ? (uint8_t)sources[k].ptr[i] : 0;
            expected = combined(operation, expected, byte);
        }
        expected = operation == BITS_NOT ? (uint8_t)~expected : expected;
        assert_int_equal(out[i], expected);
    }
    mem_free(out);
    for (int k = 0; k < count; k++) {
        mem_free((void *)(uintptr_t)sources[k].ptr);
    }
}

static void test_combine(void **state)
{
    (void)state;
    rng_state = 5;
    for (int round = 0; round < 3000; round++) {
        check_combine(0, 60, 8);
    }
    for (int round = 0; round < 20; round++) {
        check_combine(0, 40000, 4);
    }
    for (size_t len = 1; len < 200; len++) {
        for (int round = 0; round < 8; round++) {
            check_combine(len, len + 1, 3);
        }
    }
}

/* Bit i of the string as one number: byte 0 is the least significant. */
static bool number_bit(const uint8_t *bytes, size_t len, int64_t i)
{
    return i >= 0 && (uint64_t)i < len * 8 && (bytes[i / 8] >> (i % 8) & 1);
}

static void test_shifts(void **state)
{
    (void)state;
    rng_state = 6;
    for (int round = 0; round < 3000; round++) {
        size_t len = below(20);
        uint8_t *bytes = exact(len);
        uint64_t by = below(200);
        struct slice source = slice_of((const char *)bytes, len);
        size_t left_len = bits_shifted_left_len(len, by);
        size_t right_len = bits_shifted_right_len(len, by);
        assert_int_equal(left_len, len + (by + 7) / 8);
        assert_int_equal(right_len, by / 8 > len ? 0 : len - by / 8);
        uint8_t *left = mem_alloc(left_len), *right = mem_alloc(right_len);
        bits_shift_left(left, source, by);
        if (right_len > 0) {
            bits_shift_right(right, source, by);
        }
        for (int64_t i = 0; i < (int64_t)left_len * 8; i++) {
            assert_true(number_bit(left, left_len, i) == number_bit(bytes, len, i - (int64_t)by));
        }
        for (int64_t i = 0; i < (int64_t)right_len * 8; i++) {
            assert_true(number_bit(right, right_len, i) == number_bit(bytes, len, i + (int64_t)by));
        }
        mem_free(left);
        mem_free(right);
        mem_free(bytes);
    }
}

/* The example that KeyDB's behaviour was seen by. */
static void test_shift_as_keydb(void **state)
{
    (void)state;
    uint8_t out[2];
    bits_shift_left(out, SLICE("\xaa"), 4);
    assert_int_equal(out[0], 0xa0);
    assert_int_equal(out[1], 0x0a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count_and_find), cmocka_unit_test(test_count_whole),
        cmocka_unit_test(test_fields),         cmocka_unit_test(test_sign_extension),
        cmocka_unit_test(test_sums),           cmocka_unit_test(test_unsigned_beyond_the_field),
        cmocka_unit_test(test_combine),        cmocka_unit_test(test_shifts),
        cmocka_unit_test(test_shift_as_keydb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
