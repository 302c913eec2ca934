/* Fields of hashes that expire: the HEXPIRE family of Redis 7.4. What a deadline survives is said
 * in value/member_ttl.h. KeyDB's commands for the same are in members_expire.c. */
#include "commands/commands.h"
#include "commands/expire_priv.h"

#include "engine/propagate.h"
#include "keyspace/expire.h"
#include "value/hash.h"
#include "value/member_ttl.h"

/* The latest deadline that these commands take, in ms: as Redis's, about the year 4199. */
#define DEADLINE_MAX_MS (((int64_t)1 << 46) - 1)

/* Replies for one field. */
enum field_result {
    FIELD_MISSING = -2,
    FIELD_NO_TTL = -1,
    FIELD_NOT_MET = 0, /* a condition did not hold */
    FIELD_DONE = 1,
    FIELD_DELETED = 2, /* the deadline was over already */
};

/* The fields that a request names: arguments `first` up to the last. */
struct field_args {
    int first, count;
};

/* Reads FIELDS, their number, and checks it, from argument `at` on; false with an error replied. */
static bool parse_fields(struct call *c, int at, const char *bad_number, struct field_args *fields)
{
    int64_t count;
    if (at + 1 >= c->argc || !call_arg_is(c, at, "fields")) {
        reply_error(c->reply,
                    "ERR Mandatory argument FIELDS is missing or not at the right position");
        return false;
    }
    if (!call_arg_range(c, at + 1, 1, INT64_MAX, &count, bad_number)) {
        return false;
    }
    *fields = (struct field_args){at + 2, c->argc - at - 2};
    if (count != fields->count) {
        reply_error(c->reply, "ERR The `numfields` parameter must match the number of arguments");
        return false;
    }
    return true;
}

static void reply_for_all(struct call *c, const struct field_args *fields, enum field_result result)
{
    reply_array(c->reply, (uint64_t)fields->count);
    for (int i = 0; i < fields->count; i++) {
        reply_i64(c->reply, result);
    }
}

/* ---- setting ---- */

/* The deadline in argument 2; false with an error replied. */
static bool parse_deadline(struct call *c, int64_t base_ms, int64_t unit_ms, int64_t *at_ms)
{
    if (!call_arg_i64(c, 2, at_ms)) {
        return false;
    }
    if (*at_ms < 0) {
        reply_error(c->reply, "ERR invalid expire time, must be >= 0");
        return false;
    }
    if (*at_ms > DEADLINE_MAX_MS / unit_ms || *at_ms * unit_ms > DEADLINE_MAX_MS - base_ms) {
        reply_errorf(c->reply, "ERR invalid expire time in '%s' command", c->cmd->full_name);
        return false;
    }
    *at_ms = *at_ms * unit_ms + base_ms;
    return true;
}

struct deadline_change {
    int64_t at_ms;
    uint32_t conditions;
    uint64_t set, deleted;
    struct propagate_draft fields_set, fields_deleted; /* while propagate_on */
};

static enum field_result set_deadline(struct call *c, struct keyref *ref, struct slice field,
                                      struct deadline_change *change) REQUIRES(keyspace_lock)
{
    if (!hash_has(ref->entry, field)) {
        return FIELD_MISSING;
    }
    if (!expire_allowed(change->conditions, member_ttl_get(ref->entry, field), change->at_ms)) {
        return FIELD_NOT_MET;
    }
    if (expire_is_over(change->at_ms, c->now_ms)) {
        hash_delete(ref->entry, field);
        change->deleted++;
        if (unlikely(propagate_peers)) {
            TELL_PEERS(c, SLICE("HDEL"), ref->key.name, field);
        }
        if (unlikely(propagate_on)) {
            propagate_add(&change->fields_deleted, field);
        }
        return FIELD_DELETED;
    }
    if (!db_set_member_ttl(ref, field, change->at_ms)) {
        return FIELD_NOT_MET; /* longer than 4 GiB, or 2^32 others */
    }
    change->set++;
    if (unlikely(propagate_peers)) {
        char text[PROPAGATE_NUMBER_BYTES];
        TELL_PEERS(c, SLICE("PEXPIREMEMBERAT"), ref->key.name, field,
                   propagate_number(change->at_ms, text));
    }
    if (unlikely(propagate_on)) {
        propagate_add(&change->fields_set, field);
    }
    return FIELD_DONE;
}

/* Tells the logs which fields got the deadline, and which went at once. */
static void propagate_change(struct call *c, struct slice key, struct deadline_change *change)
    REQUIRES(keyspace_lock)
{
    struct propagate_draft d = {0};
    propagate_begin_unit();
    if (change->set > 0) {
        propagate_add(&d, SLICE("HPEXPIREAT"));
        propagate_add(&d, key);
        propagate_add_number(&d, change->at_ms);
        propagate_add(&d, SLICE("FIELDS"));
        propagate_add_number(&d, (int64_t)change->set);
        propagate_add_draft(&d, &change->fields_set);
        propagate_draft_instead(c, &d);
    }
    if (change->deleted > 0) {
        propagate_add(&d, SLICE("HDEL"));
        propagate_add(&d, key);
        propagate_add_draft(&d, &change->fields_deleted);
        propagate_draft_instead(c, &d);
    }
    propagate_end_unit();
}

static void announce(struct call *c, struct keyref *ref, struct deadline_change *change)
    REQUIRES(keyspace_lock)
{
    bool emptied = hash_len(ref->entry) == 0;
    if (emptied) {
        propagate_emptied(ref);
    }
    if (unlikely(propagate_on)) {
        propagate_change(c, ref->key.name, change);
    }
    if (emptied) {
        db_delete(ref, false);
    }
    if (change->set > 0) {
        call_changed(c, ref, EVENT_HASH, "hexpire");
        c->dirty += change->set - 1;
    }
    if (change->deleted > 0) {
        call_changed(c, ref, EVENT_HASH, "hdel");
        c->dirty += change->deleted - 1;
    }
    if (emptied) {
        event_notify(EVENT_GENERIC, "del", ref->db->id, ref->key.name);
    }
}

/* HEXPIRE and its kin: the fields go `base_ms` plus that many units after 1970, at once when that
 * is over. */
static void expire_fields(struct call *c, int64_t base_ms, int64_t unit_ms) REQUIRES(keyspace_lock)
{
    struct keyref ref;
    struct field_args fields;
    struct deadline_change change = {.conditions = expire_condition_of(c->argv[3])};
    if (!call_open_typed(c, 0, VALUE_HASH, &ref) ||
        !parse_deadline(c, base_ms, unit_ms, &change.at_ms) ||
        !parse_fields(c, change.conditions ? 4 : 3,
                      "ERR Parameter `numFields` should be greater than 0", &fields)) {
        return;
    }
    if (!ref.entry) {
        reply_for_all(c, &fields, FIELD_MISSING);
        return;
    }
    reply_array(c->reply, (uint64_t)fields.count);
    for (int i = 0; i < fields.count; i++) {
        reply_i64(c->reply, set_deadline(c, &ref, c->argv[fields.first + i], &change));
    }
    announce(c, &ref, &change);
}

WRITE_COMMAND(hexpire_command)
{
    expire_fields(c, c->now_ms, MS_PER_SECOND);
}

WRITE_COMMAND(hexpireat_command)
{
    expire_fields(c, 0, MS_PER_SECOND);
}

WRITE_COMMAND(hpexpire_command)
{
    expire_fields(c, c->now_ms, 1);
}

WRITE_COMMAND(hpexpireat_command)
{
    expire_fields(c, 0, 1);
}

/* ---- removing ---- */

#define BAD_NUMBER "ERR Number of fields must be a positive integer"

WRITE_COMMAND(hpersist_command)
{
    struct keyref ref;
    struct field_args fields;
    uint64_t dropped = 0;
    if (!call_open_typed(c, 0, VALUE_HASH, &ref) || !parse_fields(c, 2, BAD_NUMBER, &fields)) {
        return;
    }
    if (!ref.entry) {
        reply_for_all(c, &fields, FIELD_MISSING);
        return;
    }
    reply_array(c->reply, (uint64_t)fields.count);
    for (int i = 0; i < fields.count; i++) {
        struct slice field = c->argv[fields.first + i];
        bool had = db_drop_member_ttl(&ref, field);
        dropped += had;
        if (unlikely(propagate_peers) && had) {
            TELL_PEERS(c, SLICE("PERSIST"), ref.key.name, field);
        }
        reply_i64(c->reply, had                          ? FIELD_DONE
                            : hash_has(ref.entry, field) ? FIELD_NO_TTL
                                                         : FIELD_MISSING);
    }
    if (dropped > 0) {
        call_changed(c, &ref, EVENT_HASH, "hpersist");
        c->dirty += dropped - 1;
    }
}

/* ---- reading ---- */

/* Replies each field's deadline counted from `base_ms` in units of `unit_ms`, rounded up. */
static void reply_deadlines(struct call *c, int64_t base_ms, int64_t unit_ms)
    REQUIRES_SHARED(keyspace_lock)
{
    struct entry *e;
    struct field_args fields;
    if (!call_read_typed(c, 0, VALUE_HASH, &e) || !parse_fields(c, 2, BAD_NUMBER, &fields)) {
        return;
    }
    if (!e) {
        reply_for_all(c, &fields, FIELD_MISSING);
        return;
    }
    reply_array(c->reply, (uint64_t)fields.count);
    for (int i = 0; i < fields.count; i++) {
        struct slice field = c->argv[fields.first + i];
        int64_t at_ms = member_ttl_get(e, field);
        if (at_ms != ENTRY_NO_EXPIRY) {
            int64_t value_ms = at_ms - base_ms;
            reply_i64(c->reply, value_ms / unit_ms + (value_ms % unit_ms > 0));
        } else {
            reply_i64(c->reply, hash_has(e, field) ? FIELD_NO_TTL : FIELD_MISSING);
        }
    }
}

READ_COMMAND(httl_command)
{
    reply_deadlines(c, c->now_ms, MS_PER_SECOND);
}

READ_COMMAND(hpttl_command)
{
    reply_deadlines(c, c->now_ms, 1);
}

READ_COMMAND(hexpiretime_command)
{
    reply_deadlines(c, 0, MS_PER_SECOND);
}

READ_COMMAND(hpexpiretime_command)
{
    reply_deadlines(c, 0, 1);
}

#define NAMED_FIELDS "FIELDS numfields field [field ...]"
#define OF_FIELDS                                                                                  \
    .categories = CATEGORY_HASH, .group = "hash", .since = "7.4.0",                                \
    .complexity = "O(N), N being the fields named"
#define SETS_DEADLINES                                                                             \
    OF_FIELDS, .arity = -6, .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,                           \
               .keys = "i1/r0,1,0/RW+UPDATE", .members = {-1, -1}
#define READS_DEADLINES                                                                            \
    OF_FIELDS, .arity = -5, .flags = CMD_READONLY | CMD_FAST, .keys = "i1/r0,1,0/RO+ACCESS",       \
               .args = "key " NAMED_FIELDS, .members = {4, 1}

const struct command_row hash_expire_commands[] = {
    {.name = "hexpire",
     .run = hexpire_command,
     SETS_DEADLINES,
     .summary = "Lets fields of a hash expire in so many seconds.",
     .args = "key seconds [NX|XX|GT|LT] " NAMED_FIELDS},
    {.name = "hexpireat",
     .run = hexpireat_command,
     SETS_DEADLINES,
     .summary = "Lets fields of a hash expire at a Unix time in seconds.",
     .args = "key unix-time-seconds [NX|XX|GT|LT] " NAMED_FIELDS},
    {.name = "hexpiretime",
     .run = hexpiretime_command,
     READS_DEADLINES,
     .summary = "Returns the Unix times in seconds at which fields of a hash expire."},
    {.name = "hpersist",
     .run = hpersist_command,
     OF_FIELDS,
     .arity = -5,
     .flags = CMD_WRITE | CMD_FAST,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .summary = "Removes the deadlines of fields of a hash.",
     .members = {4, 1},
     .args = "key " NAMED_FIELDS},
    {.name = "hpexpire",
     .run = hpexpire_command,
     SETS_DEADLINES,
     .summary = "Lets fields of a hash expire in so many milliseconds.",
     .args = "key milliseconds [NX|XX|GT|LT] " NAMED_FIELDS},
    {.name = "hpexpireat",
     .run = hpexpireat_command,
     SETS_DEADLINES,
     .summary = "Lets fields of a hash expire at a Unix time in milliseconds.",
     .args = "key unix-time-milliseconds [NX|XX|GT|LT] " NAMED_FIELDS},
    {.name = "hpexpiretime",
     .run = hpexpiretime_command,
     READS_DEADLINES,
     .summary = "Returns the Unix times in milliseconds at which fields of a hash expire."},
    {.name = "hpttl",
     .run = hpttl_command,
     READS_DEADLINES,
     .summary = "Returns the milliseconds that fields of a hash have left."},
    {.name = "httl",
     .run = httl_command,
     READS_DEADLINES,
     .summary = "Returns the seconds that fields of a hash have left."},
    {.name = NULL},
};
