/* Clients that a module blocks: by threads that answer, by keys that become ready, by hand. */
#include "keydbmodule.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define HELD_MAX 256

/* What has happened, for BL.COUNTS; all of it under the server's lock. */
static struct {
    long long freed, disconnected, timed_out, replied, freed_alone;
} counts;

static RedisModuleBlockedClient *held[HELD_MAX];
static int held_count;

struct work {
    RedisModuleBlockedClient *client;
    long long ms, number;
    int replies; /* by itself, instead of the callback */
};

static int wrong_arguments(RedisModuleCtx *ctx)
{
    return RedisModule_ReplyWithError(ctx, "ERR wrong arguments");
}

static void free_number(RedisModuleCtx *ctx, void *data)
{
    counts.freed++;
    counts.freed_alone += RedisModule_BlockedClientDisconnected(ctx);
    RedisModule_Free(data);
}

static int reply_number(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    const long long *number = RedisModule_GetBlockedClientPrivateData(ctx);
    counts.replied++;
    if (!RedisModule_IsBlockedReplyRequest(ctx) || RedisModule_IsBlockedTimeoutRequest(ctx)) {
        return RedisModule_ReplyWithError(ctx, "ERR not a reply request");
    }
    return number ? RedisModule_ReplyWithLongLong(ctx, *number) : RedisModule_ReplyWithNull(ctx);
}

static int reply_timeout(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    counts.timed_out++;
    return RedisModule_IsBlockedTimeoutRequest(ctx)
               ? RedisModule_ReplyWithSimpleString(ctx, "timed out")
               : RedisModule_ReplyWithError(ctx, "ERR not a timeout request");
}

static void note_disconnected(RedisModuleCtx *ctx, RedisModuleBlockedClient *client)
{
    (void)ctx;
    (void)client;
    counts.disconnected++;
}

static long long *number_of(long long n)
{
    long long *number = RedisModule_Alloc(sizeof(*number));
    *number = n;
    return number;
}

/* ---- threads ---- */

static void *run_work(void *argument)
{
    struct work *w = argument;
    RedisModule_BlockedClientMeasureTimeStart(w->client);
    usleep((useconds_t)w->ms * 1000);
    RedisModule_BlockedClientMeasureTimeEnd(w->client);
    if (w->replies) {
        RedisModuleCtx *ctx = RedisModule_GetThreadSafeContext(w->client);
        RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
        RedisModule_ReplyWithLongLong(ctx, w->number);
        RedisModule_ThreadSafeContextLock(ctx);
        RedisModuleCallReply *reply = RedisModule_Call(ctx, "INCRBY", "!cl", "bl:sum", w->number);
        RedisModule_ReplyWithCallReply(ctx, reply);
        RedisModule_FreeCallReply(reply);
        RedisModule_ThreadSafeContextUnlock(ctx);
        RedisModule_ReplySetArrayLength(ctx, 2);
        RedisModule_FreeThreadSafeContext(ctx);
    }
    RedisModule_UnblockClient(w->client, w->replies ? NULL : number_of(w->number));
    free(w);
    return NULL;
}

static int start_work(RedisModuleCtx *ctx, RedisModuleBlockedClient *client, long long ms,
                      long long number, int replies)
{
    pthread_t thread;
    struct work *w = malloc(sizeof(*w));
    *w = (struct work){client, ms, number, replies};
    if (pthread_create(&thread, NULL, run_work, w) != 0) {
        free(w);
        RedisModule_AbortBlock(client);
        return RedisModule_ReplyWithError(ctx, "ERR no thread");
    }
    pthread_detach(thread);
    return REDISMODULE_OK;
}

/* BL.WORK ms number timeout-ms: a thread unblocks the client with the number, after a while. */
static int bl_work(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long ms, number, timeout_ms;
    if (argc != 4 || RedisModule_StringToLongLong(argv[1], &ms) != REDISMODULE_OK ||
        RedisModule_StringToLongLong(argv[2], &number) != REDISMODULE_OK ||
        RedisModule_StringToLongLong(argv[3], &timeout_ms) != REDISMODULE_OK) {
        return wrong_arguments(ctx);
    }
    RedisModuleBlockedClient *client =
        RedisModule_BlockClient(ctx, reply_number, reply_timeout, free_number, timeout_ms);
    RedisModule_SetDisconnectCallback(client, note_disconnected);
    return start_work(ctx, client, ms, number, 0);
}

/* BL.ADD ms number: a thread adds the number to a key, and replies both by itself. */
static int bl_add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long ms, number;
    if (argc != 3 || RedisModule_StringToLongLong(argv[1], &ms) != REDISMODULE_OK ||
        RedisModule_StringToLongLong(argv[2], &number) != REDISMODULE_OK) {
        return wrong_arguments(ctx);
    }
    RedisModuleBlockedClient *client = RedisModule_BlockClient(ctx, NULL, NULL, NULL, 0);
    return start_work(ctx, client, ms, number, 1);
}

/* BL.MAYBE yes|no number: replies the number, from a thread if it is to wait. */
static int bl_maybe(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long number;
    if (argc != 3 || RedisModule_StringToLongLong(argv[2], &number) != REDISMODULE_OK) {
        return wrong_arguments(ctx);
    }
    if (strcasecmp(RedisModule_StringPtrLen(argv[1], NULL), "yes") != 0) {
        return RedisModule_ReplyWithLongLong(ctx, number);
    }
    RedisModuleBlockedClient *client =
        RedisModule_BlockClient(ctx, reply_number, reply_timeout, free_number, 0);
    RedisModule_SetDisconnectCallback(client, note_disconnected);
    return start_work(ctx, client, 1, number, 0);
}

/* BL.ABORT: is not blocked after all. */
static int bl_abort(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModuleBlockedClient *client =
        RedisModule_BlockClient(ctx, reply_number, reply_timeout, free_number, 0);
    RedisModule_AbortBlock(client);
    return RedisModule_ReplyWithSimpleString(ctx, "aborted");
}

/* BL.REGRET: is unblocked, and then was never blocked. */
static int bl_regret(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModuleBlockedClient *client =
        RedisModule_BlockClient(ctx, reply_number, reply_timeout, free_number, 0);
    RedisModule_UnblockClient(client, number_of(1));
    RedisModule_AbortBlock(client);
    return RedisModule_ReplyWithSimpleString(ctx, "regretted");
}

/* ---- by hand ---- */

/* BL.HOLD timeout-ms; BL.LET number: all who are held are replied the number. */
static int bl_hold(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long timeout_ms;
    if (argc != 2 || RedisModule_StringToLongLong(argv[1], &timeout_ms) != REDISMODULE_OK ||
        held_count == HELD_MAX) {
        return wrong_arguments(ctx);
    }
    RedisModuleBlockedClient *client =
        RedisModule_BlockClient(ctx, reply_number, reply_timeout, free_number, timeout_ms);
    RedisModule_SetDisconnectCallback(client, note_disconnected);
    held[held_count++] = client;
    return REDISMODULE_OK;
}

static int bl_let(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long number;
    if (argc != 2 || RedisModule_StringToLongLong(argv[1], &number) != REDISMODULE_OK) {
        return wrong_arguments(ctx);
    }
    int count = held_count;
    while (held_count > 0) {
        RedisModule_UnblockClient(held[--held_count], number_of(number));
    }
    return RedisModule_ReplyWithLongLong(ctx, count);
}

static int bl_counts(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModule_ReplyWithArray(ctx, 5);
    RedisModule_ReplyWithLongLong(ctx, counts.freed);
    RedisModule_ReplyWithLongLong(ctx, counts.disconnected);
    RedisModule_ReplyWithLongLong(ctx, counts.timed_out);
    RedisModule_ReplyWithLongLong(ctx, counts.replied);
    return RedisModule_ReplyWithLongLong(ctx, counts.freed_alone);
}

/* ---- long commands ---- */

static atomic_int ended;

/* BL.SPIN [text]: until BL.END, which may run beside it. Replies what it was told to say. */
static int bl_spin(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    const char *text = argc > 1 ? RedisModule_StringPtrLen(argv[1], NULL) : NULL;
    atomic_store(&ended, 0);
    while (!atomic_load(&ended)) {
        RedisModule_Yield(ctx, REDISMODULE_YIELD_FLAG_CLIENTS, text);
        usleep(200);
    }
    return RedisModule_ReplyWithSimpleString(ctx, "over");
}

static int bl_end(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    atomic_store(&ended, 1);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* ---- by keys ---- */

/* Pops from the list that is ready, if it is one and long enough. */
static int reply_pop(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    const long long *least = RedisModule_GetBlockedClientPrivateData(ctx);
    RedisModuleString *name = RedisModule_GetBlockedClientReadyKey(ctx);
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ);
    int fits = key && RedisModule_KeyType(key) == REDISMODULE_KEYTYPE_LIST &&
               (long long)RedisModule_ValueLength(key) >= *least;
    RedisModule_CloseKey(key);
    (void)argv;
    (void)argc;
    if (!fits) {
        return REDISMODULE_ERR;
    }
    RedisModuleCallReply *reply = RedisModule_Call(ctx, "LPOP", "!s", name);
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModule_ReplyWithString(ctx, name);
    RedisModule_ReplyWithCallReply(ctx, reply);
    RedisModule_FreeCallReply(reply);
    return REDISMODULE_OK;
}

static RedisModuleBlockedClient *popping; /* who has called BL.POP last */

static void *drop(void *client)
{
    RedisModule_UnblockClient(client, NULL);
    return NULL;
}

/* BL.DROP [thread]: ends that one's wait, here or in a thread of its own. */
static int bl_drop(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    pthread_t thread;
    (void)argv;
    if (argc == 1) {
        drop(popping);
    } else if (pthread_create(&thread, NULL, drop, popping) == 0) {
        pthread_detach(thread);
    }
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* BL.POP least timeout-ms key ...: an element of the first list that has so many. */
static int bl_pop(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long least, timeout_ms;
    if (argc < 4 || RedisModule_StringToLongLong(argv[1], &least) != REDISMODULE_OK ||
        RedisModule_StringToLongLong(argv[2], &timeout_ms) != REDISMODULE_OK) {
        return wrong_arguments(ctx);
    }
    popping = RedisModule_BlockClientOnKeys(ctx, reply_pop, reply_timeout, free_number, timeout_ms,
                                            argv + 3, argc - 3, number_of(least));
    return REDISMODULE_OK;
}

/* BL.SIGNAL key */
static int bl_signal(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModule_SignalKeyAsReady(ctx, argv[1]);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

static int create(RedisModuleCtx *ctx, const char *name, RedisModuleCmdFunc function,
                  const char *flags, int first, int last)
{
    return RedisModule_CreateCommand(ctx, name, function, flags, first, last, first ? 1 : 0);
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    if (RedisModule_Init(ctx, "blocking", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK ||
        create(ctx, "bl.work", bl_work, "", 0, 0) != REDISMODULE_OK ||
        create(ctx, "bl.add", bl_add, "write", 0, 0) != REDISMODULE_OK ||
        create(ctx, "bl.maybe", bl_maybe, "", 0, 0) != REDISMODULE_OK ||
        create(ctx, "bl.abort", bl_abort, "", 0, 0) != REDISMODULE_OK ||
        create(ctx, "bl.regret", bl_regret, "", 0, 0) != REDISMODULE_OK ||
        create(ctx, "bl.drop", bl_drop, "", 0, 0) != REDISMODULE_OK ||
        create(ctx, "bl.spin", bl_spin, "", 0, 0) != REDISMODULE_OK ||
        create(ctx, "bl.end", bl_end, "allow-busy", 0, 0) != REDISMODULE_OK ||
        create(ctx, "bl.hold", bl_hold, "", 0, 0) != REDISMODULE_OK ||
        create(ctx, "bl.let", bl_let, "", 0, 0) != REDISMODULE_OK ||
        create(ctx, "bl.counts", bl_counts, "", 0, 0) != REDISMODULE_OK ||
        create(ctx, "bl.pop", bl_pop, "write", 3, -1) != REDISMODULE_OK ||
        create(ctx, "bl.signal", bl_signal, "write", 1, 1) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    return REDISMODULE_OK;
}

int RedisModule_OnUnload(RedisModuleCtx *ctx)
{
    (void)ctx;
    return REDISMODULE_OK;
}
