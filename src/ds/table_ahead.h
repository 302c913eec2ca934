/* Lookups in tables that are known some time before they are done: the lines that they will read
 * are asked for in steps, each step for many lookups before the next, so that the memory works on
 * all of them at once instead of on one after the other.
 *
 * The steps change nothing, and dereference only what the step before has asked for: the owner's
 * lock (for reading) is held over all of them, and what they have found is forgotten when it is
 * let go of, or when anything changes. The lookup itself starts from the beginning. State: that of
 * the table's owner. */
#ifndef DS_TABLE_AHEAD_H
#define DS_TABLE_AHEAD_H

#include "ds/table.h"

/* A lookup to come. */
struct table_ahead {
    const struct table *table;
    uint64_t hash;
    const struct table_bucket *bucket; /* after table_ahead_bucket */
};

/* First step: the table is known. */
static inline void table_ahead_begin(struct table_ahead *a, const struct table *t, uint64_t hash)
{
    a->table = t;
    a->hash = hash;
    a->bucket = NULL;
    __builtin_prefetch(t);
}

/* Second step, not needed where many lookups go to one table: the row of the directory. */
static inline void table_ahead_row(const struct table_ahead *a)
{
    __builtin_prefetch(table_row_of(a->table, a->hash));
}

/* Third step: the bucket. */
static inline void table_ahead_bucket(struct table_ahead *a)
{
    a->bucket = table_bucket_of(a->table, a->hash);
    __builtin_prefetch(a->bucket);
}

/* Last step: entries of the bucket that may be the one, and the bucket chained to it. */
static inline void table_ahead_entries(const struct table_ahead *a)
{
    table_peek_entries(a->bucket, a->hash);
    if (unlikely(a->bucket->meta & TABLE_CHAIN_BIT)) {
        __builtin_prefetch((const void *)a->bucket->slot[TABLE_BUCKET_SLOTS - 1]);
    }
}

#endif
