/* Who waits for which key: keyspace/waiting.h. Waiters here take nothing from a key, or the whole
 * of it; strings stand for the values that are waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keyspace/fixture.h"

#include "keyspace/event.h"
#include "keyspace/reclaim.h"
#include "keyspace/waiting.h"
#include "value/string.h"

#include <stdio.h>
#include <string.h>

#define NOW 1700000000000
#define KEYS_MAX 4

struct test_waiter {
    struct waiter waiter; /* first */
    char name;
    bool takes;                        /* deletes the key that it is served with, and leaves */
    bool stays;                        /* is tried and goes on waiting */
    const char *writes;                /* sets this key when it is served */
    struct test_waiter *ends, *brings; /* who goes then, who comes and waits for "x" */
    struct waiting_place places[KEYS_MAX];
};

static char tried[4096]; /* names of the waiters that were tried, in order */
static size_t tried_len;
static bool any_time; /* the lock serves by the clock */
static struct db *taken_db;
static const char *taken_key;

static void delete_key(struct db *db, const char *key) REQUIRES(keyspace_lock)
{
    struct keyref ref = fixture_open(db, key, NOW);
    if (ref.entry) {
        event_key_changed(db, ref.key.name);
        db_delete(&ref, false);
    }
}

static void set_key(struct db *db, const char *key) REQUIRES(keyspace_lock)
{
    struct keyref ref = fixture_open(db, key, NOW);
    if (!ref.entry) {
        db_put(&ref, string_create(ref.key.name, SLICE("v"), ENTRY_NO_EXPIRY));
    }
    event_key_changed(db, ref.key.name);
}

static void try_waiter(struct waiter *w, int64_t now_ms)
{
    struct test_waiter *t = (struct test_waiter *)w;
    keyspace_assert_exclusive();
    assert_true(any_time || now_ms == NOW);
    assert_true(tried_len < sizeof(tried) - 1);
    tried[tried_len++] = t->name;
    waiting_serve(now_ms); /* harmless from within */
    if (t->stays) {
        return;
    }
    waiting_remove(w);
    if (t->takes) {
        delete_key(taken_db, taken_key);
    }
    if (t->writes) {
        set_key(db_at(0), t->writes);
    }
    if (t->ends) {
        waiting_remove(&t->ends->waiter);
    }
    if (t->brings) {
        struct key key = key_of(SLICE("x"));
        waiting_add(&t->brings->waiter, db_at(0), &key, 1);
    }
}

static void make(struct test_waiter *t, char name)
{
    *t = (struct test_waiter){.name = name};
    t->waiter = (struct waiter){.places = t->places, .type = VALUE_STRING};
}

static void add(struct test_waiter *t, struct db *db, const char *a, const char *b, const char *c)
{
    const char *names[] = {a, b, c};
    struct key keys[KEYS_MAX];
    int count = 0;
    for (int i = 0; i < 3 && names[i]; i++) {
        keys[count++] = key_of(slice_cstr(names[i]));
    }
    keyspace_lock_exclusive();
    waiting_add(&t->waiter, db, keys, count);
    keyspace_unlock_exclusive();
}

/* Serves, and tells who was tried since the last call. */
static const char *served(void) REQUIRES(keyspace_lock)
{
    static char copy[sizeof(tried)];
    waiting_serve(NOW);
    assert_false(waiting_has_ready());
    memcpy(copy, tried, tried_len);
    copy[tried_len] = '\0';
    tried_len = 0;
    return copy;
}

static int enter_dbs(void **state)
{
    (void)state;
    db_setup(3);
    waiting_setup(try_waiter);
    fixture_told();
    return 0;
}

static int leave_dbs(void **state)
{
    (void)state;
    assert_int_equal(waiting_key_count(), 0);
    assert_int_equal(waiting_key_count_when_gone(), 0);
    waiting_teardown();
    reclaim_run();
    db_teardown();
    return 0;
}

/* ---- tests ---- */

static void test_order_of_keys_and_waiters(void **state)
{
    (void)state;
    struct test_waiter a, b, c, d;
    make(&a, 'a');
    make(&b, 'b');
    make(&c, 'c');
    make(&d, 'd');
    add(&a, db_at(0), "x", NULL, NULL);
    add(&b, db_at(0), "y", NULL, NULL);
    add(&c, db_at(0), "x", "y", NULL);
    add(&d, db_at(0), "y", NULL, NULL);
    assert_int_equal(waiting_key_count(), 2);
    keyspace_lock_exclusive();
    assert_string_equal(served(), "");
    set_key(db_at(0), "y");
    set_key(db_at(0), "x");
    set_key(db_at(0), "y");
    assert_true(waiting_has_ready());
    assert_string_equal(served(), "bcda");
    assert_string_equal(served(), "");
    keyspace_unlock_exclusive();
}

static void test_letting_go_of_the_lock_serves(void **state)
{
    (void)state;
    struct test_waiter a, b;
    make(&a, 'a');
    make(&b, 'b');
    add(&a, db_at(0), "x", NULL, NULL);
    add(&b, db_at(0), "y", NULL, NULL);
    any_time = true;
    keyspace_lock_exclusive();
    set_key(db_at(0), "y");
    set_key(db_at(0), "x");
    keyspace_unlock_exclusive();
    any_time = false;
    keyspace_lock_exclusive();
    assert_string_equal(served(), "ba");
    keyspace_unlock_exclusive();
}

static void test_what_is_taken_is_not_offered_again(void **state)
{
    (void)state;
    struct test_waiter waiters[3];
    taken_db = db_at(0);
    taken_key = "x";
    for (int i = 0; i < 3; i++) {
        make(&waiters[i], (char)('a' + i));
        waiters[i].takes = true;
        add(&waiters[i], db_at(0), "x", NULL, NULL);
    }
    keyspace_lock_exclusive();
    set_key(db_at(0), "x");
    assert_string_equal(served(), "a");
    delete_key(db_at(0), "x");
    assert_string_equal(served(), "");
    set_key(db_at(0), "x");
    assert_string_equal(served(), "b");
    set_key(db_at(0), "x");
    assert_string_equal(served(), "c");
    keyspace_unlock_exclusive();
}

static void test_types(void **state)
{
    (void)state;
    struct test_waiter list, string, gone;
    make(&list, 'l');
    make(&string, 's');
    make(&gone, 'g');
    list.waiter.type = gone.waiter.type = VALUE_LIST;
    gone.waiter.when_gone = true;
    gone.stays = true;
    add(&list, db_at(0), "x", NULL, NULL);
    add(&gone, db_at(0), "x", NULL, NULL);
    add(&string, db_at(0), "x", NULL, NULL);
    assert_int_equal(waiting_key_count_when_gone(), 1);
    keyspace_lock_exclusive();
    set_key(db_at(0), "x");
    assert_string_equal(served(), "gs");
    delete_key(db_at(0), "x");
    assert_string_equal(served(), "g");
    waiting_remove(&gone.waiter);
    assert_int_equal(waiting_key_count_when_gone(), 0);
    set_key(db_at(0), "x");
    delete_key(db_at(0), "x");
    assert_string_equal(served(), "");
    waiting_remove(&list.waiter);
    keyspace_unlock_exclusive();
}

static void test_a_key_named_twice(void **state)
{
    (void)state;
    struct test_waiter a;
    make(&a, 'a');
    a.stays = true;
    add(&a, db_at(0), "x", "y", "x");
    assert_int_equal(a.waiter.place_count, 2);
    keyspace_lock_exclusive();
    set_key(db_at(0), "x");
    assert_string_equal(served(), "a");
    waiting_remove(&a.waiter);
    assert_int_equal(waiting_key_count(), 0);
    waiting_add(&a.waiter, db_at(0), &(struct key){SLICE("x"), hash_slice(SLICE("x"))}, 1);
    waiting_remove(&a.waiter);
    keyspace_unlock_exclusive();
}

static void test_chains(void **state)
{
    (void)state;
    struct test_waiter waiters[10];
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    for (int i = 0; i < 10; i++) {
        make(&waiters[i], names[i][0]);
        waiters[i].writes = names[(i + 1) % 10]; /* the last one closes the circle */
        add(&waiters[i], db_at(0), names[i], NULL, NULL);
    }
    keyspace_lock_exclusive();
    set_key(db_at(0), "4");
    assert_string_equal(served(), "4567890123");
    keyspace_unlock_exclusive();
}

static void test_a_waiter_that_makes_its_own_key_ready(void **state)
{
    (void)state;
    struct test_waiter a, b;
    make(&a, 'a');
    make(&b, 'b');
    a.writes = b.writes = "x";
    add(&a, db_at(0), "x", NULL, NULL);
    add(&b, db_at(0), "x", NULL, NULL);
    keyspace_lock_exclusive();
    set_key(db_at(0), "x");
    assert_string_equal(served(), "ab");
    keyspace_unlock_exclusive();
}

/* One who is served has others go: those behind it, before it, and the last of them. */
static void test_a_waiter_that_ends_others(void **state)
{
    (void)state;
    struct test_waiter waiters[6];
    for (int i = 0; i < 6; i++) {
        make(&waiters[i], (char)('a' + i));
        add(&waiters[i], db_at(0), "x", i == 3 ? "y" : NULL, NULL);
    }
    waiters[0].stays = true;
    waiters[1].ends = &waiters[2];
    waiters[3].ends = &waiters[0];
    waiters[4].ends = &waiters[5];
    keyspace_lock_exclusive();
    set_key(db_at(0), "x");
    assert_string_equal(served(), "abde");
    keyspace_unlock_exclusive();
}

/* Who comes while others are served waits for the next change. */
static void test_waiters_that_come_meanwhile(void **state)
{
    (void)state;
    struct test_waiter a, b, new_one, newer;
    make(&a, 'a');
    make(&b, 'b');
    make(&new_one, 'n');
    make(&newer, 'm');
    a.brings = &new_one;
    b.ends = &new_one;
    b.brings = &newer;
    newer.brings = &new_one;
    add(&a, db_at(0), "x", NULL, NULL);
    add(&b, db_at(0), "x", NULL, NULL);
    keyspace_lock_exclusive();
    set_key(db_at(0), "x");
    assert_string_equal(served(), "ab");
    set_key(db_at(0), "x");
    assert_string_equal(served(), "m");
    waiting_look_again(&new_one.places[0]);
    assert_string_equal(served(), "n");
    keyspace_unlock_exclusive();
}

static void test_databases(void **state)
{
    (void)state;
    struct test_waiter zero, one;
    make(&zero, '0');
    make(&one, '1');
    add(&zero, db_at(0), "x", NULL, NULL);
    add(&one, db_at(1), "x", NULL, NULL);
    assert_int_equal(waiting_key_count(), 2);
    keyspace_lock_exclusive();
    set_key(db_at(2), "x");
    assert_string_equal(served(), "");
    db_swap(db_at(2), db_at(1));
    assert_string_equal(served(), "1");
    db_swap(db_at(1), db_at(0));
    assert_string_equal(served(), "0");
    keyspace_unlock_exclusive();
}

static void test_expired_values_serve_nobody(void **state)
{
    (void)state;
    struct test_waiter a;
    make(&a, 'a');
    add(&a, db_at(0), "x", NULL, NULL);
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db_at(0), "x", NOW - 10);
    db_put(&ref, string_create(ref.key.name, SLICE("v"), NOW - 5));
    event_key_changed(db_at(0), ref.key.name);
    assert_string_equal(served(), "");
    waiting_remove(&a.waiter);
    fixture_open(db_at(0), "x", NOW);
    keyspace_unlock_exclusive();
}

/* ---- against a model ---- */

#define MODEL_WAITERS 40
#define MODEL_KEYS 6

/* Waiters of the model in the order of their coming; who serves whom is found by looking through
 * all of them. */
struct model {
    int order[MODEL_WAITERS];
    int count;
    unsigned keys[MODEL_WAITERS]; /* bits */
};

static uint64_t random_state;

static unsigned draw(unsigned bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % bound;
}

static void model_remove(struct model *m, int waiter)
{
    int kept = 0;
    for (int i = 0; i < m->count; i++) {
        if (m->order[i] != waiter) {
            m->order[kept++] = m->order[i];
        }
    }
    m->count = kept;
    m->keys[waiter] = 0;
}

/* Serves all who wait for `key`; appends their names. */
static size_t model_serve(struct model *m, unsigned key, char *out)
{
    size_t len = 0;
    for (int i = 0; i < m->count;) {
        int waiter = m->order[i];
        if (m->keys[waiter] & 1u << key) {
            out[len++] = (char)('0' + waiter);
            model_remove(m, waiter);
        } else {
            i++;
        }
    }
    return len;
}

static const char *const model_names[MODEL_KEYS] = {"k", "kk", "", "l", "m", "n"};

static void model_add(struct model *m, struct test_waiter *waiters, int waiter)
{
    struct key keys[KEYS_MAX];
    int count = 1 + (int)draw(KEYS_MAX);
    for (int i = 0; i < count; i++) {
        unsigned key = draw(MODEL_KEYS);
        keys[i] = key_of(slice_cstr(model_names[key]));
        m->keys[waiter] |= 1u << key;
    }
    m->order[m->count++] = waiter;
    keyspace_lock_exclusive();
    waiting_add(&waiters[waiter].waiter, db_at(0), keys, count);
    keyspace_unlock_exclusive();
}

static void model_change(struct model *m)
{
    char expected[2 * MODEL_WAITERS + 1];
    unsigned first = draw(MODEL_KEYS), second = draw(MODEL_KEYS);
    keyspace_lock_exclusive();
    set_key(db_at(0), model_names[first]);
    set_key(db_at(0), model_names[second]);
    size_t len = model_serve(m, first, expected);
    len += model_serve(m, second, expected + len);
    expected[len] = '\0';
    assert_string_equal(served(), expected);
    keyspace_unlock_exclusive();
}

static void model_check(const struct model *m)
{
    unsigned waited = 0;
    for (int i = 0; i < m->count; i++) {
        waited |= m->keys[m->order[i]];
    }
    assert_int_equal(waiting_key_count(), __builtin_popcount(waited));
}

static void test_against_a_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct model m = {.count = 0};
        struct test_waiter waiters[MODEL_WAITERS];
        random_state = seed;
        for (int i = 0; i < MODEL_WAITERS; i++) {
            make(&waiters[i], (char)('0' + i));
        }
        for (int step = 0; step < 400; step++) {
            int waiter = (int)draw(MODEL_WAITERS);
            if (draw(8) == 0) {
                model_change(&m);
            } else if (m.keys[waiter]) {
                keyspace_lock_exclusive();
                waiting_remove(&waiters[waiter].waiter);
                keyspace_unlock_exclusive();
                model_remove(&m, waiter);
            } else {
                model_add(&m, waiters, waiter);
            }
            model_check(&m);
        }
        while (m.count > 0) {
            keyspace_lock_exclusive();
            waiting_remove(&waiters[m.order[0]].waiter);
            keyspace_unlock_exclusive();
            model_remove(&m, m.order[0]);
        }
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, enter_dbs, leave_dbs)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_order_of_keys_and_waiters),
        TEST(test_letting_go_of_the_lock_serves),
        TEST(test_what_is_taken_is_not_offered_again),
        TEST(test_types),
        TEST(test_a_key_named_twice),
        TEST(test_chains),
        TEST(test_a_waiter_that_makes_its_own_key_ready),
        TEST(test_a_waiter_that_ends_others),
        TEST(test_waiters_that_come_meanwhile),
        TEST(test_databases),
        TEST(test_expired_values_serve_nobody),
        TEST(test_against_a_model),
    };
    return cmocka_run_group_tests_name("waiting", tests, fixture_enter, fixture_leave);
}
