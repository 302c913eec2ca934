/* RDB files that modules write. A stream is a file's name. */
#include "base/log.h"
#include "base/mem.h"
#include "module/context.h"
#include "persist/rdb_file.h"

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

const struct api_function file_functions[] = {
    API(RdbStreamCreateFromFile, rm_create),
    API(RdbStreamFree, rm_free),
    API(RdbSave, rm_save),
    {NULL, NULL},
};
