/* See durable.h. Clients wait in a queue of their thread, in the order of positions. A thread asks
 * to be told once (armed) and is told by one message, which is its own. */
#include "net/durable.h"

#include "base/lock.h"
#include "base/mem.h"
#include "engine/block.h"
#include "engine/commit.h"
#include "engine/gate.h"
#include "net/input.h"
#include "net/output.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct waiting_client {
    struct client *client; /* NULL: gone */
    uint64_t position;
};

/* Behind the reason. It must not read like a refusal: who sends the same again does it twice. */
static const char doomed_explanation[] =
    "What was sent has been run, but it is not known to be on the disk";

/* While `serving`, the server threads are there for the log's thread. */
static struct {
    struct lock lock;
    bool serving;
} log_side = {.lock = LOCK_INIT(LOCK_RANK_DURABLE, "durable")};

/* Runs on the log's thread. */
static void on_synced(void)
{
    lock_acquire(&log_side.lock);
    for (int i = 0; log_side.serving && i < server_thread_count(); i++) {
        struct server_thread *t = server_thread_at(i);
        if (atomic_exchange_explicit(&t->commit_wanted, false, memory_order_acq_rel)) {
            inbox_post_take(&t->inbox, &t->commit_message);
        }
    }
    lock_release(&log_side.lock);
}

/* A server thread has WAITAOF's calls looked at again: the end of the hold serves them. */
static void call_watchers(struct server_thread *t, void *argument)
{
    (void)t;
    (void)argument;
    keyspace_lock_exclusive();
    call_event(commit_event);
    keyspace_unlock_exclusive();
}

static void on_watched(void)
{
    lock_acquire(&log_side.lock);
    if (log_side.serving) {
        server_thread_post(server_thread_at(0), call_watchers, NULL);
    }
    lock_release(&log_side.lock);
}

void durable_setup(void)
{
    commit_set_watcher(on_watched);
    commit_set_listener(on_synced);
}

void durable_serve(bool serving)
{
    lock_acquire(&log_side.lock);
    log_side.serving = serving;
    lock_release(&log_side.lock);
}

void durable_teardown_thread(struct server_thread *t)
{
    mem_free(t->committing);
}

void durable_hold(struct client *c, uint64_t position)
{
    struct server_thread *t = c->thread;
    bool holds = c->flags & CLIENT_COMMITTING;
    if (c->flags & CLIENT_CLOSE_ASAP) {
        return;
    }
    durable_forget(c); /* one that waits already: for all of it, then */
    assert(t->committing_count == 0 || t->committing[t->committing_count - 1].position <= position);
    if (t->committing_count == t->committing_capacity) {
        t->committing_capacity = t->committing_capacity ? 2 * t->committing_capacity : 16;
        t->committing =
            mem_realloc(t->committing, t->committing_capacity * sizeof(struct waiting_client));
    }
    t->committing[t->committing_count++] = (struct waiting_client){c, position};
    c->flags |= CLIENT_COMMITTING;
    if (!holds) {
        output_hold(c);
    }
}

static void let_go(struct server_thread *t, struct client *c)
{
    c->flags &= ~(uint32_t)CLIENT_COMMITTING;
    output_flush(c);
    if (c->flags & CLIENT_PEER_CLOSED) {
        input_receive_later(t, c);
    }
    if (!(c->flags & CLIENT_CLOSE_ASAP) && (input_bytes(c).len > 0 || c->held)) {
        server_thread_make_ready(t, c);
        t->more_to_do = true; /* should the turn be past its ready list */
    }
}

static void receive(struct inbox_message *message, void *receiver)
{
    struct server_thread *t = receiver;
    assert(message == &t->commit_message);
    t->commit_armed = false;
    durable_deliver(t);
}

/* Has the thread told when more is synced. False when it is already. */
static bool arm(struct server_thread *t)
{
    if (t->commit_armed) {
        return true;
    }
    t->commit_message.receive = receive;
    t->commit_armed = true;
    atomic_store(&t->commit_wanted, true);
    if (commit_synced() < t->committing[0].position &&
        t->committing[t->committing_count - 1].position <= commit_doomed()) {
        return true; /* partner: the log changes either and then looks at the wish */
    }
    /* Taken back, unless the message is on its way. */
    t->commit_armed = !atomic_exchange(&t->commit_wanted, false);
    return t->commit_armed;
}

static void let_all_go(struct server_thread *t)
{
    uint32_t count = t->committing_count;
    for (uint32_t i = 0; i < count; i++) {
        if (t->committing[i].client) {
            let_go(t, t->committing[i].client);
        }
    }
    assert(t->committing_count == count); /* nobody comes in while others are let go */
    t->committing_count = 0;
}

/* Ends the connections of those whose writes are not going to be safe soon. */
static void end_doomed(struct server_thread *t)
{
    uint64_t doomed = commit_doomed();
    char text[256];
    const char *reason = gate_aof_refusal();
    while (t->committing_count > 0 && t->committing[t->committing_count - 1].position > doomed) {
        struct client *c = t->committing[--t->committing_count].client;
        if (c) {
            int len = snprintf(text, sizeof(text), "-%s. %s\r\n", reason, doomed_explanation);
            c->flags &= ~(uint32_t)CLIENT_COMMITTING;
            output_break_off(c, slice_of(text, (size_t)len));
        }
    }
}

void durable_end_gathering(struct server_thread *t)
{
    assert(t->committing_count > 0);
    if (!commit_is_gated() && commit_written() >= t->committing[t->committing_count - 1].position) {
        let_all_go(t);
    }
}

void durable_deliver(struct server_thread *t)
{
    if (t->committing_count > 0 && !commit_is_gated()) {
        commit_write(t->committing[t->committing_count - 1].position);
        let_all_go(t);
    }
    while (t->committing_count > 0) {
        uint64_t synced = commit_synced();
        uint32_t done = 0;
        while (done < t->committing_count && t->committing[done].position <= synced) {
            struct client *c = t->committing[done++].client;
            if (c) {
                let_go(t, c);
            }
        }
        t->committing_count -= done;
        memmove(t->committing, t->committing + done,
                t->committing_count * sizeof(struct waiting_client));
        end_doomed(t);
        if (t->committing_count == 0 || arm(t)) {
            break;
        }
    }
}

void durable_forget(struct client *c)
{
    struct server_thread *t = c->thread;
    for (uint32_t i = 0; c->flags & CLIENT_COMMITTING && i < t->committing_count; i++) {
        if (t->committing[i].client == c) {
            t->committing[i].client = NULL;
            c->flags &= ~(uint32_t)CLIENT_COMMITTING;
        }
    }
}
