/* A node of active replicas over the real keyspace: what our commands become, how peers' units are
 * applied, and random programs on several real nodes that must end with the same content, which is
 * that of a node that was told everything in order.
 *
 * KEYDB_TEST_PROGRAMS: how many random programs; KEYDB_TEST_PROGRAM: the one with this seed only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"

#include "base/mem.h"
#include "base/rand.h"
#include "engine/propagate.h"
#include "keyspace/event.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS 150
#define STEPS 250
#define LOG_BYTES ((size_t)16 << 20)

static struct real_group group;

/* What another log of the process (a file) was told: words, " | " between commands. */
static struct buf file;
static int file_log;

static void record(int db, struct slice commands)
{
    buf_append_cstr(&file, file.len ? " | " : "");
    if (db >= 0) {
        buf_printf(&file, "%d:", db);
    }
    struct buf text = {0}; /* with an end */
    buf_append_slice(&text, commands);
    const char *at = strstr(buf_cstr(&text), "\r\n") + 2;
    const char *end;
    /* Lines come in pairs: a length, and a word. */
    for (bool length = true; (end = strstr(at, "\r\n")) != NULL; length = !length) {
        if (!length) {
            buf_append_char(&file, ' ');
            buf_append(&file, at, (size_t)(end - at));
        }
        at = end + 2;
    }
    buf_deinit(&text);
}

static void switch_file(bool on)
{
    buf_clear(&file);
    keyspace_lock_exclusive();
    propagate_switch(file_log, on);
    keyspace_unlock_exclusive();
}

static void assert_same(int db, const char *key)
{
    for (int i = 1; i < group.nodes; i++) {
        assert_int_equal(real_digest(&group, i, db, key), real_digest(&group, 0, db, key));
    }
}

/* ---- our own writes ---- */

static void test_commands_become_units(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "set a 1");
    assert_int_equal(real_position(&group, 0), 1);
    assert_string_equal(real_unit_text(&group, 0, 1), "0: set a 1");
    real_run_one(&group, 0, 1, "incrby a 2");
    assert_string_equal(real_unit_text(&group, 0, 2), "1: INCRBY a 2");
    real_run_one(&group, 0, 0, "get a");
    real_run_one(&group, 0, 0, "del missing");
    real_run_one(&group, 0, 0, "hset a f v"); /* WRONGTYPE */
    assert_int_equal(real_position(&group, 0), 2);
    static const char *const transaction[] = {"sadd s x y", "get a", "@1 rpush l e", "srem s x"};
    real_run(&group, 0, 0, 4, transaction);
    assert_int_equal(real_position(&group, 0), 3);
    assert_string_equal(real_unit_text(&group, 0, 3), "0: sadd s x y | 1: rpush l e | 0: srem s x");
    struct dot a = real_dot(&group, 0, 0, "a"), s = real_dot(&group, 0, 0, "s");
    struct dot l = real_dot(&group, 0, 1, "l");
    assert_int_equal(dot_sequence(a), 1);
    assert_int_equal(dot_origin(a), node_self(group.node[0]));
    assert_int_equal(dot_sequence(s), 3);
    assert_true(l.place == s.place && l.stamp == s.stamp && s.stamp > a.stamp);
    assert_int_equal(window_last(node_merge(group.node[0])->window, 0, SLICE("s")), s.stamp);
    real_run_one(&group, 0, 0, "set a 2");
    assert_int_equal(dot_sequence(real_dot(&group, 0, 0, "a")), 4);
    real_run_one(&group, 0, 0, "del a");
    real_run_one(&group, 0, 0, "set a 3");
    assert_int_equal(dot_sequence(real_dot(&group, 0, 0, "a")), 6);
    real_group_deinit(&group);
}

static void test_writes_of_nobody_get_no_dot(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct db *db = db_at(0);
    struct key key = key_of(SLICE("k"));
    struct keyref ref;
    keyspace_lock_exclusive();
    db_open(&ref, db, &key, REAL_START_MS, 0);
    db_put(&ref, entry_create_string(key.name, SLICE("v"), ENTRY_NO_EXPIRY));
    assert_null(entry_stamp(db_look(db, &key)));
    keyspace_unlock_exclusive();
    real_run_one(&group, 0, 0, "append k w");
    assert_int_equal(dot_sequence(real_dot(&group, 0, 0, "k")), 1);
    real_group_deinit(&group);
}

static void test_logs_and_window_are_bounded(void **state)
{
    (void)state;
    real_group_init(&group, 2, 20000, 0);
    for (int i = 0; i < 3000; i++) {
        real_run_one(&group, 0, 0, "set key a-value-of-some-length");
        assert_true(origin_log_bytes(node_log(group.node[0])) <= 20000);
        assert_true(window_bytes(node_merge(group.node[0])->window) <= 20000);
    }
    assert_int_equal(real_position(&group, 0), 3000);
    assert_string_equal(real_unit_text(&group, 0, 1), "none");
    assert_string_equal(real_unit_text(&group, 0, 3000), "0: set key a-value-of-some-length");
    real_group_deinit(&group);
}

/* ---- peers' units ---- */

/* KEYDB.DIGESTS of so many keys, with the positions of somebody who has nothing. */
static enum receiver_result take_digests(int node, const struct origin_id *id, uint64_t sequence,
                                         uint64_t stamp, int keys)
{
    struct buf unit = {0};
    buf_printf(&unit, "*%d\r\n", DIGESTS_FIRST_KEY + DIGESTS_KEY_WORDS * keys);
    unit_put_word(&unit, SLICE(DIGESTS_COMMAND));
    unit_put_word(&unit, slice_of("\0\0\0\0", 4));
    for (int i = 0; i < keys; i++) {
        unit_put_word(&unit, SLICE("k"));
        unit_put_word(&unit, SLICE("digest"));
        unit_put_word(&unit, SLICE("0"));
    }
    keyspace_lock_exclusive();
    enum receiver_result taken =
        node_take(group.node[node], id, sequence, stamp, 0, buf_slice(&unit), group.now_ms);
    keyspace_unlock_exclusive();
    buf_deinit(&unit);
    return taken;
}

static void test_what_is_taken_once_and_what_never(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct origin_id peer = {.epoch = 7};
    memset(peer.node, 'p', sizeof(peer.node));
    uint64_t now = (uint64_t)REAL_START_MS << 16, day = (uint64_t)25 * 3600 * 1000 << 16;
    const char *incr = "*3\r\n$6\r\nINCRBY\r\n$1\r\nn\r\n$1\r\n5\r\n";
    assert_int_equal(real_take(&group, 0, &peer, 2, now, 0, incr), RECEIVED_GAP);
    assert_int_equal(real_take(&group, 0, &peer, 1, now, 0, incr), RECEIVED);
    assert_int_equal(real_take(&group, 0, &peer, 1, now, 0, incr), RECEIVED_BEFORE);
    assert_string_equal(real_run_one(&group, 0, 0, "get n"), "$1\r\n5\r\n");
    assert_int_equal(real_take(&group, 0, &peer, 0, now, 0, incr), RECEIVED_NEVER);
    assert_int_equal(real_take(&group, 0, &peer, 2, now + day, 0, incr), RECEIVED_NEVER);
    assert_int_equal(real_take(&group, 0, &peer, 2, now, REAL_DBS, incr), RECEIVED_NEVER);
    assert_int_equal(real_take(&group, 0, &peer, 2, now, 0,
                               "*2\r\n$6\r\nSELECT\r\n$1\r\n9\r\n*1\r\n$1\r\nx\r\n"),
                     RECEIVED_NEVER);
    assert_int_equal(real_take(&group, 0, &peer, 2, now, 0, "*1\r\n$4\r\nab"), RECEIVED_NEVER);
    assert_int_equal(real_take(&group, 0, &peer, 2, now, 0, "*2\r\n$4\r\nSPOP\r\n$1\r\nn\r\n"),
                     RECEIVED_NEVER);
    assert_int_equal(
        real_take(&group, 0, &peer, 2, now, 0, "*2\r\n$11\r\nKEYDB.STATE\r\n$1\r\nn\r\n"),
        RECEIVED_NEVER);
    assert_int_equal(
        real_take(&group, 0, &peer, 2, now, 0, "*2\r\n$13\r\nKEYDB.EXPIRED\r\n$1\r\nn\r\n"),
        RECEIVED_NEVER);
    assert_int_equal(real_take(&group, 0, &peer, 2, now, 0, incr),
                     RECEIVED_NEVER); /* the stamp of the first */
    assert_int_equal(real_take(&group, 0, &peer, 2, now - 1, 0, incr), RECEIVED_NEVER);
    assert_int_equal(take_digests(0, &peer, 2, now + 1, MERGE_DIGESTS_MAX + 1), RECEIVED_NEVER);
    assert_int_equal(real_take(&group, 0, &peer, 2, now + 1, 0, incr), RECEIVED);
    assert_string_equal(real_run_one(&group, 0, 0, "get n"), "$2\r\n10\r\n");
    assert_int_equal(take_digests(0, &peer, 3, now + 2, MERGE_DIGESTS_MAX), RECEIVED);
    struct origins *o = node_origins(group.node[0]);
    const struct origin *own = origins_at(o, node_self(group.node[0]));
    assert_int_equal(real_take(&group, 0, &own->id, own->position + 1, now, 0, incr), RECEIVED_GAP);
    real_group_deinit(&group);
}

/* Whatever a peer says: what is no write is not run. */
static void test_only_writes_are_run(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct origin_id peer = {.epoch = 7};
    uint64_t now = (uint64_t)REAL_START_MS << 16;
    assert_int_equal(
        real_take(&group, 0, &peer, 1, now, 0, "*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n"),
        RECEIVED);
    assert_int_equal(real_take(&group, 0, &peer, 2, now + 1, 0, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"),
                     RECEIVED);
    assert_int_equal(node_merge(group.node[0])->conflicts_seen, 2); /* they failed */
    real_group_deinit(&group);
}

static void test_a_peers_unit_is_any_write_but_not_ours(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    static const char *const lines[] = {"set a 1", "@1 hset h f v", "incrby a 4"};
    real_run(&group, 0, 0, 3, lines);
    while (real_send(&group, 1, 0)) {
    }
    switch_file(true);
    while (real_deliver(&group, 1, 0)) {
    }
    assert_string_equal(buf_cstr(&file),
                        " MULTI | 2: set a 1 | 3: hset h f v | 2: INCRBY a 4 |  EXEC");
    switch_file(false);
    assert_int_equal(real_position(&group, 1), 0);
    assert_int_equal(node_own(group.node[1])->units, 0);
    assert_string_equal(real_run_one(&group, 1, 0, "get a"), "$1\r\n5\r\n");
    struct dot dot = real_dot(&group, 1, 0, "a");
    assert_int_equal(dot_sequence(dot), 1);
    assert_int_not_equal(dot_origin(dot), node_self(group.node[1]));
    /* It goes on from here to whoever wants it. */
    assert_non_null(origin_log_find(node_log(group.node[1]), dot_origin(dot), 1));
    assert_true(real_settle(&group));
    assert_same(0, "a");
    real_group_deinit(&group);
}

static void test_crossed_writes(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "set k from-a");
    real_run_one(&group, 1, 0, "set k from-b");
    real_run_one(&group, 0, 0, "incrby n 3");
    real_run_one(&group, 1, 0, "incrby n 4");
    real_run_one(&group, 0, 0, "sadd s x both");
    real_run_one(&group, 1, 0, "sadd s y both");
    real_run_one(&group, 1, 0, "srem s both");
    real_run_one(&group, 0, 0, "rpush l a");
    real_run_one(&group, 1, 0, "rpush l b");
    real_run_one(&group, 0, 0, "pfadd p u v");
    real_run_one(&group, 1, 0, "pfadd p w");
    assert_true(real_settle(&group));
    for (int i = 0; i < 2; i++) {
        assert_string_equal(real_run_one(&group, i, 0, "get n"), "$1\r\n7\r\n");
        assert_string_equal(real_run_one(&group, i, 0, "scard s"), ":2\r\n");
        assert_string_equal(real_run_one(&group, i, 0, "llen l"), ":2\r\n");
        assert_string_equal(real_run_one(&group, i, 0, "pfcount p"), ":3\r\n");
    }
    for (const char *const *k = (const char *const[]){"k", "n", "s", "l", "p", NULL}; *k; k++) {
        assert_int_not_equal(real_digest(&group, 0, 0, *k), 0);
        assert_same(0, *k);
    }
    real_group_deinit(&group);
}

static void test_a_failing_write_conflicts_and_a_state_settles(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "rpush k a");
    real_run_one(&group, 1, 0, "sadd k b"); /* of another type: each fails there */
    while ((int)real_send(&group, 0, 1) | (int)real_send(&group, 1, 0)) {
    }
    while ((int)real_deliver(&group, 0, 1) | (int)real_deliver(&group, 1, 0)) {
    }
    const struct merge *m = node_merge(group.node[0]);
    assert_true(conflicts_has(m->conflicts, 0, SLICE("k")));
    real_tick(&group, 0);
    assert_int_equal(node_states(group.node[0]), 0); /* more may come */
    group.now_ms += CONFLICT_QUIET_MS;
    real_tick(&group, 0);
    assert_int_equal(node_states(group.node[0]), 1);
    assert_non_null(strstr(real_unit_text(&group, 0, 2), "KEYDB.STATE k 0 "));
    assert_true(real_settle(&group));
    assert_int_not_equal(real_digest(&group, 0, 0, "k"), 0);
    assert_same(0, "k");
    real_group_deinit(&group);
}

static struct buf events;

static void on_event(const char *event, int db, struct slice key, unsigned mask)
{
    (void)mask;
    buf_printf(&events, "%s@%d:%.*s ", event, db, (int)key.len, key.ptr);
}

static void on_change(struct db *db, struct slice key)
{
    buf_printf(&events, "!%d:%.*s ", db->id, (int)key.len, key.ptr);
}

static void test_watchers_see_peers_writes(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "set k v");
    real_send(&group, 1, 0);
    buf_clear(&events);
    real_deliver(&group, 1, 0);
    assert_non_null(strstr(buf_cstr(&events), "!2:k"));
    real_group_deinit(&group);
}

/* ---- expiry ---- */

static struct node *judging;

static bool judge(struct keyref *ref, int64_t now_ms) NO_THREAD_SAFETY_ANALYSIS;
static bool judge(struct keyref *ref, int64_t now_ms)
{
    return node_judge(judging, ref, now_ms);
}

/* The node's sweep comes by a key. */
static uint64_t sweep(int node, int db, const char *name)
{
    bool more;
    struct key key = key_of(slice_cstr(name));
    keyspace_lock_exclusive();
    judging = group.node[node];
    expire_set_judge(judge);
    local_writes_attach(node_own(group.node[node]));
    uint64_t removed = db_remove_due(db_at(node * REAL_DBS + db), &key,
                                     hlc_ms(node_clock(group.node[node])), 100, &more);
    local_writes_attach(NULL);
    node_settle(group.node[node]);
    expire_set_judge(NULL);
    keyspace_unlock_exclusive();
    reclaim_run();
    return removed;
}

static void test_the_writer_tells_what_expired(void **state)
{
    (void)state;
    real_group_init(&group, 3, LOG_BYTES, 0);
    real_run_one(&group, 0, 1, "set k v pxat 1800000010000");
    assert_true(real_settle(&group));
    group.now_ms = REAL_START_MS + 10001;
    uint64_t before = real_position(&group, 1);
    assert_int_equal(sweep(1, 1, "k"), 0);
    assert_int_equal(real_position(&group, 1), before);
    assert_int_not_equal(real_digest(&group, 1, 1, "k"), 0);
    assert_int_equal(sweep(0, 1, "k"), 1);
    assert_int_equal(real_digest(&group, 0, 1, "k"), 0);
    assert_string_equal(real_unit_text(&group, 0, real_position(&group, 0)),
                        "1: KEYDB.EXPIRED k 1800000010000");
    assert_true(real_settle(&group));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(real_digest(&group, i, 1, "k"), 0);
        assert_int_equal(node_states(group.node[i]), 0);
    }
    real_group_deinit(&group);
}

static void test_a_deadline_that_moved_is_not_expired(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "set k v pxat 1800000010000");
    assert_true(real_settle(&group));
    group.now_ms = REAL_START_MS + 9000;
    real_run_one(&group, 1, 0, "pexpireat k 1800000020000");
    group.now_ms = REAL_START_MS + 10001;
    assert_int_equal(sweep(0, 0, "k"), 1); /* has not heard of that */
    assert_true(real_settle(&group));
    assert_same(0, "k");
    assert_string_equal(real_run_one(&group, 0, 0, "pexpiretime k"), ":1800000020000\r\n");
    assert_string_equal(real_run_one(&group, 1, 0, "pexpiretime k"), ":1800000020000\r\n");
    real_group_deinit(&group);
}

/* The same of what a write has found gone: what was there goes on being there. */
static void test_a_write_finds_gone_what_was_prolonged(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "hset h m0 1 m1 1");
    real_run_one(&group, 0, 0, "pexpireat h 1800000010000");
    real_run_one(&group, 0, 0, "hset f m0 1");
    real_run_one(&group, 0, 0, "hpexpireat f 1800000010000 fields 1 m0");
    real_run_one(&group, 0, 0, "sadd s m0 m1");
    real_run_one(&group, 0, 0, "pexpirememberat s m0 1800000010000");
    assert_true(real_settle(&group));
    group.now_ms = REAL_START_MS + 9000;
    real_run_one(&group, 1, 0, "pexpireat h 1800000020000");
    real_run_one(&group, 1, 0, "hpexpireat f 1800000020000 fields 1 m0");
    real_run_one(&group, 1, 0, "pexpirememberat s m0 1800000020000");
    group.now_ms = REAL_START_MS + 10001;
    real_run_one(&group, 0, 0, "hset h m2 1");
    real_run_one(&group, 0, 0, "hset f m2 1");
    real_run_one(&group, 0, 0, "sadd s m2");
    assert_string_equal(real_unit_text(&group, 0, real_position(&group, 0)),
                        "0: KEYDB.EXPIRED s 1800000010000 m0 | 0: sadd s m2");
    assert_true(real_settle(&group));
    for (int i = 0; i < 2; i++) {
        assert_string_equal(real_run_one(&group, i, 0, "pexpiretime h"), ":1800000020000\r\n");
        assert_string_equal(real_run_one(&group, i, 0, "hlen h"), ":3\r\n");
        assert_string_equal(real_run_one(&group, i, 0, "hlen f"), ":2\r\n");
        assert_string_equal(real_run_one(&group, i, 0, "scard s"), ":3\r\n");
    }
    real_group_deinit(&group);
}

/* Each side of a cut takes away what is due: many keys, and no state of them is told. */
/* One direction is late: whoever has lost something waits for who has it, however long he does not
 * hear of it. */
static void test_who_lost_something_waits(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "hset f m0 1 m1 1");
    real_run_one(&group, 0, 0, "hpexpireat f 1800000010000 fields 1 m0");
    assert_true(real_settle(&group));
    group.now_ms = REAL_START_MS + 9000;
    real_run_one(&group, 1, 0, "hpersist f fields 1 m0");
    group.now_ms = REAL_START_MS + 10001;
    real_run_one(&group, 0, 0, "hset f m1 2");
    assert_string_equal(real_run_one(&group, 0, 0, "hlen f"), ":1\r\n");
    uint64_t told = node_states(group.node[0]);
    for (int i = 0; i < 200; i++) {
        while (real_send(&group, 0, 1)) {
        }
        while (real_deliver(&group, 0, 1)) {
        }
        group.now_ms += 100;
        real_tick(&group, 0);
    }
    assert_int_equal(node_states(group.node[0]), told);
    assert_true(real_settle(&group));
    for (int i = 0; i < 2; i++) {
        assert_string_equal(real_run_one(&group, i, 0, "hmget f m0 m1"),
                            "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
        assert_string_equal(real_run_one(&group, i, 0, "hpexpiretime f fields 1 m0"),
                            "*1\r\n:-1\r\n");
    }
    real_group_deinit(&group);
}

/* Each has taken away something, one of them more than it should: also where it comes late. */
static void test_both_take_away_and_one_too_much(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "hset f m0 1 m1 1 m2 1");
    real_run_one(&group, 0, 0, "hpexpireat f 1800000010000 fields 2 m0 m1");
    real_run_one(&group, 0, 0, "set k v pxat 1800000010000");
    assert_true(real_settle(&group));
    group.now_ms = REAL_START_MS + 9000;
    real_run_one(&group, 1, 0, "hpersist f fields 1 m0");
    real_run_one(&group, 1, 0, "pexpireat k 1800000010100");
    group.now_ms = REAL_START_MS + 10001;
    real_run_one(&group, 0, 0, "hset f m2 2");
    assert_int_equal(sweep(0, 0, "k"), 1);
    group.now_ms += 5;
    real_run_one(&group, 1, 0, "hset f m3 1"); /* finds m1 gone, as the other one did before it */
    assert_true(real_settle(&group));
    for (int i = 0; i < 2; i++) {
        assert_string_equal(real_run_one(&group, i, 0, "hmget f m0 m1 m2 m3"),
                            "*4\r\n$1\r\n1\r\n$-1\r\n$1\r\n2\r\n$1\r\n1\r\n");
    }
    real_group_deinit(&group);
}

static void test_both_sides_of_a_cut_expire_the_same(void **state)
{
    (void)state;
    char line[64];
    real_group_init(&group, 2, LOG_BYTES, 0);
    for (int i = 0; i < 20; i++) {
        snprintf(line, sizeof(line), "set k%d v pxat 1800000010000", i);
        real_run_one(&group, i % 2, 0, line);
    }
    assert_true(real_settle(&group));
    group.now_ms = REAL_START_MS + 80000;
    for (int node = 0; node < 2; node++) {
        for (int i = 0; i < 20; i++) {
            snprintf(line, sizeof(line), "k%d", i);
            assert_int_equal(sweep(node, 0, line), 1);
        }
        group.now_ms += 1000;
    }
    assert_true(real_settle(&group));
    assert_int_equal(node_states(group.node[0]) + node_states(group.node[1]), 0);
    real_group_deinit(&group);
}

static void test_a_key_without_deadline_never_expires(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    struct origin_id peer = {.epoch = 7};
    real_run_one(&group, 0, 0, "set k v");
    assert_int_equal(real_take(&group, 0, &peer, 1, (uint64_t)REAL_START_MS << 16, 0,
                               "*3\r\n$13\r\nKEYDB.EXPIRED\r\n$1\r\nk\r\n$19\r\n"
                               "9223372036854775807\r\n"),
                     RECEIVED);
    assert_int_not_equal(real_digest(&group, 0, 0, "k"), 0);
    real_group_deinit(&group);
}

static void test_others_tell_when_the_writer_is_silent(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "set k v pxat 1800000010000");
    assert_true(real_settle(&group));
    group.now_ms = REAL_START_MS + 30000;
    assert_int_equal(sweep(1, 0, "k"), 0);
    group.now_ms = REAL_START_MS + 75000;
    assert_int_equal(sweep(1, 0, "k"), 1);
    assert_true(real_settle(&group));
    assert_int_equal(real_digest(&group, 0, 0, "k"), 0);
    assert_int_equal(real_digest(&group, 1, 0, "k"), 0);
    real_group_deinit(&group);
}

/* What a write finds gone is told as gone, and is gone where it was told: also where it was only
 * read. */
static void test_what_is_told_as_gone_is_gone(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "sadd k m0 m1");
    real_run_one(&group, 0, 0, "pexpireat k 1800000010000");
    real_run_one(&group, 0, 0, "sadd t m0");
    real_run_one(&group, 0, 0, "pexpirememberat t m0 1800000010000");
    assert_true(real_settle(&group));
    group.now_ms = REAL_START_MS + 10001;
    static const char *const reads[] = {"exists k", "exists t", "set other v"};
    real_run(&group, 1, 0, 3, reads);
    assert_int_equal(real_digest(&group, 1, 0, "k"), 0);
    assert_int_equal(real_digest(&group, 1, 0, "t"), 0);
    real_run_one(&group, 1, 0, "sadd k m5");
    assert_true(real_settle(&group));
    assert_same(0, "k");
    assert_same(0, "t");
    assert_string_equal(real_run_one(&group, 0, 0, "scard k"), ":1\r\n");
    real_group_deinit(&group);
}

/* ---- random programs ---- */

static void run_step(bool flushes)
{
    int a = (int)rand_below((uint64_t)group.nodes), b = (int)rand_below((uint64_t)group.nodes);
    uint64_t what = rand_below(100);
    if (what < 25) {
        real_write_something(&group, a);
    } else if (what < 58) {
        a == b ? (void)0 : (void)real_send(&group, a, b);
    } else if (what < 88) {
        real_deliver(&group, a, b);
    } else if (what < 92) {
        group.now_ms += (int64_t)rand_below(200);
    } else if (what < 96) {
        real_tick(&group, a);
    } else if (what < 98 && a != b) {
        real_tell_clocks(&group, a, b);
    } else if (flushes && what == 99 && rand_below(4) == 0) {
        if (rand_below(2)) {
            real_run_one(&group, a, (int)rand_below(REAL_DBS), "flushdb");
        } else {
            real_swap_databases(&group, a);
        }
    }
}

/* For who looks at a failure: all that a node's window has of a key, in order. */
static void print_history(int node, int db, struct slice key)
{
    struct window_view view;
    window_view(node_merge(group.node[node])->window, db, key, &view);
    for (uint32_t i = 0; i < view.count; i++) {
        struct window_write *w = &view.writes[i];
        window_write_open(w);
        printf("%llx %u:%llu", (unsigned long long)w->dot.stamp, dot_origin(w->dot),
               (unsigned long long)dot_sequence(w->dot));
        for (int a = 0; a < (w->cover ? 2 : w->argc); a++) {
            printf(" %.*s", (int)w->argv[a].len, w->argv[a].ptr);
        }
        for (uint32_t o = 1; w->cover && o < w->cover->count; o++) {
            printf(" %llu", (unsigned long long)w->cover->sequence[o]);
        }
        printf("\n");
    }
    window_view_deinit(&view);
}

static void print_conflict(int db, struct slice key, void *context)
{
    printf("node %d conflicts %.*s in %d\n", *(int *)context, (int)key.len, key.ptr, db);
    print_history(*(int *)context, db, key);
}

/* True when the node holds what node 0 does; else it is said, if it should be. */
static bool holds_the_same(int node, bool silent)
{
    for (int i = 0; i < REAL_DBS * 10; i++) {
        char key[4], type[16];
        snprintf(key, sizeof(key), "k%d", i % 10);
        snprintf(type, sizeof(type), "type k%d", i % 10);
        if (real_digest(&group, node, i / 10, key) == real_digest(&group, 0, i / 10, key)) {
            continue;
        }
        if (!silent) {
            printf("%s in %d, node 0: %s", key, i / 10, real_run_one(&group, 0, i / 10, type));
            printf("node %d: %s", node, real_run_one(&group, node, i / 10, type));
            print_history(node, i / 10, slice_cstr(key));
        }
        return false;
    }
    return true;
}

static bool settles(bool silent)
{
    if (real_settle(&group)) {
        return true;
    }
    for (int i = 0; i < group.nodes && !silent; i++) {
        conflicts_each(node_merge(group.node[i])->conflicts, print_conflict, &i);
    }
    return false;
}

/* What happened in all programs, so that one knows that they were worth it. */
static uint64_t plans[MERGE_PLANS], conflicts_seen, states;

static void count_up(void)
{
    for (int i = 0; i < group.nodes; i++) {
        const struct merge *m = node_merge(group.node[i]);
        for (int p = 0; p < MERGE_PLANS; p++) {
            plans[p] += m->plans[p];
        }
        conflicts_seen += m->conflicts_seen;
        states += node_states(group.node[i]);
    }
}

static bool program_holds(uint64_t seed, unsigned broken)
{
    rand_set_seed(seed);
    real_group_init(&group, 2 + (int)rand_below(3), LOG_BYTES, broken);
    for (int i = 0; i < group.nodes; i++) {
        group.skew_ms[i] = rand_below(3) ? (int64_t)rand_below(7200000) - 3600000 : 0;
    }
    bool flushes = rand_below(3) == 0;
    for (int i = 0; i < STEPS; i++) {
        run_step(flushes);
    }
    bool good = settles(broken);
    for (int i = 1; good && i < group.nodes; i++) {
        good = holds_the_same(i, broken);
    }
    good = good && holds_the_same(real_add_referee(&group), broken);
    count_up();
    real_group_deinit(&group);
    return good;
}

static void test_random_programs_converge(void **state)
{
    (void)state;
    const char *one = getenv("KEYDB_TEST_PROGRAM"), *many = getenv("KEYDB_TEST_PROGRAMS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    uint64_t count = one ? 1 : many ? strtoull(many, NULL, 10) : PROGRAMS;
    for (uint64_t i = first; i < first + count; i++) {
        if (!program_holds(i, 0)) {
            fail_msg("KEYDB_TEST_PROGRAM=%llu", (unsigned long long)i);
        }
    }
    for (int p = 0; p < MERGE_NEITHER && !one; p++) {
        assert_true(plans[p] > 0);
    }
    assert_true(one || (conflicts_seen > 0 && states > 0));
}

/* ---- random programs with time ---- */

/* K: k0 to k3, M: m0 to m2, E: a time that comes soon. */
static const char *const dated_lines[] = {
    "set K N pxat E",
    "hset K M N",
    "hset K M N",
    "hpexpireat K E fields 1 M",
    "hpersist K fields 1 M",
    "hincrby K M 1",
    "sadd K M",
    "sadd K M",
    "pexpirememberat K M E",
    "pexpirememberat K M E",
    "persist K M",
    "zadd K 1 M",
    "pexpireat K E",
    "pexpireat K E",
    "persist K",
    "getex K pxat E",
    "getex K persist",
    "incrby K 1",
    "exists K",
    "hlen K",
    "del K",
    "srem K M",
    "set K 1 keepttl",
};

static void write_dated_thing(int node)
{
    char line[128];
    size_t at = 0;
    const char *pattern = dated_lines[rand_below(sizeof(dated_lines) / sizeof(dated_lines[0]))];
    for (const char *c = pattern; *c; c++) {
        char text[24] = {*c, '\0'};
        if (*c == 'K') {
            snprintf(text, sizeof(text), "k%d", (int)rand_below(4));
        } else if (*c == 'M') {
            snprintf(text, sizeof(text), "m%d", (int)rand_below(3));
        } else if (*c == 'N') {
            snprintf(text, sizeof(text), "%d", (int)rand_below(9));
        } else if (*c == 'E') { /* some of them the same */
            snprintf(text, sizeof(text), "%lld",
                     (long long)(group.now_ms / 200 + (int64_t)rand_below(3)) * 200);
        }
        at += (size_t)snprintf(line + at, sizeof(line) - at, "%s", text);
    }
    real_run_one(&group, node, 0, line);
}

static void sweep_something(int node)
{
    char key[4];
    snprintf(key, sizeof(key), "k%d", (int)rand_below(4));
    sweep(node, 0, key);
}

static void run_dated_step(void)
{
    int a = (int)rand_below((uint64_t)group.nodes), b = (int)rand_below((uint64_t)group.nodes);
    uint64_t what = rand_below(100);
    if (what < 30) {
        write_dated_thing(a);
    } else if (what < 55) {
        a == b ? (void)0 : (void)real_send(&group, a, b);
    } else if (what < 80) {
        real_deliver(&group, a, b);
    } else if (what < 88) {
        group.now_ms += (int64_t)rand_below(150);
    } else if (what < 94) {
        sweep_something(a);
    } else if (what < 97) {
        real_tick(&group, a);
    } else if (what < 99 && a != b) {
        real_tell_clocks(&group, a, b);
    } else if (rand_below(20) == 0) {
        group.now_ms += 61000; /* all seem silent: each tells what it finds */
    }
}

/* Until nothing more is due anywhere. */
static bool comes_to_an_end(void)
{
    bool good = true;
    for (int round = 0; good && round < 3; round++) {
        good = settles(false);
        group.now_ms += 8000000;
        for (int i = 0; i < group.nodes; i++) {
            real_tick(&group, i);
        }
        good = good && settles(false);
        for (int i = 0; i < group.nodes * 4; i++) {
            char key[4];
            snprintf(key, sizeof(key), "k%d", i % 4);
            sweep(i / 4, 0, key);
        }
    }
    return good && settles(false);
}

static void test_random_programs_with_time(void **state)
{
    (void)state;
    const char *one = getenv("KEYDB_TEST_PROGRAM"), *many = getenv("KEYDB_TEST_PROGRAMS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    uint64_t count = one ? 1 : many ? strtoull(many, NULL, 10) : PROGRAMS;
    for (uint64_t seed = first; seed < first + count; seed++) {
        rand_set_seed(seed);
        real_group_init(&group, 2 + (int)rand_below(3), LOG_BYTES, 0);
        for (int i = 0; i < group.nodes; i++) {
            group.skew_ms[i] = rand_below(3) ? (int64_t)rand_below(7200000) - 3600000 : 0;
        }
        for (int i = 0; i < STEPS; i++) {
            run_dated_step();
        }
        bool good = comes_to_an_end();
        for (int i = 1; good && i < group.nodes; i++) {
            good = holds_the_same(i, false);
        }
        good = good && holds_the_same(real_add_referee(&group), false);
        real_group_deinit(&group);
        if (!good) {
            fail_msg("KEYDB_TEST_PROGRAM=%llu", (unsigned long long)seed);
        }
    }
}

/* The same programs find a broken rule. */
static void test_broken_rules_are_found(void **state)
{
    (void)state;
    static const unsigned rules[] = {MERGE_BREAK_REPEAT, MERGE_BREAK_STAMP, MERGE_BREAK_WHOLE,
                                     MERGE_BREAK_CONFLICT};
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        uint64_t seed = 1;
        while (seed <= PROGRAMS && program_holds(seed, rules[i])) {
            seed++;
        }
        if (seed > PROGRAMS) {
            fail_msg("rule %u", rules[i]);
        }
    }
}

static int setup(void **state)
{
    int failed = real_setup(state);
    file_log = propagate_register(PROPAGATE_TO_AOF, record);
    event_add_listener(on_event);
    event_add_change_listener(on_change);
    return failed;
}

static int teardown(void **state)
{
    buf_deinit(&file);
    buf_deinit(&events);
    return real_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands_become_units),
        cmocka_unit_test(test_writes_of_nobody_get_no_dot),
        cmocka_unit_test(test_logs_and_window_are_bounded),
        cmocka_unit_test(test_what_is_taken_once_and_what_never),
        cmocka_unit_test(test_only_writes_are_run),
        cmocka_unit_test(test_a_peers_unit_is_any_write_but_not_ours),
        cmocka_unit_test(test_crossed_writes),
        cmocka_unit_test(test_a_failing_write_conflicts_and_a_state_settles),
        cmocka_unit_test(test_watchers_see_peers_writes),
        cmocka_unit_test(test_the_writer_tells_what_expired),
        cmocka_unit_test(test_a_deadline_that_moved_is_not_expired),
        cmocka_unit_test(test_a_key_without_deadline_never_expires),
        cmocka_unit_test(test_others_tell_when_the_writer_is_silent),
        cmocka_unit_test(test_what_is_told_as_gone_is_gone),
        cmocka_unit_test(test_a_write_finds_gone_what_was_prolonged),
        cmocka_unit_test(test_who_lost_something_waits),
        cmocka_unit_test(test_both_take_away_and_one_too_much),
        cmocka_unit_test(test_both_sides_of_a_cut_expire_the_same),
        cmocka_unit_test(test_random_programs_with_time),
        cmocka_unit_test(test_random_programs_converge),
        cmocka_unit_test(test_broken_rules_are_found),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
