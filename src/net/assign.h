/* Which thread gets a connection, and moving clients when the load is uneven. State: atomic
 * counters; moves are made by the clients' own threads. */
#ifndef NET_ASSIGN_H
#define NET_ASSIGN_H

#include "net/server_thread.h"

/* The thread for a new connection: the first that has fewer than min-clients-per-thread clients,
 * else the one with the fewest, a replica counting for replica-weighting-factor of them; with
 * active-client-balancing off, each in turn. */
struct server_thread *assign_thread(void);
/* Gives a fresh client to a thread. */
void assign_client(struct client *c, struct server_thread *t);
/* Cron, once a second: when one thread runs far more commands than another, has the busy one move a
 * client whose share fits, where that gives it time that it lacks. Costs a few loads when there is
 * nothing to do. */
void assign_balance(int64_t wall_ms);

#endif
