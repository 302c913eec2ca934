/* Batches beside a script that takes long: calls that would have to wait for it are refused. See
 * turn.h and busy.h. */
#include "engine/commit.h"
#include "engine/execute.h"
#include "engine/gate.h"
#include "engine/transaction.h"
#include "net/durable.h"
#include "net/output.h"
#include "net/turn_priv.h"

void turn_refuse_call(struct server_thread *t, struct call *call, const char *why)
{
    static const char begin[] = "EXECABORT Transaction discarded because of: ";
    size_t len = strlen(why);
    if (call->refusal.ptr) {
        return;
    }
    if (!(call->execution && call->cmd->row->transaction == TRANSACTION_RUNS)) {
        call->refusal = slice_of(why, len);
    } else if (!call->execution->refusal.ptr) { /* it runs, to say so and to end its watches */
        char *text = arena_alloc(&t->arena, sizeof(begin) + len);
        memcpy(text, begin, sizeof(begin) - 1);
        memcpy(text + sizeof(begin) - 1, why, len);
        call->execution->refusal = slice_of(text, sizeof(begin) - 1 + len);
    }
}

/* Refuses what is left of a client's ordinary calls, but for those that may run beside a script:
 * these do, with nothing held. */
static void refuse_client(struct server_thread *t, struct batch_client *bc, const char *why)
{
    enum call_access access = bc->access;
    for (int i = bc->ran; i < bc->count - bc->world_last; i++) {
        if (!(bc->calls[i].cmd && bc->calls[i].cmd->flags & CMD_ALLOW_BUSY)) {
            turn_refuse_call(t, &bc->calls[i], why);
        }
    }
    bc->access = ACCESS_NONE;
    turn_run_client(t, bc);
    bc->access = access;
}

int turn_refuse_some(struct server_thread *t, enum call_access access, int from)
{
    struct batch *b = t->batch;
    const char *why = gate_busy_refusal();
    for (; why && from < b->client_count; from++) {
        if (b->clients[from].access == access) {
            refuse_client(t, &b->clients[from], why);
        }
    }
    return from;
}

/* ---- the batch of a script that takes long ---- */

/* Stands in a batch for clients that have been served already. */
static _Thread_local struct client nobody = {.flags = CLIENT_CLOSE_ASAP};

/* Sends what the client has been replied (in `reply`), refuses what it still waits for, and lets it
 * go: its next requests are another batch's. */
static void settle_client(struct server_thread *t, struct batch_client *bc, struct reply *reply,
                          const char *why)
{
    if (bc->replied && bc->wrote) {
        durable_hold_writes(bc->client);
    }
    output_ranges(bc->client, reply, bc->pieces, bc->replied);
    bc->replied = 0;
    bc->world_last = false;
    refuse_client(t, bc, why);
    output_ranges(bc->client, &t->reply, bc->pieces, bc->replied);
    bc->replied = 0;
    call_account(bc->calls + bc->accounted, bc->ran - bc->accounted, 0, t->wall_us);
    bc->client->commands += (uint64_t)(bc->ran - bc->accounted);
    bc->accounted = bc->ran;
    turn_finish_client(t, bc);
    bc->client->flags &= ~(uint32_t)CLIENT_IN_BATCH;
    bc->client = &nobody;
    bc->owns = false;
    bc->exhausted = true;
}

void turn_settle(struct server_thread *t, struct batch *batch, struct reply *reply,
                 const struct client *running)
{
    const char *why = gate_busy_refusal();
    for (int i = 0; why && i < batch->client_count; i++) {
        struct batch_client *bc = &batch->clients[i];
        if (bc->client != running && bc->client != &nobody) {
            settle_client(t, bc, reply, why);
        }
    }
    if (unlikely(t->committing_count > 0)) {
        commit_kick();
        durable_deliver(t);
    }
}

const struct client *turn_running(const struct batch *batch)
{
    return batch->running ? client_of(batch->running->session) : NULL;
}

void turn_each_client(const struct batch *batch, void (*visit)(struct client *c))
{
    for (int i = 0; i < batch->client_count; i++) {
        visit(batch->clients[i].client);
    }
}
