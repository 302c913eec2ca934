/* Keys that modules open: when they expire, when they were used last. */
#include "keyspace/access.h"
#include "module/keys.h"

static mstime_t rm_get_abs_expire(RedisModuleKey *k)
{
    keyspace_assert_exclusive();
    const struct entry *e = key_look(k)->entry;
    int64_t at_ms = e ? entry_expiry_ms(e) : ENTRY_NO_EXPIRY;
    return at_ms == ENTRY_NO_EXPIRY ? REDISMODULE_NO_EXPIRE : at_ms;
}

static mstime_t rm_get_expire(RedisModuleKey *k)
{
    mstime_t at_ms = rm_get_abs_expire(k);
    if (at_ms == REDISMODULE_NO_EXPIRE) {
        return at_ms;
    }
    mstime_t left_ms = at_ms - k->ctx->now_ms;
    return left_ms > 0 ? left_ms : 0;
}

static int set_expiry(RedisModuleKey *k, int64_t at_ms) REQUIRES(keyspace_lock)
{
    struct keyref *ref = key_look(k);
    if (!key_is_writable(k) || !ref->entry) {
        return REDISMODULE_ERR;
    }
    db_set_expiry(ref, at_ms);
    return REDISMODULE_OK;
}

static int rm_set_abs_expire(RedisModuleKey *k, mstime_t at_ms)
{
    keyspace_assert_exclusive();
    if (at_ms < 0 && at_ms != REDISMODULE_NO_EXPIRE) {
        return REDISMODULE_ERR;
    }
    return set_expiry(k, at_ms == REDISMODULE_NO_EXPIRE ? ENTRY_NO_EXPIRY : at_ms);
}

static int rm_set_expire(RedisModuleKey *k, mstime_t in_ms)
{
    keyspace_assert_exclusive();
    if (in_ms == REDISMODULE_NO_EXPIRE) {
        return set_expiry(k, ENTRY_NO_EXPIRY);
    }
    int64_t at_ms;
    if (in_ms < 0 || __builtin_add_overflow(k->ctx->now_ms, in_ms, &at_ms)) {
        return REDISMODULE_ERR;
    }
    return set_expiry(k, at_ms);
}

/* ---- use: the one of the two that the policy counts ---- */

static int rm_set_lru(RedisModuleKey *k, mstime_t idle_ms)
{
    keyspace_assert_exclusive();
    struct entry *e = key_look(k)->entry;
    if (!e || access_is_lfu() || idle_ms < 0) {
        return REDISMODULE_ERR;
    }
    access_set_idle_ms(e, idle_ms, k->ctx->now_ms);
    return REDISMODULE_OK;
}

static int rm_get_lru(RedisModuleKey *k, mstime_t *idle_ms)
{
    keyspace_assert_exclusive();
    const struct entry *e = key_look(k)->entry;
    *idle_ms = -1;
    if (!e || access_is_lfu()) {
        return e ? REDISMODULE_OK : REDISMODULE_ERR;
    }
    *idle_ms = access_idle_ms(e, k->ctx->now_ms);
    return REDISMODULE_OK;
}

static int rm_set_lfu(RedisModuleKey *k, long long frequency)
{
    keyspace_assert_exclusive();
    struct entry *e = key_look(k)->entry;
    if (!e || !access_is_lfu() || frequency < 0 || frequency > UINT8_MAX) {
        return REDISMODULE_ERR;
    }
    access_set_frequency(e, (unsigned)frequency, k->ctx->now_ms);
    return REDISMODULE_OK;
}

static int rm_get_lfu(RedisModuleKey *k, long long *frequency)
{
    keyspace_assert_exclusive();
    const struct entry *e = key_look(k)->entry;
    *frequency = -1;
    if (e && access_is_lfu()) {
        *frequency = access_frequency(e, k->ctx->now_ms);
    }
    return e ? REDISMODULE_OK : REDISMODULE_ERR;
}

const struct api_function key_time_functions[] = {
    API(GetExpire, rm_get_expire),
    API(SetExpire, rm_set_expire),
    API(GetAbsExpire, rm_get_abs_expire),
    API(SetAbsExpire, rm_set_abs_expire),
    API(SetLRU, rm_set_lru),
    API(GetLRU, rm_get_lru),
    API(SetLFU, rm_set_lfu),
    API(GetLFU, rm_get_lfu),
    {NULL, NULL},
};
