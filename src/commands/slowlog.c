/* SLOWLOG: a door to the engine's slow log. */
#include "commands/commands.h"
#include "engine/call.h"
#include "engine/execute.h"
#include "engine/slowlog.h"

/* Entries that GET replies when the caller does not say how many. */
#define SLOWLOG_DEFAULT_COUNT 10

PLAIN_COMMAND(slowlog_command_get)
{
    int64_t count = SLOWLOG_DEFAULT_COUNT;
    if (c->argc > 3) {
        reply_errorf(c->reply,
                     "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try SLOWLOG "
                     "HELP.",
                     (int)c->argv[1].len, c->argv[1].ptr);
        return;
    }
    static const char error[] = "ERR count should be greater than or equal to -1";
    if (c->argc == 3 && !call_arg_i64_error(c, 2, &count, error)) {
        return;
    }
    if (count < -1) {
        reply_error(c->reply, error);
        return;
    }
    call_settle_accounts();
    slowlog_reply(c->reply, count);
}

PLAIN_COMMAND(slowlog_command_len)
{
    call_settle_accounts();
    reply_i64(c->reply, (int64_t)slowlog_len());
}

PLAIN_COMMAND(slowlog_command_reset)
{
    call_settle_accounts();
    slowlog_reset();
    reply_ok(c->reply);
}

PLAIN_COMMAND(slowlog_command_help)
{
    static const char *const lines[] = {
        "GET [<count>]",
        "    Reply the newest entries (10 unless told, -1 for all), each with its id, the time",
        "    when it ran, the microseconds it took, its arguments, and the client's address and",
        "    name.",
        "LEN",
        "    Reply the number of entries.",
        "RESET",
        "    Forget all entries.",
        NULL,
    };
    call_reply_help(c, lines);
}

static const struct command_row slowlog_subcommands[] = {
    {.name = "get",
     .run = slowlog_command_get,
     .arity = -2,
     .flags = CMD_ADMIN | CMD_LOADING | CMD_STALE,
     .tips = "request_policy:all_nodes,nondeterministic_output",
     .group = "server",
     .since = "2.2.12",
     .summary = "Shows the newest entries of the slow log.",
     .complexity = "O(N) where N is the number of entries shown",
     .args = "[count]",
     .history = "4.0.0:Entries carry the client's address and name."},
    {.name = "help",
     .run = slowlog_command_help,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE,
     .group = "server",
     .since = "6.2.0",
     .summary = "Lists the subcommands.",
     .complexity = "O(1)"},
    {.name = "len",
     .run = slowlog_command_len,
     .arity = 2,
     .flags = CMD_ADMIN | CMD_LOADING | CMD_STALE,
     .tips = "request_policy:all_nodes,response_policy:agg_sum,nondeterministic_output",
     .group = "server",
     .since = "2.2.12",
     .summary = "Counts the entries of the slow log.",
     .complexity = "O(1)"},
    {.name = "reset",
     .run = slowlog_command_reset,
     .arity = 2,
     .flags = CMD_ADMIN | CMD_LOADING | CMD_STALE,
     .tips = "request_policy:all_nodes,response_policy:all_succeeded",
     .group = "server",
     .since = "2.2.12",
     .summary = "Empties the slow log.",
     .complexity = "O(N) where N is the number of entries"},
    {.name = NULL},
};

const struct command_row slowlog_commands[] = {
    {.name = "slowlog",
     .run = NULL,
     .arity = -2,
     .group = "server",
     .since = "2.2.12",
     .summary = "Holds the commands about the slow log.",
     .complexity = "Depends on the subcommand.",
     .subcommands = slowlog_subcommands},
    {.name = NULL},
};
