/* Clients that wait for keys (BLPOP ...): what a thread keeps of them, their time-outs, and the way
 * of a finished reply to its client. While it waits a client is CLIENT_BLOCKED: input is received
 * but not looked at, and it stays with its thread.
 *
 * Three parties may end a wait: the writer that serves it (on any thread, under the keyspace lock),
 * the time-out (the client's thread), and CLIENT UNBLOCK (in the world). The parked call's stage,
 * changed under the keyspace lock, says who was first; that one's reply is the only one. State:
 * thread-owned; the counts are atomic. */
#ifndef NET_BLOCKED_H
#define NET_BLOCKED_H

#include "engine/parked.h"
#include "net/server_thread.h"

/* The call of the client has just been run and waits: it is enqueued, the client blocked. `silent`:
 * its reply is not wanted (CLIENT REPLY). Owner's thread, in the hold in which the call ran. */
void blocked_begin(struct client *c, struct call *call, bool silent) REQUIRES(keyspace_lock);
/* Hands on what was finished in this thread's holds: replies to the thread's own clients, messages
 * to other threads. No lock. After each batch's replies, so that those of a client keep their
 * order. */
void blocked_deliver(struct server_thread *t) EXCLUDES(keyspace_lock);
/* The end of a turn: ends the waits whose time has come, and sets the timer for the next one.
 * True when there were some. */
bool blocked_run_timeouts(struct server_thread *t) EXCLUDES(keyspace_lock);
/* The client is marked for closing: it is served no more. Owner, or world. Harmless when it is not
 * blocked. */
void blocked_abandon(struct client *c);
/* The client goes: nothing of its wait is left. Owner, or when threads are gone. Harmless when it
 * is not blocked. */
void blocked_forget(struct client *c) EXCLUDES(keyspace_lock);
/* World: ends its wait as the reason says; false when it does not wait. Whoever hears of a demotion
 * is disconnected, so that a client library looks for the primary. */
bool blocked_unblock(struct client *c, enum parked_reason reason) REQUIRES(gil)
    EXCLUDES(keyspace_lock);

/* World: parked_peers are new, and hear of the client's wait, if it waits. */
void blocked_join_peers(struct client *c) REQUIRES(keyspace_lock);

/* Bytes of memory of the client's wait, 0 when there is none. Owner, or world. */
size_t blocked_memory_bytes(const struct client *c);
/* Clients that wait, and those of them with a time-out. Any thread. */
uint64_t blocked_count(void);
uint64_t blocked_timeout_count(void);

/* A thread's timer and memory. */
void blocked_setup_thread(struct server_thread *t);
void blocked_teardown_thread(struct server_thread *t);

#endif
