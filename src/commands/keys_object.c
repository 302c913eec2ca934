/* OBJECT: how a value is kept. Looking leaves the access clock alone. */
#include "commands/commands.h"

#include "engine/call.h"
#include "engine/propagate.h"
#include "keyspace/access.h"

#define POLICY_SWITCH_NOTE                                                                         \
    " Please note that when switching between policies at runtime LRU and LFU data will take "     \
    "some time to adjust."

/* The key's entry; NULL and null replied when it is missing. */
static struct entry *object_find(struct call *c) REQUIRES_SHARED(keyspace_lock)
{
    struct entry *e = call_peek(c, 0);
    if (!e) {
        reply_null(c->reply);
    }
    return e;
}

READ_COMMAND(object_encoding_command)
{
    const struct entry *e = object_find(c);
    if (e) {
        reply_bulk_cstr(c->reply, value_ops_of[entry_type(e)]->encoding(e));
    }
}

READ_COMMAND(object_freq_command)
{
    const struct entry *e = object_find(c);
    if (!e) {
        return;
    }
    if (!access_is_lfu()) {
        reply_error(c->reply, "ERR An LFU maxmemory policy is not selected, access frequency not "
                              "tracked." POLICY_SWITCH_NOTE);
        return;
    }
    reply_i64(c->reply, access_frequency(e, c->now_ms));
}

READ_COMMAND(object_idletime_command)
{
    const struct entry *e = object_find(c);
    if (!e) {
        return;
    }
    if (access_is_lfu()) {
        reply_error(
            c->reply,
            "ERR An LFU maxmemory policy is selected, idle time not tracked." POLICY_SWITCH_NOTE);
        return;
    }
    reply_i64(c->reply, access_idle_ms(e, c->now_ms) / 1000);
}

/* A value belongs to one key only; what else refers to a blob are replies under way. */
READ_COMMAND(object_refcount_command)
{
    if (object_find(c)) {
        reply_i64(c->reply, 1);
    }
}

READ_COMMAND(object_lastmodified_command)
{
    const struct entry *e = object_find(c);
    if (!e) {
        return;
    }
    int64_t at_ms = entry_written_ms(e);
    if (at_ms < 0 && !propagate_peers) {
        reply_error(c->reply, "ERR Only active replicas know when a key was last written");
    } else {
        reply_i64(c->reply, at_ms < 0 ? -1 : at_ms < c->now_ms ? (c->now_ms - at_ms) / 1000 : 0);
    }
}

PLAIN_COMMAND(object_help_command)
{
    static const char *const lines[] = {
        "ENCODING <key>",
        "    Tells in which form the value of <key> is kept.",
        "FREQ <key>",
        "    Tells how often <key> was accessed lately, on a logarithmic scale of 0 to 255;",
        "    only while an LFU policy is selected.",
        "IDLETIME <key>",
        "    Tells for about how many seconds nobody has accessed <key>.",
        "LASTMODIFIED <key>",
        "    Tells for how many seconds nobody has written <key>; only on active replicas.",
        "REFCOUNT <key>",
        "    Tells how many keys share the value of <key>: always 1.",
        NULL,
    };
    call_reply_help(c, lines);
}

static const struct command_row object_subcommands[] = {
    {.name = "encoding",
     .run = object_encoding_command,
     .arity = 3,
     .flags = CMD_READONLY,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i2/r0,1,0/RO",
     .tips = "nondeterministic_output",
     .group = "generic",
     .since = "2.2.3",
     .summary = "Tells in which form a value is kept.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "freq",
     .run = object_freq_command,
     .arity = 3,
     .flags = CMD_READONLY,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i2/r0,1,0/RO",
     .tips = "nondeterministic_output",
     .group = "generic",
     .since = "4.0.0",
     .summary = "Tells how often a key was accessed lately, on a logarithmic scale.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "help",
     .run = object_help_command,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE,
     .categories = CATEGORY_KEYSPACE,
     .group = "generic",
     .since = "6.2.0",
     .summary = "Lists the subcommands.",
     .complexity = "O(1)"},
    {.name = "idletime",
     .run = object_idletime_command,
     .arity = 3,
     .flags = CMD_READONLY,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i2/r0,1,0/RO",
     .tips = "nondeterministic_output",
     .group = "generic",
     .since = "2.2.3",
     .summary = "Tells for how many seconds a key was not accessed.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "lastmodified",
     .run = object_lastmodified_command,
     .arity = 3,
     .flags = CMD_READONLY,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i2/r0,1,0/RO",
     .tips = "nondeterministic_output",
     .group = "generic",
     .since = "6.3.0",
     .summary = "Tells for how many seconds a key was not written; only on active replicas.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "refcount",
     .run = object_refcount_command,
     .arity = 3,
     .flags = CMD_READONLY,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i2/r0,1,0/RO",
     .tips = "nondeterministic_output",
     .group = "generic",
     .since = "2.2.3",
     .summary = "Tells how many keys share the value of a key.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = NULL},
};

const struct command_row key_object_commands[] = {
    {.name = "object",
     .arity = -2,
     .group = "generic",
     .since = "2.2.3",
     .summary = "Groups the commands that tell how values are kept.",
     .complexity = "Depends on the subcommand.",
     .subcommands = object_subcommands},
    {.name = NULL},
};
