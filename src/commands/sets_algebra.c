/* Intersections, unions and differences of sets, replied, counted or stored. Small ones are done in
 * the hold in which they begin, and nothing is collected that the reply or the new set does not
 * need.
 *
 * Large ones that only read go in slices (engine/call.h), and nobody waits for all of them; their
 * members are gathered. The result is that of one moment all the same, of the last beginning: it
 * begins anew when a set has changed since (keyspace/changes.h), and what has begun so often that
 * it might never end is done in one hold. What stores is done in one hold always: README.md says
 * why.
 *
 * A destination may be a source: the new set is complete before it takes the key. */
#include "commands/commands.h"
#include "commands/sets_operation.h"
#include "commands/sets_priv.h"

#include "base/mem.h"
#include "keyspace/access.h"
#include "keyspace/changes.h"
#include "keyspace/reclaim.h"

/* What takes more work than this many members goes in slices: about two milliseconds. */
#define WHOLE_MEMBERS 32768
/* A slice ends at the first look at the clock after this long. */
#define SLICE_NS (200 * 1000)
/* Beginnings in slices; the one after them is not interrupted. */
#define BEGINNINGS_MAX 4

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
    return find_sets(c, call_key(c, first), count, c->session->no_touch ? DB_NO_TOUCH : 0, o->sets);
}

/* ---- in slices ---- */

struct sliced {
    struct sets_operation operation;
    struct gathered gathered;
    bool counts; /* replies the count only */
    uint64_t limit;
    unsigned beginnings;
    int count;
    struct key *keys; /* and their names behind them */
    uint64_t *seen;   /* changes_count() of each */
};

static void sliced_destroy(void *state)
{
    struct sliced *s = state;
    changes_end();
    sets_operation_deinit(&s->operation);
    gathered_deinit(&s->gathered);
    mem_free(s->keys);
    mem_free(s->seen);
    mem_free(s);
}

/* Copies keys, names and all, into one block. */
static struct key *copy_keys(const struct key *keys, int count)
{
    size_t bytes = (size_t)count * sizeof(*keys);
    for (int i = 0; i < count; i++) {
        bytes += keys[i].name.len;
    }
    struct key *copies = mem_alloc(bytes);
    char *names = (char *)(copies + count);
    for (int i = 0; i < count; i++) {
        copies[i] = (struct key){slice_of(names, keys[i].name.len), keys[i].hash};
        if (keys[i].name.len > 0) {
            memcpy(names, keys[i].name.ptr, keys[i].name.len);
        }
        names += keys[i].name.len;
    }
    return copies;
}

/* The operation, whose sets were just found, begins. */
static void sliced_begin(struct call *c, struct sliced *s) REQUIRES_SHARED(keyspace_lock)
{
    s->operation.sink =
        (struct sets_sink){.gathered = s->counts ? NULL : &s->gathered, .limit = s->limit};
    for (int i = 0; i < s->count; i++) {
        s->seen[i] = changes_count(c->db, &s->keys[i]);
    }
    s->beginnings++;
}

static bool is_unchanged(const struct call *c, const struct sliced *s)
    REQUIRES_SHARED(keyspace_lock)
{
    for (int i = 0; i < s->count; i++) {
        if (s->seen[i] != changes_count(c->db, &s->keys[i])) {
            return false;
        }
    }
    return true;
}

enum anew { ANEW_BEGUN, ANEW_LATER, ANEW_REPLIED };

/* Begins from the start with what the sets are now. Where members of them are due, which only an
 * exclusive hold can take out, that is noted, and happens before the next slice. */
static enum anew begin_anew(struct call *c, struct sliced *s) REQUIRES_SHARED(keyspace_lock)
{
    bool due = false;
    enum sets_operation_kind kind = s->operation.kind;
    for (int i = 0; i < s->count; i++) {
        due = db_note_due(c->db, &s->keys[i], c->now_ms) || due;
    }
    if (due) {
        return ANEW_LATER;
    }
    gathered_deinit(&s->gathered);
    sets_operation_deinit(&s->operation);
    sets_operation_init(&s->operation, kind, s->count);
    if (!find_sets(c, s->keys, s->count, DB_NO_TOUCH | DB_NO_STATS, s->operation.sets)) {
        return ANEW_REPLIED;
    }
    sliced_begin(c, s);
    return ANEW_BEGUN;
}

static void sliced_reply(struct call *c, const struct sliced *s)
{
    const struct sets_sink *sink = &s->operation.sink;
    if (sink->lost) {
        reply_lost(c);
    } else if (s->counts) {
        reply_i64(c->reply, (int64_t)sink->count);
    } else {
        reply_set(c->reply, sink->count);
        gathered_reply(c->reply, &s->gathered);
    }
}

static bool sliced_step(struct call *c, void *state)
{
    struct sliced *s = state;
    keyspace_assert_shared();
    if (!is_unchanged(c, s)) {
        enum anew anew = begin_anew(c, s);
        if (anew != ANEW_BEGUN) {
            return anew == ANEW_REPLIED;
        }
    }
    if (!sets_operation_run(&s->operation, s->beginnings <= BEGINNINGS_MAX ? SLICE_NS : 0)) {
        return false;
    }
    sliced_reply(c, s);
    return true;
}

/* Takes over an operation that has its sets, of the keys from the `first` one of the request on. */
static void run_sliced(struct call *c, struct sets_operation *o_take, int first, bool counts)
    REQUIRES_SHARED(keyspace_lock)
{
    struct sliced *s = mem_calloc(1, sizeof(*s));
    s->operation = *o_take;
    if (o_take->sets == o_take->room) {
        s->operation.sets = s->operation.room;
    }
    s->counts = counts;
    s->limit = o_take->sink.limit;
    s->count = o_take->count;
    s->keys = copy_keys(call_key(c, first), s->count);
    s->seen = mem_alloc((size_t)s->count * sizeof(*s->seen));
    changes_begin();
    sliced_begin(c, s);
    c->continuation = (struct continuation){sliced_step, sliced_destroy, s};
}

/* Whoever tracks the keys is told of changes since they were read, which is now: no slices for him.
 */
static bool may_slice(const struct call *c, const struct sets_operation *o)
{
    return sets_operation_work(o) > WHOLE_MEMBERS && !c->nested && !c->session->internal &&
           !c->session->tracking;
}

/* ---- replying and storing ---- */

static void run_and_reply(struct call *c, enum sets_operation_kind kind)
    REQUIRES_SHARED(keyspace_lock)
{
    struct sets_operation o;
    if (begin(c, kind, 0, c->key_count, &o)) {
        if (may_slice(c, &o)) {
            run_sliced(c, &o, 0, false);
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

/* Puts the result, owned from now on, at the request's first key. */
static void store(struct call *c, struct entry *result_take, uint64_t count, const char *event)
    REQUIRES(keyspace_lock)
{
    struct keyref ref;
    call_open(c, 0, &ref);
    if (count > 0) {
        db_put(&ref, result_take);
        call_changed(c, &ref, EVENT_SET, event);
    } else {
        entry_destroy(&result_take);
        if (ref.entry) {
            db_delete(&ref, reclaim_lazy_server_del());
            call_changed(c, &ref, EVENT_GENERIC, "del");
        }
    }
    reply_i64(c->reply, (int64_t)count);
}

static void run_and_store(struct call *c, enum sets_operation_kind kind, const char *event)
    REQUIRES(keyspace_lock)
{
    struct sets_operation o;
    if (begin(c, kind, 1, c->key_count - 1, &o)) {
        struct entry *e = set_create(call_key(c, 0)->name, NULL, 0, ENTRY_NO_EXPIRY);
        entry_set_clock(e, access_initial(c->now_ms));
        o.sink.into = e;
        sets_operation_run(&o, 0);
        if (o.sink.lost) {
            entry_destroy(&e);
            reply_lost(c);
        } else {
            store(c, e, o.sink.count, event);
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
        if (may_slice(c, &o)) {
            run_sliced(c, &o, 0, true);
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
