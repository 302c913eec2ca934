/* GetContextFlags: how the server is, and who calls. */
#include "base/clock.h"
#include "engine/fork_child.h"
#include "engine/gate.h"
#include "engine/identity.h"
#include "keyspace/access.h"
#include "keyspace/evict.h"
#include "module/context.h"
#include "module/module.h"
#include "net/pause.h"
#include "persist/aof.h"
#include "persist/save.h"

/* The highest flag there is. */
#define LAST_FLAG REDISMODULE_CTX_FLAGS_SERVER_STARTUP
/* From so much of maxmemory on it is said to be near. */
#define NEAR_LIMIT_NUMERATOR 3
#define NEAR_LIMIT_DENOMINATOR 4

static bool (*link_is_up)(void);

void module_set_link(bool (*is_up)(void))
{
    link_is_up = is_up;
}

static int caller_flags(RedisModuleCtx *ctx)
{
    const struct session *s = ctx->session;
    int flags = 0;
    if (!s) {
        return 0;
    }
    flags |= s->script ? REDISMODULE_CTX_FLAGS_LUA : 0;
    flags |= s->execution || s->in_transaction ? REDISMODULE_CTX_FLAGS_MULTI : 0;
    flags |= s->proto == 3 ? REDISMODULE_CTX_FLAGS_RESP3 : 0;
    if (ctx->call && (ctx->call->nested || s->internal)) {
        flags |= REDISMODULE_CTX_FLAGS_DENY_BLOCKING;
    }
    if (s->internal && identity_is_replica() && !gate_is_loading()) {
        flags |= REDISMODULE_CTX_FLAGS_REPLICATED;
    }
    return flags;
}

static int role_flags(uint32_t shut)
{
    if (!identity_is_replica()) {
        return REDISMODULE_CTX_FLAGS_MASTER;
    }
    bool up = link_is_up && link_is_up();
    return REDISMODULE_CTX_FLAGS_SLAVE |
           (shut & GATE_READONLY ? REDISMODULE_CTX_FLAGS_READONLY : 0) |
           (up ? REDISMODULE_CTX_FLAGS_REPLICA_IS_ONLINE : REDISMODULE_CTX_FLAGS_REPLICA_IS_STALE);
}

static int memory_flags(void)
{
    int64_t limit = evict_limit_bytes;
    if (limit <= 0) {
        return 0;
    }
    uint64_t used = evict_counted_bytes();
    int flags = REDISMODULE_CTX_FLAGS_MAXMEMORY;
    flags |= access_policy() != POLICY_NOEVICTION ? REDISMODULE_CTX_FLAGS_EVICT : 0;
    flags |= used > (uint64_t)limit ? REDISMODULE_CTX_FLAGS_OOM : 0;
    flags |= used > (uint64_t)limit / NEAR_LIMIT_DENOMINATOR * NEAR_LIMIT_NUMERATOR
                 ? REDISMODULE_CTX_FLAGS_OOM_WARNING
                 : 0;
    return flags;
}

static int server_flags(uint32_t shut)
{
    int flags = 0;
    flags |= aof_is_enabled() ? REDISMODULE_CTX_FLAGS_AOF : 0;
    flags |= save_has_points() ? REDISMODULE_CTX_FLAGS_RDB : 0;
    flags |= shut & GATE_LOADING ? REDISMODULE_CTX_FLAGS_LOADING : 0;
    flags |= shut & GATE_LOADING_ASIDE ? REDISMODULE_CTX_FLAGS_ASYNC_LOADING : 0;
    flags |= save_has_child() || aof_has_child() || fork_child_module_runs()
                 ? REDISMODULE_CTX_FLAGS_ACTIVE_CHILD
                 : 0;
    flags |= fork_child_is_here() ? REDISMODULE_CTX_FLAGS_IS_CHILD : 0;
    flags |= module_is_startup() ? REDISMODULE_CTX_FLAGS_SERVER_STARTUP : 0;
    return flags;
}

static int rm_get_context_flags(RedisModuleCtx *ctx)
{
    uint32_t shut = atomic_load_explicit(&gate_word, memory_order_acquire);
    return (ctx ? caller_flags(ctx) : 0) | role_flags(shut) | memory_flags() | server_flags(shut);
}

static int rm_get_context_flags_all(void)
{
    return (LAST_FLAG << 1) - 1;
}

/* While writes are paused, what would make some had better wait. */
static int rm_avoid_replica_traffic(void)
{
    bool all;
    return pause_until_ms(&all) > clock_wall_ms();
}

const struct api_function context_flag_functions[] = {
    API(GetContextFlags, rm_get_context_flags),
    API(GetContextFlagsAll, rm_get_context_flags_all),
    API(AvoidReplicaTraffic, rm_avoid_replica_traffic),
    {NULL, NULL},
};
