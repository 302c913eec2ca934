/* Sorted sets: union, intersection and difference, replied, stored or counted. Inputs are sorted
 * sets and sets, whose members have score 1. A key given twice is two inputs. Large ones go in
 * slices (sliced.h). */
#include "commands/commands.h"
#include "commands/gathered.h"
#include "commands/sliced.h"
#include "commands/zsets_operation.h"
#include "commands/zsets_priv.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"

/* Members between two looks at the clock: some ten microseconds. */
#define LOOK_EVERY_MEMBERS 64
/* A double in its shortest form, as a line of RESP. */
#define SCORE_TEXT_BYTES 40

struct request {
    struct zsets_request wanted;
    int key_count;
    int first_key; /* of c->keys */
    bool with_scores;
    bool nested;       /* each member and its score are an array */
    int proto;         /* of the reply */
    const char *event; /* of what stores; else NULL */
    double *weights;   /* one a key */
};

/* ---- Parsing ---- */

static bool parse_weights(struct call *c, struct request *q, int *at)
{
    for (int k = 0; k < q->key_count; k++) {
        ++*at;
        if (!call_arg_double(c, *at, &q->weights[k], "ERR weight value is not a float")) {
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
            q->wanted.aggregate = (enum zsets_aggregate)i;
            return true;
        }
    }
    reply_syntax_error(c->reply);
    return false;
}

/* The options from argument `at` on. `store`: WITHSCORES has no meaning. */
static bool parse_options(struct call *c, struct request *q, int at, bool store)
{
    bool weighs = q->wanted.kind != ZSETS_DIFF && !q->wanted.counting;
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
        } else if (!store && !q->wanted.counting && call_arg_is(c, at, "withscores")) {
            q->with_scores = true;
        } else if (q->wanted.counting && behind >= 1 && call_arg_is(c, at, "limit")) {
            int64_t limit;
            if (!call_arg_range(c, ++at, 0, INT64_MAX, &limit, "ERR LIMIT can't be negative")) {
                return false;
            }
            q->wanted.limit = (uint64_t)limit;
        } else {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    return true;
}

/* Begins with the inputs' values; false with an error replied when one is of another type. */
static bool begin(struct call *c, const struct request *q, struct entry *const *values,
                  struct zsets_operation *o)
{
    bool fine = zsets_operation_init(o, &q->wanted, values, q->weights, q->key_count);
    if (!fine) {
        reply_wrong_type(c->reply);
    }
    return fine;
}

static bool find_inputs(struct call *c, const struct request *q, struct zsets_operation *o)
    REQUIRES_SHARED(keyspace_lock)
{
    struct entry **values = mem_alloc((size_t)q->key_count * sizeof(*values));
    for (int k = 0; k < q->key_count; k++) {
        values[k] = call_read(c, q->first_key + k);
    }
    bool fine = begin(c, q, values, o);
    mem_free(values);
    return fine;
}

/* Parses the number of keys at argument `at`. */
static bool parse_key_count(struct call *c, struct request *q, int at)
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
    return true;
}

/* Parses the whole request; `at` is the argument with the number of keys. The keys' types are
 * looked at before the options. False with an error replied; else the operation, and q->weights,
 * are the caller's to free. */
static bool parse_request(struct call *c, struct request *q, int at, struct zsets_operation *o)
    REQUIRES_SHARED(keyspace_lock)
{
    if (!parse_key_count(c, q, at)) {
        return false;
    }
    q->weights = mem_alloc((size_t)q->key_count * sizeof(*q->weights));
    for (int k = 0; k < q->key_count; k++) {
        q->weights[k] = 1.0;
    }
    if (find_inputs(c, q, o)) {
        if (parse_options(c, q, at + 1 + q->key_count, at == 2)) {
            zsets_operation_want(o, &q->wanted, q->weights);
            q->nested = zsets_nested(c, q->with_scores);
            q->proto = c->reply->proto;
            return true;
        }
        zsets_operation_deinit(o);
    }
    mem_free(q->weights);
    return false;
}

/* ---- Replies ---- */

static uint64_t reply_length(const struct request *q, uint64_t members)
{
    return q->with_scores && !q->nested ? members * 2 : members;
}

static void reply_draft(struct call *c, const struct request *q, const struct zset_draft *d)
{
    reply_array(c->reply, reply_length(q, d->count));
    for (uint64_t i = 0; i < d->count; i++) {
        if (q->nested) {
            reply_array(c->reply, 2);
        }
        reply_bulk(c->reply, skiplist_bytes(d->nodes[i]));
        if (q->with_scores) {
            reply_double(c->reply, d->nodes[i]->score);
        }
    }
}

/* ---- In slices ---- */

struct work {
    struct request request; /* weights not of its own: the operation has them */
    struct zsets_operation operation;
    struct gathered gathered; /* the reply, without its head */
    uint64_t told;            /* members of it */
};

static void *work_begin(struct call *c, const void *request, struct entry *const *values, int count)
{
    struct work *w = mem_calloc(1, sizeof(*w));
    w->request = *(const struct request *)request;
    assert(count == w->request.key_count);
    (void)count;
    if (!begin(c, &w->request, values, &w->operation)) {
        mem_free(w);
        return NULL;
    }
    return w;
}

static void work_release(void *work)
{
    struct work *w = work;
    zsets_operation_deinit(&w->operation);
    gathered_deinit(&w->gathered);
    mem_free(w);
}

/* Calls `some` for few members at a time, until it says that it is at the end (true), or the time
 * is over. */
static bool run_for(struct work *w, bool (*some)(struct work *w, uint64_t steps), uint64_t steps,
                    uint64_t budget_ns)
{
    uint64_t begin = clock_ticks();
    while (!some(w, steps)) {
        if (budget_ns && clock_ticks_to_ns(clock_ticks() - begin) >= budget_ns) {
            return false;
        }
    }
    return true;
}

static bool gather_some(struct work *w, uint64_t steps)
{
    return zsets_operation_run(&w->operation, steps);
}

static bool work_gather(void *work, uint64_t budget_ns)
{
    struct work *w = work;
    uint64_t looked_up = w->request.wanted.kind == ZSETS_UNION ? 1 : (uint64_t)w->request.key_count;
    return run_for(w, gather_some, LOOK_EVERY_MEMBERS / looked_up + 1, budget_ns);
}

static bool sort_some(struct work *w, uint64_t steps)
{
    return zset_draft_sort_some(&w->operation.draft, steps);
}

static bool build_some(struct work *w, uint64_t steps)
{
    return zset_draft_build_some(&w->operation.draft, steps);
}

static bool tell_score(struct work *w, double score)
{
    char text[SCORE_TEXT_BYTES];
    if (w->request.proto < 3) {
        return gathered_add(&w->gathered, slice_of(text, num_format_double(text, score)));
    }
    size_t len = 1 + num_format_double(text + 1, score);
    text[0] = ',';
    memcpy(text + len, "\r\n", 2);
    return gathered_add_raw(&w->gathered, slice_of(text, len + 2));
}

static bool tell_some(struct work *w, uint64_t steps)
{
    struct zset_draft *d = &w->operation.draft;
    for (; !d->lost && steps > 0 && w->told < d->count; steps--, w->told++) {
        const struct skiplist_node *n = d->nodes[w->told];
        d->lost = (w->request.nested && !gathered_add_raw(&w->gathered, SLICE("*2\r\n"))) ||
                  !gathered_add(&w->gathered, skiplist_bytes(n)) ||
                  (w->request.with_scores && !tell_score(w, n->score));
    }
    return d->lost || w->told == d->count;
}

static bool work_arrange_reply(void *work, uint64_t budget_ns)
{
    return run_for(work, sort_some, LOOK_EVERY_MEMBERS, budget_ns) &&
           run_for(work, tell_some, LOOK_EVERY_MEMBERS, budget_ns);
}

static bool work_arrange_value(void *work, uint64_t budget_ns)
{
    return run_for(work, sort_some, LOOK_EVERY_MEMBERS, budget_ns) &&
           run_for(work, build_some, LOOK_EVERY_MEMBERS, budget_ns);
}

static void work_reply(struct call *c, void *work)
{
    const struct work *w = work;
    const struct zsets_operation *o = &w->operation;
    if (w->request.wanted.counting) {
        reply_i64(c->reply, (int64_t)o->found);
    } else if (o->draft.lost) {
        zsets_reply_lost(c);
    } else {
        reply_array(c->reply, reply_length(&w->request, o->draft.count));
        gathered_reply(c->reply, &w->gathered);
    }
}

static void work_store(struct call *c, void *work)
{
    struct work *w = work;
    keyspace_assert_exclusive();
    zsets_store(c, 0, &w->operation.draft, w->request.event);
}

static const struct sliced_kind replying = {work_begin, work_gather, work_arrange_reply, work_reply,
                                            work_release};
static const struct sliced_kind storing = {work_begin, work_gather, work_arrange_value, work_store,
                                           work_release};

/* The request with its weights in one block. */
static struct request *copy_request(const struct request *q)
{
    size_t bytes = (size_t)q->key_count * sizeof(*q->weights);
    struct request *copy = mem_alloc(sizeof(*copy) + bytes);
    *copy = *q;
    copy->weights = (double *)(copy + 1);
    memcpy(copy->weights, q->weights, bytes);
    return copy;
}

/* Goes on in slices where it is much work; true then. */
static bool run_sliced(struct call *c, const struct request *q, const struct zsets_operation *o)
    REQUIRES_SHARED(keyspace_lock)
{
    if (!sliced_fits(c, zsets_operation_work(o))) {
        return false;
    }
    sliced_begin(c, q->event ? &storing : &replying, copy_request(q), q->first_key, q->key_count,
                 q->event != NULL);
    return true;
}

/* ---- Handlers ---- */

static void run_whole(struct zsets_operation *o)
{
    bool done = zsets_operation_run(o, UINT64_MAX);
    assert(done);
    (void)done;
    zset_draft_sort(&o->draft);
}

static void reply_result(struct call *c, const struct request *q, const struct zsets_operation *o)
{
    if (q->wanted.counting) {
        reply_i64(c->reply, (int64_t)o->found);
    } else if (o->draft.lost) {
        zsets_reply_lost(c);
    } else {
        reply_draft(c, q, &o->draft);
    }
}

static void read_generic(struct call *c, enum zsets_operation_kind kind, bool counting)
    REQUIRES_SHARED(keyspace_lock)
{
    struct request q = {.wanted = {.kind = kind, .counting = counting}};
    struct zsets_operation o;
    if (parse_request(c, &q, 1, &o)) {
        if (!run_sliced(c, &q, &o)) {
            run_whole(&o);
            reply_result(c, &q, &o);
        }
        zsets_operation_deinit(&o);
        mem_free(q.weights);
    }
}

static void store_generic(struct call *c, enum zsets_operation_kind kind, const char *event)
    REQUIRES(keyspace_lock)
{
    struct request q = {.wanted = {.kind = kind}, .event = event};
    struct zsets_operation o;
    if (parse_request(c, &q, 2, &o)) {
        if (!run_sliced(c, &q, &o)) {
            run_whole(&o);
            zsets_store(c, 0, &o.draft, event);
        }
        zsets_operation_deinit(&o);
        mem_free(q.weights);
    }
}

READ_COMMAND(zunion_command)
{
    read_generic(c, ZSETS_UNION, false);
}

READ_COMMAND(zinter_command)
{
    read_generic(c, ZSETS_INTER, false);
}

READ_COMMAND(zdiff_command)
{
    read_generic(c, ZSETS_DIFF, false);
}

READ_COMMAND(zintercard_command)
{
    read_generic(c, ZSETS_INTER, true);
}

WRITE_COMMAND(zunionstore_command)
{
    store_generic(c, ZSETS_UNION, "zunionstore");
}

WRITE_COMMAND(zinterstore_command)
{
    store_generic(c, ZSETS_INTER, "zinterstore");
}

WRITE_COMMAND(zdiffstore_command)
{
    store_generic(c, ZSETS_DIFF, "zdiffstore");
}

#define DIFF_COMPLEXITY                                                                            \
    "O(N*K)+O(M*log(M)), N being the members of the first of K inputs and M those of the result"
#define INTER_COMPLEXITY                                                                           \
    "O(N*K)+O(M*log(M)), N being the members of the smallest of K inputs and M those of the "      \
    "result"
#define UNION_COMPLEXITY                                                                           \
    "O(N)+O(M*log(M)), N being the members of all inputs and M those of the result"
#define WEIGHED_INPUTS "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX]"

#define ONLY_READS                                                                                 \
    .arity = -3, .flags = CMD_READONLY | CMD_SLOW, .categories = CATEGORY_SORTEDSET,               \
    .keys = "i1/n0,1,1/RO+ACCESS", .group = "sorted-set"
#define STORES                                                                                     \
    .arity = -4, .flags = CMD_WRITE | CMD_DENYOOM | CMD_SLOW, .categories = CATEGORY_SORTEDSET,    \
    .keys = "i1/r0,1,0/OW+UPDATE; i2/n0,1,1/RO+ACCESS", .group = "sorted-set"

const struct command_row zset_algebra_commands[] = {
    {.name = "zdiff",
     .run = zdiff_command,
     ONLY_READS,
     .since = "6.2.0",
     .summary = "Returns the members of the first sorted set that are in none of the others.",
     .complexity = DIFF_COMPLEXITY,
     .args = "numkeys key [key ...] [WITHSCORES]"},
    {.name = "zdiffstore",
     .run = zdiffstore_command,
     STORES,
     .since = "6.2.0",
     .summary = "Stores the members of the first sorted set that are in none of the others as a "
                "sorted set.",
     .complexity = DIFF_COMPLEXITY,
     .args = "destination numkeys key [key ...]"},
    {.name = "zinter",
     .run = zinter_command,
     ONLY_READS,
     .since = "6.2.0",
     .summary = "Returns the members that are in all of several sorted sets.",
     .complexity = INTER_COMPLEXITY,
     .args = WEIGHED_INPUTS " [WITHSCORES]"},
    {.name = "zintercard",
     .run = zintercard_command,
     ONLY_READS,
     .since = "7.0.0",
     .summary = "Counts the members that are in all of several sorted sets.",
     .complexity = "O(N*K), N being the members of the smallest of K inputs",
     .args = "numkeys key [key ...] [LIMIT limit]"},
    {.name = "zinterstore",
     .run = zinterstore_command,
     STORES,
     .since = "2.0.0",
     .summary = "Stores the members that are in all of several sorted sets as a sorted set.",
     .complexity = INTER_COMPLEXITY,
     .args = "destination " WEIGHED_INPUTS},
    {.name = "zunion",
     .run = zunion_command,
     ONLY_READS,
     .since = "6.2.0",
     .summary = "Returns the members of any of several sorted sets.",
     .complexity = UNION_COMPLEXITY,
     .args = WEIGHED_INPUTS " [WITHSCORES]"},
    {.name = "zunionstore",
     .run = zunionstore_command,
     STORES,
     .since = "2.0.0",
     .summary = "Stores the members of any of several sorted sets as a sorted set.",
     .complexity = UNION_COMPLEXITY,
     .args = "destination " WEIGHED_INPUTS},
    {.name = NULL},
};
