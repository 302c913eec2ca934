/* Strings: reading them, writing them whole or in part. SET with its options and its kin is in
 * strings_set.c, numbers in strings_number.c, LCS in strings_lcs.c. */
#include "commands/commands.h"
#include "commands/string_bytes.h"
#include "commands/strings_priv.h"

#include "base/num.h"
#include "engine/propagate.h"
#include "keyspace/access.h"
#include "resp/limits.h"
#include "value/string.h"

/* A value that has no bytes of its own in the entry: a number, or a blob. */
static __attribute__((noinline)) void reply_outside_value(struct call *c, const struct entry *e)
{
    char scratch[STRING_VIEW_BYTES];
    struct blob *blob = string_blob(e);
    if (blob) {
        reply_blob(c->reply, blob);
        return;
    }
    reply_bulk(c->reply, string_view(e, scratch));
}

void strings_reply_value(struct call *c, const struct entry *e)
{
    struct slice view;
    if (unlikely(!e)) {
        reply_null(c->reply);
    } else if (likely(string_inline_view(e, &view))) {
        reply_bulk(c->reply, view);
    } else {
        reply_outside_value(c, e);
    }
}

int64_t strings_expiry_ms(const struct keyref *ref)
{
    return ref->entry ? entry_expiry_ms(ref->entry) : ENTRY_NO_EXPIRY;
}

/* Overwrites a string in place: the same presence of an expiry, and a value of the same kind (an
 * integer over an integer, other short text over embedded bytes). Text that is an integer never
 * becomes embedded bytes, so that OBJECT ENCODING and memory do not depend on what was there
 * before. */
static bool store_in_place(struct keyref *ref, struct slice value, int64_t expiry_ms)
    REQUIRES(keyspace_lock)
{
    struct entry *e = ref->entry;
    bool expires = expiry_ms != ENTRY_NO_EXPIRY;
    bool had_expiry = (e->flags & ENTRY_EXPIRES) != 0;
    if (entry_type(e) != VALUE_STRING || expires != had_expiry) {
        return false;
    }
    int64_t integer;
    if (value.len < NUM_I64_MAX_CHARS && num_parse_i64(value, &integer)) {
        if (entry_encoding(e) != ENCODING_INTEGER) {
            return false;
        }
        entry_set_integer(e, integer);
    } else if (entry_encoding(e) != ENCODING_EMBEDDED || !entry_overwrite_embedded(e, value)) {
        return false;
    }
    if (expires && entry_expiry_ms(e) != expiry_ms) {
        db_set_expiry(ref, expiry_ms);
    }
    return true;
}

void strings_store(struct call *c, struct keyref *ref, int arg, int64_t expiry_ms)
{
    assert(arg > 0 && arg < c->argc);
    struct slice value = c->argv[arg];
    if (ref->entry) {
        event_key_goes(GOING_OVERWRITTEN, ref->db, ref->key.name);
        if (store_in_place(ref, value, expiry_ms)) {
            return;
        }
    }
    struct blob *blob = call_take_blob(c, arg);
    struct entry *e = blob ? string_create_blob(ref->key.name, blob, expiry_ms)
                           : string_create(ref->key.name, value, expiry_ms);
    if (!ref->entry) {
        /* db_put would read the clock for it. */
        entry_set_clock(e, access_initial(c->now_ms));
    }
    db_put(ref, e);
}

READ_COMMAND(get_command)
{
    struct entry *e;
    if (call_read_typed(c, 0, VALUE_STRING, &e)) {
        strings_reply_value(c, e);
    }
}

READ_COMMAND(mget_command)
{
    reply_array(c->reply, (uint64_t)c->key_count);
    for (int k = 0; k < c->key_count; k++) {
        const struct entry *e = call_read(c, k);
        strings_reply_value(c, e && entry_type(e) == VALUE_STRING ? e : NULL);
    }
}

READ_COMMAND(strlen_command)
{
    struct entry *e;
    if (call_read_typed(c, 0, VALUE_STRING, &e)) {
        reply_i64(c->reply, e ? (int64_t)string_len(e) : 0);
    }
}

/* The part of `all` that GETRANGE's inclusive bounds name; negative ones count from the end. */
static struct slice range_of(struct slice all, int64_t start, int64_t end)
{
    int64_t len = (int64_t)all.len;
    if (start < 0 && end < 0 && start > end) {
        return slice_of(all.ptr, 0);
    }
    start = start < 0 ? start + len : start;
    end = end < 0 ? end + len : end;
    start = start < 0 ? 0 : start;
    end = end < 0 ? 0 : end;
    end = end >= len ? len - 1 : end;
    if (start > end) {
        return slice_of(all.ptr, 0);
    }
    assert(end < len);
    return slice_of(all.ptr + start, (size_t)(end - start) + 1);
}

READ_COMMAND(getrange_command)
{
    int64_t start, end;
    struct entry *e;
    char scratch[STRING_VIEW_BYTES];
    if (!call_arg_i64(c, 2, &start) || !call_arg_i64(c, 3, &end) ||
        !call_read_typed(c, 0, VALUE_STRING, &e)) {
        return;
    }
    if (!e) {
        reply_bulk(c->reply, SLICE(""));
        return;
    }
    struct blob *blob = string_blob(e);
    struct slice part = range_of(string_view(e, scratch), start, end);
    /* While the reply is on its way, a write has to copy the blob: not for a small part's sake. */
    if (blob && part.len >= blob->len / 2) {
        reply_blob_part(c->reply, blob, (size_t)(part.ptr - blob->bytes), part.len);
    } else {
        reply_bulk(c->reply, part);
    }
}

/* ---- Writing a part ---- */

/* True when a string may have `len + extra` bytes; replies the error otherwise. */
static bool length_allowed(struct call *c, uint64_t len, uint64_t extra)
{
    uint64_t total;
    if (!c->session->internal &&
        (__builtin_add_overflow(len, extra, &total) || total > (uint64_t)resp_max_bulk_bytes)) {
        reply_error(c->reply, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
        return false;
    }
    return true;
}

/* Writes `part` at `offset` of the opened string, which grows, zero-filled, as needed; a missing
 * key begins empty. False and an error replied when there is no memory. *len is the new length. */
static bool write_part(struct call *c, struct keyref *ref, size_t offset, struct slice part,
                       size_t *len) REQUIRES(keyspace_lock)
{
    size_t old_len = ref->entry ? string_len(ref->entry) : 0;
    *len = offset + part.len > old_len ? offset + part.len : old_len;
    uint8_t *bytes = string_bytes_open(c, ref, *len);
    if (bytes) {
        memcpy(bytes + offset, part.ptr, part.len);
    }
    return bytes != NULL;
}

WRITE_COMMAND(setrange_command)
{
    int64_t offset;
    struct keyref ref;
    struct slice part = c->argv[3];
    if (!call_arg_i64(c, 2, &offset)) {
        return;
    }
    if (offset < 0) {
        reply_error(c->reply, "ERR offset is out of range");
        return;
    }
    if (!call_open_typed(c, 0, VALUE_STRING, &ref)) {
        return;
    }
    size_t len = ref.entry ? string_len(ref.entry) : 0;
    if (part.len > 0) {
        if (!length_allowed(c, (uint64_t)offset, part.len) ||
            !write_part(c, &ref, (size_t)offset, part, &len)) {
            return;
        }
        call_changed(c, &ref, EVENT_STRING, "setrange");
    }
    reply_i64(c->reply, (int64_t)len);
}

WRITE_COMMAND(append_command)
{
    struct keyref ref;
    struct slice part = c->argv[2];
    size_t len = part.len;
    if (!call_open_typed(c, 0, VALUE_STRING, &ref)) {
        return;
    }
    if (!ref.entry) {
        strings_store(c, &ref, 2, ENTRY_NO_EXPIRY);
    } else {
        size_t old_len = string_len(ref.entry);
        if (!length_allowed(c, old_len, part.len) || !write_part(c, &ref, old_len, part, &len)) {
            return;
        }
    }
    call_changed(c, &ref, EVENT_STRING, "append");
    reply_i64(c->reply, (int64_t)len);
}

/* ---- Several keys ---- */

static bool pairs_complete(struct call *c)
{
    if (c->argc % 2 == 0) {
        reply_errorf(c->reply, "ERR wrong number of arguments for '%s' command", c->cmd->full_name);
        return false;
    }
    assert(c->key_count == c->argc / 2);
    return true;
}

static void store_pairs(struct call *c) REQUIRES(keyspace_lock)
{
    for (int k = 0; k < c->key_count; k++) {
        struct keyref ref;
        call_open(c, k, &ref);
        strings_store(c, &ref, 2 + 2 * k, ENTRY_NO_EXPIRY);
        call_changed(c, &ref, EVENT_STRING, "set");
    }
}

WRITE_COMMAND(mset_command)
{
    if (pairs_complete(c)) {
        store_pairs(c);
        reply_ok(c->reply);
    }
}

WRITE_COMMAND(msetnx_command)
{
    if (!pairs_complete(c)) {
        return;
    }
    for (int k = 0; k < c->key_count; k++) {
        struct keyref ref;
        call_open(c, k, &ref);
        if (ref.entry) {
            reply_i64(c->reply, 0);
            return;
        }
    }
    store_pairs(c);
    if (unlikely(propagate_peers)) {
        struct propagate_draft d = {0};
        propagate_add(&d, SLICE("MSET"));
        for (int i = 1; i < c->argc; i++) {
            propagate_add(&d, c->argv[i]);
        }
        propagate_draft_to_peers(c, &d);
    }
    reply_i64(c->reply, 1);
}

const struct command_row string_commands[] = {
    {.name = "append",
     .run = append_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RW+INSERT",
     .group = "string",
     .since = "2.0.0",
     .summary = "Appends bytes to a string; a missing key is created.",
     .complexity = "O(1), amortised over appends",
     .args = "key value"},
    {.name = "get",
     .run = get_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "string",
     .since = "1.0.0",
     .summary = "Returns the string at a key.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "getrange",
     .run = getrange_command,
     .arity = 4,
     .flags = CMD_READONLY,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "string",
     .since = "2.4.0",
     .summary = "Returns a part of a string, by inclusive offsets.",
     .complexity = "O(N), N being the bytes returned",
     .args = "key start end"},
    {.name = "mget",
     .run = mget_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_STRING,
     .keys = "i1/r-1,1,0/RO+ACCESS",
     .tips = "request_policy:multi_shard",
     .group = "string",
     .since = "1.0.0",
     .summary = "Returns the strings at several keys; null where there is none.",
     .complexity = "O(N), N being the number of keys",
     .args = "key [key ...]"},
    {.name = "mset",
     .run = mset_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_STRING,
     .keys = "i1/r-1,2,0/OW+UPDATE",
     .tips = "request_policy:multi_shard,response_policy:all_succeeded",
     .group = "string",
     .since = "1.0.1",
     .summary = "Sets several keys in one step.",
     .complexity = "O(N), N being the number of keys",
     .args = "key value [key value ...]"},
    {.name = "msetnx",
     .run = msetnx_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_STRING,
     .keys = "i1/r-1,2,0/OW+INSERT",
     .group = "string",
     .since = "1.0.1",
     .summary = "Sets several keys in one step, unless one of them exists.",
     .complexity = "O(N), N being the number of keys",
     .args = "key value [key value ...]"},
    {.name = "setrange",
     .run = setrange_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "string",
     .since = "2.2.0",
     .summary = "Overwrites a string from an offset on, growing it with zero bytes.",
     .complexity = "O(N), N being the bytes of the new string at most",
     .args = "key offset value"},
    {.name = "strlen",
     .run = strlen_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RO",
     .group = "string",
     .since = "2.2.0",
     .summary = "Returns the length of a string.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "substr",
     .run = getrange_command,
     .arity = 4,
     .flags = CMD_READONLY,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "string",
     .since = "1.0.0",
     .summary = "Returns a part of a string; the old name of GETRANGE.",
     .complexity = "O(N), N being the bytes returned",
     .args = "key start end",
     .deprecated_since = "2.0.0",
     .replaced_by = "GETRANGE"},
    {.name = NULL},
};
