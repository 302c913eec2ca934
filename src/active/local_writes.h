/* This process's own writes, collected as units: a log of the door (engine/propagate.h) that puts
 * what a command, a transaction or a script did into one unit and gives it the next dot at once, so
 * that it stands in the one order where it happened. Handlers and scripts may be in the middle of
 * their work: so units wait until the hold's end, when node_settle makes them the node's. A SET
 * alone is told when its handler has ended, and does nothing but give its key a dot: it is the
 * node's at once, while all that it takes is in the cache. What somebody who writes finds gone
 * because of its time is told as a deletion, where that stands in the order of writes.
 *
 *   nothing --commands--> nothing (each a unit)      nothing --MULTI--> open --EXEC--> nothing
 *
 * State: keyspace (exclusive mode); which node is told is set at boot. */
#ifndef ACTIVE_LOCAL_WRITES_H
#define ACTIVE_LOCAL_WRITES_H

#include "keyspace/lock.h"
#include "active/hlc.h"
#include "active/log_head.h"
#include "active/unit.h"

struct local_writes {
    const struct origins *origins;
    struct hlc *clock;
    uint16_t self;         /* index of the origin that they are of */
    int first_db, dbs;     /* of the node's data */
    bool muted;            /* what is run now is no write of ours */
    uint64_t units;        /* so far, INFO */
    struct log_head *head; /* hears of each unit; NULL: none does */
    /* Asked of what one call did, if nothing waits: true when the unit is the node's at once, whose
     * reference it is then. In exclusive mode. NULL: all wait. */
    bool (*take)(void *context, struct unit *unit);
    void *context;
    /* private */
    bool open;
    int unit_db;         /* of its first command */
    int db;              /* of its last one */
    struct buf commands; /* of the unit that is open */
    struct unit **pending;
    uint32_t count, taken, capacity;
};

/* Bytes of the commands of one unit: what a frame has room for. A test seam may have less. */
extern size_t local_writes_bound;

/* Boot, after propagate_setup and before logs that files are made of; its reverse. */
void local_writes_setup(void);
void local_writes_teardown(void);
/* The node's log is about to be replayed: commands do all that they did for peers' sake (what trims
 * a stream counts as deleted there), and nobody is told. Until local_writes_attach. */
void local_writes_replay(void) REQUIRES(keyspace_lock);
/* From now on these are told (NULL: nobody); not within a unit. */
void local_writes_attach(struct local_writes *own) REQUIRES(keyspace_lock);

/* Of the databases [first_db, first_db + dbs); `self` is set before anything is told. */
void local_writes_init(struct local_writes *own, const struct origins *origins, struct hlc *clock,
                       int first_db, int dbs);
/* Its reverse; units that wait are dropped. It is not attached. */
void local_writes_deinit(struct local_writes *own);
/* A unit of the node itself, which no command of a client made. */
void local_writes_tell(struct local_writes *own, int db, struct slice commands)
    REQUIRES(keyspace_lock);
/* The same of states (KEYDB.STATE, KEYDB.DIGESTS). */
void local_writes_tell_state(struct local_writes *own, int db, struct slice commands)
    REQUIRES(keyspace_lock);
/* The number of our last unit, of those that wait too; 0: none. */
uint64_t local_writes_last(const struct local_writes *own) REQUIRES(keyspace_lock);
/* The first unit that waits, which is the caller's then; NULL when there is none. */
struct unit *local_writes_take(struct local_writes *own) REQUIRES(keyspace_lock);

#endif
