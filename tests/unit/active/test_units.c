/* Where units stand (active/unit.h): small ones together, and what is given back of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "active/unit.h"
#include "base/buf.h"
#include "base/mem.h"

#include <string.h>

/* A unit of a SET, whose value's length and bytes follow from the number. */
static struct unit *numbered_unit(uint64_t number)
{
    struct buf bytes = {0};
    size_t len = (size_t)(number * number % 1200);
    buf_printf(&bytes, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%zu\r\n", len);
    memset(buf_reserve(&bytes, len), (int)('a' + number % 26), len);
    bytes.len += len;
    buf_append_cstr(&bytes, "\r\n");
    struct unit *u = unit_create(dot_of(number, 1, number), 0, buf_slice(&bytes));
    buf_deinit(&bytes);
    assert_non_null(u);
    return u;
}

static void check_numbered(const struct unit *u, uint64_t number)
{
    struct unit_command c = unit_command_before(u);
    assert_true(dot_sequence(u->dot) == number && unit_command_next(u, &c) && c.argc == 3);
    assert_int_equal(c.argv[2].len, number * number % 1200);
    for (size_t i = 0; i < c.argv[2].len; i++) {
        assert_int_equal(c.argv[2].ptr[i], 'a' + number % 26);
    }
    assert_false(unit_command_next(u, &c));
}

/* Small ones share their memory, and leave in whatever order. */
static void test_units_in_any_order(void **state)
{
    (void)state;
    struct unit *here[301] = {0};
    for (uint64_t number = 1; number <= 6000; number++) {
        uint64_t at = number * (1 + number / 1000) % 301;
        if (here[at]) {
            check_numbered(here[at], dot_sequence(here[at]->dot));
            unit_release(here[at]);
        }
        here[at] = numbered_unit(number);
    }
    for (int i = 0; i < 301; i++) {
        if (here[i]) {
            check_numbered(here[i], dot_sequence(here[i]->dot));
        }
        unit_release(here[i]);
    }
}

/* What they stood in is given back, but for where the next one is put, and where the last one
 * stands: not much beside what is kept. */
static void check_last_unit(struct unit *const *here, int count, size_t before, size_t most)
{
    for (int i = 0; i < count - 1; i++) {
        unit_release(here[i]);
    }
    check_numbered(here[count - 1], (uint64_t)count);
    assert_true(mem_stats().allocated_bytes < before + most);
    unit_release(here[count - 1]);
}

static void test_few_units_keep_little(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    struct unit **here = mem_alloc(COUNT * sizeof(struct unit *));
    for (size_t kept = (size_t)1 << 20; kept <= (size_t)64 << 20; kept *= 64) {
        size_t before = mem_stats().allocated_bytes;
        unit_keep(kept);
        for (uint64_t i = 0; i < COUNT; i++) {
            here[i] = numbered_unit(i + 1);
        }
        check_last_unit(here, COUNT, before, kept / 16);
    }
    unit_keep(SIZE_MAX);
    mem_free(here);
}

/* Of many the memory is all given back, in whatever order they leave. */
static void test_many_units_leave_nothing(void **state)
{
    (void)state;
    enum { COUNT = 40000, STEP = 7919 }; /* a prime: in another order than they came */
    struct unit **here = mem_alloc(COUNT * sizeof(struct unit *));
    size_t before = mem_stats().allocated_bytes;
    for (uint64_t i = 0; i < COUNT; i++) {
        here[i] = numbered_unit(i + 1);
    }
    assert_true(mem_stats().allocated_bytes - before > ((size_t)20 << 20));
    for (uint64_t i = 0, at = 0; i < COUNT; i++, at = (at + STEP) % COUNT) {
        check_numbered(here[at], at + 1);
        unit_release(here[at]);
    }
    assert_true(mem_stats().allocated_bytes < before + ((size_t)1 << 20));
    mem_free(here);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_in_any_order),
        cmocka_unit_test(test_many_units_leave_nothing),
        cmocka_unit_test(test_few_units_keep_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
