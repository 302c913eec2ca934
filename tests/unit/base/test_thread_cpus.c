/* Lists of cores. */
#include "base/thread_cpus.h"

#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The cores below 64 as bits. */
static uint64_t bits_of(const cpu_set_t *cores)
{
    uint64_t bits = 0;
    for (int i = 0; i < 64; i++) {
        bits |= (uint64_t)(CPU_ISSET(i, cores) != 0) << i;
    }
    return bits;
}

static void test_lists(void **state)
{
    static const struct {
        const char *text;
        uint64_t bits;
    } good[] = {{"0", 1},        {"3", 8},        {"0,2", 5},        {"0-3", 15},
                {"0-7:2", 0x55}, {"1-1", 2},      {"0-0:9", 1},      {"0,2-5,8-15:3", 0x493d},
                {"5,5,5", 32},   {"0-6:6", 0x41}, {"63", 1ull << 63}};
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        cpu_set_t cores;
        assert_true(thread_cpus_parse(slice_cstr(good[i].text), &cores));
        assert_int_equal(bits_of(&cores), good[i].bits);
    }
}

static void test_what_is_no_list(void **state)
{
    static const char *const bad[] = {"",
                                      ",",
                                      "0,",
                                      ",0",
                                      "a",
                                      "0-",
                                      "-1",
                                      "-",
                                      "3-1",
                                      "1:2",
                                      "0-7:0",
                                      "0-7:",
                                      "0-7:x",
                                      "0 1",
                                      "0-7:-1",
                                      "1024",
                                      "0-1024",
                                      "0--1",
                                      "0,,1",
                                      "0-1-2",
                                      ":2",
                                      "1e1",
                                      "+1",
                                      "0x1",
                                      "9223372036854775807",
                                      "0-9223372036854775807:9223372036854775807"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cpu_set_t cores;
        assert_false(thread_cpus_parse(slice_cstr(bad[i]), &cores));
    }
}

static void test_a_large_step_ends(void **state)
{
    cpu_set_t cores;
    (void)state;
    assert_true(thread_cpus_parse(SLICE("1-1023:9223372036854775807"), &cores));
    assert_int_equal(CPU_COUNT(&cores), 1);
    assert_true(thread_cpus_parse(SLICE("0-1023"), &cores));
    assert_int_equal(CPU_COUNT(&cores), 1024);
}

static void test_nothing_is_confined_without_lists(void **state)
{
    cpu_set_t cores;
    (void)state;
    thread_cpus_setup();
    assert_false(thread_cpus_of(THREAD_WORK_SERVER, &cores));
    assert_false(thread_cpus_of(THREAD_WORK_BACKGROUND, &cores));
    assert_int_equal(thread_cpus_confine(THREAD_WORK_SERVER), 0);
    thread_cpus_teardown();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_what_is_no_list),
        cmocka_unit_test(test_a_large_step_ends),
        cmocka_unit_test(test_nothing_is_confined_without_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
