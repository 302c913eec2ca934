/* The head of the next record of our AOF (ACTIVE.md, "In files"): which write it is, the keys that
 * have its dot, and what has become disputed or settled since the last one.
 *
 *   KEYDB.DOT <origin> <sequence> <stamp>
 *       [KEY db key] [DOT db key <origin> <sequence> <stamp>]   keys with this dot, or another one
 *       [NOKEY]                                                  there are none
 *       [DISPUTED db key <stamp of a state>] [SETTLED db key]
 *       [ALONE]                                                  no unit belongs to it
 *
 * Where no key is named, and NOKEY is not said, it is the second word of the one command behind it.
 *
 * A unit of ours waits here from when it has its dot (active_own.h) until the door tells the AOF
 * what it did, which is at once, as active_own is registered before it; a peer's from when the
 * merge begins with it until its unit of the door ends. A unit of which the AOF is told nothing is
 * a record of its own, before the next one and at the end of the hold at the latest.
 *
 * State: keyspace (exclusive mode). */
#ifndef REPL_ACTIVE_HEAD_H
#define REPL_ACTIVE_HEAD_H

#include "base/buf.h"
#include "keyspace/lock.h"
#include "repl/active_origins.h"
#include "repl/active_unit.h"

#include <stdbool.h>

struct active_head {
    const struct active_origins *origins;
    int first_db;
    void (*write)(struct slice record); /* one that stands alone; NULL: there is no log */
    /* private */
    bool waits;            /* a unit has no record yet */
    bool merges;           /* it is a peer's, and being merged */
    struct active_dot dot; /* its own */
    struct buf words;      /* of all keys but the last one: KEY ..., DOT ... */
    int word_count;
    bool has_key; /* the last one */
    int key_db;
    struct buf key;
    struct active_dot key_dot;
    struct buf changes; /* of disputes */
    int change_count;
};

/* Without a log; databases are counted from `first_db`. */
void active_head_init(struct active_head *h, const struct active_origins *origins, int first_db);
/* Frees what it holds. */
void active_head_deinit(struct active_head *h);
/* Has records written from now on (NULL: none). */
void active_head_switch(struct active_head *h, void (*write)(struct slice record))
    REQUIRES(keyspace_lock);

/* A unit of our own has its dot. */
void active_head_own(struct active_head *h, const struct active_unit *unit) REQUIRES(keyspace_lock);
/* A peer's unit is merged between these two; the latter behind the end of its unit of the door. */
void active_head_begin(struct active_head *h, struct active_dot dot) REQUIRES(keyspace_lock);
void active_head_end(struct active_head *h) REQUIRES(keyspace_lock);
/* The merge gives a key a dot. Nothing outside of it. */
void active_head_touch(struct active_head *h, int db, struct slice key, struct active_dot dot);
/* A key is disputed from now on, or its dispute is over. */
void active_head_dispute(struct active_head *h, int db, struct slice key, uint64_t state_stamp,
                         bool pending);
/* Appends the head of a unit (dots.h), if some write waits for one. */
void active_head_put(struct active_head *h, int db, struct slice unit, struct buf *out);
/* What waits is written alone: no unit of the log comes for it any more. */
void active_head_flush(struct active_head *h) REQUIRES(keyspace_lock);

#endif
