/* Sorted sets: adding, removing and looking up members, random ones, and ZSCAN. Ranges are in
 * zsets_range.c, popping in zsets_pop.c, union, intersection and difference in zsets_algebra.c. */
#include "commands/commands.h"
#include "commands/random_limit.h"
#include "commands/scan_args.h"
#include "commands/zsets_priv.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/rand.h"
#include "engine/propagate.h"
#include "keyspace/access.h"
#include "keyspace/reclaim.h"

/* Scores of ZADD that are parsed without a block of memory. */
#define SCORES_ON_STACK 64

/* ---- What the family shares ---- */

void zsets_reply_members(struct call *c, struct zset_cursor *at, uint64_t count, bool with_scores,
                         bool nested)
{
    char text[ZSET_TEXT_BYTES];
    reply_array(c->reply, with_scores && !nested ? count * 2 : count);
    for (; count > 0; count--) {
        assert(zset_cursor_valid(at));
        if (nested) {
            reply_array(c->reply, 2);
        }
        reply_bulk(c->reply, zset_cursor_member(at, text));
        if (with_scores) {
            reply_double(c->reply, zset_cursor_score(at));
        }
        zset_cursor_step(at);
    }
}

void zsets_removed(struct call *c, struct keyref *ref, uint64_t changes, const char *event)
{
    assert(changes > 0);
    bool emptied = zset_count(ref->entry) == 0;
    if (emptied) {
        propagate_emptied(ref);
        db_delete(ref, reclaim_lazy_server_del());
    }
    call_changed(c, ref, EVENT_ZSET, event);
    c->dirty += changes - 1;
    if (emptied) {
        event_notify(EVENT_GENERIC, "del", ref->db->id, ref->key.name);
    }
}

void zsets_tell_peers(struct call *c, const struct keyref *ref, uint64_t start, uint64_t stop)
{
    struct propagate_draft d = {0};
    char text[ZSET_TEXT_BYTES];
    propagate_add(&d, SLICE("ZREM"));
    propagate_add(&d, ref->key.name);
    struct zset_cursor at = zset_cursor_at(ref->entry, start, false);
    for (uint64_t i = start; i < stop; i++) {
        propagate_add(&d, zset_cursor_member(&at, text));
        zset_cursor_step(&at);
    }
    propagate_draft_to_peers(c, &d);
}

void zsets_reply_lost(struct call *c)
{
    reply_error(c->reply, "OOM no memory for a result of this length");
}

void zsets_store(struct call *c, int k, struct zset_draft *d, const char *event)
{
    if (d->lost) {
        zsets_reply_lost(c);
        return;
    }
    struct keyref ref;
    uint64_t count = d->count;
    call_open(c, k, &ref);
    if (count > 0) {
        struct entry *e = zset_draft_finish(d, ref.key.name, ENTRY_NO_EXPIRY);
        if (!ref.entry) {
            entry_set_clock(e, access_initial(c->now_ms));
        }
        db_put_lazily(&ref, e);
        call_changed(c, &ref, EVENT_ZSET, event);
    } else if (db_delete(&ref, ref.entry && reclaim_is_long(ref.entry))) {
        call_changed(c, &ref, EVENT_GENERIC, "del");
    }
    propagate_stored(c, k);
    reply_i64(c->reply, (int64_t)count);
}

/* ---- ZADD, ZINCRBY ---- */

#define ADD_CH (1u << 8) /* beside enum zset_add_flag: reply what changed, not only what is new */

/* Parses ZADD's options from argument 2 on; returns the first argument that is none. */
static int parse_add_flags(struct call *c, unsigned *flags)
{
    static const struct {
        const char *word;
        unsigned flag;
    } words[] = {{"nx", ZSET_ADD_NX}, {"xx", ZSET_ADD_XX}, {"gt", ZSET_ADD_GT},
                 {"lt", ZSET_ADD_LT}, {"ch", ADD_CH},      {"incr", ZSET_ADD_INCR}};
    int i = 2;
    *flags = 0;
    for (; i < c->argc; i++) {
        size_t w = 0;
        while (w < sizeof(words) / sizeof(words[0]) && !call_arg_is(c, i, words[w].word)) {
            w++;
        }
        if (w == sizeof(words) / sizeof(words[0])) {
            break;
        }
        *flags |= words[w].flag;
    }
    return i;
}

static const char *add_flags_fault(unsigned flags, int pairs)
{
    bool nx = flags & ZSET_ADD_NX, gt = flags & ZSET_ADD_GT, lt = flags & ZSET_ADD_LT;
    if (nx && (flags & ZSET_ADD_XX)) {
        return "ERR XX and NX options at the same time are not compatible";
    }
    if ((gt && nx) || (lt && nx) || (gt && lt)) {
        return "ERR GT, LT, and/or NX options at the same time are not compatible";
    }
    if ((flags & ZSET_ADD_INCR) && pairs > 1) {
        return "ERR INCR option supports a single increment-element pair";
    }
    return NULL;
}

/* Parses the scores of the pairs from argument `first` on, and checks the members' lengths. */
static bool parse_scores(struct call *c, int first, double *scores)
{
    for (int i = first; i < c->argc; i += 2) {
        if (!call_arg_double(c, i, &scores[(i - first) / 2], NULL)) {
            return false;
        }
        if (c->argv[i + 1].len > ZSET_MAX_MEMBER_BYTES) {
            reply_error(c->reply, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
            return false;
        }
    }
    return true;
}

/* What a ZADD did, pair by pair. */
struct added {
    uint64_t added, updated;
    enum zset_added last;
    double last_score;
};

/* Peers get what was added, without conditions: the pairs that changed something, or the sum. */
struct added_to_tell {
    bool wanted;
    struct propagate_draft pairs;
};

static void note_added(struct added_to_tell *t, struct slice score, struct slice member)
{
    propagate_add(&t->pairs, score);
    propagate_add(&t->pairs, member);
}

static void tell_peers_added(struct call *c, struct slice key, unsigned flags,
                             struct added_to_tell *t) REQUIRES(keyspace_lock)
{
    struct propagate_draft d = {0};
    propagate_add(&d, flags & ZSET_ADD_INCR ? SLICE("ZINCRBY") : SLICE("ZADD"));
    propagate_add(&d, key);
    propagate_add_draft(&d, &t->pairs);
    propagate_draft_to_peers(c, &d);
}

static void add_pairs(struct call *c, struct keyref *ref, int first, unsigned flags,
                      const double *scores, struct added *sum) REQUIRES(keyspace_lock)
{
    struct entry *e = ref->entry ? ref->entry : zset_create(ref->key.name, c->argv[first + 1].len);
    struct added_to_tell told = {.wanted = unlikely(propagate_peers) && flags};
    for (int i = first; i < c->argc; i += 2) {
        sum->last_score = scores[(i - first) / 2];
        sum->last = zset_add(e, c->argv[i + 1], flags, &sum->last_score);
        if (told.wanted && (sum->last == ZSET_ADDED || sum->last == ZSET_UPDATED)) {
            note_added(&told, c->argv[i], c->argv[i + 1]);
        }
        sum->added += sum->last == ZSET_ADDED;
        sum->updated += sum->last == ZSET_UPDATED;
    }
    if (!ref->entry) {
        /* A first member without XX always goes in: the set is not empty. */
        assert(sum->added > 0);
        entry_set_clock(e, access_initial(c->now_ms));
        db_put(ref, e);
    }
    if (sum->added + sum->updated > 0) {
        call_changed(c, ref, EVENT_ZSET, flags & ZSET_ADD_INCR ? "zincr" : "zadd");
        c->dirty += sum->added + sum->updated - 1;
    }
    if (told.pairs.count > 0) {
        tell_peers_added(c, ref->key.name, flags, &told);
    }
}

static void reply_added(struct call *c, unsigned flags, const struct added *sum)
{
    if (sum->last == ZSET_NAN) {
        reply_error(c->reply, "ERR resulting score is not a number (NaN)");
    } else if (!(flags & ZSET_ADD_INCR)) {
        reply_i64(c->reply, (int64_t)(flags & ADD_CH ? sum->added + sum->updated : sum->added));
    } else if (sum->last == ZSET_SKIPPED) {
        reply_null(c->reply);
    } else {
        reply_double(c->reply, sum->last_score);
    }
}

/* Adds the pairs of score and member from argument `first` on. */
static void add_generic(struct call *c, int first, unsigned flags) REQUIRES(keyspace_lock)
{
    double few[SCORES_ON_STACK];
    int pairs = (c->argc - first) / 2;
    double *scores = pairs <= SCORES_ON_STACK ? few : mem_alloc((size_t)pairs * sizeof(*scores));
    struct keyref ref;
    struct added sum = {.last = ZSET_SKIPPED};
    if (parse_scores(c, first, scores) && call_open_typed(c, 0, VALUE_ZSET, &ref)) {
        if (ref.entry || !(flags & ZSET_ADD_XX)) {
            add_pairs(c, &ref, first, flags, scores, &sum);
        }
        reply_added(c, flags, &sum);
    }
    if (scores != few) {
        mem_free(scores);
    }
}

WRITE_COMMAND(zadd_command)
{
    unsigned flags;
    int first = parse_add_flags(c, &flags);
    int words = c->argc - first;
    if (words == 0 || words % 2 != 0) {
        reply_syntax_error(c->reply);
        return;
    }
    const char *fault = add_flags_fault(flags, words / 2);
    if (fault) {
        reply_error(c->reply, fault);
        return;
    }
    add_generic(c, first, flags);
}

WRITE_COMMAND(zincrby_command)
{
    add_generic(c, 2, ZSET_ADD_INCR);
}

WRITE_COMMAND(zrem_command)
{
    struct keyref ref;
    uint64_t removed = 0;
    if (!call_open_typed(c, 0, VALUE_ZSET, &ref)) {
        return;
    }
    for (int i = 2; ref.entry && i < c->argc; i++) {
        removed += zset_remove(ref.entry, c->argv[i]);
    }
    if (removed > 0) {
        zsets_removed(c, &ref, removed, "zrem");
    }
    reply_i64(c->reply, (int64_t)removed);
}

/* ---- Looking up ---- */

static void reply_score(struct call *c, const struct entry *e, struct slice member)
{
    double score;
    if (e && zset_score(e, member, &score)) {
        reply_double(c->reply, score);
    } else {
        reply_null(c->reply);
    }
}

READ_COMMAND(zscore_command)
{
    struct entry *e;
    if (call_read_typed(c, 0, VALUE_ZSET, &e)) {
        reply_score(c, e, c->argv[2]);
    }
}

READ_COMMAND(zmscore_command)
{
    struct entry *e;
    if (!call_read_typed(c, 0, VALUE_ZSET, &e)) {
        return;
    }
    reply_array(c->reply, (uint64_t)c->argc - 2);
    for (int i = 2; i < c->argc; i++) {
        reply_score(c, e, c->argv[i]);
    }
}

READ_COMMAND(zcard_command)
{
    struct entry *e;
    if (call_read_typed(c, 0, VALUE_ZSET, &e)) {
        reply_i64(c->reply, e ? (int64_t)zset_count(e) : 0);
    }
}

static void rank_generic(struct call *c, bool down) REQUIRES_SHARED(keyspace_lock)
{
    struct entry *e;
    uint64_t rank;
    double score;
    bool with_score = c->argc > 3;
    if (c->argc > 4) {
        reply_errorf(c->reply, "ERR wrong number of arguments for '%s' command", c->cmd->full_name);
        return;
    }
    if (with_score && !call_arg_is(c, 3, "withscore")) {
        reply_syntax_error(c->reply);
        return;
    }
    if (!call_read_typed(c, 0, VALUE_ZSET, &e)) {
        return;
    }
    if (!e || !zset_rank(e, c->argv[2], &rank, &score)) {
        if (with_score) {
            reply_null_array(c->reply);
        } else {
            reply_null(c->reply);
        }
        return;
    }
    if (with_score) {
        reply_array(c->reply, 2);
    }
    reply_i64(c->reply, (int64_t)(down ? zset_count(e) - 1 - rank : rank));
    if (with_score) {
        reply_double(c->reply, score);
    }
}

READ_COMMAND(zrank_command)
{
    rank_generic(c, false);
}

READ_COMMAND(zrevrank_command)
{
    rank_generic(c, true);
}

/* ---- ZRANDMEMBER ---- */

/* Bytes of a score in a reply, about. */
#define SCORE_BYTES 16

static void reply_pair(struct call *c, struct slice member, double score, bool with_scores)
{
    if (zsets_nested(c, with_scores)) {
        reply_array(c->reply, 2);
    }
    reply_bulk(c->reply, member);
    if (with_scores) {
        reply_double(c->reply, score);
    }
}

static void reply_one(struct call *c, const struct zset_cursor *at, bool with_scores)
{
    char text[ZSET_TEXT_BYTES];
    reply_pair(c, zset_cursor_member(at, text), zset_cursor_score(at), with_scores);
}

static void reply_at_rank(struct call *c, const struct entry *e, uint64_t rank, bool with_scores)
{
    struct zset_cursor at = zset_cursor_at(e, rank, false);
    reply_one(c, &at, with_scores);
}

/* `count` distinct members of many more: random ranks, those drawn already kept in an open hash
 * table of rank + 1. */
static void random_by_rank(struct call *c, const struct entry *e, uint64_t count, bool with_scores)
{
    uint64_t size = zset_count(e), places = 4;
    while (places < count * 2) {
        places *= 2;
    }
    uint64_t *drawn = mem_calloc(places, sizeof(*drawn));
    while (count > 0) {
        uint64_t rank = rand_below(size);
        uint64_t i = (rank * 0x9e3779b97f4a7c15u) & (places - 1);
        while (drawn[i] && drawn[i] != rank + 1) {
            i = (i + 1) & (places - 1);
        }
        if (!drawn[i]) {
            drawn[i] = rank + 1;
            reply_at_rank(c, e, rank, with_scores);
            count--;
        }
    }
    mem_free(drawn);
}

/* `count` distinct members in one walk: each is taken with the chance that makes all choices
 * equally likely. */
static void random_by_walk(struct call *c, const struct entry *e, uint64_t count, bool with_scores)
{
    uint64_t left = zset_count(e);
    struct zset_cursor at = zset_cursor_at(e, 0, false);
    for (; count > 0; left--) {
        if (rand_below(left) < count) {
            reply_one(c, &at, with_scores);
            count--;
        }
        zset_cursor_step(&at);
    }
}

struct repeated {
    struct random_repeats repeats;
    bool with_scores;
};

static void visit_repeated(struct slice member, double score, void *context)
{
    struct repeated *r = context;
    if (random_repeats_take(&r->repeats, member.len + (r->with_scores ? SCORE_BYTES : 0), NULL)) {
        reply_pair(r->repeats.call, member, score, r->with_scores);
    }
}

/* Members that may repeat. */
static void random_repeated(struct call *c, const struct entry *e, uint64_t count, bool with_scores)
{
    struct repeated r = {.with_scores = with_scores};
    if (!random_repeats_begin(&r.repeats, c, with_scores ? 2 * count : count)) {
        return;
    }
    reply_array(c->reply, with_scores && !zsets_nested(c, with_scores) ? count * 2 : count);
    while (count > 0 && !r.repeats.refused) {
        uint64_t some = count < RANDOM_REPEATS_STEP ? count : RANDOM_REPEATS_STEP;
        zset_draw(e, some, visit_repeated, &r);
        count -= some;
    }
}

/* Members that do not. */
static void random_members(struct call *c, const struct entry *e, uint64_t wanted, bool with_scores)
{
    /* What random_by_rank notes of each. */
    enum { NOTE_BYTES = 4 * sizeof(uint64_t) };
    uint64_t size = zset_count(e);
    uint64_t count = wanted < size ? wanted : size;
    bool by_rank = count < size / 8;
    if (by_rank && !call_reserve(c, count * NOTE_BYTES)) {
        return;
    }
    reply_array(c->reply, with_scores && !zsets_nested(c, with_scores) ? count * 2 : count);
    if (by_rank) {
        random_by_rank(c, e, count, with_scores);
        call_unreserve();
    } else {
        random_by_walk(c, e, count, with_scores);
    }
}

READ_COMMAND(zrandmember_command)
{
    struct entry *e;
    int64_t count = 1;
    bool with_scores = c->argc > 3;
    if (c->argc > 2 && !call_arg_range(c, 2, -INT64_MAX, INT64_MAX, &count, NULL)) {
        return;
    }
    if (c->argc > 4 || (with_scores && !call_arg_is(c, 3, "withscores"))) {
        reply_syntax_error(c->reply);
        return;
    }
    if (!random_limit_allows(c, count)) {
        return;
    }
    if (with_scores && (count > INT64_MAX / 2 || count < -(INT64_MAX / 2))) {
        reply_error(c->reply, "ERR value is out of range");
        return;
    }
    if (!call_read_typed(c, 0, VALUE_ZSET, &e)) {
        return;
    }
    if (c->argc == 2) {
        if (e) {
            reply_at_rank(c, e, rand_below(zset_count(e)), false);
        } else {
            reply_null(c->reply);
        }
        return;
    }
    if (!e || count == 0) {
        reply_array(c->reply, 0);
        return;
    }
    if (count < 0) {
        random_repeated(c, e, (uint64_t)-count, with_scores);
    } else {
        random_members(c, e, (uint64_t)count, with_scores);
    }
}

/* ---- ZSCAN ---- */

struct scan {
    const struct scan_args *args;
    struct reply *reply;
    bool counting; /* the first of two walks, which only counts */
    uint64_t words;
};

static void scan_visit(struct slice member, double score, void *context)
{
    struct scan *s = context;
    if (!scan_args_match(s->args, member)) {
        return;
    }
    if (s->counting) {
        s->words += s->args->names_only ? 1 : 2;
        return;
    }
    reply_bulk(s->reply, member);
    if (!s->args->names_only) {
        char text[40];
        reply_bulk(s->reply, slice_of(text, num_format_double(text, score)));
    }
}

READ_COMMAND(zscan_command)
{
    struct scan_args args;
    struct entry *e;
    if (!scan_args_cursor(c, 2, &args) || !call_read_typed(c, 0, VALUE_ZSET, &e) ||
        (e && !scan_args_options(c, 3, SCAN_ARGS_NOSCORES, &args))) {
        return;
    }
    if (!e) {
        scan_args_reply_cursor(c, 0);
        reply_array(c->reply, 0);
        return;
    }
    /* The next cursor and the number of words stand before the members: a first walk finds them. */
    struct scan s = {.args = &args, .reply = c->reply, .counting = true};
    scan_args_reply_cursor(c, zset_scan(e, args.cursor, args.count, scan_visit, &s));
    reply_array(c->reply, s.words);
    s.counting = false;
    zset_scan(e, args.cursor, args.count, scan_visit, &s);
}

const struct command_row zset_commands[] = {
    {.name = "zadd",
     .run = zadd_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Adds members to a sorted set, or gives them new scores.",
     .complexity = "O(log(N)) for each member, N being the members of the sorted set",
     .members = {-1, -2},
     .args = "key [NX|XX] [GT|LT] [CH] [INCR] score member [score member ...]",
     .history = "2.4.0:Takes several members.|3.0.2:Takes XX, NX, CH and INCR.|6.2.0:Takes GT "
                "and LT."},
    {.name = "zcard",
     .run = zcard_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO",
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Returns the number of members of a sorted set.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "zincrby",
     .run = zincrby_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE",
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Adds to the score of a member of a sorted set; a missing one counts as 0.",
     .complexity = "O(log(N)), N being the members of the sorted set",
     .members = {3, 0},
     .args = "key increment member"},
    {.name = "zmscore",
     .run = zmscore_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Returns the scores of several members of a sorted set.",
     .complexity = "O(N), N being the members asked for",
     .members = {2, 1},
     .args = "key member [member ...]"},
    {.name = "zrandmember",
     .run = zrandmember_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output",
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Returns random members of a sorted set.",
     .complexity = "O(N), N being the members returned",
     .args = "key [count [WITHSCORES]]"},
    {.name = "zrank",
     .run = zrank_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "sorted-set",
     .since = "2.0.0",
     .summary = "Returns how many members of a sorted set are before one, lowest score first.",
     .complexity = "O(log(N)), N being the members of the sorted set",
     .members = {2, 0},
     .args = "key member [WITHSCORE]",
     .history = "7.2.0:Takes WITHSCORE."},
    {.name = "zrem",
     .run = zrem_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RW+DELETE",
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Removes members from a sorted set; the last one takes the key with it.",
     .complexity = "O(M*log(N)), N being the members of the sorted set and M those removed",
     .members = {2, 1},
     .args = "key member [member ...]",
     .history = "2.4.0:Takes several members."},
    {.name = "zrevrank",
     .run = zrevrank_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "sorted-set",
     .since = "2.0.0",
     .summary = "Returns how many members of a sorted set are before one, highest score first.",
     .complexity = "O(log(N)), N being the members of the sorted set",
     .members = {2, 0},
     .args = "key member [WITHSCORE]",
     .history = "7.2.0:Takes WITHSCORE."},
    {.name = "zscan",
     .run = zscan_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output",
     .group = "sorted-set",
     .since = "2.8.0",
     .summary = "Walks over the members of a sorted set, some with each call.",
     .complexity = "O(1) a call, O(N) for the whole walk",
     .args = "key cursor [MATCH pattern] [COUNT count] [NOSCORES]"},
    {.name = "zscore",
     .run = zscore_command,
     .arity = 3,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Returns the score of a member of a sorted set.",
     .complexity = "O(1)",
     .members = {2, 0},
     .args = "key member"},
    {.name = NULL},
};
