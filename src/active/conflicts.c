/* See conflicts.h. */
#include "active/conflicts.h"

#include "base/hash.h"
#include "base/mem.h"
#include "ds/table.h"

#include <string.h>

struct conflict {
    uint64_t hash;
    struct conflict *before, *after; /* in the order of their first notes */
    int64_t first_ms, last_ms;
    uint64_t state_stamp; /* only what is later settles it */
    uint64_t wait_stamp;  /* not before all have seen this; 0: no such */
    int64_t waits_ms;     /* since when it waits for that */
    int db;
    uint32_t len;
    bool same; /* a digest will do */
    bool is_put_off;
    char key[];
};

struct conflicts {
    struct table by_key;
    struct conflict *first, *last;
    conflicts_changed_fn changed; /* or NULL */
    void *context;                /* its */
    size_t pace_bytes;
    uint64_t chance;
    int64_t paid_upto_us; /* what was told would have taken until then, at that pace */
    uint64_t seen;        /* by all nodes */
};

struct wanted {
    int db;
    struct slice key;
};

static uint64_t hash_of_entry(const void *entry)
{
    return ((const struct conflict *)entry)->hash;
}

static uint64_t hash_of(const struct wanted *w)
{
    return hash_slice(w->key) ^ ((uint64_t)w->db << 32);
}

static bool matches(const void *entry, const void *key)
{
    const struct conflict *x = entry;
    const struct wanted *w = key;
    return x->db == w->db && slice_equal(slice_of(x->key, x->len), w->key);
}

struct conflicts *conflicts_create(size_t pace_bytes, uint64_t seed)
{
    struct conflicts *d = mem_calloc(1, sizeof(*d));
    d->pace_bytes = pace_bytes;
    d->chance = seed;
    table_init(&d->by_key, hash_of_entry);
    return d;
}

void conflicts_set_pace(struct conflicts *d, size_t pace_bytes)
{
    d->pace_bytes = pace_bytes;
}

static void destroy_entry(void *entry, void *context)
{
    (void)context;
    mem_free(entry);
}

void conflicts_destroy(struct conflicts **d)
{
    if (*d) {
        table_deinit(&(*d)->by_key, destroy_entry, NULL);
        mem_free(*d);
        *d = NULL;
    }
}

static uintptr_t *find(const struct conflicts *d, int db, struct slice key)
{
    struct wanted w = {db, key};
    return table_find(&d->by_key, hash_of(&w), matches, &w);
}

void conflicts_watch(struct conflicts *d, conflicts_changed_fn changed, void *context)
{
    d->changed = changed;
    d->context = context;
}

static void tell_change(const struct conflicts *d, const struct conflict *x, bool pending)
{
    if (d->changed) {
        d->changed(x->db, slice_of(x->key, x->len), x->state_stamp, pending, d->context);
    }
}

static void note(struct conflicts *d, int db, struct slice key, uint64_t state_stamp, bool same,
                 int64_t now_ms)
{
    uintptr_t *slot = find(d, db, key);
    if (slot) {
        struct conflict *known = table_entry(*slot);
        known->last_ms = now_ms > known->last_ms ? now_ms : known->last_ms;
        known->same = known->same && same;
        if (state_stamp > known->state_stamp) {
            known->state_stamp = state_stamp;
            tell_change(d, known, true);
        }
        return;
    }
    struct wanted w = {db, key};
    struct conflict *x = mem_alloc(sizeof(*x) + key.len);
    *x = (struct conflict){.hash = hash_of(&w),
                           .before = d->last,
                           .first_ms = now_ms,
                           .last_ms = now_ms,
                           .state_stamp = state_stamp,
                           .db = db,
                           .len = (uint32_t)key.len,
                           .same = same};
    memcpy(x->key, key.ptr, key.len);
    table_insert(&d->by_key, x->hash, (uintptr_t)x);
    if (d->last) {
        d->last->after = x;
    } else {
        d->first = x;
    }
    d->last = x;
    tell_change(d, x, true);
}

void conflicts_note(struct conflicts *d, int db, struct slice key, uint64_t state_stamp,
                    int64_t now_ms)
{
    note(d, db, key, state_stamp, false, now_ms);
}

void conflicts_note_same(struct conflicts *d, int db, struct slice key, int64_t now_ms)
{
    note(d, db, key, 0, true, now_ms);
}

void conflicts_wait(struct conflicts *d, int db, struct slice key, uint64_t stamp, int64_t now_ms)
{
    uintptr_t *slot = find(d, db, key);
    struct conflict *x = slot ? table_entry(*slot) : NULL;
    if (x && stamp > x->wait_stamp) {
        x->waits_ms = x->wait_stamp ? x->waits_ms : now_ms;
        x->wait_stamp = stamp;
        x->first_ms = x->last_ms = now_ms + CONFLICT_PATIENCE_MS; /* all may have seen it already */
    }
}

void conflicts_put_off(struct conflicts *d, int db, struct slice key, int64_t now_ms)
{
    uintptr_t *slot = find(d, db, key);
    struct conflict *x = slot ? table_entry(*slot) : NULL;
    if (x && !x->is_put_off) {
        x->is_put_off = true;
        x->first_ms = x->last_ms = now_ms + CONFLICT_CAUSES_MS;
    }
}

void conflicts_put_off_no_more(struct conflicts *d, int db, struct slice key, int64_t now_ms)
{
    uintptr_t *slot = find(d, db, key);
    struct conflict *x = slot ? table_entry(*slot) : NULL;
    if (x && x->is_put_off) {
        x->is_put_off = false;
        x->first_ms = x->last_ms = now_ms;
    }
}

void conflicts_all_seen(struct conflicts *d, uint64_t stamp)
{
    d->seen = stamp;
}

/* True while it is not to be told: then it is as if it had begun a while from now. */
static bool waits(const struct conflicts *d, struct conflict *x, int64_t now_ms)
{
    if (x->wait_stamp <= d->seen || now_ms - x->waits_ms >= CONFLICT_WAIT_MAX_MS) {
        return false;
    }
    x->first_ms = x->last_ms = now_ms + CONFLICT_PATIENCE_MS;
    return true;
}

static void drop(struct conflicts *d, uintptr_t *slot)
{
    struct conflict *x = table_entry(*slot);
    tell_change(d, x, false);
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

void conflicts_resolve(struct conflicts *d, int db, struct slice key, uint64_t stamp)
{
    uintptr_t *slot = d->first ? find(d, db, key) : NULL;
    if (slot && stamp > ((struct conflict *)table_entry(*slot))->state_stamp) {
        drop(d, slot);
    }
}

bool conflicts_has(const struct conflicts *d, int db, struct slice key)
{
    return find(d, db, key) != NULL;
}

uint64_t conflicts_stamp(const struct conflicts *d, int db, struct slice key)
{
    const uintptr_t *slot = find(d, db, key);
    return slot ? ((const struct conflict *)table_entry(*slot))->state_stamp : 0;
}

size_t conflicts_count(const struct conflicts *d)
{
    return d->by_key.count;
}

void conflicts_told(struct conflicts *d, size_t bytes, int64_t now_ms)
{
    if (d->pace_bytes > 0) {
        d->chance = d->chance * 6364136223846793005U + 1442695040888963407U; /* Knuth's */
        double part = 0.5 + (double)(d->chance >> 32) / 0x1p32;
        double us = part * (double)bytes * CONFLICT_PACE_MS * 1000 / (double)d->pace_bytes;
        int64_t from_us = now_ms * 1000 > d->paid_upto_us ? now_ms * 1000 : d->paid_upto_us;
        d->paid_upto_us = from_us + (int64_t)us;
    }
}

bool conflicts_take_due(struct conflicts *d, int64_t now_ms, int *db, struct buf *key, bool *same)
{
    if (d->paid_upto_us >= (now_ms + CONFLICT_PACE_MS) * 1000) {
        return false;
    }
    for (struct conflict *x = d->first; x; x = x->after) {
        if (!waits(d, x, now_ms) &&
            (now_ms - x->last_ms >= CONFLICT_QUIET_MS || now_ms - x->first_ms >= CONFLICT_MAX_MS)) {
            *db = x->db;
            *same = x->same;
            buf_clear(key);
            buf_append(key, x->key, x->len);
            drop(d, find(d, x->db, slice_of(x->key, x->len)));
            return true;
        }
    }
    return false;
}

void conflicts_each(const struct conflicts *d, conflicts_visit_fn visit, void *context)
{
    for (const struct conflict *x = d->first; x; x = x->after) {
        visit(x->db, slice_of(x->key, x->len), context);
    }
}
