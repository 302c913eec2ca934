/* What a peer lacks and memory does not have any more, read from the logs' part on disk
 * (log_reserve.h): a sender (sender.h) goes through that from the first write that is missing on,
 * until memory has all that comes next. Meanwhile the writes of all requested origins are sent in
 * the order in which they came here.
 *
 *   off --begin, under the lock--> on: ( read, without the lock; some, under it )... --> off
 *
 * State: its owner's, the thread that serves the link. */
#ifndef ACTIVE_SENDER_DISK_H
#define ACTIVE_SENDER_DISK_H

#include "active/log_reserve.h"
#include "active/sender.h"

struct sender_disk {
    bool on;
    bool fresh;  /* what was read last has not been looked at */
    bool at_end; /* there was nothing more the last time */
    struct reserve_place place;
    struct buf raw; /* read, and not looked at */
};

/* Goes to where all that is requested and that memory lacks is ahead. False: it is nowhere. Shared
 * mode. */
bool sender_disk_begin(struct sender_disk *d, const struct sender *s, const struct origins *o,
                       const struct origin_log *log) MUST_CHECK;
/* Reads on, when what was read before has been looked at; false when what comes there is not kept
 * any more. No lock: it waits for the disk. */
bool sender_disk_read(struct sender_disk *d, struct log_reserve *reserve) MUST_CHECK;
/* Appends frames of what was read; turns itself off when memory has the rest. False: neither memory
 * nor disk has what comes next. Shared mode. */
bool sender_disk_some(struct sender_disk *d, struct sender *s, const struct origins *o,
                      const struct origin_log *log, struct buf *out) MUST_CHECK;
/* Frees what was read; it is off. */
void sender_disk_deinit(struct sender_disk *d);

#endif
