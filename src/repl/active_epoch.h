/* A node's id and the last epoch that it has begun, in a small file of its own in the server's
 * directory (ACTIVE.md, "Who wrote"). Whoever begins an epoch writes it down before the first write
 * of it: so no number is ever given twice, whatever becomes of the data files.
 *
 *   "active-node 1 <node id and epoch, 48 hex digits>\n"
 *
 * State: the file. */
#ifndef REPL_ACTIVE_EPOCH_H
#define REPL_ACTIVE_EPOCH_H

#include "repl/active_origins.h"

#define ACTIVE_EPOCH_FILE "active-node"

/* What the file says; a new id and epoch 0 where there is none. False, logged: it is there and
 * cannot be read, or is no such file. */
bool active_epoch_read(struct active_origin_id *last) MUST_CHECK;
/* Writes it, on the disk for good. False, logged, when that failed. */
bool active_epoch_write(const struct active_origin_id *last) MUST_CHECK;

#endif
