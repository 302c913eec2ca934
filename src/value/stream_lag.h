/* How far a consumer group has come in its stream: its count of entries read, and the lag, which is
 * how many are still to be delivered. Both are worked out from what the stream knows without
 * looking at entries (struct stream_facts), and are unknown where deletions have made that
 * impossible: a number that is told is the right one. Pure functions, but for what they are given
 * to change.
 *
 * Let "rank" of an ID be the number of entries ever added up to it. A group's entries_read is the
 * rank of its last_id, as long as it is known, and never of an ID that the stream has not reached.
 * Trimming deletes from the front and leaves ranks known; XDEL behind an ID (max_deleted_id tells
 * that some was) makes it unknown how many of those that came after it are left.
 *
 * A group before the first of entries out of which some were deleted has all of them to come; this
 * is not told either, as Redis 7.2 does not. That one also tells wrong numbers where we tell right
 * ones or none: after a read past deleted or trimmed entries, which it counts as one; before the
 * first entry, when those between were deleted after the group had counted; at the last entry,
 * where it believes counters that were set by hand. */
#ifndef VALUE_STREAM_LAG_H
#define VALUE_STREAM_LAG_H

#include "value/stream.h"
#include "value/stream_group.h"

/* The rank of `id`, which need not be an entry's, as far as it can be estimated; else
 * STREAM_READ_UNKNOWN. Before the first entry all that are gone count as up to it. */
int64_t stream_rank(const struct stream_facts *facts, struct stream_id id);
/* How many entries that are there are to be delivered to the group, from 0 up; false when that is
 * unknown. */
bool stream_group_lag(const struct stream_facts *facts, const struct stream_group *g,
                      int64_t *lag) MUST_CHECK;
/* Somebody says where the group stands and how many it has read (or STREAM_READ_UNKNOWN): taken, as
 * far as the stream allows it. No group has read more than was ever added, and one that is beyond
 * the stream's last ID does not know what will be added before it. X */
void stream_group_place(const struct stream_facts *facts, struct stream_group *g,
                        struct stream_id id, int64_t entries_read);
/* The entry with `id`, the first behind last_id, is delivered: last_id and entries_read follow. X
 */
void stream_group_advance(const struct stream_facts *facts, struct stream_group *g,
                          struct stream_id id);
/* The stream's last ID went back, or (all) its count of entries is another, or what is known to be
 * deleted less: what groups counted and now cannot stand for is unknown. X */
void stream_groups_forget_counts(const struct stream_facts *facts, const struct radix *groups,
                                 bool all);
/* An entry with this ID has come in between: groups that are beyond it have lost count. X */
void stream_groups_forget_ranks(const struct radix *groups, struct stream_id id);

#endif
