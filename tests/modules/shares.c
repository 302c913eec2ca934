/* Modules that offer one another functions. Its first argument is its name, so that it can be
 * loaded under several; "gives" exports a function, "takes" uses the one of another module. */
#include "keydbmodule.h"

#include <string.h>

typedef long long (*twice_function)(long long);

static long long twice(long long n)
{
    return 2 * n;
}

static int shares_twice(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long n;
    if (argc != 2 || RedisModule_StringToLongLong(argv[1], &n) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    twice_function function = (twice_function)RedisModule_GetSharedAPI(ctx, "shares.twice");
    return function ? RedisModule_ReplyWithLongLong(ctx, function(n))
                    : RedisModule_ReplyWithError(ctx, "ERR nobody offers it");
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    /* The functions are fetched under a name that is not the module's yet: the first word tells it.
     */
    int (*get_api)(const char *, void *) = *(int (**)(const char *, void *))ctx;
    get_api("RedisModule_StringPtrLen", (void *)&RedisModule_StringPtrLen);
    const char *name = argc > 0 ? RedisModule_StringPtrLen(argv[0], NULL) : "gives";
    if (RedisModule_Init(ctx, name, 1, REDISMODULE_APIVER_1) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    if (strcmp(name, "gives") == 0) {
        return RedisModule_ExportSharedAPI(ctx, "shares.twice", (void *)twice);
    }
    return RedisModule_CreateCommand(ctx, "shares.twice", shares_twice, "readonly", 0, 0, 0);
}
