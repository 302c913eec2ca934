/* See text.h, and the functions of modules on strings. Without lock. */
#include "module/text.h"

#include "base/mem.h"
#include "module/context.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* StringAppendBuffer's block is at least so much larger than what is in it. */
#define GROWTH_BYTES 64
/* Room of a string that is kept for the next one. */
#define KEPT_ROOM ((size_t)128)

/* ---- for the server's side ---- */

/* The block's bytes are at least one more than these. */
static inline RedisModuleString *init(RedisModuleString *s, struct slice bytes)
{
    atomic_init(&s->refs, 1);
    s->len = bytes.len;
    s->ptr = s->inline_bytes;
    s->grown = NULL;
    s->capacity = 0;
    s->blob = NULL;
    if (bytes.len > 0) {
        memcpy(s->inline_bytes, bytes.ptr, bytes.len);
    }
    s->inline_bytes[bytes.len] = '\0';
    return s;
}

RedisModuleString *text_create(struct slice bytes)
{
    RedisModuleString *s = mem_alloc(sizeof(*s) + bytes.len + 1);
    return init(s, bytes);
}

RedisModuleString *text_create_kept(RedisModuleString **kept, struct slice bytes)
{
    if (bytes.len >= KEPT_ROOM) {
        return text_create(bytes);
    }
    RedisModuleString *s = *kept ? *kept : mem_alloc(sizeof(*s) + KEPT_ROOM);
    *kept = NULL;
    return init(s, bytes);
}

/* Whether a NUL can be put behind the blob's bytes, where nobody else looks. */
static bool can_end(const struct blob *b, struct slice bytes)
{
    return bytes.ptr == b->bytes && bytes.len == b->len && b->capacity > b->len &&
           blob_is_exclusive(b);
}

RedisModuleString *text_create_argument(struct slice bytes, struct blob *blob)
{
    if (!blob || !can_end(blob, bytes)) {
        return text_create(bytes);
    }
    RedisModuleString *s = text_create(SLICE(""));
    blob->bytes[blob->len] = '\0';
    s->blob = blob_acquire(blob);
    s->ptr = blob->bytes;
    s->len = blob->len;
    return s;
}

RedisModuleString *text_acquire(RedisModuleString *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

static bool is_shared(const RedisModuleString *s)
{
    return atomic_load_explicit(&((RedisModuleString *)s)->refs, memory_order_acquire) != 1;
}

void text_release(RedisModuleString *s)
{
    /* Release and acquire: who frees it comes after all who have read it. The only holder need not
     * count, since nobody can become another one. */
    if (!is_shared(s) || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) {
        if (s->blob) {
            blob_release(&s->blob);
        }
        mem_free(s->grown);
        mem_free(s);
    }
}

/* (One that was long from the start, or has grown, has no block of that size.) */
void text_give_back(RedisModuleString **kept, RedisModuleString *s)
{
    if (*kept || is_shared(s) || s->len >= KEPT_ROOM || s->grown) {
        text_release(s);
    } else {
        *kept = s;
    }
}

void text_drop_kept(RedisModuleString **kept)
{
    mem_free(*kept);
    *kept = NULL;
}

size_t text_memory_bytes(const RedisModuleString *s)
{
    return mem_usable_size(s) + (s->grown ? mem_usable_size(s->grown) : 0) +
           (s->blob ? mem_usable_size(s->blob) : 0);
}

static void destroy_text(void *s)
{
    text_release(s);
}

RedisModuleString *text_give(RedisModuleCtx *ctx, RedisModuleString *s)
{
    context_own(ctx, s, destroy_text);
    return s;
}

/* ---- for modules ---- */

static RedisModuleString *rm_create_string(RedisModuleCtx *ctx, const char *ptr, size_t len)
{
    return text_give(ctx, text_create(slice_of(ptr, len)));
}

static RedisModuleString *rm_create_string_from_string(RedisModuleCtx *ctx,
                                                       const RedisModuleString *str)
{
    return text_give(ctx, text_create(text_slice(str)));
}

static RedisModuleString *rm_create_string_printf(RedisModuleCtx *ctx, const char *format, ...)
    PRINTF_LIKE(2, 3);
static RedisModuleString *rm_create_string_printf(RedisModuleCtx *ctx, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    size_t bytes = len > 0 ? (size_t)len : 0;
    char *text = mem_alloc(bytes + 1);
    va_start(arguments, format);
    vsnprintf(text, bytes + 1, format, arguments);
    va_end(arguments);
    RedisModuleString *s = rm_create_string(ctx, text, bytes);
    mem_free(text);
    return s;
}

static void rm_free_string(RedisModuleCtx *ctx, RedisModuleString *str)
{
    context_disown(ctx, str);
    text_release(str);
}

/* The context's reference becomes the module's, or the module has one more. */
static void rm_retain_string(RedisModuleCtx *ctx, RedisModuleString *str)
{
    if (!context_disown(ctx, str)) {
        text_acquire(str);
    }
}

static RedisModuleString *rm_hold_string(RedisModuleCtx *ctx, RedisModuleString *str)
{
    return text_give(ctx, text_acquire(str));
}

static const char *rm_string_ptr_len(const RedisModuleString *str, size_t *len)
{
    static const char absent[] = "(NULL string reply referenced in module)";
    if (!str) {
        if (len) {
            *len = sizeof(absent) - 1;
        }
        return absent;
    }
    if (len) {
        *len = str->len;
    }
    return str->ptr;
}

static int rm_string_compare(const RedisModuleString *a, const RedisModuleString *b)
{
    int order = slice_compare(text_slice(a), text_slice(b));
    return (order > 0) - (order < 0);
}

/* Room for `len` bytes and a NUL in a block of the string's own. */
static void grow(RedisModuleString *s, size_t len)
{
    if (s->ptr == s->grown && len < s->capacity) {
        return;
    }
    size_t capacity = len + len / 2 + GROWTH_BYTES;
    char *bytes = mem_realloc(s->grown, capacity);
    if (!s->grown) {
        memcpy(bytes, s->ptr, s->len);
    }
    if (s->blob) {
        blob_release(&s->blob);
    }
    s->grown = s->ptr = bytes;
    s->capacity = capacity;
}

static int rm_string_append_buffer(RedisModuleCtx *ctx, RedisModuleString *str, const char *buf,
                                   size_t len)
{
    (void)ctx;
    if (is_shared(str)) {
        return REDISMODULE_ERR;
    }
    grow(str, str->len + len);
    if (len > 0) {
        memcpy(str->ptr + str->len, buf, len);
    }
    str->len += len;
    str->ptr[str->len] = '\0';
    return REDISMODULE_OK;
}

static void rm_trim_string_allocation(RedisModuleString *str)
{
    if (str && str->grown && !is_shared(str) && str->len + 1 < str->capacity) {
        str->capacity = str->len + 1;
        str->grown = str->ptr = mem_realloc(str->grown, str->capacity);
    }
}

const struct api_function string_functions[] = {
    API(CreateString, rm_create_string),
    API(CreateStringFromString, rm_create_string_from_string),
    API(CreateStringPrintf, rm_create_string_printf),
    API(FreeString, rm_free_string),
    API(RetainString, rm_retain_string),
    API(HoldString, rm_hold_string),
    API(StringPtrLen, rm_string_ptr_len),
    API(StringCompare, rm_string_compare),
    API(StringAppendBuffer, rm_string_append_buffer),
    API(TrimStringAllocation, rm_trim_string_allocation),
    {NULL, NULL},
};
