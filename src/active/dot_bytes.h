/* Origins and dots as bytes beside a data set (a file): the table of origins with their
 * positions goes before the keys, and a key's dot names its origin by the index in that table.
 *
 *   table  4 count, then each, from index 1 on: 16 node id, 8 epoch, 8 position
 *   dot    8 stamp, 6 sequence, 2 index
 *
 * Numbers are little endian. What is read is not believed. State: none. */
#ifndef ACTIVE_DOT_BYTES_H
#define ACTIVE_DOT_BYTES_H

#include "active/origins.h"

#define DOT_BYTES 16

/* A table that was read: our index and the position there of each of its origins, from 1 on. */
struct dot_table {
    uint32_t count; /* behind the last index; 0: none was read */
    uint16_t *ours;
    uint64_t *positions;
};

/* Appends all origins of the table. */
void dot_table_put(const struct origins *o, struct buf *out);
/* Reads one into a table that is empty, and enters its origins. False when the bytes are none, name
 * an origin twice, or ours is full: the table is empty then. */
bool dot_table_get(struct dot_table *t, struct origins *o, struct slice bytes) MUST_CHECK;
void dot_table_deinit(struct dot_table *t);

/* A dot's bytes. */
void dot_put(struct dot dot, char out[DOT_BYTES]);
/* A dot with our own index of its origin. False when the bytes are none, or name a write that the
 * table's positions do not cover. */
bool dot_get(const struct dot_table *t, struct slice bytes, struct dot *dot) MUST_CHECK;

#endif
