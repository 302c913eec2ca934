/* The door by which writes leave: after a command has run, what it did is handed, as commands, to
 * the logs (the AOF, the replication backlog), under the keyspace lock in exclusive mode, so that
 * every log has the same order. A command that changed nothing (dirty 0) is not told. While no log
 * is on, a write pays one test of a variable.
 *
 * What goes out is the call as it came, unless its handler says otherwise: whoever replays the
 * stream later must end with the same data, whatever his clock, chance and configuration say. So a
 * handler whose effect depends on those, or on who else waits, propagates what it did in a form of
 * its own, with propagate_instead: relative times become absolute ones, what chance chose and what
 * was chosen among several keys is named, a wait is gone. Keys and members that expire are told as
 * deletions, at the latest before the first command for which they are gone; who replays lets
 * nothing expire by itself (keyspace/expire.h, expire_frozen).
 *
 * A unit (a transaction, a script, a handler that tells several commands) is replayed whole or not
 * at all: it goes out between MULTI and EXEC when it has more than one command. Each log writes
 * SELECT by itself, where the database changes. What calls do may be kept from some logs for a
 * while (redis.set_repl): so the unit is each log's own, with as many commands as that log gets.
 *
 * Peers of an active group (active/DESIGN.md) are a log of a form of its own, with a target of its
 * own: the AOF and replicas go on being told what Redis tells its replicas, while peers are told
 * what a write did, in forms of few classes (active/effect.h) that can be put in an order
 * later: what was taken, member by member; a key as a whole where it depends on others; no
 * conditions. A handler whose call is no such form tells peers first, with propagate_tell_peers,
 * only while propagate_peers; what it does not tell them itself they get as the other logs do. All
 * that one call tells is a unit for them, always, and for the other logs while such a log is on:
 * then what each is told of a call ends in one pass, in the order of registration. What expires is
 * not told to them: each node hides it by itself, and the listener for that says more. Turning on a
 * log that leads to peers is the switch (active/local_writes.h). While it is off a write pays one
 * test of a variable where forms differ.
 *
 * State: keyspace; listeners are registered at boot, in a fixed order. */
#ifndef ENGINE_PROPAGATE_H
#define ENGINE_PROPAGATE_H

#include "base/buf.h"
#include "engine/call.h"
#include "keyspace/expire.h"

/* The database of commands that mean the same in each (MULTI, EXEC). */
#define PROPAGATE_ANY_DB (-1)

/* Where a log leads; together they say which logs get what calls do. */
#define PROPAGATE_TO_AOF (1U << 0)
#define PROPAGATE_TO_REPLICAS (1U << 1)
#define PROPAGATE_TO_PEERS (1U << 2)
#define PROPAGATE_TO_ALL (PROPAGATE_TO_AOF | PROPAGATE_TO_REPLICAS | PROPAGATE_TO_PEERS)

/* Gets whole commands in the request protocol (arrays of bulk strings), for database `db`. The
 * bytes are borrowed. In exclusive mode; takes leaf locks at most. */
typedef void (*propagate_listener)(int db, struct slice commands);

/* Registers a log that leads to `target`, one PROPAGATE_TO, and is off; returns its number. Boot;
 * the order of registration is the order of listeners. */
int propagate_register(unsigned target, propagate_listener listener);
/* Turns a log on or off. Within a unit (a transaction with REPLICAOF or CONFIG SET appendonly no)
 * what the log has been told of it ends here, as a unit of its own: the listener hears of that
 * before it returns. */
void propagate_switch(int log, bool on) REQUIRES(keyspace_lock);
/* What the log has been told of the unit that is open is void, as the data that it changed are. It
 * is turned off behind this. One command it has not heard of; of several it lacks the end, as if it
 * had been cut there. */
void propagate_abandon(int log) REQUIRES(keyspace_lock);
/* In a forked child that runs commands: all logs are off from now on, and not told of it. */
void propagate_silence(void);
/* Boot and its reverse: has expiry told here. */
void propagate_setup(void);
void propagate_teardown(void);

/* True while some log is on, and while one that leads to peers is. Exclusive mode; variables
 * because each write asks. */
extern bool propagate_on, propagate_peers;
/* Whether a message (PUBLISH) has somewhere to go: a log that leads to replicas or to peers is on.
 * Any thread; who is told false when one has just been turned on publishes before that. */
bool propagate_wants_messages(void);
/* Boot: what is called instead when something expires that peers would have to know of (NULL:
 * nobody); and what makes payloads as RESTORE takes them, without which no peers can be told. */
void propagate_set_expired_listener(expire_listener listener);
void propagate_set_payload_writer(void (*write)(struct buf *out, const struct entry *e));

/* ---- for the engine ---- */

/* The call has run and changed something: propagates it as it came, unless its handler has told
 * something instead. */
void propagate_call(const struct call *c) REQUIRES(keyspace_lock);
/* A call that changes nothing here but is to be heard elsewhere (PUBLISH): told to replicas and
 * peers, and to no file. Nothing while none of them is. */
void propagate_message(const struct call *c) REQUIRES(keyspace_lock);
/* A unit's begin and end, on the thread that runs it. May be nested: the outermost counts. Between
 * them nobody else propagates (one hold, or the world stands). */
void propagate_begin_unit(void);
void propagate_end_unit(void) REQUIRES(keyspace_lock);
/* True within a unit: no new files are begun then. */
bool propagate_in_unit(void);
/* Boot: what is called whenever a unit has ended, all of it told, by whoever holds the lock. */
void propagate_set_unit_listener(void (*listener)(void));
/* From now on what calls do goes to these logs only; the others get nothing of it. Whoever takes
 * PROPAGATE_TO_ALL away gives it back before the hold ends. Exclusive mode. */
void propagate_aim(unsigned targets);
/* These logs, for who changes that for a while. */
unsigned propagate_aimed(void);
/* A command for a database, by whoever changes keys without a call (expiry, eviction): for all
 * logs, whatever calls aim at. */
void propagate_command(const struct db *db, int argc, const struct slice *argv)
    REQUIRES(keyspace_lock);
/* The same for peers alone, by who says what has expired (propagate_set_expired_listener): within
 * the unit that is being told to them, or a unit of its own. */
void propagate_command_to_peers(const struct db *db, int argc, const struct slice *argv)
    REQUIRES(keyspace_lock);
/* Several of those, written out as requests, one behind the other. */
void propagate_commands_to_peers(const struct db *db, struct slice commands)
    REQUIRES(keyspace_lock);
/* A key was deleted by the server itself. Nothing while no log is on. */
void propagate_delete(const struct db *db, struct slice key, bool lazily) REQUIRES(keyspace_lock);

/* ---- for handlers: only while propagate_on, after the change ---- */

/* Tells a command instead of the call; several of them, in a unit, when it is called again. */
void propagate_instead(struct call *c, int argc, const struct slice *argv) REQUIRES(keyspace_lock);
/* The same of words that are written out: PROPAGATE(c, SLICE("DEL"), key). */
#define PROPAGATE(c, ...)                                                                          \
    propagate_instead((c),                                                                         \
                      (int)(sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice)),   \
                      (const struct slice[]){__VA_ARGS__})
/* The call changed nothing that a log need know. */
void propagate_nothing(struct call *c);

/* ---- the same for what peers are told: only while propagate_peers ---- */

/* A command for peers instead of what the other logs get; before anything is told to those. */
void propagate_tell_peers(struct call *c, int argc, const struct slice *argv)
    REQUIRES(keyspace_lock);
#define TELL_PEERS(c, ...)                                                                         \
    propagate_tell_peers(                                                                          \
        (c), (int)(sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice)),            \
        (const struct slice[]){__VA_ARGS__})
/* The call as it came, where the other logs get another form. */
void propagate_call_to_peers(struct call *c) REQUIRES(keyspace_lock);
/* What the key is now, as a whole: RESTORE, or DEL where it is missing. */
void propagate_key_to_peers(struct call *c, struct db *db, const struct key *key)
    REQUIRES(keyspace_lock);
/* Two databases have changed places: each of their keys is told as a whole, in both. False: there
 * is none. */
bool propagate_swap_to_peers(struct call *c, struct db *a, struct db *b) MUST_CHECK
    REQUIRES(keyspace_lock);
/* The same as for a key for whoever has put something at the call's k-th key that depends on other
 * keys, or has deleted that, or has changed nothing. */
static inline void propagate_stored(struct call *c, int k) REQUIRES(keyspace_lock);
static inline void propagate_stored(struct call *c, int k)
{
    if (unlikely(propagate_peers) && c->dirty) {
        propagate_key_to_peers(c, c->db, call_key(c, k));
    }
}
/* The value at the key has lost its last element and goes, and with it perhaps a deadline, which is
 * told behind the call (active/DESIGN.md, "Late writes"). Before it is deleted, whenever;
 * one key a call. */
void propagate_note_emptied(const struct keyref *ref) REQUIRES(keyspace_lock);
static inline void propagate_emptied(const struct keyref *ref) REQUIRES(keyspace_lock);
static inline void propagate_emptied(const struct keyref *ref)
{
    if (unlikely(propagate_peers)) {
        propagate_note_emptied(ref);
    }
}

/* ---- putting commands together ---- */

#define PROPAGATE_NUMBER_BYTES 24
/* A number as a word; the text stands in `text`. */
struct slice propagate_number(int64_t number, char text[PROPAGATE_NUMBER_BYTES]);

/* A command of many words, put together one by one. Zero is an empty one. */
struct propagate_draft {
    struct buf words;
    int count;
};
/* One word more; a number as one. */
void propagate_add(struct propagate_draft *d, struct slice word);
void propagate_add_number(struct propagate_draft *d, int64_t number);
/* The words of another draft, which is empty then; or which stays as it is. */
void propagate_add_draft(struct propagate_draft *d, struct propagate_draft *more);
void propagate_add_copy(struct propagate_draft *d, const struct propagate_draft *more);
/* propagate_instead with the draft, which is empty and needs nothing freed afterwards; the same for
 * peers. */
void propagate_draft_instead(struct call *c, struct propagate_draft *d) REQUIRES(keyspace_lock);
void propagate_draft_to_peers(struct call *c, struct propagate_draft *d) REQUIRES(keyspace_lock);

#endif
