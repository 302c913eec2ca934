/* How far a consumer group has come in its stream: its count of entries read, and the lag, which is
 * how many are still to be delivered. Both are worked out from what the stream knows without
 * looking at entries (struct stream_facts), the way Redis 7.2 does, and are unknown where deletions
 * have made that impossible. Pure functions.
 *
 * Let "rank" of an ID be the number of entries ever added up to it. A group's entries_read is the
 * rank of its last_id, as long as it is known. Trimming deletes from the front and leaves ranks
 * known; XDEL in the middle (a tombstone: max_deleted_id) makes those of IDs before it unknown. */
#ifndef VALUE_STREAM_LAG_H
#define VALUE_STREAM_LAG_H

#include "value/stream.h"
#include "value/stream_group.h"

/* The rank of `id`, or STREAM_READ_UNKNOWN. */
int64_t stream_rank(const struct stream_facts *facts, struct stream_id id);
/* How many entries are to be delivered to the group; false when that is unknown. Negative where
 * counters that were set by hand contradict one another. */
bool stream_group_lag(const struct stream_facts *facts, const struct stream_group *g,
                      int64_t *lag) MUST_CHECK;
/* The entry with `id`, behind last_id, is delivered: last_id and entries_read follow. X */
void stream_group_advance(const struct stream_facts *facts, struct stream_group *g,
                          struct stream_id id);

#endif
