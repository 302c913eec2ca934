/* The sending side of links of active replicas: clients that have said KEYDB.PULL are fed frames
 * (net/feed.h, sender.h) from the node's logs. Nothing is queued for them: what they are sent
 * next is found by number, under the keyspace lock in shared mode, some at a time; so one that
 * takes nothing costs its socket and one buffer.
 *
 *   KEYDB.PULL 2 <node id, 32 hex digits> <clock> [<origin> <position> <requested 0|1>]...
 *
 * answered by "+PULL <node id>" and frames; by "+MERGE <node id>", a whole data set
 * (full_sync_record.h) and then frames, when something that is requested is not kept any more; or
 * by "-NOMERGE ..." and the end of the connection, when that cannot be just now. REPLCONF PULL-ACK
 * comes on the same connection. State: thread-owned (the client's thread); the list is behind a
 * leaf lock. */
#ifndef ACTIVE_PEER_FEED_H
#define ACTIVE_PEER_FEED_H

#include "engine/call.h"
#include "net/client.h"

/* KEYDB.PULL. */
extern const struct command_row active_commands[];
/* REPLCONF PULL-ACK ...; false when the client does not pull from us. */
bool peer_feed_hear(struct call *c) REQUIRES(keyspace_lock);
/* True when the client pulls from us. */
bool peer_feed_is(const struct client *c);

/* There are new writes. Exclusive mode. */
void peer_feeds_wake(void);
/* Some ten times a second: what is due by the clock is sent; who has said nothing for `timeout_ms`
 * is closed. The GIL is held in shared mode. */
void peer_feeds_tick(int64_t now_ms, int64_t timeout_ms);
/* There is no node any more: all are closed, and touch it no more. */
void peer_feeds_end(void) REQUIRES(gil);
/* How many of them have said that they have our own writes up to that number. Any thread. */
int peer_feeds_with(uint64_t sequence);
/* They are to say soon how far they are. Any thread. */
void peer_feeds_ask(void);
/* How many pull from us, and of how many we have heard since then (monotonic). Any thread. */
int peer_feeds_count(void);
int peer_feeds_heard_since(int64_t ms);
/* Calls `visit` for each, with the list's lock held: a leaf. */
struct peer_feed_facts {
    const char *ip;
    int64_t port, heard_ms; /* monotonic */
};
void peer_feeds_each(void (*visit)(const struct peer_feed_facts *f, void *context), void *context);

#endif
