/* What turn.c and its siblings turn_*.c share: the batch. State: thread-owned. */
#ifndef NET_TURN_PRIV_H
#define NET_TURN_PRIV_H

#include "engine/call.h"
#include "net/turn.h"
#include "resp/parser.h"

#include <time.h>

/* Most keys of a batch that are prefetched: what fits the first cache levels beside everything
 * else. */
#define PREFETCH_KEYS 512
struct batch_client {
    struct client *client;
    struct call *calls;
    int count;     /* the last one is a world call when world_last */
    int ran;       /* ordinary calls that were run: all, unless the client was closed meanwhile */
    int accounted; /* of those that were run */
    enum call_access access; /* of all but a world call; rises when a read must write */
    bool world_last;
    bool wrote;                /* the log has grown while it had the lock, or the world */
    bool exhausted;            /* its input is parsed as far as it goes */
    bool empty;                /* there was none to parse, as behind a barrier */
    bool uncertain;            /* some call may wait that is not its last one (turn_cut.c) */
    bool owns;                 /* some call has blobs or an execution, or there is a held request */
    uint8_t replied;           /* phases in which it got replies, and `carried` */
    uint8_t carried;           /* 1: the first of `pieces` is of its batches before this one */
    struct held_request *held; /* that it has taken, only when owns */
    struct reply_range pieces[ACCESS_WORLD + 2]; /* of the reply: the first `replied` are set */
};

/* How many calls each phase has. */
struct plan {
    int calls[ACCESS_WORLD + 1];
};

/* A key whose bucket is on its way to the cache. */
struct batch_key {
    const struct table_bucket *bucket;
    const struct key *key;
};

/* Replies of a batch that wait for those of the next one of their client: see turn_carry.c. They
 * stand in t->reply. */
struct carried {
    const struct client *client; /* the first on the ready list; NULL: there is nothing */
    struct reply_range pieces;
    uint64_t since_ticks; /* when the first of them was there */
};

/* A stretch of a phase, in which nothing waits. */
struct hold {
    uint64_t begin_ticks, served; /* parked_served_ticks then */
    const uint64_t *slow_ticks; /* of calls that are timed by themselves; NULL: there is no hold */
};

struct batch {
    struct call calls[BATCH_CALLS];
    struct batch_key keys[PREFETCH_KEYS];
    struct batch_client clients[BATCH_CALLS];
    int call_count, client_count;
    int cut; /* calls that were taken back */
    int key_count;
    uint32_t looks_ahead; /* not 0: some call does */
    struct plan plan;
    uint64_t log_position;       /* that replies to writers wait for; 0: they do not */
    uint32_t log_faults;         /* of durable_begin_batch */
    struct carried carried;      /* between two batches */
    int64_t now_ms;              /* of the turn */
    struct parser_limits limits; /* of clients that may run commands */
    /* Time that the calls of the phase took, waiting for the lock not counted, as far as it is not
     * charged to them; and how many there are to be charged. */
    uint64_t phase_ticks;
    int phase_calls;
    struct hold hold;
    const struct call *running;
};

/* turn_account.c: the time since the hold began, or was charged, is the phase's. */
void turn_charge_hold(struct batch *b);
/* turn_account.c: charges the phase's time to its calls in equal shares. Statistics, slow log. */
void turn_account_phase(struct server_thread *t);

/* turn.c: runs what is left of a client's ordinary calls. */
void turn_run_client(struct server_thread *t, struct batch_client *bc);
/* turn.c: the client's share of the batch is done, its replies are sent. */
void turn_finish_client(struct server_thread *t, struct batch_client *bc);

/* turn_cut.c: the call added last is looked at in the client's next batch, before what is behind
 * it. */
void turn_put_off(struct server_thread *t, struct batch_client *bc, struct call *call);
/* turn_cut.c: the first of the client's requests that are held; *rest is not 0 where there is more
 * behind it. */
struct request turn_take_held(struct batch_client *bc, size_t *rest);
/* turn_cut.c: whether what follows a call that may wait, but is not expected to, can be taken back:
 * nobody has been told of it. */
bool turn_may_be_cut(const struct client *c);
/* turn_cut.c: call `index`, which has just run, waits: takes back those behind it. */
void turn_cut(struct server_thread *t, struct batch_client *bc, int index);

/* turn.c: removes what the thread's reads have found to be over. */
void turn_run_expire_notes(struct server_thread *t);

/* Whether the client's next request may be looked at. */
static inline bool turn_may_parse(const struct client *c)
{
    return !(c->flags & (CLIENT_CLOSE_ASAP | CLIENT_CLOSE_AFTER_REPLY | CLIENT_SUSPENDED |
                         CLIENT_PAUSED | CLIENT_BLOCKED | CLIENT_COMMITTING));
}
/* turn_carry.c: the batch has run. Joins the ranges of a client that goes on with the next one, or
 * has carried replies; tells whether its replies are to be sent with those of the next batch. They
 * are kept then. */
bool turn_carry(struct server_thread *t, struct batch_client *bc) MUST_CHECK;
/* turn_carry.c: the next batch is filled and its first client has carried replies: they become its
 * first ones here, or are sent now, where what is to run may take long. */
void turn_take_carried(struct server_thread *t);

/* turn_ahead.c: what the calls of an access mode that are to run will look up in the values of
 * their keys is brought towards the cache. Under the lock, before the first of them runs. */
void turn_look_ahead(const struct batch *b, enum call_access access) REQUIRES_SHARED(keyspace_lock);

/* Due members of keys that the exclusive phase is about to open go first, in short holds of their
 * own: opening a key takes them out all at once. */
void turn_remove_due_members(struct server_thread *t) EXCLUDES(keyspace_lock);

/* turn_close.c: frees the clients that are marked for closing; those that cannot go yet have their
 * turn later. */
void turn_close_clients(struct server_thread *t);

/* turn_slices.c: every suspended client has one slice a turn, so that the others wait for one at
 * most. */
void turn_step_suspended(struct server_thread *t);
/* How long a thread that has something to do later sleeps beside a script that takes long. */
extern const struct timespec turn_busy_pause;

/* turn_busy.c: the call will not be run; `why` is said instead. */
void turn_refuse_call(struct server_thread *t, struct call *call, const char *why);
/* The lock is not to be had soon: refuses the clients of an access mode from `from` on. Returns
 * where to go on: at `from`, when the lock is to be had after all. */
int turn_refuse_some(struct server_thread *t, enum call_access access, int from);

#endif
