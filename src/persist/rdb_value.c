/* See rdb_value.h. */
#include "persist/rdb_value_priv.h"

#include "base/mem.h"
#include "base/num.h"
#include "persist/packed.h"
#include "persist/rdb_build.h"
#include "persist/rdb_format.h"
#include "value/hash.h"
#include "value/list.h"
#include "value/member_ttl.h"
#include "value/set.h"
#include "value/string.h"
#include "value/zset.h"

#include <math.h>

/* ---- Writing ---- */

static void save_string(struct rdb_writer *w, const struct entry *e)
{
    char scratch[STRING_VIEW_BYTES];
    rdb_write_string(w, string_view(e, scratch));
}

static void save_list(struct rdb_writer *w, const struct entry *e)
{
    struct list_cursor c;
    rdb_write_len(w, list_count(e));
    list_cursor_open(&c, e, 0, false);
    while (list_cursor_next(&c)) {
        rdb_write_string(w, list_cursor_get(&c));
    }
    list_cursor_close(&c);
}

static void save_set(struct rdb_writer *w, const struct entry *e)
{
    struct set_walk walk;
    struct set_member m;
    rdb_write_len(w, set_count(e));
    set_walk_begin(&walk, e);
    while (set_walk_next(&walk, &m)) {
        rdb_write_string(w, set_member_bytes(&m));
    }
}

static void save_zset(struct rdb_writer *w, const struct entry *e)
{
    rdb_write_len(w, zset_count(e));
    struct zset_cursor c = zset_cursor_at(e, 0, false);
    for (; zset_cursor_valid(&c); zset_cursor_step(&c)) {
        char text[ZSET_TEXT_BYTES];
        rdb_write_string(w, zset_cursor_member(&c, text));
        rdb_write_double(w, zset_cursor_score(&c));
    }
}

static void save_field(const struct hash_item *item, void *writer)
{
    rdb_write_string(writer, item->field);
    rdb_write_string(writer, item->value.bytes);
}

static void save_hash(struct rdb_writer *w, const struct entry *e)
{
    rdb_write_len(w, hash_len(e));
    hash_each(e, save_field, w);
}

struct hash_saver {
    struct rdb_writer *w;
    const struct entry *e;
    int64_t next_ms;
};

/* A field with its deadline, counted from the earliest one: 0 is none, 1 that one. */
static void save_field_due(const struct hash_item *item, void *context)
{
    struct hash_saver *s = context;
    int64_t at_ms = member_ttl_get(s->e, item->field);
    rdb_write_len(s->w, at_ms == ENTRY_NO_EXPIRY ? 0 : (uint64_t)(at_ms - s->next_ms) + 1);
    save_field(item, s->w);
}

static void save_hash_due(struct rdb_writer *w, const struct entry *e)
{
    struct hash_saver s = {w, e, member_ttl_next_ms(e)};
    rdb_write_u64(w, (uint64_t)s.next_ms);
    rdb_write_len(w, hash_len(e));
    hash_each(e, save_field_due, &s);
}

static void save_due(struct rdb_writer *w, const struct entry *e, struct slice member)
{
    int64_t at_ms = member_ttl_get(e, member);
    if (at_ms != ENTRY_NO_EXPIRY) {
        rdb_write_string(w, member);
        rdb_write_u64(w, (uint64_t)at_ms);
    }
}

/* A set or sorted set of which members have deadlines. */
static void save_members_due(struct rdb_writer *w, const struct entry *e)
{
    rdb_write_len(w, member_ttl_count(e));
    if (entry_type(e) == VALUE_SET) {
        struct set_walk walk;
        struct set_member m;
        set_walk_begin(&walk, e);
        while (set_walk_next(&walk, &m)) {
            save_due(w, e, set_member_bytes(&m));
        }
        rdb_write_byte(w, RDB_SET);
        save_set(w, e);
    } else {
        struct zset_cursor c = zset_cursor_at(e, 0, false);
        for (; zset_cursor_valid(&c); zset_cursor_step(&c)) {
            char text[ZSET_TEXT_BYTES];
            save_due(w, e, zset_cursor_member(&c, text));
        }
        rdb_write_byte(w, RDB_ZSET_2);
        save_zset(w, e);
    }
}

/* How a type is written, and how while members of it have deadlines. */
struct save_row {
    unsigned type, type_due;
    void (*save)(struct rdb_writer *w, const struct entry *e);
    void (*save_due)(struct rdb_writer *w, const struct entry *e);
};

static const struct save_row save_rows[VALUE_TYPE_COUNT] = {
    [VALUE_STRING] = {.type = RDB_STRING, .save = save_string},
    [VALUE_LIST] = {.type = RDB_LIST, .save = save_list},
    [VALUE_SET] = {RDB_SET, RDB_MEMBER_TTL, save_set, save_members_due},
    [VALUE_ZSET] = {RDB_ZSET_2, RDB_MEMBER_TTL, save_zset, save_members_due},
    [VALUE_HASH] = {RDB_HASH, RDB_HASH_METADATA, save_hash, save_hash_due},
    [VALUE_STREAM] = {.type = RDB_STREAM_2, .save = rdb_save_stream},
    [VALUE_NESTED] = {.type = RDB_NESTED, .save = rdb_save_nested},
    [VALUE_CRON] = {.type = RDB_JOB, .save = rdb_save_job},
    [VALUE_MODULE] = {.type = RDB_MODULE, .save = rdb_save_module},
};

unsigned rdb_value_type(const struct entry *e)
{
    const struct save_row *row = &save_rows[entry_type(e)];
    assert(row->save && (row->save_due || !member_ttl_any(e)));
    return member_ttl_any(e) ? row->type_due : row->type;
}

void rdb_save_value(struct rdb_writer *w, const struct entry *e)
{
    const struct save_row *row = &save_rows[entry_type(e)];
    (member_ttl_any(e) ? row->save_due : row->save)(w, e);
}

/* ---- Reading ---- */

static const char damaged[] = "a collection that is damaged";

static bool load_string(struct rdb_reader *r, unsigned type, struct slice key, struct entry **e)
{
    (void)type;
    struct buf text = {0};
    bool ok = rdb_read_string(r, &text);
    if (ok) {
        *e = string_create(key, buf_slice(&text), ENTRY_NO_EXPIRY);
    }
    buf_deinit(&text);
    return ok;
}

/* Ends the building, whose steps so far went well or not. */
static bool finish(struct rdb_reader *r, struct rdb_build *b, bool ok, struct entry **e)
{
    ok = ok && (rdb_build_finish(b, e) || rdb_fail(r, damaged));
    rdb_build_drop(b);
    return ok;
}

/* RDB_LIST, RDB_SET, RDB_HASH: a count, then strings. */
static bool load_strings(struct rdb_reader *r, unsigned type, struct slice key, struct entry **e)
{
    struct rdb_build b;
    struct buf text = {0};
    uint64_t count;
    enum value_type kind = type == RDB_LIST ? VALUE_LIST : type == RDB_SET ? VALUE_SET : VALUE_HASH;
    size_t each = kind == VALUE_HASH ? 2 : 1;
    if (!rdb_read_count(r, each, &count)) {
        return false;
    }
    rdb_build_begin(&b, kind, key, count);
    bool ok = true;
    for (uint64_t i = count * each; ok && i > 0; i--) {
        ok = rdb_read_string(r, &text) &&
             (rdb_build_add(buf_slice(&text), &b) || rdb_fail(r, damaged));
    }
    buf_deinit(&text);
    return finish(r, &b, ok, e);
}

/* A score in the old form: a length and its text, or one of three numbers instead of the length. */
static bool read_old_score(struct rdb_reader *r, double *score)
{
    unsigned len;
    char text[256];
    if (!rdb_read_byte(r, &len)) {
        return false;
    }
    if (len >= 253) {
        *score = len == 253 ? (double)NAN : len == 254 ? (double)INFINITY : -(double)INFINITY;
        return true;
    }
    return rdb_read(r, text, len) && (num_parse_double(slice_of(text, len), score) ||
                                      rdb_fail(r, "a score that is no number"));
}

static bool load_zset(struct rdb_reader *r, unsigned type, struct slice key, struct entry **e)
{
    struct rdb_build b;
    struct buf text = {0};
    uint64_t count;
    if (!rdb_read_count(r, 2, &count)) {
        return false;
    }
    rdb_build_begin(&b, VALUE_ZSET, key, count);
    bool ok = true;
    for (; ok && count > 0; count--) {
        double score;
        ok = rdb_read_string(r, &text) &&
             (type == RDB_ZSET ? read_old_score(r, &score) : rdb_read_double(r, &score)) &&
             (rdb_build_add_scored(&b, buf_slice(&text), score) || rdb_fail(r, damaged));
    }
    buf_deinit(&text);
    return finish(r, &b, ok, e);
}

/* What is packed into one string, and how. */
struct packed_row {
    enum value_type type;
    bool (*each)(struct slice bytes, packed_visit_fn visit, void *context);
};

static const struct packed_row packed_rows[RDB_TYPE_COUNT] = {
    [RDB_HASH_ZIPMAP] = {VALUE_HASH, packed_each_zipmap},
    [RDB_LIST_ZIPLIST] = {VALUE_LIST, packed_each_ziplist},
    [RDB_SET_INTSET] = {VALUE_SET, packed_each_intset},
    [RDB_ZSET_ZIPLIST] = {VALUE_ZSET, packed_each_ziplist},
    [RDB_HASH_ZIPLIST] = {VALUE_HASH, packed_each_ziplist},
    [RDB_HASH_LISTPACK] = {VALUE_HASH, packed_each_listpack},
    [RDB_ZSET_LISTPACK] = {VALUE_ZSET, packed_each_listpack},
    [RDB_SET_LISTPACK] = {VALUE_SET, packed_each_listpack},
    [RDB_HASH_LISTPACK_EX] = {VALUE_HASH, packed_each_listpack},
};

static bool load_packed(struct rdb_reader *r, unsigned type, struct slice key, struct entry **e)
{
    const struct packed_row *row = &packed_rows[type];
    struct rdb_build b;
    struct buf text = {0};
    uint64_t next_ms;
    assert(row->each);
    /* The earliest deadline stands first; the fields have them anyway. */
    if (type == RDB_HASH_LISTPACK_EX && !rdb_read_u64(r, &next_ms)) {
        return false;
    }
    bool ok = rdb_read_string(r, &text);
    /* Hardly more elements than bytes, which decides about nothing but the encoding at first. */
    uint64_t expected = ok && type == RDB_SET_INTSET && text.len >= 8 ? (text.len - 8) / 8 : 1;
    rdb_build_begin(&b, row->type, key, expected);
    b.with_deadlines = type == RDB_HASH_LISTPACK_EX;
    ok = ok && (row->each(buf_slice(&text), rdb_build_add, &b) || rdb_fail(r, damaged));
    buf_deinit(&text);
    return finish(r, &b, ok, e);
}

/* One node of a list: packed, or (RDB_LIST_QUICKLIST_2, kind 1) an element that stands alone. */
static bool load_list_node(struct rdb_reader *r, unsigned type, struct rdb_build *b,
                           struct buf *text)
{
    uint64_t kind = 2;
    if ((type == RDB_LIST_QUICKLIST_2 && !rdb_read_len(r, &kind)) || !rdb_read_string(r, text)) {
        return false;
    }
    struct slice bytes = buf_slice(text);
    bool ok = false;
    if (type == RDB_LIST_QUICKLIST) {
        ok = packed_each_ziplist(bytes, rdb_build_add, b);
    } else if (kind == 2) {
        ok = packed_each_listpack(bytes, rdb_build_add, b);
    } else if (kind == 1) {
        ok = rdb_build_add(bytes, b);
    }
    return ok || rdb_fail(r, damaged);
}

static bool load_quicklist(struct rdb_reader *r, unsigned type, struct slice key, struct entry **e)
{
    struct rdb_build b;
    struct buf text = {0};
    uint64_t nodes;
    if (!rdb_read_count(r, 1, &nodes)) {
        return false;
    }
    rdb_build_begin(&b, VALUE_LIST, key, 0);
    bool ok = true;
    for (; ok && nodes > 0; nodes--) {
        ok = load_list_node(r, type, &b, &text);
    }
    buf_deinit(&text);
    return finish(r, &b, ok, e);
}

/* A deadline counted from `next_ms` (save_field_due). */
static bool load_field_due(struct rdb_reader *r, struct rdb_build *b, uint64_t next_ms,
                           struct buf *text)
{
    uint64_t due;
    if (!rdb_read_len(r, &due) || !rdb_read_string(r, text)) {
        return false;
    }
    if (due > INT64_MAX || (due > 0 && next_ms > INT64_MAX - (due - 1)) ||
        (due > 0 && !rdb_build_add_deadline(b, buf_slice(text), (int64_t)(next_ms + due - 1))) ||
        !rdb_build_add(buf_slice(text), b)) {
        return rdb_fail(r, damaged);
    }
    return rdb_read_string(r, text) && (rdb_build_add(buf_slice(text), b) || rdb_fail(r, damaged));
}

static bool load_hash_due(struct rdb_reader *r, unsigned type, struct slice key, struct entry **e)
{
    (void)type;
    struct rdb_build b;
    struct buf text = {0};
    uint64_t next_ms, count;
    if (!rdb_read_u64(r, &next_ms) || !rdb_read_count(r, 3, &count)) {
        return false;
    }
    if (next_ms > INT64_MAX) {
        return rdb_fail(r, "a time beyond all times");
    }
    rdb_build_begin(&b, VALUE_HASH, key, count);
    bool ok = true;
    for (; ok && count > 0; count--) {
        ok = load_field_due(r, &b, next_ms, &text);
    }
    buf_deinit(&text);
    return finish(r, &b, ok, e);
}

/* Deadlines, then the set or sorted set whose members have them. */
static bool load_members_due(struct rdb_reader *r, unsigned type, struct slice key,
                             struct entry **e)
{
    (void)type;
    struct rdb_build due;
    struct buf text = {0};
    uint64_t count;
    unsigned inner = RDB_STRING;
    if (!rdb_read_count(r, 9, &count)) {
        return false;
    }
    rdb_build_begin(&due, VALUE_SET, key, 0);
    bool ok = true;
    for (; ok && count > 0; count--) {
        uint64_t at_ms;
        ok = rdb_read_string(r, &text) && rdb_read_u64(r, &at_ms) &&
             (rdb_build_add_deadline(&due, buf_slice(&text), (int64_t)at_ms) ||
              rdb_fail(r, damaged));
    }
    buf_deinit(&text);
    ok = ok && rdb_read_byte(r, &inner) &&
         (inner == RDB_SET || inner == RDB_ZSET_2 || rdb_fail(r, damaged)) &&
         rdb_load_value(r, inner, key, e);
    ok = ok && (rdb_build_deadlines(&due, e) || rdb_fail(r, damaged));
    rdb_build_drop(&due);
    return ok;
}

typedef bool (*load_fn)(struct rdb_reader *r, unsigned type, struct slice key, struct entry **e);

static const load_fn load_rows[RDB_TYPE_COUNT] = {
    [RDB_STRING] = load_string,
    [RDB_LIST] = load_strings,
    [RDB_SET] = load_strings,
    [RDB_HASH] = load_strings,
    [RDB_ZSET] = load_zset,
    [RDB_ZSET_2] = load_zset,
    [RDB_MODULE] = rdb_load_module,
    [RDB_HASH_ZIPMAP] = load_packed,
    [RDB_LIST_ZIPLIST] = load_packed,
    [RDB_SET_INTSET] = load_packed,
    [RDB_ZSET_ZIPLIST] = load_packed,
    [RDB_HASH_ZIPLIST] = load_packed,
    [RDB_LIST_QUICKLIST] = load_quicklist,
    [RDB_STREAM] = rdb_load_stream,
    [RDB_HASH_LISTPACK] = load_packed,
    [RDB_ZSET_LISTPACK] = load_packed,
    [RDB_LIST_QUICKLIST_2] = load_quicklist,
    [RDB_STREAM_2] = rdb_load_stream,
    [RDB_SET_LISTPACK] = load_packed,
    [RDB_STREAM_3] = rdb_load_stream,
    [RDB_HASH_METADATA] = load_hash_due,
    [RDB_HASH_LISTPACK_EX] = load_packed,
    [RDB_MEMBER_TTL] = load_members_due,
    [RDB_NESTED] = rdb_load_nested,
    [RDB_KEYDB_CRON] = rdb_load_job,
    [RDB_JOB] = rdb_load_job,
};

bool rdb_load_value(struct rdb_reader *r, unsigned type, struct slice key, struct entry **e)
{
    *e = NULL;
    if (type >= RDB_TYPE_COUNT || !load_rows[type]) {
        return rdb_fail(r, "a value of unknown type");
    }
    bool ok = load_rows[type](r, type, key, e);
    if (!ok && *e) {
        entry_destroy(e);
    }
    return ok;
}
