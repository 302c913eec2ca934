/* XPENDING: what a consumer group has delivered and nobody has acknowledged. */
#include "commands/commands.h"
#include "commands/streams_group_priv.h"
#include "commands/streams_priv.h"

/* ---- The overview ---- */

static void reply_first_and_last(struct call *c, const struct stream_group *g)
{
    struct stream_pending_cursor first = stream_pending_seek(g, NULL, STREAM_ID_MIN);
    struct stream_pending_cursor last = stream_pending_last(g);
    streams_reply_id(c->reply, stream_pending_at(&first)->id);
    streams_reply_id(c->reply, stream_pending_at(&last)->id);
}

static void reply_overview(struct call *c, const struct stream_group *g)
{
    reply_array(c->reply, 4);
    reply_i64(c->reply, (int64_t)g->pending.count);
    if (g->pending.count == 0) {
        reply_null(c->reply);
        reply_null(c->reply);
        reply_null_array(c->reply);
        return;
    }
    reply_first_and_last(c, g);
    uint32_t handle = reply_deferred(c->reply);
    uint64_t shown = 0;
    struct radix_cursor at = radix_first(&g->consumers);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        const struct stream_consumer *consumer = stream_consumer_at(&at);
        if (consumer->pending.count > 0) {
            reply_array(c->reply, 2);
            reply_bulk(c->reply, stream_consumer_name(consumer));
            reply_bulk_i64(c->reply, (int64_t)consumer->pending.count);
            shown++;
        }
    }
    reply_set_deferred_array(c->reply, handle, shown);
}

/* ---- The list ---- */

struct range {
    int64_t min_idle_ms, count;
    struct stream_id start, end;
    int consumer; /* index in argv, 0: all */
};

static bool parse_range(struct call *c, struct range *r)
{
    int i = 3;
    *r = (struct range){0};
    if (call_arg_is(c, i, "idle")) {
        if (!call_arg_i64(c, 4, &r->min_idle_ms)) {
            return false;
        }
        i += 2;
        if (c->argc < 8) {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    r->min_idle_ms = r->min_idle_ms < 0 ? 0 : r->min_idle_ms;
    r->consumer = c->argc > i + 3 ? i + 3 : 0;
    return call_arg_i64(c, i + 2, &r->count) && streams_arg_start(c, i, &r->start) &&
           streams_arg_end(c, i + 1, &r->end);
}

static void reply_range(struct call *c, const struct stream_group *g, const struct range *r)
{
    const struct stream_consumer *only = NULL;
    if (r->consumer > 0) {
        only = stream_consumer_find(g, c->argv[r->consumer]);
        if (!only) {
            reply_array(c->reply, 0);
            return;
        }
    }
    uint32_t handle = reply_deferred(c->reply);
    int64_t shown = 0;
    struct stream_pending_cursor at = stream_pending_seek(g, only, r->start);
    for (; stream_pending_valid(&at) && shown < r->count; stream_pending_next(&at)) {
        const struct stream_pending *p = stream_pending_at(&at);
        if (stream_id_compare(p->id, r->end) > 0) {
            break;
        }
        if (streams_is_idle(c, p->delivered_ms, r->min_idle_ms)) {
            reply_array(c->reply, 4);
            streams_reply_id(c->reply, p->id);
            reply_bulk(c->reply, stream_consumer_name(p->consumer));
            reply_i64(c->reply, streams_idle_ms(c, p->delivered_ms));
            reply_i64(c->reply, p->deliveries);
            shown++;
        }
    }
    reply_set_deferred_array(c->reply, handle, (uint64_t)shown);
}

READ_COMMAND(xpending_command)
{
    struct range r;
    struct entry *e;
    bool overview = c->argc == 3;
    if (!overview && (c->argc < 6 || c->argc > 9)) {
        reply_syntax_error(c->reply);
        return;
    }
    if ((!overview && !parse_range(c, &r)) || !call_read_typed(c, 0, VALUE_STREAM, &e)) {
        return;
    }
    const struct stream_group *g = e ? stream_group_find(stream_groups(e), c->argv[2]) : NULL;
    if (!g) {
        streams_reply_no_group(c, call_key(c, 0)->name, c->argv[2], "");
    } else if (overview) {
        reply_overview(c, g);
    } else {
        reply_range(c, g, &r);
    }
}

const struct command_row stream_pending_commands[] = {
    {.name = "xpending",
     .run = xpending_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_STREAM,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Returns what a consumer group has pending: an overview, or a list.",
     .complexity = "O(N), N being the entries returned; those not idle long enough cost as well",
     .args = "key group [[IDLE min-idle-time] start end count [consumer]]",
     .history = "6.2.0:Takes IDLE and open intervals."},
    {.name = NULL},
};
