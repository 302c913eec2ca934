/* See active_node.h. */
#include "repl/active_node.h"

#include "base/hash.h"
#include "base/mem.h"
#include "keyspace/expire.h"
#include "value/member_ttl.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

struct active_node {
    struct active_origins origins;
    struct active_clock clock;
    struct active_merge merge;
    struct active_execute execute;
    struct active_own own;
    struct active_head head;
    struct active_log *log;
    const struct active_meeting *meeting; /* MERGE is under way */
    uint16_t self;
    int64_t silence_ms;
    int64_t now_ms; /* of the hold in which something comes */
    uint64_t states;
};

/* ---- its life ---- */

static void begin_epoch(struct active_node *n, const struct active_node_options *options)
{
    struct active_origin_id id = {.epoch = active_clock_next(&n->clock)};
    memcpy(id.node, options->id, sizeof(id.node));
    if (id.epoch <= options->last_epoch) {
        id.epoch = options->last_epoch + 1;
    }
    for (uint32_t i = 1; i < n->origins.count; i++) { /* of the files */
        const struct active_origin_id *known = &active_origins_at(&n->origins, (uint16_t)i)->id;
        if (memcmp(known->node, id.node, sizeof(id.node)) == 0 && known->epoch >= id.epoch) {
            id.epoch = known->epoch + 1;
        }
    }
    n->self = n->own.self = active_origins_enter(&n->origins, &id);
    assert(n->self != 0);
    active_origins_hear(&n->origins, n->self, n->clock.last, 0);
}

/* Positions that were taken over without the writes. */
static void skip_logs(struct active_node *n, const struct active_cover *positions)
{
    for (uint32_t i = 1; i < positions->count; i++) {
        active_log_skip(n->log, (uint16_t)i, positions->sequence[i]);
    }
}

struct taken {
    struct active_node *node;
    const struct active_past *past;
};

static void take_dispute(int db, struct slice key, void *context)
{
    const struct taken *t = context;
    active_disputes_note(t->node->merge.disputes, db, key,
                         active_disputes_stamp(t->past->disputes, db, key), 0);
}

/* What the files tell is as if it had been here, and had left the window and the logs. */
static void take_past(struct active_node *n, struct active_past *past)
{
    active_origins_deinit(&n->origins);
    n->origins = past->origins;
    active_origins_init(&past->origins);
    active_disputes_each(past->disputes, take_dispute, &(struct taken){n, past});
    n->clock.last = past->clock > n->clock.last ? past->clock : n->clock.last;
    struct active_cover *positions = active_cover_create(&n->origins);
    active_window_skip(n->merge.window, positions, past->clock);
    skip_logs(n, positions);
    mem_free(positions);
}

static void on_dispute(int db, struct slice key, uint64_t state_stamp, bool pending, void *context)
{
    active_head_dispute(&((struct active_node *)context)->head, db, key, state_stamp, pending);
}

struct active_node *active_node_create(const struct active_node_options *options)
{
    struct active_node *n = mem_calloc(1, sizeof(*n));
    n->silence_ms = options->silence_ms;
    n->clock = (struct active_clock){
        .last = options->clock, .wall_ms = options->wall_ms, .context = options->context};
    active_origins_init(&n->origins);
    n->log = active_log_create(options->log_bytes);
    active_execute_init(&n->execute, &n->origins, &n->clock, options->first_db, options->dbs);
    active_own_init(&n->own, &n->origins, &n->clock, options->first_db, options->dbs);
    n->merge = (struct active_merge){
        .origins = &n->origins,
        .window = active_window_create(&n->origins, options->log_bytes),
        .disputes = active_disputes_create(
            options->log_bytes / ACTIVE_DISPUTE_LOG_PART,
            hash_slice(slice_of((const char *)options->id, sizeof(options->id)))),
        .executor = &active_execute,
        .context = &n->execute,
        .broken = options->broken,
    };
    if (options->past) {
        take_past(n, options->past);
    }
    active_head_init(&n->head, &n->origins, options->first_db);
    n->own.head = n->execute.head = &n->head;
    active_disputes_watch(n->merge.disputes, on_dispute, n);
    begin_epoch(n, options);
    n->execute.highest = n->clock.last;
    return n;
}

void active_node_destroy(struct active_node **node)
{
    struct active_node *n = *node;
    *node = NULL;
    if (n) {
        active_own_deinit(&n->own);
        active_execute_deinit(&n->execute);
        active_head_deinit(&n->head);
        active_window_destroy(&n->merge.window);
        active_disputes_destroy(&n->merge.disputes);
        active_log_destroy(&n->log);
        active_origins_deinit(&n->origins);
        mem_free(n);
    }
}

uint64_t active_node_epoch(const struct active_node *n)
{
    return active_origins_at(&n->origins, n->self)->id.epoch;
}

struct active_origins *active_node_origins(struct active_node *n)
{
    return &n->origins;
}

struct active_clock *active_node_clock(struct active_node *n)
{
    return &n->clock;
}

struct active_log *active_node_log(struct active_node *n)
{
    return n->log;
}

struct active_own *active_node_own(struct active_node *n)
{
    return &n->own;
}

struct active_head *active_node_head(struct active_node *n)
{
    return &n->head;
}

const uint8_t *active_node_id(const struct active_node *n)
{
    return active_origins_at(&n->origins, n->self)->id.node;
}

const struct active_merge *active_node_merge(const struct active_node *n)
{
    return &n->merge;
}

uint16_t active_node_self(const struct active_node *n)
{
    return n->self;
}

uint64_t active_node_states(const struct active_node *n)
{
    return n->states;
}

/* ---- our own units ---- */

/* A key that only its time has taken may have been told as deleted because a write was about to
 * read it, and stand there still. What is told as gone is gone here. */
static void remove_gone(struct active_node *n, int db, struct slice name) REQUIRES(keyspace_lock)
{
    struct db *where = active_execute_db(&n->execute, db);
    struct key key = key_of(name);
    struct keyref ref;
    int64_t now_ms = active_clock_ms(&n->clock);
    const struct entry *e = db_look(where, &key);
    if (e && (expire_is_over(entry_expiry_ms(e), now_ms) || member_ttl_all_due(e, now_ms))) {
        n->own.muted = true;
        db_open(&ref, where, &key, now_ms, 0);
        n->own.muted = false;
    }
}

static void remove_all_gone(struct active_node *n, const struct active_unit *unit)
    REQUIRES(keyspace_lock)
{
    struct active_command c = active_command_before(unit);
    while (active_command_next(unit, &c)) {
        if (slice_equal_nocase(c.argv[0], "del") || slice_equal_nocase(c.argv[0], "unlink")) {
            for (int i = 1; i < c.argc; i++) {
                remove_gone(n, c.db, c.argv[i]);
            }
        }
    }
}

void active_node_settle(struct active_node *n)
{
    struct active_unit *unit;
    active_head_flush(&n->head);
    while ((unit = active_own_take(&n->own)) != NULL) {
        remove_all_gone(n, unit);
        active_merge_own(&n->merge, unit);
        active_log_append(n->log, unit);
        active_unit_release(unit);
    }
    n->execute.highest = n->clock.last;
}

/* ---- peers' units ---- */

bool active_node_awaits(const struct active_node *n, uint16_t origin)
{
    return n->meeting && active_cover_at(n->meeting->positions, origin) >
                             active_origins_at(&n->origins, origin)->position;
}

/* True when all databases that the unit names are there. */
static bool names_known_dbs(const struct active_node *n, const struct active_unit *unit)
{
    struct active_command c = active_command_before(unit);
    while (active_command_next(unit, &c)) {
        if (c.db < 0 || c.db >= n->execute.dbs) {
            active_command_end(&c);
            return false;
        }
    }
    return true;
}

static void apply(struct active_node *n, struct active_unit *unit, int64_t now_ms)
    REQUIRES(keyspace_lock)
{
    struct active_execution before = active_execute_begin();
    n->own.muted = true;
    active_head_begin(&n->head, unit->dot);
    active_merge_apply(&n->merge, unit, now_ms);
    active_execute_end(&before);
    active_head_end(&n->head);
    n->own.muted = false;
    active_log_append(n->log, unit);
    n->execute.highest = n->clock.last;
}

static bool see(void *context, uint64_t stamp)
{
    struct active_node *n = context;
    keyspace_assert_exclusive();
    keyspace_has_work = true;
    return active_clock_see(&n->clock, stamp);
}

static bool take_unit(void *context, struct active_unit *unit, const char **error)
{
    struct active_node *n = context;
    keyspace_assert_exclusive();
    if (!names_known_dbs(n, unit) || !active_merge_acceptable(&n->merge, unit)) {
        *error = "a write that no node may tell, or of a database that is not here";
        return false;
    }
    active_node_settle(n);
    apply(n, unit, n->now_ms);
    return true;
}

static bool awaits(void *context, uint16_t origin)
{
    return active_node_awaits(context, origin);
}

struct active_sink active_node_sink(struct active_node *n, int64_t now_ms)
{
    n->now_ms = now_ms;
    return (struct active_sink){.see = see, .unit = take_unit, .context = n, .awaits = awaits};
}

enum active_taken active_node_take(struct active_node *n, const struct active_origin_id *origin,
                                   uint64_t sequence, uint64_t stamp, int db, struct slice commands,
                                   int64_t now_ms)
{
    const char *error = NULL;
    struct active_sink sink = active_node_sink(n, now_ms);
    uint16_t index = active_origins_enter(&n->origins, origin);
    active_node_settle(n);
    if (index == 0 || sequence == 0 || sequence > ACTIVE_SEQUENCE_MAX) {
        return ACTIVE_TAKEN_NEVER;
    }
    return active_take_unit(&n->origins, n->self, active_dot_of(stamp, index, sequence), db,
                            commands, &sink, &error);
}

/* ---- time ---- */

static void tell_states(struct active_node *n, int64_t now_ms) REQUIRES(keyspace_lock)
{
    struct buf key = {0}, command = {0};
    int db;
    while (active_disputes_take_due(n->merge.disputes, now_ms, &db, &key)) {
        buf_clear(&command);
        active_merge_state(&n->merge, db, buf_slice(&key), &command);
        active_disputes_told(n->merge.disputes, command.len, now_ms);
        active_own_tell(&n->own, db, buf_slice(&command));
        active_node_settle(n);
        n->states++;
    }
    buf_deinit(&key);
    buf_deinit(&command);
}

void active_node_tick(struct active_node *n, int64_t now_ms)
{
    active_node_settle(n);
    if (!n->meeting) {
        tell_states(n, now_ms);
    }
    uint64_t now = active_clock_tell(&n->clock);
    active_origins_hear(&n->origins, n->self, now, 0);
    active_origins_hear(&n->origins, n->self, now, active_origins_seen(&n->origins));
    if (!n->meeting) {
        active_window_sweep(n->merge.window, active_origins_stable(&n->origins));
    }
}

/* ---- MERGE ---- */

bool active_node_is_meeting(const struct active_node *n)
{
    return n->meeting != NULL;
}

void active_node_adopt(struct active_node *n)
{
    assert(active_origins_at(&n->origins, n->self)->position == 0);
    active_origins_advance(&n->origins, n->self, 1);
    struct active_cover *positions = active_cover_create(&n->origins);
    active_window_skip(n->merge.window, positions, n->clock.last);
    skip_logs(n, positions);
    mem_free(positions);
}

bool active_node_meet_begin(struct active_node *n, const struct active_meeting *meeting,
                            const char **error)
{
    active_node_settle(n);
    if (n->meeting) {
        *error = "another data set is being taken";
    } else if (active_cover_at(meeting->positions, n->self) >
               active_origins_at(&n->origins, n->self)->position) {
        *error = "a data set with writes in our name that we did not make";
    } else if (!active_clock_see(&n->clock, meeting->clock)) {
        *error = "a clock more than a day ahead of ours";
    } else {
        active_merge_meet_begin(&n->merge, meeting);
        n->execute.highest = n->clock.last;
        n->meeting = meeting;
        return true;
    }
    return false;
}

bool active_node_meet(struct active_node *n, int db, struct slice key, struct active_dot dot,
                      int64_t deadline_ms, struct slice payload, int64_t now_ms)
{
    assert(n->meeting && db >= 0 && db < n->execute.dbs);
    struct active_execution before = active_execute_begin();
    n->own.muted = true;
    bool good =
        active_merge_meet(&n->merge, n->meeting, db, key, dot, deadline_ms, payload, now_ms);
    active_execute_end(&before);
    n->own.muted = false;
    if (!good) {
        active_disputes_note(n->merge.disputes, db, key, 0, now_ms);
    }
    return good;
}

void active_node_met(struct active_node *n)
{
    assert(n->meeting);
    active_merge_met(&n->merge, n->meeting);
    skip_logs(n, n->meeting->positions);
    n->meeting = NULL;
}

/* ---- expiry ---- */

static bool is_of_us(const struct active_node *n, struct active_dot dot)
{
    const struct active_origin *own = active_origins_at(&n->origins, n->self);
    const struct active_origin *writer = active_origins_at(&n->origins, active_dot_origin(dot));
    return dot.stamp == 0 || memcmp(writer->id.node, own->id.node, sizeof(own->id.node)) == 0;
}

bool active_node_wrote(const struct active_node *n, const struct entry *e)
{
    return is_of_us(n, active_execute_dot(e));
}

/* True when it is on us to tell what becomes of a key with this dot because of its time. */
static bool is_ours_to_expire(const struct active_node *n, struct active_dot dot)
{
    const struct active_origin *writer = active_origins_at(&n->origins, active_dot_origin(dot));
    if (is_of_us(n, dot)) {
        return true;
    }
    uint64_t heard = 0; /* from that node, in whatever epoch */
    for (uint32_t i = 1; i < n->origins.count; i++) {
        const struct active_origin *o = active_origins_at(&n->origins, (uint16_t)i);
        if (memcmp(o->id.node, writer->id.node, sizeof(o->id.node)) == 0 && o->clock > heard) {
            heard = o->clock;
        }
    }
    return active_stamp_ms(heard) + n->silence_ms < active_clock_ms(&n->clock);
}

/* KEYDB.EXPIRED key deadline, PERSIST key: the latter because who empties a key says so. */
static void tell_expired(struct active_node *n, struct keyref *ref) REQUIRES(keyspace_lock)
{
    struct buf unit = {0}, deadline = {0};
    buf_printf(&deadline, "%" PRId64, entry_expiry_ms(ref->entry));
    buf_append_cstr(&unit, "*3\r\n$13\r\nKEYDB.EXPIRED\r\n");
    active_unit_put_word(&unit, ref->key.name);
    active_unit_put_word(&unit, buf_slice(&deadline));
    buf_append_cstr(&unit, "*2\r\n$7\r\nPERSIST\r\n");
    active_unit_put_word(&unit, ref->key.name);
    /* First: what the AOF is told of it then is a record with that unit's dot. */
    active_own_tell(&n->own, ref->db->id - n->execute.first_db, buf_slice(&unit));
    n->own.muted = true;
    expire_delete(ref);
    n->own.muted = false;
    buf_deinit(&unit);
    buf_deinit(&deadline);
}

bool active_node_judge(struct active_node *n, struct keyref *ref, int64_t now_ms)
{
    int db = ref->db->id - n->execute.first_db;
    if (db < 0 || db >= n->execute.dbs) {
        return false;
    }
    if (!is_ours_to_expire(n, active_execute_dot(ref->entry))) {
        return true;
    }
    if (!expire_is_over(entry_expiry_ms(ref->entry), now_ms)) {
        return false; /* members of it: what goes is told as any write */
    }
    tell_expired(n, ref);
    return true;
}
