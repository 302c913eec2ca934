/* The turn: what a server thread does when it is awake (DESIGN, 2). Callbacks of the event loop
 * have collected input; here it is parsed into batches of calls, the calls run under the keyspace
 * lock, readers shared and writers exclusive, and the replies are sent. Requests of a client run in
 * order; those of different clients in any. State: thread-owned. */
#ifndef NET_TURN_H
#define NET_TURN_H

#include "net/server_thread.h"

/* Calls of one batch: two holds at most, of some microseconds. */
#define BATCH_CALLS 128
/* A hold is broken when slow calls in it have taken this long. */
#define HOLD_MAX_NS (50 * 1000)

/* Memory of a thread's batches. */
struct batch *batch_create(void);
void batch_destroy(struct batch *b);
/* One turn: everything on the ready list, one slice of every suspended client, then the closing
 * list. */
void turn_run(struct server_thread *t);
/* What was done for the thread, or by it, outside of a batch (a module's callbacks) goes its way:
 * messages, replies to clients that have waited. */
void turn_deliver_late(struct server_thread *t);
/* Accounts of what the calling server thread has run in this turn, early: for a call that shows
 * them (engine/execute.h, call_settle_accounts). On another thread nothing. */
void turn_account_so_far(void);

/* ---- for busy.c: beside a script of this thread that takes long, out of its hook ---- */

/* Runs what the ready list has, and nothing else of a turn. */
void turn_serve(struct server_thread *t);
/* The batch in which the script is: sends what its other clients have been replied so far (in
 * `reply`), and refuses what they still wait for. t->reply is another one. */
void turn_settle(struct server_thread *t, struct batch *batch, struct reply *reply,
                 const struct client *running);
/* Frees those of the thread's clients that are marked for closing, but for those that the turn
 * which stands still goes on with, and those that wait for keys or watch some. */
void turn_close_beside_script(struct server_thread *t);
/* The client of whose call in the batch the thread is amid; NULL: of none. */
const struct client *turn_running(const struct batch *batch);
/* Visits the clients of a batch. */
void turn_each_client(const struct batch *batch, void (*visit)(struct client *c));

#endif
