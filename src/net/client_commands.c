/* CLIENT's table and the subcommands about the caller's own session or about pauses; QUIT, RESET,
 * MONITOR. */
#include "net/net.h"

#include "base/clock.h"
#include "base/mem.h"
#include "engine/auth.h"
#include "net/blocked.h"
#include "net/client_commands_priv.h"
#include "net/monitor.h"
#include "net/pause.h"
#include "engine/transaction.h"
#include "net/subscriptions.h"
#include "net/tracking.h"

static void set_flag(struct client *c, uint32_t flag, bool on)
{
    c->flags = on ? c->flags | flag : c->flags & ~flag;
}

/* Argument `i` as ON or OFF; false with the error replied. */
static bool parse_on_off(struct call *c, int i, bool *on)
{
    *on = call_arg_is(c, i, "on");
    if (*on || call_arg_is(c, i, "off")) {
        return true;
    }
    reply_syntax_error(c->reply);
    return false;
}

/* ---- the own session ---- */

PLAIN_COMMAND(client_getname)
{
    if (c->session->name) {
        reply_bulk_cstr(c->reply, c->session->name);
    } else {
        reply_null(c->reply);
    }
}

PLAIN_COMMAND(client_setname)
{
    if (session_set_name(c->session, c->argv[2])) {
        reply_ok(c->reply);
    } else {
        reply_error(c->reply,
                    "ERR Client names cannot contain spaces, newlines or special characters.");
    }
}

PLAIN_COMMAND(client_id)
{
    reply_i64(c->reply, (int64_t)c->session->id);
}

/* Words of CLIENT LIST's lines stand between blanks. */
static bool is_word(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '!' || text.ptr[i] > '~') {
            return false;
        }
    }
    return true;
}

PLAIN_COMMAND(client_setinfo)
{
    struct slice option = c->argv[2], value = c->argv[3];
    bool is_name = call_arg_is(c, 2, "lib-name");
    char **target = is_name ? &c->session->lib_name : &c->session->lib_ver;
    if (!is_name && !call_arg_is(c, 2, "lib-ver")) {
        reply_errorf(c->reply, "ERR Unrecognized option '%.*s'",
                     (int)(option.len < 128 ? option.len : 128), option.ptr);
    } else if (!is_word(value)) {
        reply_errorf(c->reply, "ERR %s cannot contain spaces, newlines or special characters.",
                     is_name ? "lib-name" : "lib-ver");
    } else {
        mem_free(*target);
        *target = value.len > 0 ? mem_dup(value.ptr, value.len) : NULL;
        reply_ok(c->reply);
    }
}

PLAIN_COMMAND(client_no_evict)
{
    bool on;
    if (parse_on_off(c, 2, &on)) {
        set_flag(client_of(c->session), CLIENT_NO_EVICT, on);
        reply_ok(c->reply);
    }
}

PLAIN_COMMAND(client_no_touch)
{
    bool on;
    if (parse_on_off(c, 2, &on)) {
        c->session->no_touch = on;
        reply_ok(c->reply);
    }
}

/* OFF and SKIP reply nothing themselves; SKIP means the next request, and nothing while replies are
 * off. */
PLAIN_COMMAND(client_reply)
{
    struct client *client = client_of(c->session);
    if (call_arg_is(c, 2, "on")) {
        set_flag(client, CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP | CLIENT_REPLY_SKIP_NEXT, false);
        c->session->muted = false;
        reply_ok(c->reply);
    } else if (call_arg_is(c, 2, "off")) {
        set_flag(client, CLIENT_REPLY_OFF, true);
        c->session->muted = true;
    } else if (call_arg_is(c, 2, "skip")) {
        set_flag(client, CLIENT_REPLY_SKIP_NEXT, !(client->flags & CLIENT_REPLY_OFF));
    } else {
        reply_syntax_error(c->reply);
    }
}

/* It is run apart, as a barrier is; how requests are understood does not depend on it. */
static bool client_reply_is_barrier(const struct call *c UNUSED)
{
    return false;
}

/* ---- pauses and blocked clients ---- */

/* For subcommands with optional arguments: more than there are. */
static void reply_bad_sub(struct call *c)
{
    struct slice word = c->argv[1];
    reply_errorf(c->reply,
                 "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try CLIENT HELP.",
                 (int)(word.len < 128 ? word.len : 128), word.ptr);
}

WORLD_COMMAND(client_pause)
{
    int64_t timeout_ms, now_ms = clock_wall_ms();
    bool writes_only = c->argc == 4 && call_arg_is(c, 3, "write");
    if (c->argc > 4) {
        reply_bad_sub(c);
    } else if (c->argc == 4 && !writes_only && !call_arg_is(c, 3, "all")) {
        reply_error(c->reply, "ERR CLIENT PAUSE mode must be WRITE or ALL");
    } else if (!call_arg_i64_error(c, 2, &timeout_ms,
                                   "ERR timeout is not an integer or out of range")) {
        return;
    } else if (timeout_ms < 0) {
        reply_error(c->reply, "ERR timeout is negative");
    } else if (timeout_ms > INT64_MAX - now_ms) {
        reply_error(c->reply, "ERR timeout is out of range");
    } else {
        pause_start(PAUSE_COMMAND, !writes_only, now_ms + timeout_ms);
        reply_ok(c->reply);
    }
}

WORLD_COMMAND(client_unpause)
{
    pause_end(PAUSE_COMMAND);
    reply_ok(c->reply);
}

WORLD_COMMAND(client_unblock)
{
    int64_t id;
    bool with_error = c->argc == 4 && call_arg_is(c, 3, "error");
    if (c->argc > 4) {
        reply_bad_sub(c);
    } else if (c->argc == 4 && !with_error && !call_arg_is(c, 3, "timeout")) {
        reply_error(c->reply, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    } else if (call_arg_i64(c, 2, &id)) {
        struct client *client = client_find((uint64_t)id);
        reply_i64(c->reply, client && blocked_unblock(client, with_error ? PARKED_UNBLOCKED
                                                                         : PARKED_TIMED_OUT));
    }
}

PLAIN_COMMAND(client_help)
{
    static const char *const lines[] = {
        "CACHING (YES|NO)",
        "    Has the keys of the next command tracked, or not, in OPTIN and OPTOUT modes.",
        "GETNAME",
        "    Tells the name of this connection.",
        "GETREDIR",
        "    Tells the id of the connection that invalidations are redirected to.",
        "ID",
        "    Tells the id of this connection.",
        "INFO",
        "    Describes this connection in one line, as LIST does.",
        "KILL <ip:port>",
        "    Closes the connection that comes from <ip:port>.",
        "KILL <option> <value> [<option> <value> [...]]",
        "    Closes the connections that all options fit:",
        "    * ADDR (<ip:port>|<unixsocket>:0)",
        "      where they come from.",
        "    * ID <client-id>",
        "      the one with this id.",
        "    * LADDR (<ip:port>|<unixsocket>:0)",
        "      the address of the server that they came to.",
        "    * MAXAGE <seconds>",
        "      those open for at least this long.",
        "    * SKIPME (YES|NO)",
        "      whether to spare this connection (default: yes).",
        "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
        "      of what kind they are.",
        "    * USER <username>",
        "      as whom they have authenticated.",
        "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB)|ID <client-id> [<client-id> [...]]]",
        "    Describes all connections, those of a kind, or those with these ids.",
        "NO-EVICT (ON|OFF)",
        "    Spares this connection, or no longer, when clients are closed to save memory.",
        "NO-TOUCH (ON|OFF)",
        "    Lets this connection's commands leave LRU and LFU clocks of keys alone, or not.",
        "PAUSE <timeout> [WRITE|ALL]",
        "    Makes all commands, or only those that write, wait for <timeout> milliseconds.",
        "REPLY (ON|OFF|SKIP)",
        "    Sends replies to this connection, sends none, or skips the next one.",
        "SETINFO (LIB-NAME|LIB-VER) <value>",
        "    Notes which client library this connection uses, or its version.",
        "SETNAME <name>",
        "    Gives this connection a name; an empty one takes it away.",
        "TRACKING (ON|OFF) [REDIRECT <client-id>] [BCAST] [PREFIX <prefix> [PREFIX <prefix> ...]]",
        "         [OPTIN] [OPTOUT] [NOLOOP]",
        "    Tells this connection of changes to the keys that it has read, or that begin with",
        "    a prefix, for it to cache them.",
        "TRACKINGINFO",
        "    Describes how this connection tracks keys.",
        "UNBLOCK <client-id> [TIMEOUT|ERROR]",
        "    Ends the waiting of a blocked client.",
        "UNPAUSE",
        "    Ends a pause.",
        NULL,
    };
    call_reply_help(c, lines);
}

/* ---- QUIT, RESET, MONITOR ---- */

PLAIN_COMMAND(quit_command)
{
    client_of(c->session)->flags |= CLIENT_CLOSE_AFTER_REPLY;
    reply_ok(c->reply);
}

PLAIN_COMMAND(reset_command)
{
    struct client *client = client_of(c->session);
    if (c->held == ACCESS_SHARED && auth_wants_exclusive(c->session)) {
        call_need_exclusive(c);
        return;
    }
    monitor_remove(client);
    subscriptions_end(client, c->reply);
    tracking_disable(client);
    set_flag(client,
             CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP | CLIENT_REPLY_SKIP_NEXT | CLIENT_NO_EVICT,
             false);
    transaction_unwatch(c);
    session_reset(c->session);
    reply_set_proto(c->reply, c->session->proto);
    reply_status(c->reply, "RESET");
}

/* Who monitors already is told nothing, as Redis does it. */
PLAIN_COMMAND(monitor_command)
{
    struct client *client = client_of(c->session);
    if (c->nested) {
        reply_error(c->reply, "ERR MONITOR isn't allowed for DENY BLOCKING client");
    } else if (!(client->flags & CLIENT_MONITOR)) {
        monitor_add(client);
        reply_ok(c->reply);
    }
}

/* ---- tables ---- */

#define OWN_FLAGS (CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_SENTINEL)
#define ADMIN_FLAGS (OWN_FLAGS | CMD_ADMIN)
#define TO_ALL_NODES "request_policy:all_nodes,response_policy:all_succeeded"

/* What KILL selects by, once; it repeats. */
#define KILL_FILTER                                                                                \
    "[ID client-id]|[TYPE normal|master|primary|slave|replica|pubsub]|[USER username]|"            \
    "[ADDR addr]|[LADDR laddr]|[SKIPME YES|NO]|[MAXAGE maxage]"

static const struct command_row client_subcommands[] = {
    {.name = "caching",
     .run = client_caching_command,
     .arity = 3,
     .flags = OWN_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "6.0.0",
     .summary = "Says whether the keys of the next command are tracked.",
     .complexity = "O(1)",
     .args = "<YES|NO>"},
    {.name = "getname",
     .run = client_getname,
     .arity = 2,
     .flags = OWN_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "2.6.9",
     .summary = "Tells the name of the connection.",
     .complexity = "O(1)"},
    {.name = "getredir",
     .run = client_getredir_command,
     .arity = 2,
     .flags = OWN_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "6.0.0",
     .summary = "Tells the connection that invalidations are redirected to.",
     .complexity = "O(1)"},
    {.name = "help",
     .run = client_help,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE | CMD_SENTINEL,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "5.0.0",
     .summary = "Lists the subcommands.",
     .complexity = "O(1)"},
    {.name = "id",
     .run = client_id,
     .arity = 2,
     .flags = OWN_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "5.0.0",
     .summary = "Tells the id of the connection, which no other one ever has.",
     .complexity = "O(1)"},
    {.name = "info",
     .run = client_info_command,
     .arity = 2,
     .flags = OWN_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .tips = "nondeterministic_output",
     .group = "connection",
     .since = "6.2.0",
     .summary = "Describes the connection in one line.",
     .complexity = "O(1)"},
    {.name = "kill",
     .run = client_kill_command,
     .arity = -3,
     .flags = ADMIN_FLAGS | CMD_WORLD,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "2.4.0",
     .summary = "Closes connections, chosen by address, id, kind, user or age.",
     .complexity = "O(N) where N is the number of connections",
     .args = "<old-format|<" KILL_FILTER "> [<" KILL_FILTER "> ...]>",
     .history = "2.8.12:Takes filters, and replies how many it has closed.|3.2.0:Knows the kind "
                "master.|5.0.0:Knows replica beside slave.|6.2.0:Filters by LADDR.|7.4.0:Filters "
                "by MAXAGE."},
    {.name = "list",
     .run = client_list_command,
     .arity = -2,
     .flags = ADMIN_FLAGS | CMD_WORLD,
     .categories = CATEGORY_CONNECTION,
     .tips = "nondeterministic_output",
     .group = "connection",
     .since = "2.4.0",
     .summary = "Describes connections, a line each.",
     .complexity = "O(N) where N is the number of connections",
     .args = "[TYPE normal|master|replica|pubsub] [ID client-id [client-id ...]]",
     .history = "2.8.12:Shows ids.|5.0.0:Filters by TYPE.|6.0.0:Shows users.|6.2.0:Filters by ID, "
                "shows laddr, redir, argv-mem and tot-mem.|7.0.0:Shows resp, multi-mem, rbs and "
                "rbp.|7.2.0:Shows lib-name and lib-ver."},
    {.name = "no-evict",
     .run = client_no_evict,
     .arity = 3,
     .flags = ADMIN_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "7.0.0",
     .summary = "Spares the connection, or not, when clients are closed to save memory.",
     .complexity = "O(1)",
     .args = "<ON|OFF>"},
    {.name = "no-touch",
     .run = client_no_touch,
     .arity = 3,
     .flags = CMD_NOSCRIPT | CMD_LOADING | CMD_STALE,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "7.2.0",
     .summary = "Lets the connection's commands leave the clocks of keys alone, or not.",
     .complexity = "O(1)",
     .args = "<ON|OFF>"},
    {.name = "pause",
     .run = client_pause,
     .arity = -3,
     .flags = ADMIN_FLAGS | CMD_WORLD,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "3.0.0",
     .summary = "Makes all commands, or those that write, wait for a time.",
     .complexity = "O(1)",
     .args = "timeout [WRITE|ALL]",
     .history = "6.2.0:Takes WRITE and ALL."},
    {.name = "reply",
     .run = client_reply,
     .arity = 3,
     .flags = OWN_FLAGS | CMD_BARRIER,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "3.2.0",
     .summary = "Says whether the connection gets replies.",
     .complexity = "O(1)",
     .args = "<ON|OFF|SKIP>",
     .is_barrier = client_reply_is_barrier},
    {.name = "setinfo",
     .run = client_setinfo,
     .arity = 4,
     .flags = OWN_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .tips = TO_ALL_NODES,
     .group = "connection",
     .since = "7.2.0",
     .summary = "Notes the client library of the connection, or its version.",
     .complexity = "O(1)",
     .args = "<lib-name libname|lib-ver libver>"},
    {.name = "setname",
     .run = client_setname,
     .arity = 3,
     .flags = OWN_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .tips = TO_ALL_NODES,
     .group = "connection",
     .since = "2.6.9",
     .summary = "Gives the connection a name.",
     .complexity = "O(1)",
     .args = "connection-name"},
    {.name = "tracking",
     .run = client_tracking_command,
     .arity = -3,
     .flags = OWN_FLAGS | CMD_WORLD,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "6.0.0",
     .summary = "Has the connection told of changes to keys that it may cache.",
     .complexity = "O(1), and O(N) with N prefixes",
     .args = "<ON|OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] "
             "[OPTOUT] [NOLOOP]"},
    {.name = "trackinginfo",
     .run = client_trackinginfo_command,
     .arity = 2,
     .flags = OWN_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "6.2.0",
     .summary = "Describes how the connection tracks keys.",
     .complexity = "O(1)"},
    {.name = "unblock",
     .run = client_unblock,
     .arity = -3,
     .flags = ADMIN_FLAGS | CMD_WORLD,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "5.0.0",
     .summary = "Ends the waiting of a blocked client.",
     .complexity = "O(log N) where N is the number of connections",
     .args = "client-id [TIMEOUT|ERROR]"},
    {.name = "unpause",
     .run = client_unpause,
     .arity = 2,
     .flags = ADMIN_FLAGS | CMD_WORLD,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "6.2.0",
     .summary = "Ends a pause.",
     .complexity = "O(N) where N is the number of clients that wait"},
    {.name = NULL},
};

const struct command_row client_commands[] = {
    {.name = "client",
     .arity = -2,
     .flags = CMD_SENTINEL,
     .group = "connection",
     .since = "2.4.0",
     .summary = "Groups the commands about connections.",
     .complexity = "Depends on the subcommand.",
     .subcommands = client_subcommands},
    {.name = "monitor",
     .run = monitor_command,
     .arity = 1,
     .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_BARRIER,
     .group = "server",
     .since = "1.0.0",
     .summary = "Shows every command that the server runs.",
     .complexity = "O(1), and O(N) a command later on, where N is the number of monitors"},
    {.name = "quit",
     .run = quit_command,
     .arity = -1,
     .flags = CMD_ALLOW_BUSY | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_FAST | CMD_NO_AUTH |
              CMD_BARRIER | CMD_TRANSACTION | CMD_SUBSCRIBED,
     .transaction = TRANSACTION_BESIDE,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Closes the connection.",
     .complexity = "O(1)",
     .deprecated_since = "7.2.0",
     .replaced_by = "just closing the connection"},
    {.name = "reset",
     .run = reset_command,
     .arity = 1,
     .flags = CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_FAST | CMD_NO_AUTH | CMD_ALLOW_BUSY |
              CMD_BARRIER | CMD_TRANSACTION | CMD_SUBSCRIBED,
     .transaction = TRANSACTION_DROPS,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "6.2.0",
     .summary = "Puts the connection back into the state of a new one.",
     .complexity = "O(1)"},
    {.name = NULL},
};
