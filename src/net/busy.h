/* A thread whose script takes long serves its clients out of the script's hook (engine/busy.h): it
 * reads what has come, accepts those that were given to it, answers, most with BUSY, and closes
 * those that have left. The turn that the script is in stands still meanwhile: its batch, arena,
 * reply and input buffer are put aside, and clients whose requests lie in them are not read. State:
 * thread-owned. */
#ifndef NET_BUSY_H
#define NET_BUSY_H

/* Boot. */
void net_busy_setup(void);
/* Frees what the calling thread has for it, when it ends. */
void net_busy_leave(void);

#endif
