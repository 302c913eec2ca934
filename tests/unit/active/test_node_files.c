/* Files of an active replica (DESIGN.md, "Files"): real nodes in one process, of which node 0
 * has an AOF and RDB files. It is started from them, whole or torn, goes on, and all must agree;
 * what the files say is checked against what was there when they said it; damage is refused.
 *
 * KEYDB_TEST_PROGRAMS: how many random programs; KEYDB_TEST_PROGRAM: the one with this seed only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"
#include "temporary.h"

#include "base/mem.h"
#include "base/rand.h"
#include "commands/commands.h"
#include "engine/propagate.h"
#include "keyspace/reclaim.h"
#include "persist/aof_load.h"
#include "persist/aof_priv.h"
#include "persist/dots.h"
#include "persist/rdb_file.h"
#include "active/node_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG_BYTES ((size_t)16 << 20)
#define PROGRAMS 60
#define KEYS 8
#define LOG_FILE "log.aof"
#define RDB_FILE "dump.rdb"
#define BASE_FILE "base.rdb"

static struct real_group group;
static struct restored past;
static bool has_base; /* the log goes on from BASE_FILE */

/* ---- node 0's log ---- */

static struct {
    int door; /* its number there */
    struct dots_unit unit;
    int selected_db;
    struct buf bytes;
} file;

static void on_log(int db, struct slice commands)
{
    keyspace_assert_exclusive();
    dots_add(&file.unit, db, commands, &file.selected_db, &file.bytes);
}

static void on_alone(struct slice record)
{
    buf_append_slice(&file.bytes, record);
}

static void switch_log(bool on)
{
    keyspace_lock_exclusive();
    propagate_switch(file.door, on);
    keyspace_unlock_exclusive();
}

/* Node 0 has files from now on. */
static void attach(void)
{
    keyspace_lock_exclusive();
    node_files_attach(group.node[0]);
    log_head_switch(node_head(group.node[0]), on_alone);
    keyspace_unlock_exclusive();
    file.selected_db = -1;
}

static void detach(void)
{
    keyspace_lock_exclusive();
    node_files_attach(NULL);
    keyspace_unlock_exclusive();
}

static void begin_group(int nodes)
{
    real_group_init(&group, nodes, LOG_BYTES, 0);
    buf_clear(&file.bytes);
    has_base = false;
    dots_set_ops(&node_files_ops);
    attach();
}

static void end_group(void)
{
    detach();
    real_group_deinit(&group);
    restored_deinit(&past);
}

static void run_all(int node, int count, const char *const *lines)
{
    switch_log(node == 0);
    real_run(&group, node, 0, count, lines);
    switch_log(false);
}

static void run(int node, const char *line)
{
    run_all(node, 1, &line);
}

static bool deliver(int receiver, int sender)
{
    switch_log(receiver == 0);
    bool moved = real_deliver(&group, receiver, sender);
    switch_log(false);
    return moved;
}

static void tick(int node)
{
    switch_log(node == 0);
    real_tick(&group, node);
    switch_log(false);
}

static bool exchange(void)
{
    bool moved = false, any;
    do {
        any = false;
        for (int i = 0; i < group.nodes * group.nodes; i++) {
            int r = i / group.nodes, s = i % group.nodes;
            any |= r != s && ((int)real_send(&group, r, s) | (int)deliver(r, s));
        }
        moved |= any;
    } while (any);
    return moved;
}

/* As real_settle, with the log on where it should be. */
static bool settle(void)
{
    int quiet = 0;
    for (int round = 0; round < 400 && quiet < 4; round++) {
        bool moved = exchange();
        group.now_ms += 60;
        for (int i = 0; i < group.nodes; i++) {
            moved |= conflicts_count(node_merge(group.node[i])->conflicts) > 0;
            tick(i);
        }
        for (int i = 0; i < group.nodes * group.nodes; i++) {
            if (i / group.nodes != i % group.nodes) {
                real_tell_clocks(&group, i / group.nodes, i % group.nodes);
            }
        }
        quiet = moved ? 0 : quiet + 1;
    }
    return quiet >= 4;
}

/* ---- what is there ---- */

struct fact {
    uint64_t digest, stamp, sequence;
    struct origin_id origin;
    bool in_conflict;
};

static const char *name_of(int i)
{
    static char name[8];
    snprintf(name, sizeof(name), "k%d", i % KEYS);
    return name;
}

static struct fact fact_of(int node, int i, const struct origins *o, const struct conflicts *d)
{
    struct dot dot = real_dot(&group, node, i / KEYS, name_of(i));
    return (struct fact){real_digest(&group, node, i / KEYS, name_of(i)), dot.stamp,
                         dot_sequence(dot), origins_at(o, dot_origin(dot))->id,
                         conflicts_has(d, i / KEYS, slice_cstr(name_of(i)))};
}

#define FACTS (REAL_DBS * KEYS)
struct picture {
    size_t end; /* of the log then */
    struct fact facts[FACTS];
    struct origins origins; /* a copy of the rows */
};

static void take_picture(struct picture *p)
{
    const struct origins *o = node_origins(group.node[0]);
    p->end = file.bytes.len;
    for (int i = 0; i < FACTS; i++) {
        p->facts[i] = fact_of(0, i, o, node_merge(group.node[0])->conflicts);
    }
    p->origins = *o;
    p->origins.rows = mem_alloc(o->count * sizeof(*o->rows));
    memcpy(p->origins.rows, o->rows, o->count * sizeof(*o->rows));
}

/* What was loaded is what was there. */
static void assert_picture(const struct picture *p)
{
    for (int i = 0; i < FACTS; i++) {
        struct fact f = fact_of(0, i, &past.origins, past.conflicts), was = p->facts[i];
        assert_int_equal(f.digest, was.digest);
        assert_int_equal(f.stamp, was.stamp);
        assert_int_equal(f.sequence, was.sequence);
        assert_memory_equal(&f.origin, &was.origin, sizeof(f.origin));
        assert_true(f.in_conflict || !was.in_conflict); /* that it is over may be told later */
        assert_true(f.stamp <= past.clock);
    }
    for (uint16_t i = 1; i < p->origins.count; i++) {
        const struct origin *was = origins_at(&p->origins, i);
        uint16_t index = origins_find(&past.origins, &was->id);
        assert_int_equal(index ? origins_at(&past.origins, index)->position : 0, was->position);
    }
}

/* ---- its end, and its start ---- */

static void write_file(const char *name, const char *bytes, size_t len)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    close(fd);
}

/* Empties the databases [from, to). */
static void empty(int from, int to)
{
    keyspace_lock_exclusive();
    for (int i = from; i < to; i++) {
        db_flush(db_at(i), false);
    }
    keyspace_unlock_exclusive();
    reclaim_run();
}

/* Node 0 has no keys, and files are told to a past of nothing. */
static void forget(void)
{
    empty(0, REAL_DBS);
    restored_deinit(&past);
    restored_init(&past, 0, REAL_DBS);
    node_files_load_into(&past);
}

static void kill_node(void)
{
    detach();
    node_destroy(&group.node[0]);
}

static enum aof_load_result load_log(size_t cut, struct aof_load *load)
{
    write_file(LOG_FILE, file.bytes.data, cut);
    forget();
    if (has_base) {
        struct rdb_file_loaded loaded;
        assert_int_equal(rdb_file_load(BASE_FILE, group.now_ms, &loaded), RDB_FILE_FINE);
    }
    return aof_load_file(LOG_FILE, 0, load);
}

static uint64_t position_at(int node, const struct origin_id *id)
{
    const struct origins *o = node_origins(group.node[node]);
    uint16_t index = origins_find(o, id);
    return index ? origins_at(o, index)->position : 0;
}

/* Links begin anew, from what both sides have. */
static void relink(void)
{
    for (int i = 0; i < group.nodes * group.nodes; i++) {
        int r = i / group.nodes, s = i % group.nodes;
        struct real_link *l = &group.links[r][s];
        if (r != 0 && s != 0) {
            continue;
        }
        for (; l->count > 0; l->count--) {
            unit_release(l->queue[l->first].unit);
            l->first = (l->first + 1) % REAL_QUEUE_MAX;
        }
        const struct origins *o = node_origins(group.node[s]);
        origins_enter(node_origins(group.node[r]), &origins_at(o, node_self(group.node[s]))->id);
        for (uint16_t k = 1; k < o->count; k++) {
            l->sent[k] = position_at(r, &origins_at(o, k)->id);
        }
    }
}

static int64_t wall_ms(void *context)
{
    (void)context;
    return group.now_ms;
}

/* The node of what was loaded, in a new epoch. */
static void start_node_after(uint64_t last_epoch)
{
    struct node_options options = {.last_epoch = last_epoch,
                                   .past = &past,
                                   .dbs = REAL_DBS,
                                   .log_bytes = LOG_BYTES,
                                   .silence_ms = 60000};
    memset(options.id, 'a', sizeof(options.id));
    options.wall_ms = wall_ms;
    group.node[0] = node_create(&options);
    node_files_load_into(NULL);
    attach();
    relink();
}

static void start_node(void)
{
    static int64_t epoch_ms = REAL_START_MS + 86400000;
    start_node_after((uint64_t)(epoch_ms++) << 16);
}

static void assert_all_agree(void)
{
    for (int node = 1; node < group.nodes; node++) {
        for (int i = 0; i < FACTS; i++) {
            assert_int_equal(real_digest(&group, node, i / KEYS, name_of(i)),
                             real_digest(&group, 0, i / KEYS, name_of(i)));
        }
    }
}

/* ---- RDB files ---- */

/* As a child that has node 0's databases alone. */
static void save(const char *name)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        empty(REAL_DBS, REAL_DBS * REAL_NODES_MAX);
        keyspace_lock_shared();
        int error = rdb_file_save(name, group.now_ms);
        keyspace_unlock_shared();
        _exit(error != 0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static enum rdb_file_load load_rdb(const char *name, struct rdb_file_loaded *loaded)
{
    forget();
    return rdb_file_load(name, group.now_ms, loaded);
}

/* The log begins anew, behind what is there now. */
static void rewrite(void)
{
    save(BASE_FILE);
    buf_clear(&file.bytes);
    attach();
    has_base = true;
}

/* ---- records ---- */

/* The log's commands as text, a line each; origins as a letter for their node. */
static const char *log_text(void)
{
    static struct buf text;
    buf_clear(&text);
    const char *at = buf_cstr(&file.bytes), *end = at + file.bytes.len;
    while (at < end) {
        long words = strtol(at + 1, NULL, 10);
        at = strstr(at, "\r\n") + 2;
        for (long i = 0; i < words; i++) {
            size_t len = (size_t)strtol(at + 1, NULL, 10);
            at = strstr(at, "\r\n") + 2;
            if (len == ORIGIN_CHARS) {
                buf_printf(&text, "%c", (char)strtol((char[]){at[0], at[1], '\0'}, NULL, 16));
            } else if (len > 17) {
                buf_append_cstr(&text, "T"); /* a stamp */
            } else {
                buf_append(&text, at, len);
            }
            buf_append_char(&text, i + 1 < words ? ' ' : '\n');
            at += len + 2;
        }
    }
    buf_clear(&file.bytes);
    return buf_cstr(&text);
}

static void test_each_unit_begins_with_its_dot(void **state)
{
    (void)state;
    begin_group(2);
    run(0, "set k0 v");
    assert_string_equal(log_text(), "SELECT 0\nKEYDB.DOT a 1 T\nset k0 v\n");
    run_all(0, 2, (const char *const[]){"set k0 w", "@1 rpush k1 x"});
    assert_string_equal(log_text(), "KEYDB.DOT a 2 T KEY 0 k0 KEY 1 k1\n"
                                    "MULTI\nset k0 w\nSELECT 1\nrpush k1 x\nEXEC\n");
    run(0, "flushdb");
    assert_string_equal(log_text(), "SELECT 0\nKEYDB.DOT a 3 T NOKEY\nflushdb\n");
    run(0, "get k0");
    assert_string_equal(log_text(), "");
    group.now_ms += 5; /* later than the flush */
    run(1, "sadd k2 m");
    real_send(&group, 0, 1);
    deliver(0, 1);
    assert_string_equal(log_text(), "KEYDB.DOT b 1 T\nsadd k2 m\n");
    end_group();
}

/* Of a peer's unit what was run stands there; what is void leaves its number, and a conflict its
 * key. */
static void test_late_units(void **state)
{
    (void)state;
    begin_group(2);
    run(1, "set k0 early");
    group.now_ms += 5;
    run(0, "set k0 late");
    log_text();
    real_send(&group, 0, 1);
    deliver(0, 1);
    assert_string_equal(log_text(), "KEYDB.DOT b 1 T ALONE\n");
    run(1, "sadd k1 m");
    group.now_ms += 5;
    run(0, "rpush k1 e");
    log_text();
    real_send(&group, 0, 1);
    deliver(0, 1); /* of another type: it fails */
    assert_string_equal(log_text(), "KEYDB.DOT b 2 T CONFLICT 0 k1 0 ALONE\n");
    group.now_ms += CONFLICT_MAX_MS;
    tick(0);
    assert_string_equal(log_text(), "KEYDB.DOT a 3 T KEY 0 k1 RESOLVED 0 k1 ALONE\n");
    end_group();
}

/* A late write behind which others are repeated: the key keeps the dot of the last. */
static void test_keys_with_another_units_dot(void **state)
{
    (void)state;
    begin_group(2);
    run(1, "set k0 1");
    group.now_ms += 5;
    run(0, "append k0 2");
    log_text();
    real_send(&group, 0, 1);
    deliver(0, 1);
    const char *text = log_text();
    assert_non_null(strstr(text, "KEYDB.DOT b 1 T DOT 0 k0 a 1 T\nMULTI\n"));
    end_group();
}

/* A state that waits is told of as a conflict. It is begun from with the write that it waited for,
 * in one record. */
static void test_a_state_that_waits(void **state)
{
    (void)state;
    struct picture before, after;
    struct aof_load load;
    begin_group(3);
    run(0, "set k1 v");
    exchange();
    run(2, "rpush k0 w");
    real_send(&group, 1, 2);
    deliver(1, 2);
    conflicts_note(node_merge(group.node[1])->conflicts, 0, SLICE("k0"), 0, group.now_ms);
    group.now_ms += CONFLICT_MAX_MS;
    tick(1);
    real_send(&group, 2, 1);
    deliver(2, 1);
    real_send(&group, 0, 1);
    deliver(0, 1);
    take_picture(&before);
    assert_true(before.facts[0].in_conflict && before.facts[0].digest == 0);
    real_send(&group, 0, 2);
    deliver(0, 2);
    take_picture(&after);
    assert_false(after.facts[0].in_conflict);
    kill_node();
    for (size_t cut = before.end; cut <= after.end; cut++) {
        enum aof_load_result result = load_log(cut, &load);
        assert_int_equal(result, load.whole == cut ? AOF_LOAD_FINE : AOF_LOAD_TORN);
        assert_picture(load.whole == after.end ? &after : &before);
    }
    const char *text = log_text();
    assert_non_null(strstr(text, "KEYDB.DOT b 1 T CONFLICT 0 k0 T ALONE\n"));
    assert_non_null(strstr(text, "KEYDB.DOT c 1 T DOT 0 k0 b 1 T RESOLVED 0 k0\nMULTI\n"));
    start_node();
    assert_true(settle());
    assert_all_agree();
    mem_free(before.origins.rows);
    mem_free(after.origins.rows);
    end_group();
}

/* ---- torn anywhere ---- */

/* The first are told to peers as they come. */
#define TOLD_LINES 22
static const char *const lines[] = {
    "set K 5",
    "set K 7",
    "del K",
    "incrby K 3",
    "append K 1",
    "hset K m1 1 m2 2",
    "hdel K m1",
    "sadd K m1",
    "hincrby K m3 2",
    "sadd K m1 m2",
    "srem K m1",
    "zadd K 1 m",
    "rpush K V",
    "zincrby K 2 m2",
    "lpush K V",
    "setrange K 3 V",
    "persist K",
    "xadd K 1-1 m1 V",
    "pfadd K V",
    "incrbyfloat K 0.5",
    "pexpireat K 4102444800000",
    "set K 9 pxat 4102444800007",
    "lpop K",
    "rename K J",
    "getdel K",
    "spop K",
    "copy K J replace",
    "unlink K J",
    "zpopmin K",
    "set K V ex 9000",
    "smove K J m1",
    "rpoplpush K J",
};

static size_t line_count = TOLD_LINES;

static void draw(char *out, size_t room, const char *pattern)
{
    size_t at = 0;
    for (const char *c = pattern; *c && at + 12 < room; c++) {
        int count = *c == 'K' || *c == 'J'
                        ? snprintf(out + at, room - at, "k%d", (int)rand_below(KEYS))
                    : *c == 'V' ? snprintf(out + at, room - at, "v%d", (int)rand_below(1000))
                                : snprintf(out + at, room - at, "%c", *c);
        at += (size_t)count;
    }
}

static void write_something(int node)
{
    char text[4][80];
    const char *drawn[4];
    int count = rand_below(4) ? 1 : 1 + (int)rand_below(4);
    for (int i = 0; i < count; i++) {
        char line[64];
        draw(line, sizeof(line), lines[rand_below(line_count)]);
        snprintf(text[i], sizeof(text[i]), "@%d %s", (int)rand_below(REAL_DBS), line);
        drawn[i] = text[i];
    }
    run_all(node, count, drawn);
}

static void step(void)
{
    int a = (int)rand_below((uint64_t)group.nodes), b = (int)rand_below((uint64_t)group.nodes);
    uint64_t what = rand_below(100);
    if (what < 35) {
        write_something(a);
    } else if (what < 60) {
        a == b ? (void)0 : (void)real_send(&group, a, b);
    } else if (what < 88) {
        deliver(a, b);
    } else if (what < 92) {
        group.now_ms += (int64_t)rand_below(200);
    } else if (what < 97) {
        tick(a);
    } else if (a != b) {
        real_tell_clocks(&group, a, b);
    }
}

static void test_a_log_torn_at_every_byte(void **state)
{
    (void)state;
    enum { STEPS = 260 };
    static struct picture pictures[STEPS + 1];
    rand_set_seed(7);
    begin_group(3);
    take_picture(&pictures[0]);
    for (int i = 1; i <= STEPS; i++) {
        step();
        take_picture(&pictures[i]);
    }
    kill_node();
    int matched = 0, torn = 0;
    for (size_t cut = 1; cut <= file.bytes.len; cut++) {
        struct aof_load load;
        enum aof_load_result result = load_log(cut, &load);
        assert_int_equal(result, load.whole == cut ? AOF_LOAD_FINE : AOF_LOAD_TORN);
        torn += result == AOF_LOAD_TORN;
        /* Several steps may have written nothing: the last is what was there then. */
        for (int i = STEPS; i >= 0; i--) {
            if (pictures[i].end == load.whole) {
                assert_picture(&pictures[i]);
                matched++;
                break;
            }
        }
    }
    assert_true(torn > 1000 && matched > 1000);
    forget();
    start_node();
    for (int i = 0; i <= STEPS; i++) {
        mem_free(pictures[i].origins.rows);
    }
    end_group();
}

/* ---- going on ---- */

/* What others have, and the file may lack, comes back. */
static void restart_from_log(void)
{
    exchange();
    size_t lost = rand_below(3) ? rand_below(rand_below(8) ? 600 : 20000) : 0;
    size_t cut = lost < file.bytes.len ? file.bytes.len - lost : 0;
    for (int i = 0; i < 5; i++) {
        write_something(1 + (int)rand_below((uint64_t)group.nodes - 1));
    }
    kill_node();
    struct aof_load load;
    enum aof_load_result result = load_log(cut, &load);
    assert_true(result == AOF_LOAD_FINE || result == AOF_LOAD_TORN || result == AOF_LOAD_EMPTY);
    file.bytes.len = load.whole;
    start_node();
}

static uint64_t conflicts_kept, conflicts_found;

static void program(uint64_t seed)
{
    rand_set_seed(seed);
    begin_group(2 + (int)rand_below(2));
    int64_t sum = 0;
    for (int life = 0; life < 2; life++) {
        for (int i = 0; i < 120; i++) {
            if (i % 10 == 0) {
                int amount = (int)rand_below(100);
                char line[40];
                snprintf(line, sizeof(line), "incrby counter %d", amount);
                sum += amount;
                run((int)rand_below((uint64_t)group.nodes), line);
            }
            step();
            if (rand_below(100) == 0) {
                rewrite();
            }
        }
        conflicts_kept += conflicts_count(node_merge(group.node[0])->conflicts);
        restart_from_log();
        conflicts_found += conflicts_count(node_merge(group.node[0])->conflicts);
    }
    assert_true(settle());
    assert_all_agree();
    /* Nothing was lost, and nothing came twice. */
    for (int i = 0; i < group.nodes; i++) {
        const char *reply = strchr(real_run_one(&group, i, 0, "get counter"), '\n');
        assert_int_equal(reply ? strtoll(reply, NULL, 10) : 0, sum);
    }
    end_group();
}

static void test_nodes_agree_after_restarts(void **state)
{
    (void)state;
    const char *one = getenv("KEYDB_TEST_PROGRAM"), *many = getenv("KEYDB_TEST_PROGRAMS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    uint64_t count = one ? 1 : many ? strtoull(many, NULL, 10) : PROGRAMS;
    for (uint64_t i = first; i < first + count; i++) {
        if (many || one) {
            printf("KEYDB_TEST_PROGRAM=%llu\n", (unsigned long long)i);
        }
        program(i);
    }
    assert_true(one || (conflicts_kept > 0 && conflicts_found > 0));
}

/* ---- RDB files and bases ---- */

static void test_an_rdb_file_holds_the_past(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        static struct picture picture;
        rand_set_seed(seed);
        begin_group(3);
        for (int i = 0; i < 200; i++) {
            step();
        }
        save(RDB_FILE);
        take_picture(&picture);
        uint64_t clock = node_clock(group.node[0])->last;
        exchange();
        kill_node();
        struct rdb_file_loaded loaded;
        if (load_rdb(RDB_FILE, &loaded) != RDB_FILE_FINE) {
            fail_msg("%s", loaded.error);
        }
        assert_picture(&picture);
        assert_int_equal(past.clock, clock);
        assert_true(past.has_id && past.id[0] == 'a');
        mem_free(picture.origins.rows);
        for (int i = 1; i < group.nodes; i++) {
            node_destroy(&group.node[i]);
        }
        empty(REAL_DBS, REAL_DBS * group.nodes);
        group.nodes = 1;
        start_node();
        assert_int_equal(window_floor(node_merge(group.node[0])->window), clock);
        for (int i = 0; i < 20; i++) {
            write_something(0);
            tick(0);
        }
        end_group();
        forget();
    }
}

static void test_a_base_of_commands_holds_the_past(void **state)
{
    (void)state;
    static struct picture picture;
    struct aof_load load;
    rand_set_seed(3);
    begin_group(2);
    for (int i = 0; i < 200; i++) {
        step();
    }
    run(1, "set k0 1");
    empty(REAL_DBS, 2 * REAL_DBS); /* the other node's */
    take_picture(&picture);
    int fd = open(LOG_FILE, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    keyspace_lock_shared();
    assert_int_equal(aof_write_commands(fd, group.now_ms), 0);
    keyspace_unlock_shared();
    close(fd);
    kill_node();
    forget();
    if (aof_load_file(LOG_FILE, 0, &load) != AOF_LOAD_FINE) {
        fail_msg("%s", load.error);
    }
    assert_int_equal(load.failed, 0);
    assert_picture(&picture);
    mem_free(picture.origins.rows);
    start_node();
    end_group();
}

/* A base and the increment behind it are one past: numbers go on. */
static void test_an_increment_goes_on_from_its_base(void **state)
{
    (void)state;
    static struct picture picture;
    struct aof_load load;
    begin_group(1);
    run(0, "set k0 v");
    run(0, "incrby k1 2");
    rewrite();
    run(0, "incrby k1 5");
    take_picture(&picture);
    kill_node();
    assert_int_equal(load_log(file.bytes.len, &load), AOF_LOAD_FINE);
    assert_picture(&picture);
    /* Without its base it does not begin where it says. */
    forget();
    assert_int_equal(aof_load_file(LOG_FILE, 0, &load), AOF_LOAD_BAD);
    assert_non_null(strstr(load.error, "not the next write of its origin"));
    assert_non_null(strstr(load.error, "offset 23"));
    mem_free(picture.origins.rows);
    forget();
    start_node();
    end_group();
}

/* Whoever has lost the small file with the last epoch, and has a slow clock. */
static void test_an_epoch_is_above_those_of_the_files(void **state)
{
    (void)state;
    struct aof_load load;
    begin_group(1);
    run(0, "set k0 v");
    for (int i = 0; i < 3; i++) {
        kill_node();
        assert_int_equal(load_log(file.bytes.len, &load), AOF_LOAD_FINE);
        group.now_ms -= 5000;
        start_node_after(i == 0 ? (uint64_t)(REAL_START_MS + 7200000) << 16 : 0);
        run(0, "append k0 w");
        struct dot dot = real_dot(&group, 0, 0, "k0");
        assert_int_equal(dot_sequence(dot), 1);
        assert_int_equal(dot_origin(dot), i + 2);
        assert_int_equal(node_self(group.node[0]), i + 2);
    }
    end_group();
}

static void test_who_is_not_active_reads_over_it(void **state)
{
    (void)state;
    struct aof_load load;
    struct rdb_file_loaded loaded;
    begin_group(1);
    run(0, "set k0 v");
    run_all(0, 2, (const char *const[]){"set k1 w", "@1 rpush k1 x"});
    save(RDB_FILE);
    uint64_t digest = real_digest(&group, 0, 0, "k1");
    kill_node();
    dots_set_ops(NULL);
    if (load_rdb(RDB_FILE, &loaded) != RDB_FILE_FINE) {
        fail_msg("%s", loaded.error);
    }
    assert_int_equal(real_digest(&group, 0, 0, "k1"), digest);
    assert_int_equal(real_dot(&group, 0, 0, "k1").stamp, 0);
    assert_int_equal(load_log(file.bytes.len, &load), AOF_LOAD_FINE);
    assert_int_equal(load.whole, file.bytes.len);
    assert_int_equal(real_digest(&group, 0, 0, "k1"), digest);
    assert_int_equal(real_dot(&group, 0, 0, "k1").stamp, 0);
    /* And writes not a byte of it. */
    save(RDB_FILE);
    assert_int_not_equal(system("grep -q active- " RDB_FILE), 0);
    forget();
    start_node();
    end_group();
}

/* ---- the end of a life as a node ---- */

/* Behind that record nobody has written what is there, nor is anything else known. */
static void test_a_life_that_is_over(void **state)
{
    (void)state;
    const struct slice parted = SLICE("KEYDB.PARTED");
    struct aof_load load;
    begin_group(2);
    run(0, "set k0 v");
    run(1, "sadd k1 m");
    run(0, "rpush k1 e");
    exchange(); /* a conflict */
    keyspace_lock_exclusive();
    log_head_write(node_head(group.node[0]), 1, &parted);
    keyspace_unlock_exclusive();
    uint64_t digest = real_digest(&group, 0, 0, "k0");
    kill_node();
    assert_int_equal(load_log(file.bytes.len, &load), AOF_LOAD_FINE);
    assert_int_equal(past.origins.count, 1);
    assert_int_equal(conflicts_count(past.conflicts), 0);
    assert_true(past.clock > 0);
    assert_int_equal(real_digest(&group, 0, 0, "k0"), digest);
    assert_int_equal(real_dot(&group, 0, 0, "k0").stamp, 0);
    forget();
    start_node();
    end_group();
}

/* ---- damage ---- */

/* Each byte of a file without a checksum is changed: what comes of it is refused or read, and no
 * more. */
static void test_damaged_rdb_files(void **state)
{
    (void)state;
    rand_set_seed(11);
    begin_group(2);
    for (int i = 0; i < 60; i++) {
        step();
    }
    run(1, "sadd k1 m");
    run(0, "rpush k1 e");
    exchange(); /* a conflict */
    rdb_file_checksum = false;
    save(RDB_FILE);
    static char bytes[1 << 16];
    int fd = open(RDB_FILE, O_RDONLY);
    ssize_t len = read(fd, bytes, sizeof(bytes));
    close(fd);
    assert_true(len > 0 && len < (ssize_t)sizeof(bytes));
    kill_node();
    int refused = 0;
    for (ssize_t at = 9; at < len; at++) {
        struct rdb_file_loaded loaded;
        char was = bytes[at];
        bytes[at] = (char)(rand_below(3) ? (int)rand_below(256) : was ^ (1 << rand_below(8)));
        write_file(RDB_FILE, bytes, (size_t)len);
        refused += load_rdb(RDB_FILE, &loaded) == RDB_FILE_BAD;
        bytes[at] = was;
    }
    assert_true(refused > 100);
    rdb_file_checksum = true;
    forget();
    start_node();
    end_group();
}

static int setup(void **state)
{
    int failed = real_setup(state);
    command_register(connection_commands);
    file.door = propagate_register(PROPAGATE_TO_AOF, on_log);
    struct local_writes own;
    local_writes_init(&own, NULL, NULL, 0, 1);
    keyspace_lock_exclusive();
    local_writes_attach(&own);
    line_count = propagate_peers ? sizeof(lines) / sizeof(lines[0]) : TOLD_LINES;
    local_writes_attach(NULL);
    keyspace_unlock_exclusive();
    local_writes_deinit(&own);
    char *place = temporary_template("active-files");
    failed = failed || !mkdtemp(place) || chdir(place) < 0;
    free(place);
    return failed;
}

static int teardown(void **state)
{
    char place[64];
    unlink(LOG_FILE);
    unlink(RDB_FILE);
    unlink(BASE_FILE);
    if (getcwd(place, sizeof(place)) && chdir("/") == 0) {
        rmdir(place);
    }
    buf_deinit(&file.bytes);
    buf_deinit(&file.unit.held);
    return real_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_unit_begins_with_its_dot),
        cmocka_unit_test(test_late_units),
        cmocka_unit_test(test_keys_with_another_units_dot),
        cmocka_unit_test(test_a_state_that_waits),
        cmocka_unit_test(test_a_log_torn_at_every_byte),
        cmocka_unit_test(test_nodes_agree_after_restarts),
        cmocka_unit_test(test_an_rdb_file_holds_the_past),
        cmocka_unit_test(test_a_base_of_commands_holds_the_past),
        cmocka_unit_test(test_an_increment_goes_on_from_its_base),
        cmocka_unit_test(test_an_epoch_is_above_those_of_the_files),
        cmocka_unit_test(test_who_is_not_active_reads_over_it),
        cmocka_unit_test(test_a_life_that_is_over),
        cmocka_unit_test(test_damaged_rdb_files),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
