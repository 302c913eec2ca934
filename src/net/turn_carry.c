/* Replies that are carried from one batch to the next. See turn_priv.h.
 *
 * A request that changes how those behind it are understood ends its batch: a client that sends
 * many such in one pipeline would have each reply by a system call of its own, which costs more
 * than all the rest. So the replies stand where they are, in the thread's reply, until the client's
 * share of a batch is its last one; then they go out together.
 *
 * They wait for nothing but calls of the same client in the same turn that are quick, and not for
 * long: a batch that may take long, waits for the disk or for a script begins when they are sent.
 * Nobody but the batch writes to the client meanwhile: one that is told messages or invalidations
 * has the replies before them at once. */
#include "base/clock.h"
#include "engine/commit.h"
#include "engine/transaction.h"
#include "net/output.h"
#include "net/turn_priv.h"

#include <assert.h>

/* What is carried at most: bytes in the thread's reply, and how old it may be when a batch begins.
 */
#define CARRY_BYTES ((size_t)16 * 1024)
#define CARRY_NS (100 * 1000)

/* Joins ranges that follow one another, as those of a client do that is alone in its batch. */
static void join(struct batch_client *bc)
{
    uint8_t joined = 0;
    for (uint8_t i = 1; i < bc->replied; i++) {
        if (bc->pieces[i].begin == bc->pieces[joined].end) {
            bc->pieces[joined].end = bc->pieces[i].end;
        } else {
            bc->pieces[++joined] = bc->pieces[i];
        }
    }
    bc->replied = joined + 1;
}

/* Whether the client is told something beside its replies. */
static bool is_told_more(const struct client *c)
{
    return c->session.subscriptions > 0 || c->session.tracking || c->redirect ||
           c->flags & (CLIENT_MONITOR | CLIENT_FED);
}

bool turn_carry(struct server_thread *t, struct batch_client *bc)
{
    struct batch *b = t->batch;
    uint64_t now_ticks = clock_ticks();
    uint64_t since_ticks = bc->carried ? b->carried.since_ticks : now_ticks;
    if (bc->replied > 1) {
        join(bc);
    }
    if (bc->exhausted || bc->replied != 1 || !turn_may_parse(bc->client) ||
        is_told_more(bc->client) || t->reply.has_blobs || reply_bytes(&t->reply) > CARRY_BYTES ||
        commit_is_gated() || keyspace_is_busy() ||
        clock_ticks_to_ns(now_ticks - since_ticks) > CARRY_NS) {
        return false;
    }
    b->carried = (struct carried){bc->client, bc->pieces[0], since_ticks};
    return true;
}

/* Whether a call of the batch may take long: its work grows with the data, and is not done in
 * slices. */
static bool may_take_long(const struct batch *b)
{
    for (int i = 0; i < b->call_count; i++) {
        const struct call *call = &b->calls[i];
        uint32_t flags = call->cmd ? transaction_flags(call) : 0;
        if (flags & CMD_SLOW &&
            (!(call->cmd->flags & CMD_BARRIER) || call->cmd->flags & CMD_MODULE)) {
            return true;
        }
    }
    return false;
}

void turn_take_carried(struct server_thread *t)
{
    struct batch *b = t->batch;
    struct batch_client *bc = &b->clients[0];
    assert(b->client_count > 0 && bc->client == b->carried.client && bc->replied == 0);
    /* (One that is to be closed behind its last reply is sent nothing before that.) */
    if (may_take_long(b) && !(bc->client->flags & CLIENT_CLOSE_AFTER_REPLY)) {
        output_ranges(bc->client, &t->reply, &b->carried.pieces, 1);
    } else {
        bc->pieces[0] = b->carried.pieces;
        bc->replied = bc->carried = 1;
    }
    b->carried.client = NULL;
}
