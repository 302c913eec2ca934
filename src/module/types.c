/* See types.h: types, and values of keys that modules open. */
#include "module/types.h"

#include "base/mem.h"
#include "engine/modules.h"
#include "keyspace/reclaim.h"
#include "module/digest.h"
#include "module/keys.h"
#include "module/text.h"

#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

/* Freeing it is so much work that it goes in the background wherever that is allowed: what a module
 * means that says 0. */
#define EFFORT_ALWAYS_LAZY SIZE_MAX

/* ---- calling methods ---- */

const char *type_enter(const RedisModuleType *t)
{
    const char *outer = modules_running;
    modules_running = t->module->name;
    return outer;
}

void type_leave(const char *outer)
{
    modules_running = outer;
}

static RedisModuleString *text_of_place(struct module_place at)
{
    return at.key.ptr ? text_create(at.key) : NULL;
}

static void end_places(struct RedisModuleKeyOptCtx *c)
{
    if (c->from_key) {
        text_release(c->from_key);
    }
    if (c->to_key) {
        text_release(c->to_key);
    }
}

void type_free_value(const RedisModuleType *t, void *value)
{
    const char *outer = type_enter(t);
    if (t->methods.free) {
        t->methods.free(value);
    }
    type_leave(outer);
}

/* In the background nothing is held, as modules know it from Redis; elsewhere their code is alone.
 */
static void destroy(const struct module_kind *k, void *value) NO_THREAD_SAFETY_ANALYSIS
{
    bool takes = !keyspace_is_exclusive() && !reclaim_is_background();
    if (takes) {
        keyspace_lock_exclusive();
    }
    type_free_value(type_of_kind(k), value);
    if (takes) {
        keyspace_unlock_exclusive();
    }
}

static void *copy(const struct module_kind *k, struct module_place from, struct module_place to,
                  const void *value)
{
    const RedisModuleType *t = type_of_kind(k);
    struct RedisModuleKeyOptCtx c = {.from = from, .to = to};
    const char *outer = type_enter(t);
    void *result;
    if (t->methods.copy2) {
        result = t->methods.copy2(&c, value);
    } else {
        c.from_key = text_of_place(from);
        c.to_key = text_of_place(to);
        result = t->methods.copy(c.from_key, c.to_key, value);
    }
    type_leave(outer);
    end_places(&c);
    return result;
}

/* Samples 0 are all, which modules are told by a great number. */
static size_t memory(const struct module_kind *k, struct module_place at, const void *value,
                     size_t samples)
{
    const RedisModuleType *t = type_of_kind(k);
    struct RedisModuleKeyOptCtx c = {.from = at, .to = {.db = -1}};
    const char *outer = type_enter(t);
    size_t bytes = t->methods.mem_usage2
                       ? t->methods.mem_usage2(&c, value, samples ? samples : (size_t)LLONG_MAX)
                   : t->methods.mem_usage ? t->methods.mem_usage(value)
                                          : 0;
    type_leave(outer);
    end_places(&c);
    return bytes;
}

static size_t free_effort(const struct module_kind *k, struct module_place at, const void *value)
{
    const RedisModuleType *t = type_of_kind(k);
    struct RedisModuleKeyOptCtx c = {.from = at, .to = {.db = -1}};
    const char *outer = type_enter(t);
    size_t effort = 1;
    if (t->methods.free_effort2) {
        effort = t->methods.free_effort2(&c, value);
    } else if (t->methods.free_effort) {
        c.from_key = text_of_place(at);
        effort = t->methods.free_effort(c.from_key, value);
    }
    type_leave(outer);
    end_places(&c);
    return effort ? effort : EFFORT_ALWAYS_LAZY;
}

static void unlink_value(const struct module_kind *k, struct module_place at, const void *value)
{
    const RedisModuleType *t = type_of_kind(k);
    struct RedisModuleKeyOptCtx c = {.from = at, .to = {.db = -1}};
    const char *outer = type_enter(t);
    if (t->methods.unlink2) {
        t->methods.unlink2(&c, value);
    } else if (t->methods.unlink) {
        c.from_key = text_of_place(at);
        t->methods.unlink(c.from_key, value);
    }
    type_leave(outer);
    end_places(&c);
}

const struct module_kind_ops type_kind_ops = {.destroy = destroy,
                                              .copy = copy,
                                              .memory = memory,
                                              .free_effort = free_effort,
                                              .unlink = unlink_value,
                                              .digest = digest_value};

/* ---- types ---- */

/* The methods of each version of the structure end where those of the next one begin. */
static const size_t methods_bytes[] = {
    0,
    offsetof(RedisModuleTypeMethods, aux_load),
    offsetof(RedisModuleTypeMethods, free_effort),
    offsetof(RedisModuleTypeMethods, mem_usage2),
    offsetof(RedisModuleTypeMethods, aux_save2),
    sizeof(RedisModuleTypeMethods),
};
static_assert(sizeof(methods_bytes) / sizeof(methods_bytes[0]) ==
                  REDISMODULE_TYPE_METHOD_VERSION + 1,
              "a size for each version");

/* A module that was compiled for a later version brings more than we know, which is left out. */
static RedisModuleTypeMethods methods_of(const RedisModuleTypeMethods *given)
{
    RedisModuleTypeMethods known = {0};
    uint64_t version = given->version < REDISMODULE_TYPE_METHOD_VERSION
                           ? given->version
                           : REDISMODULE_TYPE_METHOD_VERSION;
    memcpy(&known, given, methods_bytes[version]);
    return known;
}

static RedisModuleType *rm_create(RedisModuleCtx *ctx, const char *name, int version,
                                  RedisModuleTypeMethods *methods)
{
    keyspace_assert_exclusive();
    struct slice text = slice_cstr(name);
    uint64_t id = module_kind_id(text, version);
    bool taken = module_kind_find_name(text) != NULL;
    if (!ctx->module->loading || id == 0 || methods->version == 0 || taken) {
        loaded_note_fault(ctx->module, "the type of values", name,
                          taken ? loaded_is_taken : "cannot be: its name, encver or methods");
        return NULL;
    }
    RedisModuleType *t = mem_calloc(1, sizeof(*t));
    t->module = ctx->module;
    t->methods = methods_of(methods);
    t->kind.ops = &type_kind_ops;
    t->kind.id = id;
    memcpy(t->kind.name, name, MODULE_NAME_CHARS);
    t->kind.copies = t->methods.copy || t->methods.copy2;
    t->kind.unlinks = t->methods.unlink || t->methods.unlink2;
    module_kind_add(&t->kind);
    modules_have_types = true;
    return t;
}

static int rm_method_version(void)
{
    return REDISMODULE_TYPE_METHOD_VERSION;
}

/* One of the module's, or NULL. */
static RedisModuleType *find_of(const struct module *m)
{
    const struct module_kind *k = module_kind_first();
    while (k && type_of_kind(k)->module != m) {
        k = k->next;
    }
    return (RedisModuleType *)(void *)k;
}

bool types_are_there(const struct module *m)
{
    return find_of(m) != NULL;
}

bool types_withdraw(struct module *m)
{
    for (const struct module_kind *k = module_kind_first(); k; k = k->next) {
        if (type_of_kind(k)->module == m && k->values > 0) {
            return false;
        }
    }
    types_forget(m);
    return true;
}

void types_forget(const struct module *m)
{
    for (RedisModuleType *t = find_of(m); t; t = find_of(m)) {
        module_kind_remove(&t->kind);
        mem_free(t);
    }
}

/* ---- values of keys ---- */

static struct entry *value_of_key(RedisModuleKey *k) REQUIRES(keyspace_lock)
{
    struct entry *e = k ? key_look(k)->entry : NULL;
    return e && entry_type(e) == VALUE_MODULE ? e : NULL;
}

/* What was there goes with its expiry. */
static int rm_set_value(RedisModuleKey *k, RedisModuleType *t, void *value)
{
    keyspace_assert_exclusive();
    if (!key_is_writable(k) || k->walk) {
        return REDISMODULE_ERR;
    }
    struct keyref *ref = key_look(k);
    db_put(ref, module_value_create(k->key.name, &t->kind, value));
    return REDISMODULE_OK;
}

static int rm_replace_value(RedisModuleKey *k, RedisModuleType *t, void *value, void **old)
{
    keyspace_assert_exclusive();
    struct entry *e = key_is_writable(k) && !k->walk ? value_of_key(k) : NULL;
    if (!e || module_value_kind(e) != &t->kind) {
        return REDISMODULE_ERR;
    }
    void *before = module_value_exchange(e, value);
    if (old) {
        *old = before;
    }
    return REDISMODULE_OK;
}

static RedisModuleType *rm_get_type(RedisModuleKey *k)
{
    keyspace_assert_exclusive();
    const struct entry *e = value_of_key(k);
    return e ? (RedisModuleType *)(void *)module_value_kind(e) : NULL;
}

static void *rm_get_value(RedisModuleKey *k)
{
    keyspace_assert_exclusive();
    const struct entry *e = value_of_key(k);
    return e ? module_value_get(e) : NULL;
}

/* ---- what methods ask ---- */

static int rm_db_of(RedisModuleKeyOptCtx *c)
{
    return c->from.db;
}

static int rm_to_db_of(RedisModuleKeyOptCtx *c)
{
    return c->to.db;
}

static const RedisModuleString *rm_key_of(RedisModuleKeyOptCtx *c)
{
    if (!c->from_key) {
        c->from_key = text_of_place(c->from);
    }
    return c->from_key;
}

static const RedisModuleString *rm_to_key_of(RedisModuleKeyOptCtx *c)
{
    if (!c->to_key) {
        c->to_key = text_of_place(c->to);
    }
    return c->to_key;
}

const struct api_function type_functions[] = {
    API(CreateDataType, rm_create),
    API(GetTypeMethodVersion, rm_method_version),
    API(ModuleTypeSetValue, rm_set_value),
    API(ModuleTypeReplaceValue, rm_replace_value),
    API(ModuleTypeGetType, rm_get_type),
    API(ModuleTypeGetValue, rm_get_value),
    API(GetDbIdFromOptCtx, rm_db_of),
    API(GetToDbIdFromOptCtx, rm_to_db_of),
    API(GetKeyNameFromOptCtx, rm_key_of),
    API(GetToKeyNameFromOptCtx, rm_to_key_of),
    {NULL, NULL},
};
