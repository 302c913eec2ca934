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

static void *run_crowd(void *argument)
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
        if (pthread_create(&thread, NULL, run_crowd, c) != 0) {
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

/* ---- calls of a thread that need all others to stand still, and long ones ---- */

struct task {
    RedisModuleBlockedClient *client;
    void (*run)(RedisModuleCtx *ctx);
};

static void *run_task(void *argument)
{
    struct task *t = argument;
    RedisModuleCtx *ctx = RedisModule_GetThreadSafeContext(t->client);
    RedisModule_ThreadSafeContextLock(ctx);
    t->run(ctx);
    RedisModule_ThreadSafeContextUnlock(ctx);
    RedisModule_FreeThreadSafeContext(ctx);
    RedisModule_UnblockClient(t->client, NULL);
    free(t);
    return NULL;
}

static int start_task(RedisModuleCtx *ctx, void (*run)(RedisModuleCtx *ctx))
{
    pthread_t thread;
    struct task *t = malloc(sizeof(*t));
    *t = (struct task){RedisModule_BlockClient(ctx, NULL, NULL, NULL, 0), run};
    if (pthread_create(&thread, NULL, run_task, t) != 0) {
        abort();
    }
    pthread_detach(thread);
    return REDISMODULE_OK;
}

static void configure(RedisModuleCtx *ctx)
{
    RedisModuleCallReply *set =
        RedisModule_Call(ctx, "CONFIG", "ccl", "SET", "maxmemory-samples", (long long)9);
    RedisModuleCallReply *got = RedisModule_Call(ctx, "CONFIG", "cc", "GET", "maxmemory-samples");
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModule_ReplyWithCallReply(ctx, set);
    RedisModule_ReplyWithCallReply(ctx, got);
    RedisModule_FreeCallReply(set);
    RedisModule_FreeCallReply(got);
}

/* TH.CONFIG */
static int th_config(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    return start_task(ctx, configure);
}

static atomic_int ended;

static void spin(RedisModuleCtx *ctx)
{
    const struct timespec pause = {.tv_nsec = 200 * 1000};
    while (!atomic_load(&ended)) {
        RedisModule_Yield(ctx, REDISMODULE_YIELD_FLAG_CLIENTS, "a thread spins");
        nanosleep(&pause, NULL);
    }
    RedisModule_ReplyWithSimpleString(ctx, "over");
}

/* TH.SPIN: a thread keeps the lock until TH.END, and yields. */
static int th_spin(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    atomic_store(&ended, 0);
    return start_task(ctx, spin);
}

static int th_end(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    atomic_store(&ended, 1);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    if (RedisModule_Init(ctx, "threads", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "th.config", th_config, "", 0, 0, 0) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "th.spin", th_spin, "", 0, 0, 0) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "th.end", th_end, "allow-busy", 0, 0, 0) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "th.count", th_count, "write", 1, 1, 1) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    return RedisModule_CreateCommand(ctx, "th.detach", th_detach, "write", 0, 0, 0);
}
