/* Options: text to typed variable and back. Error texts are those of Redis 7.2. */
#include "base/option.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest error text; a longer list of names is cut. */
#define OPTION_ERROR_BYTES 1024

/* The texts that carry figures or names live here until the thread's next call. */
static _Thread_local char error_text[OPTION_ERROR_BYTES];

static bool option_fail(const char **error, const char *text)
{
    *error = text;
    return false;
}

/* Runs the option's own check on a value that is otherwise fine. */
static bool option_passes(const struct option *option, struct slice text, const char **error)
{
    *error = NULL;
    if (option->check == NULL || option->check(option, text, error)) {
        return true;
    }
    assert(*error != NULL);
    return false;
}

static bool option_in_range(const struct option *option, int64_t value, const char **error)
{
    if (value >= option->min && value <= option->max) {
        return true;
    }
    if ((option->flags & OPTION_OCTAL) != 0) {
        snprintf(error_text, sizeof(error_text),
                 "argument must be between %" PRIo64 " and %" PRIo64 " inclusive",
                 (uint64_t)option->min, (uint64_t)option->max);
    } else {
        snprintf(error_text, sizeof(error_text),
                 "argument must be between %" PRId64 " and %" PRId64 " inclusive", option->min,
                 option->max);
    }
    return option_fail(error, error_text);
}

/* ---- one type at a time: text to value ---- */

static bool option_store_bool(const struct option *option, struct slice text, const char **error)
{
    bool yes = slice_equal_nocase(text, "yes");
    if (!yes && !slice_equal_nocase(text, "no")) {
        return option_fail(error, "argument must be 'yes' or 'no'");
    }
    if (!option_passes(option, text, error)) {
        return false;
    }
    *(bool *)option->target = yes;
    return true;
}

/* Octal digits that fit 62 bits; file modes need four. As in Redis a sign and blanks may stand
 * before them, and no text is 0. */
static bool option_parse_octal(struct slice text, int64_t *value)
{
    size_t i = 0;
    while (i < text.len && (text.ptr[i] == ' ' || text.ptr[i] == '\t')) {
        i++;
    }
    bool is_negative = i < text.len && text.ptr[i] == '-';
    i += is_negative || (i < text.len && text.ptr[i] == '+');
    bool has_digits = i < text.len || text.len == 0;
    int64_t sum = 0;
    for (; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '7' || sum >> 59 != 0) {
            return false;
        }
        sum = sum * 8 + (text.ptr[i] - '0');
    }
    *value = is_negative ? -sum : sum;
    return has_digits;
}

static bool option_store_int(const struct option *option, struct slice text, const char **error)
{
    int64_t value;
    if ((option->flags & OPTION_OCTAL) != 0) {
        if (!option_parse_octal(text, &value)) {
            return option_fail(error, "argument couldn't be parsed as an octal number");
        }
    } else if (!num_parse_i64(text, &value)) {
        return option_fail(error, "argument couldn't be parsed into an integer");
    }
    if (!option_in_range(option, value, error) || !option_passes(option, text, error)) {
        return false;
    }
    *(int64_t *)option->target = value;
    return true;
}

static const char percent_too_high[] = "percentage argument must be less or equal to 100";

/* Reads "N%" as -N. True when the text has that form; faults beyond the form are left in *error. */
static bool option_parse_percent(struct slice text, int64_t *value, const char **error)
{
    int64_t percent;
    if (text.len < 2 || text.ptr[text.len - 1] != '%' ||
        !num_parse_i64(slice_of(text.ptr, text.len - 1), &percent) || percent < 0) {
        return false;
    }
    *error = percent <= 100 ? NULL : percent_too_high;
    *value = -percent;
    return true;
}

static bool option_store_memory(const struct option *option, struct slice text, const char **error)
{
    int64_t value = 0;
    uint64_t bytes;
    bool percent_form = (option->flags & OPTION_PERCENT) != 0;
    if (percent_form && option_parse_percent(text, &value, error)) {
        if (*error != NULL) {
            return false;
        }
    } else if (!num_parse_memory(text, &bytes)) {
        return option_fail(error, percent_form ? "argument must be a memory or percent value"
                                               : "argument must be a memory value");
    } else {
        if (bytes > INT64_MAX && percent_form) { /* Redis takes it for a negative: a percentage */
            return option_fail(error, percent_too_high);
        }
        /* A value beyond int64_t is beyond every maximum: let the range say so. */
        value = bytes <= INT64_MAX ? (int64_t)bytes : -1;
        if (!option_in_range(option, value, error)) {
            return false;
        }
    }
    if (!option_passes(option, text, error)) {
        return false;
    }
    bool is_raised = option->floor > 0 && value < option->floor;
    *(int64_t *)option->target = is_raised ? option->floor : value;
    return true;
}

static bool option_store_string(const struct option *option, struct slice text, const char **error)
{
    if (text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL) {
        return option_fail(error, "argument must not contain a NUL byte");
    }
    if (!option_passes(option, text, error)) {
        return false;
    }
    char **target = option->target;
    char *copy = NULL;
    if (text.len > 0 || (option->flags & OPTION_NULLABLE) == 0) {
        copy = mem_dup(text.ptr, text.len);
    }
    mem_free(*target);
    *target = copy;
    return true;
}

static bool option_fail_enum(const struct option *option, const char **error)
{
    static const char intro[] = "argument(s) must be one of the following: ";
    struct buf text = {NULL, 0, 0};
    buf_append_cstr(&text, intro);
    for (const struct option_enum *e = option->enum_names; e->name != NULL; e++) {
        buf_append_cstr(&text, e == option->enum_names ? "" : ", ");
        buf_append_cstr(&text, e->name);
    }
    snprintf(error_text, sizeof(error_text), "%s", buf_cstr(&text));
    buf_deinit(&text);
    return option_fail(error, error_text);
}

static bool option_store_enum(const struct option *option, struct slice text, const char **error)
{
    for (const struct option_enum *e = option->enum_names; e->name != NULL; e++) {
        if (slice_equal_nocase(text, e->name)) {
            if (!option_passes(option, text, error)) {
                return false;
            }
            *(int *)option->target = e->value;
            return true;
        }
    }
    return option_fail_enum(option, error);
}

/* ---- public verbs ---- */

bool option_store(const struct option *option, const struct slice *words, int count,
                  const char **error)
{
    static bool (*const store[])(const struct option *, struct slice, const char **) = {
        [OPTION_BOOL] = option_store_bool,     [OPTION_INT] = option_store_int,
        [OPTION_MEMORY] = option_store_memory, [OPTION_STRING] = option_store_string,
        [OPTION_ENUM] = option_store_enum,
    };
    assert(count >= 0 && count <= OPTION_MAX_WORDS);
    *error = NULL;
    if (count == 0 || (count > 1 && (option->flags & OPTION_MULTI) == 0)) {
        return option_fail(error, "wrong number of arguments");
    }
    if (option->type == OPTION_CUSTOM) {
        bool stored = option->parse(option, words, count, error);
        assert(stored || *error != NULL);
        return stored;
    }
    assert(option->target != NULL && count == 1);
    return store[option->type](option, words[0], error);
}

void option_store_initial(const struct option *option)
{
    const char *initial = option->initial != NULL ? option->initial : "";
    struct slice words[OPTION_MAX_WORDS];
    struct buf scratch = {NULL, 0, 0};
    int count = 1;
    words[0] = slice_cstr(initial);
    if ((option->flags & OPTION_MULTI) != 0 && initial[0] != '\0') {
        count = option_split_line(words[0], words, OPTION_MAX_WORDS, &scratch);
    }
    const char *error = "unbalanced quotes or too many words";
    if (count < 0 || !option_store(option, words, count, &error)) {
        log_warning("The built-in default '%s' of option '%s' is refused: %s", initial,
                    option->name, error);
        abort();
    }
    buf_deinit(&scratch);
}

static void option_format_memory(const struct option *option, struct buf *out)
{
    int64_t value = *(const int64_t *)option->target;
    if (value < 0 && (option->flags & OPTION_PERCENT) != 0) {
        buf_printf(out, "%" PRId64 "%%", -value);
    } else {
        buf_printf(out, "%" PRId64, value);
    }
}

static void option_format_enum(const struct option *option, struct buf *out)
{
    int value = *(const int *)option->target;
    for (const struct option_enum *e = option->enum_names; e->name != NULL; e++) {
        if (e->value == value) {
            buf_append_cstr(out, e->name);
            return;
        }
    }
    assert(!"an enum option holds a value without a name");
}

void option_format(const struct option *option, struct buf *out)
{
    assert(option->type == OPTION_CUSTOM || option->target != NULL);
    switch (option->type) {
    case OPTION_BOOL:
        buf_append_cstr(out, *(const bool *)option->target ? "yes" : "no");
        break;
    case OPTION_INT:
        if ((option->flags & OPTION_OCTAL) != 0) {
            buf_printf(out, "%" PRIo64, *(const uint64_t *)option->target);
        } else {
            buf_printf(out, "%" PRId64, *(const int64_t *)option->target);
        }
        break;
    case OPTION_MEMORY:
        option_format_memory(option, out);
        break;
    case OPTION_STRING: {
        const char *text = *(char *const *)option->target;
        buf_append_cstr(out, text != NULL ? text : "");
        break;
    }
    case OPTION_ENUM:
        option_format_enum(option, out);
        break;
    case OPTION_CUSTOM:
        option->format(option, out);
        break;
    }
}

bool option_named(const struct option *option, struct slice name)
{
    return slice_equal_nocase(name, option->name) ||
           (option->alias != NULL && slice_equal_nocase(name, option->alias));
}
