/* The append-only file as a whole: whether there is one, how it begins, how it is rewritten.
 *
 *   OFF --appendonly yes: fork--> WAITING --the base is there--> ON --appendonly no--> OFF
 *    `------------- start with appendonly yes: files are loaded, or made --------------^
 *   ON --a primary's data set takes the place of ours: aof_halt--> WAITING --it is loaded: fork
 *
 * Files are those of Redis 7 (aof_manifest.h): a base and increments behind it, the last of which
 * grows (aof_tail.h). A rewrite opens a new increment and forks; what was before the fork the child
 * writes as the new base. While WAITING there is no base yet: the increment is written, and in no
 * manifest, which names what was before. In each state the directory holds, at every moment, files
 * from which the data set comes back; what a crash leaves of a step is used or ignored.
 *
 * What is kept of what was acknowledged:
 *
 *   appendfsync   process killed   power lost
 *   always        all              all
 *   everysec      all              all but the last second, two while the disk is slow
 *   no            all              what the kernel has written
 *
 * Where the log fails (a full disk, a sync that failed), writes are refused until it works again,
 * or has been rewritten; with always, who is at a write then is told that it is not safe and loses
 * the connection (net/durable.h). Turning the log off ends that too: what it could not write is
 * dropped.
 *
 * For the middle column replies wait until the kernel has their writes, as Redis's do: the thread
 * that is about to reply writes what there is, of all threads (aof_tail.h), for the batches of a
 * turn together (net/durable.h). Measured with one server thread on one core with all its helpers,
 * 50 clients, SET of 64 bytes at pipeline 32, CPU time a request: 312 ns without a log; 511 with
 * everysec and a write for each batch of 128 requests, 411 with one for each 64 KiB. Of the rest
 * about 35 ns are the kernel's copy into its pages, the others the forming of the command.
 *
 * State: changed by the cron and by commands while the world stands; figures are atomic. */
#ifndef PERSIST_AOF_H
#define PERSIST_AOF_H

#include "base/compiler.h"
#include "base/option.h"
#include "base/slice.h"
#include "engine/gil.h"
#include "keyspace/lock.h"
#include "persist/load.h"

#include <stdbool.h>
#include <stdint.h>

enum aof_result {
    AOF_STARTED,
    AOF_RUNNING,   /* a rewrite is at it */
    AOF_SCHEDULED, /* begins when another child has ended, or the transaction has */
    AOF_FAILED,    /* logged */
};

/* Boot, after propagate_setup: the log, the cron job, the INFO fields. */
void aof_setup(void);
/* Ends a child that is still there, writes and syncs what there is. No client is left. */
void aof_teardown(void);
/* What load.h loads: wanted while appendonly is set. When it has loaded, the log is on. */
extern const struct load_source aof_load_source;

/* A record that no command made, for a log that takes records (dots.h). Exclusive mode, not within
 * a unit. */
void aof_log_alone(struct slice record) REQUIRES(keyspace_lock);

/* Waits until all that was logged so far is on the disk; false when it is not, or there is no log.
 * No lock is held. */
bool aof_sync(void) EXCLUDES(keyspace_lock);

/* BGREWRITEAOF. The world stands. */
enum aof_result aof_rewrite(void) REQUIRES(gil);
/* The data set is about to be replaced by one that is in no file of the log (a primary's, at a
 * replica): from now on WAITING, and nothing is logged; the files keep what they hold, for a start
 * after a crash, of a transaction that is open nothing that would be run. Nothing to do while the
 * log is off. */
void aof_halt(void) REQUIRES(gil);
/* It has been replaced: a rewrite begins, again and again until one has succeeded. Where this is
 * not called, since the replacing failed, one begins when what is there is somebody's data set
 * again (load_accept). Nothing to do while the log is off. */
void aof_begin_anew(void) REQUIRES(gil);
/* True while a child rewrites: there is one child at a time. */
bool aof_has_child(void);
/* What appendonly says. */
bool aof_is_enabled(void);
/* Before the end: a child is ended; the log is written and synced. False (logged) when that fails.
 */
bool aof_before_exit(void) REQUIRES(gil);
/* The same when all clients are gone and nothing is written any more: notes (notes.h) end the log.
 */
void aof_at_exit(void);
/* DEBUG LOADAOF: forgets all keys and loads the files. NULL, or an error for the client, logged,
 * with keys and libraries as they were: the log is off, an active replica's, or does not load. */
const char *aof_reload(void) REQUIRES(gil);

/* appendonly, appendfilename, appenddirname, appendfsync ... */
extern const struct option aof_options[];

#endif
