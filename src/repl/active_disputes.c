/* See active_disputes.h. */
#include "repl/active_disputes.h"

#include "base/hash.h"
#include "base/mem.h"
#include "ds/table.h"

#include <string.h>

struct dispute {
    uint64_t hash;
    struct dispute *before, *after; /* in the order of their first notes */
    int64_t first_ms, last_ms;
    uint64_t state_stamp; /* only what is later settles it */
    int db;
    uint32_t len;
    char key[];
};

struct active_disputes {
    struct table by_key;
    struct dispute *first, *last;
};

struct wanted {
    int db;
    struct slice key;
};

static uint64_t hash_of_entry(const void *entry)
{
    return ((const struct dispute *)entry)->hash;
}

static uint64_t hash_of(const struct wanted *w)
{
    return hash_slice(w->key) ^ ((uint64_t)w->db << 32);
}

static bool matches(const void *entry, const void *key)
{
    const struct dispute *x = entry;
    const struct wanted *w = key;
    return x->db == w->db && slice_equal(slice_of(x->key, x->len), w->key);
}

struct active_disputes *active_disputes_create(void)
{
    struct active_disputes *d = mem_calloc(1, sizeof(*d));
    table_init(&d->by_key, hash_of_entry);
    return d;
}

static void destroy_entry(void *entry, void *context)
{
    (void)context;
    mem_free(entry);
}

void active_disputes_destroy(struct active_disputes **d)
{
    if (*d) {
        table_deinit(&(*d)->by_key, destroy_entry, NULL);
        mem_free(*d);
        *d = NULL;
    }
}

static uintptr_t *find(const struct active_disputes *d, int db, struct slice key)
{
    struct wanted w = {db, key};
    return table_find(&d->by_key, hash_of(&w), matches, &w);
}

void active_disputes_note(struct active_disputes *d, int db, struct slice key, uint64_t state_stamp,
                          int64_t now_ms)
{
    uintptr_t *slot = find(d, db, key);
    if (slot) {
        struct dispute *known = table_entry(*slot);
        known->last_ms = now_ms;
        known->state_stamp = state_stamp > known->state_stamp ? state_stamp : known->state_stamp;
        return;
    }
    struct wanted w = {db, key};
    struct dispute *x = mem_alloc(sizeof(*x) + key.len);
    *x = (struct dispute){.hash = hash_of(&w),
                          .before = d->last,
                          .first_ms = now_ms,
                          .last_ms = now_ms,
                          .state_stamp = state_stamp,
                          .db = db,
                          .len = (uint32_t)key.len};
    memcpy(x->key, key.ptr, key.len);
    table_insert(&d->by_key, x->hash, (uintptr_t)x);
    if (d->last) {
        d->last->after = x;
    } else {
        d->first = x;
    }
    d->last = x;
}

static void drop(struct active_disputes *d, uintptr_t *slot)
{
    struct dispute *x = table_entry(*slot);
    table_remove(&d->by_key, x->hash, slot);
    if (x->before) {
        x->before->after = x->after;
    } else {
        d->first = x->after;
    }
    if (x->after) {
        x->after->before = x->before;
    } else {
        d->last = x->before;
    }
    mem_free(x);
}

void active_disputes_settle(struct active_disputes *d, int db, struct slice key, uint64_t stamp)
{
    uintptr_t *slot = d->first ? find(d, db, key) : NULL;
    if (slot && stamp > ((struct dispute *)table_entry(*slot))->state_stamp) {
        drop(d, slot);
    }
}

bool active_disputes_pending(const struct active_disputes *d, int db, struct slice key)
{
    return find(d, db, key) != NULL;
}

size_t active_disputes_count(const struct active_disputes *d)
{
    return d->by_key.count;
}

bool active_disputes_take_due(struct active_disputes *d, int64_t now_ms, int *db, struct buf *key)
{
    for (struct dispute *x = d->first; x; x = x->after) {
        if (now_ms - x->last_ms >= ACTIVE_DISPUTE_QUIET_MS ||
            now_ms - x->first_ms >= ACTIVE_DISPUTE_MAX_MS) {
            *db = x->db;
            buf_clear(key);
            buf_append(key, x->key, x->len);
            drop(d, find(d, x->db, slice_of(x->key, x->len)));
            return true;
        }
    }
    return false;
}

void active_disputes_each(const struct active_disputes *d, active_disputes_visit_fn visit,
                          void *context)
{
    for (const struct dispute *x = d->first; x; x = x->after) {
        visit(x->db, slice_of(x->key, x->len), context);
    }
}
