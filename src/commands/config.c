/* CONFIG over the engine's set of options. Reading needs nothing but an awake thread: values change
 * only while all other threads stand still. */
#include "commands/commands.h"
#include "commands/peer.h"
#include "base/glob.h"
#include "base/stats.h"
#include "engine/acl_log.h"
#include "engine/call.h"
#include "engine/cmdstats.h"
#include "engine/config.h"
#include "engine/fork_child.h"
#include "keyspace/evict.h"

/* ---- CONFIG GET ---- */

struct config_query {
    struct call *call;
    struct buf value; /* scratch */
    uint64_t found;
};

/* The name to show the option under, ptr NULL when nobody asks for it: its own where a pattern
 * found it, the client's spelling where the client named it. Hidden options only show up by name.
 */
static struct slice config_asked_name(const struct call *c, const struct option *o,
                                      const char *name)
{
    for (int i = 2; i < c->argc; i++) {
        if (glob_is_literal(c->argv[i])) {
            if (slice_equal_nocase(c->argv[i], name)) {
                return c->argv[i];
            }
        } else if (!(o->flags & OPTION_HIDDEN) && glob_match(c->argv[i], slice_cstr(name), true)) {
            return slice_cstr(name);
        }
    }
    return slice_of(NULL, 0);
}

static void config_reply_value(struct config_query *q, const struct option *o, struct slice shown)
{
    buf_clear(&q->value);
    option_format(o, &q->value);
    reply_bulk(q->call->reply, shown);
    reply_bulk(q->call->reply, buf_slice(&q->value));
    q->found++;
}

static void config_reply_option(const struct option *o, const char *name, void *context)
{
    struct config_query *q = context;
    struct slice shown = config_asked_name(q->call, o, name);
    if (shown.ptr) {
        config_reply_value(q, o, shown);
    }
}

/* Names that are looked up one by one: with more, and patterns, all options are looked at. */
#define CONFIG_LOOKUPS_MAX 16

static bool config_asks_by_name(const struct call *c)
{
    bool by_name = c->argc - 2 <= CONFIG_LOOKUPS_MAX;
    for (int i = 2; by_name && i < c->argc; i++) {
        by_name = glob_is_literal(c->argv[i]);
    }
    return by_name;
}

static bool config_was_asked(const struct call *c, int arg)
{
    for (int i = 2; i < arg; i++) {
        if (c->argv[i].len == c->argv[arg].len &&
            strncasecmp(c->argv[i].ptr, c->argv[arg].ptr, c->argv[arg].len) == 0) {
            return true;
        }
    }
    return false;
}

static void config_look_up(struct config_query *q)
{
    const struct call *c = q->call;
    for (int i = 2; i < c->argc; i++) {
        const struct option *o = config_find(c->argv[i]);
        if (o && !config_was_asked(c, i)) {
            config_reply_value(q, o, c->argv[i]);
        }
    }
}

PLAIN_COMMAND(config_command_get)
{
    struct config_query q = {.call = c};
    if (c->held == ACCESS_SHARED && config_has_added()) {
        call_need_exclusive(c);
        return;
    }
    uint32_t map = reply_deferred(c->reply);
    if (config_asks_by_name(c)) {
        config_look_up(&q);
    } else {
        config_each(config_reply_option, &q);
    }
    reply_set_deferred_map(c->reply, map, q.found);
    buf_deinit(&q.value);
}

/* ---- CONFIG SET, REWRITE, RESETSTAT ---- */

/* Names as long as any option's fit; longer ones are cut in the error. */
#define CONFIG_NAME_SHOWN_BYTES 128

static void config_reply_failed(struct call *c, struct slice name, const char *error)
{
    int len = (int)(name.len < CONFIG_NAME_SHOWN_BYTES ? name.len : CONFIG_NAME_SHOWN_BYTES);
    reply_errorf(c->reply, "ERR CONFIG SET failed (possibly related to argument '%.*s') - %s", len,
                 name.ptr, error);
}

/* Looks at all names before anything is changed; false with the error replied. */
static bool config_check_names(struct call *c)
{
    for (int i = 2; i < c->argc; i += 2) {
        struct slice name = c->argv[i];
        const struct option *o = config_find(name);
        if (!o) {
            int len =
                (int)(name.len < CONFIG_NAME_SHOWN_BYTES ? name.len : CONFIG_NAME_SHOWN_BYTES);
            reply_errorf(c->reply,
                         "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'", len,
                         name.ptr);
            return false;
        }
        if ((o->flags & OPTION_PROTECTED) && !config_allows_protected(peer_is_local(c->session))) {
            config_reply_failed(c, name, "can't set protected config");
            return false;
        }
    }
    return true;
}

WORLD_COMMAND(config_command_set)
{
    if (c->argc % 2 != 0) {
        reply_syntax_error(c->reply);
        return;
    }
    if (!config_check_names(c)) {
        return;
    }
    struct slice failed = {NULL, 0};
    const char *error = NULL;
    if (!config_set(c->argv + 2, (c->argc - 2) / 2, &failed, &error)) {
        config_reply_failed(c, failed, error);
        return;
    }
    reply_ok(c->reply);
}

WORLD_COMMAND(config_command_rewrite)
{
    const char *error = NULL;
    if (!*config_file_path()) {
        reply_error(c->reply, "ERR The server is running without a config file");
    } else if (!config_rewrite(&error)) {
        reply_errorf(c->reply, "ERR Rewriting config file: %s", error);
    } else {
        reply_ok(c->reply);
    }
}

WORLD_COMMAND(config_command_resetstat)
{
    stats_reset();
    fork_child_reset_stats();
    evict_reset_stats();
    cmdstats_reset();
    acl_log_reset_counters();
    reply_ok(c->reply);
}

PLAIN_COMMAND(config_command_help)
{
    static const char *const lines[] = {
        "GET <pattern> [<pattern> ...]",
        "    Reply names and values of the options that match one of the glob patterns.",
        "RESETSTAT",
        "    Set the counters that INFO shows back to zero.",
        "REWRITE",
        "    Write what differs from it into the configuration file.",
        "SET <option> <value> [<option> <value> ...]",
        "    Change options, all of them or none.",
        NULL,
    };
    call_reply_help(c, lines);
}

#define CONFIG_FLAGS (CMD_ADMIN | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE)
#define CONFIG_ALL_NODES "request_policy:all_nodes,response_policy:all_succeeded"

static const struct command_row config_subcommands[] = {
    {.name = "get",
     .run = config_command_get,
     .arity = -3,
     .flags = CONFIG_FLAGS,
     .group = "server",
     .since = "2.0.0",
     .summary = "Shows options and their values.",
     .complexity = "O(N) where N is the number of options times that of patterns",
     .args = "parameter [parameter ...]",
     .history = "7.0.0:Takes several patterns."},
    {.name = "help",
     .run = config_command_help,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE,
     .group = "server",
     .since = "5.0.0",
     .summary = "Lists the subcommands.",
     .complexity = "O(1)"},
    {.name = "resetstat",
     .run = config_command_resetstat,
     .arity = 2,
     .flags = CONFIG_FLAGS | CMD_WORLD,
     .tips = CONFIG_ALL_NODES,
     .group = "server",
     .since = "2.0.0",
     .summary = "Sets the server's statistics back to zero.",
     .complexity = "O(1)"},
    {.name = "rewrite",
     .run = config_command_rewrite,
     .arity = 2,
     .flags = CONFIG_FLAGS | CMD_WORLD,
     .tips = CONFIG_ALL_NODES,
     .group = "server",
     .since = "2.8.0",
     .summary = "Writes the running configuration into the configuration file.",
     .complexity = "O(1)"},
    {.name = "set",
     .run = config_command_set,
     .arity = -4,
     .flags = CONFIG_FLAGS | CMD_WORLD,
     .tips = CONFIG_ALL_NODES,
     .group = "server",
     .since = "2.0.0",
     .summary = "Changes options while the server runs.",
     .complexity = "O(N) where N is the number of options given",
     .args = "parameter value [parameter value ...]",
     .history = "7.0.0:Sets several options at once."},
    {.name = NULL},
};

const struct command_row config_commands[] = {
    {.name = "config",
     .run = NULL,
     .arity = -2,
     .group = "server",
     .since = "2.0.0",
     .summary = "Holds the commands about the server's configuration.",
     .complexity = "Depends on the subcommand.",
     .subcommands = config_subcommands},
    {.name = NULL},
};
