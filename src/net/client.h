/* A client: a connection with its session, unparsed input, unsent output, and place among its
 * thread's clients. State: owned by its server thread. The list of all clients is behind a leaf
 * lock; who walks it and looks inside clients holds the GIL. An idle client costs about 1 KiB. */
#ifndef NET_CLIENT_H
#define NET_CLIENT_H

#include "base/buf.h"
#include "engine/call.h"
#include "net/settings.h"
#include "resp/parser.h"

#include <event2/event.h>
#include <event2/event_struct.h>

struct server_thread;
struct blocked;
struct subscriber; /* subscriptions.c */
struct tracker;    /* tracking.c */
struct tls;
struct redirect;
struct feed;

enum client_flag {
    CLIENT_CLOSE_AFTER_REPLY = 1 << 0, /* no more requests; closes when the output is sent */
    CLIENT_CLOSE_ASAP = 1 << 1,        /* to be closed at the end of the turn, sent or not */
    CLIENT_ON_READY_LIST = 1 << 2,
    CLIENT_ON_CLOSING_LIST = 1 << 3,
    CLIENT_UNIX = 1 << 4,  /* came over a Unix socket */
    CLIENT_LOCAL = 1 << 5, /* Unix socket or loopback address */
    CLIENT_MONITOR = 1 << 6,
    CLIENT_REPLY_OFF = 1 << 7,
    CLIENT_REPLY_SKIP_NEXT = 1 << 8, /* set by CLIENT REPLY SKIP, becomes SKIP for one request */
    CLIENT_REPLY_SKIP = 1 << 9,
    CLIENT_NO_EVICT = 1 << 10,
    CLIENT_WANTS_WRITE = 1 << 11,  /* the write event is armed */
    CLIENT_SUSPENDED = 1 << 12,    /* a continuation runs: no requests meanwhile */
    CLIENT_PAUSED = 1 << 13,       /* holds a request until the pause ends */
    CLIENT_UNREGISTERED = 1 << 14, /* on its way to another thread: no events armed */
    CLIENT_ON_UNREAD_LIST =
        1 << 15, /* its socket may hold more than was read: no event will tell */
    CLIENT_PEER_CLOSED =
        1 << 16,              /* the peer has ended the stream; perhaps not all of it is read yet */
    CLIENT_BLOCKED = 1 << 17, /* waits for keys: no requests meanwhile (blocked.h) */
    CLIENT_TLS = 1 << 18,     /* has a `tls` */
    CLIENT_GREETING = 1 << 19,   /* its TLS handshake is not over: nothing but that */
    CLIENT_COMMITTING = 1 << 20, /* its replies wait for the disk: no requests meanwhile (durable.h)
                                  */
    CLIENT_IN_BATCH =
        1 << 21,          /* its input is in use by the batch of a script (busy.h): not read now */
    CLIENT_FED = 1 << 22, /* has a feed, and gets nothing else (feed.h) */
    CLIENT_AUDITED = 1 << 23, /* what it does is told in the log (audit.h) */
    CLIENT_TOLD = 1 << 24,    /* modules know that it has come */
};

/* A piece of unsent output: a copy of bytes, or a reference to a blob. */
struct output_piece {
    struct output_piece *next;
    const char *ptr; /* not sent yet */
    size_t len;
    struct blob *blob;
    char copy[];
};

struct client {
    struct session session;
    struct server_thread *thread;
    struct client *all_next, **all_link;       /* list of all clients */
    struct client *thread_next, **thread_link; /* its thread's */
    struct client *monitor_next;
    struct subscriber *subscriber; /* NULL while it has never subscribed */
    struct tracker *tracker;       /* NULL while it has never tracked keys */
    struct redirect *redirect;     /* NULL while nobody redirects invalidations to it */
    struct tls *tls;               /* NULL without CLIENT_TLS */
    struct feed *feed;             /* of a replica; else NULL */
    char *local_addr;              /* as text, once it was asked for (client_list.c); else NULL */
    int fd;
    uint32_t flags;
    struct event read_event, write_event;

    /* input: `fresh` lies in the thread's input buffer during a turn; what is left of it moves to
     * `pending`. At most one of them is not empty. */
    struct slice fresh;
    struct buf pending;
    size_t pending_pos;
    int low_water_bytes; /* SO_RCVLOWAT of the socket */
    struct parser parser;
    struct held_request *held; /* requests before those of the input (held.h); NULL: none */
    struct blocked *blocked;   /* while CLIENT_BLOCKED */
    struct continuation continuation;
    const struct command *continuation_cmd;
    uint64_t continuation_ticks;
    struct slice *continuation_argv; /* a copy of the request, in one block; else NULL */
    int continuation_argc;

    /* output */
    struct output_piece *out_first, **out_last;
    size_t out_bytes;
    uint32_t out_count;
    uint32_t out_before_hold;    /* of them, those that came before output_hold */
    uint64_t soft_limit_since_s; /* 0: not over it */
    /* For the hard limit, where there is one: bytes that waited when the turn began which this wall
     * clock is of, and what was added since. */
    size_t told_bytes;
    int64_t told_in_us;

    size_t counted_bytes;         /* see client_memory.h */
    uint64_t created_s, active_s; /* monotonic seconds */
    uint64_t commands, net_in_bytes, net_out_bytes;
    uint64_t commands_marked; /* at the last look of the balancer */
};

/* Takes over a connected, non-blocking socket; not registered with a thread yet. `peer` is
 * "ip:port" or "path:0". */
struct client *client_create(int fd_take, const char *peer, uint32_t flags);
/* The same for a connection that begins with a TLS handshake; NULL, the socket untouched, when TLS
 * is not to be had. */
struct client *client_create_tls(int fd_take, const char *peer, uint32_t flags);
/* Makes the calling thread its owner and arms its events. */
void client_adopt(struct client *c, struct server_thread *thread);
/* Takes it out of its thread: events disarmed, list left; still among all clients. Owner's thread.
 */
void client_abandon(struct client *c);
/* Owner's thread: marks it for closing at the end of the turn. World: any thread may, and then
 * nudges the owner. */
void client_close_asap(struct client *c);
/* Frees it; owner's thread, or when threads are gone. */
void client_destroy(struct client *c);
/* Tells modules that have asked (engine/modules.h) that the client has come, once, and that it
 * goes. Owner, awake; takes the keyspace lock then. Beside a script that takes long the former is
 * put off: the flag tells. */
void client_tell_come(struct client *c);
void client_tell_gone(struct client *c);

/* Number of clients, all threads. */
uint64_t client_count(void);
/* World only: calls `visit` for every client, oldest first, until it returns false. */
void client_each(bool (*visit)(struct client *c, void *context), void *context) REQUIRES(gil);
/* World only: the client with that id, or NULL. */
struct client *client_find(uint64_t id) REQUIRES(gil);
/* Bytes of memory that the client holds. */
size_t client_memory_bytes(const struct client *c);
/* Class for output limits. */
enum client_class client_class_of(const struct client *c);

/* The client of a session that has one. */
static inline struct client *client_of(const struct session *s)
{
    return s->owner;
}

#endif
