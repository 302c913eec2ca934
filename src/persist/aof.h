/* The append-only file as a whole: whether there is one, how it begins, how it is rewritten.
 *
 *   OFF --appendonly yes: fork--> WAITING --the base is there--> ON --appendonly no--> OFF
 *    `------------- start with appendonly yes: files are loaded, or made --------------^
 *
 * Files are those of Redis 7 (aof_manifest.h): a base and increments behind it, the last of which
 * grows (aof_tail.h). A rewrite opens a new increment and forks; what was before the fork the child
 * writes as the new base. While WAITING there is no base yet: the increment is written, and in no
 * manifest. In each state the directory holds, at every moment, files from which the data set comes
 * back; what a crash leaves of a step is used or ignored.
 *
 * What is kept of what was acknowledged:
 *
 *   appendfsync   process killed   power lost
 *   always        all              all
 *   everysec      all              all but the last second, two while the disk is slow
 *   no            all              what the kernel has written
 *
 * For the middle column replies wait until the kernel has their writes, as Redis's do: the thread
 * that is about to reply writes what there is, once a batch, of all threads (aof_tail.h). Measured
 * against a thread that writes once a millisecond behind the replies, one server thread on one core
 * with all its helpers, everysec, 50 clients, SET of 64 bytes, on a busy machine: nothing that the
 * noise shows at pipeline 1; 2 to 20 % more CPU time a request at pipeline 32, where a batch is 128
 * requests.
 *
 * State: changed by the cron and by commands while the world stands; figures are atomic. */
#ifndef PERSIST_AOF_H
#define PERSIST_AOF_H

#include "base/compiler.h"
#include "base/option.h"
#include "engine/gil.h"
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

/* BGREWRITEAOF. The world stands. */
enum aof_result aof_rewrite(void) REQUIRES(gil);
/* The data set has been replaced by one that is in no file of the log (a primary's, at a replica):
 * a rewrite begins, again and again until one has succeeded, and nothing counts as safe before.
 * Nothing to do while the log is off. */
void aof_begin_anew(void) REQUIRES(gil);
/* True while a child rewrites: there is one child at a time. */
bool aof_has_child(void);
/* Before the end: a child is ended; the log is written and synced. False (logged) when that fails.
 */
bool aof_before_exit(void) REQUIRES(gil);
/* The same when all clients are gone and nothing is written any more: notes (notes.h) end the log.
 */
void aof_at_exit(void);
/* DEBUG LOADAOF: forgets all keys and loads the files. False when the log is off. The process ends
 * when loading fails. */
bool aof_reload(void) REQUIRES(gil);

/* appendonly, appendfilename, appenddirname, appendfsync ... */
extern const struct option aof_options[];

#endif
