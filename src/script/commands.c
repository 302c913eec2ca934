/* EVAL and its kin, SCRIPT. */
#include "engine/busy.h"
#include "script/debugger.h"
#include "script/eval.h"
#include "script/run.h"

#define EVAL_FLAGS (CMD_NOSCRIPT | CMD_SKIP_MONITOR | CMD_NO_MANDATORY_KEYS | CMD_STALE)
#define EVAL_RUN_FLAGS (CMD_EXCLUSIVE | CMD_SLOW)
#define EVAL_ARGS "numkeys [key [key ...]] [arg [arg ...]]"
#define CACHE_FLAGS (CMD_NOSCRIPT | CMD_EXCLUSIVE)

WRITE_COMMAND(script_eval)
{
    eval_run(c, false, false);
}

WRITE_COMMAND(script_evalsha)
{
    eval_run(c, true, false);
}

WRITE_COMMAND(script_eval_ro)
{
    eval_run(c, false, true);
}

WRITE_COMMAND(script_evalsha_ro)
{
    eval_run(c, true, true);
}

static uint32_t flags_of_eval(const struct call *c) REQUIRES(keyspace_lock)
{
    return run_command_flags(c->cmd->flags, eval_flags(c, false));
}

static uint32_t flags_of_evalsha(const struct call *c) REQUIRES(keyspace_lock)
{
    return run_command_flags(c->cmd->flags, eval_flags(c, true));
}

WRITE_COMMAND(script_load)
{
    eval_load(c, c->argv[2]);
}

WRITE_COMMAND(script_exists)
{
    reply_array(c->reply, (uint64_t)c->argc - 2);
    for (int i = 2; i < c->argc; i++) {
        reply_i64(c->reply, eval_exists(c->argv[i]));
    }
}

WRITE_COMMAND(script_flush)
{
    if (c->argc > 3 ||
        (c->argc == 3 && !call_arg_is(c, 2, "sync") && !call_arg_is(c, 2, "async"))) {
        reply_error(c->reply, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        return;
    }
    eval_flush();
    reply_ok(c->reply);
}

PLAIN_COMMAND(script_kill)
{
    busy_kill(c, BUSY_SCRIPT);
}

PLAIN_COMMAND(script_debug)
{
    debugger_switch(c);
}

PLAIN_COMMAND(script_help)
{
    static const char *const lines[] = {
        "DEBUG (YES|SYNC|NO)",
        "    Runs the next scripts of EVAL under the debugger: in a forked process, which keeps "
        "what",
        "    they change to itself (YES), or here, where all others wait (SYNC).",
        "EXISTS <sha1> [<sha1> ...]",
        "    Tells for each SHA1 whether the cache has its script.",
        "FLUSH [ASYNC|SYNC]",
        "    Forgets all cached scripts.",
        "KILL",
        "    Ends the script that runs, unless it has written already.",
        "LOAD <script>",
        "    Puts a script into the cache without running it.",
        NULL,
    };
    call_reply_help(c, lines);
}

static const struct command_row script_subcommands[] = {
    {.name = "debug",
     .run = script_debug,
     .arity = 3,
     .flags = CMD_NOSCRIPT | CMD_BARRIER,
     .categories = CATEGORY_SCRIPTING,
     .group = "scripting",
     .since = "3.2.0",
     .summary = "Switches the script debugger for the next scripts of the connection.",
     .complexity = "O(1)",
     .args = "<YES|SYNC|NO>"},
    {.name = "exists",
     .run = script_exists,
     .arity = -3,
     .flags = CACHE_FLAGS,
     .categories = CATEGORY_SCRIPTING,
     .tips = "request_policy:all_shards,response_policy:agg_logical_and",
     .group = "scripting",
     .since = "2.6.0",
     .summary = "Tells which scripts are in the cache.",
     .complexity = "O(N) where N is the number of scripts asked for",
     .args = "sha1 [sha1 ...]"},
    {.name = "flush",
     .run = script_flush,
     .arity = -2,
     .flags = CACHE_FLAGS | CMD_SLOW,
     .categories = CATEGORY_SCRIPTING,
     .tips = "request_policy:all_nodes,response_policy:all_succeeded",
     .group = "scripting",
     .since = "2.6.0",
     .summary = "Forgets all scripts of the cache.",
     .complexity = "O(N) where N is the number of scripts",
     .args = "[ASYNC|SYNC]",
     .history = "6.2.0:ASYNC and SYNC."},
    {.name = "help",
     .run = script_help,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE,
     .categories = CATEGORY_SCRIPTING,
     .group = "scripting",
     .since = "5.0.0",
     .summary = "Lists the subcommands.",
     .complexity = "O(1)"},
    {.name = "kill",
     .run = script_kill,
     .arity = 2,
     .flags = CMD_NOSCRIPT | CMD_ALLOW_BUSY,
     .categories = CATEGORY_SCRIPTING,
     .tips = "request_policy:all_shards,response_policy:one_succeeded",
     .group = "scripting",
     .since = "2.6.0",
     .summary = "Ends the script that runs, unless it has written.",
     .complexity = "O(1)"},
    {.name = "load",
     .run = script_load,
     .arity = 3,
     .flags = CACHE_FLAGS | CMD_STALE | CMD_SLOW,
     .categories = CATEGORY_SCRIPTING,
     .tips = "request_policy:all_nodes,response_policy:all_succeeded",
     .group = "scripting",
     .since = "2.6.0",
     .summary = "Puts a script into the cache and returns its SHA1.",
     .complexity = "O(N) where N is the length of the script",
     .args = "script"},
    {.name = NULL},
};

const struct command_row script_commands[] = {
    {.name = "eval",
     .run = script_eval,
     .flags_of = flags_of_eval,
     .arity = -3,
     .flags = EVAL_FLAGS | EVAL_RUN_FLAGS | CMD_MAY_REPLICATE,
     .categories = CATEGORY_SCRIPTING,
     .keys = "i2/n0,1,1/RW+ACCESS+UPDATE",
     .group = "scripting",
     .since = "2.6.0",
     .summary = "Runs a Lua script.",
     .complexity = "Depends on the script",
     .args = "script " EVAL_ARGS},
    {.name = "eval_ro",
     .run = script_eval_ro,
     .flags_of = flags_of_eval,
     .arity = -3,
     .flags = EVAL_FLAGS | EVAL_RUN_FLAGS | CMD_READONLY,
     .categories = CATEGORY_SCRIPTING,
     .keys = "i2/n0,1,1/RO+ACCESS",
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Runs a Lua script that only reads.",
     .complexity = "Depends on the script",
     .args = "script " EVAL_ARGS},
    {.name = "evalsha",
     .run = script_evalsha,
     .flags_of = flags_of_evalsha,
     .arity = -3,
     .flags = EVAL_FLAGS | EVAL_RUN_FLAGS | CMD_MAY_REPLICATE,
     .categories = CATEGORY_SCRIPTING,
     .keys = "i2/n0,1,1/RW+ACCESS+UPDATE",
     .group = "scripting",
     .since = "2.6.0",
     .summary = "Runs a script of the cache.",
     .complexity = "Depends on the script",
     .args = "sha1 " EVAL_ARGS},
    {.name = "evalsha_ro",
     .run = script_evalsha_ro,
     .flags_of = flags_of_evalsha,
     .arity = -3,
     .flags = EVAL_FLAGS | EVAL_RUN_FLAGS | CMD_READONLY,
     .categories = CATEGORY_SCRIPTING,
     .keys = "i2/n0,1,1/RO+ACCESS",
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Runs a script of the cache that only reads.",
     .complexity = "Depends on the script",
     .args = "sha1 " EVAL_ARGS},
    {.name = "script",
     .run = NULL,
     .arity = -2,
     .group = "scripting",
     .since = "2.6.0",
     .summary = "Holds the commands about cached scripts.",
     .complexity = "Depends on the subcommand.",
     .subcommands = script_subcommands},
    {.name = NULL},
};
