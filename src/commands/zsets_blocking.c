/* Sorted sets: what waits for members where there are none. */
#include "commands/commands.h"
#include "commands/zsets_priv.h"

#include "commands/reads_priv.h"
#include "engine/block.h"
#include "engine/parked.h"

/* Opens the first of the call's keys that holds a sorted set which is this node's to give;
 * ref->entry is NULL when there is none. False with WRONGTYPE replied, when another type stands
 * before it. */
static bool open_first(struct call *c, struct keyref *ref) REQUIRES(keyspace_lock)
{
    for (int k = 0; k < c->key_count; k++) {
        call_open(c, k, ref);
        if (ref->entry && entry_type(ref->entry) != VALUE_ZSET) {
            reply_wrong_type(c->reply);
            return false;
        }
        if (!c->retry) {
            reads_count(ref);
        }
        if (ref->entry && !parked_is_elsewhere(c, k)) {
            return true;
        }
    }
    ref->entry = NULL;
    return true;
}

static void wait_or_reply_nothing(struct call *c, int64_t timeout_ms) REQUIRES(keyspace_lock)
{
    if (call_may_block(c)) {
        call_block(c, &(struct block){
                          .key_count = c->key_count, .type = VALUE_ZSET, .timeout_ms = timeout_ms});
    } else {
        reply_null_array(c->reply);
    }
}

static void pop_generic(struct call *c, bool highest) REQUIRES(keyspace_lock)
{
    struct keyref ref;
    int64_t timeout_ms;
    if (!call_arg_timeout_s(c, c->argc - 1, &timeout_ms) || !open_first(c, &ref)) {
        return;
    }
    if (ref.entry) {
        reply_array(c->reply, 3);
        reply_bulk(c->reply, ref.key.name);
        zsets_pop_one(c, &ref, highest);
    } else {
        wait_or_reply_nothing(c, timeout_ms);
    }
}

WRITE_COMMAND(bzpopmin_command)
{
    pop_generic(c, false);
}

WRITE_COMMAND(bzpopmax_command)
{
    pop_generic(c, true);
}

WRITE_COMMAND(bzmpop_command)
{
    int64_t count, timeout_ms;
    bool highest;
    struct keyref ref;
    if (!zsets_parse_mpop(c, 2, &highest, &count) || !call_arg_timeout_s(c, 1, &timeout_ms) ||
        !open_first(c, &ref)) {
        return;
    }
    if (ref.entry) {
        reply_array(c->reply, 2);
        reply_bulk(c->reply, ref.key.name);
        zsets_pop_members(c, &ref, (uint64_t)count, highest, true);
    } else {
        wait_or_reply_nothing(c, timeout_ms);
    }
}

const struct command_row zset_blocking_commands[] = {
    {.name = "bzmpop",
     .run = bzmpop_command,
     .arity = -5,
     .flags = CMD_WRITE | CMD_BLOCKING,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i2/n0,1,1/RW+ACCESS+DELETE",
     .group = "sorted-set",
     .since = "7.0.0",
     .summary = "Pops the lowest or highest members of the first sorted set that is not empty; "
                "waits for one where there is none.",
     .complexity = "O(K)+O(M*log(N)), K being the keys, N the members of the sorted set and M "
                   "those popped",
     .args = "timeout numkeys key [key ...] <MIN|MAX> [COUNT count]"},
    {.name = "bzpopmax",
     .run = bzpopmax_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_FAST | CMD_BLOCKING,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r-2,1,0/RW+ACCESS+DELETE",
     .group = "sorted-set",
     .since = "5.0.0",
     .summary = "Pops the member with the highest score of the first sorted set that is not empty; "
                "waits for one where there is none.",
     .complexity = "O(log(N)), N being the members of the sorted set",
     .args = "key [key ...] timeout",
     .history = "6.0.0:Takes a time-out with decimals."},
    {.name = "bzpopmin",
     .run = bzpopmin_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_FAST | CMD_BLOCKING,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r-2,1,0/RW+ACCESS+DELETE",
     .group = "sorted-set",
     .since = "5.0.0",
     .summary = "Pops the member with the lowest score of the first sorted set that is not empty; "
                "waits for one where there is none.",
     .complexity = "O(log(N)), N being the members of the sorted set",
     .args = "key [key ...] timeout",
     .history = "6.0.0:Takes a time-out with decimals."},
    {.name = NULL},
};
