/* See call.h: what handlers use. */
#include "engine/call.h"

#include "base/mem.h"
#include "base/num.h"
#include "engine/auth.h"
#include "engine/propagate.h"
#include "engine/transaction.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* What blocks take beside their bytes, generously. */
#define RESERVE_EXTRA_BYTES 4096
/* Values of at most so many parts are looked at whole to know their size, else so many parts. */
#define COPY_COUNTED_MAX 65536
#define COPY_SAMPLES 1000

enum call_access command_access(const struct command *c)
{
    if (unlikely(c->flags & CMD_WORLD)) {
        return ACCESS_WORLD;
    }
    if (c->flags & (CMD_WRITE | CMD_EXCLUSIVE)) {
        return ACCESS_EXCLUSIVE;
    }
    if (c->flags & CMD_READONLY) {
        return ACCESS_SHARED;
    }
    /* A message has its place among the writes, where there is a stream of them; who authenticates
     * may have to wait for the answer of a module. */
    bool is_message = c->flags & CMD_MAY_REPLICATE, is_auth = c->flags & CMD_NO_AUTH;
    return (is_message && propagate_wants_messages()) || (is_auth && auth_has_asker())
               ? ACCESS_EXCLUSIVE
               : ACCESS_NONE;
}

enum call_access call_access(const struct call *c)
{
    return unlikely(c->cmd->flags & CMD_TRANSACTION) ? transaction_access(c)
                                                     : command_access(c->cmd);
}

struct entry *call_read(struct call *c, int k)
{
    assert(k < c->key_count);
    return db_read(c->db, &c->keys[k], c->now_ms, call_look_flags(c));
}

struct entry *call_peek(struct call *c, int k)
{
    assert(k < c->key_count);
    return db_read(c->db, &c->keys[k], c->now_ms, DB_NO_TOUCH | DB_NO_STATS);
}

bool call_read_typed(struct call *c, int k, enum value_type type, struct entry **e)
{
    *e = call_read(c, k);
    if (unlikely(*e && entry_type(*e) != type)) {
        reply_wrong_type(c->reply);
        return false;
    }
    return true;
}

bool call_read_alone(struct call *c, const struct entry *e)
{
    bool again = entry_type(e) == VALUE_MODULE && c->held == ACCESS_SHARED;
    if (unlikely(again)) {
        call_need_exclusive(c);
    }
    return again;
}

void call_open(struct call *c, int k, struct keyref *ref)
{
    assert(k < c->key_count);
    db_open(ref, c->db, &c->keys[k], c->now_ms, call_look_flags(c));
}

void call_open_again(struct call *c, int k, struct keyref *ref)
{
    assert(k < c->key_count);
    db_open(ref, c->db, &c->keys[k], c->now_ms, DB_NO_TOUCH);
}

bool call_open_typed(struct call *c, int k, enum value_type type, struct keyref *ref)
{
    call_open(c, k, ref);
    if (unlikely(ref->entry && entry_type(ref->entry) != type)) {
        reply_wrong_type(c->reply);
        return false;
    }
    return true;
}

void call_changed(struct call *c, struct keyref *ref, enum event_class class, const char *event)
{
    c->dirty++;
    event_key_changed(ref->db, ref->key.name);
    event_notify(class, event, ref->db->id, ref->key.name);
}

struct blob *call_take_blob(struct call *c, int i)
{
    return c->blobs && c->blobs[i] ? blob_acquire(c->blobs[i]) : NULL;
}

bool call_arg_i64_error(struct call *c, int i, int64_t *value, const char *error)
{
    if (num_parse_i64(c->argv[i], value)) {
        return true;
    }
    reply_error(c->reply, error);
    return false;
}

bool call_reserve_large(struct call *c, size_t bytes)
{
    if (mem_reserve(bytes + RESERVE_EXTRA_BYTES)) {
        return true;
    }
    reply_error(c->reply, "OOM no memory for a copy of this length");
    return false;
}

struct slice *call_copy_words(const struct call *call)
{
    size_t bytes = (size_t)call->argc * sizeof(struct slice);
    for (int i = 0; i < call->argc; i++) {
        bytes += call->argv[i].len;
    }
    struct slice *copy = mem_alloc(bytes);
    char *at = (char *)(copy + call->argc);
    for (int i = 0; i < call->argc; i++) {
        copy[i] = slice_of(at, call->argv[i].len);
        memcpy(at, call->argv[i].ptr, call->argv[i].len);
        at += call->argv[i].len;
    }
    return copy;
}

void call_unreserve(void)
{
    mem_unreserve();
}

size_t call_copy_bytes(const struct entry *e)
{
    return entry_memory_bytes(e, entry_free_effort(e) <= COPY_COUNTED_MAX ? 0 : COPY_SAMPLES);
}

bool call_arg_i64(struct call *c, int i, int64_t *value)
{
    return call_arg_i64_error(c, i, value, "ERR value is not an integer or out of range");
}

bool call_arg_range(struct call *c, int i, int64_t min, int64_t max, int64_t *value,
                    const char *error)
{
    if (num_parse_i64(c->argv[i], value) && *value >= min && *value <= max) {
        return true;
    }
    int64_t parsed;
    bool is_number = num_parse_i64(c->argv[i], &parsed);
    if (error) {
        reply_error(c->reply, error);
    } else if (is_number && min == 0 && max > 0 && parsed < 0) {
        reply_error(c->reply, "ERR value is out of range, must be positive");
    } else if (is_number) {
        reply_errorf(c->reply, "ERR value is out of range, value must between %lld and %lld",
                     (long long)min, (long long)max);
    } else {
        reply_not_integer(c->reply);
    }
    return false;
}

bool call_arg_key_count(struct call *c, int i, int more, int *keys)
{
    int64_t count;
    if (!call_arg_range(c, i, 1, INT64_MAX, &count, "ERR numkeys should be greater than 0")) {
        return false;
    }
    if (count > c->argc - i - 1 - more) {
        reply_syntax_error(c->reply);
        return false;
    }
    *keys = (int)count;
    return true;
}

bool call_arg_double(struct call *c, int i, double *value, const char *error)
{
    if (num_parse_double(c->argv[i], value)) {
        return true;
    }
    reply_error(c->reply, error ? error : "ERR value is not a valid float");
    return false;
}

bool call_arg_long_double(struct call *c, int i, long double *value)
{
    if (num_parse_long_double(c->argv[i], value)) {
        return true;
    }
    reply_error(c->reply, "ERR value is not a valid float");
    return false;
}

void call_reply_help(struct call *c, const char *const *lines)
{
    uint64_t count = 0;
    while (lines[count]) {
        count++;
    }
    char title[160];
    const struct command *container = c->cmd->parent ? c->cmd->parent : c->cmd;
    int len = snprintf(
        title, sizeof(title),
        "%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", container->full_name);
    for (int i = 0; i < len && title[i] != ' '; i++) {
        title[i] = title[i] >= 'a' && title[i] <= 'z' ? (char)(title[i] - 32) : title[i];
    }
    reply_array(c->reply, count + 3);
    reply_status(c->reply, title);
    for (uint64_t i = 0; i < count; i++) {
        reply_status(c->reply, lines[i]);
    }
    reply_status(c->reply, "HELP");
    reply_status(c->reply, "    Prints this help.");
}
