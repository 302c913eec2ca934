/* See loaded.h. */
#include "module/loaded.h"

#include "base/field.h"
#include "engine/doubts.h"
#include "module/filters.h"
#include "module/run.h"
#include "module/shared_apis.h"
#include "resp/reply.h"

#include <assert.h>

static struct module *first;

const struct module *loaded_first(void)
{
    return first;
}

struct module *loaded_find(struct slice name)
{
    for (struct module *m = first; m; m = m->next) {
        if (slice_equal(name, slice_cstr(m->name))) {
            return m;
        }
    }
    return NULL;
}

void loaded_add(struct module *m)
{
    struct module **link = &first;
    while (*link) {
        link = &(*link)->next;
    }
    m->next = NULL;
    *link = m;
    doubts_set(run_may_need_world);
}

void loaded_remove(struct module *m)
{
    struct module **link = &first;
    while (*link != m) {
        assert(*link);
        link = &(*link)->next;
    }
    *link = m->next;
    doubts_set(first ? run_may_need_world : NULL);
}

const char loaded_is_taken[] = "is there already";

void loaded_note_fault(struct module *m, const char *what, const char *name, const char *why)
{
    if (m->loading) {
        buf_clear(&m->fault);
        buf_printf(&m->fault, "%s '%s' %s", what, name, why);
    }
}

bool loaded_allow_load_aside(void)
{
    for (const struct module *m = first; m; m = m->next) {
        if (!(m->options & REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD)) {
            return false;
        }
    }
    return true;
}

void loaded_reply(struct reply *r)
{
    uint32_t array = reply_deferred(r);
    uint64_t count = 0;
    for (const struct module *m = first; m; m = m->next, count++) {
        reply_map(r, 4);
        reply_bulk_cstr(r, "name");
        reply_bulk_cstr(r, m->name);
        reply_bulk_cstr(r, "ver");
        reply_i64(r, m->version);
        reply_bulk_cstr(r, "path");
        reply_bulk_cstr(r, m->path);
        reply_bulk_cstr(r, "args");
        reply_array(r, (uint64_t)m->arg_count);
        for (int i = 0; i < m->arg_count; i++) {
            reply_bulk(r, m->args[i]);
        }
    }
    reply_set_deferred_array(r, array, count);
}

/* INFO's names of the options that a module has set. */
static const struct {
    int option;
    const char *name;
} option_names[] = {
    {REDISMODULE_OPTIONS_HANDLE_IO_ERRORS, "handle-io-errors"},
    {REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD, "handle-repl-async-load"},
    {REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED, "no-implicit-signal-modified"},
};

static void append_options(struct buf *out, int options)
{
    bool some = false;
    for (size_t i = 0; i < sizeof(option_names) / sizeof(option_names[0]); i++) {
        if (options & option_names[i].option) {
            field_part_text(out, some ? "|" : "", option_names[i].name);
            some = true;
        }
    }
}

void loaded_append_info(struct buf *out)
{
    for (const struct module *m = first; m; m = m->next) {
        field_part_text(out, "module:name=", m->name);
        field_part_i64(out, ",ver=", m->version);
        field_part_i64(out, ",api=", m->api_version);
        field_part_u64(out, ",filters=", filters_count(m));
        buf_append_cstr(out, ",usedby=[");
        shared_apis_append_users(out, m);
        buf_append_cstr(out, "],using=[");
        shared_apis_append_used(out, m);
        buf_append_cstr(out, "],options=[");
        append_options(out, m->options);
        buf_append_cstr(out, "]\r\n");
    }
}
