/* Members whose time has come, as the keyspace gives entries out and cleans up: keyspace/db.h,
 * keyspace/expire.h. Times are given, so that nothing here waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keyspace/fixture.h"

#include "base/stats.h"
#include "keyspace/event.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "value/hash.h"
#include "value/member_ttl.h"
#include "value/set.h"

#include <stdio.h>
#include <string.h>

#define NOW 1700000000000

static int enter_dbs(void **state)
{
    (void)state;
    db_setup(16);
    fixture_set_option(event_options, "notify-keyspace-events", "KEA");
    fixture_set_option(expire_options, "active-expire-effort", "1");
    for (const struct option *o = hash_options; o->name; o++) {
        option_store_initial(o);
    }
    expire_set_active(true);
    fixture_told();
    return 0;
}

static int leave_dbs(void **state)
{
    (void)state;
    fixture_check();
    assert_false(expire_has_notes());
    assert_false(expire_must_rerun());
    assert_false(reclaim_has_work());
    db_teardown();
    return 0;
}

static struct slice field_of(int i, char *text)
{
    return slice_of(text, (size_t)snprintf(text, 32, "field %d", i));
}

/* A hash of `count` fields of which the first `due` go at `at_ms`. */
static void make_hash(struct db *db, const char *key, int count, int due, int64_t at_ms)
{
    char text[32];
    struct entry *e = hash_create(slice_cstr(key), NULL, 0);
    for (int i = 0; i < count; i++) {
        hash_set(&e, field_of(i, text), SLICE("v"), NULL);
    }
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, key, NOW);
    db_put(&ref, e);
    for (int i = 0; i < due; i++) {
        assert_true(db_set_member_ttl(&ref, field_of(i, text), at_ms));
    }
    keyspace_unlock_exclusive();
    reclaim_run();
    fixture_told();
}

static struct entry *read_shared(struct db *db, const char *key, int64_t now_ms)
{
    keyspace_lock_shared();
    struct entry *e = fixture_read(db, key, now_ms);
    keyspace_unlock_shared();
    return e;
}

static struct entry *read_exclusive(struct db *db, const char *key, int64_t now_ms)
{
    keyspace_lock_exclusive();
    struct entry *e = fixture_read(db, key, now_ms);
    keyspace_unlock_exclusive();
    reclaim_run();
    return e;
}

/* The notes' holds, at most `max` of them; returns how many there were. */
static int run_notes(int64_t now_ms, int max)
{
    int holds = 0;
    for (; expire_has_notes() && holds < max; holds++) {
        keyspace_lock_exclusive();
        expire_run_notes(now_ms);
        keyspace_unlock_exclusive();
        reclaim_run();
    }
    return holds;
}

static void test_a_reader_comes_again(void **state)
{
    (void)state;
    struct db *db = db_at(2);
    make_hash(db, "k", 5, 2, NOW + 10);
    assert_int_equal(hash_len(read_shared(db, "k", NOW + 9)), 5);
    assert_false(expire_must_rerun());
    assert_null(read_shared(db, "k", NOW + 10));
    assert_true(expire_must_rerun());
    assert_false(expire_must_rerun());
    uint64_t expired = stats_sum(STAT_EXPIRED_MEMBERS);
    assert_int_equal(hash_len(read_exclusive(db, "k", NOW + 10)), 3);
    assert_string_equal(fixture_told(), "!2:k hexpired@2:k ");
    assert_int_equal(stats_sum(STAT_EXPIRED_MEMBERS) - expired, 2);
    assert_false(expire_must_rerun());
    assert_int_equal(hash_len(read_shared(db, "k", NOW + 10)), 3);
    /* The note that was left finds nothing to do. */
    assert_int_equal(run_notes(NOW + 10, 2), 1);
    assert_string_equal(fixture_told(), "");
    assert_int_equal(db_member_expires(db), 0);
}

static void test_a_key_without_other_members_is_gone(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    make_hash(db, "k", 5, 5, NOW + 10);
    make_hash(db, "other", 1, 0, NOW);
    assert_int_equal(db_member_expires(db), 1);
    assert_null(read_shared(db, "k", NOW + 10));
    assert_false(expire_must_rerun()); /* known without a change */
    assert_null(read_exclusive(db, "k", NOW + 10));
    keyspace_lock_shared();
    for (int i = 0; i < 50; i++) {
        struct entry *e = db_random(db, NOW + 10);
        assert_true(!e || slice_equal(entry_key(e), SLICE("other")));
    }
    keyspace_unlock_shared();
    run_notes(NOW + 10, 10);
    /* Told twice: two readers met it. The second one's note finds a missing key. */
    assert_string_equal(fixture_told(), "!0:k hexpired@0:k del@0:k ");
    assert_int_equal(db_member_expires(db), 0);
    keyspace_lock_shared();
    assert_int_equal(db_size(db), 1);
    keyspace_unlock_shared();
}

static void test_who_opens_takes_them_out(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    make_hash(db, "some", 500, 400, NOW + 10);
    make_hash(db, "all", 500, 500, NOW + 10);
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, "some", NOW + 10);
    assert_int_equal(hash_len(ref.entry), 100);
    assert_false(member_ttl_any(ref.entry));
    ref = fixture_open(db, "all", NOW + 10);
    assert_null(ref.entry);
    assert_null(ref.slot);
    keyspace_unlock_exclusive();
    reclaim_run();
    assert_string_equal(fixture_told(), "!0:some hexpired@0:some !0:all hexpired@0:all del@0:all ");
    assert_int_equal(db_member_expires(db), 0);
}

static void test_the_keys_own_expiry_is_its_own(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    make_hash(db, "k", 2, 1, NOW + 50);
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, "k", NOW);
    db_set_expiry(&ref, NOW + 100);
    assert_int_equal(entry_expiry_ms(ref.entry), NOW + 100);
    assert_int_equal(db_expires(db), 1);
    assert_int_equal(db_member_expires(db), 1);
    ref = fixture_open(db, "k", NOW + 50);
    assert_int_equal(hash_len(ref.entry), 1);
    assert_int_equal(entry_expiry_ms(ref.entry), NOW + 100);
    assert_int_equal(db_member_expires(db), 0);
    ref = fixture_open(db, "k", NOW + 100);
    assert_null(ref.entry);
    keyspace_unlock_exclusive();
    reclaim_run();
    assert_string_equal(fixture_told(), "!0:k hexpired@0:k !0:k expired@0:k ");
}

static void test_notes_go_in_portions(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    int due = 5 * EXPIRE_MEMBERS_A_HOLD;
    make_hash(db, "k", due + 1, due, NOW);
    assert_null(read_shared(db, "k", NOW));
    assert_true(expire_must_rerun());
    assert_int_equal(run_notes(NOW, 1), 1);
    assert_true(expire_has_notes());
    assert_null(read_shared(db, "k", NOW));
    assert_true(expire_must_rerun());
    assert_true(run_notes(NOW, 100) >= 4);
    assert_int_equal(hash_len(read_shared(db, "k", NOW)), 1);
    fixture_told();
}

static void test_the_sweep_finds_them(void **state)
{
    (void)state;
    struct db *db = db_at(7);
    int due = 3 * EXPIRE_MEMBERS_A_HOLD;
    make_hash(db, "some", due + 1, due, NOW);
    make_hash(db, "all", due, due, NOW);
    make_hash(db, "later", 2, 1, NOW + 1000);
    assert_int_equal(db_member_expires(db), 3);
    for (int i = 0; i < 1000 && db_member_expires(db) > 1; i++) {
        expire_sweep(NOW, 1000000);
    }
    assert_int_equal(db_member_expires(db), 1);
    keyspace_lock_shared();
    assert_int_equal(db_size(db), 2);
    keyspace_unlock_shared();
    assert_int_equal(hash_len(read_shared(db, "some", NOW)), 1);
    assert_int_equal(hash_len(read_shared(db, "later", NOW)), 2);
    fixture_told();
}

/* Who takes the last deadline away does not know the slot; the tag goes at the next chance. */
static void test_tags_that_lag(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    char text[32];
    for (int round = 0; round < 2; round++) {
        make_hash(db, "k", 3, 1, NOW + 1000);
        keyspace_lock_exclusive();
        struct keyref ref = fixture_open(db, "k", NOW);
        assert_true(hash_delete(ref.entry, field_of(0, text)));
        assert_false(member_ttl_any(ref.entry));
        keyspace_unlock_exclusive();
        assert_int_equal(db_member_expires(db), 1);
        fixture_check();
        assert_non_null(read_shared(db, "k", NOW + 5000));
        if (round == 0) {
            keyspace_lock_exclusive();
            ref = fixture_open(db, "k", NOW);
            keyspace_unlock_exclusive();
        } else {
            for (int i = 0; i < 100 && db_member_expires(db) > 0; i++) {
                expire_sweep(NOW, 100000);
            }
        }
        assert_int_equal(db_member_expires(db), 0);
    }
    fixture_told();
}

static void test_moving_keys_keeps_count(void **state)
{
    (void)state;
    struct db *a = db_at(0), *b = db_at(1);
    make_hash(a, "k", 3, 2, NOW + 1000);
    keyspace_lock_exclusive();
    struct keyref from = fixture_open(a, "k", NOW);
    struct keyref to = fixture_open(b, "k", NOW);
    db_put(&to, entry_copy(from.entry, SLICE("k"), NOW + 500));
    assert_int_equal(db_member_expires(b), 1);
    db_swap(a, b);
    to = fixture_open(a, "k", NOW);
    assert_int_equal(member_ttl_count(to.entry), 2);
    db_delete(&to, false);
    assert_int_equal(db_member_expires(a), 0);
    assert_int_equal(db_expires(a), 0);
    assert_int_equal(db_member_expires(b), 1);
    db_flush(b, false);
    assert_int_equal(db_member_expires(b), 0);
    keyspace_unlock_exclusive();
    reclaim_run();
    fixture_told();
}

static void count_visit(struct entry *e, void *context)
{
    (void)e;
    ++*(int *)context;
}

static void test_walks_pass_by_keys_that_are_gone(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    make_hash(db, "gone", 2, 2, NOW);
    make_hash(db, "half", 2, 1, NOW);
    int seen = 0;
    keyspace_lock_shared();
    for (uint64_t cursor = db_scan(db, 0, 100, NOW, count_visit, &seen); cursor;) {
        cursor = db_scan(db, cursor, 100, NOW, count_visit, &seen);
    }
    keyspace_unlock_shared();
    assert_int_equal(seen, 1);
    keyspace_lock_exclusive();
    expire_run_all(NOW);
    assert_int_equal(db_size(db), 1);
    keyspace_unlock_exclusive();
    reclaim_run();
    assert_int_equal(db_member_expires(db), 0);
    fixture_told();
}

int main(void)
{
#define KEYSPACE_TEST(f) cmocka_unit_test_setup_teardown(f, enter_dbs, leave_dbs)
    const struct CMUnitTest tests[] = {
        KEYSPACE_TEST(test_a_reader_comes_again),
        KEYSPACE_TEST(test_a_key_without_other_members_is_gone),
        KEYSPACE_TEST(test_who_opens_takes_them_out),
        KEYSPACE_TEST(test_the_keys_own_expiry_is_its_own),
        KEYSPACE_TEST(test_notes_go_in_portions),
        KEYSPACE_TEST(test_the_sweep_finds_them),
        KEYSPACE_TEST(test_tags_that_lag),
        KEYSPACE_TEST(test_moving_keys_keeps_count),
        KEYSPACE_TEST(test_walks_pass_by_keys_that_are_gone),
    };
    return cmocka_run_group_tests(tests, fixture_enter, fixture_leave);
}
