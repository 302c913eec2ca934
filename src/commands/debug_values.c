/* DEBUG's subcommands about how one value is kept. They run while the world stands still, and take
 * the keyspace lock for the background threads' and the analysis' sake: in exclusive mode, since
 * members that are due must go first (keyspace/db.h). */
#include "commands/debug_priv.h"
#include "keyspace/access.h"
#include "value/list.h"
#include "value/string.h"

#include <stdio.h>

/* The key's entry; NULL and an error replied when it is missing. */
static const struct entry *debug_find(struct call *c) REQUIRES_SHARED(keyspace_lock)
{
    struct key key = key_of(c->argv[2]);
    const struct entry *e = db_read(c->db, &key, c->now_ms, DB_NO_TOUCH | DB_NO_STATS);
    if (!e) {
        reply_no_such_key(c->reply);
    }
    return e;
}

/* ---- DEBUG OBJECT ---- */

/* Bytes of the value in a dump file, before compression: strings carry their length in 1, 2, 5 or 9
 * bytes, integers of up to 32 bits take 2, 3 or 5 bytes. Other types: what they take in memory. */
static size_t debug_serialized_bytes(const struct entry *e)
{
    if (entry_type(e) != VALUE_STRING) {
        const struct value_ops *ops = value_ops_of[entry_type(e)];
        return ops->memory ? ops->memory(e, 0) : 0;
    }
    int64_t number;
    if (string_get_integer(e, &number) && number >= INT32_MIN && number <= INT32_MAX) {
        bool small = number >= INT8_MIN && number <= INT8_MAX;
        bool medium = number >= INT16_MIN && number <= INT16_MAX;
        return small ? 2 : medium ? 3 : 5;
    }
    size_t len = string_len(e);
    return len + (len < 64 ? 1 : len < 16384 ? 2 : len <= UINT32_MAX ? 5 : 9);
}

/* What a list of several nodes tells besides. */
static void debug_quicklist_fields(const struct entry *e, struct buf *out)
{
    const struct quicklist *q = entry_type(e) == VALUE_LIST ? list_quicklist(e) : NULL;
    if (!q) {
        return;
    }
    struct quicklist_figures f = quicklist_figures(q);
    buf_printf(out,
               " ql_nodes:%llu ql_avg_node:%.2f ql_listpack_max:%lld ql_compressed:%d "
               "ql_uncompressed_size:%llu",
               (unsigned long long)f.nodes, (double)quicklist_count(q) / (double)f.nodes,
               (long long)f.fill, f.depth > 0, (unsigned long long)f.bytes);
}

static void debug_write_object(const struct entry *e, int64_t now_ms, bool fast, struct buf *out)
{
    buf_printf(out, "Value at:%p refcount:1 encoding:%s", (const void *)e,
               value_ops_of[entry_type(e)]->encoding(e));
    if (!fast) {
        buf_printf(out, " serializedlength:%zu", debug_serialized_bytes(e));
    }
    buf_printf(out, " lru:%u lru_seconds_idle:%lld", entry_clock(e) & ENTRY_CLOCK_MASK,
               access_is_lfu() ? 0LL : (long long)(access_idle_ms(e, now_ms) / 1000));
    debug_quicklist_fields(e, out);
}

/* DEBUG OBJECT key [FAST]: without what the value would take in a file. */
void debug_object(struct call *c)
{
    struct buf out = {0};
    bool fast = c->argc > 3;
    if (fast && !call_arg_is(c, 3, "fast")) {
        debug_reply_unknown(c);
        return;
    }
    keyspace_lock_exclusive();
    const struct entry *e = debug_find(c);
    if (e) {
        debug_write_object(e, c->now_ms, fast, &out);
        reply_status(c->reply, buf_cstr(&out));
    }
    keyspace_unlock_exclusive();
    buf_deinit(&out);
}

/* ---- DEBUG SDSLEN ---- */

/* The names are Redis's; a key is part of its entry, as short values are. */
void debug_sdslen(struct call *c)
{
    char text[256];
    keyspace_lock_exclusive();
    const struct entry *e = debug_find(c);
    int64_t number;
    if (e && (entry_type(e) != VALUE_STRING || string_get_integer(e, &number))) {
        reply_error(c->reply, "ERR Not an sds encoded string.");
    } else if (e) {
        const struct blob *blob = string_blob(e);
        size_t len = string_len(e);
        snprintf(text, sizeof(text),
                 "key_sds_len:%zu, key_sds_avail:0, key_zmalloc: %zu, val_sds_len:%zu, "
                 "val_sds_avail:%zu, val_zmalloc: %zu",
                 entry_key(e).len, entry_block_bytes(e), len, blob ? blob->capacity - len : 0,
                 entry_memory_bytes(e, 0) - entry_block_bytes(e));
        reply_status(c->reply, text);
    }
    keyspace_unlock_exclusive();
}

/* ---- DEBUG LISTPACK, DEBUG QUICKLIST ---- */

/* Tells of a value of that encoding where the log goes when it has no file, as Redis does. */
static void debug_print(struct call *c, const char *encoding, bool elements, const char *said,
                        const char *refused)
{
    struct buf out = {0};
    keyspace_lock_exclusive();
    const struct entry *e = debug_find(c);
    const struct value_ops *ops = e ? value_ops_of[entry_type(e)] : NULL;
    if (ops && ops->describe && strcmp(ops->encoding(e), encoding) == 0) {
        ops->describe(e, elements, &out);
        fwrite(out.data, 1, out.len, stdout);
        fflush(stdout);
        reply_status(c->reply, said);
    } else if (e) {
        reply_error(c->reply, refused);
    }
    keyspace_unlock_exclusive();
    buf_deinit(&out);
}

void debug_listpack(struct call *c)
{
    debug_print(c, "listpack", false, "Listpack structure printed on stdout",
                "ERR Not a listpack encoded object.");
}

/* DEBUG QUICKLIST key [0|1]: 1 shows the elements as well. */
void debug_quicklist(struct call *c)
{
    int64_t elements = 0;
    if (c->argc > 3 && !call_arg_i64(c, 3, &elements)) {
        return;
    }
    debug_print(c, "quicklist", elements != 0, "Quicklist structure printed on stdout",
                "ERR Not a quicklist encoded object.");
}
