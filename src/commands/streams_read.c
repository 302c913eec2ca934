/* Streams: XLEN, XRANGE, XREVRANGE and XREAD. */
#include "commands/commands.h"
#include "commands/streams_priv.h"

#include "base/mem.h"
#include "engine/block.h"

/* ---- Replying entries ---- */

void streams_reply_entry(struct reply *r, struct stream_cursor *entry)
{
    char field_text[STREAM_TEXT_BYTES], value_text[STREAM_TEXT_BYTES];
    reply_array(r, 2);
    streams_reply_id(r, entry->id);
    reply_array(r, entry->field_count * 2);
    for (uint64_t i = 0; i < entry->field_count; i++) {
        struct slice field, value;
        stream_walk_pair(entry, &field, &value, field_text, value_text);
        reply_bulk(r, field);
        reply_bulk(r, value);
    }
}

uint64_t streams_reply_entries(struct reply *r, struct stream_cursor *walk, uint64_t count)
{
    uint64_t seen = 0;
    uint32_t array = reply_deferred(r);
    while ((count == 0 || seen < count) && stream_walk_next(walk)) {
        streams_reply_entry(r, walk);
        seen++;
    }
    reply_set_deferred_array(r, array, seen);
    return seen;
}

void streams_reply_edge(struct reply *r, const struct entry *e, bool last)
{
    struct stream_cursor walk;
    stream_walk(&walk, e, STREAM_ID_MIN, STREAM_ID_MAX, last);
    if (stream_walk_next(&walk)) {
        streams_reply_entry(r, &walk);
    } else {
        reply_null(r);
    }
}

/* ---- XLEN, XRANGE, XREVRANGE ---- */

READ_COMMAND(xlen_command)
{
    struct entry *e;
    if (call_read_typed(c, 0, VALUE_STREAM, &e)) {
        reply_i64(c->reply, e ? (int64_t)stream_facts(e)->length : 0);
    }
}

/* The COUNT from argument 4 on; -1 when there is none. */
static bool parse_count(struct call *c, int64_t *count)
{
    *count = -1;
    for (int i = 4; i < c->argc; i += 2) {
        if (i + 1 >= c->argc || !call_arg_is(c, i, "count")) {
            reply_syntax_error(c->reply);
            return false;
        }
        if (!call_arg_i64(c, i + 1, count)) {
            return false;
        }
        *count = *count < 0 ? 0 : *count;
    }
    return true;
}

static void range_generic(struct call *c, bool down) REQUIRES_SHARED(keyspace_lock)
{
    struct stream_id start, end;
    struct entry *e;
    int64_t count;
    if (!streams_arg_start(c, down ? 3 : 2, &start) || !streams_arg_end(c, down ? 2 : 3, &end) ||
        !parse_count(c, &count) || !call_read_typed(c, 0, VALUE_STREAM, &e)) {
        return;
    }
    if (!e) {
        reply_array(c->reply, 0);
        return;
    }
    if (count == 0) {
        reply_null_array(c->reply);
        return;
    }
    struct stream_cursor walk;
    stream_walk(&walk, e, start, end, down);
    streams_reply_entries(c->reply, &walk, count < 0 ? 0 : (uint64_t)count);
}

READ_COMMAND(xrange_command)
{
    range_generic(c, false);
}

READ_COMMAND(xrevrange_command)
{
    range_generic(c, true);
}

/* ---- XREAD ---- */

struct read_options {
    int64_t count;      /* entries of each stream; 0: all */
    int64_t timeout_ms; /* of BLOCK; -1 without it */
    int first, streams; /* argument of the first key, and how many there are */
};

/* The keys and IDs from argument `first` on. */
static bool parse_streams(struct call *c, int first, struct read_options *o)
{
    int words = c->argc - first;
    o->first = first;
    o->streams = words / 2;
    if (words % 2 != 0) {
        reply_error(c->reply, "ERR Unbalanced 'xread' list of streams: for each stream key an ID "
                              "or '$' must be specified.");
        return false;
    }
    return true;
}

bool streams_arg_block(struct call *c, int i, int64_t *timeout_ms)
{
    if (c->session->script) {
        reply_errorf(c->reply, "ERR %.*s command is not allowed with BLOCK option from scripts",
                     (int)c->argv[0].len, c->argv[0].ptr);
        return false;
    }
    return call_arg_timeout_ms(c, i, timeout_ms);
}

static bool parse_read_options(struct call *c, struct read_options *o)
{
    *o = (struct read_options){.timeout_ms = -1};
    for (int i = 1; i < c->argc; i++) {
        bool more = i + 1 < c->argc;
        if (more && call_arg_is(c, i, "block")) {
            if (!streams_arg_block(c, ++i, &o->timeout_ms)) {
                return false;
            }
        } else if (more && call_arg_is(c, i, "count")) {
            if (!call_arg_i64(c, ++i, &o->count)) {
                return false;
            }
            o->count = o->count < 0 ? 0 : o->count;
        } else if (more && call_arg_is(c, i, "streams")) {
            return parse_streams(c, i + 1, o);
        } else if (i + 2 < c->argc && call_arg_is(c, i, "group")) {
            reply_error(c->reply, "ERR The GROUP option is only supported by XREADGROUP. You "
                                  "called XREAD instead.");
            return false;
        } else if (call_arg_is(c, i, "noack")) {
            reply_error(c->reply, "ERR The NOACK option is only supported by XREADGROUP. You "
                                  "called XREAD instead.");
            return false;
        } else {
            break;
        }
    }
    reply_syntax_error(c->reply);
    return false;
}

/* A stream to be read, from behind an ID. */
struct source {
    struct entry *e; /* NULL: missing */
    struct stream_id after;
};
/* Sources that need no block of memory. */
#define SOURCES_ON_STACK 16

/* The ID in argument `i`, from behind which a stream (NULL: missing) is read. */
static bool parse_after(struct call *c, int i, const struct entry *e, struct stream_id *after)
{
    if (call_arg_is(c, i, "$")) {
        *after = e ? stream_facts(e)->last_id : STREAM_ID_MIN;
        return true;
    }
    if (call_arg_is(c, i, ">")) {
        reply_error(c->reply,
                    "ERR The > ID can be specified only when calling XREADGROUP using the "
                    "GROUP <group> <consumer> option.");
        return false;
    }
    return streams_arg_id(c, i, 0, after);
}

/* Opens all streams and says from where each is read. False with the error replied. */
static bool open_sources(struct call *c, const struct read_options *o, struct source *sources)
    REQUIRES_SHARED(keyspace_lock)
{
    for (int k = 0; k < o->streams; k++) {
        struct source *s = &sources[k];
        if (!call_read_typed(c, k, VALUE_STREAM, &s->e) ||
            !parse_after(c, o->first + o->streams + k, s->e, &s->after)) {
            return false;
        }
    }
    return true;
}

/* The same for a call that has waited: it knows the IDs (what $ meant then). */
static bool reopen_sources(struct call *c, const struct read_options *o, struct source *sources)
    REQUIRES_SHARED(keyspace_lock)
{
    const struct stream_id *after = call_block_state(c);
    for (int k = 0; k < o->streams; k++) {
        if (!call_read_typed(c, k, VALUE_STREAM, &sources[k].e)) {
            return false;
        }
        sources[k].after = after[k];
    }
    return true;
}

/* True when there are entries behind the source's ID. */
static bool is_ready(const struct source *s)
{
    struct stream_cursor walk;
    if (!s->e || stream_id_compare(stream_facts(s->e)->last_id, s->after) <= 0) {
        return false;
    }
    stream_walk(&walk, s->e, STREAM_ID_MIN, STREAM_ID_MAX, true);
    return stream_walk_next(&walk) && stream_id_compare(walk.id, s->after) > 0;
}

static void reply_source(struct call *c, const struct read_options *o, int k,
                         const struct source *s)
{
    struct stream_cursor walk;
    struct stream_id first = s->after;
    bool more = stream_id_increment(&first);
    assert(more);
    if (c->reply->proto == 2) {
        reply_array(c->reply, 2);
    }
    reply_bulk(c->reply, c->argv[o->first + k]);
    stream_walk(&walk, s->e, first, STREAM_ID_MAX, false);
    streams_reply_entries(c->reply, &walk, (uint64_t)o->count);
}

/* Lets the call wait for one of the streams to grow. */
static void wait_for_sources(struct call *c, const struct read_options *o,
                             const struct source *sources) REQUIRES_SHARED(keyspace_lock)
{
    struct block b = {.key_count = o->streams, .type = VALUE_STREAM, .timeout_ms = o->timeout_ms};
    if (!c->retry) {
        struct stream_id *after = mem_alloc((size_t)o->streams * sizeof(*after));
        for (int k = 0; k < o->streams; k++) {
            after[k] = sources[k].after;
        }
        b.state = after;
    }
    call_block(c, &b);
}

static void read_sources(struct call *c, const struct read_options *o, const struct source *sources)
    REQUIRES_SHARED(keyspace_lock)
{
    uint64_t ready = 0;
    for (int k = 0; k < o->streams; k++) {
        ready += is_ready(&sources[k]);
    }
    if (ready == 0 && o->timeout_ms >= 0 && call_may_block(c)) {
        wait_for_sources(c, o, sources);
        return;
    }
    if (ready == 0) {
        reply_null_array(c->reply);
        return;
    }
    if (c->reply->proto == 2) {
        reply_array(c->reply, ready);
    } else {
        reply_map(c->reply, ready);
    }
    for (int k = 0; k < o->streams; k++) {
        if (is_ready(&sources[k])) {
            reply_source(c, o, k, &sources[k]);
        }
    }
}

READ_COMMAND(xread_command)
{
    struct read_options o;
    struct source few[SOURCES_ON_STACK];
    if (!parse_read_options(c, &o)) {
        return;
    }
    assert(c->key_count == o.streams);
    size_t bytes = (size_t)o.streams * sizeof(struct source);
    struct source *sources = o.streams <= SOURCES_ON_STACK ? few : mem_alloc(bytes);
    bool opened = c->retry ? reopen_sources(c, &o, sources) : open_sources(c, &o, sources);
    if (opened) {
        read_sources(c, &o, sources);
    }
    if (sources != few) {
        mem_free_sized(sources, bytes);
    }
}

const struct command_row stream_read_commands[] = {
    {.name = "xlen",
     .run = xlen_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_STREAM,
     .keys = "i1/r0,1,0/RO",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Returns the number of entries of a stream.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "xrange",
     .run = xrange_command,
     .arity = -4,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_STREAM,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Returns the entries of a stream whose IDs are within a range.",
     .complexity = "O(N), N being the entries returned",
     .args = "key start end [COUNT count]",
     .history = "6.2.0:Takes bounds that are not in the range, marked by (."},
    {.name = "xread",
     .run = xread_command,
     .arity = -4,
     .flags = CMD_BLOCKING | CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_STREAM,
     .keys = "kw:STREAMS@1/r-1,1,2/RO+ACCESS",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Returns the entries of several streams behind given IDs; waits for some where "
                "there are none.",
     .complexity = "O(N), N being the entries returned",
     .args = "[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] ID [ID ...]"},
    {.name = "xrevrange",
     .run = xrevrange_command,
     .arity = -4,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_STREAM,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Returns the entries of a stream whose IDs are within a range, the last one first.",
     .complexity = "O(N), N being the entries returned",
     .args = "key end start [COUNT count]",
     .history = "6.2.0:Takes bounds that are not in the range, marked by (."},
    {.name = NULL},
};
