/* The selected database as a whole, for modules. */
#include "keyspace/db.h"
#include "module/context.h"
#include "module/text.h"

static unsigned long long rm_db_size(RedisModuleCtx *ctx)
{
    keyspace_assert_exclusive();
    return db_size(db_at(context_db(ctx)));
}

static RedisModuleString *rm_random_key(RedisModuleCtx *ctx)
{
    keyspace_assert_exclusive();
    const struct entry *e = db_random(db_at(context_db(ctx)), ctx->now_ms);
    return e ? text_give(ctx, text_create(entry_key(e))) : NULL;
}

const struct api_function dataset_functions[] = {
    API(DbSize, rm_db_size),
    API(RandomKey, rm_random_key),
    {NULL, NULL},
};
