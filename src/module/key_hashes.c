/* Values of keys that modules open: hashes. Both functions take fields and values, or places for
 * what they tell, in turn up to a NULL. A field's new value drops its deadline, as HSET does. No
 * event is told: that is the module's. */
#include "module/keys.h"
#include "module/text.h"
#include "value/hash.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define SET_FLAGS                                                                                  \
    (REDISMODULE_HASH_NX | REDISMODULE_HASH_XX | REDISMODULE_HASH_CFIELDS |                        \
     REDISMODULE_HASH_COUNT_ALL)

/* The next field of the arguments; ptr NULL at their end. */
static struct slice next_field(int flags, va_list *arguments)
{
    if (flags & REDISMODULE_HASH_CFIELDS) {
        const char *field = va_arg(*arguments, const char *);
        return slice_of(field, field ? strlen(field) : 0);
    }
    const RedisModuleString *field = va_arg(*arguments, RedisModuleString *);
    return field ? text_slice(field) : slice_of(NULL, 0);
}

static bool set_field(RedisModuleKey *k, struct slice field, struct slice value)
    REQUIRES(keyspace_lock)
{
    const struct slice pair[] = {field, value};
    if (!k->ref.entry) {
        struct entry *e = hash_create(k->key.name, pair, 2);
        bool fresh = hash_set(&e, field, value, NULL);
        key_put_new(k, e);
        return fresh;
    }
    struct entry *e = k->ref.entry;
    hash_prepare(&e, pair, 2);
    bool fresh = hash_set(&e, field, value, NULL);
    if (e != k->ref.entry) {
        db_moved(&k->ref, e);
    }
    return fresh;
}

/* A hash that is empty then goes when all has been done: its expiry is kept for fields that come.
 */
static bool delete_field(RedisModuleKey *k, struct slice field) REQUIRES(keyspace_lock)
{
    return k->ref.entry && hash_delete(k->ref.entry, field);
}

/* Afterwards: the hash goes when it is empty, or gives back what it has too much. */
static void settle(RedisModuleKey *k) REQUIRES(keyspace_lock)
{
    struct entry *e = k->ref.entry;
    if (e && hash_len(e) == 0) {
        key_emptied(k);
    } else if (e) {
        hash_fit(&e);
        if (e != k->ref.entry) {
            db_moved(&k->ref, e);
        }
    }
}

/* Sets or deletes one field of the key that key_look has found; 1 when it counts. */
static int set_or_delete(RedisModuleKey *k, int flags, struct slice field,
                         const RedisModuleString *value) REQUIRES(keyspace_lock)
{
    if (flags & (REDISMODULE_HASH_NX | REDISMODULE_HASH_XX)) {
        bool is_there = k->ref.entry && hash_has(k->ref.entry, field);
        if (flags & (is_there ? REDISMODULE_HASH_NX : REDISMODULE_HASH_XX)) {
            return 0;
        }
    }
    if (value == REDISMODULE_HASH_DELETE) {
        return delete_field(k, field);
    }
    bool fresh = set_field(k, field, text_slice(value));
    return !fresh || flags & REDISMODULE_HASH_COUNT_ALL;
}

/* The number of fields replaced or deleted and, with COUNT_ALL, new ones. Where that is 0 errno
 * says why: ENOENT when nothing has failed. */
static int rm_hash_set(RedisModuleKey *k, int flags, ...)
{
    keyspace_assert_exclusive();
    if (flags & ~SET_FLAGS) {
        errno = EINVAL;
        return 0;
    }
    if (!key_open_or_missing(k, VALUE_HASH)) {
        return 0;
    }
    int count = 0;
    va_list arguments;
    va_start(arguments, flags);
    for (struct slice field; (field = next_field(flags, &arguments)).ptr != NULL;) {
        count += set_or_delete(k, flags, field, va_arg(arguments, RedisModuleString *));
    }
    va_end(arguments);
    settle(k);
    if (count == 0) {
        errno = ENOENT;
    }
    return count;
}

/* For each field its value, NULL where there is none; with HASH_EXISTS whether it is there, in an
 * int. A key that is missing has no fields. */
static int rm_hash_get(RedisModuleKey *k, int flags, ...)
{
    keyspace_assert_exclusive();
    const struct entry *e = k ? key_look(k)->entry : NULL;
    if (!k || (e && entry_type(e) != VALUE_HASH)) {
        return REDISMODULE_ERR;
    }
    va_list arguments;
    va_start(arguments, flags);
    for (struct slice field; (field = next_field(flags, &arguments)).ptr != NULL;) {
        struct hash_text value;
        bool is_there = e && hash_get(e, field, &value);
        if (flags & REDISMODULE_HASH_EXISTS) {
            *va_arg(arguments, int *) = is_there;
        } else {
            *va_arg(arguments, RedisModuleString **) =
                is_there ? text_give(k->ctx, text_create(value.bytes)) : NULL;
        }
    }
    va_end(arguments);
    return REDISMODULE_OK;
}

const struct api_function key_hash_functions[] = {
    API(HashSet, rm_hash_set),
    API(HashGet, rm_hash_get),
    {NULL, NULL},
};
