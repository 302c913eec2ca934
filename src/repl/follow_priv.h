/* What the files of follow.h share. State: see follow.h. */
#ifndef REPL_FOLLOW_PRIV_H
#define REPL_FOLLOW_PRIV_H

#include "base/compiler.h"
#include "base/slice.h"
#include "repl/follow.h"
#include "repl/follow_link.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

enum follow_state {
    FOLLOW_NOBODY,
    FOLLOW_CONNECT,
    FOLLOW_HANDSHAKE,
    FOLLOW_SYNC,
    FOLLOW_CONNECTED,
};

/* repl-diskless-load. */
enum follow_diskless { DISKLESS_DISABLED, DISKLESS_ON_EMPTY, DISKLESS_SWAP };

/* Shuts or opens the gates that a replica has. World, or the thread while it is awake. */
void follow_set_gates(void);
/* An option's `apply`. */
bool follow_apply_option(const struct option *option, const char **error);

/* A connection that stands: the handshake, the data set if need be, the stream, until it ends. The
 * following thread, after apply_setup; or a test in its place. */
void follow_talk(struct link *socket);
/* A data set comes over the link and replaces ours, which is history `id` at `offset` then. As
 * repl-diskless-load says:
 *
 *   disabled      to a file first, and from there in place of ours; -LOADING while it is read
 *   on-empty-db   straight from the link, if we have no keys (else as disabled); -LOADING
 *   swapdb        straight from the link into a data set aside (keyspace/db.h), which takes the
 *                 place of ours in one hold. Ours is served meanwhile if it is of the history that
 *                 comes; -LOADING otherwise.
 *
 * False, logged, when any of it failed. Then ours is empty and nobody's history, if it had begun to
 * be replaced; with swapdb it is what it was, as are our own replicas, which have to fetch
 * everything anew only once ours is replaced. */
bool follow_receive(struct follow_link *l, const char *id, uint64_t offset) MUST_CHECK;
/* The server is to end, now or when its own replicas have everything: the data stay as they are. */
bool follow_is_ending(void);
/* INFO's lines of a transfer that runs. */
void follow_write_transfer(struct buf *out);

#endif
