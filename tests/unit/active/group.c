/* See group.h. */
#include "group.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/rand.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define START_MS 1800000000000LL
/* Rounds in which a group that is left alone has to come to rest. */
#define SETTLE_ROUNDS 1600
/* The pace of states: a part of the logs each tenth of a second. */
#define STATES_LOG_PART 16

enum message_kind { MESSAGE_UNIT, MESSAGE_CLOCKS, MESSAGE_MERGE };

struct told_clock {
    struct origin_id id;
    uint64_t clock, seen;
};

struct message {
    struct message *next;
    enum message_kind kind;
    struct origin_id id;                         /* of a unit */
    struct unit *unit;                           /* with the sender's index */
    uint64_t clock;                              /* of the sender, at a merge */
    uint32_t count;                              /* of clocks, or origins */
    struct told_clock clocks[GROUP_ORIGINS_MAX]; /* at a merge: positions in `clock` */
    struct model *model;                         /* of a merge */
    struct dot dots[MODEL_DBS][MODEL_KEYS];
};

static void fault(struct group *g, const char *what)
{
    if (!g->fault) {
        g->fault = what;
    }
}

static int64_t wall_ms(void *context)
{
    const struct node *n = context;
    return n->group->now_ms + n->skew_ms;
}

/* ---- a node's life ---- */

static void begin_epoch(struct node *n)
{
    struct origin_id id = {.epoch = hlc_next(&n->clock)};
    memset(id.node, 'a' + n->number, sizeof(id.node));
    if (id.epoch <= n->last_epoch) {
        id.epoch = n->last_epoch + 1;
    }
    n->last_epoch = id.epoch;
    assert(!origins_find(&n->origins, &id));
    n->self = origins_enter(&n->origins, &id);
    origins_hear(&n->origins, n->self, n->clock.last, 0);
}

static void create_parts(struct node *n)
{
    const struct group_options *options = &n->group->options;
    n->log = origin_log_create(options->log_bytes);
    n->merge = (struct merge){
        .origins = &n->origins,
        .window = window_create(&n->origins, options->log_bytes),
        .conflicts = conflicts_create(options->log_bytes / STATES_LOG_PART, (uint64_t)n->number),
        .executor = &model_executor,
        .context = &n->model,
        .broken = options->broken,
    };
    n->model.origins = &n->origins;
}

static void destroy_message(struct message *m);

static void stop_merging(struct node *n)
{
    merge_snapshot_forget(&n->merge);
    if (n->merged) {
        destroy_message(n->merged);
        mem_free(n->merged_cover);
        n->merged = NULL;
        n->merged_cover = NULL;
    }
}

static void destroy_parts(struct node *n)
{
    stop_merging(n);
    window_destroy(&n->merge.window);
    conflicts_destroy(&n->merge.conflicts);
    origin_log_destroy(&n->log);
    origins_deinit(&n->origins);
}

static void keep_conflict(int db, struct slice key, void *context)
{
    struct buf *out = context;
    buf_append_char(out, (char)db);
    buf_append_slice(out, key);
}

void node_save(struct node *n)
{
    struct saved *s = &n->saved;
    assert(n->origins.count <= GROUP_ORIGINS_MAX);
    if (n->merged) {
        return; /* files wait for the end */
    }
    memcpy(s->rows, n->origins.rows, n->origins.count * sizeof(s->rows[0]));
    s->count = n->origins.count;
    s->clock = n->clock.last;
    s->model = n->model;
    buf_clear(&s->conflicts);
    conflicts_each(n->merge.conflicts, keep_conflict, &s->conflicts);
}

static void drop_messages(struct link *l);

void node_restart(struct node *n)
{
    struct group *g = n->group;
    const struct saved *s = &n->saved;
    if (n->origins.count >= GROUP_ORIGINS_MAX - GROUP_NODES_MAX) {
        return;
    }
    for (int i = 0; i < g->options.nodes; i++) {
        drop_messages(&g->links[i][n->number]);
        drop_messages(&g->links[n->number][i]);
    }
    destroy_parts(n);
    origins_init(&n->origins);
    n->model = s->model;
    n->clock.last = s->clock;
    create_parts(n);
    for (uint32_t i = 1; i < s->count; i++) {
        uint16_t index = origins_enter(&n->origins, &s->rows[i].id);
        origins_advance(&n->origins, index, s->rows[i].position);
        origin_log_skip(n->log, index, s->rows[i].position);
    }
    struct version_vector *positions = version_vector_create(&n->origins);
    window_skip(n->merge.window, positions, s->clock);
    mem_free(positions);
    for (size_t at = 0; at < s->conflicts.len; at += 3) {
        conflicts_note(n->merge.conflicts, s->conflicts.data[at],
                       slice_of(s->conflicts.data + at + 1, 2), s->clock, g->now_ms);
    }
    begin_epoch(n);
    g->restarts++;
}

static void record(struct group *g, const struct node *n, struct unit *unit)
{
    if (g->made_count == g->made_capacity) {
        g->made_capacity = g->made_capacity ? 2 * g->made_capacity : 256;
        g->made = mem_realloc(g->made, g->made_capacity * sizeof(*g->made));
    }
    g->made[g->made_count++] =
        (struct made){origins_at(&n->origins, n->self)->id, unit_acquire(unit)};
}

/* The commands, which have been run, are the node's next unit. */
static void tell(struct node *n, uint64_t stamp, int db, struct slice commands)
{
    struct dot dot = dot_of(stamp, n->self, origins_at(&n->origins, n->self)->position + 1);
    struct unit *unit = unit_create(dot, db, commands);
    assert(unit);
    merge_own(&n->merge, unit);
    origin_log_append(n->log, unit);
    record(n->group, n, unit);
    unit_release(unit);
}

static void put_restore(struct buf *told, int key, struct model_value v)
{
    char deadline[NUM_I64_MAX_CHARS];
    size_t digits = num_format_i64(deadline, v.deadline_ms);
    v.deadline_ms = 0;
    buf_append_cstr(told, "*6\r\n");
    unit_put_word(told, SLICE("RESTORE"));
    unit_put_word(told, model_key_name(key));
    unit_put_word(told, slice_of(deadline, digits));
    unit_put_word(told, slice_of((const char *)&v, sizeof(v)));
    unit_put_word(told, SLICE("REPLACE"));
    unit_put_word(told, SLICE("ABSTTL"));
}

/* Exchanges both databases, and tells of each key of theirs what it is then; false: they are empty.
 */
static bool swap_all(struct node *n, struct buf *told)
{
    struct model before = n->model;
    bool any = false;
    for (int db = 0; db < MODEL_DBS; db++) {
        memcpy(n->model.values[db], before.values[1 - db], sizeof(before.values[0]));
        memcpy(n->model.dots[db], before.dots[1 - db], sizeof(before.dots[0]));
        buf_printf(told, "*2\r\n$6\r\nSELECT\r\n$1\r\n%d\r\n", db);
        for (int key = 0; key < MODEL_KEYS; key++) {
            any = any || before.values[db][key].type;
            if (n->model.values[db][key].type) {
                put_restore(told, key, n->model.values[db][key]);
            } else if (before.values[db][key].type) {
                struct slice name = model_key_name(key);
                buf_printf(told, "*2\r\n$3\r\nDEL\r\n$2\r\n%.2s\r\n", name.ptr);
            }
        }
    }
    return any;
}

/* Runs the commands and writes down what is told: who empties a key with a deadline says so at
 * once.
 */
static bool run_all(struct node *n, int db, struct slice commands, struct buf *told)
{
    struct unit *unit = unit_create(dot_of(1, n->self, 1), db, commands);
    struct unit_command c = unit_command_before(unit);
    bool good = true;
    while (good && unit_command_next(unit, &c)) {
        if (slice_equal_nocase(c.argv[0], "swapdb")) {
            good = swap_all(n, told);
            continue;
        }
        buf_printf(told, "*2\r\n$6\r\nSELECT\r\n$1\r\n%d\r\n", c.db);
        buf_append(told, unit->bytes + c.offset, c.end - c.offset);
        bool flush = slice_equal_nocase(c.argv[0], "flushdb");
        if (flush) {
            memset(n->model.values[c.db], 0, sizeof(n->model.values[0]));
            memset(n->model.dots[c.db], 0, sizeof(n->model.dots[0]));
            continue;
        }
        bool publish = slice_equal_nocase(c.argv[0], "publish");
        const struct model_value *v =
            publish ? NULL : &n->model.values[c.db][c.argv[1].ptr[1] - '0'];
        bool had = v && v->deadline_ms != 0;
        good = model_run(&n->model, c.db, c.argc, c.argv);
        if (good && had && !v->type && !slice_equal_nocase(c.argv[0], "del")) {
            buf_printf(told, "*2\r\n$7\r\nPERSIST\r\n$2\r\n%.2s\r\n", c.argv[1].ptr);
        }
    }
    unit_command_end(&c);
    unit_release(unit);
    return good;
}

bool node_write(struct node *n, int db, struct slice commands)
{
    struct buf all = {0};
    struct model before = n->model;
    bool good = run_all(n, db, commands, &all);
    if (good) {
        tell(n, hlc_next(&n->clock), db, buf_slice(&all));
    } else {
        n->model = before;
    }
    buf_deinit(&all);
    return good;
}

void node_tend(struct node *n)
{
    struct buf key = {0}, command = {0};
    int db;
    bool same;
    while (!n->merged &&
           conflicts_take_due(n->merge.conflicts, n->group->now_ms, &db, &key, &same)) {
        struct buf words = {0};
        buf_clear(&command);
        if (same && merge_put_digest(&n->merge, db, buf_slice(&key), &words)) {
            merge_digests(&n->merge, 1, buf_slice(&words), &command);
            n->group->digests++;
        } else {
            merge_state(&n->merge, db, buf_slice(&key), &command);
        }
        buf_deinit(&words);
        conflicts_told(n->merge.conflicts, command.len, n->group->now_ms);
        tell(n, hlc_next_state(&n->clock), db, buf_slice(&command));
        n->group->states++;
    }
    buf_deinit(&key);
    buf_deinit(&command);
    uint64_t now = hlc_tell(&n->clock);
    origins_hear(&n->origins, n->self, now, 0);
    origins_hear(&n->origins, n->self, now, origins_seen(&n->origins));
    if (!n->merged) {
        (void)window_sweep(n->merge.window, origins_stable(&n->origins), UINT64_MAX);
    }
}

/* ---- the group ---- */

bool group_linked(const struct group *g, int a, int b)
{
    int last = g->options.nodes - 1;
    int low = a < b ? a : b, high = a < b ? b : a;
    switch (a == b ? -1 : (int)g->options.topology) {
    case GROUP_PAIR:
    case GROUP_MESH:
        return true;
    case GROUP_RING:
        return high - low == 1 || (low == 0 && high == last);
    case GROUP_STAR:
        return low == 0;
    case GROUP_CHAIN:
        return high - low == 1;
    default:
        return false;
    }
}

void group_init(struct group *g, const struct group_options *options)
{
    memset(g, 0, sizeof(*g));
    g->options = *options;
    g->pieces = options->pieces;
    g->now_ms = START_MS;
    for (int i = 0; i < options->nodes; i++) {
        struct node *n = &g->nodes[i];
        n->group = g;
        n->number = i;
        n->skew_ms = rand_below(3) ? (int64_t)rand_below(7200000) - 3600000 : 0;
        n->clock = (struct hlc){.wall_ms = wall_ms, .context = n};
        origins_init(&n->origins);
        create_parts(n);
        begin_epoch(n);
        for (int k = 0; k < options->nodes; k++) {
            g->links[i][k].wanted = group_linked(g, i, k);
        }
    }
    for (int i = 0; i < options->nodes && !options->strangers; i++) {
        for (int k = 0; k < options->nodes; k++) {
            const struct node *other = &g->nodes[k];
            origins_enter(&g->nodes[i].origins, &origins_at(&other->origins, other->self)->id);
        }
    }
    for (int i = 0; i < options->nodes; i++) {
        node_save(&g->nodes[i]);
    }
}

static void destroy_message(struct message *m)
{
    unit_release(m->unit);
    mem_free(m->model);
    mem_free(m);
}

static void drop_messages(struct link *l)
{
    while (l->first) {
        struct message *m = l->first;
        l->first = m->next;
        destroy_message(m);
    }
    l->last = NULL;
    l->queued = 0;
    l->connected = false;
}

void group_deinit(struct group *g)
{
    for (int i = 0; i < g->options.nodes; i++) {
        for (int k = 0; k < g->options.nodes; k++) {
            drop_messages(&g->links[i][k]);
        }
        buf_deinit(&g->nodes[i].saved.conflicts);
        destroy_parts(&g->nodes[i]);
    }
    for (uint32_t i = 0; i < g->made_count; i++) {
        unit_release(g->made[i].unit);
    }
    mem_free(g->made);
}

void group_cut(struct group *g, int a, int b, bool cut)
{
    struct link *both[2] = {&g->links[a][b], &g->links[b][a]};
    for (int i = 0; i < 2; i++) {
        both[i]->wanted = !cut && group_linked(g, a, b);
        if (cut) {
            drop_messages(both[i]);
        }
    }
}

/* ---- sending ---- */

static void put(struct link *l, struct message *m)
{
    m->next = NULL;
    if (l->last) {
        l->last->next = m;
    } else {
        l->first = m;
    }
    l->last = m;
    l->queued++;
}

static void send_merge(struct link *l, struct node *s)
{
    struct message *m = mem_calloc(1, sizeof(*m));
    m->kind = MESSAGE_MERGE;
    m->clock = hlc_tell(&s->clock);
    m->model = mem_alloc(sizeof(*m->model));
    *m->model = s->model;
    m->count = s->origins.count;
    for (uint32_t i = 1; i < s->origins.count; i++) {
        const struct origin *o = origins_at(&s->origins, (uint16_t)i);
        m->clocks[i] = (struct told_clock){o->id, o->position, 0};
        l->sent[i] = o->position;
    }
    put(l, m);
    merge_data_told(&s->merge, s->group->now_ms);
    s->group->merges++;
}

/* The receiver has told its positions; what it lacks is kept here, or it gets everything. */
static void connect_link(struct link *l, struct node *s, const struct node *r)
{
    bool kept = true;
    memset(l->sent, 0, sizeof(l->sent));
    for (uint32_t i = 1; i < s->origins.count; i++) {
        const struct origin *o = origins_at(&s->origins, (uint16_t)i);
        uint16_t there = origins_find(&r->origins, &o->id);
        l->sent[i] = there ? origins_at(&r->origins, there)->position : 0;
        kept = kept && origin_log_keeps_after(s->log, (uint16_t)i, l->sent[i], o->position);
    }
    l->connected = true;
    if (!kept) {
        send_merge(l, s);
    }
}

static bool send_unit(struct link *l, struct node *s, uint16_t origin)
{
    struct unit *unit = origin_log_find(s->log, origin, l->sent[origin] + 1);
    if (!unit) {
        drop_messages(l); /* it fell behind the log */
        return true;
    }
    struct message *m = mem_calloc(1, sizeof(*m));
    m->kind = MESSAGE_UNIT;
    m->unit = unit_acquire(unit);
    m->id = origins_at(&s->origins, origin)->id;
    l->sent[origin]++;
    put(l, m);
    return true;
}

static bool is_of(const struct node *n, const struct origin *o)
{
    return memcmp(o->id.node, origins_at(&n->origins, n->self)->id.node, ORIGIN_NODE_BYTES) == 0;
}

bool lane_send(struct group *g, int receiver, int sender)
{
    struct link *l = &g->links[receiver][sender];
    struct node *s = &g->nodes[sender], *r = &g->nodes[receiver];
    if (!l->wanted) {
        return false;
    }
    if (!l->connected && s->merged) {
        return false; /* it could not say what it has */
    }
    if (!l->connected) {
        connect_link(l, s, r);
        return true;
    }
    uint32_t begin = (uint32_t)rand_below(s->origins.count);
    for (uint32_t k = 0; k < s->origins.count; k++) {
        uint16_t i = (uint16_t)((begin + k) % s->origins.count);
        const struct origin *o = origins_at(&s->origins, i);
        if (i == 0 || l->sent[i] >= o->position || (g->options.directly && !is_of(s, o))) {
            continue;
        }
        if (memcmp(&o->id, &origins_at(&r->origins, r->self)->id, sizeof(o->id)) == 0) {
            l->sent[i] = o->position; /* its own */
            continue;
        }
        return send_unit(l, s, i);
    }
    return false;
}

void link_send_clocks(struct group *g, int receiver, int sender)
{
    struct link *l = &g->links[receiver][sender];
    struct node *s = &g->nodes[sender];
    if (!l->connected) {
        return;
    }
    struct message *m = mem_calloc(1, sizeof(*m));
    m->kind = MESSAGE_CLOCKS;
    uint64_t now = hlc_tell(&s->clock);
    origins_hear(&s->origins, s->self, now, 0);
    origins_hear(&s->origins, s->self, now, origins_seen(&s->origins));
    for (uint32_t i = 1; i < s->origins.count; i++) {
        const struct origin *o = origins_at(&s->origins, (uint16_t)i);
        if (!o->superseded && l->sent[i] == o->position) {
            m->clocks[m->count++] = (struct told_clock){o->id, o->clock, o->seen};
        }
    }
    put(l, m);
}

/* ---- receiving ---- */

static void receive_unit(struct node *r, const struct message *m)
{
    uint16_t index = origins_enter(&r->origins, &m->id);
    uint64_t sequence = dot_sequence(m->unit->dot);
    switch (origins_arrival(&r->origins, index, sequence)) {
    case ORIGIN_DUPLICATE:
        return;
    case ORIGIN_GAP:
        fault(r->group, "a gap in what a link sends");
        return;
    case ORIGIN_NEXT:
        break;
    }
    struct unit *unit = unit_create(dot_of(m->unit->dot.stamp, index, sequence), m->unit->db,
                                    slice_of(m->unit->bytes, m->unit->len));
    if (!merge_acceptable(&r->merge, unit) || !hlc_see(&r->clock, unit->dot.stamp)) {
        fault(r->group, "a unit was refused");
    } else {
        merge_apply(&r->merge, unit, r->group->now_ms);
        origin_log_append(r->log, unit);
    }
    unit_release(unit);
}

static void receive_clocks(struct node *r, const struct message *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        uint16_t index = origins_enter(&r->origins, &m->clocks[i].id);
        origins_hear(&r->origins, index, m->clocks[i].clock, m->clocks[i].seen);
    }
}

static struct version_vector *their_positions(struct node *r, const struct message *m,
                                              uint16_t *index)
{
    for (uint32_t i = 1; i < m->count; i++) {
        index[i] = origins_enter(&r->origins, &m->clocks[i].id);
    }
    struct version_vector *c = version_vector_create(&r->origins);
    memset(c->sequence, 0, c->count * sizeof(c->sequence[0]));
    for (uint32_t i = 1; i < m->count; i++) {
        c->sequence[index[i]] = m->clocks[i].clock;
    }
    return c;
}

static void meet_one(struct node *r, int i)
{
    const struct message *m = r->merged;
    int db = i / MODEL_KEYS, k = i % MODEL_KEYS;
    struct slice key = model_key_name(k);
    struct dot dot = m->model->dots[db][k];
    struct buf payload = {0};
    int64_t deadline_ms = 0;
    dot = dot_of(dot.stamp, r->met_index[dot_origin(dot)], dot_sequence(dot));
    bool there = model_executor.dump(m->model, db, key, &deadline_ms, &payload);
    bool known = there || model_executor.exists(&r->model, db, key) ||
                 window_last(r->merge.window, db, key) > 0;
    if (known && !merge_snapshot_key(&r->merge, &r->snapshot, db, key, dot, deadline_ms,
                                     buf_slice(&payload), r->group->now_ms)) {
        fault(r->group, "a key of a merge was refused");
    }
    buf_deinit(&payload);
}

/* Some keys more, or all. */
static void meet_some(struct node *r)
{
    struct group *g = r->group;
    int all = MODEL_DBS * MODEL_KEYS, upto = all;
    if (g->pieces) {
        g->pieces = g->pieces * 6364136223846793005U + 1442695040888963407U;
        upto = r->merged_keys + (int)(g->pieces >> 61);
        upto = upto > all ? all : upto;
    }
    for (; r->merged_keys < upto; r->merged_keys++) {
        meet_one(r, r->merged_keys);
    }
    if (r->merged_keys < all) {
        return;
    }
    merge_snapshot_end(&r->merge, &r->snapshot);
    for (uint32_t i = 1; i < r->merged_cover->count; i++) {
        origin_log_skip(r->log, (uint16_t)i, r->merged_cover->sequence[i]);
    }
    stop_merging(r);
    merge_take_waiting(&r->merge, g->now_ms);
}

static void begin_merge(struct node *r, struct message *m_take)
{
    memset(r->met_index, 0, sizeof(r->met_index));
    r->merged = m_take;
    r->merged_keys = 0;
    r->merged_cover = their_positions(r, m_take, r->met_index);
    r->snapshot = (struct merge_snapshot){.positions = r->merged_cover, .clock = m_take->clock};
    if (!hlc_see(&r->clock, m_take->clock)) {
        fault(r->group, "a clock was refused");
    }
    merge_snapshot_begin(&r->merge, &r->snapshot, r->group->now_ms);
    meet_some(r);
}

/* True when a message cannot be taken while the node is merging somebody. */
static bool has_to_wait(const struct node *r, const struct message *m)
{
    if (!r->merged || m->kind == MESSAGE_CLOCKS) {
        return false;
    }
    uint16_t index = m->kind == MESSAGE_UNIT ? origins_find(&r->origins, &m->id) : 0;
    return m->kind == MESSAGE_MERGE || (index && version_vector_at(r->merged_cover, index) >
                                                     origins_at(&r->origins, index)->position);
}

bool link_deliver(struct group *g, int receiver, int sender)
{
    struct link *l = &g->links[receiver][sender];
    struct node *r = &g->nodes[receiver];
    struct message *m = l->first;
    if (r->merged && (!m || has_to_wait(r, m))) {
        meet_some(r);
        return true;
    }
    if (!m) {
        return false;
    }
    l->first = m->next;
    l->last = l->first ? l->last : NULL;
    l->queued--;
    switch (m->kind) {
    case MESSAGE_UNIT:
        receive_unit(r, m);
        break;
    case MESSAGE_CLOCKS:
        receive_clocks(r, m);
        break;
    case MESSAGE_MERGE:
        begin_merge(r, m);
        return true;
    }
    destroy_message(m);
    return true;
}

/* ---- rest ---- */

static bool move_all(struct group *g)
{
    bool moved = false;
    for (int i = 0; i < g->options.nodes * g->options.nodes; i++) {
        int r = i / g->options.nodes, s = i % g->options.nodes;
        while (!g->fault && lane_send(g, r, s)) {
            moved = true;
            link_deliver(g, r, s);
        }
        while (!g->fault && link_deliver(g, r, s)) {
            moved = true;
        }
    }
    return moved;
}

bool group_settle(struct group *g)
{
    for (int a = 0; a < g->options.nodes; a++) {
        for (int b = 0; b < a; b++) {
            group_cut(g, a, b, false);
        }
    }
    int quiet = 0;
    for (int round = 0; round < SETTLE_ROUNDS && !g->fault && quiet < 4; round++) {
        bool moved = move_all(g);
        g->now_ms += 60;
        for (int i = 0; i < g->options.nodes; i++) {
            moved = moved || conflicts_count(g->nodes[i].merge.conflicts) > 0;
            node_tend(&g->nodes[i]);
        }
        for (int i = 0; i < g->options.nodes * g->options.nodes; i++) {
            link_send_clocks(g, i / g->options.nodes, i % g->options.nodes);
        }
        quiet = moved ? 0 : quiet + 1;
        for (int i = 0; i < g->options.nodes * g->options.nodes; i++) {
            while (link_deliver(g, i / g->options.nodes, i % g->options.nodes)) {
            }
        }
    }
    return quiet >= 4;
}

uint64_t group_position(const struct group *g, const struct origin_id *id)
{
    uint16_t index = origins_find(&g->nodes[0].origins, id);
    return index ? origins_at(&g->nodes[0].origins, index)->position : 0;
}

static const char *position_difference(const struct group *g, const struct node *n)
{
    for (uint32_t i = 1; i < n->origins.count; i++) {
        const struct origin *o = origins_at(&n->origins, (uint16_t)i);
        if (group_position(g, &o->id) != o->position) {
            static char where[200];
            snprintf(where, sizeof(where),
                     "positions differ: node %d has %llu of node %c's epoch %llx, node 0 %llu",
                     n->number, (unsigned long long)o->position, o->id.node[0],
                     (unsigned long long)o->id.epoch,
                     (unsigned long long)group_position(g, &o->id));
            return where;
        }
    }
    return NULL;
}

const char *group_difference(const struct group *g)
{
    static char text[4096];
    for (int i = 1; i < g->options.nodes; i++) {
        const char *found = position_difference(g, &g->nodes[i]);
        for (int k = 0; !found && k < MODEL_DBS * MODEL_KEYS; k++) {
            int db = k / MODEL_KEYS, key = k % MODEL_KEYS;
            const struct model_value *a = &g->nodes[0].model.values[db][key];
            const struct model_value *b = &g->nodes[i].model.values[db][key];
            if (memcmp(a, b, sizeof(*a)) != 0) {
                struct buf both = {0};
                buf_printf(&both, "db %d k%d on node 0: ", db, key);
                model_describe(a, &both);
                buf_printf(&both, "; on node %d: ", i);
                model_describe(b, &both);
                snprintf(text, sizeof(text), "%s", buf_cstr(&both));
                buf_deinit(&both);
                found = text;
            }
        }
        if (found) {
            return found;
        }
    }
    return NULL;
}
