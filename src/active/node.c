/* See node.h. */
#include "active/node.h"

#include "active/large_writes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/command.h"
#include "keyspace/db.h"
#include "keyspace/expire.h"
#include "persist/payload.h"
#include "persist/rdb_module.h"
#include "value/member_ttl.h"
#include "value/module.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct node {
    struct origins origins;
    struct hlc clock;
    struct merge merge;
    struct executor execute;
    struct local_writes own;
    struct log_head head;
    struct origin_log *log;
    const struct merge_snapshot *snapshot; /* MERGE is under way */
    bool expects;                          /* one is on its way */
    bool keeps;                            /* one may be */
    struct version_vector *met;            /* what those that were had; NULL: none was */
    void (*missed)(const struct version_vector *before);
    void (*heard)(void);
    struct gives gives;
    uint16_t self;
    int64_t silence_ms;
    int64_t now_ms;  /* of the hold in which something comes */
    char fault[160]; /* why it was refused */
    uint64_t states, digests;
};

/* Units that leave the window, and the logs, in one hold. */
#define TRIM_UNITS 1024
/* States: a hold takes about so long; of the logs' bound each tenth of a second (states_pace). */
#define STATES_US 1000
#define READ_PART 4
#define READ_BYTES_MAX ((size_t)16 << 20)
#define NOT_READ_PART 16
#define LATE_PART 256

/* ---- its life ---- */

/* Libraries that the files, or peers, brought. */
static void on_library(struct slice row, void *context)
{
    log_head_say(&((struct node *)context)->head, "LIBRARY", row);
}

static void begin_epoch(struct node *n, const struct node_options *options)
{
    struct origin_id id = {.epoch = hlc_next(&n->clock)};
    memcpy(id.node, options->id, sizeof(id.node));
    if (id.epoch <= options->last_epoch) {
        id.epoch = options->last_epoch + 1;
    }
    for (uint32_t i = 1; i < n->origins.count; i++) { /* of the files */
        const struct origin_id *known = &origins_at(&n->origins, (uint16_t)i)->id;
        if (memcmp(known->node, id.node, sizeof(id.node)) == 0 && known->epoch >= id.epoch) {
            id.epoch = known->epoch + 1;
        }
    }
    n->self = n->own.self = origins_enter(&n->origins, &id);
    assert(n->self != 0);
    n->merge.self = n->self;
    origins_hear(&n->origins, n->self, n->clock.last, 0);
}

/* Positions that were taken over without the writes. */
static void skip_logs(struct node *n, const struct version_vector *positions)
{
    for (uint32_t i = 1; i < positions->count; i++) {
        origin_log_skip(n->log, (uint16_t)i, positions->sequence[i]);
    }
}

struct taken {
    struct node *node;
    const struct restored *past;
};

static void take_conflict(int db, struct slice key, void *context)
{
    const struct taken *t = context;
    conflicts_note(t->node->merge.conflicts, db, key, conflicts_stamp(t->past->conflicts, db, key),
                   0);
}

/* What the files tell is as if it had been here, and had left the window and the logs. */
static void take_past(struct node *n, struct restored *past)
{
    origins_deinit(&n->origins);
    n->origins = past->origins;
    origins_init(&past->origins);
    conflicts_each(past->conflicts, take_conflict, &(struct taken){n, past});
    n->gives = past->gives;
    past->gives = (struct gives){.rows = NULL};
    n->clock.last = past->clock > n->clock.last ? past->clock : n->clock.last;
    struct version_vector *positions = version_vector_create(&n->origins);
    window_skip(n->merge.window, positions, past->clock);
    skip_logs(n, positions);
    mem_free(positions);
}

/* So much may be unread where readers keep up. */
static size_t read_bytes(size_t log_bytes)
{
    return log_bytes / READ_PART < READ_BYTES_MAX ? log_bytes / READ_PART : READ_BYTES_MAX;
}

/* How much of states may be told each tenth of a second, in the long run. Who reads is to have all
 * of it before it leaves the logs: so most waits until it has been read, and little goes on, that
 * a conflict does not last as long as a link is busy. Where nobody reads, somebody may come. */
static size_t states_pace(const struct origin_log *log, size_t log_bytes)
{
    uint64_t unread = origin_log_unread(log);
    size_t read = read_bytes(log_bytes);
    if (unread == UINT64_MAX) {
        return log_bytes / NOT_READ_PART;
    }
    return unread <= read ? read : 1 + log_bytes / LATE_PART;
}

static void on_conflict(int db, struct slice key, uint64_t state_stamp, bool pending, void *context)
{
    log_head_conflict(&((struct node *)context)->head, db, key, state_stamp, pending);
}

/* local_writes.h, take. */
static bool take_set(void *context, struct unit *unit) REQUIRES(keyspace_lock)
{
    struct node *n = context;
    if (!merge_own_set(&n->merge, unit)) {
        return false;
    }
    origin_log_append(n->log, unit);
    n->execute.highest = unit->dot.stamp;
    unit_release(unit);
    return true;
}

struct node *node_create(const struct node_options *options)
{
    struct node *n = mem_calloc(1, sizeof(*n));
    n->silence_ms = options->silence_ms;
    n->clock = (struct hlc){
        .last = options->clock, .wall_ms = options->wall_ms, .context = options->context};
    origins_init(&n->origins);
    unit_keep(options->log_bytes);
    n->log = origin_log_create(options->log_bytes);
    if (options->reserve) {
        origin_log_keep_on_disk(n->log, options->reserve);
    }
    executor_init(&n->execute, &n->origins, &n->clock, options->first_db, options->dbs);
    local_writes_init(&n->own, &n->origins, &n->clock, options->first_db, options->dbs);
    n->merge = (struct merge){
        .origins = &n->origins,
        .window = window_create(&n->origins, options->log_bytes),
        .conflicts =
            conflicts_create(states_pace(n->log, options->log_bytes),
                             hash_slice(slice_of((const char *)options->id, sizeof(options->id)))),
        .executor = &executor,
        .context = &n->execute,
        .broken = options->broken,
    };
    n->merge.libraries = libraries_create(&n->origins);
    if (options->past) {
        take_past(n, options->past);
    }
    hlc_go_on(&n->clock);
    libraries_watch(n->merge.libraries, on_library, n);
    log_head_init(&n->head, &n->origins, options->first_db);
    n->own.head = n->execute.head = &n->head;
    n->own.take = take_set;
    n->own.context = n;
    conflicts_watch(n->merge.conflicts, on_conflict, n);
    begin_epoch(n, options);
    origins_bound(&n->origins);
    n->execute.highest = n->clock.last;
    return n;
}

void node_destroy(struct node **node)
{
    struct node *n = *node;
    *node = NULL;
    if (n) {
        local_writes_deinit(&n->own);
        executor_deinit(&n->execute);
        log_head_deinit(&n->head);
        merge_snapshot_forget(&n->merge);
        window_destroy(&n->merge.window);
        conflicts_destroy(&n->merge.conflicts);
        libraries_destroy(&n->merge.libraries);
        origin_log_destroy(&n->log);
        origins_deinit(&n->origins);
        gives_deinit(&n->gives);
        mem_free(n->met);
        mem_free(n);
    }
}

uint64_t node_epoch(const struct node *n)
{
    return origins_at(&n->origins, n->self)->id.epoch;
}

struct origins *node_origins(struct node *n)
{
    return &n->origins;
}

struct hlc *node_clock(struct node *n)
{
    return &n->clock;
}

struct origin_log *node_log(struct node *n)
{
    return n->log;
}

struct local_writes *node_own(struct node *n)
{
    return &n->own;
}

struct gives *node_gives(struct node *n)
{
    return &n->gives;
}

struct log_head *node_head(struct node *n)
{
    return &n->head;
}

const uint8_t *node_id(const struct node *n)
{
    return origins_at(&n->origins, n->self)->id.node;
}

uint32_t node_id_tag(const struct node *n)
{
    uint32_t tag; /* the id is of chance */
    memcpy(&tag, node_id(n), sizeof(tag));
    return tag ? tag : 1;
}

const struct merge *node_merge(const struct node *n)
{
    return &n->merge;
}

uint16_t node_self(const struct node *n)
{
    return n->self;
}

uint64_t node_states(const struct node *n)
{
    return n->states;
}

uint64_t node_digests(const struct node *n)
{
    return n->digests;
}

/* ---- our own units ---- */

/* A key that only its time has taken may have been told as deleted because a write was about to
 * read it, and stand there still. What is told as gone is gone here; which is told once more, for
 * it may be another one by now, made with a time that is over. */
static void remove_gone(struct node *n, int db, struct slice name) REQUIRES(keyspace_lock)
{
    struct db *where = executor_db(&n->execute, db);
    struct key key = key_of(name);
    struct keyref ref;
    int64_t now_ms = hlc_hold_ms(&n->clock);
    const struct entry *e = db_look(where, &key);
    if (e && (expire_is_over(entry_expiry_ms(e), now_ms) || member_ttl_all_due(e, now_ms))) {
        db_open(&ref, where, &key, now_ms, 0);
    }
}

static void remove_all_gone(struct node *n, const struct unit *unit) REQUIRES(keyspace_lock)
{
    struct unit_command c = unit_command_before(unit);
    while (unit_command_next(unit, &c)) {
        bool expired = slice_equal_nocase(c.argv[0], "keydb.expired");
        if (expired || slice_equal_nocase(c.argv[0], "del") ||
            slice_equal_nocase(c.argv[0], "unlink")) {
            for (int i = 1; i < (expired ? 2 : c.argc); i++) {
                remove_gone(n, c.db, c.argv[i]);
            }
        }
    }
}

/* A hold's work that no client asked for: what it runs is one unit of the logs, and not ours. */
static struct executor_scope begin_work(struct node *n, struct dot dot) REQUIRES(keyspace_lock)
{
    struct executor_scope before = executor_begin();
    n->own.muted = true;
    log_head_begin(&n->head, dot);
    return before;
}

static void end_work(struct node *n, const struct executor_scope *before) REQUIRES(keyspace_lock)
{
    libraries_settle(n->merge.libraries, db_at(n->execute.first_db));
    executor_end(before);
    log_head_end(&n->head);
    n->own.muted = false;
}

/* One of our clients has changed which libraries go together. */
static void settle_libraries(struct node *n) REQUIRES(keyspace_lock)
{
    if (libraries_are_unsettled(n->merge.libraries)) {
        struct executor_scope before = begin_work(n, (struct dot){0, 0});
        end_work(n, &before);
    }
}

/* The logs have none of those that are too long to be told. */
static void take_own(struct node *n, struct unit *unit) REQUIRES(keyspace_lock)
{
    if (unit->is_large) {
        large_write_take(&n->merge, unit);
        origin_log_skip(n->log, n->self, dot_sequence(unit->dot));
        remove_all_gone(n, unit);
        return;
    }
    bool takes_keys = merge_own(&n->merge, unit);
    origin_log_append(n->log, unit);
    if (takes_keys) {
        remove_all_gone(n, unit); /* and tells it behind that */
    }
}

static void settle(struct node *n) REQUIRES(keyspace_lock)
{
    struct unit *unit;
    log_head_flush(&n->head);
    while ((unit = local_writes_take(&n->own)) != NULL) {
        take_own(n, unit);
        unit_release(unit);
    }
    settle_libraries(n);
    n->execute.highest = n->clock.last;
}

void node_settle(struct node *n)
{
    settle(n);
    hlc_end_hold(&n->clock);
}

void node_set_log_bytes(struct node *n, size_t log_bytes)
{
    unit_keep(log_bytes);
    origin_log_set_bound(n->log, log_bytes);
    window_set_bound(n->merge.window, log_bytes);
    conflicts_set_pace(n->merge.conflicts, states_pace(n->log, log_bytes), n->now_ms);
    if (origin_log_unread(n->log) <= read_bytes(log_bytes)) {
        conflicts_was_read(n->merge.conflicts);
    }
}

void node_hear(struct node *n, bool (*hear)(struct dot unit, int argc, const struct slice *argv),
               void (*heard)(void))
{
    n->execute.hear = hear;
    n->heard = heard;
}

void node_hear_missed(struct node *n, void (*missed)(const struct version_vector *before))
{
    n->missed = missed;
}

void node_run_own(struct node *n, int db, int argc, const struct slice *argv)
{
    executor.run(&n->execute, db, argc, argv);
}

/* ---- peers' units ---- */

bool node_awaits(const struct node *n, uint16_t origin)
{
    return n->snapshot && version_vector_at(n->snapshot->positions, origin) >
                              origins_at(&n->origins, origin)->position;
}

/* True when all databases that the unit names are there. */
static bool names_known_dbs(const struct node *n, const struct unit *unit)
{
    struct unit_command c = unit_command_before(unit);
    while (unit_command_next(unit, &c)) {
        if (c.db < 0 || c.db >= n->execute.dbs) {
            unit_command_end(&c);
            return false;
        }
    }
    return true;
}

/* Words of units only begin with it. */
static const char own_words[] = "keydb.";

static bool is_known_command(struct slice name)
{
    return command_find_original(name) ||
           (name.len >= sizeof(own_words) - 1 &&
            strncasecmp(name.ptr, own_words, sizeof(own_words) - 1) == 0);
}

/* The payload of a value of a module's that the command brings, or nothing. */
static struct slice module_payload(const struct unit_command *c)
{
    bool brings = c->argc > 3 && (slice_equal_nocase(c->argv[0], "restore") ||
                                  slice_equal_nocase(c->argv[0], "keydb.state"));
    return brings && rdb_module_is_payload(c->argv[3]) ? c->argv[3] : (struct slice){NULL, 0};
}

static bool is_value(const struct unit_command *c, struct slice payload)
{
    module_value_db = c->db;
    bool fine = payload_check(payload, c->argv[1]);
    module_value_db = -1;
    return fine;
}

/* What is told is to be done here too, or the nodes would differ: a module may be missing. The
 * reason is the node's fault, then. */
static bool can_be_done(struct node *n, const struct unit *unit) REQUIRES(keyspace_lock)
{
    bool can = true;
    struct unit_command c = unit_command_before(unit);
    while (can && unit_command_next(unit, &c)) {
        struct slice name = c.argv[0], payload = module_payload(&c);
        if (!is_known_command(name)) {
            can = false;
            snprintf(
                n->fault, sizeof(n->fault),
                "a write by '%.*s', a command that is not here: of a module that is not loaded?",
                (int)(name.len < 64 ? name.len : 64), name.ptr);
        } else if (payload.ptr && !is_value(&c, payload)) {
            can = false;
            snprintf(n->fault, sizeof(n->fault), "%s", rdb_module_payload_fault(payload));
        }
    }
    if (!can) {
        unit_command_end(&c);
    }
    return can;
}

static void apply(struct node *n, struct unit *unit, int64_t now_ms) REQUIRES(keyspace_lock)
{
    struct executor_scope before = begin_work(n, unit->dot);
    n->execute.unit = unit->dot;
    merge_apply(&n->merge, unit, now_ms);
    end_work(n, &before);
    origin_log_append(n->log, unit);
    n->execute.highest = n->clock.last;
    if (n->heard) {
        n->heard();
    }
}

static bool see(void *context, uint64_t stamp)
{
    struct node *n = context;
    keyspace_assert_exclusive();
    keyspace_has_work = true; /* which ends with node_settle */
    hlc_begin_hold(&n->clock);
    return hlc_see(&n->clock, stamp);
}

static bool take_checked(struct node *n, struct unit *unit, const char **error)
    REQUIRES(keyspace_lock)
{
    if (!can_be_done(n, unit)) {
        *error = n->fault;
        return false;
    }
    if (!window_follows(n->merge.window, unit->dot)) {
        *error = "a write with a stamp that is not above its origin's last one";
        return false;
    }
    settle(n);
    apply(n, unit, n->now_ms);
    return true;
}

static bool take_unit(void *context, struct unit *unit, const char **error)
{
    struct node *n = context;
    keyspace_assert_exclusive();
    if (!names_known_dbs(n, unit) || !merge_acceptable(&n->merge, unit)) {
        *error = "a write that no node may tell, or of a database that is not here";
        return false;
    }
    bool taken = take_checked(n, unit, error);
    payload_drop(); /* what was checked and not taken */
    return taken;
}

static bool awaits(void *context, uint16_t origin)
{
    return node_awaits(context, origin);
}

struct receiver_sink node_sink(struct node *n, int64_t now_ms)
{
    n->now_ms = now_ms;
    return (struct receiver_sink){.see = see, .unit = take_unit, .context = n, .awaits = awaits};
}

enum receiver_result node_take(struct node *n, const struct origin_id *origin, uint64_t sequence,
                               uint64_t stamp, int db, struct slice commands, int64_t now_ms)
{
    const char *error = NULL;
    struct receiver_sink sink = node_sink(n, now_ms);
    uint16_t index = origins_enter(&n->origins, origin);
    settle(n);
    if (index == 0 || sequence == 0 || sequence > ORIGIN_SEQUENCE_MAX) {
        return RECEIVED_NEVER;
    }
    return receiver_unit(&n->origins, n->self, dot_of(stamp, index, sequence), db, commands, &sink,
                         &error);
}

void node_take_directly(struct node *n, bool directly)
{
    n->merge.directly = directly;
}

void node_expects_data(struct node *n, bool expects)
{
    n->expects = expects;
}

void node_keeps_window(struct node *n, bool keeps)
{
    n->keeps = keeps;
}

void node_data_told(struct node *n)
{
    merge_data_told(&n->merge, n->now_ms);
}

/* ---- time ---- */

/* Digests that are told together. */
struct digests {
    struct buf words;
    int count, db;
};

static void tell_command(struct node *n, int db, struct slice command) REQUIRES(keyspace_lock);
static void tell_command(struct node *n, int db, struct slice command)
{
    conflicts_told(n->merge.conflicts, command.len, n->now_ms);
    local_writes_tell_state(&n->own, db, command);
    node_settle(n);
}

static void tell_digests(struct node *n, struct digests *d) REQUIRES(keyspace_lock);
static void tell_digests(struct node *n, struct digests *d)
{
    struct buf command = {0};
    if (d->count > 0) {
        merge_digests(&n->merge, d->count, buf_slice(&d->words), &command);
        tell_command(n, d->db, buf_slice(&command));
        n->digests += (uint64_t)d->count;
    }
    buf_clear(&d->words);
    d->count = 0;
    buf_deinit(&command);
}

/* One that is due, or its digest among others. False: none is. */
static bool tell_next(struct node *n, struct digests *d, struct buf *key) REQUIRES(keyspace_lock);
static bool tell_next(struct node *n, struct digests *d, struct buf *key)
{
    struct buf command = {0};
    int db;
    bool same;
    if (!conflicts_take_due(n->merge.conflicts, n->now_ms, &db, key, &same)) {
        return false;
    }
    if (d->db != db || d->count == MERGE_DIGESTS_MAX) {
        tell_digests(n, d);
        d->db = db;
    }
    if (same && merge_put_digest(&n->merge, db, buf_slice(key), &d->words)) {
        d->count++;
        return true;
    }
    merge_state(&n->merge, db, buf_slice(key), &command);
    tell_command(n, db, buf_slice(&command));
    n->states++;
    buf_deinit(&command);
    return true;
}

bool node_tell_states(struct node *n)
{
    struct digests digests = {.db = 0};
    struct buf key = {0};
    uint64_t begin_us = clock_mono_us();
    bool more = !n->snapshot && !n->expects;
    do {
        more = more && tell_next(n, &digests, &key);
    } while (more && clock_mono_us() - begin_us < STATES_US);
    tell_digests(n, &digests);
    buf_deinit(&digests.words);
    buf_deinit(&key);
    return more;
}

/* States that have waited for what was brought by other things than units, or long enough. */
static void take_waiting(struct node *n) REQUIRES(keyspace_lock)
{
    if (window_has_waiting(n->merge.window)) {
        struct executor_scope before = begin_work(n, (struct dot){0, 0});
        merge_take_waiting(&n->merge, n->now_ms);
        end_work(n, &before);
    }
}

void node_tick(struct node *n, int64_t now_ms)
{
    n->now_ms = now_ms;
    origins_allow(&n->origins);
    node_settle(n);
    conflicts_all_seen(n->merge.conflicts, origins_stable(&n->origins));
    if (!n->snapshot) {
        take_waiting(n);
    }
    uint64_t now = hlc_tell(&n->clock);
    origins_hear(&n->origins, n->self, now, 0);
    origins_hear(&n->origins, n->self, now, origins_seen(&n->origins));
}

bool node_trim(struct node *n)
{
    bool sweeps = !n->snapshot && !n->expects && !n->keeps;
    return (int)(sweeps && window_sweep(n->merge.window, origins_stable(&n->origins), TRIM_UNITS)) |
           (int)origin_log_trim(n->log, TRIM_UNITS);
}

/* ---- MERGE ---- */

bool node_is_merging(const struct node *n)
{
    return n->snapshot != NULL;
}

void node_restore_libraries(struct node *n, struct slice rows)
{
    libraries_restore(n->merge.libraries, rows);
}

void node_adopt(struct node *n)
{
    assert(origins_at(&n->origins, n->self)->position == 0);
    origins_advance(&n->origins, n->self, 1);
    struct version_vector *positions = version_vector_create(&n->origins);
    window_skip(n->merge.window, positions, n->clock.last);
    skip_logs(n, positions);
    mem_free(positions);
}

bool node_snapshot_begin(struct node *n, const struct merge_snapshot *snapshot, const char **error)
{
    node_settle(n);
    if (n->snapshot) {
        *error = "another data set is being taken";
    } else if (version_vector_at(snapshot->positions, n->self) >
               origins_at(&n->origins, n->self)->position) {
        *error = "a data set with writes in our name that we did not make";
    } else if (!hlc_see(&n->clock, snapshot->clock)) {
        *error = "a clock more than a day ahead of ours";
    } else {
        struct executor_scope before = begin_work(n, (struct dot){0, 0});
        merge_snapshot_begin(&n->merge, snapshot, n->now_ms);
        end_work(n, &before);
        n->execute.highest = n->clock.last;
        n->snapshot = snapshot;
        return true;
    }
    return false;
}

bool node_snapshot_key(struct node *n, int db, struct slice key, struct dot dot,
                       int64_t deadline_ms, struct slice payload, int64_t now_ms)
{
    assert(n->snapshot && db >= 0 && db < n->execute.dbs);
    struct executor_scope before = begin_work(n, (struct dot){0, 0});
    bool good =
        merge_snapshot_key(&n->merge, n->snapshot, db, key, dot, deadline_ms, payload, now_ms);
    if (!good) {
        conflicts_note(n->merge.conflicts, db, key, 0, now_ms);
    }
    end_work(n, &before);
    return good;
}

bool node_snapshot_library(struct node *n, struct slice row)
{
    assert(n->snapshot);
    struct executor_scope before = begin_work(n, (struct dot){0, 0});
    bool good = libraries_merge(n->merge.libraries, row);
    end_work(n, &before);
    return good;
}

/* KEYDB.MERGED clock positions. */
static void log_end(struct node *n) REQUIRES(keyspace_lock)
{
    char clock[NUM_I64_MAX_CHARS];
    struct buf positions = {0};
    version_vector_encode(&n->origins, n->snapshot->positions, &positions);
    log_head_write(&n->head, 3,
                   (const struct slice[]){SLICE("KEYDB.MERGED"),
                                          slice_of(clock, num_format_u64(clock, n->clock.last)),
                                          buf_slice(&positions)});
    buf_deinit(&positions);
}

static void note_met(struct node *n, const struct version_vector *positions)
{
    struct version_vector *met = version_vector_create(&n->origins);
    for (uint32_t i = 0; i < met->count; i++) {
        uint64_t before = n->met ? version_vector_at(n->met, i) : 0;
        uint64_t now = version_vector_at(positions, i);
        met->sequence[i] = now > before ? now : before;
    }
    mem_free(n->met);
    n->merge.met = n->met = met;
}

void node_snapshot_end(struct node *n)
{
    struct version_vector *before = version_vector_create(&n->origins);
    assert(n->snapshot);
    merge_snapshot_end(&n->merge, n->snapshot);
    skip_logs(n, n->snapshot->positions);
    note_met(n, n->snapshot->positions);
    log_end(n);
    n->snapshot = NULL;
    if (n->missed) {
        n->missed(before);
    }
    mem_free(before);
}

/* ---- expiry ---- */

static bool is_of_us(const struct node *n, struct dot dot)
{
    const struct origin *own = origins_at(&n->origins, n->self);
    const struct origin *writer = origins_at(&n->origins, dot_origin(dot));
    return dot.stamp == 0 || memcmp(writer->id.node, own->id.node, sizeof(own->id.node)) == 0;
}

bool node_wrote(const struct node *n, const struct entry *e)
{
    return is_of_us(n, executor_dot(e));
}

/* True when it is on us to tell what becomes of a key with this dot because of its time. */
static bool is_ours_to_expire(const struct node *n, struct dot dot)
{
    const struct origin *writer = origins_at(&n->origins, dot_origin(dot));
    if (is_of_us(n, dot)) {
        return true;
    }
    uint64_t heard = 0; /* from that node, in whatever epoch */
    for (uint32_t i = 1; i < n->origins.count; i++) {
        const struct origin *o = origins_at(&n->origins, (uint16_t)i);
        if (memcmp(o->id.node, writer->id.node, sizeof(o->id.node)) == 0 && o->clock > heard) {
            heard = o->clock;
        }
    }
    return hlc_stamp_ms(heard) + n->silence_ms < hlc_ms(&n->clock);
}

bool node_judge(struct node *n, struct keyref *ref, int64_t now_ms)
{
    int db = ref->db->id - n->execute.first_db;
    if (db < 0 || db >= n->execute.dbs) {
        return false;
    }
    if (!is_ours_to_expire(n, executor_dot(ref->entry))) {
        return true;
    }
    if (!expire_is_over(entry_expiry_ms(ref->entry), now_ms)) {
        return false; /* members of it: what goes is told as any write */
    }
    expire_delete(ref); /* and tells it */
    return true;
}
