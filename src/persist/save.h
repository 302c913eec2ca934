/* When the data set is saved, and how it went: the save points, SAVE and BGSAVE, the child process
 * that writes while the server goes on, and the save before the end. What it loads at the
 * start is a source of load.h.
 *
 *   IDLE --BGSAVE, a save point: fork--> CHILD --it ended, seen by the cron--> IDLE
 *
 * The fork happens with the keyspace lock held, so that what the child sees is one state of the
 * data (engine/fork_child.h tells what the child may do).
 *
 * State: figures are atomic; the rest is changed while the world stands or with the keyspace lock
 * in exclusive mode, by the cron on the main thread, by commands, and by FLUSHALL on any thread. */
#ifndef PERSIST_SAVE_H
#define PERSIST_SAVE_H

#include "base/compiler.h"
#include "base/option.h"
#include "engine/gil.h"
#include "keyspace/lock.h"

#include <stdbool.h>
#include <stdint.h>

enum save_result {
    SAVE_DONE,      /* or begun, in the background */
    SAVE_SCHEDULED, /* in the background, when the transaction that asks for it is over */
    SAVE_RUNNING,   /* a child is at it */
    SAVE_BUSY,      /* a child rewrites the AOF */
    SAVE_FAILED,    /* logged */
};

/* Boot: the cron job, the INFO fields, the operations of engine/snapshot.h. */
void save_setup(void);
/* Ends a child that is still there. */
void save_teardown(void);
/* Before the end, when all clients are gone: what was written since save_before_exit. */
void save_at_exit(unsigned flags);

/* Saves now, in this thread. The world stands. */
enum save_result save_now(void) REQUIRES(gil);
/* Saves in a child. The world stands. */
enum save_result save_in_background(void) REQUIRES(gil);
/* Has the cron begin one when the child that runs has ended. World. */
void save_schedule(void) REQUIRES(gil);
/* Ends a child that saves what another data set is about to replace. World. */
void save_abandon(void) REQUIRES(gil);
/* True while a child saves: there is one child at a time. */
bool save_has_child(void);
/* A child is about to be forked that writes the data set for replicas, and it has ended, in
 * whatever way: INFO shows it as a save. It tells as CHILD_TRANSFER (child_report.h). One at a
 * time; the keyspace lock is held at the beginning. */
void save_transfer_begins(void) REQUIRES_SHARED(keyspace_lock);
void save_transfer_ended(void);
/* True when `save` names a point. */
bool save_has_points(void);
/* Unix seconds of the last save that succeeded, or of the start. */
int64_t save_last_s(void);

/* save, dbfilename, rdbcompression, rdbchecksum, stop-writes-on-bgsave-error, and those that have
 * nothing to switch. */
extern const struct option save_options[];

#endif
