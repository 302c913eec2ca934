/* See world.h. */
#include "module/world.h"

#include "keyspace/waiting.h"
#include "module/run.h"

/* The call is of an EXEC or of another call, which sees to waiters. */
static bool is_amid(const RedisModuleCtx *ctx)
{
    return ctx->call && ctx->call->nested;
}

static bool stands(const RedisModuleCtx *ctx)
{
    return ctx->held == ACCESS_WORLD;
}

/* Nothing that is others' may be in the unit, and nobody who waits for a key is kept from it. */
static bool is_to_be_had(const RedisModuleCtx *ctx)
{
    bool within = ctx->held == ACCESS_NONE; /* another command, which has the lock */
    return stands(ctx) || (!within && (ctx->call || ctx->alone) && !is_amid(ctx));
}

static void run_standing(const RedisModuleCtx *ctx, void (*work)(void *data),
                         void *data) NO_THREAD_SAFETY_ANALYSIS
{
    bool defers = !is_amid(ctx);
    if (defers) {
        waiting_defer(true);
    }
    keyspace_unlock_exclusive();
    work(data);
    keyspace_lock_exclusive();
    if (defers) {
        waiting_defer(false);
    }
}

static void run(RedisModuleCtx *ctx, void (*work)(void *data), void *data) NO_THREAD_SAFETY_ANALYSIS
{
    if (stands(ctx)) {
        run_standing(ctx, work, data);
        return;
    }
    context_end_unit(ctx);
    keyspace_unlock_exclusive();
    gil_stop_world();
    work(data);
    keyspace_lock_exclusive();
    gil_keep_awake();
}

struct marked {
    const struct command *cmd;
    void (*work)(void *data);
    void *data;
};

static void run_marked(void *marked)
{
    const struct marked *m = marked;
    run_want_world(m->cmd);
    m->work(m->data);
}

bool world_run(RedisModuleCtx *ctx, void (*work)(void *data), void *data)
{
    if (!is_to_be_had(ctx)) {
        if (is_amid(ctx)) {
            run_note_refused(ctx->call->cmd);
        }
        return false;
    }
    if (ctx->call) {
        struct marked m = {ctx->call->cmd, work, data};
        run(ctx, run_marked, &m);
    } else {
        run(ctx, work, data);
    }
    return true;
}

bool world_run_last(RedisModuleCtx *ctx, void (*work)(void *data), void *data)
{
    if (is_amid(ctx) || !is_to_be_had(ctx)) {
        return false;
    }
    run(ctx, work, data);
    return true;
}
