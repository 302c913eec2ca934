/* The logs: for each origin the last of its writes, for peers that lack them, all together bounded.
 *
 * Invariants: an origin's log is without gaps and ends at its position; what is dropped is dropped
 * from an origin's beginning, the lowest stamp of all origins first, whoever may still need it. But
 * an origin's last write stays for ten seconds, however large it is: what would be pushed out at
 * once by others of its kind nobody would ever get. And what readers who are there have not got yet
 * is kept beyond the bound, up to another one: a burst of writes is not to cost each of them a
 * whole data set. Of what memory has dropped the disk may keep much more (log_reserve.h), for
 * readers who take it from there.
 *
 * Where the bound is reached some more goes (unit_spare): so often it is looked what is to go.
 *
 * State: keyspace (exclusive mode); units are shared, and immutable. */
#ifndef ACTIVE_ORIGIN_LOG_H
#define ACTIVE_ORIGIN_LOG_H

#include "active/log_reserve.h"
#include "active/unit.h"

#include <stddef.h>

/* An origin's last write is kept so long beyond the bound, going by stamps. */
#define ORIGIN_LOG_LAST_MS 10000

struct origin_log;

/* Empty logs, which keep at most so many bytes of units. */
struct origin_log *origin_log_create(size_t bytes_max);
/* From now on what is appended is also on disk, in this reserve, which is the caller's and outlives
 * the logs. */
void origin_log_keep_on_disk(struct origin_log *log, struct reserve *reserve);
/* The logs' part there; NULL: none. It stays the same. Any thread. */
struct log_reserve *origin_log_reserve(const struct origin_log *log);
/* Another bound; what is beyond it goes with the next write, or origin_log_trim. */
void origin_log_set_bound(struct origin_log *log, size_t bytes_max);
/* While somebody is sent a whole data set, what comes behind it is kept for him, up to so many
 * bytes in all: one more that holds. */
void origin_log_hold(struct origin_log *log, size_t bytes_max);
/* One less; what is beyond the bound then goes as above. Any thread. */
void origin_log_let_go(struct origin_log *log);
/* The slowest of those who read has had all but what was appended since origin_log_appended was
 * that (UINT64_MAX: nobody reads): so much is kept beyond the bound, up to `bytes_max` in all. Any
 * thread. */
void origin_log_read_upto(struct origin_log *log, uint64_t upto, size_t bytes_max);
/* What nobody holds or lacks any more goes without a next write: at most so many units, and the
 * room of the pointers to them. True: there is more. To be called now and then. */
bool origin_log_trim(struct origin_log *log, uint64_t units);
/* Bytes of all units that were ever appended. Shared mode. */
uint64_t origin_log_appended(const struct origin_log *log);
/* What the slowest of those who read has not been sent; UINT64_MAX: nobody reads. Shared mode. */
uint64_t origin_log_unread(const struct origin_log *log);
/* What is kept beyond the bound, when it was looked last. Any thread. */
size_t origin_log_beyond(const struct origin_log *log);
/* Frees them and nulls the caller's pointer. */
void origin_log_destroy(struct origin_log **log);
/* The origin's next write; the log takes a reference of its own. */
void origin_log_append(struct origin_log *log, struct unit *unit);
/* The origin's position has moved without the writes (a file, MERGE): its log begins behind it. */
void origin_log_skip(struct origin_log *log, uint16_t origin, uint64_t position);
/* True when everything of the origin above `sequence` up to `position` is kept; in memory. */
bool origin_log_keeps_after(const struct origin_log *log, uint16_t origin, uint64_t sequence,
                            uint64_t position);
bool origin_log_has_after(const struct origin_log *log, uint16_t origin, uint64_t sequence,
                          uint64_t position);
/* The write with this sequence, NULL when memory does not have it; good until the next append or
 * skip. */
struct unit *origin_log_find(const struct origin_log *log, uint16_t origin, uint64_t sequence);
/* The writes from this sequence on, as far as they stand one behind the other: *count of them, at
 * least one where memory has that one, else NULL. Good as long. */
struct unit *const *origin_log_run(const struct origin_log *log, uint16_t origin, uint64_t sequence,
                                   uint64_t *count);
/* Bytes of units, their heads included. */
size_t origin_log_bytes(const struct origin_log *log);

#endif
