/* Lookups that are known ahead: ds/table_ahead.h. What is asked for cannot be seen from here, but
 * where it was looked for can. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "ds/table_ahead.h"

#include <string.h>

struct item {
    uint64_t hash;
    uint64_t id;
} ALIGNED(16);

static uint64_t item_hash(const void *entry)
{
    return ((const struct item *)entry)->hash;
}

static bool item_has_id(const void *entry, const void *key)
{
    return ((const struct item *)entry)->id == *(const uint64_t *)key;
}

static uint64_t mix(uint64_t z)
{
    z = (z + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static struct item *create_items(uint64_t count, uint64_t hash_mask)
{
    struct item *items = mem_alloc_aligned(16, count * sizeof(*items));
    for (uint64_t i = 0; i < count; i++) {
        items[i] = (struct item){.hash = mix(i) & hash_mask, .id = i};
    }
    return items;
}

static void look_ahead(const struct table *t, struct table_ahead *a, uint64_t hash)
{
    table_ahead_begin(a, t, hash);
    assert_null(a->bucket);
    table_ahead_row(a);
    table_ahead_bucket(a);
    table_ahead_entries(a);
}

/* All steps go to the bucket where the lookup begins, whatever the table's size. */
static void looks_where_lookups_look(uint64_t count, uint64_t hash_mask)
{
    struct table t;
    struct table_ahead a;
    struct item *items = create_items(count, hash_mask);
    table_init(&t, item_hash);
    for (uint64_t i = 0; i < count; i++) {
        look_ahead(&t, &a, items[i].hash); /* of what is not there yet */
        assert_ptr_equal(a.bucket, table_bucket_of(&t, items[i].hash));
        assert_ptr_equal(a.table, &t);
        table_insert(&t, items[i].hash, (uintptr_t)&items[i]);
    }
    struct table_bucket before;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&before, table_bucket_of(&t, items[i].hash), sizeof(before));
        look_ahead(&t, &a, items[i].hash);
        assert_ptr_equal(a.bucket, table_bucket_of(&t, items[i].hash));
        assert_memory_equal(&before, a.bucket, sizeof(before)); /* nothing is changed */
    }
    assert_int_equal(t.count, count);
    table_check(&t);
    table_deinit(&t, NULL, NULL);
    mem_free(items);
}

static void test_looks_where_lookups_look(void **state)
{
    (void)state;
    looks_where_lookups_look(1, UINT64_MAX);
    looks_where_lookups_look(7, UINT64_MAX);
    looks_where_lookups_look(20000, UINT64_MAX);
}

static void test_bears_long_chains(void **state)
{
    (void)state;
    looks_where_lookups_look(100, 0);
    looks_where_lookups_look(2000, (uint64_t)0xffff << 48);
}

/* Slots need not hold addresses (value/set_element.h). */
static uint64_t number_hash(const void *entry)
{
    return mix((uintptr_t)entry >> 4);
}

static void test_bears_slots_that_are_no_addresses(void **state)
{
    (void)state;
    struct table t;
    struct table_ahead a;
    table_init(&t, number_hash);
    for (uintptr_t i = 1; i <= 3000; i++) {
        uintptr_t slot = (uintptr_t)1 << 63 | mix(i) << 4;
        table_insert(&t, number_hash((void *)slot), slot);
        look_ahead(&t, &a, number_hash((void *)slot));
    }
    table_deinit(&t, NULL, NULL);
}

/* What was found ahead is void after a change, and nobody needs it: the lookup begins anew. */
static void test_lookups_after_a_change_begin_anew(void **state)
{
    (void)state;
    enum { ITEMS = 4000, AHEAD = 128 };
    struct table t;
    struct table_ahead ahead[AHEAD];
    struct item *items = create_items(ITEMS, UINT64_MAX);
    table_init(&t, item_hash);
    for (uint64_t i = 0; i < ITEMS; i++) {
        table_insert(&t, items[i].hash, (uintptr_t)&items[i]);
    }
    for (uint64_t i = 0; i < AHEAD; i++) {
        table_ahead_begin(&ahead[i], &t, items[i].hash);
    }
    for (uint64_t i = 0; i < AHEAD; i++) {
        table_ahead_bucket(&ahead[i]);
    }
    for (uint64_t i = 0; i < AHEAD; i++) {
        table_ahead_entries(&ahead[i]);
    }
    for (uint64_t i = 0; i < ITEMS; i++) { /* merges segments: the buckets found are freed */
        if (i % 64 != 1) {
            table_remove(&t, items[i].hash,
                         table_find(&t, items[i].hash, item_has_id, &items[i].id));
        }
    }
    for (uint64_t i = 0; i < AHEAD; i++) {
        uintptr_t *slot = table_find(&t, items[i].hash, item_has_id, &items[i].id);
        assert_int_equal(slot != NULL, i % 64 == 1);
    }
    table_deinit(&t, NULL, NULL);
    mem_free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_looks_where_lookups_look),
        cmocka_unit_test(test_bears_long_chains),
        cmocka_unit_test(test_bears_slots_that_are_no_addresses),
        cmocka_unit_test(test_lookups_after_a_change_begin_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
