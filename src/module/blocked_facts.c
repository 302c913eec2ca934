/* What modules ask about clients that they have blocked, and set there. Any thread, where a thread
 * may have the handle. */
#include "module/blocked_priv.h"

#include "base/clock.h"

static void *rm_get_data(RedisModuleBlockedClient *b)
{
    return b->private_data;
}

static void rm_set_data(RedisModuleBlockedClient *b, void *private_data)
{
    b->private_data = private_data;
}

static int rm_is_reply_request(RedisModuleCtx *ctx)
{
    return ctx->cause == BLOCKED_REPLY;
}

static int rm_is_timeout_request(RedisModuleCtx *ctx)
{
    return ctx->cause == BLOCKED_TIMEOUT;
}

static void *rm_get_context_data(RedisModuleCtx *ctx)
{
    return ctx->blocked ? ctx->blocked->private_data : NULL;
}

static RedisModuleString *rm_get_ready_key(RedisModuleCtx *ctx)
{
    return ctx->ready_key;
}

static RedisModuleBlockedClient *rm_get_handle(RedisModuleCtx *ctx)
{
    return ctx->blocked;
}

static int rm_is_disconnected(RedisModuleCtx *ctx)
{
    return ctx->blocked && ctx->blocked->gone;
}

static void rm_set_disconnect_callback(RedisModuleBlockedClient *b, RedisModuleDisconnectFunc f)
{
    b->disconnect_callback = f;
}

/* ---- the time that threads work for a client: one thread at a time ---- */

static int rm_measure_start(RedisModuleBlockedClient *b)
{
    b->measure_begin = clock_ticks();
    return REDISMODULE_OK;
}

static int rm_measure_end(RedisModuleBlockedClient *b)
{
    if (!b->measure_begin) {
        return REDISMODULE_ERR;
    }
    atomic_fetch_add(&b->measured_ticks, clock_ticks() - b->measure_begin);
    b->measure_begin = 0;
    return REDISMODULE_OK;
}

const struct api_function blocked_fact_functions[] = {
    API(BlockClientGetPrivateData, rm_get_data),
    API(BlockClientSetPrivateData, rm_set_data),
    API(GetBlockedClientReadyKey, rm_get_ready_key),
    API(IsBlockedReplyRequest, rm_is_reply_request),
    API(IsBlockedTimeoutRequest, rm_is_timeout_request),
    API(GetBlockedClientPrivateData, rm_get_context_data),
    API(GetBlockedClientHandle, rm_get_handle),
    API(BlockedClientMeasureTimeStart, rm_measure_start),
    API(BlockedClientMeasureTimeEnd, rm_measure_end),
    API(BlockedClientDisconnected, rm_is_disconnected),
    API(SetDisconnectCallback, rm_set_disconnect_callback),
    {NULL, NULL},
};
