/* ACL: users and what they may do, over engine/acl.h. */
#include "commands/commands.h"
#include "base/rand.h"
#include "engine/acl.h"
#include "engine/acl_log.h"
#include "engine/call.h"

/* ACL GENPASS: bits of a password, when nothing is said and at most. */
#define GENPASS_BITS 256
#define GENPASS_MAX_BITS 4096

/* A name as far as an error shows it. */
static int acl_shown(struct slice name)
{
    return name.len < 128 ? (int)name.len : 128;
}

/* More arguments than the subcommand takes. */
static void acl_reply_too_many(struct call *c)
{
    reply_errorf(c->reply,
                 "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try ACL HELP.",
                 acl_shown(c->argv[1]), c->argv[1].ptr);
}

static void acl_reply_text(struct reply *r, struct buf *text)
{
    reply_bulk(r, buf_slice(text));
    buf_deinit(text);
}

/* ---- changing users ---- */

WORLD_COMMAND(acl_command_setuser)
{
    struct buf error = {0};
    if (acl_set_user(c->argv[2], c->argv + 3, c->argc - 3, c->session, &error)) {
        reply_ok(c->reply);
    } else {
        reply_error_slice(c->reply, buf_slice(&error));
    }
    buf_deinit(&error);
}

WORLD_COMMAND(acl_command_deluser)
{
    int64_t deleted = 0;
    for (int i = 2; i < c->argc; i++) {
        if (slice_equal(c->argv[i], SLICE("default"))) {
            reply_error(c->reply, "ERR The 'default' user cannot be removed");
            return;
        }
    }
    for (int i = 2; i < c->argc; i++) {
        deleted += acl_delete_user(c->argv[i], c->session);
    }
    reply_i64(c->reply, deleted);
}

static bool acl_has_file(struct call *c)
{
    if (acl_file_path()[0]) {
        return true;
    }
    reply_error(c->reply, "ERR This Redis instance is not configured to use an ACL file. You may "
                          "want to specify users via the ACL SETUSER command and then issue a "
                          "CONFIG REWRITE (assuming you have a Redis configuration file set) in "
                          "order to store users in the Redis configuration.");
    return false;
}

WORLD_COMMAND(acl_command_load)
{
    struct buf error = {0};
    if (!acl_has_file(c)) {
        return;
    }
    buf_append_cstr(&error, "ERR ");
    if (acl_load_file(c->session, &error)) {
        reply_ok(c->reply);
    } else {
        reply_error_slice(c->reply, buf_slice(&error));
    }
    buf_deinit(&error);
}

/* In the world, so that two do not write the same temporary file. */
WORLD_COMMAND(acl_command_save)
{
    if (!acl_has_file(c)) {
        return;
    }
    if (acl_save_file()) {
        reply_ok(c->reply);
    } else {
        reply_error(c->reply, "ERR There was an error trying to save the ACLs. Please check the "
                              "server logs for more information");
    }
}

/* ---- looking at users ---- */

/* Whom a module calls for is nobody, unless it calls for its client. */
PLAIN_COMMAND(acl_command_whoami)
{
    if (acl_is_internal(c->session)) {
        reply_null(c->reply);
    } else {
        reply_bulk_cstr(c->reply, c->session->user);
    }
}

PLAIN_COMMAND(acl_command_users)
{
    reply_array(c->reply, (uint64_t)acl_user_count());
    for (int i = 0; i < acl_user_count(); i++) {
        reply_bulk_cstr(c->reply, acl_user_at(i)->name);
    }
}

PLAIN_COMMAND(acl_command_list)
{
    reply_array(c->reply, (uint64_t)acl_user_count());
    for (int i = 0; i < acl_user_count(); i++) {
        struct buf text = {0};
        buf_printf(&text, "user %s ", acl_user_at(i)->name);
        acl_append_user(&text, acl_user_at(i));
        acl_reply_text(c->reply, &text);
    }
}

static void acl_reply_flags(struct reply *r, const struct acl_user *user)
{
    reply_set(r, 2 + (uint64_t)user->nopass);
    reply_bulk_cstr(r, user->enabled ? "on" : "off");
    if (user->nopass) {
        reply_bulk_cstr(r, "nopass");
    }
    reply_bulk_cstr(r, user->sanitize == ACL_SANITIZE_SKIP ? "skip-sanitize-payload"
                                                           : "sanitize-payload");
}

/* Three fields of a map. */
static void acl_reply_selector(struct reply *r, const struct acl_user *user, int selector)
{
    static const struct {
        const char *name;
        void (*append)(struct buf *out, const struct acl_user *user, int selector);
    } fields[] = {
        {"commands", acl_append_commands},
        {"keys", acl_append_keys},
        {"channels", acl_append_channels},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        struct buf text = {0};
        fields[i].append(&text, user, selector);
        reply_bulk_cstr(r, fields[i].name);
        acl_reply_text(r, &text);
    }
}

PLAIN_COMMAND(acl_command_getuser)
{
    const struct acl_user *user = acl_user_find(c->argv[2]);
    struct reply *r = c->reply;
    if (!user) {
        reply_null(r);
        return;
    }
    reply_map(r, 6);
    reply_bulk_cstr(r, "flags");
    acl_reply_flags(r, user);
    reply_bulk_cstr(r, "passwords");
    reply_array(r, (uint64_t)user->password_count);
    for (int i = 0; i < user->password_count; i++) {
        reply_bulk(r, slice_of(user->passwords[i], sizeof(*user->passwords)));
    }
    acl_reply_selector(r, user, 0);
    reply_bulk_cstr(r, "selectors");
    reply_array(r, (uint64_t)user->selector_count - 1);
    for (int i = 1; i < user->selector_count; i++) {
        reply_map(r, 3);
        acl_reply_selector(r, user, i);
    }
}

PLAIN_COMMAND(acl_command_dryrun)
{
    const struct acl_user *user = acl_user_find(c->argv[2]);
    int argc = c->argc - 3, at;
    const struct slice *argv = c->argv + 3;
    if (!user) {
        reply_errorf(c->reply, "ERR User '%.*s' not found", acl_shown(c->argv[2]), c->argv[2].ptr);
        return;
    }
    const struct command *cmd = command_find(argv[0]);
    if (cmd && cmd->subcommands && argc > 1) {
        cmd = command_find_sub(cmd, argv[1]);
    }
    if (!cmd) {
        reply_errorf(c->reply, "ERR Command '%.*s' not found", acl_shown(argv[0]), argv[0].ptr);
        return;
    }
    if (!command_arity_fits(cmd, argc)) {
        reply_errorf(c->reply, "ERR wrong number of arguments for '%s' command", cmd->full_name);
        return;
    }
    if (c->held == ACCESS_SHARED && command_asks_module(cmd)) {
        call_need_exclusive(c);
        return;
    }
    enum acl_verdict verdict = acl_check(user, cmd, argv, argc, &at);
    if (verdict == ACL_ALLOWED) {
        reply_ok(c->reply);
    } else {
        struct buf text = {0};
        acl_append_denial(&text, verdict, user, cmd, argv[at], true);
        acl_reply_text(c->reply, &text);
    }
}

/* ---- the rest ---- */

static void acl_reply_category(struct call *c, uint32_t category)
{
    uint64_t count = 0;
    uint32_t array = reply_deferred(c->reply);
    for (unsigned id = 0; id < command_id_count(); id++) {
        if (command_by_id(id)->categories & category) {
            reply_bulk_cstr(c->reply, command_by_id(id)->full_name);
            count++;
        }
    }
    reply_set_deferred_array(c->reply, array, count);
}

PLAIN_COMMAND(acl_command_cat)
{
    if (c->argc > 3) {
        acl_reply_too_many(c);
        return;
    }
    if (c->argc == 3) {
        uint32_t category = command_category_of(c->argv[2]);
        if (category == 0) {
            reply_errorf(c->reply, "ERR Unknown category '%.*s'", acl_shown(c->argv[2]),
                         c->argv[2].ptr);
        } else {
            acl_reply_category(c, category);
        }
        return;
    }
    uint64_t count = 0;
    while (command_category_names[count]) {
        count++;
    }
    reply_array(c->reply, count);
    for (uint64_t i = 0; i < count; i++) {
        reply_bulk_cstr(c->reply, command_category_names[i]);
    }
}

PLAIN_COMMAND(acl_command_genpass)
{
    int64_t bits = GENPASS_BITS;
    char password[GENPASS_MAX_BITS / 4];
    if (c->argc > 3) {
        acl_reply_too_many(c);
        return;
    }
    if (c->argc == 3 && !call_arg_i64(c, 2, &bits)) {
        return;
    }
    if (bits <= 0 || bits > GENPASS_MAX_BITS) {
        reply_error(c->reply, "ERR ACL GENPASS argument must be the number of bits for the output "
                              "password, a positive number up to 4096");
        return;
    }
    size_t len = (size_t)(bits + 3) / 4;
    rand_hex(password, len);
    reply_bulk(c->reply, slice_of(password, len));
}

PLAIN_COMMAND(acl_command_log)
{
    int64_t count = 10;
    if (c->argc > 3) {
        acl_reply_too_many(c);
    } else if (c->argc == 3 && call_arg_is(c, 2, "reset")) {
        acl_log_reset();
        reply_ok(c->reply);
    } else if (c->argc == 2 || call_arg_i64(c, 2, &count)) {
        acl_log_reply(c->reply, count);
    }
}

PLAIN_COMMAND(acl_command_help)
{
    static const char *const lines[] = {
        "CAT [<category>]",
        "    Lists all categories, or the commands of one.",
        "DELUSER <username> [<username> ...]",
        "    Deletes users and closes their connections.",
        "DRYRUN <username> <command> [<arg> ...]",
        "    Says whether the user may run the command, without running it.",
        "GENPASS [<bits>]",
        "    Makes a password from secret random bits (default: 256).",
        "GETUSER <username>",
        "    Shows a user's flags, passwords and rules.",
        "LIST",
        "    Shows all users as lines of a configuration file.",
        "LOAD",
        "    Reads the users from the ACL file.",
        "LOG [<count>|RESET]",
        "    Shows the latest denials, or forgets them.",
        "SAVE",
        "    Writes the users to the ACL file.",
        "SETUSER <username> <rule> [<rule> ...]",
        "    Makes a user, or changes one.",
        "USERS",
        "    Lists the names of all users.",
        "WHOAMI",
        "    Shows the name of the connection's user.",
        NULL,
    };
    call_reply_help(c, lines);
}

#define ACL_FLAGS (CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_SENTINEL)
#define ACL_ADMIN_FLAGS (ACL_FLAGS | CMD_ADMIN)
#define ACL_CHANGE_FLAGS (ACL_ADMIN_FLAGS | CMD_WORLD | CMD_BARRIER)
#define ACL_TIPS "request_policy:all_nodes,response_policy:all_succeeded"

static const struct command_row acl_subcommands[] = {
    {.name = "cat",
     .run = acl_command_cat,
     .arity = -2,
     .flags = ACL_FLAGS,
     .group = "server",
     .since = "6.0.0",
     .summary = "Lists the categories of commands, or the commands of a category.",
     .complexity = "O(N) where N is the number of commands",
     .args = "[category]"},
    {.name = "deluser",
     .run = acl_command_deluser,
     .arity = -3,
     .flags = ACL_CHANGE_FLAGS,
     .tips = ACL_TIPS,
     .group = "server",
     .since = "6.0.0",
     .summary = "Deletes users and closes their connections.",
     .complexity = "O(N) where N is the number of connections",
     .args = "username [username ...]"},
    {.name = "dryrun",
     .run = acl_command_dryrun,
     .arity = -4,
     .flags = ACL_ADMIN_FLAGS,
     .group = "server",
     .since = "7.0.0",
     .summary = "Says whether a user may run a command, without running it.",
     .complexity = "O(N) where N is the number of keys and patterns",
     .args = "username command [arg [arg ...]]"},
    {.name = "genpass",
     .run = acl_command_genpass,
     .arity = -2,
     .flags = ACL_FLAGS,
     .group = "server",
     .since = "6.0.0",
     .summary = "Makes a password that nobody can guess.",
     .complexity = "O(1)",
     .args = "[bits]"},
    {.name = "getuser",
     .run = acl_command_getuser,
     .arity = 3,
     .flags = ACL_ADMIN_FLAGS,
     .group = "server",
     .since = "6.0.0",
     .summary = "Shows what a user may do.",
     .complexity = "O(N) where N is the number of the user's rules",
     .args = "username",
     .history = "6.2.0:Shows channels.|7.0.0:Shows selectors, and patterns as they are written."},
    {.name = "help",
     .run = acl_command_help,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE | CMD_SENTINEL,
     .group = "server",
     .since = "6.0.0",
     .summary = "Lists the subcommands.",
     .complexity = "O(1)"},
    {.name = "list",
     .run = acl_command_list,
     .arity = 2,
     .flags = ACL_ADMIN_FLAGS,
     .group = "server",
     .since = "6.0.0",
     .summary = "Shows all users as lines of a configuration file.",
     .complexity = "O(N) where N is the number of users"},
    {.name = "load",
     .run = acl_command_load,
     .arity = 2,
     .flags = ACL_CHANGE_FLAGS,
     .group = "server",
     .since = "6.0.0",
     .summary = "Reads the users from the ACL file.",
     .complexity = "O(N) where N is the number of users and connections"},
    {.name = "log",
     .run = acl_command_log,
     .arity = -2,
     .flags = ACL_ADMIN_FLAGS,
     .group = "server",
     .since = "6.0.0",
     .summary = "Shows what was denied lately, or forgets it.",
     .complexity = "O(N) where N is the number of entries shown",
     .args = "[count|RESET]",
     .history = "7.2.0:Shows entry-id, timestamp-created and timestamp-last-updated."},
    {.name = "save",
     .run = acl_command_save,
     .arity = 2,
     .flags = ACL_ADMIN_FLAGS | CMD_WORLD,
     .tips = ACL_TIPS,
     .group = "server",
     .since = "6.0.0",
     .summary = "Writes the users to the ACL file.",
     .complexity = "O(N) where N is the number of users"},
    {.name = "setuser",
     .run = acl_command_setuser,
     .arity = -3,
     .flags = ACL_CHANGE_FLAGS,
     .tips = ACL_TIPS,
     .group = "server",
     .since = "6.0.0",
     .summary = "Makes a user, or changes what one may do.",
     .complexity = "O(N) where N is the number of rules",
     .args = "username [rule [rule ...]]",
     .history = "6.2.0:Takes patterns of channels.|7.0.0:Takes selectors and key permissions."},
    {.name = "users",
     .run = acl_command_users,
     .arity = 2,
     .flags = ACL_ADMIN_FLAGS,
     .group = "server",
     .since = "6.0.0",
     .summary = "Lists the names of all users.",
     .complexity = "O(N) where N is the number of users"},
    {.name = "whoami",
     .run = acl_command_whoami,
     .arity = 2,
     .flags = ACL_FLAGS,
     .group = "server",
     .since = "6.0.0",
     .summary = "Shows the name of the connection's user.",
     .complexity = "O(1)"},
    {.name = NULL},
};

const struct command_row acl_commands[] = {
    {.name = "acl",
     .arity = -2,
     .flags = CMD_SENTINEL,
     .group = "server",
     .since = "6.0.0",
     .summary = "Holds the commands about users and what they may do.",
     .complexity = "Depends on the subcommand.",
     .subcommands = acl_subcommands},
    {.name = NULL},
};
