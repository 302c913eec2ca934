/* What a module tells the logs and the replicas of what it has done. All that one command tells is
 * a unit, with what is called with the flag '!'. Nothing of a module's command is told by itself.
 */
#include "engine/propagate.h"
#include "module/context.h"
#include "module/words.h"

#include "base/stats.h"

/* Outside of a command (a timer) there is no call whose change it is. */
static void count_change(RedisModuleCtx *ctx)
{
    if (ctx->call && ctx->held == ACCESS_EXCLUSIVE) {
        ctx->call->dirty++;
    } else {
        stats_add(STAT_DIRTY, 1);
    }
}

static void tell(RedisModuleCtx *ctx, unsigned targets, int argc, const struct slice *argv)
    REQUIRES(keyspace_lock)
{
    struct call told = {.db = db_at(context_db(ctx))};
    unsigned aimed = propagate_aimed();
    count_change(ctx);
    if (!propagate_on) {
        return;
    }
    context_begin_unit(ctx);
    propagate_aim(aimed & targets);
    propagate_instead(&told, argc, argv);
    propagate_aim(aimed);
}

static int rm_replicate(RedisModuleCtx *ctx, const char *name, const char *format, ...)
{
    struct words w;
    va_list arguments;
    keyspace_assert_exclusive();
    if (!command_find(slice_cstr(name)) && !command_find_original(slice_cstr(name))) {
        return REDISMODULE_ERR;
    }
    va_start(arguments, format);
    bool fine = words_parse(&w, &ctx->pool, name, format, arguments);
    va_end(arguments);
    if (!fine) {
        return REDISMODULE_ERR;
    }
    unsigned targets = PROPAGATE_TO_ALL;
    if (w.flags & WORDS_NO_AOF) {
        targets &= ~PROPAGATE_TO_AOF;
    }
    if (w.flags & WORDS_NO_REPLICAS) {
        targets &= ~(PROPAGATE_TO_REPLICAS | PROPAGATE_TO_PEERS);
    }
    tell(ctx, targets, w.argc, w.argv);
    return REDISMODULE_OK;
}

/* The command as it came, by the name that every server knows. */
static int rm_replicate_verbatim(RedisModuleCtx *ctx)
{
    keyspace_assert_exclusive();
    struct call *c = ctx->call;
    if (c) {
        struct slice *words = arena_alloc(&ctx->pool, (size_t)c->argc * sizeof(*words));
        memcpy(words, c->argv, (size_t)c->argc * sizeof(*words));
        words[0] = command_word(c->cmd);
        tell(ctx, PROPAGATE_TO_ALL, c->argc, words);
    }
    return REDISMODULE_OK;
}

const struct api_function replicate_functions[] = {
    API(Replicate, rm_replicate),
    API(ReplicateVerbatim, rm_replicate_verbatim),
    {NULL, NULL},
};
