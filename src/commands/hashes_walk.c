/* Hashes as a whole: all fields, a walk over them, random ones. */
#include "commands/commands.h"
#include "commands/random_limit.h"
#include "commands/scan_args.h"

#include "base/mem.h"
#include "engine/call.h"
#include "value/hash.h"

/* An array that doubles as it grows: what it has, and what it moves from. */
#define SCAN_GROWTH 3
enum walk_part { WALK_FIELDS = 1 << 0, WALK_VALUES = 1 << 1 };

static void reply_value(struct reply *r, const struct hash_text *value)
{
    if (unlikely(value->blob != NULL)) {
        reply_blob(r, value->blob);
    } else {
        reply_bulk(r, value->bytes);
    }
}

/* ---- HGETALL, HKEYS, HVALS ---- */

static void visit_pair(const struct hash_item *item, void *context)
{
    struct reply *r = context;
    reply_bulk(r, item->field);
    reply_value(r, &item->value);
}

static void visit_field(const struct hash_item *item, void *context)
{
    reply_bulk(context, item->field);
}

static void visit_value(const struct hash_item *item, void *context)
{
    reply_value(context, &item->value);
}

READ_COMMAND(hgetall_command)
{
    struct entry *e;
    if (!call_read_typed(c, 0, VALUE_HASH, &e)) {
        return;
    }
    reply_map(c->reply, e ? hash_len(e) : 0);
    if (e) {
        hash_each(e, visit_pair, c->reply);
    }
}

static void reply_all(struct call *c, hash_visit_fn visit) REQUIRES_SHARED(keyspace_lock)
{
    struct entry *e;
    if (!call_read_typed(c, 0, VALUE_HASH, &e)) {
        return;
    }
    reply_array(c->reply, e ? hash_len(e) : 0);
    if (e) {
        hash_each(e, visit, c->reply);
    }
}

READ_COMMAND(hkeys_command)
{
    reply_all(c, visit_field);
}

READ_COMMAND(hvals_command)
{
    reply_all(c, visit_value);
}

/* ---- HSCAN ---- */

/* Places whose field matches. */
struct scan_found {
    const struct scan_args *args;
    const void **places;
    size_t count, capacity;
};

static void visit_scanned(const struct hash_item *item, void *context)
{
    struct scan_found *found = context;
    if (!scan_args_match(found->args, item->field)) {
        return;
    }
    if (found->count == found->capacity) {
        found->capacity = found->capacity ? 2 * found->capacity : 32;
        found->places = mem_realloc(found->places, found->capacity * sizeof(*found->places));
    }
    found->places[found->count++] = item->at;
}

/* An item, with its value where wanted: as a flat pair, or nested. */
static void reply_item(struct reply *r, const struct hash_item *item, bool values, bool nested)
{
    if (nested) {
        reply_array(r, 2);
    }
    reply_bulk(r, item->field);
    if (values) {
        reply_value(r, &item->value);
    }
}

/* Replies the items at `places`. */
static void reply_places(struct call *c, const struct entry *e, const void *const *places,
                         size_t count, bool values, bool nested) REQUIRES_SHARED(keyspace_lock)
{
    struct hash_item item;
    for (size_t i = 0; i < count; i++) {
        hash_item_at(e, places[i], &item);
        reply_item(c->reply, &item, values, nested);
    }
}

READ_COMMAND(hscan_command)
{
    struct entry *e;
    struct scan_args args;
    if (!scan_args_cursor(c, 2, &args) || !call_read_typed(c, 0, VALUE_HASH, &e) ||
        (e && !scan_args_options(c, 3, SCAN_ARGS_NOVALUES, &args))) {
        return;
    }
    struct scan_found found = {.args = &args};
    uint64_t most = !e ? 0 : args.count < hash_len(e) ? args.count : hash_len(e);
    if (!call_reserve(c, most * SCAN_GROWTH * sizeof(void *))) {
        return;
    }
    uint64_t next = e ? hash_scan(e, args.cursor, args.count, visit_scanned, &found) : 0;
    scan_args_reply_cursor(c, next);
    reply_array(c->reply, args.names_only ? found.count : 2 * found.count);
    reply_places(c, e, found.places, found.count, !args.names_only, false);
    mem_free(found.places);
    call_unreserve();
}

/* ---- HRANDFIELD ---- */

static void reply_one_random(struct call *c, const struct entry *e) REQUIRES_SHARED(keyspace_lock)
{
    const void *place;
    if (!e) {
        reply_null(c->reply);
        return;
    }
    hash_draw(e, &place, 1);
    reply_places(c, e, &place, 1, false, false);
}

static void reply_drawn(struct call *c, const struct entry *e, const void *const *places,
                        size_t count, bool values) REQUIRES_SHARED(keyspace_lock)
{
    bool nested = values && c->reply->proto == 3;
    reply_array(c->reply, values && !nested ? 2 * count : count);
    reply_places(c, e, places, count, values, nested);
}

/* Takes account of a field that is about to be replied. */
static bool take_repeated(struct random_repeats *repeats, const struct hash_item *item, bool values)
{
    return random_repeats_take(repeats, item->field.len, NULL) &&
           (!values || random_repeats_take(repeats, item->value.bytes.len, item->value.blob));
}

/* `draws` fields, which may repeat. */
static void reply_repeating(struct call *c, const struct entry *e, uint64_t draws, bool values)
    REQUIRES_SHARED(keyspace_lock)
{
    struct random_repeats repeats;
    struct hash_item item;
    const void *places[RANDOM_REPEATS_STEP];
    bool nested = values && c->reply->proto == 3;
    if (!random_repeats_begin(&repeats, c, values ? 2 * draws : draws)) {
        return;
    }
    reply_array(c->reply, values && !nested ? 2 * draws : draws);
    while (draws > 0) {
        size_t some = draws < RANDOM_REPEATS_STEP ? draws : RANDOM_REPEATS_STEP;
        hash_draw(e, places, some);
        for (size_t i = 0; i < some; i++) {
            hash_item_at(e, places[i], &item);
            if (!take_repeated(&repeats, &item, values)) {
                return;
            }
            reply_item(c->reply, &item, values, nested);
        }
        draws -= some;
    }
}

static void reply_distinct(struct call *c, const struct entry *e, uint64_t wanted, bool values)
    REQUIRES_SHARED(keyspace_lock)
{
    uint64_t len = hash_len(e);
    size_t count = wanted < len ? wanted : len;
    /* Its place, and what drawing it without repeating takes. */
    if (!call_reserve(c, count * 5 * sizeof(void *))) {
        return;
    }
    const void **places = mem_alloc(count * sizeof(*places));
    hash_draw_distinct(e, places, count);
    reply_drawn(c, e, places, count, values);
    mem_free(places);
    call_unreserve();
}

/* The count, and whether values are wanted; false with an error replied. */
static bool parse_count(struct call *c, int64_t *count, bool *values)
{
    if (!call_arg_range(c, 2, -INT64_MAX, INT64_MAX, count, NULL) ||
        !random_limit_allows(c, *count)) {
        return false;
    }
    *values = c->argc == 4 && call_arg_is(c, 3, "withvalues");
    if (c->argc > 3 && !*values) {
        reply_syntax_error(c->reply);
        return false;
    }
    if (*values && (*count < -INT64_MAX / 2 || *count > INT64_MAX / 2)) {
        reply_error(c->reply, "ERR value is out of range");
        return false;
    }
    return true;
}

READ_COMMAND(hrandfield_command)
{
    struct entry *e;
    int64_t count = 1;
    bool values = false;
    if ((c->argc > 2 && !parse_count(c, &count, &values)) ||
        !call_read_typed(c, 0, VALUE_HASH, &e)) {
        return;
    }
    if (c->argc == 2) {
        reply_one_random(c, e);
    } else if (!e || count == 0) {
        reply_array(c->reply, 0);
    } else if (count < 0) {
        reply_repeating(c, e, (uint64_t)-count, values);
    } else {
        reply_distinct(c, e, (uint64_t)count, values);
    }
}

const struct command_row hash_walk_commands[] = {
    {.name = "hgetall",
     .run = hgetall_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output_order",
     .group = "hash",
     .since = "2.0.0",
     .summary = "Returns all fields of a hash with their values.",
     .complexity = "O(N), N being the fields of the hash",
     .args = "key"},
    {.name = "hkeys",
     .run = hkeys_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output_order",
     .group = "hash",
     .since = "2.0.0",
     .summary = "Returns all fields of a hash.",
     .complexity = "O(N), N being the fields of the hash",
     .args = "key"},
    {.name = "hrandfield",
     .run = hrandfield_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output",
     .group = "hash",
     .since = "6.2.0",
     .summary = "Returns random fields of a hash; with a negative count they may repeat.",
     .complexity = "O(N), N being the fields returned",
     .args = "key [count [WITHVALUES]]"},
    {.name = "hscan",
     .run = hscan_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output",
     .group = "hash",
     .since = "2.8.0",
     .summary = "Walks over the fields of a hash, some with each call.",
     .complexity = "O(1) a call, O(N) for the whole walk",
     .args = "key cursor [MATCH pattern] [COUNT count] [NOVALUES]"},
    {.name = "hvals",
     .run = hvals_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output_order",
     .group = "hash",
     .since = "2.0.0",
     .summary = "Returns all values of a hash.",
     .complexity = "O(N), N being the fields of the hash",
     .args = "key"},
    {.name = NULL},
};
