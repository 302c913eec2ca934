/* See local_writes.h. */
#include "active/local_writes.h"

#include "base/mem.h"
#include "engine/propagate.h"

#include <assert.h>
#include <string.h>

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

/* The unit's dot is the next one of ours: behind the position, and behind those that wait. */
static void enqueue(struct local_writes *own, int db, struct slice commands)
    REQUIRES(keyspace_lock);
static void enqueue(struct local_writes *own, int db, struct slice commands)
{
    uint64_t waiting = own->count - own->taken;
    uint64_t sequence = origins_at(own->origins, own->self)->position + waiting + 1;
    struct dot dot = dot_of(hlc_next(own->clock), own->self, sequence);
    struct unit *unit = unit_create(dot, db, commands);
    assert(own->self != 0 && unit != NULL);
    if (own->count == own->capacity) {
        own->capacity = own->capacity ? 2 * own->capacity : 16;
        own->pending = mem_realloc(own->pending, own->capacity * sizeof(struct unit *));
    }
    own->pending[own->count++] = unit;
    keyspace_has_work = true;
    if (own->head) {
        log_head_own(own->head, unit);
    }
}

void local_writes_tell(struct local_writes *own, int db, struct slice commands)
{
    assert(!own->open);
    enqueue(own, db, commands);
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

static void close_unit(struct local_writes *own) REQUIRES(keyspace_lock)
{
    own->open = false;
    if (own->commands.len > 0) {
        enqueue(own, own->unit_db, buf_slice(&own->commands));
        own->units++;
        buf_clear(&own->commands);
    }
    own->db = -1;
}

static void add(struct local_writes *own, int db, struct slice commands)
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
