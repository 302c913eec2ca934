/* RedisModuleKey: a key that a module has open. Several may be open, and the database may change
 * between two uses by any of them or by a call; so the handle has no pointer to the entry but finds
 * it anew for each function: key_look. State: keyspace. */
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
    struct keyref ref;               /* key_look's result */
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
/* Ends a range or iterator, if there is one. */
void key_end_walk(RedisModuleKey *k);

#endif
