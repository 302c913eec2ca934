/* A node of a group of active replicas (ACTIVE.md): its id and epoch, its clock, the origins that
 * it knows, their logs, its window and its disputes, over the databases of this process. Our own
 * writes become units of it, peers' units are put where they belong, states are told for keys that
 * are disputed. Links carry the units; files will carry its identity.
 *
 * Where it is used: active_node_settle before the keyspace lock is let go after writes (what waits
 * in active_own has its keys' dots then), active_node_tick some ten times a second, and
 * active_node_take for each unit that a link brings, all in exclusive mode. On a node the wall
 * clock of calls is active_clock_ms of its clock.
 *
 * Expiry: a key whose time has come is hidden by everybody. It is removed, and told as
 * KEYDB.EXPIRED, by the node that wrote it last; by another one when that node has not been heard
 * for long, or when a write meets it.
 *
 * State: keyspace (exclusive mode). */
#ifndef REPL_ACTIVE_NODE_H
#define REPL_ACTIVE_NODE_H

#include "repl/active_execute.h"
#include "repl/active_log.h"
#include "repl/active_own.h"
#include "repl/active_head.h"
#include "repl/active_past.h"
#include "repl/active_take.h"

struct active_node;

struct active_node_options {
    uint8_t id[ACTIVE_NODE_BYTES];
    uint64_t last_epoch;               /* the one that begins is above it, and those of the past */
    struct active_past *past;          /* the files', whose origins are taken over; NULL: none */
    uint64_t clock;                    /* one that was told elsewhere; 0: none */
    int first_db, dbs;                 /* its data */
    size_t log_bytes;                  /* all logs together, and so the window */
    int64_t silence_ms;                /* then others tell what has expired (repl-timeout) */
    int64_t (*wall_ms)(void *context); /* NULL: the process's */
    void *context;
    unsigned broken; /* test seam: enum active_break */
};

/* A node in a new epoch, which the caller has written down before the first write
 * (active_node_epoch tells it). Its log is off until active_own_attach. */
struct active_node *active_node_create(const struct active_node_options *options);
/* Nulls the caller's pointer. It is attached to nothing. */
void active_node_destroy(struct active_node **n);
uint64_t active_node_epoch(const struct active_node *n);

/* Its parts, for links, files and INFO. */
struct active_origins *active_node_origins(struct active_node *n);
struct active_clock *active_node_clock(struct active_node *n);
struct active_log *active_node_log(struct active_node *n);
struct active_own *active_node_own(struct active_node *n);
const struct active_merge *active_node_merge(const struct active_node *n);
struct active_head *active_node_head(struct active_node *n);
const uint8_t *active_node_id(const struct active_node *n);
uint16_t active_node_self(const struct active_node *n);
uint64_t active_node_states(const struct active_node *n); /* told so far */

/* What our clients have written in this hold is the node's now. Nobody is amid a command. */
void active_node_settle(struct active_node *n) REQUIRES(keyspace_lock);

/* A unit of some origin has come by a link: applied once, whole, in this hold. now_ms is of a
 * clock that never goes back (the one of stamps may stand still, while it is behind others'). */
enum active_taken active_node_take(struct active_node *n, const struct active_origin_id *origin,
                                   uint64_t sequence, uint64_t stamp, int db, struct slice commands,
                                   int64_t now_ms) MUST_CHECK REQUIRES(keyspace_lock);
/* The same for the frames of a link (active_take_frame): what they bring goes to the node, in this
 * hold. */
struct active_sink active_node_sink(struct active_node *n, int64_t now_ms) REQUIRES(keyspace_lock);
/* States that are due are told, and what everybody has seen leaves the window; neither during
 * MERGE. */
void active_node_tick(struct active_node *n, int64_t now_ms) REQUIRES(keyspace_lock);

/* The databases have keys that no node has written (files of a server that was not active). They
 * count as the first write of our origin, which no log has: who lacks it needs everything. Before
 * our first own write. */
void active_node_adopt(struct active_node *n) REQUIRES(keyspace_lock);

/* ---- MERGE (active_contact_take.h): begin, each key in any holds, end ---- */

/* False when it cannot be: another one is under way, a broken clock, or *error says what. The
 * meeting stays the caller's, and as it is until the end. */
bool active_node_meet_begin(struct active_node *n, const struct active_meeting *meeting,
                            const char **error) MUST_CHECK REQUIRES(keyspace_lock);
/* As active_merge_meet; a key that could not be taken is disputed. */
bool active_node_meet(struct active_node *n, int db, struct slice key, struct active_dot dot,
                      int64_t deadline_ms, struct slice payload, int64_t now_ms) MUST_CHECK
    REQUIRES(keyspace_lock);
/* All keys were met: we have what the other side had. */
void active_node_met(struct active_node *n) REQUIRES(keyspace_lock);
/* True while one is under way. */
bool active_node_is_meeting(const struct active_node *n);
/* True while it is bringing writes of this origin: nothing else of the origin can be taken before
 * its end, so that a link that has some stops being read. */
bool active_node_awaits(const struct active_node *n, uint16_t origin);

/* Whether the entry's last write was this node's, in whatever epoch, or nobody's. */
bool active_node_wrote(const struct active_node *n, const struct entry *e) REQUIRES(keyspace_lock);

/* Expiry's question before it removes something due that nobody writes to (expire_set_judge), for
 * the node that is attached. */
bool active_node_judge(struct active_node *n, struct keyref *ref, int64_t now_ms)
    REQUIRES(keyspace_lock);

#endif
