/* Walks over a database: SCAN and KEYS.
 *
 * A walk that may be long goes in slices of WALK_STEP_NS (engine/call.h, continuation): between
 * them everybody else is served, and the database may change. What is there throughout is met
 * exactly once (keyspace/db.h). Matching keys are gathered. State: owned by the call. */
#include "commands/commands.h"
#include "commands/gathered.h"
#include "commands/scan_args.h"

#include "base/clock.h"
#include "base/glob.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/call.h"
#include "value/module.h"

/* A slice ends at the first look at the clock after this long. */
#define WALK_STEP_NS (200 * 1000)
/* Keys between two looks at the clock: about 10 microseconds. */
#define WALK_STRIDE_KEYS 64
/* A SCAN that asks for more keys goes in slices; up to this many take no longer than one. */
#define SCAN_WHOLE_KEYS 1000
/* Cursors of the table have 48 bits; a greater one is behind its end. */
#define WALK_CURSOR_END ((uint64_t)1 << 48)

struct walk {
    int db_index;
    uint64_t cursor;
    uint64_t remaining;   /* keys that may still be met */
    struct slice pattern; /* ptr NULL: all match */
    char *pattern_owned;  /* the walk's own copy, when it outlives the hold */
    bool by_type;
    const struct value_ops *type; /* with by_type: that type only, NULL: no key */
    uint64_t kind;                /* of a module's type, its id; else 0 */
    bool out_of_memory;
    struct gathered found; /* keys that matched */
};

static void walk_deinit(struct walk *w)
{
    gathered_deinit(&w->found);
    mem_free(w->pattern_owned);
}

static void walk_destroy(void *state)
{
    walk_deinit(state);
    mem_free(state);
}

/* ---- Walking ---- */

static bool is_of_type(const struct walk *w, const struct entry *e)
{
    return value_ops_of[entry_type(e)] == w->type &&
           (w->kind == 0 || module_value_kind(e)->id == w->kind);
}

static void walk_visit(struct entry *e, void *context)
{
    struct walk *w = context;
    struct slice key = entry_key(e);
    w->remaining -= w->remaining > 0;
    if ((w->by_type && !is_of_type(w, e)) ||
        (w->pattern.ptr &&
         (glob_begins_otherwise(w->pattern, key) || !glob_match(w->pattern, key, false)))) {
        return;
    }
    if (!gathered_add(&w->found, key)) {
        w->out_of_memory = true;
    }
}

/* Goes on until the end, until no more keys may be met, or until `budget_ns` are over; true in the
 * first two cases. */
static bool walk_run(struct walk *w, int64_t now_ms, uint64_t budget_ns)
    REQUIRES_SHARED(keyspace_lock)
{
    struct db *db = db_at(w->db_index);
    uint64_t start = clock_ticks();
    do {
        uint64_t stride = w->remaining < WALK_STRIDE_KEYS ? w->remaining : WALK_STRIDE_KEYS;
        w->cursor = db_scan(db, w->cursor, stride, now_ms, walk_visit, w);
        if (w->cursor == 0 || w->remaining == 0 || w->out_of_memory) {
            return true;
        }
    } while (clock_ticks_to_ns(clock_ticks() - start) < budget_ns);
    return false;
}

/* Makes the walk outlive the hold: it moves to the heap, with its own copy of the pattern. */
static struct walk *walk_keep(const struct walk *w)
{
    struct walk *kept = mem_alloc(sizeof(*kept));
    *kept = *w;
    if (w->pattern.ptr) {
        kept->pattern_owned = mem_dup(w->pattern.ptr, w->pattern.len);
        kept->pattern.ptr = kept->pattern_owned;
    }
    return kept;
}

/* Runs the walk's first slice, and lets the engine go on with it where that is not all. */
static void walk_begin(struct call *c, struct walk *w, bool (*step)(struct call *, void *))
    REQUIRES_SHARED(keyspace_lock)
{
    if (step(c, w)) {
        walk_deinit(w);
        return;
    }
    c->continuation = (struct continuation){step, walk_destroy, walk_keep(w), ACCESS_SHARED};
}

/* True when the walk has no memory left; replies so. */
static bool walk_failed(struct call *c, const struct walk *w)
{
    if (w->out_of_memory) {
        reply_error(c->reply, "OOM no memory for the names of all matching keys");
    }
    return w->out_of_memory;
}

/* "*" and what else matches everything needs no matching. */
static struct slice walk_pattern(struct slice pattern)
{
    return slice_equal(pattern, SLICE("*")) ? slice_of(NULL, 0) : pattern;
}

/* ---- KEYS ---- */

static bool keys_step(struct call *c, void *state)
{
    struct walk *w = state;
    keyspace_assert_shared();
    if (!walk_run(w, c->now_ms, WALK_STEP_NS)) {
        return false;
    }
    if (!walk_failed(c, w)) {
        reply_array(c->reply, w->found.count);
        gathered_reply(c->reply, &w->found);
    }
    return true;
}

READ_COMMAND(keys_command)
{
    struct slice pattern = c->argv[1];
    if (glob_is_literal(pattern)) {
        struct key key = key_of(pattern);
        bool found = db_read(c->db, &key, c->now_ms, DB_NO_TOUCH | DB_NO_STATS) != NULL;
        reply_array(c->reply, found);
        if (found) {
            reply_bulk(c->reply, pattern);
        }
        return;
    }
    struct walk w = {
        .db_index = c->db->id, .pattern = walk_pattern(pattern), .remaining = UINT64_MAX};
    walk_begin(c, &w, keys_step);
}

/* ---- SCAN ---- */

/* The type of that name, NULL when there is none; the kind's id, of a module's. */
static const struct value_ops *scan_type_of(struct slice name, uint64_t *kind)
{
    const struct module_kind *k = module_kind_find_name(name);
    *kind = k ? k->id : 0;
    if (k) {
        return &module_value_ops;
    }
    for (int i = 0; i < VALUE_TYPE_COUNT; i++) {
        const struct value_ops *ops = value_ops_of[i];
        if (ops && ops->name && slice_equal_nocase(name, ops->name)) {
            return ops;
        }
    }
    return NULL;
}

static void scan_reply(struct call *c, const struct walk *w)
{
    if (walk_failed(c, w)) {
        return;
    }
    scan_args_reply_cursor(c, w->cursor);
    reply_array(c->reply, w->found.count);
    gathered_reply(c->reply, &w->found);
}

static bool scan_step(struct call *c, void *state)
{
    struct walk *w = state;
    keyspace_assert_shared();
    if (!walk_run(w, c->now_ms, w->remaining <= SCAN_WHOLE_KEYS ? UINT64_MAX : WALK_STEP_NS)) {
        return false;
    }
    scan_reply(c, w);
    return true;
}

READ_COMMAND(scan_command)
{
    struct scan_args args;
    if (!scan_args_cursor(c, 1, &args) || !scan_args_options(c, 2, SCAN_ARGS_TYPE, &args)) {
        return;
    }
    struct walk w = {.db_index = c->db->id,
                     .cursor = args.cursor,
                     .remaining = args.count,
                     .pattern = args.pattern,
                     .by_type = args.type.ptr != NULL};
    w.type = scan_type_of(args.type, &w.kind);
    if (w.cursor >= WALK_CURSOR_END) {
        w.cursor = 0;
        scan_reply(c, &w);
        return;
    }
    walk_begin(c, &w, scan_step);
}

const struct command_row key_scan_commands[] = {
    {.name = "keys",
     .run = keys_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_SLOW | CMD_BARRIER,
     .categories = CATEGORY_KEYSPACE | CATEGORY_DANGEROUS,
     .tips = "request_policy:all_shards,nondeterministic_output_order",
     .group = "generic",
     .since = "1.0.0",
     .summary = "Returns all keys that match a glob pattern.",
     .complexity = "O(N), N being the keys of the database",
     .args = "pattern"},
    {.name = "scan",
     .run = scan_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_SLOW | CMD_BARRIER,
     .categories = CATEGORY_KEYSPACE,
     .tips = "nondeterministic_output,request_policy:special,response_policy:special",
     .group = "generic",
     .since = "2.8.0",
     .summary = "Walks over the keys of the database, some with each call.",
     .complexity = "O(1) a call, O(N) for the whole walk",
     .args = "cursor [MATCH pattern] [COUNT count] [TYPE type]",
     .history = "6.0.0:Takes TYPE."},
    {.name = NULL},
};
