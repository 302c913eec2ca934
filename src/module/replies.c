/* Replies of modules: written where the command's own reply goes. Without a client nothing is
 * written, and that is no error. */
#include "base/log.h"
#include "base/num.h"
#include "module/call_replies.h"
#include "module/context.h"
#include "module/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Longest error text that a module formats. */
#define ERROR_BYTES 2048

/* ---- single values ---- */

static int rm_long_long(RedisModuleCtx *ctx, long long value)
{
    if (ctx->reply) {
        reply_i64(ctx->reply, value);
    }
    return REDISMODULE_OK;
}

static int rm_error(RedisModuleCtx *ctx, const char *text)
{
    if (ctx->reply) {
        reply_error(ctx->reply, text);
    }
    return REDISMODULE_OK;
}

static int rm_error_format(RedisModuleCtx *ctx, const char *format, ...) PRINTF_LIKE(2, 3);
static int rm_error_format(RedisModuleCtx *ctx, const char *format, ...)
{
    char text[ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return rm_error(ctx, text);
}

static int rm_wrong_arity(RedisModuleCtx *ctx)
{
    return rm_error_format(ctx, "ERR wrong number of arguments for '%s' command",
                           ctx->call ? ctx->call->cmd->full_name : "");
}

static int rm_simple_string(RedisModuleCtx *ctx, const char *text)
{
    if (ctx->reply) {
        reply_status(ctx->reply, text);
    }
    return REDISMODULE_OK;
}

static int rm_string_buffer(RedisModuleCtx *ctx, const char *bytes, size_t len)
{
    if (ctx->reply) {
        reply_bulk(ctx->reply, slice_of(bytes, len));
    }
    return REDISMODULE_OK;
}

static int rm_c_string(RedisModuleCtx *ctx, const char *text)
{
    return rm_string_buffer(ctx, text, strlen(text));
}

static int rm_string(RedisModuleCtx *ctx, RedisModuleString *str)
{
    if (ctx->reply && str->blob) {
        reply_blob(ctx->reply, str->blob);
        return REDISMODULE_OK;
    }
    return rm_string_buffer(ctx, str->ptr, str->len);
}

static int rm_empty_string(RedisModuleCtx *ctx)
{
    return rm_string_buffer(ctx, "", 0);
}

static int rm_verbatim_type(RedisModuleCtx *ctx, const char *bytes, size_t len, const char *type)
{
    if (ctx->reply) {
        reply_verbatim(ctx->reply, type, slice_of(bytes, len));
    }
    return REDISMODULE_OK;
}

static int rm_verbatim(RedisModuleCtx *ctx, const char *bytes, size_t len)
{
    return rm_verbatim_type(ctx, bytes, len, "txt");
}

static int rm_null(RedisModuleCtx *ctx)
{
    if (ctx->reply) {
        reply_null(ctx->reply);
    }
    return REDISMODULE_OK;
}

static int rm_bool(RedisModuleCtx *ctx, int value)
{
    if (ctx->reply) {
        reply_bool(ctx->reply, value != 0);
    }
    return REDISMODULE_OK;
}

static int rm_double(RedisModuleCtx *ctx, double value)
{
    if (ctx->reply) {
        reply_double(ctx->reply, value);
    }
    return REDISMODULE_OK;
}

static int rm_long_double(RedisModuleCtx *ctx, long double value)
{
    char text[NUM_DOUBLE_MAX_CHARS];
    struct slice digits = slice_of(text, num_format_long_double(text, value));
    if (ctx->reply && ctx->reply->proto < 3) {
        reply_bulk(ctx->reply, digits);
    } else if (ctx->reply) {
        reply_raw(ctx->reply, SLICE(","));
        reply_raw(ctx->reply, digits);
        reply_raw(ctx->reply, SLICE("\r\n"));
    }
    return REDISMODULE_OK;
}

static int rm_big_number(RedisModuleCtx *ctx, const char *digits, size_t len)
{
    if (ctx->reply) {
        reply_big_number(ctx->reply, slice_of(digits, len));
    }
    return REDISMODULE_OK;
}

/* ---- aggregates ---- */

enum aggregate {
    AGGREGATE_ARRAY,
    AGGREGATE_MAP,
    AGGREGATE_SET,
    AGGREGATE_ATTRIBUTE,
    AGGREGATE_PUSH
};

static int begin(RedisModuleCtx *ctx, enum aggregate kind, long len)
{
    if (!ctx->reply) {
        return REDISMODULE_OK;
    }
    if (kind == AGGREGATE_ATTRIBUTE && ctx->reply->proto < 3) {
        return REDISMODULE_ERR;
    }
    uint64_t count = len < 0 ? 0 : (uint64_t)len;
    if (len == REDISMODULE_POSTPONED_LEN) {
        context_note_length(ctx, reply_deferred(ctx->reply));
    } else if (kind == AGGREGATE_ARRAY) {
        reply_array(ctx->reply, count);
    } else if (kind == AGGREGATE_MAP) {
        reply_map(ctx->reply, count);
    } else if (kind == AGGREGATE_SET) {
        reply_set(ctx->reply, count);
    } else {
        reply_attribute(ctx->reply, count);
    }
    return REDISMODULE_OK;
}

static void set_length(RedisModuleCtx *ctx, enum aggregate kind, long len)
{
    if (!ctx->reply || (kind == AGGREGATE_ATTRIBUTE && ctx->reply->proto < 3)) {
        return;
    }
    if (ctx->length_count == 0) {
        log_warning("Module %s tells the length of an aggregate that it has not begun",
                    ctx->module->name);
        return;
    }
    uint32_t handle = ctx->lengths[--ctx->length_count];
    uint64_t count = len < 0 ? 0 : (uint64_t)len;
    if (kind == AGGREGATE_ARRAY) {
        reply_set_deferred_array(ctx->reply, handle, count);
    } else if (kind == AGGREGATE_MAP) {
        reply_set_deferred_map(ctx->reply, handle, count);
    } else if (kind == AGGREGATE_SET) {
        reply_set_deferred_set(ctx->reply, handle, count);
    } else if (kind == AGGREGATE_PUSH) {
        reply_set_deferred_push(ctx->reply, handle, count);
    } else {
        reply_set_deferred_attribute(ctx->reply, handle, count);
    }
}

static int rm_array(RedisModuleCtx *ctx, long len)
{
    return begin(ctx, AGGREGATE_ARRAY, len);
}

static int rm_map(RedisModuleCtx *ctx, long len)
{
    return begin(ctx, AGGREGATE_MAP, len);
}

static int rm_set(RedisModuleCtx *ctx, long len)
{
    return begin(ctx, AGGREGATE_SET, len);
}

static int rm_attribute(RedisModuleCtx *ctx, long len)
{
    return begin(ctx, AGGREGATE_ATTRIBUTE, len);
}

static int rm_null_array(RedisModuleCtx *ctx)
{
    if (ctx->reply) {
        reply_null_array(ctx->reply);
    }
    return REDISMODULE_OK;
}

static int rm_empty_array(RedisModuleCtx *ctx)
{
    return begin(ctx, AGGREGATE_ARRAY, 0);
}

static void rm_set_array_length(RedisModuleCtx *ctx, long len)
{
    set_length(ctx, AGGREGATE_ARRAY, len);
}

static void rm_set_map_length(RedisModuleCtx *ctx, long len)
{
    set_length(ctx, AGGREGATE_MAP, len);
}

static void rm_set_set_length(RedisModuleCtx *ctx, long len)
{
    set_length(ctx, AGGREGATE_SET, len);
}

static void rm_set_attribute_length(RedisModuleCtx *ctx, long len)
{
    set_length(ctx, AGGREGATE_ATTRIBUTE, len);
}

static void rm_set_push_length(RedisModuleCtx *ctx, long len)
{
    set_length(ctx, AGGREGATE_PUSH, len);
}

/* ---- what a command has replied ---- */

/* As it came, whatever the client speaks: redis-server does the same, though its reference says
 * that RESP3 is refused to clients of RESP2. Modules ask with the flag 0 for what the client
 * speaks. */
static int rm_call_reply(RedisModuleCtx *ctx, RedisModuleCallReply *reply)
{
    if (call_reply_promise(reply)) {
        return REDISMODULE_ERR; /* there is nothing to tell yet */
    }
    if (!ctx->reply) {
        return REDISMODULE_OK;
    }
    struct slice bytes = call_reply_bytes(reply);
    if (bytes.len > 3 && bytes.ptr[0] == '-') {
        reply_error_slice(ctx->reply, slice_of(bytes.ptr + 1, bytes.len - 3));
    } else {
        reply_raw(ctx->reply, bytes);
    }
    return REDISMODULE_OK;
}

const struct api_function reply_functions[] = {
    API(WrongArity, rm_wrong_arity),
    API(ReplyWithLongLong, rm_long_long),
    API(ReplyWithError, rm_error),
    API(ReplyWithErrorFormat, rm_error_format),
    API(ReplyWithSimpleString, rm_simple_string),
    API(ReplyWithStringBuffer, rm_string_buffer),
    API(ReplyWithCString, rm_c_string),
    API(ReplyWithString, rm_string),
    API(ReplyWithEmptyString, rm_empty_string),
    API(ReplyWithVerbatimString, rm_verbatim),
    API(ReplyWithVerbatimStringType, rm_verbatim_type),
    API(ReplyWithNull, rm_null),
    API(ReplyWithBool, rm_bool),
    API(ReplyWithDouble, rm_double),
    API(ReplyWithLongDouble, rm_long_double),
    API(ReplyWithBigNumber, rm_big_number),
    API(ReplyWithArray, rm_array),
    API(ReplyWithMap, rm_map),
    API(ReplyWithSet, rm_set),
    API(ReplyWithAttribute, rm_attribute),
    API(ReplyWithNullArray, rm_null_array),
    API(ReplyWithEmptyArray, rm_empty_array),
    API(ReplySetArrayLength, rm_set_array_length),
    API(ReplySetMapLength, rm_set_map_length),
    API(ReplySetSetLength, rm_set_set_length),
    API(ReplySetAttributeLength, rm_set_attribute_length),
    API(ReplySetPushLength, rm_set_push_length),
    API(ReplyWithCallReply, rm_call_reply),
    {NULL, NULL},
};
