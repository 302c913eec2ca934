/* See assign.h: placing. Balancing is in assign_balance.c. */
#include "net/assign.h"

#include <assert.h>
#include <stdatomic.h>

/* A replica counts for several clients: it gets every write. */
static uint64_t thread_clients(const struct server_thread *t)
{
    return atomic_load_explicit(&t->client_count, memory_order_relaxed) +
           atomic_load_explicit(&t->feed_count, memory_order_relaxed) *
               (uint64_t)(net_settings.replica_weighting_factor - 1);
}

struct server_thread *assign_thread(void)
{
    /* Only the thread that accepts comes here. */
    static unsigned turn;
    int count = server_thread_count();
    assert(count > 0);
    if (!net_settings.active_client_balancing) {
        return server_thread_at((int)(turn++ % (unsigned)count));
    }
    struct server_thread *fewest = server_thread_at(0);
    for (int i = 0; i < count; i++) {
        struct server_thread *t = server_thread_at(i);
        uint64_t clients = thread_clients(t);
        if (clients < (uint64_t)net_settings.min_clients_per_thread) {
            return t;
        }
        if (clients < thread_clients(fewest)) {
            fewest = t;
        }
    }
    return fewest;
}

static void adopt(struct server_thread *t, void *argument)
{
    struct client *c = argument;
    client_adopt(c, t);
    client_tell_come(c);
    c->commands_marked = c->commands;
}

void assign_client(struct client *c, struct server_thread *t)
{
    assert(c->flags & CLIENT_UNREGISTERED);
    atomic_fetch_add_explicit(&t->client_count, 1, memory_order_relaxed);
    server_thread_post(t, adopt, c);
}
