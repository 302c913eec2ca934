/* What a node's files tell of its past (ACTIVE.md, "In files"): its id, its clock, the origins with
 * their positions, the disputes that are pending. Collected while the files are loaded, before the
 * node is there; active_node_create takes its origins over, for the dots of the keys that were
 * loaded have indexes of that table.
 *
 *   RDB, or base of an AOF: take for the head, take_dot for each key
 *   units of an AOF: take_record, the unit is run, apply
 *
 * Nothing that files say is believed; errors are texts that live for ever, NULL is success. State:
 * the loading thread's; apply needs the keyspace in exclusive mode. */
#ifndef REPL_ACTIVE_PAST_H
#define REPL_ACTIVE_PAST_H

#include "base/buf.h"
#include "keyspace/lock.h"
#include "repl/active_disputes.h"
#include "repl/active_dot_bytes.h"
#include "repl/active_origins.h"

#include <stdbool.h>
#include <stdint.h>

struct active_past {
    bool has_id; /* a file told of a node */
    uint8_t id[ACTIVE_NODE_BYTES];
    uint64_t clock; /* no stamp in the files is above it */
    struct active_origins origins;
    struct active_disputes *disputes; /* noted at time 0: they are due at once */
    int first_db, dbs;                /* of the node's data */
    /* private */
    struct active_table table; /* of the file that is being loaded */
    struct active_dot dot;     /* of the unit that comes; stamp 0: none */
    bool is_base;              /* ... or of the key that comes, in a base of commands */
    bool has_keys;             /* its head names keys, or says that there are none */
    struct buf facts;          /* of its head */
};

/* Of nothing, over the databases [first_db, first_db + dbs). */
void active_past_init(struct active_past *p, int first_db, int dbs);
/* Its reverse. */
void active_past_deinit(struct active_past *p);

/* A field of a head. *known: it is one of these. */
const char *active_past_take(struct active_past *p, struct slice name, struct slice value,
                             bool *known) MUST_CHECK;
/* The dot of a key of the file whose head was taken. */
const char *active_past_take_dot(const struct active_past *p, struct slice value,
                                 struct active_dot *dot) MUST_CHECK;
/* KEYDB.DOT or KEYDB.AUX; see dots.h. */
const char *active_past_take_record(struct active_past *p, int argc, const struct slice *argv,
                                    bool *alone) MUST_CHECK;
/* What the last head said is so. `db` is the keyspace's number, unlike those in heads. */
void active_past_apply(struct active_past *p, int db, struct slice key) REQUIRES(keyspace_lock);

/* Puts the fields of a head: origins with their positions, disputes. */
typedef void (*active_past_put)(const char *name, struct slice value, void *context);
void active_past_tell(const uint8_t *id, uint64_t clock, const struct active_origins *o,
                      const struct active_disputes *d, active_past_put put, void *context);

#endif
