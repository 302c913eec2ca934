/* Sets: members in and out, and looking at them. Random members are in sets_random.c, algebra in
 * sets_algebra.c. */
#include "commands/commands.h"
#include "commands/scan_args.h"
#include "commands/sets_priv.h"

#include "base/mem.h"
#include "engine/propagate.h"
#include "keyspace/access.h"

/* Members of up to so many bytes are copied by SSCAN: as many as a set may keep without a block of
 * their own, or more. */
#define SHORT_MEMBER_BYTES 24

void sets_delete_empty(struct keyref *ref)
{
    if (set_count(ref->entry) == 0) {
        propagate_emptied(ref);
        db_delete(ref, false);
        event_notify(EVENT_GENERIC, "del", ref->db->id, ref->key.name);
    }
}

void sets_reply_member(struct reply *r, struct set_member *m)
{
    reply_bulk(r, set_member_bytes(m));
}

void sets_visit_reply(struct set_member *m, void *reply)
{
    sets_reply_member(reply, m);
}

void sets_reply_members(struct reply *r, const struct entry *e)
{
    struct set_walk w;
    struct set_member m;
    set_walk_begin(&w, e);
    while (set_walk_next(&w, &m)) {
        sets_reply_member(r, &m);
    }
}

/* ---- in and out ---- */

/* The set at the opened key made ready for `count` members from argument `first` on; *fresh says
 * that it is in no database yet. */
static struct entry *prepare_set(struct call *c, struct keyref *ref, int first, int count,
                                 bool *fresh) REQUIRES(keyspace_lock)
{
    struct set_member m;
    *fresh = !ref->entry;
    if (ref->entry) {
        set_expect(ref->entry, (uint64_t)count);
        return ref->entry;
    }
    set_member_init(&m, c->argv[first]);
    struct entry *e = set_create(ref->key.name, &m, (uint64_t)count, ENTRY_NO_EXPIRY);
    entry_set_clock(e, access_initial(c->now_ms));
    return e;
}

WRITE_COMMAND(sadd_command)
{
    struct keyref ref;
    bool fresh;
    int64_t added = 0;
    if (!call_open_typed(c, 0, VALUE_SET, &ref)) {
        return;
    }
    struct entry *e = prepare_set(c, &ref, 2, c->argc - 2, &fresh);
    for (int i = 2; i < c->argc; i++) {
        struct set_member m;
        set_member_init(&m, c->argv[i]);
        added += set_add(e, &m);
    }
    if (fresh) {
        db_put(&ref, e);
    }
    if (added > 0) {
        call_changed(c, &ref, EVENT_SET, "sadd");
        c->dirty += (uint64_t)added - 1;
    }
    reply_i64(c->reply, added);
}

WRITE_COMMAND(srem_command)
{
    struct keyref ref;
    int64_t removed = 0;
    if (!call_open_typed(c, 0, VALUE_SET, &ref)) {
        return;
    }
    for (int i = 2; ref.entry && i < c->argc && set_count(ref.entry) > 0; i++) {
        struct set_member m;
        set_member_init(&m, c->argv[i]);
        removed += set_remove(ref.entry, &m);
    }
    if (removed > 0) {
        call_changed(c, &ref, EVENT_SET, "srem");
        c->dirty += (uint64_t)removed - 1;
        sets_delete_empty(&ref);
    }
    reply_i64(c->reply, removed);
}

WRITE_COMMAND(smove_command)
{
    struct keyref from, to;
    struct set_member m;
    bool fresh;
    call_open(c, 0, &from);
    if (!from.entry) {
        reply_i64(c->reply, 0);
        return;
    }
    call_open(c, 1, &to);
    /* Opening the second key may have deleted it, and with it moved the first one's place. */
    call_open_again(c, 0, &from);
    if (entry_type(from.entry) != VALUE_SET || (to.entry && entry_type(to.entry) != VALUE_SET)) {
        reply_wrong_type(c->reply);
        return;
    }
    set_member_init(&m, c->argv[3]);
    if (from.entry == to.entry) {
        reply_i64(c->reply, set_contains(from.entry, &m));
        return;
    }
    if (!set_remove(from.entry, &m)) {
        reply_i64(c->reply, 0);
        return;
    }
    if (unlikely(propagate_peers)) {
        TELL_PEERS(c, SLICE("SADD"), call_key(c, 1)->name, c->argv[3]);
        TELL_PEERS(c, SLICE("SREM"), call_key(c, 0)->name, c->argv[3]);
    }
    call_changed(c, &from, EVENT_SET, "srem");
    sets_delete_empty(&from);
    call_open_again(c, 1, &to);
    struct entry *e = prepare_set(c, &to, 3, 1, &fresh);
    bool added = set_add(e, &m);
    if (fresh) {
        db_put(&to, e);
    }
    if (added) {
        call_changed(c, &to, EVENT_SET, "sadd");
    }
    reply_i64(c->reply, 1);
}

/* ---- looking ---- */

READ_COMMAND(scard_command)
{
    struct entry *e;
    if (call_read_typed(c, 0, VALUE_SET, &e)) {
        reply_i64(c->reply, e ? (int64_t)set_count(e) : 0);
    }
}

static bool contains_argument(const struct call *c, const struct entry *e, int i)
{
    struct set_member m;
    set_member_init(&m, c->argv[i]);
    return e && set_contains(e, &m);
}

READ_COMMAND(sismember_command)
{
    struct entry *e;
    if (call_read_typed(c, 0, VALUE_SET, &e)) {
        reply_i64(c->reply, contains_argument(c, e, 2));
    }
}

READ_COMMAND(smismember_command)
{
    struct entry *e;
    if (!call_read_typed(c, 0, VALUE_SET, &e)) {
        return;
    }
    reply_array(c->reply, (uint64_t)c->argc - 2);
    for (int i = 2; i < c->argc; i++) {
        reply_i64(c->reply, contains_argument(c, e, i));
    }
}

READ_COMMAND(smembers_command)
{
    struct entry *e;
    if (!call_read_typed(c, 0, VALUE_SET, &e)) {
        return;
    }
    reply_set(c->reply, e ? set_count(e) : 0);
    if (e) {
        sets_reply_members(c->reply, e);
    }
}

/* ---- SSCAN ---- */

/* Members of a table that match, kept until the cursor that is replied first is known. Short ones
 * are copied, since they are shown from a place of their own. */
struct found_member {
    struct slice bytes; /* ptr NULL: `text` */
    char text[SHORT_MEMBER_BYTES];
};

/* An array that doubles as it grows: what it has, and what it moves from. */
#define SCAN_GROWTH 3

struct found {
    const struct scan_args *scan;
    struct found_member *members;
    size_t count, capacity;
};

static void find_visit(struct set_member *m, void *context)
{
    struct found *f = context;
    struct slice bytes = set_member_bytes(m);
    if (!scan_args_match(f->scan, bytes)) {
        return;
    }
    if (f->count == f->capacity) {
        f->capacity = f->capacity ? f->capacity * 2 : 32;
        f->members = mem_realloc(f->members, f->capacity * sizeof(*f->members));
    }
    struct found_member *kept = &f->members[f->count++];
    kept->bytes = bytes;
    if (bytes.len <= SHORT_MEMBER_BYTES) {
        kept->bytes.ptr = NULL;
        memcpy(kept->text, bytes.ptr, bytes.len);
    }
}

static void scan_table(struct call *c, const struct entry *e, const struct scan_args *scan)
    REQUIRES_SHARED(keyspace_lock)
{
    struct found f = {.scan = scan};
    uint64_t most = scan->count < set_count(e) ? scan->count : set_count(e);
    if (!call_reserve(c, most * SCAN_GROWTH * sizeof(struct found_member))) {
        return;
    }
    uint64_t cursor = set_scan(e, scan->cursor, scan->count, find_visit, &f);
    scan_args_reply_cursor(c, cursor);
    reply_array(c->reply, f.count);
    for (size_t i = 0; i < f.count; i++) {
        const struct found_member *kept = &f.members[i];
        const char *bytes = kept->bytes.ptr ? kept->bytes.ptr : kept->text;
        reply_bulk(c->reply, slice_of(bytes, kept->bytes.len));
    }
    mem_free(f.members);
    call_unreserve();
}

static void scan_packed(struct call *c, const struct entry *e, const struct scan_args *scan)
    REQUIRES_SHARED(keyspace_lock)
{
    uint64_t count = 0;
    struct set_walk w;
    struct set_member m;
    scan_args_reply_cursor(c, 0);
    uint32_t handle = reply_deferred(c->reply);
    set_walk_begin(&w, e);
    while (set_walk_next(&w, &m)) {
        struct slice bytes = set_member_bytes(&m);
        if (!scan->pattern.ptr || scan_args_match(scan, bytes)) {
            reply_bulk(c->reply, bytes);
            count++;
        }
    }
    reply_set_deferred_array(c->reply, handle, count);
}

READ_COMMAND(sscan_command)
{
    struct scan_args scan;
    struct entry *e;
    if (!scan_args_cursor(c, 2, &scan) || !call_read_typed(c, 0, VALUE_SET, &e)) {
        return;
    }
    if (!e) {
        scan_args_reply_cursor(c, 0);
        reply_array(c->reply, 0);
        return;
    }
    if (!scan_args_options(c, 3, SCAN_ARGS_NO_OPTION, &scan)) {
        return;
    }
    if (set_is_packed(e)) {
        scan_packed(c, e, &scan);
    } else {
        scan_table(c, e, &scan);
    }
}

const struct command_row set_commands[] = {
    {.name = "sadd",
     .run = sadd_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_SET,
     .keys = "i1/r0,1,0/RW+INSERT",
     .group = "set",
     .since = "1.0.0",
     .summary = "Puts members into a set; a missing key is created.",
     .complexity = "O(1) a member",
     .members = {2, 1},
     .args = "key member [member ...]",
     .history = "2.4.0:Takes several members."},
    {.name = "scard",
     .run = scard_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_SET,
     .keys = "i1/r0,1,0/RO",
     .group = "set",
     .since = "1.0.0",
     .summary = "Returns how many members a set has.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "sismember",
     .run = sismember_command,
     .arity = 3,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_SET,
     .keys = "i1/r0,1,0/RO",
     .group = "set",
     .since = "1.0.0",
     .summary = "Says whether something is a member of a set.",
     .complexity = "O(1)",
     .members = {2, 0},
     .args = "key member"},
    {.name = "smembers",
     .run = smembers_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output_order",
     .group = "set",
     .since = "1.0.0",
     .summary = "Returns all members of a set.",
     .complexity = "O(N), N being the members",
     .args = "key"},
    {.name = "smismember",
     .run = smismember_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_SET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "set",
     .since = "6.2.0",
     .summary = "Says of several things whether they are members of a set.",
     .complexity = "O(N), N being the things asked about",
     .members = {2, 1},
     .args = "key member [member ...]"},
    {.name = "smove",
     .run = smove_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_SET,
     .keys = "i1/r0,1,0/RW+ACCESS+DELETE; i2/r0,1,0/RW+INSERT",
     .group = "set",
     .since = "1.0.0",
     .summary = "Takes a member out of one set and puts it into another.",
     .complexity = "O(1)",
     .members = {3, 0},
     .args = "source destination member"},
    {.name = "srem",
     .run = srem_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_SET,
     .keys = "i1/r0,1,0/RW+DELETE",
     .group = "set",
     .since = "1.0.0",
     .summary = "Takes members out of a set; the key goes with the last one.",
     .complexity = "O(1) a member",
     .members = {2, 1},
     .args = "key member [member ...]",
     .history = "2.4.0:Takes several members."},
    {.name = "sscan",
     .run = sscan_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output",
     .group = "set",
     .since = "2.8.0",
     .summary = "Walks over the members of a set, some with each call.",
     .complexity = "O(1) a call, O(N) for the whole walk",
     .args = "key cursor [MATCH pattern] [COUNT count]"},
    {.name = NULL},
};
