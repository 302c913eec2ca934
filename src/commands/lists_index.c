/* Lists by index and by content: LINDEX, LSET, LRANGE, LTRIM, LINSERT, LREM, LPOS. */
#include "commands/commands.h"
#include "commands/lists_priv.h"

/* The index that counts from the head, for one that counts from the tail where it is negative;
 * false when it is not within. */
static bool absolute_index(const struct entry *e, int64_t index, uint64_t *absolute)
{
    int64_t len = (int64_t)list_count(e);
    index = index < 0 ? index + len : index;
    *absolute = (uint64_t)index;
    return index >= 0 && index < len;
}

/* The elements that inclusive bounds name, negative ones counting from the tail; *count 0: none. */
static void absolute_range(const struct entry *e, int64_t start, int64_t stop, uint64_t *first,
                           uint64_t *count)
{
    int64_t len = (int64_t)list_count(e);
    start = start < 0 ? start + len : start;
    stop = stop < 0 ? stop + len : stop;
    start = start < 0 ? 0 : start;
    stop = stop >= len ? len - 1 : stop;
    bool empty = start > stop || start >= len;
    *first = empty ? 0 : (uint64_t)start;
    *count = empty ? 0 : (uint64_t)(stop - start) + 1;
}

READ_COMMAND(lindex_command)
{
    struct entry *e;
    int64_t index;
    uint64_t absolute;
    if (!call_read_typed(c, 0, VALUE_LIST, &e)) {
        return;
    }
    if (!e) {
        reply_null(c->reply);
        return;
    }
    if (!call_arg_i64(c, 2, &index)) {
        return;
    }
    if (!absolute_index(e, index, &absolute)) {
        reply_null(c->reply);
        return;
    }
    struct list_cursor cursor;
    list_cursor_open(&cursor, e, absolute, false);
    bool there = list_cursor_next(&cursor);
    assert(there);
    (void)there;
    reply_bulk(c->reply, list_cursor_get(&cursor));
    list_cursor_close(&cursor);
}

WRITE_COMMAND(lset_command)
{
    struct keyref ref;
    int64_t index;
    uint64_t absolute;
    call_open(c, 0, &ref);
    if (!ref.entry) {
        reply_no_such_key(c->reply);
        return;
    }
    if (entry_type(ref.entry) != VALUE_LIST) {
        reply_wrong_type(c->reply);
        return;
    }
    if (!call_arg_i64(c, 2, &index)) {
        return;
    }
    if (!absolute_index(ref.entry, index, &absolute)) {
        reply_error(c->reply, "ERR index out of range");
        return;
    }
    list_replace(ref.entry, absolute, c->argv[3]);
    list_shrink(ref.entry);
    call_changed(c, &ref, EVENT_LIST, "lset");
    reply_ok(c->reply);
}

READ_COMMAND(lrange_command)
{
    struct entry *e;
    int64_t start, stop;
    uint64_t first = 0, count = 0;
    if (!call_arg_i64(c, 2, &start) || !call_arg_i64(c, 3, &stop) ||
        !call_read_typed(c, 0, VALUE_LIST, &e)) {
        return;
    }
    if (e) {
        absolute_range(e, start, stop, &first, &count);
    }
    lists_reply_elements(c, e, first, count, false);
}

WRITE_COMMAND(ltrim_command)
{
    struct keyref ref;
    int64_t start, stop;
    uint64_t first, count;
    if (!call_arg_i64(c, 2, &start) || !call_arg_i64(c, 3, &stop) ||
        !call_open_typed(c, 0, VALUE_LIST, &ref)) {
        return;
    }
    reply_ok(c->reply);
    if (!ref.entry) {
        return;
    }
    absolute_range(ref.entry, start, stop, &first, &count);
    uint64_t len = list_count(ref.entry);
    list_remove_range(ref.entry, first + count, len - first - count);
    list_remove_range(ref.entry, 0, first);
    /* Told even where nothing was trimmed, but then there is nothing to hand on. */
    uint64_t dirty = c->dirty;
    lists_removed(c, &ref, "ltrim");
    c->dirty = dirty + (len - count);
}

/* ---- By content ---- */

/* The index of the first element equal to `pivot`; false when there is none. */
static bool find_first(const struct entry *e, struct slice pivot, uint64_t *index)
{
    struct list_cursor cursor;
    bool found = false;
    list_cursor_open(&cursor, e, 0, false);
    for (*index = 0; !found && list_cursor_next(&cursor);) {
        found = list_cursor_equals(&cursor, pivot);
        *index += !found;
    }
    list_cursor_close(&cursor);
    return found;
}

WRITE_COMMAND(linsert_command)
{
    struct keyref ref;
    uint64_t index;
    bool after = call_arg_is(c, 2, "after");
    if (!after && !call_arg_is(c, 2, "before")) {
        reply_syntax_error(c->reply);
        return;
    }
    if (!call_open_typed(c, 0, VALUE_LIST, &ref)) {
        return;
    }
    if (!ref.entry) {
        reply_i64(c->reply, 0);
        return;
    }
    if (!find_first(ref.entry, c->argv[3], &index)) {
        reply_i64(c->reply, -1);
        return;
    }
    list_insert(ref.entry, index + after, c->argv[4]);
    call_changed(c, &ref, EVENT_LIST, "linsert");
    reply_i64(c->reply, (int64_t)list_count(ref.entry));
}

WRITE_COMMAND(lrem_command)
{
    struct keyref ref;
    int64_t count;
    if (!call_arg_i64(c, 2, &count) || !call_open_typed(c, 0, VALUE_LIST, &ref)) {
        return;
    }
    uint64_t max = count < 0 ? -(uint64_t)count : count > 0 ? (uint64_t)count : UINT64_MAX;
    uint64_t removed =
        ref.entry ? list_remove_equal(ref.entry, c->argv[3], max, count < 0 ? LIST_TAIL : LIST_HEAD)
                  : 0;
    if (removed > 0) {
        lists_removed(c, &ref, "lrem");
        c->dirty += removed - 1;
    }
    reply_i64(c->reply, (int64_t)removed);
}

/* ---- LPOS ---- */

struct lpos_options {
    int64_t rank;   /* the first match to tell; negative: from the tail on */
    int64_t count;  /* -1: one, and not as an array; 0: all */
    int64_t maxlen; /* elements to look at; 0: all */
};

static bool lpos_parse(struct call *c, struct lpos_options *o)
{
    *o = (struct lpos_options){1, -1, 0};
    for (int i = 3; i < c->argc; i += 2) {
        bool more = i + 1 < c->argc;
        if (call_arg_is(c, i, "rank") && more) {
            if (!call_arg_range(c, i + 1, -INT64_MAX, INT64_MAX, &o->rank, NULL)) {
                return false;
            }
            if (o->rank == 0) {
                reply_error(c->reply,
                            "ERR RANK can't be zero: use 1 to start from the first match, 2 from "
                            "the second ... or use negative to start from the end of the list");
                return false;
            }
        } else if (call_arg_is(c, i, "count") && more) {
            if (!call_arg_range(c, i + 1, 0, INT64_MAX, &o->count, "ERR COUNT can't be negative")) {
                return false;
            }
        } else if (call_arg_is(c, i, "maxlen") && more) {
            if (!call_arg_range(c, i + 1, 0, INT64_MAX, &o->maxlen,
                                "ERR MAXLEN can't be negative")) {
                return false;
            }
        } else {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    return true;
}

/* Replies the index of each match that is asked for, and returns how many those are. */
static uint64_t lpos_matches(struct call *c, const struct entry *e, const struct lpos_options *o)
    REQUIRES_SHARED(keyspace_lock)
{
    struct list_cursor cursor;
    bool backward = o->rank < 0;
    uint64_t len = list_count(e);
    uint64_t look_at = o->maxlen > 0 ? (uint64_t)o->maxlen : UINT64_MAX;
    uint64_t skip = (uint64_t)(backward ? -o->rank : o->rank) - 1;
    uint64_t wanted = o->count < 0 ? 1 : o->count > 0 ? (uint64_t)o->count : UINT64_MAX;
    uint64_t replied = 0;
    list_cursor_open(&cursor, e, backward ? len - 1 : 0, backward);
    for (uint64_t i = 0; i < look_at && replied < wanted && list_cursor_next(&cursor); i++) {
        if (!list_cursor_equals(&cursor, c->argv[2])) {
            continue;
        }
        if (skip > 0) {
            skip--;
            continue;
        }
        reply_i64(c->reply, (int64_t)(backward ? len - 1 - i : i));
        replied++;
    }
    list_cursor_close(&cursor);
    return replied;
}

READ_COMMAND(lpos_command)
{
    struct lpos_options options;
    struct entry *e;
    if (!lpos_parse(c, &options) || !call_read_typed(c, 0, VALUE_LIST, &e)) {
        return;
    }
    if (options.count >= 0) {
        uint32_t array = reply_deferred(c->reply);
        reply_set_deferred_array(c->reply, array, e ? lpos_matches(c, e, &options) : 0);
    } else if (!e || lpos_matches(c, e, &options) == 0) {
        reply_null(c->reply);
    }
}

const struct command_row list_index_commands[] = {
    {.name = "lindex",
     .run = lindex_command,
     .arity = 3,
     .flags = CMD_READONLY,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "list",
     .since = "1.0.0",
     .summary = "Returns the element at an index.",
     .complexity = "O(N), N being the nodes up to the index",
     .args = "key index"},
    {.name = "linsert",
     .run = linsert_command,
     .arity = 5,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_SLOW,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RW+INSERT",
     .group = "list",
     .since = "2.2.0",
     .summary = "Inserts an element before or behind the first that equals a pivot.",
     .complexity = "O(N), N being the elements up to the pivot",
     .args = "key <BEFORE|AFTER> pivot element"},
    {.name = "lpos",
     .run = lpos_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "list",
     .since = "6.0.6",
     .summary = "Returns where in a list an element is.",
     .complexity = "O(N), N being the elements looked at",
     .args = "key element [RANK rank] [COUNT num-matches] [MAXLEN len]"},
    {.name = "lrange",
     .run = lrange_command,
     .arity = 4,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "list",
     .since = "1.0.0",
     .summary = "Returns the elements between two indexes, these included.",
     .complexity = "O(S+N), S being the nodes up to the start, N the elements returned",
     .args = "key start stop"},
    {.name = "lrem",
     .run = lrem_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_SLOW,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RW+DELETE",
     .group = "list",
     .since = "1.0.0",
     .summary = "Removes elements that equal a value.",
     .complexity = "O(N), N being the elements of the list",
     .args = "key count element"},
    {.name = "lset",
     .run = lset_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "list",
     .since = "1.0.0",
     .summary = "Replaces the element at an index.",
     .complexity = "O(N), N being the nodes up to the index",
     .args = "key index element"},
    {.name = "ltrim",
     .run = ltrim_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_SLOW,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RW+DELETE",
     .group = "list",
     .since = "1.0.0",
     .summary = "Removes all elements but those between two indexes.",
     .complexity = "O(N), N being the elements removed",
     .args = "key start stop"},
    {.name = NULL},
};
