/* See call_replies.h, and what modules ask of such replies. Without lock. */
#include "module/call_replies.h"

#include "base/mem.h"
#include "base/num.h"
#include "module/context.h"
#include "module/promises.h"
#include "module/text.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct RedisModuleCallReply {
    RedisModuleCtx *ctx;
    char *owned;             /* the bytes of the outermost one; NULL in others */
    struct promise *promise; /* instead of bytes, or NULL; owned */
    struct slice bytes;      /* all of it, without its attribute */
    struct slice text;       /* what a string, an error, a number of many digits holds */
    int type;                /* REDISMODULE_REPLY_ */
    char format[4];          /* of a verbatim string */
    long long integer;       /* also 0 or 1 of a boolean */
    double number;
    size_t count;                   /* elements, or pairs */
    const char *body;               /* where the first element begins */
    RedisModuleCallReply *elements; /* NULL until asked for; of pairs two each */
    RedisModuleCallReply *attribute;
};

/* ---- the bytes, which the server itself has written ---- */

struct cursor {
    const char *at, *end;
};

/* A line without its end. */
static struct slice take_line(struct cursor *c)
{
    const char *end = memchr(c->at, '\r', (size_t)(c->end - c->at));
    assert(end && end + 1 < c->end);
    struct slice line = slice_of(c->at, (size_t)(end - c->at));
    c->at = end + 2;
    return line;
}

static long long number_of(struct slice text)
{
    int64_t number = 0;
    bool fine = num_parse_i64(text, &number);
    assert(fine);
    (void)fine;
    return number;
}

/* How many values follow one whose head is this: elements of an aggregate, or the value behind an
 * attribute. */
static uint64_t values_behind(char type, long long n)
{
    switch (type) {
    case '*':
    case '~':
    case '>':
        return n > 0 ? (uint64_t)n : 0;
    case '%':
        return 2 * (uint64_t)n;
    case '|':
        return 2 * (uint64_t)n + 1;
    default:
        return 0;
    }
}

/* Steps over one value and what it holds. */
static void skip_value(struct cursor *c)
{
    for (uint64_t pending = 1; pending > 0; pending--) {
        char type = *c->at;
        struct slice line = take_line(c);
        line = slice_of(line.ptr + 1, line.len - 1);
        if (memchr("$=", type, 2)) {
            long long len = number_of(line);
            c->at += len < 0 ? 0 : len + 2;
        } else if (memchr("*~>%|", type, 5)) {
            pending += values_behind(type, number_of(line));
        }
        assert(c->at <= c->end);
    }
}

static void parse(RedisModuleCallReply *r, struct cursor *c);

static double double_of(struct slice text)
{
    char copy[64];
    size_t len = text.len < sizeof(copy) - 1 ? text.len : sizeof(copy) - 1;
    memcpy(copy, text.ptr, len);
    copy[len] = '\0';
    return strtod(copy, NULL);
}

/* A length and so many bytes; of a verbatim string the first four are its format. */
static void parse_bytes(RedisModuleCallReply *r, struct cursor *c, char type, long long len)
{
    if (len < 0) {
        r->type = REDISMODULE_REPLY_NULL;
        return;
    }
    r->type = REDISMODULE_REPLY_STRING;
    r->text = slice_of(c->at, (size_t)len);
    if (type == '=') {
        assert(len >= 4);
        r->type = REDISMODULE_REPLY_VERBATIM_STRING;
        memcpy(r->format, c->at, 3);
        r->text = slice_of(c->at + 4, (size_t)len - 4);
    }
    c->at += len + 2;
}

static void parse_aggregate(RedisModuleCallReply *r, struct cursor *c, char type, long long count)
{
    if (count < 0) {
        r->type = REDISMODULE_REPLY_NULL;
        return;
    }
    r->type = type == '%'   ? REDISMODULE_REPLY_MAP
              : type == '~' ? REDISMODULE_REPLY_SET
              : type == '|' ? REDISMODULE_REPLY_ATTRIBUTE
                            : REDISMODULE_REPLY_ARRAY;
    r->count = (size_t)count;
    r->body = c->at;
    uint64_t values = type == '%' || type == '|' ? 2 * (uint64_t)count : (uint64_t)count;
    for (uint64_t i = 0; i < values; i++) {
        skip_value(c);
    }
}

static void parse_line(RedisModuleCallReply *r, char type, struct slice line)
{
    r->text = line;
    switch (type) {
    case '+':
        r->type = REDISMODULE_REPLY_STRING;
        break;
    case '-':
        r->type = REDISMODULE_REPLY_ERROR;
        break;
    case ':':
        r->type = REDISMODULE_REPLY_INTEGER;
        r->integer = number_of(line);
        break;
    case '#':
        r->type = REDISMODULE_REPLY_BOOL;
        r->integer = line.len > 0 && line.ptr[0] == 't';
        break;
    case ',':
        r->type = REDISMODULE_REPLY_DOUBLE;
        r->number = double_of(line);
        break;
    case '(':
        r->type = REDISMODULE_REPLY_BIG_NUMBER;
        break;
    default:
        assert(type == '_');
        r->type = REDISMODULE_REPLY_NULL;
    }
}

/* The attribute before a value becomes a reply of its own. */
static void parse_attribute(RedisModuleCallReply *r, struct cursor *c)
{
    const char *begin = c->at;
    RedisModuleCallReply *a = mem_calloc(1, sizeof(*a));
    struct slice line = take_line(c);
    a->ctx = r->ctx;
    parse_aggregate(a, c, '|', number_of(slice_of(line.ptr + 1, line.len - 1)));
    a->bytes = slice_of(begin, (size_t)(c->at - begin));
    r->attribute = a;
}

static void parse(RedisModuleCallReply *r, struct cursor *c)
{
    if (*c->at == '|') {
        parse_attribute(r, c);
    }
    const char *begin = c->at;
    char type = *begin;
    struct slice line = take_line(c);
    line = slice_of(line.ptr + 1, line.len - 1);
    if (type == '$' || type == '=') {
        parse_bytes(r, c, type, number_of(line));
    } else if (memchr("*~>%", type, 4)) {
        parse_aggregate(r, c, type, number_of(line));
    } else {
        parse_line(r, type, line);
    }
    r->bytes = slice_of(begin, (size_t)(c->at - begin));
}

static RedisModuleCallReply *element(RedisModuleCallReply *r, size_t index)
{
    bool pairs = r->type == REDISMODULE_REPLY_MAP || r->type == REDISMODULE_REPLY_ATTRIBUTE;
    size_t values = pairs ? 2 * r->count : r->count;
    assert(index < values);
    if (!r->elements) {
        r->elements = mem_calloc(values, sizeof(*r->elements));
        struct cursor c = {r->body, r->bytes.ptr + r->bytes.len};
        for (size_t i = 0; i < values; i++) {
            r->elements[i].ctx = r->ctx;
            parse(&r->elements[i], &c);
        }
    }
    return &r->elements[index];
}

/* ---- life ---- */

static void deinit(RedisModuleCallReply *r)
{
    bool pairs = r->type == REDISMODULE_REPLY_MAP || r->type == REDISMODULE_REPLY_ATTRIBUTE;
    for (size_t i = 0; r->elements && i < (pairs ? 2 * r->count : r->count); i++) {
        deinit(&r->elements[i]);
    }
    mem_free(r->elements);
    if (r->attribute) {
        deinit(r->attribute);
        mem_free(r->attribute);
    }
    if (r->promise) {
        promises_release(r->promise);
    }
    mem_free(r->owned);
}

static void destroy(void *reply)
{
    deinit(reply);
    mem_free(reply);
}

/* With room for one byte more: modules (RediSearch) look for words in a reply as if it ended with a
 * NUL, as it does in Redis. */
static RedisModuleCallReply *create(RedisModuleCtx *ctx, char *bytes_take, size_t len)
{
    bytes_take[len] = '\0';
    RedisModuleCallReply *r = mem_calloc(1, sizeof(*r));
    struct cursor c = {bytes_take, bytes_take + len};
    r->ctx = ctx;
    r->owned = bytes_take;
    parse(r, &c);
    assert(c.at == c.end);
    context_own(ctx, r, destroy);
    return r;
}

RedisModuleCallReply *call_reply_create(RedisModuleCtx *ctx, const struct reply *reply)
{
    size_t len = 0;
    for (uint32_t i = 0; i < reply->piece_count; i++) {
        len += reply->pieces[i].len;
    }
    char *bytes = mem_alloc(len + 1), *at = bytes;
    for (uint32_t i = 0; i < reply->piece_count; i++) {
        memcpy(at, reply->pieces[i].ptr, reply->pieces[i].len);
        at += reply->pieces[i].len;
    }
    return create(ctx, bytes, len);
}

RedisModuleCallReply *call_reply_create_error(RedisModuleCtx *ctx, struct slice text)
{
    char *bytes = mem_alloc(text.len + 4);
    bytes[0] = '-';
    memcpy(bytes + 1, text.ptr, text.len);
    memcpy(bytes + 1 + text.len, "\r\n", 2);
    return create(ctx, bytes, text.len + 3);
}

RedisModuleCallReply *call_reply_create_promise(RedisModuleCtx *ctx, struct promise *p_take)
{
    RedisModuleCallReply *r = mem_calloc(1, sizeof(*r));
    r->ctx = ctx->auto_memory ? ctx : NULL; /* it may outlive its context otherwise */
    r->type = REDISMODULE_REPLY_PROMISE;
    r->promise = p_take;
    context_own(ctx, r, destroy);
    return r;
}

struct promise *call_reply_promise(const RedisModuleCallReply *reply)
{
    return reply ? reply->promise : NULL;
}

struct slice call_reply_bytes(const RedisModuleCallReply *reply)
{
    if (!reply->attribute) {
        return reply->bytes;
    }
    const char *begin = reply->attribute->bytes.ptr;
    return slice_of(begin, (size_t)(reply->bytes.ptr + reply->bytes.len - begin));
}

/* ---- for modules ---- */

/* Of a part of a reply nothing is done: it goes with the whole. */
static void rm_free(RedisModuleCallReply *reply)
{
    if (reply && (reply->owned || reply->promise)) {
        context_disown(reply->ctx, reply);
        destroy(reply);
    }
}

static int rm_type(RedisModuleCallReply *reply)
{
    return reply ? reply->type : REDISMODULE_REPLY_UNKNOWN;
}

static const char *rm_proto(RedisModuleCallReply *reply, size_t *len)
{
    struct slice bytes = call_reply_bytes(reply);
    if (len) {
        *len = bytes.len;
    }
    return bytes.ptr;
}

static size_t rm_length(RedisModuleCallReply *reply)
{
    switch (rm_type(reply)) {
    case REDISMODULE_REPLY_STRING:
    case REDISMODULE_REPLY_ERROR:
    case REDISMODULE_REPLY_VERBATIM_STRING:
    case REDISMODULE_REPLY_BIG_NUMBER:
        return reply->text.len;
    case REDISMODULE_REPLY_ARRAY:
    case REDISMODULE_REPLY_MAP:
    case REDISMODULE_REPLY_SET:
    case REDISMODULE_REPLY_ATTRIBUTE:
        return reply->count;
    default:
        return 0;
    }
}

static long long rm_integer(RedisModuleCallReply *reply)
{
    return rm_type(reply) == REDISMODULE_REPLY_INTEGER ? reply->integer : LLONG_MIN;
}

static double rm_double(RedisModuleCallReply *reply)
{
    return rm_type(reply) == REDISMODULE_REPLY_DOUBLE ? reply->number : (double)LLONG_MIN;
}

static int rm_bool(RedisModuleCallReply *reply)
{
    return rm_type(reply) == REDISMODULE_REPLY_BOOL ? (int)reply->integer : INT_MIN;
}

static const char *text_of(RedisModuleCallReply *reply, size_t *len)
{
    if (len) {
        *len = reply->text.len;
    }
    return reply->text.ptr;
}

static const char *rm_big_number(RedisModuleCallReply *reply, size_t *len)
{
    return rm_type(reply) == REDISMODULE_REPLY_BIG_NUMBER ? text_of(reply, len) : NULL;
}

static const char *rm_verbatim(RedisModuleCallReply *reply, size_t *len, const char **format)
{
    if (rm_type(reply) != REDISMODULE_REPLY_VERBATIM_STRING) {
        return NULL;
    }
    if (format) {
        *format = reply->format;
    }
    return text_of(reply, len);
}

static const char *rm_string_ptr(RedisModuleCallReply *reply, size_t *len)
{
    int type = rm_type(reply);
    return type == REDISMODULE_REPLY_STRING || type == REDISMODULE_REPLY_ERROR ? text_of(reply, len)
                                                                               : NULL;
}

static RedisModuleString *rm_create_string(RedisModuleCallReply *reply)
{
    switch (rm_type(reply)) {
    case REDISMODULE_REPLY_STRING:
    case REDISMODULE_REPLY_ERROR:
    case REDISMODULE_REPLY_INTEGER: /* its line is the number's text */
        return text_give(reply->ctx, text_create(reply->text));
    default:
        return NULL;
    }
}

static RedisModuleCallReply *one_of(RedisModuleCallReply *reply, int type, size_t index)
{
    return rm_type(reply) == type && index < reply->count ? element(reply, index) : NULL;
}

static RedisModuleCallReply *rm_array_element(RedisModuleCallReply *reply, size_t index)
{
    return one_of(reply, REDISMODULE_REPLY_ARRAY, index);
}

static RedisModuleCallReply *rm_set_element(RedisModuleCallReply *reply, size_t index)
{
    return one_of(reply, REDISMODULE_REPLY_SET, index);
}

static int pair_of(RedisModuleCallReply *reply, int type, size_t index, RedisModuleCallReply **key,
                   RedisModuleCallReply **value)
{
    if (rm_type(reply) != type || index >= reply->count) {
        return REDISMODULE_ERR;
    }
    if (key) {
        *key = element(reply, 2 * index);
    }
    if (value) {
        *value = element(reply, 2 * index + 1);
    }
    return REDISMODULE_OK;
}

static int rm_map_element(RedisModuleCallReply *reply, size_t index, RedisModuleCallReply **key,
                          RedisModuleCallReply **value)
{
    return pair_of(reply, REDISMODULE_REPLY_MAP, index, key, value);
}

static RedisModuleCallReply *rm_attribute(RedisModuleCallReply *reply)
{
    return reply ? reply->attribute : NULL;
}

static int rm_attribute_element(RedisModuleCallReply *reply, size_t index,
                                RedisModuleCallReply **key, RedisModuleCallReply **value)
{
    return pair_of(reply, REDISMODULE_REPLY_ATTRIBUTE, index, key, value);
}

const struct api_function call_reply_functions[] = {
    API(FreeCallReply, rm_free),
    API(CallReplyType, rm_type),
    API(CallReplyProto, rm_proto),
    API(CallReplyLength, rm_length),
    API(CallReplyInteger, rm_integer),
    API(CallReplyDouble, rm_double),
    API(CallReplyBool, rm_bool),
    API(CallReplyBigNumber, rm_big_number),
    API(CallReplyVerbatim, rm_verbatim),
    API(CallReplyStringPtr, rm_string_ptr),
    API(CreateStringFromCallReply, rm_create_string),
    API(CallReplyArrayElement, rm_array_element),
    API(CallReplySetElement, rm_set_element),
    API(CallReplyMapElement, rm_map_element),
    API(CallReplyAttribute, rm_attribute),
    API(CallReplyAttributeElement, rm_attribute_element),
    {NULL, NULL},
};
