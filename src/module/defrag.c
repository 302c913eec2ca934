/* Defragmentation, of which this server does none: its allocator gives pages back by itself, and
 * values are nowhere moved. So no callback of a module is ever called for it, as in a Redis whose
 * activedefrag is off, and there is no context in which the other functions could be called: they
 * say that nothing is to be moved. */
#include "module/context.h"

/* It would be called when all keys have been moved. */
static int rm_register(RedisModuleCtx *ctx, RedisModuleDefragFunc function)
{
    (void)ctx;
    (void)function;
    return REDISMODULE_OK;
}

/* Not moved. */
static void *rm_alloc(RedisModuleDefragCtx *ctx, void *ptr)
{
    (void)ctx;
    (void)ptr;
    return NULL;
}

static RedisModuleString *rm_string(RedisModuleDefragCtx *ctx, RedisModuleString *str)
{
    (void)ctx;
    (void)str;
    return NULL;
}

static int rm_should_stop(RedisModuleDefragCtx *ctx)
{
    (void)ctx;
    return 0;
}

static int rm_set_cursor(RedisModuleDefragCtx *ctx, unsigned long cursor)
{
    (void)ctx;
    (void)cursor;
    return REDISMODULE_ERR;
}

static int rm_get_cursor(RedisModuleDefragCtx *ctx, unsigned long *cursor)
{
    (void)ctx;
    (void)cursor;
    return REDISMODULE_ERR;
}

static int rm_db_of(RedisModuleDefragCtx *ctx)
{
    (void)ctx;
    return -1;
}

static const RedisModuleString *rm_key_of(RedisModuleDefragCtx *ctx)
{
    (void)ctx;
    return NULL;
}

const struct api_function defrag_functions[] = {
    API(RegisterDefragFunc, rm_register),
    API(DefragAlloc, rm_alloc),
    API(DefragRedisModuleString, rm_string),
    API(DefragShouldStop, rm_should_stop),
    API(DefragCursorSet, rm_set_cursor),
    API(DefragCursorGet, rm_get_cursor),
    API(GetDbIdFromDefragCtx, rm_db_of),
    API(GetKeyNameFromDefragCtx, rm_key_of),
    {NULL, NULL},
};
