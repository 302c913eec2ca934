/* What the server tells about its commands: see docs.h.
 *
 * Format: redis.io/commands/command-docs. A map from name to a map with summary, since, group,
 * arguments (an array of maps) and subcommands (a map like the outer one). */
#include "tools/cli/docs.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A table of more commands than this is not believed. */
#define DOCS_COMMANDS_MAX 20000

/* Arguments nested deeper are left out. Redis nests four deep; what `multiple` arguments show
 * doubles with each level, so this bounds it. */
#define DOCS_ARG_DEPTH_MAX 8

static char *text_of(const struct reply *map, const char *key)
{
    const struct reply *value = reply_map_get(map, key);
    bool is_text = value != NULL && (value->type == REPLY_STRING || value->type == REPLY_STATUS ||
                                     value->type == REPLY_VERBATIM);
    return is_text ? tool_strdup(value->text) : NULL;
}

static char *text_or_empty(const struct reply *map, const char *key)
{
    char *text = text_of(map, key);
    return text != NULL ? text : tool_strdup("");
}

static bool has_flag(const struct reply *map, const char *flag)
{
    const struct reply *flags = reply_map_get(map, "flags");
    for (size_t i = 0; flags != NULL && i < flags->count; i++) {
        if (reply_text_is(&flags->items[i], flag)) {
            return true;
        }
    }
    return false;
}

static size_t build_args(struct doc_arg **out, const struct reply *list, int depth);

static void build_arg(struct doc_arg *arg, const struct reply *map, int depth)
{
    memset(arg, 0, sizeof(*arg));
    const struct reply *type = reply_map_get(map, "type");
    if (type != NULL && reply_text_is(type, "pure-token")) {
        arg->kind = DOC_ARG_TOKEN;
    } else if (type != NULL && reply_text_is(type, "oneof")) {
        arg->kind = DOC_ARG_ONEOF;
    } else if (type != NULL && reply_text_is(type, "block")) {
        arg->kind = DOC_ARG_BLOCK;
    }
    arg->label = text_of(map, "display_text");
    if (arg->label == NULL) {
        arg->label = text_or_empty(map, "name");
    }
    arg->token = text_of(map, "token");
    arg->optional = has_flag(map, "optional");
    arg->multiple = has_flag(map, "multiple");
    arg->multiple_token = has_flag(map, "multiple_token");
    arg->part_count = build_args(&arg->parts, reply_map_get(map, "arguments"), depth + 1);
}

static size_t build_args(struct doc_arg **out, const struct reply *list, int depth)
{
    *out = NULL;
    if (list == NULL || depth == DOCS_ARG_DEPTH_MAX || !reply_is_aggregate(list->type) ||
        list->count == 0) {
        return 0;
    }
    *out = tool_calloc(list->count, sizeof(**out));
    for (size_t i = 0; i < list->count; i++) {
        build_arg(&(*out)[i], &list->items[i], depth);
    }
    return list->count;
}

static void free_args(struct doc_arg *args, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(args[i].label);
        free(args[i].token);
        free_args(args[i].parts, args[i].part_count);
    }
    free(args);
}

/* "client|kill" is shown and typed as "CLIENT KILL". */
static char *spoken_name(const char *name, size_t *words)
{
    char *out = tool_strdup(name);
    *words = 1;
    for (char *c = out; *c != '\0'; c++) {
        if (*c == '|') {
            *c = ' ';
            (*words)++;
        } else {
            *c = (char)toupper((unsigned char)*c);
        }
    }
    return out;
}

static bool is_name(const struct reply *r)
{
    return (r->type == REPLY_STRING || r->type == REPLY_STATUS) && r->len > 0;
}

static void add_command(struct docs *d, const char *name, const struct reply *about)
{
    d->commands = tool_realloc(d->commands, (d->command_count + 1) * sizeof(*d->commands));
    struct doc_command *c = &d->commands[d->command_count++];
    c->name = spoken_name(name, &c->name_words);
    c->summary = text_or_empty(about, "summary");
    c->since = text_or_empty(about, "since");
    c->group = text_or_empty(about, "group");
    c->arg_count = build_args(&c->args, reply_map_get(about, "arguments"), 0);
}

static void add_commands(struct docs *d, const struct reply *map, int depth)
{
    if (map->type != REPLY_MAP && map->type != REPLY_ARRAY) {
        return;
    }
    for (size_t i = 0; i + 1 < map->count && d->command_count < DOCS_COMMANDS_MAX; i += 2) {
        const struct reply *name = &map->items[i];
        const struct reply *about = &map->items[i + 1];
        if (!is_name(name)) {
            continue;
        }
        add_command(d, name->text, about);
        const struct reply *subcommands = reply_map_get(about, "subcommands");
        if (subcommands != NULL && depth == 0) {
            add_commands(d, subcommands, depth + 1);
        }
    }
}

static int compare_commands(const void *a, const void *b)
{
    const struct doc_command *left = a;
    const struct doc_command *right = b;
    return strcmp(left->name, right->name);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void collect_groups(struct docs *d)
{
    d->groups = tool_calloc(d->command_count, sizeof(*d->groups));
    for (size_t i = 0; i < d->command_count; i++) {
        if (d->commands[i].group[0] != '\0') {
            d->groups[d->group_count++] = d->commands[i].group;
        }
    }
    if (d->group_count > 0) {
        qsort(d->groups, d->group_count, sizeof(*d->groups), compare_texts);
    }
    size_t kept = 0;
    for (size_t i = 0; i < d->group_count; i++) {
        if (kept == 0 || strcmp(d->groups[kept - 1], d->groups[i]) != 0) {
            d->groups[kept++] = d->groups[i];
        }
    }
    d->group_count = kept;
}

/* Puts what has been added in order. */
static void finish(struct docs *d)
{
    if (d->command_count > 0) {
        qsort(d->commands, d->command_count, sizeof(*d->commands), compare_commands);
    }
    collect_groups(d);
}

void docs_build(struct docs *d, const struct reply *reply)
{
    memset(d, 0, sizeof(*d));
    add_commands(d, reply, 0);
    finish(d);
}

void docs_build_names(struct docs *d, const struct reply *reply)
{
    static const struct reply nothing;
    memset(d, 0, sizeof(*d));
    for (size_t i = 0; i < reply->count && d->command_count < DOCS_COMMANDS_MAX; i++) {
        const struct reply *entry = &reply->items[i];
        if (entry->count > 0 && is_name(&entry->items[0])) {
            add_command(d, entry->items[0].text, &nothing);
        }
    }
    finish(d);
}

void docs_deinit(struct docs *d)
{
    for (size_t i = 0; i < d->command_count; i++) {
        struct doc_command *c = &d->commands[i];
        free(c->name);
        free(c->summary);
        free(c->since);
        free(c->group);
        free_args(c->args, c->arg_count);
    }
    free(d->commands);
    free(d->groups);
    memset(d, 0, sizeof(*d));
}

/* Whether the blank-separated words of `name` are the first words of `line`. */
static bool name_starts_line(const struct doc_command *c, const struct words *line)
{
    const char *at = c->name;
    if (line->count < c->name_words) {
        return false;
    }
    for (size_t i = 0; i < c->name_words; i++) {
        size_t len = strcspn(at, " ");
        if (line->list[i].len != len || strncasecmp(at, line->list[i].data, len) != 0) {
            return false;
        }
        at += len + (at[len] == ' ' ? 1 : 0);
    }
    return true;
}

const struct doc_command *docs_find(const struct docs *d, const struct words *line)
{
    const struct doc_command *best = NULL;
    for (size_t i = 0; i < d->command_count; i++) {
        const struct doc_command *c = &d->commands[i];
        if ((best == NULL || c->name_words > best->name_words) && name_starts_line(c, line)) {
            best = c;
        }
    }
    return best;
}

/* ---- as text ---- */

/* The argument without its token, brackets and repetitions. */
static void append_core(struct text *out, const struct doc_arg *arg)
{
    switch (arg->kind) {
    case DOC_ARG_VALUE:
        text_append_string(out, arg->label);
        break;
    case DOC_ARG_TOKEN:
        text_append_string(out, arg->token != NULL && arg->token[0] != '\0' ? arg->token : "\"\"");
        break;
    case DOC_ARG_ONEOF:
        for (size_t i = 0; i < arg->part_count; i++) {
            text_append_string(out, i > 0 ? "|" : "");
            docs_append_arg(out, &arg->parts[i]);
        }
        break;
    case DOC_ARG_BLOCK:
        docs_append_args(out, arg->parts, arg->part_count);
        break;
    }
}

static void append_token(struct text *out, const struct doc_arg *arg)
{
    if (arg->kind != DOC_ARG_TOKEN && arg->token != NULL && arg->token[0] != '\0') {
        text_append_string(out, arg->token);
        text_append_char(out, ' ');
    }
}

void docs_append_arg(struct text *out, const struct doc_arg *arg)
{
    text_append_string(out, arg->optional ? "[" : "");
    append_token(out, arg);
    append_core(out, arg);
    if (arg->multiple) {
        text_append_string(out, " [");
        if (arg->multiple_token) {
            append_token(out, arg);
        }
        append_core(out, arg);
        text_append_string(out, " ...]");
    }
    text_append_string(out, arg->optional ? "]" : "");
}

void docs_append_args(struct text *out, const struct doc_arg *args, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        text_append_string(out, i > 0 ? " " : "");
        docs_append_arg(out, &args[i]);
    }
}
