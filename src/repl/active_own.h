/* This process's own writes, collected as units: a log of the door (engine/propagate.h) that puts
 * what a command, a transaction or a script did into one unit and gives it the next dot at once, so
 * that it stands in the one order where it happened. Nothing is done to keys here, for handlers and
 * scripts are in the middle of their work: the units wait until the hold's end, when
 * active_node_settle makes them the node's. What somebody who writes finds gone because of its time
 * is told as a deletion, where that stands in the order of writes.
 *
 *   nothing --commands--> nothing (each a unit)      nothing --MULTI--> open --EXEC--> nothing
 *
 * State: keyspace (exclusive mode); which node is told is set at boot. */
#ifndef REPL_ACTIVE_OWN_H
#define REPL_ACTIVE_OWN_H

#include "keyspace/lock.h"
#include "repl/active_clock.h"
#include "repl/active_head.h"
#include "repl/active_unit.h"

struct active_own {
    const struct active_origins *origins;
    struct active_clock *clock;
    uint16_t self;            /* index of the origin that they are of */
    int first_db, dbs;        /* of the node's data */
    bool muted;               /* what is run now is no write of ours */
    uint64_t units;           /* so far, INFO */
    struct active_head *head; /* hears of each unit; NULL: none does */
    /* private */
    bool open;
    int unit_db;         /* of its first command */
    int db;              /* of its last one */
    struct buf commands; /* of the unit that is open */
    struct active_unit **pending;
    uint32_t count, taken, capacity;
};

/* Boot, after propagate_setup and before logs that files are made of; its reverse. */
void active_own_setup(void);
void active_own_teardown(void);
/* The node's log is about to be replayed: commands do all that they did for peers' sake (what trims
 * a stream counts as deleted there), and nobody is told. Until active_own_attach. */
void active_own_replay(void) REQUIRES(keyspace_lock);
/* From now on these are told (NULL: nobody); not within a unit. */
void active_own_attach(struct active_own *own) REQUIRES(keyspace_lock);

/* Of the databases [first_db, first_db + dbs); `self` is set before anything is told. */
void active_own_init(struct active_own *own, const struct active_origins *origins,
                     struct active_clock *clock, int first_db, int dbs);
/* Its reverse; units that wait are dropped. It is not attached. */
void active_own_deinit(struct active_own *own);
/* A unit of the node itself, which no command of a client made. */
void active_own_tell(struct active_own *own, int db, struct slice commands) REQUIRES(keyspace_lock);
/* The number of our last unit, of those that wait too; 0: none. */
uint64_t active_own_last(const struct active_own *own) REQUIRES(keyspace_lock);
/* The first unit that waits, which is the caller's then; NULL when there is none. */
struct active_unit *active_own_take(struct active_own *own) REQUIRES(keyspace_lock);

#endif
