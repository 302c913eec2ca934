/* Feeds: clients to whom an endless stream is sent from memory that is not theirs (replicas, which
 * read the backlog's blocks). A client with a feed gets nothing else: what its commands reply is
 * dropped. The feed's bytes are asked for where the socket takes them, so nothing is queued; what
 * it has not taken yet counts as unread output against the limits of class `replica`.
 *
 *   feed_attach --feed_start, the turn's replies are sent--> FEEDING --client_destroy--> gone
 *
 * State: thread-owned (its client's thread); feeds_wake is for everybody. */
#ifndef NET_FEED_H
#define NET_FEED_H

#include "net/server_thread.h"

#include <sys/uio.h>

struct feed;

/* All on the client's thread. */
struct feed_ops {
    /* What to send next, at most `max` vectors, borrowed until the next call; their number, 0 when
     * there is nothing for now, -1 when the client is to be closed. */
    int (*next)(struct feed *f, struct iovec *vectors, int max);
    /* So many of those bytes are sent. */
    void (*sent)(struct feed *f, size_t bytes);
    /* Whether the client is to be closed now. Asked each time that feeds are woken, be the client's
     * socket full or not. */
    bool (*over)(struct feed *f);
    /* Bytes that wait to be sent. Also under the GIL. */
    uint64_t (*pending)(const struct feed *f);
    /* A smaller hard limit of those is taken as this: so much may wait where it begins.
     * May be NULL. */
    uint64_t (*least_limit)(void);
    /* The client is no more; the feed is its owner's again. */
    void (*gone)(struct feed *f);
};

struct feed {
    const struct feed_ops *ops;
    struct client *client; /* NULL when it is gone */
    bool started;
    struct feed *next, **link; /* its thread's */
};

/* Gives the client a feed, which nothing is asked of yet; it has none. Its thread. */
void feed_attach(struct client *c, struct feed *f, const struct feed_ops *ops);
/* From the end of the turn on the client is fed. Its thread. */
void feed_start(struct feed *f);
/* client_destroy's. */
void feed_forget(struct client *c);

/* There may be something new for feeds. Any thread, any lock. Those of the calling server thread
 * are served at the end of its batch, others are woken. */
void feeds_wake(void);
/* A turn's batch has run, its replies are sent: serves the thread's feeds, wakes the other threads.
 */
void feeds_run_woken(struct server_thread *t);
/* Whether a client that has a feed is to be closed. Owner. */
bool feed_is_over(const struct client *c);
/* Bytes that wait for the client. Owner, or world. */
uint64_t feed_pending(const struct client *c);
/* The smallest hard limit of those, 0 for who has no feed. Owner. */
uint64_t feed_least_limit(const struct client *c);

#endif
