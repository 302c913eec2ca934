/* What is done for a phase of a batch ahead of its calls. See turn_priv.h.
 *
 * Looking ahead (engine/lookahead.h): the keys were brought towards the cache while the batch was
 * parsed, which needs no lock; what hangs off them may be looked at under the lock alone. */
#include "engine/lookahead.h"
#include "engine/transaction.h"
#include "net/turn_priv.h"

/* Arguments of a call that names few members. */
#define LONELY_ARGS 4

/* What a call, or the transaction that it runs, will look up. */
static bool add(struct lookahead *a, const struct call *call) REQUIRES_SHARED(keyspace_lock)
{
    const struct execution *x = call->execution;
    bool room = lookahead_add(a, call);
    for (int i = 0; x && room && i < x->count; i++) {
        room = lookahead_add(a, &x->calls[i]);
    }
    return room;
}

/* True when the batch is one call of a member or two: it would be looked up twice, for nothing. */
static bool is_lonely(const struct batch *b)
{
    return b->call_count == 1 && !b->calls[0].execution && b->calls[0].argc <= LONELY_ARGS;
}

void turn_look_ahead(const struct batch *b, enum call_access access)
{
    struct lookahead a;
    if (is_lonely(b)) {
        return;
    }
    lookahead_begin(&a);
    for (int i = 0; i < b->client_count; i++) {
        const struct batch_client *bc = &b->clients[i];
        int count = bc->access == access ? bc->count - bc->world_last : 0;
        for (int k = bc->ran; k < count; k++) {
            if (!add(&a, &bc->calls[k])) {
                lookahead_fetch(&a);
                return;
            }
        }
    }
    lookahead_fetch(&a);
}

void turn_remove_due_members(struct server_thread *t)
{
    struct batch *b = t->batch;
    int left = PREFETCH_KEYS;
    if (!keyspace_try_shared()) {
        return;
    }
    for (int i = 0; i < b->client_count; i++) {
        const struct batch_client *bc = &b->clients[i];
        int count = bc->access == ACCESS_EXCLUSIVE ? bc->count - bc->world_last : 0;
        for (int k = bc->ran; k < count; k++) {
            const struct call *call = &bc->calls[k];
            for (int key = 0; key < call->key_count && left > 0; key++, left--) {
                db_note_due(call->db, &call->keys[key], call->now_ms);
            }
        }
    }
    keyspace_unlock_shared();
    turn_run_expire_notes(t);
}
