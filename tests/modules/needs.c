/* A module that asks for functions by the names that it is given, and finds out what the server
 * has. Its first argument says what OnLoad does then:
 *
 *     list                NEEDS.LACKS tells which of the interface are not there
 *     call NAME           calls the function, there or not
 *     refuse NAME         returns REDISMODULE_ERR
 *     abort NAME          gives up
 */
#include "keydbmodule.h"

#include <string.h>

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

static function needed;

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (RedisModule_Init(ctx, "needs", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK || argc < 1 ||
        RedisModule_CreateCommand(ctx, "needs.lacks", needs_lacks, "readonly", 0, 0, 0) !=
            REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    const char *what = RedisModule_StringPtrLen(argv[0], NULL);
    if (argc > 1) {
        RedisModule_GetApi(RedisModule_StringPtrLen(argv[1], NULL), (void *)&needed);
    }
    if (strcmp(what, "call") == 0) {
        needed();
    } else if (strcmp(what, "abort") == 0) {
        abort();
    }
    return strcmp(what, "refuse") == 0 ? REDISMODULE_ERR : REDISMODULE_OK;
}
