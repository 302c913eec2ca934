/* See origin_log.h. An origin's units stand in a ring, so that a reader's place is its sequence: he
 * holds nothing, and nothing is held for him. */
#include "active/origin_log.h"

#include "base/mem.h"
#include "active/hlc.h"
#include "active/origin_list.h"

#include <assert.h>
#include <string.h>

#define FIRST_CAPACITY 16
/* A ring with more places than these, which is less than an eighth full, keeps twice what it has.
 */
#define SHRINK_CAPACITY 1024
/* What is dropped has not been looked at for long: so many units ahead it is asked for. */
#define PREFETCH 8
/* A write drops no more, so that none takes long. */
#define TRIM_UNITS 1024

/* ring[sequence & (capacity - 1)] for first <= sequence < end. */
struct ring {
    struct unit **units;
    uint64_t first, end;
    uint64_t capacity; /* a power of two, or 0: nothing is in it */
};

struct origin_log {
    struct log_reserve *reserve; /* NULL: none */
    struct ring *rings;          /* by origin's index */
    uint32_t count;
    struct origin_list filled; /* whose rings are not empty */
    size_t bytes, bytes_max;
    size_t held_max; /* instead, while somebody holds */
    _Atomic uint32_t holders;
    uint64_t appended;           /* bytes, ever */
    uint64_t trim_at;            /* at so many of those it is looked what has to go */
    _Atomic uint64_t upto;       /* of those: the slowest reader has them */
    _Atomic size_t readers_max;  /* bound for readers' sake */
    _Atomic size_t beyond_bytes; /* beyond bytes_max */
    uint64_t newest;             /* stamp */
};

struct origin_log *origin_log_create(size_t bytes_max)
{
    struct origin_log *log = mem_calloc(1, sizeof(*log));
    log->bytes_max = bytes_max;
    log->upto = UINT64_MAX;
    return log;
}

void origin_log_set_bound(struct origin_log *log, size_t bytes_max)
{
    log->trim_at = bytes_max == log->bytes_max ? log->trim_at : 0;
    log->bytes_max = bytes_max;
}

void origin_log_keep_on_disk(struct origin_log *log, struct reserve *reserve)
{
    assert(!log->reserve);
    log->reserve = log_reserve_create(reserve);
}

struct log_reserve *origin_log_reserve(const struct origin_log *log)
{
    return log->reserve;
}

static struct unit **place(const struct ring *r, uint64_t sequence)
{
    return &r->units[sequence & (r->capacity - 1)];
}

static size_t unit_bytes(const struct unit *u)
{
    return sizeof(*u) + u->len;
}

static __attribute__((noinline)) void forget_ring(struct origin_log *log, struct ring *r)
{
    origin_list_remove(&log->filled, (uint16_t)(r - log->rings));
    mem_free(r->units);
    r->units = NULL;
    r->capacity = 0;
}

static void drop_first(struct origin_log *log, struct ring *r)
{
    struct unit *u = *place(r, r->first++);
    if (r->end - r->first > PREFETCH) {
        __builtin_prefetch(*place(r, r->first + PREFETCH));
    }
    log->bytes -= unit_bytes(u);
    unit_release(u);
    if (unlikely(r->first == r->end)) {
        forget_ring(log, r);
    }
}

void origin_log_destroy(struct origin_log **log)
{
    for (uint32_t i = 0; *log && i < (*log)->count; i++) {
        struct ring *r = &(*log)->rings[i];
        while (r->first < r->end) {
            drop_first(*log, r);
        }
    }
    if (*log) {
        log_reserve_destroy(&(*log)->reserve);
        origin_list_deinit(&(*log)->filled);
        mem_free((*log)->rings);
        mem_free(*log);
        *log = NULL;
    }
}

static __attribute__((noinline)) void add_rings(struct origin_log *log, uint32_t count)
{
    log->rings = mem_realloc(log->rings, count * sizeof(*log->rings));
    for (; log->count < count; log->count++) {
        log->rings[log->count] = (struct ring){.first = 1, .end = 1};
    }
}

static inline struct ring *ring_of(struct origin_log *log, uint16_t origin)
{
    if (unlikely(origin >= log->count)) {
        add_rings(log, (uint32_t)origin + 1);
    }
    return &log->rings[origin];
}

/* A power of two, for all that it has. */
static void set_capacity(struct ring *r, uint64_t capacity)
{
    struct ring made = *r;
    made.capacity = capacity;
    made.units = mem_alloc(capacity * sizeof(struct unit *));
    for (uint64_t s = r->first; s < r->end; s++) {
        *place(&made, s) = *place(r, s);
    }
    mem_free(r->units);
    *r = made;
}

static void shrink(struct ring *r)
{
    uint64_t count = r->end - r->first, capacity = r->capacity;
    if (capacity <= SHRINK_CAPACITY || count * 8 >= capacity) {
        return;
    }
    while (capacity > SHRINK_CAPACITY && count * 4 <= capacity) {
        capacity /= 2;
    }
    set_capacity(r, capacity);
}

/* An origin's last write, which is not old. */
static bool is_held(const struct origin_log *log, const struct ring *r)
{
    return r->end - r->first == 1 &&
           hlc_stamp_ms((*place(r, r->first))->dot.stamp) + ORIGIN_LOG_LAST_MS >
               hlc_stamp_ms(log->newest);
}

/* The ring to drop from, as long as what it drops is earlier than *limit; NULL when there is none.
 */
static struct ring *oldest(const struct origin_log *log, uint64_t *limit)
{
    struct ring *found = NULL;
    *limit = UINT64_MAX;
    for (uint32_t i = 0; i < log->filled.count; i++) {
        struct ring *r = &log->rings[log->filled.rows[i]];
        if (is_held(log, r)) {
            continue;
        }
        uint64_t stamp = (*place(r, r->first))->dot.stamp;
        if (!found || stamp < (*place(found, found->first))->dot.stamp) {
            *limit = found ? (*place(found, found->first))->dot.stamp : *limit;
            found = r;
        } else if (stamp < *limit) {
            *limit = stamp;
        }
    }
    return found;
}

uint64_t origin_log_unread(const struct origin_log *log)
{
    uint64_t upto = atomic_load_explicit(&log->upto, memory_order_relaxed);
    if (upto == UINT64_MAX) {
        return UINT64_MAX;
    }
    return upto < log->appended ? log->appended - upto : 0;
}

static size_t bound(const struct origin_log *log)
{
    size_t max = log->holders && log->held_max > log->bytes_max ? log->held_max : log->bytes_max;
    uint64_t unread = origin_log_unread(log);
    uint64_t wanted = unread == UINT64_MAX ? log->bytes_max : log->bytes_max + unread;
    uint64_t most = atomic_load_explicit(&log->readers_max, memory_order_relaxed);
    wanted = wanted < most ? wanted : most;
    return wanted > max ? (size_t)wanted : max;
}

/* Drops from the ring it has found, down to so many bytes, `units` at most. How many it were. */
static uint64_t drop_run(struct origin_log *log, struct ring *from, uint64_t limit, size_t max,
                         uint64_t units)
{
    uint64_t begin = from->first;
    do {
        drop_first(log, from);
    } while (log->bytes > max && from->first < from->end && from->first - begin < units &&
             !is_held(log, from) && (*place(from, from->first))->dot.stamp < limit);
    return from->first - begin;
}

/* What will have to go before the next look goes at once, so that not every write has to look; but
 * no more than so many units. False: it was too much, and the next write looks again. */
static __attribute__((noinline)) bool trim(struct origin_log *log, uint64_t units)
{
    struct ring *from;
    uint64_t limit;
    size_t spare = unit_spare(log->bytes_max);
    size_t max = bound(log) - spare;
    log->trim_at = log->appended + spare;
    while (log->bytes > max && units > 0 && (from = oldest(log, &limit)) != NULL) {
        units -= drop_run(log, from, limit, max, units);
    }
    atomic_store_explicit(&log->beyond_bytes,
                          log->bytes > log->bytes_max ? log->bytes - log->bytes_max : 0,
                          memory_order_relaxed);
    log->trim_at = units > 0 ? log->trim_at : 0;
    return units > 0;
}

static __attribute__((noinline)) void append_with_room(struct origin_log *log, struct unit *unit)
{
    uint16_t origin = dot_origin(unit->dot);
    struct ring *r = ring_of(log, origin);
    if (r->capacity == 0) {
        origin_list_add(&log->filled, origin);
        set_capacity(r, FIRST_CAPACITY);
    } else if (r->end - r->first == r->capacity) {
        set_capacity(r, 2 * r->capacity);
    }
    origin_log_append(log, unit);
}

static __attribute__((noinline)) void reserve_and_trim(struct origin_log *log, struct unit *unit)
{
    if (log->reserve) {
        log_reserve_put(log->reserve, unit);
    }
    if (log->appended >= log->trim_at) {
        (void)trim(log, TRIM_UNITS);
    }
}

/* Each write comes here: calls stand at ends alone. */
void origin_log_append(struct origin_log *log, struct unit *unit)
{
    uint16_t origin = dot_origin(unit->dot);
    uint64_t sequence = dot_sequence(unit->dot);
    struct ring *r = origin < log->count ? &log->rings[origin] : NULL;
    if (unlikely(!r || r->end - r->first == r->capacity)) {
        append_with_room(log, unit);
        return;
    }
    assert(sequence == r->end);
    r->end++;
    *place(r, sequence) = unit_acquire(unit);
    log->bytes += unit_bytes(unit);
    log->appended += unit_bytes(unit);
    log->newest = unit->dot.stamp > log->newest ? unit->dot.stamp : log->newest;
    if (log->reserve || unlikely(log->appended >= log->trim_at)) {
        reserve_and_trim(log, unit);
    }
}

void origin_log_hold(struct origin_log *log, size_t bytes_max)
{
    log->holders++;
    log->held_max = bytes_max;
}

void origin_log_let_go(struct origin_log *log)
{
    assert(log->holders > 0);
    log->holders--;
}

void origin_log_read_upto(struct origin_log *log, uint64_t upto, size_t bytes_max)
{
    log->readers_max = bytes_max;
    log->upto = upto;
}

bool origin_log_trim(struct origin_log *log, uint64_t units)
{
    bool more = log->bytes > bound(log) && !trim(log, units);
    for (uint32_t i = 0; i < log->filled.count && !more; i++) {
        shrink(&log->rings[log->filled.rows[i]]);
    }
    return more;
}

uint64_t origin_log_appended(const struct origin_log *log)
{
    return log->appended;
}

size_t origin_log_beyond(const struct origin_log *log)
{
    return log->beyond_bytes;
}

void origin_log_skip(struct origin_log *log, uint16_t origin, uint64_t position)
{
    struct ring *r = ring_of(log, origin);
    if (position < r->end) {
        return;
    }
    while (r->first < r->end) {
        drop_first(log, r);
    }
    r->first = r->end = position + 1;
    if (log->reserve) {
        log_reserve_skip(log->reserve, origin, position);
    }
}

bool origin_log_keeps_after(const struct origin_log *log, uint16_t origin, uint64_t sequence,
                            uint64_t position)
{
    struct reserve_place place;
    return origin_log_has_after(log, origin, sequence, position) ||
           (log->reserve && origin < log->count && log->rings[origin].end > position &&
            log_reserve_find(log->reserve, origin, sequence + 1, &place));
}

bool origin_log_has_after(const struct origin_log *log, uint16_t origin, uint64_t sequence,
                          uint64_t position)
{
    if (sequence >= position) {
        return true;
    }
    return origin < log->count && log->rings[origin].first <= sequence + 1 &&
           log->rings[origin].end > position;
}

struct unit *origin_log_find(const struct origin_log *log, uint16_t origin, uint64_t sequence)
{
    if (origin >= log->count || sequence < log->rings[origin].first ||
        sequence >= log->rings[origin].end) {
        return NULL;
    }
    return *place(&log->rings[origin], sequence);
}

struct unit *const *origin_log_run(const struct origin_log *log, uint16_t origin, uint64_t sequence,
                                   uint64_t *count)
{
    if (!origin_log_find(log, origin, sequence)) {
        *count = 0;
        return NULL;
    }
    const struct ring *r = &log->rings[origin];
    uint64_t left = r->end - sequence, at = sequence & (r->capacity - 1);
    *count = left < r->capacity - at ? left : r->capacity - at;
    return &r->units[at];
}

size_t origin_log_bytes(const struct origin_log *log)
{
    return log->bytes;
}
