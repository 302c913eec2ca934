/* See db.h. */
#include "keyspace/db.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/thread.h"
#include "keyspace/access.h"
#include "keyspace/event.h"
#include "keyspace/expire.h"
#include "keyspace/local_expiry.h"
#include "keyspace/reclaim.h"
#include "keyspace/schedule.h"
#include "keyspace/watching.h"
#include "value/member_ttl.h"
#include "value/module.h"

#include <assert.h>

static struct db *dbs;
static int dbs_count;
/* The set aside, NULL: none. */
static struct db *aside;
/* The sum of the databases' member_expires. */
static _Atomic uint64_t all_member_expires;

/* By the calling thread: see db_moment. */
static _Thread_local uint64_t changes;

static uint64_t hash_entry(const void *entry)
{
    return hash_slice(entry_key(entry));
}

static inline bool entry_has_key(const void *entry, const void *key)
{
    const struct slice *wanted = key;
    return slice_equal_short(entry_key(entry), *wanted);
}

#if KEYDB_DEBUG
void (*db_observer)(const struct db *db, struct slice name);
#endif

/* The one way to an entry by the name of its key. */
static inline uintptr_t *find_slot(struct db *db, uint64_t hash, const struct slice *name)
{
#if KEYDB_DEBUG
    if (db_observer) {
        db_observer(db, *name);
    }
#endif
    return table_find(&db->table, hash, entry_has_key, name);
}

static struct db *create_databases(int count)
{
    struct db *made = mem_calloc((size_t)count, sizeof(*made));
    for (int i = 0; i < count; i++) {
        table_init_peekable(&made[i].table, hash_entry, &made[i].map, reclaim_retire);
        made[i].id = i;
    }
    return made;
}

void db_setup(int count)
{
    assert(count > 0 && !dbs);
    dbs = create_databases(count);
    dbs_count = count;
}

static void free_entry(void *entry, void *context)
{
    struct entry *e = entry;
    (void)context;
    entry_destroy(&e);
}

void db_teardown(void)
{
    assert(!aside);
    for (int i = 0; i < dbs_count; i++) {
        table_deinit(&dbs[i].table, free_entry, NULL);
    }
    local_expiry_free(dbs, dbs_count);
    mem_free(dbs);
    schedule_teardown();
    dbs = NULL;
    atomic_store_explicit(&all_member_expires, 0, memory_order_relaxed);
    dbs_count = 0;
}

int db_count(void)
{
    return dbs_count;
}

struct db *db_at(int index)
{
    assert(index >= 0 && index < dbs_count);
    return &dbs[index];
}

uint64_t db_all_keys(void)
{
    uint64_t keys = 0;
    for (int i = 0; i < dbs_count; i++) {
        keys += db_size(db_at(i));
    }
    return keys;
}

static inline uintptr_t tagged(struct entry *e)
{
    static_assert(DB_TAG_EXPIRES == ENTRY_EXPIRES && DB_TAG_STAMPED == ENTRY_STAMPED,
                  "tags that are flags");
    return (uintptr_t)e | (e->flags & (ENTRY_EXPIRES | ENTRY_STAMPED)) |
           (e->flags & ENTRY_MEMBER_TTL ? DB_TAG_MEMBERS : 0) |
           (entry_type(e) == VALUE_CRON ? DB_TAG_JOB : 0);
}

/* The tag answers for nearly all entries without a look at the expiry. */
static inline bool slot_expired(uintptr_t slot, int64_t now_ms)
{
    return unlikely(slot & DB_TAG_EXPIRES) &&
           expire_is_over(entry_expiry_ms(table_entry(slot)), now_ms);
}

/* The same of all its members. */
static __attribute__((noinline)) bool members_gone(uintptr_t slot, int64_t now_ms)
{
    return !expire_frozen && member_ttl_all_due(table_entry(slot), now_ms);
}

/* True when the key is logically gone. One test for nearly all entries. */
static inline bool slot_gone(uintptr_t slot, int64_t now_ms)
{
    return unlikely(slot & (DB_TAG_EXPIRES | DB_TAG_MEMBERS)) &&
           (slot_expired(slot, now_ms) ||
            (unlikely(slot & DB_TAG_MEMBERS) && members_gone(slot, now_ms)));
}

/* Some members of the entry are due, not all. Takes them out under the exclusive lock, which leaves
 * the slot where it is; under the shared one the caller must come again. False then. */
static __attribute__((noinline)) bool without_due(struct db *db, const struct key *key,
                                                  uintptr_t *slot,
                                                  int64_t now_ms) NO_THREAD_SAFETY_ANALYSIS
{
    if (!keyspace_is_exclusive()) {
        expire_note(db, key);
        expire_rerun = true;
        return false;
    }
    struct keyref ref = {db, *key, slot, table_entry(*slot)};
    expire_members(&ref, now_ms, UINT64_MAX);
    assert(ref.entry);
    return true;
}

static inline bool some_due(uintptr_t slot, int64_t now_ms)
{
    return unlikely(slot & DB_TAG_MEMBERS) &&
           expire_is_over(member_ttl_next_ms(table_entry(slot)), now_ms);
}

/* What a reader leaves behind when the key is missing, or gone (`slot` is not NULL). In exclusive
 * mode it may read for a write, for which the key is gone: that must be known before the write is.
 */
static void note_miss(struct db *db, const struct key *key, const uintptr_t *slot, int64_t now_ms,
                      unsigned flags) NO_THREAD_SAFETY_ANALYSIS
{
    if (slot && keyspace_is_exclusive()) {
        const struct entry *e = table_entry(*slot);
        expire_tell(db, e, slot_expired(*slot, now_ms) ? entry_expiry_ms(e) : ENTRY_NO_EXPIRY,
                    true);
    }
    if (slot || (event_wants_misses() && !(flags & DB_NO_STATS))) {
        expire_note(db, key);
    }
    if (!(flags & DB_NO_STATS)) {
        stats_add(STAT_KEYSPACE_MISSES, 1);
    }
}

struct entry *db_read(struct db *db, const struct key *key, int64_t now_ms, unsigned flags)
{
    uintptr_t *slot = find_slot(db, key->hash, &key->name);
    if (unlikely(!slot || slot_gone(*slot, now_ms))) {
        note_miss(db, key, slot, now_ms, flags);
        return NULL;
    }
    struct entry *e = table_entry(*slot);
    if (some_due(*slot, now_ms) && !without_due(db, key, slot, now_ms)) {
        return NULL;
    }
    if (!(flags & DB_NO_TOUCH)) {
        access_touch(e, now_ms);
    }
    if (!(flags & DB_NO_STATS)) {
        stats_add(STAT_KEYSPACE_HITS, 1);
    }
    return e;
}

static void find_ref(struct keyref *ref)
{
    ref->slot = find_slot(ref->db, ref->key.hash, &ref->key.name);
    ref->entry = ref->slot ? table_entry(*ref->slot) : NULL;
}

void db_open(struct keyref *ref, struct db *db, const struct key *key, int64_t now_ms,
             unsigned flags)
{
    ref->db = db;
    ref->key = *key;
    find_ref(ref);
    if (!ref->entry) {
        return;
    }
    if (slot_expired(*ref->slot, now_ms)) {
        expire_delete(ref);
        return;
    }
    if (unlikely(*ref->slot & DB_TAG_MEMBERS) && !expire_frozen) {
        expire_members(ref, now_ms, UINT64_MAX);
    }
    if (likely(ref->entry != NULL) && !(flags & DB_NO_TOUCH)) {
        access_touch(ref->entry, now_ms);
    }
}

struct db_moment db_moment(void)
{
    unsigned thread = thread_slot();
    const _Atomic uint64_t *holds = &keyspace_lock.stats[thread].exclusive_count;
    return (struct db_moment){changes, atomic_load_explicit(holds, memory_order_relaxed), thread};
}

bool db_has_member_ttls(void)
{
    return atomic_load_explicit(&all_member_expires, memory_order_relaxed) > 0;
}

bool db_note_due(struct db *db, const struct key *key, int64_t now_ms)
{
    uintptr_t *slot = find_slot(db, key->hash, &key->name);
    if (slot && some_due(*slot, now_ms) && !slot_gone(*slot, now_ms)) {
        expire_note(db, key);
        return true;
    }
    return false;
}

uint64_t db_remove_due(struct db *db, const struct key *key, int64_t now_ms, uint64_t max,
                       bool *more)
{
    struct keyref ref = {.db = db, .key = *key};
    *more = false;
    find_ref(&ref);
    if (!ref.entry) {
        return 0;
    }
    if ((slot_expired(*ref.slot, now_ms) || some_due(*ref.slot, now_ms)) &&
        expire_is_judged(&ref, now_ms)) {
        return ref.entry ? 0 : 1;
    }
    if (slot_expired(*ref.slot, now_ms)) {
        expire_delete(&ref);
        return 1;
    }
    uint64_t removed = *ref.slot & DB_TAG_MEMBERS ? expire_members(&ref, now_ms, max) : 0;
    *more = ref.entry && entry_is_over(member_ttl_next_ms(ref.entry), now_ms);
    return removed;
}

static inline void set_expires(struct db *db, uint64_t keys, uint64_t keys_with_members)
{
    uint64_t all = atomic_load_explicit(&all_member_expires, memory_order_relaxed);
    atomic_store_explicit(&all_member_expires, all + keys_with_members - db_member_expires(db),
                          memory_order_relaxed);
    atomic_store_explicit(&db->expires, keys, memory_order_relaxed);
    atomic_store_explicit(&db->member_expires, keys_with_members, memory_order_relaxed);
}

static inline void count_expiry(struct db *db, uintptr_t before, uintptr_t after)
{
    static_assert(DB_TAG_EXPIRES == 1 && DB_TAG_MEMBERS == 2, "shifted and subtracted below");
    if (unlikely((before ^ after) & (DB_TAG_EXPIRES | DB_TAG_MEMBERS))) {
        uint64_t keys = (after & DB_TAG_EXPIRES) - (before & DB_TAG_EXPIRES);
        uint64_t members = ((after & DB_TAG_MEMBERS) >> 1) - ((before & DB_TAG_MEMBERS) >> 1);
        set_expires(db, db_expires(db) + keys, db_member_expires(db) + members);
    }
}

void db_moved(struct keyref *ref, struct entry *entry)
{
    uintptr_t slot = tagged(entry);
    count_expiry(ref->db, *ref->slot, slot);
    table_set_slot(ref->slot, slot);
    ref->entry = entry;
    changes++;
    if (unlikely(slot & DB_TAG_JOB)) {
        schedule_add(ref->db, entry);
    }
}

/* What an entry with such a tag hands over, or gives back, when another one takes its place. */
static __attribute__((noinline)) struct entry *take_over(uintptr_t slot, struct entry *fresh)
    REQUIRES(keyspace_lock)
{
    struct entry *old = table_entry(slot);
    if (slot & DB_TAG_JOB) {
        schedule_remove(old);
    }
    if (slot & DB_TAG_STAMPED && !entry_stamp(fresh)) {
        fresh = entry_with_stamp(fresh, entry_stamp(old));
    }
    return fresh;
}

/* Expiries are given to a key: what a writer of a replica has to note. */
static inline void note_expiries(const struct keyref *ref, uintptr_t what) REQUIRES(keyspace_lock);
static inline void note_expiries(const struct keyref *ref, uintptr_t what)
{
    static_assert(LOCAL_EXPIRY_KEY == DB_TAG_EXPIRES && LOCAL_EXPIRY_MEMBERS == DB_TAG_MEMBERS,
                  "tags that say what it has");
    if (unlikely(what) && unlikely(expire_is_elsewhere())) {
        local_expiry_note(ref->db, &ref->key, what);
    }
}

/* The expiries of a fresh entry; what has the deadline that the key had before is a new value. */
static inline uintptr_t fresh_expiries(uintptr_t slot, const struct entry *old)
{
    uintptr_t what = slot & (DB_TAG_EXPIRES | DB_TAG_MEMBERS);
    if (unlikely(what & DB_TAG_EXPIRES) && old &&
        entry_expiry_ms(old) == entry_expiry_ms(table_entry(slot))) {
        what &= ~DB_TAG_EXPIRES;
    }
    return what;
}

static inline void put(struct keyref *ref, struct entry *entry_take, bool lazily)
    REQUIRES(keyspace_lock)
{
    if (ref->entry) {
        struct entry *old = ref->entry;
        entry_set_clock(entry_take, entry_clock(old));
        if (unlikely(*ref->slot & (DB_TAG_JOB | DB_TAG_STAMPED))) {
            entry_take = take_over(*ref->slot, entry_take);
        }
        db_moved(ref, entry_take);
        note_expiries(ref, fresh_expiries(*ref->slot, old));
        if (unlikely(entry_type(old) == VALUE_MODULE)) {
            module_value_unlinked(old, ref->db->id);
        }
        reclaim_entry(old, lazily);
        return;
    }
    if (entry_clock(entry_take) == 0) {
        entry_set_clock(entry_take, access_initial(clock_wall_ms()));
    }
    uintptr_t slot = tagged(entry_take);
    ref->slot = table_insert(&ref->db->table, ref->key.hash, slot);
    ref->entry = entry_take;
    changes++;
    count_expiry(ref->db, 0, slot);
    note_expiries(ref, fresh_expiries(slot, NULL));
    if (unlikely(slot & DB_TAG_JOB)) {
        schedule_add(ref->db, entry_take);
    }
    event_notify(EVENT_NEW, "new", ref->db->id, ref->key.name);
}

void db_put(struct keyref *ref, struct entry *entry_take)
{
    put(ref, entry_take, reclaim_lazy_server_del());
}

void db_put_lazily(struct keyref *ref, struct entry *entry_take)
{
    if (ref->entry) {
        event_key_goes(GOING_OVERWRITTEN, ref->db, ref->key.name);
    }
    put(ref, entry_take, ref->entry && reclaim_is_long(ref->entry));
}

bool db_add_loaded(struct db *db, uint64_t hash, struct entry *entry_take)
{
    struct slice key = entry_key(entry_take);
    if (unlikely(find_slot(db, hash, &key) != NULL)) {
        return false;
    }
    uintptr_t slot = tagged(entry_take);
    table_insert(&db->table, hash, slot);
    changes++;
    count_expiry(db, 0, slot);
    if (unlikely(slot & DB_TAG_JOB)) {
        schedule_add(db, entry_take);
    }
    return true;
}

void db_reserve(struct db *db, uint64_t keys)
{
    struct table sized;
    table_init_peekable(&sized, hash_entry, NULL, reclaim_retire);
    table_reserve(&sized, keys);
    keyspace_lock_exclusive();
    if (db->table.count == 0) {
        struct table old = db->table;
        table_publish(&old, NULL);
        db->table = sized;
        table_publish(&db->table, &db->map);
        changes++;
        sized = old;
    }
    keyspace_unlock_exclusive();
    table_deinit(&sized, NULL, NULL);
}

struct entry *db_take_as(struct keyref *ref, enum event_going how)
{
    struct entry *e = ref->entry;
    assert(e);
    event_key_goes(how, ref->db, ref->key.name);
    count_expiry(ref->db, *ref->slot, 0);
    if (unlikely(*ref->slot & DB_TAG_JOB)) {
        schedule_remove(e);
    }
    table_remove(&ref->db->table, ref->key.hash, ref->slot);
    ref->slot = NULL;
    ref->entry = NULL;
    changes++;
    if (unlikely(entry_type(e) == VALUE_MODULE)) {
        module_value_unlinked(e, ref->db->id);
    }
    return e;
}

bool db_delete(struct keyref *ref, bool lazily)
{
    if (!ref->entry) {
        return false;
    }
    reclaim_entry(db_take(ref), lazily);
    return true;
}

void db_set_expiry(struct keyref *ref, int64_t expiry_ms)
{
    assert(ref->entry);
    bool other = entry_expiry_ms(ref->entry) != expiry_ms;
    db_moved(ref, entry_with_expiry(ref->entry, expiry_ms));
    note_expiries(ref, other ? *ref->slot & DB_TAG_EXPIRES : 0);
}

struct entry *db_look(const struct db *db, const struct key *key)
{
    const uintptr_t *slot = table_find(&db->table, key->hash, entry_has_key, &key->name);
    return slot ? table_entry(*slot) : NULL;
}

bool db_set_stamp(struct db *db, const struct key *key, const void *stamp)
{
    struct keyref ref = {.db = db, .key = *key};
    find_ref(&ref);
    if (!ref.entry) {
        return false;
    }
    uintptr_t before = *ref.slot;
    struct entry *e = entry_with_stamp(ref.entry, stamp);
    if (before != tagged(e)) {
        db_moved(&ref, e);
    }
    return true;
}

uint64_t db_size(const struct db *db)
{
    return db->table.count;
}

bool db_set_member_ttl(struct keyref *ref, struct slice member, int64_t at_ms)
{
    assert(ref->entry);
    struct entry *e = entry_with_block(ref->entry);
    bool done = member_ttl_set(e, member, at_ms);
    db_moved(ref, e);
    note_expiries(ref, done ? DB_TAG_MEMBERS : 0);
    return done;
}

bool db_drop_member_ttl(struct keyref *ref, struct slice member)
{
    assert(ref->entry);
    bool done = member_ttl_drop(ref->entry, member);
    db_moved(ref, ref->entry);
    return done;
}

/* Tries among keys that turn out expired before giving up: with a hundred in a row the database is
 * dying anyway. */
#define RANDOM_TRIES 100

struct entry *db_random(struct db *db, int64_t now_ms)
{
    for (int i = 0; i < RANDOM_TRIES; i++) {
        uintptr_t *slot = table_random(&db->table);
        if (!slot) {
            return NULL;
        }
        if (!slot_gone(*slot, now_ms)) {
            return table_entry(*slot);
        }
    }
    return NULL;
}

uint64_t db_flush(struct db *db, bool lazily)
{
    uint64_t had = db->table.count;
    local_expiry_forget(db);
    if (had > 0) {
        watching_before_flush(db);
        schedule_flush(db);
        table_publish(&db->table, NULL);
        reclaim_table(&db->table, lazily);
        changes++;
        table_init_peekable(&db->table, hash_entry, &db->map, reclaim_retire);
        set_expires(db, 0, 0);
        db->avg_ttl_ms = 0;
        event_key_changed(db, slice_of(NULL, 0));
    }
    return had;
}

void db_swap(struct db *a, struct db *b)
{
    watching_before_swap(a, b);
    schedule_swap(a, b);
    struct table table = a->table;
    uint64_t expires = db_expires(a), member_expires = db_member_expires(a);
    int64_t avg_ttl_ms = a->avg_ttl_ms;
    struct local_expiries *local = a->local;
    a->table = b->table;
    a->local = b->local;
    b->local = local;
    set_expires(a, db_expires(b), db_member_expires(b));
    a->avg_ttl_ms = b->avg_ttl_ms;
    b->table = table;
    set_expires(b, expires, member_expires);
    b->avg_ttl_ms = avg_ttl_ms;
    table_publish(&a->table, &a->map);
    table_publish(&b->table, &b->map);
    changes++;
    event_key_changed(a, slice_of(NULL, 0));
    event_key_changed(b, slice_of(NULL, 0));
}

/* ---- aside ---- */

void db_aside_open(void)
{
    assert(!aside);
    aside = create_databases(dbs_count);
}

bool db_aside_is_open(void)
{
    return aside != NULL;
}

struct db *db_aside(int index)
{
    assert(aside && index >= 0 && index < dbs_count);
    return &aside[index];
}

void db_aside_swap(void)
{
    for (int i = 0; i < dbs_count; i++) {
        if (dbs[i].table.count > 0 || db_aside(i)->table.count > 0) {
            db_swap(&dbs[i], &aside[i]);
        }
    }
}

struct overlap {
    struct db *db;
    bool found;
};

static void look_for_twin(uintptr_t *slot, void *context)
{
    struct overlap *o = context;
    struct slice name = entry_key(table_entry(*slot));
    o->found = o->found || find_slot(o->db, hash_slice(name), &name) != NULL;
}

static void for_all_slots(struct db *db, void (*visit)(uintptr_t *slot, void *context),
                          void *context)
{
    uint64_t cursor = 0;
    do {
        cursor = table_scan(&db->table, cursor, visit, context);
    } while (cursor);
}

bool db_aside_overlaps(void)
{
    struct overlap o = {.found = false};
    for (int i = 0; i < dbs_count && !o.found; i++) {
        o.db = &dbs[i];
        for_all_slots(db_aside(i), look_for_twin, &o);
    }
    return o.found;
}

static void add_from_aside(uintptr_t *slot, void *context) NO_THREAD_SAFETY_ANALYSIS
{
    struct entry *e = table_entry(*slot);
    struct keyref ref = {.db = context, .key = key_of(entry_key(e))};
    find_ref(&ref);
    if (ref.entry) {
        db_delete(&ref, false);
    }
    if (*slot & DB_TAG_JOB) {
        schedule_remove(e);
    }
    bool added = db_add_loaded(ref.db, ref.key.hash, e);
    assert(added);
    (void)added;
}

void db_aside_add(void)
{
    for (int i = 0; i < dbs_count; i++) {
        struct db *from = db_aside(i);
        for_all_slots(from, add_from_aside, &dbs[i]);
        table_publish(&from->table, NULL);
        table_deinit(&from->table, NULL, NULL);
        table_init_peekable(&from->table, hash_entry, &from->map, reclaim_retire);
        set_expires(from, 0, 0);
        event_key_changed(&dbs[i], slice_of(NULL, 0));
    }
}

/* Nobody watches or waits there, so that nobody is told. */
void db_aside_close(void)
{
    keyspace_lock_exclusive();
    for (int i = 0; i < dbs_count; i++) {
        struct db *db = db_aside(i);
        schedule_flush(db);
        local_expiry_forget(db);
        table_publish(&db->table, NULL);
        reclaim_table(&db->table, true);
        set_expires(db, 0, 0);
    }
    keyspace_unlock_exclusive();
    mem_free(aside);
    aside = NULL;
    reclaim_run();
}

struct scan_context {
    int64_t now_ms;
    uint64_t visited;
    db_visit_fn visit;
    void *context;
};

static void scan_slot(uintptr_t *slot, void *context)
{
    struct scan_context *s = context;
    if (!slot_gone(*slot, s->now_ms)) {
        s->visited++;
        s->visit(table_entry(*slot), s->context);
    }
}

uint64_t db_scan(struct db *db, uint64_t cursor, uint64_t count, int64_t now_ms, db_visit_fn visit,
                 void *context)
{
    struct scan_context s = {now_ms, 0, visit, context};
    /* Empty buckets count a little as well, so that a sparse table bounds the hold too. */
    uint64_t buckets = 0;
    do {
        cursor = table_scan(&db->table, cursor, scan_slot, &s);
        buckets++;
    } while (cursor && s.visited < count && buckets / 10 < count);
    return cursor;
}

/* The first database whose table wants a spare directory, and of what size. */
static struct db *find_growing(size_t *bytes) REQUIRES_SHARED(keyspace_lock)
{
    for (int i = 0; i < dbs_count; i++) {
        *bytes = table_spare_wanted(&dbs[i].table);
        if (*bytes > 0) {
            return &dbs[i];
        }
    }
    return NULL;
}

void db_prepare_growth(int64_t wall_ms)
{
    size_t bytes;
    (void)wall_ms;
    if (!keyspace_try_shared()) {
        return;
    }
    struct db *db = find_growing(&bytes);
    keyspace_unlock_shared();
    if (db) {
        void *spare = mem_alloc(bytes);
        mem_populate(spare, bytes);
        if (!keyspace_try_exclusive()) {
            mem_free(spare);
            return;
        }
        table_give_spare(&db->table, spare, bytes);
        keyspace_unlock_exclusive();
    }
}

struct check_context {
    uint64_t expires, member_expires;
};

static void check_slot(uintptr_t *slot, void *context)
{
    struct check_context *cc = context;
    struct entry *e = table_entry(*slot);
    assert((*slot & (DB_TAG_EXPIRES | DB_TAG_STAMPED)) ==
           (e->flags & (ENTRY_EXPIRES | ENTRY_STAMPED)));
    assert(value_ops_of[entry_type(e)]);
    assert((*slot & DB_TAG_MEMBERS) || !member_ttl_any(e));
    assert(!(*slot & DB_TAG_JOB) == (entry_type(e) != VALUE_CRON));
    assert(!(*slot & DB_TAG_JOB) || job_of(e)->scheduled);
    cc->expires += !!(*slot & DB_TAG_EXPIRES);
    cc->member_expires += !!(*slot & DB_TAG_MEMBERS);
    member_ttl_check(e);
}

void db_check(const struct db *db)
{
    struct check_context cc = {0};
    uint64_t cursor = 0;
    table_check(&db->table);
    do {
        cursor = table_scan(&db->table, cursor, check_slot, &cc);
    } while (cursor);
    assert(cc.expires == db_expires(db) && cc.member_expires == db_member_expires(db));
}
