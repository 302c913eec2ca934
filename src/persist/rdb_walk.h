/* A whole RDB file, read item by item: what the loader and keydb-check-rdb share. Knows no
 * database. Everything that the file says is checked; what comes of it is shown to the visitor.
 * State: that of its owner. */
#ifndef PERSIST_RDB_WALK_H
#define PERSIST_RDB_WALK_H

#include "base/buf.h"
#include "base/compiler.h"
#include "persist/rdb_build.h"
#include "persist/rdb_reader.h"
#include "value/entry.h"

#include <stdbool.h>
#include <stdint.h>

struct rdb_walk;

/* A key with its value. */
struct rdb_walk_key {
    struct entry *e;           /* without expiry; NULL: an empty collection, or skipped
                                  (rdb_module_skips) */
    int64_t expiry_ms;         /* or ENTRY_NO_EXPIRY */
    int64_t idle_s, frequency; /* -1: unknown */
    uint64_t db;
    uint64_t offset; /* where its type stands in the file */
    unsigned type;   /* enum rdb_type */
};

/* All but `key` may be NULL. Who returns false has called rdb_fail(&w->r, ...). */
struct rdb_walk_visitor {
    /* Takes key->e. The name of a key without entry is in w->key. */
    bool (*key)(struct rdb_walk *w, struct rdb_walk_key *key_take);
    bool (*aux)(struct rdb_walk *w, struct slice name, struct slice value);
    /* AUX active-dot, of the key that comes next (dots.h). */
    bool (*dot)(struct rdb_walk *w, struct slice value);
    bool (*library)(struct rdb_walk *w, struct slice source);
    /* Data of a module come, which it takes itself (rdb_module.h): what it may look at must be
     * there. */
    bool (*module_aux)(struct rdb_walk *w);
    bool (*select)(struct rdb_walk *w, uint64_t db);
    /* How many keys come in this database, and how many of them with expiry: as the file says. */
    bool (*resize)(struct rdb_walk *w, uint64_t keys, uint64_t expires);
};

struct rdb_walk {
    struct rdb_reader r;
    const struct rdb_walk_visitor *visitor;
    void *context; /* the visitor's */
    bool alone;    /* nothing but the RDB part may be there */
    bool checksum; /* compare the file's */
    bool sum_told; /* the file brought one (found at its end) */
    unsigned version;
    uint64_t db;
    /* Of the next key. */
    int64_t expiry_ms, idle_s, frequency;
    struct rdb_walk_key waiting; /* the key read last, which waits for deadlines of members (KeyDB
                                    writes them behind it) */
    bool waits;
    struct rdb_build due;
    struct buf member; /* whose deadline comes next */
    struct buf key, text;
    /* For who tells of a fault: what was being done, and to which key and type number. */
    const char *doing;
    unsigned doing_type;
    bool has_key; /* the key in `key` is that one */
};

/* Prepares for an open file of `size` bytes, at its current position. */
void rdb_walk_init(struct rdb_walk *w, const struct rdb_walk_visitor *visitor, void *context,
                   int fd, uint64_t size);
/* Prepares for a feed (rdb_reader.h). */
void rdb_walk_init_feed(struct rdb_walk *w, const struct rdb_walk_visitor *visitor, void *context,
                        const struct rdb_feed *feed);
/* Reads it all, up to the end of the RDB part: bytes may follow (an AOF with a preamble). False
 * with w->r.error set; what was shown before stays shown. */
bool rdb_walk_run(struct rdb_walk *w) MUST_CHECK;
void rdb_walk_deinit(struct rdb_walk *w);

#endif
