/* See tracking.h.
 *
 * What a client is to be told gathers in its tracker's output, as arrays of keys without the frame
 * around them, which depends on who gets it: the client itself, or the one that it redirects to. */
#include "net/tracking.h"

#include "base/mem.h"
#include "net/output.h"
#include "net/tracking_priv.h"

#include <assert.h>

/* A tracker's output of this size is sent before more is added. */
#define OUT_MAX_BYTES ((size_t)64 * 1024)
/* Ids of "on its way" in redirect.thread. */
#define NO_THREAD (-1)

static struct {
    _Atomic uint64_t clients; /* that track */
    _Atomic uint64_t keys;    /* remembered by all threads */
} totals;

/* ---- redirections ---- */

static void redirect_release(struct redirect *r)
{
    if (r && atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1) {
        mem_free(r);
    }
}

/* World: a redirection to the client, with a reference for the caller. */
static struct redirect *redirect_to(struct client *target)
{
    struct redirect *r = target->redirect;
    if (!r) {
        r = target->redirect = mem_calloc(1, sizeof(*r));
        atomic_init(&r->refs, 1);
        atomic_init(&r->thread,
                    target->flags & CLIENT_UNREGISTERED ? NO_THREAD : target->thread->index);
        r->id = target->session.id;
        r->client = target;
    }
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

void tracking_adopted(struct client *c)
{
    if (c->redirect) {
        atomic_store(&c->redirect->thread, c->thread->index);
    }
}

void tracking_abandoned(struct client *c)
{
    if (c->redirect) {
        atomic_store(&c->redirect->thread, NO_THREAD);
    }
}

/* ---- sending ---- */

/* Calls for each record of a tracker's output. */
static bool next_record(struct slice *out, struct slice *body)
{
    size_t len;
    if (out->len == 0) {
        return false;
    }
    memcpy(&len, out->ptr, sizeof(len));
    *body = slice_of(out->ptr + sizeof(len), len);
    *out = slice_of(out->ptr + sizeof(len) + len, out->len - sizeof(len) - len);
    return true;
}

static void reply_record(struct reply *r, struct slice body)
{
    if (r->proto > 2) {
        reply_push(r, 2);
        reply_bulk_cstr(r, "invalidate");
    } else {
        reply_array(r, 3);
        reply_bulk_cstr(r, "message");
        reply_bulk_cstr(r, "__redis__:invalidate");
    }
    if (body.len > 0) {
        reply_raw(r, body);
    } else {
        reply_null(r);
    }
}

/* Sends to a client of this thread, where it can be told: RESP2 has no word for it but a message
 * on a connection that subscribes to something, by way of REDIRECT. */
static void send_records(struct server_thread *t, struct client *c, struct slice out,
                         bool redirected)
{
    struct slice body;
    bool can_be_told = c->session.proto > 2 || (redirected && c->session.subscriptions > 0);
    if (!can_be_told || c->flags & (CLIENT_CLOSE_ASAP | CLIENT_CLOSE_AFTER_REPLY)) {
        return;
    }
    uint32_t begin = reply_begin(&t->reply, c->session.proto);
    while (next_record(&out, &body)) {
        reply_record(&t->reply, body);
    }
    output_pieces(c, &t->reply, begin, reply_end(&t->reply));
    reply_reset(&t->reply);
}

/* Output on its way to the thread of whom it is redirected to. */
struct forward {
    struct redirect *redirect;
    struct buf out;
};

static void forward(struct server_thread *t, void *argument)
{
    struct forward *f = argument;
    int thread = atomic_load(&f->redirect->thread);
    bool gone = atomic_load(&f->redirect->gone) || t->stopping;
    if (!gone && thread != t->index) {
        /* On its way to a thread: we look again until it has arrived. */
        server_thread_post(thread == NO_THREAD ? t : server_thread_at(thread), forward, f);
        return;
    }
    if (!gone) {
        send_records(t, f->redirect->client, buf_slice(&f->out), true);
    }
    redirect_release(f->redirect);
    buf_deinit(&f->out);
    mem_free(f);
}

static void forward_later(struct server_thread *t, struct tracker *tracker)
{
    struct forward *f = mem_alloc(sizeof(*f));
    int thread = atomic_load(&tracker->redirect->thread);
    *f = (struct forward){tracker->redirect, tracker->out};
    atomic_fetch_add_explicit(&f->redirect->refs, 1, memory_order_relaxed);
    tracker->out = (struct buf){0};
    server_thread_post(thread == NO_THREAD ? t : server_thread_at(thread), forward, f);
}

/* The one to tell has gone: the client itself is told so, each time. */
static void send_broken(struct server_thread *t, const struct tracker *tracker)
{
    struct client *c = tracker->client;
    struct slice out = buf_slice(&tracker->out), body;
    c->session.tracking |= TRACKING_BROKEN_REDIRECT;
    if (c->session.proto <= 2) {
        return;
    }
    uint32_t begin = reply_begin(&t->reply, c->session.proto);
    while (next_record(&out, &body)) {
        reply_push(&t->reply, 2);
        reply_bulk_cstr(&t->reply, "tracking-redir-broken");
        reply_i64(&t->reply, (int64_t)tracker->redirect->id);
    }
    output_pieces(c, &t->reply, begin, reply_end(&t->reply));
    reply_reset(&t->reply);
}

static void send_out(struct server_thread *t, struct tracker *tracker)
{
    struct redirect *r = tracker->redirect;
    if (tracker->out.len == 0) {
        return;
    }
    if (!r) {
        send_records(t, tracker->client, buf_slice(&tracker->out), false);
    } else if (atomic_load(&r->gone)) {
        send_broken(t, tracker);
    } else if (atomic_load(&r->thread) == t->index) {
        send_records(t, r->client, buf_slice(&tracker->out), true);
    } else {
        forward_later(t, tracker);
    }
    buf_deinit(&tracker->out);
}

void tracking_put(struct server_thread *t, struct tracker *tracker, struct slice body)
{
    if (!tracker->noted) {
        tracker->noted = true;
        tracker->next_noted = t->tracking->noted;
        t->tracking->noted = tracker;
    }
    buf_append(&tracker->out, (const char *)&body.len, sizeof(body.len));
    buf_append_slice(&tracker->out, body);
    if (tracker->out.len > OUT_MAX_BYTES) {
        send_out(t, tracker);
    }
}

static void send_all(struct server_thread *t)
{
    struct tracking *s = t->tracking;
    while (s->noted) {
        struct tracker *tracker = s->noted;
        s->noted = tracker->next_noted;
        tracker->noted = false;
        send_out(t, tracker);
    }
}

/* ---- dealing out ---- */

/* Tells those who have read the key; `writer` not, where it does not want to know. */
static void tell_key(struct server_thread *t, struct tracked_key *e, uint64_t writer)
{
    struct buf body = {0};
    buf_append_slice(&body, SLICE("*1\r\n"));
    tracking_append_key(&body, slice_of(e->name, e->len));
    for (uint32_t i = 0; i < e->count; i++) {
        struct tracker *tracker = e->trackers[i];
        const struct session *session = tracker->client ? &tracker->client->session : NULL;
        bool tracks =
            session && (session->tracking & (TRACKING_ON | TRACKING_BCAST)) == TRACKING_ON;
        if (tracks && !(session->tracking & TRACKING_NOLOOP && session->id == writer)) {
            tracking_put(t, tracker, buf_slice(&body));
        }
    }
    buf_deinit(&body);
    tracking_table_release(&t->tracking->table, e);
}

static void tell_everything(struct server_thread *t)
{
    struct tracking *s = t->tracking;
    tracking_prefixes_deal(t);
    tracking_table_clear(&s->table);
    for (struct tracker *tracker = s->trackers; tracker; tracker = tracker->next) {
        if (tracker->client->session.tracking & TRACKING_ON) {
            tracking_put(t, tracker, slice_of(NULL, 0));
        }
    }
}

static void deal_one(struct server_thread *t, const struct tracking_change *change)
{
    struct tracking *s = t->tracking;
    if (!change->key.ptr) {
        tell_everything(t);
        return;
    }
    tracking_prefixes_note(t, change);
    if (s->table.keys.count > 0) {
        struct key key = key_of(change->key);
        struct tracked_key *e = tracking_table_take(&s->table, &key);
        if (e) {
            tell_key(t, e, change->writer);
        }
    }
}

static void deal(struct server_thread *t, uint64_t up_to)
{
    struct tracking_change change;
    while (tracking_next(&t->tracking->position, up_to, &change)) {
        deal_one(t, &change);
    }
}

static void remember_reads(struct server_thread *t)
{
    struct tracking_read read;
    size_t offset = 0;
    while (tracking_next_read(&offset, &read)) {
        struct client *c = client_of(read.session);
        deal(t, read.seq);
        if (c->tracker) {
            tracking_table_add(&t->tracking->table, &read.key, c->tracker);
        }
    }
}

/* Publishes the table's size. */
static void count_table(struct tracking *s)
{
    uint64_t before = atomic_load_explicit(&s->key_count, memory_order_relaxed);
    uint64_t now = s->table.keys.count;
    if (now != before) {
        atomic_store_explicit(&s->key_count, now, memory_order_relaxed);
        atomic_fetch_add_explicit(&totals.keys, now - before, memory_order_relaxed);
    }
    atomic_store_explicit(&s->item_count, s->table.items, memory_order_relaxed);
}

/* Forgets random keys, telling who has read them, while all threads have too many. */
static void trim(struct server_thread *t)
{
    struct tracking *s = t->tracking;
    uint64_t max = (uint64_t)net_settings.tracking_table_max_keys;
    count_table(s);
    while (max > 0 && atomic_load_explicit(&totals.keys, memory_order_relaxed) > max) {
        struct tracked_key *e = tracking_table_take_random(&s->table);
        if (!e) {
            break;
        }
        tell_key(t, e, 0);
        count_table(s);
    }
}

void tracking_deliver(struct server_thread *t)
{
    struct tracking *s = t->tracking;
    if (likely(!s->position.block)) {
        return;
    }
    if (tracking_has_reads()) {
        remember_reads(t);
    }
    deal(t, UINT64_MAX);
    tracking_caught_up(t->index, &s->position);
    tracking_prefixes_deal(t);
    trim(t);
    send_all(t);
}

static void trim_thread(struct server_thread *t, void *argument UNUSED)
{
    tracking_deliver(t);
}

void tracking_trim_all(void)
{
    server_thread_post_all(trim_thread, NULL);
}

/* ---- threads ---- */

static void receive_wake(struct inbox_message *message UNUSED, void *receiver)
{
    struct server_thread *t = receiver;
    /* Before the log is looked at, in the turn that follows: who appends after that look sends
     * another one. */
    atomic_store(&t->tracking->wake_sent, false);
}

static void wake_all(uint64_t threads)
{
    for (; threads; threads &= threads - 1) {
        struct server_thread *t = server_thread_at(__builtin_ctzll(threads));
        if (!atomic_exchange(&t->tracking->wake_sent, true)) {
            inbox_post_take(&t->inbox, &t->tracking->wake);
        }
    }
}

static void posted(uint64_t readers)
{
    struct server_thread *t = server_thread_self();
    if (t) {
        t->tracking->to_wake |= readers & ~((uint64_t)1 << t->index);
    } else {
        wake_all(readers);
    }
}

void tracking_wake_others(struct server_thread *t)
{
    if (unlikely(t->tracking->to_wake)) {
        wake_all(t->tracking->to_wake);
        t->tracking->to_wake = 0;
    }
}

struct tracking *tracking_create(void)
{
    struct tracking *s = mem_calloc(1, sizeof(*s));
    tracking_table_init(&s->table);
    s->wake.receive = receive_wake;
    return s;
}

void tracking_destroy(struct tracking **s)
{
    assert(!(*s)->trackers && (*s)->prefix_count == 0 && !(*s)->position.block);
    tracking_table_deinit(&(*s)->table);
    mem_free((*s)->prefixes);
    mem_free(*s);
    *s = NULL;
}

void tracking_net_setup(void)
{
    tracking_setup(posted);
}

/* ---- clients ---- */

static struct tracker *create_tracker(struct client *c) REQUIRES(gil)
{
    struct server_thread *t = c->thread;
    struct tracking *s = t->tracking;
    struct tracker *tracker = mem_calloc(1, sizeof(*tracker));
    tracker->client = c;
    tracker->next = s->trackers;
    tracker->link = &s->trackers;
    if (tracker->next) {
        tracker->next->link = &tracker->next;
    }
    s->trackers = tracker;
    if (!s->position.block) {
        tracking_join(t->index, &s->position);
    }
    return tracker;
}

void tracking_enable(struct client *c, const struct tracking_wish *wish)
{
    gil_assert_world();
    if (!c->tracker) {
        c->tracker = create_tracker(c);
    }
    struct tracker *tracker = c->tracker;
    if (!(c->session.tracking & TRACKING_ON)) {
        atomic_fetch_add_explicit(&totals.clients, 1, memory_order_relaxed);
    }
    c->session.tracking = wish->flags | TRACKING_ON;
    redirect_release(tracker->redirect);
    tracker->redirect = wish->target ? redirect_to(wish->target) : NULL;
    if (wish->flags & TRACKING_BCAST) {
        for (int i = 0; i < wish->prefix_count; i++) {
            tracking_prefix_join(c->thread->tracking, tracker, wish->prefixes[i]);
        }
        if (wish->prefix_count == 0) {
            tracking_prefix_join(c->thread->tracking, tracker, SLICE(""));
        }
    }
}

void tracking_disable(struct client *c)
{
    if (!(c->session.tracking & TRACKING_ON)) {
        return;
    }
    c->session.tracking = 0;
    atomic_fetch_sub_explicit(&totals.clients, 1, memory_order_relaxed);
    tracking_prefixes_leave(c->thread->tracking, c->tracker);
    redirect_release(c->tracker->redirect);
    c->tracker->redirect = NULL;
    buf_deinit(&c->tracker->out);
}

void tracker_forget_item(struct tracker *tracker)
{
    assert(tracker->items > 0);
    if (--tracker->items == 0 && !tracker->client) {
        mem_free(tracker);
    }
}

static void end_tracker(struct client *c)
{
    struct server_thread *t = c->thread;
    struct tracking *s = t->tracking;
    struct tracker *tracker = c->tracker;
    tracking_disable(c);
    assert(!tracker->noted);
    *tracker->link = tracker->next;
    if (tracker->next) {
        tracker->next->link = tracker->link;
    }
    c->tracker = NULL;
    tracker->client = NULL;
    if (tracker->items == 0) {
        mem_free(tracker);
    }
    if (!s->trackers) {
        tracking_leave(t->index, &s->position);
        tracking_table_clear(&s->table);
        count_table(s);
    }
}

void tracking_forget(struct client *c)
{
    if (c->tracker) {
        end_tracker(c);
    }
    if (c->redirect) {
        c->redirect->client = NULL;
        atomic_store(&c->redirect->gone, true);
        redirect_release(c->redirect);
        c->redirect = NULL;
    }
}

/* ---- looking ---- */

int64_t tracking_redirect_id(const struct client *c)
{
    if (!(c->session.tracking & TRACKING_ON)) {
        return -1;
    }
    return c->tracker->redirect ? (int64_t)c->tracker->redirect->id : 0;
}

size_t tracking_memory_bytes(const struct client *c)
{
    return c->tracker ? mem_usable_size(c->tracker) + c->tracker->prefixes.capacity +
                            c->tracker->out.capacity
                      : 0;
}

struct tracking_counts tracking_count(void)
{
    struct tracking_counts counts = {
        .clients = atomic_load_explicit(&totals.clients, memory_order_relaxed),
        .keys = atomic_load_explicit(&totals.keys, memory_order_relaxed),
        .prefixes = tracking_prefix_count()};
    for (int i = 0; i < server_thread_count(); i++) {
        counts.items +=
            atomic_load_explicit(&server_thread_at(i)->tracking->item_count, memory_order_relaxed);
    }
    return counts;
}
