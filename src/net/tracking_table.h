/* A thread's table of remembered keys: which of its tracking clients have read a key since it last
 * changed. Names are those of all databases together, as invalidations tell no database. A tracker
 * that has ended stays behind, counted, until no key points to it. State: thread-owned. */
#ifndef NET_TRACKING_TABLE_H
#define NET_TRACKING_TABLE_H

#include "ds/table.h"
#include "keyspace/key.h"

struct tracker;

struct tracked_key {
    uint64_t hash;
    uint32_t count, capacity;
    struct tracker **trackers; /* by rising address; `one` or a block of its own */
    struct tracker *one;
    size_t len;
    char name[];
};

struct tracking_table {
    struct table keys;
    uint64_t items; /* trackers of all keys together */
};

/* An empty table; frees it, trackers are released. */
void tracking_table_init(struct tracking_table *t);
void tracking_table_deinit(struct tracking_table *t);
/* Remembers that the tracker has read the key; true when the key was not there before. */
bool tracking_table_add(struct tracking_table *t, const struct key *key, struct tracker *tracker);
/* Takes the key out, for the caller, who gives it to tracking_table_release; NULL when nobody has
 * read it. */
struct tracked_key *tracking_table_take(struct tracking_table *t, const struct key *key);
/* The same of a random key; NULL when there is none. */
struct tracked_key *tracking_table_take_random(struct tracking_table *t);
/* Frees a key that was taken out. */
void tracking_table_release(struct tracking_table *t, struct tracked_key *taken);
/* Forgets all keys. */
void tracking_table_clear(struct tracking_table *t);

#endif
