/* SET with its options, the older commands that it replaces, and the reads that change something:
 * GETEX, GETDEL. */
#include "commands/commands.h"
#include "commands/reads_priv.h"
#include "commands/expire_priv.h"
#include "commands/strings_priv.h"

#include "engine/propagate.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"

enum set_option {
    SET_NX = 1 << 0,
    SET_XX = 1 << 1,
    SET_GET = 1 << 2,
    SET_EX = 1 << 3,
    SET_PX = 1 << 4,
    SET_EXAT = 1 << 5,
    SET_PXAT = 1 << 6,
    SET_KEEPTTL = 1 << 7,
    SET_PERSIST = 1 << 8,
};
/* These take a time as the next argument. */
#define SET_TIMES (SET_EX | SET_PX | SET_EXAT | SET_PXAT)
#define SET_SECONDS (SET_EX | SET_EXAT)
#define SET_RELATIVE (SET_EX | SET_PX)

#define SET_ALLOWED (SET_NX | SET_XX | SET_GET | SET_KEEPTTL | SET_TIMES)
#define GETEX_ALLOWED (SET_PERSIST | SET_TIMES)

struct set_options {
    uint32_t flags;
    int time_arg; /* index of the time's argument; 0 without one */
};

/* An option repeated is no fault; the last time counts. */
static const struct set_option_row {
    const char *word;
    uint32_t flag;
    uint32_t excludes;
} set_option_rows[] = {
    {"ex", SET_EX, SET_KEEPTTL | SET_PERSIST | (SET_TIMES & ~SET_EX)},
    {"px", SET_PX, SET_KEEPTTL | SET_PERSIST | (SET_TIMES & ~SET_PX)},
    {"nx", SET_NX, SET_XX},
    {"xx", SET_XX, SET_NX},
    {"get", SET_GET, 0},
    {"keepttl", SET_KEEPTTL, SET_PERSIST | SET_TIMES},
    {"exat", SET_EXAT, SET_KEEPTTL | SET_PERSIST | (SET_TIMES & ~SET_EXAT)},
    {"pxat", SET_PXAT, SET_KEEPTTL | SET_PERSIST | (SET_TIMES & ~SET_PXAT)},
    {"persist", SET_PERSIST, SET_KEEPTTL | SET_TIMES},
};

static const struct set_option_row *set_option_find(struct slice word)
{
    for (size_t i = 0; i < sizeof(set_option_rows) / sizeof(set_option_rows[0]); i++) {
        if (slice_equal_nocase(word, set_option_rows[i].word)) {
            return &set_option_rows[i];
        }
    }
    return NULL;
}

/* Reads the options from argument `first` on; false with a syntax error replied. */
static bool parse_options(struct call *c, int first, uint32_t allowed, struct set_options *options)
{
    *options = (struct set_options){0, 0};
    for (int i = first; i < c->argc; i++) {
        const struct set_option_row *row = set_option_find(c->argv[i]);
        if (!row || !(row->flag & allowed) || (options->flags & row->excludes) ||
            ((row->flag & SET_TIMES) && i + 1 == c->argc)) {
            reply_syntax_error(c->reply);
            return false;
        }
        options->flags |= row->flag;
        if (row->flag & SET_TIMES) {
            options->time_arg = ++i;
        }
    }
    return true;
}

/* The absolute time that the options name; false with the error replied when it is no time in the
 * range. */
static bool parse_expiry(struct call *c, const struct set_options *options, int64_t *expiry_ms)
{
    if (!call_arg_i64(c, options->time_arg, expiry_ms)) {
        return false;
    }
    if (*expiry_ms <= 0 ||
        ((options->flags & SET_SECONDS) && __builtin_mul_overflow(*expiry_ms, 1000, expiry_ms)) ||
        ((options->flags & SET_RELATIVE) &&
         __builtin_add_overflow(*expiry_ms, c->now_ms, expiry_ms))) {
        reply_errorf(c->reply, "ERR invalid expire time in '%s' command", c->cmd->full_name);
        return false;
    }
    return true;
}

static void propagate_timed(struct call *c, int arg, int64_t expiry_ms) REQUIRES(keyspace_lock)
{
    if (unlikely(propagate_on)) {
        char text[PROPAGATE_NUMBER_BYTES];
        PROPAGATE(c, SLICE("SET"), call_key(c, 0)->name, c->argv[arg], SLICE("PXAT"),
                  propagate_number(expiry_ms, text));
    }
}

/* What was there before is for the caller alone: the logs get a plain SET. */
static void propagate_without_get(struct call *c, int arg, uint32_t flags) REQUIRES(keyspace_lock)
{
    struct slice words[5] = {SLICE("SET"), call_key(c, 0)->name, c->argv[arg]};
    int count = 3;
    if (flags & (SET_NX | SET_XX)) {
        words[count++] = flags & SET_NX ? SLICE("NX") : SLICE("XX");
    }
    if (flags & SET_KEEPTTL) {
        words[count++] = SLICE("KEEPTTL");
    }
    propagate_instead(c, count, words);
}

/* Peers get neither conditions nor KEEPTTL: what was set, with its deadline. */
static void tell_peers_value(struct call *c, int arg, int64_t expiry_ms) REQUIRES(keyspace_lock)
{
    char text[PROPAGATE_NUMBER_BYTES];
    const struct slice words[] = {SLICE("SET"), call_key(c, 0)->name, c->argv[arg], SLICE("PXAT"),
                                  propagate_number(expiry_ms, text)};
    propagate_tell_peers(c, expiry_ms == ENTRY_NO_EXPIRY ? 3 : 5, words);
}

/* SET, SETEX, PSETEX, SETNX and GETSET after their options: argument `arg` becomes the value of key
 * 0. False when it did not: *failed tells an error (replied) from a condition that does not hold.
 * With SET_GET the old value is replied. */
static bool set_generic(struct call *c, const struct set_options *options, int arg, bool *failed)
    REQUIRES(keyspace_lock)
{
    struct keyref ref;
    int64_t expiry_ms = ENTRY_NO_EXPIRY;
    *failed = true;
    if (options->time_arg && !parse_expiry(c, options, &expiry_ms)) {
        return false;
    }
    if (options->flags & SET_GET) {
        if (!call_open_typed(c, 0, VALUE_STRING, &ref)) {
            return false;
        }
        reads_count(&ref);
        strings_reply_value(c, ref.entry);
    } else {
        call_open(c, 0, &ref);
    }
    *failed = false;
    if (options->flags & (ref.entry ? SET_NX : SET_XX)) {
        return false;
    }
    if (options->flags & SET_KEEPTTL) {
        expiry_ms = strings_expiry_ms(&ref);
    }
    strings_store(c, &ref, arg, expiry_ms);
    call_changed(c, &ref, EVENT_STRING, "set");
    if (unlikely(propagate_peers)) {
        tell_peers_value(c, arg, expiry_ms);
    }
    if (options->time_arg) {
        event_notify(EVENT_GENERIC, "expire", ref.db->id, ref.key.name);
        propagate_timed(c, arg, expiry_ms);
    } else if (options->flags & SET_GET && unlikely(propagate_on)) {
        propagate_without_get(c, arg, options->flags);
    }
    return true;
}

static void set_with_options(struct call *c) REQUIRES(keyspace_lock)
{
    struct set_options options;
    bool failed;
    if (!parse_options(c, 3, SET_ALLOWED, &options)) {
        return;
    }
    bool stored = set_generic(c, &options, 2, &failed);
    if (failed || (options.flags & SET_GET)) {
        return;
    }
    if (stored) {
        reply_ok(c->reply);
    } else {
        reply_null(c->reply);
    }
}

WRITE_COMMAND(set_command)
{
    if (unlikely(c->argc > 3)) {
        set_with_options(c);
        return;
    }
    struct keyref ref;
    call_open(c, 0, &ref);
    strings_store(c, &ref, 2, ENTRY_NO_EXPIRY);
    call_changed(c, &ref, EVENT_STRING, "set");
    reply_ok(c->reply);
}

static void set_for_time(struct call *c, uint32_t unit) REQUIRES(keyspace_lock)
{
    const struct set_options options = {unit, 2};
    bool failed;
    if (set_generic(c, &options, 3, &failed)) {
        reply_ok(c->reply);
    }
}

WRITE_COMMAND(setex_command)
{
    set_for_time(c, SET_EX);
}

WRITE_COMMAND(psetex_command)
{
    set_for_time(c, SET_PX);
}

WRITE_COMMAND(setnx_command)
{
    const struct set_options options = {SET_NX, 0};
    bool failed;
    bool stored = set_generic(c, &options, 2, &failed);
    assert(!failed);
    reply_i64(c->reply, stored);
}

WRITE_COMMAND(getset_command)
{
    const struct set_options options = {SET_GET, 0};
    bool failed;
    (void)set_generic(c, &options, 2, &failed);
}

static void delete_key(struct call *c, struct keyref *ref) REQUIRES(keyspace_lock)
{
    bool deleted = db_delete(ref, reclaim_lazy_user_del());
    assert(deleted);
    (void)deleted;
    expire_propagate_deletion(c, reclaim_lazy_user_del());
    call_changed(c, ref, EVENT_GENERIC, "del");
}

WRITE_COMMAND(getdel_command)
{
    struct keyref ref;
    if (!call_open_typed(c, 0, VALUE_STRING, &ref)) {
        return;
    }
    reads_count(&ref);
    strings_reply_value(c, ref.entry);
    if (ref.entry) {
        delete_key(c, &ref);
    }
}

WRITE_COMMAND(getex_command)
{
    struct set_options options;
    struct keyref ref;
    int64_t expiry_ms = ENTRY_NO_EXPIRY;
    if (!parse_options(c, 2, GETEX_ALLOWED, &options) ||
        !call_open_typed(c, 0, VALUE_STRING, &ref)) {
        return;
    }
    reads_count(&ref);
    if (!ref.entry) {
        reply_null(c->reply);
        return;
    }
    if (options.time_arg && !parse_expiry(c, &options, &expiry_ms)) {
        return;
    }
    strings_reply_value(c, ref.entry);
    if (options.time_arg && expire_is_over(expiry_ms, c->now_ms)) {
        delete_key(c, &ref);
    } else if (options.time_arg) {
        db_set_expiry(&ref, expiry_ms);
        expire_propagate_key(c, expiry_ms);
        call_changed(c, &ref, EVENT_GENERIC, "expire");
    } else if ((options.flags & SET_PERSIST) && strings_expiry_ms(&ref) != ENTRY_NO_EXPIRY) {
        db_set_expiry(&ref, ENTRY_NO_EXPIRY);
        if (unlikely(propagate_on)) {
            PROPAGATE(c, SLICE("PERSIST"), ref.key.name);
        }
        call_changed(c, &ref, EVENT_GENERIC, "persist");
    }
}

const struct command_row string_set_commands[] = {
    {.name = "getdel",
     .run = getdel_command,
     .arity = 2,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RW+ACCESS+DELETE",
     .group = "string",
     .since = "6.2.0",
     .summary = "Returns the string at a key and deletes the key.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "getex",
     .run = getex_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE",
     .group = "string",
     .since = "6.2.0",
     .summary = "Returns the string at a key and sets or removes its expiry.",
     .complexity = "O(1)",
     .args = "key [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT "
             "unix-time-milliseconds|PERSIST]"},
    {.name = "getset",
     .run = getset_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE",
     .group = "string",
     .since = "1.0.0",
     .summary = "Sets a string and returns the one before.",
     .complexity = "O(1)",
     .args = "key value",
     .deprecated_since = "6.2.0",
     .replaced_by = "SET with the option GET"},
    {.name = "psetex",
     .run = psetex_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/OW+UPDATE",
     .group = "string",
     .since = "2.6.0",
     .summary = "Sets a string with an expiry in milliseconds.",
     .complexity = "O(1)",
     .args = "key milliseconds value",
     .deprecated_since = "2.6.12",
     .replaced_by = "SET with the option PX"},
    {.name = "set",
     .run = set_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE+VARIABLE_FLAGS",
     .group = "string",
     .since = "1.0.0",
     .summary = "Sets a string, whatever was there; options make it conditional, give it an "
                "expiry, or return the old one.",
     .complexity = "O(1)",
     .args = "key value [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT "
             "unix-time-milliseconds|KEEPTTL]",
     .history = "2.6.12:Takes EX, PX, NX and XX.|6.0.0:Takes KEEPTTL.|6.2.0:Takes GET, EXAT and "
                "PXAT.|7.0.0:NX and GET go together."},
    {.name = "setex",
     .run = setex_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/OW+UPDATE",
     .group = "string",
     .since = "2.0.0",
     .summary = "Sets a string with an expiry in seconds.",
     .complexity = "O(1)",
     .args = "key seconds value",
     .deprecated_since = "2.6.12",
     .replaced_by = "SET with the option EX"},
    {.name = "setnx",
     .run = setnx_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/OW+INSERT",
     .group = "string",
     .since = "1.0.0",
     .summary = "Sets a string unless the key exists.",
     .complexity = "O(1)",
     .args = "key value",
     .deprecated_since = "2.6.12",
     .replaced_by = "SET with the option NX"},
    {.name = NULL},
};
