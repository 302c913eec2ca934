/* MEMORY: what keys and the server use, from the allocator's and the tables' own counts. */
#include "commands/commands.h"
#include "commands/memory_figures.h"
#include "base/mem_debug.h"
#include "engine/call.h"
#include "value/module.h"

/* Elements of a collection that USAGE looks at unless told. */
#define MEMORY_DEFAULT_SAMPLES 5

READ_COMMAND(memory_command_usage)
{
    int64_t samples = MEMORY_DEFAULT_SAMPLES;
    for (int i = 3; i < c->argc; i += 2) {
        if (!call_arg_is(c, i, "samples") || i + 1 == c->argc) {
            reply_syntax_error(c->reply);
            return;
        }
        if (!call_arg_i64(c, i + 1, &samples)) {
            return;
        }
        if (samples < 0) {
            reply_syntax_error(c->reply);
            return;
        }
    }
    const struct entry *e = call_peek(c, 0);
    if (!e) {
        reply_null(c->reply);
        return;
    }
    if (call_read_alone(c, e)) {
        return;
    }
    /* The entry, what hangs off it, and its share of the table. */
    const struct table *t = &c->db->table;
    size_t share = (table_memory_bytes(t) + t->count - 1) / t->count;
    module_value_db = c->db->id;
    reply_i64(c->reply, (int64_t)(entry_memory_bytes(e, (size_t)samples) + share));
    module_value_db = -1;
}

/* ---- MEMORY STATS ---- */

static void stats_i64(struct reply *r, const char *name, int64_t value)
{
    reply_bulk_cstr(r, name);
    reply_i64(r, value);
}

static void stats_double(struct reply *r, const char *name, double value)
{
    reply_bulk_cstr(r, name);
    reply_double(r, value);
}

/* One map for each database with keys; returns how many. */
static uint64_t stats_databases(struct reply *r)
{
    uint64_t shown = 0;
    bool taken = keyspace_visit();
    for (int i = 0; i < db_count(); i++) {
        struct db *db = db_at(i);
        if (db_size(db) == 0) {
            continue;
        }
        reply_bulkf(r, "db.%d", i);
        reply_map(r, 3);
        stats_i64(r, "overhead.hashtable.main", (int64_t)table_memory_bytes(&db->table));
        /* Expiries are part of the entries, and slots have no index here. */
        stats_i64(r, "overhead.hashtable.expires", 0);
        stats_i64(r, "overhead.hashtable.slot-to-keys", 0);
        shown++;
    }
    keyspace_leave(taken);
    return shown;
}

static uint64_t stats_allocator(struct reply *r, const struct memory_figures *f)
{
    const struct mem_stats *a = &f->allocator;
    stats_i64(r, "allocator.allocated", (int64_t)a->allocated_bytes);
    stats_i64(r, "allocator.active", (int64_t)a->active_bytes);
    stats_i64(r, "allocator.resident", (int64_t)a->resident_bytes);
    stats_double(r, "allocator-fragmentation.ratio",
                 memory_ratio(a->active_bytes, a->allocated_bytes));
    stats_i64(r, "allocator-fragmentation.bytes",
              memory_excess(a->active_bytes, a->allocated_bytes));
    stats_double(r, "allocator-rss.ratio", memory_ratio(a->resident_bytes, a->active_bytes));
    stats_i64(r, "allocator-rss.bytes", memory_excess(a->resident_bytes, a->active_bytes));
    stats_double(r, "rss-overhead.ratio", memory_ratio(f->rss, a->resident_bytes));
    stats_i64(r, "rss-overhead.bytes", memory_excess(f->rss, a->resident_bytes));
    stats_double(r, "fragmentation", memory_ratio(f->rss, f->used));
    stats_i64(r, "fragmentation.bytes", memory_excess(f->rss, f->used));
    return 11;
}

PLAIN_COMMAND(memory_command_stats)
{
    struct memory_figures f;
    memory_figures_collect(&f);
    struct reply *r = c->reply;
    uint32_t map = reply_deferred(r);
    stats_i64(r, "peak.allocated", (int64_t)f.peak);
    stats_i64(r, "total.allocated", (int64_t)f.used);
    stats_i64(r, "startup.allocated", (int64_t)f.startup);
    stats_i64(r, "replication.backlog", (int64_t)f.backlog);
    stats_i64(r, "clients.slaves", (int64_t)f.replicas);
    stats_i64(r, "clients.normal", (int64_t)f.clients);
    stats_i64(r, "cluster.links", 0); /* there is no cluster bus in this version */
    stats_i64(r, "aof.buffer", (int64_t)f.aof);
    stats_i64(r, "lua.caches", (int64_t)f.scripts);
    stats_i64(r, "functions.caches", (int64_t)f.functions);
    uint64_t fields = 10 + stats_databases(r);
    size_t net = f.used > f.startup ? f.used - f.startup : 0;
    stats_i64(r, "overhead.total", (int64_t)f.overhead);
    stats_i64(r, "keys.count", (int64_t)f.keys);
    stats_i64(r, "keys.bytes-per-key", f.keys ? (int64_t)(net / f.keys) : 0);
    stats_i64(r, "dataset.bytes", (int64_t)f.dataset);
    stats_double(r, "dataset.percentage", memory_dataset_percent(&f));
    stats_double(r, "peak.percentage", memory_peak_percent(&f));
    fields += 6 + stats_allocator(r, &f);
    reply_set_deferred_map(r, map, fields);
}

/* ---- MEMORY DOCTOR ---- */

/* With less than this in use, ratios say nothing. */
#define DOCTOR_MIN_USED_BYTES (5u << 20)
/* An excess below this is not worth a word. */
#define DOCTOR_MIN_EXCESS_BYTES (10 << 20)

/* What the doctor looks for: a ratio over its limit, with an excess that matters. */
struct doctor_finding {
    double ratio, limit;
    int64_t excess_bytes;
    const char *advice;
};

static void doctor_examine(const struct memory_figures *f, struct buf *out)
{
    const struct mem_stats *a = &f->allocator;
    const struct doctor_finding findings[] = {
        {memory_ratio(f->peak, f->used), 1.5, memory_excess(f->peak, f->used),
         "The peak was much higher than what is in use now. The process may still hold the pages "
         "of that time, which makes other ratios look worse than they are; MEMORY PURGE gives back "
         "what can be given back."},
        {memory_ratio(a->active_bytes, a->allocated_bytes), 1.1,
         memory_excess(a->active_bytes, a->allocated_bytes),
         "The allocator's pages have gaps: many keys were deleted or changed their size. New data "
         "of the same sizes will fill them."},
        {memory_ratio(a->resident_bytes, a->active_bytes), 1.1,
         memory_excess(a->resident_bytes, a->active_bytes),
         "The allocator keeps empty pages resident. They go back by themselves within seconds, or "
         "at once with MEMORY PURGE."},
        {memory_ratio(f->rss, a->resident_bytes), 1.1, memory_excess(f->rss, a->resident_bytes),
         "The process is larger than what its allocator manages: stacks, libraries, or code "
         "outside the allocator's reach."},
        {memory_ratio(f->clients, f->used), 0.25, (int64_t)f->clients,
         "Clients take a large part of the memory: look at CLIENT LIST for those with long output "
         "(omem) or query buffers (qbuf), and at client-output-buffer-limit."},
        {memory_ratio(f->replicas, f->used), 0.25, (int64_t)f->replicas,
         "Replicas that do not take what is sent to them make the server keep much of the "
         "replication stream: look at CLIENT LIST TYPE replica (omem), and at "
         "client-output-buffer-limit replica."},
    };
    for (size_t i = 0; i < sizeof(findings) / sizeof(findings[0]); i++) {
        const struct doctor_finding *d = &findings[i];
        if (d->ratio > d->limit && d->excess_bytes >= DOCTOR_MIN_EXCESS_BYTES) {
            buf_printf(out, " * ratio %.2f (over %.2f), %lld bytes: %s\n", d->ratio, d->limit,
                       (long long)d->excess_bytes, d->advice);
        }
    }
}

PLAIN_COMMAND(memory_command_doctor)
{
    struct memory_figures f;
    memory_figures_collect(&f);
    struct buf out = {0};
    if (f.used < DOCTOR_MIN_USED_BYTES) {
        buf_append_cstr(&out, "This server holds next to nothing, so its ratios say nothing. Ask "
                              "again when there is data.\n");
    } else {
        doctor_examine(&f, &out);
        if (out.len == 0) {
            buf_append_cstr(&out, "Nothing found: memory looks healthy.\n");
        }
    }
    reply_verbatim(c->reply, "txt", buf_slice(&out));
    buf_deinit(&out);
}

/* ---- The allocator ---- */

PLAIN_COMMAND(memory_command_malloc_stats)
{
    struct buf out = {0};
    if (!mem_report(&out)) {
        buf_append_cstr(&out, "Stats not supported for the current allocator");
    }
    reply_verbatim(c->reply, "txt", buf_slice(&out));
    buf_deinit(&out);
}

PLAIN_COMMAND(memory_command_purge)
{
    mem_purge();
    reply_ok(c->reply);
}

PLAIN_COMMAND(memory_command_help)
{
    static const char *const lines[] = {
        "DOCTOR",
        "    Reply what looks wrong about the memory, in words.",
        "MALLOC-STATS",
        "    Reply the allocator's own report.",
        "PURGE",
        "    Give the allocator's empty pages back to the system.",
        "STATS",
        "    Reply what uses how much.",
        "USAGE <key> [SAMPLES <count>]",
        "    Reply the bytes that a key and its value take. Of a collection <count> elements are",
        "    looked at (5 unless told), all of them with 0.",
        NULL,
    };
    call_reply_help(c, lines);
}

#define MEMORY_TIPS "nondeterministic_output,request_policy:all_shards,response_policy:special"

static const struct command_row memory_subcommands[] = {
    {.name = "doctor",
     .run = memory_command_doctor,
     .arity = 2,
     .tips = MEMORY_TIPS,
     .group = "server",
     .since = "4.0.0",
     .summary = "Looks for what is wrong about the memory.",
     .complexity = "O(1)"},
    {.name = "help",
     .run = memory_command_help,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE,
     .group = "server",
     .since = "4.0.0",
     .summary = "Lists the subcommands.",
     .complexity = "O(1)"},
    {.name = "malloc-stats",
     .run = memory_command_malloc_stats,
     .arity = 2,
     .flags = CMD_SLOW,
     .tips = MEMORY_TIPS,
     .group = "server",
     .since = "4.0.0",
     .summary = "Shows the allocator's own report.",
     .complexity = "Grows with the allocator's arenas."},
    {.name = "purge",
     .run = memory_command_purge,
     .arity = 2,
     .flags = CMD_SLOW,
     .tips = "request_policy:all_shards,response_policy:all_succeeded",
     .group = "server",
     .since = "4.0.0",
     .summary = "Gives empty pages back to the system.",
     .complexity = "Grows with the pages to give back."},
    {.name = "stats",
     .run = memory_command_stats,
     .arity = 2,
     .tips = MEMORY_TIPS,
     .group = "server",
     .since = "4.0.0",
     .summary = "Shows what uses how much memory.",
     .complexity = "O(1)"},
    {.name = "usage",
     .run = memory_command_usage,
     .arity = -3,
     .flags = CMD_READONLY,
     .keys = "i2/r0,1,0/RO",
     .group = "server",
     .since = "4.0.0",
     .summary = "Estimates the memory that a key takes.",
     .complexity = "O(N) where N is the number of elements looked at",
     .args = "key [SAMPLES count]"},
    {.name = NULL},
};

const struct command_row memory_commands[] = {
    {.name = "memory",
     .run = NULL,
     .arity = -2,
     .group = "server",
     .since = "4.0.0",
     .summary = "Holds the commands about memory.",
     .complexity = "Depends on the subcommand.",
     .subcommands = memory_subcommands},
    {.name = NULL},
};
