/* See propagate.h. Commands are put into the request protocol here, once for all logs, in a buffer
 * that is used again. The first command of a unit is held back until a second one comes: one alone
 * needs no MULTI. */
#include "engine/propagate.h"

#include "base/num.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"

#include <assert.h>

#define LOGS_MAX 4
/* A buffer that has become larger than this is not kept. */
#define KEPT_BYTES ((size_t)64 * 1024)
/* "*" or "$", a number, and the end of the line. */
#define HEAD_BYTES 24

bool propagate_on;

static struct {
    propagate_listener listeners[LOGS_MAX];
    bool on[LOGS_MAX];
    int count;
    struct buf scratch;
    /* The unit that is open. */
    int depth;
    uint64_t told;    /* commands in it so far */
    int first_db;     /* whose first command that is held back is for */
    struct buf first; /* it */
} door;

int propagate_register(propagate_listener listener)
{
    assert(door.count < LOGS_MAX);
    door.listeners[door.count] = listener;
    return door.count++;
}

void propagate_switch(int log, bool on)
{
    assert(log < door.count && !propagate_in_unit());
    door.on[log] = on;
    propagate_on = false;
    for (int i = 0; i < door.count; i++) {
        propagate_on |= door.on[i];
    }
}

/* ---- the protocol ---- */

static char *put_head(char *at, char kind, uint64_t number)
{
    *at++ = kind;
    at += num_format_u64(at, number);
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

static char *put_word(char *at, struct slice word)
{
    at = put_head(at, '$', word.len);
    if (word.len > 0) {
        memcpy(at, word.ptr, word.len);
        at += word.len;
    }
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

static void encode(struct buf *out, int argc, const struct slice *argv)
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

static void hand_over(int db, struct slice commands)
{
    for (int i = 0; i < door.count; i++) {
        if (door.on[i]) {
            door.listeners[i](db, commands);
        }
    }
}

static void keep_small(struct buf *b)
{
    if (b->capacity > KEPT_BYTES) {
        buf_deinit(b);
    }
}

/* A command that belongs to the unit that is open. */
static void tell_in_unit(int db, struct slice command)
{
    if (door.told++ == 0) {
        door.first_db = db;
        buf_clear(&door.first);
        buf_append_slice(&door.first, command);
        return;
    }
    if (door.told == 2) {
        hand_over(PROPAGATE_ANY_DB, SLICE("*1\r\n$5\r\nMULTI\r\n"));
        hand_over(door.first_db, buf_slice(&door.first));
    }
    hand_over(db, command);
}

static void tell(int db, struct slice command)
{
    if (unlikely(door.depth > 0)) {
        tell_in_unit(db, command);
    } else {
        hand_over(db, command);
    }
}

void propagate_command(const struct db *db, int argc, const struct slice *argv)
{
    assert(propagate_on);
    buf_clear(&door.scratch);
    encode(&door.scratch, argc, argv);
    tell(db->id, buf_slice(&door.scratch));
    keep_small(&door.scratch);
}

void propagate_begin_unit(void)
{
    door.depth++;
}

void propagate_end_unit(void)
{
    assert(door.depth > 0);
    if (--door.depth > 0) {
        return;
    }
    if (door.told == 1) {
        hand_over(door.first_db, buf_slice(&door.first));
    } else if (door.told > 1) {
        hand_over(PROPAGATE_ANY_DB, SLICE("*1\r\n$4\r\nEXEC\r\n"));
    }
    door.told = 0;
    keep_small(&door.first);
}

bool propagate_in_unit(void)
{
    return door.depth > 0;
}

/* ---- calls ---- */

void propagate_call(const struct call *c)
{
    if (!c->propagated && c->cmd->flags & CMD_WRITE) {
        propagate_command(c->db, c->argc, c->argv);
    }
}

void propagate_instead(struct call *c, int argc, const struct slice *argv)
{
    c->propagated = true;
    propagate_command(c->db, argc, argv);
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

void propagate_add_draft(struct propagate_draft *d, struct propagate_draft *more)
{
    buf_append_slice(&d->words, buf_slice(&more->words));
    d->count += more->count;
    buf_deinit(&more->words);
    more->count = 0;
}

void propagate_draft_instead(struct call *c, struct propagate_draft *d)
{
    char head[HEAD_BYTES];
    assert(propagate_on && d->count > 0);
    c->propagated = true;
    buf_clear(&door.scratch);
    buf_append(&door.scratch, head, (size_t)(put_head(head, '*', (uint64_t)d->count) - head));
    buf_append_slice(&door.scratch, buf_slice(&d->words));
    tell(c->db->id, buf_slice(&door.scratch));
    keep_small(&door.scratch);
    buf_deinit(&d->words);
    d->count = 0;
}

/* ---- what nobody called for ---- */

void propagate_delete(const struct db *db, struct slice key, bool lazily)
{
    if (propagate_on) {
        struct slice words[] = {lazily ? SLICE("UNLINK") : SLICE("DEL"), key};
        propagate_command(db, 2, words);
    }
}

/* Keyspace's: a key has expired, or with `members` only those of it. */
static void on_expired(const struct db *db, struct slice key, enum value_type type,
                       const struct slice *members, int count)
{
    static const char *const removals[VALUE_TYPE_COUNT] = {
        [VALUE_HASH] = "HDEL", [VALUE_SET] = "SREM", [VALUE_ZSET] = "ZREM"};
    keyspace_assert_exclusive();
    if (count == 0) {
        propagate_delete(db, key, reclaim_lazy_expire());
        return;
    }
    struct slice head[] = {slice_cstr(removals[type]), key};
    buf_clear(&door.scratch);
    char text[HEAD_BYTES];
    buf_append(&door.scratch, text, (size_t)(put_head(text, '*', (uint64_t)count + 2) - text));
    for (int i = 0; i < count + 2; i++) {
        struct slice word = i < 2 ? head[i] : members[i - 2];
        char *begin = buf_reserve(&door.scratch, word.len + HEAD_BYTES + 2);
        door.scratch.len += (size_t)(put_word(begin, word) - begin);
    }
    tell(db->id, buf_slice(&door.scratch));
    keep_small(&door.scratch);
}

void propagate_setup(void)
{
    expire_set_listener(on_expired, &propagate_on);
}

void propagate_teardown(void)
{
    expire_set_listener(NULL, NULL);
    buf_deinit(&door.scratch);
    buf_deinit(&door.first);
    door.count = 0;
    propagate_on = false;
    memset(door.on, 0, sizeof(door.on));
}
