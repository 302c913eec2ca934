/* See scan_args.h. */
#include "commands/scan_args.h"

#include "base/glob.h"
#include "base/num.h"

#include <ctype.h>

#define DEFAULT_COUNT 10

bool scan_args_cursor(struct call *c, int at, struct scan_args *args)
{
    struct slice text = c->argv[at];
    bool negative = text.len > 0 && text.ptr[0] == '-';
    uint64_t cursor = 0;
    for (size_t i = text.len > 1 && (negative || text.ptr[0] == '+'); i < text.len; i++) {
        if (!isdigit((unsigned char)text.ptr[i]) || __builtin_mul_overflow(cursor, 10, &cursor) ||
            __builtin_add_overflow(cursor, (uint64_t)(text.ptr[i] - '0'), &cursor)) {
            reply_error(c->reply, "ERR invalid cursor");
            return false;
        }
    }
    *args = (struct scan_args){.cursor = negative ? -cursor : cursor, .count = DEFAULT_COUNT};
    return true;
}

static bool parse_count(struct call *c, int at, struct scan_args *args)
{
    int64_t count;
    if (!call_arg_i64(c, at, &count)) {
        return false;
    }
    if (count < 1) {
        reply_syntax_error(c->reply);
        return false;
    }
    args->count = (uint64_t)count;
    return true;
}

/* True when argument `at` is the word of `option`, one without value. */
static bool is_bare_word(const struct call *c, int at, enum scan_args_option option)
{
    return (option == SCAN_ARGS_NOVALUES && call_arg_is(c, at, "novalues")) ||
           (option == SCAN_ARGS_NOSCORES && call_arg_is(c, at, "noscores"));
}

bool scan_args_options(struct call *c, int first, enum scan_args_option option,
                       struct scan_args *args)
{
    for (int i = first; i < c->argc; i++) {
        bool has_value = i + 1 < c->argc;
        if (has_value && call_arg_is(c, i, "count")) {
            if (!parse_count(c, ++i, args)) {
                return false;
            }
        } else if (has_value && call_arg_is(c, i, "match")) {
            args->pattern = c->argv[++i];
            if (slice_equal(args->pattern, SLICE("*"))) {
                args->pattern = slice_of(NULL, 0);
            }
        } else if (has_value && option == SCAN_ARGS_TYPE && call_arg_is(c, i, "type")) {
            args->type = c->argv[++i];
        } else if (is_bare_word(c, i, option)) {
            args->names_only = true;
        } else {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    return true;
}

bool scan_args_match(const struct scan_args *args, struct slice text)
{
    return !args->pattern.ptr ||
           (!glob_begins_otherwise(args->pattern, text) && glob_match(args->pattern, text, false));
}

void scan_args_reply_cursor(struct call *c, uint64_t cursor)
{
    char text[NUM_I64_MAX_CHARS];
    reply_array(c->reply, 2);
    reply_bulk(c->reply, slice_of(text, num_format_u64(text, cursor)));
}
