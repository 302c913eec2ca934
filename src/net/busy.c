/* See busy.h. */
#include "net/busy.h"

#include "base/clock.h"
#include "base/mem.h"
#include "engine/busy.h"
#include "engine/tracking.h"
#include "net/feed.h"
#include "net/input.h"
#include "net/turn.h"

#include <assert.h>

#define ARENA_CHUNK_BYTES ((size_t)16 * 1024)

/* What a turn works with, and a second one of its own needs. */
struct turn_context {
    struct client **ready;
    uint32_t ready_count, ready_capacity, ready_next;
    char *input;
    size_t input_used;
    struct arena arena;
    struct reply reply;
    struct batch *batch;
};

/* The second one; made when it is needed first. */
static _Thread_local struct turn_context *spare;

static void create_spare(void)
{
    spare = mem_calloc(1, sizeof(*spare));
    spare->input = mem_alloc_aligned(CACHE_LINE_BYTES, INPUT_BUFFER_BYTES);
    arena_init(&spare->arena, ARENA_CHUNK_BYTES);
    reply_init(&spare->reply);
    spare->batch = batch_create();
}

void net_busy_leave(void)
{
    if (spare) {
        arena_deinit(&spare->arena);
        reply_deinit(&spare->reply);
        batch_destroy(spare->batch);
        mem_free(spare->input);
        mem_free(spare->ready);
        mem_free(spare);
        spare = NULL;
    }
}

/* Calls refer to &t->reply and batches to &t->arena: what is in them changes places. */
static void exchange(struct server_thread *t, struct turn_context *other)
{
    struct turn_context mine = {t->ready,      t->ready_count, t->ready_capacity,
                                t->ready_next, t->input,       t->input_used,
                                t->arena,      t->reply,       t->batch};
    t->ready = other->ready;
    t->ready_count = other->ready_count;
    t->ready_capacity = other->ready_capacity;
    t->ready_next = other->ready_next;
    t->input = other->input;
    t->input_used = other->input_used;
    t->arena = other->arena;
    t->reply = other->reply;
    t->batch = other->batch;
    *other = mine;
}

static void mark(struct client *c)
{
    c->flags |= CLIENT_IN_BATCH;
}

static void unmark(struct client *c)
{
    c->flags &= ~(uint32_t)CLIENT_IN_BATCH;
}

/* Clients that the outer turn has not come to yet are served here. Their input lies in the outer
 * buffer, which stays. */
static void take_over_ready(struct server_thread *t, struct turn_context *outer)
{
    uint32_t kept = outer->ready_next;
    for (uint32_t i = outer->ready_next; i < outer->ready_count; i++) {
        struct client *c = outer->ready[i];
        if (c->flags & CLIENT_IN_BATCH) {
            outer->ready[kept++] = c;
        } else {
            c->flags &= ~(uint32_t)CLIENT_ON_READY_LIST;
            server_thread_make_ready(t, c);
        }
    }
    outer->ready_count = kept;
}

/* The hook's: one round for the calling thread's clients. */
static void serve(void)
{
    struct server_thread *t = server_thread_self();
    if (!t || !turn_running(t->batch)) {
        return; /* no server thread runs it, or out of a batch (a module that is called back for a
                   client that has waited): others answer */
    }
    if (!spare) {
        create_spare();
    }
    struct turn_context *outer = spare;
    uint64_t writer = tracking_writer;
    int64_t wall_us = t->wall_us;
    const struct client *running = turn_running(t->batch);
    turn_each_client(t->batch, mark);
    exchange(t, outer);
    t->wall_us = clock_wall_us();
    turn_settle(t, outer->batch, &outer->reply, running);
    reply_reset(&t->reply);
    take_over_ready(t, outer);
    event_base_loop(t->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    if (t->unread_count > 0) {
        input_receive_unread(t);
    }
    turn_serve(t);
    if (unlikely(t->feeds_woken)) {
        feeds_run_woken(t);
    }
    if (unlikely(t->closing_count > 0)) {
        turn_close_beside_script(t);
    }
    exchange(t, outer);
    turn_each_client(t->batch, unmark);
    t->wall_us = wall_us;
    tracking_writer = writer;
}

void net_busy_setup(void)
{
    busy_set_server(serve);
}
