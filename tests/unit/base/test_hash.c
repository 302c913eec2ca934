/* The keyed hash: base/hash.h. Its quality is what keeps the table's buckets even. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fix_secret(void **state)
{
    (void)state;
    hash_set_secret(1);
    return 0;
}

static void test_depends_on_bytes_and_secret_only(void **state)
{
    (void)state;
    char text[] = "a key of some length, longer than two words";
    for (size_t len = 0; len < sizeof(text); len++) {
        /* From an allocation of exactly this length, at another alignment: reading beyond is seen
         * (ASan). */
        char *copy = mem_alloc(len + 1);
        memcpy(copy + 1, text, len);
        uint64_t hash = hash_bytes(text, len);
        assert_true(hash_bytes(copy + 1, len) == hash);
        assert_true(hash_slice(slice_of(copy + 1, len)) == hash);
        hash_set_secret(2);
        assert_true(hash_bytes(text, len) != hash);
        hash_set_secret(1);
        assert_true(hash_bytes(text, len) == hash);
        mem_free(copy);
    }
    assert_true(hash_bytes(NULL, 0) == hash_bytes(text, 0));
}

static void test_secrets_are_drawn(void **state)
{
    (void)state;
    hash_setup();
    uint64_t first = hash_bytes("key", 3);
    hash_setup();
    assert_true(hash_bytes("key", 3) != first);
    for (int i = 0; i < 4; i++) {
        assert_true(hash_secret.word[i] != 0);
    }
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void assert_all_different(uint64_t *hashes, size_t count)
{
    qsort(hashes, count, sizeof(*hashes), compare_u64);
    for (size_t i = 1; i < count; i++) {
        assert_true(hashes[i] != hashes[i - 1]);
    }
}

/* All keys of up to two bytes, and runs of zeros of every length. */
static void test_short_keys_differ(void **state)
{
    (void)state;
    static uint64_t hashes[1 + 256 + 65536 + 300];
    static const char zeros[400];
    size_t count = 0;
    hashes[count++] = hash_bytes("", 0);
    for (int a = 0; a < 256; a++) {
        char key[2] = {(char)a, 0};
        hashes[count++] = hash_bytes(key, 1);
        for (int b = 0; b < 256; b++) {
            key[1] = (char)b;
            hashes[count++] = hash_bytes(key, 2);
        }
    }
    for (size_t len = 3; len < 303; len++) {
        hashes[count++] = hash_bytes(zeros, len);
    }
    assert_all_different(hashes, count);
}

/* Flipping any bit of a key flips about half of the hash's bits, each of them about as often. */
static void test_every_bit_counts(void **state)
{
    (void)state;
    static const size_t lengths[] = {1,  2,  3,  4,  5,  7,  8,  9,  12, 15,
                                     16, 17, 24, 31, 32, 33, 48, 64, 65, 100};
    uint64_t random = 7;
    for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
        size_t len = lengths[l];
        for (size_t bit = 0; bit < 8 * len; bit++) {
            unsigned flipped = 0;
            for (int round = 0; round < 64; round++) {
                char key[100];
                for (size_t i = 0; i < len; i++) {
                    random = random * 6364136223846793005u + 1442695040888963407u;
                    key[i] = (char)(random >> 33);
                }
                uint64_t before = hash_bytes(key, len);
                key[bit / 8] ^= (char)(1 << bit % 8);
                flipped += (unsigned)__builtin_popcountll(before ^ hash_bytes(key, len));
            }
            /* 64 * 32 expected, deviation 32: these bounds are more than 12 deviations off. */
            assert_in_range(flipped, 64 * 32 - 400, 64 * 32 + 400);
        }
    }
}

/* Chi-square of counts that should be even; generous: twice its expectation, which is `cells`. */
static void assert_even(const uint32_t *counts, size_t cells, size_t total)
{
    double mean = (double)total / (double)cells, sum = 0;
    for (size_t i = 0; i < cells; i++) {
        double off = counts[i] - mean;
        sum += off * off / mean;
    }
    assert_true(sum < 2 * (double)cells);
}

/* Keys as applications name them: high bits (the table's place) and low bits (its fingerprint) are
 * even. */
static void test_usual_keys_spread(void **state)
{
    (void)state;
    static const char *const formats[] = {
        "%d", "key:%d", "key:%012d", "user:%d:profile:settings:theme",
        "%d:a long suffix that is the same for every one of the keys"};
    for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++) {
        static uint32_t high[1024], low[256];
        memset(high, 0, sizeof(high));
        memset(low, 0, sizeof(low));
        for (int i = 0; i < 100000; i++) {
            char key[100];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            int len = snprintf(key, sizeof(key), formats[f], i);
#pragma GCC diagnostic pop
            uint64_t hash = hash_bytes(key, (size_t)len);
            high[hash >> 54]++;
            low[hash & 0xff]++;
        }
        assert_even(high, 1024, 100000);
        assert_even(low, 256, 100000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_depends_on_bytes_and_secret_only, fix_secret),
        cmocka_unit_test_setup(test_secrets_are_drawn, fix_secret),
        cmocka_unit_test_setup(test_short_keys_differ, fix_secret),
        cmocka_unit_test_setup(test_every_bit_counts, fix_secret),
        cmocka_unit_test_setup(test_usual_keys_spread, fix_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
