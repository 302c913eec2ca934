/* The logs: for each origin the last of its writes, for peers that lack them, all together bounded.
 *
 * Invariants: an origin's log is without gaps and ends at its position; what is dropped is dropped
 * from an origin's beginning, the lowest stamp of all origins first, whoever may still need it. But
 * an origin's last write stays for ten seconds, however large it is: what would be pushed out at
 * once by others of its kind nobody would ever get.
 * State: keyspace (exclusive mode); units are shared, and immutable. */
#ifndef REPL_ACTIVE_LOG_H
#define REPL_ACTIVE_LOG_H

#include "repl/active_unit.h"

#include <stddef.h>

/* An origin's last write is kept so long beyond the bound, going by stamps. */
#define ACTIVE_LOG_LAST_MS 10000

struct active_log;

/* Empty logs, which keep at most so many bytes of units. */
struct active_log *active_log_create(size_t bytes_max);
/* Frees them and nulls the caller's pointer. */
void active_log_destroy(struct active_log **log);
/* The origin's next write; the log takes a reference of its own. */
void active_log_append(struct active_log *log, struct active_unit *unit);
/* The origin's position has moved without the writes (a file, MERGE): its log begins behind it. */
void active_log_skip(struct active_log *log, uint16_t origin, uint64_t position);
/* True when everything of the origin above `sequence` up to `position` is kept. */
bool active_log_keeps_after(const struct active_log *log, uint16_t origin, uint64_t sequence,
                            uint64_t position);
/* The write with this sequence, NULL when it is not kept; good until the next append or skip. */
struct active_unit *active_log_find(const struct active_log *log, uint16_t origin,
                                    uint64_t sequence);
/* Bytes of units, their heads included. */
size_t active_log_bytes(const struct active_log *log);

#endif
