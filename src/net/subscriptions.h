/* Subscriptions of clients, and the sending of messages to them. Each server thread has tables of
 * its own clients' subscriptions; the registry (engine/pubsub.h) knows which threads to send a
 * message to. A thread deals a message out: notes it for each subscriber, at the moment that the
 * order of messages and subscriptions demands; and sends what is noted, all of a client's messages
 * in one go, when the replies before them have been sent. State: thread-owned; what other threads
 * touch is atomic. */
#ifndef NET_SUBSCRIPTIONS_H
#define NET_SUBSCRIPTIONS_H

#include "net/server_thread.h"

struct subscriptions; /* a thread's */
struct subscriber;    /* a client's */

/* Boot: tells the engine who delivers. */
void subscriptions_setup(int threads);
/* A thread's tables. Destroyed when its clients are gone. */
struct subscriptions *subscriptions_create(struct server_thread *t);
void subscriptions_destroy(struct server_thread *t);

/* Between two batches, no replies waiting to be sent: deals out and sends what has come, up to a
 * bound; t->more_to_do says that there is more. */
void subscriptions_deliver(struct server_thread *t);
/* The batch has run, its locks are released: wakes the threads that it has published to. */
void subscriptions_wake_others(struct server_thread *t);
/* After a turn: waits while threads that this one has published to do not keep up; serves its own
 * subscribers and inbox meanwhile. The thread is awake before and after. */
void subscriptions_wait_for_others(struct server_thread *t);

/* RESET: replies what has been published to the client and ends its subscriptions. */
void subscriptions_end(struct client *c, struct reply *reply);
/* The client goes: ends its subscriptions and forgets what was to be sent. */
void subscriptions_forget(struct client *c);
/* The numbers that CLIENT LIST shows: channels, patterns, shard channels. Owner's thread, or
 * world. */
struct subscription_counts {
    uint64_t channels, patterns, shards;
};
struct subscription_counts subscriptions_count(const struct client *c);
/* Calls `visit` for every channel and pattern that the client listens to, until it returns false;
 * true when it never did. World. */
bool subscriptions_each(const struct client *c,
                        bool (*visit)(struct slice name, bool is_pattern, void *context),
                        void *context);
/* Bytes that the client's subscriptions take. */
size_t subscriptions_memory_bytes(const struct client *c);
/* True when the thread may have subscribers. Any thread. */
bool subscriptions_exist(const struct server_thread *t);

#endif
