/* Queues and their end: engine/transaction.h, with commands that exist only here. */
#include "engine/helpers.h"

#include "base/clock.h"
#include "base/thread.h"
#include "engine/cmdstats.h"
#include "engine/doubts.h"
#include "engine/execute.h"
#include "engine/gil.h"
#include "engine/transaction.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "keyspace/watching.h"
#include "resp/parser.h"

#include <stdlib.h>

static struct arena arena;
static struct reply reply;
static struct session session;
static struct buf text;
static int runs_of_peek, runs_of_act, observed;
static bool spared;

/* A read that must write unless the lock is held for that. */
static void run_peek(struct call *c)
{
    runs_of_peek++;
    if (c->held == ACCESS_SHARED) {
        reply_error(c->reply, "ERR never seen");
        call_need_exclusive(c);
        return;
    }
    reply_status(c->reply, "peeked");
}

static void run_get(struct call *c)
{
    assert_true(c->nested);
    assert_int_equal(c->key_count, 1);
    assert_true(slice_equal(c->keys[0].name, c->argv[1]));
    assert_int_equal(c->keys[0].hash, key_of(c->argv[1]).hash);
    reply_bulkf(c->reply, "%d:%.*s", c->db->id, (int)c->argv[1].len, c->argv[1].ptr);
}

static void run_set(struct call *c)
{
    assert_int_equal(c->held, ACCESS_EXCLUSIVE);
    reply_ok(c->reply);
}

static void run_act(struct call *c)
{
    runs_of_act++;
    reply_ok(c->reply);
}

/* A write that takes long: others are to be awake, if they may. */
static void run_long(struct call *c)
{
    assert_int_equal(c->held, ACCESS_EXCLUSIVE);
    spared = doubts_is_spare();
    doubts_give_back();
    reply_ok(c->reply);
}

static void run_db(struct call *c)
{
    c->session->db_index = 1;
    reply_ok(c->reply);
}

static void run_multi(struct call *c)
{
    reply_status(c->reply, c->execution ? "nested" : "OK");
}

#define ROW(n, r, a, f)                                                                            \
    .name = n, .run = r, .arity = a, .flags = f, .group = "t", .since = "1", .summary = "s",       \
    .complexity = "O(1)"
static const struct command_row rows[] = {
    {ROW("multi", run_multi, 1, CMD_TRANSACTION), .transaction = TRANSACTION_OPENS},
    {ROW("exec", transaction_run, 1, CMD_TRANSACTION), .transaction = TRANSACTION_RUNS},
    {ROW("discard", run_multi, 1, CMD_TRANSACTION), .transaction = TRANSACTION_DROPS},
    {ROW("peek", run_peek, 1, CMD_READONLY)},
    {ROW("get", run_get, 2, CMD_READONLY), .keys = "i1/r0,1,0/RO+ACCESS"},
    {ROW("set", run_set, 2, CMD_WRITE), .keys = "i1/r0,1,0/RW"},
    {ROW("act", run_act, 1, 0)},
    {ROW("long", run_long, 1, CMD_WRITE)},
    {ROW("db", run_db, 1, CMD_FAST), .categories = CATEGORY_CONNECTION},
    {ROW("config", run_act, 1, CMD_WORLD)},
    {ROW("never", run_act, 1, CMD_NO_MULTI)},
    {.name = NULL},
};

static void observe(const struct call *c, int64_t wall_us)
{
    (void)c;
    (void)wall_us;
    observed++;
}

static int setup(void **state)
{
    (void)state;
    clock_setup();
    thread_enter("test");
    hash_set_secret(1);
    arena_init(&arena, 4096);
    reply_init(&reply);
    db_setup(2);
    watching_setup();
    command_register(rows);
    cmdstats_setup();
    session_init(&session, 1);
    session.authenticated = true;
    call_set_observer(observe);
    call_set_observed(true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    session_deinit(&session);
    cmdstats_teardown();
    command_teardown();
    watching_teardown();
    db_teardown();
    reply_deinit(&reply);
    arena_deinit(&arena);
    buf_deinit(&text);
    thread_leave();
    return 0;
}

static int fresh(void **state)
{
    (void)state;
    runs_of_peek = runs_of_act = observed = 0;
    session.db_index = 0;
    assert_false(session.in_transaction);
    return 0;
}

/* Prepares one request as a turn does. Its words are gone at the end of the batch. */
static struct call *prepare(const char *line)
{
    struct call *c = arena_alloc(&arena, sizeof(*c));
    char *words = arena_alloc(&arena, strlen(line) + 1);
    memcpy(words, line, strlen(line) + 1);
    struct slice *argv = arena_alloc(&arena, 8 * sizeof(*argv));
    *c = (struct call){
        .argc = helper_words(words, argv, 8), .argv = argv, .session = &session, .reply = &reply};
    call_prepare(c, &arena);
    if (c->refusal.ptr && !transaction_spoil(c, &arena)) {
        return c;
    }
    if (transaction_concerns(c)) {
        transaction_advance(c, &arena);
    }
    return c;
}

static enum call_access access_of(const struct call *c)
{
    return c->refusal.ptr ? ACCESS_NONE : call_access(c);
}

static void run_in_world(struct call *c) NO_THREAD_SAFETY_ANALYSIS;
static void run_in_world(struct call *c)
{
    gil_wake();
    gil_stop_world();
    call_run(c);
    if (gil_has_world()) {
        assert_int_equal(c->held, ACCESS_WORLD);
        gil_resume_world();
    } else { /* given back, and the lock kept */
        assert_int_equal(c->held, ACCESS_EXCLUSIVE);
        keyspace_unlock_exclusive();
    }
    gil_sleep();
}

/* Runs it in its mode, and once more in exclusive mode if it asks for that. */
static const char *run(struct call *c) NO_THREAD_SAFETY_ANALYSIS;
static const char *run(struct call *c)
{
    reply_reset(&reply);
    reply_begin(&reply, 2);
    c->held = access_of(c);
    if (c->held == ACCESS_SHARED) {
        keyspace_lock_shared();
        call_run(c);
        keyspace_unlock_shared();
    }
    if (c->needs_exclusive) {
        c->needs_exclusive = false;
        c->held = ACCESS_EXCLUSIVE;
    }
    if (c->held == ACCESS_EXCLUSIVE) {
        keyspace_lock_exclusive();
        call_run(c);
        keyspace_unlock_exclusive();
    } else if (c->held == ACCESS_NONE) {
        call_run(c);
    } else if (c->held == ACCESS_WORLD) {
        run_in_world(c);
    }
    assert_false(c->needs_exclusive);
    reply_end(&reply);
    return helper_reply_text(&reply, &text);
}

static void end_batch(void)
{
    if (session.transaction) {
        transaction_keep(&session);
    }
    arena_reset(&arena);
    memset(arena_alloc(&arena, 3000), 0x5a, 3000); /* nothing stays where the words were */
    arena_reset(&arena);
}

static void end(struct call *exec)
{
    if (exec->execution) {
        transaction_release(exec->execution);
    }
    end_batch();
    assert_null(session.transaction);
    assert_int_equal(transaction_bytes(&session), 0);
    assert_int_equal(transaction_length(&session), -1);
}

static struct call *queue(const char *const *lines, bool copied)
{
    prepare("multi");
    for (; *lines; lines++) {
        if (copied) {
            end_batch();
        }
        struct call *c = prepare(*lines);
        assert_ptr_equal(c->refusal.ptr, transaction_queued.ptr);
    }
    if (copied) {
        end_batch();
    }
    return prepare("exec");
}

#define QUEUE(copied, ...) queue((const char *const[]){__VA_ARGS__, NULL}, copied)

static void test_queued_calls_run_with_their_words_and_keys(void **state)
{
    (void)state;
    for (int copied = 0; copied < 2; copied++) {
        session.db_index = 0;
        struct call *exec = QUEUE(copied, "get a-key", "db", "get another-key", "set x");
        assert_int_equal(access_of(exec), ACCESS_EXCLUSIVE);
        assert_string_equal(run(exec),
                            "*4\r\n$7\r\n0:a-key\r\n+OK\r\n$13\r\n1:another-key\r\n+OK\r\n");
        end(exec);
    }
}

static void test_access_is_that_of_the_queue(void **state)
{
    static const struct {
        const char *first, *second;
        enum call_access access;
    } cases[] = {
        {"act", "act", ACCESS_NONE},          {"get a", "get b", ACCESS_SHARED},
        {"get a", "db", ACCESS_SHARED},       {"get a", "act", ACCESS_EXCLUSIVE},
        {"get a", "set a", ACCESS_EXCLUSIVE}, {"set a", "config", ACCESS_WORLD},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct call *exec = QUEUE(false, cases[i].first, cases[i].second);
        assert_int_equal(access_of(exec), cases[i].access);
        assert_true(!!(transaction_flags(exec) & CMD_WORLD) == (i == 5));
        end(exec);
    }
    struct call *spoiled = NULL;
    prepare("multi");
    prepare("set a");
    prepare("never");
    spoiled = prepare("exec");
    assert_int_equal(access_of(spoiled), ACCESS_NONE);
    assert_string_equal(run(spoiled),
                        "-EXECABORT Transaction discarded because of previous errors.\r\n");
    end(spoiled);
}

static void test_a_read_that_must_write_repeats_all(void **state)
{
    (void)state;
    struct call *exec = QUEUE(false, "get a", "db", "get b", "peek", "get c", "peek");
    assert_int_equal(access_of(exec), ACCESS_SHARED);
    assert_string_equal(run(exec), "*6\r\n$3\r\n0:a\r\n+OK\r\n$3\r\n1:b\r\n+peeked\r\n"
                                   "$3\r\n1:c\r\n+peeked\r\n");
    assert_int_equal(runs_of_peek, 3);
    assert_int_equal(observed, 7); /* each of the six once, and EXEC */
    assert_false(exec->failed);
    call_account(exec, 1, 0, 0);
    assert_int_equal(cmdstats_sum(command_find(SLICE("peek"))).calls, 2);
    assert_int_equal(cmdstats_sum(command_find(SLICE("peek"))).failed, 0);
    end(exec);
}

static void test_in_the_world_only_that_read_repeats(void **state)
{
    (void)state;
    struct call *exec = QUEUE(false, "peek", "act", "set a", "config");
    assert_int_equal(access_of(exec), ACCESS_WORLD);
    assert_string_equal(run(exec), "*4\r\n+peeked\r\n+OK\r\n+OK\r\n+OK\r\n");
    assert_int_equal(runs_of_peek, 2);
    assert_int_equal(runs_of_act, 2);
    assert_int_equal(observed, 5);
    end(exec);
}

/* Behind the last call that needs it, and of a client's own EXEC. */
static void test_the_world_is_given_back(void **state)
{
    (void)state;
    for (int client = 0; client < 2; client++) {
        session.owner = client ? &session : NULL;
        struct call *exec = QUEUE(false, "peek", "config", "long", "set a", "peek");
        assert_int_equal(access_of(exec), ACCESS_WORLD);
        assert_string_equal(run(exec), "*5\r\n+peeked\r\n+OK\r\n+OK\r\n+OK\r\n+peeked\r\n");
        assert_int_equal(spared, client);
        assert_int_equal(exec->held, client ? ACCESS_EXCLUSIVE : ACCESS_WORLD);
        end(exec);
    }
    struct call *exec = QUEUE(false, "long", "set a", "config");
    assert_string_equal(run(exec), "*3\r\n+OK\r\n+OK\r\n+OK\r\n");
    assert_false(spared);
    assert_int_equal(exec->held, ACCESS_WORLD);
    end(exec);
    session.owner = NULL;
}

static void test_watched_keys_need_the_lock(void **state)
{
    struct key key = key_of(SLICE("w"));
    (void)state;
    keyspace_lock_exclusive();
    watching_add(&session.watches, db_at(0), &key, 0);
    keyspace_unlock_exclusive();
    assert_true(transaction_bytes(&session) > 0);
    struct call *exec = QUEUE(false, "act");
    assert_int_equal(access_of(exec), ACCESS_EXCLUSIVE);
    assert_string_equal(run(exec), "*1\r\n+OK\r\n");
    assert_int_equal(session.watches.count, 0);
    end(exec);
}

static void test_length_and_bytes(void **state)
{
    (void)state;
    prepare("multi");
    assert_int_equal(transaction_length(&session), 0);
    prepare("get a");
    prepare("get a");
    assert_int_equal(transaction_length(&session), 2);
    end_batch();
    size_t before = transaction_bytes(&session);
    prepare("get 0123456789012345678901234567890123456789");
    end_batch();
    assert_true(transaction_bytes(&session) >= before + 43);
    assert_int_equal(transaction_length(&session), 3);
    struct call *discard = prepare("discard");
    assert_non_null(discard->execution);
    assert_int_equal(transaction_length(&session), -1);
    end(discard);
}

static void test_a_session_may_end_in_the_middle(void **state)
{
    struct session kept = session;
    (void)state;
    prepare("multi");
    prepare("get a");
    end_batch();
    prepare("get b");
    transaction_destroy(&session);
    assert_null(session.transaction);
    assert_false(session.in_transaction);
    arena_reset(&arena);
    session = kept;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_queued_calls_run_with_their_words_and_keys, fresh),
        cmocka_unit_test_setup(test_access_is_that_of_the_queue, fresh),
        cmocka_unit_test_setup(test_a_read_that_must_write_repeats_all, fresh),
        cmocka_unit_test_setup(test_in_the_world_only_that_read_repeats, fresh),
        cmocka_unit_test_setup(test_the_world_is_given_back, fresh),
        cmocka_unit_test_setup(test_watched_keys_need_the_lock, fresh),
        cmocka_unit_test_setup(test_length_and_bytes, fresh),
        cmocka_unit_test_setup(test_a_session_may_end_in_the_middle, fresh),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
