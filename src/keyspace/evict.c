/* See evict.h. */
#include "keyspace/evict.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/meminfo.h"
#include "base/rand.h"
#include "base/stats.h"
#include "keyspace/access.h"
#include "keyspace/event.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"

#include <assert.h>
#include <math.h>

/* Candidates that a thread remembers. */
#define POOL_PLACES 32
/* Keys that are deleted in one hold: some microseconds. */
#define KEYS_A_HOLD 16
/* Buckets and entries together that are looked at in one hold in shared mode: tens of microseconds
 * at most. */
#define LOOKS_A_HOLD 2048
/* Databases that one round looks at; the next round begins with the next one. */
#define DBS_A_ROUND 16
/* Databases with a walk of their own; others share. */
#define WALKS 16
/* Entries of one bucket's chain that are looked at: a fuller one is a rarity. */
#define CHAIN_MAX 64
/* A look's lease is this part of what is left below the limit: with 64 threads half of it is the
 * most that nobody has seen. Beyond the upper bound looks cost nothing any more. */
#define LEASE_PART 128
#define LEASE_MAX_BYTES ((int64_t)1 << 20)
/* Growth in the middle of a batch that is worth a look before the next call. */
#define OUTGROWN_BYTES ((int64_t)256 * 1024)
/* Evicting goes on to a little below the limit, so that not every batch has to do it: a thousandth
 * of the limit, at most SLACK_MAX_BYTES. Small limits are kept to the byte. */
#define SLACK_PART 1000
#define SLACK_MAX_BYTES ((int64_t)256 * 1024)
#define SLACK_FROM_BYTES ((int64_t)16 << 20)
/* Between two looks at how much memory the machine has left. */
#define MACHINE_PERIOD_MS 1000
/* Elements of a collection that are looked at to guess what its going frees. */
#define ESTIMATE_SAMPLES 5

int64_t evict_limit_bytes;
_Atomic bool evict_failing;

static struct {
    int64_t samples, tenacity, force_percent;
    _Atomic uint32_t epoch; /* raised when limit or policy change: all leases end */
    _Atomic bool suspended, elsewhere;
    bool replica_evicts_nothing;    /* replica-ignore-maxmemory */
    _Atomic uint64_t over_since_ms; /* monotonic; 0: within */
    _Atomic uint64_t exceeded_ms;
    /* Immutable after boot. */
    void (*changed)(void);
    size_t (*exempt[EVICT_EXEMPT_MAX])(void);
    int exempt_count;
} state;

struct candidate {
    uint64_t score; /* the higher, the sooner it goes */
    uint64_t hash;
    const struct entry *entry; /* an address, not to be followed */
    int db;
};

/* The calling thread's. */
static _Thread_local struct {
    struct candidate pool[POOL_PLACES]; /* by rising score */
    unsigned count;
    enum access_policy policy; /* that the scores are of */
    bool walking;              /* the cursors are set */
    uint64_t cursors[WALKS];
    int first_db;
    size_t average_bytes; /* that a key's going frees */
    uint32_t epoch;
    int64_t lease_end, lease; /* of mem_own_balance() */
    int64_t seen;             /* that balance at the last look */
} mine;

/* ---- whom ---- */

static bool policy_wants_expiry(enum access_policy policy)
{
    return policy <= POLICY_VOLATILE_TTL;
}

static bool policy_is_random(enum access_policy policy)
{
    return policy == POLICY_VOLATILE_RANDOM || policy == POLICY_ALLKEYS_RANDOM;
}

static_assert(POLICY_VOLATILE_LRU == 0 && POLICY_VOLATILE_TTL == 3 && POLICY_ALLKEYS_LRU == 4,
              "policy_wants_expiry");

/* What has expired goes first of all, whatever the policy. */
#define SCORE_EXPIRED UINT64_MAX

static uint64_t score_of(enum access_policy policy, const struct entry *e, int64_t now_ms)
{
    int64_t expiry_ms = entry_expiry_ms(e);
    if (entry_is_over(expiry_ms, now_ms)) {
        return SCORE_EXPIRED;
    }
    switch (policy) {
    case POLICY_VOLATILE_LRU:
    case POLICY_ALLKEYS_LRU:
        return (uint64_t)access_idle_ms(e, now_ms);
    case POLICY_VOLATILE_LFU:
    case POLICY_ALLKEYS_LFU:
        return 255 - access_frequency(e, now_ms);
    case POLICY_VOLATILE_TTL:
        return (uint64_t)(INT64_MAX - expiry_ms);
    default:
        return 0;
    }
}

static void pool_remove(unsigned at)
{
    mine.count--;
    memmove(&mine.pool[at], &mine.pool[at + 1], (mine.count - at) * sizeof(mine.pool[0]));
}

/* Forgets what is known of an entry at that address: it is older than what comes now. */
static void pool_forget(const struct entry *e)
{
    for (unsigned i = 0; i < mine.count; i++) {
        if (mine.pool[i].entry == e) {
            pool_remove(i);
            return;
        }
    }
}

/* Puts a candidate into the pool, if there is room or it is better than the worst there. */
static void pool_offer(const struct candidate *c)
{
    pool_forget(c->entry);
    if (mine.count == POOL_PLACES) {
        if (c->score <= mine.pool[0].score) {
            return;
        }
        pool_remove(0);
    }
    unsigned at = mine.count;
    while (at > 0 && mine.pool[at - 1].score > c->score) {
        at--;
    }
    memmove(&mine.pool[at + 1], &mine.pool[at], (mine.count - at) * sizeof(mine.pool[0]));
    mine.pool[at] = *c;
    mine.count++;
}

/* What a walk over a few buckets has met. */
struct harvest {
    const struct entry *entries[CHAIN_MAX];
    unsigned count;
    bool wants_expiry;
};

static void harvest_slot(uintptr_t *slot, void *context)
{
    struct harvest *h = context;
    if ((h->wants_expiry && !(*slot & DB_TAG_EXPIRES)) || h->count == CHAIN_MAX) {
        return;
    }
    const struct entry *e = table_entry(*slot);
    __builtin_prefetch(e);
    h->entries[h->count++] = e;
}

static void offer_harvest(const struct db *db, const struct harvest *h, int64_t now_ms)
{
    for (unsigned i = 0; i < h->count; i++) {
        const struct entry *e = h->entries[i];
        uint64_t score = score_of(mine.policy, e, now_ms);
        if (mine.count < POOL_PLACES || score > mine.pool[0].score) {
            struct candidate c = {score, key_of(entry_key(e)).hash, e, db->id};
            pool_offer(&c);
        }
    }
}

/* One of them: a random policy has no better and worse. */
static void draw_one(struct harvest *h)
{
    if (h->count > 1) {
        h->entries[0] = h->entries[rand_below(h->count)];
        h->count = 1;
    }
}

/* Looks at `samples` entries of a database, or at as many as *looks allow, which it uses up. A
 * bucket is looked at whole: what was left out would be so each time. */
static void sample_db(struct db *db, unsigned samples, int64_t now_ms, unsigned *looks)
    REQUIRES_SHARED(keyspace_lock)
{
    uint64_t *cursor = &mine.cursors[db->id % WALKS];
    bool draws = policy_is_random(mine.policy);
    unsigned found = 0;
    if (draws) {
        *cursor = rand_u64();
    }
    while (found<samples && * looks> 0) {
        struct harvest h = {.wants_expiry = policy_wants_expiry(mine.policy)};
        *cursor = table_scan(&db->table, *cursor, harvest_slot, &h);
        unsigned used = 1 + h.count;
        *looks -= used < *looks ? used : *looks;
        if (draws) {
            draw_one(&h);
        }
        offer_harvest(db, &h, now_ms);
        found += h.count;
    }
}

/* Keys of the database that the policy may take. */
static uint64_t eligible(const struct db *db) REQUIRES_SHARED(keyspace_lock)
{
    return policy_wants_expiry(mine.policy) ? db_expires(db) : db_size(db);
}

/* A round over the databases, each time from another one on. True when there are keys that may be
 * taken. */
static bool sample_round(int64_t now_ms, unsigned *looks) REQUIRES_SHARED(keyspace_lock)
{
    unsigned samples = policy_is_random(mine.policy) ? 1 : (unsigned)state.samples;
    int visited = 0;
    mine.first_db = (mine.first_db + 1) % db_count();
    for (int i = 0; i < db_count() && visited<DBS_A_ROUND && * looks> 0; i++) {
        struct db *db = db_at((mine.first_db + i) % db_count());
        uint64_t there = eligible(db);
        if (there > 0) {
            visited++;
            sample_db(db, there < samples ? (unsigned)there : samples, now_ms, looks);
        }
    }
    return visited > 0;
}

static void begin_walks(void)
{
    for (int i = 0; i < WALKS; i++) {
        mine.cursors[i] = rand_u64();
    }
    mine.walking = true;
}

/* Fills the pool for `keys` evictions. False when there is nobody to evict. */
static bool sample(unsigned keys, int64_t now_ms)
{
    unsigned looks = LOOKS_A_HOLD;
    bool any;
    if (!mine.walking) {
        begin_walks();
    }
    if (mine.policy != access_policy()) {
        mine.policy = access_policy();
        mine.count = 0;
    }
    if (!keyspace_try_shared()) {
        return true; /* a script takes long */
    }
    do {
        any = sample_round(now_ms, &looks);
    } while (--keys > 0 && looks > 0 && any);
    keyspace_unlock_shared();
    return any;
}

/* ---- deleting ---- */

static bool is_same_entry(const void *entry, const void *key)
{
    return entry == key;
}

/* The candidate's entry, if it still is where it was and no worse than it was. */
static bool find_candidate(const struct candidate *c, int64_t now_ms, struct keyref *ref)
    REQUIRES(keyspace_lock)
{
    struct db *db = db_at(c->db);
    uintptr_t *slot = table_find(&db->table, c->hash, is_same_entry, c->entry);
    if (!slot) {
        return false;
    }
    struct entry *e = table_entry(*slot);
    if ((policy_wants_expiry(mine.policy) && !(*slot & DB_TAG_EXPIRES)) ||
        score_of(mine.policy, e, now_ms) < c->score) {
        return false;
    }
    *ref = (struct keyref){db, key_of(entry_key(e)), slot, e};
    return true;
}

static void delete_key(struct keyref *ref) REQUIRES(keyspace_lock)
{
    struct entry *e = db_take_as(ref, GOING_EVICTED);
    stats_add(STAT_EVICTED_KEYS, 1);
    expire_tell(ref->db, e, entry_expiry_ms(e), false);
    event_key_changed(ref->db, ref->key.name);
    event_notify(EVENT_EVICTED, "evicted", ref->db->id, ref->key.name);
    /* Last: the key's bytes are the entry's own, and the background thread frees at once. */
    reclaim_entry_as(e, reclaim_lazy_eviction(), "eviction-del");
}

/* Deletes the pool's best, at most `keys` of them, until about `bytes` are on their way to be
 * freed: one hold. Returns how many keys went, and adds what they take to *freed. */
static unsigned delete_best(unsigned keys, size_t bytes, int64_t now_ms, size_t *freed)
{
    unsigned deleted = 0;
    size_t sum = 0;
    if (!keyspace_try_exclusive()) {
        return 0;
    }
    while (mine.count > 0 && deleted < keys && sum < bytes) {
        const struct candidate *c = &mine.pool[--mine.count];
        struct keyref ref;
        if (!find_candidate(c, now_ms, &ref)) {
            continue;
        }
        sum += entry_memory_bytes(ref.entry, ESTIMATE_SAMPLES);
        if (c->score == SCORE_EXPIRED) {
            expire_delete(&ref);
        } else {
            delete_key(&ref);
        }
        deleted++;
    }
    keyspace_unlock_exclusive();
    reclaim_run();
    *freed += sum;
    return deleted;
}

/* One step: samples and deletes for about `bytes`. For each key that goes there was a round of
 * samples: else the pool, which fills with the best of many rounds, would be emptied down to the
 * young where keys are smaller than they used to be. False when there is nobody to evict. */
static bool evict_step(size_t bytes, int64_t now_ms, unsigned *deleted)
{
    size_t average = mine.average_bytes ? mine.average_bytes : 128;
    size_t wanted = bytes / average + 1, freed = 0;
    unsigned keys = wanted < KEYS_A_HOLD ? (unsigned)wanted : KEYS_A_HOLD;
    if (!sample(keys, now_ms)) {
        return false;
    }
    *deleted = delete_best(keys, bytes, now_ms, &freed);
    if (*deleted > 0) {
        mine.average_bytes = (7 * average + freed / *deleted) / 8;
    }
    return true;
}

/* ---- the limit ---- */

void evict_exempt(size_t (*bytes)(void))
{
    for (int i = 0; i < state.exempt_count; i++) {
        if (state.exempt[i] == bytes) {
            return;
        }
    }
    assert(state.exempt_count < EVICT_EXEMPT_MAX);
    state.exempt[state.exempt_count++] = bytes;
}

static size_t exempt_bytes(void)
{
    size_t sum = 0;
    for (int i = 0; i < state.exempt_count; i++) {
        sum += state.exempt[i]();
    }
    return sum;
}

size_t evict_counted_bytes(void)
{
    size_t used = mem_used_bytes(), not_counted = reclaim_pending_bytes() + exempt_bytes();
    return used > not_counted ? used - not_counted : 0;
}

bool evict_look_is_due(void)
{
    int64_t balance = mem_own_balance();
    if (unlikely(balance == INT64_MAX)) {
        return true; /* nobody counts it: sanitizers' allocators */
    }
    if (balance + mine.lease < mine.lease_end) {
        mine.lease_end = balance + mine.lease; /* what it has freed since may be others' by now */
    }
    return balance >= mine.lease_end ||
           mine.epoch != atomic_load_explicit(&state.epoch, memory_order_relaxed) ||
           atomic_load_explicit(&evict_failing, memory_order_relaxed);
}

bool evict_has_outgrown(void)
{
    int64_t balance = mem_own_balance();
    if (unlikely(balance == INT64_MAX)) {
        return evict_counted_bytes() > (size_t)evict_limit_bytes + OUTGROWN_BYTES;
    }
    return balance - mine.seen > mine.lease + OUTGROWN_BYTES;
}

static void renew_lease(int64_t left_bytes)
{
    int64_t lease = left_bytes / LEASE_PART;
    mine.epoch = atomic_load_explicit(&state.epoch, memory_order_relaxed);
    mine.seen = mem_own_balance();
    mine.lease = lease < 0 ? 0 : lease > LEASE_MAX_BYTES ? LEASE_MAX_BYTES : lease;
    mine.lease_end = mine.seen == INT64_MAX ? INT64_MAX : mine.seen + mine.lease;
}

static uint64_t mono_ms(void)
{
    return clock_mono_us() / 1000 + 1;
}

void evict_set_listener(void (*changed)(void))
{
    state.changed = changed;
}

/* Keeps account of the time over the limit. */
static void note_result(enum evict_result result)
{
    uint64_t since_ms = atomic_load_explicit(&state.over_since_ms, memory_order_relaxed);
    bool failed = result == EVICT_FAILED;
    if (atomic_load_explicit(&evict_failing, memory_order_relaxed) != failed) {
        atomic_store(&evict_failing, failed);
        if (state.changed) {
            state.changed();
        }
    }
    if (result == EVICT_WITHIN && since_ms != 0) {
        since_ms = atomic_exchange(&state.over_since_ms, 0);
        if (since_ms != 0) {
            atomic_fetch_add(&state.exceeded_ms, mono_ms() - since_ms);
        }
    } else if (result != EVICT_WITHIN && since_ms == 0) {
        atomic_compare_exchange_strong(&state.over_since_ms, &since_ms, mono_ms());
    }
}

/* How far below the limit evicting goes on. */
static int64_t slack_bytes(int64_t limit)
{
    int64_t slack = limit < SLACK_FROM_BYTES ? 0 : limit / SLACK_PART;
    return slack < SLACK_MAX_BYTES ? slack : SLACK_MAX_BYTES;
}

/* Evicts for up to `limit_us`; *used is what is in use, before and after. */
static enum evict_result evict_down_to(size_t target, int64_t now_ms, uint64_t limit_us,
                                       size_t *used)
{
    uint64_t end_us = clock_mono_us() + limit_us;
    unsigned deleted;
    if (access_policy() == POLICY_NOEVICTION) {
        return EVICT_FAILED;
    }
    while (*used > target) {
        if (!evict_step(*used - target, now_ms, &deleted)) {
            /* A flushed database may be on its way to be freed. */
            return reclaim_pending() > 0 ? EVICT_RUNNING : EVICT_FAILED;
        }
        *used = evict_counted_bytes();
        if (clock_mono_us() >= end_us) {
            break;
        }
    }
    return EVICT_RUNNING;
}

/* The same where nobody is in the middle of a call that writes: such a one holds what it is about
 * to free, and buffers of its own. Waits for it. */
static size_t settled_bytes(void)
{
    keyspace_lock_shared();
    size_t bytes = evict_counted_bytes();
    keyspace_unlock_shared();
    return bytes;
}

static enum evict_result run_for(int64_t now_ms, uint64_t limit_us)
{
    int64_t limit = evict_limit_bytes;
    enum evict_result result = EVICT_WITHIN;
    size_t used = evict_counted_bytes();
    if (atomic_load_explicit(&state.suspended, memory_order_relaxed) ||
        (atomic_load_explicit(&state.elsewhere, memory_order_relaxed) &&
         state.replica_evicts_nothing)) {
        renew_lease(0);
        note_result(EVICT_WITHIN);
        return EVICT_WITHIN;
    }
    if (limit > 0 && used > (size_t)limit) {
        used = settled_bytes();
    }
    if (limit > 0 && used > (size_t)limit) {
        result = evict_down_to((size_t)(limit - slack_bytes(limit)), now_ms, limit_us, &used);
        if (used <= (size_t)limit) {
            result = EVICT_WITHIN;
        }
    }
    renew_lease(limit - (int64_t)used);
    note_result(result);
    return result;
}

/* Time that one run may take: Redis's scale, from nothing but one step at 0 by 50 microseconds to
 * 500 at 10, then by 15 percent a step to two minutes at 99; 100: as long as it takes. */
static uint64_t tenacity_us(void)
{
    if (state.tenacity <= 10) {
        return 50 * (uint64_t)state.tenacity;
    }
    if (state.tenacity < 100) {
        return (uint64_t)(500.0 * pow(1.15, (double)state.tenacity - 10.0));
    }
    return UINT64_MAX / 2;
}

enum evict_result evict_run(int64_t now_ms)
{
    return run_for(now_ms, tenacity_us());
}

/* ---- the machine's memory ---- */

/* The cron's. */
static struct {
    uint64_t looked_ms;
    size_t target; /* how much may be in use here; SIZE_MAX: any amount */
    bool evicted;  /* since the last look */
} machine = {.target = SIZE_MAX};

/* What the machine uses beyond its share has to go from here. Freed memory goes back to the system
 * first, or what has been evicted would be counted again. */
static size_t machine_target(void)
{
    uint64_t total, available;
    if (machine.evicted) {
        mem_purge();
        machine.evicted = false;
    }
    if (!meminfo_read(&total, &available)) {
        return SIZE_MAX;
    }
    uint64_t allowed = (uint64_t)((double)total * (double)state.force_percent / 100.0);
    uint64_t in_use = total - available, mine_bytes = evict_counted_bytes();
    if (in_use <= allowed) {
        return SIZE_MAX;
    }
    return in_use - allowed < mine_bytes ? (size_t)(mine_bytes - (in_use - allowed)) : 0;
}

static void keep_machine(int64_t now_ms, uint64_t budget_us)
{
    uint64_t mono = mono_ms();
    if (access_policy() == POLICY_NOEVICTION ||
        atomic_load_explicit(&state.suspended, memory_order_relaxed) ||
        atomic_load_explicit(&state.elsewhere, memory_order_relaxed)) {
        return;
    }
    if (machine.looked_ms == 0 || mono - machine.looked_ms >= MACHINE_PERIOD_MS) {
        machine.looked_ms = mono;
        machine.target = machine_target();
    }
    size_t used = evict_counted_bytes();
    if (used > machine.target) {
        /* Whatever comes of it: nothing is refused for the sake of others' memory. */
        (void)evict_down_to(machine.target, now_ms, budget_us, &used);
        machine.evicted = true;
    }
}

void evict_cron(int64_t now_ms, int64_t budget_us)
{
    static bool was_over; /* the cron's */
    bool over = evict_limit_bytes != 0 && evict_counted_bytes() > (size_t)evict_limit_bytes;
    if (over) {
        over = settled_bytes() > (size_t)evict_limit_bytes;
    }
    /* Once may be right behind a call, whose thread is freeing what it has replaced, and looks
     * itself then. */
    if (evict_limit_bytes != 0 && (!over || was_over)) {
        run_for(now_ms, (uint64_t)budget_us);
    }
    was_over = over;
    if (state.force_percent != 0) {
        keep_machine(now_ms, (uint64_t)budget_us);
    }
}

void evict_suspend(bool suspended)
{
    atomic_store_explicit(&state.suspended, suspended, memory_order_relaxed);
    atomic_fetch_add_explicit(&state.epoch, 1, memory_order_relaxed);
}

void evict_set_elsewhere(bool elsewhere)
{
    atomic_store_explicit(&state.elsewhere, elsewhere, memory_order_relaxed);
    atomic_fetch_add_explicit(&state.epoch, 1, memory_order_relaxed);
}

void evict_exceeded_ms(uint64_t *total_ms, uint64_t *current_ms)
{
    uint64_t since_ms = atomic_load_explicit(&state.over_since_ms, memory_order_relaxed);
    *current_ms = since_ms ? mono_ms() - since_ms : 0;
    *total_ms = atomic_load_explicit(&state.exceeded_ms, memory_order_relaxed) + *current_ms;
}

void evict_reset_stats(void)
{
    atomic_store_explicit(&state.exceeded_ms, 0, memory_order_relaxed);
    if (atomic_load_explicit(&state.over_since_ms, memory_order_relaxed) != 0) {
        atomic_store_explicit(&state.over_since_ms, mono_ms(), memory_order_relaxed);
    }
}

/* ---- options ---- */

static bool apply_limit(const struct option *option UNUSED, const char **error UNUSED)
{
    size_t used = evict_counted_bytes();
    atomic_fetch_add_explicit(&state.epoch, 1, memory_order_relaxed);
    if (evict_limit_bytes == 0) {
        note_result(EVICT_WITHIN);
    } else if (used > (size_t)evict_limit_bytes) {
        log_warning("maxmemory is set to %lld bytes now and %zu are in use: %s",
                    (long long)evict_limit_bytes, used,
                    access_policy() == POLICY_NOEVICTION ? "commands that need memory are refused"
                                                         : "keys will be evicted");
    }
    return true;
}

const struct option evict_options[] = {
    {.name = "maxmemory",
     .type = OPTION_MEMORY,
     .target = &evict_limit_bytes,
     .initial = "0",
     .min = 0,
     .max = INT64_MAX,
     .apply = apply_limit},
    {.name = "maxmemory-samples",
     .type = OPTION_INT,
     .target = &state.samples,
     .initial = "5",
     .min = 1,
     .max = INT32_MAX},
    {.name = "force-eviction-percent",
     .type = OPTION_INT,
     .target = &state.force_percent,
     .initial = "0",
     .min = 0,
     .max = 100},
    {.name = "maxmemory-eviction-tenacity",
     .type = OPTION_INT,
     .target = &state.tenacity,
     .initial = "10",
     .min = 0,
     .max = 100},
    {.name = "replica-ignore-maxmemory",
     .alias = "slave-ignore-maxmemory",
     .type = OPTION_BOOL,
     .target = &state.replica_evicts_nothing,
     .initial = "yes"},
    {.name = NULL},
};
