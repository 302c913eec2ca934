/* Intersections, unions and differences of sets, replied, counted or stored. Small ones are done in
 * the hold in which they begin, and nothing is collected that the reply or the new set does not
 * need. Large ones go in slices (sliced.h), and nobody waits for all of them; their members are
 * gathered.
 *
 * A destination may be a source: the new set is complete before it takes the key. */
#include "commands/commands.h"
#include "commands/gathered.h"
#include "commands/sets_operation.h"
#include "commands/sets_priv.h"
#include "commands/sliced.h"

#include "base/mem.h"
#include "engine/propagate.h"
#include "keyspace/access.h"
#include "keyspace/reclaim.h"

/* Without memory for the whole result there is none. */
static void reply_lost(struct call *c)
{
    reply_error(c->reply, "OOM no memory for a result of this length");
}

/* Reads `count` keys from `keys` on into an operation's sets; false (and replied) when one of them
 * holds something else. */
static bool find_sets(struct call *c, const struct key *keys, int count, unsigned flags,
                      struct entry **sets) REQUIRES_SHARED(keyspace_lock)
{
    for (int i = 0; i < count; i++) {
        sets[i] = db_read(c->db, &keys[i], c->now_ms, flags);
        if (sets[i] && entry_type(sets[i]) != VALUE_SET) {
            reply_wrong_type(c->reply);
            return false;
        }
    }
    return true;
}

/* The same for the keys from the `first` one of the request on; the operation is the caller's to
 * free in any case. */
static bool begin(struct call *c, enum sets_operation_kind kind, int first, int count,
                  struct sets_operation *o) REQUIRES_SHARED(keyspace_lock)
{
    assert(first + count <= c->key_count);
    sets_operation_init(o, kind, count);
    return find_sets(c, call_key(c, first), count, call_look_flags(c), o->sets);
}

/* ---- in slices ---- */

struct sets_request {
    enum sets_operation_kind kind;
    bool counts;       /* replies the count only */
    const char *event; /* of what stores; else NULL */
    uint64_t limit;
};

struct sets_work {
    struct sets_request request;
    struct sets_operation operation;
    struct gathered gathered;
};

static void *work_begin(struct call *c, const void *request, struct entry *const *values, int count)
{
    const struct sets_request *q = request;
    for (int i = 0; i < count; i++) {
        if (values[i] && entry_type(values[i]) != VALUE_SET) {
            reply_wrong_type(c->reply);
            return NULL;
        }
    }
    struct sets_work *w = mem_calloc(1, sizeof(*w));
    struct sets_sink *sink = &w->operation.sink;
    w->request = *q;
    sets_operation_init(&w->operation, q->kind, count);
    memcpy(w->operation.sets, values, (size_t)count * sizeof(*values));
    sink->limit = q->limit;
    if (q->event) {
        sink->into = set_create(c->argv[1], NULL, 0, ENTRY_NO_EXPIRY);
    } else if (!q->counts) {
        sink->gathered = &w->gathered;
    }
    return w;
}

static bool work_gather(void *work, uint64_t budget_ns)
{
    struct sets_work *w = work;
    return sets_operation_run(&w->operation, budget_ns);
}

static void work_release(void *work)
{
    struct sets_work *w = work;
    if (w->operation.sink.into) {
        entry_destroy(&w->operation.sink.into);
    }
    sets_operation_deinit(&w->operation);
    gathered_deinit(&w->gathered);
    mem_free(w);
}

static void work_reply(struct call *c, void *work)
{
    const struct sets_work *w = work;
    const struct sets_sink *sink = &w->operation.sink;
    if (sink->lost) {
        reply_lost(c);
    } else if (w->request.counts) {
        reply_i64(c->reply, (int64_t)sink->count);
    } else {
        reply_set(c->reply, sink->count);
        gathered_reply(c->reply, &w->gathered);
    }
}

/* Puts what the sink has gathered at the request's first key. */
static void store(struct call *c, struct sets_sink *sink, const char *event) REQUIRES(keyspace_lock)
{
    struct keyref ref;
    if (sink->lost) {
        reply_lost(c);
        return;
    }
    call_open(c, 0, &ref);
    if (sink->count > 0) {
        if (!ref.entry) {
            entry_set_clock(sink->into, access_initial(c->now_ms));
        }
        db_put_lazily(&ref, sink->into);
        sink->into = NULL;
        call_changed(c, &ref, EVENT_SET, event);
    } else if (ref.entry) {
        db_delete(&ref, reclaim_is_long(ref.entry));
        call_changed(c, &ref, EVENT_GENERIC, "del");
    }
    propagate_stored(c, 0);
    reply_i64(c->reply, (int64_t)sink->count);
}

static void work_store(struct call *c, void *work)
{
    struct sets_work *w = work;
    keyspace_assert_exclusive();
    store(c, &w->operation.sink, w->request.event);
}

static const struct sliced_kind replying = {work_begin, work_gather, NULL, work_reply,
                                            work_release};
static const struct sliced_kind storing = {work_begin, work_gather, NULL, work_store, work_release};

/* Has the operation, whose sets are found, go on in slices where it is much work; true then, and it
 * is freed. `first`: the first of its keys in the request. */
static bool run_sliced(struct call *c, struct sets_operation *o, int first,
                       struct sets_request request) REQUIRES_SHARED(keyspace_lock)
{
    int count = o->count;
    if (!sliced_fits(c, sets_operation_work(o))) {
        return false;
    }
    sets_operation_deinit(o);
    struct sets_request *copy = mem_alloc(sizeof(*copy));
    *copy = request;
    sliced_begin(c, request.event ? &storing : &replying, copy, first, count,
                 request.event != NULL);
    return true;
}

/* ---- replying and storing ---- */

static void run_and_reply(struct call *c, enum sets_operation_kind kind)
    REQUIRES_SHARED(keyspace_lock)
{
    struct sets_operation o;
    if (begin(c, kind, 0, c->key_count, &o)) {
        if (run_sliced(c, &o, 0, (struct sets_request){.kind = kind, .limit = UINT64_MAX})) {
            return;
        }
        struct reply_mark before = reply_mark(c->reply);
        uint32_t handle = reply_deferred(c->reply);
        o.sink.reply = c->reply;
        sets_operation_run(&o, 0);
        if (o.sink.lost) {
            reply_rewind(c->reply, before);
            reply_lost(c);
        } else {
            reply_set_deferred_set(c->reply, handle, o.sink.count);
        }
    }
    sets_operation_deinit(&o);
}

static void run_and_store(struct call *c, enum sets_operation_kind kind, const char *event)
    REQUIRES(keyspace_lock)
{
    struct sets_operation o;
    if (begin(c, kind, 1, c->key_count - 1, &o)) {
        struct sets_request request = {.kind = kind, .event = event, .limit = UINT64_MAX};
        if (run_sliced(c, &o, 1, request)) {
            return;
        }
        o.sink.into = set_create(call_key(c, 0)->name, NULL, 0, ENTRY_NO_EXPIRY);
        sets_operation_run(&o, 0);
        store(c, &o.sink, event);
        if (o.sink.into) {
            entry_destroy(&o.sink.into);
        }
    }
    sets_operation_deinit(&o);
}

READ_COMMAND(sinter_command)
{
    run_and_reply(c, SETS_INTER);
}

READ_COMMAND(sunion_command)
{
    run_and_reply(c, SETS_UNION);
}

READ_COMMAND(sdiff_command)
{
    run_and_reply(c, SETS_DIFF);
}

WRITE_COMMAND(sinterstore_command)
{
    run_and_store(c, SETS_INTER, "sinterstore");
}

WRITE_COMMAND(sunionstore_command)
{
    run_and_store(c, SETS_UNION, "sunionstore");
}

WRITE_COMMAND(sdiffstore_command)
{
    run_and_store(c, SETS_DIFF, "sdiffstore");
}

/* Reads LIMIT from argument `first` on; the last one counts. */
static bool parse_limit(struct call *c, int first, int64_t *limit)
{
    *limit = 0;
    for (int i = first; i < c->argc; i += 2) {
        if (!call_arg_is(c, i, "limit") || i + 1 == c->argc) {
            reply_syntax_error(c->reply);
            return false;
        }
        if (!call_arg_range(c, i + 1, 0, INT64_MAX, limit, "ERR LIMIT can't be negative")) {
            return false;
        }
    }
    return true;
}

READ_COMMAND(sintercard_command)
{
    int64_t keys, limit;
    struct sets_operation o;
    if (!call_arg_range(c, 1, 1, INT64_MAX, &keys, "ERR numkeys should be greater than 0")) {
        return;
    }
    if (keys > c->argc - 2) {
        reply_error(c->reply, "ERR Number of keys can't be greater than number of args");
        return;
    }
    if (!parse_limit(c, 2 + (int)keys, &limit)) {
        return;
    }
    if (begin(c, SETS_INTER, 0, (int)keys, &o)) {
        o.sink.limit = limit > 0 ? (uint64_t)limit : UINT64_MAX;
        if (run_sliced(c, &o, 0,
                       (struct sets_request){SETS_INTER, .counts = true, .limit = o.sink.limit})) {
            return;
        }
        sets_operation_run(&o, 0);
        reply_i64(c->reply, (int64_t)o.sink.count);
    }
    sets_operation_deinit(&o);
}

#define READS_KEYS                                                                                 \
    .flags = CMD_READONLY | CMD_SLOW, .categories = CATEGORY_SET,                                  \
    .tips = "nondeterministic_output_order", .group = "set", .arity = -2,                          \
    .keys = "i1/r-1,1,0/RO+ACCESS", .args = "key [key ...]", .since = "1.0.0"
#define STORES                                                                                     \
    .flags = CMD_WRITE | CMD_DENYOOM | CMD_SLOW, .categories = CATEGORY_SET, .group = "set",       \
    .arity = -3, .keys = "i1/r0,1,0/OW+UPDATE; i2/r-1,1,0/RO+ACCESS",                              \
    .args = "destination key [key ...]", .since = "1.0.0"

const struct command_row set_algebra_commands[] = {
    {.name = "sdiff",
     .run = sdiff_command,
     READS_KEYS,
     .summary = "Returns the members of the first set that are in none of the others.",
     .complexity = "O(N), N being the members of all sets"},
    {.name = "sdiffstore",
     .run = sdiffstore_command,
     STORES,
     .summary = "Stores the members of the first set that are in none of the others.",
     .complexity = "O(N), N being the members of all sets"},
    {.name = "sinter",
     .run = sinter_command,
     READS_KEYS,
     .summary = "Returns the members that all sets have.",
     .complexity = "O(N*M), N being the members of the smallest set, M the sets"},
    {.name = "sintercard",
     .run = sintercard_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SET,
     .keys = "i1/n0,1,1/RO+ACCESS",
     .group = "set",
     .since = "7.0.0",
     .summary = "Counts the members that all sets have, up to a limit.",
     .complexity = "O(N*M), N being the members of the smallest set, M the sets",
     .args = "numkeys key [key ...] [LIMIT limit]"},
    {.name = "sinterstore",
     .run = sinterstore_command,
     STORES,
     .summary = "Stores the members that all sets have.",
     .complexity = "O(N*M), N being the members of the smallest set, M the sets"},
    {.name = "sunion",
     .run = sunion_command,
     READS_KEYS,
     .summary = "Returns the members that any of the sets has.",
     .complexity = "O(N), N being the members of all sets"},
    {.name = "sunionstore",
     .run = sunionstore_command,
     STORES,
     .summary = "Stores the members that any of the sets has.",
     .complexity = "O(N), N being the members of all sets"},
    {.name = NULL},
};
