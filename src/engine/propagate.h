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
 * SELECT by itself, where the database changes.
 *
 * State: keyspace; listeners are registered at boot, in a fixed order. */
#ifndef ENGINE_PROPAGATE_H
#define ENGINE_PROPAGATE_H

#include "base/buf.h"
#include "engine/call.h"

/* The database of commands that mean the same in each (MULTI, EXEC). */
#define PROPAGATE_ANY_DB (-1)

/* Gets whole commands in the request protocol (arrays of bulk strings), for database `db`. The
 * bytes are borrowed. In exclusive mode; takes leaf locks at most. */
typedef void (*propagate_listener)(int db, struct slice commands);

/* Registers a log, which is off; returns its number. Boot; the order of registration is the order
 * of listeners. */
int propagate_register(propagate_listener listener);
/* Turns a log on or off; not within a unit. */
void propagate_switch(int log, bool on) REQUIRES(keyspace_lock);
/* Boot and its reverse: has expiry told here. */
void propagate_setup(void);
void propagate_teardown(void);

/* True while some log is on. Exclusive mode; a variable because each write asks. */
extern bool propagate_on;

/* ---- for the engine ---- */

/* The call has run and changed something: propagates it as it came, unless its handler has told
 * something instead. */
void propagate_call(const struct call *c) REQUIRES(keyspace_lock);
/* A unit's begin and end, on the thread that runs it. May be nested: the outermost counts. Between
 * them nobody else propagates (one hold, or the world stands). */
void propagate_begin_unit(void);
void propagate_end_unit(void) REQUIRES(keyspace_lock);
/* True within a unit: logs are not switched then, nor new files begun. */
bool propagate_in_unit(void);
/* A command for a database, by whoever changes keys without a call (expiry, eviction). */
void propagate_command(const struct db *db, int argc, const struct slice *argv)
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
/* The words of another draft, which is empty then. */
void propagate_add_draft(struct propagate_draft *d, struct propagate_draft *more);
/* propagate_instead with the draft, which is empty and needs nothing freed afterwards. */
void propagate_draft_instead(struct call *c, struct propagate_draft *d) REQUIRES(keyspace_lock);

#endif
