/* See configs.h. An option is one of base/option.h's, OPTION_CUSTOM, with what the module has given
 * beside it. */
#include "module/configs.h"

#include "base/log.h"
#include "base/mem.h"
#include "engine/busy.h"
#include "engine/config.h"
#include "engine/gate.h"
#include "keyspace/lock.h"
#include "module/config_values.h"
#include "module/context.h"
#include "module/text.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define FLAGS_ALL                                                                                  \
    (REDISMODULE_CONFIG_IMMUTABLE | REDISMODULE_CONFIG_SENSITIVE | REDISMODULE_CONFIG_HIDDEN |     \
     REDISMODULE_CONFIG_PROTECTED | REDISMODULE_CONFIG_DENY_LOADING | REDISMODULE_CONFIG_MEMORY |  \
     REDISMODULE_CONFIG_BITFLAGS)

static struct module_config *config_of(const struct option *o)
{
    return (struct module_config *)o;
}

/* ---- the lock ---- */

/* Takes the keyspace lock unless it is held; tells whether it did. */
static bool enter(void) NO_THREAD_SAFETY_ANALYSIS
{
    if (keyspace_is_exclusive()) {
        return false;
    }
    keyspace_lock_exclusive();
    return true;
}

static void leave(bool taken) NO_THREAD_SAFETY_ANALYSIS
{
    if (taken) {
        keyspace_unlock_exclusive();
    }
}

/* ---- asking and telling the module ---- */

static void ask(const struct module_config *m, struct buf *out) REQUIRES(keyspace_lock)
{
    RedisModuleCtx ctx;
    struct config_value v = {0, slice_of(NULL, 0)};
    context_begin(&ctx, m->module, ACCESS_EXCLUSIVE);
    const RedisModuleString *text = NULL;
    switch (m->kind) {
    case KIND_BOOL:
        v.number = m->get.of_bool(m->name, m->user_data) != 0;
        break;
    case KIND_NUMERIC:
        v.number = m->get.of_numeric(m->name, m->user_data);
        break;
    case KIND_STRING:
        text = m->get.of_string(m->name, m->user_data);
        v.text = text ? text_slice(text) : v.text;
        break;
    case KIND_ENUM:
        v.number = m->get.of_enum(m->name, m->user_data);
        break;
    }
    config_value_append(m, &v, out);
    context_end(&ctx);
}

/* Takes over the module's words of why not. */
static bool take_error(RedisModuleString *why, const char **error)
{
    if (why) {
        config_fail_text(error, text_slice(why));
        text_release(why);
        return false;
    }
    return config_fail(error, "the module refuses this value");
}

static bool tell(struct module_config *m, const struct config_value *v, const char **error)
    REQUIRES(keyspace_lock)
{
    RedisModuleCtx ctx;
    RedisModuleString *why = NULL, *text = NULL;
    int result = REDISMODULE_ERR;
    context_begin(&ctx, m->module, ACCESS_EXCLUSIVE);
    switch (m->kind) {
    case KIND_BOOL:
        result = m->set.of_bool(m->name, (int)v->number, m->user_data, &why);
        break;
    case KIND_NUMERIC:
        result = m->set.of_numeric(m->name, v->number, m->user_data, &why);
        break;
    case KIND_STRING:
        text = text_create(v->text);
        result = m->set.of_string(m->name, text, m->user_data, &why);
        text_release(text);
        break;
    case KIND_ENUM:
        result = m->set.of_enum(m->name, (int)v->number, m->user_data, &why);
        break;
    }
    context_end(&ctx);
    return result == REDISMODULE_OK || take_error(why, error);
}

/* Tells a value that is another one than the module has. */
static bool tell_if_new(struct module_config *m, const struct config_value *v, const char **error)
    REQUIRES(keyspace_lock)
{
    struct buf now = {0}, wanted = {0};
    config_value_append(m, v, &wanted);
    if (m->is_loaded) {
        ask(m, &now);
    }
    bool is_new = !m->is_loaded || !slice_equal(buf_slice(&now), buf_slice(&wanted));
    bool fine = !is_new || tell(m, v, error);
    if (fine) {
        m->is_changed |= is_new;
        m->is_loaded = true;
    }
    buf_deinit(&now);
    buf_deinit(&wanted);
    return fine;
}

static bool apply_one(const struct module_config *m, const char **error) REQUIRES(keyspace_lock)
{
    RedisModuleCtx ctx;
    RedisModuleString *why = NULL;
    context_begin(&ctx, m->module, ACCESS_EXCLUSIVE);
    int result = m->apply(&ctx, m->user_data, &why);
    context_end(&ctx);
    return result == REDISMODULE_OK || take_error(why, error);
}

/* Whether an option of the module before that one is applied by the same call. */
static bool is_applied_by_another(const struct module_config *m)
{
    const struct module_config *k = m->module->configs;
    while (k != m && !(k->is_changed && k->apply == m->apply && k->user_data == m->user_data)) {
        k = k->next;
    }
    return k != m;
}

/* Each apply function once for what it is to look after. */
static bool apply_changed(struct module *module, const char **error) REQUIRES(keyspace_lock)
{
    bool fine = true;
    for (const struct module_config *m = module->configs; m && fine; m = m->next) {
        if (m->is_changed && m->apply && !is_applied_by_another(m)) {
            fine = apply_one(m, error);
        }
    }
    for (struct module_config *m = module->configs; m; m = m->next) {
        m->is_changed = false;
    }
    return fine;
}

/* ---- as an option ---- */

/* While it is registered its default is looked at, and told later (LoadConfigs). */
static bool store(struct module_config *m, struct slice text,
                  const char **error) NO_THREAD_SAFETY_ANALYSIS
{
    struct config_value v;
    if (!config_value_parse(m, text, &v, error)) {
        return false;
    }
    if (!m->is_loaded && !m->module->loading_configs) {
        return true;
    }
    if (m->flags & REDISMODULE_CONFIG_DENY_LOADING && !m->module->loading_configs &&
        gate_is_loading()) {
        return config_fail(error, "can't set this config while the server is loading");
    }
    bool taken = enter();
    bool fine = tell_if_new(m, &v, error);
    leave(taken);
    return fine;
}

/* Several words: those of flags. */
static bool parse_option(const struct option *o, const struct slice *words, int count,
                         const char **error)
{
    struct buf joined = {0};
    for (int i = 0; i < count; i++) {
        buf_append_cstr(&joined, i > 0 ? " " : "");
        buf_append_slice(&joined, words[i]);
    }
    bool fine = store(config_of(o), buf_slice(&joined), error);
    buf_deinit(&joined);
    return fine;
}

struct question {
    const struct module_config *config;
    struct buf *out;
};

static void ask_held(void *question)
{
    const struct question *q = question;
    keyspace_assert_exclusive();
    ask(q->config, q->out);
}

/* Beside a script that takes long its thread asks (busy.h). */
static void format_option(const struct option *o, struct buf *out)
{
    struct question q = {config_of(o), out};
    if (q.config->is_loaded) {
        busy_run_within(ask_held, &q);
    } else {
        buf_append_cstr(out, o->initial);
    }
}

/* One call of CONFIG SET's for all options of modules. */
static bool apply_option(const struct option *o UNUSED,
                         const char **error) NO_THREAD_SAFETY_ANALYSIS
{
    bool fine = true;
    bool taken = enter();
    for (const struct module *m = loaded_first(); m && fine; m = m->next) {
        fine = apply_changed((struct module *)m, error);
    }
    leave(taken);
    return fine;
}

/* ---- registering ---- */

static bool name_is_valid(const char *name)
{
    const char *p = name;
    while (isalnum((unsigned char)*p) || *p == '_' || *p == '-') {
        p++;
    }
    return *p == '\0' && p != name;
}

static void destroy(struct module_config *m)
{
    for (struct option_enum *e = m->names; e && e->name; e++) {
        mem_free((char *)e->name);
    }
    mem_free(m->names);
    mem_free((char *)m->option.name);
    mem_free((char *)m->option.initial);
    mem_free(m);
}

static unsigned option_flags(unsigned flags)
{
    return (flags & REDISMODULE_CONFIG_IMMUTABLE ? OPTION_IMMUTABLE : 0) |
           (flags & REDISMODULE_CONFIG_SENSITIVE ? OPTION_SENSITIVE : 0) |
           (flags & REDISMODULE_CONFIG_HIDDEN ? OPTION_HIDDEN : 0) |
           (flags & REDISMODULE_CONFIG_BITFLAGS ? OPTION_MULTI : 0) |
           (flags & REDISMODULE_CONFIG_PROTECTED ? OPTION_PROTECTED : 0);
}

/* A record that is on no list yet; NULL with errno: EBUSY when it is not OnLoad's time, EINVAL for
 * bad flags or a bad name. */
static struct module_config *create(RedisModuleCtx *ctx, const char *name, enum kind kind,
                                    unsigned flags, RedisModuleConfigApplyFunc apply,
                                    void *user_data)
{
    unsigned allowed = FLAGS_ALL;
    allowed &= kind == KIND_NUMERIC ? ~0U : ~(unsigned)REDISMODULE_CONFIG_MEMORY;
    allowed &= kind == KIND_ENUM ? ~0U : ~(unsigned)REDISMODULE_CONFIG_BITFLAGS;
    if (!ctx->module->loading || !ctx->module->name) {
        errno = EBUSY;
        return NULL;
    }
    if (flags & ~allowed || !name_is_valid(name)) {
        loaded_note_fault(ctx->module, "the option", name, "cannot be: its name or flags");
        errno = EINVAL;
        return NULL;
    }
    struct module_config *m = mem_calloc(1, sizeof(*m));
    struct buf full = {0};
    buf_printf(&full, "%s.%s", ctx->module->name, name);
    char *owned = mem_dup(buf_cstr(&full), full.len);
    buf_deinit(&full);
    m->option = (struct option){.name = owned,
                                .type = OPTION_CUSTOM,
                                .flags = option_flags(flags),
                                .parse = parse_option,
                                .format = format_option,
                                .apply = apply_option};
    m->name = owned + strlen(owned) - strlen(name);
    m->module = ctx->module;
    m->kind = kind;
    m->flags = flags;
    m->apply = apply;
    m->user_data = user_data;
    return m;
}

/* EALREADY: there is such an option; EINVAL: its default is not among its values. */
static int enlist(struct module_config *m, const struct config_value *initial)
{
    struct buf text = {0};
    struct config_value checked;
    const char *why;
    config_value_append(m, initial, &text);
    m->option.initial = mem_dup(buf_cstr(&text), text.len);
    buf_deinit(&text);
    if (!config_value_parse(m, slice_cstr(m->option.initial), &checked, &why)) {
        loaded_note_fault(m->module, "the option", m->option.name,
                          "cannot be: its default is none of its values");
        destroy(m);
        errno = EINVAL;
        return REDISMODULE_ERR;
    }
    if (!config_add(&m->option)) {
        loaded_note_fault(m->module, "the option", m->option.name, loaded_is_taken);
        destroy(m);
        errno = EALREADY;
        return REDISMODULE_ERR;
    }
    struct module_config **last = &m->module->configs;
    while (*last) {
        last = &(*last)->next;
    }
    *last = m;
    return REDISMODULE_OK;
}

static int rm_register_bool(RedisModuleCtx *ctx, const char *name, int initial, unsigned flags,
                            RedisModuleConfigGetBoolFunc get, RedisModuleConfigSetBoolFunc set,
                            RedisModuleConfigApplyFunc apply, void *user_data)
{
    struct module_config *m = create(ctx, name, KIND_BOOL, flags, apply, user_data);
    if (!m) {
        return REDISMODULE_ERR;
    }
    m->get.of_bool = get;
    m->set.of_bool = set;
    return enlist(m, &(struct config_value){.number = initial});
}

static int rm_register_numeric(RedisModuleCtx *ctx, const char *name, long long initial,
                               unsigned flags, long long min, long long max,
                               RedisModuleConfigGetNumericFunc get,
                               RedisModuleConfigSetNumericFunc set,
                               RedisModuleConfigApplyFunc apply, void *user_data)
{
    struct module_config *m = create(ctx, name, KIND_NUMERIC, flags, apply, user_data);
    if (!m) {
        return REDISMODULE_ERR;
    }
    m->get.of_numeric = get;
    m->set.of_numeric = set;
    m->min = min;
    m->max = max;
    return enlist(m, &(struct config_value){.number = initial});
}

static int rm_register_string(RedisModuleCtx *ctx, const char *name, const char *initial,
                              unsigned flags, RedisModuleConfigGetStringFunc get,
                              RedisModuleConfigSetStringFunc set, RedisModuleConfigApplyFunc apply,
                              void *user_data)
{
    struct module_config *m = create(ctx, name, KIND_STRING, flags, apply, user_data);
    if (!m) {
        return REDISMODULE_ERR;
    }
    m->get.of_string = get;
    m->set.of_string = set;
    return enlist(m, &(struct config_value){.text = slice_cstr(initial ? initial : "")});
}

static int rm_register_enum(RedisModuleCtx *ctx, const char *name, int initial, unsigned flags,
                            const char **names, const int *values, int count,
                            RedisModuleConfigGetEnumFunc get, RedisModuleConfigSetEnumFunc set,
                            RedisModuleConfigApplyFunc apply, void *user_data)
{
    struct module_config *m = create(ctx, name, KIND_ENUM, flags, apply, user_data);
    if (!m) {
        return REDISMODULE_ERR;
    }
    m->get.of_enum = get;
    m->set.of_enum = set;
    m->names = mem_calloc((size_t)count + 1, sizeof(*m->names));
    for (int i = 0; i < count; i++) {
        m->names[i] = (struct option_enum){mem_dup(names[i], strlen(names[i])), values[i]};
    }
    return enlist(m, &(struct config_value){.number = initial});
}

/* ---- setting them all ---- */

/* What the configuration says, or LOADEX; else the default. */
static bool load_one(struct module_config *m, const char **error)
{
    struct slice words[OPTION_MAX_WORDS + 1];
    struct buf line = {0}, scratch = {0};
    words[0] = slice_cstr(m->option.name);
    int count = 1;
    if (config_claim_line(words[0], &line)) {
        count += option_split_line(buf_slice(&line), words + 1, OPTION_MAX_WORDS, &scratch);
    }
    struct slice initial = slice_cstr(m->option.initial);
    bool fine = count > 1 ? config_apply_words(words, count, error)
                          : option_store(&m->option, &initial, 1, error);
    buf_deinit(&line);
    buf_deinit(&scratch);
    return fine;
}

static int rm_load(RedisModuleCtx *ctx)
{
    keyspace_assert_exclusive();
    struct module *module = ctx->module;
    const char *error = NULL;
    bool fine = true;
    if (!module->loading) {
        errno = EBUSY;
        return REDISMODULE_ERR;
    }
    module->loading_configs = true;
    for (struct module_config *m = module->configs; m && fine; m = m->next) {
        fine = load_one(m, &error);
        if (!fine) {
            log_warning("Module '%s': %s: %s", module->name, m->option.name, error);
            loaded_note_fault(module, "the option", m->option.name, error);
        }
    }
    module->loading_configs = false;
    for (struct module_config *m = module->configs; m; m = m->next) {
        m->is_changed = false; /* nothing of it is applied, as in Redis */
    }
    return fine ? REDISMODULE_OK : REDISMODULE_ERR;
}

bool configs_are_loaded(const struct module *m)
{
    const struct module_config *c = m->configs;
    while (c && c->is_loaded) {
        c = c->next;
    }
    return c == NULL;
}

void configs_forget(struct module *m)
{
    while (m->configs) {
        struct module_config *c = m->configs;
        m->configs = c->next;
        destroy(c);
    }
}

void configs_withdraw(struct module *m)
{
    for (const struct module_config *c = m->configs; c; c = c->next) {
        config_remove(&c->option);
    }
    configs_forget(m);
}

const struct api_function config_functions[] = {
    API(RegisterBoolConfig, rm_register_bool),
    API(RegisterNumericConfig, rm_register_numeric),
    API(RegisterStringConfig, rm_register_string),
    API(RegisterEnumConfig, rm_register_enum),
    API(LoadConfigs, rm_load),
    {NULL, NULL},
};
