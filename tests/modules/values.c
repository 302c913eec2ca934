/* Values of keys through the interface: lists, sorted sets, hashes and streams, a command for each
 * function. The key comes first, then how it is opened (r, w, rw); each replies what the function
 * has returned, and the name of errno where it has failed and sets that. */
#include "commands.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

typedef RedisModuleString String;

static const char *text_of(const String *s)
{
    return RedisModule_StringPtrLen(s, NULL);
}

static long long number_of(const String *s)
{
    long long n = 0;
    RedisModule_StringToLongLong(s, &n);
    return n;
}

static double double_of(const String *s)
{
    double d = 0;
    RedisModule_StringToDouble(s, &d);
    return d;
}

static RedisModuleKey *open_key(RedisModuleCtx *ctx, String **argv)
{
    const char *how = text_of(argv[2]);
    RedisModule_AutoMemory(ctx);
    RedisModuleKey *key = RedisModule_OpenKey(ctx, argv[1],
                                              (strchr(how, 'r') ? REDISMODULE_READ : 0) |
                                                  (strchr(how, 'w') ? REDISMODULE_WRITE : 0));
    errno = 0;
    return key;
}

static const char *error_name(void)
{
    switch (errno) {
    case 0:
        return "none";
    case EINVAL:
        return "EINVAL";
    case ENOTSUP:
        return "ENOTSUP";
    case EBADF:
        return "EBADF";
    case EDOM:
        return "EDOM";
    case ENOENT:
        return "ENOENT";
    case EFBIG:
        return "EFBIG";
    case ERANGE:
        return "ERANGE";
    default:
        return "another";
    }
}

/* A result of OK or ERR, and why. */
static int reply_result(RedisModuleCtx *ctx, int result)
{
    const char *name = result == REDISMODULE_OK ? "OK" : error_name();
    return RedisModule_ReplyWithCString(ctx, name);
}

static int reply_element(RedisModuleCtx *ctx, String *s)
{
    return s ? RedisModule_ReplyWithString(ctx, s) : RedisModule_ReplyWithError(ctx, error_name());
}

/* ---- lists ---- */

static int where_of(const String *s)
{
    return strcasecmp(text_of(s), "head") == 0 ? REDISMODULE_LIST_HEAD : REDISMODULE_LIST_TAIL;
}

/* V.PUSH key how head|tail element ... */
static int v_push(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc < 5) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = open_key(ctx, argv);
    int result = REDISMODULE_OK;
    for (int i = 4; i < argc && result == REDISMODULE_OK; i++) {
        result = RedisModule_ListPush(key, where_of(argv[3]), argv[i]);
    }
    return reply_result(ctx, result);
}

/* V.POP key how head|tail */
static int v_pop(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 4) {
        return RedisModule_WrongArity(ctx);
    }
    return reply_element(ctx, RedisModule_ListPop(open_key(ctx, argv), where_of(argv[3])));
}

/* V.LGET key how index */
static int v_lget(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 4) {
        return RedisModule_WrongArity(ctx);
    }
    return reply_element(ctx, RedisModule_ListGet(open_key(ctx, argv), (long)number_of(argv[3])));
}

/* V.LSET key how index element; V.LINSERT in the same way */
static int v_lset(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 5) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = open_key(ctx, argv);
    return reply_result(ctx, RedisModule_ListSet(key, (long)number_of(argv[3]), argv[4]));
}

static int v_linsert(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 5) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = open_key(ctx, argv);
    return reply_result(ctx, RedisModule_ListInsert(key, (long)number_of(argv[3]), argv[4]));
}

/* V.LDEL key how index */
static int v_ldel(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 4) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = open_key(ctx, argv);
    return reply_result(ctx, RedisModule_ListDelete(key, (long)number_of(argv[3])));
}

/* V.LIST key how: all elements, by indexes from either end in turn. */
static int v_list(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 3) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = open_key(ctx, argv);
    long count = (long)RedisModule_ValueLength(key);
    RedisModule_ReplyWithArray(ctx, count);
    for (long i = 0; i < count; i++) {
        reply_element(ctx, RedisModule_ListGet(key, i % 2 ? i : i - count));
    }
    return REDISMODULE_OK;
}

/* ---- sorted sets ---- */

static int zadd_flags(const String *s)
{
    const char *text = text_of(s);
    return (strchr(text, 'x') ? REDISMODULE_ZADD_XX : 0) |
           (strchr(text, 'n') ? REDISMODULE_ZADD_NX : 0) |
           (strchr(text, 'g') ? REDISMODULE_ZADD_GT : 0) |
           (strchr(text, 'l') ? REDISMODULE_ZADD_LT : 0);
}

/* V.ZADD key how flags score member */
static int v_zadd(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 6) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = open_key(ctx, argv);
    int flags = zadd_flags(argv[3]);
    bool quiet = strchr(text_of(argv[3]), 'q') != NULL;
    int result = RedisModule_ZsetAdd(key, double_of(argv[4]), argv[5], quiet ? NULL : &flags);
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModule_ReplyWithLongLong(ctx, result);
    return RedisModule_ReplyWithLongLong(ctx, result == REDISMODULE_OK ? flags : 0);
}

/* V.ZINCRBY key how flags increment member */
static int v_zincrby(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 6) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = open_key(ctx, argv);
    int flags = zadd_flags(argv[3]);
    double score = -77;
    int result = RedisModule_ZsetIncrby(key, double_of(argv[4]), argv[5], &flags, &score);
    RedisModule_ReplyWithArray(ctx, 3);
    RedisModule_ReplyWithLongLong(ctx, result);
    RedisModule_ReplyWithLongLong(ctx, result == REDISMODULE_OK ? flags : 0);
    return RedisModule_ReplyWithDouble(ctx, result == REDISMODULE_OK ? score : 0);
}

/* V.ZREM key how member */
static int v_zrem(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 4) {
        return RedisModule_WrongArity(ctx);
    }
    int deleted = -1;
    int result = RedisModule_ZsetRem(open_key(ctx, argv), argv[3], &deleted);
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModule_ReplyWithLongLong(ctx, result);
    return RedisModule_ReplyWithLongLong(ctx, deleted);
}

/* V.ZSCORE key how member */
static int v_zscore(RedisModuleCtx *ctx, String **argv, int argc)
{
    double score;
    if (argc != 4) {
        return RedisModule_WrongArity(ctx);
    }
    return RedisModule_ZsetScore(open_key(ctx, argv), argv[3], &score) == REDISMODULE_OK
               ? RedisModule_ReplyWithDouble(ctx, score)
               : RedisModule_ReplyWithNull(ctx);
}

static int begin_range(RedisModuleKey *key, const char *kind, String *min, String *max)
{
    bool last = strstr(kind, "last") != NULL;
    if (strstr(kind, "lex")) {
        return last ? RedisModule_ZsetLastInLexRange(key, min, max)
                    : RedisModule_ZsetFirstInLexRange(key, min, max);
    }
    int min_out = strchr(kind, '<') != NULL, max_out = strchr(kind, '>') != NULL;
    return last ? RedisModule_ZsetLastInScoreRange(key, double_of(min), double_of(max), min_out,
                                                   max_out)
                : RedisModule_ZsetFirstInScoreRange(key, double_of(min), double_of(max), min_out,
                                                    max_out);
}

static void reply_current(RedisModuleCtx *ctx, RedisModuleKey *key)
{
    double score = 0;
    String *member = RedisModule_ZsetRangeCurrentElement(key, &score);
    RedisModule_ReplyWithArray(ctx, 3);
    if (member) {
        RedisModule_ReplyWithString(ctx, member);
    } else {
        RedisModule_ReplyWithNull(ctx);
    }
    RedisModule_ReplyWithDouble(ctx, score);
    RedisModule_ReplyWithLongLong(ctx, RedisModule_ZsetRangeEndReached(key));
}

/* V.ZRANGE key how kind min max steps: kind is made of first or last, lex or score, < and > for
 * bounds that are left out; steps are n (next), p (previous), s (stop). */
static int v_zrange(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 7) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = open_key(ctx, argv);
    if (begin_range(key, text_of(argv[3]), argv[4], argv[5]) != REDISMODULE_OK) {
        return RedisModule_ReplyWithError(ctx, "ERR no range");
    }
    const char *steps = text_of(argv[6]);
    RedisModule_ReplyWithArray(ctx, 2 * (long)strlen(steps) + 1);
    reply_current(ctx, key);
    for (; *steps; steps++) {
        int moved = -1;
        if (*steps == 's') {
            RedisModule_ZsetRangeStop(key);
        } else {
            moved = *steps == 'n' ? RedisModule_ZsetRangeNext(key) : RedisModule_ZsetRangePrev(key);
        }
        RedisModule_ReplyWithLongLong(ctx, moved);
        reply_current(ctx, key);
    }
    return REDISMODULE_OK;
}

/* ---- hashes ---- */

static int hash_flags(const String *s)
{
    const char *text = text_of(s);
    return (strchr(text, 'x') ? REDISMODULE_HASH_XX : 0) |
           (strchr(text, 'n') ? REDISMODULE_HASH_NX : 0) |
           (strchr(text, 'c') ? REDISMODULE_HASH_CFIELDS : 0) |
           (strchr(text, 'e') ? REDISMODULE_HASH_EXISTS : 0) |
           (strchr(text, 'a') ? REDISMODULE_HASH_COUNT_ALL : 0) | (strchr(text, '?') ? 1 << 20 : 0);
}

static String *or_delete(String *s)
{
    return strcmp(text_of(s), "DELETE") == 0 ? REDISMODULE_HASH_DELETE : s;
}

/* V.HSET key how flags field value [field value]; the value DELETE deletes. */
static int v_hset(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 6 && argc != 8) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = open_key(ctx, argv);
    int flags = hash_flags(argv[3]);
    String *second = argc == 8 ? argv[6] : NULL, *value = argc == 8 ? or_delete(argv[7]) : NULL;
    int count;
    if (flags & REDISMODULE_HASH_CFIELDS) {
        count = RedisModule_HashSet(key, flags, text_of(argv[4]), or_delete(argv[5]),
                                    second ? text_of(second) : NULL, value, NULL);
    } else {
        count = RedisModule_HashSet(key, flags, argv[4], or_delete(argv[5]), second, value, NULL);
    }
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModule_ReplyWithLongLong(ctx, count);
    return RedisModule_ReplyWithCString(ctx, count ? "none" : error_name());
}

/* V.HGET key how flags field field */
static int v_hget(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 6) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = open_key(ctx, argv);
    if (!key) {
        return RedisModule_ReplyWithNull(ctx);
    }
    int flags = hash_flags(argv[3]), there[2] = {-1, -1}, result;
    String *values[2] = {NULL, NULL};
    bool texts = flags & REDISMODULE_HASH_CFIELDS;
    void *fields[2] = {texts ? (void *)text_of(argv[4]) : argv[4],
                       texts ? (void *)text_of(argv[5]) : argv[5]};
    if (flags & REDISMODULE_HASH_EXISTS) {
        result = RedisModule_HashGet(key, flags, fields[0], &there[0], fields[1], &there[1], NULL);
    } else {
        result =
            RedisModule_HashGet(key, flags, fields[0], &values[0], fields[1], &values[1], NULL);
    }
    RedisModule_ReplyWithArray(ctx, 5);
    RedisModule_ReplyWithLongLong(ctx, result);
    for (int i = 0; i < 2; i++) {
        RedisModule_ReplyWithLongLong(ctx, there[i]);
        if (values[i]) {
            RedisModule_ReplyWithString(ctx, values[i]);
        } else {
            RedisModule_ReplyWithNull(ctx);
        }
    }
    return REDISMODULE_OK;
}

/* ---- streams ---- */

static RedisModuleStreamID id_of(const String *s)
{
    RedisModuleStreamID id = {0, 0};
    RedisModule_StringToStreamID(s, &id);
    return id;
}

static int reply_id(RedisModuleCtx *ctx, const RedisModuleStreamID *id)
{
    return RedisModule_ReplyWithString(ctx, RedisModule_CreateStringFromStreamID(ctx, id));
}

/* V.XADD key how id|* field value ...; "*" replies whether there is an ID then. */
static int v_xadd(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc < 4 || argc % 2 != 0) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = open_key(ctx, argv);
    bool any = strcmp(text_of(argv[3]), "*") == 0;
    RedisModuleStreamID id = id_of(argv[3]);
    int result = RedisModule_StreamAdd(key, any ? REDISMODULE_STREAM_ADD_AUTOID : 0, &id, argv + 4,
                                       (argc - 4) / 2);
    if (result != REDISMODULE_OK) {
        return reply_result(ctx, result);
    }
    return any ? RedisModule_ReplyWithLongLong(ctx, id.ms > 1000000) : reply_id(ctx, &id);
}

/* V.XDEL key how id */
static int v_xdel(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 4) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleStreamID id = id_of(argv[3]);
    return reply_result(ctx, RedisModule_StreamDelete(open_key(ctx, argv), &id));
}

/* V.XTRIM key how length|id =|~ bound */
static int v_xtrim(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 6) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = open_key(ctx, argv);
    RedisModuleStreamID id = id_of(argv[5]);
    int flags = text_of(argv[4])[0] == '~' ? REDISMODULE_STREAM_TRIM_APPROX : 0;
    long long gone = strcmp(text_of(argv[3]), "id") == 0
                         ? RedisModule_StreamTrimByID(key, flags, &id)
                         : RedisModule_StreamTrimByLength(key, flags, number_of(argv[5]));
    return gone < 0 ? reply_result(ctx, REDISMODULE_ERR) : RedisModule_ReplyWithLongLong(ctx, gone);
}

static int walk_step(RedisModuleCtx *ctx, RedisModuleKey *key, char step)
{
    RedisModuleStreamID id;
    long fields;
    String *field, *value;
    int result = REDISMODULE_ERR;
    errno = 0;
    switch (step) {
    case 'i':
        result = RedisModule_StreamIteratorNextID(key, &id, &fields);
        if (result == REDISMODULE_OK) {
            RedisModule_ReplyWithArray(ctx, 2);
            reply_id(ctx, &id);
            return RedisModule_ReplyWithLongLong(ctx, fields);
        }
        break;
    case 'f':
        result = RedisModule_StreamIteratorNextField(key, &field, &value);
        if (result == REDISMODULE_OK) {
            RedisModule_ReplyWithArray(ctx, 2);
            RedisModule_ReplyWithString(ctx, field);
            return RedisModule_ReplyWithString(ctx, value);
        }
        break;
    case 'a':
        for (fields = 0; RedisModule_StreamIteratorNextField(key, &field, &value) == REDISMODULE_OK;
             fields++) {
        }
        return RedisModule_ReplyWithLongLong(ctx, fields);
    case 'd':
        result = RedisModule_StreamIteratorDelete(key);
        break;
    default:
        result = RedisModule_StreamIteratorStop(key);
        break;
    }
    return reply_result(ctx, result);
}

/* V.XWALK key how flags start|- end|- steps: flags are x (bounds excluded) and r (reverse); steps
 * are i (next ID), f (next field), a (all fields that are left), d (delete), s (stop), S (start
 * again). Redis's iterator wants all fields read before the next ID. */
static int v_xwalk(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 7) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *key = open_key(ctx, argv);
    const char *how = text_of(argv[3]);
    int flags = (strchr(how, 'x') ? REDISMODULE_STREAM_ITERATOR_EXCLUSIVE : 0) |
                (strchr(how, 'r') ? REDISMODULE_STREAM_ITERATOR_REVERSE : 0) |
                (strchr(how, '?') ? 1 << 20 : 0);
    RedisModuleStreamID start = id_of(argv[4]), end = id_of(argv[5]);
    RedisModuleStreamID *from = strcmp(text_of(argv[4]), "-") ? &start : NULL;
    RedisModuleStreamID *to = strcmp(text_of(argv[5]), "-") ? &end : NULL;
    int started = RedisModule_StreamIteratorStart(key, flags, from, to);
    const char *steps = text_of(argv[6]);
    RedisModule_ReplyWithArray(ctx, (long)strlen(steps) + 1);
    reply_result(ctx, started);
    for (; *steps; steps++) {
        errno = 0;
        if (*steps == 'S') {
            reply_result(ctx, RedisModule_StreamIteratorStart(key, flags, from, to));
        } else {
            walk_step(ctx, key, *steps);
        }
    }
    return REDISMODULE_OK;
}

static const struct test_command commands[] = {
    {"v.push", v_push, NULL, 0},       {"v.pop", v_pop, NULL, 0},
    {"v.lget", v_lget, NULL, 0},       {"v.lset", v_lset, NULL, 0},
    {"v.linsert", v_linsert, NULL, 0}, {"v.ldel", v_ldel, NULL, 0},
    {"v.list", v_list, NULL, 0},       {"v.zadd", v_zadd, NULL, 0},
    {"v.zincrby", v_zincrby, NULL, 0}, {"v.zrem", v_zrem, NULL, 0},
    {"v.zscore", v_zscore, NULL, 0},   {"v.zrange", v_zrange, NULL, 0},
    {"v.hset", v_hset, NULL, 0},       {"v.hget", v_hget, NULL, 0},
    {"v.xadd", v_xadd, NULL, 0},       {"v.xdel", v_xdel, NULL, 0},
    {"v.xtrim", v_xtrim, NULL, 0},     {"v.xwalk", v_xwalk, NULL, 0},
};

int RedisModule_OnLoad(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    if (RedisModule_Init(ctx, "values", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    return CREATE_COMMANDS(ctx, commands, "write deny-oom", 1);
}
