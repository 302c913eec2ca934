/* Sorted sets: union, intersection and difference, replied, stored or counted. Inputs are sorted
 * sets and sets, whose members have score 1. A key given twice is two inputs. */
#include "commands/commands.h"
#include "commands/zsets_priv.h"

#include "base/mem.h"
#include "value/set.h"

#include <math.h>
#include <stdlib.h>

enum operation { UNION, INTER, DIFF };
enum aggregate { AGGREGATE_SUM, AGGREGATE_MIN, AGGREGATE_MAX };

struct input {
    const struct entry *entry; /* NULL: empty */
    bool is_set;
    double weight;
    uint64_t count;
    int place; /* in the request */
};

struct request {
    enum operation operation;
    int key_count;
    int first_key; /* of c->keys */
    enum aggregate aggregate;
    bool with_scores;
    bool counting; /* ZINTERCARD */
    int64_t limit; /* of it; 0: none */
    struct input *inputs;
};

/* ---- Parsing ---- */

static bool parse_weights(struct call *c, struct request *q, int *at)
{
    for (int k = 0; k < q->key_count; k++) {
        ++*at;
        if (!call_arg_double(c, *at, &q->inputs[k].weight, "ERR weight value is not a float")) {
            return false;
        }
    }
    return true;
}

static bool parse_aggregate(struct call *c, struct request *q, int at)
{
    static const char *const names[] = {"sum", "min", "max"};
    for (int i = 0; i < 3; i++) {
        if (call_arg_is(c, at, names[i])) {
            q->aggregate = (enum aggregate)i;
            return true;
        }
    }
    reply_syntax_error(c->reply);
    return false;
}

/* The options from argument `at` on. `store`: WITHSCORES has no meaning. */
static bool parse_options(struct call *c, struct request *q, int at, bool store)
{
    bool weighs = q->operation != DIFF && !q->counting;
    for (; at < c->argc; at++) {
        int behind = c->argc - at - 1;
        if (weighs && behind >= q->key_count && call_arg_is(c, at, "weights")) {
            if (!parse_weights(c, q, &at)) {
                return false;
            }
        } else if (weighs && behind >= 1 && call_arg_is(c, at, "aggregate")) {
            if (!parse_aggregate(c, q, ++at)) {
                return false;
            }
        } else if (!store && !q->counting && call_arg_is(c, at, "withscores")) {
            q->with_scores = true;
        } else if (q->counting && behind >= 1 && call_arg_is(c, at, "limit")) {
            if (!call_arg_range(c, ++at, 0, INT64_MAX, &q->limit, "ERR LIMIT can't be negative")) {
                return false;
            }
        } else {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    return true;
}

/* Finds the inputs; false with an error replied when one is of another type. */
static bool find_inputs(struct call *c, struct request *q) REQUIRES_SHARED(keyspace_lock)
{
    for (int k = 0; k < q->key_count; k++) {
        struct entry *e = call_read(c, q->first_key + k);
        bool is_set = e && entry_type(e) == VALUE_SET;
        if (e && !is_set && entry_type(e) != VALUE_ZSET) {
            reply_wrong_type(c->reply);
            return false;
        }
        uint64_t count = !e ? 0 : is_set ? set_count(e) : zset_count(e);
        q->inputs[k] = (struct input){e, is_set, 1.0, count, k};
    }
    return true;
}

/* Parses the whole request; `at` is the argument with the number of keys. The inputs are the
 * caller's to free. */
static bool parse_request(struct call *c, struct request *q, int at) REQUIRES_SHARED(keyspace_lock)
{
    int64_t keys;
    q->first_key = at - 1;
    if (!call_arg_i64(c, at, &keys)) {
        return false;
    }
    if (keys < 1) {
        reply_errorf(c->reply, "ERR at least 1 input key is needed for '%s' command",
                     c->cmd->full_name);
        return false;
    }
    if (keys > c->argc - at - 1) {
        reply_syntax_error(c->reply);
        return false;
    }
    q->key_count = (int)keys;
    q->inputs = mem_calloc((size_t)keys, sizeof(*q->inputs));
    return find_inputs(c, q) && parse_options(c, q, at + 1 + (int)keys, at == 2);
}

/* ---- Inputs ---- */

/* Visits the members of an input; false from `visit` ends it. */
typedef bool (*input_visit_fn)(struct slice member, double score, void *context);

static void input_walk(const struct input *in, input_visit_fn visit, void *context)
{
    if (!in->entry) {
        return;
    }
    if (in->is_set) {
        struct set_walk w;
        struct set_member m;
        set_walk_begin(&w, in->entry);
        while (set_walk_next(&w, &m) && visit(set_member_bytes(&m), 1.0, context)) {
        }
        return;
    }
    char text[ZSET_TEXT_BYTES];
    struct zset_cursor at = zset_cursor_at(in->entry, 0, false);
    for (; zset_cursor_valid(&at); zset_cursor_step(&at)) {
        if (!visit(zset_cursor_member(&at, text), zset_cursor_score(&at), context)) {
            return;
        }
    }
}

static bool input_score(const struct input *in, struct slice member, double *score)
{
    if (in->entry && in->is_set) {
        struct set_member m;
        set_member_init(&m, member);
        *score = 1.0;
        return set_contains(in->entry, &m);
    }
    return in->entry && zset_score(in->entry, member, score);
}

/* Smallest first, which the order of sums depends on; equal ones as in the request. */
static int compare_inputs(const void *a, const void *b)
{
    const struct input *x = a, *y = b;
    if (x->count != y->count) {
        return x->count < y->count ? -1 : 1;
    }
    return x->place - y->place;
}

/* ---- The operations ---- */

struct work {
    const struct request *q;
    const struct input *in; /* the one being walked */
    struct zset_draft *d;
    uint64_t found; /* counting */
};

/* What is no score (0 * inf, inf - inf) counts as 0. */
static double score_of(double value)
{
    return isnan(value) ? 0 : value;
}

/* `b` may be no number: it makes a sum 0, and is neither smaller nor greater than `a`. */
static double aggregated(enum aggregate how, double a, double b)
{
    switch (how) {
    case AGGREGATE_MIN:
        return b < a ? b : a;
    case AGGREGATE_MAX:
        return b > a ? b : a;
    case AGGREGATE_SUM:
        break;
    }
    return score_of(a + b);
}

static bool union_visit(struct slice member, double score, void *context)
{
    struct work *w = context;
    double value = score_of(score * w->in->weight);
    double *there = zset_draft_find(w->d, member);
    if (there) {
        *there = aggregated(w->q->aggregate, *there, value);
    } else {
        zset_draft_add(w->d, member, value);
    }
    return !w->d->lost;
}

static bool inter_visit(struct slice member, double score, void *context)
{
    struct work *w = context;
    const struct request *q = w->q;
    double value = score_of(score * w->in->weight);
    for (int k = 1; k < q->key_count; k++) {
        double other;
        if (!input_score(&q->inputs[k], member, &other)) {
            return true;
        }
        if (!q->counting) {
            value = aggregated(q->aggregate, value, other * q->inputs[k].weight);
        }
    }
    if (q->counting) {
        w->found++;
        return q->limit == 0 || w->found < (uint64_t)q->limit;
    }
    zset_draft_add(w->d, member, value);
    return !w->d->lost;
}

static bool diff_visit(struct slice member, double score, void *context)
{
    struct work *w = context;
    double other;
    for (int k = 1; k < w->q->key_count; k++) {
        if (input_score(&w->q->inputs[k], member, &other)) {
            return true;
        }
    }
    zset_draft_add(w->d, member, score);
    return !w->d->lost;
}

/* Gathers the result in order into an initialised draft; returns the count of a counting request.
 */
static uint64_t compute(struct request *q, struct zset_draft *d)
{
    struct work w = {.q = q, .d = d};
    if (q->operation != DIFF) {
        qsort(q->inputs, (size_t)q->key_count, sizeof(*q->inputs), compare_inputs);
    }
    if (q->operation == UNION) {
        for (int k = 0; k < q->key_count; k++) {
            w.in = &q->inputs[k];
            input_walk(w.in, union_visit, &w);
        }
    } else {
        w.in = &q->inputs[0];
        input_walk(w.in, q->operation == INTER ? inter_visit : diff_visit, &w);
    }
    zset_draft_sort(d);
    return w.found;
}

/* ---- Handlers ---- */

static void reply_draft(struct call *c, const struct zset_draft *d, bool with_scores)
{
    bool nested = zsets_nested(c, with_scores);
    reply_array(c->reply, with_scores && !nested ? d->count * 2 : d->count);
    for (uint64_t i = 0; i < d->count; i++) {
        if (nested) {
            reply_array(c->reply, 2);
        }
        reply_bulk(c->reply, skiplist_bytes(d->nodes[i]));
        if (with_scores) {
            reply_double(c->reply, d->nodes[i]->score);
        }
    }
}

static void read_generic(struct call *c, enum operation operation, bool counting)
    REQUIRES_SHARED(keyspace_lock)
{
    struct request q = {.operation = operation, .counting = counting};
    if (parse_request(c, &q, 1)) {
        struct zset_draft d;
        zset_draft_init(&d, operation == UNION);
        uint64_t found = compute(&q, &d);
        if (counting) {
            reply_i64(c->reply, (int64_t)found);
        } else if (d.lost) {
            zsets_reply_lost(c);
        } else {
            reply_draft(c, &d, q.with_scores);
        }
        zset_draft_deinit(&d);
    }
    mem_free(q.inputs);
}

static void store_generic(struct call *c, enum operation operation, const char *event)
    REQUIRES(keyspace_lock)
{
    struct request q = {.operation = operation};
    if (parse_request(c, &q, 2)) {
        struct zset_draft d;
        zset_draft_init(&d, operation == UNION);
        compute(&q, &d);
        zsets_store(c, 0, &d, event);
        zset_draft_deinit(&d);
    }
    mem_free(q.inputs);
}

READ_COMMAND(zunion_command)
{
    read_generic(c, UNION, false);
}

READ_COMMAND(zinter_command)
{
    read_generic(c, INTER, false);
}

READ_COMMAND(zdiff_command)
{
    read_generic(c, DIFF, false);
}

READ_COMMAND(zintercard_command)
{
    read_generic(c, INTER, true);
}

WRITE_COMMAND(zunionstore_command)
{
    store_generic(c, UNION, "zunionstore");
}

WRITE_COMMAND(zinterstore_command)
{
    store_generic(c, INTER, "zinterstore");
}

WRITE_COMMAND(zdiffstore_command)
{
    store_generic(c, DIFF, "zdiffstore");
}

#define DIFF_COMPLEXITY                                                                            \
    "O(N*K)+O(M*log(M)), N being the members of the first of K inputs and M those of the result"
#define INTER_COMPLEXITY                                                                           \
    "O(N*K)+O(M*log(M)), N being the members of the smallest of K inputs and M those of the "      \
    "result"
#define UNION_COMPLEXITY                                                                           \
    "O(N)+O(M*log(M)), N being the members of all inputs and M those of the result"
#define WEIGHED_INPUTS "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX]"

const struct command_row zset_algebra_commands[] = {
    {.name = "zdiff",
     .run = zdiff_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/n0,1,1/RO+ACCESS",
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Returns the members of the first sorted set that are in none of the others.",
     .complexity = DIFF_COMPLEXITY,
     .args = "numkeys key [key ...] [WITHSCORES]"},
    {.name = "zdiffstore",
     .run = zdiffstore_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/OW+UPDATE; i2/n0,1,1/RO+ACCESS",
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Stores the members of the first sorted set that are in none of the others as a "
                "sorted set.",
     .complexity = DIFF_COMPLEXITY,
     .args = "destination numkeys key [key ...]"},
    {.name = "zinter",
     .run = zinter_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/n0,1,1/RO+ACCESS",
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Returns the members that are in all of several sorted sets.",
     .complexity = INTER_COMPLEXITY,
     .args = WEIGHED_INPUTS " [WITHSCORES]"},
    {.name = "zintercard",
     .run = zintercard_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/n0,1,1/RO+ACCESS",
     .group = "sorted-set",
     .since = "7.0.0",
     .summary = "Counts the members that are in all of several sorted sets.",
     .complexity = "O(N*K), N being the members of the smallest of K inputs",
     .args = "numkeys key [key ...] [LIMIT limit]"},
    {.name = "zinterstore",
     .run = zinterstore_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/OW+UPDATE; i2/n0,1,1/RO+ACCESS",
     .group = "sorted-set",
     .since = "2.0.0",
     .summary = "Stores the members that are in all of several sorted sets as a sorted set.",
     .complexity = INTER_COMPLEXITY,
     .args = "destination " WEIGHED_INPUTS},
    {.name = "zunion",
     .run = zunion_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/n0,1,1/RO+ACCESS",
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Returns the members of any of several sorted sets.",
     .complexity = UNION_COMPLEXITY,
     .args = WEIGHED_INPUTS " [WITHSCORES]"},
    {.name = "zunionstore",
     .run = zunionstore_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_SLOW,
     .categories = CATEGORY_SORTEDSET,
     .keys = "i1/r0,1,0/OW+UPDATE; i2/n0,1,1/RO+ACCESS",
     .group = "sorted-set",
     .since = "2.0.0",
     .summary = "Stores the members of any of several sorted sets as a sorted set.",
     .complexity = UNION_COMPLEXITY,
     .args = "destination " WEIGHED_INPUTS},
    {.name = NULL},
};
