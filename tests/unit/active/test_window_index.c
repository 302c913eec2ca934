/* The window's index beside a plain list of the same effects. */
#include "active/window_index.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define EFFECTS 300000
#define KEYS 50

static struct unit *unit;
/* By number. */
static struct {
    uint64_t hash, stamp;
    bool here;
} plain[EFFECTS];
static uint64_t end;

static int setup(void **state)
{
    (void)state;
    rand_set_seed(1);
    end = 0;
    unit = unit_create(dot_of(1, 1, 1), 0, SLICE("*1\r\n$4\r\nPING\r\n"));
    return unit ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    unit_release(unit);
    return 0;
}

/* Hashes of which some share their last bits, and some nothing. */
static uint64_t hash_of(uint64_t key)
{
    return key % 2 ? key << 40 | 77 : key * UINT64_C(0x9e3779b97f4a7c15);
}

static void add(struct window_index *x)
{
    uint64_t stamp = end + rand_below(5);
    plain[end].hash = hash_of(rand_below(KEYS));
    plain[end].stamp = stamp;
    plain[end].here = true;
    assert_true(x->next == end);
    if (!window_index_has_room(x)) {
        window_index_make_room(x);
    }
    struct window_effect *e = window_index_add(x, plain[end].hash, stamp);
    assert_true(e->hash == plain[end].hash && e->cover == NULL && e->latest >= stamp);
    e->unit = unit;
    e->members = end++; /* which one it is */
    if (rand_below(10) == 0) {
        e->cover = mem_calloc(1, 16);
    }
}

static void take_out(struct window_index *x, uint64_t number)
{
    const struct window_effect *e = window_index_at(x, number);
    assert_true((e != NULL) == plain[number].here);
    if (e) {
        assert_true(e->members == number);
        window_index_remove(x, number);
        plain[number].here = false;
    }
}

/* From the last that came on, each of that hash once, and what `latest` says is so. */
static void check_walk(const struct window_index *x, uint64_t hash, uint64_t from)
{
    struct window_walk walk = window_walk_begin(x, hash);
    uint64_t latest = UINT64_MAX;
    for (uint64_t n = end; n-- > from;) {
        if (!plain[n].here || plain[n].hash != hash) {
            continue;
        }
        const struct window_effect *e = window_walk_next(&walk);
        assert_non_null(e);
        assert_true(e->members == n && e->latest <= latest && e->latest >= plain[n].stamp);
        latest = e->latest;
    }
    assert_true(from > 0 || window_walk_next(&walk) == NULL);
}

static void check_row(const struct window_index *x)
{
    uint64_t number = 0, here = 0;
    for (uint64_t n = 0; n < end; n++) {
        here += plain[n].here;
    }
    assert_true(x->here == here);
    for (uint64_t n = 0; n < end; n++) {
        if (plain[n].here) {
            const struct window_effect *e = window_index_from(x, &number);
            assert_true(e && number == n && e->members == n);
            number++;
        }
    }
    assert_null(window_index_from(x, &number));
}

static void check_all(const struct window_index *x)
{
    for (uint64_t key = 0; key < KEYS; key++) {
        check_walk(x, hash_of(key), 0);
    }
    check_row(x);
}

/* Out of the front, as writes become stable; now and then a stretch that is younger goes first. */
static void test_rows_of_all_lengths(void **state)
{
    static const uint64_t lengths[] = {3, 600, 5000, 100, 150000, 20000, 0, 1, 1000, 0};
    struct window_index x = {0};
    uint64_t first = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        while (end - first < lengths[i]) {
            add(&x);
        }
        for (uint64_t n = end - (end - first) / 3; n < end && rand_below(2); n++) {
            take_out(&x, n);
        }
        for (; end - first > lengths[i]; first++) {
            take_out(&x, first);
        }
        window_index_trim(&x);
        check_all(&x);
    }
    assert_true(x.here == 0 && x.count <= 1);
    window_index_deinit(&x);
    assert_true(x.next == 0);
}

/* What a small row does all the time is done in place. */
static void test_a_small_row_stays_small(void **state)
{
    struct window_index x = {0};
    (void)state;
    for (int i = 0; i < 100000; i++) {
        add(&x);
        if (end > 20) {
            take_out(&x, end - 21);
            window_index_trim(&x);
        }
    }
    assert_true(x.count <= 2 && x.here == 20);
    check_walk(&x, hash_of(1), end - 20);
    window_index_deinit(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows_of_all_lengths, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_small_row_stays_small, setup, teardown),
    };
    hash_set_secret(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
