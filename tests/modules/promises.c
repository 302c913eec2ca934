/* Calls that wait (RedisModule_Call with K), for tests. What is asked for is called with the flags
 * that the first argument of each command gives ("-" for none), K among them.
 *
 *   PR.CALL flags word ...        the client gets the reply, whenever it comes
 *   PR.THEN flags key word ...    the reply is pushed to the key, with "!", when it comes; at once:
 *                                 "waits", or the reply
 *   PR.LOOP flags times word ...  when it has waited the handler makes the same call again
 *   PR.DROP flags word ...        nobody asks for the reply
 *   PR.ABORT                      aborts what PR.THEN and PR.LOOP wait for; replies the results
 *   PR.COUNTS                     handlers called, calls that wait, aborts of its own promise that
 *                                 a handler has tried in vain */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAITS_MAX 4096
#define WORDS_MAX 64

typedef RedisModuleString String;

/* A call that waits. */
struct wait {
    RedisModuleCallReply *promise;
    RedisModuleBlockedClient *client; /* who gets the reply; NULL: nobody */
    String *key;                      /* where it is pushed, or NULL */
    long long times;                  /* so often it is to be made again */
    char flags[16];
    String *words[WORDS_MAX];
    size_t count;
    int index; /* in `waits` */
};

static struct wait *waits[WAITS_MAX];
static long long called, vain;

static struct wait *create(const char *flags, String **words, int count)
{
    struct wait *w = RedisModule_Calloc(1, sizeof(*w));
    snprintf(w->flags, sizeof(w->flags), "%svKE", strcmp(flags, "-") == 0 ? "" : flags);
    for (w->count = 0; w->count < (size_t)count && w->count < WORDS_MAX; w->count++) {
        w->words[w->count] = words[w->count];
        RedisModule_RetainString(NULL, words[w->count]);
    }
    for (w->index = 0; w->index < WAITS_MAX && waits[w->index]; w->index++) {
    }
    RedisModule_Assert(w->index < WAITS_MAX);
    waits[w->index] = w;
    return w;
}

static void destroy(struct wait *w)
{
    waits[w->index] = NULL;
    if (w->promise) {
        RedisModule_FreeCallReply(w->promise);
    }
    for (size_t i = 0; i < w->count; i++) {
        RedisModule_FreeString(NULL, w->words[i]);
    }
    if (w->key) {
        RedisModule_FreeString(NULL, w->key);
    }
    RedisModule_Free(w);
}

static RedisModuleCallReply *call(RedisModuleCtx *ctx, const struct wait *w)
{
    /* The format's letters are flags but for "v", which takes what follows. */
    return RedisModule_Call(ctx, RedisModule_StringPtrLen(w->words[0], NULL), w->flags,
                            w->words + 1, w->count - 1);
}

static void answer(struct wait *w, RedisModuleCallReply *reply)
{
    RedisModuleCtx *ctx = RedisModule_GetThreadSafeContext(w->client);
    RedisModule_ReplyWithCallReply(ctx, reply);
    RedisModule_FreeThreadSafeContext(ctx);
    RedisModule_UnblockClient(w->client, NULL);
}

/* The reply in a line: what it is, and its bytes. */
static void push(RedisModuleCtx *ctx, const String *key, RedisModuleCallReply *reply)
{
    size_t len = 0;
    const char *bytes = RedisModule_CallReplyProto(reply, &len);
    RedisModule_FreeCallReply(RedisModule_Call(ctx, "RPUSH", "!sb", key, bytes, len));
}

static void on_unblocked(RedisModuleCtx *ctx, RedisModuleCallReply *reply, void *data);

static int begin(RedisModuleCtx *ctx, struct wait *w, RedisModuleCallReply **reply)
{
    *reply = call(ctx, w);
    if (RedisModule_CallReplyType(*reply) != REDISMODULE_REPLY_PROMISE) {
        return 0;
    }
    w->promise = *reply;
    RedisModule_CallReplyPromiseSetUnblockHandler(*reply, on_unblocked, w);
    return 1;
}

static void on_unblocked(RedisModuleCtx *ctx, RedisModuleCallReply *reply, void *data)
{
    struct wait *w = data;
    called++;
    vain += RedisModule_CallReplyPromiseAbort(w->promise, NULL) == REDISMODULE_ERR;
    if (w->client) {
        answer(w, reply);
    }
    if (w->key) {
        push(ctx, w->key, reply);
    }
    RedisModule_FreeCallReply(reply);
    while (--w->times >= 0) {
        RedisModule_FreeCallReply(w->promise);
        w->promise = NULL;
        if (begin(ctx, w, &reply)) {
            return;
        }
        RedisModule_FreeCallReply(reply);
    }
    destroy(w);
}

/* Who goes takes the call with it. */
static void on_disconnected(RedisModuleCtx *ctx, RedisModuleBlockedClient *client)
{
    (void)ctx;
    for (int i = 0; i < WAITS_MAX; i++) {
        void *data = NULL;
        struct wait *w = waits[i];
        if (w && w->client == client &&
            RedisModule_CallReplyPromiseAbort(w->promise, &data) == REDISMODULE_OK) {
            destroy(data);
            RedisModule_UnblockClient(client, NULL);
        }
    }
}

static int reply_now(RedisModuleCtx *ctx, struct wait *w, RedisModuleCallReply *reply)
{
    if (reply) {
        RedisModule_ReplyWithCallReply(ctx, reply);
        RedisModule_FreeCallReply(reply);
    } else {
        RedisModule_ReplyWithError(ctx, "ERR no reply");
    }
    destroy(w);
    return REDISMODULE_OK;
}

static int pr_call(RedisModuleCtx *ctx, String **argv, int argc)
{
    RedisModuleCallReply *reply;
    if (argc < 3) {
        return RedisModule_WrongArity(ctx);
    }
    struct wait *w = create(RedisModule_StringPtrLen(argv[1], NULL), argv + 2, argc - 2);
    if (!begin(ctx, w, &reply)) {
        return reply_now(ctx, w, reply);
    }
    w->client = RedisModule_BlockClient(ctx, NULL, NULL, NULL, 0);
    RedisModule_SetDisconnectCallback(w->client, on_disconnected);
    return REDISMODULE_OK;
}

static int later(RedisModuleCtx *ctx, struct wait *w)
{
    RedisModuleCallReply *reply;
    return begin(ctx, w, &reply) ? RedisModule_ReplyWithSimpleString(ctx, "waits")
                                 : reply_now(ctx, w, reply);
}

static int pr_then(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc < 4) {
        return RedisModule_WrongArity(ctx);
    }
    struct wait *w = create(RedisModule_StringPtrLen(argv[1], NULL), argv + 3, argc - 3);
    w->key = argv[2];
    RedisModule_RetainString(NULL, w->key);
    return later(ctx, w);
}

static int pr_loop(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc < 4) {
        return RedisModule_WrongArity(ctx);
    }
    struct wait *w = create(RedisModule_StringPtrLen(argv[1], NULL), argv + 3, argc - 3);
    RedisModule_StringToLongLong(argv[2], &w->times);
    return later(ctx, w);
}

static int pr_drop(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc < 3) {
        return RedisModule_WrongArity(ctx);
    }
    struct wait *w = create(RedisModule_StringPtrLen(argv[1], NULL), argv + 2, argc - 2);
    RedisModuleCallReply *reply = call(ctx, w);
    int waits_now = RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_PROMISE;
    RedisModule_FreeCallReply(reply);
    destroy(w);
    return RedisModule_ReplyWithLongLong(ctx, waits_now);
}

static int pr_abort(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    long count = 0;
    RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
    for (int i = 0; i < WAITS_MAX; i++) {
        void *data = NULL;
        struct wait *w = waits[i];
        if (!w || w->client) {
            continue;
        }
        int result = RedisModule_CallReplyPromiseAbort(w->promise, &data);
        int again = RedisModule_CallReplyPromiseAbort(w->promise, &data);
        RedisModule_ReplyWithLongLong(ctx, result == REDISMODULE_OK && data == w &&
                                               again == REDISMODULE_ERR);
        count++;
        destroy(w);
    }
    RedisModule_ReplySetArrayLength(ctx, count);
    return REDISMODULE_OK;
}

static int pr_counts(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    long long waiting = 0;
    for (int i = 0; i < WAITS_MAX; i++) {
        waiting += waits[i] != NULL;
    }
    RedisModule_ReplyWithArray(ctx, 3);
    RedisModule_ReplyWithLongLong(ctx, called);
    RedisModule_ReplyWithLongLong(ctx, waiting);
    RedisModule_ReplyWithLongLong(ctx, vain);
    return REDISMODULE_OK;
}

static const struct test_command commands[] = {
    {"pr.call", pr_call, NULL, 0},   {"pr.then", pr_then, NULL, 0},
    {"pr.loop", pr_loop, NULL, 0},   {"pr.drop", pr_drop, NULL, 0},
    {"pr.abort", pr_abort, NULL, 0}, {"pr.counts", pr_counts, NULL, 0},
};

int RedisModule_OnLoad(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    if (RedisModule_Init(ctx, "promises", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    return CREATE_COMMANDS(ctx, commands, "write", 0);
}
