/* RDB files that modules write and read. A stream is a file's name.
 *
 * A file that is read takes the place of the whole data set, or changes nothing. It is another
 * history then: replicas are cut off and fetch everything, the append-only file begins anew. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "engine/busy.h"
#include "engine/gate.h"
#include "engine/identity.h"
#include "engine/tracking.h"
#include "keyspace/watching.h"
#include "module/module.h"
#include "module/world.h"
#include "persist/aof.h"
#include "persist/dots.h"
#include "persist/kept.h"
#include "persist/rdb_file.h"
#include "persist/save.h"

#include <errno.h>
#include <string.h>

struct RedisModuleRdbStream {
    char *name; /* owned */
};

static RedisModuleRdbStream *rm_create(const char *name)
{
    RedisModuleRdbStream *s = mem_alloc(sizeof(*s));
    s->name = mem_dup(name, strlen(name));
    return s;
}

static void rm_free(RedisModuleRdbStream *s)
{
    mem_free(s->name);
    mem_free(s);
}

/* All databases, as SAVE writes them; errno says why not. */
static int rm_save(RedisModuleCtx *ctx, RedisModuleRdbStream *s, int flags)
{
    keyspace_assert_exclusive();
    if (!s || flags != 0) {
        errno = EINVAL;
        return REDISMODULE_ERR;
    }
    int error = rdb_file_save(s->name, ctx->now_ms);
    if (error) {
        log_warning("Module %s cannot save into %s: %s", ctx->module->name, s->name,
                    strerror(error));
    }
    errno = error;
    return error ? REDISMODULE_ERR : REDISMODULE_OK;
}

/* ---- reading ---- */

static void (*begin_history)(void);

void module_set_history(void (*begin)(void))
{
    begin_history = begin;
}

struct loading {
    const char *name;
    int error; /* an errno; 0: it is loaded */
};

/* Who watches keys, or keeps some, is told that all have changed. */
static void tell_flushed(void)
{
    keyspace_lock_exclusive();
    for (int i = 0; i < db_count(); i++) {
        watching_before_flush(db_at(i));
    }
    tracking_flushed();
    keyspace_unlock_exclusive();
}

static int load_file(const char *name)
{
    struct rdb_file_loaded loaded;
    enum rdb_file_load result = rdb_file_load(name, clock_wall_ms(), &loaded);
    if (result == RDB_FILE_BAD) {
        log_warning("A module cannot load %s: %s", name, loaded.error);
    }
    stats_add(STAT_DIRTY, result == RDB_FILE_FINE ? loaded.keys + 1 : 0);
    return result == RDB_FILE_FINE ? 0 : result == RDB_FILE_MISSING ? ENOENT : EIO;
}

/* The world stands. */
static void load_instead(void *context) NO_THREAD_SAFETY_ANALYSIS
{
    struct loading *l = context;
    gil_assert_world();
    if (!kept_may_begin()) { /* a primary's data set comes */
        l->error = EBUSY;
        return;
    }
    tell_flushed();
    save_abandon();
    aof_halt();
    kept_begin();
    l->error = load_file(l->name);
    if (l->error) {
        kept_restore();
    } else {
        kept_drop();
        begin_history();
    }
    aof_begin_anew();
}

/* A replica has its primary's data, an active replica its peers'. */
static int rm_load(RedisModuleCtx *ctx, RedisModuleRdbStream *s, int flags)
{
    keyspace_assert_exclusive();
    if (!s || flags != 0) {
        errno = EINVAL;
        return REDISMODULE_ERR;
    }
    struct loading loading = {.name = s->name};
    if (busy_has_function()) {
        log_warning("A module cannot load %s while a function runs: libraries of functions are a "
                    "part of what is loaded",
                    s->name);
        errno = ENOTSUP;
        return REDISMODULE_ERR;
    }
    if (identity_is_replica() || dots_wanted || gate_is_loading() || module_is_startup() ||
        !world_run(ctx, load_instead, &loading)) {
        loading.error = ENOTSUP;
    }
    errno = loading.error;
    return loading.error ? REDISMODULE_ERR : REDISMODULE_OK;
}

const struct api_function file_functions[] = {
    API(RdbStreamCreateFromFile, rm_create),
    API(RdbStreamFree, rm_free),
    API(RdbSave, rm_save),
    API(RdbLoad, rm_load),
    {NULL, NULL},
};
