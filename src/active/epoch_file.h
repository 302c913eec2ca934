/* A node's id and the last epoch that it has begun, in a small file of its own in the server's
 * directory (DESIGN.md, "Order"). Whoever begins an epoch writes it down before the first write
 * of it: so no number is ever given twice, whatever becomes of the data files.
 *
 *   "active-node 1 <node id and epoch, 48 hex digits>\n"
 *
 * State: the file. */
#ifndef ACTIVE_EPOCH_FILE_H
#define ACTIVE_EPOCH_FILE_H

#include "active/origins.h"

#define EPOCH_FILE "active-node"

/* What the file says; a new id and epoch 0 where there is none. False, logged: it is there and
 * cannot be read, or is no such file. */
bool epoch_file_read(struct origin_id *last) MUST_CHECK;
/* Writes it, on the disk for good. False, logged, when that failed. */
bool epoch_file_write(const struct origin_id *last) MUST_CHECK;

#endif
