/* See real.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/thread.h"
#include "commands/commands.h"
#include "engine/cmdstats.h"
#include "engine/execute.h"
#include "engine/propagate.h"
#include "keyspace/access.h"
#include "keyspace/changes.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "persist/payload.h"
#include "persist/persist.h"
#include "resp/limits.h"
#include "value/hash.h"
#include "value/list.h"
#include "value/member_ttl.h"
#include "value/set.h"
#include "value/stream.h"
#include "value/zset.h"

#include <stdio.h>
#include <string.h>

#define WORDS_MAX 32
#define SETTLE_ROUNDS 400

static struct {
    struct session session;
    struct arena arena;
    struct reply reply;
    struct buf text;
} client;

/* ---- the process ---- */

static void store_initial(const struct option *options)
{
    for (; options->name; options++) {
        option_store_initial(options);
    }
}

static const struct command_row *const tables[] = {
    string_commands,
    string_set_commands,
    string_number_commands,
    hash_commands,
    hash_walk_commands,
    hash_expire_commands,
    member_expire_commands,
    bit_commands,
    bit_field_commands,
    hyperloglog_commands,
    set_commands,
    set_random_commands,
    zset_commands,
    zset_range_commands,
    zset_pop_commands,
    list_commands,
    stream_commands,
    key_commands,
    key_expire_commands,
    server_commands,
    nested_commands,
    dump_commands,
    list_index_commands,
    stream_group_commands,
    stream_group_read_commands,
    stream_peer_commands,
    stream_claim_commands,
};

int real_setup(void **state)
{
    (void)state;
    clock_setup();
    thread_enter("test");
    hash_set_secret(1);
    const struct option *const options[] = {
        access_options,      expire_options, reclaim_options, resp_options, hash_options,
        hyperloglog_options, set_options,    list_options,    zset_options, stream_options};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        store_initial(options[i]);
    }
    db_setup(REAL_NODES_MAX * REAL_DBS);
    propagate_setup();
    propagate_set_payload_writer(payload_write);
    local_writes_setup();
    changes_setup();
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        command_register(tables[i]);
    }
    cmdstats_setup();
    session_init(&client.session, 1);
    arena_init(&client.arena, 4096);
    reply_init(&client.reply);
    return 0;
}

int real_teardown(void **state)
{
    (void)state;
    session_deinit(&client.session);
    arena_deinit(&client.arena);
    reply_deinit(&client.reply);
    buf_deinit(&client.text);
    reclaim_run();
    local_writes_teardown();
    propagate_teardown();
    db_teardown();
    cmdstats_teardown();
    command_teardown();
    thread_leave();
    return 0;
}

/* ---- the group ---- */

static int64_t wall_ms(void *context)
{
    const struct real_clock *c = context;
    return c->group->now_ms + c->group->skew_ms[c->number];
}

static void create_node(struct real_group *g, int i, size_t log_bytes, unsigned broken)
{
    g->clock[i] = (struct real_clock){g, i};
    struct node_options options = {.first_db = i * REAL_DBS,
                                   .dbs = REAL_DBS,
                                   .log_bytes = log_bytes,
                                   .silence_ms = 60000,
                                   .wall_ms = wall_ms,
                                   .context = &g->clock[i],
                                   .broken = broken};
    memset(options.id, 'a' + i, sizeof(options.id));
    g->node[i] = node_create(&options);
}

static void create_group(struct real_group *g, int nodes, size_t log_bytes, unsigned broken)
{
    memset(g, 0, sizeof(*g));
    g->nodes = nodes;
    g->now_ms = REAL_START_MS;
    for (int i = 0; i < nodes; i++) {
        create_node(g, i, log_bytes, broken);
    }
}

void real_group_init_strangers(struct real_group *g, int nodes, size_t log_bytes)
{
    create_group(g, nodes, log_bytes, 0);
}

void real_group_init(struct real_group *g, int nodes, size_t log_bytes, unsigned broken)
{
    create_group(g, nodes, log_bytes, broken);
    for (int i = 0; i < nodes * nodes; i++) {
        struct origins *theirs = node_origins(g->node[i % nodes]);
        const struct origin *o = origins_at(theirs, node_self(g->node[i % nodes]));
        origins_enter(node_origins(g->node[i / nodes]), &o->id);
    }
}

void real_group_deinit(struct real_group *g)
{
    for (int i = 0; i < g->nodes * g->nodes; i++) {
        struct real_link *l = &g->links[i / g->nodes][i % g->nodes];
        for (; l->count > 0; l->count--, l->first++) {
            unit_release(l->queue[l->first % REAL_QUEUE_MAX].unit);
        }
    }
    keyspace_lock_exclusive();
    for (int i = 0; i < g->nodes + g->referees; i++) {
        node_destroy(&g->node[i]);
        for (int d = 0; d < REAL_DBS; d++) {
            db_check(db_at(i * REAL_DBS + d));
            db_flush(db_at(i * REAL_DBS + d), false);
        }
    }
    keyspace_unlock_exclusive();
    reclaim_run();
}

/* ---- a client ---- */

static void run_line(struct node *node, int db, const char *line) REQUIRES(keyspace_lock)
{
    struct slice words[WORDS_MAX];
    int count = 0;
    while (*line) {
        size_t len = strcspn(line, " ");
        assert_true(count < WORDS_MAX);
        words[count++] = slice_of(line, len);
        line += len + (line[len] == ' ');
    }
    client.session.db_index = db;
    struct call c = {.argc = count,
                     .argv = words,
                     .session = &client.session,
                     .reply = &client.reply,
                     .now_ms = hlc_ms(node_clock(node))};
    call_prepare(&c, &client.arena);
    reply_begin(&client.reply, 2);
    c.held = ACCESS_EXCLUSIVE;
    call_run(&c);
    while (c.continuation.step && !call_continue(&c)) {
    }
    uint32_t pieces = reply_end(&client.reply);
    buf_clear(&client.text);
    for (uint32_t i = 0; i < pieces; i++) {
        buf_append(&client.text, client.reply.pieces[i].ptr, client.reply.pieces[i].len);
    }
}

const char *real_run(struct real_group *g, int node, int db, int count, const char *const *lines)
{
    struct node *n = g->node[node];
    keyspace_lock_exclusive();
    local_writes_attach(node_own(n));
    stream_set_id_tag(node_id_tag(n));
    propagate_begin_unit();
    for (int i = 0; i < count; i++) {
        reply_reset(&client.reply);
        int in = db;
        const char *line = lines[i];
        if (line[0] == '@') { /* of another database */
            in = line[1] - '0';
            line += 3;
        }
        run_line(n, node * REAL_DBS + in, line);
    }
    propagate_end_unit();
    node_settle(n);
    local_writes_attach(NULL);
    keyspace_unlock_exclusive();
    reclaim_run();
    arena_reset(&client.arena);
    return buf_cstr(&client.text);
}

const char *real_run_one(struct real_group *g, int node, int db, const char *line)
{
    return real_run(g, node, db, 1, &line);
}

void real_swap_databases(struct real_group *g, int node)
{
    char line[40];
    snprintf(line, sizeof(line), "swapdb %d %d", node * REAL_DBS, node * REAL_DBS + 1);
    assert_string_equal(real_run_one(g, node, 0, line), "+OK\r\n");
}

/* ---- links ---- */

bool real_send(struct real_group *g, int receiver, int sender)
{
    struct real_link *l = &g->links[receiver][sender];
    struct origins *o = node_origins(g->node[sender]);
    struct origins *theirs = node_origins(g->node[receiver]);
    const struct origin_id *own = &origins_at(theirs, node_self(g->node[receiver]))->id;
    for (uint16_t i = 1; i < o->count && l->count < REAL_QUEUE_MAX; i++) {
        const struct origin *origin = origins_at(o, i);
        if (l->sent[i] >= origin->position || memcmp(&origin->id, own, sizeof(*own)) == 0) {
            continue;
        }
        struct unit *unit = origin_log_find(node_log(g->node[sender]), i, l->sent[i] + 1);
        assert_non_null(unit);
        l->queue[(l->first + l->count++) % REAL_QUEUE_MAX] =
            (struct real_message){origin->id, unit_acquire(unit)};
        l->sent[i]++;
        return true;
    }
    return false;
}

bool real_deliver(struct real_group *g, int receiver, int sender)
{
    struct real_link *l = &g->links[receiver][sender];
    if (l->count == 0) {
        return false;
    }
    struct real_message m = l->queue[l->first];
    l->first = (l->first + 1) % REAL_QUEUE_MAX;
    l->count--;
    keyspace_lock_exclusive();
    local_writes_attach(node_own(g->node[receiver]));
    enum receiver_result taken =
        node_take(g->node[receiver], &m.id, dot_sequence(m.unit->dot), m.unit->dot.stamp,
                  m.unit->db, slice_of(m.unit->bytes, m.unit->len), g->now_ms);
    local_writes_attach(NULL);
    keyspace_unlock_exclusive();
    reclaim_run();
    unit_release(m.unit);
    assert_true(taken == RECEIVED || taken == RECEIVED_BEFORE);
    return true;
}

void real_tell_clocks(struct real_group *g, int receiver, int sender)
{
    const struct real_link *l = &g->links[receiver][sender];
    const struct origins *from = node_origins(g->node[sender]);
    struct origins *to = node_origins(g->node[receiver]);
    for (uint16_t i = 1; l->count == 0 && i < from->count; i++) {
        const struct origin *o = origins_at(from, i);
        uint16_t index = origins_find(to, &o->id);
        if (index != node_self(g->node[receiver]) && l->sent[i] == o->position) {
            origins_hear(to, index, o->clock, o->seen);
        }
    }
}

void real_tick(struct real_group *g, int node)
{
    keyspace_lock_exclusive();
    node_tick(g->node[node], g->now_ms);
    while (node_tell_states(g->node[node])) {
    }
    while (node_trim(g->node[node])) {
    }
    keyspace_unlock_exclusive();
}

static bool move_all(struct real_group *g)
{
    bool moved = false;
    for (int i = 0; i < g->nodes * g->nodes; i++) {
        int r = i / g->nodes, s = i % g->nodes;
        while (r != s && ((int)real_send(g, r, s) | (int)real_deliver(g, r, s))) {
            moved = true;
        }
    }
    return moved;
}

bool real_settle(struct real_group *g)
{
    int quiet = 0;
    for (int round = 0; round < SETTLE_ROUNDS && quiet < 4; round++) {
        bool moved = move_all(g);
        g->now_ms += 60;
        for (int i = 0; i < g->nodes; i++) {
            moved |= conflicts_count(node_merge(g->node[i])->conflicts) > 0;
            real_tick(g, i);
        }
        for (int i = 0; i < g->nodes * g->nodes; i++) {
            if (i / g->nodes != i % g->nodes) {
                real_tell_clocks(g, i / g->nodes, i % g->nodes);
            }
        }
        quiet = moved ? 0 : quiet + 1;
    }
    return quiet >= 4;
}

/* ---- the referee ---- */

struct unit *real_next_in_order(const struct real_group *g, const uint64_t *told)
{
    const struct origins *o = node_origins(g->node[0]);
    struct unit *found = NULL;
    for (uint16_t i = 1; i < o->count; i++) {
        struct unit *u = origin_log_find(node_log(g->node[0]), i, told[i] + 1);
        if (u && (!found || origins_compare(o, u->dot, found->dot) < 0)) {
            found = u;
        }
    }
    return found;
}

int real_add_referee(struct real_group *g)
{
    uint64_t told[REAL_NODES_MAX + 1] = {0};
    int referee = g->nodes + g->referees++;
    assert_true(referee < REAL_NODES_MAX);
    create_node(g, referee, (size_t)1 << 30, 0);
    for (struct unit *u; (u = real_next_in_order(g, told)) != NULL;) {
        uint16_t origin = dot_origin(u->dot);
        const struct origins *o = node_origins(g->node[0]);
        told[origin]++;
        keyspace_lock_exclusive();
        assert_int_equal(node_take(g->node[referee], &origins_at(o, origin)->id,
                                   dot_sequence(u->dot), u->dot.stamp, u->db,
                                   slice_of(u->bytes, u->len), g->now_ms),
                         RECEIVED);
        keyspace_unlock_exclusive();
    }
    reclaim_run();
    return referee;
}

/* ---- looking ---- */

static uint64_t add(uint64_t sum, const void *bytes, size_t len)
{
    return (sum * 1000003) ^ hash_slice(slice_of(bytes, len));
}

uint64_t real_digest(struct real_group *g, int node, int db, const char *key)
{
    struct key k = key_of(slice_cstr(key));
    uint64_t sum = 0;
    (void)g;
    keyspace_lock_shared();
    const struct entry *e = db_look(db_at(node * REAL_DBS + db), &k);
    if (e) {
        uint8_t content[20] = {0};
        int64_t deadline_ms = entry_expiry_ms(e);
        enum value_type type = entry_type(e);
        value_ops_of[type]->digest(e, content);
        sum = add(add(add(1, content, sizeof(content)), &deadline_ms, sizeof(deadline_ms)), &type,
                  sizeof(type));
        for (char m = '0'; m <= '5' && member_ttl_supported(e); m++) {
            char name[2] = {'m', m};
            int64_t at_ms = member_ttl_any(e) ? member_ttl_get(e, slice_of(name, 2)) : 0;
            at_ms = at_ms == ENTRY_NO_EXPIRY ? 0 : at_ms;
            sum = add(sum, &at_ms, sizeof(at_ms));
        }
    }
    keyspace_unlock_shared();
    return sum;
}

struct dot real_dot(struct real_group *g, int node, int db, const char *key)
{
    struct key k = key_of(slice_cstr(key));
    (void)g;
    keyspace_lock_shared();
    const struct entry *e = db_look(db_at(node * REAL_DBS + db), &k);
    struct dot dot = e ? executor_dot(e) : (struct dot){0, 0};
    keyspace_unlock_shared();
    return dot;
}

enum receiver_result real_take(struct real_group *g, int node, const struct origin_id *id,
                               uint64_t sequence, uint64_t stamp, int db, const char *commands)
{
    keyspace_lock_exclusive();
    enum receiver_result taken =
        node_take(g->node[node], id, sequence, stamp, db, slice_cstr(commands), g->now_ms);
    keyspace_unlock_exclusive();
    reclaim_run();
    return taken;
}

const char *real_unit_text(const struct real_group *g, int node, uint64_t sequence)
{
    static struct buf text;
    struct node *n = g->node[node];
    buf_clear(&text);
    const struct unit *u = origin_log_find(node_log(n), node_self(n), sequence);
    if (!u) {
        return "none";
    }
    struct unit_command c = unit_command_before(u);
    while (unit_command_next(u, &c)) {
        buf_printf(&text, "%s%d:", text.len ? " | " : "", c.db);
        for (int i = 0; i < c.argc; i++) {
            buf_append_char(&text, ' ');
            buf_append_slice(&text, c.argv[i]);
        }
    }
    return buf_cstr(&text);
}

uint64_t real_position(const struct real_group *g, int node)
{
    struct node *n = g->node[node];
    return origins_at(node_origins(n), node_self(n))->position;
}

/* ---- expiry ---- */

static struct node *judging;

static bool judge(struct keyref *ref, int64_t now_ms) NO_THREAD_SAFETY_ANALYSIS;
static bool judge(struct keyref *ref, int64_t now_ms)
{
    return node_judge(judging, ref, now_ms);
}

uint64_t real_sweep(struct real_group *g, int node, int db, const char *name)
{
    bool more;
    struct key key = key_of(slice_cstr(name));
    keyspace_lock_exclusive();
    judging = g->node[node];
    expire_set_judge(judge);
    local_writes_attach(node_own(g->node[node]));
    uint64_t removed = db_remove_due(db_at(node * REAL_DBS + db), &key,
                                     hlc_ms(node_clock(g->node[node])), 100, &more);
    local_writes_attach(NULL);
    node_settle(g->node[node]);
    expire_set_judge(NULL);
    keyspace_unlock_exclusive();
    reclaim_run();
    return removed;
}
