/* Dictionaries of modules: radix trees of their own, keys in memcmp order, values pointers of the
 * module's. An iterator keeps a copy of its key and finds its place anew for each step, so the
 * dictionary may change meanwhile. A dictionary belongs to the module that made it, which sees to
 * it that one thread at a time uses it. Without lock. */
#include "base/buf.h"
#include "base/mem.h"
#include "ds/radix.h"
#include "module/context.h"
#include "module/text.h"

#include <string.h>

struct RedisModuleDict {
    struct radix tree;
};

struct RedisModuleDictIter {
    const struct radix *tree;
    struct buf key; /* it stands there */
    bool is_ahead;  /* what it stands on has not been given out */
    bool has_ended; /* it stands nowhere */
};

/* The tree takes no NULL. */
static char null_value;

static void *to_tree(void *value)
{
    return value ? value : &null_value;
}

static void *from_tree(void *value)
{
    return value == &null_value ? NULL : value;
}

static void destroy(void *dict)
{
    RedisModuleDict *d = dict;
    radix_deinit(&d->tree, NULL, NULL);
    mem_free(d);
}

static RedisModuleDict *rm_create(RedisModuleCtx *ctx)
{
    RedisModuleDict *d = mem_alloc(sizeof(*d));
    radix_init(&d->tree);
    context_own(ctx, d, destroy);
    return d;
}

static void rm_free(RedisModuleCtx *ctx, RedisModuleDict *d)
{
    context_disown(ctx, d);
    destroy(d);
}

static uint64_t rm_size(RedisModuleDict *d)
{
    return d->tree.count;
}

static size_t rm_malloc_size(RedisModuleDict *d)
{
    return mem_usable_size(d) + d->tree.bytes;
}

/* ---- single keys ---- */

static int rm_set_c(RedisModuleDict *d, void *key, size_t len, void *value)
{
    return radix_insert(&d->tree, slice_of(key, len), to_tree(value)) ? REDISMODULE_ERR
                                                                      : REDISMODULE_OK;
}

/* REDISMODULE_ERR says that there was one, which is replaced. */
static int rm_replace_c(RedisModuleDict *d, void *key, size_t len, void *value)
{
    struct slice name = slice_of(key, len);
    if (!radix_insert(&d->tree, name, to_tree(value))) {
        return REDISMODULE_OK;
    }
    struct radix_cursor c = radix_seek(&d->tree, RADIX_EQUAL, name);
    radix_cursor_set_value(&c, to_tree(value));
    return REDISMODULE_ERR;
}

static void *rm_get_c(RedisModuleDict *d, void *key, size_t len, int *no_key)
{
    void *value = radix_find(&d->tree, slice_of(key, len));
    if (no_key) {
        *no_key = !value;
    }
    return from_tree(value);
}

static int rm_del_c(RedisModuleDict *d, void *key, size_t len, void *old)
{
    void *value = radix_remove(&d->tree, slice_of(key, len));
    if (!value) {
        return REDISMODULE_ERR;
    }
    if (old) {
        *(void **)old = from_tree(value);
    }
    return REDISMODULE_OK;
}

static int rm_set(RedisModuleDict *d, RedisModuleString *key, void *value)
{
    return rm_set_c(d, key->ptr, key->len, value);
}

static int rm_replace(RedisModuleDict *d, RedisModuleString *key, void *value)
{
    return rm_replace_c(d, key->ptr, key->len, value);
}

static void *rm_get(RedisModuleDict *d, RedisModuleString *key, int *no_key)
{
    return rm_get_c(d, key->ptr, key->len, no_key);
}

static int rm_del(RedisModuleDict *d, RedisModuleString *key, void *old)
{
    return rm_del_c(d, key->ptr, key->len, old);
}

/* ---- iterators ---- */

static const struct {
    const char *word;
    enum radix_seek how;
} operators[] = {
    {"<", RADIX_LESS},           {"<=", RADIX_LESS_EQUAL}, {"==", RADIX_EQUAL},
    {">=", RADIX_GREATER_EQUAL}, {">", RADIX_GREATER},
};
#define OPERATORS (sizeof(operators) / sizeof(operators[0]))

/* The operator of that word; OPERATORS when there is none. */
static size_t operator_of(const char *word)
{
    size_t i = 0;
    while (i < OPERATORS && strcmp(operators[i].word, word) != 0) {
        i++;
    }
    return i;
}

static struct radix_cursor seek(const struct radix *tree, const char *word, struct slice key)
{
    size_t i = operator_of(word);
    if (i < OPERATORS) {
        return radix_seek(tree, operators[i].how, key);
    }
    return strcmp(word, "^") == 0   ? radix_first(tree)
           : strcmp(word, "$") == 0 ? radix_last(tree)
                                    : (struct radix_cursor){NULL};
}

/* The iterator stands where the cursor does. */
static void stand(RedisModuleDictIter *i, struct radix_cursor c)
{
    i->has_ended = !radix_cursor_valid(&c);
    if (!i->has_ended) {
        size_t len = radix_cursor_key_bytes(&c);
        buf_clear(&i->key);
        radix_cursor_copy_key(&c, buf_reserve(&i->key, len));
        i->key.len = len;
    }
}

static int rm_reseek_c(RedisModuleDictIter *i, const char *word, void *key, size_t len)
{
    stand(i, seek(i->tree, word, slice_of(key, len)));
    i->is_ahead = true;
    bool known = operator_of(word) < OPERATORS || strcmp(word, "^") == 0 || strcmp(word, "$") == 0;
    return known; /* 1 as the tree of Redis has it, though REDISMODULE_OK is 0 */
}

static int rm_reseek(RedisModuleDictIter *i, const char *word, RedisModuleString *key)
{
    return rm_reseek_c(i, word, key->ptr, key->len);
}

static RedisModuleDictIter *rm_start_c(RedisModuleDict *d, const char *word, void *key, size_t len)
{
    RedisModuleDictIter *i = mem_calloc(1, sizeof(*i));
    i->tree = &d->tree;
    rm_reseek_c(i, word, key, len);
    return i;
}

static RedisModuleDictIter *rm_start(RedisModuleDict *d, const char *word, RedisModuleString *key)
{
    return rm_start_c(d, word, key ? key->ptr : NULL, key ? key->len : 0);
}

static void rm_stop(RedisModuleDictIter *i)
{
    buf_deinit(&i->key);
    mem_free(i);
}

/* One step, the first time to where the iterator stands already. NULL at the end. */
static void *step(RedisModuleDictIter *i, enum radix_seek how, size_t *len, void **value)
{
    if (i->has_ended) {
        return NULL;
    }
    struct radix_cursor c =
        radix_seek(i->tree, i->is_ahead ? RADIX_EQUAL : how, buf_slice(&i->key));
    if (i->is_ahead && !radix_cursor_valid(&c)) { /* it has been deleted meanwhile */
        c = radix_seek(i->tree, how, buf_slice(&i->key));
    }
    i->is_ahead = false;
    stand(i, c);
    if (i->has_ended) {
        return NULL;
    }
    if (len) {
        *len = i->key.len;
    }
    if (value) {
        *value = from_tree(radix_cursor_value(&c));
    }
    return (void *)buf_cstr(&i->key);
}

static void *rm_next_c(RedisModuleDictIter *i, size_t *len, void **value)
{
    return step(i, RADIX_GREATER, len, value);
}

static void *rm_prev_c(RedisModuleDictIter *i, size_t *len, void **value)
{
    return step(i, RADIX_LESS, len, value);
}

static RedisModuleString *give_key(RedisModuleCtx *ctx, const void *key, size_t len)
{
    return key ? text_give(ctx, text_create(slice_of(key, len))) : NULL;
}

static RedisModuleString *rm_next(RedisModuleCtx *ctx, RedisModuleDictIter *i, void **value)
{
    size_t len = 0;
    const void *key = rm_next_c(i, &len, value);
    return give_key(ctx, key, len);
}

static RedisModuleString *rm_prev(RedisModuleCtx *ctx, RedisModuleDictIter *i, void **value)
{
    size_t len = 0;
    const void *key = rm_prev_c(i, &len, value);
    return give_key(ctx, key, len);
}

/* Whether the key that the iterator stands on is in that relation to this one. */
static int rm_compare_c(RedisModuleDictIter *i, const char *word, void *key, size_t len)
{
    size_t which = operator_of(word);
    if (i->has_ended || which == OPERATORS) {
        return REDISMODULE_ERR;
    }
    int order = slice_compare(buf_slice(&i->key), slice_of(key, len));
    enum radix_seek how = operators[which].how;
    bool holds = order < 0   ? how == RADIX_LESS || how == RADIX_LESS_EQUAL
                 : order > 0 ? how == RADIX_GREATER || how == RADIX_GREATER_EQUAL
                             : how != RADIX_LESS && how != RADIX_GREATER;
    return holds ? REDISMODULE_OK : REDISMODULE_ERR;
}

static int rm_compare(RedisModuleDictIter *i, const char *word, RedisModuleString *key)
{
    return rm_compare_c(i, word, key->ptr, key->len);
}

const struct api_function dict_functions[] = {
    API(CreateDict, rm_create),
    API(FreeDict, rm_free),
    API(DictSize, rm_size),
    API(MallocSizeDict, rm_malloc_size),
    API(DictSetC, rm_set_c),
    API(DictReplaceC, rm_replace_c),
    API(DictSet, rm_set),
    API(DictReplace, rm_replace),
    API(DictGetC, rm_get_c),
    API(DictGet, rm_get),
    API(DictDelC, rm_del_c),
    API(DictDel, rm_del),
    API(DictIteratorStartC, rm_start_c),
    API(DictIteratorStart, rm_start),
    API(DictIteratorStop, rm_stop),
    API(DictIteratorReseekC, rm_reseek_c),
    API(DictIteratorReseek, rm_reseek),
    API(DictNextC, rm_next_c),
    API(DictPrevC, rm_prev_c),
    API(DictNext, rm_next),
    API(DictPrev, rm_prev),
    API(DictCompareC, rm_compare_c),
    API(DictCompare, rm_compare),
    {NULL, NULL},
};
