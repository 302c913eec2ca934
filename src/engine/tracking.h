/* Client-side caching, as far as it knows no socket: which keys tracking clients have read, and a
 * log of changed keys that every server thread with such clients reads for itself. The tables of
 * remembered keys are the threads' own (net/tracking_table.h).
 *
 * The log is a chain of counted blocks. A writer appends a change once, under the exclusive lock,
 * however many threads read it; a reader keeps a position, follows the writer's published fill
 * mark, and holds the block where it stands: those before it are freed by the last one to leave.
 *
 * No stale read stays unnoticed. A change has a sequence number, one higher than all before. A read
 * is noted under the hold in which it ran, with the number of the last change that it has seen.
 * Where a thread joins the notes of its clients with the log, it deals out changes up to a note's
 * number, then remembers the note's key, then goes on: a change that the read did not see has a
 * higher number and finds the key remembered, and one that it saw tells it nothing. A writer
 * appends before it lets go of the lock, so before its reply is sent; a thread looks at the log
 * before it runs requests and after it has sent replies: who has the writer's reply, and then asks
 * on its own connection, has the invalidation first. It stands behind the reply of the read, since
 * notes are joined when replies have been sent.
 *
 * Bound: with more than 64 MiB that some thread has not read, changes become one entry "everything"
 * for all that come until some thread has taken it.
 *
 * State: the log's end is keyspace state; marks and counters are atomic; positions and notes are
 * thread-owned. */
#ifndef ENGINE_TRACKING_H
#define ENGINE_TRACKING_H

#include "base/buf.h"
#include "engine/call.h"

/* Server threads at most (net/settings.h's limit). */
#define TRACKING_READERS_MAX 64

/* What a session has asked for (session.tracking). */
enum tracking_flag {
    TRACKING_ON = 1 << 0,
    TRACKING_BCAST = 1 << 1,
    TRACKING_OPTIN = 1 << 2,
    TRACKING_OPTOUT = 1 << 3,
    TRACKING_NOLOOP = 1 << 4,
    TRACKING_CACHING = 1 << 5,         /* CLIENT CACHING: about the next command */
    TRACKING_BROKEN_REDIRECT = 1 << 6, /* whom it redirects to has gone */
};

/* Boot: `posted` is told, on the writer's thread under the keyspace lock, that these readers have
 * something to read. */
void tracking_setup(void (*posted)(uint64_t readers));
/* Frees the log; nobody reads it any more. */
void tracking_teardown(void);

/* ---- for who runs commands ---- */

/* A call of a tracking session has run, or was refused: notes what it has read. Holds what the call
 * holds. */
void tracking_after_call(struct call *c);
/* The client in whose name the calling thread changes keys: its id, 0 for none. */
extern _Thread_local uint64_t tracking_writer;
/* A database was emptied, or two were exchanged: all that was read may be other than it was. */
void tracking_flushed(void) REQUIRES(keyspace_lock);

/* ---- for readers of the log: server threads ---- */

struct tracking_block;

struct tracking_position {
    struct tracking_block *block; /* NULL: does not read */
    size_t offset;
    uint64_t consumed_bytes;
};

struct tracking_change {
    uint64_t writer;  /* client id, 0: none */
    struct slice key; /* ptr NULL: everything. Lies in the log, good until the next one is asked
                         for */
};

/* The thread reads the log from its end on; world. Or no longer; the thread itself. */
void tracking_join(int reader, struct tracking_position *at) REQUIRES(gil);
void tracking_leave(int reader, struct tracking_position *at);
/* The next change, if its number is not above `up_to`. */
bool tracking_next(struct tracking_position *at, uint64_t up_to, struct tracking_change *change);
/* Tells writers how far the reader has come. */
void tracking_caught_up(int reader, const struct tracking_position *at);

/* A read key; lies in the notes. */
struct tracking_read {
    uint64_t seq; /* the last change that the read has seen */
    struct session *session;
    struct key key;
};
/* Reads noted by the calling thread, oldest first: *offset starts at 0. False at the end; the notes
 * are empty then. */
bool tracking_next_read(size_t *offset, struct tracking_read *read);
/* True when it has noted any. */
bool tracking_has_reads(void);

#endif
