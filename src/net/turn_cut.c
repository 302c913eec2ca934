/* Commands that nobody expected to wait. See turn_priv.h.
 *
 * A module may block its client in any command, and nearly none ever does: so what a client sends
 * behind such a command is in the same batch, unless the command has blocked a client lately
 * (struct command_row, may_wait). When it does, the batch is cut there: requests behind it are
 * copied, and prepared anew when the client has its reply. For that nothing may have been done to
 * the client's session when they were prepared: what opens, fills or takes a transaction, and what
 * ends the stream, is put off to the next batch (turn.c, `uncertain`). */
#include "engine/execute.h"
#include "net/held.h"
#include "net/input.h"
#include "net/turn_priv.h"

#include <assert.h>

void turn_put_off(struct server_thread *t, struct batch_client *bc, struct call *call)
{
    struct request request = {call->argc, call->argv, call->blobs};
    assert(call == &bc->calls[bc->count - 1] && !call->execution);
    held_put_first(bc->client, &request);
    parser_release(&request);
    t->batch->call_count--;
    bc->count--;
}

struct request turn_take_held(struct batch_client *bc, size_t *rest)
{
    struct held_request *held = held_take(bc->client);
    held->next = bc->held;
    bc->held = held;
    bc->owns = true;
    *rest = input_bytes(bc->client).len + (bc->client->held != NULL);
    return held->request;
}

bool turn_may_be_cut(const struct client *c)
{
    return c->session.subscriptions == 0 && !c->session.tracking && !(c->flags & CLIENT_AUDITED);
}

void turn_cut(struct server_thread *t, struct batch_client *bc, int index)
{
    struct client *c = bc->client;
    int ordinary = bc->count - bc->world_last - (index + 1);
    assert(bc->uncertain && bc->ran == index + 1);
    for (int i = bc->count - 1; i > index; i--) { /* from the last one: each goes before those */
        const struct call *call = &bc->calls[i];
        struct request request = {call->argc, call->argv, call->blobs};
        assert(!call->execution && call->argc > 0);
        held_put_first(c, &request);
        parser_release(&request);
    }
    t->batch->cut += bc->count - (index + 1);
    t->batch->phase_calls -= ordinary;
    bc->count = index + 1;
    bc->world_last = false;
    c->session.last_command = bc->calls[index].cmd;
}
