/* See propagate.h. Commands are put into the request protocol here, once for all logs, in a buffer
 * that is used again. For each log the first command of a unit is held back until a second one
 * comes: one alone needs no MULTI. */
#include "engine/propagate.h"

#include "base/mem.h"
#include "base/num.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "value/module.h"

#include <assert.h>
#include <stdatomic.h>

#define LOGS_MAX 4
/* Where messages go: they are no data, a file has no use for them. */
#define PROPAGATE_TO_NODES (PROPAGATE_TO_REPLICAS | PROPAGATE_TO_PEERS)
/* A buffer that has become larger than this is not kept. */
#define KEPT_BYTES ((size_t)64 * 1024)
/* Entries between two looks at where the walk of a database is. */
#define SCANNED_AT_ONCE 1024
/* "*" or "$", a number, and the end of the line. */
#define HEAD_BYTES 24

bool propagate_on, propagate_peers;

struct log {
    propagate_listener listener;
    unsigned target;
    bool on;
    /* Of the unit that is open: */
    uint64_t told;  /* commands for it so far */
    int first_db;   /* whose first command that is held back is for */
    size_t at, len; /* where in door.held that is */
};

static struct {
    struct log logs[LOGS_MAX];
    int count;
    unsigned aim; /* who gets what calls do */
    struct buf scratch;
    int depth;       /* of the unit that is open */
    struct buf held; /* first commands of it */
    bool emptied;    /* the call took the last element of what had a deadline: */
    int emptied_db;
    struct buf emptied_key;
    expire_listener expired;
    void (*write_payload)(struct buf *out, const struct entry *e);
    void (*unit_ended)(void);
    _Atomic bool wants_messages; /* some log that leads to a node is on */
} door = {.aim = PROPAGATE_TO_ALL};

int propagate_register(unsigned target, propagate_listener listener)
{
    assert(door.count < LOGS_MAX);
    door.logs[door.count] = (struct log){.listener = listener, .target = target};
    return door.count++;
}

void propagate_aim(unsigned targets)
{
    door.aim = targets;
}

unsigned propagate_aimed(void)
{
    return door.aim;
}

/* ---- the protocol ---- */

/* May write up to HEAD_BYTES, whatever the length. Numbers are short, nearly always: a call and
 * its loop would cost more than the rest. */
static ALWAYS_INLINE char *put_head(char *at, char kind, uint64_t number)
{
    at[0] = kind;
    if (likely(number < 10)) {
        at[1] = (char)('0' + number);
        memcpy(at + 2, "\r\n", 2);
        return at + 4;
    }
    if (likely(number < 100)) {
        at[1] = (char)('0' + number / 10);
        at[2] = (char)('0' + number % 10);
        memcpy(at + 3, "\r\n", 2);
        return at + 5;
    }
    at++;
    at += num_format_u64(at, number);
    memcpy(at, "\r\n", 2);
    return at + 2;
}

static ALWAYS_INLINE char *put_word(char *at, struct slice word)
{
    at = put_head(at, '$', word.len);
    if (word.len > 0) {
        memcpy(at, word.ptr, word.len);
        at += word.len;
    }
    memcpy(at, "\r\n", 2);
    return at + 2;
}

static ALWAYS_INLINE void encode(struct buf *out, int argc, const struct slice *argv)
{
    size_t bytes = HEAD_BYTES;
    for (int i = 0; i < argc; i++) {
        bytes += argv[i].len + HEAD_BYTES + 2;
    }
    char *begin = buf_reserve(out, bytes), *at = put_head(begin, '*', (uint64_t)argc);
    for (int i = 0; i < argc; i++) {
        at = put_word(at, argv[i]);
    }
    out->len += (size_t)(at - begin);
}

/* ---- the door ---- */

static void keep_small(struct buf *b)
{
    if (b->capacity > KEPT_BYTES) {
        buf_deinit(b);
    }
}

static struct slice held(const struct log *log)
{
    return slice_of(buf_slice(&door.held).ptr + log->at, log->len);
}

/* A command that belongs to the unit that is open. It is held for all logs in one place. */
static void tell_in_unit(struct log *log, int db, struct slice command, size_t at)
{
    if (log->told++ == 0) {
        log->first_db = db;
        log->at = at;
        log->len = command.len;
        if (at == door.held.len) {
            buf_append_slice(&door.held, command);
        }
        return;
    }
    if (log->told == 2) {
        log->listener(PROPAGATE_ANY_DB, SLICE("*1\r\n$5\r\nMULTI\r\n"));
        log->listener(log->first_db, held(log));
    }
    log->listener(db, command);
}

/* The same for all logs, of a command that is a unit by itself. */
static void tell_alone(unsigned targets, int db, struct slice command)
{
    for (int i = 0; i < door.count; i++) {
        const struct log *log = &door.logs[i];
        if (log->on && log->target & targets) {
            log->listener(db, command);
        }
    }
}

static void tell(unsigned targets, int db, struct slice command)
{
    size_t at = door.held.len;
    if (likely(door.depth == 0 && !propagate_peers)) {
        tell_alone(targets, db, command);
        return;
    }
    for (int i = 0; i < door.count; i++) {
        struct log *log = &door.logs[i];
        if (log->on && log->target & targets) {
            tell_in_unit(log, db, command, at);
        }
    }
}

/* In the request protocol, until the next one. */
static struct slice written(int argc, const struct slice *argv)
{
    buf_clear(&door.scratch);
    encode(&door.scratch, argc, argv);
    return buf_slice(&door.scratch);
}

static void tell_words(unsigned targets, const struct db *db, int argc, const struct slice *argv)
{
    assert(propagate_on);
    tell(targets, db->id, written(argc, argv));
    keep_small(&door.scratch);
}

/* The log's unit ends, if it has been told anything of one. */
static void end_unit(struct log *log)
{
    if (log->told == 1) {
        log->listener(log->first_db, held(log));
    } else if (log->told > 1) {
        log->listener(PROPAGATE_ANY_DB, SLICE("*1\r\n$4\r\nEXEC\r\n"));
    }
    log->told = 0;
}

/* Each log's unit ends, if there is one and it is not within another. (A log that has been told
 * anything of one has its first command held.) */
static void end_units(void)
{
    if (door.depth > 0 || door.held.len == 0) {
        return;
    }
    for (int i = 0; i < door.count; i++) {
        end_unit(&door.logs[i]);
    }
    buf_clear(&door.held);
    keep_small(&door.held);
}

void propagate_switch(int log, bool on)
{
    assert(log < door.count);
    end_unit(&door.logs[log]);
    door.logs[log].on = on;
    propagate_on = propagate_peers = false;
    bool to_nodes = false;
    for (int i = 0; i < door.count; i++) {
        propagate_on |= door.logs[i].on;
        propagate_peers |= door.logs[i].on && door.logs[i].target == PROPAGATE_TO_PEERS;
        to_nodes |= door.logs[i].on && door.logs[i].target & PROPAGATE_TO_NODES;
    }
    atomic_store_explicit(&door.wants_messages, to_nodes, memory_order_relaxed);
}

void propagate_abandon(int log)
{
    if (door.depth > 0) {
        door.logs[log].told = 0;
    }
}

void propagate_silence(void)
{
    assert(door.depth == 0);
    for (int i = 0; i < door.count; i++) {
        door.logs[i].on = false;
    }
    propagate_on = propagate_peers = false;
    atomic_store_explicit(&door.wants_messages, false, memory_order_relaxed);
}

bool propagate_wants_messages(void)
{
    return atomic_load_explicit(&door.wants_messages, memory_order_relaxed);
}

/* Peers have been told something of a unit that has not ended. */
static bool peers_are_amid(void)
{
    bool amid = false;
    for (int i = 0; i < door.count; i++) {
        amid |= door.logs[i].target == PROPAGATE_TO_PEERS && door.logs[i].told > 0;
    }
    return amid;
}

void propagate_command(const struct db *db, int argc, const struct slice *argv)
{
    tell_words(PROPAGATE_TO_ALL, db, argc, argv);
    if (unlikely(propagate_peers)) {
        end_units();
    }
}

void propagate_commands_to_peers(const struct db *db, struct slice commands)
{
    bool amid = peers_are_amid();
    tell(PROPAGATE_TO_PEERS, db->id, commands);
    if (!amid) {
        end_units();
    }
}

void propagate_command_to_peers(const struct db *db, int argc, const struct slice *argv)
{
    propagate_commands_to_peers(db, written(argc, argv));
    keep_small(&door.scratch);
}

void propagate_begin_unit(void)
{
    door.depth++;
}

static void tell_emptied(void)
{
    if (door.emptied) {
        door.emptied = false;
        tell_words(door.aim & PROPAGATE_TO_PEERS, db_at(door.emptied_db), 2,
                   (const struct slice[]){SLICE("PERSIST"), buf_slice(&door.emptied_key)});
    }
}

void propagate_end_unit(void)
{
    assert(door.depth > 0);
    door.depth--;
    tell_emptied();
    end_units();
    if (door.depth == 0 && door.unit_ended) {
        door.unit_ended();
    }
}

void propagate_set_unit_listener(void (*listener)(void))
{
    door.unit_ended = listener;
}

/* What was told to the other logs alone is a unit, unless peers are being told one. */
static void end_units_of_others(void)
{
    if (propagate_peers && !peers_are_amid()) {
        end_units();
    }
}

bool propagate_in_unit(void)
{
    return door.depth > 0;
}

/* ---- calls ---- */

/* Who is told what has no form of its own for peers. */
static inline unsigned targets_of(const struct call *c)
{
    return c->has_told_peers ? door.aim & ~PROPAGATE_TO_PEERS : door.aim;
}

/* The call by the name that every server knows. */
static __attribute__((noinline)) void tell_renamed(unsigned targets, const struct call *c)
    REQUIRES(keyspace_lock);
static void tell_renamed(unsigned targets, const struct call *c)
{
    struct slice *words = mem_alloc((size_t)c->argc * sizeof(*words));
    memcpy(words, c->argv, (size_t)c->argc * sizeof(*words));
    words[0] = command_word(c->cmd);
    tell_words(targets, c->db, c->argc, words);
    mem_free(words);
}

static inline void tell_call(unsigned targets, const struct call *c) REQUIRES(keyspace_lock);
static inline void tell_call(unsigned targets, const struct call *c)
{
    if (unlikely(command_any_renamed)) {
        tell_renamed(targets, c);
    } else {
        tell_words(targets, c->db, c->argc, c->argv);
    }
}

/* Nothing of a unit has been told, and what the call has done is one command. */
static bool is_alone(const struct call *c)
{
    return !c->propagated && !c->has_told_peers && c->cmd->flags & CMD_WRITE && door.depth == 0 &&
           door.held.len == 0 && !door.emptied && !command_any_renamed;
}

void propagate_call(const struct call *c)
{
    if (is_alone(c)) {
        assert(propagate_on);
        tell_alone(door.aim, c->db->id, written(c->argc, c->argv));
        keep_small(&door.scratch);
        return;
    }
    if (!c->propagated && c->cmd->flags & CMD_WRITE) {
        tell_call(targets_of(c), c);
    }
    if (unlikely(propagate_peers)) {
        tell_emptied();
        end_units();
    }
}

void propagate_message(const struct call *c)
{
    if (!propagate_wants_messages()) {
        return;
    }
    tell_call(door.aim & PROPAGATE_TO_NODES, c);
    if (unlikely(propagate_peers)) {
        end_units();
    }
}

void propagate_instead(struct call *c, int argc, const struct slice *argv)
{
    c->propagated = true;
    tell_words(targets_of(c), c->db, argc, argv);
}

void propagate_nothing(struct call *c)
{
    c->propagated = true;
}

struct slice propagate_number(int64_t number, char text[PROPAGATE_NUMBER_BYTES])
{
    return slice_of(text, num_format_i64(text, number));
}

void propagate_add(struct propagate_draft *d, struct slice word)
{
    char *begin = buf_reserve(&d->words, word.len + HEAD_BYTES + 2);
    d->words.len += (size_t)(put_word(begin, word) - begin);
    d->count++;
}

void propagate_add_number(struct propagate_draft *d, int64_t number)
{
    char text[PROPAGATE_NUMBER_BYTES];
    propagate_add(d, propagate_number(number, text));
}

void propagate_add_copy(struct propagate_draft *d, const struct propagate_draft *more)
{
    buf_append_slice(&d->words, buf_slice(&more->words));
    d->count += more->count;
}

void propagate_add_draft(struct propagate_draft *d, struct propagate_draft *more)
{
    propagate_add_copy(d, more);
    buf_deinit(&more->words);
    more->count = 0;
}

static void tell_draft(unsigned targets, const struct call *c, struct propagate_draft *d)
{
    char head[HEAD_BYTES];
    assert(propagate_on && d->count > 0);
    buf_clear(&door.scratch);
    buf_append(&door.scratch, head, (size_t)(put_head(head, '*', (uint64_t)d->count) - head));
    buf_append_slice(&door.scratch, buf_slice(&d->words));
    tell(targets, c->db->id, buf_slice(&door.scratch));
    keep_small(&door.scratch);
    buf_deinit(&d->words);
    d->count = 0;
}

void propagate_draft_instead(struct call *c, struct propagate_draft *d)
{
    c->propagated = true;
    tell_draft(targets_of(c), c, d);
}

/* ---- peers ---- */

/* They have their own form of the call then. */
static unsigned peers_for(struct call *c)
{
    assert(propagate_peers && (c->has_told_peers || !c->propagated));
    c->has_told_peers = true;
    return door.aim & PROPAGATE_TO_PEERS;
}

void propagate_draft_to_peers(struct call *c, struct propagate_draft *d)
{
    tell_draft(peers_for(c), c, d);
}

static void tell_peers_for(struct call *c, const struct db *db, int argc, const struct slice *argv)
{
    tell_words(peers_for(c), db, argc, argv);
}

void propagate_tell_peers(struct call *c, int argc, const struct slice *argv)
{
    tell_peers_for(c, c->db, argc, argv);
}

void propagate_call_to_peers(struct call *c)
{
    tell_call(peers_for(c), c);
}

static void tell_whole(struct call *c, const struct db *db, const struct entry *e)
{
    char text[PROPAGATE_NUMBER_BYTES];
    struct buf payload = {0};
    int64_t at_ms = entry_expiry_ms(e);
    int before = module_value_db;
    module_value_db = db->id;
    door.write_payload(&payload, e);
    module_value_db = before;
    struct slice words[] = {SLICE("RESTORE"),
                            entry_key(e),
                            propagate_number(at_ms == ENTRY_NO_EXPIRY ? 0 : at_ms, text),
                            buf_slice(&payload),
                            SLICE("REPLACE"),
                            SLICE("ABSTTL")};
    tell_peers_for(c, db, sizeof(words) / sizeof(words[0]), words);
    buf_deinit(&payload);
}

void propagate_key_to_peers(struct call *c, struct db *db, const struct key *key)
{
    struct entry *e = db_read(db, key, c->now_ms, DB_NO_TOUCH | DB_NO_STATS);
    if (e) {
        tell_whole(c, db, e);
    } else {
        tell_peers_for(c, db, 2, (const struct slice[]){SLICE("DEL"), key->name});
    }
}

struct db_telling {
    struct call *call;
    struct db *db;    /* of which is told */
    struct db *other; /* whose content was there before */
    bool any;
};

static void tell_present(struct entry *e, void *context)
{
    struct db_telling *telling = context;
    tell_whole(telling->call, telling->db, e);
    telling->any = true;
}

static void tell_gone(struct entry *e, void *context) NO_THREAD_SAFETY_ANALYSIS
{
    struct db_telling *telling = context;
    struct key key = key_of(entry_key(e));
    int64_t now_ms = telling->call->now_ms;
    if (!db_read(telling->db, &key, now_ms, DB_NO_TOUCH | DB_NO_STATS)) {
        tell_peers_for(telling->call, telling->db, 2,
                       (const struct slice[]){SLICE("DEL"), key.name});
        telling->any = true;
    }
}

static void walk(struct db *db, db_visit_fn visit, struct db_telling *telling)
    REQUIRES(keyspace_lock);
static void walk(struct db *db, db_visit_fn visit, struct db_telling *telling)
{
    uint64_t cursor = 0;
    do {
        cursor = db_scan(db, cursor, SCANNED_AT_ONCE, telling->call->now_ms, visit, telling);
    } while (cursor);
}

bool propagate_swap_to_peers(struct call *c, struct db *a, struct db *b)
{
    struct db_telling told[] = {{c, a, b, false}, {c, b, a, false}};
    bool frozen = expire_frozen;
    expire_frozen = true; /* what is due and was not told yet goes along, as it is */
    for (int i = 0; i < 2; i++) {
        walk(told[i].db, tell_present, &told[i]);
        walk(told[i].other, tell_gone, &told[i]);
    }
    expire_frozen = frozen;
    return told[0].any || told[1].any;
}

void propagate_note_emptied(const struct keyref *ref)
{
    if (entry_expiry_ms(ref->entry) == ENTRY_NO_EXPIRY) {
        return;
    }
    assert(!door.emptied);
    door.emptied = true;
    door.emptied_db = ref->db->id;
    buf_clear(&door.emptied_key);
    buf_append_slice(&door.emptied_key, ref->key.name);
}

void propagate_set_expired_listener(expire_listener listener)
{
    door.expired = listener;
}

void propagate_set_payload_writer(void (*write)(struct buf *out, const struct entry *e))
{
    door.write_payload = write;
}

/* ---- what nobody called for ---- */

static struct slice deletion(bool lazily)
{
    return lazily ? SLICE("UNLINK") : SLICE("DEL");
}

void propagate_delete(const struct db *db, struct slice key, bool lazily)
{
    if (propagate_on) {
        propagate_command(db, 2, (const struct slice[]){deletion(lazily), key});
    }
}

/* Keyspace's: a key has expired, or members of it. */
static void on_expired(const struct expired *x)
{
    static const char *const removals[VALUE_TYPE_COUNT] = {
        [VALUE_HASH] = "HDEL", [VALUE_SET] = "SREM", [VALUE_ZSET] = "ZREM"};
    keyspace_assert_exclusive();
    if (!x->due) {
        propagate_delete(x->db, x->key, reclaim_lazy_expire());
        return;
    }
    if (unlikely(propagate_peers) && door.expired) {
        door.expired(x);
    }
    unsigned targets = PROPAGATE_TO_ALL & ~PROPAGATE_TO_PEERS;
    if (x->count == 0) {
        tell_words(targets, x->db, 2,
                   (const struct slice[]){deletion(reclaim_lazy_expire()), x->key});
        end_units_of_others();
        return;
    }
    struct slice head[] = {slice_cstr(removals[x->type]), x->key};
    buf_clear(&door.scratch);
    char text[HEAD_BYTES];
    buf_append(&door.scratch, text, (size_t)(put_head(text, '*', (uint64_t)x->count + 2) - text));
    for (int i = 0; i < x->count + 2; i++) {
        struct slice word = i < 2 ? head[i] : x->members[i - 2];
        char *begin = buf_reserve(&door.scratch, word.len + HEAD_BYTES + 2);
        door.scratch.len += (size_t)(put_word(begin, word) - begin);
    }
    tell(targets, x->db->id, buf_slice(&door.scratch));
    keep_small(&door.scratch);
    end_units_of_others();
}

void propagate_setup(void)
{
    expire_set_listener(on_expired, &propagate_on);
}

void propagate_teardown(void)
{
    expire_set_listener(NULL, NULL);
    buf_deinit(&door.scratch);
    buf_deinit(&door.held);
    buf_deinit(&door.emptied_key);
    door.count = 0;
    propagate_on = propagate_peers = false;
}
