/* The logs' part on disk (repl-backlog-disk-reserve): every write that goes into a log
 * (origin_log.h) is also a record of one stream, of which a reserve (repl/reserve.h) keeps the end.
 * The records stand in the order in which the writes came here; of an origin they are in the order
 * of their numbers. To find one there are marks: for each origin where some of its records begin.
 *
 * | bytes | a record; numbers are the machine's, as no other process ever reads them |
 * |---|---|
 * | 8, 8 | its dot (origins.h) |
 * | 4 | length of the commands |
 * | 2 | database of the first command |
 * | 1 | 1: it has causes (struct unit) |
 * | 1 | 0 |
 * | n | its commands |
 *
 * State: keyspace (put and skip in exclusive mode, the rest in shared mode too), but for
 * log_reserve_read, which takes no lock. */
#ifndef ACTIVE_LOG_RESERVE_H
#define ACTIVE_LOG_RESERVE_H

#include "active/unit.h"
#include "base/buf.h"
#include "repl/reserve.h"

/* A longer write is no record: its origin's begin behind it. (They are copied in the hold that puts
 * them there.) */
#define LOG_RESERVE_UNIT_MAX ((uint32_t)16 * 1024 * 1024)

struct log_reserve;

/* The records go to `reserve`, which is the caller's, and outlives them. */
struct log_reserve *log_reserve_create(struct reserve *reserve);
/* Frees it, nulls the caller's pointer, which may be NULL; the reserve follows nothing then. */
void log_reserve_destroy(struct log_reserve **r);
/* An origin's next write. */
void log_reserve_put(struct log_reserve *r, const struct unit *unit);
/* The origin's position has moved without the writes: its records begin behind it. */
void log_reserve_skip(struct log_reserve *r, uint16_t origin, uint64_t position);
/* A place from which all records of the origin from `sequence` on come; false when there is none.
 */
bool log_reserve_find(struct log_reserve *r, uint16_t origin, uint64_t sequence,
                      struct reserve_place *place) MUST_CHECK;
/* The position behind the last record. Any thread. */
uint64_t log_reserve_end(struct log_reserve *r);
/* How its reserve is. Any thread. */
void log_reserve_look(struct log_reserve *r, struct reserve_facts *facts);

/* ---- reading ---- */

struct log_record {
    struct dot dot;
    uint16_t db;
    bool has_causes;
    struct slice commands;
};

/* Takes more of the stream to the end of `raw`, at least what its first record still lacks, and
 * moves the place on: 1; 0 when there is no more for now; -1 when it is not kept any more. Waits
 * for the disk: the caller holds no lock. */
int log_reserve_read(struct log_reserve *r, struct reserve_place *place,
                     struct buf *raw) MUST_CHECK;
/* The first record of `raw`, which loses it; false when there is no whole one. The record's slice
 * is borrowed from there. */
bool log_record_take(struct slice *raw, struct log_record *record) MUST_CHECK;

#endif
