/* Keys whatever their type: deleting, copying, moving, renaming, asking. Expiry is in
 * keys_expire.c, SCAN and KEYS in keys_scan.c, OBJECT in keys_object.c. */
#include "commands/commands.h"
#include "commands/reads_priv.h"

#include "engine/propagate.h"
#include "keyspace/access.h"
#include "keyspace/reclaim.h"
#include "value/module.h"

/* ---- Asking ---- */

READ_COMMAND(exists_command)
{
    int64_t found = 0;
    for (int k = 0; k < c->key_count; k++) {
        found += reads_look(c, k) != NULL;
    }
    reply_i64(c->reply, found);
}

READ_COMMAND(mexists_command)
{
    reply_array(c->reply, (uint64_t)c->key_count);
    for (int k = 0; k < c->key_count; k++) {
        reply_bool(c->reply, reads_look(c, k) != NULL);
    }
}

/* The one command that counts as an access under CLIENT NO-TOUCH too. */
READ_COMMAND(touch_command)
{
    int64_t found = 0;
    for (int k = 0; k < c->key_count; k++) {
        found += db_read(c->db, call_key(c, k), c->now_ms, 0) != NULL;
    }
    reply_i64(c->reply, found);
}

READ_COMMAND(type_command)
{
    const struct entry *e = reads_look(c, 0);
    reply_status(c->reply, e ? value_type_name(e) : "none");
}

READ_COMMAND(randomkey_command)
{
    const struct entry *e = db_random(c->db, c->now_ms);
    if (e) {
        reply_bulk(c->reply, entry_key(e));
    } else {
        reply_null(c->reply);
    }
}

/* ---- Deleting ---- */

static void delete_keys(struct call *c, bool lazily) REQUIRES(keyspace_lock)
{
    int64_t deleted = 0;
    for (int k = 0; k < c->key_count; k++) {
        struct keyref ref;
        call_open(c, k, &ref);
        if (ref.entry && db_delete(&ref, lazily)) {
            call_changed(c, &ref, EVENT_GENERIC, "del");
            deleted++;
        }
    }
    reply_i64(c->reply, deleted);
}

WRITE_COMMAND(del_command)
{
    delete_keys(c, reclaim_lazy_user_del());
}

/* KeyDB's name goes out as the one that everybody knows. */
WRITE_COMMAND(expdel_command)
{
    delete_keys(c, reclaim_lazy_user_del());
    if (unlikely(propagate_on) && c->dirty > 0) {
        struct propagate_draft d = {0};
        propagate_add(&d, SLICE("DEL"));
        for (int i = 1; i < c->argc; i++) {
            propagate_add(&d, c->argv[i]);
        }
        propagate_draft_instead(c, &d);
    }
}

WRITE_COMMAND(unlink_command)
{
    delete_keys(c, true);
}

/* ---- Renaming, moving, copying ---- */

/* Puts the entry there, with its own access clock. Redis deletes first what it replaces, so that
 * the key counts as new in any case. */
static void put_as_new(struct keyref *ref, struct entry *entry_take) REQUIRES(keyspace_lock)
{
    bool replaced = ref->entry != NULL;
    uint32_t clock = entry_clock(entry_take);
    if (replaced) {
        event_key_goes(GOING_DELETED, ref->db, ref->key.name);
    }
    db_put(ref, entry_take);
    entry_set_clock(ref->entry, clock);
    if (replaced) {
        event_notify(EVENT_NEW, "new", ref->db->id, ref->key.name);
    }
}

/* Moves key 0's entry under the name of key 1. With `only_new` nothing happens when that is taken.
 * *renamed says whether something did; false when there is no key 0 (replied). Each removal may
 * shift other slots, so keys are opened anew after it. */
static bool rename_key(struct call *c, bool only_new, bool *renamed) REQUIRES(keyspace_lock)
{
    struct keyref from, to;
    *renamed = false;
    call_open(c, 0, &from);
    if (!from.entry) {
        reply_no_such_key(c->reply);
        return false;
    }
    if (slice_equal(from.key.name, call_key(c, 1)->name)) {
        return true;
    }
    call_open(c, 1, &to);
    if (to.entry && only_new) {
        return true;
    }
    call_open_again(c, 0, &from);
    struct entry *e = entry_with_key(db_take(&from), to.key.name);
    call_open_again(c, 1, &to);
    put_as_new(&to, e);
    /* One change for the count of changes, two for those who watch keys. */
    event_key_changed(from.db, from.key.name);
    event_notify(EVENT_GENERIC, "rename_from", from.db->id, from.key.name);
    call_changed(c, &to, EVENT_GENERIC, "rename_to");
    if (unlikely(propagate_peers)) {
        propagate_key_to_peers(c, c->db, call_key(c, 0));
        propagate_key_to_peers(c, c->db, call_key(c, 1));
    }
    *renamed = true;
    return true;
}

WRITE_COMMAND(rename_command)
{
    bool renamed;
    if (rename_key(c, false, &renamed)) {
        reply_ok(c->reply);
    }
}

WRITE_COMMAND(renamenx_command)
{
    bool renamed;
    if (rename_key(c, true, &renamed)) {
        reply_i64(c->reply, renamed);
    }
}

/* Reads a database's number from argument `arg`; NULL with the error replied. */
static struct db *db_of_arg(struct call *c, int arg)
{
    int64_t index;
    if (!call_arg_range(c, arg, INT32_MIN, INT32_MAX, &index, NULL)) {
        return NULL;
    }
    if (index < 0 || index >= db_count()) {
        reply_error(c->reply, "ERR DB index is out of range");
        return NULL;
    }
    return db_at((int)index);
}

static void reply_same_object(struct call *c)
{
    reply_error(c->reply, "ERR source and destination objects are the same");
}

WRITE_COMMAND(move_command)
{
    struct keyref from, to;
    struct db *target = db_of_arg(c, 2);
    if (!target) {
        return;
    }
    if (target == c->db) {
        reply_same_object(c);
        return;
    }
    call_open(c, 0, &from);
    if (from.entry) {
        db_open(&to, target, &from.key, c->now_ms, call_look_flags(c));
    }
    if (!from.entry || to.entry) {
        reply_i64(c->reply, 0);
        return;
    }
    db_put(&to, db_take(&from));
    event_key_changed(from.db, from.key.name);
    event_notify(EVENT_GENERIC, "move_from", from.db->id, from.key.name);
    call_changed(c, &to, EVENT_GENERIC, "move_to");
    if (unlikely(propagate_peers)) {
        propagate_key_to_peers(c, c->db, call_key(c, 0));
        propagate_key_to_peers(c, target, call_key(c, 0));
    }
    reply_i64(c->reply, 1);
}

/* Reads COPY's options; false with an error replied. */
static bool copy_options(struct call *c, struct db **target, bool *replace)
{
    *target = c->db;
    *replace = false;
    for (int i = 3; i < c->argc; i++) {
        if (call_arg_is(c, i, "replace")) {
            *replace = true;
        } else if (call_arg_is(c, i, "db") && i + 1 < c->argc) {
            *target = db_of_arg(c, ++i);
            if (!*target) {
                return false;
            }
        } else {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    return true;
}

/* A copy under another key; NULL and an error replied where a module cannot make one. */
static struct entry *copy_entry(struct call *c, const struct entry *e, const struct db *target,
                                struct slice key)
{
    if (likely(entry_type(e) != VALUE_MODULE)) {
        return entry_copy(e, key, entry_expiry_ms(e));
    }
    struct entry *copy = module_value_copy(e, c->db->id, key, target->id, entry_expiry_ms(e));
    if (!copy) {
        reply_error(c->reply, module_value_kind(e)->copies
                                  ? "ERR module key failed to copy"
                                  : "ERR not supported for this module key");
    }
    return copy;
}

WRITE_COMMAND(copy_command)
{
    struct keyref from, to;
    struct db *target;
    bool replace;
    if (!copy_options(c, &target, &replace)) {
        return;
    }
    if (target == c->db && slice_equal(call_key(c, 0)->name, call_key(c, 1)->name)) {
        reply_same_object(c);
        return;
    }
    call_open(c, 0, &from);
    reads_count(&from);
    if (from.entry) {
        /* May delete an expired key, after which only from's entry, not its slot, is still good. */
        db_open(&to, target, call_key(c, 1), c->now_ms, call_look_flags(c));
    }
    if (!from.entry || (to.entry && !replace)) {
        reply_i64(c->reply, 0);
        return;
    }
    /* A string's copy shares its bytes. */
    if (entry_type(from.entry) != VALUE_STRING && !call_reserve(c, call_copy_bytes(from.entry))) {
        return;
    }
    struct entry *copy = copy_entry(c, from.entry, target, to.key.name);
    if (!copy) {
        call_unreserve();
        return;
    }
    entry_set_clock(copy, access_initial(c->now_ms));
    put_as_new(&to, copy);
    call_unreserve();
    call_changed(c, &to, EVENT_GENERIC, "copy_to");
    if (unlikely(propagate_peers)) {
        propagate_key_to_peers(c, target, call_key(c, 1));
    }
    reply_i64(c->reply, 1);
}

/* ---- Fences ---- */

/* Every read sees all writes that were answered before it was sent: the keyspace lock orders them.
 * So there is nothing to wait for. */
READ_COMMAND(lfence_command)
{
    reply_ok(c->reply);
}

const struct command_row key_commands[] = {
    {.name = "copy",
     .run = copy_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_SLOW,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RO+ACCESS; i2/r0,1,0/OW+UPDATE",
     .group = "generic",
     .since = "6.2.0",
     .summary = "Copies a value to another key, in this or another database.",
     .complexity = "O(N), N being the elements of the value; O(1) for strings",
     .args = "source destination [DB destination-db] [REPLACE]"},
    {.name = "del",
     .run = del_command,
     .arity = -2,
     .flags = CMD_WRITE,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r-1,1,0/RM+DELETE",
     .tips = "request_policy:multi_shard,response_policy:agg_sum",
     .group = "generic",
     .since = "1.0.0",
     .summary = "Deletes keys.",
     .complexity = "O(N), N being the number of keys; values are freed after the command",
     .args = "key [key ...]"},
    {.name = "exists",
     .run = exists_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r-1,1,0/RO",
     .tips = "request_policy:multi_shard,response_policy:agg_sum",
     .group = "generic",
     .since = "1.0.0",
     .summary = "Counts how many of the keys exist; one named twice counts twice.",
     .complexity = "O(N), N being the number of keys",
     .args = "key [key ...]",
     .history = "3.0.3:Takes several keys."},
    {.name = "expdel",
     .run = expdel_command,
     .arity = -2,
     .flags = CMD_WRITE,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r-1,1,0/RM+DELETE",
     .tips = "request_policy:multi_shard,response_policy:agg_sum",
     .group = "generic",
     .since = "6.3.0",
     .summary = "Deletes keys: KeyDB's second name of DEL.",
     .complexity = "O(N), N being the number of keys; values are freed after the command",
     .args = "key [key ...]"},
    {.name = "keydb.mexists",
     .run = mexists_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r-1,1,0/RO",
     .tips = "request_policy:multi_shard",
     .group = "generic",
     .since = "6.3.0",
     .summary = "Tells for each of the keys whether it exists.",
     .complexity = "O(N), N being the number of keys",
     .args = "key [key ...]"},
    {.name = "lfence",
     .run = lfence_command,
     .arity = 1,
     .flags = CMD_READONLY | CMD_STALE,
     .categories = CATEGORY_KEYSPACE,
     .tips = "nondeterministic_output",
     .group = "generic",
     .since = "6.3.0",
     .summary = "Makes later reads see all writes so far; here every read does.",
     .complexity = "O(1)"},
    {.name = "move",
     .run = move_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE",
     .group = "generic",
     .since = "1.0.0",
     .summary = "Moves a key to another database.",
     .complexity = "O(1)",
     .args = "key db"},
    {.name = "randomkey",
     .run = randomkey_command,
     .arity = 1,
     .flags = CMD_READONLY,
     .categories = CATEGORY_KEYSPACE,
     .tips = "request_policy:all_shards,response_policy:special,nondeterministic_output",
     .group = "generic",
     .since = "1.0.0",
     .summary = "Returns a key chosen at random.",
     .complexity = "O(1)"},
    {.name = "rename",
     .run = rename_command,
     .arity = 3,
     .flags = CMD_WRITE,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RW+ACCESS+DELETE; i2/r0,1,0/OW+UPDATE",
     .group = "generic",
     .since = "1.0.0",
     .summary = "Renames a key, replacing what has the new name.",
     .complexity = "O(1)",
     .args = "key newkey",
     .history = "3.2.0:The same name twice is no error."},
    {.name = "renamenx",
     .run = renamenx_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RW+ACCESS+DELETE; i2/r0,1,0/OW+INSERT",
     .group = "generic",
     .since = "1.0.0",
     .summary = "Renames a key unless the new name is taken.",
     .complexity = "O(1)",
     .args = "key newkey",
     .history = "3.2.0:The same name twice is no error."},
    {.name = "touch",
     .run = touch_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r-1,1,0/RO",
     .tips = "request_policy:multi_shard,response_policy:agg_sum",
     .group = "generic",
     .since = "3.2.1",
     .summary = "Marks keys as accessed just now and counts those that exist.",
     .complexity = "O(N), N being the number of keys",
     .args = "key [key ...]"},
    {.name = "type",
     .run = type_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RO",
     .group = "generic",
     .since = "1.0.0",
     .summary = "Returns the type of the value at a key.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "unlink",
     .run = unlink_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r-1,1,0/RM+DELETE",
     .tips = "request_policy:multi_shard,response_policy:agg_sum",
     .group = "generic",
     .since = "4.0.0",
     .summary = "Deletes keys and frees large values in the background.",
     .complexity = "O(N), N being the number of keys",
     .args = "key [key ...]"},
    {.name = NULL},
};
