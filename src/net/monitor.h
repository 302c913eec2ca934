/* MONITOR: a line for each executed command, to every monitoring client. The executing thread
 * formats the line once and posts it, counted, to each thread that has monitors. State: the
 * monitors' lists are thread-owned, counts atomic. */
#ifndef NET_MONITOR_H
#define NET_MONITOR_H

#include "net/server_thread.h"

/* Boot: becomes the engine's observer. */
void monitor_setup(void);
/* The client starts / stops monitoring. Its thread. */
void monitor_add(struct client *c);
void monitor_remove(struct client *c);

#endif
