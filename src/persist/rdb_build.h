/* Building a collection from elements that come one by one from outside: a list's elements, a set's
 * members, a hash's fields and values or a sorted set's members and scores in turn. The encoding is
 * what the configuration wants, whatever it was where the elements come from. What must not be
 * (doubles, scores that are no number, half pairs, members beyond the limits) is refused. State:
 * that of its owner; the entry is in no database. */
#ifndef PERSIST_RDB_BUILD_H
#define PERSIST_RDB_BUILD_H

#include "base/buf.h"
#include "base/compiler.h"
#include "value/entry.h"
#include "value/zset.h"

#include <stdbool.h>
#include <stdint.h>

struct rdb_build {
    enum value_type type;
    struct slice key;
    uint64_t expected;       /* elements, going by the source; maybe more than come */
    struct entry *e;         /* NULL: nothing came yet, or a sorted set */
    struct zset_draft draft; /* of a sorted set */
    struct buf first;        /* of a pair whose second is to come */
    bool half;               /* there is one */
    bool with_deadlines;     /* elements come in threes: field, value, deadline (0: none) */
    bool has_deadline;       /* the third is to come */
    struct buf due_names;    /* fields with deadlines */
    struct buf due;          /* struct rdb_due */
};

/* Begins; VALUE_LIST, VALUE_SET, VALUE_HASH or VALUE_ZSET. `key` outlives the building. */
void rdb_build_begin(struct rdb_build *b, enum value_type type, struct slice key,
                     uint64_t expected);
/* The next element; false when it must not be. A packed_visit_fn (packed.h), with the build as
 * context. */
bool rdb_build_add(struct slice element, void *build) MUST_CHECK;
/* The next member of a sorted set with its score. */
bool rdb_build_add_scored(struct rdb_build *b, struct slice member, double score) MUST_CHECK;
/* A member, which has come or will, is to have a deadline; false when there cannot be such a one.
 */
bool rdb_build_add_deadline(struct rdb_build *b, struct slice member, int64_t at_ms) MUST_CHECK;
/* Gives members of an entry the deadlines that were added here; false when one is not there or has
 * one already. rdb_build_finish does it with its own. */
bool rdb_build_deadlines(const struct rdb_build *b, struct entry **e) MUST_CHECK;
/* Ends. True and the entry, NULL when nothing came; false when something is missing. */
bool rdb_build_finish(struct rdb_build *b, struct entry **e) MUST_CHECK;
/* Frees what a build that is not to be finished holds; harmless after rdb_build_finish. */
void rdb_build_drop(struct rdb_build *b);

#endif
