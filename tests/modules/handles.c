/* Keys that stay open while the database changes, which Redis leaves undefined; and more of what
 * contexts look after than they have room for. */
#include "commands.h"

typedef RedisModuleString String;

static RedisModuleCtx *detached;
static RedisModuleKey *kept;

static void reply_look(RedisModuleCtx *ctx, RedisModuleKey *key)
{
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModule_ReplyWithLongLong(ctx, RedisModule_KeyType(key));
    RedisModule_ReplyWithLongLong(ctx, (long long)RedisModule_ValueLength(key));
}

/* H.BESIDE key command ...: what two handles say before the command, after it, and when one of them
 * has set the key. */
static int h_beside(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc < 3) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *reads = RedisModule_OpenKey(ctx, argv[1], REDISMODULE_READ);
    RedisModuleKey *writes =
        RedisModule_OpenKey(ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE);
    RedisModule_ReplyWithArray(ctx, 6);
    reply_look(ctx, reads);
    reply_look(ctx, writes);
    RedisModuleCallReply *reply = RedisModule_Call(ctx, RedisModule_StringPtrLen(argv[2], NULL),
                                                   "!v", argv + 3, (size_t)(argc - 3));
    if (reply) {
        RedisModule_FreeCallReply(reply);
    }
    reply_look(ctx, reads);
    reply_look(ctx, writes);
    RedisModule_StringSet(writes, argv[1]);
    reply_look(ctx, reads);
    reply_look(ctx, writes);
    RedisModule_CloseKey(reads);
    RedisModule_CloseKey(writes);
    return REDISMODULE_OK;
}

/* H.OPEN key keeps it open beyond the command; H.LOOK looks through that; H.CLOSE. */
static int h_open(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 2 || kept) {
        return RedisModule_ReplyWithError(ctx, "ERR H.OPEN key, once");
    }
    detached = RedisModule_GetDetachedThreadSafeContext(ctx);
    kept = RedisModule_OpenKey(detached, argv[1], REDISMODULE_READ | REDISMODULE_WRITE);
    reply_look(ctx, kept);
    return REDISMODULE_OK;
}

static int h_look(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    reply_look(ctx, kept);
    return REDISMODULE_OK;
}

static int h_close(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModule_CloseKey(kept);
    RedisModule_FreeThreadSafeContext(detached);
    kept = NULL;
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* H.MANY n: n strings that the context frees, in arrays within arrays whose lengths come later. */
static int h_many(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long n = 0;
    if (argc != 2 || RedisModule_StringToLongLong(argv[1], &n) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModule_AutoMemory(ctx);
    for (long long i = 0; i < n; i++) {
        RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
        String *text = RedisModule_CreateStringFromLongLong(ctx, i);
        RedisModule_ReplyWithString(ctx, text);
        if (i % 3 == 0) {
            RedisModule_FreeString(ctx, text);
        }
    }
    for (long long i = 0; i < n; i++) {
        RedisModule_ReplySetArrayLength(ctx, i == 0 ? 1 : 2);
    }
    return n > 0 ? REDISMODULE_OK : RedisModule_ReplyWithNull(ctx);
}

static const struct test_command commands[] = {
    {"h.beside", h_beside, NULL, 0}, {"h.open", h_open, NULL, 0}, {"h.look", h_look, NULL, 0},
    {"h.close", h_close, NULL, 0},   {"h.many", h_many, NULL, 0},
};

int RedisModule_OnLoad(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    if (RedisModule_Init(ctx, "handles", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    return CREATE_COMMANDS(ctx, commands, "write", 0);
}
