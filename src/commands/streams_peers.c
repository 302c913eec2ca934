/* What peers are told of streams, and the commands that they are told. An entry goes where its ID
 * belongs, and what a group has pending is told entry by entry, without a condition: so it makes no
 * difference which of two nodes' writes comes first (active/DESIGN.md, "Each family of commands").
 * For clients these are commands like others. */
#include "commands/commands.h"
#include "commands/streams_group_priv.h"
#include "commands/streams_priv.h"

#include "keyspace/access.h"
#include "keyspace/waiting.h"
#include "value/stream_lag.h"
#include "value/stream_undelivered.h"

/* ---- telling ---- */

void streams_tell_peers_entry(struct call *c, struct slice key, struct stream_id id,
                              const struct slice *words, int count)
{
    struct propagate_draft d = {0};
    char text[STREAM_ID_TEXT_BYTES];
    propagate_add(&d, SLICE("KEYDB.XINSERT"));
    propagate_add(&d, key);
    propagate_add(&d, stream_id_format(id, text));
    for (int i = 0; i < count; i++) {
        propagate_add(&d, words[i]);
    }
    propagate_draft_to_peers(c, &d);
}

void streams_gone_add(struct streams_gone *gone, struct stream_id id)
{
    char text[STREAM_ID_TEXT_BYTES];
    if (likely(!propagate_peers)) {
        return;
    }
    if (gone->draft.count == 0) {
        propagate_add(&gone->draft, gone->name);
        propagate_add(&gone->draft, gone->key);
        if (gone->group) {
            propagate_add(&gone->draft, *gone->group);
        }
    }
    propagate_add(&gone->draft, stream_id_format(id, text));
}

void streams_gone_end(struct call *c, struct streams_gone *gone)
{
    if (gone->draft.count > 0) {
        propagate_draft_to_peers(c, &gone->draft);
    }
}

void streams_tell_peers_pending(struct call *c, const struct streams_pending_told *told,
                                const struct propagate_draft *ids)
{
    struct propagate_draft d = {0};
    char text[STREAM_ID_TEXT_BYTES];
    propagate_add(&d, SLICE("KEYDB.XPEND"));
    propagate_add(&d, told->key);
    propagate_add(&d, told->group);
    propagate_add(&d, stream_id_format(told->last_id, text));
    propagate_add_number(&d, told->delivered_ms);
    propagate_add_number(&d, told->deliveries);
    if (told->consumer) {
        propagate_add(&d, *told->consumer);
    }
    if (ids) {
        propagate_add_copy(&d, ids);
    }
    propagate_draft_to_peers(c, &d);
}

/* ---- KEYDB.XINSERT ---- */

/* Argument `i` as a whole ID of an entry; false with the error replied. */
static bool arg_entry_id(struct call *c, int i, struct stream_id *id)
{
    if (!streams_arg_id(c, i, 0, id)) {
        return false;
    }
    if (stream_id_is_zero(*id)) {
        reply_error(c->reply, "ERR The ID specified in XADD must be greater than 0-0");
    }
    return !stream_id_is_zero(*id);
}

static void insert(struct call *c, struct keyref *ref, struct stream_id id) REQUIRES(keyspace_lock)
{
    if (!ref->entry) {
        struct entry *e = stream_create(ref->key.name);
        entry_set_clock(e, access_initial(c->now_ms));
        db_put(ref, e);
    }
    bool last = stream_id_compare(id, stream_facts(ref->entry)->last_id) > 0;
    stream_insert(ref->entry, id, c->argv + 3, c->argc - 3);
    bool undelivered = stream_undelivered_note(stream_groups(ref->entry), id);
    streams_reply_id(c->reply, id);
    call_changed(c, ref, EVENT_STREAM, "xadd");
    if (unlikely(propagate_peers)) {
        streams_tell_peers_entry(c, ref->key.name, id, c->argv + 3, c->argc - 3);
    }
    if (unlikely(propagate_on) && last) { /* which any replica knows */
        struct propagate_draft d = {0};
        propagate_add(&d, SLICE("XADD"));
        for (int i = 1; i < c->argc; i++) {
            propagate_add(&d, c->argv[i]);
        }
        propagate_draft_instead(c, &d);
        if (undelivered) {
            streams_propagate_undelivered(c, ref, id);
        }
    }
}

WRITE_COMMAND(xinsert_command)
{
    struct keyref ref;
    struct stream_id id;
    size_t bytes = 0;
    if (c->argc % 2 == 0) {
        reply_errorf(c->reply, "ERR wrong number of arguments for '%s' command", c->cmd->full_name);
        return;
    }
    if (!arg_entry_id(c, 2, &id) || !call_open_typed(c, 0, VALUE_STREAM, &ref)) {
        return;
    }
    if (!stream_entry_fits(ref.entry, c->argv + 3, c->argc - 3, &bytes)) {
        reply_error(c->reply, "ERR Elements are too large to be stored");
        return;
    }
    if (!call_reserve(c, bytes)) {
        return;
    }
    insert(c, &ref, id);
    if (bytes >= CALL_RESERVE_FROM_BYTES) {
        call_unreserve();
    }
}

/* ---- KEYDB.XPEND ---- */

void streams_wake_for_undelivered(const struct keyref *ref, const struct stream_group *g)
{
    if (stream_undelivered(g)) {
        waiting_note_change(ref->db, ref->key.name);
    }
}

struct pend {
    struct stream_id last_id;
    int64_t delivered_ms, deliveries;
};

static bool parse_pend(struct call *c, struct pend *p)
{
    struct stream_id id;
    if (!streams_arg_id(c, 3, 0, &p->last_id) ||
        !call_arg_range(c, 4, 0, INT64_MAX, &p->delivered_ms, "ERR Invalid delivery time") ||
        !call_arg_range(c, 5, 0, INT64_MAX, &p->deliveries, "ERR Invalid number of deliveries") ||
        (c->argc > 6 && !streams_arg_name(c, 6))) {
        return false;
    }
    for (int i = 7; i < c->argc; i++) {
        if (!streams_arg_id(c, i, 0, &id)) {
            return false;
        }
    }
    return true;
}

static void give(struct call *c, const struct keyref *ref, struct stream_group *g,
                 const struct pend *p) REQUIRES(keyspace_lock)
{
    struct stream_consumer *consumer = stream_consumer_find(g, c->argv[6]);
    if (!consumer) {
        consumer = stream_consumer_add(g, c->argv[6], c->now_ms);
        streams_group_changed(c, ref, "xgroup-createconsumer");
    }
    consumer->seen_ms = c->now_ms;
    for (int i = 7; i < c->argc; i++) {
        struct stream_id id;
        bool valid = stream_id_parse(c->argv[i], 0, &id);
        assert(valid);
        stream_pending_give(g, consumer, id, p->delivered_ms, p->deliveries);
        consumer->active_ms = c->now_ms;
        c->dirty++;
    }
}

/* KEYDB.XPEND key group last-id time deliveries [consumer [id ...]]: the consumer is there, and has
 * these pending, delivered at that time so many times; the group has read up to last-id at least,
 * and what it passes by so is undelivered, unless no id is told: somebody said so. Nothing where
 * there is no such group. */
WRITE_COMMAND(xpend_command)
{
    struct keyref ref;
    struct pend p;
    if (!parse_pend(c, &p) || !call_open_typed(c, 0, VALUE_STREAM, &ref)) {
        return;
    }
    struct stream_group *g =
        ref.entry ? stream_group_find(stream_groups(ref.entry), c->argv[2]) : NULL;
    struct stream_id from = g ? g->last_id : STREAM_ID_MIN;
    if (g && stream_id_compare(p.last_id, g->last_id) > 0) {
        stream_group_place(stream_facts(ref.entry), g, p.last_id, STREAM_READ_UNKNOWN);
        c->dirty++;
    }
    if (g && c->argc > 6) {
        give(c, &ref, g, &p);
    }
    if (g && c->argc > 7) {
        stream_undelivered_pass(ref.entry, g, from);
        stream_undelivered_tidy(g);
        streams_wake_for_undelivered(&ref, g);
    }
    if (unlikely(propagate_peers) && c->dirty) {
        propagate_call_to_peers(c);
    }
    reply_i64(c->reply, g ? (int64_t)(c->argc > 7 ? c->argc - 7 : 0) : 0);
}

const struct command_row stream_peer_commands[] = {
    {.name = "keydb.xinsert",
     .run = xinsert_command,
     .arity = -5,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_STREAM,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "stream",
     .since = "7.2.0",
     .summary = "Puts an entry into a stream where its ID belongs, also before others; one that "
                "has this ID is replaced. For active replicas.",
     .complexity = "O(1), or O(N) where it comes before others, N being the entries of a node",
     .args = "key id field value [field value ...]"},
    {.name = "keydb.xpend",
     .run = xpend_command,
     .arity = -6,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_STREAM,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "stream",
     .since = "7.2.0",
     .summary = "Says how far a consumer group has read at least, and what one of its consumers "
                "has pending. For active replicas.",
     .complexity = "O(log(N)) for each ID, N being the group's pending entries",
     .args = "key group last-id unix-time-milliseconds count [consumer] [ID [ID ...]]"},
    {.name = NULL},
};
