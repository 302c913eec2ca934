/* Sorted sets: ranges by rank, score and member: reading, counting, storing and removing them.
 * Every range becomes a span of ranks first; LIMIT is arithmetic on it. */
#include "commands/commands.h"
#include "commands/zsets_priv.h"

#include "base/mem.h"
#include "engine/propagate.h"

#include <math.h>

/* Longest text of a bound that is parsed without a block of memory. */
#define BOUND_TEXT_BYTES 128

enum range_by { BY_ANY, BY_RANK, BY_SCORE, BY_MEMBER };

struct range {
    enum range_by by;
    bool down;
    int64_t first, last; /* BY_RANK, negative from the end */
    struct zset_score_range scores;
    struct zset_lex_range members;
};

/* ---- Parsing ---- */

/* A bound as strtod reads it: leading blanks, hexadecimal and overflow to infinity are fine, empty
 * text is 0, a NUL ends it. */
static bool parse_score(struct slice text, double *score)
{
    char few[BOUND_TEXT_BYTES];
    char *copy = text.len < sizeof(few) ? few : mem_alloc(text.len + 1);
    char *end;
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    *score = strtod(copy, &end);
    bool fine = *end == '\0' && !isnan(*score);
    if (copy != few) {
        mem_free(copy);
    }
    return fine;
}

static bool parse_score_bound(struct slice text, double *score, bool *excluded)
{
    *excluded = text.len > 0 && text.ptr[0] == '(';
    return parse_score(*excluded ? slice_of(text.ptr + 1, text.len - 1) : text, score);
}

/* Parses the bounds at arguments `at` and `at` + 1; going down by score or member they stand
 * highest first. */
static bool parse_bounds(struct call *c, int at, struct range *r)
{
    if (r->by == BY_RANK) {
        return call_arg_i64(c, at, &r->first) && call_arg_i64(c, at + 1, &r->last);
    }
    struct slice min = c->argv[r->down ? at + 1 : at], max = c->argv[r->down ? at : at + 1];
    if (r->by == BY_SCORE) {
        if (parse_score_bound(min, &r->scores.min, &r->scores.min_excluded) &&
            parse_score_bound(max, &r->scores.max, &r->scores.max_excluded)) {
            return true;
        }
        reply_error(c->reply, "ERR min or max is not a float");
        return false;
    }
    if (zset_parse_lex_bound(min, &r->members.min) && zset_parse_lex_bound(max, &r->members.max)) {
        return true;
    }
    reply_error(c->reply, "ERR min or max not valid string range item");
    return false;
}

/* The members of ranks first .. last, negative ones from the end, as Redis counts. */
static struct zset_span span_of_ranks(uint64_t count, int64_t first, int64_t last)
{
    int64_t size = (int64_t)count;
    first = first < 0 ? first + size : first;
    last = last < 0 ? last + size : last;
    first = first < 0 ? 0 : first;
    last = last >= size ? size - 1 : last;
    if (first > last || first >= size) {
        return (struct zset_span){0, 0};
    }
    return (struct zset_span){(uint64_t)first, (uint64_t)last + 1};
}

static struct zset_span span_of(const struct entry *e, const struct range *r)
{
    if (r->by == BY_SCORE) {
        return zset_span_of_scores(e, &r->scores);
    }
    if (r->by == BY_MEMBER) {
        return zset_span_of_members(e, &r->members);
    }
    uint64_t count = zset_count(e);
    struct zset_span s = span_of_ranks(count, r->first, r->last);
    if (r->down && s.start < s.stop) {
        return (struct zset_span){count - s.stop, count - s.start};
    }
    return s;
}

/* ---- ZRANGE and its kin ---- */

struct request {
    struct range range;
    bool down_given, with_scores, limited;
    int64_t offset, limit;
};

/* Takes the options from argument `i` on. `store`: WITHSCORES has no meaning. */
static bool parse_options(struct call *c, int i, bool store, struct request *q)
{
    struct range *r = &q->range;
    for (; i < c->argc; i++) {
        if (!store && call_arg_is(c, i, "withscores")) {
            q->with_scores = true;
        } else if (call_arg_is(c, i, "limit") && c->argc - i > 2) {
            if (!call_arg_i64(c, i + 1, &q->offset) || !call_arg_i64(c, i + 2, &q->limit)) {
                return false;
            }
            i += 2;
        } else if (!q->down_given && call_arg_is(c, i, "rev")) {
            q->down_given = r->down = true;
        } else if (r->by == BY_ANY && call_arg_is(c, i, "bylex")) {
            r->by = BY_MEMBER;
        } else if (r->by == BY_ANY && call_arg_is(c, i, "byscore")) {
            r->by = BY_SCORE;
        } else {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    r->by = r->by == BY_ANY ? BY_RANK : r->by;
    if (q->limit != -1 && r->by == BY_RANK) {
        reply_error(c->reply, "ERR syntax error, LIMIT is only supported in combination with "
                              "either BYSCORE or BYLEX");
        return false;
    }
    if (q->with_scores && r->by == BY_MEMBER) {
        reply_error(c->reply,
                    "ERR syntax error, WITHSCORES not supported in combination with BYLEX");
        return false;
    }
    return true;
}

/* The request's members: how many, and *at on the first one. */
static uint64_t begin_range(const struct entry *e, const struct request *q, struct zset_cursor *at)
{
    const struct range *r = &q->range;
    struct zset_span s = span_of(e, r);
    uint64_t count = s.stop - s.start, offset = 0;
    if (r->by != BY_RANK) {
        offset = q->offset < 0 || (uint64_t)q->offset > count ? count : (uint64_t)q->offset;
        count -= offset;
        count = q->limit >= 0 && (uint64_t)q->limit < count ? (uint64_t)q->limit : count;
    }
    if (count > 0) {
        *at = zset_cursor_at(e, r->down ? s.stop - 1 - offset : s.start + offset, r->down);
    }
    return count;
}

/* `key_arg`: the argument that names the set, before the bounds. */
static bool parse_request(struct call *c, int key_arg, bool store, struct request *q)
{
    q->limit = -1;
    return parse_options(c, key_arg + 3, store, q) && parse_bounds(c, key_arg + 1, &q->range);
}

static void range_generic(struct call *c, enum range_by by, bool down, bool down_given)
    REQUIRES_SHARED(keyspace_lock)
{
    struct request q = {.range = {.by = by, .down = down}, .down_given = down_given};
    struct entry *e;
    struct zset_cursor at;
    if (!parse_request(c, 1, false, &q) || !call_read_typed(c, 0, VALUE_ZSET, &e)) {
        return;
    }
    uint64_t count = e ? begin_range(e, &q, &at) : 0;
    zsets_reply_members(c, &at, count, q.with_scores, zsets_nested(c, q.with_scores));
}

READ_COMMAND(zrange_command)
{
    range_generic(c, BY_ANY, false, false);
}

READ_COMMAND(zrevrange_command)
{
    range_generic(c, BY_RANK, true, true);
}

READ_COMMAND(zrangebyscore_command)
{
    range_generic(c, BY_SCORE, false, true);
}

READ_COMMAND(zrevrangebyscore_command)
{
    range_generic(c, BY_SCORE, true, true);
}

READ_COMMAND(zrangebylex_command)
{
    range_generic(c, BY_MEMBER, false, true);
}

READ_COMMAND(zrevrangebylex_command)
{
    range_generic(c, BY_MEMBER, true, true);
}

WRITE_COMMAND(zrangestore_command)
{
    struct request q = {.range = {.by = BY_ANY}};
    struct entry *e;
    struct zset_cursor at;
    char text[ZSET_TEXT_BYTES];
    if (!parse_request(c, 2, true, &q) || !call_read_typed(c, 1, VALUE_ZSET, &e)) {
        return;
    }
    struct zset_draft d;
    zset_draft_init(&d, false);
    for (uint64_t left = e ? begin_range(e, &q, &at) : 0; left > 0; left--) {
        zset_draft_add(&d, zset_cursor_member(&at, text), zset_cursor_score(&at));
        zset_cursor_step(&at);
    }
    zset_draft_sort(&d);
    zsets_store(c, 0, &d, "zrangestore");
    zset_draft_deinit(&d);
}

/* ---- Counting and removing ---- */

static void count_generic(struct call *c, enum range_by by) REQUIRES_SHARED(keyspace_lock)
{
    struct range r = {.by = by};
    struct entry *e;
    if (!parse_bounds(c, 2, &r) || !call_read_typed(c, 0, VALUE_ZSET, &e)) {
        return;
    }
    struct zset_span s = e ? span_of(e, &r) : (struct zset_span){0, 0};
    reply_i64(c->reply, (int64_t)(s.stop - s.start));
}

READ_COMMAND(zcount_command)
{
    count_generic(c, BY_SCORE);
}

READ_COMMAND(zlexcount_command)
{
    count_generic(c, BY_MEMBER);
}

static void remove_generic(struct call *c, enum range_by by, const char *event)
    REQUIRES(keyspace_lock)
{
    struct range r = {.by = by};
    struct keyref ref;
    if (!parse_bounds(c, 2, &r) || !call_open_typed(c, 0, VALUE_ZSET, &ref)) {
        return;
    }
    struct zset_span s = ref.entry ? span_of(ref.entry, &r) : (struct zset_span){0, 0};
    if (s.start < s.stop) {
        if (unlikely(propagate_peers)) {
            zsets_tell_peers(c, &ref, s.start, s.stop);
        }
        zset_remove_ranks(ref.entry, s.start, s.stop);
        zsets_removed(c, &ref, s.stop - s.start, event);
    }
    reply_i64(c->reply, (int64_t)(s.stop - s.start));
}

WRITE_COMMAND(zremrangebyrank_command)
{
    remove_generic(c, BY_RANK, "zremrangebyrank");
}

WRITE_COMMAND(zremrangebyscore_command)
{
    remove_generic(c, BY_SCORE, "zremrangebyscore");
}

WRITE_COMMAND(zremrangebylex_command)
{
    remove_generic(c, BY_MEMBER, "zremrangebylex");
}

const struct command_row zset_range_commands[] = {
    {.name = "zcount",
     .run = zcount_command,
     .arity = 4,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "sorted-set",
     .since = "2.0.0",
     .summary = "Counts the members in a range of scores.",
     .complexity = "O(log(N)), N being the members of the sorted set",
     .args = "key min max"},
    {.name = "zlexcount",
     .run = zlexcount_command,
     .arity = 4,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "sorted-set",
     .since = "2.8.9",
     .summary = "Counts the members in a range of names, where all scores are equal.",
     .complexity = "O(log(N)), N being the members of the sorted set",
     .args = "key min max"},
    {.name = "zrange",
     .run = zrange_command,
     .arity = -4,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Returns the members in a range of ranks, scores or names.",
     .complexity = "O(log(N)+M), N being the members of the sorted set and M those returned",
     .args = "key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
     .history = "6.2.0:Takes REV, BYSCORE, BYLEX and LIMIT."},
    {.name = "zrangebylex",
     .run = zrangebylex_command,
     .arity = -4,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "sorted-set",
     .since = "2.8.9",
     .summary = "Returns the members in a range of names, where all scores are equal.",
     .complexity = "O(log(N)+M), N being the members of the sorted set and M those returned",
     .args = "key min max [LIMIT offset count]",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `BYLEX` argument"},
    {.name = "zrangebyscore",
     .run = zrangebyscore_command,
     .arity = -4,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "sorted-set",
     .since = "1.0.5",
     .summary = "Returns the members in a range of scores.",
     .complexity = "O(log(N)+M), N being the members of the sorted set and M those returned",
     .args = "key min max [WITHSCORES] [LIMIT offset count]",
     .history = "2.0.0:Takes WITHSCORES.",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `BYSCORE` argument"},
    {.name = "zrangestore",
     .run = zrangestore_command,
     .arity = -5,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/OW+UPDATE; i2/r0,1,0/RO+ACCESS",
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Stores the members in a range of one sorted set as another.",
     .complexity = "O(log(N)+M), N being the members of the sorted set and M those stored",
     .args = "dst src min max [BYSCORE|BYLEX] [REV] [LIMIT offset count]"},
    {.name = "zremrangebylex",
     .run = zremrangebylex_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RW+DELETE",
     .group = "sorted-set",
     .since = "2.8.9",
     .summary = "Removes the members in a range of names, where all scores are equal.",
     .complexity = "O(log(N)+M), N being the members of the sorted set and M those removed",
     .args = "key min max"},
    {.name = "zremrangebyrank",
     .run = zremrangebyrank_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RW+DELETE",
     .group = "sorted-set",
     .since = "2.0.0",
     .summary = "Removes the members in a range of ranks.",
     .complexity = "O(log(N)+M), N being the members of the sorted set and M those removed",
     .args = "key start stop"},
    {.name = "zremrangebyscore",
     .run = zremrangebyscore_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RW+DELETE",
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Removes the members in a range of scores.",
     .complexity = "O(log(N)+M), N being the members of the sorted set and M those removed",
     .args = "key min max"},
    {.name = "zrevrange",
     .run = zrevrange_command,
     .arity = -4,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Returns the members in a range of ranks, highest score first.",
     .complexity = "O(log(N)+M), N being the members of the sorted set and M those returned",
     .args = "key start stop [WITHSCORES]",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `REV` argument"},
    {.name = "zrevrangebylex",
     .run = zrevrangebylex_command,
     .arity = -4,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "sorted-set",
     .since = "2.8.9",
     .summary = "Returns the members in a range of names, last first, where all scores are "
                "equal.",
     .complexity = "O(log(N)+M), N being the members of the sorted set and M those returned",
     .args = "key max min [LIMIT offset count]",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `REV` and `BYLEX` arguments"},
    {.name = "zrevrangebyscore",
     .run = zrevrangebyscore_command,
     .arity = -4,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "sorted-set",
     .since = "2.2.0",
     .summary = "Returns the members in a range of scores, highest first.",
     .complexity = "O(log(N)+M), N being the members of the sorted set and M those returned",
     .args = "key max min [WITHSCORES] [LIMIT offset count]",
     .history = "2.1.6:A bound may be excluded.",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `REV` and `BYSCORE` arguments"},
    {.name = NULL},
};
