/* See client.h. */
#include "net/client.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/stats.h"
#include "engine/execute.h"
#include "engine/modules.h"
#include "engine/transaction.h"
#include "net/blocked.h"
#include "net/feed.h"
#include "net/held.h"
#include "net/client_memory.h"
#include "net/durable.h"
#include "net/input.h"
#include "net/monitor.h"
#include "net/output.h"
#include "net/pause.h"
#include "net/server_thread.h"
#include "net/subscriptions.h"
#include "net/tls.h"
#include "net/tracking.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static struct {
    struct lock lock;
    struct client *first, **last;
    _Atomic uint64_t count;
} all = {.lock = LOCK_INIT(LOCK_RANK_CLIENTS, "clients"), .last = &all.first};

struct client *client_create(int fd_take, const char *peer, uint32_t flags)
{
    struct client *c = mem_calloc(1, sizeof(*c));
    c->low_water_bytes = 1;
    session_init(&c->session, session_next_id());
    c->session.owner = c;
    snprintf(c->session.peer, sizeof(c->session.peer), "%s", peer);
    c->fd = fd_take;
    c->flags = flags | CLIENT_UNREGISTERED;
    parser_init(&c->parser);
    c->out_last = &c->out_first;
    c->created_s = c->active_s = clock_mono_us() / 1000000;
    lock_acquire(&all.lock);
    c->all_link = all.last;
    *all.last = c;
    all.last = &c->all_next;
    lock_release(&all.lock);
    atomic_fetch_add_explicit(&all.count, 1, memory_order_relaxed);
    return c;
}

struct client *client_create_tls(int fd_take, const char *peer, uint32_t flags)
{
    struct tls *tls = tls_create(fd_take);
    if (!tls) {
        return NULL;
    }
    struct client *c = client_create(fd_take, peer, flags | CLIENT_TLS | CLIENT_GREETING);
    c->tls = tls;
    return c;
}

static void leave_all(struct client *c)
{
    lock_acquire(&all.lock);
    *c->all_link = c->all_next;
    if (c->all_next) {
        c->all_next->all_link = c->all_link;
    } else {
        all.last = c->all_link;
    }
    lock_release(&all.lock);
    atomic_fetch_sub_explicit(&all.count, 1, memory_order_relaxed);
}

/* ---- events ---- */

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct client *c = arg;
    (void)fd;
    server_thread_wake(c->thread);
    if (unlikely(what & EV_CLOSED)) {
        c->flags |= CLIENT_PEER_CLOSED;
    }
    if (!(c->flags & CLIENT_CLOSE_ASAP)) {
        input_receive(c->thread, c);
    }
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct client *c = arg;
    (void)fd;
    (void)what;
    server_thread_wake(c->thread);
    if (!(c->flags & CLIENT_CLOSE_ASAP)) {
        output_flush(c);
        if (c->flags & CLIENT_TLS) {
            input_receive_later(c->thread, c); /* which may have waited for output to go first */
        }
    }
}

static void tell(const struct client *c, unsigned part)
{
    struct modules_facts facts = {.session = &c->session,
                                  .first =
                                      (c->flags & CLIENT_TLS ? MODULES_CLIENT_TLS : 0) |
                                      (c->flags & CLIENT_BLOCKED ? MODULES_CLIENT_BLOCKED : 0) |
                                      (c->flags & CLIENT_UNIX ? MODULES_CLIENT_UNIX : 0)};
    modules_news(MODULES_CLIENT, part, &facts);
}

void client_tell_come(struct client *c)
{
    if (!(c->flags & CLIENT_TOLD) && !(modules_want(MODULES_CLIENT) && keyspace_is_busy())) {
        c->flags |= CLIENT_TOLD;
        tell(c, 0);
    }
}

void client_tell_gone(struct client *c)
{
    client_tell_come(c);
    tell(c, 1);
}

void client_adopt(struct client *c, struct server_thread *thread)
{
    assert(c->flags & CLIENT_UNREGISTERED && thread == server_thread_self());
    c->flags &= ~(uint32_t)CLIENT_UNREGISTERED;
    c->thread = thread;
    tracking_adopted(c);
    c->thread_next = thread->clients;
    c->thread_link = &thread->clients;
    if (thread->clients) {
        thread->clients->thread_link = &c->thread_next;
    }
    thread->clients = c;
    /* Edge-triggered: level-triggered events are polled once more by the kernel after each, to find
     * nothing (5 % of a request at pipeline 1). input.h keeps the list of those that were not read
     * to the end. EV_CLOSED: bytes and the end of the stream may come with one edge, and a short
     * read then is not the last one. */
    event_assign(&c->read_event, thread->base, c->fd, EV_READ | EV_CLOSED | EV_PERSIST | EV_ET,
                 on_readable, c);
    event_assign(&c->write_event, thread->base, c->fd, EV_WRITE | EV_PERSIST | EV_ET, on_writable,
                 c);
    event_add(&c->read_event, NULL);
    if (c->flags & CLIENT_CLOSE_ASAP) {
        c->flags &= ~(uint32_t)CLIENT_CLOSE_ASAP;
        client_close_asap(c);
    }
}

void client_abandon(struct client *c)
{
    assert(!(c->flags & CLIENT_UNREGISTERED) && c->thread == server_thread_self());
    input_forget(c->thread, c);
    tracking_abandoned(c);
    client_memory_forget(c);
    event_del(&c->read_event);
    event_del(&c->write_event);
    *c->thread_link = c->thread_next;
    if (c->thread_next) {
        c->thread_next->thread_link = c->thread_link;
    }
    atomic_fetch_sub_explicit(&c->thread->client_count, 1, memory_order_relaxed);
    c->flags |= CLIENT_UNREGISTERED;
    c->flags &= ~(uint32_t)CLIENT_WANTS_WRITE;
}

/* ---- closing ---- */

static void put_on_closing_list(struct server_thread *t, struct client *c)
{
    if (c->flags & CLIENT_ON_CLOSING_LIST) {
        return;
    }
    if (t->closing_count == t->closing_capacity) {
        t->closing_capacity = t->closing_capacity ? 2 * t->closing_capacity : 16;
        t->closing = mem_realloc(t->closing, t->closing_capacity * sizeof(struct client *));
    }
    t->closing[t->closing_count++] = c;
    c->flags |= CLIENT_ON_CLOSING_LIST;
}

/* Owner: collects what others have flagged. */
static void collect_flagged(struct server_thread *t, void *argument)
{
    (void)argument;
    atomic_store(&t->nudged, false);
    for (struct client *c = t->clients; c; c = c->thread_next) {
        if (c->flags & CLIENT_CLOSE_ASAP) {
            put_on_closing_list(t, c);
        }
    }
}

void client_close_asap(struct client *c)
{
    if (c->flags & CLIENT_CLOSE_ASAP) {
        return;
    }
    c->flags |= CLIENT_CLOSE_ASAP;
    blocked_abandon(c);
    if (c->flags & CLIENT_UNREGISTERED) {
        return; /* on its way: client_adopt sees the flag */
    }
    if (c->thread == server_thread_self()) {
        put_on_closing_list(c->thread, c);
    } else {
        gil_assert_world();
        if (!atomic_exchange(&c->thread->nudged, true)) {
            server_thread_post(c->thread, collect_flagged, NULL);
        }
    }
}

void client_destroy(struct client *c)
{
    tracking_forget(c);
    feed_forget(c);
    if (!(c->flags & CLIENT_UNREGISTERED)) {
        monitor_remove(c);
        subscriptions_forget(c);
        client_abandon(c);
    }
    pause_forget(c);
    blocked_forget(c);
    durable_forget(c);
    leave_all(c);
    call_abandon(&c->continuation);
    mem_free(c->continuation_argv);
    output_discard(c);
    parser_deinit(&c->parser);
    buf_deinit(&c->pending);
    held_forget(c);
    session_deinit(&c->session);
    mem_free(c->local_addr);
    tls_destroy(&c->tls);
    close(c->fd);
    mem_free(c);
}

/* ---- looking ---- */

uint64_t client_count(void)
{
    return atomic_load_explicit(&all.count, memory_order_relaxed);
}

void client_each(bool (*visit)(struct client *c, void *context), void *context)
{
    gil_assert_world();
    for (struct client *c = all.first; c;) {
        struct client *next = c->all_next;
        if (!visit(c, context)) {
            break;
        }
        c = next;
    }
}

struct client *client_find(uint64_t id)
{
    gil_assert_world();
    struct client *c = all.first;
    while (c && c->session.id != id) {
        c = c->all_next;
    }
    return c;
}

size_t client_memory_bytes(const struct client *c)
{
    return mem_usable_size(c) + c->pending.capacity + parser_memory_bytes(&c->parser) +
           transaction_bytes(&c->session) + c->out_bytes +
           c->out_count * sizeof(struct output_piece) + held_memory_bytes(c) +
           blocked_memory_bytes(c) + subscriptions_memory_bytes(c) + tracking_memory_bytes(c) +
           (c->tls ? tls_memory_bytes(c->tls) : 0);
}

enum client_class client_class_of(const struct client *c)
{
    if (c->flags & CLIENT_FED) {
        return CLIENT_CLASS_REPLICA;
    }
    return c->session.subscriptions > 0 ? CLIENT_CLASS_PUBSUB : CLIENT_CLASS_NORMAL;
}
