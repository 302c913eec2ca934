/* Random numbers: base/rand.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"

#include <pthread.h>
#include <string.h>

static void test_below_is_uniform(void **state)
{
    (void)state;
    enum { FACES = 7, THROWS = 70000 };
    unsigned count[FACES] = {0};
    for (int i = 0; i < THROWS; i++) {
        uint64_t face = rand_below(FACES);
        assert_in_range(face, 0, FACES - 1);
        count[face]++;
    }
    /* 10,000 expected, standard deviation 93: ten of them. */
    for (int i = 0; i < FACES; i++) {
        assert_in_range(count[i], 9000, 11000);
    }
    assert_int_equal(rand_below(1), 0);
    for (int i = 0; i < 1000; i++) {
        assert_true(rand_below((1ULL << 63) + 1) <= 1ULL << 63);
        (void)rand_below(UINT64_MAX);
    }
}

static void test_every_bit_moves(void **state)
{
    (void)state;
    uint64_t ones = 0, zeros = 0;
    for (int i = 0; i < 200; i++) {
        uint64_t word = rand_u64();
        ones |= word;
        zeros |= ~word;
    }
    assert_true(ones == UINT64_MAX);
    assert_true(zeros == UINT64_MAX);
}

static void *draw(void *out)
{
    for (int i = 0; i < 4; i++) {
        ((uint64_t *)out)[i] = rand_u64();
    }
    return NULL;
}

static void test_threads_draw_different_numbers(void **state)
{
    (void)state;
    uint64_t mine[4], theirs[4];
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, draw, theirs), 0);
    draw(mine);
    pthread_join(thread, NULL);
    assert_memory_not_equal(mine, theirs, sizeof(mine));
}

static void test_hex(void **state)
{
    (void)state;
    char first[82], second[82];
    memset(first, 'z', sizeof(first));
    rand_hex(first, 81);
    rand_hex(second, 81);
    for (int i = 0; i < 81; i++) {
        assert_non_null(memchr("0123456789abcdef", first[i], 16));
    }
    assert_int_equal(first[81], 'z');
    assert_memory_not_equal(first, second, 81);
    rand_hex(first, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_below_is_uniform),
        cmocka_unit_test(test_every_bit_moves),
        cmocka_unit_test(test_threads_draw_different_numbers),
        cmocka_unit_test(test_hex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
