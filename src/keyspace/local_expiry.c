/* See local_expiry.h. Each database has a table of names, made with the first one. */
#include "keyspace/local_expiry.h"

#include "base/clock.h"
#include "base/mem.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "value/member_ttl.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* Longest hold, buckets between two looks at the clock, and names that are taken of one bucket (its
 * rest has its turn in the next walk). */
#define HOLD_US 100
#define BUCKETS_A_LOOK 16
#define NAMES_A_BUCKET 64

struct local_name {
    uint64_t hash; /* of the key */
    uint32_t len;
    char bytes[];
};

struct local_expiries {
    struct table names;
    uint64_t cursor; /* next bucket of the walk */
};

static struct {
    _Atomic uint64_t count; /* names of all databases */
    int next_db;            /* keyspace: where the next walk begins */
} local;

static uint64_t hash_name(const void *name)
{
    return ((const struct local_name *)name)->hash;
}

static struct slice bytes_of(const struct local_name *n)
{
    return slice_of(n->bytes, n->len);
}

static bool name_is(const void *name, const void *key)
{
    return slice_equal(bytes_of(name), *(const struct slice *)key);
}

static void free_name(void *name, void *context)
{
    (void)context;
    mem_free(name);
}

static void free_expiries(void *state)
{
    struct local_expiries *x = state;
    table_deinit(&x->names, free_name, NULL);
    mem_free(x);
}

static uintptr_t *find(struct local_expiries *x, const struct key *key)
{
    return table_find(&x->names, key->hash, name_is, &key->name);
}

static void add(struct db *db, const struct key *key, uintptr_t what) REQUIRES(keyspace_lock)
{
    struct local_name *n = mem_alloc(sizeof(*n) + key->name.len);
    n->hash = key->hash;
    n->len = (uint32_t)key->name.len;
    memcpy(n->bytes, key->name.ptr, key->name.len);
    if (!db->local) {
        db->local = mem_calloc(1, sizeof(*db->local));
        table_init(&db->local->names, hash_name);
    }
    table_insert(&db->local->names, key->hash, (uintptr_t)n | what);
    atomic_fetch_add_explicit(&local.count, 1, memory_order_relaxed);
}

/* The name stands for `what` from now on, or for nothing. */
static void keep(struct local_expiries *x, const struct key *key, uintptr_t *slot, uintptr_t what)
    REQUIRES(keyspace_lock)
{
    void *name = table_entry(*slot);
    if (what) {
        table_set_slot(slot, (uintptr_t)name | what);
        return;
    }
    table_remove(&x->names, key->hash, slot);
    mem_free(name);
    atomic_fetch_sub_explicit(&local.count, 1, memory_order_relaxed);
}

void local_expiry_note(struct db *db, const struct key *key, uintptr_t what)
{
    uintptr_t *slot = db->local ? find(db->local, key) : NULL;
    if (expire_has_told_clock()) {
        return; /* all keys are swept, whoever gave them an expiry */
    }
    if (!expire_frozen) {
        if (slot) {
            table_set_slot(slot, *slot | what);
        } else {
            add(db, key, what);
        }
    } else if (slot && (what & LOCAL_EXPIRY_KEY)) {
        keep(db->local, key, slot, *slot & LOCAL_EXPIRY_MEMBERS);
    }
}

void local_expiry_forget(struct db *db)
{
    if (db->local) {
        atomic_fetch_sub_explicit(&local.count, db->local->names.count, memory_order_relaxed);
        reclaim_call(free_expiries, db->local);
        db->local = NULL;
    }
}

void local_expiry_free(struct db *dbs, int count)
{
    for (int i = 0; i < count; i++) {
        if (dbs[i].local) {
            free_expiries(dbs[i].local);
            dbs[i].local = NULL;
        }
    }
    atomic_store_explicit(&local.count, 0, memory_order_relaxed);
}

uint64_t local_expiry_count(void)
{
    return atomic_load_explicit(&local.count, memory_order_relaxed);
}

/* ---- the sweep ---- */

struct bucket_names {
    struct local_name *names[NAMES_A_BUCKET];
    uint32_t count;
};

static void collect(uintptr_t *slot, void *context)
{
    struct bucket_names *found = context;
    if (found->count < NAMES_A_BUCKET) {
        found->names[found->count++] = table_entry(*slot);
    }
}

/* What of `what` the key still has. */
static uintptr_t what_is_left(const struct db *db, const struct key *key, uintptr_t what)
    REQUIRES_SHARED(keyspace_lock)
{
    struct entry *e = db_look(db, key);
    uintptr_t has = 0;
    if (e) {
        has |= entry_expiry_ms(e) != ENTRY_NO_EXPIRY ? LOCAL_EXPIRY_KEY : 0;
        has |= member_ttl_any(e) ? LOCAL_EXPIRY_MEMBERS : 0;
    }
    return what & has;
}

/* A key that is due by the primary's word is left to the primary, whatever members it has. */
static bool is_due(const struct entry *e, uintptr_t what, int64_t now_ms)
{
    if (expire_is_over(entry_expiry_ms(e), now_ms)) {
        return what & LOCAL_EXPIRY_KEY;
    }
    return (what & LOCAL_EXPIRY_MEMBERS) && entry_is_over(member_ttl_next_ms(e), now_ms);
}

/* Removes what is due of one key, and its name when nothing is left to come. True when more of it
 * is due. */
static bool see_to(struct db *db, const struct local_name *name, int64_t now_ms, bool *removed)
    REQUIRES(keyspace_lock)
{
    const struct key key = {bytes_of(name), name->hash};
    uintptr_t *slot = find(db->local, &key);
    uintptr_t what = what_is_left(db, &key, *slot & TABLE_TAG_MASK);
    bool more = false;
    if (what && is_due(db_look(db, &key), what, now_ms)) {
        *removed |= db_remove_due(db, &key, now_ms, EXPIRE_MEMBERS_A_HOLD, &more) > 0;
        what = what_is_left(db, &key, what);
    }
    keep(db->local, &key, slot, what);
    return more;
}

/* One bucket's names. True at the end of the walk. */
static bool see_to_bucket(struct db *db, int64_t now_ms, bool *removed, bool *more)
    REQUIRES(keyspace_lock)
{
    struct bucket_names found = {.count = 0};
    uint64_t next = table_scan(&db->local->names, db->local->cursor, collect, &found);
    *more = false;
    for (uint32_t i = 0; i < found.count; i++) {
        *more |= see_to(db, found.names[i], now_ms, removed);
    }
    if (!*more) {
        db->local->cursor = next;
    }
    return next == 0 && !*more;
}

/* One hold on one database. True when its walk has come to the end. */
static bool sweep_hold(struct db *db, int64_t now_ms, bool *removed)
{
    uint64_t begin_us = clock_mono_us();
    bool ended = false, more = false;
    if (!keyspace_try_exclusive()) {
        return true; /* a script takes long: the next round goes on */
    }
    do {
        for (int i = 0; i < BUCKETS_A_LOOK && !ended && !more; i++) {
            ended = !db->local || see_to_bucket(db, now_ms, removed, &more);
        }
    } while (!ended && !more && clock_mono_us() - begin_us < HOLD_US);
    keyspace_unlock_exclusive();
    reclaim_run();
    return ended;
}

/* Time of a call for a database where it finds nothing to delete. */
#define QUIET_US 200

static bool sweep_db(struct db *db, int64_t now_ms, uint64_t end_us)
{
    uint64_t quiet_end_us = clock_mono_us() + QUIET_US;
    bool ended, removed;
    do {
        removed = false;
        ended = sweep_hold(db, now_ms, &removed);
    } while (!ended && clock_mono_us() < (removed ? end_us : quiet_end_us));
    return removed && !ended;
}

bool local_expiry_sweep(int64_t now_ms, uint64_t end_us)
{
    bool more = false;
    int looked = 0;
    while (looked < db_count() && !more && local_expiry_count() > 0) {
        more = sweep_db(db_at((local.next_db + looked++) % db_count()), now_ms, end_us);
        if (clock_mono_us() >= end_us) {
            break;
        }
    }
    local.next_db = (local.next_db + looked) % db_count();
    return more;
}
