/* See waiting.h.
 *
 * Keys with waiters are entries of one table over all databases. Invariants: a key in the table has
 * a waiter, or is on the ready list, or is being served; a waiter has at most one place in a key's
 * queue, and its places in use are the first place_count of its array. */
#include "keyspace/waiting.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>

struct waiting_key {
    uint64_t hash; /* of name and database */
    struct waiting_place *first, *last;
    struct waiting_key *next_ready;
    int db_id;
    uint32_t types;      /* bits of the types that its waiters wait for, past ones included */
    uint32_t when_gone;  /* waiters that want to know when the value is gone */
    bool ready, serving; /* on the ready list; its waiters are being tried */
    struct key key;      /* with the hash of the name alone; name points behind this struct */
    char name[];
};

_Atomic uint64_t waiting_key_total;
struct waiting_key *waiting_first_ready;

static struct {
    struct table table;
    struct waiting_key **last_ready; /* where the next one is linked, while there is one */
    waiting_try try_waiter;
    const struct waiting_key *served; /* whose waiters are being tried, or NULL */
    struct waiting_place *next;       /* whose waiter is tried next; NULL: none */
    struct waiting_place *newcomer;   /* the first one that has come since; NULL: none */
    bool serving, deferred;
    _Atomic uint64_t keys_when_gone;
} queues;

/* ---- the table ---- */

static uint64_t hash_of(int db_id, uint64_t key_hash)
{
    /* Both ends of a hash count in a table; the multiplier (2^64 / golden ratio) spreads the
     * database over all of them. */
    return key_hash ^ ((uint64_t)db_id * 0x9e3779b97f4a7c15u);
}

static uint64_t hash_entry(const void *entry)
{
    return ((const struct waiting_key *)entry)->hash;
}

struct wanted_key {
    int db_id;
    struct slice name;
};

static bool is_key(const void *entry, const void *wanted)
{
    const struct waiting_key *wk = entry;
    const struct wanted_key *w = wanted;
    return wk->db_id == w->db_id && slice_equal(wk->key.name, w->name);
}

static uintptr_t *find_slot(int db_id, struct slice name, uint64_t hash)
{
    struct wanted_key wanted = {db_id, name};
    return table_find(&queues.table, hash, is_key, &wanted);
}

static struct waiting_key *find(int db_id, const struct key *key)
{
    uintptr_t *slot = find_slot(db_id, key->name, hash_of(db_id, key->hash));
    return slot ? table_entry(*slot) : NULL;
}

static void set_count(_Atomic uint64_t *count, uint64_t value)
{
    atomic_store_explicit(count, value, memory_order_relaxed);
}

static struct waiting_key *enter(int db_id, const struct key *key)
{
    struct waiting_key *wk = mem_alloc(sizeof(*wk) + key->name.len);
    *wk = (struct waiting_key){.hash = hash_of(db_id, key->hash), .db_id = db_id};
    memcpy(wk->name, key->name.ptr, key->name.len);
    wk->key = (struct key){slice_of(wk->name, key->name.len), key->hash};
    table_insert(&queues.table, wk->hash, (uintptr_t)wk);
    set_count(&waiting_key_total, queues.table.count);
    return wk;
}

/* Frees the key when it is good for nothing any more. */
static void leave_if_idle(struct waiting_key *wk)
{
    if (wk->first || wk->ready || wk->serving) {
        return;
    }
    assert(wk->when_gone == 0);
    uintptr_t *slot = find_slot(wk->db_id, wk->key.name, wk->hash);
    assert(slot && table_entry(*slot) == wk);
    table_remove(&queues.table, wk->hash, slot);
    mem_free(wk);
    set_count(&waiting_key_total, queues.table.count);
}

/* ---- queues ---- */

static void count_when_gone(struct waiting_key *wk, int change)
{
    bool before = wk->when_gone > 0;
    wk->when_gone += (uint32_t)change;
    bool after = wk->when_gone > 0;
    if (before != after) {
        uint64_t keys = atomic_load_explicit(&queues.keys_when_gone, memory_order_relaxed);
        set_count(&queues.keys_when_gone, after ? keys + 1 : keys - 1);
    }
}

static void append(struct waiting_key *wk, struct waiter *w)
{
    struct waiting_place *place = &w->places[w->place_count++];
    *place = (struct waiting_place){.previous = wk->last, .key = wk, .waiter = w};
    *(wk->last ? &wk->last->next : &wk->first) = place;
    wk->last = place;
    if (wk == queues.served && !queues.newcomer) {
        queues.newcomer = place;
    }
    wk->types |= 1u << w->type;
    if (w->when_gone) {
        count_when_gone(wk, 1);
    }
}

void waiting_add(struct waiter *w, struct db *db, const struct key *keys, int count)
{
    assert(w->place_count == 0 && count > 0);
    for (int i = 0; i < count; i++) {
        struct waiting_key *wk = find(db->id, &keys[i]);
        if (!wk) {
            wk = enter(db->id, &keys[i]);
        } else if (wk->last && wk->last->waiter == w) {
            continue; /* named twice */
        }
        append(wk, w);
    }
}

void waiting_remove(struct waiter *w)
{
    for (int i = 0; i < w->place_count; i++) {
        struct waiting_place *place = &w->places[i];
        struct waiting_key *wk = place->key;
        assert(place->waiter == w);
        *(place->previous ? &place->previous->next : &wk->first) = place->next;
        *(place->next ? &place->next->previous : &wk->last) = place->previous;
        if (place == queues.next) {
            queues.next = place->next;
        }
        if (place == queues.newcomer) {
            queues.newcomer = place->next;
        }
        if (w->when_gone) {
            count_when_gone(wk, -1);
        }
        leave_if_idle(wk);
    }
    w->place_count = 0;
}

/* ---- ready keys ---- */

static void make_ready(struct waiting_key *wk)
{
    if (!wk->ready) {
        wk->ready = true;
        keyspace_has_work = true;
        wk->next_ready = NULL;
        *(waiting_first_ready ? queues.last_ready : &waiting_first_ready) = wk;
        queues.last_ready = &wk->next_ready;
    }
}

static void make_ready_in_db(uintptr_t *slot, void *context)
{
    struct waiting_key *wk = table_entry(*slot);
    const struct db *db = context;
    if (wk->db_id == db->id) {
        make_ready(wk);
    }
}

static void make_database_ready(struct db *db)
{
    uint64_t cursor = 0;
    do {
        cursor = table_scan(&queues.table, cursor, make_ready_in_db, db);
    } while (cursor);
}

void waiting_mark(struct db *db, struct slice name)
{
    if (!name.ptr) {
        make_database_ready(db);
        return;
    }
    struct key key = key_of(name);
    struct waiting_key *wk = find(db->id, &key);
    if (wk) {
        make_ready(wk);
    }
}

void waiting_look_again(struct waiting_place *place)
{
    make_ready(place->key);
}

static bool suits(const struct waiter *w, const struct entry *e)
{
    return (e && entry_type(e) == w->type) || w->when_gone;
}

static bool suits_some(const struct waiting_key *wk, const struct entry *e)
{
    return (e && wk->types & 1u << entry_type(e)) || wk->when_gone > 0;
}

/* Who comes meanwhile has been tried when it came. */
static void serve_key(struct waiting_key *wk, int64_t now_ms) REQUIRES(keyspace_lock)
{
    struct db *db = db_at(wk->db_id);
    queues.next = wk->first;
    queues.newcomer = NULL;
    while (queues.next && queues.next != queues.newcomer) {
        struct waiting_place *place = queues.next;
        /* Looked up anew each time: the waiter before may have emptied the key, or any other. */
        const struct entry *e = db_read(db, &wk->key, now_ms, DB_NO_TOUCH | DB_NO_STATS);
        if (!suits_some(wk, e)) {
            break;
        }
        queues.next = place->next;
        if (suits(place->waiter, e)) {
            queues.try_waiter(place->waiter, now_ms);
        }
    }
    queues.next = queues.newcomer = NULL;
}

void waiting_serve(int64_t now_ms)
{
    if (queues.serving || queues.deferred) {
        return;
    }
    queues.serving = true;
    while (waiting_first_ready) {
        struct waiting_key *wk = waiting_first_ready;
        waiting_first_ready = wk->next_ready;
        wk->ready = false;
        wk->serving = true;
        queues.served = wk;
        serve_key(wk, now_ms);
        queues.served = NULL;
        wk->serving = false;
        leave_if_idle(wk);
    }
    queues.serving = false;
}

const struct key *waiting_served_key(void)
{
    return queues.served ? &queues.served->key : NULL;
}

void waiting_defer(bool defer)
{
    assert(queues.deferred != defer);
    queues.deferred = defer;
}

bool waiting_is_deferred(void)
{
    return queues.deferred;
}

/* ---- life ---- */

void waiting_setup(waiting_try try_waiter)
{
    queues.try_waiter = try_waiter;
    table_init(&queues.table, hash_entry);
}

void waiting_teardown(void)
{
    assert(queues.table.count == 0);
    table_deinit(&queues.table, NULL, NULL);
}

uint64_t waiting_key_count(void)
{
    return atomic_load_explicit(&waiting_key_total, memory_order_relaxed);
}

uint64_t waiting_key_count_when_gone(void)
{
    return atomic_load_explicit(&queues.keys_when_gone, memory_order_relaxed);
}
