/* Who removes expired keys: keyspace/expire.h. Times are given, so that nothing here waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keyspace/fixture.h"

#include "base/stats.h"
#include "base/thread.h"
#include "keyspace/event.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "value/string.h"

#include <stdio.h>
#include <string.h>

#define NOW 1700000000000

static int enter_dbs(void **state)
{
    (void)state;
    db_setup(16);
    fixture_set_option(event_options, "notify-keyspace-events", "KEA");
    fixture_set_option(expire_options, "active-expire-effort", "1");
    expire_set_active(true);
    fixture_told();
    return 0;
}

static int leave_dbs(void **state)
{
    (void)state;
    fixture_check();
    assert_false(expire_has_notes());
    assert_false(reclaim_has_work());
    db_teardown();
    return 0;
}

static void run_notes(int64_t now_ms)
{
    keyspace_lock_exclusive();
    expire_run_notes(now_ms);
    keyspace_unlock_exclusive();
    reclaim_run();
    assert_false(expire_has_notes());
}

static void read_key(struct db *db, const char *key, int64_t now_ms)
{
    keyspace_lock_shared();
    fixture_read(db, key, now_ms);
    keyspace_unlock_shared();
}

/* ---- notes ---- */

static void test_a_reader_notes_what_has_expired(void **state)
{
    (void)state;
    struct db *db = db_at(3);
    fixture_set(db, "k", "v", NOW + 1, NOW);
    fixture_set(db, "stays", "v", NOW + 100, NOW);
    read_key(db, "k", NOW);
    read_key(db, "nothing", NOW);
    assert_false(expire_has_notes());
    uint64_t expired = stats_sum(STAT_EXPIRED_KEYS);
    read_key(db, "k", NOW + 1);
    assert_true(expire_has_notes());
    fixture_told();
    run_notes(NOW + 1);
    assert_string_equal(fixture_told(), "!3:k expired@3:k ");
    assert_int_equal(stats_sum(STAT_EXPIRED_KEYS) - expired, 1);
    keyspace_lock_shared();
    assert_int_equal(db_size(db), 1);
    keyspace_unlock_shared();
}

static void test_a_noted_key_may_live_again(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    fixture_set(db, "k", "v", NOW + 1, NOW);
    read_key(db, "k", NOW + 1);
    fixture_set(db, "k", "w", ENTRY_NO_EXPIRY, NOW + 1);
    fixture_told();
    run_notes(NOW + 1);
    assert_string_equal(fixture_told(), "");
    read_key(db, "k", NOW + 1);
    assert_false(expire_has_notes());
}

static void test_misses_are_told_when_wanted(void **state)
{
    (void)state;
    struct db *db = db_at(1);
    fixture_set_option(event_options, "notify-keyspace-events", "KEAm");
    fixture_set(db, "k", "v", NOW + 1, NOW);
    fixture_told();
    read_key(db, "none", NOW);
    read_key(db, "k", NOW);
    assert_true(expire_has_notes());
    run_notes(NOW);
    assert_string_equal(fixture_told(), "keymiss@1:none ");
    read_key(db, "k", NOW + 1);
    run_notes(NOW + 1);
    assert_string_equal(fixture_told(), "!1:k expired@1:k keymiss@1:k ");
}

/* The list is bounded: what does not fit is left to the sweep. */
static void test_notes_are_bounded(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    char key[600];
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        fixture_set(db, key, "v", NOW + 1, NOW);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        read_key(db, key, NOW + 1);
    }
    run_notes(NOW + 1);
    uint64_t left = db_expires(db);
    assert_in_range(left, 1, 999);
    /* Keys of every length are safe; long ones may be left as well. */
    for (size_t len = 500; len < 530; len++) {
        memset(key, 'x', len);
        key[len] = 0;
        fixture_set(db, key, "v", NOW + 1, NOW);
        read_key(db, key, NOW + 1);
        run_notes(NOW + 1);
    }
    while (expire_sweep(NOW + 1, 100000)) {
    }
    for (int i = 0; i < 1000 && db_expires(db) > 0; i++) {
        expire_sweep(NOW + 1, 100000);
    }
    assert_int_equal(db_expires(db), 0);
}

static void *note_and_end(void *arg)
{
    struct db *db = arg;
    thread_enter("reader");
    read_key(db, "k", NOW + 1);
    assert(expire_has_notes());
    run_notes(NOW + 1);
    thread_leave();
    return NULL;
}

/* Notes are a thread's own, and nothing is left of them when it ends (LeakSanitizer). */
static void test_notes_are_a_threads_own(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    pthread_t thread;
    fixture_set(db, "k", "v", NOW + 1, NOW);
    assert_int_equal(thread_start(&thread, note_and_end, db), 0);
    pthread_join(thread, NULL);
    assert_false(expire_has_notes());
    assert_int_equal(db_expires(db), 0);
}

/* ---- opening for writing ---- */

static void test_opening_deletes_first(void **state)
{
    (void)state;
    struct db *db = db_at(2);
    fixture_set(db, "k", "v", NOW + 1, NOW);
    fixture_told();
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, "k", NOW + 1);
    assert_null(ref.entry);
    assert_string_equal(fixture_told(), "!2:k expired@2:k ");
    db_put(&ref, string_create(SLICE("k"), SLICE("w"), ENTRY_NO_EXPIRY));
    keyspace_unlock_exclusive();
    reclaim_run();
    assert_string_equal(fixture_told(), ""); /* "new" is not in A */
}

/* The key of the ref may be the entry's own bytes: listeners still see them. */
static void test_deleting_by_the_entrys_own_key(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    static const char *const lazily[] = {"no", "yes"};
    for (int i = 0; i < 2; i++) {
        fixture_set_option(reclaim_options, "lazyfree-lazy-expire", lazily[i]);
        fixture_set(db, "its own key", "v", NOW + 1, NOW);
        fixture_told();
        keyspace_lock_exclusive();
        struct keyref ref = fixture_open(db, "its own key", NOW);
        ref.key.name = entry_key(ref.entry);
        expire_delete(&ref);
        keyspace_unlock_exclusive();
        reclaim_run();
        assert_string_equal(fixture_told(), "!0:its own key expired@0:its own key ");
    }
    fixture_set_option(reclaim_options, "lazyfree-lazy-expire", "no");
}

/* ---- the sweep ---- */

static void fill(struct db *db, int from, int count, int64_t expiry_ms)
{
    char key[32];
    for (int i = from; i < from + count; i++) {
        snprintf(key, sizeof(key), "key:%d", i);
        fixture_set(db, key, "v", expiry_ms, NOW);
    }
}

static uint64_t all_expires(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < db_count(); i++) {
        sum += db_expires(db_at(i));
    }
    return sum;
}

static void test_sweep_deletes_all_that_expired(void **state)
{
    (void)state;
    fill(db_at(0), 0, 20000, NOW + 1);
    fill(db_at(0), 20000, 5000, NOW + 1000);
    fill(db_at(0), 25000, 5000, ENTRY_NO_EXPIRY);
    fill(db_at(7), 0, 3000, NOW + 1);
    fill(db_at(15), 0, 10, NOW + 1);
    uint64_t expired = stats_sum(STAT_EXPIRED_KEYS);
    int calls = 0;
    for (; all_expires() > 5000; calls++) {
        assert_true(calls < 5000);
        expire_sweep(NOW + 1, 1000);
    }
    assert_int_equal(stats_sum(STAT_EXPIRED_KEYS) - expired, 23010);
    assert_int_equal(all_expires(), 5000);
    keyspace_lock_shared();
    assert_int_equal(db_size(db_at(0)), 10000);
    keyspace_unlock_shared();
    fixture_check();
    /* Nothing more has expired: nothing more goes, and it says so. */
    for (int i = 0; i < 50; i++) {
        assert_false(expire_sweep(NOW + 1, 1000));
    }
    assert_int_equal(all_expires(), 5000);
}

static void test_sweep_tells_of_every_key(void **state)
{
    (void)state;
    fill(db_at(5), 0, 3, NOW + 1);
    fixture_told();
    for (int i = 0; i < 100 && all_expires() > 0; i++) {
        expire_sweep(NOW + 1, 1000);
    }
    const char *told = fixture_told();
    for (int i = 0; i < 3; i++) {
        char expected[64];
        snprintf(expected, sizeof(expected), "!5:key:%d expired@5:key:%d ", i, i);
        assert_non_null(strstr(told, expected));
    }
    assert_int_equal(strlen(told), 3 * strlen("!5:key:0 expired@5:key:0 "));
}

static void test_sweep_at_rest(void **state)
{
    (void)state;
    /* No lock is taken when no key has an expiry: this thread holds it and must not meet itself. */
    fill(db_at(0), 0, 10, ENTRY_NO_EXPIRY);
    uint64_t before = 0, after = 0;
    for (int i = 0; i < BRLOCK_MAX_THREADS; i++) {
        before += keyspace_lock.stats[i].shared_count + keyspace_lock.stats[i].exclusive_count;
    }
    assert_false(expire_sweep(NOW + 1, 1000));
    for (int i = 0; i < BRLOCK_MAX_THREADS; i++) {
        after += keyspace_lock.stats[i].shared_count + keyspace_lock.stats[i].exclusive_count;
    }
    assert_int_equal(after, before);
    /* Switched off. */
    fill(db_at(0), 10, 10, NOW + 1);
    expire_set_active(false);
    assert_false(expire_sweep(NOW + 1, 1000));
    assert_int_equal(all_expires(), 10);
    expire_set_active(true);
    for (int i = 0; i < 100 && all_expires() > 0; i++) {
        expire_sweep(NOW + 1, 1000);
    }
    assert_int_equal(all_expires(), 0);
}

/* Any expiry that a client may set, also the largest, counts in the average without overflow
 * (UBSan). */
static void test_average_of_extreme_expiries(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    fill(db, 0, 50, INT64_MAX - 1);
    fill(db, 50, 50, INT64_MIN);
    for (int i = 0; i < 200; i++) {
        expire_sweep(NOW, 100000);
    }
    assert_int_equal(all_expires(), 50);
    assert_true(db->avg_ttl_ms > (int64_t)1 << 60);
    keyspace_lock_exclusive();
    db_flush(db, false);
    keyspace_unlock_exclusive();
    reclaim_run();
    assert_int_equal(db->avg_ttl_ms, 0);
    fill(db, 0, 100, NOW + 5000);
    for (int i = 0; i < 20; i++) {
        expire_sweep(NOW, 100000);
    }
    assert_int_equal(db->avg_ttl_ms, 5000);
}

static void test_staleness_is_a_percentage(void **state)
{
    (void)state;
    fill(db_at(0), 0, 5000, NOW + 1);
    for (int i = 0; i < 500 && all_expires() > 0; i++) {
        expire_sweep(NOW + 1, 100);
        assert_true(expire_stale_percent() >= 0 && expire_stale_percent() <= 100);
    }
    assert_true(expire_stale_percent() > 0);
}

/* ---- several threads ---- */

#define WORKERS 4
#define WORKER_STEPS 4000
#define WORKER_KEYS 300

static void work_step(uint64_t random, int64_t now_ms)
{
    struct db *db = db_at((int)(random % 2));
    char key[32];
    snprintf(key, sizeof(key), "key:%u", (unsigned)(random >> 20) % WORKER_KEYS);
    if (random >> 8 & 3) {
        char scratch[STRING_VIEW_BYTES];
        keyspace_lock_shared();
        struct entry *e = fixture_read(db, key, now_ms);
        assert(!e || string_view(e, scratch).len == 1);
        keyspace_unlock_shared();
    } else {
        fixture_set(db, key, "v", now_ms + (int64_t)(random >> 40) % 50, now_ms);
    }
    if (expire_has_notes()) {
        run_notes(now_ms);
    }
}

static void *work(void *arg)
{
    uint64_t random = (uintptr_t)arg;
    thread_enter("worker");
    for (int i = 0; i < WORKER_STEPS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        work_step(random >> 3, NOW + i / 10);
    }
    thread_leave();
    return NULL;
}

static void test_threads_read_write_and_sweep(void **state)
{
    (void)state;
    pthread_t threads[WORKERS];
    for (uintptr_t i = 0; i < WORKERS; i++) {
        assert_int_equal(thread_start(&threads[i], work, (void *)(i + 1)), 0);
    }
    for (int i = 0; i < 300; i++) {
        expire_sweep(NOW + i, 300);
        fixture_check();
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    fixture_check();
    for (int i = 0; i < 1000 && all_expires() > 0; i++) {
        expire_sweep(NOW + 100000, 1000);
    }
    assert_int_equal(all_expires(), 0);
}

int main(void)
{
#define DB_TEST(name) cmocka_unit_test_setup_teardown(name, enter_dbs, leave_dbs)
    const struct CMUnitTest tests[] = {
        DB_TEST(test_a_reader_notes_what_has_expired), DB_TEST(test_a_noted_key_may_live_again),
        DB_TEST(test_misses_are_told_when_wanted),     DB_TEST(test_notes_are_bounded),
        DB_TEST(test_notes_are_a_threads_own),         DB_TEST(test_opening_deletes_first),
        DB_TEST(test_deleting_by_the_entrys_own_key),  DB_TEST(test_sweep_deletes_all_that_expired),
        DB_TEST(test_sweep_tells_of_every_key),        DB_TEST(test_sweep_at_rest),
        DB_TEST(test_average_of_extreme_expiries),     DB_TEST(test_staleness_is_a_percentage),
        DB_TEST(test_threads_read_write_and_sweep),
    };
    return cmocka_run_group_tests(tests, fixture_enter, fixture_leave);
}
