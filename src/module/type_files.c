/* Types' methods, called: by files and payloads (persist/rdb_module.h), and by modules themselves,
 * which may have a value written into a string. See type_io.h. */
#include "base/log.h"
#include "module/text.h"
#include "module/type_io.h"

#include <assert.h>

bool io_save(const RedisModuleType *t, struct module_place at, void *value, struct rdb_writer *w)
{
    RedisModuleIO io = {.w = w};
    io_begin(&io, t, at);
    t->methods.rdb_save(&io, value);
    io_end(&io);
    return !io.failed;
}

/* What it left unread of a whole value would be lost. */
void *io_load(const RedisModuleType *t, int version, struct module_place at, struct slice items,
              bool whole)
{
    struct rdb_reader r;
    rdb_reader_init(&r, items);
    RedisModuleIO io = {.r = &r};
    io_begin(&io, t, at);
    void *value = t->methods.rdb_load(&io, version);
    io_end(&io);
    if (value && (io.failed || (whole && rdb_left(&r) > 0))) {
        log_warning("Module '%s' has not read a value of its type '%s' as it is", t->module->name,
                    t->kind.name);
        type_free_value(t, value);
        value = NULL;
    }
    rdb_reader_deinit(&r);
    return value;
}

/* ---- for files ---- */

/* Takes the keyspace lock, unless the caller has it. */
static bool enter(void) NO_THREAD_SAFETY_ANALYSIS
{
    bool takes = !keyspace_is_exclusive();
    if (takes) {
        keyspace_lock_exclusive();
    }
    return takes;
}

static void leave(bool taken) NO_THREAD_SAFETY_ANALYSIS
{
    if (taken) {
        keyspace_unlock_exclusive();
    }
}

static void save(const struct module_kind *k, struct module_place at, void *value,
                 struct rdb_writer *w)
{
    (void)io_save(type_of_kind(k), at, value, w); /* the writer knows its fault */
}

static bool load(const struct module_kind *k, int version, struct module_place at,
                 struct slice items, void **value)
{
    const RedisModuleType *t = type_of_kind(k);
    bool taken = enter();
    *value = t->methods.rdb_load ? io_load(t, version, at, items, true) : NULL;
    leave(taken);
    return *value != NULL;
}

static const struct module_place nowhere = {.db = -1};

/* aux_save writes whatever it writes, aux_save2 perhaps nothing. */
static bool save_aux(const struct module_kind *k, enum rdb_module_when when, struct rdb_writer *w)
{
    const RedisModuleType *t = type_of_kind(k);
    RedisModuleTypeAuxSaveFunc method =
        t->methods.aux_save2 ? t->methods.aux_save2 : t->methods.aux_save;
    if (!method || !(t->methods.aux_save_triggers & (int)when)) {
        return false;
    }
    RedisModuleIO io = {.w = w};
    io_begin(&io, t, nowhere);
    method(&io, (int)when);
    io_end(&io);
    return !t->methods.aux_save2 || w->out.len > 0;
}

static bool has_aux(const struct module_kind *k)
{
    const RedisModuleTypeMethods *m = &type_of_kind(k)->methods;
    return (m->aux_save || m->aux_save2) && m->aux_save_triggers;
}

/* Data that a module does not want would be lost with the next save: it must be able to read what
 * it, or another version of it, has written. */
static bool load_aux(const struct module_kind *k, int version, enum rdb_module_when when,
                     struct slice items)
{
    const RedisModuleType *t = type_of_kind(k);
    if (!t->methods.aux_load) {
        return false;
    }
    struct rdb_reader r;
    rdb_reader_init(&r, items);
    RedisModuleIO io = {.r = &r};
    bool taken = enter();
    io_begin(&io, t, nowhere);
    bool ok = t->methods.aux_load(&io, version, (int)when) == REDISMODULE_OK && !io.failed &&
              rdb_left(&r) == 0;
    io_end(&io);
    leave(taken);
    rdb_reader_deinit(&r);
    return ok;
}

static enum rdb_module_emitted emit(const struct module_kind *k, struct module_place at,
                                    void *value, rdb_module_put put, void *context)
{
    const RedisModuleType *t = type_of_kind(k);
    if (!t->methods.aof_rewrite) {
        return RDB_MODULE_HAS_NO_WAY;
    }
    RedisModuleIO io = {.put = put, .put_context = context};
    RedisModuleString *key = text_create(at.key);
    io_begin(&io, t, at);
    t->methods.aof_rewrite(&io, key, value);
    io_end(&io);
    text_release(key);
    return io.failed ? RDB_MODULE_FAILED : RDB_MODULE_EMITTED;
}

static const struct rdb_module_ops ops = {.save = save,
                                          .load = load,
                                          .save_aux = save_aux,
                                          .load_aux = load_aux,
                                          .has_aux = has_aux,
                                          .emit = emit};

void io_setup(void)
{
    rdb_module_set_ops(&ops);
}

void io_teardown(void)
{
    rdb_module_set_ops(NULL);
}

/* ---- for modules ---- */

static void *rm_load_from_string_version(const RedisModuleString *s, const RedisModuleType *t,
                                         int version)
{
    keyspace_assert_exclusive();
    return io_load(t, version, nowhere, text_slice(s), false);
}

static void *rm_load_from_string(const RedisModuleString *s, const RedisModuleType *t)
{
    return rm_load_from_string_version(s, t, 0);
}

/* Also in a child, where nothing is held. */
static RedisModuleString *rm_save_to_string(RedisModuleCtx *ctx, void *value,
                                            const RedisModuleType *t)
{
    struct rdb_writer w;
    rdb_writer_init(&w, -1, true, false);
    bool ok = io_save(t, nowhere, value, &w);
    RedisModuleString *s = ok ? text_give(ctx, text_create(buf_slice(&w.out))) : NULL;
    rdb_writer_deinit(&w);
    return s;
}

const struct api_function type_string_functions[] = {
    API(LoadDataTypeFromString, rm_load_from_string),
    API(LoadDataTypeFromStringEncver, rm_load_from_string_version),
    API(SaveDataTypeToString, rm_save_to_string),
    {NULL, NULL},
};
