/* The benchmark's request templates and the catalogue of tests that they are built from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/benchmark/catalogue.h"
#include "tools/benchmark/request.h"

static void expect_bytes(const struct bench_request *request, const char *bytes)
{
    assert_int_equal(request->len, strlen(bytes));
    assert_memory_equal(request->bytes, bytes, request->len);
}

static void digits_have_leading_zeros(void **state)
{
    (void)state;
    static const struct {
        uint64_t number;
        const char *digits;
    } rows[] = {{0, "000000000000"},
                {7, "000000000007"},
                {1000000, "000001000000"},
                {999999, "000000999999"},
                {123456789012, "123456789012"},
                {BENCH_KEYSPACE_MAX - 1, "999999999999"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[BENCH_SLOT_LEN + 1] = {0};
        bench_request_digits(text, rows[i].number);
        assert_string_equal(text, rows[i].digits);
    }
}

static void a_pipeline_repeats_command_and_slots(void **state)
{
    (void)state;
    static const char *const argv[] = {"GET", "key:" BENCH_SLOT_TEXT};
    static const size_t lens[] = {3, 16};
    struct bench_request request;
    assert_int_equal(bench_request_build(&request, 2, argv, lens, 3, 1), 0);
    assert_int_equal(request.pipeline, 3);
    assert_int_equal(request.len, 3 * request.single_len);
    assert_int_equal(request.slot_count, 3);
    for (size_t i = 0; i < 3; i++) {
        bench_request_digits(request.bytes + request.slots[i], i);
    }
    expect_bytes(&request, "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000000\r\n"
                           "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000001\r\n"
                           "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000002\r\n");
    struct bench_request copy;
    assert_int_equal(bench_request_copy(&copy, &request), 0);
    assert_ptr_not_equal(copy.bytes, request.bytes);
    assert_memory_equal(copy.bytes, request.bytes, request.len);
    assert_memory_equal(copy.slots, request.slots, 3 * sizeof(request.slots[0]));
    bench_request_deinit(&copy);
    bench_request_deinit(&request);
    assert_null(request.bytes);
}

static void without_patching_the_text_stays(void **state)
{
    (void)state;
    static const char *const argv[] = {"GET", BENCH_SLOT_TEXT};
    static const size_t lens[] = {3, BENCH_SLOT_LEN};
    struct bench_request request;
    assert_int_equal(bench_request_build(&request, 2, argv, lens, 1, 0), 0);
    assert_int_equal(request.slot_count, 0);
    expect_bytes(&request, "*2\r\n$3\r\nGET\r\n$12\r\n__rand_int__\r\n");
    bench_request_deinit(&request);
}

static void a_pipeline_over_the_limit_is_refused(void **state)
{
    (void)state;
    struct bench_request request;
    char text[2048];
    memset(text, 'x', sizeof(text));
    assert_int_equal(bench_request_build_raw(&request, text, sizeof(text), 1u << 20, 0), -1);
    assert_null(request.bytes);
}

/* What lies in the file is what is sent from memory, and no slot is in the part that is sent from
 * it. */
static void a_large_tail_lies_in_a_file(void **state)
{
    (void)state;
    static char text[BENCH_FILE_MIN + 100];
    memset(text, 'x', sizeof(text));
    memcpy(text + 40, BENCH_SLOT_TEXT, BENCH_SLOT_LEN);
    struct bench_request request;
    assert_int_equal(bench_request_build_raw(&request, text, sizeof(text), 1, 1), 0);
    assert_true(request.file >= 0);
    assert_int_equal(request.file_from, 40 + BENCH_SLOT_LEN);
    struct bench_request copy;
    assert_int_equal(bench_request_copy(&copy, &request), 0);
    assert_true(copy.file >= 0 && copy.file != request.file);
    bench_request_deinit(&request);
    static char seen[sizeof(text)];
    assert_int_equal(pread(copy.file, seen, sizeof(seen), 0), sizeof(seen));
    assert_memory_equal(seen, text, sizeof(text));
    bench_request_deinit(&copy);
    assert_int_equal(copy.file, -1);
}

static void a_short_tail_lies_in_none(void **state)
{
    (void)state;
    static char text[BENCH_FILE_MIN];
    memset(text, 'x', sizeof(text));
    memcpy(text, BENCH_SLOT_TEXT, BENCH_SLOT_LEN);
    struct bench_request request;
    assert_int_equal(bench_request_build_raw(&request, text, sizeof(text), 1, 1), 0);
    assert_int_equal(request.file, -1);
    bench_request_deinit(&request);
    assert_int_equal(bench_request_build_raw(&request, text, sizeof(text), 1, 0), 0);
    assert_true(request.file >= 0);
    assert_int_equal(request.file_from, 0);
    bench_request_deinit(&request);
}

static void expand_check(const char *text, const char *data, const char *expected)
{
    size_t len = 0;
    char *expanded = bench_request_expand(text, strlen(text), data, strlen(data), &len);
    assert_non_null(expanded);
    assert_int_equal(len, strlen(expected));
    assert_string_equal(expanded, expected);
    free(expanded);
}

static void data_marks_are_replaced(void **state)
{
    (void)state;
    expand_check("", "abc", "");
    expand_check("plain", "abc", "plain");
    expand_check("__data__", "abc", "abc");
    expand_check("a__data__b__data__", "xy", "axybxy");
    expand_check("__data__", "", "");
    expand_check("__data_", "abc", "__data_");
    expand_check("__data____data__", "__data__", "__data____data__");
}

static const struct bench_test *find(const char *name)
{
    const struct bench_test *test = bench_catalogue_find(name);
    assert_non_null(test);
    return test;
}

static void each_named_test_is_there(void **state)
{
    (void)state;
    static const char *const names[] = {
        "ping_inline", "ping_mbulk", "set",  "get",  "incr", "lpush",   "rpush",      "lpop",
        "rpop",        "sadd",       "hset", "spop", "zadd", "zpopmin", "lrange_100", "lrange_300",
        "lrange_500",  "lrange_600", "mset", "xadd", "mget", "hmset",   "hmget",      "GET"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        find(names[i]);
        size_t len;
        assert_null(bench_catalogue_unknown(names[i], &len));
    }
    assert_null(bench_catalogue_find("nosuch"));
}

static void a_selection_takes_names_and_groups(void **state)
{
    (void)state;
    assert_true(bench_catalogue_selects(NULL, find("get")));
    assert_true(bench_catalogue_selects("set,GET", find("get")));
    assert_false(bench_catalogue_selects("mget", find("get")));
    assert_true(bench_catalogue_selects("ping", find("ping_inline")));
    assert_true(bench_catalogue_selects("ping", find("ping_mbulk")));
    assert_true(bench_catalogue_selects("lrange", find("lrange_600")));
    /* The list must be filled before any of its ranges is measured. */
    const struct bench_test *filler = find("lrange_100") - 1;
    assert_string_equal(filler->title, "LPUSH (needed to benchmark LRANGE)");
    assert_true(bench_catalogue_selects("lrange_500", filler));
    assert_false(bench_catalogue_selects("lpush", filler));
    size_t len = 0;
    const char *unknown = bench_catalogue_unknown("get,nosuch,set", &len);
    assert_non_null(unknown);
    assert_int_equal(len, 6);
    assert_memory_equal(unknown, "nosuch", 6);
}

static void tests_send_what_their_title_says(void **state)
{
    (void)state;
    const struct bench_fill fixed = {.data = "abc", .data_len = 3, .random = false, .pipeline = 1};
    const struct bench_fill random = {.data = "abc", .data_len = 3, .random = true, .pipeline = 2};
    struct bench_request request;
    assert_int_equal(bench_catalogue_build(find("ping_inline"), &fixed, &request), 0);
    expect_bytes(&request, "PING\r\n");
    bench_request_deinit(&request);
    assert_int_equal(bench_catalogue_build(find("set"), &fixed, &request), 0);
    expect_bytes(&request, "*3\r\n$3\r\nSET\r\n$16\r\nkey:__rand_int__\r\n$3\r\nabc\r\n");
    bench_request_deinit(&request);
    assert_int_equal(bench_catalogue_build(find("zadd"), &fixed, &request), 0);
    assert_non_null(memmem(request.bytes, request.len, "$1\r\n0\r\n", 7));
    bench_request_deinit(&request);
    assert_int_equal(bench_catalogue_build(find("zadd"), &random, &request), 0);
    assert_int_equal(request.slot_count, 4);
    bench_request_deinit(&request);
    assert_int_equal(bench_catalogue_build(find("mset"), &random, &request), 0);
    assert_int_equal(request.slot_count, 20);
    assert_memory_equal(request.bytes, "*21\r\n", 5);
    bench_request_deinit(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_have_leading_zeros),
        cmocka_unit_test(a_pipeline_repeats_command_and_slots),
        cmocka_unit_test(without_patching_the_text_stays),
        cmocka_unit_test(a_pipeline_over_the_limit_is_refused),
        cmocka_unit_test(a_large_tail_lies_in_a_file),
        cmocka_unit_test(a_short_tail_lies_in_none),
        cmocka_unit_test(data_marks_are_replaced),
        cmocka_unit_test(each_named_test_is_there),
        cmocka_unit_test(a_selection_takes_names_and_groups),
        cmocka_unit_test(tests_send_what_their_title_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
