/* Streams: adding, trimming, deleting. Reading is in streams_read.c, XINFO in streams_info.c, what
 * consumer groups do in the streams_group files. */
#include "commands/commands.h"
#include "commands/streams_priv.h"

#include "base/mem.h"
#include "engine/propagate.h"
#include "keyspace/access.h"
#include "value/stream_undelivered.h"

/* ---- What the family shares ---- */

void streams_reply_bad_id(struct call *c)
{
    reply_error(c->reply, "ERR Invalid stream ID specified as stream command argument");
}

bool streams_arg_id(struct call *c, int i, uint64_t missing_seq, struct stream_id *id)
{
    if (!stream_id_parse(c->argv[i], missing_seq, id)) {
        streams_reply_bad_id(c);
        return false;
    }
    return true;
}

/* A bound without "(" or with it: *excluded. */
static bool arg_bound(struct call *c, int i, uint64_t missing_seq, struct stream_id *id,
                      bool *excluded)
{
    struct slice text = c->argv[i];
    *excluded = text.len > 1 && *text.ptr == '(';
    bool valid = *excluded ? stream_id_parse(slice_of(text.ptr + 1, text.len - 1), missing_seq, id)
                           : stream_id_parse_bound(text, missing_seq, id);
    if (!valid) {
        streams_reply_bad_id(c);
    }
    return valid;
}

bool streams_arg_start(struct call *c, int i, struct stream_id *id)
{
    bool excluded;
    if (!arg_bound(c, i, 0, id, &excluded)) {
        return false;
    }
    if (excluded && !stream_id_increment(id)) {
        reply_error(c->reply, "ERR invalid start ID for the interval");
        return false;
    }
    return true;
}

bool streams_arg_end(struct call *c, int i, struct stream_id *id)
{
    bool excluded;
    if (!arg_bound(c, i, UINT64_MAX, id, &excluded)) {
        return false;
    }
    if (excluded && !stream_id_decrement(id)) {
        reply_error(c->reply, "ERR invalid end ID for the interval");
        return false;
    }
    return true;
}

void streams_reply_id(struct reply *r, struct stream_id id)
{
    char text[STREAM_ID_TEXT_BYTES];
    reply_bulk(r, stream_id_format(id, text));
}

/* ---- Options of XADD and XTRIM ---- */

struct add_options {
    struct stream_trim trim;
    bool no_create;
    bool any_id;  /* "*" */
    bool any_seq; /* "ms-*" */
    struct stream_id id;
};

/* The threshold of MAXLEN or MINID behind argument `*i`, with its "=" or "~"; *i is its last
 * argument then. */
static bool parse_threshold(struct call *c, int *i, enum stream_trim_kind kind,
                            struct stream_trim *trim)
{
    int64_t length;
    int more = c->argc - 1 - *i;
    if (trim->kind != STREAM_TRIM_NONE) {
        reply_error(c->reply, "ERR syntax error, MAXLEN and MINID options at the same time are "
                              "not compatible");
        return false;
    }
    bool approximate = more >= 2 && call_arg_is(c, *i + 1, "~");
    *i += approximate || (more >= 2 && call_arg_is(c, *i + 1, "=")) ? 2 : 1;
    trim->kind = kind;
    trim->approximate = approximate;
    if (kind == STREAM_TRIM_ID) {
        return streams_arg_id(c, *i, 0, &trim->id);
    }
    if (!call_arg_i64(c, *i, &length)) {
        return false;
    }
    if (length < 0) {
        reply_error(c->reply, "ERR The MAXLEN argument must be >= 0.");
        return false;
    }
    trim->length = (uint64_t)length;
    return true;
}

static bool parse_limit(struct call *c, int i, struct stream_trim *trim)
{
    int64_t limit;
    if (!call_arg_i64(c, i, &limit)) {
        return false;
    }
    if (limit < 0) {
        reply_error(c->reply, "ERR The LIMIT argument must be >= 0.");
        return false;
    }
    trim->limit = (uint64_t)limit;
    return true;
}

static const char *trim_fault(const struct stream_trim *trim, bool has_limit, bool adding)
{
    if (trim->limit > 0 && trim->kind == STREAM_TRIM_NONE) {
        return "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy";
    }
    if (!adding && trim->kind == STREAM_TRIM_NONE) {
        return "ERR syntax error, XTRIM must be called with a trimming strategy";
    }
    if (has_limit && !trim->approximate) {
        return "ERR syntax error, LIMIT cannot be used without the special ~ option";
    }
    return NULL;
}

/* The options belong together, and the limit holds for whom it is meant. */
static bool settle_trim(struct call *c, struct stream_trim *trim, bool has_limit, bool adding)
{
    if (c->session->internal) {
        /* Redis tells logs and replicas the threshold that it has come to, with "=" for "~", and
         * leaves LIMIT where it was. */
        trim->limit = 0;
        return true;
    }
    const char *fault = trim_fault(trim, has_limit, adding);
    if (fault) {
        reply_error(c->reply, fault);
    } else if (trim->approximate && !has_limit) {
        trim->limit = stream_trim_usual_limit();
    }
    return !fault;
}

/* Parses from argument 2 on; returns the place of XADD's ID (c->argc when there is none, and for
 * XTRIM), 0 with the error replied. */
static int parse_options(struct call *c, bool adding, struct add_options *o)
{
    bool has_limit = false;
    int i = 2;
    *o = (struct add_options){.trim = {.kind = STREAM_TRIM_NONE}};
    for (; i < c->argc; i++) {
        bool more = i + 1 < c->argc, fine = true;
        if (adding && call_arg_is(c, i, "*")) {
            o->any_id = true;
            break;
        } else if (more && call_arg_is(c, i, "maxlen")) {
            fine = parse_threshold(c, &i, STREAM_TRIM_LENGTH, &o->trim);
        } else if (more && call_arg_is(c, i, "minid")) {
            fine = parse_threshold(c, &i, STREAM_TRIM_ID, &o->trim);
        } else if (more && call_arg_is(c, i, "limit")) {
            has_limit = true;
            fine = parse_limit(c, ++i, &o->trim);
        } else if (adding && call_arg_is(c, i, "nomkstream")) {
            o->no_create = true;
        } else if (!adding) {
            reply_syntax_error(c->reply);
            return 0;
        } else if (stream_id_parse_open(c->argv[i], 0, &o->id, &o->any_seq)) {
            break;
        } else {
            streams_reply_bad_id(c);
            return 0;
        }
        if (!fine) {
            return 0;
        }
    }
    return settle_trim(c, &o->trim, has_limit, adding) ? i : 0;
}

/* ---- XADD ---- */

/* The ID of the new entry; NULL, or why there is none. */
static const char *choose_id(const struct call *c, const struct stream_facts *facts,
                             struct add_options *o)
{
    if (stream_id_compare(facts->last_id, STREAM_ID_MAX) == 0) {
        return "ERR The stream has exhausted the last possible ID, unable to add more items";
    }
    bool fits = o->any_id    ? stream_next_id(facts, c->now_ms, &o->id)
                : o->any_seq ? stream_next_seq(facts, &o->id)
                             : stream_id_compare(o->id, facts->last_id) > 0;
    return fits ? NULL
                : "ERR The ID specified in XADD is equal or smaller than the target stream top "
                  "item";
}

/* What approximate trimming took out depends on how entries are packed: what is left is said. */
static void add_threshold(struct propagate_draft *d, const struct entry *e)
{
    propagate_add(d, SLICE("MAXLEN"));
    propagate_add(d, SLICE("="));
    propagate_add_number(d, (int64_t)stream_facts(e)->length);
}

/* XADD as it was done: with the ID that was chosen, and what trimming left. */
static void propagate_entry(struct call *c, const struct keyref *ref, const struct add_options *o,
                            bool trimmed, const struct slice *words, int count)
    REQUIRES(keyspace_lock)
{
    struct propagate_draft d = {0};
    char text[STREAM_ID_TEXT_BYTES];
    propagate_add(&d, SLICE("XADD"));
    propagate_add(&d, ref->key.name);
    if (trimmed) {
        add_threshold(&d, ref->entry);
    }
    propagate_add(&d, stream_id_format(o->id, text));
    for (int i = 0; i < count; i++) {
        propagate_add(&d, words[i]);
    }
    propagate_draft_instead(c, &d);
}

/* What trimming takes out, for peers: entry by entry. */
struct trimmed {
    struct stream_id *ids; /* of those that exact trimming takes, or fewer */
    uint64_t count;
};

/* Before the trimming: of what it would take at most. */
static void note_trimmed(struct trimmed *t, const struct entry *e, const struct stream_trim *trim)
{
    uint64_t length = stream_facts(e)->length, capacity = 0;
    struct stream_cursor walk;
    stream_walk(&walk, e, STREAM_ID_MIN, STREAM_ID_MAX, false);
    while (stream_walk_next(&walk)) {
        if (trim->kind == STREAM_TRIM_LENGTH ? length - t->count <= trim->length
                                             : stream_id_compare(walk.id, trim->id) >= 0) {
            break;
        }
        if (t->count == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            t->ids = mem_realloc(t->ids, capacity * sizeof(*t->ids));
        }
        t->ids[t->count++] = walk.id;
    }
}

/* The first `count` of them have gone. They count as deleted by their IDs here as well, since that
 * is what they are for peers. */
static void tell_peers_trimmed(struct call *c, const struct keyref *ref, struct trimmed *t,
                               uint64_t count) REQUIRES(keyspace_lock)
{
    struct streams_gone gone = {.name = SLICE("XDEL"), .key = ref->key.name};
    assert(count <= t->count);
    for (uint64_t i = 0; i < count; i++) {
        streams_gone_add(&gone, t->ids[i]);
    }
    streams_gone_end(c, &gone);
    const struct stream_facts *facts = stream_facts(ref->entry);
    if (stream_id_compare(t->ids[count - 1], facts->max_deleted_id) > 0) {
        stream_set_facts(ref->entry, facts->last_id, NULL, &t->ids[count - 1]);
    }
}

/* Trims and tells peers; returns how many entries went. */
static uint64_t trim(struct call *c, struct keyref *ref, const struct stream_trim *how)
    REQUIRES(keyspace_lock)
{
    struct trimmed gone = {0};
    if (unlikely(propagate_peers)) {
        note_trimmed(&gone, ref->entry, how);
    }
    uint64_t removed = stream_trim(ref->entry, how);
    if (streams_are_shared(c) && removed > 0) {
        stream_undelivered_trimmed(stream_groups(ref->entry), stream_facts(ref->entry)->first_id);
    }
    if (unlikely(propagate_peers) && removed > 0) {
        tell_peers_trimmed(c, ref, &gone, removed);
    }
    mem_free(gone.ids);
    return removed;
}

static void add_entry(struct call *c, struct keyref *ref, const struct add_options *o,
                      const struct slice *words, int count) REQUIRES(keyspace_lock)
{
    if (!ref->entry) {
        struct entry *e = stream_create(ref->key.name);
        entry_set_clock(e, access_initial(c->now_ms));
        db_put(ref, e);
    }
    stream_append(ref->entry, o->id, words, count);
    bool undelivered = unlikely(stream_id_tag != 0) && /* a group may be further than the stream */
                       stream_undelivered_note(stream_groups(ref->entry), o->id);
    streams_reply_id(c->reply, o->id);
    call_changed(c, ref, EVENT_STREAM, "xadd");
    if (unlikely(propagate_peers)) {
        streams_tell_peers_entry(c, ref->key.name, o->id, words, count);
    }
    bool trimmed = o->trim.kind != STREAM_TRIM_NONE && trim(c, ref, &o->trim) > 0;
    if (trimmed) {
        event_notify(EVENT_STREAM, "xtrim", ref->db->id, ref->key.name);
    }
    if (unlikely(propagate_on)) {
        propagate_entry(c, ref, o, trimmed, words, count);
    }
    if (unlikely(propagate_on && undelivered)) {
        streams_propagate_undelivered(c, ref, o->id);
    }
}

WRITE_COMMAND(xadd_command)
{
    static const struct stream_facts none = {0};
    struct add_options o;
    struct keyref ref;
    int at_id = parse_options(c, true, &o);
    if (at_id == 0) {
        return;
    }
    int first = at_id + 1, words = c->argc - first;
    if (words < 2 || words % 2 != 0) {
        reply_errorf(c->reply, "ERR wrong number of arguments for '%s' command", c->cmd->full_name);
        return;
    }
    if (!o.any_id && !o.any_seq && stream_id_is_zero(o.id)) {
        reply_error(c->reply, "ERR The ID specified in XADD must be greater than 0-0");
        return;
    }
    if (!call_open_typed(c, 0, VALUE_STREAM, &ref)) {
        return;
    }
    if (!ref.entry && o.no_create) {
        reply_null(c->reply);
        return;
    }
    const char *fault = choose_id(c, ref.entry ? stream_facts(ref.entry) : &none, &o);
    size_t bytes = 0;
    if (!fault && !stream_entry_fits(ref.entry, c->argv + first, words, &bytes)) {
        fault = "ERR Elements are too large to be stored";
    }
    if (fault) {
        reply_error(c->reply, fault);
        return;
    }
    if (!call_reserve(c, bytes)) {
        return;
    }
    add_entry(c, &ref, &o, c->argv + first, words);
    if (bytes >= CALL_RESERVE_FROM_BYTES) {
        call_unreserve();
    }
}

/* ---- XTRIM, XDEL, XSETID ---- */

WRITE_COMMAND(xtrim_command)
{
    struct add_options o;
    struct keyref ref;
    uint64_t removed = 0;
    if (parse_options(c, false, &o) == 0 || !call_open_typed(c, 0, VALUE_STREAM, &ref)) {
        return;
    }
    if (ref.entry) {
        removed = trim(c, &ref, &o.trim);
    }
    if (removed > 0) {
        if (unlikely(propagate_on)) {
            struct propagate_draft d = {0};
            propagate_add(&d, SLICE("XTRIM"));
            propagate_add(&d, ref.key.name);
            add_threshold(&d, ref.entry);
            propagate_draft_instead(c, &d);
        }
        call_changed(c, &ref, EVENT_STREAM, "xtrim");
        c->dirty += removed - 1;
    }
    reply_i64(c->reply, (int64_t)removed);
}

WRITE_COMMAND(xdel_command)
{
    struct keyref ref;
    struct stream_id id;
    uint64_t removed = 0;
    if (!call_open_typed(c, 0, VALUE_STREAM, &ref)) {
        return;
    }
    /* All IDs are looked at before anything is deleted, those of a missing key are not. */
    for (int i = 2; ref.entry && i < c->argc; i++) {
        if (!streams_arg_id(c, i, 0, &id)) {
            return;
        }
    }
    struct streams_gone gone = {.name = SLICE("XDEL"), .key = ref.key.name};
    for (int i = 2; ref.entry && i < c->argc; i++) {
        bool valid = stream_id_parse(c->argv[i], 0, &id);
        assert(valid);
        if (stream_delete(ref.entry, id)) {
            removed++;
            streams_gone_add(&gone, id);
            if (streams_are_shared(c)) {
                stream_undelivered_gone(stream_groups(ref.entry), id);
            }
        }
    }
    if (removed > 0) {
        call_changed(c, &ref, EVENT_STREAM, "xdel");
        c->dirty += removed - 1;
    }
    streams_gone_end(c, &gone);
    reply_i64(c->reply, (int64_t)removed);
}

struct set_options {
    struct stream_id last_id, max_deleted_id;
    bool has_added;
    uint64_t added;
};

static bool parse_set_options(struct call *c, struct set_options *o)
{
    *o = (struct set_options){.has_added = false};
    if (!streams_arg_id(c, 2, 0, &o->last_id)) {
        return false;
    }
    for (int i = 3; i < c->argc; i += 2) {
        bool more = i + 1 < c->argc;
        int64_t added;
        if (more && call_arg_is(c, i, "entriesadded")) {
            if (!call_arg_i64(c, i + 1, &added)) {
                return false;
            }
            if (added < 0) {
                reply_error(c->reply, "ERR entries_added must be positive");
                return false;
            }
            o->has_added = true;
            o->added = (uint64_t)added;
        } else if (more && call_arg_is(c, i, "maxdeletedid")) {
            if (!streams_arg_id(c, i + 1, 0, &o->max_deleted_id)) {
                return false;
            }
            if (stream_id_compare(o->last_id, o->max_deleted_id) < 0) {
                reply_error(c->reply, "ERR The ID specified in XSETID is smaller than the provided "
                                      "max_deleted_entry_id");
                return false;
            }
        } else {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    return true;
}

/* NULL, or why the stream cannot be set so. What Redis before 7.2 allowed, its logs and replicas
 * are told. */
static const char *set_fault(const struct call *c, const struct entry *e,
                             const struct set_options *o)
{
    const struct stream_facts *facts = stream_facts(e);
    struct stream_cursor walk;
    if (!c->session->internal && stream_id_compare(o->last_id, facts->max_deleted_id) < 0) {
        return "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id";
    }
    stream_walk(&walk, e, STREAM_ID_MIN, STREAM_ID_MAX, true);
    if (stream_walk_next(&walk) && stream_id_compare(o->last_id, walk.id) < 0) {
        return "ERR The ID specified in XSETID is smaller than the target stream top item";
    }
    return o->has_added && facts->length > o->added
               ? "ERR The entries_added specified in XSETID is smaller than the target stream "
                 "length"
               : NULL;
}

WRITE_COMMAND(xsetid_command)
{
    struct set_options o;
    struct keyref ref;
    if (!parse_set_options(c, &o) || !call_open_typed(c, 0, VALUE_STREAM, &ref)) {
        return;
    }
    if (!ref.entry) {
        reply_no_such_key(c->reply);
        return;
    }
    const char *fault = set_fault(c, ref.entry, &o);
    if (fault) {
        reply_error(c->reply, fault);
        return;
    }
    stream_set_facts(ref.entry, o.last_id, o.has_added ? &o.added : NULL,
                     stream_id_is_zero(o.max_deleted_id) ? NULL : &o.max_deleted_id);
    call_changed(c, &ref, EVENT_STREAM, "xsetid");
    reply_ok(c->reply);
}

const struct command_row stream_commands[] = {
    {.name = "xadd",
     .run = xadd_command,
     .arity = -5,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_STREAM,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .tips = "nondeterministic_output",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Appends an entry to a stream, making the stream where there is none.",
     .complexity = "O(1), and O(N) for N entries that are trimmed",
     .args = "key [NOMKSTREAM] [<MAXLEN|MINID> [=|~] threshold [LIMIT count]] <*|id> field value "
             "[field value ...]",
     .history = "6.2.0:Takes NOMKSTREAM, MINID and LIMIT.|7.0.0:Takes IDs whose sequence number is "
                "left open (ms-*)."},
    {.name = "xdel",
     .run = xdel_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_STREAM,
     .keys = "i1/r0,1,0/RW+DELETE",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Deletes entries of a stream by their IDs.",
     .complexity = "O(1) for each ID",
     .args = "key ID [ID ...]"},
    {.name = "xsetid",
     .run = xsetid_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_STREAM,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Sets the last ID of a stream, and what it counts; for replication.",
     .complexity = "O(1)",
     .args = "key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]",
     .history = "7.0.0:Takes ENTRIESADDED and MAXDELETEDID."},
    {.name = "xtrim",
     .run = xtrim_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_SLOW,
     .categories = CATEGORY_STREAM,
     .keys = "i1/r0,1,0/RW+DELETE",
     .tips = "nondeterministic_output",
     .group = "stream",
     .since = "5.0.0",
     .summary = "Deletes the oldest entries of a stream.",
     .complexity = "O(N), N being the entries deleted; little for each, as whole nodes go",
     .args = "key <MAXLEN|MINID> [=|~] threshold [LIMIT count]",
     .history = "6.2.0:Takes MINID and LIMIT."},
    {.name = NULL},
};
