/* See status.h. */
#include "metrics/status.h"

#include "base/clock.h"
#include "base/field.h"
#include "base/json.h"
#include "base/mem.h"
#include "engine/cmdstats.h"
#include "engine/slowlog.h"
#include "metrics/figures.h"

#include <ctype.h>

/* Entries of the slow log that are shown. */
#define SLOWLOG_SHOWN 32

static void append_key(struct buf *out, struct slice key, bool first)
{
    if (!first) {
        buf_append_char(out, ',');
    }
    json_append_string(out, key);
    buf_append_char(out, ':');
}

static void append_section_name(struct buf *out, struct slice name, bool first)
{
    buf_append_cstr(out, first ? "\"" : "},\"");
    for (size_t i = 0; i < name.len; i++) {
        buf_append_char(out, (char)tolower((unsigned char)name.ptr[i]));
    }
    buf_append_cstr(out, "\":{");
}

/* The percentiles since the start are left out: the page has those of the last seconds. */
static void append_info(struct buf *out, const struct figures *f)
{
    struct slice section = SLICE("");
    bool any = false, first = true;
    buf_append_char(out, '{');
    for (unsigned i = 0; i < f->count; i++) {
        const struct figure *item = &f->items[i];
        if (slice_equal_nocase(item->section, "latencystats")) {
            continue;
        }
        if (!any || item->section.ptr != section.ptr) {
            section = item->section;
            append_section_name(out, section, !any);
            any = first = true;
        }
        append_key(out, item->name, first);
        json_append_string(out, item->value);
        first = false;
    }
    buf_append_cstr(out, any ? "}}" : "}");
}

static void append_latency(struct buf *out)
{
    struct histogram *one = mem_calloc(1, sizeof(*one)), *all = mem_calloc(1, sizeof(*all));
    const char *before = "[[";
    for (unsigned id = 0; id < command_id_count(); id++) {
        if (cmdstats_histogram(command_by_id(id), one)) {
            histogram_add_relaxed(all, one);
        }
    }
    for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        uint64_t calls = atomic_load_explicit(&all->count[bucket], memory_order_relaxed);
        if (calls) {
            field_part_u64(out, before, histogram_bucket_edge_ns(bucket));
            field_part_u64(out, ",", calls);
            before = "],[";
        }
    }
    buf_append_cstr(out, before[0] == '[' ? "[]" : "]]");
    mem_free(one);
    mem_free(all);
}

static void append_entry(const struct slowlog_view *e, void *context)
{
    struct buf *out = context;
    field_part_u64(out, out->data[out->len - 1] == '[' ? "{\"id\":" : ",{\"id\":", e->id);
    field_part_i64(out, ",\"at_s\":", e->wall_s);
    field_part_u64(out, ",\"us\":", e->duration_us);
    buf_append_cstr(out, ",\"peer\":");
    json_append_string(out, e->peer);
    buf_append_cstr(out, ",\"words\":[");
    for (int i = 0; i < e->argc; i++) {
        buf_append_cstr(out, i ? "," : "");
        json_append_string(out, e->argv[i]);
    }
    buf_append_cstr(out, "]}");
}

void status_write(struct buf *out, const struct visitor *v)
{
    struct figures f = {.count = 0};
    figures_collect(&f);
    field_part_i64(out, "{\"at_ms\":", clock_wall_ms());
    buf_append_cstr(out, f.whole ? ",\"whole\":true,\"info\":" : ",\"whole\":false,\"info\":");
    append_info(out, &f);
    figures_deinit(&f);
    buf_append_cstr(out, ",\"latency\":");
    append_latency(out);
    if (v->sees_slowlog) {
        buf_append_cstr(out, ",\"slowlog\":[");
        slowlog_each(SLOWLOG_SHOWN, append_entry, out);
        buf_append_char(out, ']');
    } else {
        buf_append_cstr(out, ",\"slowlog\":null");
    }
    buf_append_cstr(out, v->sees_keys ? ",\"sees_keys\":true}\n" : ",\"sees_keys\":false}\n");
}
