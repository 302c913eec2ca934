/* Lists at their ends: push, pop, move, length. What works by index or content is in lists_index.c,
 * what waits for elements in lists_blocking.c. */
#include "commands/commands.h"
#include "commands/lists_priv.h"

#include "base/mem.h"
#include "engine/propagate.h"
#include "keyspace/access.h"

/* ---- Shared ---- */

void lists_reply_elements(struct call *c, const struct entry *e, uint64_t index, uint64_t count,
                          bool backward)
{
    struct list_cursor cursor;
    reply_array(c->reply, count);
    if (count == 0) {
        return;
    }
    list_cursor_open(&cursor, e, index, backward);
    for (uint64_t i = 0; i < count; i++) {
        bool there = list_cursor_next(&cursor);
        assert(there);
        (void)there;
        reply_bulk(c->reply, list_cursor_get(&cursor));
    }
    list_cursor_close(&cursor);
}

void lists_removed(struct call *c, struct keyref *ref, const char *event)
{
    call_changed(c, ref, EVENT_LIST, event);
    if (list_count(ref->entry) > 0) {
        list_shrink(ref->entry);
        return;
    }
    propagate_emptied(ref);
    db_delete(ref, false);
    event_notify(EVENT_GENERIC, "del", ref->db->id, ref->key.name);
}

static const char *push_event(enum list_end end)
{
    return end == LIST_TAIL ? "rpush" : "lpush";
}

static const char *pop_event(enum list_end end)
{
    return end == LIST_TAIL ? "rpop" : "lpop";
}

bool lists_arg_end(struct call *c, int i, enum list_end *end)
{
    bool left = call_arg_is(c, i, "left");
    *end = left ? LIST_HEAD : LIST_TAIL;
    if (!left && !call_arg_is(c, i, "right")) {
        reply_syntax_error(c->reply);
        return false;
    }
    return true;
}

/* Peers: the element nearest to that end is gone. */
static void tell_peers_taken(struct call *c, const struct keyref *ref, enum list_end end,
                             struct slice element) REQUIRES(keyspace_lock)
{
    TELL_PEERS(c, SLICE("LREM"), ref->key.name, end == LIST_TAIL ? SLICE("-1") : SLICE("1"),
               element);
}

static void tell_peers_pushed(struct call *c, struct slice key, enum list_end end,
                              const struct slice *elements, size_t count) REQUIRES(keyspace_lock)
{
    struct propagate_draft d = {0};
    propagate_add(&d, end == LIST_TAIL ? SLICE("RPUSH") : SLICE("LPUSH"));
    propagate_add(&d, key);
    for (size_t i = 0; i < count; i++) {
        propagate_add(&d, elements[i]);
    }
    propagate_draft_to_peers(c, &d);
}

/* Pushes onto the opened key, which is created if it is missing. */
static void push(struct call *c, struct keyref *ref, enum list_end end,
                 const struct slice *elements, size_t count) REQUIRES(keyspace_lock)
{
    if (ref->entry) {
        list_push(ref->entry, end, elements, count);
        return;
    }
    struct entry *e = list_create(ref->key.name, ENTRY_NO_EXPIRY);
    list_push(e, end, elements, count);
    /* db_put would read the clock for it. */
    entry_set_clock(e, access_initial(c->now_ms));
    db_put(ref, e);
}

/* ---- LPUSH and its kin ---- */

static void push_generic(struct call *c, enum list_end end, bool only_existing)
    REQUIRES(keyspace_lock)
{
    struct keyref ref;
    if (!call_open_typed(c, 0, VALUE_LIST, &ref)) {
        return;
    }
    if (!ref.entry && only_existing) {
        reply_i64(c->reply, 0);
        return;
    }
    size_t count = (size_t)c->argc - 2;
    push(c, &ref, end, c->argv + 2, count);
    call_changed(c, &ref, EVENT_LIST, push_event(end));
    c->dirty += count - 1;
    if (unlikely(propagate_peers) && only_existing) {
        tell_peers_pushed(c, ref.key.name, end, c->argv + 2, count);
    }
    reply_i64(c->reply, (int64_t)list_count(ref.entry));
}

WRITE_COMMAND(lpush_command)
{
    push_generic(c, LIST_HEAD, false);
}

WRITE_COMMAND(rpush_command)
{
    push_generic(c, LIST_TAIL, false);
}

WRITE_COMMAND(lpushx_command)
{
    push_generic(c, LIST_HEAD, true);
}

WRITE_COMMAND(rpushx_command)
{
    push_generic(c, LIST_TAIL, true);
}

/* ---- LPOP, RPOP, LMPOP ---- */

/* Tells peers of the elements at that end, which go. */
static void tell_peers_popped(struct call *c, const struct keyref *ref, enum list_end end,
                              uint64_t count) REQUIRES(keyspace_lock)
{
    struct list_cursor cursor;
    bool tail = end == LIST_TAIL;
    list_cursor_open(&cursor, ref->entry, tail ? list_count(ref->entry) - 1 : 0, tail);
    while (count-- > 0 && list_cursor_next(&cursor)) {
        tell_peers_taken(c, ref, end, list_cursor_get(&cursor));
    }
    list_cursor_close(&cursor);
}

void lists_pop_many(struct call *c, struct keyref *ref, enum list_end end, uint64_t max)
{
    bool tail = end == LIST_TAIL;
    uint64_t len = list_count(ref->entry);
    uint64_t count = max < len ? max : len;
    lists_reply_elements(c, ref->entry, tail ? len - 1 : 0, count, tail);
    if (count == 0) {
        return;
    }
    if (unlikely(propagate_peers)) {
        tell_peers_popped(c, ref, end, count);
    }
    list_remove_range(ref->entry, tail ? len - count : 0, count);
    if (unlikely(propagate_on)) {
        char text[PROPAGATE_NUMBER_BYTES];
        PROPAGATE(c, tail ? SLICE("RPOP") : SLICE("LPOP"), ref->key.name,
                  propagate_number((int64_t)count, text));
    }
    lists_removed(c, ref, pop_event(end));
    c->dirty += count - 1;
}

void lists_pop_one(struct call *c, struct keyref *ref, enum list_end end)
{
    struct list_cursor cursor;
    bool tail = end == LIST_TAIL;
    list_cursor_open(&cursor, ref->entry, tail ? list_count(ref->entry) - 1 : 0, tail);
    bool there = list_cursor_next(&cursor);
    assert(there);
    (void)there;
    reply_bulk(c->reply, list_cursor_get(&cursor));
    if (unlikely(propagate_peers)) {
        tell_peers_taken(c, ref, end, list_cursor_get(&cursor));
    }
    list_cursor_close(&cursor);
    list_pop(ref->entry, end);
    if (unlikely(propagate_on) && c->cmd->flags & CMD_BLOCKING) {
        PROPAGATE(c, tail ? SLICE("RPOP") : SLICE("LPOP"), ref->key.name);
    }
    lists_removed(c, ref, pop_event(end));
}

static void pop_generic(struct call *c, enum list_end end) REQUIRES(keyspace_lock)
{
    int64_t max;
    struct keyref ref;
    if (c->argc > 3) {
        reply_errorf(c->reply, "ERR wrong number of arguments for '%s' command", c->cmd->full_name);
        return;
    }
    if (c->argc == 3 &&
        !call_arg_range(c, 2, 0, INT64_MAX, &max, "ERR value is out of range, must be positive")) {
        return;
    }
    if (!call_open_typed(c, 0, VALUE_LIST, &ref)) {
        return;
    }
    if (!ref.entry) {
        if (c->argc == 3) {
            reply_null_array(c->reply);
        } else {
            reply_null(c->reply);
        }
    } else if (c->argc == 3) {
        lists_pop_many(c, &ref, end, (uint64_t)max);
    } else {
        lists_pop_one(c, &ref, end);
    }
}

WRITE_COMMAND(lpop_command)
{
    pop_generic(c, LIST_HEAD);
}

WRITE_COMMAND(rpop_command)
{
    pop_generic(c, LIST_TAIL);
}

/* Reads what follows the keys of LMPOP, from argument `i` on; false with the error replied. */
static bool parse_end_and_count(struct call *c, int i, enum list_end *end, int64_t *max)
{
    if (!lists_arg_end(c, i, end)) {
        return false;
    }
    *max = -1;
    for (i++; i < c->argc; i += 2) {
        if (*max >= 0 || i + 1 == c->argc || !call_arg_is(c, i, "count")) {
            reply_syntax_error(c->reply);
            return false;
        }
        if (!call_arg_range(c, i + 1, 1, INT64_MAX, max, "ERR count should be greater than 0")) {
            return false;
        }
    }
    *max = *max < 0 ? 1 : *max;
    return true;
}

bool lists_parse_mpop(struct call *c, int i, enum list_end *end, int64_t *max)
{
    int keys;
    return call_arg_key_count(c, i, 1, &keys) && parse_end_and_count(c, i + 1 + keys, end, max);
}

WRITE_COMMAND(lmpop_command)
{
    int64_t max;
    enum list_end end;
    if (!lists_parse_mpop(c, 1, &end, &max)) {
        return;
    }
    for (int k = 0; k < c->key_count; k++) {
        struct keyref ref;
        if (!call_open_typed(c, k, VALUE_LIST, &ref)) {
            return;
        }
        if (ref.entry) {
            reply_array(c->reply, 2);
            reply_bulk(c->reply, ref.key.name);
            lists_pop_many(c, &ref, end, (uint64_t)max);
            return;
        }
    }
    reply_null_array(c->reply);
}

/* ---- LMOVE and RPOPLPUSH ---- */

/* Elements of up to so many bytes are moved within a list by way of the stack. */
#define MOVE_STACK_BYTES 512

/* Peers get the coming first: so a list of one element is never empty between. */
static void tell_peers_moved(struct call *c, const struct keyref *source, struct slice target,
                             enum list_end from, enum list_end to, struct slice element)
    REQUIRES(keyspace_lock)
{
    tell_peers_pushed(c, target, to, &element, 1);
    tell_peers_taken(c, source, from, element);
}

/* Takes the element of a list's one end to its other (or the same) end. */
static void rotate(struct call *c, struct keyref *ref, enum list_end from, enum list_end to)
    REQUIRES(keyspace_lock)
{
    struct list_cursor cursor;
    char near[MOVE_STACK_BYTES];
    list_cursor_open(&cursor, ref->entry, from == LIST_TAIL ? list_count(ref->entry) - 1 : 0,
                     false);
    bool there = list_cursor_next(&cursor);
    assert(there);
    (void)there;
    struct slice element = list_cursor_get(&cursor);
    if (!call_reserve(c, 2 * element.len)) {
        list_cursor_close(&cursor);
        return;
    }
    char *copy = element.len <= sizeof(near) ? near : mem_alloc(element.len);
    memcpy(copy, element.ptr, element.len);
    element.ptr = copy;
    list_cursor_close(&cursor);
    reply_bulk(c->reply, element);
    if (unlikely(propagate_peers)) {
        tell_peers_moved(c, ref, ref->key.name, from, to, element);
    }
    list_pop(ref->entry, from);
    list_push(ref->entry, to, &element, 1);
    event_notify(EVENT_LIST, push_event(to), ref->db->id, ref->key.name);
    lists_removed(c, ref, pop_event(from));
    if (copy != near) {
        mem_free(copy);
        call_unreserve();
    }
}

/* Takes an element from one list to another, which is created if it is missing. */
static void move_between(struct call *c, struct keyref *source, struct keyref *target,
                         enum list_end from, enum list_end to) REQUIRES(keyspace_lock)
{
    struct list_cursor cursor;
    struct entry *e = source->entry;
    list_cursor_open(&cursor, e, from == LIST_TAIL ? list_count(e) - 1 : 0, false);
    bool there = list_cursor_next(&cursor);
    assert(there);
    (void)there;
    struct slice element = list_cursor_get(&cursor);
    if (!call_reserve(c, element.len)) {
        list_cursor_close(&cursor);
        return;
    }
    reply_bulk(c->reply, element);
    if (unlikely(propagate_peers)) {
        tell_peers_moved(c, source, target->key.name, from, to, element);
    }
    push(c, target, to, &element, 1);
    if (element.len >= CALL_RESERVE_FROM_BYTES) {
        call_unreserve();
    }
    list_cursor_close(&cursor);
    event_key_changed(target->db, target->key.name);
    event_notify(EVENT_LIST, push_event(to), target->db->id, target->key.name);
    list_pop(e, from);
    /* The target's coming may have moved the source's slot. */
    call_open_again(c, 0, source);
    assert(source->entry == e);
    lists_removed(c, source, pop_event(from));
}

/* What has waited goes out as what did not. */
static void propagate_move(struct call *c, enum list_end from, enum list_end to)
    REQUIRES(keyspace_lock)
{
    PROPAGATE(c, SLICE("LMOVE"), call_key(c, 0)->name, call_key(c, 1)->name,
              from == LIST_TAIL ? SLICE("RIGHT") : SLICE("LEFT"),
              to == LIST_TAIL ? SLICE("RIGHT") : SLICE("LEFT"));
}

void lists_move(struct call *c, struct keyref *source, enum list_end from, enum list_end to)
{
    struct keyref target;
    if (!call_open_typed(c, 1, VALUE_LIST, &target)) {
        return;
    }
    if (target.entry == source->entry) {
        rotate(c, &target, from, to);
    } else {
        move_between(c, source, &target, from, to);
    }
    if (unlikely(propagate_on) && c->dirty && c->cmd->flags & CMD_BLOCKING) {
        propagate_move(c, from, to);
    }
}

static void move_generic(struct call *c, enum list_end from, enum list_end to)
    REQUIRES(keyspace_lock)
{
    struct keyref source;
    if (!call_open_typed(c, 0, VALUE_LIST, &source)) {
        return;
    }
    if (source.entry) {
        lists_move(c, &source, from, to);
    } else {
        reply_null(c->reply);
    }
}

WRITE_COMMAND(lmove_command)
{
    enum list_end from, to;
    if (lists_arg_end(c, 3, &from) && lists_arg_end(c, 4, &to)) {
        move_generic(c, from, to);
    }
}

WRITE_COMMAND(rpoplpush_command)
{
    move_generic(c, LIST_TAIL, LIST_HEAD);
}

READ_COMMAND(llen_command)
{
    struct entry *e;
    if (call_read_typed(c, 0, VALUE_LIST, &e)) {
        reply_i64(c->reply, e ? (int64_t)list_count(e) : 0);
    }
}

const struct command_row list_commands[] = {
    {.name = "llen",
     .run = llen_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RO",
     .group = "list",
     .since = "1.0.0",
     .summary = "Returns how many elements a list has.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "lmove",
     .run = lmove_command,
     .arity = 5,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RW+ACCESS+DELETE; i2/r0,1,0/RW+INSERT",
     .group = "list",
     .since = "6.2.0",
     .summary = "Moves an element from one end of a list to an end of the same or another one.",
     .complexity = "O(1)",
     .args = "source destination <LEFT|RIGHT> <LEFT|RIGHT>"},
    {.name = "lmpop",
     .run = lmpop_command,
     .arity = -4,
     .flags = CMD_WRITE,
     .categories = CATEGORY_LIST,
     .keys = "i1/n0,1,1/RW+ACCESS+DELETE",
     .group = "list",
     .since = "7.0.0",
     .summary = "Takes elements from an end of the first of several lists that exists.",
     .complexity = "O(N+M), N being the keys, M the elements taken",
     .args = "numkeys key [key ...] <LEFT|RIGHT> [COUNT count]"},
    {.name = "lpop",
     .run = lpop_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RW+ACCESS+DELETE",
     .group = "list",
     .since = "1.0.0",
     .summary = "Takes the first elements of a list.",
     .complexity = "O(N), N being the elements taken",
     .args = "key [count]"},
    {.name = "lpush",
     .run = lpush_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RW+INSERT",
     .group = "list",
     .since = "1.0.0",
     .summary = "Adds elements at the head of a list; a missing key is created.",
     .complexity = "O(N), N being the elements added",
     .args = "key element [element ...]"},
    {.name = "lpushx",
     .run = lpushx_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RW+INSERT",
     .group = "list",
     .since = "2.2.0",
     .summary = "Adds elements at the head of a list that exists.",
     .complexity = "O(N), N being the elements added",
     .args = "key element [element ...]"},
    {.name = "rpop",
     .run = rpop_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RW+ACCESS+DELETE",
     .group = "list",
     .since = "1.0.0",
     .summary = "Takes the last elements of a list.",
     .complexity = "O(N), N being the elements taken",
     .args = "key [count]"},
    {.name = "rpoplpush",
     .run = rpoplpush_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RW+ACCESS+DELETE; i2/r0,1,0/RW+INSERT",
     .group = "list",
     .since = "1.2.0",
     .summary = "Moves the last element of a list to the head of the same or another one.",
     .complexity = "O(1)",
     .args = "source destination",
     .deprecated_since = "6.2.0",
     .replaced_by = "LMOVE with RIGHT and LEFT"},
    {.name = "rpush",
     .run = rpush_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RW+INSERT",
     .group = "list",
     .since = "1.0.0",
     .summary = "Adds elements at the tail of a list; a missing key is created.",
     .complexity = "O(N), N being the elements added",
     .args = "key element [element ...]"},
    {.name = "rpushx",
     .run = rpushx_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_LIST,
     .keys = "i1/r0,1,0/RW+INSERT",
     .group = "list",
     .since = "2.2.0",
     .summary = "Adds elements at the tail of a list that exists.",
     .complexity = "O(N), N being the elements added",
     .args = "key element [element ...]"},
    {.name = NULL},
};
