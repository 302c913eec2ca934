/* A whole data set on its way to peers: a child writes it into a file without a name, each peer is
 * sent it from there, and then what came behind its moment, from the logs.
 *
 *   WRITING --the child has ended--> READY
 *      `----it failed---> FAILED
 *
 * There is one at a time. Whoever needs everything while it is written or sent joins it, as long as
 * the logs keep what came since.
 *
 * State: which there is, keyspace (exclusive mode); the child's end is noted by the cron; what
 * readers see is immutable or atomic. Counted. */
#ifndef ACTIVE_FULL_SYNC_SOURCE_H
#define ACTIVE_FULL_SYNC_SOURCE_H

#include "active/node.h"
#include "keyspace/lock.h"

#include <sys/types.h>

enum full_sync_source_state {
    FULL_SYNC_SOURCE_WRITING,
    FULL_SYNC_SOURCE_READY,
    FULL_SYNC_SOURCE_FAILED
};

struct full_sync_source;

/* The one that there is, if it will do for who wants what `needs` says then, or a new one of this
 * moment, whose child is forked. The caller lets go of it. NULL, with *error (logged), when there
 * can be none now: the node is merging one itself, a module has data that cannot be told so, or the
 * system refuses. */
struct full_sync_source *
full_sync_source_join(struct node *n,
                      bool (*will_do)(const struct version_vector *moment, void *context),
                      void *context, const char **error) MUST_CHECK REQUIRES(keyspace_lock);
/* The one that there is was of a node that is no more: nobody else gets it. Any thread. */
void full_sync_sources_forget(void);
/* Nulls the caller's pointer; nobody's any more, it is gone, and its child ended. Any thread. */
void full_sync_source_release(struct full_sync_source **source);

/* What it covers. */
const struct version_vector *full_sync_source_positions(const struct full_sync_source *s);
enum full_sync_source_state full_sync_source_state(const struct full_sync_source *s);
/* READY: its length, and bytes of it from `at` on; as pread(2). */
uint64_t full_sync_source_bytes(const struct full_sync_source *s);
ssize_t full_sync_source_read(const struct full_sync_source *s, char *to, size_t len, uint64_t at);
/* Cron: looks whether the child has ended; true when something has become READY or FAILED. */
bool full_sync_sources_look(void);

#endif
