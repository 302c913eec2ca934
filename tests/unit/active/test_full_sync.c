/* MERGE as bytes and as work, between real nodes in one process (real.h): data sets are told
 * in one hold, come in pieces of any length, are cut anywhere, and are merged one key a hold, while
 * clients of all nodes go on writing. However it went, in the end all nodes hold the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"
#include "store.h"

#include "base/mem.h"
#include "base/rand.h"
#include "keyspace/reclaim.h"
#include "active/full_sync_send.h"
#include "active/full_sync_receive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LOG_BYTES ((size_t)1 << 20)
#define PROGRAMS 60
#define STEPS 500
#define SETTLE_ROUNDS 3000
/* In some programs a frame has room for no more. */
#define SHORT_FRAME 2000
#define LONG_VALUE (SHORT_FRAME + 100)

/* One node pulls from another one: units while it can, else a data set. */
struct lane {
    struct full_sync *contact;
    struct buf set; /* what is sent, and some bytes behind it */
    size_t sent, size;
};

static struct real_group group;
static size_t usual_bound;                                /* of a frame */
static struct lane lanes[REAL_NODES_MAX][REAL_NODES_MAX]; /* [receiver][sender] */
static uint64_t merges, cuts, waits, states;

/* ---- a data set ---- */

static bool keep(struct slice bytes, void *context)
{
    buf_append_slice(context, bytes);
    return true;
}

static void tell_set(int node, struct buf *out)
{
    keyspace_lock_exclusive();
    struct full_sync_moment moment = full_sync_now(group.node[node]);
    assert_true(full_sync_tell(&moment, keep, out));
    keyspace_unlock_exclusive();
}

static struct full_sync *create_contact(void)
{
    int fd = memfd_create("contact", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return full_sync_create(fd);
}

static bool begin(struct full_sync *c, int node, const char **error)
{
    keyspace_lock_exclusive();
    bool good = full_sync_begin(c, group.node[node], error);
    keyspace_unlock_exclusive();
    return good;
}

/* One key, and what our clients wrote meanwhile is the node's. */
static void step(struct full_sync *c, int node)
{
    const char *error = NULL;
    assert_true(full_sync_read(c, &error));
    keyspace_lock_exclusive();
    local_writes_attach(node_own(group.node[node]));
    full_sync_step(c, group.node[node], group.now_ms, 0);
    local_writes_attach(NULL);
    keyspace_unlock_exclusive();
    reclaim_run();
}

static void meet_all(struct full_sync *c, int node)
{
    const char *error = NULL;
    assert_true(begin(c, node, &error));
    while (full_sync_is_merging(c)) {
        step(c, node);
    }
    assert_int_equal(full_sync_phase(c), FULL_SYNC_MERGED);
    assert_int_equal(full_sync_keys_refused(c), 0);
}

/* The receiver gets all that the sender has, at once. */
static void merge(int receiver, int sender)
{
    struct buf set = {0};
    size_t used;
    const char *error = NULL;
    struct full_sync *c = create_contact();
    tell_set(sender, &set);
    assert_int_equal(full_sync_feed(c, buf_slice(&set), &used, &error), FULL_SYNC_WHOLE);
    assert_int_equal(used, set.len);
    meet_all(c, receiver);
    full_sync_destroy(&c);
    buf_deinit(&set);
}

static uint64_t position(int node, int of)
{
    struct origins *o = node_origins(group.node[node]);
    struct origins *theirs = node_origins(group.node[of]);
    uint16_t i = origins_find(o, &origins_at(theirs, node_self(group.node[of]))->id);
    return i ? origins_at(o, i)->position : 0;
}

/* ---- links ---- */

static void end_lane(struct lane *l)
{
    full_sync_destroy(&l->contact);
    buf_deinit(&l->set);
    *l = (struct lane){0};
}

static void begin_lane(struct lane *l, int sender)
{
    tell_set(sender, &l->set);
    l->size = l->set.len;
    buf_append_cstr(&l->set, "frames"); /* what follows is not the data set's */
    l->contact = create_contact();
    merges++;
}

static bool feed_lane(struct lane *l, bool may_cut)
{
    size_t used, left = l->set.len - l->sent;
    size_t piece = 1 + rand_below(rand_below(4) ? 60 : 4000);
    const char *error = NULL;
    if (may_cut && rand_below(12) == 0) {
        cuts++;
        end_lane(l);
        return true;
    }
    piece = piece < left ? piece : left;
    enum full_sync_phase phase =
        full_sync_feed(l->contact, slice_of(l->set.data + l->sent, piece), &used, &error);
    l->sent += used;
    if (error) {
        fail_msg("%s", error);
    }
    assert_true(phase == FULL_SYNC_COMING || phase == FULL_SYNC_WHOLE);
    assert_true(phase == FULL_SYNC_WHOLE ? l->sent == l->size : used == piece);
    return true;
}

/* The data set goes on; false when it has to wait. */
static bool move_lane(struct lane *l, int receiver, bool may_cut)
{
    const char *error = NULL;
    if (full_sync_phase(l->contact) == FULL_SYNC_COMING) {
        return feed_lane(l, may_cut);
    }
    if (full_sync_phase(l->contact) == FULL_SYNC_WHOLE) {
        return !node_is_merging(group.node[receiver]) && begin(l->contact, receiver, &error);
    }
    step(l->contact, receiver);
    if (!full_sync_is_merging(l->contact)) {
        assert_int_equal(full_sync_keys_refused(l->contact), 0);
        end_lane(l);
    }
    return true;
}

static bool take_unit(int receiver, const struct origin_id *id, struct unit *u)
{
    keyspace_lock_exclusive();
    local_writes_attach(node_own(group.node[receiver]));
    enum receiver_result taken =
        node_take(group.node[receiver], id, dot_sequence(u->dot), u->dot.stamp, u->db,
                  slice_of(u->bytes, u->len), group.now_ms);
    local_writes_attach(NULL);
    keyspace_unlock_exclusive();
    reclaim_run();
    waits += taken == RECEIVED_LATER;
    assert_true(taken == RECEIVED || taken == RECEIVED_LATER);
    return taken == RECEIVED;
}

/* The receiver gets something from the sender; false when there is nothing. */
static bool pull(int receiver, int sender, bool may_cut)
{
    struct lane *l = &lanes[receiver][sender];
    struct origins *from = node_origins(group.node[sender]);
    struct origins *to = node_origins(group.node[receiver]);
    if (l->contact) {
        return move_lane(l, receiver, may_cut);
    }
    uint32_t first = (uint32_t)rand_below(from->count);
    for (uint32_t k = 0; k < from->count; k++) {
        uint16_t i = (uint16_t)((first + k) % from->count);
        const struct origin *o = origins_at(from, i);
        uint16_t there = i ? origins_find(to, &o->id) : 0;
        uint64_t have = there ? origins_at(to, there)->position : 0;
        if (i == 0 || there == node_self(group.node[receiver]) || have >= o->position) {
            continue;
        }
        struct unit *u = origin_log_find(node_log(group.node[sender]), i, have + 1);
        if (u) {
            return take_unit(receiver, &o->id, u);
        }
        if (!node_is_merging(group.node[sender])) {
            begin_lane(l, sender);
            return true;
        }
    }
    return false;
}

static void tell_clocks(int receiver, int sender)
{
    const struct origins *from = node_origins(group.node[sender]);
    struct origins *to = node_origins(group.node[receiver]);
    for (uint16_t i = 1; i < from->count; i++) {
        const struct origin *o = origins_at(from, i);
        uint16_t there = origins_find(to, &o->id);
        if (there && there != node_self(group.node[receiver]) &&
            origins_at(to, there)->position >= o->position) {
            origins_hear(to, there, o->clock, o->seen);
        }
    }
}

static bool move_all(void)
{
    bool moved = false;
    for (int i = 0; i < group.nodes * group.nodes; i++) {
        int r = i / group.nodes, s = i % group.nodes;
        while (r != s && pull(r, s, false)) {
            moved = true;
        }
        moved = moved || lanes[r][s].contact;
    }
    return moved;
}

static bool settle(void)
{
    int quiet = 0;
    for (int round = 0; round < SETTLE_ROUNDS && quiet < 4; round++) {
        bool moved = move_all();
        group.now_ms += 60;
        for (int i = 0; i < group.nodes; i++) {
            moved |= conflicts_count(node_merge(group.node[i])->conflicts) > 0;
            real_tick(&group, i);
        }
        for (int i = 0; i < group.nodes * group.nodes; i++) {
            if (i / group.nodes != i % group.nodes) {
                tell_clocks(i / group.nodes, i % group.nodes);
            }
        }
        quiet = moved ? 0 : quiet + 1;
    }
    return quiet >= 4;
}

/* The key with a difference; NULL when there is none. */
static const char *difference(void)
{
    static char key[8];
    for (int i = 0; i < group.nodes * REAL_DBS * 12; i++) {
        int node = i / (REAL_DBS * 12), db = i / 12 % REAL_DBS, number = i % 12;
        snprintf(key, sizeof(key), "%c%d", number < 10 ? 'k' : 's', number % 10);
        if (real_digest(&group, node, db, key) != real_digest(&group, 0, db, key)) {
            return key;
        }
    }
    return NULL;
}

static void end_group(void)
{
    for (int i = 0; i < group.nodes; i++) {
        states += node_states(group.node[i]);
        for (int k = 0; k < group.nodes; k++) {
            struct lane *l = &lanes[i][k];
            while (l->contact && full_sync_is_merging(l->contact)) {
                step(l->contact, i);
            }
            end_lane(l);
        }
    }
    real_group_deinit(&group);
}

/* ---- what is sent is what is there ---- */

static const char *const everything[] = {
    "set k0 v",
    "set k1 v pxat 4102444800001",
    "hset k2 m0 1 m1 2",
    "hpexpireat k2 4102444800002 fields 1 m1",
    "sadd k3 m0 m1",
    "pexpirememberat k3 m1 4102444800003",
    "zadd k4 1 m0 2.5 m1",
    "rpush k5 a b c",
    "xadd k6 5-1 f v",
    "pfadd k7 a b",
    "@1 set k0 other",
    "@1 incrby k8 41",
};

static void fill(int node)
{
    for (size_t i = 0; i < sizeof(everything) / sizeof(everything[0]); i++) {
        real_run(&group, node, 0, 1, &everything[i]);
    }
}

static void test_an_empty_node_gets_everything(void **state)
{
    (void)state;
    real_group_init_strangers(&group, 2, LOG_BYTES);
    fill(0);
    merge(1, 0);
    assert_null(difference());
    assert_int_equal(position(1, 0), position(0, 0));
    const struct merge *m = node_merge(group.node[1]);
    assert_int_equal(conflicts_count(m->conflicts), 0);
    struct dot there = real_dot(&group, 0, 0, "k5"), here = real_dot(&group, 1, 0, "k5");
    assert_int_equal(here.stamp, there.stamp);
    assert_int_equal(dot_sequence(here), dot_sequence(there));
    assert_true(window_floor(m->window) >= there.stamp);
    assert_false(
        origin_log_keeps_after(node_log(group.node[1]), dot_origin(here), 0, position(0, 0)));
    real_run_one(&group, 0, 0, "rpush k5 d");
    assert_true(pull(1, 0, false)); /* a unit, the next one */
    assert_null(difference());
    end_group();
}

static void test_a_set_in_any_pieces_and_cut_anywhere(void **state)
{
    (void)state;
    struct buf set = {0};
    const char *error = NULL;
    size_t used;
    real_group_init_strangers(&group, 2, LOG_BYTES);
    fill(0);
    tell_set(0, &set);
    for (size_t upto = 0; upto <= set.len; upto++) {
        struct full_sync *c = create_contact();
        enum full_sync_phase phase = FULL_SYNC_COMING;
        for (size_t at = 0, piece; at < upto; at += piece) {
            piece = upto % 2 ? 1 : upto;
            phase = full_sync_feed(c, slice_of(set.data + at, piece), &used, &error);
            assert_int_equal(used, piece);
        }
        assert_int_equal(phase, upto < set.len ? FULL_SYNC_COMING : FULL_SYNC_WHOLE);
        full_sync_destroy(&c);
    }
    assert_int_equal(position(1, 0), 0);
    assert_int_equal(real_digest(&group, 1, 0, "k0"), 0);
    buf_deinit(&set);
    end_group();
}

/* The sender says that it is alive while it has nothing yet, and only then. */
static void test_signs_of_life(void **state)
{
    (void)state;
    struct buf set = {0}, sign = {0}, all = {0};
    const char *error = NULL;
    size_t used;
    real_group_init_strangers(&group, 2, LOG_BYTES);
    fill(0);
    tell_set(0, &set);
    full_sync_record_put(&sign, &(struct full_sync_record){.kind = 'N'});
    for (int behind = 0; behind < 2; behind++) { /* the head */
        size_t head = (size_t)le_get(set.data, 8) + 8;
        struct full_sync *c = create_contact();
        buf_clear(&all);
        buf_append(&all, set.data, behind ? head : 0);
        buf_append_slice(&all, buf_slice(&sign));
        buf_append_slice(&all, buf_slice(&sign));
        buf_append(&all, set.data + (behind ? head : 0), set.len - (behind ? head : 0));
        assert_int_equal(full_sync_feed(c, buf_slice(&all), &used, &error),
                         behind ? FULL_SYNC_BROKEN : FULL_SYNC_WHOLE);
        full_sync_destroy(&c);
    }
    buf_deinit(&set);
    buf_deinit(&sign);
    buf_deinit(&all);
    end_group();
}

/* A byte that is another one breaks the data set, or is part of a name or a number that may be. */
static void test_what_is_no_set_changes_nothing(void **state)
{
    (void)state;
    struct buf set = {0};
    real_group_init_strangers(&group, 2, LOG_BYTES);
    fill(0);
    tell_set(0, &set);
    uint64_t broken = 0;
    for (size_t i = 0; i < set.len; i++) {
        struct full_sync *c = create_contact();
        const char *error = NULL;
        size_t used;
        set.data[i] ^= 0x41;
        enum full_sync_phase phase = full_sync_feed(c, buf_slice(&set), &used, &error);
        set.data[i] ^= 0x41;
        assert_true(phase != FULL_SYNC_BROKEN || error);
        broken += phase != FULL_SYNC_WHOLE;
        full_sync_destroy(&c);
    }
    assert_true(broken > set.len * 3 / 4);
    buf_deinit(&set);
    end_group();
}

/* What a length may say is known with the kind: nobody waits for, or keeps, what cannot be one. */
static void test_lengths_by_kind(void **state)
{
    (void)state;
    static const struct {
        char kind;
        uint64_t len;
        enum frame_result result;
    } heads[] = {{'N', 1, FRAME_WHOLE},
                 {'N', 2, FRAME_BROKEN},
                 {'H', 13, FRAME_BROKEN},
                 {'H', 14, FRAME_MORE},
                 {'H', 14 + UINT64_C(65535) * 32, FRAME_MORE},
                 {'H', 15 + UINT64_C(65535) * 32, FRAME_BROKEN},
                 {'L', 1, FRAME_BROKEN},
                 {'L', 1 + (16 << 20), FRAME_MORE},
                 {'L', 2 + (16 << 20), FRAME_BROKEN},
                 {'K', 31, FRAME_BROKEN},
                 {'K', 32, FRAME_MORE},
                 {'K', UINT64_C(1) << 36, FRAME_MORE},
                 {'K', (UINT64_C(1) << 36) + 1, FRAME_BROKEN},
                 {'E', 9, FRAME_MORE},
                 {'E', 8, FRAME_BROKEN},
                 {'E', 10, FRAME_BROKEN},
                 {'X', 9, FRAME_BROKEN},
                 {'N', 0, FRAME_BROKEN},
                 {'K', UINT64_MAX, FRAME_BROKEN}};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct full_sync_record r;
        struct buf head = {0};
        const char *error = NULL;
        size_t consumed;
        le_put(&head, heads[i].len, 8);
        buf_append_char(&head, heads[i].kind);
        assert_int_equal(full_sync_record_next(buf_slice(&head), &r, &consumed, &error),
                         heads[i].result);
        assert_int_equal(error != NULL, heads[i].result == FRAME_BROKEN);
        buf_deinit(&head);
    }
}

static void test_nobody_else_writes_in_our_name(void **state)
{
    (void)state;
    struct buf set = {0};
    const char *error = NULL;
    size_t used;
    real_group_init_strangers(&group, 2, LOG_BYTES);
    fill(0);
    tell_set(0, &set);
    /* Node 1 is given the id that node 0 has: as if our files had lost what a peer has. */
    struct full_sync *c = create_contact();
    struct origins *o = node_origins(group.node[1]);
    origins_at(o, node_self(group.node[1]))->id =
        origins_at(node_origins(group.node[0]), node_self(group.node[0]))->id;
    assert_int_equal(full_sync_feed(c, buf_slice(&set), &used, &error), FULL_SYNC_WHOLE);
    assert_false(begin(c, 1, &error));
    assert_non_null(error);
    assert_false(node_is_merging(group.node[1]));
    full_sync_destroy(&c);
    buf_deinit(&set);
    end_group();
}

/* ---- what is decided ---- */

static void test_two_filled_nodes(void **state)
{
    (void)state;
    real_group_init_strangers(&group, 2, 6000);
    fill(0);
    group.now_ms += 10;
    real_run_one(&group, 1, 0, "set k0 later");
    real_run_one(&group, 1, 0, "sadd k9 only");
    for (int i = 0; i < 200; i++) {
        real_run_one(&group, i % 2, 1, "incrby k8 1");
    }
    assert_true(settle());
    assert_null(difference());
    assert_string_equal(real_run_one(&group, 0, 0, "get k0"), "$5\r\nlater\r\n");
    assert_string_equal(real_run_one(&group, 0, 0, "scard k9"), ":1\r\n");
    assert_string_equal(real_run_one(&group, 1, 0, "llen k5"), ":3\r\n");
    end_group();
}

/* Deleted while the other side was away for longer than the logs keep. */
static void test_what_was_deleted_stays_so(void **state)
{
    (void)state;
    real_group_init_strangers(&group, 2, 3000);
    fill(0);
    assert_true(settle());
    assert_null(difference());
    real_run_one(&group, 0, 0, "del k5");
    for (int i = 0; i < 200; i++) {
        real_run_one(&group, 0, 0, "set k0 more");
    }
    merge(1, 0);
    assert_int_equal(real_digest(&group, 1, 0, "k5"), 0);
    assert_true(settle());
    assert_null(difference());
    assert_int_equal(real_digest(&group, 0, 0, "k5"), 0);
    end_group();
}

/* Keys of files that no node has written: nobody's to delete. */
static void test_keys_without_dots(void **state)
{
    (void)state;
    real_group_init_strangers(&group, 3, LOG_BYTES);
    for (int i = 0; i < 2; i++) {
        local_writes_attach(NULL);
        const char *line = i ? "set k1 one" : "set k0 zero";
        node_own(group.node[i])->muted = true;
        real_run(&group, i, 0, 1, &line);
        node_own(group.node[i])->muted = false;
        keyspace_lock_exclusive();
        node_adopt(group.node[i]);
        keyspace_unlock_exclusive();
        assert_int_equal(real_dot(&group, i, 0, i ? "k1" : "k0").stamp, 0);
    }
    assert_true(settle());
    assert_null(difference());
    assert_int_not_equal(real_digest(&group, 2, 0, "k0"), 0);
    assert_int_not_equal(real_digest(&group, 2, 0, "k1"), 0);
    end_group();
}

/* What MERGE is bringing is not taken by another way before its end. */
static void test_units_that_it_brings_wait(void **state)
{
    (void)state;
    struct buf set = {0};
    const char *error = NULL;
    size_t used;
    real_group_init_strangers(&group, 3, LOG_BYTES);
    fill(0);
    real_run_one(&group, 0, 0, "incrby k9 1");
    real_run_one(&group, 2, 0, "incrby k9 10");
    tell_set(0, &set);
    struct full_sync *c = create_contact();
    assert_int_equal(full_sync_feed(c, buf_slice(&set), &used, &error), FULL_SYNC_WHOLE);
    assert_true(begin(c, 1, &error));
    step(c, 1);
    assert_false(pull(1, 0, false));
    assert_true(pull(1, 2, false)); /* which it does not bring */
    real_run_one(&group, 1, 0, "incrby k9 100");
    while (full_sync_is_merging(c)) {
        step(c, 1);
    }
    full_sync_destroy(&c);
    buf_deinit(&set);
    assert_false(pull(1, 0, false));
    assert_true(settle());
    assert_null(difference());
    assert_string_equal(real_run_one(&group, 1, 0, "get k9"), "$3\r\n111\r\n");
    end_group();
}

/* A key that neither side has, and that the two of them together do: what one deletes as expired
 * lost its deadline by what the other one had done before that. */
static void test_a_key_that_only_both_have(void **state)
{
    (void)state;
    const struct origin_id third = {.node = "a third node...", .epoch = 1};
    int64_t deadline_ms = REAL_START_MS + 500000;
    char line[64];
    struct buf expired = {0};
    real_group_init(&group, 2, LOG_BYTES, 0);
    snprintf(line, sizeof(line), "pexpireat k9 %lld", (long long)deadline_ms);
    real_run_one(&group, 1, 0, "hset k9 early 1");
    real_run_one(&group, 1, 0, line);
    group.now_ms += 10;
    real_run_one(&group, 0, 0, "set k9 other");
    real_run_one(&group, 0, 0, "del k9");
    group.now_ms += 10;
    real_run_one(&group, 1, 0, "hset k9 late 1");
    group.now_ms += 10;
    buf_printf(&expired, "*3\r\n$13\r\nKEYDB.EXPIRED\r\n$2\r\nk9\r\n$13\r\n%lld\r\n",
               (long long)deadline_ms);
    keyspace_lock_exclusive();
    assert_int_equal(node_take(group.node[1], &third, 1, (uint64_t)group.now_ms << 16, 0,
                               buf_slice(&expired), group.now_ms),
                     RECEIVED);
    keyspace_unlock_exclusive();
    reclaim_run();
    buf_deinit(&expired);
    assert_string_equal(real_run_one(&group, 1, 0, "exists k9"), ":0\r\n");
    merge(0, 1);
    assert_true(settle());
    assert_null(difference());
    end_group();
}

/* What was written a moment ago is still in the window; that they have no such key, and a later
 * clock, is no word against it. */
static void test_what_was_just_written_is_kept(void **state)
{
    (void)state;
    static const char *const written[] = {"set k1 1", "hset k2 f v", "mset k3 1 k4 1",
                                          "rpush k5 e"};
    real_group_init(&group, 2, LOG_BYTES, 0);
    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
        real_run_one(&group, 1, 0, written[i]);
    }
    real_run_one(&group, 1, 0, "set k6 1");
    real_run_one(&group, 1, 0, "del k6");
    group.now_ms += 10;
    real_run_one(&group, 0, 0, "set k7 later");
    merge(1, 0);
    assert_string_equal(real_run_one(&group, 1, 0, "exists k1 k2 k3 k4 k5 k7"), ":6\r\n");
    assert_string_equal(real_run_one(&group, 1, 0, "exists k6"), ":0\r\n");
    assert_true(settle());
    assert_null(difference());
    assert_string_equal(real_run_one(&group, 0, 0, "exists k1 k2 k3 k4 k5 k6 k7"), ":6\r\n");
    end_group();
}

/* ---- what no frame has room for ---- */

static void write_long(int node, int db, const char *command, const char *key, size_t bytes)
{
    struct buf line = {0};
    buf_printf(&line, "%s %s ", command, key);
    for (size_t i = 0; i < bytes; i++) { /* what does not become shorter in a file */
        buf_append_char(&line, (char)('!' + rand_below(90)));
    }
    real_run_one(&group, node, db, buf_cstr(&line));
    buf_deinit(&line);
}

static uint64_t units_kept(int node)
{
    const struct node *n = group.node[node];
    uint64_t kept = 0, last = origins_at(node_origins(group.node[node]), node_self(n))->position;
    for (uint64_t i = 1; i <= last; i++) {
        kept += origin_log_find(node_log(group.node[node]), node_self(n), i) != NULL;
    }
    return kept;
}

/* A long write, or transaction, is told to nobody, and comes with everything. */
static void test_what_no_frame_has_room_for(void **state)
{
    (void)state;
    real_group_init(&group, 2, LOG_BYTES, 0);
    local_writes_bound = SHORT_FRAME;
    real_run_one(&group, 0, 0, "set k1 before");
    write_long(0, 0, "set", "k2", LONG_VALUE);
    assert_int_equal(position(0, 0), 2);
    assert_int_equal(units_kept(0), 0);
    real_run_one(&group, 0, 0, "set k1 after");
    real_run_one(&group, 0, 0, "rename k2 k3");
    real_run_one(&group, 0, 1, "set k4 v");
    assert_int_equal(dot_sequence(real_dot(&group, 0, 0, "k3")), 4);
    assert_int_equal(units_kept(0), 1);
    char line[2][SHORT_FRAME] = {"set k5 ", "@1 set k6 "};
    for (int i = 0; i < 2; i++) {
        size_t from = strlen(line[i]);
        memset(line[i] + from, 'y', SHORT_FRAME - 1 - from);
        line[i][SHORT_FRAME - 1] = '\0';
    }
    real_run(&group, 0, 0, 2, (const char *const[]){line[0], line[1]});
    assert_int_equal(units_kept(0), 0);
    assert_int_equal(dot_sequence(real_dot(&group, 0, 0, "k5")), 6);
    assert_int_equal(dot_sequence(real_dot(&group, 0, 1, "k6")), 6);
    real_run_one(&group, 0, 1, "incrby k7 1");
    assert_true(settle());
    assert_null(difference());
    assert_string_equal(real_run_one(&group, 1, 0, "strlen k3"), ":2100\r\n");
    assert_string_equal(real_run_one(&group, 1, 0, "exists k2"), ":0\r\n");
    assert_int_equal(node_states(group.node[0]) + node_states(group.node[1]), 0);
    end_group();
    local_writes_bound = usual_bound;
}

static void test_long_values_that_cross(void **state)
{
    (void)state;
    real_group_init(&group, 3, LOG_BYTES, 0);
    local_writes_bound = SHORT_FRAME;
    for (int i = 0; i < 3; i++) {
        write_long(i, 0, "append", "k1", 900);
        write_long(i, 0, "append", "k1", 900);
        write_long(i, 0, "set", "k2", LONG_VALUE + (size_t)i);
        group.now_ms += 5;
    }
    assert_true(settle());
    assert_null(difference());
    assert_string_equal(real_run_one(&group, 1, 0, "strlen k2"), ":2102\r\n");
    end_group();
    local_writes_bound = usual_bound;
}

/* ---- digests ---- */

/* Both have written the same, all types, and each some keys that only it has: for those no state is
 * told, but for the one key that is not the same on both. */
static void test_what_both_have_is_told_by_digests(void **state)
{
    (void)state;
    static const char *const same[] = {"set k0 v",
                                       "set k1 v pxat 4102444800000",
                                       "rpush k2 a b c",
                                       "hset k3 m0 1 m1 2",
                                       "sadd k4 m0 m1",
                                       "zadd k5 1 m0 2 m1",
                                       "xadd k6 5-1 f v",
                                       "setbit k7 100 1",
                                       "sadd k8 m0 m1",
                                       "pexpirememberat k8 m0 4102444800001",
                                       "xgroup create k6 g 0"};
    real_group_init_strangers(&group, 2, LOG_BYTES);
    for (int node = 0; node < 2; node++) {
        for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
            real_run_one(&group, node, 0, same[i]);
        }
        real_run_one(&group, node, 1, "sadd k0 m2");
        for (int i = 0; i < 10; i++) {
            char line[48];
            snprintf(line, sizeof(line), "set node%d:%d v", node, i);
            real_run_one(&group, node, 0, line);
        }
        group.now_ms += 10;
        for (int i = 0; i < 300; i++) { /* all has left the windows */
            char line[32];
            snprintf(line, sizeof(line), "set k9 %d", i);
            real_run_one(&group, node, 1, line);
        }
    }
    real_run_one(&group, 1, 1, "set k9 other");
    for (int node = 0; node < 2; node++) {
        keyspace_lock_exclusive();
        node_set_log_bytes(group.node[node], 2000);
        keyspace_unlock_exclusive();
        real_run_one(&group, node, 1, "del nothing");
        real_run_one(&group, node, 1, "set k8 x");
        real_run_one(&group, node, 1, "del k8");
    }
    merge(0, 1);
    merge(1, 0);
    assert_true(settle());
    assert_null(difference());
    uint64_t digests = node_digests(group.node[0]) + node_digests(group.node[1]);
    assert_true(digests >= 30);
    assert_in_range(node_states(group.node[0]) + node_states(group.node[1]), 1, 4);
    assert_string_equal(real_run_one(&group, 0, 0, "get node1:9"), "$1\r\nv\r\n");
    assert_string_equal(real_run_one(&group, 0, 1, "get k9"), "$5\r\nother\r\n");
    end_group();
}

/* ---- libraries ---- */

static void test_libraries_come_along(void **state)
{
    (void)state;
    struct store stores[2] = {0};
    struct buf set = {0};
    size_t used;
    const char *error = NULL;
    real_group_init_strangers(&group, 2, LOG_BYTES);
    assert_true(store_load(&stores[0], SLICE("#!lua name=x f")));
    store_use(&stores[0]);
    keyspace_lock_exclusive();
    node_restore_libraries(group.node[0], SLICE(""));
    keyspace_unlock_exclusive();
    tell_set(0, &set);
    store_use(&stores[1]);
    struct full_sync *c = create_contact();
    assert_int_equal(full_sync_feed(c, buf_slice(&set), &used, &error), FULL_SYNC_WHOLE);
    meet_all(c, 1);
    full_sync_destroy(&c);
    buf_deinit(&set);
    store_use(NULL);
    assert_string_equal(store_text(&stores[1]), "#!lua name=x f");
    end_group();
}

/* ---- random programs ---- */

static void happen(bool flushes)
{
    int a = (int)rand_below((uint64_t)group.nodes), b = (int)rand_below((uint64_t)group.nodes);
    uint64_t what = rand_below(100);
    if (local_writes_bound == SHORT_FRAME && rand_below(60) == 0) {
        char key[4];
        snprintf(key, sizeof(key), "k%d", (int)rand_below(10));
        bool whole = rand_below(2);
        write_long(a, (int)rand_below(REAL_DBS), whole ? "set" : "append", key,
                   whole ? LONG_VALUE : 900);
    } else if (what < 22) {
        real_write_something(&group, a);
    } else if (what < 86) {
        a == b ? (void)0 : (void)pull(a, b, true);
    } else if (what < 90) {
        group.now_ms += (int64_t)rand_below(200);
    } else if (what < 95) {
        real_tick(&group, a);
    } else if (what < 98 && a != b) {
        tell_clocks(a, b);
    } else if (flushes && what == 99 && rand_below(4) == 0) {
        real_run_one(&group, a, (int)rand_below(REAL_DBS), "flushdb");
    }
}

/* Narrow ones are of any length: in a long one some conflict mends what a rule gets wrong. */
static void run_program(uint64_t seed, bool narrow)
{
    rand_set_seed(seed);
    size_t log_bytes = 1500 + rand_below(8000);
    int nodes = 2 + (int)rand_below(3);
    if (rand_below(2)) {
        real_group_init_strangers(&group, nodes, log_bytes);
    } else {
        real_group_init(&group, nodes, log_bytes, 0);
    }
    if (narrow) {
        real_narrow(&group);
    }
    for (int i = 0; i < nodes; i++) {
        group.skew_ms[i] = rand_below(3) ? (int64_t)rand_below(7200000) - 3600000 : 0;
        int writes = seed % 2 == 0 ? 0 : narrow ? 1 + (int)rand_below(60) : 60;
        for (int k = 0; k < writes; k++) {
            real_write_something(&group, i); /* filled before they meet */
        }
    }
    bool flushes = rand_below(3) == 0;
    local_writes_bound = seed % 4 == 0 ? SHORT_FRAME : usual_bound;
    int steps = narrow ? 20 + (int)rand_below(STEPS) : STEPS;
    for (int i = 0; i < steps; i++) {
        happen(flushes);
    }
    bool rests = settle();
    const char *wrong = rests ? difference() : "no rest";
    if (wrong) {
        fail_msg("%sKEYDB_TEST_PROGRAM=%llu: %s", narrow ? "narrow, " : "",
                 (unsigned long long)seed, wrong);
    }
    end_group();
    local_writes_bound = usual_bound;
}

static void test_random_programs_converge(void **state)
{
    (void)state;
    const char *one = getenv("KEYDB_TEST_PROGRAM"), *many = getenv("KEYDB_TEST_PROGRAMS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    uint64_t count = one ? 1 : many ? strtoull(many, NULL, 10) : PROGRAMS;
    merges = cuts = waits = states = 0;
    for (uint64_t i = first; i < first + count; i++) {
        run_program(i, false);
    }
    printf("%llu data sets, %llu cut, %llu units that waited, %llu states\n",
           (unsigned long long)merges, (unsigned long long)cuts, (unsigned long long)waits,
           (unsigned long long)states);
    assert_true(one || (merges > 0 && cuts > 0 && waits > 0 && states > 0));
}

/* About two keys of one type, with two members. */
static void test_narrow_programs_converge(void **state)
{
    (void)state;
    const char *one = getenv("KEYDB_TEST_PROGRAM"), *many = getenv("KEYDB_TEST_NARROW");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    uint64_t count = one ? 1 : many ? strtoull(many, NULL, 10) : PROGRAMS;
    for (uint64_t i = first; i < first + count; i++) {
        run_program(i, true);
    }
}

int main(void)
{
    usual_bound = local_writes_bound;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_node_gets_everything),
        cmocka_unit_test(test_a_set_in_any_pieces_and_cut_anywhere),
        cmocka_unit_test(test_signs_of_life),
        cmocka_unit_test(test_what_is_no_set_changes_nothing),
        cmocka_unit_test(test_lengths_by_kind),
        cmocka_unit_test(test_nobody_else_writes_in_our_name),
        cmocka_unit_test(test_two_filled_nodes),
        cmocka_unit_test(test_what_was_deleted_stays_so),
        cmocka_unit_test(test_keys_without_dots),
        cmocka_unit_test(test_units_that_it_brings_wait),
        cmocka_unit_test(test_a_key_that_only_both_have),
        cmocka_unit_test(test_what_was_just_written_is_kept),
        cmocka_unit_test(test_what_no_frame_has_room_for),
        cmocka_unit_test(test_long_values_that_cross),
        cmocka_unit_test(test_what_both_have_is_told_by_digests),
        cmocka_unit_test(test_libraries_come_along),
        cmocka_unit_test(test_random_programs_converge),
        cmocka_unit_test(test_narrow_programs_converge),
    };
    return cmocka_run_group_tests(tests, real_setup, real_teardown);
}
