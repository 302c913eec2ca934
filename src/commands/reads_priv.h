/* Reads that are not plain ones, counted as Redis counts them. State: none of its own. */
#ifndef COMMANDS_READS_PRIV_H
#define COMMANDS_READS_PRIV_H

#include "base/stats.h"
#include "engine/call.h"

/* The live entry of the k-th key, NULL when missing: a hit or a miss, but no access (EXISTS, TYPE,
 * TTL). */
static inline struct entry *reads_look(struct call *c, int k) REQUIRES_SHARED(keyspace_lock)
{
    return db_read(c->db, call_key(c, k), c->now_ms, DB_NO_TOUCH);
}

/* Counts a key opened for writing as read: a hit, or a miss and its event (GETDEL, SET GET, COPY).
 */
static inline void reads_count(const struct keyref *ref) REQUIRES(keyspace_lock)
{
    stats_add(ref->entry ? STAT_KEYSPACE_HITS : STAT_KEYSPACE_MISSES, 1);
    if (!ref->entry) {
        event_notify(EVENT_KEY_MISS, "keymiss", ref->db->id, ref->key.name);
    }
}

#endif
