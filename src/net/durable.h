/* Replies to writes that wait until the writes are on the disk (appendfsync always;
 * engine/commit.h), or until the kernel has them. While it waits a client is CLIENT_COMMITTING: its
 * replies are kept in its output queue, and its requests are not looked at, so that what it is told
 * keeps its order and no reply waits for a later write of its own. One sync lets go of all that
 * waited for it, on all threads. Clients that have written nothing do not wait.
 *
 * When the log fails, those whose writes it has not made safe are told so at once, instead of all
 * that they would have been told, and their connections end: what they have done stays done in
 * memory, and gets to the disk when that works again, but nobody can tell them when. (Later
 * clients' writes are refused, which changes nothing and ends nothing.)
 *
 * Where no sync is waited for, the batches of a turn go to the kernel together: each write is a
 * system call with a transaction of the file system in it, which costs as much as 30 commands.
 * State: thread-owned; the wish to be told is atomic.
 */
#ifndef NET_DURABLE_H
#define NET_DURABLE_H

#include "engine/commit.h"
#include "net/server_thread.h"

/* Boot and its reverse, for a thread; durable_setup once for all. */
void durable_setup(void);
/* The server threads have started, or are about to be stopped: the log's thread tells them of syncs
 * only in between. */
void durable_serve(bool serving);
void durable_teardown_thread(struct server_thread *t);

/* Before the writes of a batch, without lock: where the log ends. Waits a little while the disk is
 * far behind. */
static inline uint64_t durable_begin_writes(void)
{
    if (commit_is_crowded()) {
        commit_yield();
    }
    return commit_appended();
}
/* Before the requests of a batch are looked at: what durable_end_writes is to know. */
static inline uint32_t durable_begin_batch(void)
{
    return commit_faults();
}
/* What a turn's batches gather at most before the kernel gets it: replies wait for no more. */
#define DURABLE_GATHER_BYTES ((uint64_t)64 * 1024)
/* After them: the position that must be safe before writers are told, 0 when they need not wait:
 * then the kernel has it. `faults` is of durable_begin_batch: has the log failed all the time,
 * clients have written nothing, only what was over has been removed for them. `more`: further
 * batches follow in the turn, at whose end there is durable_deliver. */
static inline uint64_t durable_end_writes(uint64_t log_before, uint32_t faults, bool more)
{
    uint64_t log_after = commit_appended();
    if (likely(log_after == log_before) || unlikely(faults & 1 && faults == commit_faults())) {
        return 0;
    }
    if (commit_is_gated()) {
        commit_kick();
        return log_after;
    }
    if (more && log_after - commit_written() < DURABLE_GATHER_BYTES) {
        return log_after;
    }
    commit_write(log_after);
    return 0;
}

/* What the client is sent from now on waits for the sync that covers `position`. Owner's thread,
 * before the replies are delivered. */
void durable_hold(struct client *c, uint64_t position);
/* The same for a reply whose writes, of whichever thread, are all behind: holds the client where
 * replies wait for syncs, or else has the kernel take them. */
static inline void durable_hold_writes(struct client *c)
{
    uint64_t position = commit_appended();
    if (commit_is_gated()) {
        durable_hold(c, position);
    } else {
        commit_write(position);
    }
}
/* Lets go of clients whose writes are safe by now, and has this thread told of the next ones; what
 * was gathered goes to the kernel. At the end of each turn. Owner; no lock. */
void durable_deliver(struct server_thread *t);
/* Between two batches of a turn, with clients that wait: when the kernel has got all of what was
 * gathered, lets go of them. No client of a batch is between being parsed and being finished. */
void durable_end_gathering(struct server_thread *t);
/* The client goes. Harmless when it does not wait. */
void durable_forget(struct client *c);

#endif
