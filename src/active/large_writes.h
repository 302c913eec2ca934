/* Writes that no frame has room for (frame.h: 1 GiB): a value that was renamed, copied or restored
 * with more than that, a state of one, a transaction of so much. Such a write has its number, and
 * its keys have its dot, but no log has it, and the window counts it as gone: so whoever lacks it
 * gets the whole data set, whose records may be longer (full_sync_record.h). In its place stands a
 * unit that names its keys, `KEYDB.LARGE key` for each, which no peer may tell.
 *
 * State: keyspace (exclusive mode). */
#ifndef ACTIVE_LARGE_WRITES_H
#define ACTIVE_LARGE_WRITES_H

#include "active/merge.h"

/* Appends what stands in for these commands; nothing when they touch no key. Are the names alone
 * more than so many bytes, none of them is named. */
void large_write_put(struct slice commands, size_t bytes_max, struct buf *out);
/* A unit of those is our next one: its keys get its dot, and our position covers it. The logs are
 * the caller's. */
void large_write_take(struct merge *m, const struct unit *unit) REQUIRES(keyspace_lock);

#endif
