/* COMMAND DOCS: rows as maps. Fields that a row does not have are left out. */
#include "commands/introspect_docs.h"
#include "commands/syntax.h"

static void docs_text(struct reply *r, const char *field, const char *text)
{
    reply_bulk_cstr(r, field);
    reply_bulk_cstr(r, text);
}

/* ---- History: "7.0.0:Text.|6.2.0:Text." ---- */

static void docs_history(struct reply *r, const char *history)
{
    reply_bulk_cstr(r, "history");
    uint32_t set = reply_deferred(r);
    uint64_t count = 0;
    const char *at = history;
    while (*at) {
        size_t len = strcspn(at, "|");
        const char *colon = memchr(at, ':', len);
        if (colon) {
            reply_array(r, 2);
            reply_bulk(r, slice_of(at, (size_t)(colon - at)));
            reply_bulk(r, slice_of(colon + 1, (size_t)(at + len - colon - 1)));
            count++;
        }
        at += len + (at[len] == '|');
    }
    reply_set_deferred_set(r, set, count);
}

/* ---- Arguments ---- */

static uint64_t docs_count_flags(unsigned flags)
{
    return (uint64_t)__builtin_popcount(flags);
}

static void docs_argument_flags(struct reply *r, unsigned flags)
{
    static const struct {
        unsigned flag;
        const char *name;
    } names[] = {{SYNTAX_OPTIONAL, "optional"},
                 {SYNTAX_MULTIPLE, "multiple"},
                 {SYNTAX_MULTIPLE_TOKEN, "multiple_token"}};
    reply_bulk_cstr(r, "flags");
    reply_set(r, docs_count_flags(flags));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (flags & names[i].flag) {
            reply_status(r, names[i].name);
        }
    }
}

/* One chain of siblings. The tree's depth is bounded by the notation's. */
static void docs_arguments(struct reply *r, const struct syntax_tree *tree, int first)
{
    uint32_t array = reply_deferred(r);
    uint64_t count = 0;
    for (int i = first; i >= 0; i = tree->nodes[i].next, count++) {
        const struct syntax_node *n = &tree->nodes[i];
        bool has_parts = n->child >= 0;
        reply_map(r, 3u + (n->key_spec >= 0) + (n->token.len > 0) + (n->flags != 0));
        docs_text(r, "name", n->name);
        docs_text(r, "type", n->type);
        if (!has_parts) {
            docs_text(r, "display_text", n->name);
        }
        if (n->key_spec >= 0) {
            reply_bulk_cstr(r, "key_spec_index");
            reply_i64(r, n->key_spec);
        }
        if (n->token.len) {
            reply_bulk_cstr(r, "token");
            reply_bulk(r, n->token);
        }
        if (n->flags) {
            docs_argument_flags(r, n->flags);
        }
        if (has_parts) {
            reply_bulk_cstr(r, "arguments");
            docs_arguments(r, tree, n->child);
        }
    }
    reply_set_deferred_array(r, array, count);
}

/* ---- A command ---- */

/* What the server's own commands all have, and those of modules may. */
static void docs_optional(struct reply *r, const char *field, const char *text)
{
    if (text) {
        docs_text(r, field, text);
    }
}

static void docs_deprecation(struct reply *r, const struct command_row *row)
{
    reply_bulk_cstr(r, "doc_flags");
    reply_set(r, 1);
    reply_status(r, "deprecated");
    docs_text(r, "deprecated_since", row->deprecated_since);
    if (row->replaced_by) {
        docs_text(r, "replaced_by", row->replaced_by);
    }
}

void docs_reply_command(struct reply *r, const struct command *cmd)
{
    const struct command_row *row = cmd->row;
    struct syntax_tree tree;
    const struct command_extra *extra = cmd->extra;
    bool has_own_arguments = extra && extra->reply_arguments;
    bool has_arguments = row->args && syntax_parse(cmd, &tree);
    uint64_t fields = 1u + (row->summary != NULL) + (row->since != NULL) +
                      (row->complexity != NULL) + (row->history != NULL) + (extra != NULL) +
                      has_arguments + has_own_arguments + (cmd->subcommand_count > 0);
    fields += row->deprecated_since ? 2u + (row->replaced_by != NULL) : 0;
    reply_bulk_cstr(r, cmd->full_name);
    reply_map(r, fields);
    docs_optional(r, "summary", row->summary);
    docs_optional(r, "since", row->since);
    docs_text(r, "group", row->group);
    docs_optional(r, "complexity", row->complexity);
    docs_optional(r, "module", extra ? extra->module : NULL);
    if (row->history) {
        docs_history(r, row->history);
    }
    if (row->deprecated_since) {
        docs_deprecation(r, row);
    }
    if (has_arguments) {
        reply_bulk_cstr(r, "arguments");
        docs_arguments(r, &tree, tree.first);
    }
    if (has_own_arguments) {
        reply_bulk_cstr(r, "arguments");
        extra->reply_arguments(cmd, r);
    }
    if (cmd->subcommand_count) {
        reply_bulk_cstr(r, "subcommands");
        reply_map(r, cmd->subcommand_count);
        for (unsigned i = 0; i < cmd->subcommand_count; i++) {
            docs_reply_command(r, &cmd->subcommands[i]);
        }
    }
}
