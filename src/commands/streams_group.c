/* XGROUP and XACK: consumer groups of streams, made, moved, removed and told what is done. Reading
 * through a group is in streams_group_read.c, taking over entries in streams_claim.c, looking at
 * them in streams_pending.c and streams_info.c. */
#include "commands/commands.h"
#include "commands/streams_group_priv.h"
#include "commands/streams_priv.h"

#include "base/mem.h"
#include "keyspace/access.h"
#include "keyspace/reclaim.h"
#include "keyspace/waiting.h"
#include "value/stream_lag.h"
#include "value/stream_undelivered.h"

/* Options that are given twice make more words than these, which Redis takes as another fault. */
#define CREATE_MAX_WORDS 8
#define SETID_MAX_WORDS 7
/* Entries that are passed over before looking a place up is cheaper. */
#define FOLLOW_STEPS 16
/* IDs of XACK that are parsed without a block of memory. */
#define IDS_ON_STACK 64

/* ---- What the family shares ---- */

void streams_group_changed(struct call *c, const struct keyref *ref, const char *event)
{
    c->dirty++;
    event_notify(EVENT_STREAM, event, ref->db->id, ref->key.name);
}

bool streams_arg_name(struct call *c, int i)
{
    if (c->argv[i].len <= STREAM_NAME_MAX_BYTES) {
        return true;
    }
    reply_error(c->reply, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    return false;
}

void streams_reply_no_group(struct call *c, struct slice key, struct slice group, const char *where)
{
    reply_errorf(c->reply, "NOGROUP No such key '%.*s' or consumer group '%.*s'%s",
                 streams_echo_len(key), key.ptr, streams_echo_len(group), group.ptr, where);
}

void streams_reply_no_such_group(struct call *c, struct slice group, struct slice key)
{
    reply_errorf(c->reply, "NOGROUP No such consumer group '%.*s' for key name '%.*s'",
                 streams_echo_len(group), group.ptr, streams_echo_len(key), key.ptr);
}

struct stream_consumer *streams_asking_consumer(struct call *c, const struct keyref *ref,
                                                struct stream_group *g, int i)
{
    struct stream_consumer *consumer = stream_consumer_find(g, c->argv[i]);
    if (!consumer) {
        if (!streams_arg_name(c, i)) {
            return NULL;
        }
        consumer = stream_consumer_add(g, c->argv[i], c->now_ms);
        streams_group_changed(c, ref, "xgroup-createconsumer");
        if (unlikely(propagate_on)) {
            streams_propagate_consumer(c, ref->key.name, g, c->argv[i]);
        }
    }
    consumer->seen_ms = c->now_ms;
    return consumer;
}

bool streams_follow(struct streams_follower *f, const struct entry *e, struct stream_id id)
{
    int order = f->started && !f->ended ? stream_id_compare(f->walk.id, id) : -1;
    for (int steps = 0; f->started && order < 0 && !f->ended && steps < FOLLOW_STEPS; steps++) {
        f->ended = !stream_walk_next(&f->walk);
        order = f->ended ? -1 : stream_id_compare(f->walk.id, id);
    }
    if (order < 0 && !f->ended) {
        stream_walk(&f->walk, e, id, STREAM_ID_MAX, false);
        f->started = true;
        f->ended = !stream_walk_next(&f->walk);
        order = f->ended ? -1 : stream_id_compare(f->walk.id, id);
    }
    return order == 0;
}

/* ---- XGROUP ---- */

static void reply_bad_form(struct call *c)
{
    reply_errorf(c->reply,
                 "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try XGROUP HELP.",
                 streams_echo_len(c->argv[1]), c->argv[1].ptr);
}

struct group_options {
    bool make_stream;
    int64_t entries_read;
};

/* Parses what stands behind the ID of CREATE and SETID. */
static bool parse_options(struct call *c, bool may_make, struct group_options *o)
{
    *o = (struct group_options){.entries_read = STREAM_READ_UNKNOWN};
    for (int i = 5; i < c->argc; i++) {
        if (may_make && call_arg_is(c, i, "mkstream")) {
            o->make_stream = true;
        } else if (i + 1 < c->argc && call_arg_is(c, i, "entriesread")) {
            if (!call_arg_i64(c, ++i, &o->entries_read)) {
                return false;
            }
            if (o->entries_read < 0 && o->entries_read != STREAM_READ_UNKNOWN) {
                reply_error(c->reply, "ERR value for ENTRIESREAD must be positive or -1");
                return false;
            }
        } else {
            reply_bad_form(c);
            return false;
        }
    }
    return true;
}

/* Opens the stream of argument 2; false with the error replied when there is none. */
static bool open_stream(struct call *c, struct keyref *ref) REQUIRES(keyspace_lock)
{
    if (!call_open_typed(c, 0, VALUE_STREAM, ref)) {
        return false;
    }
    if (!ref->entry) {
        reply_error(c->reply, "ERR The XGROUP subcommand requires the key to exist. Note that for "
                              "CREATE you may want to use the MKSTREAM option to create an empty "
                              "stream automatically.");
    }
    return ref->entry != NULL;
}

/* Opens the stream and finds the group of argument 3 in it. */
static bool open_group(struct call *c, struct keyref *ref, struct stream_group **g)
    REQUIRES(keyspace_lock)
{
    if (!open_stream(c, ref)) {
        return false;
    }
    *g = stream_group_find(stream_groups(ref->entry), c->argv[3]);
    if (!*g) {
        streams_reply_no_such_group(c, c->argv[3], c->argv[2]);
    }
    return *g != NULL;
}

static inline bool is_dollar(const struct call *c, int i)
{
    return slice_equal(c->argv[i], SLICE("$"));
}

static void make_stream(struct call *c, struct keyref *ref) REQUIRES(keyspace_lock)
{
    struct entry *e = stream_create(ref->key.name);
    entry_set_clock(e, access_initial(c->now_ms));
    db_put(ref, e);
    event_key_changed(ref->db, ref->key.name);
}

WRITE_COMMAND(xgroup_create_command)
{
    struct group_options o;
    struct keyref ref;
    if (!parse_options(c, true, &o) ||
        !(o.make_stream ? call_open_typed(c, 0, VALUE_STREAM, &ref) : open_stream(c, &ref))) {
        return;
    }
    if (c->argc > CREATE_MAX_WORDS) {
        reply_bad_form(c);
        return;
    }
    struct stream_id id = ref.entry ? stream_facts(ref.entry)->last_id : STREAM_ID_MIN;
    if ((!is_dollar(c, 4) && !streams_arg_id(c, 4, 0, &id)) || !streams_arg_name(c, 3)) {
        return;
    }
    if (!ref.entry) {
        make_stream(c, &ref);
    }
    struct stream_group *g =
        stream_group_add(stream_groups(ref.entry), c->argv[3], id, STREAM_READ_UNKNOWN);
    if (!g) {
        reply_error(c->reply, "BUSYGROUP Consumer Group name already exists");
        return;
    }
    stream_group_place(stream_facts(ref.entry), g, id, o.entries_read);
    streams_group_changed(c, &ref, "xgroup-create");
    if (unlikely(propagate_peers)) {
        char text[STREAM_ID_TEXT_BYTES];
        TELL_PEERS(c, SLICE("XGROUP"), SLICE("CREATE"), ref.key.name, c->argv[3],
                   stream_id_format(id, text), SLICE("MKSTREAM"));
    }
    reply_ok(c->reply);
}

WRITE_COMMAND(xgroup_setid_command)
{
    struct group_options o;
    struct keyref ref;
    struct stream_group *g;
    if (!parse_options(c, false, &o) || !open_group(c, &ref, &g)) {
        return;
    }
    if (c->argc > SETID_MAX_WORDS) {
        reply_bad_form(c);
        return;
    }
    struct stream_id id = stream_facts(ref.entry)->last_id;
    if (!is_dollar(c, 4) && !stream_id_parse_bound(c->argv[4], 0, &id)) {
        streams_reply_bad_id(c);
        return;
    }
    stream_group_place(stream_facts(ref.entry), g, id, o.entries_read);
    streams_group_changed(c, &ref, "xgroup-setid");
    if (unlikely(propagate_peers)) {
        char text[STREAM_ID_TEXT_BYTES];
        TELL_PEERS(c, SLICE("XGROUP"), SLICE("SETID"), ref.key.name, c->argv[3],
                   stream_id_format(id, text));
    }
    reply_ok(c->reply);
}

/* Frees a group as a stream of its own, after the lock: it may hold millions of entries. */
static void reclaim_group(struct stream_group *g_take)
{
    struct entry *e = stream_create(SLICE(""));
    stream_group_put(stream_groups(e), g_take);
    reclaim_entry(e, reclaim_lazy_server_del());
}

WRITE_COMMAND(xgroup_destroy_command)
{
    struct keyref ref;
    if (!open_stream(c, &ref)) {
        return;
    }
    struct stream_group *g = stream_group_take(stream_groups(ref.entry), c->argv[3]);
    if (g) {
        reclaim_group(g);
        streams_group_changed(c, &ref, "xgroup-destroy");
        /* Who waits for entries through it is told -NOGROUP. */
        waiting_note_change(ref.db, ref.key.name);
    }
    reply_i64(c->reply, g != NULL);
}

WRITE_COMMAND(xgroup_createconsumer_command)
{
    struct keyref ref;
    struct stream_group *g;
    if (!open_group(c, &ref, &g) || !streams_arg_name(c, 4)) {
        return;
    }
    bool made = stream_consumer_add(g, c->argv[4], c->now_ms) != NULL;
    if (made) {
        streams_group_changed(c, &ref, "xgroup-createconsumer");
        if (unlikely(propagate_on)) {
            streams_propagate_consumer(c, ref.key.name, g, c->argv[4]);
        }
    }
    reply_i64(c->reply, made);
}

WRITE_COMMAND(xgroup_delconsumer_command)
{
    struct keyref ref;
    struct stream_group *g;
    uint64_t pending = 0;
    if (!open_group(c, &ref, &g)) {
        return;
    }
    struct stream_consumer *consumer = stream_consumer_find(g, c->argv[4]);
    if (consumer) {
        pending = stream_consumer_remove(g, consumer);
        streams_group_changed(c, &ref, "xgroup-delconsumer");
    }
    reply_i64(c->reply, (int64_t)pending);
}

PLAIN_COMMAND(xgroup_help_command)
{
    static const char *const lines[] = {
        "CREATE <key> <groupname> <id|$> [option]",
        "    Create a new consumer group. Options are:",
        "    * MKSTREAM",
        "      Create the empty stream if it does not exist.",
        "    * ENTRIESREAD entries_read",
        "      Set the group's entries_read counter (internal use).",
        "CREATECONSUMER <key> <groupname> <consumer>",
        "    Create a new consumer in the specified group.",
        "DELCONSUMER <key> <groupname> <consumer>",
        "    Remove the specified consumer.",
        "DESTROY <key> <groupname>",
        "    Remove the specified group.",
        "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
        "    Set the current group ID and entries_read counter.",
        NULL,
    };
    call_reply_help(c, lines);
}

/* ---- XACK ---- */

WRITE_COMMAND(xack_command)
{
    struct keyref ref;
    int64_t acknowledged = 0;
    if (!call_open_typed(c, 0, VALUE_STREAM, &ref)) {
        return;
    }
    struct stream_group *g =
        ref.entry ? stream_group_find(stream_groups(ref.entry), c->argv[2]) : NULL;
    if (!g) {
        reply_i64(c->reply, 0);
        return;
    }
    int count = c->argc - 3;
    struct stream_id few[IDS_ON_STACK];
    struct stream_id *ids = count <= IDS_ON_STACK ? few : mem_alloc((size_t)count * sizeof(*ids));
    /* All are parsed before the first is done. */
    int parsed = 0;
    while (parsed < count && streams_arg_id(c, 3 + parsed, 0, &ids[parsed])) {
        parsed++;
    }
    if (parsed == count) {
        struct streams_gone gone = {
            .name = SLICE("XACK"), .key = ref.key.name, .group = &c->argv[2]};
        for (int i = 0; i < count; i++) {
            if (stream_pending_remove(g, ids[i])) {
                acknowledged++;
                streams_gone_add(&gone, ids[i]);
            }
        }
        streams_gone_end(c, &gone);
        if (streams_are_shared(c)) {
            stream_undelivered_tidy(g);
        }
        c->dirty += (uint64_t)acknowledged;
        reply_i64(c->reply, acknowledged);
    }
    if (ids != few) {
        mem_free(ids);
    }
}

static const struct command_row xgroup_subcommands[] = {
    {.name = "create",
     .run = xgroup_create_command,
     .arity = -5,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_STREAM,
     .keys = "i2/r0,1,0/RW+INSERT",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Makes a consumer group.",
     .complexity = "O(1)",
     .args = "key group <id|$> [MKSTREAM] [ENTRIESREAD entriesread]",
     .history = "7.0.0:Takes ENTRIESREAD."},
    {.name = "createconsumer",
     .run = xgroup_createconsumer_command,
     .arity = 5,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_STREAM,
     .keys = "i2/r0,1,0/RW+INSERT",
     .group = "stream",
     .since = "6.2.0",
     .summary = "Makes a consumer of a consumer group.",
     .complexity = "O(1)",
     .args = "key group consumer"},
    {.name = "delconsumer",
     .run = xgroup_delconsumer_command,
     .arity = 5,
     .flags = CMD_WRITE | CMD_SLOW,
     .categories = CATEGORY_STREAM,
     .keys = "i2/r0,1,0/RW+DELETE",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Removes a consumer of a consumer group, with its pending entries.",
     .complexity = "O(N), N being the consumer's pending entries",
     .args = "key group consumer"},
    {.name = "destroy",
     .run = xgroup_destroy_command,
     .arity = 4,
     .flags = CMD_WRITE,
     .categories = CATEGORY_STREAM,
     .keys = "i2/r0,1,0/RW+DELETE",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Removes a consumer group with all its consumers.",
     .complexity = "O(1); the group's pending entries are freed afterwards",
     .args = "key group"},
    {.name = "help",
     .run = xgroup_help_command,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE,
     .categories = CATEGORY_STREAM,
     .group = "stream",
     .since = "5.0.0",
     .summary = "Describes the subcommands of XGROUP.",
     .complexity = "O(1)"},
    {.name = "setid",
     .run = xgroup_setid_command,
     .arity = -5,
     .flags = CMD_WRITE,
     .categories = CATEGORY_STREAM,
     .keys = "i2/r0,1,0/RW+UPDATE",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Says up to which entry a consumer group has read.",
     .complexity = "O(1)",
     .args = "key group <id|$> [ENTRIESREAD entriesread]",
     .history = "7.0.0:Takes ENTRIESREAD."},
    {.name = NULL},
};

const struct command_row stream_group_commands[] = {
    {.name = "xack",
     .run = xack_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_STREAM,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Tells a consumer group that entries are done: they are not pending any more.",
     .complexity = "O(1) for each ID",
     .args = "key group ID [ID ...]"},
    {.name = "xgroup",
     .arity = -2,
     .group = "stream",
     .since = "5.0.0",
     .summary = "A container for commands about consumer groups of streams.",
     .complexity = "Depends on subcommand.",
     .subcommands = xgroup_subcommands},
    {.name = NULL},
};
