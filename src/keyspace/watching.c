/* See watching.h. One table holds the watched keys of all databases; from each hangs the list of
 * its watchers, and each watcher is also in the list of its set.
 *
 * A watcher remembers whether the key was missing when it began (an expired key is). A key that was
 * missing and is missing still has not changed, whatever was told about it. */
#include "keyspace/watching.h"

#include "base/clock.h"
#include "base/mem.h"
#include "keyspace/db.h"
#include "keyspace/event.h"

#include <assert.h>

struct watched_key {
    uint64_t hash; /* of name and database: see registry_hash */
    struct db *db;
    struct watcher *first;
    uint32_t len;
    char name[];
};

struct watcher {
    struct watch_set *set;
    struct watched_key *key;
    struct watcher *next_of_set;
    struct watcher *next, **link; /* in the key's list */
    bool was_missing;
};

static struct {
    struct table keys;
    /* Keys that are watched: what a write looks at. Changed under the lock in exclusive mode. */
    _Atomic uint64_t count;
} registry;

static inline bool nobody_watches(void)
{
    return likely(atomic_load_explicit(&registry.count, memory_order_relaxed) == 0);
}

/* ---- the registry ---- */

struct place {
    struct slice name;
    const struct db *db;
};

/* Databases' numbers are spread over all bits: the table uses the high and the low ones. */
static uint64_t registry_hash(const struct db *db, uint64_t key_hash)
{
    return key_hash ^ (uint64_t)db->id * 0x9e3779b97f4a7c15u;
}

static uint64_t hash_watched(const void *entry)
{
    return ((const struct watched_key *)entry)->hash;
}

static bool is_at(const void *entry, const void *key)
{
    const struct watched_key *w = entry;
    const struct place *p = key;
    return w->db == p->db && w->len == p->name.len && memcmp(w->name, p->name.ptr, w->len) == 0;
}

static uintptr_t *find_slot(struct db *db, struct slice name, uint64_t key_hash)
{
    struct place place = {name, db};
    return table_find(&registry.keys, registry_hash(db, key_hash), is_at, &place);
}

static struct watched_key *enter_key(struct db *db, const struct key *key) REQUIRES(keyspace_lock)
{
    uintptr_t *slot = find_slot(db, key->name, key->hash);
    if (slot) {
        return table_entry(*slot);
    }
    struct watched_key *w = mem_alloc(sizeof(*w) + key->name.len);
    *w = (struct watched_key){
        .hash = registry_hash(db, key->hash), .db = db, .len = (uint32_t)key->name.len};
    memcpy(w->name, key->name.ptr, key->name.len);
    table_insert(&registry.keys, w->hash, (uintptr_t)w);
    atomic_fetch_add_explicit(&registry.count, 1, memory_order_relaxed);
    return w;
}

static void leave_key(struct watched_key *w) REQUIRES(keyspace_lock)
{
    struct place place = {slice_of(w->name, w->len), w->db};
    uintptr_t *slot = table_find(&registry.keys, w->hash, is_at, &place);
    assert(slot && !w->first);
    table_remove(&registry.keys, w->hash, slot);
    atomic_fetch_sub_explicit(&registry.count, 1, memory_order_relaxed);
    mem_free(w);
}

/* ---- sets ---- */

/* Both lists hold the watcher if there is one: the shorter one answers. */
static bool is_watched_by(const struct watched_key *w, const struct watch_set *set)
{
    const struct watcher *of_set = set->first, *of_key = w->first;
    while (of_set && of_key) {
        if (of_set->key == w || of_key->set == set) {
            return true;
        }
        of_set = of_set->next_of_set;
        of_key = of_key->next;
    }
    return false;
}

static bool is_missing(struct db *db, const struct key *key, int64_t now_ms)
    REQUIRES_SHARED(keyspace_lock)
{
    return !db_read(db, key, now_ms, DB_NO_TOUCH | DB_NO_STATS);
}

static size_t watcher_bytes(const struct watched_key *w)
{
    return sizeof(struct watcher) + sizeof(*w) + w->len;
}

void watching_add(struct watch_set *set, struct db *db, const struct key *key, int64_t now_ms)
{
    if (watching_is_dirty(set)) {
        return; /* nothing more to learn */
    }
    struct watched_key *w = enter_key(db, key);
    if (is_watched_by(w, set)) {
        return;
    }
    struct watcher *watcher = mem_alloc(sizeof(*watcher));
    *watcher = (struct watcher){.set = set,
                                .key = w,
                                .next_of_set = set->first,
                                .next = w->first,
                                .link = &w->first,
                                .was_missing = is_missing(db, key, now_ms)};
    if (w->first) {
        w->first->link = &watcher->next;
    }
    w->first = watcher;
    set->first = watcher;
    set->count++;
    set->bytes += watcher_bytes(w);
}

void watching_clear(struct watch_set *set)
{
    for (struct watcher *watcher = set->first; watcher;) {
        struct watcher *next = watcher->next_of_set;
        struct watched_key *w = watcher->key;
        *watcher->link = watcher->next;
        if (watcher->next) {
            watcher->next->link = watcher->link;
        }
        if (!w->first) {
            leave_key(w);
        }
        mem_free(watcher);
        watcher = next;
    }
    set->first = NULL;
    set->count = 0;
    set->bytes = 0;
    atomic_store_explicit(&set->dirty, false, memory_order_relaxed);
}

bool watching_has_changed(const struct watch_set *set, int64_t now_ms)
{
    if (watching_is_dirty(set)) {
        return true;
    }
    for (const struct watcher *watcher = set->first; watcher; watcher = watcher->next_of_set) {
        struct watched_key *w = watcher->key;
        struct key key = key_of(slice_of(w->name, w->len));
        /* What has been deleted has marked the set: this one has expired. */
        if (!watcher->was_missing && is_missing(w->db, &key, now_ms)) {
            return true;
        }
    }
    /* Looking at the keys has taken due members out of them. */
    return watching_is_dirty(set);
}

/* ---- changes ---- */

/* The flag needs no order of its own: who decides by it holds the lock. */
static void mark(struct watcher *watcher)
{
    atomic_store_explicit(&watcher->set->dirty, true, memory_order_relaxed);
}

/* An entry that has expired but is still there is a change for those who saw it live, and for the
 * others a matter of the time that only now begins: no time is before every expiry. */
#define BEFORE_ALL_EXPIRIES INT64_MIN

static void on_change(struct db *db, struct slice name)
{
    keyspace_assert_exclusive();
    if (nobody_watches() || !name.ptr) {
        return; /* whole databases: see below */
    }
    struct key key = key_of(name);
    uintptr_t *slot = find_slot(db, name, key.hash);
    if (!slot) {
        return;
    }
    struct watched_key *w = table_entry(*slot);
    bool missing = is_missing(db, &key, BEFORE_ALL_EXPIRIES);
    for (struct watcher *watcher = w->first; watcher; watcher = watcher->next) {
        if (!(watcher->was_missing && missing)) {
            mark(watcher);
        }
    }
}

/* A database gets the content of another one, or (NULL) none. */
struct replacement {
    struct db *db, *by;
    int64_t now_ms;
};

static void mark_replaced(uintptr_t *slot, void *context)
{
    const struct replacement *r = context;
    struct watched_key *w = table_entry(*slot);
    keyspace_assert_exclusive();
    if (w->db != r->db) {
        return;
    }
    struct key key = key_of(slice_of(w->name, w->len));
    bool missing = !r->by || is_missing(r->by, &key, r->now_ms);
    for (struct watcher *watcher = w->first; watcher; watcher = watcher->next) {
        if (!(watcher->was_missing && missing)) {
            mark(watcher);
        }
    }
}

static void replace(struct db *db, struct db *by) REQUIRES(keyspace_lock)
{
    struct replacement r = {db, by, keyspace_time_ms(clock_wall_ms())};
    uint64_t cursor = 0;
    do {
        cursor = table_scan(&registry.keys, cursor, mark_replaced, &r);
    } while (cursor);
}

void watching_before_flush(struct db *db)
{
    if (!nobody_watches()) {
        replace(db, NULL);
    }
}

void watching_before_swap(struct db *a, struct db *b)
{
    if (!nobody_watches()) {
        replace(a, b);
        replace(b, a);
    }
}

/* ---- boot ---- */

void watching_setup(void)
{
    table_init(&registry.keys, hash_watched);
    event_add_change_listener(on_change);
}

void watching_teardown(void)
{
    assert(registry.keys.count == 0);
    table_deinit(&registry.keys, NULL, NULL);
}
