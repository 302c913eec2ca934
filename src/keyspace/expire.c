/* See expire.h. The sweep walks the tables' buckets and looks only at entries whose slot is tagged;
 * its position is a cursor for each database, so that every entry has its turn. */
#include "keyspace/expire.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/stats.h"
#include "keyspace/event.h"
#include "keyspace/local_expiry.h"
#include "keyspace/reclaim.h"
#include "value/member_ttl.h"

#include <assert.h>

/* Keys noted by one thread between two exclusive holds; more are left to the sweep. */
#define NOTES_MAX 128
/* Longest key that is noted by value. */
#define NOTE_KEY_MAX 512

struct note {
    struct db *db;
    uint64_t hash;
    uint32_t len;
    char key[NOTE_KEY_MAX];
};

static _Thread_local struct {
    uint32_t count, next; /* those before `next` have been seen to */
    struct note notes[NOTES_MAX];
} mine;

_Thread_local bool expire_rerun;
_Thread_local bool expire_frozen;

static struct {
    expire_listener listener;
    const bool *wanted;
    expire_judge judge;
} told;

static struct {
    int64_t effort; /* active-expire-effort, 1..10 */
    _Atomic bool active, suspended, elsewhere;
    _Atomic int64_t told_ms; /* so late it is elsewhere; 0: what is gone is told */
    uint64_t cursor[256];    /* keyspace: next bucket of each database (of the first 256 in turn) */
    int next_db;
    _Atomic uint64_t time_cap_reached;
    _Atomic uint32_t
        stale_permyriad; /* of the entries with expiry looked at, how many were expired */
} sweep = {.active = true};

void expire_set_elsewhere(bool elsewhere)
{
    atomic_store(&sweep.elsewhere, elsewhere);
}

void expire_set_told_clock(int64_t ms)
{
    atomic_store_explicit(&sweep.told_ms, ms, memory_order_relaxed);
}

bool expire_has_told_clock(void)
{
    return atomic_load_explicit(&sweep.told_ms, memory_order_relaxed) > 0;
}

void expire_note(struct db *db, const struct key *key)
{
    if (mine.count == NOTES_MAX || key->name.len > NOTE_KEY_MAX ||
        atomic_load_explicit(&sweep.elsewhere, memory_order_relaxed)) {
        return;
    }
    struct note *n = &mine.notes[mine.count++];
    n->db = db;
    n->hash = key->hash;
    n->len = (uint32_t)key->name.len;
    memcpy(n->key, key->name.ptr, key->name.len);
}

bool expire_has_notes(void)
{
    return mine.next < mine.count;
}

void expire_set_listener(expire_listener listener, const bool *wanted)
{
    told.listener = listener;
    told.wanted = wanted;
}

void expire_set_judge(expire_judge judge)
{
    told.judge = judge;
}

bool expire_is_judged(struct keyref *ref, int64_t now_ms)
{
    return unlikely(told.judge != NULL) && told.judge(ref, now_ms);
}

static inline bool is_told(void)
{
    return told.listener && *told.wanted;
}

void expire_tell(const struct db *db, const struct entry *e, int64_t at_ms, bool due)
{
    if (is_told()) {
        told.listener(&(struct expired){
            .db = db, .key = entry_key(e), .entry = e, .at_ms = at_ms, .due = due});
    }
}

/* Members that have gone: their bytes one behind the other, and where each ends; their deadlines.
 */
struct gone_members {
    struct buf bytes, ends, at_ms;
};

static void note_gone(struct slice member, int64_t at_ms, void *context)
{
    struct gone_members *gone = context;
    buf_append_slice(&gone->bytes, member);
    buf_append(&gone->ends, (const char *)&gone->bytes.len, sizeof(gone->bytes.len));
    buf_append(&gone->at_ms, (const char *)&at_ms, sizeof(at_ms));
}

/* Tells of them, and forgets them. */
static void tell_gone(const struct keyref *ref, enum value_type type, struct gone_members *gone)
{
    int count = (int)(gone->ends.len / sizeof(size_t));
    if (count > 0) {
        struct slice *members = mem_alloc((size_t)count * sizeof(*members));
        const size_t *ends = (const size_t *)(const void *)gone->ends.data;
        for (int i = 0; i < count; i++) {
            size_t begin = i > 0 ? ends[i - 1] : 0;
            members[i] = slice_of(gone->bytes.data + begin, ends[i] - begin);
        }
        told.listener(
            &(struct expired){.db = ref->db,
                              .key = ref->key.name,
                              .type = type,
                              .members = members,
                              .members_at_ms = (const int64_t *)(const void *)gone->at_ms.data,
                              .count = count,
                              .due = true});
        mem_free(members);
    }
    buf_deinit(&gone->at_ms);
    buf_deinit(&gone->bytes);
    buf_deinit(&gone->ends);
}

void expire_delete(struct keyref *ref)
{
    struct entry *e = db_take_as(ref, GOING_EXPIRED);
    stats_add(STAT_EXPIRED_KEYS, 1);
    expire_tell(ref->db, e, entry_expiry_ms(e), true);
    event_key_changed(ref->db, ref->key.name);
    event_notify(EVENT_EXPIRED, "expired", ref->db->id, ref->key.name);
    /* Last: the key's bytes may be the entry's own, and the background thread frees at once. */
    reclaim_entry_as(e, reclaim_lazy_expire(), "expire-del");
}

/* What is told of members that expire. */
static const struct {
    enum event_class class;
    const char *event;
} member_events[VALUE_TYPE_COUNT] = {
    [VALUE_HASH] = {EVENT_HASH, "hexpired"},
    [VALUE_SET] = {EVENT_SET, "srem"},
    [VALUE_ZSET] = {EVENT_ZSET, "zrem"},
};

uint64_t expire_members(struct keyref *ref, int64_t now_ms, uint64_t max)
{
    struct entry *e = ref->entry;
    enum value_type type = entry_type(e);
    bool all = member_ttl_all_due(e, now_ms);
    struct gone_members gone = {{0}, {0}, {0}};
    uint64_t removed =
        all ? member_ttl_count(e)
            : member_ttl_remove_due(e, now_ms, max, is_told() ? note_gone : NULL, &gone);
    if (all) {
        db_take(ref);
        expire_tell(ref->db, e, ENTRY_NO_EXPIRY, true);
    } else {
        db_moved(ref, e);
        tell_gone(ref, type, &gone);
    }
    if (removed > 0) {
        stats_add(STAT_EXPIRED_MEMBERS, removed);
        event_key_changed(ref->db, ref->key.name);
        event_notify(member_events[type].class, member_events[type].event, ref->db->id,
                     ref->key.name);
    }
    if (all) {
        event_notify(EVENT_GENERIC, "del", ref->db->id, ref->key.name);
        /* Last, as above. */
        reclaim_entry_as(e, reclaim_lazy_expire(), "expire-del");
    }
    return removed;
}

bool expire_is_suspended(void)
{
    return atomic_load_explicit(&sweep.suspended, memory_order_relaxed);
}

void expire_run_notes(int64_t now_ms)
{
    uint64_t removed = 0;
    bool more = false;
    while (mine.next < mine.count && removed < EXPIRE_MEMBERS_A_HOLD) {
        struct note *n = &mine.notes[mine.next];
        struct key key = {slice_of(n->key, n->len), n->hash};
        if (likely(!expire_is_suspended())) { /* else the sweep will find it */
            removed += db_remove_due(n->db, &key, now_ms, EXPIRE_MEMBERS_A_HOLD - removed, &more);
        }
        if (more) {
            return;
        }
        mine.next++;
        if (!db_read(n->db, &key, now_ms, DB_NO_TOUCH | DB_NO_STATS)) {
            event_notify(EVENT_KEY_MISS, "keymiss", n->db->id, key.name);
        }
    }
    if (mine.next == mine.count) {
        mine.next = mine.count = 0;
    }
}

/* ---- the sweep ---- */

struct slice_context {
    struct db *db;
    int64_t now_ms;
    uint64_t seen, expired_count; /* keys; a key with due members counts among both */
    uint64_t ttl_count;           /* keys with an expiry that is to come, and the sum of times */
    double ttl_sum_ms;            /* clients may set any expiry: an integer would overflow */
    struct entry *expired[64];
    uint32_t expired_kept;
    bool unfinished; /* the bucket has more that is due */
};

static void look_at_slot(uintptr_t *slot, void *context)
{
    struct slice_context *sc = context;
    if (!(*slot & (DB_TAG_EXPIRES | DB_TAG_MEMBERS))) {
        return;
    }
    struct entry *e = table_entry(*slot);
    int64_t expiry_ms = entry_expiry_ms(e);
    bool due = entry_is_over(expiry_ms, sc->now_ms);
    sc->seen++;
    if (!due && (*slot & DB_TAG_EXPIRES)) {
        sc->ttl_sum_ms += (double)expiry_ms - (double)sc->now_ms;
        sc->ttl_count++;
    }
    if (*slot & DB_TAG_MEMBERS) {
        /* One that has no deadlines any more loses its tag. */
        due = due || !member_ttl_any(e) || entry_is_over(member_ttl_next_ms(e), sc->now_ms);
    }
    if (due && sc->expired_kept < sizeof(sc->expired) / sizeof(sc->expired[0])) {
        sc->expired[sc->expired_kept++] = e;
    }
}

/* Deletes what one bucket had: members in portions. */
static void delete_found(struct slice_context *sc) REQUIRES(keyspace_lock)
{
    sc->unfinished = false;
    for (uint32_t i = 0; i < sc->expired_kept; i++) {
        bool more;
        struct key key = key_of(entry_key(sc->expired[i]));
        sc->expired_count +=
            db_remove_due(sc->db, &key, sc->now_ms, EXPIRE_MEMBERS_A_HOLD, &more) > 0;
        sc->unfinished |= more;
    }
    sc->expired_kept = 0;
}

/* An average above is shown as this (a power of two that int64_t has). */
#define TTL_SHOWN_MAX_MS 0x1p62

/* Longest hold of the sweep, and buckets between two looks at the clock. */
#define HOLD_US 100
#define BUCKETS_A_LOOK 16

/* A moving average over the walks. */
static void note_average_ttl(const struct slice_context *sc) REQUIRES(keyspace_lock)
{
    int64_t *average_ms = &sc->db->avg_ttl_ms;
    double now_ms = sc->ttl_sum_ms / (double)sc->ttl_count;
    double next_ms = *average_ms ? ((double)*average_ms * 9 + now_ms) / 10 : now_ms;
    *average_ms = next_ms < TTL_SHOWN_MAX_MS ? (int64_t)next_ms : (int64_t)TTL_SHOWN_MAX_MS;
}

/* One hold on one database. Returns true when its walk has come to the end. */
static bool sweep_hold(struct slice_context *sc, uint64_t *cursor)
{
    uint64_t begin = clock_mono_us();
    bool ended = false;
    if (!keyspace_try_exclusive()) {
        return true; /* a script takes long: the next round goes on */
    }
    do {
        bool unfinished = false;
        for (int i = 0; i < BUCKETS_A_LOOK && !ended && !unfinished; i++) {
            uint64_t next = table_scan(&sc->db->table, *cursor, look_at_slot, sc);
            delete_found(sc);
            unfinished = sc->unfinished;
            ended = next == 0 && !unfinished;
            *cursor = unfinished ? *cursor : next;
        }
    } while (!ended && clock_mono_us() - begin < HOLD_US);
    if (ended && sc->ttl_count > 0) {
        note_average_ttl(sc);
    }
    keyspace_unlock_exclusive();
    reclaim_run();
    return ended;
}

static void note_staleness(const struct slice_context *sc)
{
    if (sc->seen) {
        uint32_t now = (uint32_t)(sc->expired_count * 10000 / sc->seen);
        uint32_t before = atomic_load_explicit(&sweep.stale_permyriad, memory_order_relaxed);
        atomic_store_explicit(&sweep.stale_permyriad, (before * 19 + now) / 20,
                              memory_order_relaxed);
    }
}

/* Time that a call spends on a database where it finds nothing to delete, for each step of effort:
 * 0.2 % of a core at ten calls a second, a full walk over 10 M keys in half a minute. */
#define QUIET_US 200

/* Sweeps one database until its walk ends, the budget is used up, or little of what it meets has
 * expired. */
static bool sweep_db(struct db *db, int64_t now_ms, uint64_t end_us)
{
    struct slice_context sc = {.db = db, .now_ms = now_ms};
    uint64_t *cursor = &sweep.cursor[db->id % 256];
    /* Tolerated share of expired entries: 10 % at effort 1 down to 1 % at effort 10. */
    uint64_t tolerated_percent = (uint64_t)(11 - sweep.effort);
    uint64_t quiet_end_us = clock_mono_us() + QUIET_US * (uint64_t)sweep.effort;
    bool ended, much;
    uint64_t now_us;
    do {
        ended = sweep_hold(&sc, cursor);
        much = sc.expired_count * 100 > sc.seen * tolerated_percent;
        now_us = clock_mono_us();
    } while (!ended && now_us < (much ? end_us : quiet_end_us));
    note_staleness(&sc);
    return much && !ended;
}

bool expire_sweep(int64_t now_ms, int64_t budget_us)
{
    if (!atomic_load_explicit(&sweep.active, memory_order_relaxed) || expire_is_suspended()) {
        return false;
    }
    uint64_t begin = clock_mono_us(), end = begin + (uint64_t)budget_us;
    if (expire_is_elsewhere()) {
        int64_t told_ms = atomic_load_explicit(&sweep.told_ms, memory_order_relaxed);
        if (told_ms == 0) {
            return local_expiry_sweep(now_ms, end);
        }
        now_ms = told_ms < now_ms ? told_ms : now_ms;
    }
    bool more = false;
    int looked = 0;
    for (; looked < db_count() && !more; looked++) {
        struct db *db = db_at((sweep.next_db + looked) % db_count());
        if (db_expires(db) > 0 || db_member_expires(db) > 0) {
            more = sweep_db(db, now_ms, end);
        }
        if (clock_mono_us() >= end) {
            atomic_fetch_add_explicit(&sweep.time_cap_reached, 1, memory_order_relaxed);
            looked++;
            break;
        }
    }
    sweep.next_db = (sweep.next_db + looked) % db_count();
    stats_add(STAT_EXPIRE_CYCLE_US, clock_mono_us() - begin);
    return more;
}

void expire_run_all(int64_t now_ms)
{
    for (int i = 0; i < db_count(); i++) {
        struct slice_context sc = {.db = db_at(i), .now_ms = now_ms};
        uint64_t cursor = 0;
        do {
            uint64_t next = table_scan(&sc.db->table, cursor, look_at_slot, &sc);
            delete_found(&sc);
            cursor = sc.unfinished ? cursor : next;
        } while (cursor || sc.unfinished);
    }
}

bool expire_is_elsewhere(void)
{
    return atomic_load_explicit(&sweep.elsewhere, memory_order_relaxed);
}

void expire_suspend(bool suspended)
{
    atomic_store_explicit(&sweep.suspended, suspended, memory_order_relaxed);
}

void expire_set_active(bool active)
{
    atomic_store(&sweep.active, active);
}

double expire_stale_percent(void)
{
    return atomic_load_explicit(&sweep.stale_permyriad, memory_order_relaxed) / 100.0;
}

uint64_t expire_time_cap_reached(void)
{
    return atomic_load_explicit(&sweep.time_cap_reached, memory_order_relaxed);
}

const struct option expire_options[] = {
    {.name = "active-expire-effort",
     .type = OPTION_INT,
     .target = &sweep.effort,
     .initial = "1",
     .min = 1,
     .max = 10},
    {.name = NULL},
};
