/* See client_memory.h. */
#include "net/client_memory.h"

#include "base/log.h"
#include "base/stats.h"
#include "keyspace/evict.h"

/* A smaller limit than this is taken as this: somebody must be able to set a better one. */
#define LIMIT_MIN_BYTES ((size_t)128 * 1024)

/* The limit in bytes; a percentage is one of maxmemory, and none without that. */
static size_t limit_bytes(void)
{
    int64_t set = net_settings.maxmemory_clients;
    size_t bytes = (size_t)set;
    if (set < 0) {
        bytes = (size_t)((double)evict_limit_bytes * (double)-set / 100);
    }
    if (bytes == 0) {
        return SIZE_MAX;
    }
    return bytes < LIMIT_MIN_BYTES ? LIMIT_MIN_BYTES : bytes;
}

static size_t load(const _Atomic size_t *bytes)
{
    return atomic_load_explicit(bytes, memory_order_relaxed);
}

static void set_counted(struct client *c, size_t bytes)
{
    struct server_thread *t = c->thread;
    if (bytes != c->counted_bytes) {
        atomic_store_explicit(&t->clients_bytes, load(&t->clients_bytes) + bytes - c->counted_bytes,
                              memory_order_relaxed);
        c->counted_bytes = bytes;
    }
    if (bytes > load(&t->largest_client_bytes)) {
        atomic_store_explicit(&t->largest_client_bytes, bytes, memory_order_relaxed);
    }
}

void client_memory_note(struct client *c)
{
    bool counts =
        !(c->flags & (CLIENT_NO_EVICT | CLIENT_FED | CLIENT_CLOSE_ASAP | CLIENT_UNREGISTERED));
    size_t bytes = counts ? client_memory_bytes(c) : 0;
    c->thread->clients_grew |= bytes > c->counted_bytes;
    set_counted(c, bytes);
}

void client_memory_forget(struct client *c)
{
    if (c->counted_bytes > 0) {
        set_counted(c, 0);
    }
}

static size_t sum_bytes(void)
{
    size_t sum = 0;
    for (int i = 0; i < server_thread_count(); i++) {
        sum += load(&server_thread_at(i)->clients_bytes);
    }
    return sum;
}

bool client_memory_describe(struct buf *out)
{
    if (!client_memory_is_limited() || limit_bytes() == SIZE_MAX) {
        return false;
    }
    buf_printf(out, "limit: %zu, tot-mem: %zu\n", limit_bytes(), sum_bytes());
    for (int i = 0; i < server_thread_count(); i++) {
        struct server_thread *t = server_thread_at(i);
        buf_printf(out, "thread %4d: tot-mem: %10zu, largest client at most: %10zu\n", i,
                   load(&t->clients_bytes), load(&t->largest_client_bytes));
    }
    return true;
}

/* The thread that may have the largest client; NULL when nobody has one that counts. */
static struct server_thread *thread_of_largest(void)
{
    struct server_thread *found = NULL;
    size_t largest = 0;
    for (int i = 0; i < server_thread_count(); i++) {
        struct server_thread *t = server_thread_at(i);
        size_t bytes = atomic_load_explicit(&t->largest_client_bytes, memory_order_acquire);
        if (bytes > largest) {
            largest = bytes;
            found = t;
        }
    }
    return found;
}

/* Looks at all clients of the thread anew, and closes the largest if there still is need. */
static void close_largest(struct server_thread *t)
{
    struct client *largest = NULL;
    size_t first = 0, second = 0;
    for (struct client *c = t->clients; c; c = c->thread_next) {
        client_memory_note(c);
        if (c->counted_bytes > first) {
            second = first;
            first = c->counted_bytes;
            largest = c;
        } else if (c->counted_bytes > second) {
            second = c->counted_bytes;
        }
    }
    if (largest && sum_bytes() > limit_bytes()) {
        log_notice("Closing client %s: the buffers of all clients have passed maxmemory-clients, "
                   "and its own %zu bytes are the most",
                   largest->session.peer, largest->counted_bytes);
        stats_add(STAT_EVICTED_CLIENTS, 1);
        client_close_asap(largest);
        client_memory_forget(largest);
        first = second;
    }
    /* Release: who sees the bound fall, and turns to another thread, sees the sum fallen. */
    atomic_store_explicit(&t->largest_client_bytes, first, memory_order_release);
}

static void receive_request(struct server_thread *t, void *argument);

/* Has another thread look after its largest client. */
static void ask(struct server_thread *t)
{
    if (!atomic_exchange(&t->asked_to_evict, true)) {
        server_thread_post(t, receive_request, NULL);
    }
}

/* The bound of a thread stays that of a client that has gone until the thread looks again, which it
 * does before it closes another one. */
static void keep_limit(struct server_thread *self)
{
    while (client_memory_is_limited() && sum_bytes() > limit_bytes()) {
        struct server_thread *t = thread_of_largest();
        if (!t) {
            return;
        }
        if (t != self) {
            ask(t);
            return;
        }
        close_largest(self);
    }
}

static void receive_request(struct server_thread *t, void *argument UNUSED)
{
    atomic_store(&t->asked_to_evict, false);
    keep_limit(t);
}

void client_memory_keep(struct server_thread *t)
{
    if (t->clients_grew) {
        t->clients_grew = false;
        keep_limit(t);
    }
}

static void recount(struct server_thread *t, void *argument UNUSED)
{
    for (struct client *c = t->clients; c; c = c->thread_next) {
        client_memory_note(c);
    }
    keep_limit(t);
}

void client_memory_recount_all(void)
{
    if (client_memory_is_limited()) {
        server_thread_post_all(recount, NULL);
    }
}
