/* Commands of modules: their making and their end. A command belongs to the module that made it,
 * and goes with it. World, but for what is asked. */
#include "module/commands.h"

#include "base/buf.h"
#include "base/mem.h"
#include "module/command_info.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

/* ---- flags and categories ---- */

#define TELLS_KEYS ((uint32_t)1 << 30) /* (no flags of commands of modules) */
#define TELLS_CHANNELS ((uint32_t)1 << 29)
static_assert(CMD_CONFIRMS == TELLS_KEYS && CMD_SUBSCRIBED == TELLS_CHANNELS,
              "bits that no word of a module sets");

static const struct {
    const char *word;
    uint32_t flags;
} flag_words[] = {
    {"write", CMD_WRITE},
    {"readonly", CMD_READONLY},
    {"admin", CMD_ADMIN},
    {"deny-oom", CMD_DENYOOM},
    {"deny-script", CMD_NOSCRIPT},
    {"allow-loading", CMD_LOADING},
    {"pubsub", CMD_PUBSUB},
    {"random", 0},
    {"blocking", CMD_BLOCKING},
    {"allow-stale", CMD_STALE},
    {"no-monitor", CMD_SKIP_MONITOR},
    {"no-slowlog", CMD_SKIP_SLOWLOG},
    {"fast", CMD_FAST},
    {"no-auth", CMD_NO_AUTH},
    {"may-replicate", CMD_MAY_REPLICATE},
    {"getkeys-api", TELLS_KEYS},
    {"getchannels-api", TELLS_CHANNELS},
    {"no-cluster", 0}, /* there is no cluster */
    {"no-mandatory-keys", CMD_NO_MANDATORY_KEYS},
    {"allow-busy", CMD_ALLOW_BUSY},
};

/* Calls `take` with each word; false as soon as that is. */
static bool each_word(const char *text, bool (*take)(struct slice word, uint32_t *bits),
                      uint32_t *bits)
{
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, " ");
        if (len > 0 && !take(slice_of(at, len), bits)) {
            return false;
        }
        at += len + (at[len] == ' ');
    }
    return true;
}

static bool take_flag(struct slice word, uint32_t *bits)
{
    for (size_t i = 0; i < sizeof(flag_words) / sizeof(flag_words[0]); i++) {
        if (slice_equal_nocase(word, flag_words[i].word)) {
            *bits |= flag_words[i].flags;
            return true;
        }
    }
    return false;
}

static bool take_category(struct slice word, uint32_t *bits)
{
    uint32_t category = command_category_of(word);
    *bits |= category;
    return category != 0;
}

/* ---- making ---- */

static const char cannot_be[] = "cannot be: its name, flags or keys";

static bool name_is_valid(const char *name)
{
    return name[0] && !name[strcspn(name, "| \r\n\t")];
}

static char *copy_text(const char *text)
{
    return text ? mem_dup(text, strlen(text)) : NULL;
}

/* The classic range as a key spec, owned; NULL: no keys. */
static char *range_spec(int first, int last, int step, bool varies)
{
    if (first <= 0) {
        return NULL;
    }
    struct buf text = {0};
    buf_printf(&text, "i%d/r%d,%d,0/RW+ACCESS+UPDATE%s", first, last < 0 ? last : last - first,
               step > 0 ? step : 1, varies ? "+VARIABLE_FLAGS" : "");
    char *spec = copy_text(buf_cstr(&text));
    buf_deinit(&text);
    return spec;
}

static struct module_command *make(struct module *m, const char *name, RedisModuleCmdFunc function,
                                   const char *words)
{
    uint32_t flags = 0;
    if (!name_is_valid(name) || !each_word(words ? words : "", take_flag, &flags)) {
        loaded_note_fault(m, "the command", name, cannot_be);
        return NULL;
    }
    struct module_command *c = mem_calloc(1, sizeof(*c));
    c->module = m;
    c->function = function;
    c->tells_keys = flags & TELLS_KEYS;
    c->tells_channels = flags & TELLS_CHANNELS;
    flags &= ~(uint32_t)(TELLS_KEYS | TELLS_CHANNELS);
    if (flags & CMD_WRITE) {
        flags &= ~(uint32_t)CMD_READONLY;
    }
    c->row = (struct command_row){.name = copy_text(name),
                                  .run = function ? run_command : run_container,
                                  .arity = function ? -1 : -2,
                                  .flags = flags | CMD_MODULE | CMD_EXCLUSIVE | CMD_SLOW |
                                           (function ? CMD_WAITS_QUIETLY | CMD_BARRIER : 0),
                                  .may_wait = run_may_wait,
                                  .is_barrier = run_is_barrier,
                                  .group = "module"};
    c->extra =
        (struct command_extra){.module = m->name,
                               .owner = c,
                               .find_keys = c->tells_keys ? run_find_keys : NULL,
                               .find_channels = c->tells_channels ? run_find_channels : NULL};
    return c;
}

static void destroy(struct module_command *c)
{
    command_info_clear(c);
    mem_free((char *)c->row.name);
    mem_free((char *)c->row.keys);
    mem_free(c);
}

/* `made` is NULL where it cannot be, perhaps since one of the name was `there` before. */
static int keep(struct module_command *c, const struct command *made, const struct command *there)
{
    struct module *m = c->module;
    if (!made) {
        loaded_note_fault(m, "the command", c->row.name, there ? loaded_is_taken : cannot_be);
        destroy(c);
        return REDISMODULE_ERR;
    }
    c->id = made->id;
    m->commands = mem_realloc(m->commands, (m->command_count + 1) * sizeof(*m->commands));
    m->commands[m->command_count++] = c;
    command_settle();
    return REDISMODULE_OK;
}

void commands_remove(struct module *m)
{
    for (unsigned i = 0; i < m->command_count; i++) {
        struct command *c = (struct command *)command_by_id(m->commands[i]->id);
        if (!c->parent) {
            command_retire(c);
        }
    }
    commands_forget(m);
    command_settle();
}

void commands_forget(struct module *m)
{
    for (unsigned i = 0; i < m->command_count; i++) {
        destroy(m->commands[i]);
    }
    mem_free(m->commands);
    m->commands = NULL;
    m->command_count = 0;
}

static int rm_create_command(RedisModuleCtx *ctx, const char *name, RedisModuleCmdFunc function,
                             const char *flags, int first, int last, int step)
{
    if (!ctx->module->loading || !ctx->module->name) {
        return REDISMODULE_ERR;
    }
    struct module_command *c = make(ctx->module, name, function, flags);
    if (!c) {
        return REDISMODULE_ERR;
    }
    c->row.keys = range_spec(first, last, step, c->tells_keys);
    const struct command *there = command_find(slice_cstr(name));
    return keep(c, command_add(&c->row, &c->extra), there);
}

static int rm_create_subcommand(RedisModuleCommand *parent, const char *name,
                                RedisModuleCmdFunc function, const char *flags, int first, int last,
                                int step)
{
    struct module_command *container = (struct module_command *)parent;
    struct command *c = (struct command *)command_by_id(container->id);
    if (!container->module->loading || c->parent || container->function || !function) {
        return REDISMODULE_ERR;
    }
    struct module_command *sub = make(container->module, name, function, flags);
    if (!sub) {
        return REDISMODULE_ERR;
    }
    sub->row.arity = -2;
    sub->row.keys = range_spec(first, last, step, sub->tells_keys);
    const struct command *there = command_find_sub(c, slice_cstr(name));
    return keep(sub, command_add_sub(c, &sub->row, &sub->extra), there);
}

/* Its own ones only. */
static RedisModuleCommand *rm_get_command(RedisModuleCtx *ctx, const char *name)
{
    const struct command *c = command_find_full(slice_cstr(name));
    struct module_command *m = c ? run_command_of(c) : NULL;
    return m && m->module == ctx->module ? (RedisModuleCommand *)m : NULL;
}

static int rm_set_categories(RedisModuleCommand *command, const char *words)
{
    struct module_command *m = (struct module_command *)command;
    uint32_t categories = 0;
    if (!m->module->loading || !each_word(words ? words : "", take_category, &categories)) {
        return REDISMODULE_ERR;
    }
    m->row.categories = categories; /* in the place of those that were set before */
    bool fine = command_follow_row((struct command *)command_by_id(m->id));
    assert(fine); /* it fails for key specs alone, and those are as they were */
    (void)fine;
    command_settle();
    return REDISMODULE_OK;
}

static bool category_is_valid(const char *name)
{
    const char *p = name;
    while (isalnum((unsigned char)*p) || *p == '-' || *p == '_') {
        p++;
    }
    return *p == '\0' && p != name;
}

/* EINVAL: the name has other characters, or OnLoad does not run; EBUSY: there is such a category;
 * ENOMEM: there are too many. */
static int rm_add_category(RedisModuleCtx *ctx, const char *name)
{
    bool taken;
    if (!ctx->module->loading || !category_is_valid(name)) {
        errno = EINVAL;
        return REDISMODULE_ERR;
    }
    uint32_t category = command_category_add(name, &taken);
    if (!category) {
        errno = taken ? EBUSY : ENOMEM;
        loaded_note_fault(ctx->module, "the ACL category", name,
                          taken ? loaded_is_taken : "finds no place: there are too many");
        return REDISMODULE_ERR;
    }
    ctx->module->categories |= category;
    return REDISMODULE_OK;
}

const struct api_function command_functions[] = {
    API(CreateCommand, rm_create_command), API(CreateSubcommand, rm_create_subcommand),
    API(GetCommand, rm_get_command),       API(SetCommandACLCategories, rm_set_categories),
    API(AddACLCategory, rm_add_category),  {NULL, NULL},
};
