/* XREADGROUP: entries that no consumer of a group got yet, or once more those that one has pending.
 */
#include "commands/commands.h"
#include "commands/streams_group_priv.h"
#include "commands/streams_priv.h"

#include "base/mem.h"
#include "engine/block.h"
#include "engine/parked.h"
#include "value/stream_lag.h"
#include "value/stream_undelivered.h"

/* Streams of a request whose IDs are parsed without a block of memory. */
#define IDS_ON_STACK 16
/* What the ID ">" becomes; the same ID written out means the same, as in Redis. */
#define NEW_ENTRIES STREAM_ID_MAX

struct group_read {
    int group, consumer; /* indexes in argv, 0: not given */
    bool no_ack, blocks;
    int64_t timeout_ms;
    uint64_t count; /* of entries a stream; 0: all */
    int first;      /* argv index of the first key */
    int streams;    /* keys, and as many IDs behind them */
    struct stream_id *ids;
};

/* ---- Arguments ---- */

static bool parse_count(struct call *c, int i, uint64_t *count)
{
    int64_t wanted;
    if (!call_arg_i64(c, i, &wanted)) {
        return false;
    }
    *count = wanted < 0 ? 0 : (uint64_t)wanted;
    return true;
}

/* Parses the options up to STREAMS. */
static bool parse_options(struct call *c, struct group_read *r)
{
    for (int i = 1; i < c->argc && r->first == 0; i++) {
        int more = c->argc - 1 - i;
        if (more >= 1 && call_arg_is(c, i, "block")) {
            r->blocks = true;
            if (!streams_arg_block(c, ++i, &r->timeout_ms)) {
                return false;
            }
        } else if (more >= 1 && call_arg_is(c, i, "count")) {
            if (!parse_count(c, ++i, &r->count)) {
                return false;
            }
        } else if (more >= 1 && call_arg_is(c, i, "streams")) {
            r->first = i + 1;
        } else if (more >= 2 && call_arg_is(c, i, "group")) {
            r->group = i + 1;
            r->consumer = i + 2;
            i += 2;
        } else if (call_arg_is(c, i, "noack")) {
            r->no_ack = true;
        } else {
            break;
        }
    }
    if (r->first == 0) {
        reply_syntax_error(c->reply);
        return false;
    }
    return true;
}

static bool parse_request(struct call *c, struct group_read *r)
{
    *r = (struct group_read){0};
    if (!parse_options(c, r)) {
        return false;
    }
    int words = c->argc - r->first;
    if (words % 2 != 0) {
        reply_error(c->reply, "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an "
                              "ID or '>' must be specified.");
        return false;
    }
    if (r->group == 0) {
        reply_error(c->reply, "ERR Missing GROUP option for XREADGROUP");
        return false;
    }
    r->streams = words / 2;
    /* The extractor of keys skips options as the loop above does. */
    assert(c->key_count == r->streams && slice_equal(c->keys[0].name, c->argv[r->first]));
    return streams_arg_name(c, r->consumer);
}

static bool parse_id(struct call *c, int i, struct stream_id *id)
{
    if (slice_equal(c->argv[i], SLICE("$"))) {
        reply_error(c->reply, "ERR The $ ID is meaningless in the context of XREADGROUP: you want "
                              "to read the history of this consumer by specifying a proper ID, or "
                              "use the > ID to get new messages. The $ ID would just return an "
                              "empty result set.");
        return false;
    }
    if (slice_equal(c->argv[i], SLICE(">"))) {
        *id = NEW_ENTRIES;
        return true;
    }
    return streams_arg_id(c, i, 0, id);
}

/* Opens the k-th stream and finds the group; false with the error replied when one is missing. */
static bool open_group(struct call *c, const struct group_read *r, int k, struct keyref *ref,
                       struct stream_group **g) REQUIRES(keyspace_lock)
{
    if (!call_open_typed(c, k, VALUE_STREAM, ref)) {
        return false;
    }
    *g = ref->entry ? stream_group_find(stream_groups(ref->entry), c->argv[r->group]) : NULL;
    if (!*g) {
        streams_reply_no_group(c, call_key(c, k)->name, c->argv[r->group],
                               " in XREADGROUP with GROUP option");
    }
    return *g != NULL;
}

/* Checks each stream, its group and its ID, in this order, before anything is done. */
static bool check_streams(struct call *c, struct group_read *r) REQUIRES(keyspace_lock)
{
    for (int k = 0; k < r->streams; k++) {
        struct keyref ref;
        struct stream_group *g;
        if (!open_group(c, r, k, &ref, &g) || !parse_id(c, r->first + r->streams + k, &r->ids[k])) {
            return false;
        }
    }
    return true;
}

/* ---- Serving ---- */

/* The first of those that nobody was given, from *id on, that is there. Of one that is not, what
 * somebody told may only have come before the entry itself: it is passed by, and stays. */
static bool find_passed(const struct entry *e, const struct stream_group *g, struct stream_id *id,
                        struct stream_cursor *entry)
{
    const struct stream_consumer *nobody = stream_undelivered(g);
    if (!nobody) {
        return false;
    }
    struct stream_pending_cursor at = stream_pending_seek(g, nobody, *id);
    for (; stream_pending_valid(&at); stream_pending_next(&at)) {
        *id = stream_pending_at(&at)->id;
        if (stream_find(e, *id, entry)) {
            return true;
        }
    }
    return false;
}

/* Delivers entries that nobody was given though the group is beyond them; returns how many. */
static uint64_t deliver_passed(struct call *c, const struct group_read *r, const struct entry *e,
                               struct stream_group *g, struct stream_consumer *consumer,
                               struct streams_gift *gift) REQUIRES(keyspace_lock)
{
    uint64_t delivered = 0;
    struct stream_id id = STREAM_ID_MIN;
    struct stream_cursor entry;
    while ((r->count == 0 || delivered < r->count) && find_passed(e, g, &id, &entry)) {
        streams_reply_entry(c->reply, &entry);
        delivered++;
        if (!r->no_ack) {
            const struct stream_pending *p = stream_pending_give(g, consumer, id, c->now_ms, 1);
            consumer->active_ms = c->now_ms;
            if (unlikely(propagate_on)) {
                streams_gift_add(c, gift, p);
            }
            continue;
        }
        stream_pending_remove(g, id);
        if (unlikely(propagate_on)) {
            streams_propagate_lost(c, gift->key, gift->group, id);
        }
    }
    stream_undelivered_tidy(g);
    return delivered;
}

/* Delivers new entries; `walk` is on the first one. Returns how many there are with those before.
 */
static uint64_t deliver(struct call *c, const struct group_read *r, const struct entry *e,
                        struct stream_group *g, struct stream_consumer *consumer,
                        struct stream_cursor *walk, struct streams_gift *gift, uint64_t before)
    REQUIRES(keyspace_lock)
{
    uint64_t delivered = before;
    do {
        struct stream_id id = walk->id;
        streams_reply_entry(c->reply, walk);
        stream_group_advance(stream_facts(e), g, id);
        if (!r->no_ack) {
            const struct stream_pending *p = stream_pending_give(g, consumer, id, c->now_ms, 1);
            consumer->active_ms = c->now_ms;
            if (unlikely(propagate_on)) {
                streams_gift_add(c, gift, p);
            }
        } else if (unlikely(propagate_peers)) {
            char text[STREAM_ID_TEXT_BYTES];
            propagate_add(&gift->ids, stream_id_format(id, text));
        }
        delivered++;
    } while (delivered != r->count && stream_walk_next(walk));
    return delivered;
}

/* Replies what the consumer has pending behind `after`, as delivered once more. An entry that the
 * stream lost is shown without content. Returns how many. */
static uint64_t repeat(struct call *c, const struct group_read *r, const struct entry *e,
                       const struct stream_group *g, const struct stream_consumer *consumer,
                       struct stream_id after, struct streams_gift *gift) REQUIRES(keyspace_lock)
{
    uint64_t repeated = 0;
    struct streams_follower entries = {0};
    if (!stream_id_increment(&after)) {
        return 0;
    }
    struct stream_pending_cursor at = stream_pending_seek(g, consumer, after);
    for (; stream_pending_valid(&at) && (r->count == 0 || repeated < r->count); repeated++) {
        struct stream_pending *p = stream_pending_at(&at);
        if (streams_follow(&entries, e, p->id)) {
            streams_reply_entry(c->reply, &entries.walk);
            p->delivered_ms = c->now_ms;
            stream_pending_count_delivery(p);
            if (unlikely(propagate_on)) {
                streams_gift_add(c, gift, p);
            }
        } else {
            reply_array(c->reply, 2);
            streams_reply_id(c->reply, p->id);
            reply_null_array(c->reply);
        }
        stream_pending_next(&at);
    }
    return repeated;
}

/* What `>` means: there is something to deliver to the consumer. */
struct fresh {
    struct stream_cursor walk;
    bool passed, more; /* of the undelivered, and behind the group's position, where the walk is */
};

static bool look_for_fresh(struct call *c, const struct group_read *r, int k,
                           const struct keyref *ref, const struct stream_group *g,
                           const struct stream_consumer *consumer, struct fresh *f)
    REQUIRES(keyspace_lock)
{
    struct stream_id next = g->last_id;
    struct stream_id id = STREAM_ID_MIN;
    struct stream_cursor entry;
    *f = (struct fresh){.passed = streams_are_shared(c) && consumer != stream_undelivered(g) &&
                                  find_passed(ref->entry, g, &id, &entry)};
    if (stream_id_increment(&next)) {
        stream_walk(&f->walk, ref->entry, next, STREAM_ID_MAX, false);
        f->more = stream_walk_next(&f->walk);
    }
    return (f->passed || f->more) && !(r->blocks && parked_is_elsewhere(c, k));
}

static uint64_t deliver_fresh(struct call *c, const struct group_read *r, const struct entry *e,
                              struct stream_group *g, struct stream_consumer *consumer,
                              struct fresh *f, struct streams_gift *gift) REQUIRES(keyspace_lock)
{
    uint64_t delivered = f->passed ? deliver_passed(c, r, e, g, consumer, gift) : 0;
    if (f->more && (r->count == 0 || delivered < r->count)) {
        delivered = deliver(c, r, e, g, consumer, &f->walk, gift, delivered);
    }
    return delivered;
}

static void begin_stream(struct call *c, int k)
{
    if (c->reply->proto == 2) {
        reply_array(c->reply, 2);
    }
    reply_bulk(c->reply, call_key(c, k)->name);
}

/* Serves the k-th stream; true when it is in the reply. The reply is opened by the first that is.
 */
static bool serve_stream(struct call *c, const struct group_read *r, int k, bool first,
                         uint32_t *reply_handle) REQUIRES(keyspace_lock)
{
    struct keyref ref;
    struct stream_group *g;
    struct fresh f;
    bool found = open_group(c, r, k, &ref, &g);
    assert(found);
    struct stream_consumer *consumer = streams_asking_consumer(c, &ref, g, r->consumer);
    assert(consumer);
    bool fresh = stream_id_compare(r->ids[k], NEW_ENTRIES) == 0;
    if (fresh && !look_for_fresh(c, r, k, &ref, g, consumer, &f)) {
        return false;
    }
    if (first) {
        *reply_handle = reply_deferred(c->reply);
    }
    begin_stream(c, k);
    uint32_t handle = reply_deferred(c->reply);
    struct streams_gift gift = {.key = ref.key.name,
                                .group = stream_group_name(g),
                                .consumer = c->argv[r->consumer],
                                .g = g};
    reply_set_deferred_array(c->reply, handle,
                             fresh ? deliver_fresh(c, r, ref.entry, g, consumer, &f, &gift)
                                   : repeat(c, r, ref.entry, g, consumer, r->ids[k], &gift));
    if (unlikely(propagate_on)) {
        if (r->no_ack && fresh) {
            streams_tell_peers_read(c, &gift);
        } else {
            streams_gift_end(c, &gift);
        }
        if (fresh) {
            streams_propagate_position(c, ref.key.name, g, true);
        }
        propagate_nothing(c); /* beyond that */
    }
    c->dirty++;
    return true;
}

static void read_group(struct call *c, struct group_read *r) REQUIRES(keyspace_lock)
{
    uint32_t handle = 0;
    uint64_t served = 0;
    if (!check_streams(c, r)) {
        return;
    }
    propagate_begin_unit();
    for (int k = 0; k < r->streams; k++) {
        served += serve_stream(c, r, k, served == 0, &handle);
    }
    propagate_end_unit();
    if (served > 0 && c->reply->proto == 2) {
        reply_set_deferred_array(c->reply, handle, served);
    } else if (served > 0) {
        reply_set_deferred_map(c->reply, handle, served);
    } else if (r->blocks && call_may_block(c)) {
        call_block(c, &(struct block){.key_count = r->streams,
                                      .type = VALUE_STREAM,
                                      .when_gone = true,
                                      .timeout_ms = r->timeout_ms});
    } else {
        reply_null_array(c->reply);
    }
}

WRITE_COMMAND(xreadgroup_command)
{
    struct group_read r;
    struct stream_id few[IDS_ON_STACK];
    if (!parse_request(c, &r)) {
        return;
    }
    r.ids = r.streams <= IDS_ON_STACK ? few : mem_alloc((size_t)r.streams * sizeof(*r.ids));
    read_group(c, &r);
    if (r.ids != few) {
        mem_free(r.ids);
    }
}

const struct command_row stream_group_read_commands[] = {
    {.name = "xreadgroup",
     .run = xreadgroup_command,
     .arity = -7,
     .flags = CMD_WRITE | CMD_BLOCKING | CMD_SLOW,
     .categories = CATEGORY_STREAM,
     .keys = "kw:STREAMS@4/r-1,1,2/RO+ACCESS",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Returns entries of streams that are new to a consumer group, or those pending at "
                "one of its consumers. Can wait for new ones.",
     .complexity = "O(M*log(N)) for each stream, N being the group's pending entries and M those "
                   "returned",
     .args = "GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key "
             "...] ID [ID ...]"},
    {.name = NULL},
};
