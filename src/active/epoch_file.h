/* A node's id, the last epoch that it has begun, and how far its clock may have come, in a small
 * file of its own in the server's directory (DESIGN.md, "Order"). Whoever begins an epoch writes it
 * down before the first write of it: so no number is ever given twice, whatever becomes of the data
 * files.
 *
 *   "active-node 2 <node id and epoch, 48 hex digits> <clock, 16 hex digits>\n"
 *
 * Version 1 had no clock. State: the file. */
#ifndef ACTIVE_EPOCH_FILE_H
#define ACTIVE_EPOCH_FILE_H

#include "active/origins.h"

#define EPOCH_FILE "active-node"

/* What the file says; a new id, epoch 0 and clock 0 where there is none. False, logged: it is there
 * and cannot be read, or is no such file. */
bool epoch_file_read(struct origin_id *last, uint64_t *clock) MUST_CHECK;
/* Writes it, on the disk for good. False, logged, when that failed. */
bool epoch_file_write(const struct origin_id *last, uint64_t clock) MUST_CHECK;
/* Another clock in the file, if it is that of this epoch. It is there for the next process, and on
 * the disk when the system comes to it; a failure is passed by, for the next one comes soon. */
void epoch_file_note_clock(const struct origin_id *own, uint64_t clock);

#endif
