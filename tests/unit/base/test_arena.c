/* The bump arena: base/arena.h. AddressSanitizer tells what is not freed or too small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"

#include <string.h>

#define PIECES 2000

static void check_pieces(char *const *pieces, const size_t *sizes, int count)
{
    for (int i = 0; i < count; i++) {
        for (size_t k = 0; k < sizes[i]; k++) {
            assert_int_equal(pieces[i][k], (char)i);
        }
    }
}

static void test_pieces_do_not_overlap(void **state)
{
    (void)state;
    static char *pieces[PIECES];
    static size_t sizes[PIECES];
    struct arena a;
    uint64_t random = 3;
    arena_init(&a, 1024);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < PIECES; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            sizes[i] = (random >> 60 ? random >> 40 & 127 : random >> 40 & 4095);
            pieces[i] = arena_alloc(&a, sizes[i]);
            assert_non_null(pieces[i]);
            assert_true((uintptr_t)pieces[i] % 8 == 0);
            memset(pieces[i], i, sizes[i]);
        }
        check_pieces(pieces, sizes, PIECES);
        arena_reset(&a);
    }
    arena_deinit(&a);
    assert_null(a.chunks);
}

static void test_sizes_about_a_chunk(void **state)
{
    (void)state;
    for (size_t size = 120; size < 140; size++) {
        struct arena a;
        arena_init(&a, 128);
        for (int i = 0; i < 5; i++) {
            memset(arena_alloc(&a, size), 1, size);
            memset(arena_alloc(&a, 1), 2, 1);
        }
        arena_reset(&a);
        memset(arena_alloc(&a, size), 1, size);
        arena_deinit(&a);
    }
}

static void test_nothing_is_something(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 64);
    char *first = arena_alloc(&a, 0);
    assert_non_null(first);
    assert_ptr_not_equal(arena_alloc(&a, 0), first);
    arena_deinit(&a);
    arena_reset(&a);
    arena_deinit(&a);
}

/* The same small requests find the same chunk again. */
static void test_reset_keeps_one_chunk(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 256);
    arena_alloc(&a, 10000);
    char *first = arena_alloc(&a, 8);
    for (int i = 0; i < 100; i++) {
        arena_alloc(&a, 200);
    }
    arena_reset(&a);
    char *again = arena_alloc(&a, 8);
    for (int round = 0; round < 5; round++) {
        arena_alloc(&a, 100);
        arena_alloc(&a, 5000);
        arena_reset(&a);
        assert_ptr_equal(arena_alloc(&a, 8), again);
    }
    (void)first;
    arena_deinit(&a);
}

/* A large request leaves the free room of the current chunk in use. */
static void test_large_requests_waste_no_chunk(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 4096);
    char *before = arena_alloc(&a, 8);
    for (int i = 1; i < 100; i++) {
        memset(arena_alloc(&a, 5000), 1, 5000);
        char *next = arena_alloc(&a, 8);
        assert_ptr_equal(next, before + 8 * i);
    }
    arena_reset(&a);
    assert_ptr_equal(arena_alloc(&a, 8), before);
    arena_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_do_not_overlap),
        cmocka_unit_test(test_sizes_about_a_chunk),
        cmocka_unit_test(test_nothing_is_something),
        cmocka_unit_test(test_reset_keeps_one_chunk),
        cmocka_unit_test(test_large_requests_waste_no_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
