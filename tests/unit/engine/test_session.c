/* Who calls: engine/session.h, engine/auth.h. */
#include "engine/helpers.h"

#include "engine/acl.h"
#include "engine/auth.h"
#include "engine/config.h"
#include "engine/session.h"

#include <pthread.h>
#include <stdlib.h>

static struct session session;

static int setup(void **state)
{
    (void)state;
    config_register(auth_options);
    session_init(&session, session_next_id());
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    session_deinit(&session);
    config_teardown();
    return 0;
}

static void set_password(struct slice password)
{
    struct slice pair[] = {SLICE("requirepass"), password}, failed;
    const char *error;
    assert_true(config_set(pair, 1, &failed, &error));
}

static bool check(const char *user, struct slice password)
{
    session.authenticated = false;
    session.user = "somebody";
    bool right = auth_check(&session, slice_cstr(user), password);
    assert_int_equal(session.authenticated, right);
    assert_string_equal(session.user, right ? "default" : "somebody");
    assert_ptr_equal(session.acl, acl_default_user());
    return right;
}

static void test_without_password(void **state)
{
    (void)state;
    assert_false(auth_required());
    assert_true(session.authenticated);
    assert_true(check("default", SLICE("anything")));
    assert_true(check("default", SLICE("")));
    assert_false(check("joe", SLICE("")));
}

static void test_password(void **state)
{
    (void)state;
    set_password(SLICE("foobared"));
    assert_true(auth_required());
    assert_true(check("default", SLICE("foobared")));
    assert_false(check("default", SLICE("foobare")));
    assert_false(check("default", SLICE("foobaredd")));
    assert_false(check("default", SLICE("Foobared")));
    assert_false(check("default", SLICE("")));
    assert_false(check("default", slice_of(NULL, 0)));
    assert_false(check("Default", SLICE("foobared")));
    assert_false(check("joe", SLICE("foobared")));
    assert_false(check("", SLICE("foobared")));
    struct session later;
    session_init(&later, 7);
    assert_false(later.authenticated);
    session_deinit(&later);
    /* A wrong attempt takes nothing away. */
    session.authenticated = true;
    assert_false(auth_check(&session, SLICE("default"), SLICE("x")));
    assert_true(session.authenticated);
    struct buf shown = {0};
    option_format(config_find(SLICE("requirepass")), &shown);
    assert_string_equal(buf_cstr(&shown), "foobared");
    buf_deinit(&shown);
    set_password(SLICE(""));
    assert_false(auth_required());
    assert_true(check("default", SLICE("foobared")));
}

static void test_binary_password(void **state)
{
    (void)state;
    set_password(slice_of("a\0b\n", 4));
    assert_true(check("default", slice_of("a\0b\n", 4)));
    assert_false(check("default", slice_of("a", 1)));
    assert_false(check("default", slice_of("a\0b", 3)));
}

static void test_reset(void **state)
{
    (void)state;
    set_password(SLICE("x"));
    session.db_index = 5;
    session.proto = 3;
    session.no_touch = true;
    session.authenticated = true;
    assert_true(session_set_name(&session, SLICE("joe")));
    uint64_t id = session.id;
    session_reset(&session);
    assert_int_equal(session.db_index, 0);
    assert_int_equal(session.proto, 2);
    assert_false(session.no_touch);
    assert_false(session.authenticated);
    assert_null(session.name);
    assert_int_equal(session.id, id);
    set_password(SLICE(""));
    session_reset(&session);
    assert_true(session.authenticated);
}

static void test_names(void **state)
{
    (void)state;
    assert_null(session.name);
    assert_true(session_set_name(&session, SLICE("my-name~!")));
    assert_string_equal(session.name, "my-name~!");
    assert_false(session_set_name(&session, SLICE("a b")));
    assert_false(session_set_name(&session, SLICE("a\n")));
    assert_false(session_set_name(&session, SLICE("\x7f")));
    assert_false(session_set_name(&session, SLICE("\xc3\xa4")));
    assert_false(session_set_name(&session, slice_of("a\0b", 3)));
    assert_string_equal(session.name, "my-name~!");
    assert_true(session_set_name(&session, SLICE("")));
    assert_null(session.name);
}

static int changes;
static void note_change(struct session *s)
{
    assert_ptr_equal(s, &session);
    assert_string_equal(s->user, "default"); /* who it was */
    changes++;
}

static void test_changes_of_the_user(void **state)
{
    (void)state;
    struct acl_user *own = acl_unlisted_create(SLICE("own"));
    auth_set_watcher(note_change);
    auth_become(&session, acl_default_user());
    assert_int_equal(changes, 0);
    assert_false(auth_wants_exclusive(&session));
    session.user_is_watched = true;
    assert_true(auth_wants_exclusive(&session));
    auth_become(&session, own);
    assert_int_equal(changes, 1);
    assert_string_equal(session.user, "own");
    assert_false(auth_wants_exclusive(&session));
    session_reset(&session);
    assert_int_equal(changes, 1);
    session.user_is_watched = true;
    assert_false(auth_check(&session, SLICE("nobody"), SLICE("x")));
    assert_int_equal(changes, 1);
    session_reset(&session);
    assert_int_equal(changes, 2);
    auth_set_watcher(NULL);
    acl_unlisted_destroy(&own);
}

static enum auth_answer ask(struct call *c, struct slice user, struct slice password,
                            struct buf *error)
{
    assert_null(c);
    assert_true(slice_equal(user, SLICE("u")));
    buf_append_slice(error, password);
    return AUTH_DENIED;
}

static void test_who_is_asked(void **state)
{
    (void)state;
    struct buf error = {0};
    assert_int_equal(auth_ask(NULL, SLICE("u"), SLICE("p"), &error), AUTH_LEFT);
    auth_set_asker(ask);
    assert_true(auth_wants_exclusive(&session));
    assert_int_equal(auth_ask(NULL, SLICE("u"), SLICE("p"), &error), AUTH_DENIED);
    assert_string_equal(buf_cstr(&error), "p");
    auth_set_asker(NULL);
    assert_int_equal(auth_ask(NULL, SLICE("u"), SLICE("p"), &error), AUTH_LEFT);
    buf_deinit(&error);
}

enum { THREADS = 4, IDS = 10000 };

static void *take_ids(void *arg)
{
    uint64_t *ids = arg;
    for (int i = 0; i < IDS; i++) {
        ids[i] = session_next_id();
    }
    return NULL;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void test_ids_are_unique(void **state)
{
    (void)state;
    static uint64_t ids[THREADS * IDS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_ids, ids + i * IDS), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    qsort(ids, COUNT(ids), sizeof(ids[0]), compare_ids);
    assert_true(ids[0] > 0);
    for (size_t i = 1; i < COUNT(ids); i++) {
        assert_true(ids[i - 1] < ids[i]);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_without_password),
        TEST(test_password),
        TEST(test_binary_password),
        TEST(test_reset),
        TEST(test_names),
        TEST(test_changes_of_the_user),
        TEST(test_who_is_asked),
        TEST(test_ids_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
