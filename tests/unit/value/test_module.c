/* Values of modules: ids and names of kinds, and what is called of a kind when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "value/module.h"

#include <string.h>

static void test_ids(void **state)
{
    (void)state;
    char name[MODULE_NAME_CHARS + 1];
    uint64_t id = module_kind_id(SLICE("testboxes"), 1);
    assert_true(id == UINT64_C(13108621093216628737));
    module_id_name(id, name);
    assert_string_equal(name, "testboxes");
    assert_int_equal(module_id_version(id), 1);
    id = module_kind_id(SLICE("_________"), MODULE_VERSION_MAX);
    assert_true(id == UINT64_MAX);
    module_id_name(id, name);
    assert_string_equal(name, "_________");
    assert_true(module_kind_id(SLICE("Ab-_09zZa"), 0) != 0);
    assert_true(module_kind_id(SLICE("testboxes"), MODULE_VERSION_MAX + 1) == 0);
    assert_true(module_kind_id(SLICE("testboxes"), -1) == 0);
    assert_true(module_kind_id(SLICE("testboxe"), 1) == 0);
    assert_true(module_kind_id(SLICE("testboxes1"), 1) == 0);
    assert_true(module_kind_id(SLICE("test oxes"), 1) == 0);
    assert_true(module_kind_id(slice_of("testbox\0s", 9), 1) == 0);
}

/* ---- a kind whose values are numbers ---- */

static int destroyed, unlinked;

static void destroy(const struct module_kind *k, void *value)
{
    (void)k;
    destroyed++;
    mem_free(value);
}

static void *make_number(int number)
{
    int *value = mem_alloc(sizeof(*value));
    *value = number;
    return value;
}

/* The sum of the number and the databases; no copy of 0. */
static void *copy(const struct module_kind *k, struct module_place from, struct module_place to,
                  const void *value)
{
    int number = *(const int *)value;
    (void)k;
    assert_true(slice_equal(from.key, SLICE("k")) && slice_equal(to.key, SLICE("copy")));
    return number ? make_number(number + from.db + to.db) : NULL;
}

static size_t memory(const struct module_kind *k, struct module_place at, const void *value,
                     size_t samples)
{
    (void)k;
    return 1000 * (size_t)(at.db + 1) + (size_t) * (const int *)value + samples;
}

static size_t free_effort(const struct module_kind *k, struct module_place at, const void *value)
{
    (void)k;
    (void)at;
    return (size_t) * (const int *)value;
}

static void unlink_number(const struct module_kind *k, struct module_place at, const void *value)
{
    (void)k;
    unlinked += at.db + *(const int *)value;
}

static void digest(const struct module_kind *k, struct module_place at, void *value,
                   uint8_t result[20])
{
    (void)k;
    (void)at;
    result[0] = (uint8_t) * (const int *)value;
}

static const struct module_kind_ops ops = {.destroy = destroy,
                                           .copy = copy,
                                           .memory = memory,
                                           .free_effort = free_effort,
                                           .unlink = unlink_number,
                                           .digest = digest};

static struct module_kind kind = {
    .ops = &ops, .name = "testboxes", .copies = true, .unlinks = true};

static int setup(void **state)
{
    (void)state;
    kind.id = module_kind_id(SLICE("testboxes"), 1);
    destroyed = unlinked = 0;
    module_kind_add(&kind);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    module_kind_remove(&kind);
    return 0;
}

static void test_kinds(void **state)
{
    (void)state;
    struct module_kind other = {.ops = &ops, .name = "testplain"};
    other.id = module_kind_id(SLICE("testplain"), 0);
    module_kind_add(&other);
    assert_ptr_equal(module_kind_first(), &kind);
    assert_ptr_equal(kind.next, &other);
    assert_ptr_equal(module_kind_find(module_kind_id(SLICE("testboxes"), 77)), &kind);
    assert_ptr_equal(module_kind_find_name(SLICE("TESTPLAIN")), &other);
    assert_null(module_kind_find_name(SLICE("testplai")));
    module_kind_remove(&other);
    assert_null(module_kind_find(other.id));
}

static void test_value(void **state)
{
    (void)state;
    uint8_t sum[20];
    struct entry *e = module_value_create(SLICE("k"), &kind, make_number(5));
    const struct value_ops *v = value_ops_of[VALUE_MODULE];
    assert_int_equal(entry_type(e), VALUE_MODULE);
    assert_ptr_equal(module_value_kind(e), &kind);
    assert_int_equal(*(int *)module_value_get(e), 5);
    assert_string_equal(value_type_name(e), "testboxes");
    assert_string_equal(v->encoding(e), "raw");
    assert_int_equal(entry_free_effort(e), 5);
    size_t bytes = entry_memory_bytes(e, 3);
    module_value_db = 2;
    assert_int_equal(entry_memory_bytes(e, 3) - bytes, 3000);
    module_value_db = -1;
    v->digest(e, sum);
    assert_int_equal(sum[0], 5);
    assert_int_equal(sum[19], 0);
    e = entry_with_expiry(e, 99);
    mem_free(module_value_exchange(e, make_number(6)));
    module_value_unlinked(e, 4);
    assert_int_equal(unlinked, 10);
    assert_int_equal(kind.values, 1);
    entry_destroy(&e);
    assert_int_equal(destroyed, 1);
    assert_int_equal(kind.values, 0);
}

static void test_copies(void **state)
{
    (void)state;
    struct entry *e = module_value_create(SLICE("k"), &kind, make_number(5));
    struct entry *c = module_value_copy(e, 1, SLICE("copy"), 7, 1234);
    assert_int_equal(*(int *)module_value_get(c), 13);
    assert_true(entry_expiry_ms(c) == 1234);
    *(int *)module_value_get(e) = 0;
    assert_null(module_value_copy(e, 1, SLICE("copy"), 7, ENTRY_NO_EXPIRY));
    kind.copies = false;
    assert_null(module_value_copy(c, 1, SLICE("copy"), 7, ENTRY_NO_EXPIRY));
    kind.copies = true;
    assert_int_equal(kind.values, 2);
    entry_destroy(&e);
    entry_destroy(&c);
    assert_int_equal(destroyed, 2);
}

/* The module's part goes first, once. */
static void test_dropped(void **state)
{
    (void)state;
    struct entry *e = module_value_create(SLICE("k"), &kind, make_number(5));
    module_value_drop(e);
    assert_int_equal(destroyed, 1);
    assert_int_equal(kind.values, 0);
    entry_destroy(&e);
    assert_int_equal(destroyed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test_setup_teardown(test_kinds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_value, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dropped, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
