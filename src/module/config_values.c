/* See config_values.h. */
#include "module/config_values.h"

#include "base/mem.h"
#include "base/num.h"

#include <stdio.h>
#include <string.h>

#define ERROR_BYTES 512

/* A fault's text, until the next one. World. */
static char fault[ERROR_BYTES];

static void append_flags(const struct module_config *m, long long number, struct buf *out)
{
    bool some = false;
    for (const struct option_enum *e = m->names; e->name; e++) {
        if (e->value != 0 && (number & e->value) == e->value) {
            buf_append_cstr(out, some ? " " : "");
            buf_append_cstr(out, e->name);
            number &= ~(long long)e->value;
            some = true;
        }
    }
    for (const struct option_enum *e = m->names; !some && e->name; e++) {
        if (e->value == 0) {
            buf_append_cstr(out, e->name);
            some = true;
        }
    }
    buf_append_cstr(out, some ? "" : "unknown");
}

static void append_enum(const struct module_config *m, long long number, struct buf *out)
{
    if (m->flags & REDISMODULE_CONFIG_BITFLAGS) {
        append_flags(m, number, out);
        return;
    }
    const struct option_enum *e = m->names;
    while (e->name && e->value != number) {
        e++;
    }
    buf_append_cstr(out, e->name ? e->name : "unknown");
}

void config_value_append(const struct module_config *m, const struct config_value *v,
                         struct buf *out)
{
    switch (m->kind) {
    case KIND_BOOL:
        buf_append_cstr(out, v->number ? "yes" : "no");
        break;
    case KIND_NUMERIC:
        buf_printf(out, "%lld", v->number);
        break;
    case KIND_STRING:
        buf_append_slice(out, v->text);
        break;
    case KIND_ENUM:
        append_enum(m, v->number, out);
        break;
    }
}

bool config_fail(const char **error, const char *text)
{
    *error = text;
    return false;
}

bool config_fail_text(const char **error, struct slice text)
{
    size_t len = text.len < sizeof(fault) ? text.len : sizeof(fault) - 1;
    memcpy(fault, text.ptr, len);
    fault[len] = '\0';
    return config_fail(error, fault);
}

static bool parse_number(const struct module_config *m, struct slice text, long long *number,
                         const char **error)
{
    int64_t value;
    uint64_t bytes;
    if (m->flags & REDISMODULE_CONFIG_MEMORY) {
        if (!num_parse_memory(text, &bytes)) {
            return config_fail(error, "argument must be a memory value");
        }
        value = bytes <= INT64_MAX ? (int64_t)bytes : INT64_MAX;
    } else if (!num_parse_i64(text, &value)) {
        return config_fail(error, "argument couldn't be parsed into an integer");
    }
    if (value < m->min || value > m->max) {
        snprintf(fault, sizeof(fault), "argument must be between %lld and %lld inclusive", m->min,
                 m->max);
        return config_fail(error, fault);
    }
    *number = value;
    return true;
}

static const struct option_enum *find_name(const struct module_config *m, struct slice word)
{
    const struct option_enum *e = m->names;
    while (e->name && !slice_equal_nocase(word, e->name)) {
        e++;
    }
    return e->name ? e : NULL;
}

static bool fail_names(const struct module_config *m, const char **error)
{
    struct buf text = {0};
    buf_append_cstr(&text, "argument(s) must be one of the following: ");
    for (const struct option_enum *e = m->names; e->name; e++) {
        buf_append_cstr(&text, e->name);
        buf_append_cstr(&text, e[1].name ? ", " : "");
    }
    snprintf(fault, sizeof(fault), "%s", buf_cstr(&text));
    buf_deinit(&text);
    return config_fail(error, fault);
}

/* A name; with BITFLAGS several, whose values are joined. */
static bool parse_names(const struct module_config *m, struct slice text, long long *number,
                        const char **error)
{
    struct slice words[OPTION_MAX_WORDS] = {text};
    struct buf scratch = {0};
    int count = 1;
    bool fine = true;
    *number = 0;
    if (m->flags & REDISMODULE_CONFIG_BITFLAGS) {
        count = option_split_line(text, words, OPTION_MAX_WORDS, &scratch);
    }
    for (int i = 0; fine && i < count; i++) {
        const struct option_enum *e = find_name(m, words[i]);
        fine = e != NULL;
        *number |= e ? e->value : 0;
    }
    buf_deinit(&scratch);
    return (fine && count > 0) || fail_names(m, error);
}

bool config_value_parse(const struct module_config *m, struct slice text, struct config_value *v,
                        const char **error)
{
    v->text = text;
    switch (m->kind) {
    case KIND_BOOL:
        v->number = slice_equal_nocase(text, "yes");
        return v->number || slice_equal_nocase(text, "no") ||
               config_fail(error, "argument must be 'yes' or 'no'");
    case KIND_NUMERIC:
        return parse_number(m, text, &v->number, error);
    case KIND_STRING:
        return true;
    case KIND_ENUM:
        return parse_names(m, text, &v->number, error);
    }
    return false;
}
