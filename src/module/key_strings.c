/* Values of keys that modules open: strings. */
#include "module/keys.h"
#include "module/text.h"

/* Most bytes of a string, as everywhere (proto-max-bulk-len's default). */
#define STRING_MAX_BYTES ((size_t)512 * 1024 * 1024)

/* Another value takes the place of what is there, whatever that is, and its expiry goes. */
static int rm_string_set(RedisModuleKey *k, RedisModuleString *str)
{
    keyspace_assert_exclusive();
    if (!key_is_writable(k) || k->walk) {
        return REDISMODULE_ERR;
    }
    struct keyref *ref = key_look(k);
    if (ref->entry) { /* Redis deletes it first */
        event_key_goes(GOING_DELETED, ref->db, ref->key.name);
    }
    db_put(ref, string_create(k->key.name, text_slice(str), ENTRY_NO_EXPIRY));
    return REDISMODULE_OK;
}

static struct entry *string_of(RedisModuleKey *k) REQUIRES(keyspace_lock)
{
    struct entry *e = key_look(k)->entry;
    return e && entry_type(e) == VALUE_STRING ? e : NULL;
}

/* The string's bytes as they lie there; for writing those of nobody else. Valid until the key, or
 * the database, is changed otherwise. */
static char *rm_string_dma(RedisModuleKey *k, size_t *len, int mode)
{
    static char nothing[] = "";
    keyspace_assert_exclusive();
    struct entry *e = k ? string_of(k) : NULL;
    if (!e) {
        *len = 0;
        return k && !key_look(k)->entry ? nothing : NULL;
    }
    if (mode & REDISMODULE_WRITE && key_is_writable(k)) {
        *len = string_len(e);
        char *bytes = string_make_writable(&e, *len);
        db_moved(&k->ref, e);
        return bytes;
    }
    struct slice view = string_view(e, k->scratch);
    *len = view.len;
    return (char *)view.ptr;
}

/* Makes a string of so many bytes of a key that is missing. */
static int create_zeroed(RedisModuleKey *k, size_t len) REQUIRES(keyspace_lock)
{
    struct keyref *ref = key_look(k);
    struct entry *e = entry_create_string(k->key.name, SLICE(""), ENTRY_NO_EXPIRY);
    if (!string_make_writable(&e, len)) {
        entry_destroy(&e);
        return REDISMODULE_ERR;
    }
    db_put(ref, e);
    return REDISMODULE_OK;
}

/* Bytes beyond the old length are 0. A key that is missing stays so when nothing is asked for. */
static int rm_string_truncate(RedisModuleKey *k, size_t len)
{
    keyspace_assert_exclusive();
    if (!key_is_writable(k) || len > STRING_MAX_BYTES) {
        return REDISMODULE_ERR;
    }
    struct entry *e = string_of(k);
    if (!e) {
        bool is_missing = !key_look(k)->entry;
        return !is_missing ? REDISMODULE_ERR : len == 0 ? REDISMODULE_OK : create_zeroed(k, len);
    }
    bool fine = string_make_writable(&e, len) != NULL;
    db_moved(&k->ref, e);
    return fine ? REDISMODULE_OK : REDISMODULE_ERR;
}

const struct api_function key_string_functions[] = {
    API(StringSet, rm_string_set),
    API(StringDMA, rm_string_dma),
    API(StringTruncate, rm_string_truncate),
    {NULL, NULL},
};
