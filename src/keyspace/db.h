/* Databases: numbered tables of entries. Reading needs the keyspace lock in shared mode, changing
 * in exclusive mode. A reader changes nothing but the access clock: an expired key is gone for it
 * at once, and is noted for the thread's next exclusive hold (expire.h). What a writer unlinks is
 * freed after the lock is released (reclaim.h). State: keyspace.
 *
 * Members with deadlines (value/member_ttl.h) are exact in the same way: nobody is given an entry
 * with a member whose time has come. Who opens it in exclusive mode takes such members out first
 * (events, counters; a key without members goes). A reader in shared mode that would have to is
 * told that the key is missing, and the calling thread remembers (expire_must_rerun): the engine
 * throws away what the call has replied and runs it again in exclusive mode. A key whose members
 * are all due is missing without that. */
#ifndef KEYSPACE_DB_H
#define KEYSPACE_DB_H

#include "base/option.h"
#include "ds/table.h"
#include "keyspace/event.h"
#include "keyspace/key.h"
#include "keyspace/lock.h"
#include "value/entry.h"

#include <stdbool.h>
#include <stdint.h>

/* Tags in the table's slot: the entry has an expiry; members of it have deadlines, or had (the tag
 * goes when somebody opens the key, or the sweep comes by); it has a replication stamp; it is a
 * job, which schedule.h has. */
#define DB_TAG_EXPIRES ((uintptr_t)1)
#define DB_TAG_MEMBERS ((uintptr_t)2)
#define DB_TAG_STAMPED ((uintptr_t)4)
#define DB_TAG_JOB ((uintptr_t)8)

struct db {
    struct table table;
    _Atomic uint64_t expires; /* entries with an expiry; changed under the lock, may be looked at
                                 without (relaxed) */
    _Atomic uint64_t member_expires; /* the same of entries whose slots have DB_TAG_MEMBERS */
    _Atomic uintptr_t map;           /* the table's, for peekers (ds/table.h) */
    int64_t avg_ttl_ms;              /* running estimate of the sweep, for INFO */
    struct local_expiries *local;    /* local_expiry.h's; NULL: none */
    int id;
};

/* Creates `count` empty databases. Boot. */
void db_setup(int count);
/* Frees all of them. */
void db_teardown(void);
int db_count(void);
/* Database `index` (0 .. db_count()-1). The address is stable; SWAPDB exchanges contents. */
struct db *db_at(int index);
/* Keys of all databases, expired ones that still lie there among them. */
uint64_t db_all_keys(void) REQUIRES_SHARED(keyspace_lock);

/* How keys are looked at. */
enum db_read_flag {
    DB_NO_TOUCH =
        1 << 0, /* leaves the access clock and hit counters alone (OBJECT, TYPE, TTL ...) */
    DB_NO_STATS = 1 << 1, /* leaves the hit and miss counters alone */
};

/* The live entry, or NULL when the key is missing or expired at `now_ms`, or when the calling
 * thread must come again in exclusive mode (expire_must_rerun). Changes no other key's place,
 * whatever the mode. */
struct entry *db_read(struct db *db, const struct key *key, int64_t now_ms, unsigned flags)
    REQUIRES_SHARED(keyspace_lock);

/* A place in a database, opened for writing: the key, and its entry if it is there. Valid until the
 * database is changed other than through it. */
struct keyref {
    struct db *db;
    struct key key;
    uintptr_t *slot;     /* NULL when the key is missing */
    struct entry *entry; /* NULL when the key is missing */
};

/* Opens a key for writing; one that has expired is deleted first (event, propagation), and so are
 * members whose time has come: all of them, since the command needs the rest as it is; where there
 * may be very many, db_note_due comes first. Touches the access clock, unless DB_NO_TOUCH. */
void db_open(struct keyref *ref, struct db *db, const struct key *key, int64_t now_ms,
             unsigned flags) REQUIRES(keyspace_lock);
/* Two calls give the same as long as the calling thread has neither changed where entries are nor
 * let go of the lock between them: what a keyref said at the first is right at the second. */
struct db_moment {
    uint64_t changes, holds;
    unsigned thread;
};
struct db_moment db_moment(void) REQUIRES(keyspace_lock);
static inline bool db_moment_is(const struct db_moment *a, const struct db_moment *b)
{
    return a->changes == b->changes && a->holds == b->holds && a->thread == b->thread;
}
/* Puts `entry_take` (whose key is ref's) there, replacing what was, which is reclaimed later; the
 * key keeps a replication stamp, so that it may be another block that stands there: go on with
 * ref->entry. Fires
 * "new" (class n) for a new key, and no other event: the command does. */
void db_put(struct keyref *ref, struct entry *entry_take) REQUIRES(keyspace_lock);
/* The same of a result, which takes the place of whatever was there and is told as that
 * (event_key_goes); a value that is long to free (reclaim.h) goes to the background thread in any
 * case. */
void db_put_lazily(struct keyref *ref, struct entry *entry_take) REQUIRES(keyspace_lock);
/* After a verb of value/ may have moved the entry or changed its expiry: stores the pointer in the
 * slot. */
void db_moved(struct keyref *ref, struct entry *entry) REQUIRES(keyspace_lock);
/* Loading: puts `entry_take` there under the hash of its key, without events or statistics. False,
 * with nothing done, when there is such a key. */
bool db_add_loaded(struct db *db, uint64_t hash, struct entry *entry_take) MUST_CHECK
    REQUIRES(keyspace_lock);
/* Sizes an empty database ahead for so many keys; one that is not empty stays as it is. */
void db_reserve(struct db *db, uint64_t keys) EXCLUDES(keyspace_lock);
/* Removes the key; with `lazily` a big value goes to the background thread. False when it was
 * missing. */
bool db_delete(struct keyref *ref, bool lazily) REQUIRES(keyspace_lock);
/* Unlinks the entry and hands it to the caller (RENAME, MOVE); `how` for those who watch keys that
 * go. */
struct entry *db_take_as(struct keyref *ref, enum event_going how) REQUIRES(keyspace_lock);
static inline struct entry *db_take(struct keyref *ref) REQUIRES(keyspace_lock);
static inline struct entry *db_take(struct keyref *ref)
{
    return db_take_as(ref, GOING_DELETED);
}
/* Sets or (ENTRY_NO_EXPIRY) removes the expiry; the entry is there. */
void db_set_expiry(struct keyref *ref, int64_t expiry_ms) REQUIRES(keyspace_lock);

/* The entry, whether or not it is live, NULL when there is none: for a look ahead, and for
 * replication, which is told what is gone. No trace of the access. */
struct entry *db_look(const struct db *db, const struct key *key) REQUIRES_SHARED(keyspace_lock);
/* Sets the replication stamp (entry.h; NULL: none) of a key that is there, live or not. False when
 * it is missing. */
bool db_set_stamp(struct db *db, const struct key *key, const void *stamp) REQUIRES(keyspace_lock);

/* Gives a member that is there a deadline. False when that cannot be (member_ttl_set). */
bool db_set_member_ttl(struct keyref *ref, struct slice member, int64_t at_ms) MUST_CHECK
    REQUIRES(keyspace_lock);
/* Takes a member's deadline away; false when it had none. */
bool db_drop_member_ttl(struct keyref *ref, struct slice member) REQUIRES(keyspace_lock);
/* Deletes what is due of one key without opening it: the key itself, or up to `max` of its members.
 * Returns how many things went; *more says whether there are more. */
uint64_t db_remove_due(struct db *db, const struct key *key, int64_t now_ms, uint64_t max,
                       bool *more) REQUIRES(keyspace_lock);

/* Number of keys (expired ones that are not reclaimed yet included, as everywhere). */
uint64_t db_size(const struct db *db) REQUIRES_SHARED(keyspace_lock);
/* Number of keys with an expiry. No lock needed: a count that was true a moment ago. */
static inline uint64_t db_expires(const struct db *db)
{
    return atomic_load_explicit(&((struct db *)db)->expires, memory_order_relaxed);
}
/* Number of keys with members that have deadlines, or had a moment ago. In the same way. */
static inline uint64_t db_member_expires(const struct db *db)
{
    return atomic_load_explicit(&((struct db *)db)->member_expires, memory_order_relaxed);
}
/* True while any database has such keys. */
bool db_has_member_ttls(void);
/* Notes the key (expire.h) when some of its members are due and others stay; true then. */
bool db_note_due(struct db *db, const struct key *key, int64_t now_ms)
    REQUIRES_SHARED(keyspace_lock);
/* A random live entry, NULL when there is none (bounded number of tries among expired ones). */
struct entry *db_random(struct db *db, int64_t now_ms) REQUIRES_SHARED(keyspace_lock);
/* Empties the database; its content is freed in the background when `lazily`, else after the lock
 * is released. Returns the number of keys it had. */
uint64_t db_flush(struct db *db, bool lazily) REQUIRES(keyspace_lock);
/* Exchanges the contents of two databases. */
void db_swap(struct db *a, struct db *b) REQUIRES(keyspace_lock);

/* ---- a data set aside ----
 *
 * As many databases again, which nobody finds: what is loaded into them is unseen until it takes
 * the place of what is here, in one step. There is one such set at a time, its opener's. Lookups,
 * tables and expiries count as everywhere; no walk, sweep or snapshot comes there. */

/* Opens it, empty. */
void db_aside_open(void);
/* True while there is one. World, or its opener. */
bool db_aside_is_open(void);
/* Its database `index`. */
struct db *db_aside(int index);
/* Exchanges its content with that of the databases: for watchers and who waits as db_swap of each.
 */
void db_aside_swap(void) REQUIRES(keyspace_lock);
/* True when a key of it is in the databases too, live or not. */
bool db_aside_overlaps(void) REQUIRES(keyspace_lock);
/* Moves its content into the databases, in place of keys of the same name; it is empty then. As
 * loading (db_add_loaded): without events and statistics, but of keys that go. */
void db_aside_add(void) REQUIRES(keyspace_lock);
/* Ends it; its content goes in the background. */
void db_aside_close(void) EXCLUDES(keyspace_lock);

/* Walks the database by bucket from `cursor` (0 starts; 48 bits), calling `visit` for every live
 * entry (some members of which may be due: db_read gives it without those), until about `count`
 * entries were visited; returns the next cursor, 0 at the end. What is there throughout a full walk
 * is visited exactly once, whatever grows or shrinks meanwhile. */
typedef void (*db_visit_fn)(struct entry *e, void *context);
uint64_t db_scan(struct db *db, uint64_t cursor, uint64_t count, int64_t now_ms, db_visit_fn visit,
                 void *context) REQUIRES_SHARED(keyspace_lock);

/* Cron, once a second: prepares memory that the tables' next growth will want, outside the lock. */
void db_prepare_growth(int64_t wall_ms) EXCLUDES(keyspace_lock);

/* Prefetching for a batch, without the lock, by a server thread that is awake: finds the bucket
 * where the key belongs, then, when its line has come, brings the entry. NULL when there is nothing
 * to prefetch. */
static inline const struct table_bucket *db_peek_bucket(struct db *db, const struct key *key)
{
    const struct table_bucket *bucket = table_peek_bucket(&db->map, key->hash);
    __builtin_prefetch(bucket);
    return bucket;
}
static inline void db_peek_entry(const struct table_bucket *bucket, const struct key *key)
{
    if (likely(bucket != NULL)) {
        table_peek_entries(bucket, key->hash);
    }
}

#if KEYDB_DEBUG
/* A test's: told of every key that anybody looks for by its name, found or not. NULL: nobody. Set
 * while one thread runs. */
extern void (*db_observer)(const struct db *db, struct slice name);
#endif

/* Aborts when counts and tags disagree with the entries (tests, DEBUG). */
void db_check(const struct db *db) REQUIRES_SHARED(keyspace_lock);

#endif
