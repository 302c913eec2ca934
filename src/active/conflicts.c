/* See conflicts.h. */
#include "active/conflicts.h"

#include "base/hash.h"
#include "base/mem.h"
#include "ds/table.h"

#include <string.h>

/* A conflict is looked at again after one of these times, the longest that is not too long: so each
 * queue is in the order of when to look, and very many that are not due cost nothing. */
static const int64_t delay_ms[] = {20, CONFLICT_QUIET_MS, 1000, 10000};
#define QUEUES (sizeof(delay_ms) / sizeof(delay_ms[0]))
/* So many of a queue are looked at in vain at a time. */
#define LOOKS_MAX 16384

struct conflict {
    struct conflict *before, *after; /* in its queue */
    int64_t look_ms;                 /* then */
    int64_t first_ms, last_ms;
    uint64_t state_stamp; /* only what is later settles it */
    uint64_t wait_stamp;  /* not before all have seen this; 0: no such */
    int64_t waits_ms;     /* since when it waits for that */
    int db;
    uint32_t len;
    uint8_t queue;
    bool same; /* a digest will do */
    bool is_put_off;
    char key[];
};

struct queue {
    struct conflict *first, *last;
};

struct conflicts {
    struct table by_key;
    struct queue queues[QUEUES];
    conflicts_changed_fn changed; /* or NULL */
    void *context;                /* its */
    size_t pace_bytes;
    uint64_t chance;
    uint64_t
        owed; /* bytes that were told and are not paid for by time yet, times CONFLICT_PACE_MS */
    int64_t paid_ms; /* upto then */
    uint64_t seen;   /* by all nodes */
};

struct wanted {
    int db;
    struct slice key;
};

static uint64_t hash_of(const struct wanted *w)
{
    return hash_slice(w->key) ^ ((uint64_t)w->db << 32);
}

static struct wanted name_of(const struct conflict *x)
{
    return (struct wanted){x->db, slice_of(x->key, x->len)};
}

static uint64_t hash_of_entry(const void *entry)
{
    struct wanted w = name_of(entry);
    return hash_of(&w);
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

/* Pays for the time that has passed. */
static void pay(struct conflicts *d, int64_t now_ms)
{
    uint64_t passed_ms = now_ms > d->paid_ms ? (uint64_t)(now_ms - d->paid_ms) : 0;
    bool all = d->pace_bytes == 0 || d->owed / d->pace_bytes < passed_ms;
    d->owed = all ? 0 : d->owed - d->pace_bytes * passed_ms;
    d->paid_ms += (int64_t)passed_ms;
}

void conflicts_set_pace(struct conflicts *d, size_t pace_bytes, int64_t now_ms)
{
    pay(d, now_ms);
    if (pace_bytes < d->pace_bytes) {
        d->owed = (uint64_t)((double)d->owed * (double)pace_bytes / (double)d->pace_bytes);
    }
    d->pace_bytes = pace_bytes;
}

void conflicts_was_read(struct conflicts *d)
{
    uint64_t most = (uint64_t)d->pace_bytes * CONFLICT_MAX_MS;
    d->owed = d->owed < most ? d->owed : most;
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

static void queue_remove(struct conflicts *d, struct conflict *x)
{
    struct queue *q = &d->queues[x->queue];
    *(x->before ? &x->before->after : &q->first) = x->after;
    *(x->after ? &x->after->before : &q->last) = x->before;
}

/* To be looked at after `in_ms`, or a little before that. */
static void queue_add(struct conflicts *d, struct conflict *x, int64_t in_ms, int64_t now_ms)
{
    x->queue = 0;
    while (x->queue + 1U < QUEUES && delay_ms[x->queue + 1] <= in_ms) {
        x->queue++;
    }
    struct queue *q = &d->queues[x->queue];
    x->look_ms = now_ms + delay_ms[x->queue];
    x->before = q->last;
    x->after = NULL;
    *(q->last ? &q->last->after : &q->first) = x;
    q->last = x;
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
    *x = (struct conflict){.first_ms = now_ms,
                           .last_ms = now_ms,
                           .state_stamp = state_stamp,
                           .db = db,
                           .len = (uint32_t)key.len,
                           .same = same};
    memcpy(x->key, key.ptr, key.len);
    table_insert(&d->by_key, hash_of(&w), (uintptr_t)x);
    queue_add(d, x, CONFLICT_QUIET_MS, now_ms);
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
        queue_remove(d, x);
        queue_add(d, x, CONFLICT_QUIET_MS, now_ms);
    }
}

void conflicts_all_seen(struct conflicts *d, uint64_t stamp)
{
    d->seen = stamp;
}

/* True while others are to be heard first: then it is as if it had begun a while from now. */
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
    struct wanted w = name_of(x);
    tell_change(d, x, false);
    table_remove(&d->by_key, hash_of(&w), slot);
    queue_remove(d, x);
    mem_free(x);
}

void conflicts_resolve(struct conflicts *d, int db, struct slice key, uint64_t stamp)
{
    uintptr_t *slot = d->by_key.count > 0 ? find(d, db, key) : NULL;
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
    d->chance = d->chance * 6364136223846793005U + 1442695040888963407U; /* Knuth's */
    double part = 0.5 + (double)(d->chance >> 32) / 0x1p32;
    pay(d, now_ms);
    d->owed += d->pace_bytes > 0 ? (uint64_t)(part * (double)bytes * CONFLICT_PACE_MS) : 0;
}

/* The queue's next one that is due; those that are not are put into the one where they belong. */
static struct conflict *due(struct conflicts *d, struct queue *q, int64_t now_ms)
{
    struct conflict *x;
    for (int i = 0; i < LOOKS_MAX && (x = q->first) != NULL && x->look_ms <= now_ms; i++) {
        bool waiting = waits(d, x, now_ms);
        int64_t quiet_ms = x->last_ms + CONFLICT_QUIET_MS, most_ms = x->first_ms + CONFLICT_MAX_MS;
        int64_t in_ms = (quiet_ms < most_ms ? quiet_ms : most_ms) - now_ms;
        if (!waiting && in_ms <= 0) {
            return x;
        }
        queue_remove(d, x);
        queue_add(d, x, waiting ? CONFLICT_QUIET_MS : in_ms, now_ms);
    }
    return NULL;
}

bool conflicts_take_due(struct conflicts *d, int64_t now_ms, int *db, struct buf *key, bool *same)
{
    struct conflict *x = NULL;
    pay(d, now_ms);
    if (d->pace_bytes > 0 && d->owed >= (uint64_t)d->pace_bytes * CONFLICT_PACE_MS) {
        return false;
    }
    for (size_t i = QUEUES; i > 0 && !x; i--) {
        x = due(d, &d->queues[i - 1], now_ms);
    }
    if (!x) {
        return false;
    }
    *db = x->db;
    *same = x->same;
    buf_clear(key);
    buf_append(key, x->key, x->len);
    drop(d, find(d, x->db, slice_of(x->key, x->len)));
    return true;
}

void conflicts_each(const struct conflicts *d, conflicts_visit_fn visit, void *context)
{
    for (size_t i = 0; i < QUEUES; i++) {
        for (const struct conflict *x = d->queues[i].first; x; x = x->after) {
            visit(x->db, slice_of(x->key, x->len), context);
        }
    }
}
