/* How much of the primary's stream is on this replica's disk, for REPLCONF ACK's FACK: offsets of
 * the stream against positions of the log (engine/commit.h). One pair is noted at a time; when its
 * position is on the disk its offset is safe, and the next pair is noted.
 *
 * State: the following thread's. All writes that the backlog's offset counts are in the log when
 * that thread asks, since it has applied them itself. */
#ifndef REPL_SAFE_OFFSET_H
#define REPL_SAFE_OFFSET_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* So much is safe; false while nothing is known to be: without AOF, and after each change of it
 * (a new data set among them) until the next sync. */
bool safe_offset_get(uint64_t *offset) MUST_CHECK;
/* True when safe_offset_get would tell more than the last time. */
bool safe_offset_has_news(void);

#endif
