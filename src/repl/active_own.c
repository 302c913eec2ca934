/* See active_own.h. */
#include "repl/active_own.h"

#include "base/mem.h"
#include "engine/propagate.h"

#include <assert.h>
#include <string.h>

static struct {
    struct active_own *attached;
    int log; /* the door's number for us */
} told;

void active_own_init(struct active_own *own, const struct active_origins *origins,
                     struct active_clock *clock, int first_db, int dbs)
{
    *own = (struct active_own){
        .origins = origins, .clock = clock, .first_db = first_db, .dbs = dbs, .db = -1};
}

static struct active_unit *take_first(struct active_own *own)
{
    if (own->taken == own->count) {
        own->taken = own->count = 0;
        return NULL;
    }
    return own->pending[own->taken++];
}

void active_own_deinit(struct active_own *own)
{
    assert(told.attached != own);
    for (struct active_unit *u = take_first(own); u; u = take_first(own)) {
        active_unit_release(u);
    }
    mem_free(own->pending);
    buf_deinit(&own->commands);
}

/* The unit's dot is the next one of ours: behind the position, and behind those that wait. */
static void enqueue(struct active_own *own, int db, struct slice commands) REQUIRES(keyspace_lock);
static void enqueue(struct active_own *own, int db, struct slice commands)
{
    uint64_t waiting = own->count - own->taken;
    uint64_t sequence = active_origins_at(own->origins, own->self)->position + waiting + 1;
    struct active_dot dot = active_dot_of(active_clock_next(own->clock), own->self, sequence);
    struct active_unit *unit = active_unit_create(dot, db, commands);
    assert(own->self != 0 && unit != NULL);
    if (own->count == own->capacity) {
        own->capacity = own->capacity ? 2 * own->capacity : 16;
        own->pending = mem_realloc(own->pending, own->capacity * sizeof(struct active_unit *));
    }
    own->pending[own->count++] = unit;
    own->units++;
    keyspace_has_work = true;
    if (own->head) {
        active_head_own(own->head, unit);
    }
}

void active_own_tell(struct active_own *own, int db, struct slice commands)
{
    assert(!own->open);
    enqueue(own, db, commands);
}

uint64_t active_own_last(const struct active_own *own)
{
    return active_origins_at(own->origins, own->self)->position + own->count - own->taken;
}

struct active_unit *active_own_take(struct active_own *own)
{
    return take_first(own);
}

/* ---- the log ---- */

static void close_unit(struct active_own *own) REQUIRES(keyspace_lock)
{
    own->open = false;
    if (own->commands.len > 0) {
        enqueue(own, own->unit_db, buf_slice(&own->commands));
        buf_clear(&own->commands);
    }
    own->db = -1;
}

static void add(struct active_own *own, int db, struct slice commands)
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
    struct active_own *own = told.attached;
    keyspace_assert_exclusive();
    if (!own || own->muted) {
        return;
    }
    if (db != PROPAGATE_ANY_DB) {
        add(own, db, commands);
        if (!own->open) {
            close_unit(own);
        }
    } else if (slice_equal(commands, multi)) {
        own->open = true;
    } else {
        close_unit(own);
    }
}

/* Somebody who writes has found something gone because of its time: for the others it goes where
 * that stands in the order of writes, as it did here. */
static void on_expired(const struct db *db, struct slice key, enum value_type type,
                       const struct slice *members, int count, bool due UNUSED)
{
    static const char *const removals[VALUE_TYPE_COUNT] = {
        [VALUE_HASH] = "HDEL", [VALUE_SET] = "SREM", [VALUE_ZSET] = "ZREM"};
    keyspace_assert_exclusive();
    if (count == 0) {
        propagate_command_to_peers(db, 2, (const struct slice[]){SLICE("DEL"), key});
        return;
    }
    struct slice *words = mem_alloc(((size_t)count + 2) * sizeof(*words));
    words[0] = slice_cstr(removals[type]);
    words[1] = key;
    memcpy(words + 2, members, (size_t)count * sizeof(*words));
    propagate_command_to_peers(db, count + 2, words);
    mem_free(words);
}

void active_own_setup(void)
{
    propagate_set_expired_listener(on_expired);
    told.log = propagate_register(PROPAGATE_TO_PEERS, on_told);
}

void active_own_teardown(void)
{
    assert(!told.attached);
    propagate_set_expired_listener(NULL);
}

void active_own_replay(void)
{
    assert(!told.attached);
    propagate_switch(told.log, true);
}

void active_own_attach(struct active_own *own)
{
    told.attached = own;
    propagate_switch(told.log, own != NULL);
}
