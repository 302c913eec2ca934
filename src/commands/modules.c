/* MODULE of a server without modules: an empty list, and a clear answer to whoever wants to load
 * one. */
#include "commands/commands.h"
#include "engine/call.h"

PLAIN_COMMAND(module_list)
{
    reply_array(c->reply, 0);
}

PLAIN_COMMAND(module_refuse)
{
    reply_error(c->reply, "ERR This version has no support for modules yet");
}

PLAIN_COMMAND(module_help)
{
    static const char *const lines[] = {
        "LIST",
        "    Reply the modules that are loaded: none, this version has no modules yet.",
        "LOAD <path> [<arg> ...]",
        "    Load a module. Refused until there are modules.",
        "LOADEX <path> [CONFIG <name> <value> ...] [ARGS <arg> ...]",
        "    Load a module with options. Refused until there are modules.",
        "UNLOAD <name>",
        "    Take a module out. Refused until there are modules.",
        NULL,
    };
    call_reply_help(c, lines);
}

#define MODULE_CHANGES (CMD_NO_ASYNC_LOADING | CMD_ADMIN | CMD_NOSCRIPT | CMD_PROTECTED)

static const struct command_row module_subcommands[] = {
    {.name = "help",
     .run = module_help,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE,
     .group = "server",
     .since = "5.0.0",
     .summary = "Lists the subcommands.",
     .complexity = "O(1)"},
    {.name = "list",
     .run = module_list,
     .arity = 2,
     .flags = CMD_ADMIN | CMD_NOSCRIPT,
     .tips = "nondeterministic_output_order",
     .group = "server",
     .since = "4.0.0",
     .summary = "Lists the loaded modules.",
     .complexity = "O(N) where N is the number of loaded modules"},
    {.name = "load",
     .run = module_refuse,
     .arity = -3,
     .flags = MODULE_CHANGES,
     .group = "server",
     .since = "4.0.0",
     .summary = "Loads a module.",
     .complexity = "O(1)",
     .args = "path [arg [arg ...]]"},
    {.name = "loadex",
     .run = module_refuse,
     .arity = -3,
     .flags = MODULE_CHANGES,
     .group = "server",
     .since = "7.0.0",
     .summary = "Loads a module and sets its options.",
     .complexity = "O(1)",
     .args = "path [CONFIG name value [CONFIG name value ...]] [ARGS args [args ...]]"},
    {.name = "unload",
     .run = module_refuse,
     .arity = 3,
     .flags = MODULE_CHANGES,
     .group = "server",
     .since = "4.0.0",
     .summary = "Takes a module out.",
     .complexity = "O(1)",
     .args = "name"},
    {.name = NULL},
};

const struct command_row module_commands[] = {
    {.name = "module",
     .run = NULL,
     .arity = -2,
     .group = "server",
     .since = "4.0.0",
     .summary = "Holds the commands about modules.",
     .complexity = "Depends on the subcommand.",
     .subcommands = module_subcommands},
    {.name = NULL},
};
