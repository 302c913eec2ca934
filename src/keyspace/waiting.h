/* Who waits for which key: for each key of each database a queue of waiters, in the order of their
 * coming, and the keys that have changed since somebody looked. Knows no calls: a waiter is a node
 * in its owner's memory, and what it means to serve one is told at boot. Writers pay one load while
 * nobody waits. Names of keys belong to a database's number, not to its content: SWAPDB moves
 * values, not waiters. State: keyspace; the counts for INFO are atomic. */
#ifndef KEYSPACE_WAITING_H
#define KEYSPACE_WAITING_H

#include "keyspace/db.h"

#include <stdatomic.h>

struct waiting_key;

/* Looked at by each write: keys with waiters, and the first of those that are ready. */
extern _Atomic uint64_t waiting_key_total;
extern struct waiting_key *waiting_first_ready;

/* A waiter's place in one key's queue. */
struct waiting_place {
    struct waiting_place *next, *previous;
    struct waiting_key *key;
    struct waiter *waiter;
};

/* Zero but for type, when_gone and places is a waiter that waits nowhere. */
struct waiter {
    struct waiting_place *places; /* room for as many as it has keys; the owner's */
    int place_count;              /* places in use */
    enum value_type type;         /* is served when such a value is at one of its keys */
    bool when_gone;               /* and when there is no such value any more */
};

/* Boot: `try_waiter` is called for a waiter when one of its keys is ready; it may take that waiter
 * out of all queues, and others, and put new ones in, which are tried when a key changes again; and
 * it may change keys. Its reverse. */
typedef void (*waiting_try)(struct waiter *w, int64_t now_ms);
void waiting_setup(waiting_try try_waiter);
void waiting_teardown(void);

/* Puts the waiter at the end of each key's queue; a key that is named twice has it once. */
void waiting_add(struct waiter *w, struct db *db, const struct key *keys, int count)
    REQUIRES(keyspace_lock);
/* Takes it out of all queues. */
void waiting_remove(struct waiter *w) REQUIRES(keyspace_lock);

/* A key has changed, or a whole database (name.ptr NULL). event.h calls it for each change. */
void waiting_mark(struct db *db, struct slice name) REQUIRES(keyspace_lock);
static inline void waiting_note_change(struct db *db, struct slice name) REQUIRES(keyspace_lock)
{
    if (unlikely(atomic_load_explicit(&waiting_key_total, memory_order_relaxed) > 0)) {
        waiting_mark(db, name);
    }
}
/* The same of the key of a place in a queue. */
void waiting_look_again(struct waiting_place *place) REQUIRES(keyspace_lock);
/* True when some key that is waited for has changed. */
static inline bool waiting_has_ready(void) REQUIRES(keyspace_lock)
{
    return waiting_first_ready != NULL;
}
/* Tries the waiters of the ready keys: keys in the order in which they became ready, waiters of a
 * key in the order in which they came, and what becomes ready by it too, until nothing is. Each
 * waiter is served at most once, so it ends. Harmless when called from within. */
void waiting_serve(int64_t now_ms) REQUIRES(keyspace_lock);

/* The key whose waiters are being tried; NULL: none. */
const struct key *waiting_served_key(void) REQUIRES(keyspace_lock);

/* While set, nobody is served, though the lock is let go of: for who makes several holds that
 * others must see as one (EXEC in the world). Ends with a hold that clears it. */
void waiting_defer(bool defer) REQUIRES(keyspace_lock);
bool waiting_is_deferred(void) REQUIRES(keyspace_lock);

/* For INFO: keys with waiters; those with waiters that want to know when the key is gone. Any
 * thread. */
uint64_t waiting_key_count(void);
uint64_t waiting_key_count_when_gone(void);

#endif
