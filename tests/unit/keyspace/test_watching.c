/* Watched keys: keyspace/watching.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keyspace/fixture.h"

#include "keyspace/event.h"
#include "keyspace/reclaim.h"
#include "keyspace/watching.h"

#include <stdio.h>
#include <string.h>

#define NOW 1700000000000

static int setup(void **state)
{
    fixture_enter(state);
    db_setup(3);
    watching_setup();
    return 0;
}

static int teardown(void **state)
{
    watching_teardown();
    db_teardown();
    return fixture_leave(state);
}

static void watch(struct watch_set *watches, struct db *db, const char *name, int64_t now_ms)
{
    struct key key = key_of(slice_cstr(name));
    keyspace_lock_exclusive();
    watching_add(watches, db, &key, now_ms);
    keyspace_unlock_exclusive();
}

static void clear(struct watch_set *watches)
{
    keyspace_lock_exclusive();
    watching_clear(watches);
    keyspace_unlock_exclusive();
    assert_int_equal(watches->count, 0);
    assert_int_equal(watches->bytes, 0);
    assert_false(watching_is_dirty(watches));
}

static bool changed(const struct watch_set *watches, int64_t now_ms)
{
    keyspace_lock_shared();
    bool result = watching_has_changed(watches, now_ms);
    keyspace_unlock_shared();
    return result;
}

static void tell(struct db *db, const char *name)
{
    keyspace_lock_exclusive();
    event_key_changed(db, slice_cstr(name));
    keyspace_unlock_exclusive();
}

/* What commands do: the change, then the word of it. */
static void set(struct db *db, const char *name, int64_t expiry_ms)
{
    fixture_set(db, name, "v", expiry_ms, NOW);
    tell(db, name);
}

static void del(struct db *db, const char *name, int64_t now_ms)
{
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, name, now_ms);
    if (db_delete(&ref, false)) {
        event_key_changed(db, ref.key.name);
    }
    keyspace_unlock_exclusive();
    reclaim_run();
}

static void flush(struct db *db)
{
    keyspace_lock_exclusive();
    db_flush(db, false);
    keyspace_unlock_exclusive();
    reclaim_run();
}

static void swap(struct db *a, struct db *b)
{
    keyspace_lock_exclusive();
    db_swap(a, b);
    keyspace_unlock_exclusive();
}

static void empty(void)
{
    for (int i = 0; i < db_count(); i++) {
        flush(db_at(i));
    }
}

static void test_a_set_learns_of_its_keys_only(void **state)
{
    struct watch_set one = {0}, two = {0};
    struct db *db = db_at(0), *other = db_at(1);
    (void)state;
    set(db, "a", ENTRY_NO_EXPIRY);
    watch(&one, db, "a", NOW);
    watch(&two, db, "b", NOW);
    watch(&two, other, "a", NOW);
    set(db, "c", ENTRY_NO_EXPIRY);
    set(other, "b", ENTRY_NO_EXPIRY);
    assert_false(changed(&one, NOW));
    assert_false(changed(&two, NOW));
    set(db, "a", ENTRY_NO_EXPIRY);
    assert_true(changed(&one, NOW));
    assert_true(watching_is_dirty(&one));
    assert_false(changed(&two, NOW));
    set(other, "a", ENTRY_NO_EXPIRY);
    assert_true(changed(&two, NOW));
    clear(&one);
    set(db, "a", ENTRY_NO_EXPIRY);
    assert_false(changed(&one, NOW));
    clear(&two);
    empty();
}

static void test_a_key_is_watched_once(void **state)
{
    struct watch_set sets[3] = {{0}};
    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < 100; k++) {
            char name[16];
            snprintf(name, sizeof(name), "k%d", k);
            for (int s = 0; s < 3; s++) {
                watch(&sets[s], db_at(0), name, NOW);
            }
        }
    }
    assert_int_equal(sets[0].count, 100);
    clear(&sets[1]);
    tell(db_at(0), "k5"); /* missing before and after */
    assert_false(changed(&sets[0], NOW));
    set(db_at(0), "k5", ENTRY_NO_EXPIRY);
    assert_true(changed(&sets[0], NOW));
    assert_false(changed(&sets[1], NOW));
    assert_true(changed(&sets[2], NOW));
    /* A dirty set has learnt enough. */
    watch(&sets[0], db_at(0), "one more", NOW);
    assert_int_equal(sets[0].count, 100);
    clear(&sets[2]);
    clear(&sets[0]);
    empty();
}

static void test_expiry(void **state)
{
    struct watch_set live = {0}, late = {0};
    struct db *db = db_at(0);
    (void)state;
    set(db, "a", NOW + 100);
    watch(&live, db, "a", NOW);
    assert_false(changed(&live, NOW + 99));
    assert_true(changed(&live, NOW + 100)); /* still there, but gone */
    assert_false(watching_is_dirty(&live));
    watch(&late, db, "a", NOW + 100);
    assert_false(changed(&late, NOW + 200));
    del(db, "a", NOW + 100); /* by its expiry */
    assert_true(watching_is_dirty(&live));
    assert_false(changed(&late, NOW + 200));
    set(db, "a", ENTRY_NO_EXPIRY);
    assert_true(changed(&late, NOW + 200));
    clear(&live);
    clear(&late);
    empty();
}

/* What a flush or an exchange does to a key that was (first digit) and is then (second) there. */
static void test_whole_databases(void **state)
{
    (void)state;
    for (int was = 0; was < 2; was++) {
        for (int is = 0; is < 3; is++) { /* 2: in another database, not exchanged */
            struct watch_set watches = {0}, swapped = {0};
            if (was) {
                set(db_at(0), "a", ENTRY_NO_EXPIRY);
            }
            if (is) {
                set(db_at(is), "a", ENTRY_NO_EXPIRY);
            }
            watch(&watches, db_at(0), "a", NOW);
            watch(&swapped, db_at(1), "a", NOW);
            swap(db_at(0), db_at(1));
            assert_int_equal(changed(&watches, NOW), was || is == 1);
            assert_int_equal(changed(&swapped, NOW), was || is == 1);
            clear(&watches);
            watch(&watches, db_at(1), "a", NOW);
            flush(db_at(0));
            assert_false(changed(&watches, NOW));
            set(db_at(1), "another", ENTRY_NO_EXPIRY);
            flush(db_at(1));
            assert_int_equal(changed(&watches, NOW), was);
            clear(&watches);
            clear(&swapped);
            empty();
        }
    }
}

static void test_an_expired_key_in_an_exchange_is_missing(void **state)
{
    struct watch_set watches = {0};
    (void)state;
    set(db_at(1), "a", 1000); /* long ago by the clock */
    watch(&watches, db_at(0), "a", NOW);
    swap(db_at(0), db_at(1));
    assert_false(changed(&watches, NOW));
    clear(&watches);
    empty();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_set_learns_of_its_keys_only),
        cmocka_unit_test(test_a_key_is_watched_once),
        cmocka_unit_test(test_expiry),
        cmocka_unit_test(test_whole_databases),
        cmocka_unit_test(test_an_expired_key_in_an_exchange_is_missing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
