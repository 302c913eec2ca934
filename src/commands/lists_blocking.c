/* Lists: what waits for elements where there are none. */
#include "commands/commands.h"
#include "commands/lists_priv.h"

#include "engine/block.h"
#include "engine/parked.h"

/* Opens the first of the call's keys, up to `count` of them, that holds a list which is this node's
 * to give; ref->entry is NULL when there is none. False with WRONGTYPE replied, when another type
 * stands before it. */
static bool open_first(struct call *c, int count, struct keyref *ref) REQUIRES(keyspace_lock)
{
    for (int k = 0; k < count; k++) {
        call_open(c, k, ref);
        if (ref->entry && entry_type(ref->entry) == VALUE_LIST) {
            if (parked_is_elsewhere(c, k)) {
                continue;
            }
            return true;
        }
        if (ref->entry) {
            reply_wrong_type(c->reply);
            return false;
        }
    }
    ref->entry = NULL;
    return true;
}

static void wait_for_lists(struct call *c, int keys, int64_t timeout_ms) REQUIRES(keyspace_lock)
{
    call_block(c, &(struct block){.key_count = keys, .type = VALUE_LIST, .timeout_ms = timeout_ms});
}

static void pop_generic(struct call *c, enum list_end end) REQUIRES(keyspace_lock)
{
    struct keyref ref;
    int64_t timeout_ms;
    if (!call_arg_timeout_s(c, c->argc - 1, &timeout_ms) || !open_first(c, c->key_count, &ref)) {
        return;
    }
    if (ref.entry) {
        reply_array(c->reply, 2);
        reply_bulk(c->reply, ref.key.name);
        lists_pop_one(c, &ref, end);
    } else if (call_may_block(c)) {
        wait_for_lists(c, c->key_count, timeout_ms);
    } else {
        reply_null_array(c->reply);
    }
}

WRITE_COMMAND(blpop_command)
{
    pop_generic(c, LIST_HEAD);
}

WRITE_COMMAND(brpop_command)
{
    pop_generic(c, LIST_TAIL);
}

WRITE_COMMAND(blmpop_command)
{
    int64_t max, timeout_ms;
    enum list_end end;
    struct keyref ref;
    if (!lists_parse_mpop(c, 2, &end, &max) || !call_arg_timeout_s(c, 1, &timeout_ms) ||
        !open_first(c, c->key_count, &ref)) {
        return;
    }
    if (ref.entry) {
        reply_array(c->reply, 2);
        reply_bulk(c->reply, ref.key.name);
        lists_pop_many(c, &ref, end, (uint64_t)max);
    } else if (call_may_block(c)) {
        wait_for_lists(c, c->key_count, timeout_ms);
    } else {
        reply_null_array(c->reply);
    }
}

/* Waits at the source only; a target of another type is an error when there is something to move.
 */
static void move_generic(struct call *c, enum list_end from, enum list_end to, int64_t timeout_ms)
    REQUIRES(keyspace_lock)
{
    struct keyref source;
    if (!open_first(c, 1, &source)) {
        return;
    }
    if (source.entry) {
        lists_move(c, &source, from, to);
    } else if (call_may_block(c)) {
        wait_for_lists(c, 1, timeout_ms);
    } else {
        reply_null(c->reply);
    }
}

WRITE_COMMAND(blmove_command)
{
    enum list_end from, to;
    int64_t timeout_ms;
    if (lists_arg_end(c, 3, &from) && lists_arg_end(c, 4, &to) &&
        call_arg_timeout_s(c, 5, &timeout_ms)) {
        move_generic(c, from, to, timeout_ms);
    }
}

WRITE_COMMAND(brpoplpush_command)
{
    int64_t timeout_ms;
    if (call_arg_timeout_s(c, 3, &timeout_ms)) {
        move_generic(c, LIST_TAIL, LIST_HEAD, timeout_ms);
    }
}

#define DECIMALS "6.0.0:Takes a time-out with decimals."
#define POPS                                                                                       \
    .arity = -3, .flags = CMD_WRITE | CMD_BLOCKING, .categories = CATEGORY_LIST,                   \
    .keys = "i1/r-2,1,0/RW+ACCESS+DELETE", .group = "list", .since = "2.0.0",                      \
    .complexity = "O(N), N being the keys", .args = "key [key ...] timeout", .history = DECIMALS
#define MOVES                                                                                      \
    .flags = CMD_WRITE | CMD_DENYOOM | CMD_BLOCKING, .categories = CATEGORY_LIST,                  \
    .keys = "i1/r0,1,0/RW+ACCESS+DELETE; i2/r0,1,0/RW+INSERT", .group = "list",                    \
    .complexity = "O(1)"

const struct command_row list_blocking_commands[] = {
    {.name = "blmove",
     .run = blmove_command,
     .arity = 6,
     MOVES,
     .since = "6.2.0",
     .summary = "Moves an element from one end of a list to an end of the same or another one; "
                "waits for one where there is none.",
     .args = "source destination <LEFT|RIGHT> <LEFT|RIGHT> timeout"},
    {.name = "blmpop",
     .run = blmpop_command,
     .arity = -5,
     .flags = CMD_WRITE | CMD_BLOCKING,
     .categories = CATEGORY_LIST,
     .keys = "i2/n0,1,1/RW+ACCESS+DELETE",
     .group = "list",
     .since = "7.0.0",
     .summary = "Takes elements from an end of the first of several lists that exists; waits for "
                "one where there is none.",
     .complexity = "O(N+M), N being the keys, M the elements taken",
     .args = "timeout numkeys key [key ...] <LEFT|RIGHT> [COUNT count]"},
    {.name = "blpop",
     .run = blpop_command,
     POPS,
     .summary = "Takes the first element of the first of several lists that exists; waits for one "
                "where there is none."},
    {.name = "brpop",
     .run = brpop_command,
     POPS,
     .summary = "Takes the last element of the first of several lists that exists; waits for one "
                "where there is none."},
    {.name = "brpoplpush",
     .run = brpoplpush_command,
     .arity = 4,
     MOVES,
     .since = "2.2.0",
     .summary = "Moves the last element of a list to the head of the same or another one; waits "
                "for one where there is none.",
     .args = "source destination timeout",
     .history = DECIMALS,
     .deprecated_since = "6.2.0",
     .replaced_by = "BLMOVE with RIGHT and LEFT"},
    {.name = NULL},
};
