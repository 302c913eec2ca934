/* DUMP and RESTORE: single values as payloads.
 *
 *   type number | value as in RDB files | u16 version | u64 CRC-64 of all before
 *
 * Numbers little-endian. The version is that of the RDB format: 10, which Redis 7.0 takes. */
#include "persist/persist.h"

#include "base/crc.h"
#include "engine/call.h"
#include "engine/propagate.h"
#include "keyspace/access.h"
#include "keyspace/expire.h"
#include "persist/payload.h"
#include "value/job.h"
#include "value/module.h"

READ_COMMAND(dump_command)
{
    struct entry *e = call_read(c, 0);
    if (!e) {
        reply_null(c->reply);
        return;
    }
    if (call_read_alone(c, e)) {
        return;
    }
    struct buf payload = {0};
    module_value_db = c->db->id;
    payload_write(&payload, e);
    module_value_db = -1;
    reply_bulk(c->reply, buf_slice(&payload));
    buf_deinit(&payload);
}

struct restore_options {
    bool replace, absolute;
    int64_t ttl_ms, idle_s, frequency; /* the last two -1 when not given */
};

/* Argument `i` as a number within 0..max, which has an error of its own for others. */
static bool restore_number(struct call *c, int i, int64_t max, const char *error, int64_t *value)
{
    int64_t number;
    if (!call_arg_i64(c, i, &number)) {
        return false;
    }
    if (number < 0 || number > max) {
        reply_error(c->reply, error);
        return false;
    }
    *value = number;
    return true;
}

static bool restore_option(struct call *c, int *at, struct restore_options *o)
{
    bool more = *at + 1 < c->argc;
    if (call_arg_is(c, *at, "replace")) {
        o->replace = true;
    } else if (call_arg_is(c, *at, "absttl")) {
        o->absolute = true;
    } else if (call_arg_is(c, *at, "idletime") && more && o->frequency < 0) {
        return restore_number(c, ++*at, INT64_MAX, "ERR Invalid IDLETIME value, must be >= 0",
                              &o->idle_s);
    } else if (call_arg_is(c, *at, "freq") && more && o->idle_s < 0) {
        return restore_number(c, ++*at, 255, "ERR Invalid FREQ value, must be >= 0 and <= 255",
                              &o->frequency);
    } else {
        reply_syntax_error(c->reply);
        return false;
    }
    return true;
}

static bool restore_parse(struct call *c, struct restore_options *o)
{
    *o = (struct restore_options){.idle_s = -1, .frequency = -1};
    for (int i = 4; i < c->argc; i++) {
        if (!restore_option(c, &i, o)) {
            return false;
        }
    }
    return true;
}

/* The time of the key's end, or ENTRY_NO_EXPIRY; false with the error replied. */
static bool restore_expiry(struct call *c, const struct restore_options *o, int64_t *expiry_ms)
{
    int64_t ttl_ms;
    if (!call_arg_i64(c, 2, &ttl_ms)) {
        return false;
    }
    *expiry_ms = ENTRY_NO_EXPIRY;
    if (ttl_ms < 0 || (!o->absolute && ttl_ms > INT64_MAX - c->now_ms)) {
        reply_error(c->reply, "ERR Invalid TTL value, must be >= 0");
        return false;
    }
    if (ttl_ms > 0) {
        *expiry_ms = o->absolute ? ttl_ms : c->now_ms + ttl_ms;
    }
    return true;
}

/* Sets what RESTORE tells of the last access; after db_put, which starts the clock anew. */
static void restore_access(struct call *c, const struct restore_options *o, struct entry *e)
{
    if (o->frequency >= 0 && access_is_lfu()) {
        access_set_frequency(e, (unsigned)o->frequency, c->now_ms);
    } else if (o->idle_s >= 0 && !access_is_lfu()) {
        int64_t most_s = INT64_MAX / 1000;
        access_set_idle_ms(e, (o->idle_s < most_s ? o->idle_s : most_s) * 1000, c->now_ms);
    } else {
        entry_set_clock(e, access_initial(c->now_ms));
    }
}

/* Words of a RESTORE that is told: six, and IDLETIME or FREQ with its number. */
#define RESTORE_TOLD_MAX 8

/* A job is another one's now, and peers are told no conditions, nor of clocks that are each node's
 * own. */
static void restore_propagate(struct call *c, const struct keyref *ref,
                              const struct restore_options *o, int64_t expiry_ms)
    REQUIRES(keyspace_lock);
static void restore_propagate(struct call *c, const struct keyref *ref,
                              const struct restore_options *o, int64_t expiry_ms)
{
    bool expires = expiry_ms != ENTRY_NO_EXPIRY, is_job = entry_type(ref->entry) == VALUE_CRON;
    char text[PROPAGATE_NUMBER_BYTES], clock_text[PROPAGATE_NUMBER_BYTES];
    struct buf payload = {0};
    if (is_job) {
        payload_write(&payload, ref->entry);
    }
    struct slice words[RESTORE_TOLD_MAX] = {SLICE("RESTORE"),
                                            ref->key.name,
                                            propagate_number(expires ? expiry_ms : 0, text),
                                            is_job ? buf_slice(&payload) : c->argv[3],
                                            SLICE("REPLACE"),
                                            SLICE("ABSTTL")};
    int count = 6;
    if (propagate_peers) {
        propagate_tell_peers(c, count, words);
    }
    if (o->idle_s >= 0 || o->frequency >= 0) {
        words[count++] = o->idle_s >= 0 ? SLICE("IDLETIME") : SLICE("FREQ");
        words[count++] = propagate_number(o->idle_s >= 0 ? o->idle_s : o->frequency, clock_text);
    }
    if (expires || is_job) {
        propagate_instead(c, count, words);
    }
    buf_deinit(&payload);
}

/* Puts the entry there; one whose time has come already just removes what was there. */
static void restore_put(struct call *c, struct keyref *ref, const struct restore_options *o,
                        struct entry *e_take, int64_t expiry_ms) REQUIRES(keyspace_lock);
static void restore_put(struct call *c, struct keyref *ref, const struct restore_options *o,
                        struct entry *e_take, int64_t expiry_ms)
{
    if (expire_is_over(expiry_ms, c->now_ms)) {
        entry_destroy(&e_take);
        if (ref->entry) {
            db_delete(ref, false);
            if (unlikely(propagate_on)) {
                PROPAGATE(c, SLICE("DEL"), ref->key.name);
            }
            call_changed(c, ref, EVENT_GENERIC, "del");
        }
        return;
    }
    if (expiry_ms != ENTRY_NO_EXPIRY) {
        e_take = entry_with_expiry(e_take, expiry_ms);
    }
    if (ref->entry) { /* Redis deletes it first */
        event_key_goes(GOING_DELETED, ref->db, ref->key.name);
    }
    db_put(ref, e_take);
    restore_access(c, o, ref->entry);
    if (unlikely(propagate_on)) {
        restore_propagate(c, ref, o, expiry_ms);
    }
    call_changed(c, ref, EVENT_GENERIC, "restore");
}

/* A job that a client brings is his own: whatever the payload says, it has no other rights. */
static void own_job(const struct call *c, struct entry **e)
{
    if (entry_type(*e) != VALUE_CRON || c->session->internal) {
        return;
    }
    struct entry *theirs = *e;
    struct job_terms terms = job_of(theirs)->terms;
    terms.user = slice_cstr(c->session->user);
    *e = job_create(entry_key(theirs), &terms);
    entry_destroy(&theirs);
}

WRITE_COMMAND(restore_command)
{
    struct restore_options o;
    struct keyref ref;
    struct entry *e;
    int64_t expiry_ms;
    if (!restore_parse(c, &o)) {
        return;
    }
    call_open(c, 0, &ref);
    if (ref.entry && !o.replace) {
        reply_error(c->reply, "BUSYKEY Target key name already exists.");
        return;
    }
    if (!restore_expiry(c, &o, &expiry_ms)) {
        return;
    }
    module_value_db = c->db->id;
    enum payload_read outcome = payload_read(c->argv[3], call_key(c, 0)->name, &e);
    module_value_db = -1;
    switch (outcome) {
    case PAYLOAD_FOREIGN:
        reply_error(c->reply, "ERR DUMP payload version or checksum are wrong");
        return;
    case PAYLOAD_DAMAGED:
        reply_error(c->reply, "ERR Bad data format");
        return;
    case PAYLOAD_FINE:
        own_job(c, &e);
        restore_put(c, &ref, &o, e, expiry_ms);
        reply_ok(c->reply);
        return;
    }
}

#define RESTORE_ARGS                                                                               \
    "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]"

const struct command_row dump_commands[] = {
    {.name = "dump",
     .run = dump_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output",
     .group = "generic",
     .since = "2.6.0",
     .summary = "Gives a value as a payload that RESTORE takes.",
     .complexity = "O(N) for a value of N bytes",
     .args = "key"},
    {.name = "restore",
     .run = restore_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_SLOW,
     .categories = CATEGORY_KEYSPACE | CATEGORY_DANGEROUS,
     .keys = "i1/r0,1,0/OW+UPDATE",
     .group = "generic",
     .since = "2.6.0",
     .summary = "Makes a key of a payload that DUMP gave.",
     .complexity = "O(N) for a payload of N bytes; O(N*log(N)) for N members of a sorted set",
     .args = RESTORE_ARGS,
     .history = "3.0.0:Takes REPLACE.|5.0.0:Takes ABSTTL, IDLETIME and FREQ."},
    {.name = "restore-asking",
     .run = restore_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_ASKING | CMD_SLOW,
     .categories = CATEGORY_KEYSPACE | CATEGORY_DANGEROUS,
     .keys = "i1/r0,1,0/OW+UPDATE",
     .group = "server",
     .since = "3.0.0",
     .summary = "RESTORE as cluster nodes send it to one another.",
     .complexity = "O(N) for a payload of N bytes; O(N*log(N)) for N members of a sorted set",
     .args = RESTORE_ARGS,
     .history = "3.0.0:Takes REPLACE.|5.0.0:Takes ABSTTL, IDLETIME and FREQ."},
    {.name = NULL},
};
