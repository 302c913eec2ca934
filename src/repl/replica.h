/* A replica as its primary sees it: where it stands in the stream, what it has told of itself.
 *
 *   GREETING --PSYNC, what it lacks is kept--> ONLINE
 *   GREETING --PSYNC, SYNC--> WAIT_START --a transfer begins--> SYNCING
 *   SYNCING --all sent--> WAIT_ACK --ACK--> ONLINE
 *   SYNCING --all sent, and its length was told--> ONLINE
 *
 * Who wants the data set and nothing more (rdb-only) is closed behind it.
 *
 * Its client is fed by its server thread (net/feed.h) from blocks that others fill: those of the
 * transfer that it takes part in, then those of the backlog; or, where memory does not have what it
 * lacks, first from the backlog's reserve on disk. Who may write what: `state`, `text`
 * and the readers belong to the sync thread while WAIT_START (under the list's lock, and the
 * keyspace lock in exclusive mode), to the client's thread in all other states; the change of state
 * hands them over (release, acquire). Figures are atomic. The list of replicas is behind a leaf
 * lock. */
#ifndef REPL_REPLICA_H
#define REPL_REPLICA_H

#include "base/buf.h"
#include "engine/call.h"
#include "net/feed.h"
#include "repl/chain.h"
#include "repl/reserve.h"
#include "repl/transfer.h"

#include <stdatomic.h>

enum replica_state {
    REPLICA_GREETING, /* has said REPLCONF; not on the list */
    REPLICA_WAIT_START,
    REPLICA_SYNCING,
    REPLICA_WAIT_ACK,
    REPLICA_ONLINE,
};

#define REPLICA_IP_MAX 256

struct replica {
    struct feed feed; /* first */
    struct replica *next, **link;
    _Atomic enum replica_state state;
    /* What it told of itself; its client's thread, before it is on the list. */
    char ip[REPLICA_IP_MAX];
    int64_t port;
    bool knows_eof, knows_psync2;
    bool knows_envelopes; /* KeyDB's RREPLAY (envelope.h) */
    bool rdb_only;        /* it is closed when it has been sent the data set */
    unsigned left_out;    /* parts that are not to be in that (persist/rdb_file.h) */
    bool is_old;          /* came with SYNC: tells nothing back */
    /* See above. */
    struct buf text; /* to be sent before anything else */
    size_t text_sent;
    struct chain_reader transferred, stream;
    struct transfer *transfer; /* that it takes part in, a reference */
    /* ONLINE, while on_disk: the stream is read there, not by `stream`; and what was, of which
     * `disk_sent` bytes are sent. */
    struct reserve_place disk;
    struct buf disk_bytes;
    size_t disk_sent;
    /* The sync thread's: the same as a name only, and since when it takes nothing of what is there
     * (0: it does), at which place. */
    const struct transfer *joined;
    int64_t stalled_ms;
    uint64_t stalled_at;
    const char *vector_source; /* of the vectors shown last: for the client's thread */
    /* Anybody. */
    _Atomic uint64_t sent_offset; /* of the stream */
    _Atomic uint64_t got_bytes;   /* of the transfer */
    _Atomic uint64_t ack_offset;  /* it has so many bytes of the stream */
    _Atomic uint64_t safe_told;   /* so many of them, and one, are on its disk; 0: it never told */
    _Atomic int64_t heard_ms;     /* when it last told, or took bytes of the transfer (monotonic) */
    _Atomic bool newline_due;     /* a sign of life */
    _Atomic bool closing;         /* is to be closed */
    _Atomic bool on_disk;         /* is sent what the disk has */
};

/* The replica of a client, NULL when it is none, made by replica_greet when it is not there. The
 * client's thread. */
struct replica *replica_of(const struct client *c);
struct replica *replica_greet(struct client *c);
/* Puts it on the list. It goes on from where its reader r->stream is, or r->disk (ONLINE), with
 * `line` sent first; or waits for a transfer. The client's thread. */
void replica_go_on(struct replica *r, const char *line) REQUIRES(keyspace_lock);
void replica_wait(struct replica *r) REQUIRES(keyspace_lock);
/* It says that it has so much. The client's thread. */
void replica_acknowledge(struct replica *r, uint64_t offset);

/* And so much is on its disk. */
void replica_acknowledge_safe(struct replica *r, uint64_t offset);

/* Calls `visit` for each, oldest first, with the list's lock held: a leaf. Any thread. */
void replicas_each(void (*visit)(struct replica *r, void *context), void *context);
/* How many are on the list; how many of them have told that they have `offset`, and have it on
 * disk. Any thread. */
int replicas_count(void);
int replicas_with(uint64_t offset);
int replicas_with_safe(uint64_t offset);
/* Monotonic milliseconds. */
int64_t replica_clock_ms(void);

#endif
