/* COMMAND: the server's commands as data, from the tables that it runs them with. */
#include "commands/commands.h"
#include "commands/introspect_docs.h"
#include "base/glob.h"
#include "base/mem.h"
#include "engine/call.h"

#include <assert.h>
#include <stdio.h>

/* ---- COMMAND INFO ---- */

/* A set of the names whose bits are set, each with a prefix. */
static void introspect_names(struct reply *r, uint32_t bits, const char *const *names,
                             const char *prefix)
{
    uint32_t set = reply_deferred(r);
    uint64_t count = 0;
    for (int bit = 0; names[bit]; bit++) {
        if ((bits & ((uint32_t)1 << bit)) && names[bit][0]) {
            char text[64];
            snprintf(text, sizeof(text), "%s%s", prefix, names[bit]);
            reply_status(r, text);
            count++;
        }
    }
    reply_set_deferred_set(r, set, count);
}

/* Flags that are facts of the tables but nothing that a server shows. */
static uint32_t introspect_shown_flags(const struct command *cmd)
{
    return cmd->flags & ~(uint32_t)CMD_SENTINEL;
}

static void introspect_tips(struct reply *r, const char *tips)
{
    uint32_t set = reply_deferred(r);
    uint64_t count = 0;
    for (const char *at = tips ? tips : ""; *at; count++) {
        size_t len = strcspn(at, ",");
        reply_bulk(r, slice_of(at, len));
        at += len + (at[len] == ',');
    }
    reply_set_deferred_set(r, set, count);
}

static const char *const key_flag_names[] = {
    "RO",     "RW",     "OW",      "RM",         "access",         "update",
    "insert", "delete", "not_key", "incomplete", "variable_flags", NULL};

static void introspect_number(struct reply *r, const char *field, int64_t value)
{
    reply_bulk_cstr(r, field);
    reply_i64(r, value);
}

/* "type" and "spec" of one half of a key spec; the spec's map follows with `fields` pairs. */
static void introspect_half(struct reply *r, const char *half, const char *type, uint64_t fields)
{
    reply_bulk_cstr(r, half);
    reply_map(r, 2);
    reply_bulk_cstr(r, "type");
    reply_bulk_cstr(r, type);
    reply_bulk_cstr(r, "spec");
    reply_map(r, fields);
}

static void introspect_key_spec(struct reply *r, const struct key_spec *spec)
{
    reply_map(r, 3);
    reply_bulk_cstr(r, "flags");
    introspect_names(r, spec->flags, key_flag_names, "");
    if (spec->begin == KEY_BEGIN_INDEX) {
        introspect_half(r, "begin_search", "index", 1);
        introspect_number(r, "index", spec->index);
    } else if (spec->begin == KEY_BEGIN_KEYWORD) {
        introspect_half(r, "begin_search", "keyword", 2);
        reply_bulk_cstr(r, "keyword");
        reply_bulk_cstr(r, spec->keyword);
        introspect_number(r, "startfrom", spec->index);
    } else {
        introspect_half(r, "begin_search", "unknown", 0);
    }
    if (spec->find == KEY_FIND_RANGE) {
        introspect_half(r, "find_keys", "range", 3);
        introspect_number(r, "lastkey", spec->last);
        introspect_number(r, "keystep", spec->step);
        introspect_number(r, "limit", spec->limit);
    } else if (spec->find == KEY_FIND_KEYNUM) {
        introspect_half(r, "find_keys", "keynum", 3);
        introspect_number(r, "keynumidx", spec->keynum_index);
        introspect_number(r, "firstkey", spec->first_key);
        introspect_number(r, "keystep", spec->keynum_step);
    } else {
        introspect_half(r, "find_keys", "unknown", 0);
    }
}

static void introspect_reply_command(struct reply *r, const struct command *cmd)
{
    reply_array(r, 10);
    reply_bulk_cstr(r, cmd->full_name);
    reply_i64(r, cmd->arity);
    introspect_names(r, introspect_shown_flags(cmd), command_flag_names, "");
    reply_i64(r, cmd->first_key);
    reply_i64(r, cmd->last_key);
    reply_i64(r, cmd->key_step);
    introspect_names(r, cmd->categories, command_category_names, "@");
    introspect_tips(r, cmd->row->tips);
    reply_set(r, cmd->spec_count);
    for (unsigned i = 0; i < cmd->spec_count; i++) {
        introspect_key_spec(r, &cmd->specs[i]);
    }
    if (cmd->subcommand_count == 0) {
        reply_set(r, 0);
        return;
    }
    reply_array(r, cmd->subcommand_count);
    for (unsigned i = 0; i < cmd->subcommand_count; i++) {
        introspect_reply_command(r, &cmd->subcommands[i]);
    }
}

static void introspect_reply_all(struct reply *r)
{
    reply_array(r, command_count());
    for (unsigned i = 0; i < command_count(); i++) {
        introspect_reply_command(r, command_at(i));
    }
}

PLAIN_COMMAND(introspect_command)
{
    introspect_reply_all(c->reply);
}

PLAIN_COMMAND(introspect_info)
{
    if (c->argc == 2) {
        introspect_reply_all(c->reply);
        return;
    }
    reply_array(c->reply, (uint64_t)c->argc - 2);
    for (int i = 2; i < c->argc; i++) {
        const struct command *cmd = command_find_full(c->argv[i]);
        if (cmd) {
            introspect_reply_command(c->reply, cmd);
        } else {
            reply_null(c->reply);
        }
    }
}

PLAIN_COMMAND(introspect_docs)
{
    if (c->argc == 2) {
        reply_map(c->reply, command_count());
        for (unsigned i = 0; i < command_count(); i++) {
            docs_reply_command(c->reply, command_at(i));
        }
        return;
    }
    uint32_t map = reply_deferred(c->reply);
    uint64_t found = 0;
    for (int i = 2; i < c->argc; i++) {
        const struct command *cmd = command_find_full(c->argv[i]);
        if (cmd) {
            docs_reply_command(c->reply, cmd);
            found++;
        }
    }
    reply_set_deferred_map(c->reply, map, found);
}

PLAIN_COMMAND(introspect_count)
{
    reply_i64(c->reply, command_count());
}

/* ---- COMMAND LIST ---- */

enum introspect_filter { FILTER_NONE, FILTER_MODULE, FILTER_CATEGORY, FILTER_PATTERN };

struct introspect_list {
    struct reply *reply;
    enum introspect_filter filter;
    struct slice pattern;
    uint32_t category;
    uint64_t count;
};

static void introspect_list_command(struct introspect_list *list, const struct command *cmd)
{
    bool wanted = list->filter == FILTER_NONE ||
                  (list->filter == FILTER_MODULE && cmd->extra &&
                   slice_equal_nocase(list->pattern, cmd->extra->module)) ||
                  (list->filter == FILTER_CATEGORY && (cmd->categories & list->category)) ||
                  (list->filter == FILTER_PATTERN &&
                   glob_match(list->pattern, slice_cstr(cmd->full_name), true));
    if (wanted) {
        reply_bulk_cstr(list->reply, cmd->full_name);
        list->count++;
    }
    for (unsigned i = 0; i < cmd->subcommand_count; i++) {
        introspect_list_command(list, &cmd->subcommands[i]);
    }
}

PLAIN_COMMAND(introspect_list)
{
    struct introspect_list list = {.reply = c->reply, .filter = FILTER_NONE};
    if (c->argc == 5 && call_arg_is(c, 2, "filterby") && call_arg_is(c, 3, "module")) {
        list.filter = FILTER_MODULE;
        list.pattern = c->argv[4];
    } else if (c->argc == 5 && call_arg_is(c, 2, "filterby") && call_arg_is(c, 3, "aclcat")) {
        list.filter = FILTER_CATEGORY;
        list.category = command_category_of(c->argv[4]);
    } else if (c->argc == 5 && call_arg_is(c, 2, "filterby") && call_arg_is(c, 3, "pattern")) {
        list.filter = FILTER_PATTERN;
        list.pattern = c->argv[4];
    } else if (c->argc != 2) {
        reply_syntax_error(c->reply);
        return;
    }
    uint32_t array = reply_deferred(c->reply);
    for (unsigned i = 0; i < command_count(); i++) {
        introspect_list_command(&list, command_at(i));
    }
    reply_set_deferred_array(c->reply, array, list.count);
}

/* ---- COMMAND GETKEYS ---- */

/* Keys found at once; requests with more are asked for again with room for all. */
#define INTROSPECT_FEW_KEYS 64

/* The command that the words from argv[2] on would run, NULL (and the error replied) when they
 * cannot run. */
static const struct command *introspect_asked_command(struct call *c)
{
    const struct command *cmd = command_find(c->argv[2]);
    if (cmd && cmd->subcommand_count) {
        cmd = c->argc > 3 ? command_find_sub(cmd, c->argv[3]) : NULL;
    }
    if (!cmd) {
        reply_error(c->reply, "ERR Invalid command specified");
    } else if (cmd->spec_count == 0 && !cmd->find_keys) {
        reply_error(c->reply, "ERR The command has no key arguments");
    } else if (!command_arity_fits(cmd, c->argc - 2)) {
        reply_error(c->reply, "ERR Invalid number of arguments specified for command");
    } else {
        return cmd;
    }
    return NULL;
}

static void introspect_reply_keys(struct call *c, bool with_flags)
{
    const struct command *cmd = introspect_asked_command(c);
    if (!cmd) {
        return;
    }
    if (c->held == ACCESS_SHARED && command_asks_module(cmd)) {
        call_need_exclusive(c);
        return;
    }
    struct key_place few[INTROSPECT_FEW_KEYS], *places = few;
    const struct slice *argv = c->argv + 2;
    int argc = c->argc - 2;
    int count = command_find_keys(cmd, argv, argc, places, INTROSPECT_FEW_KEYS);
    if (count > INTROSPECT_FEW_KEYS) {
        places = mem_alloc((size_t)count * sizeof(*places));
        int again = command_find_keys(cmd, argv, argc, places, count);
        assert(again == count);
        (void)again;
    }
    if (count <= 0 && !(cmd->flags & CMD_NO_MANDATORY_KEYS)) {
        reply_error(c->reply, "ERR Invalid arguments specified for command");
        return;
    }
    reply_array(c->reply, count > 0 ? (uint64_t)count : 0);
    for (int i = 0; i < count; i++) {
        if (with_flags) {
            reply_array(c->reply, 2);
        }
        reply_bulk(c->reply, key_place_name(&places[i], argv));
        if (with_flags) {
            introspect_names(c->reply, places[i].flags, key_flag_names, "");
        }
    }
    if (places != few) {
        mem_free(places);
    }
}

PLAIN_COMMAND(introspect_getkeys)
{
    introspect_reply_keys(c, false);
}

PLAIN_COMMAND(introspect_getkeysandflags)
{
    introspect_reply_keys(c, true);
}

PLAIN_COMMAND(introspect_help)
{
    static const char *const lines[] = {
        "(no subcommand)",
        "    Reply everything about every command.",
        "COUNT",
        "    Reply the number of commands.",
        "DOCS [<command-name> ...]",
        "    Reply the documentation of some commands, or of all.",
        "GETKEYS <full-command>",
        "    Reply the keys of a command and its arguments.",
        "GETKEYSANDFLAGS <full-command>",
        "    Reply the keys of a command and its arguments, and how it uses them.",
        "INFO [<command-name> ...]",
        "    Reply arity, flags and keys of some commands, or of all.",
        "LIST [FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]",
        "    Reply the names of all commands, or of some.",
        NULL,
    };
    call_reply_help(c, lines);
}

#define INTROSPECT_FLAGS (CMD_LOADING | CMD_STALE | CMD_SENTINEL)
#define INTROSPECT_TIPS "nondeterministic_output_order"

static const struct command_row introspect_subcommands[] = {
    {.name = "count",
     .run = introspect_count,
     .arity = 2,
     .flags = INTROSPECT_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .group = "server",
     .since = "2.8.13",
     .summary = "Counts the commands.",
     .complexity = "O(1)"},
    {.name = "docs",
     .run = introspect_docs,
     .arity = -2,
     .flags = INTROSPECT_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .tips = INTROSPECT_TIPS,
     .group = "server",
     .since = "7.0.0",
     .summary = "Shows the documentation of commands.",
     .complexity = "O(N) where N is the number of commands shown",
     .args = "[command-name [command-name ...]]"},
    {.name = "getkeys",
     .run = introspect_getkeys,
     .arity = -3,
     .flags = INTROSPECT_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .group = "server",
     .since = "2.8.13",
     .summary = "Finds the keys in a command's arguments.",
     .complexity = "O(N) where N is the number of arguments",
     .args = "command [arg [arg ...]]"},
    {.name = "getkeysandflags",
     .run = introspect_getkeysandflags,
     .arity = -3,
     .flags = INTROSPECT_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .group = "server",
     .since = "7.0.0",
     .summary = "Finds the keys in a command's arguments and tells how they are used.",
     .complexity = "O(N) where N is the number of arguments",
     .args = "command [arg [arg ...]]"},
    {.name = "help",
     .run = introspect_help,
     .arity = 2,
     .flags = INTROSPECT_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .group = "server",
     .since = "5.0.0",
     .summary = "Lists the subcommands.",
     .complexity = "O(1)"},
    {.name = "info",
     .run = introspect_info,
     .arity = -2,
     .flags = INTROSPECT_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .tips = INTROSPECT_TIPS,
     .group = "server",
     .since = "2.8.13",
     .summary = "Shows arity, flags and keys of commands.",
     .complexity = "O(N) where N is the number of commands shown",
     .args = "[command-name [command-name ...]]",
     .history = "7.0.0:Without names shows all commands."},
    {.name = "list",
     .run = introspect_list,
     .arity = -2,
     .flags = INTROSPECT_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .tips = INTROSPECT_TIPS,
     .group = "server",
     .since = "7.0.0",
     .summary = "Lists the names of commands.",
     .complexity = "O(N) where N is the number of commands",
     .args = "[FILTERBY MODULE module-name|ACLCAT category|PATTERN pattern]"},
    {.name = NULL},
};

const struct command_row introspection_commands[] = {
    {.name = "command",
     .run = introspect_command,
     .arity = -1,
     .flags = INTROSPECT_FLAGS,
     .categories = CATEGORY_CONNECTION,
     .tips = INTROSPECT_TIPS,
     .group = "server",
     .since = "2.8.13",
     .summary = "Shows everything about all commands.",
     .complexity = "O(N) where N is the number of commands",
     .subcommands = introspect_subcommands},
    {.name = NULL},
};
