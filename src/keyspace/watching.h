/* Watched keys (WATCH): who is to learn that a key has changed since. A session has a watch set;
 * the registry knows for each key the sets that it is in, and marks them dirty when the key changes
 * in any way, by whomsoever: by commands, expiry, or the loss or exchange of a whole database. What
 * changes nothing about a missing key (its expired entry goes) marks nobody. State: keyspace; the
 * dirty flag is atomic, so that CLIENT LIST sees it. */
#ifndef KEYSPACE_WATCHING_H
#define KEYSPACE_WATCHING_H

#include "keyspace/key.h"
#include "keyspace/lock.h"

#include <stdbool.h>
#include <stdint.h>

struct db;
struct watcher;

/* All zero is an empty set. It stays where it is while it is not empty. Count and bytes are the
 * owner's to read; they change only when it adds or clears. */
struct watch_set {
    struct watcher *first;
    uint32_t count;     /* watched keys */
    _Atomic bool dirty; /* one of them has changed */
    size_t bytes;       /* memory, about */
};

/* Boot: listens to changes. The teardown comes when all sets are empty. */
void watching_setup(void);
void watching_teardown(void);

/* Watches a key from now on; does nothing when the set has it already. */
void watching_add(struct watch_set *set, struct db *db, const struct key *key, int64_t now_ms)
    REQUIRES(keyspace_lock);
/* Empties the set; it is clean again. */
void watching_clear(struct watch_set *set) REQUIRES(keyspace_lock);
/* Whether a key of the set has changed since it was added, or has expired by `now_ms`. */
bool watching_has_changed(const struct watch_set *set, int64_t now_ms)
    REQUIRES_SHARED(keyspace_lock);
/* The flag alone: a change was seen. Any thread. */
static inline bool watching_is_dirty(const struct watch_set *set)
{
    return atomic_load_explicit(&((struct watch_set *)set)->dirty, memory_order_relaxed);
}

/* For db.c, before it does so: a database loses all keys; two databases exchange theirs. */
void watching_before_flush(struct db *db) REQUIRES(keyspace_lock);
void watching_before_swap(struct db *a, struct db *b) REQUIRES(keyspace_lock);

#endif
