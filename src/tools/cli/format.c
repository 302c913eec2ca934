/* Replies as text: see format.h. One section for each style, the public verbs at the end. */
#include "tools/cli/format.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- for people: typed, numbered, indented ---- */

static void tty_value(struct text *out, const struct reply *r, struct text *indent);

static const char *tty_empty(enum reply_type type)
{
    switch (type) {
    case REPLY_MAP:
        return "(empty hash)\n";
    case REPLY_SET:
        return "(empty set)\n";
    case REPLY_PUSH:
        return "(empty push)\n";
    default:
        return "(empty array)\n";
    }
}

static void tty_scalar(struct text *out, const struct reply *r)
{
    switch (r->type) {
    case REPLY_NIL:
        text_append_string(out, "(nil)");
        break;
    case REPLY_ERROR:
        text_append_string(out, "(error) ");
        text_append(out, r->text, r->len);
        break;
    case REPLY_INTEGER:
        text_append_format(out, "(integer) %lld", r->integer);
        break;
    case REPLY_DOUBLE:
        text_append_string(out, "(double) ");
        text_append(out, r->text, r->len);
        break;
    case REPLY_BIGNUMBER:
        text_append_string(out, "(big number) ");
        text_append(out, r->text, r->len);
        break;
    case REPLY_BOOL:
        text_append_string(out, r->boolean ? "(true)" : "(false)");
        break;
    case REPLY_STRING:
        text_append_quoted(out, r->text, r->len);
        break;
    default:
        assert(r->type == REPLY_STATUS || r->type == REPLY_VERBATIM);
        text_append(out, r->text, r->len);
        break;
    }
    text_append_char(out, '\n');
}

static size_t decimal_width(size_t n)
{
    size_t width = 1;
    while (n >= 10) {
        n /= 10;
        width++;
    }
    return width;
}

static size_t row_count(const struct reply *r)
{
    return r->type == REPLY_MAP ? r->count / 2 : r->count;
}

/* Whether the value takes more rows than the one it starts on; a key counts for one. */
static bool is_tall(const struct reply *r)
{
    if (!reply_is_aggregate(r->type) || r->count == 0) {
        return false;
    }
    return row_count(r) > 1 || is_tall(&r->items[r->count - 1]);
}

/* The value of a map's pair stands behind its key, unless it is tall. */
static void tty_map_value(struct text *out, const struct reply *value, struct text *indent)
{
    assert(out->len > 0 && out->data[out->len - 1] == '\n');
    text_truncate(out, out->len - 1);
    text_append_string(out, " => ");
    if (is_tall(value)) {
        text_append_char(out, '\n');
        text_append(out, indent->data, indent->len);
    }
    tty_value(out, value, indent);
}

static void tty_aggregate(struct text *out, const struct reply *r, struct text *indent)
{
    size_t each = r->type == REPLY_MAP ? 2 : 1;
    size_t rows = row_count(r);
    size_t width = decimal_width(rows);
    char separator = r->type == REPLY_MAP ? '#' : r->type == REPLY_SET ? '~' : ')';
    size_t outer = indent->len;
    for (size_t i = 0; i < rows; i++) {
        if (i > 0) {
            text_append(out, indent->data, outer); /* the first row stands where we are called */
        }
        text_append_format(out, "%*zu%c ", (int)width, i + 1, separator);
        text_append_fill(indent, ' ', width + 2);
        tty_value(out, &r->items[i * each], indent);
        if (each == 2) {
            tty_map_value(out, &r->items[i * each + 1], indent);
        }
        text_truncate(indent, outer);
    }
}

static void tty_value(struct text *out, const struct reply *r, struct text *indent)
{
    if (!reply_is_aggregate(r->type)) {
        tty_scalar(out, r);
    } else if (r->count == 0) {
        text_append_string(out, tty_empty(r->type));
    } else {
        tty_aggregate(out, r, indent);
    }
}

/* ---- for pipes: values only ---- */

static void raw_value(struct text *out, const struct reply *r, const char *delimiter)
{
    switch (r->type) {
    case REPLY_NIL:
        break;
    case REPLY_ERROR:
        text_append(out, r->text, r->len);
        text_append_char(out, '\n');
        break;
    case REPLY_INTEGER:
        text_append_format(out, "%lld", r->integer);
        break;
    case REPLY_BOOL:
        text_append_string(out, r->boolean ? "(true)" : "(false)");
        break;
    case REPLY_MAP:
        for (size_t i = 0; i + 1 < r->count; i += 2) {
            text_append_string(out, i > 0 ? delimiter : "");
            raw_value(out, &r->items[i], delimiter);
            text_append_char(out, ' ');
            raw_value(out, &r->items[i + 1], delimiter);
        }
        break;
    case REPLY_ARRAY:
    case REPLY_SET:
    case REPLY_PUSH:
        for (size_t i = 0; i < r->count; i++) {
            text_append_string(out, i > 0 ? delimiter : "");
            raw_value(out, &r->items[i], delimiter);
        }
        break;
    default:
        text_append(out, r->text, r->len);
        break;
    }
}

/* ---- comma-separated values ---- */

static void csv_value(struct text *out, const struct reply *r)
{
    switch (r->type) {
    case REPLY_NIL:
        text_append_string(out, "NULL");
        break;
    case REPLY_ERROR:
        text_append_string(out, "ERROR,");
        text_append_quoted(out, r->text, r->len);
        break;
    case REPLY_INTEGER:
        text_append_format(out, "%lld", r->integer);
        break;
    case REPLY_BOOL:
        text_append_string(out, r->boolean ? "true" : "false");
        break;
    case REPLY_DOUBLE:
    case REPLY_BIGNUMBER:
        text_append(out, r->text, r->len);
        break;
    case REPLY_ARRAY:
    case REPLY_SET:
    case REPLY_MAP:
    case REPLY_PUSH:
        for (size_t i = 0; i < r->count; i++) {
            text_append_string(out, i > 0 ? "," : "");
            csv_value(out, &r->items[i]);
        }
        break;
    default:
        text_append_quoted(out, r->text, r->len);
        break;
    }
}

/* ---- JSON ---- */

/* A JSON string; with `ascii` one whose content is the quoted literal of the bytes, so that
 * nothing but printable ASCII is left and every byte can be told from every other. */
static void json_string(struct text *out, const char *data, size_t len, bool ascii)
{
    if (!ascii) {
        text_append_json(out, data, len);
        return;
    }
    struct text literal;
    text_init(&literal);
    text_append_quoted(&literal, data, len);
    assert(literal.len >= 2);
    text_append_json(out, literal.data + 1, literal.len - 2);
    text_deinit(&literal);
}

static void json_value(struct text *out, const struct reply *r, bool ascii);

/* Keys must be strings in JSON: whatever is none becomes a string that holds its JSON. */
static void json_key(struct text *out, const struct reply *r, bool ascii)
{
    bool is_text = r->type == REPLY_STRING || r->type == REPLY_STATUS || r->type == REPLY_VERBATIM;
    if (is_text) {
        json_value(out, r, ascii);
        return;
    }
    struct text inner;
    text_init(&inner);
    json_value(&inner, r, ascii);
    text_append_json(out, inner.data, inner.len);
    text_deinit(&inner);
}

static void json_value(struct text *out, const struct reply *r, bool ascii)
{
    switch (r->type) {
    case REPLY_NIL:
        text_append_string(out, "null");
        break;
    case REPLY_ERROR:
        text_append_string(out, "error:");
        json_string(out, r->text, r->len, ascii);
        break;
    case REPLY_INTEGER:
        text_append_format(out, "%lld", r->integer);
        break;
    case REPLY_BOOL:
        text_append_string(out, r->boolean ? "true" : "false");
        break;
    case REPLY_DOUBLE:
    case REPLY_BIGNUMBER:
        text_append(out, r->text, r->len);
        break;
    case REPLY_MAP:
        text_append_char(out, '{');
        for (size_t i = 0; i + 1 < r->count; i += 2) {
            text_append_string(out, i > 0 ? "," : "");
            json_key(out, &r->items[i], ascii);
            text_append_char(out, ':');
            json_value(out, &r->items[i + 1], ascii);
        }
        text_append_char(out, '}');
        break;
    case REPLY_ARRAY:
    case REPLY_SET:
    case REPLY_PUSH:
        text_append_char(out, '[');
        for (size_t i = 0; i < r->count; i++) {
            text_append_string(out, i > 0 ? "," : "");
            json_value(out, &r->items[i], ascii);
        }
        text_append_char(out, ']');
        break;
    default:
        json_string(out, r->text, r->len, ascii);
        break;
    }
}

/* ---- public ---- */

void format_reply(struct text *out, const struct reply *r, const struct options *o,
                  enum output_style style)
{
    struct text indent;
    switch (style) {
    case OUTPUT_TTY:
        text_init(&indent);
        tty_value(out, r, &indent);
        text_deinit(&indent);
        return;
    case OUTPUT_RAW:
        raw_value(out, r, o->element_delimiter);
        text_append_string(out, o->command_delimiter);
        return;
    case OUTPUT_CSV:
        csv_value(out, r);
        break;
    case OUTPUT_JSON:
    case OUTPUT_QUOTED_JSON:
        json_value(out, r, style == OUTPUT_QUOTED_JSON);
        break;
    }
    text_append_char(out, '\n');
}

void format_verbatim(struct text *out, const struct reply *r, const struct options *o)
{
    size_t before = out->len;
    raw_value(out, r, o->element_delimiter);
    if (out->len > before && out->data[out->len - 1] != '\n') {
        text_append_char(out, '\n');
    }
}

/* An invalidation message that names its keys has a form of its own for people. */
static bool tty_invalidation(struct text *out, const struct reply *r)
{
    if (r->count != 2 || !reply_text_is(&r->items[0], "invalidate") ||
        r->items[1].type != REPLY_ARRAY) {
        return false;
    }
    const struct reply *keys = &r->items[1];
    for (size_t i = 0; i < keys->count; i++) {
        if (keys->items[i].type != REPLY_STRING) {
            return false;
        }
    }
    text_append_string(out, "-> invalidate: ");
    for (size_t i = 0; i < keys->count; i++) {
        text_append_string(out, i > 0 ? ", '" : "'");
        text_append(out, keys->items[i].text, keys->items[i].len);
        text_append_char(out, '\'');
    }
    text_append_char(out, '\n');
    return true;
}

void format_push(struct text *out, const struct reply *r, const struct options *o)
{
    if (o->output != OUTPUT_TTY || !tty_invalidation(out, r)) {
        format_reply(out, r, o, o->output);
    }
}
