/* What clients of a writable replica let expire: keyspace/local_expiry.h. Times are given, so that
 * nothing here waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keyspace/fixture.h"

#include "base/thread.h"
#include "keyspace/event.h"
#include "keyspace/expire.h"
#include "keyspace/local_expiry.h"
#include "keyspace/reclaim.h"
#include "value/hash.h"
#include "value/string.h"

#include <stdio.h>

#define NOW 1700000000000

static int enter_dbs(void **state)
{
    (void)state;
    db_setup(16);
    fixture_set_option(event_options, "notify-keyspace-events", "KEA");
    expire_set_elsewhere(true);
    fixture_told();
    return 0;
}

static int leave_dbs(void **state)
{
    (void)state;
    expire_set_elsewhere(false);
    fixture_check();
    db_teardown();
    assert_int_equal(local_expiry_count(), 0);
    return 0;
}

/* As the thread that applies the primary's stream. */
static void set_by_primary(struct db *db, const char *key, int64_t expiry_ms)
{
    expire_frozen = true;
    fixture_set(db, key, "v", expiry_ms, NOW);
    expire_frozen = false;
}

static void sweep_all(int64_t now_ms)
{
    for (int i = 0; i < 1000; i++) {
        expire_sweep(now_ms, 1000);
    }
}

static uint64_t size_of(struct db *db)
{
    keyspace_lock_shared();
    uint64_t size = db_size(db);
    keyspace_unlock_shared();
    return size;
}

static void test_only_local_keys_go(void **state)
{
    (void)state;
    char key[32];
    for (int i = 0; i < 3000; i++) {
        snprintf(key, sizeof(key), "local%d", i);
        fixture_set(db_at(i % 3), key, "v", NOW + 1 + i % 2, NOW);
        snprintf(key, sizeof(key), "primary's%d", i);
        set_by_primary(db_at(i % 3), key, NOW + 1);
    }
    assert_int_equal(local_expiry_count(), 3000);
    sweep_all(NOW);
    assert_int_equal(local_expiry_count(), 3000);
    sweep_all(NOW + 1);
    assert_int_equal(local_expiry_count(), 1500);
    sweep_all(NOW + 2);
    assert_int_equal(local_expiry_count(), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(size_of(db_at(i)), 1000);
    }
}

static void test_a_primary_takes_a_key_over(void **state)
{
    (void)state;
    struct db *db = db_at(1);
    fixture_set(db, "k", "v", NOW + 1, NOW);
    set_by_primary(db, "k", NOW + 1); /* the same time: still the client's */
    assert_int_equal(local_expiry_count(), 1);
    set_by_primary(db, "k", NOW + 2);
    assert_int_equal(local_expiry_count(), 0);
    sweep_all(NOW + 3);
    assert_int_equal(size_of(db), 1);
    fixture_set(db, "k", "v", NOW + 3, NOW);
    set_by_primary(db, "k", ENTRY_NO_EXPIRY);
    sweep_all(NOW + 3);
    assert_int_equal(local_expiry_count(), 0);
    assert_int_equal(size_of(db), 1);
}

static void make_hash(struct db *db, const char *key, int fields)
{
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, key, NOW);
    struct entry *e = hash_create(ref.key.name, NULL, 0);
    for (int i = 0; i < fields; i++) {
        char field[32];
        struct slice name = slice_of(field, (size_t)snprintf(field, sizeof(field), "f%d", i));
        hash_set(&e, name, name, NULL);
    }
    db_put(&ref, e);
    keyspace_unlock_exclusive();
}

/* Fields from `first` up to `end` get a deadline. */
static void expire_fields(struct db *db, const char *key, int first, int end, int64_t at_ms)
{
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, key, NOW);
    for (int i = first; i < end; i++) {
        char field[32];
        struct slice name = slice_of(field, (size_t)snprintf(field, sizeof(field), "f%d", i));
        assert_true(db_set_member_ttl(&ref, name, at_ms));
    }
    keyspace_unlock_exclusive();
}

static uint64_t fields_of(struct db *db, const char *key)
{
    keyspace_lock_shared();
    const struct key k = key_of(slice_cstr(key));
    uint64_t fields = hash_len(db_look(db, &k));
    keyspace_unlock_shared();
    return fields;
}

static void test_members(void **state)
{
    (void)state;
    struct db *db = db_at(2);
    make_hash(db, "local", 2000);
    expire_fields(db, "local", 0, 1500, NOW + 1);
    make_hash(db, "primary's", 10);
    expire_frozen = true;
    expire_fields(db, "primary's", 0, 5, NOW + 1);
    expire_frozen = false;
    assert_int_equal(local_expiry_count(), 1);
    sweep_all(NOW + 1);
    assert_int_equal(local_expiry_count(), 0);
    assert_int_equal(fields_of(db, "local"), 500);
    assert_int_equal(fields_of(db, "primary's"), 10);
}

/* A client's member of a key that is the primary's, which has let it expire. */
static void test_a_due_key_of_the_primary_stays(void **state)
{
    (void)state;
    struct db *db = db_at(2);
    make_hash(db, "h", 3);
    expire_fields(db, "h", 0, 1, NOW + 1);
    expire_frozen = true;
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, "h", NOW);
    db_set_expiry(&ref, NOW + 1);
    keyspace_unlock_exclusive();
    expire_frozen = false;
    sweep_all(NOW + 1);
    assert_int_equal(size_of(db), 1);
    assert_int_equal(fields_of(db, "h"), 3);
    assert_int_equal(local_expiry_count(), 1);
}

static void test_names_go_with_the_content(void **state)
{
    (void)state;
    struct db *a = db_at(0), *b = db_at(5);
    fixture_set(a, "k", "v", NOW + 1, NOW);
    keyspace_lock_exclusive();
    db_swap(a, b);
    keyspace_unlock_exclusive();
    fixture_set(a, "other", "v", NOW + 2, NOW);
    sweep_all(NOW + 1);
    assert_int_equal(size_of(b), 0);
    assert_int_equal(local_expiry_count(), 1);
    keyspace_lock_exclusive();
    db_flush(a, true);
    keyspace_unlock_exclusive();
    reclaim_run();
    assert_int_equal(local_expiry_count(), 0);
}

/* A file that is read, and a server that decides by itself, note nothing. */
static void test_who_notes_nothing(void **state)
{
    (void)state;
    expire_set_elsewhere(false);
    fixture_set(db_at(0), "k", "v", NOW + 1, NOW);
    assert_int_equal(local_expiry_count(), 0);
    expire_set_elsewhere(true);
    fixture_set(db_at(0), "k", "v", NOW + 1, NOW); /* the time that it has */
    fixture_set(db_at(0), "plain", "v", ENTRY_NO_EXPIRY, NOW);
    assert_int_equal(local_expiry_count(), 0);
}

#define WORKERS 4
#define WORKER_STEPS 3000

static void *work(void *arg)
{
    uint64_t random = (uintptr_t)arg;
    thread_enter("worker");
    for (int i = 0; i < WORKER_STEPS; i++) {
        char key[16];
        random = random * 6364136223846793005u + 1442695040888963407u;
        snprintf(key, sizeof(key), "k%u", (unsigned)(random >> 40) % 500);
        fixture_set(db_at((int)(random >> 60)), key, "v", NOW + (int64_t)(random >> 50) % 50, NOW);
        if (random >> 33 & 1) {
            set_by_primary(db_at((int)(random >> 60)), key, NOW + 1000);
        }
        if (i % 1000 == 0) {
            keyspace_lock_exclusive();
            db_flush(db_at((int)(random >> 60)), true);
            keyspace_unlock_exclusive();
        }
        reclaim_run();
    }
    thread_leave();
    return NULL;
}

static void test_threads_write_and_sweep(void **state)
{
    (void)state;
    pthread_t threads[WORKERS];
    for (uintptr_t i = 0; i < WORKERS; i++) {
        assert_int_equal(thread_start(&threads[i], work, (void *)(i + 1)), 0);
    }
    for (int i = 0; i < 300; i++) {
        expire_sweep(NOW + i / 10, 300);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    sweep_all(NOW + 100);
    assert_int_equal(local_expiry_count(), 0);
}

int main(void)
{
#define DB_TEST(name) cmocka_unit_test_setup_teardown(name, enter_dbs, leave_dbs)
    const struct CMUnitTest tests[] = {
        DB_TEST(test_only_local_keys_go),
        DB_TEST(test_a_primary_takes_a_key_over),
        DB_TEST(test_members),
        DB_TEST(test_a_due_key_of_the_primary_stays),
        DB_TEST(test_names_go_with_the_content),
        DB_TEST(test_who_notes_nothing),
        DB_TEST(test_threads_write_and_sweep),
    };
    return cmocka_run_group_tests(tests, fixture_enter, fixture_leave);
}
