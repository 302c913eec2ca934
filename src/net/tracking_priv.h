/* What the files of client-side caching share. For tracking*.c and client_tracking.c only. */
#ifndef NET_TRACKING_PRIV_H
#define NET_TRACKING_PRIV_H

#include "base/buf.h"
#include "net/tracking.h"
#include "net/tracking_table.h"

/* A client to whom others' invalidations are redirected. Counted: by the client while it lives, by
 * those who redirect to it, by messages on their way. */
struct redirect {
    _Atomic uint32_t refs;
    _Atomic int thread; /* where the client is; -1 while it is on its way to a thread */
    _Atomic bool gone;
    uint64_t id;
    struct client *client; /* its own thread only */
};

/* A client that tracks, or has tracked, keys. Freed when its client has gone and no remembered key
 * points to it. */
struct tracker {
    struct client *client; /* NULL: gone */
    uint64_t items;        /* remembered keys that point here */
    struct redirect *redirect;
    struct buf prefixes; /* of BCAST: struct prefix *, by rising name */
    /* What is to be sent: a size_t length and an array of keys in RESP, again and again; length 0
     * is "everything". */
    struct buf out;
    bool noted;
    struct tracker *next_noted;
    struct tracker *next, **link; /* the thread's */
};

/* A prefix that clients of this thread listen to. */
struct prefix {
    struct tracker **trackers;
    uint32_t count, capacity;
    struct buf
        changes; /* keys that have changed: struct changed, then the bytes, again and again */
    uint32_t change_count;
    size_t len;
    char name[];
};

struct tracking {
    struct tracking_position position;
    struct tracker *trackers;
    struct tracker *noted;
    struct prefix **prefixes;
    uint32_t prefix_count, prefix_capacity;
    uint64_t to_wake; /* threads that this one has changes for */
    _Atomic bool wake_sent;
    struct inbox_message wake; /* on its way while wake_sent */
    struct tracking_table table;
    _Atomic uint64_t key_count, item_count; /* the table's, for INFO */
};

/* A remembered key points here no longer. */
void tracker_forget_item(struct tracker *tracker);
/* The tracker listens to the prefix, or to none any more. */
void tracking_prefix_join(struct tracking *s, struct tracker *tracker, struct slice name);
void tracking_prefixes_leave(struct tracking *s, struct tracker *tracker);
/* Notes a changed key for all prefixes that fit; tells the trackers what is noted. */
void tracking_prefixes_note(struct server_thread *t, const struct tracking_change *change);
void tracking_prefixes_deal(struct server_thread *t);
/* Different prefixes of all threads. Any thread. */
uint64_t tracking_prefix_count(void);
/* Appends a bulk string. */
void tracking_append_key(struct buf *out, struct slice key);
/* Puts an array of keys in RESP into the tracker's output; "everything" when body is empty. */
void tracking_put(struct server_thread *t, struct tracker *tracker, struct slice body);
/* The client's prefixes. */
static inline struct prefix **tracking_prefixes_of(const struct tracker *tracker, size_t *count)
{
    *count = tracker->prefixes.len / sizeof(struct prefix *);
    return (struct prefix **)(void *)tracker->prefixes.data;
}

#endif
