/* Client-side caching: tracking clients, what they are told, and where it is sent
 * (engine/tracking.h has the log of changes and the order of it all). A thread remembers what its
 * clients read and tells them what has changed; where a client redirects to one on another thread,
 * that thread gets a message. State: thread-owned; counters and redirections atomic. */
#ifndef NET_TRACKING_H
#define NET_TRACKING_H

#include "engine/tracking.h"
#include "net/server_thread.h"

struct tracking; /* a thread's */
struct tracker;  /* a client's */
struct redirect;

/* Boot, and its reverse. */
void tracking_net_setup(void);
/* A thread's tables. Destroyed when its clients are gone. */
struct tracking *tracking_create(void);
void tracking_destroy(struct tracking **s);

/* Between two batches, no replies waiting to be sent: remembers what was read, and tells clients
 * what has changed. */
void tracking_deliver(struct server_thread *t);
/* The batch has run, its locks are released: wakes the threads that have something to read. */
void tracking_wake_others(struct server_thread *t);

/* What CLIENT TRACKING ON asks for. */
struct tracking_wish {
    unsigned flags;               /* enum tracking_flag */
    struct client *target;        /* REDIRECT, or NULL */
    const struct slice *prefixes; /* BCAST's; they overlap neither each other nor those it has */
    int prefix_count;
};
/* World: the client tracks from now on. */
void tracking_enable(struct client *c, const struct tracking_wish *wish) REQUIRES(gil);
/* The client tracks no longer. Its thread, or world. */
void tracking_disable(struct client *c);
/* The client goes; is with a thread now; is with none. Owner. */
void tracking_forget(struct client *c);
void tracking_adopted(struct client *c);
void tracking_abandoned(struct client *c);

/* Client ids: -1 when it does not track, 0 when it redirects to nobody. */
int64_t tracking_redirect_id(const struct client *c);
/* The i-th prefix by name; ptr NULL at the end. */
struct slice tracking_prefix_at(const struct client *c, size_t i);
/* Bytes of memory that the client's tracking takes, remembered keys not counted. */
size_t tracking_memory_bytes(const struct client *c);

/* INFO's figures. Any thread. */
struct tracking_counts {
    uint64_t clients, keys, items, prefixes;
};
struct tracking_counts tracking_count(void);
/* Has every thread forget keys beyond tracking-table-max-keys. Any thread. */
void tracking_trim_all(void);

#endif
