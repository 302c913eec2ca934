/* Hashes: setting, reading, counting and removing fields. What walks over a whole hash (HGETALL,
 * HSCAN, HRANDFIELD ...) is in hashes_walk.c. */
#include "commands/commands.h"

#include "base/num.h"
#include "engine/call.h"
#include "engine/propagate.h"
#include "keyspace/access.h"
#include "value/hash.h"
#include "value/member_ttl.h"

#include <math.h>

static void reply_text(struct call *c, const struct hash_text *text)
{
    if (unlikely(text->blob != NULL)) {
        reply_blob(c->reply, text->blob);
    } else {
        reply_bulk(c->reply, text->bytes);
    }
}

/* Opens key 0 for writing; false with WRONGTYPE replied when it is no hash. */
static bool open_hash(struct call *c, struct keyref *ref) REQUIRES(keyspace_lock)
{
    return call_open_typed(c, 0, VALUE_HASH, ref);
}

/* Gives the opened key a hash if it has none, ready for `texts`. */
static void create_if_missing(struct call *c, struct keyref *ref, const struct slice *texts,
                              int count) REQUIRES(keyspace_lock)
{
    if (ref->entry) {
        return;
    }
    struct entry *e = hash_create(ref->key.name, texts, (size_t)count);
    /* db_put would read the clock for it. */
    entry_set_clock(e, access_initial(c->now_ms));
    db_put(ref, e);
}

/* Stores where a verb has left the entry. */
static inline void settle(struct keyref *ref, struct entry *e) REQUIRES(keyspace_lock)
{
    if (e != ref->entry) {
        db_moved(ref, e);
    }
}

static bool set_field(struct keyref *ref, struct slice field, struct slice value, struct blob *blob)
    REQUIRES(keyspace_lock)
{
    struct entry *e = ref->entry;
    bool fresh = hash_set(&e, field, value, blob);
    settle(ref, e);
    return fresh;
}

/* Sets the field in argument `i` to the value behind it; true when it is new. */
static bool set_argument(struct call *c, struct keyref *ref, int i) REQUIRES(keyspace_lock)
{
    return set_field(ref, c->argv[i], c->argv[i + 1], c->blobs ? c->blobs[i + 1] : NULL);
}

/* ---- setting ---- */

/* HSET and HMSET: the number of new fields, or -1 with an error replied. */
static int64_t set_pairs(struct call *c) REQUIRES(keyspace_lock)
{
    struct keyref ref;
    int64_t created = 0;
    if (c->argc % 2 != 0) {
        reply_errorf(c->reply, "ERR wrong number of arguments for '%s' command", c->cmd->full_name);
        return -1;
    }
    if (!open_hash(c, &ref)) {
        return -1;
    }
    create_if_missing(c, &ref, c->argv + 2, c->argc - 2);
    struct entry *e = ref.entry;
    hash_prepare(&e, c->argv + 2, (size_t)c->argc - 2);
    settle(&ref, e);
    for (int i = 2; i < c->argc; i += 2) {
        created += set_argument(c, &ref, i);
    }
    call_changed(c, &ref, EVENT_HASH, "hset");
    c->dirty += (uint64_t)(c->argc - 2) / 2 - 1;
    return created;
}

WRITE_COMMAND(hset_command)
{
    int64_t created = set_pairs(c);
    if (created >= 0) {
        reply_i64(c->reply, created);
    }
}

WRITE_COMMAND(hmset_command)
{
    if (set_pairs(c) >= 0) {
        reply_ok(c->reply);
    }
}

WRITE_COMMAND(hsetnx_command)
{
    struct keyref ref;
    if (!open_hash(c, &ref)) {
        return;
    }
    if (ref.entry && hash_has(ref.entry, c->argv[2])) {
        reply_i64(c->reply, 0);
        return;
    }
    create_if_missing(c, &ref, c->argv + 2, 2);
    set_argument(c, &ref, 2);
    if (unlikely(propagate_peers)) {
        TELL_PEERS(c, SLICE("HSET"), ref.key.name, c->argv[2], c->argv[3]);
    }
    call_changed(c, &ref, EVENT_HASH, "hset");
    reply_i64(c->reply, 1);
}

/* ---- numbers ---- */

/* Makes `text` the value of the field in argument 2. */
static void set_number(struct call *c, struct keyref *ref, struct slice text, const char *event)
    REQUIRES(keyspace_lock)
{
    create_if_missing(c, ref, (struct slice[]){c->argv[2], text}, 2);
    struct entry *e = ref->entry;
    hash_change(&e, c->argv[2], text);
    settle(ref, e);
    call_changed(c, ref, EVENT_HASH, event);
}

WRITE_COMMAND(hincrby_command)
{
    struct keyref ref;
    struct hash_text old;
    int64_t delta, value = 0;
    char text[NUM_I64_MAX_CHARS];
    if (!call_arg_i64(c, 3, &delta) || !open_hash(c, &ref)) {
        return;
    }
    if (ref.entry && hash_get(ref.entry, c->argv[2], &old) && !num_parse_i64(old.bytes, &value)) {
        reply_error(c->reply, "ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(value, delta, &value)) {
        reply_error(c->reply, "ERR increment or decrement would overflow");
        return;
    }
    set_number(c, &ref, slice_of(text, num_format_i64(text, value)), "hincrby");
    reply_i64(c->reply, value);
}

/* The field in argument 2 got that value, and kept its deadline, which HSET would drop. */
static void propagate_sum(struct call *c, struct keyref *ref, struct slice sum)
    REQUIRES(keyspace_lock)
{
    char number[PROPAGATE_NUMBER_BYTES];
    int64_t at_ms = member_ttl_get(ref->entry, c->argv[2]);
    propagate_begin_unit();
    PROPAGATE(c, SLICE("HSET"), ref->key.name, c->argv[2], sum);
    if (at_ms != ENTRY_NO_EXPIRY) {
        PROPAGATE(c, SLICE("HPEXPIREAT"), ref->key.name, propagate_number(at_ms, number),
                  SLICE("FIELDS"), SLICE("1"), c->argv[2]);
    }
    propagate_end_unit();
}

WRITE_COMMAND(hincrbyfloat_command)
{
    struct keyref ref;
    struct hash_text old;
    long double delta, value = 0;
    char text[NUM_DOUBLE_MAX_CHARS];
    if (!call_arg_long_double(c, 3, &delta)) {
        return;
    }
    if (!isfinite(delta)) {
        reply_error(c->reply, "ERR value is NaN or Infinity");
        return;
    }
    if (!open_hash(c, &ref)) {
        return;
    }
    if (ref.entry && hash_get(ref.entry, c->argv[2], &old) &&
        !num_parse_long_double(old.bytes, &value)) {
        reply_error(c->reply, "ERR hash value is not a float");
        return;
    }
    value += delta;
    size_t len = isfinite(value) ? num_format_long_double(text, value) : 0;
    if (len == 0) {
        reply_error(c->reply, "ERR increment would produce NaN or Infinity");
        return;
    }
    set_number(c, &ref, slice_of(text, len), "hincrbyfloat");
    if (unlikely(propagate_peers)) {
        propagate_call_to_peers(c); /* additions made elsewhere meanwhile are kept */
    }
    if (unlikely(propagate_on)) {
        propagate_sum(c, &ref, slice_of(text, len));
    }
    reply_bulk(c->reply, slice_of(text, len));
}

/* ---- reading ---- */

/* Replies the value of the field in argument `i`, null without hash or field. */
static void reply_field(struct call *c, const struct entry *e, int i) REQUIRES_SHARED(keyspace_lock)
{
    struct hash_text value;
    if (e && hash_get(e, c->argv[i], &value)) {
        reply_text(c, &value);
    } else {
        reply_null(c->reply);
    }
}

READ_COMMAND(hget_command)
{
    struct entry *e;
    if (call_read_typed(c, 0, VALUE_HASH, &e)) {
        reply_field(c, e, 2);
    }
}

READ_COMMAND(hmget_command)
{
    struct entry *e;
    if (!call_read_typed(c, 0, VALUE_HASH, &e)) {
        return;
    }
    reply_array(c->reply, (uint64_t)c->argc - 2);
    for (int i = 2; i < c->argc; i++) {
        reply_field(c, e, i);
    }
}

READ_COMMAND(hexists_command)
{
    struct entry *e;
    if (call_read_typed(c, 0, VALUE_HASH, &e)) {
        reply_i64(c->reply, e && hash_has(e, c->argv[2]));
    }
}

READ_COMMAND(hlen_command)
{
    struct entry *e;
    if (call_read_typed(c, 0, VALUE_HASH, &e)) {
        reply_i64(c->reply, e ? (int64_t)hash_len(e) : 0);
    }
}

READ_COMMAND(hstrlen_command)
{
    struct entry *e;
    struct hash_text value;
    if (call_read_typed(c, 0, VALUE_HASH, &e)) {
        bool found = e && hash_get(e, c->argv[2], &value);
        reply_i64(c->reply, found ? (int64_t)value.bytes.len : 0);
    }
}

/* ---- removing and renaming ---- */

WRITE_COMMAND(hdel_command)
{
    struct keyref ref;
    int64_t deleted = 0;
    if (!open_hash(c, &ref)) {
        return;
    }
    bool emptied = false;
    for (int i = 2; ref.entry && !emptied && i < c->argc; i++) {
        if (hash_delete(ref.entry, c->argv[i])) {
            deleted++;
            emptied = hash_len(ref.entry) == 0;
        }
    }
    if (deleted > 0) {
        if (emptied) {
            propagate_emptied(&ref);
            db_delete(&ref, false);
        } else {
            struct entry *e = ref.entry;
            hash_fit(&e);
            settle(&ref, e);
        }
        call_changed(c, &ref, EVENT_HASH, "hdel");
        c->dirty += (uint64_t)deleted - 1;
        if (emptied) {
            event_notify(EVENT_GENERIC, "del", ref.db->id, ref.key.name);
        }
    }
    reply_i64(c->reply, deleted);
}

/* Peers: what came, and then what went, so that the hash is never empty between. */
static void tell_peers_renamed(struct call *c, struct slice key, struct slice value, int64_t at_ms)
    REQUIRES(keyspace_lock)
{
    TELL_PEERS(c, SLICE("HSET"), key, c->argv[3], value);
    if (at_ms != ENTRY_NO_EXPIRY) {
        char text[PROPAGATE_NUMBER_BYTES];
        TELL_PEERS(c, SLICE("PEXPIREMEMBERAT"), key, c->argv[3], propagate_number(at_ms, text));
    }
    TELL_PEERS(c, SLICE("HDEL"), key, c->argv[2]);
}

/* KeyDB's. The field takes its deadline along; one that gets the name it has stays as it is. */
WRITE_COMMAND(hrename_command)
{
    struct keyref ref;
    struct hash_text value;
    if (!open_hash(c, &ref)) {
        return;
    }
    if (!ref.entry) {
        reply_null(c->reply);
        return;
    }
    if (!hash_get(ref.entry, c->argv[2], &value)) {
        reply_error(c->reply, "ERR hash key doesn't exist");
        return;
    }
    if (!slice_equal(c->argv[2], c->argv[3])) {
        /* The value lies in the hash that changes; in a blob it only needs a reference. */
        struct blob *kept = value.blob ? blob_acquire(value.blob) : blob_create_copy(value.bytes);
        int64_t at_ms = member_ttl_get(ref.entry, c->argv[2]);
        hash_delete(ref.entry, c->argv[2]);
        set_field(&ref, c->argv[3], blob_slice(kept), kept);
        if (unlikely(propagate_peers)) {
            tell_peers_renamed(c, ref.key.name, blob_slice(kept), at_ms);
        }
        blob_release(&kept);
        if (at_ms != ENTRY_NO_EXPIRY) {
            bool done = db_set_member_ttl(&ref, c->argv[3], at_ms);
            (void)done; /* a name of more than 4 GiB: the field stays */
        }
        event_notify(EVENT_HASH, "hdel", ref.db->id, ref.key.name);
        call_changed(c, &ref, EVENT_HASH, "hset");
    }
    reply_i64(c->reply, 1);
}

const struct command_row hash_commands[] = {
    {.name = "hdel",
     .run = hdel_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RW+DELETE",
     .group = "hash",
     .since = "2.0.0",
     .summary = "Removes fields of a hash; a hash without fields is gone.",
     .complexity = "O(N), N being the fields to remove",
     .members = {2, 1},
     .args = "key field [field ...]",
     .history = "2.4.0:Takes several fields."},
    {.name = "hexists",
     .run = hexists_command,
     .arity = 3,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RO",
     .group = "hash",
     .since = "2.0.0",
     .summary = "Tells whether a hash has a field.",
     .complexity = "O(1)",
     .members = {2, 0},
     .args = "key field"},
    {.name = "hget",
     .run = hget_command,
     .arity = 3,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "hash",
     .since = "2.0.0",
     .summary = "Returns the value of a field.",
     .complexity = "O(1)",
     .members = {2, 0},
     .args = "key field"},
    {.name = "hincrby",
     .run = hincrby_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE",
     .group = "hash",
     .since = "2.0.0",
     .summary = "Adds to the integer in a field, which begins at 0.",
     .complexity = "O(1)",
     .members = {2, 0},
     .args = "key field increment"},
    {.name = "hincrbyfloat",
     .run = hincrbyfloat_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE",
     .group = "hash",
     .since = "2.6.0",
     .summary = "Adds to the floating-point number in a field, which begins at 0.",
     .complexity = "O(1)",
     .members = {2, 0},
     .args = "key field increment"},
    {.name = "hlen",
     .run = hlen_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RO",
     .group = "hash",
     .since = "2.0.0",
     .summary = "Returns the number of fields of a hash.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "hmget",
     .run = hmget_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "hash",
     .since = "2.0.0",
     .summary = "Returns the values of several fields; null where there is none.",
     .complexity = "O(N), N being the fields asked for",
     .members = {2, 1},
     .args = "key field [field ...]"},
    {.name = "hmset",
     .run = hmset_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "hash",
     .since = "2.0.0",
     .summary = "Sets several fields of a hash.",
     .complexity = "O(N), N being the fields to set",
     .members = {2, 2},
     .args = "key field value [field value ...]",
     .deprecated_since = "4.0.0",
     .replaced_by = "`HSET` with several fields"},
    {.name = "hset",
     .run = hset_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "hash",
     .since = "2.0.0",
     .summary = "Sets fields of a hash and returns how many are new.",
     .complexity = "O(N), N being the fields to set",
     .members = {2, 2},
     .args = "key field value [field value ...]",
     .history = "4.0.0:Takes several fields."},
    {.name = "hsetnx",
     .run = hsetnx_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RW+INSERT",
     .group = "hash",
     .since = "2.0.0",
     .summary = "Sets a field unless it exists.",
     .complexity = "O(1)",
     .members = {2, 0},
     .args = "key field value"},
    {.name = "hstrlen",
     .run = hstrlen_command,
     .arity = 3,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RO",
     .group = "hash",
     .since = "3.2.0",
     .summary = "Returns the length of the value of a field.",
     .complexity = "O(1)",
     .members = {2, 0},
     .args = "key field"},
    {.name = "keydb.hrename",
     .run = hrename_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE",
     .group = "hash",
     .since = "6.3.0",
     .summary = "Gives a field another name, replacing a field that has it.",
     .complexity = "O(1)",
     .members = {2, 0},
     .args = "key field newfield"},
    {.name = NULL},
};
