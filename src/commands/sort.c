/* SORT and SORT_RO: the elements of a list, set or sorted set in order of numbers or texts, their
 * own or those that other keys hold, and replied, replaced by what other keys hold, or stored.
 *
 * All happens in one hold: the elements are collected, weighed (sort_order.c), sorted, and each is
 * looked at once more for the result. */
#include "commands/commands.h"
#include "commands/sort_priv.h"

#include "base/mem.h"
#include "engine/acl.h"
#include "engine/propagate.h"
#include "keyspace/access.h"
#include "keyspace/reclaim.h"
#include "value/list.h"
#include "value/set.h"
#include "value/zset.h"

#define ARENA_CHUNK_BYTES ((size_t)64 * 1024)
/* With GET one large value may stand in a result as often as there are elements: what STORE copies
 * has a bound. */
#define STORE_MAX_BYTES ((uint64_t)4 << 30)
/* What the copy of a large element takes beside its bytes, generously. */
#define LARGE_EXTRA_BYTES 4096

static const char no_memory[] = "OOM no memory for a result of this length";

struct sort {
    struct sort_order order;
    struct sort_pattern by;
    bool sorted;     /* false: BY names no key, the source's own order stays */
    bool store;      /* into the last key of the request */
    int64_t offset;  /* LIMIT */
    int64_t limit;   /* negative: all */
    struct buf gets; /* the struct sort_pattern of each GET */
    struct arena arena;
    struct sort_item *items;
    uint64_t count; /* of items */
    uint64_t start; /* of the result */
    uint64_t wanted;
};

static void sort_init(struct sort *s)
{
    *s = (struct sort){.sorted = true, .limit = -1};
    arena_init(&s->arena, ARENA_CHUNK_BYTES);
}

static void sort_deinit(struct sort *s)
{
    mem_free(s->items);
    buf_deinit(&s->gets);
    arena_deinit(&s->arena);
}

/* ---- Parsing ---- */

static uint64_t get_count(const struct sort *s)
{
    return s->gets.len / sizeof(struct sort_pattern);
}

static const struct sort_pattern *get_at(const struct sort *s, uint64_t i)
{
    assert(i < get_count(s));
    return (const struct sort_pattern *)(const void *)s->gets.data + i;
}

/* Keys that patterns name cannot be told beforehand: who may not read all keys may not use them. */
static bool pattern_is_allowed(struct call *c, int i)
{
    bool by = call_arg_is(c, i, "by") && memchr(c->argv[i + 1].ptr, '*', c->argv[i + 1].len);
    if ((by || call_arg_is(c, i, "get")) && !acl_may_read_all_keys(c)) {
        reply_errorf(c->reply, "ERR %s option of SORT denied due to insufficient ACL permissions.",
                     by ? "BY" : "GET");
        return false;
    }
    return true;
}

/* An option with its value at `i` + 1; false when it is no such option. */
static bool parse_valued(struct call *c, struct sort *s, int i, bool may_store)
{
    if (call_arg_is(c, i, "by")) {
        s->by = sort_pattern_parse(c->argv[i + 1]);
        s->sorted = s->sorted && memchr(c->argv[i + 1].ptr, '*', c->argv[i + 1].len);
        s->order.by = &s->by;
    } else if (call_arg_is(c, i, "get")) {
        struct sort_pattern get = sort_pattern_parse(c->argv[i + 1]);
        buf_append(&s->gets, (const char *)&get, sizeof(get));
    } else if (may_store && call_arg_is(c, i, "store")) {
        s->store = true;
    } else {
        return false;
    }
    return true;
}

/* Options from argument 2 on; false with the fault replied. */
static bool parse(struct call *c, struct sort *s, bool may_store)
{
    for (int i = 2; i < c->argc; i++) {
        int behind = c->argc - i - 1;
        if (call_arg_is(c, i, "asc") || call_arg_is(c, i, "desc")) {
            s->order.descending = call_arg_is(c, i, "desc");
        } else if (call_arg_is(c, i, "alpha")) {
            s->order.alpha = true;
        } else if (behind >= 2 && call_arg_is(c, i, "limit")) {
            if (!call_arg_i64(c, i + 1, &s->offset) || !call_arg_i64(c, i + 2, &s->limit)) {
                return false;
            }
            i += 2;
        } else if (behind >= 1 && !pattern_is_allowed(c, i)) {
            return false;
        } else if (behind >= 1 && parse_valued(c, s, i, may_store)) {
            i++;
        } else {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    s->order.collate = !s->store;
    return true;
}

/* ---- Collecting ---- */

/* Where LIMIT's bounds lie in `count` elements. */
static void bound(struct sort *s, uint64_t count)
{
    uint64_t offset = s->offset < 0 ? 0 : (uint64_t)s->offset;
    s->start = offset < count ? offset : count;
    uint64_t left = count - s->start;
    s->wanted = s->limit < 0 || (uint64_t)s->limit > left ? left : (uint64_t)s->limit;
}

static void add_item(struct sort *s, struct slice bytes)
{
    s->items[s->count] = (struct sort_item){.bytes = bytes, .place = s->count};
    s->count++;
}

static void add_copy(struct sort *s, struct slice bytes)
{
    char *copy = arena_alloc(&s->arena, bytes.len);
    if (bytes.len > 0) {
        memcpy(copy, bytes.ptr, bytes.len);
    }
    add_item(s, slice_of(copy, bytes.len));
}

/* What has an order of its own and keeps it is gone through from its end with DESC. */
static bool goes_backward(const struct sort *s)
{
    return !s->sorted && s->order.descending;
}

/* The cursor shows elements in room of its own, hence copies. */
static void collect_list(struct sort *s, const struct entry *e, uint64_t start, uint64_t count)
{
    struct list_cursor cursor;
    bool backward = goes_backward(s);
    list_cursor_open(&cursor, e, backward ? list_count(e) - 1 - start : start, backward);
    while (s->count < count && list_cursor_next(&cursor)) {
        add_copy(s, list_cursor_get(&cursor));
    }
    list_cursor_close(&cursor);
}

static void collect_set(struct sort *s, const struct entry *e, uint64_t start, uint64_t count)
{
    struct set_walk w;
    struct set_member m;
    set_walk_begin(&w, e);
    for (uint64_t i = 0; s->count < count && set_walk_next(&w, &m); i++) {
        if (i < start) {
            continue;
        }
        struct slice bytes = set_member_bytes(&m);
        if (bytes.ptr == m.text) {
            add_copy(s, bytes);
        } else {
            add_item(s, bytes);
        }
    }
}

static void collect_zset(struct sort *s, const struct entry *e, uint64_t start, uint64_t count)
{
    char text[ZSET_TEXT_BYTES];
    bool down = goes_backward(s);
    struct zset_cursor at = zset_cursor_at(e, down ? zset_count(e) - 1 - start : start, down);
    for (; s->count < count && zset_cursor_valid(&at); zset_cursor_step(&at)) {
        struct slice bytes = zset_cursor_member(&at, text);
        if (bytes.ptr == text) {
            add_copy(s, bytes);
        } else {
            add_item(s, bytes);
        }
    }
}

static uint64_t source_count(const struct entry *e)
{
    switch (entry_type(e)) {
    case VALUE_LIST:
        return list_count(e);
    case VALUE_SET:
        return set_count(e);
    default:
        return zset_count(e);
    }
}

/* Collects all elements or, where they stay as they are, those of the result. False without memory
 * for that. */
static bool collect(struct sort *s, const struct entry *e)
{
    uint64_t count = source_count(e), start = 0;
    bound(s, count);
    if (!s->sorted) {
        start = s->start;
        count = s->wanted;
        s->start = 0;
    }
    if (count == 0) {
        return true;
    }
    s->items = mem_try_alloc(count * sizeof(*s->items));
    if (!s->items) {
        return false;
    }
    if (entry_type(e) == VALUE_LIST) {
        collect_list(s, e, start, count);
    } else if (entry_type(e) == VALUE_SET) {
        collect_set(s, e, start, count);
    } else {
        collect_zset(s, e, start, count);
    }
    assert(s->count == count);
    return true;
}

/* ---- The result ---- */

/* Parses the request, collects and sorts; false with the fault replied. */
static bool sort_run(struct call *c, struct sort *s, bool may_store) REQUIRES_SHARED(keyspace_lock)
{
    if (!parse(c, s, may_store)) {
        return false;
    }
    struct entry *e = call_read(c, 0);
    if (!e) {
        return true;
    }
    enum value_type type = entry_type(e);
    if (type != VALUE_LIST && type != VALUE_SET && type != VALUE_ZSET) {
        reply_wrong_type(c->reply);
        return false;
    }
    if (type == VALUE_SET && !s->sorted && (s->store || c->session->script)) {
        /* A set's own order differs from server to server: what is stored, or what a script goes
         * by, must not. */
        s->sorted = true;
        s->order.by = NULL;
        s->order.alpha = true;
    }
    s->order.unordered = type != VALUE_LIST;
    if (!collect(s, e)) {
        reply_error(c->reply, no_memory);
        return false;
    }
    if (s->sorted) {
        if (!sort_weigh(c, &s->order, s->items, s->count, &s->arena)) {
            reply_error(c->reply, "ERR One or more scores can't be converted into double");
            return false;
        }
        sort_items(&s->order, s->items, s->count, s->start, s->wanted);
    }
    return true;
}

static void reply_gets(struct call *c, const struct sort *s, struct slice element, struct buf *name)
    REQUIRES_SHARED(keyspace_lock)
{
    for (uint64_t i = 0; i < get_count(s); i++) {
        struct sort_found found;
        if (!sort_pattern_read(c, get_at(s, i), element, name, &found)) {
            reply_null(c->reply);
        } else if (found.blob) {
            reply_blob(c->reply, found.blob);
        } else {
            reply_bulk(c->reply, found.bytes);
        }
    }
}

static void sort_reply(struct call *c, const struct sort *s) REQUIRES_SHARED(keyspace_lock)
{
    struct buf name = {0};
    uint64_t gets = get_count(s);
    reply_array(c->reply, gets > 0 ? s->wanted * gets : s->wanted);
    for (uint64_t i = s->start; i < s->start + s->wanted; i++) {
        if (gets > 0) {
            reply_gets(c, s, s->items[i].bytes, &name);
        } else {
            reply_bulk(c->reply, s->items[i].bytes);
        }
    }
    buf_deinit(&name);
}

/* The list that STORE makes. */
struct stored {
    struct entry *list;
    uint64_t bytes;    /* of what GETs led to */
    const char *fault; /* the error because of which it is not whole; NULL: none */
};

static void stored_push(struct stored *into, struct slice element)
{
    bool large = element.len >= CALL_RESERVE_FROM_BYTES;
    if (unlikely(large) && !mem_reserve(element.len + LARGE_EXTRA_BYTES)) {
        into->fault = no_memory;
        return;
    }
    list_push(into->list, LIST_TAIL, &element, 1);
    if (unlikely(large)) {
        mem_unreserve();
    }
}

/* Appends what the GETs lead to, an empty string for what is missing. */
static void push_gets(struct call *c, const struct sort *s, struct slice element,
                      struct stored *into, struct buf *name) REQUIRES_SHARED(keyspace_lock)
{
    for (uint64_t i = 0; i < get_count(s) && !into->fault; i++) {
        struct sort_found found;
        bool there = sort_pattern_read(c, get_at(s, i), element, name, &found);
        struct slice result = there ? found.bytes : SLICE("");
        stored_push(into, result);
        into->bytes += result.len;
        if (into->bytes > STORE_MAX_BYTES) {
            into->fault = "ERR the result is larger than 4gb";
        }
    }
}

/* The result as a list; NULL, and the fault replied, when it is too large. */
static struct entry *sort_make_list(struct call *c, struct sort *s, struct slice key)
    REQUIRES_SHARED(keyspace_lock)
{
    struct stored into = {.list = list_create(key, ENTRY_NO_EXPIRY)};
    struct buf name = {0};
    for (uint64_t i = s->start; i < s->start + s->wanted && !into.fault; i++) {
        if (get_count(s) > 0) {
            push_gets(c, s, s->items[i].bytes, &into, &name);
        } else {
            stored_push(&into, s->items[i].bytes);
        }
    }
    buf_deinit(&name);
    if (into.fault) {
        entry_destroy(&into.list);
        reply_error(c->reply, into.fault);
    }
    return into.list;
}

static void sort_store(struct call *c, struct sort *s) REQUIRES(keyspace_lock)
{
    /* The destination is the last key that the request names: engine/keyspecs.c. */
    assert(c->key_count == 2);
    struct entry *e = sort_make_list(c, s, call_key(c, 1)->name);
    if (!e) {
        return;
    }
    uint64_t count = list_count(e);
    struct keyref ref;
    call_open(c, 1, &ref);
    if (count > 0) {
        if (!ref.entry) {
            entry_set_clock(e, access_initial(c->now_ms));
        } else {
            event_key_goes(GOING_OVERWRITTEN, ref.db, ref.key.name);
        }
        db_put(&ref, e);
        call_changed(c, &ref, EVENT_LIST, "sortstore");
        c->dirty += count - 1;
    } else {
        entry_destroy(&e);
        if (db_delete(&ref, reclaim_lazy_server_del())) {
            call_changed(c, &ref, EVENT_GENERIC, "del");
        }
    }
    propagate_stored(c, 1);
    reply_i64(c->reply, (int64_t)count);
}

WRITE_COMMAND(sort_command)
{
    struct sort s;
    sort_init(&s);
    if (sort_run(c, &s, true)) {
        if (s.store) {
            sort_store(c, &s);
        } else {
            sort_reply(c, &s);
        }
    }
    sort_deinit(&s);
}

READ_COMMAND(sort_ro_command)
{
    struct sort s;
    sort_init(&s);
    if (sort_run(c, &s, false)) {
        sort_reply(c, &s);
    }
    sort_deinit(&s);
}

const struct command_row sort_commands[] = {
    {.name = "sort",
     .run = sort_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_SLOW,
     .categories = CATEGORY_SET | CATEGORY_SORTEDSET | CATEGORY_LIST | CATEGORY_DANGEROUS,
     .keys = "i1/r0,1,0/RO+ACCESS; ?/?/RO+ACCESS; ?/?/OW+UPDATE",
     .group = "generic",
     .since = "1.0.0",
     .summary = "Sorts the elements of a list, set or sorted set, and may store the result.",
     .complexity = "O(N+M*log(M)), N being the elements of the source and M those returned",
     .args = "key [BY by-pattern] [LIMIT offset count] [GET get-pattern [GET get-pattern ...]] "
             "[ASC|DESC] [ALPHA] [STORE destination]"},
    {.name = "sort_ro",
     .run = sort_ro_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SET | CATEGORY_SORTEDSET | CATEGORY_LIST | CATEGORY_DANGEROUS,
     .keys = "i1/r0,1,0/RO+ACCESS; ?/?/RO+ACCESS",
     .group = "generic",
     .since = "7.0.0",
     .summary = "Sorts the elements of a list, set or sorted set.",
     .complexity = "O(N+M*log(M)), N being the elements of the source and M those returned",
     .args = "key [BY by-pattern] [LIMIT offset count] [GET get-pattern [GET get-pattern ...]] "
             "[ASC|DESC] [ALPHA]"},
    {.name = NULL},
};
