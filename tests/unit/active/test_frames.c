/* Links of active replicas without sockets: nodes that only keep positions and logs pull from one
 * another by real frames, over queues that are cut anywhere, stop, and go on. Whatever the shape of
 * the group: every write comes to every node once, in the order of its origin's numbers (the log
 * asserts that); in a mesh it crosses each pair of nodes once; who is too far behind is told so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/rand.h"
#include "active/hlc.h"
#include "active/frame.h"
#include "active/origin_log.h"
#include "active/sender.h"
#include "active/receiver.h"
#include "active/sources.h"

#include <stdio.h>
#include <string.h>

#define NODES_MAX 5
#define LOG_BYTES (1 << 20)
#define TICK_MS 250
#define FRAME_MAX (1 << 16)

/* One link: `to` pulls from `from`. */
struct wire {
    bool up, stopped;
    int from, to;
    struct sender send;
    struct receiver take;
    struct source_told told;
    struct buf down, back; /* on their way to the one who pulls; to the other */
    int64_t heard_ms;
};

struct node {
    struct origins origins;
    struct origin_log *log;
    struct hlc clock;
    struct sources wants;
    struct wire *pulls[NODES_MAX]; /* by the peer's number; NULL: no such line */
    uint16_t self;
    bool no_forward;
    uint64_t taken; /* writes of others */
    uint64_t frames, merges;
};

struct mesh {
    struct node nodes[NODES_MAX];
    int count;
    int64_t now_ms;
    size_t log_bytes;
};

static int64_t wall_ms(void *context)
{
    return ((struct mesh *)context)->now_ms;
}

static void node_begin(struct mesh *m, int n)
{
    struct node *node = &m->nodes[n];
    struct origin_id id = {.epoch = 1};
    memset(id.node, 'a' + n, sizeof(id.node));
    *node = (struct node){.clock = {.wall_ms = wall_ms, .context = m}};
    origins_init(&node->origins);
    node->self = origins_enter(&node->origins, &id);
    node->log = origin_log_create(m->log_bytes);
    sources_init(&node->wants);
}

static void wire_drop(struct wire *w)
{
    sender_deinit(&w->send);
    receiver_deinit(&w->take);
    source_told_deinit(&w->told);
    buf_deinit(&w->down);
    buf_deinit(&w->back);
    w->up = false;
}

static void mesh_end(struct mesh *m)
{
    for (int n = 0; n < m->count; n++) {
        struct node *node = &m->nodes[n];
        for (int p = 0; p < m->count; p++) {
            if (node->pulls[p]) {
                wire_drop(node->pulls[p]);
                mem_free(node->pulls[p]);
            }
        }
        sources_deinit(&node->wants);
        origin_log_destroy(&node->log);
        origins_deinit(&node->origins);
    }
}

static void mesh_begin(struct mesh *m, int count, size_t log_bytes)
{
    *m = (struct mesh){.count = count, .now_ms = 1000000, .log_bytes = log_bytes};
    for (int n = 0; n < count; n++) {
        node_begin(m, n);
    }
}

/* Node `to` has a replicaof line for node `from`. */
static void line(struct mesh *m, int to, int from)
{
    struct wire *w = mem_calloc(1, sizeof(*w));
    w->from = from;
    w->to = to;
    m->nodes[to].pulls[from] = w;
}

static void both_lines(struct mesh *m, int a, int b)
{
    line(m, a, b);
    line(m, b, a);
}

/* ---- what a node does ---- */

static void write_own(struct mesh *m, int n)
{
    struct node *node = &m->nodes[n];
    uint64_t sequence = origins_at(&node->origins, node->self)->position + 1;
    struct dot dot = dot_of(hlc_next(&node->clock), node->self, sequence);
    struct unit *u = unit_create(dot, 0, SLICE("*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"));
    assert_non_null(u);
    origin_log_append(node->log, u);
    origins_advance(&node->origins, node->self, sequence);
    unit_release(u);
}

static bool sink_see(void *context, uint64_t stamp)
{
    struct node *node = context;
    return hlc_see(&node->clock, stamp);
}

static bool sink_unit(void *context, struct unit *unit, const char **error)
{
    struct node *node = context;
    (void)error;
    origin_log_append(node->log, unit);
    origins_advance(&node->origins, dot_origin(unit->dot), dot_sequence(unit->dot));
    node->taken++;
    return true;
}

static void judge(struct mesh *m, int n)
{
    struct node *node = &m->nodes[n];
    struct source_link links[NODES_MAX] = {0};
    for (int p = 0; p < m->count; p++) {
        struct wire *w = node->pulls[p];
        if (w && w->up) {
            links[p] = (struct source_link){.up = true, .take = &w->take, .heard_ms = w->heard_ms};
            memset(links[p].node, 'a' + p, sizeof(links[p].node));
        }
    }
    (void)sources_choose(&node->wants, &node->origins, node->self, links, m->count, m->now_ms);
}

/* Puts what is news into the queue back: a number of words, then those. */
static void tell_wants(struct mesh *m, struct wire *w)
{
    struct node *node = &m->nodes[w->to];
    struct buf words = {0};
    int count = sources_put_words(&node->wants, &node->origins, w->from, &w->told, &words);
    if (count > 0) {
        le_put(&w->back, (uint64_t)count, 4);
        buf_append_slice(&w->back, buf_slice(&words));
    }
    buf_deinit(&words);
}

/* The next "$len CR LF text CR LF". */
static struct slice read_word(struct slice *rest)
{
    const char *end = memchr(rest->ptr, '\n', rest->len);
    uint64_t len;
    assert_non_null(end);
    assert_true(num_parse_u64(slice_of(rest->ptr + 1, (size_t)(end - rest->ptr) - 2), &len));
    struct slice word = slice_of(end + 1, len);
    size_t used = (size_t)(word.ptr - rest->ptr) + len + 2;
    *rest = slice_of(rest->ptr + used, rest->len - used);
    return word;
}

static void hear_wants(struct mesh *m, struct wire *w)
{
    struct node *node = &m->nodes[w->from];
    struct slice rest = buf_slice(&w->back);
    while (rest.len > 0) {
        int count = (int)le_get(rest.ptr, 4);
        struct slice *words = mem_alloc((size_t)count * sizeof(*words));
        rest = slice_of(rest.ptr + 4, rest.len - 4);
        for (int i = 0; i < count; i++) {
            words[i] = read_word(&rest);
        }
        assert_true(sender_hear(&w->send, &node->origins, count, words));
        mem_free(words);
    }
    buf_clear(&w->back);
}

/* A whole data set in place of what is not kept: positions are taken over. */
static void take_everything(struct mesh *m, struct wire *w)
{
    struct node *from = &m->nodes[w->from], *to = &m->nodes[w->to];
    for (uint32_t i = 1; i < from->origins.count; i++) {
        const struct origin *row = origins_at(&from->origins, (uint16_t)i);
        uint16_t here = origins_enter(&to->origins, &row->id);
        if (row->position > origins_at(&to->origins, here)->position) {
            origin_log_skip(to->log, here, row->position);
            origins_advance(&to->origins, here, row->position);
        }
    }
    to->merges++;
}

static void set_forwards(struct mesh *m, struct wire *w)
{
    const struct node *from = &m->nodes[w->from];
    sender_set_forwards(&w->send, !from->no_forward,
                        origins_at(&from->origins, from->self)->id.node);
}

static void connect_wire(struct mesh *m, struct wire *w)
{
    struct node *from = &m->nodes[w->from], *to = &m->nodes[w->to];
    wire_drop(w);
    w->up = true;
    w->stopped = false;
    w->heard_ms = m->now_ms;
    receiver_init(&w->take, to->self);
    sender_init(&w->send, &from->origins);
    set_forwards(m, w);
    judge(m, w->to);
    tell_wants(m, w);
    hear_wants(m, w);
    if (!sender_possible(&w->send, &from->origins, from->log)) {
        take_everything(m, w);
        tell_wants(m, w);
        hear_wants(m, w);
        assert_true(sender_possible(&w->send, &from->origins, from->log));
    }
}

/* Some bytes go down the wire; false when its link ends. */
static bool pump(struct mesh *m, struct wire *w)
{
    struct node *from = &m->nodes[w->from], *to = &m->nodes[w->to];
    const struct receiver_sink sink = {.see = sink_see, .unit = sink_unit, .context = to};
    const char *error = NULL;
    struct frame f;
    size_t used = 0, consumed;
    hear_wants(m, w);
    set_forwards(m, w);
    if (!sender_some(&w->send, &from->origins, from->log, 1 + rand_below(300), &w->down)) {
        return false;
    }
    struct slice data = slice_of(w->down.data, rand_below(w->down.len + 1));
    if (data.len == 0) {
        return true;
    }
    while (frame_next(slice_of(data.ptr + used, data.len - used), FRAME_MAX, &f, &consumed,
                      &error) == FRAME_WHOLE) {
        if (receiver_frame(&w->take, &to->origins, &f, &sink, &error) > RECEIVED_BEFORE) {
            print_error("node %d from %d: %s\n", w->to, w->from, error);
            fail();
        }
        to->frames += f.kind == 'W';
        w->heard_ms = m->now_ms;
        used += consumed;
    }
    assert_null(error);
    buf_consume(&w->down, used);
    return true;
}

static void tick(struct mesh *m)
{
    m->now_ms += TICK_MS;
    for (int n = 0; n < m->count; n++) {
        struct node *node = &m->nodes[n];
        uint64_t clock = hlc_tell(&node->clock);
        origins_hear(&node->origins, node->self, clock, 0);
        origins_hear(&node->origins, node->self, clock, origins_seen(&node->origins));
    }
    for (int n = 0; n < m->count; n++) {
        judge(m, n);
        for (int p = 0; p < m->count; p++) {
            struct wire *w = m->nodes[n].pulls[p];
            if (w && w->up && !w->stopped) {
                tell_wants(m, w);
                if (m->now_ms % 1000 == 0 || sender_has_news(&w->send, &m->nodes[p].origins)) {
                    sender_clocks(&w->send, &m->nodes[p].origins, &w->down);
                }
            }
        }
    }
}

/* One thing happens on one of the wires. */
static void happen(struct mesh *m, bool cuts)
{
    int n = (int)rand_below((uint64_t)m->count), p = (int)rand_below((uint64_t)m->count);
    struct wire *w = m->nodes[n].pulls[p];
    if (!w) {
        return;
    }
    if (cuts && rand_below(100) == 0) {
        w->stopped = !w->stopped;
    }
    if (!w->up) {
        if (!cuts || rand_below(10) == 0) {
            connect_wire(m, w);
        }
    } else if (cuts && rand_below(60) == 0) {
        wire_drop(w);
    } else if (!w->stopped && !pump(m, w)) {
        wire_drop(w);
    }
}

static void heal(struct mesh *m)
{
    for (int n = 0; n < m->count; n++) {
        for (int p = 0; p < m->count; p++) {
            struct wire *w = m->nodes[n].pulls[p];
            if (w && w->stopped) {
                wire_drop(w);
                w->stopped = false;
            }
        }
    }
    for (int i = 0; i < 8000; i++) {
        happen(m, false);
        if (i % 50 == 0) {
            tick(m);
        }
    }
}

static void assert_equal_positions(const struct mesh *m)
{
    for (int n = 1; n < m->count; n++) {
        const struct node *node = &m->nodes[n], *first = &m->nodes[0];
        assert_int_equal(node->origins.count, first->origins.count);
        for (uint32_t i = 1; i < node->origins.count; i++) {
            const struct origin *row = origins_at(&node->origins, (uint16_t)i);
            uint16_t there = origins_find(&first->origins, &row->id);
            assert_true(there > 0);
            assert_int_equal(row->position, origins_at(&first->origins, there)->position);
        }
    }
}

/* ---- the groups ---- */

static void shape_mesh(struct mesh *m)
{
    for (int a = 0; a < m->count; a++) {
        for (int b = 0; b < a; b++) {
            both_lines(m, a, b);
        }
    }
}

static void shape_ring(struct mesh *m)
{
    for (int a = 0; a < m->count; a++) {
        both_lines(m, a, (a + 1) % m->count);
    }
}

/* One way round only: everything reaches everybody through all others. */
static void shape_circle(struct mesh *m)
{
    for (int a = 0; a < m->count; a++) {
        line(m, a, (a + 1) % m->count);
    }
}

static void shape_star(struct mesh *m)
{
    for (int a = 1; a < m->count; a++) {
        both_lines(m, a, 0);
    }
}

static void shape_chain(struct mesh *m)
{
    for (int a = 1; a < m->count; a++) {
        both_lines(m, a, a - 1);
    }
}

static void (*const shapes[])(struct mesh *) = {shape_mesh, shape_ring, shape_circle, shape_star,
                                                shape_chain};

static void run_history(void (*shape)(struct mesh *), int count, size_t log_bytes)
{
    struct mesh m;
    uint64_t merges = 0;
    mesh_begin(&m, count, log_bytes);
    shape(&m);
    for (int i = 0; i < 6000; i++) {
        if (rand_below(4) == 0) {
            write_own(&m, (int)rand_below((uint64_t)count));
        }
        happen(&m, true);
        if (i % 50 == 0) {
            tick(&m);
        }
    }
    heal(&m);
    assert_equal_positions(&m);
    for (int n = 0; n < count; n++) {
        assert_true(m.nodes[n].taken > 0);
        merges += m.nodes[n].merges;
    }
    if (log_bytes == LOG_BYTES) {
        assert_int_equal(merges, 0);
    }
    mesh_end(&m);
}

static void test_everything_arrives_once(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        for (int round = 0; round < 6; round++) {
            run_history(shapes[s], 3 + round % 3, LOG_BYTES);
        }
    }
    run_history(shape_chain, 2, LOG_BYTES);
}

/* With logs for some twenty writes: who is away too long gets everything, and goes on from there.
 */
static void test_short_logs(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        run_history(shapes[s], 4, 20 * (sizeof(struct unit) + 20));
    }
}

static void test_a_mesh_sends_each_write_once_to_each(void **state)
{
    struct mesh m;
    uint64_t before[NODES_MAX];
    (void)state;
    mesh_begin(&m, 4, LOG_BYTES);
    shape_mesh(&m);
    heal(&m);
    for (int n = 0; n < m.count; n++) {
        before[n] = m.nodes[n].frames;
    }
    for (int i = 0; i < 4000; i++) {
        if (i % 10 == 0) {
            write_own(&m, i / 10 % m.count);
        }
        happen(&m, false);
        if (i % 100 == 0) {
            tick(&m);
        }
    }
    heal(&m);
    assert_equal_positions(&m);
    for (int n = 0; n < m.count; n++) {
        assert_int_equal(m.nodes[n].frames - before[n], 300);
    }
    mesh_end(&m);
}

/* Clocks are told more often while somebody writes, so that what all have leaves the windows. */
static void test_news_are_what_clocks_did_not_tell(void **state)
{
    struct mesh m;
    (void)state;
    mesh_begin(&m, 3, LOG_BYTES);
    shape_chain(&m);
    heal(&m);
    tick(&m);
    struct wire *w = m.nodes[2].pulls[1];
    const struct origins *there = &m.nodes[1].origins;
    assert_false(sender_has_news(&w->send, there));
    write_own(&m, 0);
    assert_false(sender_has_news(&w->send, there)); /* not there yet */
    for (int i = 0; i < 3000 && !sender_has_news(&w->send, there); i++) {
        happen(&m, false);
    }
    assert_true(sender_has_news(&w->send, there));
    sender_clocks(&w->send, there, &w->down);
    assert_false(sender_has_news(&w->send, there));
    mesh_end(&m);
}

/* A peer that stands still holds up nothing that others have. */
static void test_a_silent_link_is_left(void **state)
{
    struct mesh m;
    (void)state;
    mesh_begin(&m, 3, LOG_BYTES);
    shape_mesh(&m);
    heal(&m);
    m.nodes[0].pulls[1]->stopped = true;
    for (int i = 0; i < 50; i++) {
        write_own(&m, 1);
    }
    for (int i = 0; i < 3000; i++) {
        happen(&m, false);
        if (i % 50 == 0) {
            tick(&m);
        }
    }
    uint16_t second = 0;
    for (uint32_t i = 1; i < m.nodes[0].origins.count; i++) {
        second = m.nodes[0].origins.rows[i].id.node[0] == 'b' ? (uint16_t)i : second;
    }
    assert_true(sources_from(&m.nodes[0].wants, second, 2));
    assert_int_equal(origins_at(&m.nodes[0].origins, second)->position, 50);
    mesh_end(&m);
}

/* What the node has of the one that is called so; 0: it does not know it. */
static uint64_t position_of(const struct node *node, uint8_t name)
{
    uint64_t position = 0;
    for (uint32_t i = 1; i < node->origins.count; i++) {
        const struct origin *row = origins_at(&node->origins, (uint16_t)i);
        position = row->id.node[0] == name ? row->position : position;
    }
    return position;
}

/* multi-master-no-forward of the one in the middle: the others get nothing but its own, and are
 * told of nothing else, until it forwards. */
static void test_no_forward(void **state)
{
    struct mesh m;
    (void)state;
    mesh_begin(&m, 3, LOG_BYTES);
    m.nodes[1].no_forward = true;
    shape_chain(&m);
    for (int n = 0; n < 3; n++) {
        write_own(&m, n);
    }
    heal(&m);
    assert_int_equal(m.nodes[0].origins.count, 3);
    assert_int_equal(m.nodes[2].origins.count, 3);
    assert_int_equal(position_of(&m.nodes[1], 'a'), 1);
    assert_int_equal(position_of(&m.nodes[1], 'c'), 1);
    assert_int_equal(position_of(&m.nodes[0], 'b'), 1);
    assert_int_equal(position_of(&m.nodes[2], 'b'), 1);
    m.nodes[1].no_forward = false;
    heal(&m);
    assert_int_equal(position_of(&m.nodes[0], 'c'), 1);
    assert_int_equal(position_of(&m.nodes[2], 'a'), 1);
    mesh_end(&m);
}

/* ---- what is no such thing ---- */

static const char *take_error(struct node *node, struct receiver *take, struct buf *bytes)
{
    const struct receiver_sink sink = {.see = sink_see, .unit = sink_unit, .context = node};
    const char *error = NULL;
    struct frame f;
    size_t consumed;
    assert_int_equal(frame_next(buf_slice(bytes), FRAME_MAX, &f, &consumed, &error), FRAME_WHOLE);
    buf_consume(bytes, consumed);
    return receiver_frame(take, &node->origins, &f, &sink, &error) <= RECEIVED_BEFORE ? NULL
                                                                                      : error;
}

static void put_write(struct buf *out, uint16_t handle, uint64_t sequence, uint64_t stamp,
                      struct slice commands)
{
    frame_put_write(out, handle, sequence, stamp, 0, commands);
}

static void test_wrong_frames_end_the_link(void **state)
{
    struct mesh m;
    struct receiver take;
    struct buf b = {0};
    struct origin_id id = {.node = "someone else...", .epoch = 9};
    const struct slice del = SLICE("*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n");
    (void)state;
    mesh_begin(&m, 1, LOG_BYTES);
    struct node *node = &m.nodes[0];
    const struct origin_id own = origins_at(&node->origins, node->self)->id;
    const uint64_t stamp = (uint64_t)m.now_ms << 16, far = stamp + (UINT64_C(25 * 3600000) << 16);
    receiver_init(&take, node->self);
    put_write(&b, 3, 1, stamp, del);
    assert_string_equal(take_error(node, &take, &b), "a write of an origin that was not named");
    frame_put_origin(&b, 3, &id);
    assert_null(take_error(node, &take, &b));
    put_write(&b, 3, 2, stamp, del);
    assert_string_equal(take_error(node, &take, &b), "a write whose predecessor is missing");
    put_write(&b, 3, 1, far, del);
    assert_string_equal(take_error(node, &take, &b), "a stamp more than a day ahead of our clock");
    put_write(&b, 3, 1, stamp, SLICE("*2\r\n$3\r\nDEL"));
    assert_string_equal(take_error(node, &take, &b), "a write that is no row of commands");
    put_write(&b, 3, 1, stamp, del);
    assert_null(take_error(node, &take, &b));
    put_write(&b, 3, 1, stamp, del); /* again: dropped */
    assert_null(take_error(node, &take, &b));
    assert_int_equal(node->taken, 1);
    frame_put_origin(&b, 3, &own);
    assert_string_equal(take_error(node, &take, &b),
                        "a handle that stands for another origin already");
    frame_put_origin(&b, 65535, &own);
    assert_null(take_error(node, &take, &b));
    put_write(&b, 65535, 1, stamp, del);
    assert_string_equal(take_error(node, &take, &b), "a write in our own name");
    frame_put_clocks(&b, &(struct frame_clock){4, 1, stamp, stamp}, 1);
    assert_string_equal(take_error(node, &take, &b), "the clock of an origin that was not named");
    frame_put_clocks(&b, &(struct frame_clock){3, 1, far, stamp}, 1);
    assert_string_equal(take_error(node, &take, &b), "a clock more than a day ahead of ours");
    receiver_deinit(&take);
    buf_deinit(&b);
    mesh_end(&m);
}

/* A clock is about the writes up to its position: not before we have those. */
static void test_clocks_wait_for_their_writes(void **state)
{
    struct mesh m;
    struct receiver take;
    struct buf b = {0};
    struct origin_id id = {.node = "someone else...", .epoch = 9};
    (void)state;
    mesh_begin(&m, 1, LOG_BYTES);
    struct node *node = &m.nodes[0];
    const uint64_t stamp = (uint64_t)m.now_ms << 16;
    receiver_init(&take, node->self);
    frame_put_origin(&b, 1, &id);
    assert_null(take_error(node, &take, &b));
    frame_put_clocks(&b, &(struct frame_clock){1, 1, stamp, 5}, 1);
    assert_null(take_error(node, &take, &b));
    uint16_t origin = origins_find(&node->origins, &id);
    assert_int_equal(receiver_position(&take, origin), 1);
    assert_int_equal(origins_at(&node->origins, origin)->clock, 0);
    put_write(&b, 1, 1, stamp, SLICE("*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"));
    assert_null(take_error(node, &take, &b));
    frame_put_clocks(&b, &(struct frame_clock){1, 1, stamp, 5}, 1);
    assert_null(take_error(node, &take, &b));
    assert_int_equal(origins_at(&node->origins, origin)->clock, stamp);
    assert_int_equal(origins_at(&node->origins, origin)->seen, 5);
    receiver_deinit(&take);
    buf_deinit(&b);
    mesh_end(&m);
}

/* ---- causes ---- */

/* Kinds of the frames in `bytes`, one letter each; of the causes, the last position. */
static const char *kinds_of(struct buf *bytes, uint64_t *position)
{
    static char kinds[20];
    const char *error = NULL;
    struct frame f;
    size_t count = 0, consumed;
    while (frame_next(buf_slice(bytes), FRAME_MAX, &f, &consumed, &error) == FRAME_WHOLE) {
        assert_true(count < sizeof(kinds) - 1);
        kinds[count++] = f.kind;
        if (f.kind == 'A') {
            *position = frame_cause_at(&f, f.count - 1).position;
        }
        buf_consume(bytes, consumed);
    }
    kinds[count] = '\0';
    return kinds;
}

static void write_with_causes(struct mesh *m, int n)
{
    struct node *node = &m->nodes[n];
    write_own(m, n);
    origin_log_find(node->log, node->self, origins_at(&node->origins, node->self)->position)
        ->has_causes = true;
}

/* What somebody else wrote before is told, once, and only before our writes that may hang on it. */
static void test_causes_are_told(void **state)
{
    struct mesh m;
    struct sender send;
    struct buf b = {0};
    struct origin_id other = {.node = "someone else...", .epoch = 9};
    const uint8_t peer[ORIGIN_NODE_BYTES] = "the peer.......";
    uint64_t position = 0;
    (void)state;
    mesh_begin(&m, 1, LOG_BYTES);
    struct node *node = &m.nodes[0];
    sender_init(&send, &node->origins); /* requests ours; of the others it comes to know later */
    sender_tells_causes(&send, peer);
    uint16_t origin = origins_enter(&node->origins, &other);
    for (uint64_t i = 1; i <= 3; i++) {
        struct unit *u = unit_create(dot_of(hlc_next(&node->clock), origin, i), 0,
                                     SLICE("*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"));
        origin_log_append(node->log, u);
        origins_advance(&node->origins, origin, i);
        unit_release(u);
        if (i == 2) {
            write_own(&m, 0);
            write_with_causes(&m, 0);
            write_with_causes(&m, 0);
        }
    }
    assert_true(sender_some(&send, &node->origins, node->log, 10000, &b));
    assert_string_equal(kinds_of(&b, &position), "OWOAWW");
    assert_int_equal(position, 2); /* the third is later */
    write_with_causes(&m, 0);
    assert_true(sender_some(&send, &node->origins, node->log, 10000, &b));
    assert_string_equal(kinds_of(&b, &position), "AW");
    assert_int_equal(position, 3);
    sender_deinit(&send);
    buf_deinit(&b);
    mesh_end(&m);
}

static void append_units(struct node *node, const struct origin_id *id, int count)
{
    uint16_t origin = origins_enter(&node->origins, id);
    for (int i = 1; i <= count; i++) {
        struct unit *u = unit_create(dot_of(hlc_next(&node->clock), origin, (uint64_t)i), 0,
                                     SLICE("*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"));
        origin_log_append(node->log, u);
        origins_advance(&node->origins, origin, (uint64_t)i);
        unit_release(u);
    }
}

static const char *next_kinds(struct sender *send, struct node *node, struct buf *b)
{
    uint64_t position = 0;
    assert_true(sender_some(send, &node->origins, node->log, 10000, b));
    return kinds_of(b, &position);
}

static void say(struct sender *send, struct node *node, const struct origin_id *id,
                const char *position, const char *asks)
{
    char text[ORIGIN_CHARS];
    origin_format(id, text);
    const struct slice words[] = {slice_of(text, sizeof(text)), slice_cstr(position),
                                  slice_cstr(asks)};
    assert_true(sender_hear(send, &node->origins, 3, words));
}

/* What a node writes in a later life is sent to nobody who lacks some of an earlier one and gets
 * that, maybe, from somebody else: it was made on that. */
static void test_a_later_life_waits(void **state)
{
    struct mesh m;
    struct sender send;
    struct buf b = {0};
    struct origin_id first = {.node = "someone else...", .epoch = 9};
    struct origin_id second = {.node = "someone else...", .epoch = 11};
    struct origin_id third = {.node = "someone else...", .epoch = 12};
    (void)state;
    mesh_begin(&m, 1, LOG_BYTES);
    struct node *node = &m.nodes[0];
    append_units(node, &second, 1); /* in the order in which they turn up here */
    append_units(node, &first, 3);
    append_units(node, &third, 1);
    write_own(&m, 0);
    sender_init(&send, &node->origins);
    say(&send, node, &first, "1", "0");
    assert_string_equal(next_kinds(&send, node, &b), "OW"); /* ours */
    say(&send, node, &first, "2", "0");
    assert_string_equal(next_kinds(&send, node, &b), "");
    say(&send, node, &first, "3", "0");
    assert_string_equal(next_kinds(&send, node, &b), "OWOW");
    sender_deinit(&send);

    sender_init(&send, &node->origins);
    say(&send, node, &first, "1", "1"); /* from here: then it comes first */
    say(&send, node, &second, "0", "0");
    assert_string_equal(next_kinds(&send, node, &b), "OWWOW");
    say(&send, node, &second, "1", "0");
    assert_string_equal(next_kinds(&send, node, &b), "OW");
    sender_deinit(&send);
    buf_deinit(&b);
    mesh_end(&m);
}

/* Before a data set its receiver gets what the logs have up to its moment, of all origins but his
 * own and those that the logs lack: so the set skips those alone. */
static void test_before_a_data_set(void **state)
{
    struct mesh m;
    struct sender send;
    struct buf b = {0};
    char text[ORIGIN_CHARS];
    struct origin_id other = {.node = "someone else...", .epoch = 9};
    struct origin_id gone = {.node = "of no log......", .epoch = 9};
    struct origin_id peer = {.node = "the peer.......", .epoch = 9};
    uint64_t position = 0;
    (void)state;
    mesh_begin(&m, 1, LOG_BYTES);
    struct node *node = &m.nodes[0];
    write_own(&m, 0);
    write_own(&m, 0);
    append_units(node, &other, 3);
    append_units(node, &peer, 2);
    uint16_t lost = origins_enter(&node->origins, &gone);
    origin_log_skip(node->log, lost, 5);
    origins_advance(&node->origins, lost, 5);
    struct version_vector *moment = version_vector_create(&node->origins);
    write_own(&m, 0);

    sender_init(&send, &node->origins);
    sender_tells_causes(&send, peer.node);
    origin_format(&other, text);
    const struct slice words[] = {slice_of(text, sizeof(text)), SLICE("1"), SLICE("0")};
    assert_true(sender_hear(&send, &node->origins, 3, words));
    assert_false(sender_possible(&send, &node->origins, node->log));
    sender_before(&send, &node->origins, node->log, moment, 10000, &b);
    assert_string_equal(kinds_of(&b, &position), "OWWOWW");
    buf_clear(&b);
    sender_before(&send, &node->origins, node->log, moment, 10000, &b);
    assert_int_equal(b.len, 0);
    sender_skip(&send, &node->origins, moment);
    assert_true(sender_possible(&send, &node->origins, node->log));
    assert_true(sender_some(&send, &node->origins, node->log, 10000, &b));
    assert_string_equal(kinds_of(&b, &position), "W");
    sender_deinit(&send);
    buf_deinit(&b);
    mem_free(moment);
    mesh_end(&m);
}

static int asked;

static bool comes(void *link, uint16_t origin, uint64_t position)
{
    assert_true(link == &asked && origin > 0 && position == 5);
    return ++asked < 3;
}

/* A cause that comes is waited for; who says that it does not, or has it, goes on. */
static void test_causes_are_waited_for(void **state)
{
    struct mesh m;
    struct receiver take;
    struct buf b = {0};
    struct frame f;
    struct origin_id id = {.node = "someone else...", .epoch = 9};
    const char *error = NULL;
    size_t consumed;
    (void)state;
    mesh_begin(&m, 1, LOG_BYTES);
    struct node *node = &m.nodes[0];
    const struct receiver_sink sink = {
        .see = sink_see, .unit = sink_unit, .context = node, .comes = comes, .link = &asked};
    receiver_init(&take, node->self);
    frame_put_causes(&b, &(struct frame_clock){.handle = 1, .position = 5}, 1);
    assert_string_equal(take_error(node, &take, &b), "a cause by an origin that was not named");
    frame_put_origin(&b, 1, &id);
    assert_null(take_error(node, &take, &b));
    frame_put_causes(&b, &(struct frame_clock){.handle = 1, .position = 5}, 1);
    assert_int_equal(frame_next(buf_slice(&b), FRAME_MAX, &f, &consumed, &error), FRAME_WHOLE);
    asked = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(receiver_frame(&take, &node->origins, &f, &sink, &error),
                         i < 2 ? RECEIVED_LATER : RECEIVED);
    }
    asked = 0;
    origins_advance(&node->origins, origins_find(&node->origins, &id), 5);
    assert_int_equal(receiver_frame(&take, &node->origins, &f, &sink, &error), RECEIVED);
    assert_int_equal(asked, 0);
    receiver_deinit(&take);
    buf_deinit(&b);
    mesh_end(&m);
}

static void test_wrong_words_change_nothing(void **state)
{
    struct mesh m;
    struct sender send;
    (void)state;
    mesh_begin(&m, 1, LOG_BYTES);
    struct node *node = &m.nodes[0];
    char own[ORIGIN_CHARS];
    origin_format(&origins_at(&node->origins, node->self)->id, own);
    const struct slice id = slice_of(own, sizeof(own));
    const struct slice wrong[][3] = {{id, SLICE("x"), SLICE("1")},
                                     {id, SLICE("1"), SLICE("2")},
                                     {id, SLICE("281474976710656"), SLICE("1")},
                                     {SLICE("0"), SLICE("1"), SLICE("1")}};
    sender_init(&send, &node->origins);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const struct slice words[] = {id,          SLICE("7"),  SLICE("0"),
                                      wrong[i][0], wrong[i][1], wrong[i][2]};
        assert_false(sender_hear(&send, &node->origins, 6, words));
        assert_false(sender_hear(&send, &node->origins, 2, words));
        assert_true(send.rows[node->self].asked && send.rows[node->self].sent == 0);
    }
    sender_deinit(&send);
    mesh_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_arrives_once),
        cmocka_unit_test(test_short_logs),
        cmocka_unit_test(test_a_mesh_sends_each_write_once_to_each),
        cmocka_unit_test(test_news_are_what_clocks_did_not_tell),
        cmocka_unit_test(test_a_silent_link_is_left),
        cmocka_unit_test(test_no_forward),
        cmocka_unit_test(test_wrong_frames_end_the_link),
        cmocka_unit_test(test_clocks_wait_for_their_writes),
        cmocka_unit_test(test_causes_are_told),
        cmocka_unit_test(test_a_later_life_waits),
        cmocka_unit_test(test_before_a_data_set),
        cmocka_unit_test(test_causes_are_waited_for),
        cmocka_unit_test(test_wrong_words_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
