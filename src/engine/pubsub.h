/* Who listens to which channel, and published messages on their way. A receiver is a server thread:
 * it owns the subscriptions of its own clients (net/subscriptions.h); here stands, for each channel
 * and pattern, which receivers have subscribers and how many there are in all. A message is made
 * once, put in the queue of each receiver that wants it, and freed by the last one.
 *
 * Order: subscribing, unsubscribing and publishing happen one after the other (a leaf lock), and
 * all queues are filled under it, so every receiver sees messages in one order, and a message
 * reaches exactly the subscriptions that stood at its moment: whoever changes a subscription first
 * takes the receiver's queue, in the same step, and deals it out to the subscriptions as they were.
 *
 * State: the registry and the queues behind a leaf lock (LOCK_RANK_PUBSUB); messages immutable. */
#ifndef ENGINE_PUBSUB_H
#define ENGINE_PUBSUB_H

#include "base/hash.h"
#include "engine/call.h"
#include "value/blob.h"

#include <stdatomic.h>

enum pubsub_kind { PUBSUB_CHANNEL, PUBSUB_SHARD, PUBSUB_PATTERN, PUBSUB_KIND_COUNT };

/* Server threads at most (net/settings.h's limit). */
#define PUBSUB_RECEIVERS_MAX 64

struct pubsub_message {
    enum pubsub_kind kind; /* PUBSUB_CHANNEL or PUBSUB_SHARD */
    uint64_t hash;         /* of the channel, see pubsub_hash */
    struct slice channel;  /* in `text` */
    struct slice text;     /* the frame's end: "$3\r\nfoo\r\n$3\r\nbar\r\n", or up to the length
                              of the payload where that is a blob */
    struct blob *payload;  /* a large payload, "\r\n" still to follow; NULL: it is in `text` */
    size_t cost;           /* what it counts for in a queue */
    _Atomic uint32_t refs; /* receivers that have it, and its publisher */
    struct pubsub_message *next[]; /* of each receiver's queue */
};

/* The hash under which a name of a kind is found, in the registry and in receivers' tables. */
static inline uint64_t pubsub_hash(enum pubsub_kind kind, struct slice name)
{
    return hash_slice(name) ^ (uint64_t)kind * 0x9e3779b97f4a7c15u;
}

/* ---- what net/ supplies at boot ---- */

struct pubsub_delivery {
    /* Subscribes the session, or ends a subscription; nothing when it is so already. Returns how
     * many subscriptions it has then: of channels and patterns together, of shard channels by
     * themselves. The session is a client's, and the caller on its thread. */
    uint64_t (*subscribe)(struct session *s, enum pubsub_kind kind, struct slice name);
    uint64_t (*unsubscribe)(struct session *s, enum pubsub_kind kind, struct slice name);
    /* Some name that the session subscribes to, valid until the call has been answered; ptr NULL
     * when there is none. */
    struct slice (*some)(const struct session *s, enum pubsub_kind kind);
    /* The number that the two above return. */
    uint64_t (*count)(const struct session *s, enum pubsub_kind kind);
    /* Replies what has been published to the session so far. Not in a nested call: it is sent
     * behind the reply then. */
    void (*settle)(struct call *c);
    /* These receivers' queues were empty; those of `crowded` are filled beyond what is good. Runs
     * on the publisher's thread, perhaps under the keyspace lock. */
    void (*posted)(uint64_t wake, uint64_t crowded);
};

/* Boot: `receivers` threads will take part. Makes keyspace events published. */
void pubsub_setup(const struct pubsub_delivery *delivery, int receivers);
/* Frees everything; nobody subscribes any more. */
void pubsub_teardown(void);
const struct pubsub_delivery *pubsub_delivery(void);

/* ---- publishing; any thread, the keyspace lock held or not ---- */

/* Publishes argument `payload` of a call on `channel`; returns the number of subscriptions that it
 * goes to. */
uint64_t pubsub_publish(struct call *c, enum pubsub_kind kind, int channel, int payload);

/* ---- for receivers ---- */

/* The receiver has one subscription more (`is_first`: of that name) or less (`is_last`). Returns
 * what was in its queue until that moment, oldest first. */
struct pubsub_message *pubsub_join(int receiver, enum pubsub_kind kind, uint64_t hash,
                                   struct slice name, bool is_first);
struct pubsub_message *pubsub_leave(int receiver, enum pubsub_kind kind, uint64_t hash,
                                    struct slice name, bool is_last);
/* Takes what is in the queue. */
struct pubsub_message *pubsub_take(int receiver);
/* The receiver has dealt the message out: it does not count in its queue any more. */
void pubsub_dealt(int receiver, const struct pubsub_message *m);
/* Gives back the receiver's hold of a message. */
void pubsub_release(struct pubsub_message *m);
/* Which of these receivers' queues are filled beyond what is good: publishers wait for them. */
uint64_t pubsub_crowded(uint64_t receivers);

/* ---- looking ---- */

/* Subscriptions of a channel, patterns not counted. */
uint64_t pubsub_subscribers(enum pubsub_kind kind, struct slice name);
/* Names of that kind which somebody subscribes to. */
uint64_t pubsub_names(enum pubsub_kind kind);
/* Calls `visit` with each of them, some at a time, without the lock; those that come or go
 * meanwhile may be missed. */
void pubsub_each(enum pubsub_kind kind, void (*visit)(struct slice name, void *context),
                 void *context);

#endif
