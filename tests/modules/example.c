/* An example of a module, and what tests load: it uses each part of the interface in a command of a
 * few lines. Built from the installed headers alone, it runs in keydb-server and in redis-server 7:
 *
 *     cc -shared -fPIC -I/usr/include/keydb -o example.so example.c
 *     keydb-server --loadmodule ./example.so one two
 *
 * What to notice: OnLoad registers commands and says what they are, and nothing stays of a module
 * whose OnLoad returns REDISMODULE_ERR. A command gets its arguments as strings that it need not
 * free, and replies exactly once. What it changes through keys it tells replicas and the AOF
 * itself, with Replicate or ReplicateVerbatim. */
#include "keydbmodule.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

typedef RedisModuleString String;

static const char *text_of(const String *s)
{
    return RedisModule_StringPtrLen(s, NULL);
}

static int is_word(const String *s, const char *word)
{
    return strcasecmp(text_of(s), word) == 0;
}

/* ---- replies: EX.REPLY kind ---- */

static void reply_nested(RedisModuleCtx *ctx)
{
    RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
    RedisModule_ReplyWithLongLong(ctx, 1);
    RedisModule_ReplyWithMap(ctx, REDISMODULE_POSTPONED_LEN);
    RedisModule_ReplyWithCString(ctx, "set");
    RedisModule_ReplyWithSet(ctx, REDISMODULE_POSTPONED_LEN);
    RedisModule_ReplyWithCString(ctx, "a");
    RedisModule_ReplyWithCString(ctx, "b");
    RedisModule_ReplySetSetLength(ctx, 2);
    RedisModule_ReplySetMapLength(ctx, 1);
    RedisModule_ReplyWithNull(ctx);
    RedisModule_ReplySetArrayLength(ctx, 3);
}

static int reply_aggregate(RedisModuleCtx *ctx, const String *kind)
{
    if (is_word(kind, "array")) {
        RedisModule_ReplyWithArray(ctx, 2);
        RedisModule_ReplyWithLongLong(ctx, 1);
        return RedisModule_ReplyWithCString(ctx, "two");
    }
    if (is_word(kind, "map")) {
        RedisModule_ReplyWithMap(ctx, 1);
        RedisModule_ReplyWithCString(ctx, "key");
        return RedisModule_ReplyWithLongLong(ctx, 1);
    }
    if (is_word(kind, "set")) {
        RedisModule_ReplyWithSet(ctx, 1);
        return RedisModule_ReplyWithCString(ctx, "member");
    }
    if (is_word(kind, "attribute")) {
        if (RedisModule_ReplyWithAttribute(ctx, 1) == REDISMODULE_OK) {
            RedisModule_ReplyWithCString(ctx, "name");
            RedisModule_ReplyWithLongLong(ctx, 7);
        }
        return RedisModule_ReplyWithCString(ctx, "value");
    }
    if (is_word(kind, "nested")) {
        reply_nested(ctx);
        return REDISMODULE_OK;
    }
    if (is_word(kind, "null-array")) {
        return RedisModule_ReplyWithNullArray(ctx);
    }
    if (is_word(kind, "empty-array")) {
        return RedisModule_ReplyWithEmptyArray(ctx);
    }
    return RedisModule_ReplyWithError(ctx, "ERR unknown kind of reply");
}

static int ex_reply(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    if (is_word(argv[1], "integer")) {
        return RedisModule_ReplyWithLongLong(ctx, -42);
    }
    if (is_word(argv[1], "simple")) {
        return RedisModule_ReplyWithSimpleString(ctx, "OK");
    }
    if (is_word(argv[1], "string")) {
        return RedisModule_ReplyWithStringBuffer(ctx, "a\0b", 3);
    }
    if (is_word(argv[1], "empty")) {
        return RedisModule_ReplyWithEmptyString(ctx);
    }
    if (is_word(argv[1], "verbatim")) {
        return RedisModule_ReplyWithVerbatimString(ctx, "verbatim", 8);
    }
    if (is_word(argv[1], "markdown")) {
        return RedisModule_ReplyWithVerbatimStringType(ctx, "# title", 7, "mkd");
    }
    if (is_word(argv[1], "null")) {
        return RedisModule_ReplyWithNull(ctx);
    }
    if (is_word(argv[1], "true")) {
        return RedisModule_ReplyWithBool(ctx, 5);
    }
    if (is_word(argv[1], "double")) {
        return RedisModule_ReplyWithDouble(ctx, 1.5);
    }
    if (is_word(argv[1], "long-double")) {
        return RedisModule_ReplyWithLongDouble(ctx, 2.25L);
    }
    if (is_word(argv[1], "big-number")) {
        return RedisModule_ReplyWithBigNumber(ctx, "12345678901234567890123", 23);
    }
    if (is_word(argv[1], "error")) {
        return RedisModule_ReplyWithError(ctx, "SOMECODE and a text");
    }
    return reply_aggregate(ctx, argv[1]);
}

/* ---- strings: EX.STRINGS text: what is made of it ---- */

static void reply_number_forms(RedisModuleCtx *ctx, const String *s)
{
    long long ll = 0;
    unsigned long long ull;
    double d = 0;
    long double ld = 0;
    RedisModuleStreamID id = {0, 0};
    RedisModule_ReplyWithLongLong(ctx, RedisModule_StringToLongLong(s, &ll));
    RedisModule_ReplyWithLongLong(ctx, ll);
    int result = RedisModule_StringToULongLong(s, &ull);
    RedisModule_ReplyWithLongLong(ctx, result);
    ull = result == REDISMODULE_OK ? ull : 0;
    RedisModule_ReplyWithString(ctx, RedisModule_CreateStringFromULongLong(ctx, ull));
    RedisModule_ReplyWithLongLong(ctx, RedisModule_StringToDouble(s, &d));
    RedisModule_ReplyWithLongLong(ctx, (long long)(d > 1e15 || d < -1e15 ? 0 : d * 4));
    RedisModule_ReplyWithLongLong(ctx, RedisModule_StringToLongDouble(s, &ld));
    RedisModule_ReplyWithString(ctx, RedisModule_CreateStringFromLongDouble(ctx, ld, 1));
    RedisModule_ReplyWithLongLong(ctx, RedisModule_StringToStreamID(s, &id));
    RedisModule_ReplyWithString(ctx, RedisModule_CreateStringFromStreamID(ctx, &id));
}

static int ex_strings(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModule_AutoMemory(ctx);
    size_t len;
    RedisModule_StringPtrLen(argv[1], &len);
    String *copy = RedisModule_CreateStringFromString(ctx, argv[1]);
    String *printed = RedisModule_CreateStringPrintf(ctx, "%s|%d|%5.2f", text_of(argv[1]), 7, 1.5);
    String *number = RedisModule_CreateStringFromLongLong(ctx, -9);
    RedisModule_ReplyWithArray(ctx, 17);
    RedisModule_ReplyWithLongLong(ctx, (long long)len);
    RedisModule_ReplyWithLongLong(ctx, RedisModule_StringCompare(copy, argv[1]));
    RedisModule_ReplyWithLongLong(ctx, RedisModule_StringAppendBuffer(ctx, copy, "\0tail", 5));
    RedisModule_ReplyWithString(ctx, copy);
    RedisModule_ReplyWithLongLong(ctx, RedisModule_StringCompare(copy, argv[1]) > 0);
    RedisModule_ReplyWithString(ctx, printed);
    RedisModule_ReplyWithString(ctx, number);
    reply_number_forms(ctx, argv[1]);
    String *held = RedisModule_HoldString(ctx, argv[1]);
    RedisModule_RetainString(ctx, number); /* it is ours now, not the context's */
    RedisModule_FreeString(ctx, number);
    (void)held;
    return REDISMODULE_OK;
}

/* EX.KEEP text: keeps the argument beyond the command, and replies what was kept before. */
static String *kept;

static int ex_keep(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    String *before = kept;
    kept = RedisModule_HoldString(NULL, argv[1]);
    if (!before) {
        return RedisModule_ReplyWithNull(ctx);
    }
    RedisModule_ReplyWithString(ctx, before);
    RedisModule_FreeString(NULL, before);
    return REDISMODULE_OK;
}

/* ---- calls ---- */

static void describe(RedisModuleCtx *ctx, RedisModuleCallReply *r);

static void describe_elements(RedisModuleCtx *ctx, RedisModuleCallReply *r, int type)
{
    size_t count = RedisModule_CallReplyLength(r);
    RedisModule_ReplyWithArray(ctx, 1 + (long)(type == REDISMODULE_REPLY_MAP ? 2 * count : count));
    RedisModule_ReplyWithLongLong(ctx, type);
    for (size_t i = 0; i < count; i++) {
        if (type == REDISMODULE_REPLY_MAP) {
            RedisModuleCallReply *key, *value;
            RedisModule_CallReplyMapElement(r, i, &key, &value);
            describe(ctx, key);
            describe(ctx, value);
        } else {
            describe(ctx, type == REDISMODULE_REPLY_SET ? RedisModule_CallReplySetElement(r, i)
                                                        : RedisModule_CallReplyArrayElement(r, i));
        }
    }
}

/* A reply as [type, content]. */
static void describe(RedisModuleCtx *ctx, RedisModuleCallReply *r)
{
    int type = RedisModule_CallReplyType(r);
    size_t len = 0;
    const char *text;
    if (type == REDISMODULE_REPLY_ARRAY || type == REDISMODULE_REPLY_MAP ||
        type == REDISMODULE_REPLY_SET) {
        describe_elements(ctx, r, type);
        return;
    }
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModule_ReplyWithLongLong(ctx, type);
    if (type == REDISMODULE_REPLY_STRING || type == REDISMODULE_REPLY_ERROR) {
        text = RedisModule_CallReplyStringPtr(r, &len);
        RedisModule_ReplyWithStringBuffer(ctx, text, len);
    } else if (type == REDISMODULE_REPLY_INTEGER) {
        RedisModule_ReplyWithLongLong(ctx, RedisModule_CallReplyInteger(r));
    } else if (type == REDISMODULE_REPLY_DOUBLE) {
        RedisModule_ReplyWithLongLong(ctx, (long long)(RedisModule_CallReplyDouble(r) * 4));
    } else if (type == REDISMODULE_REPLY_BOOL) {
        RedisModule_ReplyWithLongLong(ctx, RedisModule_CallReplyBool(r));
    } else if (type == REDISMODULE_REPLY_BIG_NUMBER) {
        text = RedisModule_CallReplyBigNumber(r, &len);
        RedisModule_ReplyWithStringBuffer(ctx, text, len);
    } else if (type == REDISMODULE_REPLY_VERBATIM_STRING) {
        const char *format = NULL;
        text = RedisModule_CallReplyVerbatim(r, &len, &format);
        RedisModule_ReplyWithStringBuffer(ctx, text, len);
    } else {
        RedisModule_ReplyWithNull(ctx);
    }
}

static const char *error_name(int error)
{
    return error == EBADF     ? "EBADF"
           : error == EINVAL  ? "EINVAL"
           : error == ENOENT  ? "ENOENT"
           : error == EROFS   ? "EROFS"
           : error == ENOTSUP ? "ENOTSUP"
           : error == EACCES  ? "EACCES"
           : error == ENOSPC  ? "ENOSPC"
           : error == ESPIPE  ? "ESPIPE"
           : error == 0       ? "none"
                              : "another";
}

/* EX.CALL how flags command [argument ...]: how is forward, describe or proto. */
static int ex_call(RedisModuleCtx *ctx, String **argv, int argc)
{
    char format[32];
    if (argc < 4) {
        return RedisModule_WrongArity(ctx);
    }
    snprintf(format, sizeof(format), "%sv", is_word(argv[2], "-") ? "" : text_of(argv[2]));
    errno = 0;
    RedisModuleCallReply *r =
        RedisModule_Call(ctx, text_of(argv[3]), format, argv + 4, (size_t)argc - 4);
    if (!r) {
        return RedisModule_ReplyWithSimpleString(ctx, error_name(errno));
    }
    if (is_word(argv[1], "describe")) {
        describe(ctx, r);
    } else if (is_word(argv[1], "proto")) {
        size_t len;
        const char *bytes = RedisModule_CallReplyProto(r, &len);
        RedisModule_ReplyWithStringBuffer(ctx, bytes, len);
    } else if (RedisModule_ReplyWithCallReply(ctx, r) != REDISMODULE_OK) {
        RedisModule_ReplyWithError(ctx, "ERR RESP2 cannot say this");
    }
    RedisModule_FreeCallReply(r);
    return REDISMODULE_OK;
}

/* EX.PARTS: arguments of all kinds in one call. */
static int ex_parts(RedisModuleCtx *ctx, String **argv, int argc)
{
    RedisModule_AutoMemory(ctx);
    RedisModuleCallReply *r = RedisModule_Call(ctx, "RPUSH", "!cclbsv", "ex:parts", "c", -5LL,
                                               "b\0b", (size_t)3, argv[0], argv, (size_t)argc);
    r = RedisModule_Call(ctx, "LRANGE", "ccc", "ex:parts", "0", "-1");
    return RedisModule_ReplyWithCallReply(ctx, r);
}

/* ---- keys ---- */

/* EX.SET key value, EX.GET key: through the key itself. */
static int ex_set(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 3) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = RedisModule_OpenKey(ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE);
    RedisModule_StringSet(key, argv[2]);
    RedisModule_CloseKey(key);
    RedisModule_ReplicateVerbatim(ctx);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

static int ex_get(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModule_AutoMemory(ctx);
    RedisModuleKey *key = RedisModule_OpenKey(ctx, argv[1], REDISMODULE_READ);
    int type = RedisModule_KeyType(key);
    if (type == REDISMODULE_KEYTYPE_EMPTY) {
        return RedisModule_ReplyWithNull(ctx);
    }
    if (type != REDISMODULE_KEYTYPE_STRING) {
        return RedisModule_ReplyWithError(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
    }
    size_t len;
    const char *bytes = RedisModule_StringDMA(key, &len, REDISMODULE_READ);
    return RedisModule_ReplyWithStringBuffer(ctx, bytes, len);
}

/* EX.FILL key len byte: a string of so many equal bytes. */
static int ex_fill(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long len;
    if (argc != 4) {
        return RedisModule_WrongArity(ctx);
    }
    if (RedisModule_StringToLongLong(argv[2], &len) != REDISMODULE_OK || len < 0) {
        return RedisModule_ReplyWithError(ctx, "ERR no length");
    }
    RedisModule_AutoMemory(ctx);
    RedisModuleKey *key = RedisModule_OpenKey(ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE);
    if (RedisModule_StringTruncate(key, (size_t)len) != REDISMODULE_OK) {
        return RedisModule_ReplyWithError(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
    }
    size_t room;
    char *bytes = RedisModule_StringDMA(key, &room, REDISMODULE_WRITE);
    memset(bytes, text_of(argv[3])[0], room);
    RedisModule_Replicate(ctx, "SET", "sb", argv[1], bytes, room);
    return RedisModule_ReplyWithLongLong(ctx, (long long)room);
}

/* EX.KEY key: all that is known of it. */
static int ex_key(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModule_AutoMemory(ctx);
    RedisModuleKey *key = RedisModule_OpenKey(ctx, argv[1], REDISMODULE_READ);
    RedisModule_ReplyWithArray(ctx, 5);
    RedisModule_ReplyWithLongLong(ctx, RedisModule_KeyExists(ctx, argv[1]));
    RedisModule_ReplyWithLongLong(ctx, RedisModule_KeyType(key));
    RedisModule_ReplyWithLongLong(ctx, (long long)RedisModule_ValueLength(key));
    RedisModule_ReplyWithLongLong(ctx, key ? RedisModule_GetExpire(key) > 0 : -2);
    RedisModule_ReplyWithLongLong(ctx, key ? RedisModule_GetAbsExpire(key) : -2);
    return REDISMODULE_OK;
}

/* EX.DEL key, EX.EXPIRE key milliseconds. */
static int ex_del(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = RedisModule_OpenKey(ctx, argv[1], REDISMODULE_WRITE);
    int result = RedisModule_DeleteKey(key);
    RedisModule_CloseKey(key);
    RedisModule_Replicate(ctx, "DEL", "s", argv[1]);
    return RedisModule_ReplyWithLongLong(ctx, result);
}

static int ex_expire(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long ms;
    if (argc != 3) {
        return RedisModule_WrongArity(ctx);
    }
    if (RedisModule_StringToLongLong(argv[2], &ms) != REDISMODULE_OK) {
        return RedisModule_ReplyWithError(ctx, "ERR no number");
    }
    RedisModuleKey *key = RedisModule_OpenKey(ctx, argv[1], REDISMODULE_WRITE);
    int result = RedisModule_SetExpire(key, ms);
    RedisModule_CloseKey(key);
    return RedisModule_ReplyWithLongLong(ctx, result);
}

/* EX.TELL count: tells the logs so many commands; by more than one it is a transaction to them. */
static int ex_tell(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long count;
    if (argc != 2 || RedisModule_StringToLongLong(argv[1], &count) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    for (long long i = 0; i < count; i++) {
        RedisModuleCallReply *r =
            RedisModule_Call(ctx, "INCRBY", i % 2 ? "cl" : "!cl", "ex:told", i + 1);
        RedisModule_FreeCallReply(r);
        if (i % 2) {
            RedisModule_Replicate(ctx, "INCRBY", "cl", "ex:told", i + 1);
        }
    }
    return RedisModule_ReplyWithLongLong(ctx, count);
}

/* ---- contexts ---- */

/* EX.CONTEXT: who calls, where. */
static int ex_context(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    char *pooled = RedisModule_PoolAlloc(ctx, 100);
    memset(pooled, 'p', 100);
    RedisModule_ReplyWithArray(ctx, 3);
    RedisModule_ReplyWithLongLong(ctx, RedisModule_GetSelectedDb(ctx));
    RedisModule_ReplyWithLongLong(ctx, RedisModule_GetClientId(ctx) > 0);
    RedisModule_ReplyWithLongLong(ctx, (long long)RedisModule_DbSize(ctx));
    return REDISMODULE_OK;
}

/* EX.SELECT db: the client stays there. */
static int ex_select(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long db;
    if (argc != 2 || RedisModule_StringToLongLong(argv[1], &db) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    return RedisModule_ReplyWithLongLong(ctx, RedisModule_SelectDb(ctx, (int)db));
}

/* EX.LOG level text */
static int ex_log(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 3) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModule_Log(ctx, text_of(argv[1]), "says %s", text_of(argv[2]));
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* ---- keys that only the module can tell: EX.PAIRS count key ... rest ... ---- */

static int ex_pairs(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long count = 0;
    if (argc > 1 && RedisModule_StringToLongLong(argv[1], &count) != REDISMODULE_OK) {
        count = 0;
    }
    if (RedisModule_IsKeysPositionRequest(ctx)) {
        for (int i = 0; i < count; i++) {
            if (RedisModule_KeyAtPosWithFlags) {
                RedisModule_KeyAtPosWithFlags(ctx, 2 + i,
                                              REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS);
            } else {
                RedisModule_KeyAtPos(ctx, 2 + i);
            }
        }
        return REDISMODULE_OK;
    }
    return RedisModule_ReplyWithLongLong(ctx, count);
}

/* EX.KEYSOF command [argument ...]: the places of a command's keys. */
static int ex_keysof(RedisModuleCtx *ctx, String **argv, int argc)
{
    int count = 0;
    errno = 0;
    int *keys = RedisModule_GetCommandKeys(ctx, argv + 1, argc - 1, &count);
    if (!keys) {
        return RedisModule_ReplyWithSimpleString(ctx, error_name(errno));
    }
    RedisModule_ReplyWithArray(ctx, count);
    for (int i = 0; i < count; i++) {
        RedisModule_ReplyWithLongLong(ctx, keys[i]);
    }
    RedisModule_Free(keys);
    return REDISMODULE_OK;
}

/* ---- a container, and what is said of commands ---- */

static int ex_sub(RedisModuleCtx *ctx, String **argv, int argc)
{
    RedisModule_ReplyWithArray(ctx, argc);
    for (int i = 0; i < argc; i++) {
        RedisModule_ReplyWithString(ctx, argv[i]);
    }
    return REDISMODULE_OK;
}

static RedisModuleCommandArg documented_args[] = {
    {.name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0},
    {.name = "value", .type = REDISMODULE_ARG_TYPE_STRING},
    {.name = "expiry",
     .type = REDISMODULE_ARG_TYPE_ONEOF,
     .flags = REDISMODULE_CMD_ARG_OPTIONAL,
     .subargs =
         (RedisModuleCommandArg[]){
             {.name = "seconds", .type = REDISMODULE_ARG_TYPE_INTEGER, .token = "EX"},
             {.name = "keep", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .token = "KEEPTTL"},
             {0}}},
    {0}};

static const RedisModuleCommandInfo documented = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Does nothing, and says how it would.",
    .complexity = "O(1)",
    .since = "1.2.3",
    .history = (RedisModuleCommandHistoryEntry[]){{"1.2.4", "Learnt KEEPTTL."}, {NULL, NULL}},
    .tips = "nondeterministic_output request_policy:all_shards",
    .arity = -3,
    .key_specs =
        (RedisModuleCommandKeySpec[]){{.flags = REDISMODULE_CMD_KEY_OW | REDISMODULE_CMD_KEY_UPDATE,
                                       .begin_search_type = REDISMODULE_KSPEC_BS_INDEX,
                                       .bs.index.pos = 1,
                                       .find_keys_type = REDISMODULE_KSPEC_FK_RANGE,
                                       .fk.range = {0, 1, 0}},
                                      {.flags = REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS,
                                       .begin_search_type = REDISMODULE_KSPEC_BS_KEYWORD,
                                       .bs.keyword = {"FROM", 3},
                                       .find_keys_type = REDISMODULE_KSPEC_FK_KEYNUM,
                                       .fk.keynum = {0, 1, 1}},
                                      {0}},
    .args = documented_args,
};

static int create_documented(RedisModuleCtx *ctx)
{
    if (RedisModule_CreateCommand(ctx, "ex.documented", ex_sub, "write deny-oom fast", 0, 0, 0) !=
        REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    RedisModuleCommand *command = RedisModule_GetCommand(ctx, "ex.documented");
    return command ? RedisModule_SetCommandInfo(command, &documented) : REDISMODULE_ERR;
}

static int create_container(RedisModuleCtx *ctx)
{
    if (RedisModule_CreateCommand(ctx, "EX.Box", NULL, "", 0, 0, 0) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    RedisModuleCommand *box = RedisModule_GetCommand(ctx, "ex.box");
    return RedisModule_CreateSubcommand(box, "get", ex_sub, "readonly fast", 2, 2, 1) ==
                       REDISMODULE_OK &&
                   RedisModule_CreateSubcommand(box, "put", ex_sub, "write", 2, 2, 1) ==
                       REDISMODULE_OK
               ? REDISMODULE_OK
               : REDISMODULE_ERR;
}

static const struct {
    const char *name;
    RedisModuleCmdFunc function;
    const char *flags;
    int first, last, step;
} commands[] = {
    {"ex.reply", ex_reply, "readonly fast allow-loading allow-stale", 0, 0, 0},
    {"ex.strings", ex_strings, "readonly", 0, 0, 0},
    {"ex.keep", ex_keep, "", 0, 0, 0},
    {"ex.call", ex_call, "write", 0, 0, 0},
    {"ex.parts", ex_parts, "write deny-oom", 0, 0, 0},
    {"ex.set", ex_set, "write deny-oom", 1, 1, 1},
    {"ex.get", ex_get, "readonly fast", 1, 1, 1},
    {"ex.fill", ex_fill, "write deny-oom", 1, 1, 1},
    {"ex.key", ex_key, "readonly", 1, 1, 1},
    {"ex.del", ex_del, "write", 1, 1, 1},
    {"ex.expire", ex_expire, "write", 1, 1, 1},
    {"ex.tell", ex_tell, "write deny-script", 0, 0, 0},
    {"ex.context", ex_context, "readonly", 0, 0, 0},
    {"ex.select", ex_select, "", 0, 0, 0},
    {"ex.log", ex_log, "admin no-monitor no-slowlog", 0, 0, 0},
    {"ex.pairs", ex_pairs, "readonly getkeys-api", 0, 0, 0},
    {"ex.keysof", ex_keysof, "", 0, 0, 0},
};

/* "fail" as the first argument has the module refuse, after it has registered everything; "name"
 * and a name has it take that one. */
int RedisModule_OnLoad(RedisModuleCtx *ctx, String **argv, int argc)
{
    char name[64] = "example";
    /* Arguments can be read once the functions are there. */
    if (RedisModule_Init(ctx, name, 3, REDISMODULE_APIVER_1) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (RedisModule_CreateCommand(ctx, commands[i].name, commands[i].function,
                                      commands[i].flags, commands[i].first, commands[i].last,
                                      commands[i].step) != REDISMODULE_OK) {
            return REDISMODULE_ERR;
        }
    }
    if (create_documented(ctx) != REDISMODULE_OK || create_container(ctx) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    return argc > 0 && is_word(argv[0], "fail") ? REDISMODULE_ERR : REDISMODULE_OK;
}

/* Nothing of the module's own may be left behind. */
int RedisModule_OnUnload(RedisModuleCtx *ctx)
{
    if (kept) {
        RedisModule_FreeString(NULL, kept);
        kept = NULL;
    }
    (void)ctx;
    return REDISMODULE_OK;
}
