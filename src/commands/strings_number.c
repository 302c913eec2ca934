/* Strings as numbers: INCR and its kin. */
#include "commands/commands.h"
#include "commands/strings_priv.h"

#include "base/num.h"
#include "engine/propagate.h"
#include "value/string.h"

#include <math.h>

/* Adds `delta` to the integer at key 0 and replies the sum. */
static void add_integer(struct call *c, int64_t delta) REQUIRES(keyspace_lock)
{
    struct keyref ref;
    int64_t value = 0;
    if (!call_open_typed(c, 0, VALUE_STRING, &ref)) {
        return;
    }
    if (ref.entry && !string_get_integer(ref.entry, &value)) {
        reply_not_integer(c->reply);
        return;
    }
    if (__builtin_add_overflow(value, delta, &value)) {
        reply_error(c->reply, "ERR increment or decrement would overflow");
        return;
    }
    if (ref.entry && entry_encoding(ref.entry) == ENCODING_INTEGER) {
        entry_set_integer(ref.entry, value);
    } else {
        db_put(&ref, entry_create_integer(ref.key.name, value, strings_expiry_ms(&ref)));
    }
    if (unlikely(propagate_peers)) {
        char text[PROPAGATE_NUMBER_BYTES];
        TELL_PEERS(c, SLICE("INCRBY"), ref.key.name, propagate_number(delta, text));
    }
    call_changed(c, &ref, EVENT_STRING, "incrby");
    reply_i64(c->reply, value);
}

WRITE_COMMAND(incr_command)
{
    add_integer(c, 1);
}

WRITE_COMMAND(decr_command)
{
    add_integer(c, -1);
}

WRITE_COMMAND(incrby_command)
{
    int64_t delta;
    if (call_arg_i64(c, 2, &delta)) {
        add_integer(c, delta);
    }
}

WRITE_COMMAND(decrby_command)
{
    int64_t delta;
    if (!call_arg_i64(c, 2, &delta)) {
        return;
    }
    if (delta == INT64_MIN) {
        reply_error(c->reply, "ERR decrement would overflow");
        return;
    }
    add_integer(c, -delta);
}

/* The number that the opened string is, 0 when missing; false with an error replied when it is
 * none. */
static bool read_long_double(struct call *c, const struct keyref *ref, long double *value)
    REQUIRES(keyspace_lock)
{
    char scratch[STRING_VIEW_BYTES];
    *value = 0;
    if (ref->entry && !num_parse_long_double(string_view(ref->entry, scratch), value)) {
        reply_error(c->reply, "ERR value is not a valid float");
        return false;
    }
    return true;
}

WRITE_COMMAND(incrbyfloat_command)
{
    struct keyref ref;
    long double value, delta;
    char text[NUM_DOUBLE_MAX_CHARS];
    if (!call_open_typed(c, 0, VALUE_STRING, &ref) || !read_long_double(c, &ref, &value) ||
        !call_arg_long_double(c, 2, &delta)) {
        return;
    }
    value += delta;
    size_t len = isfinite(value) ? num_format_long_double(text, value) : 0;
    if (len == 0) {
        reply_error(c->reply, "ERR increment would produce NaN or Infinity");
        return;
    }
    struct slice sum = slice_of(text, len);
    db_put(&ref, entry_create_string(ref.key.name, sum, strings_expiry_ms(&ref)));
    if (unlikely(propagate_peers)) {
        propagate_call_to_peers(c); /* additions made elsewhere meanwhile are kept */
    }
    if (unlikely(propagate_on)) {
        PROPAGATE(c, SLICE("SET"), ref.key.name, sum, SLICE("KEEPTTL"));
    }
    call_changed(c, &ref, EVENT_STRING, "incrbyfloat");
    reply_bulk(c->reply, sum);
}

const struct command_row string_number_commands[] = {
    {.name = "decr",
     .run = decr_command,
     .arity = 2,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE",
     .group = "string",
     .since = "1.0.0",
     .summary = "Subtracts one from the integer at a key; a missing one counts as 0.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "decrby",
     .run = decrby_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE",
     .group = "string",
     .since = "1.0.0",
     .summary = "Subtracts from the integer at a key; a missing one counts as 0.",
     .complexity = "O(1)",
     .args = "key decrement"},
    {.name = "incr",
     .run = incr_command,
     .arity = 2,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE",
     .group = "string",
     .since = "1.0.0",
     .summary = "Adds one to the integer at a key; a missing one counts as 0.",
     .complexity = "O(1)",
     .args = "key"},
    {.name = "incrby",
     .run = incrby_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE",
     .group = "string",
     .since = "1.0.0",
     .summary = "Adds to the integer at a key; a missing one counts as 0.",
     .complexity = "O(1)",
     .args = "key increment"},
    {.name = "incrbyfloat",
     .run = incrbyfloat_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_STRING,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE",
     .group = "string",
     .since = "2.6.0",
     .summary = "Adds to the floating point number at a key; a missing one counts as 0.",
     .complexity = "O(1)",
     .args = "key increment"},
    {.name = NULL},
};
