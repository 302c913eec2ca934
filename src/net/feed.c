/* See feed.h. */
#include "net/feed.h"

#include "net/output.h"

#include <assert.h>
#include <stdatomic.h>

void feed_attach(struct client *c, struct feed *f, const struct feed_ops *ops)
{
    struct server_thread *t = c->thread;
    assert(t == server_thread_self() && !c->feed);
    *f = (struct feed){.ops = ops, .client = c, .next = t->feeds, .link = &t->feeds};
    if (t->feeds) {
        t->feeds->link = &f->next;
    }
    t->feeds = f;
    c->feed = f;
    atomic_fetch_add(&t->feed_count, 1);
}

void feed_start(struct feed *f)
{
    f->started = true;
    feeds_wake();
}

void feed_forget(struct client *c)
{
    struct feed *f = c->feed;
    if (!f) {
        return;
    }
    *f->link = f->next;
    if (f->next) {
        f->next->link = f->link;
    }
    atomic_fetch_sub(&c->thread->feed_count, 1);
    c->feed = NULL;
    f->client = NULL;
    f->ops->gone(f);
}

bool feed_is_over(const struct client *c)
{
    return c->feed->ops->over(c->feed);
}

uint64_t feed_pending(const struct client *c)
{
    return c->feed ? c->feed->ops->pending(c->feed) : 0;
}

uint64_t feed_least_limit(const struct client *c)
{
    return c->feed && c->feed->ops->least_limit ? c->feed->ops->least_limit() : 0;
}

/* ---- waking ---- */

static void run_all(struct server_thread *t)
{
    /* Cleared before looking: what comes while we look wakes us again. Pairs with the exchange in
     * wake_thread. */
    atomic_store(&t->feeds_told, false);
    for (struct feed *f = t->feeds; f; f = f->next) {
        if (f->started) {
            f->client->flags |= CLIENT_FED;
            output_feed(f->client);
        }
    }
}

static void on_told(struct server_thread *t, void *argument)
{
    (void)argument;
    run_all(t);
}

static void wake_thread(struct server_thread *t)
{
    if (atomic_load(&t->feed_count) > 0 && !atomic_exchange(&t->feeds_told, true)) {
        server_thread_post(t, on_told, NULL);
    }
}

void feeds_wake(void)
{
    struct server_thread *self = server_thread_self();
    if (self) {
        self->feeds_woken = true;
        return;
    }
    for (int i = 0; i < server_thread_count(); i++) {
        wake_thread(server_thread_at(i));
    }
}

void feeds_run_woken(struct server_thread *t)
{
    t->feeds_woken = false;
    for (int i = 0; i < server_thread_count(); i++) {
        if (i != t->index) {
            wake_thread(server_thread_at(i));
        }
    }
    if (t->feeds) {
        run_all(t);
    }
}
