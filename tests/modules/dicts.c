/* A dictionary of a module, that its commands reach: DICT.DO operation [key [value]] replies what
 * each function returns. */
#include "keydbmodule.h"

#include <string.h>
#include <strings.h>

static RedisModuleDict *dict;

static int is_word(const RedisModuleString *s, const char *word)
{
    return strcasecmp(RedisModule_StringPtrLen(s, NULL), word) == 0;
}

/* DICT.WALK operator key direction count [compare operator key]: keys and values from there on, and
 * for each whether it compares so. */
static int dict_walk(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long count;
    if (argc != 7 || RedisModule_StringToLongLong(argv[4], &count) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModule_AutoMemory(ctx);
    const char *word = RedisModule_StringPtrLen(argv[1], NULL);
    const char *compare = RedisModule_StringPtrLen(argv[5], NULL);
    RedisModuleDictIter *i = RedisModule_DictIteratorStart(dict, word, argv[2]);
    RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
    long replied = 1;
    RedisModule_ReplyWithLongLong(ctx, RedisModule_DictIteratorReseek(i, word, argv[2]));
    for (long long n = 0; n < count; n++) {
        void *value = NULL;
        RedisModuleString *key = is_word(argv[3], "next") ? RedisModule_DictNext(ctx, i, &value)
                                                          : RedisModule_DictPrev(ctx, i, &value);
        if (!key) {
            break;
        }
        RedisModule_ReplyWithString(ctx, key);
        RedisModule_ReplyWithLongLong(ctx, (long long)(intptr_t)value);
        RedisModule_ReplyWithLongLong(ctx, RedisModule_DictCompare(i, compare, argv[6]));
        replied += 3;
    }
    RedisModule_DictIteratorStop(i);
    RedisModule_ReplySetArrayLength(ctx, replied);
    return REDISMODULE_OK;
}

static int dict_do(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long number = 0;
    void *old = NULL;
    int missing = -1, result = -1;
    if (argc != 4 || RedisModule_StringToLongLong(argv[3], &number) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    void *value = (void *)(intptr_t)number;
    if (is_word(argv[1], "set")) {
        result = RedisModule_DictSet(dict, argv[2], value);
    } else if (is_word(argv[1], "replace")) {
        result = RedisModule_DictReplace(dict, argv[2], value);
    } else if (is_word(argv[1], "get")) {
        old = RedisModule_DictGet(dict, argv[2], &missing);
    } else if (is_word(argv[1], "del")) {
        result = RedisModule_DictDel(dict, argv[2], &old);
    }
    RedisModule_ReplyWithArray(ctx, 4);
    RedisModule_ReplyWithLongLong(ctx, result);
    RedisModule_ReplyWithLongLong(ctx, (long long)(intptr_t)old);
    RedisModule_ReplyWithLongLong(ctx, missing);
    RedisModule_ReplyWithLongLong(ctx, (long long)RedisModule_DictSize(dict));
    return REDISMODULE_OK;
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    if (RedisModule_Init(ctx, "dicts", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "dict.do", dict_do, "", 0, 0, 0) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "dict.walk", dict_walk, "", 0, 0, 0) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    dict = RedisModule_CreateDict(NULL);
    return REDISMODULE_OK;
}

int RedisModule_OnUnload(RedisModuleCtx *ctx)
{
    RedisModule_FreeDict(ctx, dict);
    return REDISMODULE_OK;
}
