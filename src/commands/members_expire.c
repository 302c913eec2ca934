/* KeyDB's commands that let members of sets, sorted sets and hashes expire one by one. The same
 * deadlines as those of hash fields (hashes_expire.c, value/member_ttl.h); TTL, PTTL and PERSIST
 * with a member are in keys_expire.c. */
#include "commands/commands.h"
#include "commands/expire_priv.h"

#include "engine/propagate.h"
#include "keyspace/expire.h"
#include "value/member_ttl.h"

/* What is told when a member goes because its deadline is over already. */
static const struct {
    enum event_class class;
    const char *event;
    const char *command; /* that does the same */
} removal_events[VALUE_TYPE_COUNT] = {
    [VALUE_HASH] = {EVENT_HASH, "hdel", "HDEL"},
    [VALUE_SET] = {EVENT_SET, "srem", "SREM"},
    [VALUE_ZSET] = {EVENT_ZSET, "zrem", "ZREM"},
};

/* Takes the member out, and the key with the last one. */
static void remove_now(struct call *c, struct keyref *ref, struct slice member)
    REQUIRES(keyspace_lock)
{
    enum value_type type = entry_type(ref->entry);
    const struct value_ops *ops = value_ops_of[type];
    ops->remove(ref->entry, member);
    bool emptied = ops->count(ref->entry) == 0;
    if (emptied) {
        propagate_emptied(ref);
        db_delete(ref, false);
    }
    if (unlikely(propagate_on)) {
        PROPAGATE(c, slice_cstr(removal_events[type].command), ref->key.name, member);
    }
    call_changed(c, ref, removal_events[type].class, removal_events[type].event);
    if (emptied) {
        event_notify(EVENT_GENERIC, "del", ref->db->id, ref->key.name);
    }
}

/* The member in argument 2 goes `base_ms` plus the units in argument 3 after 1970, at once when
 * that is over. */
static void expire_member(struct call *c, int64_t base_ms, int64_t unit_ms) REQUIRES(keyspace_lock)
{
    struct keyref ref;
    struct slice member = c->argv[2];
    int64_t at_ms;
    if (!expire_parse_time(c, 3, base_ms, unit_ms, &at_ms)) {
        return;
    }
    call_open(c, 0, &ref);
    if (ref.entry && !member_ttl_supported(ref.entry)) {
        reply_error(c->reply, "ERR object type is unsupported");
        return;
    }
    if (!ref.entry || !value_ops_of[entry_type(ref.entry)]->has(ref.entry, member)) {
        reply_i64(c->reply, 0);
        return;
    }
    if (expire_is_over(at_ms, c->now_ms)) {
        remove_now(c, &ref, member);
    } else if (db_set_member_ttl(&ref, member, at_ms)) {
        if (unlikely(propagate_on)) {
            char text[PROPAGATE_NUMBER_BYTES];
            PROPAGATE(c, SLICE("PEXPIREMEMBERAT"), ref.key.name, member,
                      propagate_number(at_ms, text));
        }
        call_changed(c, &ref, EVENT_GENERIC, "expiremember");
    } else {
        reply_error(c->reply, "ERR the member cannot have a deadline: too long, or too many have");
        return;
    }
    reply_i64(c->reply, 1);
}

WRITE_COMMAND(expiremember_command)
{
    int64_t unit_ms = MS_PER_SECOND;
    if (c->argc > 5) {
        reply_error(c->reply, "ERR Invalid number of arguments");
        return;
    }
    if (c->argc == 5 && call_arg_is(c, 4, "ms")) {
        unit_ms = 1;
    } else if (c->argc == 5 && !call_arg_is(c, 4, "s")) {
        reply_error(c->reply, "ERR Invalid unit arg");
        return;
    }
    expire_member(c, c->now_ms, unit_ms);
}

WRITE_COMMAND(expirememberat_command)
{
    expire_member(c, 0, MS_PER_SECOND);
}

WRITE_COMMAND(pexpirememberat_command)
{
    expire_member(c, 0, 1);
}

const struct command_row member_expire_commands[] = {
    {.name = "expiremember",
     .run = expiremember_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "generic",
     .since = "6.3.0",
     .summary = "Lets a member of a set, sorted set or hash expire after some time.",
     .complexity = "O(log N), N being the members that have deadlines",
     .members = {2, 0},
     .args = "key member delta [s|ms]"},
    {.name = "expirememberat",
     .run = expirememberat_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "generic",
     .since = "6.3.0",
     .summary = "Lets a member of a set, sorted set or hash expire at a Unix time in seconds.",
     .complexity = "O(log N), N being the members that have deadlines",
     .members = {2, 0},
     .args = "key member unix-time-seconds"},
    {.name = "pexpirememberat",
     .run = pexpirememberat_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "generic",
     .since = "6.3.0",
     .summary = "Lets a member of a set, sorted set or hash expire at a Unix time in milliseconds.",
     .complexity = "O(log N), N being the members that have deadlines",
     .members = {2, 0},
     .args = "key member unix-time-milliseconds"},
    {.name = NULL},
};
