/* See delivery.h. */
#include "active/delivery.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "ds/radix.h"
#include "engine/execute.h"
#include "engine/parked.h"
#include "keyspace/waiting.h"
#include "active/delivery_back.h"
#include "active/views.h"
#include "value/type.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define ARENA_BYTES ((size_t)4096)
#define NODE_CHARS 32
/* Calls of other nodes that wait here at most; what is told beyond is not heard. */
#define GUESTS_MAX 1000000
/* A guest's name in the table: its node, and its number there, so that a node's stand together. */
#define GUEST_KEY_BYTES (ORIGIN_NODE_BYTES + sizeof(uint64_t))

/* A call of our client. */
struct host {
    struct parked_call *parked;
    bool told;
};

/* A call of another node's client, which waits here as well. */
struct guest {
    struct parked_call *parked;
    char key[GUEST_KEY_BYTES];
    struct guest *next; /* in the list of those that are done */
};

static struct {
    struct node *node;  /* NULL: none */
    struct radix hosts; /* by number: struct host */
    uint64_t last_number;
    struct radix guests; /* by GUEST_KEY: struct guest */
    struct guest *done;
    bool inviting;              /* a guest is put into the queues */
    struct session sessions[2]; /* of guests, by protocol */
    struct arena arena;
    struct buf back; /* writes that put back: database, words, then length and bytes of each */
} it;

/* ---- small things ---- */

static int64_t mono_ms(void)
{
    return (int64_t)(clock_mono_us() / 1000);
}

static struct slice number_key(uint64_t number, char key[sizeof(uint64_t)])
{
    for (size_t i = 0; i < sizeof(uint64_t); i++) {
        key[i] = (char)(number >> (56 - 8 * i));
    }
    return slice_of(key, sizeof(uint64_t));
}

static const uint8_t *node_of(uint16_t origin)
{
    return origins_at(node_origins(it.node), origin)->id.node;
}

static struct slice node_text(const uint8_t node[ORIGIN_NODE_BYTES], char text[ORIGIN_CHARS])
{
    struct origin_id id = {.epoch = 0};
    memcpy(id.node, node, ORIGIN_NODE_BYTES);
    origin_format(&id, text);
    return slice_of(text, NODE_CHARS);
}

static void tell(struct buf *unit) REQUIRES(keyspace_lock);
static void tell(struct buf *unit)
{
    local_writes_tell(node_own(it.node), 0, buf_slice(unit));
    keyspace_has_work = true;
    buf_deinit(unit);
}

/* ---- our clients ---- */

static bool is_elsewhere(const struct db *db, struct slice key)
{
    keyspace_assert_exclusive();
    return it.node && !views_is_home(db->id, key);
}

static void tell_waiting(struct host *h, uint64_t number) REQUIRES(keyspace_lock);
static void tell_waiting(struct host *h, uint64_t number)
{
    struct buf unit = {0};
    struct parked_facts f = parked_look(h->parked);
    h->told = true;
    buf_printf(&unit, "*%d\r\n", f.argc + 4);
    unit_put_word(&unit, SLICE("KEYDB.WAIT"));
    unit_put_number(&unit, number);
    unit_put_number(&unit, (uint64_t)f.db->id);
    unit_put_number(&unit, (uint64_t)f.proto);
    for (int i = 0; i < f.argc; i++) {
        unit_put_word(&unit, f.argv[i]);
    }
    tell(&unit);
}

static bool waits_elsewhere(const struct parked_facts *f)
{
    for (int k = 0; k < f->key_count; k++) {
        if (is_elsewhere(f->db, f->keys[k].name)) {
            return true;
        }
    }
    return false;
}

static void on_begun(struct parked_call *p)
{
    char key[sizeof(uint64_t)];
    keyspace_assert_exclusive();
    if (!it.node || it.inviting) {
        return;
    }
    struct host *h = mem_alloc(sizeof(*h));
    struct parked_facts f = parked_look(p);
    *h = (struct host){.parked = p};
    parked_set_number(p, ++it.last_number);
    radix_insert(&it.hosts, number_key(it.last_number, key), h);
    if (waits_elsewhere(&f)) {
        tell_waiting(h, it.last_number);
    }
}

static void on_ended(struct parked_call *p)
{
    char key[sizeof(uint64_t)];
    struct buf unit = {0};
    keyspace_assert_exclusive();
    struct host *h = radix_remove(&it.hosts, number_key(parked_number(p), key));
    assert(h && h->parked == p);
    if (h->told && it.node) {
        buf_append_cstr(&unit, "*2\r\n");
        unit_put_word(&unit, SLICE("KEYDB.UNWAIT"));
        unit_put_number(&unit, parked_number(p));
        tell(&unit);
    }
    parked_set_number(p, 0);
    mem_free(h);
}

/* Of those who wait for keys of other homes; all of them, when views have changed. */
static void tell_all_waiting(void) REQUIRES(keyspace_lock);
static void tell_all_waiting(void)
{
    struct radix_cursor at = radix_first(&it.hosts);
    for (; views_know_others() && radix_cursor_valid(&at); radix_cursor_next(&at)) {
        struct host *h = radix_cursor_value(&at);
        tell_waiting(h, parked_number(h->parked));
    }
}

/* ---- guests ---- */

static void guest_key(const uint8_t node[ORIGIN_NODE_BYTES], uint64_t number,
                      char key[GUEST_KEY_BYTES])
{
    memcpy(key, node, ORIGIN_NODE_BYTES);
    number_key(number, key + ORIGIN_NODE_BYTES);
}

/* It is in no table any more. */
static void see_off(struct guest *g)
{
    g->next = it.done;
    it.done = g;
}

static void free_done(void)
{
    while (it.done) {
        struct guest *g = it.done;
        it.done = g->next;
        parked_destroy(&g->parked);
        mem_free(g);
    }
}

static void drop_guest(struct guest *g) REQUIRES(keyspace_lock);
static void drop_guest(struct guest *g)
{
    parked_end(g->parked, PARKED_GONE);
    see_off(g);
}

static uint64_t guest_number(const struct guest *g)
{
    uint64_t number = 0;
    for (size_t i = ORIGIN_NODE_BYTES; i < GUEST_KEY_BYTES; i++) {
        number = number << 8 | (uint8_t)g->key[i];
    }
    return number;
}

/* It is served: its node gets the reply. */
static void on_served(struct parked_call *p, void *owner)
{
    struct guest *g = owner;
    char text[ORIGIN_CHARS];
    struct parked_facts f = parked_look(p);
    const struct reply *r = parked_reply(p);
    struct buf unit = {0}, bytes = {0}, back = {0};
    keyspace_assert_exclusive();
    for (uint32_t i = 0; i < r->piece_count; i++) {
        buf_append(&bytes, r->pieces[i].ptr, r->pieces[i].len);
    }
    int words = delivery_put_back(f.argc, f.argv, buf_slice(&bytes), &back);
    buf_printf(&unit, "*%d\r\n", 5 + words);
    unit_put_word(&unit, SLICE("KEYDB.GIVE"));
    unit_put_word(&unit, node_text((const uint8_t *)g->key, text));
    unit_put_number(&unit, guest_number(g));
    unit_put_number(&unit, (uint64_t)f.db->id);
    unit_put_word(&unit, buf_slice(&bytes));
    buf_append_slice(&unit, buf_slice(&back));
    tell(&unit);
    if (words > 0) {
        views_gave((const uint8_t *)g->key, f.db->id, words, buf_slice(&back));
    }
    buf_deinit(&bytes);
    buf_deinit(&back);
    radix_remove(&it.guests, slice_of(g->key, sizeof(g->key)));
    see_off(g);
}

/* What a command that takes things waits for. */
static bool block_of(const struct call *c, struct block *b)
{
    static const struct {
        const char *name;
        enum value_type type;
        bool first_key_only, when_gone;
    } rows[] = {
        {"blpop", VALUE_LIST, false, false},       {"brpop", VALUE_LIST, false, false},
        {"blmpop", VALUE_LIST, false, false},      {"blmove", VALUE_LIST, true, false},
        {"brpoplpush", VALUE_LIST, true, false},   {"bzpopmin", VALUE_ZSET, false, false},
        {"bzpopmax", VALUE_ZSET, false, false},    {"bzmpop", VALUE_ZSET, false, false},
        {"xreadgroup", VALUE_STREAM, false, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (slice_equal_nocase(c->argv[0], rows[i].name)) {
            *b = (struct block){.key_count = rows[i].first_key_only ? 1 : c->key_count,
                                .type = rows[i].type,
                                .when_gone = rows[i].when_gone};
            return c->key_count > 0;
        }
    }
    return false;
}

static void enter_guest(struct guest *g, struct call *c, const struct block *b)
    REQUIRES(keyspace_lock);
static void enter_guest(struct guest *g, struct call *c, const struct block *b)
{
    g->parked = parked_create(c, b);
    it.inviting = true;
    parked_enqueue(g->parked, on_served, g);
    it.inviting = false;
    radix_insert(&it.guests, slice_of(g->key, sizeof(g->key)), g);
    for (int k = 0; k < b->key_count; k++) {
        waiting_mark(c->db, c->keys[k].name); /* tried at the end of the hold */
    }
}

/* KEYDB.WAIT number db protocol word ...: told again, it is the same. */
static void invite(const uint8_t node[ORIGIN_NODE_BYTES], int argc, const struct slice *argv)
    REQUIRES(keyspace_lock);
static void invite(const uint8_t node[ORIGIN_NODE_BYTES], int argc, const struct slice *argv)
{
    uint64_t number, db, proto;
    struct block b;
    char key[GUEST_KEY_BYTES];
    if (argc < 5 || !num_parse_u64(argv[1], &number) || !num_parse_u64(argv[2], &db) ||
        !num_parse_u64(argv[3], &proto) || db >= (uint64_t)db_count() || proto < 2 || proto > 3 ||
        it.guests.count >= GUESTS_MAX) {
        return;
    }
    if (!views_has(node)) {
        return; /* of a time when we were cut off: it is told again when all agree */
    }
    guest_key(node, number, key);
    if (radix_find(&it.guests, slice_of(key, sizeof(key)))) {
        return;
    }
    struct session *session = &it.sessions[proto - 2];
    struct slice *words = arena_alloc(&it.arena, (size_t)(argc - 4) * sizeof(*words));
    memcpy(words, argv + 4, (size_t)(argc - 4) * sizeof(*words));
    session->db_index = (int)db;
    struct call c = {.argc = argc - 4, .argv = words, .session = session};
    call_prepare(&c, &it.arena);
    if (!c.refusal.ptr && block_of(&c, &b)) {
        struct guest *g = mem_alloc(sizeof(*g));
        *g = (struct guest){.parked = NULL};
        memcpy(g->key, key, sizeof(key));
        enter_guest(g, &c, &b);
    }
    arena_reset(&it.arena);
}

static void dismiss(const uint8_t node[ORIGIN_NODE_BYTES], struct slice text)
    REQUIRES(keyspace_lock);
static void dismiss(const uint8_t node[ORIGIN_NODE_BYTES], struct slice text)
{
    uint64_t number;
    char key[GUEST_KEY_BYTES];
    if (num_parse_u64(text, &number)) {
        guest_key(node, number, key);
        struct guest *g = radix_remove(&it.guests, slice_of(key, sizeof(key)));
        if (g) {
            drop_guest(g);
        }
    }
}

/* Those of a node, or (NULL) of all that are no members. */
static void dismiss_all(const uint8_t *node) REQUIRES(keyspace_lock);
static void dismiss_all(const uint8_t *node)
{
    struct radix_cursor at = radix_first(&it.guests);
    while (radix_cursor_valid(&at)) {
        struct guest *g = radix_cursor_value(&at);
        const uint8_t *its = (const uint8_t *)g->key;
        bool goes = node ? memcmp(its, node, ORIGIN_NODE_BYTES) == 0 : !views_has(its);
        if (goes) {
            radix_remove_at(&it.guests, &at);
            drop_guest(g);
        } else {
            radix_cursor_next(&at);
        }
    }
}

/* ---- what we are given ---- */

static void keep_back(uint64_t db, int argc, const struct slice *argv)
{
    uint32_t head[2] = {(uint32_t)db, (uint32_t)argc};
    if (db >= (uint64_t)db_count() || !delivery_is_back(argc, argv)) {
        return;
    }
    buf_append(&it.back, (const char *)head, sizeof(head));
    for (int i = 0; i < argc; i++) {
        uint32_t len = (uint32_t)argv[i].len;
        buf_append(&it.back, (const char *)&len, sizeof(len));
        buf_append_slice(&it.back, argv[i]);
    }
}

/* Writes, each behind the number of its words. */
static void keep_all_back(uint64_t db, int argc, const struct slice *argv)
{
    uint64_t words;
    while (argc > 1 && num_parse_u64(argv[0], &words) && words > 0 && words < (uint64_t)argc) {
        keep_back(db, (int)words, argv + 1);
        argc -= (int)words + 1;
        argv += words + 1;
    }
}

/* The same of words as they stand in a request, so many. */
static void keep_text_back(int db, int words, struct slice text)
{
    struct slice *argv = mem_alloc((size_t)words * sizeof(*argv));
    int argc = 0;
    while (argc < words && delivery_back_next(&text, &argv[argc])) {
        argc++;
    }
    assert(argc == words); /* we have written it, or looked at it when it was read */
    keep_all_back((uint64_t)db, argc, argv);
    mem_free(argv);
}

/* KEYDB.GIVE node number db reply [count word ...] ... */
static void take(int argc, const struct slice *argv) REQUIRES(keyspace_lock);
static void take(int argc, const struct slice *argv)
{
    uint64_t number, db;
    char text[ORIGIN_CHARS], key[sizeof(uint64_t)];
    if (argc < 5 || !num_parse_u64(argv[2], &number) || !num_parse_u64(argv[3], &db) ||
        !slice_equal(argv[1], node_text(node_id(it.node), text))) {
        return;
    }
    struct host *h = radix_find(&it.hosts, number_key(number, key));
    if (h) {
        parked_give(h->parked, argv[4]);
    } else {
        keep_all_back(db, argc - 5, argv + 5); /* written behind this unit */
    }
}

static uint32_t take_u32(const struct buf *b, size_t *at)
{
    uint32_t number;
    memcpy(&number, b->data + *at, sizeof(number));
    *at += sizeof(number);
    return number;
}

/* In the hold of the unit that said so: that is not heard a second time when we have ended. */
static void put_back(void)
{
    struct buf writes = it.back;
    keyspace_assert_exclusive();
    if (!it.node || writes.len == 0) {
        return;
    }
    it.back = (struct buf){0};
    views_note_put_back();
    for (size_t at = 0; at < writes.len;) {
        int db = (int)take_u32(&writes, &at), argc = (int)take_u32(&writes, &at);
        struct slice *argv = mem_alloc((size_t)argc * sizeof(*argv));
        for (int i = 0; i < argc; i++) {
            uint32_t len = take_u32(&writes, &at);
            argv[i] = slice_of(writes.data + at, len);
            at += len;
        }
        node_run_own(it.node, db, argc, argv);
        mem_free(argv);
    }
    buf_deinit(&writes);
}

/* ---- what peers say ---- */

static bool on_words(struct dot unit, int argc, const struct slice *argv)
{
    uint16_t origin = dot_origin(unit);
    keyspace_assert_exclusive();
    if (!it.node) {
        return true;
    }
    if (slice_equal_nocase(argv[0], "keydb.give")) {
        take(argc, argv); /* in whichever of its lives: it was taken from the key then */
        return true;
    }
    const uint8_t *node = node_of(origin);
    enum views_life life = views_life_of(origin);
    if (life == VIEWS_LIFE_OVER) {
        return true;
    }
    if (life == VIEWS_LIFE_NEW) {
        dismiss_all(node);
    }
    if (slice_equal_nocase(argv[0], "keydb.view")) {
        views_hear(node, unit.stamp, argc, argv, mono_ms(), keep_text_back);
    } else if (slice_equal_nocase(argv[0], "keydb.wait")) {
        invite(node, argc, argv);
    } else if (slice_equal_nocase(argv[0], "keydb.unwait") && argc == 2) {
        dismiss(node, argv[1]);
    }
    return true;
}

/* ---- time ---- */

static void mark_all(void) REQUIRES(keyspace_lock);
static void mark_all(void)
{
    for (int i = 0; i < db_count(); i++) {
        waiting_note_change(db_at(i), (struct slice){NULL, 0});
    }
}

/* What follows for those who wait. */
static void follow_views(struct views_news news) REQUIRES(keyspace_lock);
static void follow_views(struct views_news news)
{
    if (news.changed) {
        dismiss_all(NULL);
    }
    if (news.differs) {
        mark_all();
        if (news.settled) {
            tell_all_waiting();
        }
    }
}

static void on_missed(const struct version_vector *before)
{
    struct views_news news;
    keyspace_assert_exclusive();
    if (it.node && views_missed(before, mono_ms(), &news)) {
        follow_views(news);
    }
}

void delivery_tick(bool linked, int64_t now_ms)
{
    if (!it.node) {
        return;
    }
    follow_views(views_look(linked, now_ms));
    free_done();
}

/* ---- life ---- */

static const struct parked_peers hooks = {is_elsewhere, on_begun, on_ended};

void delivery_begin(struct node *n)
{
    it.node = n;
    /* Above all numbers of this node's former lives: what was given to their clients may come yet.
     */
    it.last_number = origins_at(node_origins(n), node_self(n))->id.epoch;
    views_begin(n, it.last_number, mono_ms());
    radix_init(&it.hosts);
    radix_init(&it.guests);
    arena_init(&it.arena, ARENA_BYTES);
    for (int i = 0; i < 2; i++) {
        session_init_internal(&it.sessions[i]);
        it.sessions[i].proto = 2 + i;
    }
    node_hear(n, on_words, put_back);
    node_hear_missed(n, on_missed);
    parked_peers = &hooks;
}

static void free_host(void *value, void *context)
{
    (void)context;
    mem_free(value);
}

void delivery_end(void)
{
    if (!it.node) {
        return;
    }
    keyspace_lock_exclusive();
    struct radix_cursor at = radix_first(&it.guests);
    while (radix_cursor_valid(&at)) {
        drop_guest(radix_remove_at(&it.guests, &at));
    }
    free_done();
    for (at = radix_first(&it.hosts); radix_cursor_valid(&at); radix_cursor_next(&at)) {
        const struct host *h = radix_cursor_value(&at);
        parked_set_number(h->parked, 0); /* it waits on, as a call of a server without peers */
    }
    keyspace_unlock_exclusive();
    parked_peers = NULL;
    it.node = NULL;
    radix_deinit(&it.guests, NULL, NULL);
    radix_deinit(&it.hosts, free_host, NULL);
    views_end();
    arena_deinit(&it.arena);
    session_deinit(&it.sessions[0]);
    session_deinit(&it.sessions[1]);
    buf_deinit(&it.back);
}

void delivery_write_info(struct buf *out)
{
    views_write_info(out);
    buf_printf(out, "active_waiting_guests:%" PRIu64 "\r\n",
               (uint64_t)(it.node ? it.guests.count : 0));
}
