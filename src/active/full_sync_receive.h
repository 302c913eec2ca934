/* The receiver of MERGE: a peer's whole data set (full_sync_record.h), which first comes aside,
 * into a file, every record of it checked as it comes; when it is there, it is merged with ours key
 * by key, in holds of a few milliseconds. So a link that breaks leaves nothing behind, and what is
 * merged is whole, whatever becomes of the link.
 *
 *   COMING --its last record--> WHOLE --begin--> THEIRS --> WINDOW --> OURS --> MET
 *      `--a record that is none--> BROKEN
 *
 *   THEIRS   each key of the data set
 *   WINDOW   keys of our window that it does not have
 *   OURS     keys here that it does not have
 *
 * Between holds our clients write on, and peers' units that the data set does not cover are taken;
 * those that it covers wait (RECEIVED_LATER). No states are told, no data set of ours is, and
 * none of our files may be written from the data meanwhile.
 *
 *   while (full_sync_is_merging(c)) {
 *       if (!full_sync_read(c, &error)) ...the disk; see there
 *       keyspace_lock_exclusive();
 *       full_sync_step(c, node, now_ms, 2000);
 *       keyspace_unlock_exclusive();
 *       reclaim_run();
 *   }
 *
 * State: its owner's; begin and step are for the keyspace's exclusive mode. */
#ifndef ACTIVE_FULL_SYNC_RECEIVE_H
#define ACTIVE_FULL_SYNC_RECEIVE_H

#include "active/full_sync_record.h"
#include "active/node.h"

enum full_sync_phase {
    FULL_SYNC_COMING,
    FULL_SYNC_BROKEN, /* to be destroyed, and its link closed */
    FULL_SYNC_WHOLE,
    FULL_SYNC_THEIRS,
    FULL_SYNC_WINDOW,
    FULL_SYNC_OURS,
    FULL_SYNC_MERGED,
};

struct full_sync;

/* Nothing has come. `fd_take`: an empty file, open for reading and writing. */
struct full_sync *full_sync_create(int fd_take);
/* Of one that does not merge yet: our positions when it was asked for (merge.h). Without them those
 * of the moment count. */
void full_sync_note_had(struct full_sync *c, struct version_vector *had_take);
/* NULL: there are none. */
const struct version_vector *full_sync_had(const struct full_sync *c);
/* Nulls the caller's pointer. What is merging goes to its end first, unless that is the process's.
 */
void full_sync_destroy(struct full_sync **c);
enum full_sync_phase full_sync_phase(const struct full_sync *c);
static inline bool full_sync_is_merging(const struct full_sync *c)
{
    return full_sync_phase(c) >= FULL_SYNC_THEIRS && full_sync_phase(c) <= FULL_SYNC_OURS;
}
/* Keys that have come; of those, merged; and those that were good as values and yet could not be
 * taken, which stand as they are here and are in conflict (none, normally). INFO. */
uint64_t full_sync_keys(const struct full_sync *c);
uint64_t full_sync_keys_merged(const struct full_sync *c);
uint64_t full_sync_keys_refused(const struct full_sync *c);

/* The thread that feeds it sleeps (gil.h): it wakes for values of modules, whose code reads them.
 * Else it is awake, or there are no modules. */
void full_sync_feeds_asleep(struct full_sync *c);
/* The next bytes from the link, in any pieces; *consumed of them are the data set's: all, unless it
 * has become WHOLE. COMING only. Returns the phase; BROKEN with *error,
 * until the thread's next one. No lock. */
enum full_sync_phase full_sync_feed(struct full_sync *c, struct slice data, size_t *consumed,
                                    const char **error);
/* Of a BROKEN one: the error (errno) with which the disk did not take what came; 0: it was the
 * sender's fault. */
int full_sync_disk_error(const struct full_sync *c);
/* Of one that was just created: the file has a whole one, of which so many records were done
 * (full_sync_done) before the process ended. It is WHOLE then; false, with *error: it is not. */
bool full_sync_reopen(struct full_sync *c, uint64_t done, const char **error) MUST_CHECK;
/* While it is merged: how many of its libraries and keys are, in the order of the file. What was
 * logged of it by the end of this hold holds for these. */
uint64_t full_sync_done(const struct full_sync *c);
/* Whether all that a WHOLE one covers is here already: there is nothing to merge. */
bool full_sync_is_known(const struct full_sync *c, struct node *n) REQUIRES(keyspace_lock);
/* Of a WHOLE one: from now on it is merged. False, with *error and nothing changed, when it cannot
 * be (node_snapshot_begin; a database that we do not have; too many origins). While the node is
 * merging another one: later. */
bool full_sync_begin(struct full_sync *c, struct node *n, const char **error) MUST_CHECK
    REQUIRES(keyspace_lock);
/* Before each step, without the lock: reads what it will need. False when the disk does not give
 * back what was written to it: what is to be done then is the caller's (there is no way back, and
 * no way on: the process ends, as for an AOF that cannot be written). */
bool full_sync_read(struct full_sync *c, const char **error) MUST_CHECK EXCLUDES(keyspace_lock);
/* Meets keys until so much time is over, one at least; now_ms as for node_tick. */
void full_sync_step(struct full_sync *c, struct node *n, int64_t now_ms, uint64_t budget_us)
    REQUIRES(keyspace_lock);

#endif
