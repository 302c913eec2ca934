/* Values in the RDB format: one table of how each type is written, one of how each type number is
 * read. State: none. */
#ifndef PERSIST_RDB_VALUE_H
#define PERSIST_RDB_VALUE_H

#include "persist/rdb_reader.h"
#include "persist/rdb_writer.h"
#include "value/entry.h"

/* The number of the form in which the value is written, and the value in that form. The keyspace
 * lock is held, in shared mode at least, or the entry is in no database. */
unsigned rdb_value_type(const struct entry *e);
void rdb_save_value(struct rdb_writer *w, const struct entry *e);

/* Reads a value of that number into a new entry without expiry under `key`. False with the reader's
 * fault set. True and NULL in *e for a collection that has no element, which Redis of old could
 * write: nobody wants it. Nothing is assumed of the bytes. */
bool rdb_load_value(struct rdb_reader *r, unsigned type, struct slice key,
                    struct entry **e) MUST_CHECK;

#endif
