/* What a node's files tell of its past (DESIGN.md, "Files"): its id, its clock, the origins with
 * their positions, the conflicts that are pending. Collected while the files are loaded, before the
 * node is there; node_create takes its origins over, for the dots of the keys that were
 * loaded have indexes of that table.
 *
 *   RDB, or base of an AOF: take for the head, take_dot for each key
 *   units of an AOF: take_record, the unit is run, apply
 *
 * Nothing that files say is believed; errors are texts that live for ever, NULL is success. State:
 * the loading thread's; apply needs the keyspace in exclusive mode. */
#ifndef ACTIVE_RESTORED_H
#define ACTIVE_RESTORED_H

#include "base/buf.h"
#include "keyspace/lock.h"
#include "active/conflicts.h"
#include "active/dot_bytes.h"
#include "active/gives.h"
#include "active/libraries.h"
#include "active/origins.h"

#include <stdbool.h>
#include <stdint.h>

struct restored {
    bool has_id; /* a file told of a node */
    uint8_t id[ORIGIN_NODE_BYTES];
    uint64_t clock; /* no stamp in the files is above it */
    struct origins origins;
    struct conflicts *conflicts; /* noted at time 0: they are due at once */
    uint64_t merging_done;       /* so many records of it are in the log */
    struct buf merging;          /* the file with a data set that was being merged; empty: none */
    struct version_vector *merging_had; /* merge_snapshot.had of it; NULL: it is not said */
    struct buf libraries;               /* what they say of those, rows (libraries.h) */
    struct gives gives;                 /* that nobody has heard of yet, as far as they know */
    int first_db, dbs;                  /* of the node's data */
    /* private */
    struct dot_table table; /* of the file that is being loaded */
    struct dot dot;         /* of the unit that comes; stamp 0: none */
    bool is_base;           /* ... or of the key that comes, in a base of commands */
    bool has_keys;          /* its head names keys, or says that there are none */
    bool has_parted;        /* nothing before it holds */
    struct buf facts;       /* of its head */
};

/* Of nothing, over the databases [first_db, first_db + dbs). */
void restored_init(struct restored *p, int first_db, int dbs);
/* Its reverse. */
void restored_deinit(struct restored *p);

/* A field of a head. *known: it is one of these. */
const char *restored_take(struct restored *p, struct slice name, struct slice value,
                          bool *known) MUST_CHECK;
/* The dot of a key of the file whose head was taken. */
const char *restored_take_dot(const struct restored *p, struct slice value,
                              struct dot *dot) MUST_CHECK;
/* KEYDB.DOT, KEYDB.DOTS, KEYDB.AUX, KEYDB.MERGING, KEYDB.MERGED or KEYDB.PARTED; see dots.h. */
const char *restored_take_record(struct restored *p, int argc, const struct slice *argv,
                                 bool *alone) MUST_CHECK;
/* What the last head said is so. `db` is the keyspace's number, unlike those in heads. */
void restored_apply(struct restored *p, int db, struct slice key) REQUIRES(keyspace_lock);
/* No key of these databases is anybody's any more: looks at each. */
void restored_void_dots(int first_db, int dbs) REQUIRES(keyspace_lock);

/* Puts the fields of a head: origins with their positions, conflicts, libraries, what was given. */
typedef void (*restored_put)(const char *name, struct slice value, void *context);
void restored_tell(const uint8_t *id, uint64_t clock, const struct origins *o,
                   const struct conflicts *d, const struct libraries *l, const struct gives *g,
                   restored_put put, void *context) REQUIRES_SHARED(keyspace_lock);

#endif
