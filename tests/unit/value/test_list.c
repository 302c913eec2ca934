/* The list type: value/list.h, against a naive model, while options and encodings change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "value/list.h"

#include <stdio.h>
#include <string.h>

static void set_option(const char *name, const char *value)
{
    for (const struct option *o = list_options; o->name; o++) {
        if (option_named(o, slice_cstr(name))) {
            struct slice word = slice_cstr(value);
            const char *error = NULL;
            assert_true(option_store(o, &word, 1, &error));
            return;
        }
    }
    fail_msg("no option %s", name);
}

static int reset_options(void **state)
{
    (void)state;
    set_option("list-max-listpack-size", "-2");
    set_option("list-compress-depth", "0");
    return 0;
}

static void push(struct entry *e, enum list_end end, const char *text)
{
    struct slice element = slice_cstr(text);
    list_push(e, end, &element, 1);
}

static void push_many(struct entry *e, const char *text, int count)
{
    for (int i = 0; i < count; i++) {
        push(e, LIST_TAIL, text);
    }
}

static const char *encoding_name(const struct entry *e)
{
    return list_ops.encoding(e);
}

static void assert_content(const struct entry *e, const char *expected)
{
    char text[1000];
    size_t len = 0;
    struct list_cursor c;
    text[0] = 0;
    list_cursor_open(&c, e, 0, false);
    while (list_cursor_next(&c)) {
        struct slice element = list_cursor_get(&c);
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s", len ? " " : "",
                                (int)element.len, element.ptr);
    }
    list_cursor_close(&c);
    assert_string_equal(text, expected);
}

/* ---- encodings ---- */

static void test_grows_into_a_quicklist(void **state)
{
    (void)state;
    char bytes[100];
    memset(bytes, 'x', sizeof(bytes));
    struct slice element = slice_of(bytes, sizeof(bytes));
    struct entry *e = list_create(SLICE("k"), ENTRY_NO_EXPIRY);
    /* 103 bytes each and 7 of the listpack's own; the new one counts with its own bytes only. */
    for (int i = 0; i < 79; i++) {
        list_push(e, LIST_HEAD, &element, 1);
    }
    assert_string_equal(encoding_name(e), "listpack");
    list_push(e, LIST_HEAD, &element, 1);
    assert_string_equal(encoding_name(e), "quicklist");
    assert_int_equal(list_count(e), 80);
    entry_destroy(&e);

    /* All elements of one push count before the first is added. */
    struct slice many[82];
    for (int i = 0; i < 82; i++) {
        many[i] = element;
    }
    e = list_create(SLICE("k"), ENTRY_NO_EXPIRY);
    list_push(e, LIST_TAIL, many, 81);
    assert_string_equal(encoding_name(e), "listpack");
    entry_destroy(&e);
    e = list_create(SLICE("k"), ENTRY_NO_EXPIRY);
    list_push(e, LIST_TAIL, many, 82);
    assert_string_equal(encoding_name(e), "quicklist");
    entry_destroy(&e);
}

static void test_counts_bound_the_listpack(void **state)
{
    (void)state;
    set_option("list-max-ziplist-size", "4");
    struct entry *e = list_create(SLICE("k"), ENTRY_NO_EXPIRY);
    push_many(e, "a", 4);
    assert_string_equal(encoding_name(e), "listpack");
    push(e, LIST_HEAD, "a");
    assert_string_equal(encoding_name(e), "quicklist");
    /* Back at half of it, not before. */
    list_remove_range(e, 0, 2);
    list_shrink(e);
    assert_string_equal(encoding_name(e), "quicklist");
    list_pop(e, LIST_HEAD);
    list_shrink(e);
    assert_string_equal(encoding_name(e), "listpack");
    assert_content(e, "a a");
    entry_destroy(&e);
}

static void test_bytes_bound_the_way_back(void **state)
{
    (void)state;
    char bytes[1001];
    memset(bytes, 'x', 1000);
    bytes[1000] = 0;
    struct entry *e = list_create(SLICE("k"), ENTRY_NO_EXPIRY);
    push_many(e, bytes, 9);
    assert_string_equal(encoding_name(e), "quicklist");
    while (list_count(e) > 5) {
        list_pop(e, LIST_TAIL);
        list_shrink(e);
    }
    assert_string_equal(encoding_name(e), "quicklist");
    list_pop(e, LIST_TAIL);
    list_shrink(e);
    assert_string_equal(encoding_name(e), "listpack");
    /* A large one in the place of a small one. */
    char *large = mem_dup(bytes, 1000);
    struct slice huge = slice_of(mem_calloc(1, 10000), 10000);
    list_replace(e, 1, huge);
    list_shrink(e);
    assert_string_equal(encoding_name(e), "quicklist");
    list_replace(e, 1, SLICE("1"));
    list_shrink(e);
    assert_int_equal(list_count(e), 4);
    mem_free(large);
    mem_free((char *)huge.ptr);
    entry_destroy(&e);
}

/* ---- verbs ---- */

static void verbs(const char *size)
{
    set_option("list-max-listpack-size", size);
    struct entry *e = list_create(SLICE("k"), ENTRY_NO_EXPIRY);
    static const struct slice letters[] = {{"b", 1}, {"c", 1}, {"22", 2}};
    list_push(e, LIST_TAIL, letters, 3);
    list_push(e, LIST_HEAD, letters, 3);
    assert_content(e, "22 c b b c 22");
    list_insert(e, 0, SLICE("first"));
    list_insert(e, 7, SLICE("last"));
    list_insert(e, 3, SLICE("x"));
    assert_content(e, "first 22 c x b b c 22 last");
    list_replace(e, 3, SLICE("-7"));
    assert_content(e, "first 22 c -7 b b c 22 last");
    assert_int_equal(list_remove_equal(e, SLICE("22"), 1, LIST_TAIL), 1);
    assert_content(e, "first 22 c -7 b b c last");
    assert_int_equal(list_remove_equal(e, SLICE("b"), 9, LIST_HEAD), 2);
    assert_int_equal(list_remove_equal(e, SLICE("c"), 1, LIST_HEAD), 1);
    assert_int_equal(list_remove_equal(e, SLICE("nothing"), 9, LIST_HEAD), 0);
    assert_content(e, "first 22 -7 c last");
    list_remove_range(e, 1, 2);
    list_pop(e, LIST_TAIL);
    assert_content(e, "first c");
    list_remove_range(e, 0, 0);
    list_pop(e, LIST_HEAD);
    list_pop(e, LIST_HEAD);
    assert_int_equal(list_count(e), 0);
    assert_content(e, "");
    entry_destroy(&e);
}

static void test_verbs(void **state)
{
    (void)state;
    verbs("-2");
    verbs("1");
    verbs("2");
    verbs("3");
    set_option("list-compress-depth", "1");
    verbs("1");
    verbs("2");
}

/* ---- operations of the type ---- */

static void test_digest_and_copy_do_not_see_the_encoding(void **state)
{
    (void)state;
    uint8_t small[20], large[20], copied[20], other[20];
    struct entry *e = list_create(SLICE("k"), ENTRY_NO_EXPIRY);
    push_many(e, "12", 20);
    push_many(e, "abc", 20);
    list_ops.digest(e, small);
    set_option("list-max-listpack-size", "3");
    set_option("list-compress-depth", "1");
    struct entry *q = list_create(SLICE("k"), ENTRY_NO_EXPIRY);
    push_many(q, "12", 20);
    push_many(q, "abc", 20);
    assert_string_equal(encoding_name(q), "quicklist");
    list_ops.digest(q, large);
    assert_memory_equal(small, large, 20);
    struct entry *copy = entry_copy(q, SLICE("l"), ENTRY_NO_EXPIRY);
    list_pop(q, LIST_TAIL);
    list_ops.digest(copy, copied);
    list_ops.digest(q, other);
    assert_memory_equal(copied, large, 20);
    assert_memory_not_equal(other, large, 20);
    /* Where one element ends and the next begins counts. */
    struct entry *a = list_create(SLICE("k"), ENTRY_NO_EXPIRY);
    struct entry *b = entry_copy(a, SLICE("k"), ENTRY_NO_EXPIRY);
    push(a, LIST_TAIL, "ab");
    push(a, LIST_TAIL, "c");
    push(b, LIST_TAIL, "a");
    push(b, LIST_TAIL, "bc");
    list_ops.digest(a, copied);
    list_ops.digest(b, other);
    assert_memory_not_equal(copied, other, 20);
    assert_int_equal(list_ops.free_effort(a), 1);
    assert_true(list_ops.free_effort(copy) > 10);
    assert_true(list_ops.memory(copy, 0) > list_ops.memory(a, 0));
    struct entry *all[] = {e, q, copy, a, b};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        entry_destroy(&all[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_grows_into_a_quicklist, reset_options),
        cmocka_unit_test_setup(test_counts_bound_the_listpack, reset_options),
        cmocka_unit_test_setup(test_bytes_bound_the_way_back, reset_options),
        cmocka_unit_test_setup(test_verbs, reset_options),
        cmocka_unit_test_setup(test_digest_and_copy_do_not_see_the_encoding, reset_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
