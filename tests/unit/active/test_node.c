/* A node of active replicas over the real keyspace: what our commands become, how peers' units are
 * applied (test_programs.c: random ones on several of them). */
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

static void tell(const char *a, const char *b, const char *c) REQUIRES(keyspace_lock)
{
    const struct slice words[] = {slice_cstr(a), slice_cstr(b), slice_cstr(c)};
    propagate_command(db_at(0), c[0] ? 3 : 2, words);
}

/* Whether so many units are the node's, and the key's dot is of that one. */
static void assert_stands(uint64_t position, uint64_t sequence)
{
    struct key a = key_of(SLICE("a"));
    struct dot dot;
    keyspace_assert_exclusive();
    memcpy(&dot, entry_stamp(db_look(db_at(0), &a)), sizeof(dot));
    assert_int_equal(real_position(&group, 0), position);
    assert_int_equal(dot_sequence(dot), sequence);
}

/* Amid a hold a SET alone is the node's at once, unless something waits, which goes before it. */
static void test_a_set_alone_waits_only_behind_others(void **state)
{
    (void)state;
    real_group_init(&group, 1, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "set a 0");
    keyspace_lock_exclusive();
    local_writes_attach(node_own(group.node[0]));
    tell("SET", "a", "1");
    assert_stands(2, 2);
    tell("DEL", "b", "");
    tell("SET", "a", "2");
    assert_stands(2, 2);
    assert_int_equal(local_writes_last(node_own(group.node[0])), 4);
    node_settle(group.node[0]);
    assert_stands(4, 4);
    propagate_begin_unit();
    tell("SET", "a", "3");
    assert_stands(4, 4);
    tell("SET", "a", "4");
    propagate_end_unit();
    assert_stands(4, 4);
    node_settle(group.node[0]);
    assert_stands(5, 5);
    tell("SET", "a", "5");
    assert_stands(6, 6);
    local_writes_attach(NULL);
    keyspace_unlock_exclusive();
    assert_string_equal(real_unit_text(&group, 0, 2), "0: SET a 1");
    assert_string_equal(real_unit_text(&group, 0, 3), "0: DEL b");
    assert_string_equal(real_unit_text(&group, 0, 4), "0: SET a 2");
    assert_string_equal(real_unit_text(&group, 0, 5), "0: SET a 3 | 0: SET a 4");
    assert_string_equal(real_unit_text(&group, 0, 6), "0: SET a 5");
    real_group_deinit(&group);
}

/* So that a late write that concerns one of them has nothing to do with the others. */
static void test_a_deadline_is_told_for_one_member_at_a_time(void **state)
{
    (void)state;
    real_group_init(&group, 1, LOG_BYTES, 0);
    real_run_one(&group, 0, 0, "hset h a 1 b 2 c 3");
    real_run_one(&group, 0, 0, "hpexpireat h 4102444800000 fields 3 a x b");
    assert_string_equal(real_unit_text(&group, 0, 2), "0: PEXPIREMEMBERAT h a 4102444800000 | "
                                                      "0: PEXPIREMEMBERAT h b 4102444800000");
    real_run_one(&group, 0, 0, "hpersist h fields 4 c b x a");
    assert_string_equal(real_unit_text(&group, 0, 3), "0: PERSIST h b | 0: PERSIST h a");
    assert_string_equal(real_run_one(&group, 0, 0, "hpersist h fields 1 c"), "*1\r\n:-1\r\n");
    assert_int_equal(real_position(&group, 0), 3);
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
    struct origin_id peer = origin_named('p', 7);
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

/* So many states it tells in a second, of very many that are due, while the slowest of those who
 * read is so many bytes behind; UINT64_MAX: nobody reads. */
static uint64_t states_told(size_t log_bytes, bool reads, uint64_t behind)
{
    struct node *n = group.node[0];
    uint64_t before = node_states(n);
    for (int tick = 0; tick < 10; tick++) {
        uint64_t appended = origin_log_appended(node_log(n));
        origin_log_read_upto(node_log(n), reads ? appended - behind : UINT64_MAX, SIZE_MAX);
        keyspace_lock_exclusive();
        node_set_log_bytes(n, log_bytes);
        keyspace_unlock_exclusive();
        real_tick(&group, 0);
        group.now_ms += CONFLICT_PACE_MS;
    }
    return node_states(n) - before;
}

/* States of many keys do not push one another out of the logs before they are read. */
static void test_states_wait_for_who_reads(void **state)
{
    const size_t log_bytes = (size_t)64 * 1024;
    char line[160];
    (void)state;
    real_group_init(&group, 1, log_bytes, 0);
    for (int i = 0; i < 4000; i++) {
        snprintf(line, sizeof(line), "set k%d %0100d", i, i);
        real_run_one(&group, 0, 0, line);
        snprintf(line, sizeof(line), "k%d", i);
        conflicts_note(node_merge(group.node[0])->conflicts, 0, slice_cstr(line), 0, group.now_ms);
    }
    group.now_ms += CONFLICT_MAX_MS;
    uint64_t nobody = states_told(log_bytes, false, 0);
    uint64_t read = states_told(log_bytes, true, log_bytes / 8);
    uint64_t late = states_told(log_bytes, true, log_bytes / 3);
    assert_true(nobody * 100 < log_bytes); /* of a state of 100 bytes and more */
    assert_true(read > 2 * nobody && read * 100 < 3 * log_bytes);
    assert_true(late > 0 && late < nobody / 4);
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

static void test_the_writer_tells_what_expired(void **state)
{
    (void)state;
    real_group_init(&group, 3, LOG_BYTES, 0);
    real_run_one(&group, 0, 1, "set k v pxat 1800000010000");
    assert_true(real_settle(&group));
    group.now_ms = REAL_START_MS + 10001;
    uint64_t before = real_position(&group, 1);
    assert_int_equal(real_sweep(&group, 1, 1, "k"), 0);
    assert_int_equal(real_position(&group, 1), before);
    assert_int_not_equal(real_digest(&group, 1, 1, "k"), 0);
    assert_int_equal(real_sweep(&group, 0, 1, "k"), 1);
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
    assert_int_equal(real_sweep(&group, 0, 0, "k"), 1); /* has not heard of that */
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
    assert_int_equal(real_sweep(&group, 0, 0, "k"), 1);
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
            assert_int_equal(real_sweep(&group, node, 0, line), 1);
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
    assert_int_equal(real_sweep(&group, 1, 0, "k"), 0);
    group.now_ms = REAL_START_MS + 75000;
    assert_int_equal(real_sweep(&group, 1, 0, "k"), 1);
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
        cmocka_unit_test(test_a_set_alone_waits_only_behind_others),
        cmocka_unit_test(test_a_deadline_is_told_for_one_member_at_a_time),
        cmocka_unit_test(test_writes_of_nobody_get_no_dot),
        cmocka_unit_test(test_logs_and_window_are_bounded),
        cmocka_unit_test(test_what_is_taken_once_and_what_never),
        cmocka_unit_test(test_only_writes_are_run),
        cmocka_unit_test(test_a_peers_unit_is_any_write_but_not_ours),
        cmocka_unit_test(test_crossed_writes),
        cmocka_unit_test(test_a_failing_write_conflicts_and_a_state_settles),
        cmocka_unit_test(test_states_wait_for_who_reads),
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
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
