/* XCLAIM and XAUTOCLAIM: a consumer takes over entries that others have pending for too long. */
#include "commands/commands.h"
#include "commands/streams_group_priv.h"
#include "commands/streams_priv.h"

#include "base/buf.h"
#include "base/mem.h"
#include "value/stream_lag.h"
#include "value/stream_undelivered.h"

/* IDs of XCLAIM that are parsed without a block of memory. */
#define IDS_ON_STACK 64
/* Pending entries that XAUTOCLAIM looks at for each one it may return. */
#define LOOKS_PER_ENTRY 10
#define DEFAULT_COUNT 100
/* The greatest COUNT of XAUTOCLAIM, as in Redis (which allocates 16 bytes for each). */
#define MAX_COUNT (INT64_MAX / 16)

struct claim {
    struct keyref ref;
    struct stream_group *group;
    struct stream_consumer *consumer;
    int64_t min_idle_ms;  /* not negative */
    bool force, just_id;  /* just_id: no contents, and no delivery is counted */
    int64_t delivered_ms; /* the time of delivery that entries get */
    int64_t deliveries;   /* and the number of deliveries; -1: one more than before */
    struct streams_gift gift;
};

/* Opens the stream and the group of argument 2. */
static bool open_group(struct call *c, struct claim *claim) REQUIRES(keyspace_lock)
{
    struct keyref *ref = &claim->ref;
    if (!call_open_typed(c, 0, VALUE_STREAM, ref)) {
        return false;
    }
    claim->group = ref->entry ? stream_group_find(stream_groups(ref->entry), c->argv[2]) : NULL;
    if (!claim->group) {
        streams_reply_no_group(c, ref->key.name, c->argv[2], "");
    }
    return claim->group != NULL;
}

static bool parse_min_idle(struct call *c, struct claim *claim, const char *error)
{
    if (!call_arg_i64_error(c, 4, &claim->min_idle_ms, error)) {
        return false;
    }
    claim->min_idle_ms = claim->min_idle_ms < 0 ? 0 : claim->min_idle_ms;
    return true;
}

/* The consumer has the pending entry now. */
static void take(struct call *c, struct claim *claim, struct stream_pending *p)
    REQUIRES(keyspace_lock)
{
    stream_pending_move(p, claim->consumer);
    p->delivered_ms = claim->delivered_ms;
    if (claim->deliveries >= 0) {
        p->deliveries = claim->deliveries;
    } else if (!claim->just_id) {
        stream_pending_count_delivery(p);
    }
    claim->consumer->active_ms = c->now_ms;
    c->dirty++;
    if (unlikely(propagate_on)) {
        streams_gift_add(c, &claim->gift, p);
    }
}

/* What nobody was given, or who was given it had gone, is put back (stream_undelivered.h). */
static bool puts_back(const struct call *c)
{
    return slice_equal(c->argv[3], SLICE(STREAM_UNDELIVERED));
}

/* The consumer that claims, which is argument 3; false with the error replied. */
static bool find_consumer(struct call *c, struct claim *claim) REQUIRES(keyspace_lock)
{
    /* That consumer is there while it has some, and nobody is told of it before he is of those. */
    bool untold = streams_are_shared(c) && puts_back(c);
    claim->consumer = untold ? stream_undelivered(claim->group) : NULL;
    if (untold && !claim->consumer) {
        claim->consumer = stream_consumer_add(claim->group, c->argv[3], c->now_ms);
    } else if (!untold) {
        claim->consumer = streams_asking_consumer(c, &claim->ref, claim->group, 3);
    }
    claim->gift = (struct streams_gift){
        .key = claim->ref.key.name, .group = c->argv[2], .consumer = c->argv[3], .g = claim->group};
    return claim->consumer != NULL;
}

/* What the stream lost is pending no more. */
static void drop_lost(struct call *c, struct claim *claim, struct stream_id id)
    REQUIRES(keyspace_lock)
{
    c->dirty++;
    if (unlikely(propagate_on)) {
        streams_propagate_lost(c, claim->ref.key.name, c->argv[2], id);
    }
}

static void tidy(const struct call *c, const struct claim *claim) REQUIRES(keyspace_lock)
{
    if (streams_are_shared(c)) {
        stream_undelivered_tidy(claim->group);
        streams_wake_for_undelivered(&claim->ref, claim->group);
    }
}

/* ---- XCLAIM ---- */

/* Parses the IDs from argument 5 on; returns the first argument that is none. */
static int parse_ids(const struct call *c, struct stream_id *ids)
{
    int i = 5;
    while (i < c->argc && stream_id_parse(c->argv[i], 0, &ids[i - 5])) {
        i++;
    }
    return i;
}

struct claim_options {
    int64_t delivered_ms; /* not yet checked against now; INT64_MAX: now */
    struct stream_id last_id;
};

static bool parse_option(struct call *c, int *at, struct claim *claim, struct claim_options *o)
{
    int i = *at;
    bool more = i + 1 < c->argc;
    *at += 1;
    if (call_arg_is(c, i, "force")) {
        claim->force = true;
    } else if (call_arg_is(c, i, "justid")) {
        claim->just_id = true;
    } else if (more && call_arg_is(c, i, "idle")) {
        int64_t idle_ms;
        if (!call_arg_i64_error(c, (*at)++, &idle_ms,
                                "ERR Invalid IDLE option argument for XCLAIM")) {
            return false;
        }
        o->delivered_ms = idle_ms < 0 ? INT64_MAX : c->now_ms - idle_ms;
    } else if (more && call_arg_is(c, i, "time")) {
        return call_arg_i64_error(c, (*at)++, &o->delivered_ms,
                                  "ERR Invalid TIME option argument for XCLAIM");
    } else if (more && call_arg_is(c, i, "retrycount")) {
        return call_arg_i64_error(c, (*at)++, &claim->deliveries,
                                  "ERR Invalid RETRYCOUNT option argument for XCLAIM");
    } else if (more && call_arg_is(c, i, "lastid")) {
        return streams_arg_id(c, (*at)++, 0, &o->last_id);
    } else {
        reply_errorf(c->reply, "ERR Unrecognized XCLAIM option '%.*s'",
                     streams_echo_len(c->argv[i]), c->argv[i].ptr);
        return false;
    }
    return true;
}

static bool parse_claim_options(struct call *c, int from, struct claim *claim,
                                struct stream_id *last_id)
{
    struct claim_options o = {.delivered_ms = INT64_MAX, .last_id = STREAM_ID_MIN};
    claim->deliveries = -1;
    for (int i = from; i < c->argc;) {
        if (!parse_option(c, &i, claim, &o)) {
            return false;
        }
    }
    /* What a log or another server says was so by its clock, which may be ahead of this one. */
    bool past = o.delivered_ms <= c->now_ms || (c->session->internal && o.delivered_ms < INT64_MAX);
    bool sensible = o.delivered_ms >= 0 && past;
    claim->delivered_ms = sensible ? o.delivered_ms : c->now_ms;
    *last_id = o.last_id;
    return true;
}

/* Claims one entry; true when it is in the reply. */
static bool claim_one(struct call *c, struct claim *claim, struct stream_id id)
    REQUIRES(keyspace_lock)
{
    struct stream_cursor walk;
    struct stream_pending *p = stream_pending_find(claim->group, id);
    /* Of what is put back the entry may be on its way still; also where a log is read again. */
    bool stays = p && claim->just_id && puts_back(c);
    if (!stream_find(claim->ref.entry, id, &walk) && !stays) {
        if (p && stream_pending_remove(claim->group, id)) {
            drop_lost(c, claim, id);
        }
        return false;
    }
    if (p && !streams_is_idle(c, p->delivered_ms, claim->min_idle_ms)) {
        return false;
    }
    if (!p && claim->force) {
        p = stream_pending_give(claim->group, claim->consumer, id, c->now_ms, 1);
    }
    if (p) {
        take(c, claim, p);
        if (claim->just_id) {
            streams_reply_id(c->reply, id);
        } else {
            streams_reply_entry(c->reply, &walk);
        }
    }
    return p != NULL;
}

static void claim_ids(struct call *c, struct claim *claim, const struct stream_id *ids, int count,
                      struct stream_id last_id) REQUIRES(keyspace_lock)
{
    uint64_t claimed = 0;
    if (stream_id_compare(last_id, claim->group->last_id) > 0) {
        const struct stream_facts *facts = stream_facts(claim->ref.entry);
        stream_group_place(facts, claim->group, last_id, stream_rank(facts, last_id));
        c->dirty++;
        if (unlikely(propagate_on)) {
            streams_propagate_position(c, claim->ref.key.name, claim->group, false);
        }
    }
    if (!find_consumer(c, claim)) {
        return;
    }
    uint32_t handle = reply_deferred(c->reply);
    for (int i = 0; i < count; i++) {
        claimed += claim_one(c, claim, ids[i]);
    }
    if (unlikely(propagate_on)) {
        streams_gift_end(c, &claim->gift);
    }
    tidy(c, claim);
    reply_set_deferred_array(c->reply, handle, claimed);
}

WRITE_COMMAND(xclaim_command)
{
    struct claim claim = {0};
    struct stream_id last_id, few[IDS_ON_STACK];
    if (!open_group(c, &claim) ||
        !parse_min_idle(c, &claim, "ERR Invalid min-idle-time argument for XCLAIM")) {
        return;
    }
    size_t most = (size_t)(c->argc - 5);
    struct stream_id *ids = most <= IDS_ON_STACK ? few : mem_alloc(most * sizeof(*ids));
    int options = parse_ids(c, ids);
    if (parse_claim_options(c, options, &claim, &last_id)) {
        propagate_begin_unit();
        claim_ids(c, &claim, ids, options - 5, last_id);
        propagate_end_unit();
    }
    if (ids != few) {
        mem_free(ids);
    }
}

/* ---- XAUTOCLAIM ---- */

static bool parse_auto_options(struct call *c, struct claim *claim, int64_t *count)
{
    *count = DEFAULT_COUNT;
    for (int i = 6; i < c->argc; i++) {
        if (i + 1 < c->argc && call_arg_is(c, i, "count")) {
            if (!call_arg_range(c, ++i, 1, MAX_COUNT, count, "ERR COUNT must be > 0")) {
                return false;
            }
        } else if (call_arg_is(c, i, "justid")) {
            claim->just_id = true;
        } else {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    return true;
}

/* What a walk over the pending entries found. */
struct harvest {
    struct buf claimed, lost; /* IDs, one after the other; lost: no longer in the stream */
    struct stream_id next;    /* where to go on, 0-0 at the end */
};

static void keep_id(struct buf *ids, struct stream_id id)
{
    buf_append(ids, (const char *)&id, sizeof(id));
}

static size_t id_count(const struct buf *ids)
{
    return ids->len / sizeof(struct stream_id);
}

static struct stream_id id_at(const struct buf *ids, size_t i)
{
    struct stream_id id;
    memcpy(&id, ids->data + i * sizeof(id), sizeof(id));
    return id;
}

/* Walks the pending entries from `start` on, claims those idle long enough, and drops those that
 * the stream lost: `count` of both at most. */
static void harvest(struct call *c, struct claim *claim, struct stream_id start, int64_t count,
                    struct harvest *h) REQUIRES(keyspace_lock)
{
    struct streams_follower entries = {0};
    int64_t looks = count <= INT64_MAX / LOOKS_PER_ENTRY ? count * LOOKS_PER_ENTRY : INT64_MAX;
    struct stream_pending_cursor at = stream_pending_seek(claim->group, NULL, start);
    for (; stream_pending_valid(&at) && looks > 0 && count > 0; looks--) {
        struct stream_pending *p = stream_pending_at(&at);
        if (!streams_follow(&entries, claim->ref.entry, p->id)) {
            keep_id(&h->lost, p->id);
            stream_pending_remove_at(claim->group, &at);
            drop_lost(c, claim, id_at(&h->lost, id_count(&h->lost) - 1));
            count--;
            continue;
        }
        if (streams_is_idle(c, p->delivered_ms, claim->min_idle_ms)) {
            keep_id(&h->claimed, p->id);
            take(c, claim, p);
            count--;
        }
        stream_pending_next(&at);
    }
    h->next = stream_pending_valid(&at) ? stream_pending_at(&at)->id : STREAM_ID_MIN;
}

static void reply_harvest(struct call *c, const struct claim *claim, const struct harvest *h)
{
    reply_array(c->reply, 3);
    streams_reply_id(c->reply, h->next);
    reply_array(c->reply, id_count(&h->claimed));
    struct streams_follower entries = {0};
    for (size_t i = 0; i < id_count(&h->claimed); i++) {
        if (claim->just_id) {
            streams_reply_id(c->reply, id_at(&h->claimed, i));
            continue;
        }
        bool found = streams_follow(&entries, claim->ref.entry, id_at(&h->claimed, i));
        assert(found);
        streams_reply_entry(c->reply, &entries.walk);
    }
    reply_array(c->reply, id_count(&h->lost));
    for (size_t i = 0; i < id_count(&h->lost); i++) {
        streams_reply_id(c->reply, id_at(&h->lost, i));
    }
}

WRITE_COMMAND(xautoclaim_command)
{
    struct claim claim = {.delivered_ms = c->now_ms, .deliveries = -1};
    struct stream_id start;
    int64_t count;
    if (!parse_min_idle(c, &claim, "ERR Invalid min-idle-time argument for XAUTOCLAIM") ||
        !streams_arg_start(c, 5, &start) || !parse_auto_options(c, &claim, &count) ||
        !open_group(c, &claim)) {
        return;
    }
    struct harvest h = {0};
    propagate_begin_unit();
    bool found = find_consumer(c, &claim);
    if (found) {
        harvest(c, &claim, start, count, &h);
        tidy(c, &claim);
    }
    if (unlikely(propagate_on) && found) {
        streams_gift_end(c, &claim.gift);
    }
    propagate_end_unit();
    if (!found) {
        return;
    }
    reply_harvest(c, &claim, &h);
    buf_deinit(&h.claimed);
    buf_deinit(&h.lost);
}

const struct command_row stream_claim_commands[] = {
    {.name = "xautoclaim",
     .run = xautoclaim_command,
     .arity = -6,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_STREAM,
     .keys = "i1/r0,1,0/RW+DELETE",
     .tips = "nondeterministic_output",
     .group = "stream",
     .since = "6.2.0",
     .summary = "Gives a consumer what has been pending in its group for too long, walking over "
                "the pending entries, some with each call.",
     .complexity = "O(1) for a small COUNT",
     .args = "key group consumer min-idle-time start [COUNT count] [JUSTID]",
     .history = "7.0.0:Drops deleted entries and returns their IDs."},
    {.name = "xclaim",
     .run = xclaim_command,
     .arity = -6,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_STREAM,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .tips = "nondeterministic_output",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Gives a consumer pending entries of its group, as if delivered to it.",
     .complexity = "O(log(N)) for each ID, N being the group's pending entries",
     .args = "key group consumer min-idle-time ID [ID ...] [IDLE ms] [TIME "
             "unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]"},
    {.name = NULL},
};
