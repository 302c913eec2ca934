/* XINFO. */
#include "commands/commands.h"
#include "commands/streams_group_priv.h"
#include "commands/streams_priv.h"

#include "value/stream_lag.h"

/* Entries, and pending ones of each kind, that XINFO STREAM FULL shows unless COUNT says. */
#define FULL_DEFAULT_COUNT 10

/* Argument 2's stream; false with the error replied, also when it is missing. */
static bool open_stream(struct call *c, struct entry **e) REQUIRES_SHARED(keyspace_lock)
{
    if (!call_read_typed(c, 0, VALUE_STREAM, e)) {
        return false;
    }
    if (!*e) {
        reply_no_such_key(c->reply);
    }
    return *e != NULL;
}

static void reply_number(struct reply *r, const char *name, uint64_t value)
{
    reply_bulk_cstr(r, name);
    reply_i64(r, (int64_t)value);
}

static void reply_named_id(struct reply *r, const char *name, struct stream_id id)
{
    reply_bulk_cstr(r, name);
    streams_reply_id(r, id);
}

static void reply_named(struct reply *r, const char *name, struct slice value)
{
    reply_bulk_cstr(r, name);
    reply_bulk(r, value);
}

/* ---- XINFO GROUPS, XINFO CONSUMERS ---- */

/* entries-read and lag of a group, null where unknown. */
static void reply_progress(struct reply *r, const struct stream_facts *facts,
                           const struct stream_group *g)
{
    int64_t lag;
    reply_bulk_cstr(r, "entries-read");
    if (g->entries_read == STREAM_READ_UNKNOWN) {
        reply_null(r);
    } else {
        reply_i64(r, g->entries_read);
    }
    reply_bulk_cstr(r, "lag");
    if (stream_group_lag(facts, g, &lag)) {
        reply_i64(r, lag);
    } else {
        reply_null(r);
    }
}

READ_COMMAND(xinfo_groups_command)
{
    struct entry *e;
    struct reply *r = c->reply;
    if (!open_stream(c, &e)) {
        return;
    }
    reply_array(r, stream_groups(e)->count);
    struct radix_cursor at = radix_first(stream_groups(e));
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        const struct stream_group *g = stream_group_at(&at);
        reply_map(r, 6);
        reply_named(r, "name", stream_group_name(g));
        reply_number(r, "consumers", g->consumers.count);
        reply_number(r, "pending", g->pending.count);
        reply_named_id(r, "last-delivered-id", g->last_id);
        reply_progress(r, stream_facts(e), g);
    }
}

static void reply_consumer(struct call *c, const struct stream_consumer *consumer)
{
    struct reply *r = c->reply;
    bool never = consumer->active_ms == STREAM_NEVER;
    reply_map(r, 4);
    reply_named(r, "name", stream_consumer_name(consumer));
    reply_number(r, "pending", consumer->pending.count);
    reply_number(r, "idle", (uint64_t)streams_idle_ms(c, consumer->seen_ms));
    reply_bulk_cstr(r, "inactive");
    reply_i64(r, never ? -1 : streams_idle_ms(c, consumer->active_ms));
}

READ_COMMAND(xinfo_consumers_command)
{
    struct entry *e;
    if (!open_stream(c, &e)) {
        return;
    }
    const struct stream_group *g = stream_group_find(stream_groups(e), c->argv[3]);
    if (!g) {
        streams_reply_no_such_group(c, c->argv[3], c->argv[2]);
        return;
    }
    reply_array(c->reply, g->consumers.count);
    struct radix_cursor at = radix_first(&g->consumers);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        reply_consumer(c, stream_consumer_at(&at));
    }
}

/* ---- XINFO STREAM ---- */

/* Nodes as Redis counts them: a prefix is one of its own, and the empty tree has one. */
static uint64_t count_nodes(const struct radix *nodes)
{
    return nodes->count > 0 ? nodes->node_count + nodes->prefix_count : 1;
}

static void reply_facts(struct reply *r, const struct entry *e)
{
    const struct stream_facts *facts = stream_facts(e);
    reply_number(r, "length", facts->length);
    reply_number(r, "radix-tree-keys", stream_nodes(e)->count);
    reply_number(r, "radix-tree-nodes", count_nodes(stream_nodes(e)));
    reply_named_id(r, "last-generated-id", facts->last_id);
    reply_named_id(r, "max-deleted-entry-id", facts->max_deleted_id);
    reply_number(r, "entries-added", facts->entries_added);
    reply_named_id(r, "recorded-first-entry-id", facts->first_id);
}

/* The first `count` (0: all) of what the group or one consumer (NULL: all, and whose they are) has
 * pending. */
static void reply_pending(struct reply *r, const struct stream_group *g,
                          const struct stream_consumer *only, uint64_t count)
{
    uint64_t all = only ? only->pending.count : g->pending.count;
    struct stream_pending_cursor at = stream_pending_seek(g, only, STREAM_ID_MIN);
    reply_number(r, "pel-count", all);
    reply_bulk_cstr(r, "pending");
    count = count == 0 || count > all ? all : count;
    reply_array(r, count);
    for (; count > 0; count--) {
        const struct stream_pending *p = stream_pending_at(&at);
        reply_array(r, only ? 3 : 4);
        streams_reply_id(r, p->id);
        if (!only) {
            reply_bulk(r, stream_consumer_name(p->consumer));
        }
        reply_i64(r, p->delivered_ms);
        reply_i64(r, p->deliveries);
        stream_pending_next(&at);
    }
}

static void reply_full_group(struct reply *r, const struct stream_facts *facts,
                             const struct stream_group *g, uint64_t count)
{
    reply_map(r, 7);
    reply_named(r, "name", stream_group_name(g));
    reply_named_id(r, "last-delivered-id", g->last_id);
    reply_progress(r, facts, g);
    reply_pending(r, g, NULL, count);
    reply_bulk_cstr(r, "consumers");
    reply_array(r, g->consumers.count);
    struct radix_cursor at = radix_first(&g->consumers);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        const struct stream_consumer *consumer = stream_consumer_at(&at);
        reply_map(r, 5);
        reply_named(r, "name", stream_consumer_name(consumer));
        reply_bulk_cstr(r, "seen-time");
        reply_i64(r, consumer->seen_ms);
        reply_bulk_cstr(r, "active-time");
        reply_i64(r, consumer->active_ms);
        reply_pending(r, g, consumer, count);
    }
}

static void reply_full(struct reply *r, const struct entry *e, uint64_t count)
{
    struct stream_cursor walk;
    reply_map(r, 9);
    reply_facts(r, e);
    reply_bulk_cstr(r, "entries");
    stream_walk(&walk, e, STREAM_ID_MIN, STREAM_ID_MAX, false);
    streams_reply_entries(r, &walk, count);
    reply_bulk_cstr(r, "groups");
    reply_array(r, stream_groups(e)->count);
    struct radix_cursor at = radix_first(stream_groups(e));
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        reply_full_group(r, stream_facts(e), stream_group_at(&at), count);
    }
}

/* Reads [FULL [COUNT count]]; *count stays where there is none. */
static bool parse_full(struct call *c, bool *full, int64_t *count)
{
    *full = c->argc > 3;
    if (*full && (c->argc == 5 || c->argc > 6 || !call_arg_is(c, 3, "full") ||
                  (c->argc == 6 && !call_arg_is(c, 4, "count")))) {
        reply_errorf(c->reply,
                     "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try XINFO "
                     "HELP.",
                     streams_echo_len(c->argv[1]), c->argv[1].ptr);
        return false;
    }
    return c->argc != 6 || call_arg_i64(c, 5, count);
}

READ_COMMAND(xinfo_stream_command)
{
    struct entry *e;
    struct reply *r = c->reply;
    bool full;
    int64_t count = FULL_DEFAULT_COUNT;
    if (!open_stream(c, &e) || !parse_full(c, &full, &count)) {
        return;
    }
    if (full) {
        reply_full(r, e, count < 0 ? FULL_DEFAULT_COUNT : (uint64_t)count);
        return;
    }
    reply_map(r, 10);
    reply_facts(r, e);
    reply_number(r, "groups", stream_groups(e)->count);
    reply_bulk_cstr(r, "first-entry");
    streams_reply_edge(r, e, false);
    reply_bulk_cstr(r, "last-entry");
    streams_reply_edge(r, e, true);
}

PLAIN_COMMAND(xinfo_help_command)
{
    static const char *const lines[] = {
        "CONSUMERS <key> <groupname>",
        "    Show consumers of <groupname>.",
        "GROUPS <key>",
        "    Show the stream consumer groups.",
        "STREAM <key> [FULL [COUNT <count>]",
        "    Show information about the stream.",
        NULL,
    };
    call_reply_help(c, lines);
}

static const struct command_row xinfo_subcommands[] = {
    {.name = "consumers",
     .run = xinfo_consumers_command,
     .arity = 4,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_STREAM,
     .keys = "i2/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Returns the consumers of a consumer group.",
     .complexity = "O(N), N being the consumers",
     .args = "key group",
     .history = "7.2.0:Replies inactive; idle counts from the last attempt, successful or not."},
    {.name = "groups",
     .run = xinfo_groups_command,
     .arity = 3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_STREAM,
     .keys = "i2/r0,1,0/RO+ACCESS",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Returns the consumer groups of a stream.",
     .complexity = "O(N), N being the groups",
     .args = "key",
     .history = "7.0.0:Replies entries-read and lag."},
    {.name = "stream",
     .run = xinfo_stream_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_STREAM,
     .keys = "i2/r0,1,0/RO+ACCESS",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Returns what is known about a stream.",
     .complexity = "O(1)",
     .args = "key [FULL [COUNT count]]",
     .history = "6.0.0:Takes FULL.|7.0.0:Replies max-deleted-entry-id, entries-added, "
                "recorded-first-entry-id, entries-read and lag.|7.2.0:Replies active-time."},
    {.name = "help",
     .run = xinfo_help_command,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE,
     .categories = CATEGORY_STREAM,
     .group = "stream",
     .since = "5.0.0",
     .summary = "Lists the subcommands of XINFO.",
     .complexity = "O(1)"},
    {.name = NULL},
};

const struct command_row stream_info_commands[] = {
    {.name = "xinfo",
     .arity = -2,
     .group = "stream",
     .since = "5.0.0",
     .summary = "What is known about streams.",
     .complexity = "Depends on the subcommand.",
     .subcommands = xinfo_subcommands},
    {.name = NULL},
};
