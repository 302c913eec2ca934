/* See tracking_table.h. */
#include "net/tracking_table.h"

#include "base/mem.h"
#include "net/tracking_priv.h"

#include <assert.h>
#include <string.h>

static uint64_t hash_tracked(const void *entry)
{
    return ((const struct tracked_key *)entry)->hash;
}

static bool match_tracked(const void *entry, const void *key)
{
    const struct tracked_key *e = entry;
    const struct key *k = key;
    return e->hash == k->hash && slice_equal(slice_of(e->name, e->len), k->name);
}

static uintptr_t *find(const struct tracking_table *t, const struct key *key)
{
    return table_find(&t->keys, key->hash, match_tracked, key);
}

static struct tracked_key *create_key(struct tracking_table *t, const struct key *key)
{
    struct tracked_key *e = mem_alloc(sizeof(*e) + key->name.len);
    *e = (struct tracked_key){.hash = key->hash, .capacity = 1, .len = key->name.len};
    e->trackers = &e->one;
    if (key->name.len > 0) {
        memcpy(e->name, key->name.ptr, key->name.len);
    }
    table_insert(&t->keys, e->hash, (uintptr_t)e);
    return e;
}

/* Where the tracker is, or belongs. */
static uint32_t place_of(const struct tracked_key *e, const struct tracker *tracker)
{
    uint32_t low = 0, high = e->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((uintptr_t)e->trackers[middle] < (uintptr_t)tracker) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void drop_item(struct tracking_table *t, struct tracker *tracker)
{
    t->items--;
    tracker_forget_item(tracker);
}

/* Ended trackers go before the list grows: it has at most as many of them as others. */
static void drop_ended(struct tracking_table *t, struct tracked_key *e)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        if (e->trackers[i]->client) {
            e->trackers[kept++] = e->trackers[i];
        } else {
            drop_item(t, e->trackers[i]);
        }
    }
    e->count = kept;
}

static void make_room(struct tracking_table *t, struct tracked_key *e)
{
    drop_ended(t, e);
    if (e->count < e->capacity) {
        return;
    }
    struct tracker **old = e->trackers == &e->one ? NULL : e->trackers;
    e->trackers = mem_realloc(old, 2 * (size_t)e->capacity * sizeof(struct tracker *));
    if (!old) {
        e->trackers[0] = e->one;
    }
    e->capacity *= 2;
}

bool tracking_table_add(struct tracking_table *t, const struct key *key, struct tracker *tracker)
{
    uintptr_t *slot = find(t, key);
    struct tracked_key *e = slot ? table_entry(*slot) : create_key(t, key);
    uint32_t at = place_of(e, tracker);
    if (at < e->count && e->trackers[at] == tracker) {
        return false;
    }
    if (e->count == e->capacity) {
        make_room(t, e);
        at = place_of(e, tracker);
    }
    memmove(&e->trackers[at + 1], &e->trackers[at], (e->count - at) * sizeof(struct tracker *));
    e->trackers[at] = tracker;
    e->count++;
    t->items++;
    tracker->items++;
    return !slot;
}

static struct tracked_key *take(struct tracking_table *t, uintptr_t *slot)
{
    if (!slot) {
        return NULL;
    }
    struct tracked_key *e = table_entry(*slot);
    table_remove(&t->keys, e->hash, slot);
    return e;
}

struct tracked_key *tracking_table_take(struct tracking_table *t, const struct key *key)
{
    return take(t, find(t, key));
}

struct tracked_key *tracking_table_take_random(struct tracking_table *t)
{
    return take(t, table_random(&t->keys));
}

void tracking_table_release(struct tracking_table *t, struct tracked_key *taken)
{
    for (uint32_t i = 0; i < taken->count; i++) {
        drop_item(t, taken->trackers[i]);
    }
    if (taken->trackers != &taken->one) {
        mem_free(taken->trackers);
    }
    mem_free(taken);
}

static void release_entry(void *entry, void *context)
{
    tracking_table_release(context, entry);
}

void tracking_table_init(struct tracking_table *t)
{
    table_init(&t->keys, hash_tracked);
    t->items = 0;
}

void tracking_table_deinit(struct tracking_table *t)
{
    table_deinit(&t->keys, release_entry, t);
    assert(t->items == 0);
}

void tracking_table_clear(struct tracking_table *t)
{
    if (t->keys.count > 0) {
        tracking_table_deinit(t);
        tracking_table_init(t);
    }
}
