/* The merge's executor over the keyspace: peers' commands are run by the engine, as a replica runs
 * its primary's, so that key events, WATCH, client-side caching, the AOF and our own replicas see
 * them like any write. Nothing expires by itself meanwhile: what is gone because of its time is
 * told by whoever decides it.
 *
 * Databases have numbers as they are told, which may begin elsewhere here (tests have several nodes
 * in one process). State: keyspace (exclusive mode). */
#ifndef ACTIVE_EXECUTOR_H
#define ACTIVE_EXECUTOR_H

#include "base/arena.h"
#include "engine/session.h"
#include "keyspace/db.h"
#include "active/hlc.h"
#include "active/merge.h"
#include "active/log_head.h"
#include "resp/reply.h"

struct executor {
    const struct origins *origins;
    const struct hlc *clock;
    int first_db, dbs;     /* whose data these are */
    uint64_t highest;      /* stamp: no key here has a later one */
    uint64_t failed;       /* commands that failed, INFO */
    struct log_head *head; /* hears of each dot that a key gets; NULL: none does */
    struct dot unit;       /* that is being run */
    /* Hears of words about who waits (delivery.h); false: they are none. NULL: nobody does. */
    bool (*hear)(struct dot unit, int argc, const struct slice *argv);
    /* private */
    bool changed; /* by what was run last */
    struct session session;
    struct arena arena;
    struct reply reply;
};

extern const struct merge_executor executor;

/* Over the databases [first_db, first_db + dbs). */
void executor_init(struct executor *x, const struct origins *origins, const struct hlc *clock,
                   int first_db, int dbs);
/* Its reverse. */
void executor_deinit(struct executor *x);
/* A database by its number in what is told. */
struct db *executor_db(const struct executor *x, int db);
/* The dot that an entry has, {0, 0} for none. */
static inline struct dot executor_dot(const struct entry *e);
static inline struct dot executor_dot(const struct entry *e)
{
    struct dot dot = {0, 0};
    const void *stamp = entry_stamp(e);
    if (stamp) {
        memcpy(&dot, stamp, sizeof(dot));
    }
    return dot;
}

/* Between these two the executor may be used, in one hold: what it runs is one unit of the logs.
 * The thread's expiry stands still. */
struct executor_scope {
    bool frozen;
    uint64_t writer;
};
struct executor_scope executor_begin(void) REQUIRES(keyspace_lock);
void executor_end(const struct executor_scope *before) REQUIRES(keyspace_lock);

#endif
