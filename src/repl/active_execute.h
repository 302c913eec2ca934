/* The merge's executor over the keyspace: peers' commands are run by the engine, as a replica runs
 * its primary's, so that key events, WATCH, client-side caching, the AOF and our own replicas see
 * them like any write. Nothing expires by itself meanwhile: what is gone because of its time is
 * told by whoever decides it.
 *
 * Databases have numbers as they are told, which may begin elsewhere here (tests have several nodes
 * in one process). State: keyspace (exclusive mode). */
#ifndef REPL_ACTIVE_EXECUTE_H
#define REPL_ACTIVE_EXECUTE_H

#include "base/arena.h"
#include "engine/session.h"
#include "keyspace/db.h"
#include "repl/active_clock.h"
#include "repl/active_merge.h"
#include "repl/active_head.h"
#include "resp/reply.h"

struct active_execute {
    const struct active_origins *origins;
    const struct active_clock *clock;
    int first_db, dbs;        /* whose data these are */
    uint64_t highest;         /* stamp: no key here has a later one */
    uint64_t failed;          /* commands that failed, INFO */
    struct active_head *head; /* hears of each dot that a key gets; NULL: none does */
    /* private */
    struct session session;
    struct arena arena;
    struct reply reply;
};

extern const struct active_executor active_execute;

/* Over the databases [first_db, first_db + dbs). */
void active_execute_init(struct active_execute *x, const struct active_origins *origins,
                         const struct active_clock *clock, int first_db, int dbs);
/* Its reverse. */
void active_execute_deinit(struct active_execute *x);
/* A database by its number in what is told. */
struct db *active_execute_db(const struct active_execute *x, int db);
/* The dot that an entry has, {0, 0} for none. */
struct active_dot active_execute_dot(const struct entry *e);

/* Between these two the executor may be used, in one hold: what it runs is one unit of the logs.
 * The thread's expiry stands still. */
struct active_execution {
    bool frozen;
    uint64_t writer;
};
struct active_execution active_execute_begin(void) REQUIRES(keyspace_lock);
void active_execute_end(const struct active_execution *before) REQUIRES(keyspace_lock);

#endif
