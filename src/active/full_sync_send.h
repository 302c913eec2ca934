/* The sender of MERGE: all that a node has, as records (full_sync_record.h). It is of one moment:
 * the positions and the clock are noted in one exclusive hold, and the data set is told in the same
 * hold, or by a child that was forked in it. State: keyspace; changes nothing. */
#ifndef ACTIVE_FULL_SYNC_SEND_H
#define ACTIVE_FULL_SYNC_SEND_H

#include "keyspace/lock.h"
#include "active/node.h"

/* Where the records go, in order, in pieces of any length; false: nobody wants more. */
typedef bool (*full_sync_write_fn)(struct slice bytes, void *context);
/* One: into the open file or pipe that `context`, an int, is. */
bool full_sync_write_fd(struct slice bytes, void *context);

/* The moment: what our clients have written in this hold is settled, and the clock is told. Good
 * for this hold, and in a child forked in it. Not while the node is merging another one itself
 * (node_is_merging): then some keys have more than its positions say. */
struct full_sync_moment {
    const struct origins *origins;
    uint64_t clock;
    int first_db, dbs;
    const struct libraries *libraries;
};
struct full_sync_moment full_sync_now(struct node *n) REQUIRES(keyspace_lock);
/* Tells everything; false when the writer did not take it all. For a child as well: takes no lock,
 * logs nothing. */
bool full_sync_tell(const struct full_sync_moment *moment, full_sync_write_fn write,
                    void *context) MUST_CHECK REQUIRES_SHARED(keyspace_lock);

#endif
