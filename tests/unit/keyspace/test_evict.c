/* Whom eviction takes, and when: keyspace/evict.h. Tables of keys with known ages; with more
 * samples than there are keys the choice leaves nothing to chance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "keyspace/fixture.h"

#include "base/mem.h"
#include "base/stats.h"
#include "keyspace/access.h"
#include "keyspace/event.h"
#include "keyspace/evict.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "value/set.h"

#include <stdio.h>
#include <string.h>

#define NOW 1700000000000
#define VALUE_BYTES 600

static char value[VALUE_BYTES + 1];

static int enter_dbs(void **state)
{
    (void)state;
    db_setup(16);
    memset(value, 'v', VALUE_BYTES);
    for (const struct option *o = evict_options; o->name; o++) {
        option_store_initial(o);
    }
    fixture_set_option(event_options, "notify-keyspace-events", "KEA");
    fixture_set_option(evict_options, "maxmemory-eviction-tenacity", "100");
    fixture_set_option(evict_options, "maxmemory-samples", "2000");
    for (const struct option *o = set_options; o->name; o++) {
        option_store_initial(o);
    }
    fixture_set_option(reclaim_options, "lazyfree-lazy-eviction", "no");
    evict_suspend(false);
    return 0;
}

static void set_limit(size_t bytes)
{
    char text[32];
    snprintf(text, sizeof(text), "%zu", bytes);
    fixture_set_option(evict_options, "maxmemory", text);
}

static int leave_dbs(void **state)
{
    (void)state;
    set_limit(0);
    evict_run(NOW);
    fixture_check();
    assert_false(reclaim_has_work());
    db_teardown();
    return 0;
}

static void set_policy(const char *name)
{
    fixture_set_option(access_options, "maxmemory-policy", name);
}

static const char *name_of(int i)
{
    static char name[32];
    snprintf(name, sizeof(name), "key:%d", i);
    return name;
}

static void add(int db, int i, int64_t expiry_ms)
{
    fixture_set(db_at(db), name_of(i), value, expiry_ms, NOW);
}

static bool has(int db, int i)
{
    struct key k = key_of(slice_cstr(name_of(i)));
    keyspace_lock_shared();
    bool found = db_read(db_at(db), &k, NOW, DB_NO_TOUCH | DB_NO_STATS) != NULL;
    keyspace_unlock_shared();
    return found;
}

static struct entry *entry_of(int db, int i)
{
    struct key k = key_of(slice_cstr(name_of(i)));
    struct entry *e = db_read(db_at(db), &k, NOW, DB_NO_TOUCH | DB_NO_STATS);
    assert_non_null(e);
    return e;
}

static void set_idle(int db, int i, int64_t idle_ms)
{
    keyspace_lock_shared();
    access_set_idle_ms(entry_of(db, i), idle_ms, NOW);
    keyspace_unlock_shared();
}

static void set_frequency(int db, int i, unsigned counter)
{
    keyspace_lock_shared();
    access_set_frequency(entry_of(db, i), counter, NOW);
    keyspace_unlock_shared();
}

static uint64_t size_of(int db)
{
    keyspace_lock_shared();
    uint64_t size = db_size(db_at(db));
    keyspace_unlock_shared();
    return size;
}

/* Has `bytes` evicted, a little more or less. */
static enum evict_result evict(size_t bytes)
{
    size_t used = evict_counted_bytes();
    set_limit(used > bytes ? used - bytes : 1);
    enum evict_result result = evict_run(NOW);
    set_limit(0);
    return result;
}

/* Keys 0 .. count-1 of `db` were to go in the order of their numbers: those that are left are the
 * last ones. Returns how many have gone. */
static int assert_gone_in_order(int db, int count)
{
    int gone = 0;
    while (gone < count && !has(db, gone)) {
        gone++;
    }
    for (int i = gone; i < count; i++) {
        assert_true(has(db, i));
    }
    return gone;
}

#define KEYS 200

/* ---- whom ---- */

static void test_lru_takes_the_oldest(void **state)
{
    (void)state;
    set_policy("allkeys-lru");
    for (int i = 0; i < KEYS; i++) {
        add(0, i, i % 3 ? ENTRY_NO_EXPIRY : NOW + 1000000);
        set_idle(0, i, 1000 * (KEYS - i));
    }
    uint64_t before = stats_sum(STAT_EVICTED_KEYS);
    assert_int_equal(evict((size_t)50 * VALUE_BYTES), EVICT_WITHIN);
    int gone = assert_gone_in_order(0, KEYS);
    assert_in_range(gone, 40, 60);
    assert_int_equal(stats_sum(STAT_EVICTED_KEYS) - before, gone);
}

static void test_lfu_takes_the_least_used(void **state)
{
    (void)state;
    set_policy("allkeys-lfu");
    for (int i = 0; i < KEYS; i++) {
        add(0, i, ENTRY_NO_EXPIRY);
        set_frequency(0, i, (unsigned)i);
    }
    assert_int_equal(evict((size_t)50 * VALUE_BYTES), EVICT_WITHIN);
    assert_in_range(assert_gone_in_order(0, KEYS), 40, 60);
}

static void test_ttl_takes_what_ends_first(void **state)
{
    (void)state;
    set_policy("volatile-ttl");
    for (int i = 0; i < KEYS; i++) {
        add(0, i, NOW + 1000 + i);
        add(1, i, ENTRY_NO_EXPIRY);
        set_idle(0, i, 1000 * i); /* is not looked at */
    }
    assert_int_equal(evict((size_t)50 * VALUE_BYTES), EVICT_WITHIN);
    assert_in_range(assert_gone_in_order(0, KEYS), 40, 60);
    assert_int_equal(size_of(1), KEYS);
}

/* The volatile policies leave keys without an expiry alone, and fail when only those are left. */
static void test_volatile_policies_spare_the_others(void **state)
{
    static const char *const policies[] = {"volatile-lru", "volatile-lfu", "volatile-random",
                                           "volatile-ttl"};
    (void)state;
    for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
        set_policy(policies[p]);
        for (int i = 0; i < KEYS; i++) {
            add(0, i, i % 2 ? NOW + 1000000 : ENTRY_NO_EXPIRY);
        }
        assert_int_equal(evict((size_t)2 * KEYS * VALUE_BYTES), EVICT_FAILED);
        assert_int_equal(size_of(0), KEYS / 2);
        for (int i = 0; i < KEYS; i += 2) {
            assert_true(has(0, i));
        }
    }
}

static void test_few_volatile_keys_among_many(void **state)
{
    (void)state;
    set_policy("volatile-lru");
    fixture_set_option(evict_options, "maxmemory-samples", "5");
    for (int i = 0; i < 30000; i++) {
        fixture_set(db_at(2), name_of(i), "v", i % 10000 == 77 ? NOW + 1000000 : ENTRY_NO_EXPIRY,
                    NOW);
    }
    assert_int_equal(evict(1000000), EVICT_FAILED);
    assert_int_equal(size_of(2), 30000 - 3);
    assert_false(has(2, 77) || has(2, 10077) || has(2, 20077));
}

static void test_random_policies(void **state)
{
    (void)state;
    set_policy("allkeys-random");
    for (int i = 0; i < KEYS; i++) {
        add(0, i, ENTRY_NO_EXPIRY);
    }
    assert_int_equal(evict((size_t)50 * VALUE_BYTES), EVICT_WITHIN);
    assert_in_range(size_of(0), KEYS - 100, KEYS - 30);
}

static void test_all_databases_are_looked_at(void **state)
{
    (void)state;
    set_policy("allkeys-lru");
    for (int i = 0; i < KEYS; i++) {
        add(i % 16, i, ENTRY_NO_EXPIRY);
        set_idle(i % 16, i, 1000 * (KEYS - i));
    }
    assert_int_equal(evict((size_t)64 * VALUE_BYTES), EVICT_WITHIN);
    for (int i = 0; i < KEYS; i++) {
        if (i < 40) {
            assert_false(has(i % 16, i));
        } else if (i >= 80) {
            assert_true(has(i % 16, i));
        }
    }
}

static void test_with_few_samples_the_old_go_before_the_young(void **state)
{
    (void)state;
    int old_gone = 0, young_gone = 0;
    set_policy("allkeys-lru");
    fixture_set_option(evict_options, "maxmemory-samples", "5");
    for (int i = 0; i < 2000; i++) {
        add(0, i, ENTRY_NO_EXPIRY);
        set_idle(0, i, i < 1000 ? 1000000 : 0);
    }
    assert_int_equal(evict((size_t)500 * VALUE_BYTES), EVICT_WITHIN);
    for (int i = 0; i < 2000; i++) {
        *(i < 1000 ? &old_gone : &young_gone) += !has(0, i);
    }
    /* Half of all are old; of five and more samples none is so with a chance of 3 %, and what was
     * seen before helps. */
    assert_in_range(old_gone + young_gone, 400, 600);
    assert_in_range(young_gone, 0, old_gone / 20);
}

/* One deletion for each round of samples, whatever a key was believed to free. */
static void test_small_keys_after_large_ones(void **state)
{
    (void)state;
    enum { LARGE_BYTES = 1000000 };
    char *large = mem_alloc(LARGE_BYTES + 1);
    memset(large, 'v', LARGE_BYTES);
    large[LARGE_BYTES] = '\0';
    set_policy("allkeys-random");
    for (int i = 0; i < 60; i++) {
        fixture_set(db_at(0), name_of(i), large, ENTRY_NO_EXPIRY, NOW);
    }
    mem_free(large);
    assert_int_equal(evict((size_t)50 * LARGE_BYTES), EVICT_WITHIN);
    for (int i = 0; i < 60; i++) {
        add(0, i, ENTRY_NO_EXPIRY);
    }
    test_with_few_samples_the_old_go_before_the_young(state);
}

/* ---- what is told ---- */

static void test_events(void **state)
{
    (void)state;
    set_policy("allkeys-lru");
    add(5, 1, ENTRY_NO_EXPIRY);
    fixture_told();
    assert_int_equal(evict(1), EVICT_WITHIN);
    assert_string_equal(fixture_told(), "!5:key:1 evicted@5:key:1 ");
}

static char logged[64];

static void log_gone(const struct expired *x)
{
    assert_int_equal(x->count, 0);
    assert_false(x->due);
    snprintf(logged, sizeof(logged), "%d:%.*s", x->db->id, (int)x->key.len, x->key.ptr);
}

/* Logs and replicas get to know of it as of a key that has expired. */
static void test_logs_are_told(void **state)
{
    static const bool wanted = true;
    (void)state;
    set_policy("allkeys-lru");
    add(5, 1, ENTRY_NO_EXPIRY);
    expire_set_listener(log_gone, &wanted);
    assert_int_equal(evict(1), EVICT_WITHIN);
    expire_set_listener(NULL, NULL);
    assert_string_equal(logged, "5:key:1");
}

static void test_the_expired_go_first_and_as_such(void **state)
{
    (void)state;
    set_policy("allkeys-lru");
    add(0, 1, ENTRY_NO_EXPIRY);
    set_idle(0, 1, 1000000);
    fixture_set(db_at(0), name_of(2), value, NOW - 1, NOW - 1000);
    uint64_t evicted = stats_sum(STAT_EVICTED_KEYS), expired = stats_sum(STAT_EXPIRED_KEYS);
    fixture_told();
    assert_int_equal(evict(1), EVICT_WITHIN);
    assert_string_equal(fixture_told(), "!0:key:2 expired@0:key:2 ");
    assert_int_equal(stats_sum(STAT_EVICTED_KEYS), evicted);
    assert_int_equal(stats_sum(STAT_EXPIRED_KEYS), expired + 1);
    assert_true(has(0, 1));
}

/* The pool remembers the next ones: who is used meanwhile is not taken, and who is deleted is no
 * longer there. */
static void test_the_pool_forgets_who_was_used(void **state)
{
    (void)state;
    set_policy("allkeys-lru");
    for (int i = 0; i < 10; i++) {
        add(0, i, ENTRY_NO_EXPIRY);
        set_idle(0, i, 1000000 - 1000 * i);
    }
    assert_int_equal(evict(1), EVICT_WITHIN);
    assert_int_equal(assert_gone_in_order(0, 10), 1);
    set_idle(0, 1, 0);
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db_at(0), name_of(2), NOW);
    db_delete(&ref, false);
    keyspace_unlock_exclusive();
    reclaim_run();
    assert_int_equal(evict(1), EVICT_WITHIN);
    assert_true(has(0, 1));
    assert_false(has(0, 3));
    assert_true(has(0, 4));
    /* Another policy begins anew. */
    set_policy("allkeys-lfu");
    for (int i = 4; i < 10; i++) {
        set_frequency(0, i, 255 - (unsigned)i);
    }
    set_frequency(0, 1, 255);
    assert_int_equal(evict(1), EVICT_WITHIN);
    assert_false(has(0, 9));
    assert_int_equal(size_of(0), 6);
}

/* ---- when ---- */

static void test_noeviction_fails(void **state)
{
    (void)state;
    uint64_t total_ms, current_ms;
    set_policy("noeviction");
    add(0, 1, ENTRY_NO_EXPIRY);
    set_limit(1);
    assert_true(evict_due());
    assert_int_equal(evict_run(NOW), EVICT_FAILED);
    assert_true(evict_failing);
    assert_true(evict_due());
    assert_true(has(0, 1));
    evict_exceeded_ms(&total_ms, &current_ms);
    assert_true(total_ms >= current_ms);
    set_limit(SIZE_MAX / 4);
    assert_true(evict_due());
    assert_int_equal(evict_run(NOW), EVICT_WITHIN);
    assert_false(evict_failing);
    evict_exceeded_ms(&total_ms, &current_ms);
    assert_int_equal(current_ms, 0);
}

static void test_an_empty_server_fails_whatever_the_policy(void **state)
{
    (void)state;
    set_policy("allkeys-lru");
    set_limit(1);
    assert_int_equal(evict_run(NOW), EVICT_FAILED);
    assert_true(evict_failing);
    set_limit(0);
    assert_false(evict_failing);
    assert_false(evict_due());
}

static void test_looks_come_with_growth(void **state)
{
    (void)state;
    set_policy("allkeys-lru");
    if (mem_own_balance() == INT64_MAX) {
        skip(); /* an allocator that does not count by threads: every batch looks */
    }
    set_limit(evict_counted_bytes() + ((size_t)128 << 20));
    assert_true(evict_due());
    assert_int_equal(evict_run(NOW), EVICT_WITHIN);
    assert_false(evict_due());
    assert_false(evict_has_outgrown());
    void *some = mem_alloc(512 * 1024);
    assert_false(evict_due());
    void *more = mem_alloc(700 * 1024);
    assert_true(evict_due());
    assert_false(evict_has_outgrown());
    void *much = mem_alloc(400 * 1024);
    assert_true(evict_has_outgrown());
    mem_free(much);
    mem_free(more);
    mem_free(some);
    /* What a thread frees others may use: it is not the thread's to take again unseen. */
    void *block = mem_alloc(64 << 20);
    assert_int_equal(evict_run(NOW), EVICT_WITHIN);
    mem_free(block);
    assert_false(evict_due());
    block = mem_alloc(16 << 20);
    assert_true(evict_due());
    mem_free(block);
}

static void test_time_ends_a_run(void **state)
{
    (void)state;
    set_policy("allkeys-lru");
    fixture_set_option(evict_options, "maxmemory-eviction-tenacity", "0");
    for (int i = 0; i < 2000; i++) {
        add(0, i, ENTRY_NO_EXPIRY);
    }
    set_limit(evict_counted_bytes() - (size_t)1500 * VALUE_BYTES);
    assert_int_equal(evict_run(NOW), EVICT_RUNNING);
    assert_in_range(size_of(0), 2000 - 16, 1999);
    assert_false(evict_failing);
    int runs = 0;
    while (evict_run(NOW) == EVICT_RUNNING) {
        assert_true(runs++ < 2000);
    }
    assert_in_range(size_of(0), 400, 600);
    evict_cron(NOW, 1000);
    evict_cron(NOW, 1000);
    set_limit(0);
}

static void test_suspended(void **state)
{
    (void)state;
    set_policy("allkeys-lru");
    add(0, 1, ENTRY_NO_EXPIRY);
    set_limit(1);
    evict_suspend(true);
    assert_int_equal(evict_run(NOW), EVICT_WITHIN);
    assert_true(has(0, 1));
    evict_suspend(false);
    assert_true(evict_due());
    assert_int_equal(evict_run(NOW), EVICT_FAILED);
    assert_false(has(0, 1));
}

/* What the background thread is about to free counts as freed: no more is evicted for it. */
static void test_lazily(void **state)
{
    (void)state;
    set_policy("allkeys-lru");
    fixture_set_option(reclaim_options, "lazyfree-lazy-eviction", "yes");
    for (int k = 0; k < 10; k++) {
        struct entry *e = set_create(slice_cstr(name_of(k)), NULL, 2000, ENTRY_NO_EXPIRY);
        for (int i = 0; i < 2000; i++) {
            char member[64];
            int len = snprintf(member, sizeof(member), "a member that is not packed %d", i);
            struct set_member m;
            set_member_init(&m, slice_of(member, (size_t)len));
            assert_true(set_add(e, &m));
        }
        keyspace_lock_exclusive();
        struct keyref ref = fixture_open(db_at(0), name_of(k), NOW);
        db_put(&ref, e);
        keyspace_unlock_exclusive();
        set_idle(0, k, 1000000 - 1000 * k);
    }
    assert_int_equal(evict(1000), EVICT_WITHIN);
    assert_int_equal(assert_gone_in_order(0, 10), 1);
    assert_int_equal(reclaim_pending(), 1); /* no background thread here */
    assert_in_range(reclaim_pending_bytes(), 50000, 500000);
    reclaim_setup();
    reclaim_teardown();
    assert_int_equal(reclaim_pending(), 0);
    assert_int_equal(reclaim_pending_bytes(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_dbs, leave_dbs)

/* The first line of the log has libc allocate, which sanitizers' allocators count. */
static int enter(void **state)
{
    log_notice("the log is open");
    return fixture_enter(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lru_takes_the_oldest),
        TEST(test_lfu_takes_the_least_used),
        TEST(test_ttl_takes_what_ends_first),
        TEST(test_volatile_policies_spare_the_others),
        TEST(test_few_volatile_keys_among_many),
        TEST(test_random_policies),
        TEST(test_all_databases_are_looked_at),
        TEST(test_with_few_samples_the_old_go_before_the_young),
        TEST(test_small_keys_after_large_ones),
        TEST(test_events),
        TEST(test_logs_are_told),
        TEST(test_the_expired_go_first_and_as_such),
        TEST(test_the_pool_forgets_who_was_used),
        TEST(test_noeviction_fails),
        TEST(test_an_empty_server_fails_whatever_the_policy),
        TEST(test_looks_come_with_growth),
        TEST(test_time_ends_a_run),
        TEST(test_suspended),
        TEST(test_lazily),
    };
    return cmocka_run_group_tests_name("keyspace/evict", tests, enter, fixture_leave);
}
