/* Jobs in the order of their times: keyspace/schedule.h, and value/job.h's arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keyspace/fixture.h"

#include "base/rand.h"
#include "keyspace/reclaim.h"
#include "keyspace/schedule.h"

#include <stdio.h>
#include <string.h>

/* Beyond the wall clock's time, so that what is due first follows from the terms. */
#define FUTURE_MS ((int64_t)1 << 50)
#define DATABASES 3
#define KEYS 40

static int setup(void **state)
{
    fixture_enter(state);
    db_setup(DATABASES);
    return 0;
}

static int teardown(void **state)
{
    db_teardown();
    assert_int_equal(schedule_count(), 0);
    return fixture_leave(state);
}

static struct entry *make(struct slice key, bool single, int64_t start_ms, int64_t interval_ms)
{
    struct job_terms terms = {.single = single,
                              .start_ms = start_ms,
                              .interval_ms = interval_ms,
                              .user = SLICE("default"),
                              .script = SLICE("return 1")};
    return job_create(key, &terms);
}

/* ---- when ---- */

static void check_next(bool single, int64_t start_ms, int64_t interval_ms, int64_t now_ms,
                       int64_t expected_ms)
{
    struct entry *e = make(SLICE("k"), single, start_ms, interval_ms);
    assert_int_equal(job_next_ms(job_of(e), now_ms), expected_ms);
    entry_destroy(&e);
}

static void test_next(void **state)
{
    (void)state;
    check_next(false, 1000, 10, 0, 1010);
    check_next(false, 1000, 10, 1009, 1010);
    check_next(false, 1000, 10, 1010, 1020);
    check_next(false, 1000, 10, 1019, 1020);
    check_next(false, -1000, 300, 5, 200);
    check_next(false, 0, 1, 1700000000000, 1700000000001);
    check_next(true, 1000, 10, 5000, 1010);
    check_next(false, -JOB_TIME_MAX_MS, JOB_TIME_MAX_MS, 1, JOB_TIME_MAX_MS);
    check_next(false, JOB_TIME_MAX_MS, JOB_TIME_MAX_MS, 1, 2 * JOB_TIME_MAX_MS);
    assert_false(job_times_are_valid(0, 0));
    assert_false(job_times_are_valid(0, -1));
    assert_false(job_times_are_valid(JOB_TIME_MAX_MS + 1, 1));
    assert_false(job_times_are_valid(0, INT64_MAX));
    assert_true(job_times_are_valid(-JOB_TIME_MAX_MS, 1));
}

static void check_catch_up(bool single, int64_t start_ms, int64_t interval_ms, int64_t expected_ms)
{
    struct job_terms terms = {.single = single, .start_ms = start_ms, .interval_ms = interval_ms};
    job_terms_catch_up(&terms, 1700000000000);
    assert_int_equal(terms.start_ms, expected_ms);
    assert_true(job_times_are_valid(terms.start_ms, terms.interval_ms));
}

/* What is made too late begins now, where it repeats. */
static void test_catch_up(void **state)
{
    (void)state;
    const int64_t now_ms = 1700000000000;
    check_catch_up(false, 0, 900, now_ms - 900);
    check_catch_up(false, -JOB_TIME_MAX_MS, 1, now_ms - 1);
    check_catch_up(false, -JOB_TIME_MAX_MS, JOB_TIME_MAX_MS, now_ms - JOB_TIME_MAX_MS);
    check_catch_up(false, now_ms - 900, 900, now_ms - 900);
    check_catch_up(false, now_ms - 900, 901, now_ms - 900);
    check_catch_up(false, now_ms, 1, now_ms);
    check_catch_up(false, JOB_TIME_MAX_MS, JOB_TIME_MAX_MS, JOB_TIME_MAX_MS);
    check_catch_up(true, 0, 900, 0);
}

/* A job that was to run at a time of its own keeps that under another name, in another place. */
static void test_due_goes_with_the_job(void **state) NO_THREAD_SAFETY_ANALYSIS
{
    (void)state;
    struct keyref ref;
    struct key one = key_of(SLICE("k01")), other = key_of(SLICE("k02"));
    db_open(&ref, db_at(0), &one, 1, 0);
    db_put(&ref, make(one.name, false, 0, 1000000));
    int64_t due_ms = schedule_first()->due_ms;
    struct entry *e = entry_with_key(db_take(&ref), other.name);
    assert_int_equal(schedule_count(), 0);
    assert_int_equal(job_of(e)->due_ms, due_ms);
    job_of(e)->due_ms = 5;
    db_open(&ref, db_at(1), &other, 1, 0);
    db_put(&ref, e);
    assert_int_equal(schedule_first()->due_ms, 5);
    assert_ptr_equal(schedule_first()->db, db_at(1));
    db_open(&ref, db_at(1), &other, 1, 0);
    assert_true(db_delete(&ref, false));
}

/* ---- the order ---- */

/* What ought to be there: when each key's job is due, 0 for none. */
static int64_t model[DATABASES][KEYS];

static void check(void)
{
    uint64_t count = 0;
    int64_t first_ms = INT64_MAX;
    for (int d = 0; d < DATABASES; d++) {
        for (int k = 0; k < KEYS; k++) {
            count += model[d][k] != 0;
            first_ms = model[d][k] && model[d][k] < first_ms ? model[d][k] : first_ms;
        }
    }
    assert_int_equal(schedule_count(), count);
    const struct scheduled *s = schedule_first();
    assert_true(!s == !count);
    if (s) {
        int k = 0;
        assert_int_equal(s->due_ms, first_ms);
        assert_int_equal(sscanf(s->key, "k%2d", &k), 1);
        assert_int_equal(model[s->db->id][k], first_ms);
    }
    for (int d = 0; d < DATABASES; d++) {
        db_check(db_at(d));
    }
}

static void change_key(int d, int k) REQUIRES(keyspace_lock)
{
    char name[16];
    snprintf(name, sizeof(name), "k%02d", k);
    struct key key = key_of(slice_cstr(name));
    struct keyref ref;
    db_open(&ref, db_at(d), &key, 1, 0);
    switch (rand_below(6)) {
    case 0:
        model[d][k] = 0;
        db_delete(&ref, rand_below(2));
        break;
    case 1:
        model[d][k] = 0;
        db_put(&ref, entry_create_string(key.name, SLICE("a string"), ENTRY_NO_EXPIRY));
        break;
    case 2: /* what moves the entry leaves the job where it is */
        if (ref.entry) {
            db_set_expiry(&ref, rand_below(2) ? FUTURE_MS : ENTRY_NO_EXPIRY);
        }
        break;
    default:
        model[d][k] = FUTURE_MS + 1 + (int64_t)rand_below(1000);
        db_put(&ref, make(key.name, rand_below(2), FUTURE_MS, model[d][k] - FUTURE_MS));
    }
}

static void swap(int a, int b) REQUIRES(keyspace_lock)
{
    int64_t before[KEYS];
    db_swap(db_at(a), db_at(b));
    memcpy(before, model[a], sizeof(before));
    memcpy(model[a], model[b], sizeof(before));
    memcpy(model[b], before, sizeof(before));
}

static void test_order(void **state)
{
    (void)state;
    memset(model, 0, sizeof(model));
    for (int step = 0; step < 5000; step++) {
        unsigned what = (unsigned)rand_below(100);
        keyspace_lock_exclusive();
        if (what == 0) {
            int d = (int)rand_below(DATABASES);
            db_flush(db_at(d), rand_below(2));
            memset(model[d], 0, sizeof(model[d]));
        } else if (what < 4) {
            swap(0, 1 + (int)rand_below(2));
        } else {
            change_key((int)rand_below(DATABASES), (int)rand_below(KEYS));
        }
        check();
        keyspace_unlock_exclusive();
        reclaim_run();
    }
}

static void test_advance_and_skip(void **state)
{
    (void)state;
    keyspace_lock_exclusive();
    for (int k = 0; k < KEYS; k++) {
        char name[16];
        snprintf(name, sizeof(name), "k%02d", k);
        struct key key = key_of(slice_cstr(name));
        struct keyref ref;
        db_open(&ref, db_at(0), &key, 1, 0);
        db_put(&ref, make(key.name, k == 0, FUTURE_MS, 100 + k));
    }
    /* Each turn takes the first one's time on. */
    int64_t last_ms = 0;
    const struct scheduled *s = schedule_first();
    assert_true(s->job->terms.single);
    struct keyref ref;
    struct key key = key_of(SLICE("k00"));
    db_open(&ref, db_at(0), &key, 1, 0);
    db_delete(&ref, false);
    for (int turn = 0; turn < 1000; turn++) {
        s = schedule_first();
        assert_true(s->due_ms >= last_ms);
        last_ms = s->due_ms;
        schedule_advance(last_ms);
    }
    schedule_skip(last_ms + 1000000);
    assert_true(schedule_first()->due_ms > last_ms + 1000000);
    assert_int_equal(schedule_count(), KEYS - 1);
    keyspace_unlock_exclusive();
    reclaim_run();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next),
        cmocka_unit_test(test_catch_up),
        cmocka_unit_test_setup_teardown(test_due_goes_with_the_job, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_advance_and_skip, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
