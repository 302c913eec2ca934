/* Transactions: MULTI's queue and its end.
 *
 * Requests are queued when they are prepared, not when they run: what MULTI, EXEC and DISCARD do to
 * the queue depends on nothing else, so a pipeline of MULTI ... EXEC is one share of a batch. As
 * long as EXEC comes in the same batch, the queue only points to the requests; at the end of a
 * batch transaction_keep copies what must outlive it. EXEC takes the queue out of the session: it
 * becomes the call's execution, whose calls run one after the other, nested, in EXEC's own hold.
 *
 *   OUTSIDE --MULTI--> COLLECTING --EXEC, DISCARD, RESET--> OUTSIDE
 *
 * What WATCH has learnt belongs to the time of running: EXEC looks at it under the lock. State:
 * thread-owned, like the session. */
#ifndef ENGINE_TRANSACTION_H
#define ENGINE_TRANSACTION_H

#include "engine/call.h"

#include "base/arena.h"

struct kept_request;

/* What a call of EXEC, DISCARD, MULTI or WATCH has from the transaction in which it was sent; it
 * lives in the arena of the batch. */
struct execution {
    const struct command *cmd; /* whose it is */
    struct call *calls;        /* EXEC's */
    int count, ran, accounted;
    int needs_world; /* in the world: so many calls, up to the last that needs it for sure */
    uint32_t flags;  /* of all their commands together (enum command_flag) */
    enum call_access access;
    struct slice refusal; /* why nothing is run (EXECABORT); ptr NULL: it is */
    uint64_t begin_ticks,
        timed_ticks; /* when it began to run; what calls timed by themselves took */
    uint64_t ticks;  /* that calls without duration_ticks took together, as far as not accounted */
    int told;        /* so many have been shown to monitors and counted, in an earlier run */
    struct kept_request *kept;
};

/* ---- for who prepares calls, after call_prepare. No lock. ---- */

/* For a prepared call that concerns a transaction: its session is in one, or its command has
 * CMD_TRANSACTION. Queues it (c->refusal is TRANSACTION_QUEUED then: the call only replies so), or
 * opens or takes the queue. Arguments and keys are borrowed until transaction_keep. */
void transaction_advance(struct call *c, struct arena *arena);
static inline bool transaction_concerns(const struct call *c)
{
    return c->session->in_transaction || c->cmd->flags & CMD_TRANSACTION;
}
/* For a call that call_prepare has refused: the transaction it was sent in will not be run. True
 * when the call is an EXEC, which is to be run all the same, to say so. */
bool transaction_spoil(struct call *c, struct arena *arena) MUST_CHECK;
/* Flags of the call's command and, if it is an EXEC, of those in its queue, before and after
 * transaction_advance. */
uint32_t transaction_flags(const struct call *c);
/* Before transaction_advance: whether the call is to be queued and tells by its arguments what it
 * needs (command.h, flags_of), or is an EXEC with such calls in its queue; and what it needs then,
 * in the place of transaction_flags. */
bool transaction_asks(const struct call *c);
uint32_t transaction_told_flags(const struct call *c) REQUIRES(keyspace_lock);
/* The access of a call whose command has CMD_TRANSACTION. See call_access. */
enum call_access transaction_access(const struct call *c);
/* End of the batch, for a session that has s->transaction: copies what its queue has borrowed, or
 * frees the queue when it is closed. */
void transaction_keep(struct session *s);
/* Frees what an execution holds beyond the arena, when its call is done with. */
void transaction_release(struct execution *x);

/* The refusal that is none. */
extern const struct slice transaction_queued;

/* ---- for handlers ---- */

/* EXEC: runs the queue, or says why not. Holds what transaction_access says. */
void transaction_run(struct call *c);
/* WATCH: the call's keys. Holds what transaction_access says, or nothing beside a script that takes
 * long. */
void transaction_watch(struct call *c);
/* UNWATCH, DISCARD, RESET: the session watches nothing any more. Holds the same. */
void transaction_unwatch(struct call *c);

/* ---- for who keeps accounts ---- */

/* Accounts of an execution's calls: see call_account. */
void transaction_account(struct execution *x, int64_t wall_us);
/* The same, early, for those that an EXEC that runs has run so far, but for the last one, which
 * runs. */
void transaction_settle(struct execution *x, int64_t wall_us);
/* Requests in the queue or in the EXEC that runs; -1 outside of transactions. The session's thread,
 * or world. */
int transaction_length(const struct session *s);
/* Bytes that the queue and the watched keys hold. The session's thread, or world. */
size_t transaction_bytes(const struct session *s);
/* For session_deinit: drops queue and watched keys. */
void transaction_destroy(struct session *s) EXCLUDES(keyspace_lock);

#endif
