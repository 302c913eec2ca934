/* Freeing outside the lock: keyspace/reclaim.h. What is not freed, LeakSanitizer tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keyspace/fixture.h"

#include "base/stats.h"
#include "base/thread.h"
#include "keyspace/reclaim.h"
#include "value/string.h"

#include <sched.h>
#include <stdio.h>

#define NOW 1700000000000

static struct entry *some_entry(void)
{
    static char text[2000];
    return entry_create_string(SLICE("key"), slice_of(text, sizeof(text)), ENTRY_NO_EXPIRY);
}

static uint64_t entry_hash(const void *entry)
{
    return hash_slice(entry_key(entry));
}

static void fill_table(struct table *t, int count)
{
    char key[32];
    table_init(t, entry_hash);
    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "key:%d", i);
        struct entry *e = entry_create_string(slice_cstr(key), SLICE("value"), ENTRY_NO_EXPIRY);
        table_insert(t, entry_hash(e), (uintptr_t)e);
    }
}

static void wait_for_background(void)
{
    while (reclaim_pending() > 0) {
        sched_yield();
    }
}

static void test_own_list(void **state)
{
    (void)state;
    /* More than fits at once, several times. */
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5000; i++) {
            reclaim_entry(some_entry(), i & 1);
        }
        assert_true(reclaim_has_work());
        reclaim_run();
        assert_false(reclaim_has_work());
    }
    reclaim_run();
}

static void *collect_and_end(void *arg)
{
    thread_enter("collector");
    for (int i = 0; i < 1000; i++) {
        reclaim_entry(some_entry(), false);
    }
    reclaim_run();
    thread_leave();
    return arg;
}

static void test_threads_leave_nothing_behind(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        assert_int_equal(thread_start(&thread, collect_and_end, NULL), 0);
        pthread_join(thread, NULL);
    }
}

static void test_tables_of_this_thread(void **state)
{
    (void)state;
    struct table t;
    fill_table(&t, 2000);
    reclaim_table(&t, false);
    assert_true(t.count == 0 && t.rows == NULL);
    fill_table(&t, 0);
    reclaim_table(&t, false);
    assert_true(reclaim_has_work());
    assert_int_equal(reclaim_pending(), 0);
    reclaim_run();
    assert_false(reclaim_has_work());
}

static void test_tables_in_the_background(void **state)
{
    (void)state;
    struct table t;
    uint64_t freed = stats_sum(STAT_LAZYFREED);
    /* Without the thread they wait. */
    fill_table(&t, 3000);
    reclaim_table(&t, true);
    assert_int_equal(reclaim_pending(), 3000);
    assert_false(reclaim_has_work());
    reclaim_setup();
    for (int i = 0; i < 50; i++) {
        fill_table(&t, 100);
        reclaim_table(&t, true);
    }
    wait_for_background();
    reclaim_teardown();
    assert_int_equal(stats_sum(STAT_LAZYFREED) - freed, 8000);
}

/* The end frees what is queued and what this thread has collected. */
static void test_teardown_empties_everything(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct table t;
        reclaim_setup();
        for (int i = 0; i < 20; i++) {
            fill_table(&t, 50);
            reclaim_table(&t, true);
        }
        fill_table(&t, 50);
        reclaim_table(&t, false);
        reclaim_entry(some_entry(), false);
        reclaim_teardown();
        assert_int_equal(reclaim_pending(), 0);
        assert_false(reclaim_has_work());
    }
}

static void *flush_often(void *arg)
{
    struct db *db = arg;
    char key[32];
    thread_enter("flusher");
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < 200; i++) {
            snprintf(key, sizeof(key), "key:%d", i);
            fixture_set(db, key, "v", ENTRY_NO_EXPIRY, NOW);
        }
        keyspace_lock_exclusive();
        db_flush(db, round & 1);
        keyspace_unlock_exclusive();
        reclaim_run();
    }
    thread_leave();
    return NULL;
}

static void test_flushing_from_several_threads(void **state)
{
    (void)state;
    pthread_t threads[3];
    db_setup(2);
    reclaim_setup();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(thread_start(&threads[i], flush_often, db_at(i % 2)), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    wait_for_background();
    fixture_check();
    reclaim_teardown();
    db_teardown();
}

static void test_settings(void **state)
{
    (void)state;
    assert_false(reclaim_lazy_expire() || reclaim_lazy_server_del() || reclaim_lazy_user_del() ||
                 reclaim_lazy_user_flush());
    fixture_set_option(reclaim_options, "lazyfree-lazy-user-flush", "yes");
    assert_true(reclaim_lazy_user_flush());
    fixture_set_option(reclaim_options, "lazyfree-lazy-user-del", "yes");
    assert_true(reclaim_lazy_user_del());
    fixture_set_option(reclaim_options, "lazyfree-lazy-server-del", "yes");
    assert_true(reclaim_lazy_server_del());
    fixture_set_option(reclaim_options, "lazyfree-lazy-expire", "yes");
    assert_true(reclaim_lazy_expire());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_list),
        cmocka_unit_test(test_threads_leave_nothing_behind),
        cmocka_unit_test(test_tables_of_this_thread),
        cmocka_unit_test(test_tables_in_the_background),
        cmocka_unit_test(test_teardown_empties_everything),
        cmocka_unit_test(test_flushing_from_several_threads),
        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, fixture_enter, fixture_leave);
}
