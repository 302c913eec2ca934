/* A whole data set as a file.
 *
 *   "REDIS" | version, 4 digits | (opcode ... | type number, key, value) ... | 255 | u64 CRC-64
 *
 * A file is written under another name, synced, and takes the place of the old one in one step;
 * then its directory is synced. Libraries of functions are part of it (engine/function_store.h); a
 * file with one that cannot be loaded is refused. State: that of who calls. */
#ifndef PERSIST_RDB_FILE_H
#define PERSIST_RDB_FILE_H

#include "base/buf.h"
#include "keyspace/lock.h"
#include "persist/rdb_reader.h"

#include <stdbool.h>
#include <stdint.h>

/* Writes all databases into file `name` of the current directory; 0, or the errno of what failed,
 * with the file that was there as it was. Logs nothing, takes no lock: for a child as well. */
int rdb_file_save(const char *name, int64_t now_ms) REQUIRES_SHARED(keyspace_lock);
/* Parts of a data set that who asks for one may not want: bits. */
#define RDB_FILE_KEYS 1U
#define RDB_FILE_FUNCTIONS 2U
/* Writes all databases into an open file or pipe, without the parts `left_out`; 0 or an errno.
 * `stream_db`: the database that the replication stream behind it is for. For a child as well. */
int rdb_file_write(int fd, int64_t now_ms, int stream_db, unsigned left_out)
    REQUIRES_SHARED(keyspace_lock);
/* Writes all databases into the open file as the base of an AOF, and syncs it; 0 or an errno. For a
 * child as well. */
int rdb_file_write_base(int fd, int64_t now_ms) REQUIRES_SHARED(keyspace_lock);
#define RDB_FILE_TEMPORARY_BYTES 32
/* The name that a file of process `pid` has until it is whole. Also in a signal's handler. */
void rdb_file_temporary_name(int pid, char name[RDB_FILE_TEMPORARY_BYTES]);
/* Removes what process `pid` has left of a file it did not finish. */
void rdb_file_remove_rest(int pid);

struct rdb_file_loaded {
    uint64_t keys, expired, empty; /* loaded; left out */
    uint64_t bytes;  /* read, a feed's mark among them: others may follow (an AOF, a stream) */
    int stream_db;   /* that the stream behind the file is for (repl-stream-db) */
    bool stopped;    /* it failed because load_step (load.h) wanted the end */
    char error[256]; /* why it failed */
};
enum rdb_file_load { RDB_FILE_FINE, RDB_FILE_MISSING, RDB_FILE_BAD };
/* Adds what file `name` holds to the databases, which have none of its keys, in short holds of the
 * lock; tells load.h how far it is. What was due by `due_ms` is left out, unless expire_frozen
 * (keyspace/expire.h); access clocks go by the time of the loading. A fault leaves what was loaded
 * before it. The GIL is held. */
enum rdb_file_load rdb_file_load(const char *name, int64_t due_ms, struct rdb_file_loaded *loaded)
    EXCLUDES(keyspace_lock);
/* The same into the data set aside (keyspace/db.h, engine/function_store.h), which is open. */
enum rdb_file_load rdb_file_load_aside(const char *name, int64_t due_ms,
                                       struct rdb_file_loaded *loaded) EXCLUDES(keyspace_lock);
/* The same with a file that goes on behind the RDB part, at loaded->bytes: an AOF with a preamble.
 */
enum rdb_file_load rdb_file_load_preamble(const char *name, int64_t due_ms,
                                          struct rdb_file_loaded *loaded) EXCLUDES(keyspace_lock);
/* The same with a data set that comes over a connection, and with its end mark, which follows then
 * (empty: the feed says how long it is, and has nothing else). `aside`: as
 * rdb_file_load_aside. */
enum rdb_file_load rdb_file_load_feed(const struct rdb_feed *feed, struct slice mark, bool aside,
                                      int64_t due_ms, struct rdb_file_loaded *loaded)
    EXCLUDES(keyspace_lock);
/* rdbcompression, rdbchecksum, rdb-save-incremental-fsync. World. */
extern bool rdb_file_compress, rdb_file_checksum, rdb_file_sync_often;
/* rdb-key-save-delay, for tests: a child waits so many microseconds after each key; -N: one after
 * each N keys. */
extern int64_t rdb_file_key_delay;

#endif
