/* RedisModuleKey: a key that a module has open. Several may be open, and the database may change
 * between two uses by any of them or by a call; so each function asks key_look for the entry, which
 * finds it anew wherever it may have moved. State: keyspace. */
#ifndef MODULE_KEYS_H
#define MODULE_KEYS_H

#include "keyspace/db.h"
#include "module/context.h"
#include "value/string.h"

struct RedisModuleKey {
    RedisModuleCtx *ctx;
    struct db *db;
    RedisModuleString *name;         /* a reference */
    struct key key;                  /* of it, hashed */
    int mode;                        /* REDISMODULE_READ, _WRITE, _OPEN_KEY_ */
    bool closed_silently;            /* nobody is told of changes when it is closed */
    struct keyref ref;               /* key_look's result, */
    struct db_moment moment;         /* as of then */
    char scratch[STRING_VIEW_BYTES]; /* a number's text that StringDMA has given out */
    void *walk;                      /* a range or iterator that its file keeps; NULL: none */
    void (*end_walk)(RedisModuleKey *k);
};

/* The place of the key as it is now; no further access of it is counted. Valid until the database
 * changes. */
struct keyref *key_look(RedisModuleKey *k) REQUIRES(keyspace_lock);
static inline bool key_is_writable(const RedisModuleKey *k)
{
    return k->mode & REDISMODULE_WRITE;
}
/* A key by its name, opened in the context's database. NULL where it is missing and is not opened
 * for writing, or where nothing may be changed and it is. The caller closes it, or the context. */
RedisModuleKey *key_open(RedisModuleCtx *ctx, RedisModuleString *name, int mode)
    REQUIRES(keyspace_lock);
/* Closes it: who looks at the key is told where it was opened for writing. */
void key_close(RedisModuleKey *k) REQUIRES(keyspace_lock);
/* The value of that type at the key; NULL where it is missing or of another type. */
struct entry *key_value(RedisModuleKey *k, enum value_type type) REQUIRES(keyspace_lock);
/* The same for functions that tell in errno why they fail: EINVAL when k is NULL, ENOTSUP when
 * there is no such value, EBADF when the key has not been opened for all of `modes`
 * (REDISMODULE_READ, _WRITE); NULL then. */
struct entry *key_value_checked(RedisModuleKey *k, enum value_type type, int modes)
    REQUIRES(keyspace_lock);
/* For functions that make a value where there is none: true, with what is there in k->ref, when the
 * key is open for writing and is missing or has a value of that type; else false, errno as above.
 */
bool key_open_or_missing(RedisModuleKey *k, enum value_type type) MUST_CHECK
    REQUIRES(keyspace_lock);
/* Puts the first value of a key that is missing there; who waits for it is served. Behind
 * key_look. */
void key_put_new(RedisModuleKey *k, struct entry *entry_take) REQUIRES(keyspace_lock);
/* The value has lost its last element: the key goes. Behind key_look. */
void key_emptied(RedisModuleKey *k) REQUIRES(keyspace_lock);
/* Ends a range or iterator, if there is one. */
void key_end_walk(RedisModuleKey *k);

#endif
