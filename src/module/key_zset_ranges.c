/* Values of keys that modules open: ranges of sorted sets. A range keeps ranks, not places, and
 * finds its member anew at each step: the set may change, or go, at any time. The range then is
 * what has these ranks. Its end has been reached (EndReached) when a step in either direction has
 * found nothing, or there is no range; what it stands on stays the current member. */
#include "base/mem.h"
#include "module/keys.h"
#include "module/text.h"
#include "value/zset.h"

struct range {
    struct zset_span span;
    uint64_t rank; /* it stands there, in the span unless that is empty */
    bool is_over;
};

static void end_range(RedisModuleKey *k)
{
    mem_free(k->walk);
}

static bool is_range(const RedisModuleKey *k)
{
    return k && k->end_walk == end_range;
}

static bool is_empty(const struct range *r)
{
    return r->span.start == r->span.stop;
}

static void begin(RedisModuleKey *k, struct zset_span span, bool at_last)
{
    struct range *r = mem_alloc(sizeof(*r));
    *r = (struct range){.span = span};
    r->is_over = is_empty(r);
    r->rank = at_last && !r->is_over ? span.stop - 1 : span.start;
    k->walk = r;
    k->end_walk = end_range;
}

/* Where a range may begin: the sorted set; what was begun before ends. */
static const struct entry *ready(RedisModuleKey *k) REQUIRES(keyspace_lock)
{
    if (!k) {
        return NULL;
    }
    const struct entry *e = key_value(k, VALUE_ZSET);
    if (e) {
        key_end_walk(k);
    }
    return e;
}

/* ---- by score ---- */

static int begin_scores(RedisModuleKey *k, const struct zset_score_range *range, bool at_last)
    REQUIRES(keyspace_lock)
{
    const struct entry *e = ready(k);
    if (!e) {
        return REDISMODULE_ERR;
    }
    begin(k, zset_span_of_scores(e, range), at_last);
    return REDISMODULE_OK;
}

static int rm_first_in_scores(RedisModuleKey *k, double min, double max, int min_out, int max_out)
{
    keyspace_assert_exclusive();
    const struct zset_score_range range = {min, max, min_out != 0, max_out != 0};
    return begin_scores(k, &range, false);
}

static int rm_last_in_scores(RedisModuleKey *k, double min, double max, int min_out, int max_out)
{
    keyspace_assert_exclusive();
    const struct zset_score_range range = {min, max, min_out != 0, max_out != 0};
    return begin_scores(k, &range, true);
}

/* ---- by member ---- */

static int begin_members(RedisModuleKey *k, const RedisModuleString *min,
                         const RedisModuleString *max, bool at_last) REQUIRES(keyspace_lock)
{
    const struct entry *e = ready(k);
    struct zset_lex_range range;
    if (!e || !zset_parse_lex_bound(text_slice(min), &range.min) ||
        !zset_parse_lex_bound(text_slice(max), &range.max)) {
        return REDISMODULE_ERR;
    }
    begin(k, zset_span_of_members(e, &range), at_last);
    return REDISMODULE_OK;
}

static int rm_first_in_members(RedisModuleKey *k, RedisModuleString *min, RedisModuleString *max)
{
    keyspace_assert_exclusive();
    return begin_members(k, min, max, false);
}

static int rm_last_in_members(RedisModuleKey *k, RedisModuleString *min, RedisModuleString *max)
{
    keyspace_assert_exclusive();
    return begin_members(k, min, max, true);
}

/* ---- going along ---- */

static void rm_range_stop(RedisModuleKey *k)
{
    if (is_range(k)) {
        key_end_walk(k);
    }
}

static int rm_range_end_reached(RedisModuleKey *k)
{
    return !is_range(k) || ((const struct range *)k->walk)->is_over;
}

static RedisModuleString *rm_range_current(RedisModuleKey *k, double *score)
{
    keyspace_assert_exclusive();
    const struct range *r = is_range(k) ? k->walk : NULL;
    const struct entry *e = r && !is_empty(r) ? key_value(k, VALUE_ZSET) : NULL;
    if (!e || r->rank >= zset_count(e)) {
        return NULL;
    }
    char text[ZSET_TEXT_BYTES];
    struct zset_cursor at = zset_cursor_at(e, r->rank, false);
    if (score) {
        *score = zset_cursor_score(&at);
    }
    return text_give(k->ctx, text_create(zset_cursor_member(&at, text)));
}

/* Where there is nothing more that way the range is over and 0 the answer. */
static int step(RedisModuleKey *k, bool up) REQUIRES(keyspace_lock)
{
    struct range *r = is_range(k) ? k->walk : NULL;
    if (!r || is_empty(r)) {
        return 0;
    }
    const struct entry *e = key_value(k, VALUE_ZSET);
    uint64_t count = e ? zset_count(e) : 0;
    uint64_t stop = r->span.stop < count ? r->span.stop : count;
    if (up ? r->rank + 1 >= stop : r->rank == r->span.start || r->rank > stop) {
        r->is_over = true;
        return 0;
    }
    r->rank += up ? 1 : -(uint64_t)1;
    return 1;
}

static int rm_range_next(RedisModuleKey *k)
{
    keyspace_assert_exclusive();
    return step(k, true);
}

static int rm_range_prev(RedisModuleKey *k)
{
    keyspace_assert_exclusive();
    return step(k, false);
}

const struct api_function key_zset_range_functions[] = {
    API(ZsetRangeStop, rm_range_stop),
    API(ZsetFirstInScoreRange, rm_first_in_scores),
    API(ZsetLastInScoreRange, rm_last_in_scores),
    API(ZsetFirstInLexRange, rm_first_in_members),
    API(ZsetLastInLexRange, rm_last_in_members),
    API(ZsetRangeCurrentElement, rm_range_current),
    API(ZsetRangeNext, rm_range_next),
    API(ZsetRangePrev, rm_range_prev),
    API(ZsetRangeEndReached, rm_range_end_reached),
    {NULL, NULL},
};
