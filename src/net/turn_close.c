/* The turn's end for clients that are marked for closing: they are freed. A client that is freed is
 * on no list any more. */
#include "net/turn_priv.h"

#include "engine/modules.h"
#include "net/client.h"

/* What it waits for and watches, and who is told that it goes, is the keyspace's, which is not to
 * be had beside a script that takes long. */
static bool needs_keyspace(const struct client *c)
{
    return c->blocked || c->session.watches.count > 0 || modules_want(MODULES_CLIENT);
}

static bool may_close(const struct client *c)
{
    if (!needs_keyspace(c)) {
        return true;
    }
    bool free = keyspace_try_exclusive();
    if (free) {
        keyspace_unlock_exclusive();
    }
    return free;
}

void turn_close_clients(struct server_thread *t)
{
    /* Suspended ones were skipped, and who was made ready behind the ready list's end, and then
     * closed, is passed over by the next turn. */
    uint32_t kept = 0;
    bool beside_script = false;
    for (uint32_t i = 0; i < t->closing_count; i++) {
        struct client *c = t->closing[i];
        bool may = may_close(c);
        if (likely(may && !(c->flags & CLIENT_ON_READY_LIST))) {
            client_tell_gone(c);
            client_destroy(c);
        } else {
            t->closing[kept++] = c;
            beside_script |= !may;
        }
    }
    t->closing_count = kept;
    t->more_to_do |= kept > 0;
    if (unlikely(beside_script)) {
        server_thread_pause(t, &turn_busy_pause);
    }
}

/* Clients of the batch that the script is in, on the ready list that it has left, or with a
 * continuation on the list of the suspended: the turn that stands still knows them. */
#define TURN_KNOWS (CLIENT_IN_BATCH | CLIENT_ON_READY_LIST | CLIENT_SUSPENDED)

void turn_close_beside_script(struct server_thread *t)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->closing_count; i++) {
        struct client *c = t->closing[i];
        if (c->flags & TURN_KNOWS || needs_keyspace(c)) {
            t->closing[kept++] = c;
        } else {
            client_destroy(c);
        }
    }
    t->closing_count = kept;
}
