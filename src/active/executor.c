/* See executor.h. */
#include "active/executor.h"

#include "base/clock.h"
#include "base/crc.h"
#include "base/num.h"
#include "engine/propagate.h"
#include "engine/tracking.h"
#include "keyspace/expire.h"
#include "persist/payload.h"
#include "repl/replay.h"
#include "value/list.h"
#include "value/member_ttl.h"
#include "value/module.h"
#include "value/zset.h"

#include <assert.h>

#define ARENA_BYTES ((size_t)16 * 1024)
#define DIGEST_BYTES 20
/* Entries that a step of a walk looks at. */
#define WALK_ENTRIES 1024

static_assert(sizeof(struct dot) == ENTRY_STAMP_BYTES, "a dot is an entry's stamp");

void executor_init(struct executor *x, const struct origins *origins, const struct hlc *clock,
                   int first_db, int dbs)
{
    *x = (struct executor){.origins = origins, .clock = clock, .first_db = first_db, .dbs = dbs};
    session_init_internal(&x->session);
    arena_init(&x->arena, ARENA_BYTES);
    reply_init(&x->reply);
}

void executor_deinit(struct executor *x)
{
    session_deinit(&x->session);
    arena_deinit(&x->arena);
    reply_deinit(&x->reply);
}

struct db *executor_db(const struct executor *x, int db)
{
    assert(db >= 0 && db < x->dbs);
    return db_at(x->first_db + db);
}

struct executor_scope executor_begin(void)
{
    struct executor_scope before = {expire_frozen, tracking_writer};
    expire_frozen = true;
    tracking_writer = 0;
    propagate_begin_unit();
    return before;
}

void executor_end(const struct executor_scope *before)
{
    propagate_end_unit();
    expire_frozen = before->frozen;
    tracking_writer = before->writer;
}

/* ---- keys as they are ---- */

static ALWAYS_INLINE struct entry *look_at(void *context, int db,
                                           const struct key *key) NO_THREAD_SAFETY_ANALYSIS
{
    keyspace_assert_exclusive();
    return db_look(executor_db(context, db), key);
}

static ALWAYS_INLINE struct entry *look(void *context, int db, struct slice key)
{
    struct key k = key_of(key);
    return look_at(context, db, &k);
}

static bool execute_exists(void *context, int db, struct slice key)
{
    return look(context, db, key) != NULL;
}

static bool execute_has_deadline(void *context, int db, struct slice key)
{
    const struct entry *e = look(context, db, key);
    return e && e->flags & ENTRY_EXPIRES;
}

static bool execute_has_member_deadline(void *context, int db, struct slice key,
                                        struct slice member)
{
    const struct entry *e = look(context, db, key);
    return e && member_ttl_any(e) && member_ttl_get(e, member) != ENTRY_NO_EXPIRY;
}

static bool execute_is_integer(void *context, int db, struct slice key, struct slice member)
{
    double score;
    const struct entry *e = look(context, db, key);
    if (!e || entry_type(e) != VALUE_ZSET || !zset_score(e, member, &score)) {
        return true;
    }
    return effect_is_exact(score);
}

static struct dot execute_dot(void *context, int db, struct slice key)
{
    const struct entry *e = look(context, db, key);
    return e ? executor_dot(e) : (struct dot){0, 0};
}

static void execute_set_dot(void *context, int db, struct slice key, struct dot dot)
{
    const struct executor *x = context;
    struct key k = key_of(key);
    keyspace_assert_exclusive();
    db_set_stamp(executor_db(x, db), &k, &dot);
    if (x->head) {
        log_head_touch(x->head, db, key, dot);
    }
}

static void execute_touch(void *context, const struct origins *o, int db, const struct key *key,
                          struct dot dot)
{
    const struct executor *x = context;
    struct entry *e = look_at(context, db, key);
    if (unlikely(!e)) {
        return;
    }
    if (unlikely(!(e->flags & ENTRY_STAMPED))) {
        execute_set_dot(context, db, key->name, dot);
    } else if (origins_compare(o, dot, executor_dot(e)) > 0) {
        entry_set_stamp(e, &dot);
        if (x->head) {
            log_head_touch(x->head, db, key->name, dot);
        }
    }
}

static void execute_elements(void *context, int db, struct slice key, bool left,
                             merge_element_fn visit, void *argument)
{
    const struct entry *e = look(context, db, key);
    struct list_cursor cursor;
    if (!e || entry_type(e) != VALUE_LIST) {
        return;
    }
    list_cursor_open(&cursor, e, left ? 0 : list_count(e) - 1, !left);
    while (list_cursor_next(&cursor) && visit(list_cursor_get(&cursor), argument)) {
    }
    list_cursor_close(&cursor);
}

static bool execute_dump(void *context, int db, struct slice key, int64_t *deadline_ms,
                         struct buf *payload)
{
    const struct entry *e = look(context, db, key);
    *deadline_ms = 0;
    if (!e) {
        return false;
    }
    if (e->flags & ENTRY_EXPIRES) {
        *deadline_ms = entry_expiry_ms(e);
    }
    int before = module_value_db;
    module_value_db = db;
    payload_write(payload, e);
    module_value_db = before;
    return true;
}

/* ---- running ---- */

/* Writes, and what goes to replicas beside them; nothing else has a place in a unit, whoever sends
 * it. What needs the world would end the hold. */
static bool is_told(const struct call *c)
{
    return c->cmd->flags & (CMD_WRITE | CMD_MAY_REPLICATE) && call_access(c) != ACCESS_WORLD;
}

static bool run_call(struct executor *x, int db, int argc, const struct slice *argv)
    REQUIRES(keyspace_lock);
static bool run_call(struct executor *x, int db, int argc, const struct slice *argv)
{
    int64_t wall_us = clock_wall_us();
    struct slice *words = arena_alloc(&x->arena, (size_t)argc * sizeof(*words));
    memcpy(words, argv, (size_t)argc * sizeof(*words));
    x->session.db_index = executor_db(x, db)->id;
    struct call c = {.argc = argc,
                     .argv = words,
                     .session = &x->session,
                     .reply = &x->reply,
                     .now_ms = hlc_hold_ms(x->clock),
                     .nested = true}; /* who waits is served at the end of the hold */
    call_prepare(&c, &x->arena);
    bool good = !c.refusal.ptr && is_told(&c);
    if (good) {
        reply_begin(&x->reply, 2);
        replay_run(&c);
        reply_end(&x->reply);
        call_account(&c, 1, 0, wall_us);
        good = !c.failed;
    }
    x->changed = c.dirty > 0;
    reply_reset(&x->reply);
    arena_reset(&x->arena);
    return good;
}

/* KEYDB.EXPIRED key deadline [member]: its time has come, and it is gone for whoever has it with
 * that deadline. */
static bool run_expired(struct executor *x, int db, int argc, const struct slice *argv)
    REQUIRES(keyspace_lock);
static bool run_expired(struct executor *x, int db, int argc, const struct slice *argv)
{
    static const char *const removals[VALUE_TYPE_COUNT] = {
        [VALUE_HASH] = "HDEL", [VALUE_SET] = "SREM", [VALUE_ZSET] = "ZREM"};
    int64_t deadline_ms;
    struct keyref ref;
    if (argc < 3 || argc > 4 || !num_parse_i64(argv[2], &deadline_ms) ||
        deadline_ms == ENTRY_NO_EXPIRY) {
        return false;
    }
    struct key key = key_of(argv[1]);
    db_open(&ref, executor_db(x, db), &key, hlc_hold_ms(x->clock), 0);
    x->changed = false;
    if (!ref.entry) {
        return true;
    }
    if (argc == 4) {
        if (!member_ttl_any(ref.entry) || member_ttl_get(ref.entry, argv[3]) != deadline_ms) {
            return true;
        }
        const struct slice words[] = {slice_cstr(removals[entry_type(ref.entry)]), argv[1],
                                      argv[3]};
        return run_call(x, db, 3, words);
    }
    if (entry_expiry_ms(ref.entry) == deadline_ms) {
        expire_delete(&ref);
        x->changed = true;
    }
    return true;
}

/* Words that are no commands of clients. */
static bool is_about_waiting(struct slice name)
{
    static const char *const words[] = {"keydb.view", "keydb.wait", "keydb.unwait", "keydb.give"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (slice_equal_nocase(name, words[i])) {
            return true;
        }
    }
    return false;
}

static bool execute_run(void *context, int db, int argc, const struct slice *argv)
{
    struct executor *x = context;
    bool good;
    keyspace_assert_exclusive();
    if (slice_equal_nocase(argv[0], "keydb.expired")) {
        good = run_expired(x, db, argc, argv);
    } else if (is_about_waiting(argv[0])) {
        good = !x->hear || x->hear(x->unit, argc, argv);
    } else {
        good = run_call(x, db, argc, argv);
    }
    x->failed += !good;
    return good;
}

static bool execute_changed(void *context)
{
    return ((const struct executor *)context)->changed;
}

static bool execute_survives(void *context, int db, int argc, const struct slice *argv)
{
    const struct entry *e = look(context, db, argv[1]);
    return e &&
           (argc == 3 || (member_ttl_supported(e) && value_ops_of[entry_type(e)]->has(e, argv[3])));
}

static bool execute_load(void *context, int db, struct slice key, int64_t deadline_ms,
                         struct slice payload)
{
    char number[NUM_I64_MAX_CHARS];
    struct slice deadline = slice_of(number, num_format_i64(number, deadline_ms));
    struct slice restore[] = {SLICE("RESTORE"), key, deadline, payload, SLICE("REPLACE"),
                              SLICE("ABSTTL")};
    struct slice del[] = {SLICE("DEL"), key};
    if (payload.len == 0) {
        return !execute_exists(context, db, key) || execute_run(context, db, 2, del);
    }
    if (!execute_run(context, db, 6, restore)) {
        return false;
    }
    /* What was there before has no say any more. */
    if (execute_dot(context, db, key).stamp) {
        execute_set_dot(context, db, key, (struct dot){0, 0});
    }
    return true;
}

/* Members of tables stand in the order of each process's own hash. Deadlines are not in digests. */
static bool execute_same(void *context, int db, struct slice key, struct slice payload)
{
    const struct entry *ours = look(context, db, key);
    struct entry *theirs;
    uint8_t digest[2][DIGEST_BYTES] = {{0}};
    if (payload_read(payload, key, &theirs) != PAYLOAD_FINE) {
        return false;
    }
    enum value_type type = entry_type(theirs);
    bool same = type == entry_type(ours) && member_ttl_supported(ours) && !member_ttl_any(ours) &&
                !member_ttl_any(theirs);
    if (same) {
        value_ops_of[type]->digest(ours, digest[0]);
        value_ops_of[type]->digest(theirs, digest[1]);
        same = memcmp(digest[0], digest[1], DIGEST_BYTES) == 0;
    }
    entry_destroy(&theirs);
    return same;
}

/* Mixes all bits of a number. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void add_member_deadline(struct slice member, int64_t at_ms, void *context)
{
    *(uint64_t *)context += mix(crc64(0, member.ptr, member.len) ^ mix((uint64_t)at_ms));
}

/* The value's own, into which its type and all deadlines are mixed. */
static bool execute_digest(void *context, int db, struct slice key, struct buf *out)
{
    const struct entry *e = look(context, db, key);
    uint8_t sum[DIGEST_BYTES] = {0};
    uint64_t words[2];
    if (!e || entry_type(e) == VALUE_CRON) {
        return false;
    }
    uint64_t deadlines = (uint64_t)entry_type(e) + mix((uint64_t)entry_expiry_ms(e)), members = 0;
    if (member_ttl_any(e)) {
        member_ttl_each(e, add_member_deadline, &members);
    }
    value_ops_of[entry_type(e)]->digest(e, sum);
    memcpy(words, sum, sizeof(words));
    words[0] ^= mix(deadlines);
    words[1] ^= members;
    memcpy(sum, words, sizeof(words));
    buf_append(out, (const char *)sum, sizeof(sum));
    return true;
}

/* ---- flush ---- */

struct walk {
    const struct executor *x;
    struct dot before;
    bool kept;        /* which of the two is looked for */
    struct buf names; /* length, bytes; of those found */
};

static void visit(struct entry *e, void *context)
{
    struct walk *w = context;
    bool kept = origins_compare(w->x->origins, executor_dot(e), w->before) > 0;
    if (kept == w->kept) {
        struct slice key = entry_key(e);
        uint32_t len = (uint32_t)key.len;
        buf_append(&w->names, (const char *)&len, sizeof(len));
        buf_append_slice(&w->names, key);
    }
}

/* Collects the keys whose dots are above that one (or all others). */
static void walk_db(struct walk *w, int db, bool kept) REQUIRES(keyspace_lock)
{
    uint64_t cursor = 0;
    buf_clear(&w->names);
    w->kept = kept;
    do {
        cursor = db_scan(executor_db(w->x, db), cursor, WALK_ENTRIES, 0, visit, w);
    } while (cursor);
}

static bool next_name(const struct walk *w, size_t *at, struct slice *name)
{
    uint32_t len;
    if (*at == w->names.len) {
        return false;
    }
    memcpy(&len, w->names.data + *at, sizeof(len));
    *name = slice_of(w->names.data + *at + sizeof(len), len);
    *at += sizeof(len) + len;
    return true;
}

static void flush_db(struct executor *x, int db, struct dot before, merge_key_fn kept,
                     void *argument) REQUIRES(keyspace_lock);
static void flush_db(struct executor *x, int db, struct dot before, merge_key_fn kept,
                     void *argument)
{
    struct walk w = {.x = x, .before = before};
    struct slice name, words[] = {SLICE("UNLINK"), SLICE("")}, all = SLICE("FLUSHDB");
    if (before.stamp <= x->highest) {
        walk_db(&w, db, true);
    }
    if (w.names.len == 0) {
        execute_run(x, db, 1, &all);
    } else {
        for (size_t at = 0; next_name(&w, &at, &name);) {
            kept(db, name, argument);
        }
        walk_db(&w, db, false);
        for (size_t at = 0; next_name(&w, &at, &words[1]);) {
            execute_run(x, db, 2, words);
        }
    }
    buf_deinit(&w.names);
}

static void execute_flush(void *context, int db, struct dot before, merge_key_fn kept,
                          void *argument)
{
    struct executor *x = context;
    keyspace_assert_exclusive();
    for (int i = 0; i < x->dbs; i++) {
        if (db < 0 || i == db) {
            flush_db(x, i, before, kept, argument);
        }
    }
}

const struct merge_executor executor = {
    .run = execute_run,
    .changed = execute_changed,
    .flush = execute_flush,
    .exists = execute_exists,
    .survives = execute_survives,
    .has_deadline = execute_has_deadline,
    .has_member_deadline = execute_has_member_deadline,
    .is_integer = execute_is_integer,
    .dot = execute_dot,
    .touch = execute_touch,
    .elements = execute_elements,
    .dump = execute_dump,
    .load = execute_load,
    .same = execute_same,
    .digest = execute_digest,
};
