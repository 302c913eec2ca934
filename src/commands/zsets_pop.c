/* Sorted sets: taking the lowest or highest members away. What waits for members is in
 * zsets_blocking.c. */
#include "commands/commands.h"
#include "commands/zsets_priv.h"

#include "commands/reads_priv.h"
#include "engine/propagate.h"

static void remove_popped(struct call *c, struct keyref *ref, uint64_t count, bool highest)
    REQUIRES(keyspace_lock)
{
    uint64_t size = zset_count(ref->entry);
    assert(count > 0 && count <= size);
    if (unlikely(propagate_peers)) {
        zsets_tell_peers(c, ref, highest ? size - count : 0, highest ? size : count);
    }
    zset_remove_ranks(ref->entry, highest ? size - count : 0, highest ? size : count);
    if (unlikely(propagate_on)) {
        char text[PROPAGATE_NUMBER_BYTES];
        PROPAGATE(c, highest ? SLICE("ZPOPMAX") : SLICE("ZPOPMIN"), ref->key.name,
                  propagate_number((int64_t)count, text));
    }
    zsets_removed(c, ref, count, highest ? "zpopmax" : "zpopmin");
}

static struct zset_cursor cursor_at_end(const struct entry *e, bool highest)
    REQUIRES_SHARED(keyspace_lock)
{
    return zset_cursor_at(e, highest ? zset_count(e) - 1 : 0, highest);
}

void zsets_pop_members(struct call *c, struct keyref *ref, uint64_t count, bool highest,
                       bool nested)
{
    uint64_t size = zset_count(ref->entry);
    count = count < size ? count : size;
    struct zset_cursor at = cursor_at_end(ref->entry, highest);
    zsets_reply_members(c, &at, count, true, nested);
    remove_popped(c, ref, count, highest);
}

void zsets_pop_one(struct call *c, struct keyref *ref, bool highest)
{
    char text[ZSET_TEXT_BYTES];
    struct zset_cursor at = cursor_at_end(ref->entry, highest);
    reply_bulk(c->reply, zset_cursor_member(&at, text));
    reply_double(c->reply, zset_cursor_score(&at));
    remove_popped(c, ref, 1, highest);
}

static void pop_generic(struct call *c, bool highest) REQUIRES(keyspace_lock)
{
    struct keyref ref;
    int64_t count = 1;
    if (c->argc > 3) {
        reply_syntax_error(c->reply);
        return;
    }
    if (c->argc == 3 && !call_arg_range(c, 2, 0, INT64_MAX, &count,
                                        "ERR value is out of range, must be positive")) {
        return;
    }
    if (!call_open_typed(c, 0, VALUE_ZSET, &ref)) {
        return;
    }
    reads_count(&ref);
    if (!ref.entry || count == 0) {
        reply_array(c->reply, 0);
        return;
    }
    zsets_pop_members(c, &ref, (uint64_t)count, highest, c->argc == 3 && zsets_nested(c, true));
}

WRITE_COMMAND(zpopmin_command)
{
    pop_generic(c, false);
}

WRITE_COMMAND(zpopmax_command)
{
    pop_generic(c, true);
}

/* ZMPOP's arguments behind the keys; false with an error replied. */
static bool parse_end_and_count(struct call *c, int at, bool *highest, int64_t *count)
{
    *highest = at < c->argc && call_arg_is(c, at, "max");
    if (at >= c->argc || (!*highest && !call_arg_is(c, at, "min"))) {
        reply_syntax_error(c->reply);
        return false;
    }
    *count = 1;
    if (at + 1 == c->argc) {
        return true;
    }
    if (at + 3 > c->argc || !call_arg_is(c, at + 1, "count")) {
        reply_syntax_error(c->reply);
        return false;
    }
    if (!call_arg_range(c, at + 2, 1, INT64_MAX, count, "ERR count should be greater than 0")) {
        return false;
    }
    if (at + 3 != c->argc) {
        reply_syntax_error(c->reply);
        return false;
    }
    return true;
}

bool zsets_parse_mpop(struct call *c, int i, bool *highest, int64_t *count)
{
    int keys;
    return call_arg_key_count(c, i, 1, &keys) &&
           parse_end_and_count(c, i + 1 + keys, highest, count);
}

WRITE_COMMAND(zmpop_command)
{
    int64_t count;
    bool highest;
    if (!zsets_parse_mpop(c, 1, &highest, &count)) {
        return;
    }
    for (int k = 0; k < c->key_count; k++) {
        struct keyref ref;
        if (!call_open_typed(c, k, VALUE_ZSET, &ref)) {
            return;
        }
        reads_count(&ref);
        if (ref.entry) {
            reply_array(c->reply, 2);
            reply_bulk(c->reply, ref.key.name);
            zsets_pop_members(c, &ref, (uint64_t)count, highest, true);
            return;
        }
    }
    reply_null_array(c->reply);
}

const struct command_row zset_pop_commands[] = {
    {.name = "zmpop",
     .run = zmpop_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/n0,1,1/RW+ACCESS+DELETE",
     .group = "sorted-set",
     .since = "7.0.0",
     .summary = "Pops the lowest or highest members of the first sorted set that is not empty.",
     .complexity = "O(K)+O(M*log(N)), K being the keys, N the members of the sorted set and M "
                   "those popped",
     .args = "numkeys key [key ...] <MIN|MAX> [COUNT count]"},
    {.name = "zpopmax",
     .run = zpopmax_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RW+ACCESS+DELETE",
     .group = "sorted-set",
     .since = "5.0.0",
     .summary = "Removes and returns the members with the highest scores.",
     .complexity = "O(M*log(N)), N being the members of the sorted set and M those popped",
     .args = "key [count]"},
    {.name = "zpopmin",
     .run = zpopmin_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RW+ACCESS+DELETE",
     .group = "sorted-set",
     .since = "5.0.0",
     .summary = "Removes and returns the members with the lowest scores.",
     .complexity = "O(M*log(N)), N being the members of the sorted set and M those popped",
     .args = "key [count]"},
    {.name = NULL},
};
