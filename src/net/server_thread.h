/* A server thread: an event loop, the clients given to it, and what a turn needs. State:
 * thread-owned; the inbox and the counters marked atomic are for everybody.
 *
 *   SLEEPING (in the event loop, GIL given up) --callback--> AWAKE (GIL shared) --turn done-->
 * SLEEPING
 *
 * Every callback begins with server_thread_wake(). */
#ifndef NET_SERVER_THREAD_H
#define NET_SERVER_THREAD_H

#include "base/arena.h"
#include "base/inbox.h"
#include "net/client.h"
#include "resp/reply.h"

#include <pthread.h>
#include <time.h>

/* Bytes of one recv, and of all recvs of one turn that are parsed in place. */
#define INPUT_CHUNK_BYTES ((size_t)16 * 1024)
#define INPUT_BUFFER_BYTES ((size_t)1024 * 1024)

/* No clock has this id. */
#define NO_CPU_CLOCK ((clockid_t)-1)

struct batch;          /* turn.c */
struct subscriptions;  /* subscriptions.c */
struct tracking;       /* tracking.c */
struct waiting_client; /* durable.c */

/* The highest values of the last seconds, by second. */
#define RECENT_SECONDS 8
struct recent {
    uint64_t second[RECENT_SECONDS], most[RECENT_SECONDS];
};

struct server_thread {
    int index;
    _Atomic unsigned slot;       /* thread.h; set when it starts */
    _Atomic clockid_t cpu_clock; /* its CPU time; set when it starts */
    pthread_t pthread;
    struct event_base *base;
    struct inbox inbox;
    struct event *inbox_event;
    bool awake, stopping;
    bool more_to_do; /* does not sleep in the next loop */
    int64_t wall_us; /* clocks, read when it woke */
    uint64_t mono_s;

    struct client *clients;        /* list */
    _Atomic uint32_t client_count; /* those on their way included */
    _Atomic uint64_t commands;     /* executed, for the balancer */
    _Atomic uint32_t monitor_count;
    struct client *monitors;
    struct feed *feeds;                                 /* feed.h: its clients' */
    _Atomic uint32_t feed_count;                        /* of them */
    _Atomic bool feeds_told;                            /* a message to serve them is under way */
    bool feeds_woken;                                   /* by this thread itself, in this turn */
    _Atomic size_t clients_bytes, largest_client_bytes; /* see client_memory.h */
    _Atomic bool asked_to_evict;
    bool clients_grew;

    struct client **ready; /* clients with input, in order of arrival */
    uint32_t ready_count, ready_capacity, ready_next;
    struct client **unread; /* see input.h */
    uint32_t unread_count, unread_capacity;
    uint32_t greeting_steps; /* of TLS handshakes, of late; see input.c */
    _Atomic bool nudged;     /* somebody flagged clients of ours for closing, and has told us */
    struct client **closing;
    uint32_t closing_count, closing_capacity;
    struct client **suspended; /* clients with a continuation */
    uint32_t suspended_count, suspended_capacity;
    struct blocked **timeouts; /* see blocked.c */
    uint32_t timeout_count, timeout_capacity;
    struct waiting_client *committing; /* see durable.c */
    uint32_t committing_count, committing_capacity;
    bool commit_armed; /* it has asked to be told */
    _Atomic bool commit_wanted;
    struct inbox_message commit_message;
    struct event *timer;
    int64_t timer_ms; /* when it fires (clock_mono); INT64_MAX: never */

    struct recent recent_input, recent_output; /* bytes of a client's buffers */
    char *input;                               /* INPUT_BUFFER_BYTES */
    size_t input_used;
    struct arena arena; /* requests and keys of a batch */
    struct reply reply;
    struct batch *batch;
    struct subscriptions *subscriptions;
    struct tracking *tracking;
};

/* Owner: a client's buffer has grown to that many bytes. */
static inline void server_thread_note_recent(const struct server_thread *t, struct recent *r,
                                             uint64_t bytes)
{
    unsigned at = (unsigned)(t->mono_s % RECENT_SECONDS);
    if (r->second[at] != t->mono_s) {
        r->second[at] = t->mono_s;
        r->most[at] = 0;
    }
    if (bytes > r->most[at]) {
        r->most[at] = bytes;
    }
}

/* Starts `count` server threads. Boot. */
void server_threads_start(int count);
/* Ends and joins them; their clients are closed. Not from a server thread. */
void server_threads_stop(void);
int server_thread_count(void);
struct server_thread *server_thread_at(int index);
/* The calling server thread, NULL on others. */
struct server_thread *server_thread_self(void);

/* Takes the GIL (shared) and reads the clock. The thread is asleep. */
void server_thread_wake_up(struct server_thread *t);
/* The same if the thread is asleep. */
static inline void server_thread_wake(struct server_thread *t)
{
    if (unlikely(!t->awake)) {
        server_thread_wake_up(t);
    }
}
/* Sleeps for a time, outside the event loop: others may stop the world meanwhile. Awake before and
 * after, at a safe point (no lock held). */
void server_thread_pause(struct server_thread *t, const struct timespec *time);
/* Room for more clients on the ready list. */
void server_thread_grow_ready(struct server_thread *t);
/* Owner: the client has input or a change of state to look at in this turn. */
static inline void server_thread_make_ready(struct server_thread *t, struct client *c)
{
    if (unlikely(c->flags & (CLIENT_ON_READY_LIST | CLIENT_CLOSE_ASAP))) {
        return;
    }
    if (unlikely(t->ready_count == t->ready_capacity)) {
        server_thread_grow_ready(t);
    }
    t->ready[t->ready_count++] = c;
    c->flags |= CLIENT_ON_READY_LIST;
}
/* Runs `function(thread, argument)` on thread `t`, awake. Any thread. */
void server_thread_post(struct server_thread *t, void (*function)(struct server_thread *, void *),
                        void *argument);
/* Runs `function` on every server thread. */
void server_thread_post_all(void (*function)(struct server_thread *, void *), void *argument);

#endif
