/* Deadlines of members against a naive model, in every collection and encoding:
 * value/member_ttl.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/rand.h"
#include "value/hash.h"
#include "value/member_ttl.h"
#include "value/set.h"
#include "value/zset.h"

#include <stdio.h>
#include <string.h>

#define MEMBERS 60
#define NEVER INT64_MAX /* of the model: after all that it sets */
#define KEY SLICE("key")

struct model {
    bool present[MEMBERS];
    int64_t at_ms[MEMBERS];
};

static void set_limit(const struct option *options, const char *name, const char *text)
{
    const char *error;
    struct slice word = slice_cstr(text);
    while (options->name && strcmp(options->name, name) != 0) {
        options++;
    }
    assert_non_null(options->name);
    assert_true(option_store(options, &word, 1, &error));
}

/* Tiny limits: what is tested crosses from each encoding to the next. */
static int setup(void **state)
{
    (void)state;
    hash_set_secret(1);
    set_limit(hash_options, "hash-max-listpack-entries", "8");
    set_limit(hash_options, "hash-max-listpack-value", "64");
    set_limit(set_options, "set-max-intset-entries", "4");
    set_limit(set_options, "set-max-listpack-entries", "8");
    set_limit(set_options, "set-max-listpack-value", "64");
    set_limit(zset_options, "zset-max-listpack-entries", "8");
    set_limit(zset_options, "zset-max-listpack-value", "64");
    return 0;
}

static struct slice member_of(int i, char *text)
{
    int len = i % 3 == 0   ? snprintf(text, 100, "%d", i)
              : i % 3 == 1 ? snprintf(text, 100, "m%d", i)
                           : snprintf(text, 100, "a longer member, number %d", i);
    return slice_of(text, (size_t)len);
}

static struct entry *create(enum value_type type)
{
    return type == VALUE_HASH  ? hash_create(KEY, NULL, 0)
           : type == VALUE_SET ? set_create(KEY, NULL, 0, ENTRY_NO_EXPIRY)
                               : zset_create(KEY, 1);
}

static void add(struct entry **e, struct slice member)
{
    struct set_member m;
    double score = (double)rand_below(5);
    switch (entry_type(*e)) {
    case VALUE_HASH:
        hash_set(e, member, SLICE("v"), NULL);
        return;
    case VALUE_SET:
        set_member_init(&m, member);
        set_add(*e, &m);
        return;
    default:
        zset_add(*e, member, 0, &score);
    }
}

static bool set_deadline(struct entry **e, struct slice member, int64_t at_ms)
{
    *e = entry_with_block(*e);
    return member_ttl_set(*e, member, at_ms);
}

static const struct value_ops *ops(const struct entry *e)
{
    return value_ops_of[entry_type(e)];
}

static int64_t shown(int64_t at_ms)
{
    return at_ms == NEVER ? ENTRY_NO_EXPIRY : at_ms;
}

static void compare(const struct entry *e, const struct model *m)
{
    uint64_t present = 0, with = 0;
    int64_t next_ms = NEVER, last_ms = INT64_MIN;
    for (int i = 0; i < MEMBERS; i++) {
        char text[100];
        assert_int_equal(ops(e)->has(e, member_of(i, text)), m->present[i]);
        assert_true(member_ttl_get(e, member_of(i, text)) == shown(m->at_ms[i]));
        present += m->present[i];
        with += m->at_ms[i] != NEVER;
        next_ms = m->at_ms[i] < next_ms ? m->at_ms[i] : next_ms;
        last_ms = m->present[i] && m->at_ms[i] > last_ms ? m->at_ms[i] : last_ms;
    }
    assert_int_equal(ops(e)->count(e), present);
    assert_int_equal(member_ttl_count(e), with);
    assert_int_equal(member_ttl_any(e), with > 0);
    assert_true(member_ttl_next_ms(e) == shown(next_ms));
    if (with > 0) {
        assert_int_equal(member_ttl_all_due(e, last_ms - 1), false);
        assert_int_equal(member_ttl_all_due(e, last_ms), last_ms != NEVER);
    }
    if (present > 0) {
        entry_type(e) == VALUE_HASH  ? hash_check(e)
        : entry_type(e) == VALUE_SET ? member_ttl_check(e)
                                     : zset_check(e);
    }
}

static void remove_due(struct entry *e, struct model *m)
{
    int64_t now_ms = 1000 + (int64_t)rand_below(100);
    uint64_t max = rand_below(4) ? UINT64_MAX : 1 + rand_below(3);
    uint64_t due = 0;
    for (int i = 0; i < MEMBERS; i++) {
        due += m->at_ms[i] <= now_ms;
    }
    assert_int_equal(member_ttl_remove_due(e, now_ms, max, NULL, NULL), due < max ? due : max);
    uint64_t left = 0;
    for (int i = 0; i < MEMBERS; i++) {
        char text[100];
        if (m->at_ms[i] <= now_ms && !ops(e)->has(e, member_of(i, text))) {
            m->present[i] = false;
            m->at_ms[i] = NEVER;
        }
        left += m->at_ms[i] <= now_ms;
    }
    assert_int_equal(left, due < max ? 0 : due - max);
}

static void remove_ranks(struct entry *e, struct model *m)
{
    if (entry_type(e) != VALUE_ZSET) {
        return;
    }
    uint64_t start = rand_below(zset_count(e) + 1);
    zset_remove_ranks(e, start, start + rand_below(zset_count(e) - start + 1));
    for (int i = 0; i < MEMBERS; i++) {
        char text[100];
        if (m->present[i] && !ops(e)->has(e, member_of(i, text))) {
            m->present[i] = false;
            m->at_ms[i] = NEVER;
        }
    }
}

/* The entry takes another shape or place, which changes nothing of its content. */
static struct entry *reshape(struct entry *e)
{
    struct entry *copy;
    switch (rand_below(3)) {
    case 0:
        return entry_with_key(e, rand_below(2) ? SLICE("another key") : KEY);
    case 1:
        return entry_with_expiry(e, rand_below(2) ? 5000 : ENTRY_NO_EXPIRY);
    default:
        copy = entry_copy(e, KEY, entry_expiry_ms(e));
        entry_destroy(&e);
        return copy;
    }
}

static struct entry *step(struct entry *e, struct model *m)
{
    char text[100];
    int i = (int)rand_below(MEMBERS);
    struct slice member = member_of(i, text);
    switch (rand_below(12)) {
    case 0:
        assert_int_equal(ops(e)->remove(e, member), m->present[i]);
        m->present[i] = false;
        m->at_ms[i] = NEVER;
        return e;
    case 1:
        remove_due(e, m);
        return e;
    case 2:
        assert_int_equal(member_ttl_drop(e, member), m->at_ms[i] != NEVER);
        m->at_ms[i] = NEVER;
        return e;
    case 3:
        if (rand_below(8) == 0) {
            remove_ranks(e, m);
        }
        return e;
    case 4:
        return reshape(e);
    case 5:
        if (entry_type(e) == VALUE_HASH && m->present[i]) {
            assert_false(hash_change(&e, member, SLICE("changed")));
        }
        return e;
    case 6:
    case 7:
    case 8:
    case 9:
        if (m->present[i]) {
            m->at_ms[i] = 1000 + (int64_t)rand_below(100);
            assert_true(set_deadline(&e, member, m->at_ms[i]));
            return e;
        }
        __attribute__((fallthrough));
    default:
        add(&e, member);
        if (entry_type(e) == VALUE_HASH) {
            m->at_ms[i] = NEVER; /* a new value, a new life */
        }
        m->present[i] = true;
        return e;
    }
}

static void run_model(enum value_type type)
{
    for (int round = 0; round < 60; round++) {
        struct model m;
        memset(&m, 0, sizeof(m));
        struct entry *e = create(type);
        for (int i = 0; i < MEMBERS; i++) {
            m.at_ms[i] = NEVER;
        }
        for (int n = 0; n < 400; n++) {
            e = step(e, &m);
            if (n % 8 == 0) {
                compare(e, &m);
            }
        }
        compare(e, &m);
        entry_destroy(&e);
        assert_null(e);
    }
}

static void test_hashes_against_the_model(void **state)
{
    (void)state;
    run_model(VALUE_HASH);
}

static void test_sets_against_the_model(void **state)
{
    (void)state;
    run_model(VALUE_SET);
}

static void test_sorted_sets_against_the_model(void **state)
{
    (void)state;
    run_model(VALUE_ZSET);
}

static void test_nothing_is_left_of_it(void **state)
{
    (void)state;
    struct entry *e = create(VALUE_HASH);
    add(&e, SLICE("a"));
    add(&e, SLICE("b"));
    e = entry_with_block(e);
    size_t before = entry_memory_bytes(e, 0);
    void *value = entry_pointer(e);
    assert_true(set_deadline(&e, SLICE("a"), 1));
    assert_true(entry_memory_bytes(e, 0) > before);
    assert_ptr_equal(entry_pointer(e), value);
    assert_true(member_ttl_drop(e, SLICE("a")));
    assert_int_equal(entry_memory_bytes(e, 0), before);
    assert_ptr_equal(entry_pointer(e), value);
    assert_int_equal(e->flags & ENTRY_MEMBER_TTL, 0);
    entry_destroy(&e);
}

static void test_digests_do_not_see_them(void **state)
{
    (void)state;
    static const enum value_type types[] = {VALUE_HASH, VALUE_SET, VALUE_ZSET};
    for (int i = 0; i < 3; i++) {
        uint8_t with[20], without[20];
        struct entry *e = create(types[i]);
        add(&e, SLICE("a"));
        ops(e)->digest(e, without);
        assert_true(set_deadline(&e, SLICE("a"), 1));
        ops(e)->digest(e, with);
        assert_memory_equal(with, without, sizeof(with));
        entry_destroy(&e);
    }
}

static void test_which_types_have_them(void **state)
{
    (void)state;
    struct entry *e = entry_create_string(KEY, SLICE("v"), ENTRY_NO_EXPIRY);
    assert_false(member_ttl_supported(e));
    assert_int_equal(member_ttl_get(e, SLICE("v")), ENTRY_NO_EXPIRY);
    assert_false(member_ttl_drop(e, SLICE("v")));
    entry_destroy(&e);
    e = create(VALUE_SET);
    assert_true(member_ttl_supported(e));
    entry_destroy(&e);
}

/* Empty members, members of one byte and of 70000. */
static void test_odd_members(void **state)
{
    (void)state;
    static char large[70000];
    memset(large, 'x', sizeof(large));
    const struct slice members[] = {slice_of("", 0), slice_of("\0", 1), slice_of(large, 70000),
                                    slice_of(large, 69999)};
    struct entry *e = create(VALUE_HASH);
    for (int i = 0; i < 4; i++) {
        add(&e, members[i]);
        assert_true(set_deadline(&e, members[i], 10 + i));
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(member_ttl_get(e, members[i]), 10 + i);
    }
    hash_check(e);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(member_ttl_remove_due(e, 10 + i, 9, NULL, NULL), 1);
        assert_false(hash_has(e, members[i]));
    }
    assert_int_equal(hash_len(e), 0);
    entry_destroy(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hashes_against_the_model),
        cmocka_unit_test(test_sets_against_the_model),
        cmocka_unit_test(test_sorted_sets_against_the_model),
        cmocka_unit_test(test_nothing_is_left_of_it),
        cmocka_unit_test(test_digests_do_not_see_them),
        cmocka_unit_test(test_which_types_have_them),
        cmocka_unit_test(test_odd_members),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
