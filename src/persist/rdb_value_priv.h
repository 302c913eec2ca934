/* Parts of rdb_value that have files of their own. State: none. */
#ifndef PERSIST_RDB_VALUE_PRIV_H
#define PERSIST_RDB_VALUE_PRIV_H

#include "persist/rdb_value.h"

/* Streams (rdb_stream.c): writes one in the form of Redis 7.0; reads the forms RDB_STREAM, _2, _3.
 */
void rdb_save_stream(struct rdb_writer *w, const struct entry *e);
bool rdb_load_stream(struct rdb_reader *r, unsigned type, struct slice key,
                     struct entry **e) MUST_CHECK;
/* Nested hashes (rdb_nested.c), in our form. */
void rdb_save_nested(struct rdb_writer *w, const struct entry *e);
bool rdb_load_nested(struct rdb_reader *r, unsigned type, struct slice key,
                     struct entry **e) MUST_CHECK;
/* Jobs (rdb_job.c): RDB_JOB; RDB_KEYDB_CRON is read only. */
void rdb_save_job(struct rdb_writer *w, const struct entry *e);
bool rdb_load_job(struct rdb_reader *r, unsigned type, struct slice key,
                  struct entry **e) MUST_CHECK;
/* Values of modules (rdb_module.c): RDB_MODULE. */
void rdb_save_module(struct rdb_writer *w, const struct entry *e);
bool rdb_load_module(struct rdb_reader *r, unsigned type, struct slice key,
                     struct entry **e) MUST_CHECK;

#endif
