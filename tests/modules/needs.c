/* A module that asks for functions by their names, and finds out what the server has:
 *
 *     NEEDS.LACKS         the functions of the interface that are not there
 *     NEEDS.HAS name      whether there is one of that name */
#include "keydbmodule.h"

#define NAME(returns, name, parameters) "RedisModule_" #name,
static const char *const names[] = {KEYDBMODULE_FUNCTIONS(NAME)};
#define NAMES (sizeof(names) / sizeof(names[0]))

typedef void (*function)(void);

static int needs_lacks(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    long count = 0;
    RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
    for (size_t i = 0; i < NAMES; i++) {
        function any = NULL;
        if (RedisModule_GetApi(names[i], (void *)&any) != REDISMODULE_OK) {
            RedisModule_ReplyWithCString(ctx, names[i]);
            count++;
        }
    }
    RedisModule_ReplySetArrayLength(ctx, count);
    return REDISMODULE_OK;
}

/* A name that there is not leaves the variable as it was. */
static int needs_has(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    function any = NULL;
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    int found = RedisModule_GetApi(RedisModule_StringPtrLen(argv[1], NULL), (void *)&any);
    return RedisModule_ReplyWithLongLong(ctx, found == REDISMODULE_OK && any    ? 1
                                              : found != REDISMODULE_OK && !any ? 0
                                                                                : -1);
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    if (RedisModule_Init(ctx, "needs", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    RedisModule_GetApi("RedisModule_OfAnotherDay", NULL);
    return RedisModule_CreateCommand(ctx, "needs.lacks", needs_lacks, "readonly", 0, 0, 0) ==
                       REDISMODULE_OK &&
                   RedisModule_CreateCommand(ctx, "needs.has", needs_has, "readonly", 0, 0, 0) ==
                       REDISMODULE_OK
               ? REDISMODULE_OK
               : REDISMODULE_ERR;
}
