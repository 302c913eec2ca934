/* Values of keys that modules open: lists. An index counts from 0 or, negative, from the end (-1 is
 * the last element). Functions that fail say why in errno (key_value_checked, and EDOM: there is no
 * such index). What they push or insert makes a list of a key that is missing; a list that loses
 * its last element goes. No event is told: that is the module's. */
#include "module/keys.h"
#include "module/text.h"
#include "value/list.h"

#include <errno.h>

/* The list with an element at `*index`, which counts from 0 then; NULL: errno. */
static struct entry *list_at(RedisModuleKey *k, long *index, int modes) REQUIRES(keyspace_lock)
{
    struct entry *e = key_value_checked(k, VALUE_LIST, modes);
    if (!e) {
        return NULL;
    }
    long count = (long)list_count(e);
    if (*index >= count || *index < -count) {
        errno = EDOM;
        return NULL;
    }
    *index += *index < 0 ? count : 0;
    return e;
}

static RedisModuleString *element_at(RedisModuleKey *k, const struct entry *e, uint64_t index)
    REQUIRES(keyspace_lock)
{
    struct list_cursor cursor;
    list_cursor_open(&cursor, e, index, false);
    RedisModuleString *element = NULL;
    if (list_cursor_next(&cursor)) {
        element = text_give(k->ctx, text_create(list_cursor_get(&cursor)));
    }
    list_cursor_close(&cursor);
    return element;
}

/* After elements were taken out of the list that key_look has found. */
static void removed(RedisModuleKey *k) REQUIRES(keyspace_lock)
{
    if (list_count(k->ref.entry) == 0) {
        key_emptied(k);
    } else {
        list_shrink(k->ref.entry);
    }
}

static int rm_list_push(RedisModuleKey *k, int where, RedisModuleString *element)
{
    keyspace_assert_exclusive();
    if (!element) {
        errno = EINVAL;
        return REDISMODULE_ERR;
    }
    if (!key_open_or_missing(k, VALUE_LIST)) {
        return REDISMODULE_ERR;
    }
    enum list_end end = where == REDISMODULE_LIST_HEAD ? LIST_HEAD : LIST_TAIL;
    const struct slice bytes = text_slice(element);
    if (k->ref.entry) {
        list_push(k->ref.entry, end, &bytes, 1);
    } else {
        struct entry *e = list_create(k->key.name, ENTRY_NO_EXPIRY);
        list_push(e, end, &bytes, 1);
        key_put_new(k, e);
    }
    return REDISMODULE_OK;
}

static RedisModuleString *rm_list_pop(RedisModuleKey *k, int where)
{
    keyspace_assert_exclusive();
    struct entry *e = key_value_checked(k, VALUE_LIST, REDISMODULE_WRITE);
    if (!e) {
        return NULL;
    }
    bool head = where == REDISMODULE_LIST_HEAD;
    RedisModuleString *element = element_at(k, e, head ? 0 : list_count(e) - 1);
    list_pop(e, head ? LIST_HEAD : LIST_TAIL);
    removed(k);
    return element;
}

static RedisModuleString *rm_list_get(RedisModuleKey *k, long index)
{
    keyspace_assert_exclusive();
    const struct entry *e = list_at(k, &index, REDISMODULE_READ);
    return e ? element_at(k, e, (uint64_t)index) : NULL;
}

static int rm_list_set(RedisModuleKey *k, long index, RedisModuleString *value)
{
    keyspace_assert_exclusive();
    if (!value) {
        errno = EINVAL;
        return REDISMODULE_ERR;
    }
    struct entry *e = list_at(k, &index, REDISMODULE_WRITE);
    if (!e) {
        return REDISMODULE_ERR;
    }
    list_replace(e, (uint64_t)index, text_slice(value));
    list_shrink(e);
    return REDISMODULE_OK;
}

/* The element has that index afterwards, counted in the longer list: 0 and -1 make a list. */
static int rm_list_insert(RedisModuleKey *k, long index, RedisModuleString *value)
{
    keyspace_assert_exclusive();
    if (!value) {
        errno = EINVAL;
        return REDISMODULE_ERR;
    }
    const struct entry *there = k ? key_look(k)->entry : NULL;
    bool is_list = there && entry_type(there) == VALUE_LIST;
    long count = is_list ? (long)list_count(there) : 0;
    if (k && (!there || is_list) && (index == count || index == -1)) {
        return rm_list_push(k, REDISMODULE_LIST_TAIL, value);
    }
    struct entry *e = key_value_checked(k, VALUE_LIST, REDISMODULE_WRITE);
    if (!e) {
        return REDISMODULE_ERR;
    }
    long place = index < 0 ? count + 1 + index : index;
    if (place < 0 || place > count) {
        errno = EDOM;
        return REDISMODULE_ERR;
    }
    list_insert(e, (uint64_t)place, text_slice(value));
    return REDISMODULE_OK;
}

static int rm_list_delete(RedisModuleKey *k, long index)
{
    keyspace_assert_exclusive();
    struct entry *e = list_at(k, &index, REDISMODULE_WRITE);
    if (!e) {
        return REDISMODULE_ERR;
    }
    list_remove_range(e, (uint64_t)index, 1);
    removed(k);
    return REDISMODULE_OK;
}

const struct api_function key_list_functions[] = {
    API(ListPush, rm_list_push),
    API(ListPop, rm_list_pop),
    API(ListGet, rm_list_get),
    API(ListSet, rm_list_set),
    API(ListInsert, rm_list_insert),
    API(ListDelete, rm_list_delete),
    {NULL, NULL},
};
