/* The end of the append-only file: the memory that writers append to under the keyspace lock, and
 * the thread that writes it into files and syncs them, outside of it.
 *
 *   writers --memcpy--> blocks --write--> file (the kernel's) --fdatasync--> disk
 *           appended              written                      synced (engine/commit.h)
 *
 * With appendfsync always the thread does both, and replies wait for it. Otherwise whoever is about
 * to reply writes what is there, of all threads (commit_write), so that a process that is killed
 * loses nothing it has acknowledged, and the thread only syncs; writing does not wait for a sync.
 *
 * Blocks are a queue with one end for the holder of the exclusive lock and one for whoever writes,
 * behind a lock of its own: none is needed to append. Files follow one another at positions that
 * were fixed under the exclusive lock (aof_tail_open); the one before is synced and closed when all
 * of it is written.
 *
 * When a write fails (ENOSPC, EIO), what of it had come into the file is cut off again and the same
 * bytes are tried once more later; meanwhile the fault is told (engine/commit.h, doomed). When a
 * sync fails, nobody can know what of the file is on the disk, and no later sync of it is believed:
 * commit_synced stands still until aof_tail_trust says that everything before is safe otherwise (a
 * rewrite).
 *
 * State: the near end is keyspace, the far end behind a lock that is held while a file is written,
 * orders to the thread are behind a leaf lock, figures are atomic. */
#ifndef PERSIST_AOF_TAIL_H
#define PERSIST_AOF_TAIL_H

#include "base/slice.h"
#include "keyspace/lock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AOF_TAIL_WAITING_MAX 16

enum aof_sync { AOF_SYNC_NO, AOF_SYNC_EVERYSEC, AOF_SYNC_ALWAYS };

/* Starts the thread. `size_bytes` of files are counted from 0. Its reverse ends it, after all that
 * was appended is written and, unless the last fault says otherwise, synced. */
void aof_tail_start(void);
void aof_tail_stop(void);

/* Appends bytes. */
void aof_tail_append(struct slice bytes) REQUIRES(keyspace_lock);
/* From here on the log goes into the open file `fd_take`, `size_bytes` long; -1: into none, what is
 * appended from now on is dropped. At most AOF_TAIL_WAITING_MAX files may be waiting. */
void aof_tail_open(int fd_take, uint64_t size_bytes) REQUIRES(keyspace_lock);
/* Waits until all that was appended is written, and with `sync` synced; false when that fails or
 * takes too long. Not under the keyspace lock. */
bool aof_tail_flush(bool sync) EXCLUDES(keyspace_lock);
/* All that stands in files before the current one, and `before` it was opened, is safe otherwise:
 * syncs of the current one are believed again. */
void aof_tail_trust(void);
/* The log has been turned off (aof_tail_open with -1): what its files have not taken is dropped,
 * and no fault of theirs counts any more. */
void aof_tail_leave(void);

/* appendfsync; and whether syncs are left out just now (no-appendfsync-on-rewrite). */
void aof_tail_set_sync(enum aof_sync sync);
void aof_tail_set_lenient(bool lenient);

/* For tests: each write into a file takes so many microseconds more. Any thread. */
void aof_tail_slow(int64_t us);

/* Memory of what is appended and not written, beyond the block that is always there. It is not
 * counted against maxmemory: what eviction tells the log would make it evict more. Any thread. */
size_t aof_tail_memory_bytes(void);

struct aof_tail_facts {
    uint64_t file_bytes;    /* of the current file */
    uint64_t buffered;      /* appended and not written */
    uint64_t delayed;       /* syncs that took longer than two seconds to come */
    int write_error;        /* errno of the fault that lasts, 0 without one */
    int sync_error;         /* the same of a sync: the files cannot be trusted */
    uint64_t sync_failures; /* so far */
    int files_waiting;      /* opened, and not begun: the one before is not written and synced */
    bool open;              /* there is a file */
    bool syncing;           /* a sync runs just now */
};
/* Any thread. */
struct aof_tail_facts aof_tail_facts(void);

#endif
