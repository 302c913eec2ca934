/* Values of keys that modules open: sorted sets. What is added makes one of a key that is missing;
 * one that loses its last member goes. No event is told: that is the module's. Ranges are in
 * key_zset_ranges.c. */
#include "module/keys.h"
#include "module/text.h"
#include "value/zset.h"

#include <math.h>

static const struct {
    int theirs;
    unsigned ours;
} conditions[] = {
    {REDISMODULE_ZADD_XX, ZSET_ADD_XX},
    {REDISMODULE_ZADD_NX, ZSET_ADD_NX},
    {REDISMODULE_ZADD_GT, ZSET_ADD_GT},
    {REDISMODULE_ZADD_LT, ZSET_ADD_LT},
};

/* What has happened, as modules are told. A score that was the same already is nothing. */
static const int outcomes[] = {
    [ZSET_SKIPPED] = REDISMODULE_ZADD_NOP,
    [ZSET_UPDATED] = REDISMODULE_ZADD_UPDATED,
    [ZSET_ADDED] = REDISMODULE_ZADD_ADDED,
    [ZSET_UNCHANGED] = 0,
    [ZSET_NAN] = 0,
};

/* zset_add at the key that has been opened, which a new member may create. */
static enum zset_added add_member(RedisModuleKey *k, struct slice member, unsigned flags,
                                  double *score) REQUIRES(keyspace_lock)
{
    if (k->ref.entry) {
        return zset_add(k->ref.entry, member, flags, score);
    }
    struct entry *e = zset_create(k->key.name, member.len);
    enum zset_added added = zset_add(e, member, flags, score);
    if (added == ZSET_ADDED) {
        key_put_new(k, e);
    } else {
        entry_destroy(&e);
    }
    return added;
}

/* ZsetAdd and, with ZSET_ADD_INCR in `kind`, ZsetIncrby. */
static int add(RedisModuleKey *k, RedisModuleString *member, unsigned kind, int *flags,
               double *score) REQUIRES(keyspace_lock)
{
    if (isnan(*score) || text_slice(member).len > ZSET_MAX_MEMBER_BYTES ||
        !key_open_or_missing(k, VALUE_ZSET)) {
        return REDISMODULE_ERR;
    }
    for (size_t i = 0; flags && i < sizeof(conditions) / sizeof(conditions[0]); i++) {
        kind |= *flags & conditions[i].theirs ? conditions[i].ours : 0;
    }
    enum zset_added added = add_member(k, text_slice(member), kind, score);
    if (flags) {
        *flags = outcomes[added];
    }
    return added == ZSET_NAN ? REDISMODULE_ERR : REDISMODULE_OK;
}

static int rm_zset_add(RedisModuleKey *k, double score, RedisModuleString *member, int *flags)
{
    keyspace_assert_exclusive();
    return add(k, member, 0, flags, &score);
}

/* *new_score stays as it is when a condition did not hold. */
static int rm_zset_incrby(RedisModuleKey *k, double increment, RedisModuleString *member,
                          int *flags, double *new_score)
{
    keyspace_assert_exclusive();
    int told = flags ? *flags : 0;
    int result = add(k, member, ZSET_ADD_INCR, &told, &increment);
    if (result == REDISMODULE_OK && new_score && !(told & REDISMODULE_ZADD_NOP)) {
        *new_score = increment;
    }
    if (flags) {
        *flags = told;
    }
    return result;
}

static int rm_zset_rem(RedisModuleKey *k, RedisModuleString *member, int *deleted)
{
    keyspace_assert_exclusive();
    if (!key_open_or_missing(k, VALUE_ZSET)) {
        return REDISMODULE_ERR;
    }
    bool gone = k->ref.entry && zset_remove(k->ref.entry, text_slice(member));
    if (gone && zset_count(k->ref.entry) == 0) {
        key_emptied(k);
    }
    if (deleted) {
        *deleted = gone;
    }
    return REDISMODULE_OK;
}

static int rm_zset_score(RedisModuleKey *k, RedisModuleString *member, double *score)
{
    keyspace_assert_exclusive();
    const struct entry *e = k ? key_value(k, VALUE_ZSET) : NULL;
    return e && zset_score(e, text_slice(member), score) ? REDISMODULE_OK : REDISMODULE_ERR;
}

const struct api_function key_zset_functions[] = {
    API(ZsetAdd, rm_zset_add),
    API(ZsetIncrby, rm_zset_incrby),
    API(ZsetRem, rm_zset_rem),
    API(ZsetScore, rm_zset_score),
    {NULL, NULL},
};
