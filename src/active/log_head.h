/* The head of the next record of our AOF (DESIGN.md, "Files"): which write it is, the keys that
 * have its dot, and what has come into conflict or been resolved since the last one.
 *
 *   KEYDB.DOT <origin> <sequence> <stamp>
 *       [KEY db key] [DOT db key <origin> <sequence> <stamp>]   keys with this dot, or another one
 *       [NOKEY]                                                  there are none
 *       [CONFLICT db key <stamp of a state>] [RESOLVED db key]
 *       [LIBRARY row]                                            libraries.h
 *       [GAVE row] [HEARD row]                                   gives.h
 *       [ALONE]                                                  no unit belongs to it
 *
 * Where no key is named, and NOKEY is not said, it is the second word of the one command behind it.
 * What the merge of a peer's data set does to a key has a head without a write of its own:
 *
 *   KEYDB.DOTS [KEY ...] [DOT ...] [NOKEY] [CONFLICT ...] [RESOLVED ...] [ALONE]
 *
 * A unit of ours waits here from when it has its dot (local_writes.h) until the door tells the AOF
 * what it did, which is at once, as local_writes is registered before it; a peer's from when the
 * merge begins with it until its unit of the door ends. A unit of which the AOF is told nothing is
 * a record of its own, before the next one and at the end of the hold at the latest; one of ours
 * that a peer's has us tell (delivery.h) stands alone behind that one.
 *
 * State: keyspace (exclusive mode). */
#ifndef ACTIVE_LOG_HEAD_H
#define ACTIVE_LOG_HEAD_H

#include "base/buf.h"
#include "keyspace/lock.h"
#include "active/origins.h"
#include "active/unit.h"

#include <stdbool.h>

struct log_head {
    const struct origins *origins;
    int first_db;
    void (*write)(struct slice record); /* one that stands alone; NULL: there is no log */
    /* private */
    bool waits;       /* a unit has no record yet */
    bool merges;      /* it is a peer's, and being merged */
    struct dot dot;   /* its own */
    struct buf words; /* of all keys but the last one: KEY ..., DOT ... */
    int word_count;
    bool has_key; /* the last one */
    int key_db;
    struct buf key;
    struct dot key_dot;
    struct buf changes; /* of conflicts */
    int change_count;
    struct buf later; /* dots of units of ours that were told amid a merge */
};

/* Without a log; databases are counted from `first_db`. */
void log_head_init(struct log_head *h, const struct origins *origins, int first_db);
/* Frees what it holds. */
void log_head_deinit(struct log_head *h);
/* Has records written from now on (NULL: none). */
void log_head_switch(struct log_head *h, void (*write)(struct slice record))
    REQUIRES(keyspace_lock);

/* A unit of our own has its dot. Amid a peer's it is one without keys. */
static inline void log_head_own(struct log_head *h, const struct unit *unit)
    REQUIRES(keyspace_lock);
/* A peer's unit is merged between these two; the latter behind the end of its unit of the door. Dot
 * {0, 0}: it is a key of a data set. */
void log_head_begin(struct log_head *h, struct dot dot) REQUIRES(keyspace_lock);
void log_head_end(struct log_head *h) REQUIRES(keyspace_lock);
/* The merge gives a key a dot. Nothing outside of it. */
static inline void log_head_touch(struct log_head *h, int db, struct slice key, struct dot dot);
/* A key is in conflict from now on, or its conflict is over. */
void log_head_conflict(struct log_head *h, int db, struct slice key, uint64_t state_stamp,
                       bool pending);
/* Something else is so from now on: LIBRARY, GAVE or HEARD. */
void log_head_say(struct log_head *h, const char *what, struct slice row);
/* Appends the head of a unit (dots.h), if some write waits for one. */
void log_head_put(struct log_head *h, int db, struct slice unit, struct buf *out);
/* A record of these words is written alone. Not within a unit of the door. */
void log_head_write(struct log_head *h, int argc, const struct slice *argv) REQUIRES(keyspace_lock);
/* What waits is written alone: no unit of the log comes for it any more. */
void log_head_flush(struct log_head *h) REQUIRES(keyspace_lock);

/* Private: where there is a log; within a merge. */
void log_head_begin_own(struct log_head *h, const struct unit *unit) REQUIRES(keyspace_lock);
void log_head_note_key(struct log_head *h, int db, struct slice key, struct dot dot);

static inline void log_head_own(struct log_head *h, const struct unit *unit)
{
    if (h->write) {
        log_head_begin_own(h, unit);
    }
}

static inline void log_head_touch(struct log_head *h, int db, struct slice key, struct dot dot)
{
    if (h->merges && dot.stamp != 0) {
        log_head_note_key(h, db, key, dot);
    }
}

#endif
