/* Expiry as commands: setting, removing and reading it. TTL, PTTL and PERSIST take a member, as
 * KeyDB's do: what else is about members is in members_expire.c and hashes_expire.c. */
#include "commands/commands.h"
#include "commands/expire_priv.h"
#include "commands/reads_priv.h"

#include "engine/propagate.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "value/member_ttl.h"

static const struct {
    const char *word;
    uint32_t flag;
} expire_conditions[] = {
    {"nx", EXPIRE_NX},
    {"xx", EXPIRE_XX},
    {"gt", EXPIRE_GT},
    {"lt", EXPIRE_LT},
};
#define EXPIRE_CONDITION_COUNT (sizeof(expire_conditions) / sizeof(expire_conditions[0]))

uint32_t expire_condition_of(struct slice word)
{
    for (size_t i = 0; i < EXPIRE_CONDITION_COUNT; i++) {
        if (slice_equal_nocase(word, expire_conditions[i].word)) {
            return expire_conditions[i].flag;
        }
    }
    return 0;
}

/* Reads the conditions after the time; false with an error replied. */
static bool expire_parse_conditions(struct call *c, uint32_t *conditions)
{
    *conditions = 0;
    for (int i = 3; i < c->argc; i++) {
        uint32_t flag = expire_condition_of(c->argv[i]);
        if (!flag) {
            struct slice word = c->argv[i];
            reply_errorf(c->reply, "ERR Unsupported option %.*s",
                         word.len < 128 ? (int)word.len : 128, word.ptr);
            return false;
        }
        *conditions |= flag;
    }
    if ((*conditions & EXPIRE_NX) && (*conditions & ~(uint32_t)EXPIRE_NX)) {
        reply_error(c->reply,
                    "ERR NX and XX, GT or LT options at the same time are not compatible");
        return false;
    }
    if ((*conditions & EXPIRE_GT) && (*conditions & EXPIRE_LT)) {
        reply_error(c->reply, "ERR GT and LT options at the same time are not compatible");
        return false;
    }
    return true;
}

bool expire_parse_time(struct call *c, int arg, int64_t base_ms, int64_t unit_ms, int64_t *at_ms)
{
    if (!call_arg_i64(c, arg, at_ms)) {
        return false;
    }
    if (__builtin_mul_overflow(*at_ms, unit_ms, at_ms) ||
        __builtin_add_overflow(*at_ms, base_ms, at_ms)) {
        reply_errorf(c->reply, "ERR invalid expire time in '%s' command", c->cmd->full_name);
        return false;
    }
    *at_ms += *at_ms == ENTRY_NO_EXPIRY; /* the first millisecond of all stands for "never" */
    return true;
}

bool expire_allowed(uint32_t conditions, int64_t current_ms, int64_t at_ms)
{
    bool has = current_ms != ENTRY_NO_EXPIRY;
    return !((conditions & EXPIRE_NX) && has) && !((conditions & EXPIRE_XX) && !has) &&
           !((conditions & EXPIRE_GT) && (!has || at_ms <= current_ms)) &&
           !((conditions & EXPIRE_LT) && has && at_ms >= current_ms);
}

void expire_propagate_key(struct call *c, int64_t at_ms)
{
    if (unlikely(propagate_on)) {
        char text[PROPAGATE_NUMBER_BYTES];
        PROPAGATE(c, SLICE("PEXPIREAT"), call_key(c, 0)->name, propagate_number(at_ms, text));
    }
}

void expire_propagate_deletion(struct call *c, bool lazily)
{
    if (unlikely(propagate_on)) {
        PROPAGATE(c, lazily ? SLICE("UNLINK") : SLICE("DEL"), call_key(c, 0)->name);
    }
}

/* EXPIRE and its kin: the key expires `base_ms` plus that many units after 1970, at once when that
 * is over. */
static void expire_generic(struct call *c, int64_t base_ms, int64_t unit_ms) REQUIRES(keyspace_lock)
{
    struct keyref ref;
    uint32_t conditions;
    int64_t at_ms;
    if (!expire_parse_conditions(c, &conditions) ||
        !expire_parse_time(c, 2, base_ms, unit_ms, &at_ms)) {
        return;
    }
    call_open(c, 0, &ref);
    if (!ref.entry || !expire_allowed(conditions, entry_expiry_ms(ref.entry), at_ms)) {
        reply_i64(c->reply, 0);
        return;
    }
    if (!expire_is_over(at_ms, c->now_ms)) {
        db_set_expiry(&ref, at_ms);
        expire_propagate_key(c, at_ms);
        call_changed(c, &ref, EVENT_GENERIC, "expire");
    } else if (db_delete(&ref, reclaim_lazy_expire())) {
        expire_propagate_deletion(c, reclaim_lazy_expire());
        call_changed(c, &ref, EVENT_GENERIC, "del");
    }
    reply_i64(c->reply, 1);
}

WRITE_COMMAND(expire_command)
{
    expire_generic(c, c->now_ms, MS_PER_SECOND);
}

WRITE_COMMAND(expireat_command)
{
    expire_generic(c, 0, MS_PER_SECOND);
}

WRITE_COMMAND(pexpire_command)
{
    expire_generic(c, c->now_ms, 1);
}

WRITE_COMMAND(pexpireat_command)
{
    expire_generic(c, 0, 1);
}

/* True when there is no argument behind the member; the error is replied else. */
static bool expire_arguments_fit(struct call *c)
{
    if (c->argc > 3) {
        reply_error(c->reply, "ERR Invalid arguments");
    }
    return c->argc <= 3;
}

WRITE_COMMAND(persist_command)
{
    struct keyref ref;
    bool changed = false;
    if (!expire_arguments_fit(c)) {
        return;
    }
    call_open(c, 0, &ref);
    if (ref.entry && c->argc == 3) {
        changed = db_drop_member_ttl(&ref, c->argv[2]);
    } else if (ref.entry && entry_expiry_ms(ref.entry) != ENTRY_NO_EXPIRY) {
        db_set_expiry(&ref, ENTRY_NO_EXPIRY);
        changed = true;
    }
    if (changed) {
        call_changed(c, &ref, EVENT_GENERIC, "persist");
    }
    reply_i64(c->reply, changed);
}

/* ---- Reading it ---- */

/* Replies key 0's expiry, or that of its member in argument 2, counted from `base_ms` in units of
 * `unit_ms`, rounded; -1 without one (and, as KeyDB has it, without such a member), -2 without the
 * key. */
static void expiry_reply(struct call *c, int64_t base_ms, int64_t unit_ms)
    REQUIRES_SHARED(keyspace_lock)
{
    if (!expire_arguments_fit(c)) {
        return;
    }
    const struct entry *e = reads_look(c, 0);
    if (!e) {
        reply_i64(c->reply, -2);
        return;
    }
    int64_t at_ms = c->argc == 3 ? member_ttl_get(e, c->argv[2]) : entry_expiry_ms(e);
    if (at_ms == ENTRY_NO_EXPIRY) {
        reply_i64(c->reply, -1);
        return;
    }
    int64_t value_ms = at_ms > base_ms ? at_ms - base_ms : 0;
    reply_i64(c->reply, value_ms / unit_ms + (value_ms % unit_ms >= (unit_ms + 1) / 2));
}

READ_COMMAND(ttl_command)
{
    expiry_reply(c, c->now_ms, MS_PER_SECOND);
}

READ_COMMAND(pttl_command)
{
    expiry_reply(c, c->now_ms, 1);
}

READ_COMMAND(expiretime_command)
{
    expiry_reply(c, 0, MS_PER_SECOND);
}

READ_COMMAND(pexpiretime_command)
{
    expiry_reply(c, 0, 1);
}

const struct command_row key_expire_commands[] = {
    {.name = "expire",
     .run = expire_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "generic",
     .since = "1.0.0",
     .summary = "Lets a key expire in so many seconds.",
     .complexity = "O(1)",
     .args = "key seconds [NX|XX|GT|LT]",
     .history = "7.0.0:Takes the conditions NX, XX, GT and LT."},
    {.name = "expireat",
     .run = expireat_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "generic",
     .since = "1.2.0",
     .summary = "Lets a key expire at a Unix time in seconds.",
     .complexity = "O(1)",
     .args = "key unix-time-seconds [NX|XX|GT|LT]",
     .history = "7.0.0:Takes the conditions NX, XX, GT and LT."},
    {.name = "expiretime",
     .run = expiretime_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "generic",
     .since = "7.0.0",
     .summary = "Returns the Unix time in seconds at which a key expires.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "persist",
     .run = persist_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "generic",
     .since = "2.2.0",
     .summary = "Removes the expiry of a key, or the deadline of a member.",
     .complexity = "O(1)",
     .args = "key [member]"},
    {.name = "pexpire",
     .run = pexpire_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "generic",
     .since = "2.6.0",
     .summary = "Lets a key expire in so many milliseconds.",
     .complexity = "O(1)",
     .args = "key milliseconds [NX|XX|GT|LT]",
     .history = "7.0.0:Takes the conditions NX, XX, GT and LT."},
    {.name = "pexpireat",
     .run = pexpireat_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "generic",
     .since = "2.6.0",
     .summary = "Lets a key expire at a Unix time in milliseconds.",
     .complexity = "O(1)",
     .args = "key unix-time-milliseconds [NX|XX|GT|LT]",
     .history = "7.0.0:Takes the conditions NX, XX, GT and LT."},
    {.name = "pexpiretime",
     .run = pexpiretime_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "generic",
     .since = "7.0.0",
     .summary = "Returns the Unix time in milliseconds at which a key expires.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "pttl",
     .run = pttl_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output",
     .group = "generic",
     .since = "2.6.0",
     .summary = "Returns the milliseconds that a key, or a member of it, has left.",
     .complexity = "O(1)",
     .args = "key [member]",
     .history = "2.8.0:Replies -2 for a missing key."},
    {.name = "ttl",
     .run = ttl_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output",
     .group = "generic",
     .since = "1.0.0",
     .summary = "Returns the seconds that a key, or a member of it, has left.",
     .complexity = "O(1)",
     .args = "key [member]",
     .history = "2.8.0:Replies -2 for a missing key."},
    {.name = NULL},
};
