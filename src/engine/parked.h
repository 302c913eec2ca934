/* Parked calls: what call_block makes of a call that waits, as those see it who run calls (net/;
 * handlers see block.h). A parked call stands in the queues of its keys (keyspace/waiting.h) and is
 * run again by the writer that makes one of them ready, right after the writer's own call, under
 * the same hold.
 *
 *   NEW --parked_enqueue--> WAITING --served, parked_end--> DONE --parked_destroy-->
 *    `----------------------------- parked_destroy (nobody could wait after all) ---^
 *
 * Who makes it DONE (under the keyspace lock) answers for the reply: a waiter that is served is
 * told by its `finish`, a time-out or CLIENT UNBLOCK that comes later finds it done and is nothing.
 * State: keyspace while WAITING, its owner's before and after. */
#ifndef ENGINE_PARKED_H
#define ENGINE_PARKED_H

#include "engine/block.h"

struct parked_call;

/* Whether a prepared call may come to wait. Where that takes an option (BLOCK, as the command's
 * syntax says), one without it may not; where the command's row can tell (may_wait), it does. */
bool parked_possible(const struct call *c);
/* A deep copy of a call that is to wait, with what it waits for (takes b's state). For call_block,
 * and for who has a prepared call wait without running it first. */
struct parked_call *parked_create(const struct call *c, const struct block *b);
/* The handler's state. */
void *parked_state(const struct parked_call *p);

/* Tells the owner that the call has its reply. Runs under the keyspace lock on the thread of the
 * writer, which need not be a server thread; must not take a lock that ranks before, nor run calls,
 * unless the call is being tried (parked_is_tried). */
typedef void (*parked_finish)(struct parked_call *p, void *owner);

/* Before it is enqueued: the session that stands for the caller's from now on, and which logs are
 * told of what it does (PROPAGATE_TO). What it does when it is tried, and what `finish` does, is
 * one unit then. */
void parked_adopt(struct parked_call *p, struct session *session, unsigned targets);
/* Puts a call that has just set c->waits in the queues of its keys, in the hold in which it ran.
 * The session stays where it is, and is not changed, until the call is done. */
void parked_enqueue(struct parked_call *p, parked_finish finish, void *owner)
    REQUIRES(keyspace_lock);

enum parked_reason {
    PARKED_TIMED_OUT, /* replies what the command replies on time-out */
    PARKED_UNBLOCKED, /* replies -UNBLOCKED */
    PARKED_DEMOTED,   /* the same, because the server follows a primary now */
    PARKED_GONE,      /* replies nothing: nobody is there to read it */
};
/* Ends the wait for a reason of the owner's. False when it is done already (finish has been called,
 * or nothing is left to be told) or is being tried (finish will be called). finish is not called
 * for this. */
bool parked_end(struct parked_call *p, enum parked_reason reason) REQUIRES(keyspace_lock);
/* Whether it is being run again right now, `finish` included. */
bool parked_is_tried(const struct parked_call *p) REQUIRES(keyspace_lock);
/* What it waits for may have come before it was enqueued: it is tried at the end of the hold. */
void parked_look_again(struct parked_call *p) REQUIRES(keyspace_lock);
/* From now on nobody reads the reply (the client has been marked for closing): it is not served any
 * more. To be followed by parked_end. Owner, or world; no lock. */
void parked_abandon(struct parked_call *p);

/* Wall-independent milliseconds (clock_mono) at which the owner is to end it; INT64_MAX: never. */
int64_t parked_deadline_ms(const struct parked_call *p);
/* Whether CLIENT UNBLOCK leaves it waiting. */
bool parked_stays(const struct parked_call *p);
/* The finished reply; DONE only. */
const struct reply *parked_reply(const struct parked_call *p);
/* Whether its reply tells of a write that is in the log. DONE only. */
bool parked_has_written(const struct parked_call *p);
/* Adds to the time that the command has taken (the owner measures the first run itself). */
void parked_add_ticks(struct parked_call *p, uint64_t ticks);
/* Command statistics, slow log and latency of the finished command: its runs, not its waiting; of
 * none that was refused at last. No lock. */
void parked_account(struct parked_call *p, int64_t wall_us);
/* Bytes of memory. */
size_t parked_memory_bytes(const struct parked_call *p);
/* Frees it; not while WAITING. Nulls the caller's pointer. */
void parked_destroy(struct parked_call **p);

/* Serves the waiters of all keys that have become ready: keys in the order in which they did,
 * waiters of a key as they came, those that become ready by it as well. For call_run; every release
 * of the exclusive lock does the same for changes that no call made (expiry). */
void parked_serve(int64_t now_ms) REQUIRES(keyspace_lock);

/* Time that the calling thread has spent on running parked calls: it is theirs, not that of the
 * call after which they ran. Only grows. */
extern _Thread_local uint64_t parked_served_ticks;

/* ---- several nodes (active/delivery.h): each element goes to one of all who wait for it ---- */

struct parked_peers {
    /* Whether what is at the key is not to be given away here now, but by another node. */
    bool (*elsewhere)(const struct db *db, struct slice key);
    /* A call that takes things waits for keys; and does so no longer, its reply being there. */
    void (*begun)(struct parked_call *p);
    void (*ended)(struct parked_call *p);
};
/* NULL: this node is alone. World. */
extern const struct parked_peers *parked_peers;
/* They are new: a call that waits already, or does not, is told to them. */
void parked_join_peers(struct parked_call *p) REQUIRES(keyspace_lock);
/* Whether the call, which waits or may, leaves what is at its k-th key to another node. */
bool parked_is_elsewhere(const struct call *c, int k) REQUIRES(keyspace_lock);
/* Another node has served it: these bytes are its reply. WAITING. */
void parked_give(struct parked_call *p, struct slice reply) REQUIRES(keyspace_lock);
/* What the caller of begun has noted, 0 at first. */
uint64_t parked_number(const struct parked_call *p);
void parked_set_number(struct parked_call *p, uint64_t number);
/* Its request, database and protocol; the keys that it waits for. Borrowed. */
struct parked_facts {
    const struct command *cmd;
    int argc, key_count, proto;
    const struct slice *argv;
    const struct key *keys;
    struct db *db;
};
struct parked_facts parked_look(const struct parked_call *p);

/* Boot and its reverse. */
void parked_setup(void);
void parked_teardown(void);

#endif
