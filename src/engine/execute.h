/* Running calls: the checks before (known, arity, authenticated), the dispatch under the right
 * lock, and what is kept of it after (statistics, slow log, latency, MONITOR). One dispatch
 * function serves everyone. */
#ifndef ENGINE_EXECUTE_H
#define ENGINE_EXECUTE_H

#include "engine/call.h"

#include "base/arena.h"

/* Resolves a request into a call: finds the command, the session's database and the keys, hashes
 * them, checks arity and authentication. What changes the session (SELECT, AUTH ...) has
 * CMD_BARRIER: the requests behind it are prepared after it has run. The caller has set argc, argv,
 * blobs and session; the rest is zero. Keys are allocated in `arena`. A request that is refused
 * keeps the error's text in c->refusal, to be replied at the call's turn in the stream. No lock. */
void call_prepare(struct call *c, struct arena *arena);

/* For a call that was prepared when the session was another user's: refuses it where this one may
 * not run it. */
void call_check_user_again(struct call *c, struct arena *arena);

/* Appends what a call of a command that does not exist is told ("ERR ..."); replies it. */
void call_append_unknown(const struct call *c, struct buf *text);
/* The same of a subcommand. */
void call_append_unknown_sub(const struct call *c, const struct command *container,
                             struct buf *text);
/* Replies that the server has no such command. */
void call_reply_unknown(struct call *c);

/* The part of call_prepare that finds and hashes the keys, for a call that was prepared before and
 * whose arguments have moved since. */
void call_find_keys(struct call *c, struct arena *arena);

/* Runs a prepared call's handler, or replies its refusal. reply, now_ms and held are set. The
 * caller holds what call_access() says of it, or exclusive for shared (nothing for a refused
 * one). Afterwards, a call that goes on in slices has continuation.step set; one that has
 * needs_exclusive set did nothing and must be run again, in exclusive mode; one that waits has its
 * copy in c->parked, which is the caller's: to be enqueued in the same hold. A call that is not
 * nested serves, before it returns, those who waited for what it has changed. */
void call_run(struct call *c);
/* The call that the calling thread runs, the innermost one; NULL between calls. For the report of a
 * crash. */
extern _Thread_local const struct call *call_running;
/* Runs one more slice, under the lock that continuation.access names; true when the call is done
 * (its continuation is destroyed then). One that must not run any more (gate_refusal_midway) ends
 * with that error. */
bool call_continue(struct call *c) MUST_CHECK;
/* Ends a continuation that nobody will run any more (its client has gone). */
void call_abandon(struct continuation *continuation);

/* After the hold, without lock: `count` consecutive calls of one session took `ticks` together,
 * those with duration_ticks set not counted: they were measured by themselves. Feeds command
 * statistics, slow log, latency monitor. A call that waits is accounted when it is done
 * (parked.h). */
void call_account(struct call *calls, int count, uint64_t ticks, int64_t wall_us);

/* What has run before the call that runs now is accounted by its batch, and what it does not see in
 * the statistics yet would be missed: calls that show figures (INFO, SLOWLOG, LATENCY) have it
 * accounted at once. No lock, or any mode of the keyspace lock. */
void call_settle_accounts(void);
/* Boot: who can do that. */
void call_set_settle(void (*settle)(void));

/* Called for every call, just after its handler has run, while some client monitors (net/ sets it
 * at boot). */
typedef void (*call_observer)(const struct call *c, int64_t wall_us);
void call_set_observer(call_observer observer);
/* Tells the observer of a call before it has run: of one with CMD_SKIP_MONITOR, which is shown
 * before those that it runs. */
void call_observe(const struct call *c);
/* True while somebody monitors: costs one relaxed load a call. */
void call_set_observed(bool observed);

#endif
