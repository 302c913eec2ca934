/* Dots: what the files of an active replica hold beside the data, so that positions and last writes
 * are after a load what they were for exactly the writes in the files. What they mean is told by
 * the replication above this layer (active/DESIGN.md, "Files"); a server that is no active replica
 * writes none and reads over them.
 *
 *   RDB  AUX fields at the head, and AUX active-dot before a key that has a dot
 *   AOF  base of commands: KEYDB.AUX name value, for the same fields in the same places;
 *        a unit: KEYDB.DOT ... and the command, or MULTI ... EXEC, that it is about, one record;
 *        with ALONE as its last word: a record without a unit; KEYDB.DOTS ... likewise;
 *        KEYDB.MERGING file done [positions], KEYDB.MERGED clock positions: records without a
 *        unit;
 *        KEYDB.PARTED: the server is no active replica any more, nothing before holds
 *
 *   AOF, loading:  --head: take_record--> pending --the unit has been run: apply--> --
 *                                           `--the file ends: torn, with its head
 *
 * State: set at boot; a loading thread's, or keyspace. */
#ifndef PERSIST_DOTS_H
#define PERSIST_DOTS_H

#include "base/buf.h"
#include "keyspace/db.h"
#include "keyspace/lock.h"

#include <stdbool.h>

/* Bytes of a dot as the files have it. */
#define DOTS_BYTES 16

/* Takes one field of the head: a short name, any bytes. */
typedef void (*dots_put)(const char *name, struct slice value, void *context);

/* Errors are texts that live for ever; NULL is success. */
struct dots_ops {
    /* Puts the head's fields of the data as they are now, none when this is no active replica.
     * Shared mode; for a child as well. */
    void (*tell)(dots_put put, void *context);
    /* The entry's dot; false when it has none. Likewise. */
    bool (*dot_of)(const struct db *db, const struct entry *e, char out[DOTS_BYTES]);
    /* A field of the head of a file that is loaded; foreign bytes. *known: it is one of them. */
    const char *(*take)(struct slice name, struct slice value, bool *known);
    /* A key's dot, in the bytes of the file, as a stamp (value/entry.h). *known: it is wanted. */
    const char *(*take_dot)(const struct db *db, struct slice value, char stamp[ENTRY_STAMP_BYTES],
                            bool *known);
    /* Appends the head of a unit of the log; `db` and `unit` are its single command, or -1 and a
     * transaction. Exclusive mode. */
    void (*put_head)(int db, struct slice unit, struct buf *out);
    /* The log takes records from now on, or does not. Exclusive mode. */
    void (*logging)(bool on);
    /* A head is read, KEYDB.DOT ..., KEYDB.AUX ... and the others above; *alone: no unit belongs to
     * it. What it says holds once `apply` is called. */
    const char *(*take_record)(int argc, const struct slice *argv, bool *alone);
    /* Its unit has been run, in the database, with `key` as the second word of its one command
     * (empty: there is none). Exclusive mode. */
    void (*apply)(int db, struct slice key);
};

/* Boot. */
void dots_set_ops(const struct dots_ops *ops);
/* True while units are to be written with heads. Exclusive mode changes it. */
extern bool dots_wanted;

/* See dots_ops; nothing happens, and nothing is known, when none are set. */
void dots_tell(dots_put put, void *context) REQUIRES_SHARED(keyspace_lock);
bool dots_of(const struct db *db, const struct entry *e, char out[DOTS_BYTES])
    REQUIRES_SHARED(keyspace_lock);
const char *dots_take(struct slice name, struct slice value, bool *known) MUST_CHECK;
const char *dots_take_dot(const struct db *db, struct slice value, char stamp[ENTRY_STAMP_BYTES],
                          bool *known) MUST_CHECK;
void dots_logging(bool on) REQUIRES(keyspace_lock);
const char *dots_take_record(int argc, const struct slice *argv, bool *alone) MUST_CHECK;
void dots_apply(int db, struct slice key) REQUIRES(keyspace_lock);

/* True for a command that is no command but a head. */
bool dots_is_record(struct slice name);

/* ---- a log of units ---- */

/* A unit that is not whole yet. Zero: none. */
struct dots_unit {
    bool open;
    struct buf held;
};
/* What comes through the door (engine/propagate.h); appends a record to `out` when a unit is whole,
 * its head first. *selected_db: that the log's reader is in; -1: unknown. */
void dots_add(struct dots_unit *unit, int db, struct slice commands, int *selected_db,
              struct buf *out) REQUIRES(keyspace_lock);
/* Appends SELECT. */
void dots_put_select(int db, struct buf *out);

#endif
