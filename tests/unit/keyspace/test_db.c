/* Databases: keyspace/db.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keyspace/fixture.h"

#include "base/mem.h"
#include "base/stats.h"
#include "keyspace/access.h"
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
    db_setup(4);
    fixture_told();
    return 0;
}

static int leave_dbs(void **state)
{
    (void)state;
    fixture_check();
    keyspace_lock_exclusive();
    expire_run_notes(NOW);
    keyspace_unlock_exclusive();
    reclaim_run();
    db_teardown();
    return 0;
}

static void assert_value(struct db *db, const char *key, const char *expected, int64_t now_ms)
{
    char scratch[STRING_VIEW_BYTES];
    keyspace_lock_shared();
    struct entry *e = fixture_read(db, key, now_ms);
    if (!expected) {
        assert_null(e);
    } else {
        assert_non_null(e);
        struct slice view = string_view(e, scratch);
        assert_int_equal(view.len, strlen(expected));
        assert_memory_equal(view.ptr, expected, view.len);
    }
    keyspace_unlock_shared();
}

static void test_put_read_delete(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    assert_int_equal(db_count(), 4);
    assert_value(db, "a", NULL, NOW);
    fixture_set(db, "a", "1", ENTRY_NO_EXPIRY, NOW);
    fixture_set(db, "b", "text", ENTRY_NO_EXPIRY, NOW);
    assert_value(db, "a", "1", NOW);
    assert_value(db, "b", "text", NOW);
    assert_value(db_at(1), "a", NULL, NOW);
    fixture_set(db, "a", "other", ENTRY_NO_EXPIRY, NOW);
    assert_value(db, "a", "other", NOW);
    assert_int_equal(db_size(db), 2);

    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, "a", NOW);
    assert_non_null(ref.entry);
    assert_true(db_delete(&ref, false));
    assert_null(ref.entry);
    assert_null(ref.slot);
    assert_false(db_delete(&ref, false));
    db_put(&ref, string_create(SLICE("a"), SLICE("again"),
                               ENTRY_NO_EXPIRY)); /* the place is still good */
    assert_non_null(ref.entry);
    ref = fixture_open(db, "missing", NOW);
    assert_null(ref.entry);
    assert_false(db_delete(&ref, true));
    keyspace_unlock_exclusive();
    assert_true(reclaim_has_work());
    reclaim_run();
    assert_false(reclaim_has_work());
    assert_value(db, "a", "again", NOW);
}

static void test_expiry_is_logical(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    fixture_set(db, "k", "v", NOW + 100, NOW);
    assert_int_equal(db_expires(db), 1);
    assert_value(db, "k", "v", NOW + 99);
    assert_value(db, "k", NULL, NOW + 100); /* gone the moment it comes */
    assert_value(db, "k", NULL, INT64_MAX);
    assert_int_equal(db_size(db), 1);
    assert_value(db, "k", "v", NOW); /* a reader deletes nothing */
    fixture_set(db, "past", "v", -5, NOW);
    assert_value(db, "past", NULL, NOW);

    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, "k", NOW + 100);
    assert_null(ref.entry);
    assert_null(ref.slot);
    assert_int_equal(db_size(db), 1);
    keyspace_unlock_exclusive();
    assert_int_equal(db_expires(db), 1);
}

static void test_expiry_is_set_and_removed(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    static const int64_t sequence[] = {NOW + 5,         NOW + 6, ENTRY_NO_EXPIRY,
                                       ENTRY_NO_EXPIRY, NOW + 7, INT64_MAX};
    fixture_set(db, "k", "value", ENTRY_NO_EXPIRY, NOW);
    fixture_set(db, "other", "value", NOW + 9, NOW);
    for (size_t i = 0; i < sizeof(sequence) / sizeof(sequence[0]); i++) {
        keyspace_lock_exclusive();
        struct keyref ref = fixture_open(db, "k", NOW);
        db_set_expiry(&ref, sequence[i]);
        assert_true(entry_expiry_ms(ref.entry) == sequence[i]);
        assert_ptr_equal(table_entry(*ref.slot), ref.entry);
        db_check(db);
        keyspace_unlock_exclusive();
        assert_int_equal(db_expires(db), 1 + (sequence[i] != ENTRY_NO_EXPIRY));
        assert_value(db, "k", "value", NOW);
    }
    /* An overwrite takes over the new entry's expiry, or none. */
    fixture_set(db, "k", "value", ENTRY_NO_EXPIRY, NOW);
    assert_int_equal(db_expires(db), 1);
    fixture_set(db, "other", "value", NOW + 1, NOW);
    assert_int_equal(db_expires(db), 1);
}

static void test_verbs_of_value_move_entries(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    fixture_set(db, "k", "12", NOW + 5, NOW);
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, "k", NOW);
    struct entry *e = ref.entry;
    char *at = string_make_writable(&e, 5000);
    memset(at, 'x', 5000);
    db_moved(&ref, e);
    db_check(db);
    assert_ptr_equal(ref.entry, e);
    keyspace_unlock_exclusive();
    keyspace_lock_shared();
    assert_int_equal(string_len(fixture_read(db, "k", NOW)), 5000);
    keyspace_unlock_shared();
}

static void test_take_hands_the_entry_over(void **state)
{
    (void)state;
    fixture_set(db_at(0), "from", "v", NOW + 50, NOW);
    keyspace_lock_exclusive();
    struct keyref from = fixture_open(db_at(0), "from", NOW);
    struct entry *e = db_take(&from);
    assert_int_equal(db_size(db_at(0)), 0);
    struct keyref to = fixture_open(db_at(1), "to", NOW);
    db_put(&to, entry_with_key(e, SLICE("to")));
    keyspace_unlock_exclusive();
    assert_int_equal(db_expires(db_at(0)), 0);
    assert_int_equal(db_expires(db_at(1)), 1);
    assert_value(db_at(1), "to", "v", NOW + 49);
    assert_value(db_at(1), "to", NULL, NOW + 50);
}

/* Whether places may have changed since the last call. */
static bool has_passed(struct db_moment *last) REQUIRES(keyspace_lock)
{
    struct db_moment before = *last;
    *last = db_moment();
    return !db_moment_is(&before, last);
}

static void test_moments(void **state)
{
    (void)state;
    fixture_set(db_at(0), "k", "v", ENTRY_NO_EXPIRY, NOW);
    keyspace_lock_exclusive();
    struct db_moment last = db_moment();
    struct keyref ref = fixture_open(db_at(0), "k", NOW);
    fixture_read(db_at(0), "none", NOW);
    assert_false(has_passed(&last));
    db_set_expiry(&ref, NOW + 5);
    assert_true(has_passed(&last));
    fixture_open(db_at(0), "k", NOW + 5); /* which takes it out */
    assert_true(has_passed(&last));
    ref = fixture_open(db_at(0), "k", NOW);
    assert_false(has_passed(&last));
    db_put(&ref, string_create(SLICE("k"), SLICE("v"), ENTRY_NO_EXPIRY));
    assert_true(has_passed(&last));
    db_put(&ref, string_create(SLICE("k"), SLICE("w"), ENTRY_NO_EXPIRY));
    assert_true(has_passed(&last));
    db_swap(db_at(0), db_at(1));
    assert_true(has_passed(&last));
    db_flush(db_at(1), false);
    assert_true(has_passed(&last));
    keyspace_unlock_exclusive();
    keyspace_lock_exclusive();
    assert_true(has_passed(&last));
    assert_false(has_passed(&last));
    keyspace_unlock_exclusive();
}

static void test_hits_misses_and_clocks(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    struct key here = key_of(SLICE("here")), gone = key_of(SLICE("gone"));
    fixture_set(db, "here", "v", ENTRY_NO_EXPIRY, NOW);
    uint64_t hits = stats_sum(STAT_KEYSPACE_HITS), misses = stats_sum(STAT_KEYSPACE_MISSES);
    keyspace_lock_shared();
    struct entry *e = db_read(db, &here, NOW + 50000, 0);
    assert_int_equal(access_idle_ms(e, NOW + 50000), 0);
    db_read(db, &here, NOW + 90000, DB_NO_TOUCH);
    assert_int_equal(access_idle_ms(e, NOW + 90000), 40000);
    db_read(db, &gone, NOW, 0);
    db_read(db, &gone, NOW, DB_NO_TOUCH);
    db_read(db, &here, NOW, DB_NO_STATS);
    db_read(db, &gone, NOW, DB_NO_STATS | DB_NO_TOUCH);
    keyspace_unlock_shared();
    assert_int_equal(stats_sum(STAT_KEYSPACE_HITS) - hits, 2);
    assert_int_equal(stats_sum(STAT_KEYSPACE_MISSES) - misses, 2);
    /* An overwrite keeps the clock that opening the key has just set. */
    fixture_set(db, "here", "w", ENTRY_NO_EXPIRY, NOW + 70000);
    keyspace_lock_shared();
    e = db_read(db, &here, NOW + 70000, DB_NO_TOUCH);
    assert_int_equal(access_idle_ms(e, NOW + 70000), 0);
    keyspace_unlock_shared();
}

/* ---- flush and swap ---- */

static void fill(struct db *db, const char *prefix, int count, int64_t expiry_ms)
{
    char key[64];
    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "%s%d", prefix, i);
        fixture_set(db, key, key, i % 3 ? ENTRY_NO_EXPIRY : expiry_ms, NOW);
    }
}

static void test_flush(void **state)
{
    (void)state;
    struct db *db = db_at(2);
    fixture_told();
    for (int round = 0; round < 3; round++) {
        fill(db, "k", 3000, NOW + 5);
        fill(db_at(1), "k", 3, NOW + 5);
        fixture_told();
        keyspace_lock_exclusive();
        assert_int_equal(db_flush(db, false), 3000);
        assert_int_equal(db_size(db), 0);
        db_check(db);
        assert_int_equal(db_flush(db, false), 0);
        keyspace_unlock_exclusive();
        assert_string_equal(fixture_told(), "!2:* ");
        assert_int_equal(db_expires(db), 0);
        assert_int_equal(db_expires(db_at(1)), 1);
        assert_true(reclaim_has_work());
        reclaim_run();
        assert_value(db, "k1", NULL, NOW);
        assert_value(db_at(1), "k1", "k1", NOW);
    }
}

static void test_swap(void **state)
{
    (void)state;
    fill(db_at(0), "a", 300, NOW + 5);
    fill(db_at(3), "b", 30, NOW + 5);
    db_at(0)->avg_ttl_ms = 17;
    fixture_told();
    keyspace_lock_exclusive();
    db_swap(db_at(0), db_at(3));
    keyspace_unlock_exclusive();
    assert_string_equal(fixture_told(), "!0:* !3:* ");
    assert_int_equal(db_at(0)->id, 0);
    assert_int_equal(db_at(3)->id, 3);
    assert_int_equal(db_expires(db_at(0)), 10);
    assert_int_equal(db_expires(db_at(3)), 100);
    assert_int_equal(db_at(3)->avg_ttl_ms, 17);
    assert_value(db_at(3), "a7", "a7", NOW);
    assert_value(db_at(0), "a7", NULL, NOW);
    fixture_check();
    keyspace_lock_exclusive();
    db_swap(db_at(0), db_at(0));
    keyspace_unlock_exclusive();
    assert_value(db_at(0), "b7", "b7", NOW);
    fixture_check();
}

static void add_aside(int index, const char *key, const char *value)
{
    struct slice name = slice_cstr(key);
    struct entry *e = entry_create_string(name, slice_cstr(value), NOW + 50);
    keyspace_lock_exclusive();
    assert_true(db_add_loaded(db_aside(index), hash_slice(name), e));
    keyspace_unlock_exclusive();
}

static void test_aside(void **state)
{
    (void)state;
    fill(db_at(0), "a", 300, NOW + 5);
    fixture_told();
    /* What is dropped was never there. */
    db_aside_open();
    add_aside(0, "b", "new");
    add_aside(3, "c", "new");
    assert_value(db_at(0), "b", NULL, NOW);
    db_aside_close();
    assert_string_equal(fixture_told(), "");
    assert_value(db_at(0), "a7", "a7", NOW);
    fixture_check();
    /* What takes the place of ours. */
    db_aside_open();
    add_aside(0, "b", "new");
    add_aside(3, "c", "new");
    keyspace_lock_exclusive();
    db_aside_swap();
    keyspace_unlock_exclusive();
    assert_value(db_aside(0), "a7", "a7", NOW);
    db_aside_close();
    assert_value(db_at(0), "b", "new", NOW);
    assert_value(db_at(3), "c", "new", NOW);
    assert_value(db_at(0), "a7", NULL, NOW);
    assert_int_equal(db_at(3)->id, 3);
    assert_int_equal(db_expires(db_at(0)), 1);
    fixture_check();
}

/* ---- drawing and scanning ---- */

static void test_random_is_a_live_key(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    keyspace_lock_shared();
    assert_null(db_random(db, NOW));
    keyspace_unlock_shared();
    fill(db, "k", 90, NOW + 5);
    int dead = 0;
    keyspace_lock_shared();
    for (int i = 0; i < 2000; i++) {
        struct entry *e = db_random(db, NOW + 5);
        assert_non_null(e);
        assert_true(entry_expiry_ms(e) == ENTRY_NO_EXPIRY);
        dead += entry_expiry_ms(db_random(db, NOW)) != ENTRY_NO_EXPIRY;
    }
    keyspace_unlock_shared();
    assert_in_range(dead, 300, 1100); /* a third of 2000 */
    fill(db_at(1), "k", 1, NOW + 5);
    keyspace_lock_shared();
    assert_null(db_random(db_at(1), NOW + 5)); /* ends, though only expired keys are there */
    keyspace_unlock_shared();
}

#define SCAN_KEYS 30000

static uint8_t scan_visits[SCAN_KEYS];

static void visit_scanned(struct entry *e, void *context)
{
    int64_t index;
    assert_true(string_get_integer(e, &index));
    scan_visits[index]++;
    ++*(uint64_t *)context;
}

static void put_number(struct db *db, int number, int64_t expiry_ms)
{
    char key[32], value[32];
    snprintf(key, sizeof(key), "key:%d", number);
    snprintf(value, sizeof(value), "%d", number);
    fixture_set(db, key, value, expiry_ms, NOW);
}

static void delete_number(struct db *db, int number)
{
    char key[32];
    snprintf(key, sizeof(key), "key:%d", number);
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, key, NOW);
    db_delete(&ref, false);
    keyspace_unlock_exclusive();
    reclaim_run();
}

/* Keys 0-999 stay; the others come and go between the calls. */
static void test_scan_visits_what_stays_once(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    memset(scan_visits, 0, sizeof(scan_visits));
    for (int i = 0; i < 1000; i++) {
        put_number(db, i, i % 2 ? ENTRY_NO_EXPIRY : NOW + 1);
    }
    put_number(db, SCAN_KEYS - 1, NOW - 1); /* expired: never shown */
    uint64_t cursor = 0, visited = 0;
    int in = 1000;
    bool filling = true;
    do {
        uint64_t before = visited;
        keyspace_lock_shared();
        cursor = db_scan(db, cursor, 10, NOW, visit_scanned, &visited);
        keyspace_unlock_shared();
        assert_true(visited - before < 10 + 200);
        for (int i = 0; i < 500; i++) {
            if (filling && in < SCAN_KEYS - 1) {
                put_number(db, in++, ENTRY_NO_EXPIRY);
            } else if (!filling && in > 1000) {
                delete_number(db, --in);
            }
        }
        filling = in < 1500 || (filling && in < SCAN_KEYS - 1);
    } while (cursor);
    for (int i = 0; i < SCAN_KEYS; i++) {
        assert_true(scan_visits[i] <= 1 && (i >= 1000 || scan_visits[i] == 1));
    }
    assert_int_equal(scan_visits[SCAN_KEYS - 1], 0);
}

static void test_scan_counts(void **state)
{
    (void)state;
    struct db *db = db_at(0);
    uint64_t visited = 0;
    keyspace_lock_shared();
    assert_true(db_scan(db, 0, 1, NOW, visit_scanned, &visited) == 0); /* empty */
    keyspace_unlock_shared();
    for (int i = 0; i < 3000; i++) {
        put_number(db, i, ENTRY_NO_EXPIRY);
    }
    /* However large the count: 10 times it must not wrap around. */
    static const uint64_t counts[] = {3000, UINT64_MAX, UINT64_MAX / 10 + 1};
    for (int i = 0; i < 3; i++) {
        visited = 0;
        keyspace_lock_shared();
        assert_true(db_scan(db, 0, counts[i], NOW, visit_scanned, &visited) == 0);
        keyspace_unlock_shared();
        assert_int_equal(visited, 3000);
    }
}

/* ---- a model ---- */

#define MODEL_KEYS 4000

struct model_key {
    bool present;
    int64_t value, expiry_ms;
};

static struct model_key model[MODEL_KEYS];

static bool model_live(const struct model_key *m, int64_t now_ms)
{
    return m->present && (m->expiry_ms == ENTRY_NO_EXPIRY || m->expiry_ms > now_ms);
}

static int64_t some_expiry(uint64_t random, int64_t now_ms)
{
    return random % 3 ? now_ms + (int64_t)(random % 5000) - 10 : ENTRY_NO_EXPIRY;
}

static void write_step(struct db *db, int number, uint64_t random, int64_t now_ms)
{
    struct model_key *m = &model[number];
    char name[32];
    snprintf(name, sizeof(name), "key:%d", number);
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, name, now_ms);
    m->present = model_live(m, now_ms); /* opening deletes what has expired */
    assert_int_equal(ref.entry != NULL, m->present);
    int64_t expiry_ms = some_expiry(random >> 8, now_ms);
    switch (random % 4) {
    case 0:
        assert_int_equal(db_delete(&ref, random >> 60 & 1), m->present);
        m->present = false;
        break;
    case 1:
        if (m->present) {
            db_set_expiry(&ref, expiry_ms);
            m->expiry_ms = expiry_ms;
        }
        break;
    default:
        *m = (struct model_key){true, (int64_t)(random >> 32), expiry_ms};
        db_put(&ref, entry_create_integer(slice_cstr(name), m->value, expiry_ms));
    }
    keyspace_unlock_exclusive();
    reclaim_run();
}

static void compare_all(struct db *db, int64_t now_ms)
{
    uint64_t present = 0, expires = 0;
    char name[32];
    keyspace_lock_shared();
    for (int i = 0; i < MODEL_KEYS; i++) {
        snprintf(name, sizeof(name), "key:%d", i);
        struct entry *e = fixture_read(db, name, now_ms);
        assert_int_equal(e != NULL, model_live(&model[i], now_ms));
        assert_true(
            !e || (entry_integer(e) == model[i].value && entry_expiry_ms(e) == model[i].expiry_ms));
        present += model[i].present;
        expires += model[i].present && model[i].expiry_ms != ENTRY_NO_EXPIRY;
    }
    assert_int_equal(db_size(db), present);
    db_check(db);
    keyspace_unlock_shared();
    assert_int_equal(db_expires(db), expires);
}

/* After a read of everything the notes name keys that have expired; running them deletes just
 * those. */
static void run_notes(int64_t now_ms)
{
    uint64_t noted = stats_sum(STAT_EXPIRED_KEYS), dead = 0;
    keyspace_lock_exclusive();
    expire_run_notes(now_ms);
    keyspace_unlock_exclusive();
    reclaim_run();
    noted = stats_sum(STAT_EXPIRED_KEYS) - noted;
    for (int i = 0; i < MODEL_KEYS && dead < noted; i++) {
        if (model[i].present && !model_live(&model[i], now_ms)) {
            model[i].present = false; /* noted in this order, as far as the list went */
            dead++;
        }
    }
    assert_int_equal(dead, noted);
}

static void test_agrees_with_the_model(void **state)
{
    (void)state;
    uint64_t random = 12345;
    int64_t now_ms = NOW;
    memset(model, 0, sizeof(model));
    for (int phase = 0; phase < 12; phase++) {
        for (int i = 0; i < 6000; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            write_step(db_at(0), (int)((random >> 40) % MODEL_KEYS), random >> 3, now_ms);
        }
        compare_all(db_at(0), now_ms);
        run_notes(now_ms);
        compare_all(db_at(0), now_ms);
        now_ms += 700;
        run_notes(now_ms);
    }
}

int main(void)
{
#define DB_TEST(name) cmocka_unit_test_setup_teardown(name, enter_dbs, leave_dbs)
    const struct CMUnitTest tests[] = {
        DB_TEST(test_put_read_delete),
        DB_TEST(test_expiry_is_logical),
        DB_TEST(test_expiry_is_set_and_removed),
        DB_TEST(test_verbs_of_value_move_entries),
        DB_TEST(test_take_hands_the_entry_over),
        DB_TEST(test_moments),
        DB_TEST(test_hits_misses_and_clocks),
        DB_TEST(test_flush),
        DB_TEST(test_swap),
        DB_TEST(test_aside),
        DB_TEST(test_random_is_a_live_key),
        DB_TEST(test_scan_visits_what_stays_once),
        DB_TEST(test_scan_counts),
        DB_TEST(test_agrees_with_the_model),
    };
    return cmocka_run_group_tests(tests, fixture_enter, fixture_leave);
}
