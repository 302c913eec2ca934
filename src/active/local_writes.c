/* See local_writes.h. */
#include "active/local_writes.h"

#include "active/frame.h"
#include "active/large_writes.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/propagate.h"
#include "value/member_ttl.h"

#include <assert.h>
#include <string.h>

/* A key that goes with more members than this, all of them due, is told as deleted. */
#define EXPIRED_MEMBERS_MAX 1024
/* A unit is shorter than this, told or not (unit_create). */
#define UNIT_BYTES_MAX ((size_t)INT32_MAX - 1)

size_t local_writes_bound = FRAME_MAX_BYTES - FRAME_WRITE_HEAD_BYTES - 1;

static struct {
    struct local_writes *attached;
    int log; /* the door's number for us */
} told;

void local_writes_init(struct local_writes *own, const struct origins *origins, struct hlc *clock,
                       int first_db, int dbs)
{
    *own = (struct local_writes){
        .origins = origins, .clock = clock, .first_db = first_db, .dbs = dbs, .db = -1};
}

static struct unit *take_first(struct local_writes *own)
{
    if (own->taken == own->count) {
        own->taken = own->count = 0;
        return NULL;
    }
    return own->pending[own->taken++];
}

void local_writes_deinit(struct local_writes *own)
{
    assert(told.attached != own);
    for (struct unit *u = take_first(own); u; u = take_first(own)) {
        unit_release(u);
    }
    mem_free(own->pending);
    buf_deinit(&own->commands);
}

/* A unit with the next dot of ours: behind the position, and behind those that wait. */
static struct unit *make_unit(struct local_writes *own, uint64_t stamp, int db,
                              struct slice commands) REQUIRES(keyspace_lock);
static inline struct unit *make_unit(struct local_writes *own, uint64_t stamp, int db,
                                     struct slice commands)
{
    uint64_t waiting = own->count - own->taken;
    uint64_t sequence = origins_at(own->origins, own->self)->position + waiting + 1;
    struct dot dot = dot_of(stamp, own->self, sequence);
    struct unit *unit = unit_create_sound(dot, db, commands);
    assert(own->self != 0);
    keyspace_has_work = true;
    if (own->head) {
        log_head_own(own->head, unit);
    }
    return unit;
}

static __attribute__((noinline)) void enqueue_unit(struct local_writes *own, struct unit *unit_take)
{
    if (own->count == own->capacity) {
        own->capacity = own->capacity ? 2 * own->capacity : 16;
        own->pending = mem_realloc(own->pending, own->capacity * sizeof(struct unit *));
    }
    own->pending[own->count++] = unit_take;
}

/* What is too long is told to nobody: see large_writes.h. */
static void enqueue_large(struct local_writes *own, int db, struct slice commands)
    REQUIRES(keyspace_lock);
static __attribute__((noinline)) void enqueue_large(struct local_writes *own, int db,
                                                    struct slice commands)
{
    struct buf keys = {0};
    large_write_put(commands, UNIT_BYTES_MAX, &keys);
    log_notice("A write of %zu bytes is longer than what is told to active replicas: they get %s",
               commands.len, keys.len > 0 ? "the whole data set" : "nothing of it");
    if (keys.len > 0) {
        struct unit *unit = make_unit(own, hlc_next(own->clock), db, buf_slice(&keys));
        unit->is_large = true;
        enqueue_unit(own, unit);
    }
    buf_deinit(&keys);
}

static void enqueue(struct local_writes *own, int db, struct slice commands)
    REQUIRES(keyspace_lock);
static void enqueue(struct local_writes *own, int db, struct slice commands)
{
    hlc_begin_hold(own->clock);
    if (likely(commands.len <= local_writes_bound)) {
        enqueue_unit(own, make_unit(own, hlc_next(own->clock), db, commands));
    } else {
        enqueue_large(own, db, commands);
    }
}

/* What one call did, which has ended: what it has touched is in the cache yet. */
static void put(struct local_writes *own, int db, struct slice commands) REQUIRES(keyspace_lock);
static inline void put(struct local_writes *own, int db, struct slice commands)
{
    if (unlikely(!own->take || own->count > own->taken || commands.len > local_writes_bound)) {
        enqueue(own, db, commands);
        return;
    }
    hlc_begin_hold(own->clock);
    struct unit *unit = make_unit(own, hlc_next(own->clock), db, commands);
    if (!own->take(own->context, unit)) {
        enqueue_unit(own, unit);
    }
}

void local_writes_tell(struct local_writes *own, int db, struct slice commands)
{
    assert(!own->open);
    enqueue(own, db, commands);
}

void local_writes_tell_state(struct local_writes *own, int db, struct slice commands)
{
    assert(!own->open);
    if (commands.len <= local_writes_bound) {
        enqueue_unit(own, make_unit(own, hlc_next_state(own->clock), db, commands));
    } else {
        enqueue_large(own, db, commands);
    }
}

uint64_t local_writes_last(const struct local_writes *own)
{
    return origins_at(own->origins, own->self)->position + own->count - own->taken;
}

struct unit *local_writes_take(struct local_writes *own)
{
    return take_first(own);
}

/* ---- the log ---- */

static __attribute__((noinline)) void close_unit(struct local_writes *own) REQUIRES(keyspace_lock)
{
    own->open = false;
    if (own->commands.len > 0) {
        enqueue(own, own->unit_db, buf_slice(&own->commands));
        own->units++;
        buf_clear(&own->commands);
    }
    own->db = -1;
}

static __attribute__((noinline)) void add(struct local_writes *own, int db, struct slice commands)
{
    int number = db - own->first_db;
    assert(number >= 0 && number < own->dbs);
    if (own->db < 0) {
        own->unit_db = number;
    } else if (own->db != number) {
        char text[PROPAGATE_NUMBER_BYTES];
        struct slice word = propagate_number(number, text);
        buf_printf(&own->commands, "*2\r\n$6\r\nSELECT\r\n$%zu\r\n%.*s\r\n", word.len,
                   (int)word.len, word.ptr);
    }
    own->db = number;
    buf_append_slice(&own->commands, commands);
}

static void on_told(int db, struct slice commands)
{
    static const struct slice multi = {"*1\r\n$5\r\nMULTI\r\n", 15};
    struct local_writes *own = told.attached;
    keyspace_assert_exclusive();
    if (!own || own->muted) {
        return;
    }
    if (db != PROPAGATE_ANY_DB && !own->open) {
        assert(db >= own->first_db && db < own->first_db + own->dbs);
        put(own, db - own->first_db, commands);
        own->units++;
    } else if (db != PROPAGATE_ANY_DB) {
        add(own, db, commands);
    } else if (slice_equal(commands, multi)) {
        own->open = true;
    } else {
        close_unit(own);
    }
}

/* KEYDB.EXPIRED key deadline [member]: gone for whoever has it with that deadline. */
static void put_expired(struct buf *out, struct slice key, int64_t at_ms)
{
    char text[PROPAGATE_NUMBER_BYTES];
    unit_put_word(out, SLICE("KEYDB.EXPIRED"));
    unit_put_word(out, key);
    unit_put_word(out, propagate_number(at_ms, text));
}

struct members_gone {
    struct slice key;
    struct buf out;
};

static void put_member(struct slice member, int64_t at_ms, void *context)
{
    struct members_gone *gone = context;
    buf_append_cstr(&gone->out, "*4\r\n");
    put_expired(&gone->out, gone->key, at_ms);
    unit_put_word(&gone->out, member);
}

/* Somebody who writes has found something gone because of its time: for the others it goes where
 * that stands in the order of writes, as it did here, unless they know of another deadline. */
static void on_expired(const struct expired *x)
{
    struct members_gone gone = {.key = x->key};
    keyspace_assert_exclusive();
    for (int i = 0; i < x->count; i++) {
        put_member(x->members[i], x->members_at_ms[i], &gone);
    }
    if (x->count == 0 && x->at_ms != ENTRY_NO_EXPIRY) {
        buf_append_cstr(&gone.out, "*3\r\n");
        put_expired(&gone.out, x->key, x->at_ms);
    } else if (x->count == 0 && member_ttl_count(x->entry) > EXPIRED_MEMBERS_MAX) {
        buf_append_cstr(&gone.out, "*2\r\n");
        unit_put_word(&gone.out, SLICE("DEL"));
        unit_put_word(&gone.out, x->key);
    } else if (x->count == 0) {
        member_ttl_each(x->entry, put_member, &gone);
    }
    propagate_commands_to_peers(x->db, buf_slice(&gone.out));
    buf_deinit(&gone.out);
}

void local_writes_setup(void)
{
    propagate_set_expired_listener(on_expired);
    told.log = propagate_register(PROPAGATE_TO_PEERS, on_told);
}

void local_writes_teardown(void)
{
    assert(!told.attached);
    propagate_set_expired_listener(NULL);
}

void local_writes_replay(void)
{
    assert(!told.attached);
    propagate_switch(told.log, true);
}

void local_writes_attach(struct local_writes *own)
{
    told.attached = own;
    propagate_switch(told.log, own != NULL);
}
