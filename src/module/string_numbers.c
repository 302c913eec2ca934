/* Strings of modules that are numbers or ids of stream entries. Without lock. */
#include "base/num.h"
#include "module/context.h"
#include "module/text.h"
#include "value/stream_id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- to text ---- */

static RedisModuleString *give(RedisModuleCtx *ctx, const char *text, size_t len)
{
    return text_give(ctx, text_create(slice_of(text, len)));
}

static RedisModuleString *rm_from_long_long(RedisModuleCtx *ctx, long long value)
{
    char text[NUM_I64_MAX_CHARS];
    return give(ctx, text, num_format_i64(text, value));
}

static RedisModuleString *rm_from_ulong_long(RedisModuleCtx *ctx, unsigned long long value)
{
    char text[NUM_I64_MAX_CHARS];
    return give(ctx, text, num_format_u64(text, value));
}

static RedisModuleString *rm_from_double(RedisModuleCtx *ctx, double value)
{
    char text[64];
    return give(ctx, text, num_format_double(text, value));
}

static RedisModuleString *rm_from_long_double(RedisModuleCtx *ctx, long double value, int human)
{
    char text[NUM_DOUBLE_MAX_CHARS];
    size_t len = human ? num_format_long_double(text, value)
                       : (size_t)snprintf(text, sizeof(text), "%.17Lg", value);
    return give(ctx, text, len);
}

static RedisModuleString *rm_from_stream_id(RedisModuleCtx *ctx, const RedisModuleStreamID *id)
{
    char text[STREAM_ID_TEXT_BYTES];
    struct slice words = stream_id_format((struct stream_id){id->ms, id->seq}, text);
    return give(ctx, words.ptr, words.len);
}

/* ---- and back ---- */

static int rm_to_long_long(const RedisModuleString *str, long long *value)
{
    int64_t number;
    if (!num_parse_i64(text_slice(str), &number)) {
        return REDISMODULE_ERR;
    }
    *value = number;
    return REDISMODULE_OK;
}

/* What strtoull takes, but for what is negative: blanks before it, a plus sign, zeros. */
static int rm_to_ulong_long(const RedisModuleString *str, unsigned long long *value)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(str->ptr, &end, 10);
    if (errno || str->len == 0 || end != str->ptr + str->len || memchr(str->ptr, '-', str->len)) {
        return REDISMODULE_ERR;
    }
    *value = number;
    return REDISMODULE_OK;
}

static int rm_to_double(const RedisModuleString *str, double *value)
{
    return num_parse_double(text_slice(str), value) ? REDISMODULE_OK : REDISMODULE_ERR;
}

static int rm_to_long_double(const RedisModuleString *str, long double *value)
{
    return num_parse_long_double(text_slice(str), value) ? REDISMODULE_OK : REDISMODULE_ERR;
}

/* "-" and "+" as well. */
static int rm_to_stream_id(const RedisModuleString *str, RedisModuleStreamID *id)
{
    struct stream_id parsed;
    if (!stream_id_parse_bound(text_slice(str), 0, &parsed)) {
        return REDISMODULE_ERR;
    }
    *id = (RedisModuleStreamID){parsed.ms, parsed.seq};
    return REDISMODULE_OK;
}

const struct api_function string_number_functions[] = {
    API(CreateStringFromLongLong, rm_from_long_long),
    API(CreateStringFromULongLong, rm_from_ulong_long),
    API(CreateStringFromDouble, rm_from_double),
    API(CreateStringFromLongDouble, rm_from_long_double),
    API(CreateStringFromStreamID, rm_from_stream_id),
    API(StringToLongLong, rm_to_long_long),
    API(StringToULongLong, rm_to_ulong_long),
    API(StringToDouble, rm_to_double),
    API(StringToLongDouble, rm_to_long_double),
    API(StringToStreamID, rm_to_stream_id),
    {NULL, NULL},
};
