/* See backlog.h. */
#include "repl/backlog.h"

#include "base/num.h"
#include "base/rand.h"
#include "engine/propagate.h"
#include "engine/shutdown.h"
#include "keyspace/evict.h"
#include "net/feed.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define NO_DB (-2)

#define RESERVE_NAME "temp-repl-backlog.reserve"

int64_t backlog_size_bytes, backlog_reserve_bytes;

static struct {
    int log; /* propagate.h's number */
    bool on;
    int hushed; /* how many want it quiet */
    struct chain chain;
    struct reserve *reserve;   /* of the chain, from the first one on; NULL: none */
    struct chain_reader first; /* where what is kept begins */
    bool own;                  /* the writes here are the stream */
    int stream_db;             /* that the stream is for; NO_DB: to be told (own) */
    char id[REPL_ID_LEN + 1], second_id[REPL_ID_LEN + 1];
    int64_t second_end;
    _Atomic uint64_t offset;
} backlog = {.second_end = -1};

static void clear_second_id(void)
{
    memset(backlog.second_id, '0', REPL_ID_LEN);
    backlog.second_id[REPL_ID_LEN] = '\0';
    backlog.second_end = -1;
}

static void new_id(void)
{
    rand_hex(backlog.id, REPL_ID_LEN);
    backlog.id[REPL_ID_LEN] = '\0';
    clear_second_id();
}

/* Drops whole blocks from the front while enough is kept without them. */
static void trim(void)
{
    while (backlog.chain.end - backlog.first.block->start >=
           (uint64_t)backlog_size_bytes + CHAIN_BLOCK_BYTES) {
        uint64_t next = backlog.first.block->start + CHAIN_BLOCK_BYTES;
        chain_reader_advance(&backlog.first, next - backlog.first.position);
    }
}

/* Memory that the backlog may take by itself: what it keeps, a block that is being filled, and one
 * at each end that is kept for a part of it. */
static size_t own_bytes(void)
{
    return ((size_t)backlog_size_bytes / CHAIN_BLOCK_BYTES + 3) * sizeof(struct chain_block);
}

uint64_t backlog_kept_most_bytes(void)
{
    return (uint64_t)own_bytes();
}

size_t backlog_readers_bytes(void)
{
    size_t all = chain_memory_bytes(), own = own_bytes();
    return all > own ? all - own : 0;
}

static void append(struct slice bytes)
{
    chain_append(&backlog.chain, bytes);
    if (backlog.reserve) {
        reserve_note(backlog.reserve, &backlog.chain);
    }
    atomic_store_explicit(&backlog.offset, backlog.chain.end, memory_order_relaxed);
    trim();
}

static void select_db(int db)
{
    char number[NUM_I64_MAX_CHARS + 1], text[64];
    size_t digits = num_format_i64(number, db);
    number[digits] = '\0';
    int len = snprintf(text, sizeof(text), "*2\r\n$6\r\nSELECT\r\n$%zu\r\n%s\r\n", digits, number);
    append(slice_of(text, (size_t)len));
    backlog.stream_db = db;
}

/* The door's: see propagate.h. */
static void on_commands(int db, struct slice commands)
{
    keyspace_assert_exclusive();
    if (db != PROPAGATE_ANY_DB && db != backlog.stream_db) {
        select_db(db);
    }
    append(commands);
    feeds_wake();
}

void backlog_setup(void)
{
    evict_exempt(backlog_readers_bytes);
    backlog.log = propagate_register(PROPAGATE_TO_REPLICAS, on_commands);
    new_id();
}

static void drop_chain(void)
{
    if (backlog.on) {
        if (backlog.reserve) {
            reserve_leave(backlog.reserve);
        }
        chain_reader_drop(&backlog.first);
        chain_deinit(&backlog.chain);
        backlog.on = false;
    }
}

void backlog_teardown(void)
{
    drop_chain();
    reserve_destroy(&backlog.reserve);
}

bool backlog_is_on(void)
{
    return backlog.on;
}

/* An empty backlog that begins at `offset`. */
static void begin_at(uint64_t offset)
{
    drop_chain();
    backlog.offset = offset;
    chain_init(&backlog.chain, offset);
    chain_reader_at_end(&backlog.first, &backlog.chain);
    backlog.on = true;
    if (!backlog.reserve && backlog_reserve_bytes > 0) {
        backlog.reserve = reserve_create(RESERVE_NAME, (uint64_t)backlog_reserve_bytes);
    }
    if (backlog.reserve) {
        reserve_follow(backlog.reserve, &backlog.chain);
    }
}

/* Begins or ends making a stream of the writes here, which names its database anew. */
static void set_own(bool own) REQUIRES(keyspace_lock);
static void set_own(bool own)
{
    propagate_switch(backlog.log, own); /* a unit that ends by it is still of the old stream */
    backlog.own = own;
    backlog.stream_db = own ? NO_DB : backlog_stream_db();
}

void backlog_turn_on(void)
{
    if (backlog.on) {
        return;
    }
    new_id();
    begin_at(backlog.offset);
    set_own(true);
}

void backlog_turn_off(void)
{
    if (!backlog.on) {
        return;
    }
    set_own(false);
    drop_chain();
    new_id();
}

void backlog_follow(struct slice id, uint64_t offset, int db)
{
    assert(id.len == REPL_ID_LEN);
    memcpy(backlog.id, id.ptr, REPL_ID_LEN);
    clear_second_id();
    begin_at(offset);
    set_own(false);
    backlog.stream_db = db;
}

void backlog_continue(struct slice id, uint64_t offset)
{
    char next[REPL_ID_LEN];
    backlog_follow(id, offset, 0);
    rand_hex(next, REPL_ID_LEN);
    backlog_rename(slice_of(next, REPL_ID_LEN));
    set_own(true);
}

int backlog_stream_db(void)
{
    return backlog.stream_db == NO_DB ? 0 : backlog.stream_db;
}

void backlog_forward(struct slice bytes, int db)
{
    assert(backlog.on);
    backlog.stream_db = db;
    append(bytes);
    feeds_wake();
}

void backlog_cease(void)
{
    set_own(false);
}

void backlog_rename(struct slice id)
{
    assert(id.len == REPL_ID_LEN);
    memcpy(backlog.second_id, backlog.id, sizeof(backlog.id));
    backlog.second_end = (int64_t)backlog.offset;
    memcpy(backlog.id, id.ptr, REPL_ID_LEN);
}

void backlog_forget_id(void)
{
    new_id();
}

void backlog_forget_kept(void)
{
    if (backlog.on) {
        chain_reader_drop(&backlog.first);
        chain_reader_at_end(&backlog.first, &backlog.chain);
        if (backlog.reserve) {
            reserve_hide(backlog.reserve, &backlog.chain);
        }
    }
}

void backlog_promote(void)
{
    char id[REPL_ID_LEN];
    if (!backlog.on) {
        new_id();
        return;
    }
    rand_hex(id, REPL_ID_LEN);
    backlog_rename(slice_of(id, REPL_ID_LEN));
    set_own(true);
}

void backlog_tell(struct slice command)
{
    unsigned flags;
    assert(backlog.on);
    if (backlog.own && backlog.hushed == 0 && !shutdown_requested(&flags)) {
        on_commands(PROPAGATE_ANY_DB, command);
    }
}

void backlog_hush(bool quiet)
{
    backlog.hushed += quiet ? 1 : -1;
    assert(backlog.hushed >= 0);
}

void backlog_begin_reader(struct chain_reader *reader)
{
    assert(backlog.on);
    backlog.stream_db = backlog.own ? NO_DB : backlog.stream_db;
    chain_reader_at_end(reader, &backlog.chain);
}

enum backlog_resume backlog_resume(struct slice id, uint64_t offset, struct chain_reader *reader,
                                   struct reserve_place *place)
{
    bool ours = slice_equal(id, slice_cstr(backlog.id));
    bool seconds = backlog.second_end >= 0 && slice_equal(id, slice_cstr(backlog.second_id)) &&
                   offset <= (uint64_t)backlog.second_end;
    if (!ours && !seconds) {
        return BACKLOG_FOREIGN_ID;
    }
    if (!backlog.on || offset > backlog.chain.end) {
        return BACKLOG_OUT_OF_RANGE;
    }
    if (offset >= backlog.first.position) {
        chain_reader_at(reader, &backlog.first, offset);
        return BACKLOG_RESUMED;
    }
    return backlog.reserve && reserve_place_at(backlog.reserve, offset, place)
               ? BACKLOG_RESUMED_ON_DISK
               : BACKLOG_OUT_OF_RANGE;
}

bool backlog_reach(const struct reserve_place *place, struct chain_reader *reader)
{
    if (!backlog.on || place->position < backlog.first.position ||
        !reserve_is_of_now(backlog.reserve, place)) {
        return false; /* not yet, or it is another history by now: reading finds that out */
    }
    chain_reader_at(reader, &backlog.first, place->position);
    return true;
}

ssize_t backlog_read_reserve(struct reserve_place *place, char *into, size_t max)
{
    return reserve_read(backlog.reserve, place, into, max);
}

bool backlog_look_at_reserve(struct reserve_facts *facts)
{
    if (backlog.reserve) {
        reserve_look(backlog.reserve, facts);
    }
    return backlog.reserve != NULL;
}

const char *backlog_id(void)
{
    return backlog.id;
}

const char *backlog_second_id(void)
{
    return backlog.second_id;
}

int64_t backlog_second_end(void)
{
    return backlog.second_end;
}

uint64_t backlog_offset(void)
{
    return atomic_load_explicit(&backlog.offset, memory_order_relaxed);
}

uint64_t backlog_kept_bytes(void)
{
    return backlog.on ? backlog.chain.end - backlog.first.position : 0;
}
