/* A node of a group of active replicas (DESIGN.md): its id and epoch, its clock, the origins that
 * it knows, their logs, its window and its conflicts, over the databases of this process. Our own
 * writes become units of it, peers' units are put where they belong, states are told for keys that
 * are in conflict. Links carry the units; files will carry its identity.
 *
 * Where it is used: node_settle before the keyspace lock is let go after writes (what waits
 * in local_writes has its keys' dots then), node_tick, node_tell_states and node_trim some ten
 * times a second, and node_take for each unit that a link brings, all in exclusive mode. On a node
 * the wall clock of calls is hlc_ms of its clock.
 *
 * Expiry: a key whose time has come is hidden by everybody. It is removed, and told as
 * KEYDB.EXPIRED, by the node that wrote it last; by another one when that node has not been heard
 * for long, or when a write finds it.
 *
 * State: keyspace (exclusive mode). */
#ifndef ACTIVE_NODE_H
#define ACTIVE_NODE_H

#include "active/executor.h"
#include "active/gives.h"
#include "active/origin_log.h"
#include "active/local_writes.h"
#include "active/log_head.h"
#include "active/restored.h"
#include "active/receiver.h"

struct node;

struct node_options {
    uint8_t id[ORIGIN_NODE_BYTES];
    uint64_t last_epoch;               /* the one that begins is above it, and those of the past */
    struct restored *past;             /* the files', whose origins are taken over; NULL: none */
    uint64_t clock;                    /* one that was told elsewhere; 0: none */
    int first_db, dbs;                 /* its data */
    size_t log_bytes;                  /* all logs together, and so the window */
    struct reserve *reserve;           /* the logs' on disk; NULL: none */
    int64_t silence_ms;                /* then others tell what has expired (repl-timeout) */
    int64_t (*wall_ms)(void *context); /* NULL: the process's */
    void *context;
    unsigned broken; /* test seam: enum merge_break */
};

/* A node in a new epoch, which the caller has written down before the first write
 * (node_epoch tells it). Its log is off until local_writes_attach. */
struct node *node_create(const struct node_options *options);
/* Nulls the caller's pointer. It is attached to nothing. */
void node_destroy(struct node **n);
uint64_t node_epoch(const struct node *n);

/* Its parts, for links, files and INFO. */
struct origins *node_origins(struct node *n);
struct hlc *node_clock(struct node *n);
struct origin_log *node_log(struct node *n);
struct local_writes *node_own(struct node *n);
const struct merge *node_merge(const struct node *n);
struct log_head *node_head(struct node *n);
struct gives *node_gives(struct node *n);
const uint8_t *node_id(const struct node *n);
/* What its streams' IDs end in (stream_set_id_tag): of its id, so one in four billion pairs of
 * nodes has the same. */
uint32_t node_id_tag(const struct node *n);
uint16_t node_self(const struct node *n);
uint64_t node_states(const struct node *n); /* told so far */
uint64_t node_digests(const struct node *n);

/* Another bound of the logs and the window (repl-backlog-size). */
void node_set_log_bytes(struct node *n, size_t log_bytes) REQUIRES(keyspace_lock);
/* Hears of words of units about who waits (delivery.h). `heard` is called behind each unit of a
 * peer when it has been applied, in the same hold, and may run writes. */
void node_hear(struct node *n, bool (*hear)(struct dot unit, int argc, const struct slice *argv),
               void (*heard)(void));
/* Hears that a data set came in place of words: after its end, in the hold of that. `before`: our
 * positions until then. */
void node_hear_missed(struct node *n, void (*missed)(const struct version_vector *before));
/* A write of the node's own that no client asked for. Nobody is amid a command. */
void node_run_own(struct node *n, int db, int argc, const struct slice *argv)
    REQUIRES(keyspace_lock);

/* What our clients have written in this hold is the node's now. Nobody is amid a command. */
void node_settle(struct node *n) REQUIRES(keyspace_lock);

/* A unit of some origin has come by a link: applied once, whole, in this hold. now_ms is of a
 * clock that never goes back (the one of stamps may stand still, while it is behind others'). */
enum receiver_result node_take(struct node *n, const struct origin_id *origin, uint64_t sequence,
                               uint64_t stamp, int db, struct slice commands,
                               int64_t now_ms) MUST_CHECK REQUIRES(keyspace_lock);
/* Whether units come from the nodes themselves alone, as in a mesh in which nobody forwards
 * (multi-master-no-forward). */
void node_take_directly(struct node *n, bool directly) REQUIRES(keyspace_lock);
/* Whether a data set is on its way to us, from the answer that says so until it is merged: no
 * states are told meanwhile. */
void node_expects_data(struct node *n, bool expects) REQUIRES(keyspace_lock);
/* Whether somebody is to be met yet, who may have a data set for us: what we write meanwhile is put
 * on top of that, so it stays in the window, whatever those have seen whom we know already. */
void node_keeps_window(struct node *n, bool keeps) REQUIRES(keyspace_lock);
/* Our whole data set is told to somebody, as it is now. */
void node_data_told(struct node *n) REQUIRES(keyspace_lock);
/* The same for the frames of a link (receiver_frame): what they bring goes to the node, in this
 * hold. */
struct receiver_sink node_sink(struct node *n, int64_t now_ms) REQUIRES(keyspace_lock);
/* What is due by the clock: states that have waited long enough are taken, but during MERGE, and
 * who asks hears our clock. */
void node_tick(struct node *n, int64_t now_ms) REQUIRES(keyspace_lock);
/* Behind it: some of the states that are due are told, but during MERGE. True: there are more, for
 * another hold. */
bool node_tell_states(struct node *n) MUST_CHECK REQUIRES(keyspace_lock);
/* And some of what everybody has seen leaves the window, but during MERGE, and some of what
 * nobody lacks the logs. True: there is more, for another hold. */
bool node_trim(struct node *n) MUST_CHECK REQUIRES(keyspace_lock);

/* The files' libraries are loaded, and this is what the files say of them (restored.libraries).
 * Before our first own write. */
void node_restore_libraries(struct node *n, struct slice rows) REQUIRES(keyspace_lock);
/* The databases have keys, or there are libraries, that no node has written (files of a server that
 * was not active). They count as the first write of our origin, which no log has: who lacks it
 * needs everything. Before our first own write. */
void node_adopt(struct node *n) REQUIRES(keyspace_lock);

/* ---- MERGE (full_sync_receive.h): begin, each key in any holds, end ---- */

/* False when it cannot be: another one is under way, a broken clock, or *error says what. The
 * snapshot stays the caller's, and as it is until the end. */
bool node_snapshot_begin(struct node *n, const struct merge_snapshot *snapshot,
                         const char **error) MUST_CHECK REQUIRES(keyspace_lock);
/* As merge_snapshot_key; a key that could not be taken is in conflict. */
bool node_snapshot_key(struct node *n, int db, struct slice key, struct dot dot,
                       int64_t deadline_ms, struct slice payload, int64_t now_ms) MUST_CHECK
    REQUIRES(keyspace_lock);
/* What they say of a library of functions (libraries_merge): made so, and told to our own log and
 * replicas. */
bool node_snapshot_library(struct node *n, struct slice row) MUST_CHECK REQUIRES(keyspace_lock);
/* All keys were merged: we have what the other side had. */
void node_snapshot_end(struct node *n) REQUIRES(keyspace_lock);
/* True while one is under way. */
bool node_is_merging(const struct node *n);
/* True while it is bringing writes of this origin: nothing else of the origin can be taken before
 * its end, so that a link that has some stops being read. */
bool node_awaits(const struct node *n, uint16_t origin);

/* Whether the entry's last write was this node's, in whatever epoch, or nobody's. */
bool node_wrote(const struct node *n, const struct entry *e) REQUIRES(keyspace_lock);

/* Expiry's question before it removes something due that nobody writes to (expire_set_judge), for
 * the node that is attached. */
bool node_judge(struct node *n, struct keyref *ref, int64_t now_ms) REQUIRES(keyspace_lock);

#endif
