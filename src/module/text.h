/* RedisModuleString: what a module sees of a string. Reference-counted bytes of our own with a NUL
 * behind them, which is not counted; or a large argument's blob. A string that has one reference
 * may be changed by its holder; else it is immutable. State: the count is atomic; strings may be
 * made, held and freed by any thread. */
#ifndef MODULE_TEXT_H
#define MODULE_TEXT_H

#include "base/slice.h"
#include "module/api.h"
#include "value/blob.h"

#include <stdatomic.h>

struct RedisModuleString {
    _Atomic uint32_t refs;
    size_t len;
    char *ptr;         /* len bytes and a NUL: in `inline_bytes`, in `grown`, or in the blob */
    char *grown;       /* StringAppendBuffer's own block, or NULL */
    size_t capacity;   /* of `grown` */
    struct blob *blob; /* or NULL */
    char inline_bytes[];
};

/* A new string with one reference: a copy of the bytes. */
RedisModuleString *text_create(struct slice bytes);
/* A new string of an argument, which large ones share with the request. */
RedisModuleString *text_create_argument(struct slice bytes, struct blob *blob);
/* A new string for a short while, whose end is text_give_back: its block is `*kept` where there is
 * one that fits, which is NULL then. */
RedisModuleString *text_create_kept(RedisModuleString **kept, struct slice bytes);
/* One reference less. The block stays in `*kept` for the next one, unless there is one already, or
 * others hold the string; text_drop_kept frees it. */
void text_give_back(RedisModuleString **kept, RedisModuleString *s);
void text_drop_kept(RedisModuleString **kept);
/* One reference more; returns the string. One less; the last one frees. */
RedisModuleString *text_acquire(RedisModuleString *s);
void text_release(RedisModuleString *s);
static inline struct slice text_slice(const RedisModuleString *s)
{
    return slice_of(s->ptr, s->len);
}
/* Bytes of memory that only this string holds. */
size_t text_memory_bytes(const RedisModuleString *s);
/* Gives a new string to the module: the context frees it where it looks after memory. */
RedisModuleString *text_give(RedisModuleCtx *ctx, RedisModuleString *s);

#endif
