/* A whole data set on its way to replicas: a child process writes it as RDB, the sync thread puts
 * its bytes into a chain, and each replica's thread sends them from there.
 *
 *   by a file    "$" length CR LF | RDB
 *                the child writes a file, which is read when it is whole
 *   by a pipe    "$EOF:" mark CR LF | RDB | mark      (mark: 40 random bytes of text)
 *                for replicas that know it, and always where something is left out
 *
 *   RUNNING --all bytes are in the chain--> COMPLETE
 *      `-----the child failed, nobody wants it-----> FAILED
 *
 * State: the sync thread's; what replicas read is immutable or atomic. Counted: the sync thread and
 * each replica hold one. */
#ifndef REPL_TRANSFER_H
#define REPL_TRANSFER_H

#include "engine/gil.h"
#include "keyspace/lock.h"
#include "repl/chain.h"

enum transfer_state { TRANSFER_RUNNING, TRANSFER_COMPLETE, TRANSFER_FAILED };

struct transfer;

/* Forks the child: what it sends is the data as they are now, without the parts `left_out`
 * (persist/rdb_file.h); the stream behind it is for database `stream_db`. NULL (logged) when that
 * fails. */
struct transfer *transfer_start(bool by_pipe, int stream_db, unsigned left_out)
    REQUIRES(keyspace_lock);
/* One more that holds it, with a reader at its first byte. Before the sync thread's first
 * transfer_step. */
struct transfer *transfer_join(struct transfer *t, struct chain_reader *reader);
/* Lets go; nulls the caller's pointer. */
void transfer_release(struct transfer **t);

/* Whether it goes on. */
enum transfer_state transfer_state(const struct transfer *t);
/* True when it ends with a mark, and so with bytes that a replica may take for what follows. */
bool transfer_has_mark(const struct transfer *t);

/* ---- the sync thread's ---- */

/* What to poll for reading before the next step; -1: look again soon. */
int transfer_poll_fd(const struct transfer *t);
/* Bytes in the chain so far. */
uint64_t transfer_bytes(const struct transfer *t);
/* Moves some bytes from the child into the chain. */
void transfer_step(struct transfer *t);
/* Ends the child; FAILED unless it is COMPLETE. */
void transfer_abandon(struct transfer *t);

#endif
