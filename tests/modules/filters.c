/* Filters: @ and a word as a request's first argument has it changed. F.OFF takes the filters out.
 */
#include "keydbmodule.h"

#include <string.h>

typedef RedisModuleString String;

static RedisModuleCommandFilter *filters[2];
static long long seen, last_client;

static const char *text_of(const String *s)
{
    return RedisModule_StringPtrLen(s, NULL);
}

static String *make(const char *text)
{
    return RedisModule_CreateString(NULL, text, strlen(text));
}

/* A string that is not taken stays the module's. */
static void insert(RedisModuleCommandFilterCtx *f, int pos, const char *text)
{
    String *s = make(text);
    if (RedisModule_CommandFilterArgInsert(f, pos, s) != REDISMODULE_OK) {
        RedisModule_FreeString(NULL, s);
    }
}

/* @insert x y: SET x y x. @delete x y: x y. @replace: PING. @count a b: ECHO of how many there
 * were.
 */
static void change(RedisModuleCommandFilterCtx *f)
{
    seen++;
    if (RedisModule_CommandFilterGetClientId) {
        last_client = (long long)RedisModule_CommandFilterGetClientId(f);
    }
    const char *word = text_of(RedisModule_CommandFilterArgGet(f, 0));
    if (strcmp(word, "@insert") == 0) {
        RedisModule_CommandFilterArgReplace(f, 0, make("RPUSH"));
        insert(f, 2, "between");
        insert(f, RedisModule_CommandFilterArgsCount(f), "last");
        insert(f, 99, "nowhere");
    } else if (strcmp(word, "@delete") == 0) {
        RedisModule_CommandFilterArgDelete(f, 0);
        RedisModule_CommandFilterArgDelete(f, 77);
    } else if (strcmp(word, "@replace") == 0) {
        while (RedisModule_CommandFilterArgsCount(f) > 1) {
            RedisModule_CommandFilterArgDelete(f, 1);
        }
        RedisModule_CommandFilterArgReplace(f, 0, make("PING"));
    }
}

/* Behind the other one, and not for what the module calls itself: PING becomes ECHO. */
static void change_more(RedisModuleCommandFilterCtx *f)
{
    if (strcmp(text_of(RedisModule_CommandFilterArgGet(f, 0)), "@more") == 0) {
        RedisModule_CommandFilterArgReplace(f, 0, make("ECHO"));
    }
    if (RedisModule_CommandFilterArgGet(f, -1) || RedisModule_CommandFilterArgGet(f, 1000)) {
        seen = -1000;
    }
}

/* F.CALL word ...: calls it. */
static int f_call(RedisModuleCtx *ctx, String **argv, int argc)
{
    RedisModuleCallReply *reply =
        RedisModule_Call(ctx, text_of(argv[1]), "vE", argv + 2, (size_t)(argc - 2));
    if (!reply) {
        return RedisModule_ReplyWithNull(ctx);
    }
    RedisModule_ReplyWithCallReply(ctx, reply);
    RedisModule_FreeCallReply(reply);
    return REDISMODULE_OK;
}

/* F.SEEN: whether anything was, and by whom last. */
static int f_seen(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModule_ReplyWithLongLong(ctx, seen > 0);
    seen = 0;
    return REDISMODULE_OK;
}

static int f_off(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    int result = REDISMODULE_OK;
    for (int i = 0; i < 2; i++) {
        result |= filters[i] ? RedisModule_UnregisterCommandFilter(ctx, filters[i]) : 0;
        filters[i] = NULL;
    }
    return RedisModule_ReplyWithLongLong(ctx, result);
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    if (RedisModule_Init(ctx, "filters", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "f.call", f_call, "", 0, 0, 0) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "f.seen", f_seen, "", 0, 0, 0) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "f.off", f_off, "", 0, 0, 0) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    filters[0] = RedisModule_RegisterCommandFilter(ctx, change, 0);
    filters[1] = RedisModule_RegisterCommandFilter(ctx, change_more, REDISMODULE_CMDFILTER_NOSELF);
    return filters[0] && filters[1] ? REDISMODULE_OK : REDISMODULE_ERR;
}
