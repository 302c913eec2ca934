/* A call: one command being run for somebody. Handlers see this and nothing else of the outside:
 * arguments, keys with their hashes, the database, the reply, and who calls. Clients, transactions,
 * scripts, the AOF loader and replication links all run commands by making one. State:
 * thread-owned. */
#ifndef ENGINE_CALL_H
#define ENGINE_CALL_H

#include "engine/command.h"
#include "engine/gil.h"
#include "engine/session.h"
#include "keyspace/db.h"
#include "keyspace/event.h"
#include "resp/reply.h"

#include <assert.h>

/* How a command must be run. Ordered: a batch runs under the highest of its calls. */
enum call_access { ACCESS_NONE, ACCESS_SHARED, ACCESS_EXCLUSIVE, ACCESS_WORLD };

/* A long command in slices, so that nobody waits for all of it: `step` is called until it returns
 * true (it has replied then), in holds of the access mode that it has set (none, shared or
 * exclusive), or a higher one; between them other clients are served. Where a call must be whole
 * (transactions, scripts) the steps run without a break, in the hold of the call. A step under
 * shared mode opens no key (db_read): it walks (db_scan), or looks at what it has copied, or makes
 * sure that nothing is due (db_note_due). A key with due members would have the call run anew,
 * which is too late for a step. Only a step in exclusive mode, the last one, changes anything; when
 * it replies an error, or the call must not run any more (engine/gate.h), nothing has been changed.
 */
struct continuation {
    bool (*step)(struct call *c, void *state);
    void (*destroy)(void *state);
    void *state;
    enum call_access access; /* of the next step */
};

struct call {
    const struct command *cmd;
    int argc;
    struct slice *argv; /* argv[0] is the name as sent; slices live as long as the call */
    struct blob *
        *blobs; /* NULL, or argc blobs that hold large arguments (borrowed, NULL where none) */
    struct key *keys; /* the request's keys, in order of argv, hashed */
    int key_count;
    struct db *db; /* the session's database */
    struct reply *reply;
    struct session *session;
    int64_t now_ms; /* wall clock of this turn: what "now" means for expiry */
    struct slice
        refusal; /* the error that call_prepare found; the call is not run then. ptr NULL: none */
    uint64_t dirty;          /* changes made; handlers add */
    uint64_t duration_ticks; /* measured by the engine after the call */
    enum call_access held;   /* what of the keyspace lock is held while it runs; whoever runs it
                                sets it */
    bool failed;             /* replied an error (set by the engine) */
    bool nested;             /* run inside another call (EXEC, a script): never waits or goes on in
                                slices */
    bool awaited;            /* nested, and may wait: whoever runs it enqueues what waits (parked.h)
                              */
    bool needs_exclusive;    /* see call_need_exclusive */
    bool retry;              /* a parked call that is run again (block.h) */
    bool waits;              /* set by call_block, or while it goes on in slices: no reply yet */
    uint32_t secrets;        /* arguments that its handler has marked as such (redact.h) */
    struct parked_call *parked;  /* what waits, or in a retry is run again; else NULL */
    bool propagated;             /* its handler has told the logs what it did (propagate.h) */
    bool has_told_peers;         /* and in a form of their own the peers */
    bool told;                   /* run once before, and told to monitors and statistics then */
    struct execution *execution; /* of EXEC, DISCARD ...: see transaction.h; NULL otherwise */
    struct continuation
        continuation; /* set by a handler that goes on in slices; step NULL otherwise */
};

/* Annotates and defines a handler by the way it runs; matches the flags of its row. */
#define PLAIN_COMMAND(function)                                                                    \
    static void function(struct call *c);                                                          \
    static void function(struct call *c)
#define READ_COMMAND(function)                                                                     \
    static void function(struct call *c) REQUIRES_SHARED(keyspace_lock);                           \
    static void function(struct call *c)
#define WRITE_COMMAND(function)                                                                    \
    static void function(struct call *c) REQUIRES(keyspace_lock);                                  \
    static void function(struct call *c)
#define WORLD_COMMAND(function)                                                                    \
    static void function(struct call *c) REQUIRES(gil);                                            \
    static void function(struct call *c)

/* The access a call of this command needs now; of commands with CMD_TRANSACTION only call_access
 * knows it. That of PUBLISH rises while a stream that has to have it is on (propagate.h), that of
 * AUTH while modules are asked (auth.h). */
enum call_access command_access(const struct command *c);
/* The access that the prepared call needs. */
enum call_access call_access(const struct call *c);

/* ---- for handlers ---- */

/* The k-th key of the request. */
static inline const struct key *call_key(const struct call *c, int k)
{
    return &c->keys[k];
}
/* Flags (db.h) with which the caller's commands look at keys, but for TOUCH: CLIENT NO-TOUCH. */
static inline unsigned call_look_flags(const struct call *c)
{
    return unlikely(c->session->no_touch) ? DB_NO_TOUCH : 0;
}
/* The live entry of the k-th key, NULL when missing; touches clock and counters (not under CLIENT
 * NO-TOUCH). */
struct entry *call_read(struct call *c, int k) REQUIRES_SHARED(keyspace_lock);
/* The same without touching clock and counters. */
struct entry *call_peek(struct call *c, int k) REQUIRES_SHARED(keyspace_lock);
/* The same, of a type: false (and WRONGTYPE replied) when there is another; *e NULL when missing.
 */
bool call_read_typed(struct call *c, int k, enum value_type type, struct entry **e) MUST_CHECK
    REQUIRES_SHARED(keyspace_lock);
/* What is to be done with the entry calls a module's code, which runs alone, and the call holds the
 * lock in shared mode: true, and it comes again (call_need_exclusive). */
bool call_read_alone(struct call *c, const struct entry *e) MUST_CHECK;
/* Opens the k-th key for writing, whatever its type. */
void call_open(struct call *c, int k, struct keyref *ref) REQUIRES(keyspace_lock);
/* Opens a key once more, which has been opened before a change to the database that may have moved
 * its place: no further access. */
void call_open_again(struct call *c, int k, struct keyref *ref) REQUIRES(keyspace_lock);
/* As call_open, of a type: false (and WRONGTYPE replied) when there is another; ref->entry NULL
 * when missing. */
bool call_open_typed(struct call *c, int k, enum value_type type, struct keyref *ref) MUST_CHECK
    REQUIRES(keyspace_lock);
/* Announces a change: event of `class`, WATCH and tracking, and one more in c->dirty. After the
 * change, before the next one to the database. */
void call_changed(struct call *c, struct keyref *ref, enum event_class class, const char *event)
    REQUIRES(keyspace_lock);
/* For a call that only reads and finds, under the lock in shared mode, that something must be
 * written first (a member whose time has passed, a place in a queue of waiters): the engine drops
 * what it has replied and runs it once more, from its start, in exclusive mode. It must not have
 * changed anything, its session included; it returns at its next convenience, with any reply. Only
 * while c->held is ACCESS_SHARED. */
static inline void call_need_exclusive(struct call *c)
{
    assert(c->held == ACCESS_SHARED);
    c->needs_exclusive = true;
}
/* The blob that holds argument `i` whole, with a reference for the caller, NULL when there is none.
 */
struct blob *call_take_blob(struct call *c, int i);

/* What is less than this is not asked for first. */
#define CALL_RESERVE_FROM_BYTES ((size_t)1 << 20)
/* For a handler about to make copies that no argument of its request tells the engine of: sets
 * about `bytes` aside (mem_reserve) before anything is changed. False with "OOM ..." replied when
 * they are not there. Of little it costs one comparison. Who got true ends with call_unreserve. */
bool call_reserve_large(struct call *c, size_t bytes) MUST_CHECK;
MUST_CHECK static inline bool call_reserve(struct call *c, size_t bytes)
{
    return likely(bytes < CALL_RESERVE_FROM_BYTES) || call_reserve_large(c, bytes);
}
/* The words of a request in one block, which the caller frees, behind the slices that point to
 * them.
 */
struct slice *call_copy_words(const struct call *call);
/* Gives back what was set aside, if anything was. */
void call_unreserve(void);
/* About what a copy of the entry's value would take: exact for values of few parts, else going by
 * a part of them. */
size_t call_copy_bytes(const struct entry *e) REQUIRES_SHARED(keyspace_lock);

/* Argument `i` as a number; false with "ERR value is not an integer or out of range" (or `error`)
 * replied. */
bool call_arg_i64(struct call *c, int i, int64_t *value) MUST_CHECK;
bool call_arg_i64_error(struct call *c, int i, int64_t *value, const char *error) MUST_CHECK;
/* The same within min..max; out of range replies `error` or the usual "value is out of range". */
bool call_arg_range(struct call *c, int i, int64_t min, int64_t max, int64_t *value,
                    const char *error) MUST_CHECK;
/* The number of keys at argument `i`, which stand behind it, and behind them at least `more`
 * further arguments; false with the error replied. */
bool call_arg_key_count(struct call *c, int i, int more, int *keys) MUST_CHECK;
bool call_arg_double(struct call *c, int i, double *value, const char *error) MUST_CHECK;
bool call_arg_long_double(struct call *c, int i, long double *value) MUST_CHECK;
/* True when argument `i` is the word, in any case. */
static inline bool call_arg_is(const struct call *c, int i, const char *word)
{
    return slice_equal_nocase(c->argv[i], word);
}
/* Replies a container's HELP: title line and the lines given (NULL-terminated), in Redis's frame.
 */
void call_reply_help(struct call *c, const char *const *lines);

#endif
