/* The replication stream: every write's effects, in the order in which they happened, as commands
 * in the request protocol (engine/propagate.h tells them). Its last bytes are kept, so that a
 * replica whose link was cut goes on where it was; many more of them on disk, where that is wanted
 * (reserve.h). THE place that knows the replication id (whose
 * history the data are) and the offset (how many bytes of it there were).
 *
 *   OFF --a replica comes--> ON --no replica for repl-backlog-ttl--> OFF
 *
 * While OFF a write pays nothing and the offset stands; so with the first replica a new history
 * begins, under a new id: what happened while nobody noted it cannot be told.
 *
 * State: keyspace (changed in exclusive mode, read in shared mode), blocks immutable once filled
 * (chain.h); backlog_offset is atomic. */
#ifndef REPL_BACKLOG_H
#define REPL_BACKLOG_H

#include "keyspace/lock.h"
#include "repl/chain.h"
#include "repl/reserve.h"

#define REPL_ID_LEN 40

/* Boot and its reverse. */
void backlog_setup(void);
void backlog_teardown(void);

/* True while ON. */
bool backlog_is_on(void) REQUIRES_SHARED(keyspace_lock);
/* Turns it on, with a new id, if it is off. Not within a unit. */
void backlog_turn_on(void) REQUIRES(keyspace_lock);
/* Forgets what is kept and ends the history. Not within a unit. */
void backlog_turn_off(void) REQUIRES(keyspace_lock);

/* Tells a command of the stream's own (PING, REPLCONF GETACK) to replicas; nothing while the stream
 * is another server's, or is to be quiet, nor once the server is to end: then the stream stays
 * where files say that it is. It is ON. */
void backlog_tell(struct slice command) REQUIRES(keyspace_lock);
/* Somebody wants it quiet (or does not any more), so that replicas can reach its end. */
void backlog_hush(bool quiet) REQUIRES(keyspace_lock);
/* A new replica begins here, with what the data are now: the stream names the database anew.
 * *reader stands at the end. */
void backlog_begin_reader(struct chain_reader *reader) REQUIRES(keyspace_lock);

/* Whether a replica can simply go on, and how. */
enum backlog_resume {
    BACKLOG_RESUMED,         /* from memory */
    BACKLOG_RESUMED_ON_DISK, /* from the reserve, until memory has what comes next */
    BACKLOG_FOREIGN_ID,
    BACKLOG_OUT_OF_RANGE
};
/* A replica that has the first `offset` bytes of history `id` wants the rest: *reader, or *place,
 * stands there, if that is what is kept. */
enum backlog_resume backlog_resume(struct slice id, uint64_t offset, struct chain_reader *reader,
                                   struct reserve_place *place) REQUIRES(keyspace_lock);
/* Who reads in the reserve: true when memory has all from there on; *reader then stands there. */
bool backlog_reach(const struct reserve_place *place, struct chain_reader *reader)
    REQUIRES_SHARED(keyspace_lock);
/* As reserve_read. */
ssize_t backlog_read_reserve(struct reserve_place *place, char *into, size_t max) MUST_CHECK;

/* The database that the stream is for where it stands; 0 where it says so anew. */
int backlog_stream_db(void) REQUIRES_SHARED(keyspace_lock);
/* As a primary, after a start: the data are what history `id` had after `offset` bytes. The backlog
 * is on and begins there, under a new id, with that one as the second. */
void backlog_continue(struct slice id, uint64_t offset) REQUIRES(keyspace_lock);

/* ---- as a replica ---- */

/* The data are now what history `id` had after `offset` bytes: a new backlog begins there, and
 * writes here are no part of the stream. Not within a unit. */
void backlog_follow(struct slice id, uint64_t offset, int db) REQUIRES(keyspace_lock);
/* The primary's bytes, as they came, which have been applied in this hold; what follows them is for
 * database `db`. */
void backlog_forward(struct slice bytes, int db) REQUIRES(keyspace_lock);
/* We follow nobody's stream with our own writes any more: they are no part of it, the id stays.
 * Not within a unit. */
void backlog_cease(void) REQUIRES(keyspace_lock);
/* The history goes on under another id: the old one is the second from here on. */
void backlog_rename(struct slice id) REQUIRES(keyspace_lock);
/* DEBUG CHANGE-REPL-ID: another id, and nothing of the old one; replicas that are cut off then
 * fetch everything. */
void backlog_forget_id(void) REQUIRES(keyspace_lock);
/* DEBUG TRUNCATE-REPL-BACKLOG: keeps nothing of what was told so far; who is connected reads on. */
void backlog_forget_kept(void) REQUIRES(keyspace_lock);
/* A replica becomes a primary: a new id, its writes are the stream. Not within a unit. */
void backlog_promote(void) REQUIRES(keyspace_lock);

/* The id, NUL-terminated; the one before it, and up to which offset that one was ours too (-1:
 * none).
 */
const char *backlog_id(void) REQUIRES_SHARED(keyspace_lock);
const char *backlog_second_id(void) REQUIRES_SHARED(keyspace_lock);
int64_t backlog_second_end(void) REQUIRES_SHARED(keyspace_lock);
/* Bytes of the stream so far. Any thread. */
uint64_t backlog_offset(void);
/* Bytes that are kept, and the memory of all their blocks. */
uint64_t backlog_kept_bytes(void) REQUIRES_SHARED(keyspace_lock);
/* The most that may be kept: a replica that goes on there begins with so much unread. Awake. */
uint64_t backlog_kept_most_bytes(void);

/* Memory of the stream and of transfers beyond what the backlog itself may take: it is there for
 * replicas that have not read it yet, and goes with them or their reading. It is not counted
 * against maxmemory: keys that were evicted for it would make the stream longer still. Any
 * thread. */
size_t backlog_readers_bytes(void);

/* What the reserve keeps; false when there is none. */
bool backlog_look_at_reserve(struct reserve_facts *facts) REQUIRES_SHARED(keyspace_lock);

/* repl-backlog-size, repl-backlog-disk-reserve (0: none). World; the latter from the start on. */
extern int64_t backlog_size_bytes, backlog_reserve_bytes;

#endif
