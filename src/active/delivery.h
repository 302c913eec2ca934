/* Each element of a list, sorted set or stream group goes to one of all clients that wait for it,
 * on whatever node: the home of its key (membership.h) gives it.
 *
 * A call that waits (BLPOP, BLMOVE, BZMPOP, XREADGROUP BLOCK ... outside of MULTI and scripts)
 * leaves a key alone whose home is another node, and that node is told of it. There it waits as
 * well, in the queue of the key, behind and before others as they came; when it is its turn it is
 * run there, as a write of that node, and its reply is told to the node that it came from. Words of
 * units:
 *
 *   KEYDB.VIEW view entry ...                   views.h
 *   KEYDB.WAIT number db protocol word ...      a client of the teller's waits with this call
 *   KEYDB.UNWAIT number                         no longer
 *   KEYDB.GIVE node number db reply [count word ...] ...   it is served: its reply in the protocol
 *                                               it asked for. Words: writes that put back what it
 *                                               was given
 *
 * Who waits no more when he is given something (a time-out, an end of the connection on the way)
 * has it put back, at the end it came from (an entry of a stream: undelivered), in the hold of the
 * unit that says so: where our files have the one they have the other. When views change
 * all who wait are told once more, for a node that comes knows of none. A node that gets a data set
 * in place of units says which ones it has missed: what it was given by those is put back by who
 * gave it (gives.h). What is given to a node that never comes back is lost, as a reply is to a
 * client that never reads it; and what a node had given, of which the other one has not heard, when
 * it ended and the other one then got a data set. Pops that do not wait take what is here; two
 * nodes may give one element to two such clients, or to one of them and one who waits, within the
 * time that a link takes.
 *
 * One in a process: the server's node's. State: keyspace (exclusive mode). */
#ifndef ACTIVE_DELIVERY_H
#define ACTIVE_DELIVERY_H

#include "active/node.h"

/* The node has begun to live; and its reverse, when nobody waits any more. Boot. */
void delivery_begin(struct node *n) REQUIRES(keyspace_lock);
void delivery_end(void) EXCLUDES(keyspace_lock);
/* Some ten times a second: who is heard; what follows from it. `linked`: we have peers, or are to
 * have some. */
void delivery_tick(bool linked, int64_t now_ms) REQUIRES(keyspace_lock);
/* INFO's lines. */
void delivery_write_info(struct buf *out);

#endif
