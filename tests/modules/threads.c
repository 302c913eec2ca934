/* Threads of a module that call the server: many at once, each under the server's lock. */
#include "keydbmodule.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define THREADS_MAX 16

struct crowd {
    RedisModuleBlockedClient *client;
    RedisModuleString *key;
    long long rounds;
    atomic_int left;
    int tries; /* with TryLock */
};

static void take(RedisModuleCtx *ctx, const struct crowd *c)
{
    const struct timespec pause = {.tv_nsec = 100 * 1000};
    if (!c->tries) {
        RedisModule_ThreadSafeContextLock(ctx);
        return;
    }
    while (RedisModule_ThreadSafeContextTryLock(ctx) != REDISMODULE_OK) {
        nanosleep(&pause, NULL);
    }
}

/* Reads and writes in two calls: who is alone under the lock loses nothing. */
static void add_one(RedisModuleCtx *ctx, const struct crowd *c)
{
    RedisModuleCallReply *got = RedisModule_Call(ctx, "GET", "s", c->key);
    long long value = 0;
    if (RedisModule_CallReplyType(got) == REDISMODULE_REPLY_STRING) {
        RedisModuleString *text = RedisModule_CreateStringFromCallReply(got);
        RedisModule_StringToLongLong(text, &value);
        RedisModule_FreeString(ctx, text);
    }
    RedisModule_FreeCallReply(got);
    RedisModule_FreeCallReply(RedisModule_Call(ctx, "SET", "!sl", c->key, value + 1));
}

static void *run(void *argument)
{
    struct crowd *c = argument;
    RedisModuleCtx *ctx = RedisModule_GetThreadSafeContext(c->client);
    for (long long i = 0; i < c->rounds; i++) {
        take(ctx, c);
        add_one(ctx, c);
        RedisModule_ThreadSafeContextUnlock(ctx);
    }
    if (atomic_fetch_sub(&c->left, 1) == 1) { /* the last one answers */
        RedisModule_ThreadSafeContextLock(ctx);
        RedisModule_FreeString(ctx, c->key);
        RedisModule_ThreadSafeContextUnlock(ctx);
        RedisModule_ReplyWithSimpleString(ctx, "done");
        RedisModule_FreeThreadSafeContext(ctx);
        RedisModule_UnblockClient(c->client, NULL);
        free(c);
    } else {
        RedisModule_FreeThreadSafeContext(ctx);
    }
    return NULL;
}

/* TH.COUNT key threads rounds [TRY]: each thread adds one to the key, so many times. */
static int th_count(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long threads, rounds;
    if (argc < 4 || RedisModule_StringToLongLong(argv[2], &threads) != REDISMODULE_OK ||
        RedisModule_StringToLongLong(argv[3], &rounds) != REDISMODULE_OK || threads < 1 ||
        threads > THREADS_MAX) {
        return RedisModule_WrongArity(ctx);
    }
    struct crowd *c = malloc(sizeof(*c));
    RedisModule_RetainString(NULL, argv[1]);
    c->client = RedisModule_BlockClient(ctx, NULL, NULL, NULL, 0);
    c->key = argv[1];
    c->rounds = rounds;
    c->tries = argc > 4;
    atomic_init(&c->left, (int)threads);
    for (long long i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, c) != 0) {
            abort();
        }
        pthread_detach(thread);
    }
    return REDISMODULE_OK;
}

/* A thread without a client. */
static void *run_detached(void *argument)
{
    RedisModuleCtx *ctx = argument;
    RedisModule_AutoMemory(ctx);
    RedisModule_ThreadSafeContextLock(ctx);
    RedisModule_SelectDb(ctx, 1);
    RedisModule_Call(ctx, "RPUSH", "!cc", "detached", "one");
    RedisModule_Replicate(ctx, "RPUSH", "cc", "detached-told", "one");
    RedisModule_ThreadSafeContextUnlock(ctx);
    RedisModule_FreeThreadSafeContext(ctx);
    return NULL;
}

static int th_detach(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_detached,
                       RedisModule_GetDetachedThreadSafeContext(ctx)) != 0) {
        abort();
    }
    pthread_detach(thread);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    if (RedisModule_Init(ctx, "threads", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "th.count", th_count, "write", 1, 1, 1) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    return RedisModule_CreateCommand(ctx, "th.detach", th_detach, "write", 0, 0, 0);
}
