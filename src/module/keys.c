/* Keys that modules open. See keys.h. */
#include "module/keys.h"

#include "base/mem.h"
#include "keyspace/event.h"
#include "keyspace/expire.h"
#include "keyspace/waiting.h"
#include "module/text.h"
#include "value/hash.h"
#include "value/list.h"
#include "value/set.h"
#include "value/stream.h"
#include "value/zset.h"

#include <assert.h>
#include <errno.h>

#define MODES_ALL                                                                                  \
    (REDISMODULE_READ | REDISMODULE_WRITE | REDISMODULE_OPEN_KEY_NOTOUCH |                         \
     REDISMODULE_OPEN_KEY_NONOTIFY | REDISMODULE_OPEN_KEY_NOSTATS |                                \
     REDISMODULE_OPEN_KEY_NOEXPIRE | REDISMODULE_OPEN_KEY_NOEFFECTS)

/* ---- opening ---- */

static void look_anew(RedisModuleKey *k) REQUIRES(keyspace_lock)
{
    db_open(&k->ref, k->db, &k->key, k->ctx->now_ms, DB_NO_TOUCH | DB_NO_STATS);
    k->moment = db_moment(); /* behind it: what was over is gone */
}

struct keyref *key_look(RedisModuleKey *k)
{
    struct db_moment now = db_moment();
    if (!db_moment_is(&k->moment, &now)) {
        look_anew(k);
    } else if (KEYDB_DEBUG) {
        struct keyref before = k->ref;
        look_anew(k);
        assert(k->ref.slot == before.slot && k->ref.entry == before.entry);
    }
    return &k->ref;
}

static unsigned look_flags(int mode)
{
    bool quiet = mode & REDISMODULE_OPEN_KEY_NOEFFECTS;
    return (quiet || mode & REDISMODULE_OPEN_KEY_NOTOUCH ? DB_NO_TOUCH : 0) |
           (quiet || mode & REDISMODULE_OPEN_KEY_NOSTATS ? DB_NO_STATS : 0);
}

static void destroy(RedisModuleKey *k) REQUIRES(keyspace_lock);
static void destroy(RedisModuleKey *k)
{
    bool signals = key_is_writable(k) && !k->closed_silently &&
                   !(k->ctx->module->options & REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED);
    key_end_walk(k);
    if (signals) {
        event_key_changed(k->db, k->key.name);
    }
    text_release(k->name);
    mem_free(k);
}

static void destroy_owned(void *k)
{
    keyspace_assert_exclusive();
    destroy(k);
}

RedisModuleKey *key_open(RedisModuleCtx *ctx, RedisModuleString *name, int mode)
{
    struct db *db = db_at(context_db(ctx));
    struct key key = key_of(text_slice(name));
    struct keyref ref;
    db_open(&ref, db, &key, ctx->now_ms, look_flags(mode));
    if (mode & REDISMODULE_WRITE ? ctx->looks : !ref.entry) {
        return NULL;
    }
    RedisModuleKey *k = mem_calloc(1, sizeof(*k));
    k->ctx = ctx;
    k->db = db;
    k->name = text_acquire(name);
    k->key = (struct key){text_slice(name), key.hash};
    k->ref = ref;
    k->moment = db_moment();
    k->mode = mode;
    context_own(ctx, k, destroy_owned);
    return k;
}

struct entry *key_value(RedisModuleKey *k, enum value_type type)
{
    struct entry *e = key_look(k)->entry;
    return e && entry_type(e) == type ? e : NULL;
}

struct entry *key_value_checked(RedisModuleKey *k, enum value_type type, int modes)
{
    if (!k) {
        errno = EINVAL;
        return NULL;
    }
    struct entry *e = key_value(k, type);
    if (!e) {
        errno = ENOTSUP;
        return NULL;
    }
    if ((k->mode & modes) != modes) {
        errno = EBADF;
        return NULL;
    }
    return e;
}

bool key_open_or_missing(RedisModuleKey *k, enum value_type type)
{
    if (!k) {
        errno = EINVAL;
        return false;
    }
    const struct entry *e = key_look(k)->entry;
    if (e && entry_type(e) != type) {
        errno = ENOTSUP;
        return false;
    }
    if (!key_is_writable(k)) {
        errno = EBADF;
        return false;
    }
    return true;
}

void key_put_new(RedisModuleKey *k, struct entry *entry_take)
{
    assert(!k->ref.entry);
    db_put(&k->ref, entry_take);
    waiting_note_change(k->db, k->key.name);
}

void key_emptied(RedisModuleKey *k)
{
    key_end_walk(k);
    db_delete(&k->ref, false);
}

void key_end_walk(RedisModuleKey *k)
{
    if (k->end_walk) {
        k->end_walk(k);
        k->end_walk = NULL;
        k->walk = NULL;
    }
}

void key_close(RedisModuleKey *k)
{
    context_disown(k->ctx, k);
    destroy(k);
}

static RedisModuleKey *rm_open_key(RedisModuleCtx *ctx, RedisModuleString *name, int mode)
{
    keyspace_assert_exclusive();
    return key_open(ctx, name, mode);
}

static int rm_get_open_key_modes_all(void)
{
    return MODES_ALL;
}

static void rm_close_key(RedisModuleKey *k)
{
    keyspace_assert_exclusive();
    if (k) {
        key_close(k);
    }
}

/* No trace of the access. */
static int rm_key_exists(RedisModuleCtx *ctx, RedisModuleString *name)
{
    keyspace_assert_exclusive();
    struct key key = key_of(text_slice(name));
    return db_read(db_at(context_db(ctx)), &key, ctx->now_ms, DB_NO_TOUCH | DB_NO_STATS) != NULL;
}

/* ---- what is there ---- */

static const int type_codes[] = {
    [VALUE_STRING] = REDISMODULE_KEYTYPE_STRING, [VALUE_LIST] = REDISMODULE_KEYTYPE_LIST,
    [VALUE_SET] = REDISMODULE_KEYTYPE_SET,       [VALUE_ZSET] = REDISMODULE_KEYTYPE_ZSET,
    [VALUE_HASH] = REDISMODULE_KEYTYPE_HASH,     [VALUE_MODULE] = REDISMODULE_KEYTYPE_MODULE,
    [VALUE_STREAM] = REDISMODULE_KEYTYPE_STREAM,
};
#define TYPE_CODES (sizeof(type_codes) / sizeof(type_codes[0]))

/* KeyDB's own types are none that a module knows: it sees a key that it can do nothing with. */
static int rm_key_type(RedisModuleKey *k)
{
    keyspace_assert_exclusive();
    const struct entry *e = k ? key_look(k)->entry : NULL;
    return e && entry_type(e) < TYPE_CODES ? type_codes[entry_type(e)] : REDISMODULE_KEYTYPE_EMPTY;
}

static size_t rm_value_length(RedisModuleKey *k)
{
    keyspace_assert_exclusive();
    const struct entry *e = k ? key_look(k)->entry : NULL;
    switch (e ? entry_type(e) : VALUE_TYPE_COUNT) {
    case VALUE_STRING:
        return string_len(e);
    case VALUE_LIST:
        return list_count(e);
    case VALUE_SET:
        return set_count(e);
    case VALUE_ZSET:
        return zset_count(e);
    case VALUE_HASH:
        return hash_len(e);
    case VALUE_STREAM:
        return stream_facts(e)->length;
    default:
        return 0;
    }
}

static const RedisModuleString *rm_key_name(RedisModuleKey *k)
{
    return k ? k->name : NULL;
}

static int rm_key_db(RedisModuleKey *k)
{
    return k ? k->db->id : -1;
}

/* ---- taking it away ---- */

static int delete_key(RedisModuleKey *k, bool lazily) REQUIRES(keyspace_lock)
{
    if (!key_is_writable(k)) {
        return REDISMODULE_ERR;
    }
    key_end_walk(k);
    struct keyref *ref = key_look(k);
    if (ref->entry) {
        db_delete(ref, lazily);
    }
    return REDISMODULE_OK;
}

static int rm_delete_key(RedisModuleKey *k)
{
    keyspace_assert_exclusive();
    return delete_key(k, false);
}

static int rm_unlink_key(RedisModuleKey *k)
{
    keyspace_assert_exclusive();
    return delete_key(k, true);
}

static int rm_signal_modified_key(RedisModuleCtx *ctx, RedisModuleString *name)
{
    keyspace_assert_exclusive();
    event_key_changed(db_at(context_db(ctx)), text_slice(name));
    return REDISMODULE_OK;
}

const struct api_function key_functions[] = {
    API(OpenKey, rm_open_key),
    API(GetOpenKeyModesAll, rm_get_open_key_modes_all),
    API(CloseKey, rm_close_key),
    API(KeyExists, rm_key_exists),
    API(KeyType, rm_key_type),
    API(ValueLength, rm_value_length),
    API(GetKeyNameFromModuleKey, rm_key_name),
    API(GetDbIdFromModuleKey, rm_key_db),
    API(DeleteKey, rm_delete_key),
    API(UnlinkKey, rm_unlink_key),
    API(SignalModifiedKey, rm_signal_modified_key),
    {NULL, NULL},
};
