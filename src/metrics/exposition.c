/* See exposition.h. What INFO tells. */
#include "metrics/exposition_priv.h"

#include "base/field.h"
#include "base/num.h"
#include "metrics/table.h"

#include <assert.h>
#include <stdio.h>

/* ---- the formats ---- */

/* What a counter's name has behind the family's in OpenMetrics. */
static const char total_suffix[] = "_total";

/* The length of a family's name: OpenMetrics counts the suffix of counters to the sample. */
static size_t family_len(const struct exposition *x, const char *name, bool is_counter)
{
    size_t len = strlen(name), suffix = sizeof(total_suffix) - 1;
    bool has = len > suffix && strcmp(name + len - suffix, total_suffix) == 0;
    return x->open_metrics && is_counter && has ? len - suffix : len;
}

void exposition_family(struct exposition *x, const char *name, const char *type, const char *help,
                       const char *more)
{
    struct slice family = slice_of(name, family_len(x, name, strcmp(type, "counter") == 0));
    buf_append_cstr(x->out, "# HELP ");
    buf_append_slice(x->out, family);
    field_part_text(x->out, " ", help);
    buf_append_cstr(x->out, more ? more : "");
    buf_append_cstr(x->out, "\n# TYPE ");
    buf_append_slice(x->out, family);
    field_part_text(x->out, " ", type);
    buf_append_char(x->out, '\n');
}

void exposition_sample(struct exposition *x, const char *name, bool is_counter, const char *suffix)
{
    buf_append(x->out, name, family_len(x, name, is_counter));
    if (x->open_metrics && is_counter) {
        buf_append_cstr(x->out, total_suffix);
    }
    buf_append_cstr(x->out, suffix);
}

void exposition_label(struct exposition *x, const char *name, struct slice text, bool first)
{
    field_part_text(x->out, first ? "{" : ",", name);
    buf_append_cstr(x->out, "=\"");
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '\\' || c == '"') {
            buf_append_char(x->out, '\\');
            buf_append_char(x->out, c);
        } else if (c == '\n') {
            buf_append_cstr(x->out, "\\n");
        } else {
            /* The format is UTF-8; what an error's code is made of need not be. */
            buf_append_char(x->out, (unsigned char)c < 0x20 || (unsigned char)c >= 0x7f ? '?' : c);
        }
    }
    buf_append_char(x->out, '"');
}

void exposition_value(struct exposition *x, bool had_labels, struct slice value)
{
    buf_append_cstr(x->out, had_labels ? "} " : " ");
    buf_append_slice(x->out, value);
    buf_append_char(x->out, '\n');
}

void exposition_value_u64(struct exposition *x, bool had_labels, uint64_t value)
{
    char text[NUM_I64_MAX_CHARS];
    exposition_value(x, had_labels, slice_of(text, num_format_u64(text, value)));
}

void exposition_value_fixed(struct exposition *x, bool had_labels, double value)
{
    buf_printf(x->out, "%s%.6f\n", had_labels ? "} " : " ", value);
}

void exposition_end(struct exposition *x)
{
    if (x->open_metrics) {
        buf_append_cstr(x->out, "# EOF\n");
    }
}

/* ---- rows ---- */

static bool all_digits(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
    }
    return text.len > 0;
}

/* True when a row for several fields is for this one. */
static bool row_takes(const struct metric_row *row, const struct figure *item)
{
    size_t len = strlen(row->field);
    if (item->name.len <= len || memcmp(item->name.ptr, row->field, len) != 0 ||
        !slice_equal_nocase(item->section, row->section)) {
        return false;
    }
    return row->open || all_digits(slice_of(item->name.ptr + len, item->name.len - len));
}

/* The number as the formats have it: false when the text is none. */
static bool trim_number(struct slice *text)
{
    double number;
    if (text->len > 0 && text->ptr[text->len - 1] == '%') {
        text->len--;
    }
    return num_parse_double(*text, &number);
}

static bool is_good(struct slice text)
{
    return slice_equal(text, SLICE("ok")) || slice_equal(text, SLICE("up")) ||
           slice_equal(text, SLICE("ready"));
}

static struct slice label_text(const struct figures *f, const struct metric_row *row,
                               const struct figure *item, const char *from)
{
    struct slice text = SLICE("");
    size_t prefix = strlen(row->field);
    if (!from) {
        return slice_of(item->name.ptr + prefix, item->name.len - prefix);
    }
    if (from[0] == '*') {
        return item->name;
    }
    if (from[0] == '=') {
        return figures_part(item->value, slice_cstr(from + 1), &text) ? text : SLICE("");
    }
    for (unsigned i = 0; i < f->count; i++) {
        if (slice_equal(f->items[i].name, slice_cstr(from))) {
            return f->items[i].value;
        }
    }
    return text;
}

/* What a sample has to tell: false when this field has it not. */
static bool find_value(const struct metric_row *row, const struct figure *item, struct slice *text)
{
    *text = item->value;
    if (row->part && !figures_part(item->value, slice_cstr(row->part), text)) {
        return false;
    }
    return row->value == VALUE_GOOD || row->value == VALUE_ALWAYS || trim_number(text);
}

static void write_value(struct exposition *x, const struct metric_row *row, bool had_labels,
                        struct slice text)
{
    static const double units[] = {[VALUE_MILLI] = 1e3, [VALUE_MICRO] = 1e6, [VALUE_NANO] = 1e9};
    double number;
    if (row->value == VALUE_AS_IS) {
        exposition_value(x, had_labels, text);
    } else if (row->value == VALUE_GOOD || row->value == VALUE_ALWAYS) {
        exposition_value_u64(x, had_labels, row->value == VALUE_ALWAYS || is_good(text));
    } else if (num_parse_double(text, &number)) {
        exposition_value_fixed(x, had_labels, number / units[row->value]);
    }
}

/* Which fields the family is made of: the tests read it. */
static void begin_family(struct exposition *x, const struct metric_row *row)
{
    char help[128], more[128] = "";
    bool several = row->open || row->numbered;
    snprintf(help, sizeof(help), "INFO %s: %s%s", row->section, row->field, several ? "*" : "");
    if (row->part) {
        snprintf(more, sizeof(more), ", %s", row->part);
    }
    exposition_family(x, row->name, row->type == METRIC_COUNTER ? "counter" : "gauge", help, more);
}

static bool write_sample(struct exposition *x, const struct figures *f,
                         const struct metric_row *row, const struct figure *item, bool first)
{
    struct slice text;
    if (!find_value(row, item, &text)) {
        return false;
    }
    if (first) {
        begin_family(x, row);
    }
    exposition_sample(x, row->name, row->type == METRIC_COUNTER, "");
    const struct metric_label *label = row->labels;
    for (; label < row->labels + METRIC_LABELS_MAX && label->name; label++) {
        exposition_label(x, label->name, label_text(f, row, item, label->from),
                         label == row->labels);
    }
    write_value(x, row, label > row->labels, text);
    return true;
}

static void write_several(struct exposition *x, const struct figures *f,
                          const struct metric_row *row)
{
    bool first = true;
    for (unsigned i = 0; i < f->count; i++) {
        if (row_takes(row, &f->items[i]) && write_sample(x, f, row, &f->items[i], first)) {
            first = false;
        }
    }
}

/* ---- percentiles ---- */

#define PERCENTILE_PREFIX "latency_percentiles_usec_"

/* The number of calls of a command, or the microseconds that they took. */
static void write_percentile_total(struct exposition *x, const struct figures *f,
                                   struct slice command, const char *part, const char *suffix,
                                   unsigned *hint)
{
    char field[128];
    struct slice value;
    int len = snprintf(field, sizeof(field), "cmdstat_%.*s", (int)command.len, command.ptr);
    const struct figure *stats =
        len < (int)sizeof(field)
            ? figures_find(f, "commandstats", slice_of(field, (size_t)len), hint)
            : NULL;
    if (stats && figures_part(stats->value, slice_cstr(part), &value)) {
        exposition_sample(x, "redis_latency_percentiles_usec", false, suffix);
        exposition_label(x, "cmd", command, true);
        exposition_value(x, true, value);
    }
}

static void write_percentiles_of(struct exposition *x, const struct figures *f,
                                 const struct figure *item, unsigned *hint)
{
    size_t prefix = sizeof(PERCENTILE_PREFIX) - 1;
    struct slice command = slice_of(item->name.ptr + prefix, item->name.len - prefix);
    struct slice rest = item->value, name, value;
    while (figures_next_part(&rest, &name, &value)) {
        double percent;
        if (name.len > 1 && num_parse_double(slice_of(name.ptr + 1, name.len - 1), &percent)) {
            char quantile[32];
            int len = snprintf(quantile, sizeof(quantile), "%g", percent / 100);
            exposition_sample(x, "redis_latency_percentiles_usec", false, "");
            exposition_label(x, "cmd", command, true);
            exposition_label(x, "quantile", slice_of(quantile, (size_t)len), false);
            exposition_value(x, true, value);
        }
    }
    write_percentile_total(x, f, command, "usec", "_sum", hint);
    write_percentile_total(x, f, command, "calls", "_count", hint);
}

static void write_percentiles(struct exposition *x, const struct figures *f)
{
    size_t prefix = sizeof(PERCENTILE_PREFIX) - 1;
    unsigned hint = 0;
    bool first = true;
    for (unsigned i = 0; i < f->count; i++) {
        const struct figure *item = &f->items[i];
        if (item->name.len <= prefix || memcmp(item->name.ptr, PERCENTILE_PREFIX, prefix) != 0) {
            continue;
        }
        if (first) {
            exposition_family(x, "redis_latency_percentiles_usec", "summary",
                              "INFO latencystats: " PERCENTILE_PREFIX "*", NULL);
            first = false;
        }
        write_percentiles_of(x, f, item, &hint);
    }
}

void exposition_write_figures(struct exposition *x, const struct figures *f)
{
    unsigned hint = 0;
    for (const struct metric_row *row = metric_rows; row->section; row++) {
        if (row->open || row->numbered) {
            write_several(x, f, row);
            continue;
        }
        const struct figure *item = figures_find(f, row->section, slice_cstr(row->field), &hint);
        if (item) {
            write_sample(x, f, row, item, true);
        }
    }
    write_percentiles(x, f);
}
