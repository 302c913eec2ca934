/* SetCommandInfo: what it is given is copied into the command's row. Key specs become the text that
 * rows have (engine/keyspecs_priv.h); arguments stay a tree. See command_info.h. */
#include "module/command_info.h"

#include "base/buf.h"
#include "base/mem.h"
#include "module/api.h"

#include <errno.h>
#include <string.h>

static char *copy_text(const char *text)
{
    return text ? mem_dup(text, strlen(text)) : NULL;
}

/* ---- arguments ---- */

/* One element of an array whose elements may be longer than ours: the module's header is newer. */
static const void *at(const void *array, size_t index, size_t size)
{
    return (const char *)array + index * size;
}

static void free_arguments(RedisModuleCommandArg *arguments)
{
    for (RedisModuleCommandArg *a = arguments; a && a->name; a++) {
        free_arguments(a->subargs);
        mem_free((char *)a->name);
        mem_free((char *)a->token);
        mem_free((char *)a->summary);
        mem_free((char *)a->since);
        mem_free((char *)a->deprecated_since);
        mem_free((char *)a->display_text);
    }
    mem_free(arguments);
}

static RedisModuleCommandArg *copy_arguments(const RedisModuleCommandArg *arguments, size_t size)
{
    size_t count = 0;
    while (arguments && ((const RedisModuleCommandArg *)at(arguments, count, size))->name) {
        count++;
    }
    if (count == 0) {
        return NULL;
    }
    RedisModuleCommandArg *copy = mem_calloc(count + 1, sizeof(*copy));
    for (size_t i = 0; i < count; i++) {
        const RedisModuleCommandArg *a = at(arguments, i, size);
        copy[i] = (RedisModuleCommandArg){.name = copy_text(a->name),
                                          .type = a->type,
                                          .key_spec_index = a->key_spec_index,
                                          .token = copy_text(a->token),
                                          .summary = copy_text(a->summary),
                                          .since = copy_text(a->since),
                                          .flags = a->flags,
                                          .deprecated_since = copy_text(a->deprecated_since),
                                          .subargs = copy_arguments(a->subargs, size),
                                          .display_text = size < sizeof(*a)
                                                              ? NULL /* a header of Redis 7.0 */
                                                              : copy_text(a->display_text)};
    }
    return copy;
}

static const char *const type_names[] = {"string",    "integer",    "double", "key",  "pattern",
                                         "unix-time", "pure-token", "oneof",  "block"};
#define TYPE_COUNT (sizeof(type_names) / sizeof(type_names[0]))

static bool arguments_are_valid(const RedisModuleCommandArg *arguments, size_t size)
{
    for (size_t i = 0; arguments; i++) {
        const RedisModuleCommandArg *a = at(arguments, i, size);
        if (!a->name) {
            return true;
        }
        bool has_parts =
            a->type == REDISMODULE_ARG_TYPE_ONEOF || a->type == REDISMODULE_ARG_TYPE_BLOCK;
        if ((unsigned)a->type >= TYPE_COUNT || (a->subargs != NULL) != has_parts ||
            (a->type == REDISMODULE_ARG_TYPE_PURE_TOKEN && !a->token) ||
            !arguments_are_valid(a->subargs, size)) {
            return false;
        }
    }
    return true;
}

static void reply_text(struct reply *r, const char *field, const char *text)
{
    if (text) {
        reply_bulk_cstr(r, field);
        reply_bulk_cstr(r, text);
    }
}

static void reply_flags(struct reply *r, int flags)
{
    static const char *const names[] = {"optional", "multiple", "multiple_token"};
    reply_bulk_cstr(r, "flags");
    reply_set(r, (uint64_t)__builtin_popcount((unsigned)flags & 7));
    for (int bit = 0; bit < 3; bit++) {
        if (flags & 1 << bit) {
            reply_status(r, names[bit]);
        }
    }
}

static void reply_tree(struct reply *r, const RedisModuleCommandArg *arguments)
{
    uint64_t count = 0;
    for (const RedisModuleCommandArg *a = arguments; a && a->name; a++) {
        count++;
    }
    reply_array(r, count);
    for (const RedisModuleCommandArg *a = arguments; a && a->name; a++) {
        bool is_key = a->type == REDISMODULE_ARG_TYPE_KEY;
        int flags = a->flags & 7;
        const char *shown = a->display_text ? a->display_text : a->subargs ? NULL : a->name;
        reply_map(r, 2u + is_key + (a->token != NULL) + (a->summary != NULL) + (a->since != NULL) +
                         (a->deprecated_since != NULL) + (flags != 0) + (a->subargs != NULL) +
                         (shown != NULL));
        reply_text(r, "name", a->name);
        reply_text(r, "type", type_names[a->type]);
        reply_text(r, "display_text", shown);
        if (is_key) {
            reply_bulk_cstr(r, "key_spec_index");
            reply_i64(r, a->key_spec_index);
        }
        reply_text(r, "token", a->token);
        reply_text(r, "summary", a->summary);
        reply_text(r, "since", a->since);
        reply_text(r, "deprecated_since", a->deprecated_since);
        if (flags) {
            reply_flags(r, flags);
        }
        if (a->subargs) {
            reply_bulk_cstr(r, "arguments");
            reply_tree(r, a->subargs);
        }
    }
}

static void reply_arguments(const struct command *c, struct reply *r)
{
    reply_tree(r, run_command_of(c)->arguments);
}

/* ---- keys ---- */

static const char *const key_flag_names[] = {
    "RO",     "RW",     "OW",      "RM",         "ACCESS",        "UPDATE",
    "INSERT", "DELETE", "NOT_KEY", "INCOMPLETE", "VARIABLE_FLAGS"};

static bool append_key_flags(struct buf *out, uint64_t flags)
{
    bool some = false;
    for (size_t bit = 0; bit < sizeof(key_flag_names) / sizeof(key_flag_names[0]); bit++) {
        if (flags & 1ULL << bit) {
            buf_append_cstr(out, some ? "+" : "");
            buf_append_cstr(out, key_flag_names[bit]);
            some = true;
        }
    }
    return some;
}

static bool append_spec(struct buf *out, const RedisModuleCommandKeySpec *s)
{
    if (s->begin_search_type == REDISMODULE_KSPEC_BS_UNKNOWN) {
        buf_append_cstr(out, "?");
    } else if (s->begin_search_type == REDISMODULE_KSPEC_BS_INDEX) {
        buf_printf(out, "i%d", s->bs.index.pos);
    } else if (s->begin_search_type == REDISMODULE_KSPEC_BS_KEYWORD) {
        buf_printf(out, "kw:%s@%d", s->bs.keyword.keyword, s->bs.keyword.startfrom);
    } else {
        return false;
    }
    if (s->find_keys_type == REDISMODULE_KSPEC_FK_OMITTED) {
        buf_append_cstr(out, "/r0,1,0/");
    } else if (s->find_keys_type == REDISMODULE_KSPEC_FK_UNKNOWN) {
        buf_append_cstr(out, "/?/");
    } else if (s->find_keys_type == REDISMODULE_KSPEC_FK_RANGE) {
        buf_printf(out, "/r%d,%d,%d/", s->fk.range.lastkey, s->fk.range.keystep, s->fk.range.limit);
    } else if (s->find_keys_type == REDISMODULE_KSPEC_FK_KEYNUM) {
        buf_printf(out, "/n%d,%d,%d/", s->fk.keynum.keynumidx, s->fk.keynum.firstkey,
                   s->fk.keynum.keystep);
    } else {
        return false;
    }
    return append_key_flags(out, s->flags);
}

/* The specs as a row has them, owned; NULL when there are none, or (*valid false) they are wrong.
 */
static char *specs_text(const RedisModuleCommandKeySpec *specs, size_t size, bool *valid)
{
    struct buf text = {0};
    *valid = true;
    for (size_t i = 0; *valid && specs; i++) {
        const RedisModuleCommandKeySpec *s = at(specs, i, size);
        if (s->begin_search_type == REDISMODULE_KSPEC_BS_INVALID) {
            break;
        }
        buf_append_cstr(&text, i > 0 ? "; " : "");
        *valid = append_spec(&text, s);
    }
    char *copy = *valid && text.len > 0 ? copy_text(buf_cstr(&text)) : NULL;
    buf_deinit(&text);
    return copy;
}

/* ---- texts ---- */

/* "since:changes|since:changes", as rows have it; owned. */
static char *history_text(const RedisModuleCommandHistoryEntry *entries, size_t size)
{
    struct buf text = {0};
    for (size_t i = 0; entries; i++) {
        const RedisModuleCommandHistoryEntry *e = at(entries, i, size);
        if (!e->since) {
            break;
        }
        buf_printf(&text, "%s%s:%s", i > 0 ? "|" : "", e->since, e->changes ? e->changes : "");
    }
    char *copy = text.len > 0 ? copy_text(buf_cstr(&text)) : NULL;
    buf_deinit(&text);
    return copy;
}

/* Blanks between tips become commas; owned. */
static char *tips_text(const char *tips)
{
    char *copy = copy_text(tips);
    for (char *at_blank = copy; at_blank && (at_blank = strchr(at_blank, ' '));) {
        *at_blank = ',';
    }
    return copy;
}

void command_info_clear(struct module_command *c)
{
    mem_free((char *)c->row.summary);
    mem_free((char *)c->row.complexity);
    mem_free((char *)c->row.since);
    mem_free((char *)c->row.history);
    mem_free((char *)c->row.tips);
    free_arguments(c->arguments);
    c->row.summary = c->row.complexity = c->row.since = c->row.history = c->row.tips = NULL;
    c->arguments = NULL;
    c->extra.reply_arguments = NULL;
}

static void set_texts(struct module_command *c, const RedisModuleCommandInfo *info)
{
    c->row.summary = copy_text(info->summary);
    c->row.complexity = copy_text(info->complexity);
    c->row.since = copy_text(info->since);
    c->row.tips = tips_text(info->tips);
    c->row.history = history_text(info->history, info->version->sizeof_historyentry);
    c->arguments = copy_arguments(info->args, info->version->sizeof_arg);
    c->extra.reply_arguments = c->arguments ? reply_arguments : NULL;
}

/* Arity and keys take the place of what CreateCommand was told. False when the keys cannot be. */
static bool set_facts(struct module_command *c, const RedisModuleCommandInfo *info, char *keys_take)
{
    struct command *command = (struct command *)command_by_id(c->id);
    struct command_row before = c->row;
    c->row.arity = info->arity ? info->arity : c->row.arity;
    c->row.keys = keys_take ? keys_take : c->row.keys;
    if (!command_follow_row(command)) {
        c->row = before;
        mem_free(keys_take);
        return false;
    }
    if (keys_take) {
        mem_free((char *)before.keys);
    }
    return true;
}

static bool version_is_known(const RedisModuleCommandInfoVersion *v)
{
    return v && v->version == 1 &&
           v->sizeof_historyentry >= sizeof(RedisModuleCommandHistoryEntry) &&
           v->sizeof_keyspec >= sizeof(RedisModuleCommandKeySpec) &&
           v->sizeof_arg >= offsetof(RedisModuleCommandArg, display_text);
}

static int rm_set_command_info(RedisModuleCommand *command, const RedisModuleCommandInfo *info)
{
    struct module_command *c = (struct module_command *)command;
    bool valid;
    if (!c->module->loading || !version_is_known(info->version) ||
        !arguments_are_valid(info->args, info->version->sizeof_arg)) {
        errno = EINVAL;
        return REDISMODULE_ERR;
    }
    if (c->has_info) {
        errno = EEXIST;
        return REDISMODULE_ERR;
    }
    char *keys = specs_text(info->key_specs, info->version->sizeof_keyspec, &valid);
    if (!valid || !set_facts(c, info, keys)) {
        errno = EINVAL;
        return REDISMODULE_ERR;
    }
    set_texts(c, info);
    c->has_info = true;
    return REDISMODULE_OK;
}

const struct api_function command_info_functions[] = {
    API(SetCommandInfo, rm_set_command_info),
    {NULL, NULL},
};
