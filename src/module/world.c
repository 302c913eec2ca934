/* See world.h. */
#include "module/world.h"

#include "keyspace/waiting.h"
#include "module/run.h"

/* Nothing that is others' may be in the unit, and nobody who waits for a key is kept from it. */
bool world_run(RedisModuleCtx *ctx, void (*work)(void *data), void *data) NO_THREAD_SAFETY_ANALYSIS
{
    bool stands = ctx->held == ACCESS_WORLD;
    bool amid = ctx->call && ctx->call->nested; /* of an EXEC or a call, which sees to waiters */
    bool within = ctx->held == ACCESS_NONE;     /* another command, which has the lock */
    if (within || (!stands && ((!ctx->call && !ctx->alone) || amid))) {
        if (amid) {
            run_note_refused(ctx->call->cmd);
        }
        return false;
    }
    if (!stands) {
        context_end_unit(ctx);
    } else if (!amid) {
        waiting_defer(true);
    }
    keyspace_unlock_exclusive();
    if (!stands) {
        gil_stop_world();
    }
    if (ctx->call) {
        run_want_world(ctx->call->cmd);
    }
    work(data);
    if (!stands) {
        gil_resume_world();
    }
    keyspace_lock_exclusive();
    if (stands && !amid) {
        waiting_defer(false);
    }
    return true;
}
