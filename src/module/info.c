/* See info.h. Functions of a RedisModuleInfoCtx fail outside of a section that was asked for. */
#include "module/info.h"

#include "engine/busy.h"
#include "module/context.h"
#include "module/text.h"

/* Some module has told, or has been there, that has sections. */
static _Atomic bool some_tell;

struct RedisModuleInfoCtx {
    const struct module *module;
    struct buf *out;
    const struct slice *words; /* what was asked for */
    int word_count;
    bool all;        /* all sections are */
    bool is_first;   /* nothing stands before the next section */
    bool in_section; /* it was asked for */
    bool in_dict;    /* a field "name:key=value,..." is open */
    bool dict_has_items;
};

/* ---- asking modules ---- */

static bool asks(const struct slice *words, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (slice_equal_nocase(words[i], name)) {
            return true;
        }
    }
    return false;
}

static void end_dict(RedisModuleInfoCtx *info)
{
    if (info->in_dict) {
        buf_append_cstr(info->out, "\r\n");
        info->in_dict = false;
    }
}

static void append_one(RedisModuleInfoCtx *info, const struct module *m, bool for_crash)
    REQUIRES(keyspace_lock)
{
    RedisModuleCtx ctx;
    context_begin(&ctx, (struct module *)m, ACCESS_EXCLUSIVE);
    info->module = m;
    info->in_section = false;
    m->info(info, for_crash);
    end_dict(info);
    context_end(&ctx);
}

static void append_all(RedisModuleInfoCtx *info) REQUIRES(keyspace_lock)
{
    for (const struct module *m = loaded_first(); m; m = m->next) {
        if (m->info) {
            append_one(info, m, false);
        }
    }
}

/* What a module's callback asks of INFO itself does not ask modules again. Keyspace lock,
 * exclusive. */
static bool is_asking;

static void append_held(void *info)
{
    keyspace_assert_exclusive();
    if (!is_asking) {
        is_asking = true;
        append_all(info);
        is_asking = false;
    }
}

static bool exist(void)
{
    return atomic_load_explicit(&some_tell, memory_order_relaxed);
}

static void append(struct buf *out, const struct slice *words, int count, bool first)
{
    struct RedisModuleInfoCtx info = {
        .out = out,
        .words = words,
        .word_count = count,
        .all = asks(words, count, "modules") || asks(words, count, "everything"),
        .is_first = first,
    };
    busy_run_within(append_held, &info);
}

/* What one has told is written before the next one is asked. In a child: whoever had the lock is
 * not there. If that was another thread it is not to be had. */
static void report(void (*write)(const char *bytes, size_t len)) NO_THREAD_SAFETY_ANALYSIS
{
    struct buf out = {0};
    struct RedisModuleInfoCtx info = {.out = &out, .all = true, .is_first = true};
    if (!keyspace_is_exclusive()) {
        keyspace_lock_exclusive();
    }
    for (const struct module *m = loaded_first(); m; m = m->next) {
        if (m->info) {
            append_one(&info, m, true);
            write(out.data, out.len);
            buf_clear(&out);
        }
    }
    buf_deinit(&out);
}

const struct info_guests module_info_guests = {exist, append, report};

/* ---- for modules ---- */

static int rm_register(RedisModuleCtx *ctx, RedisModuleInfoFunc info)
{
    keyspace_assert_exclusive();
    ctx->module->info = info;
    atomic_store_explicit(&some_tell, true, memory_order_relaxed);
    return REDISMODULE_OK;
}

/* A name that cannot be taken for more. */
static void append_safely(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        buf_append_char(out, c == '#' || c == ':' || c == '\n' || c == '\r' ? '_' : c);
    }
}

/* A section without a name is the module's own. Whether it was asked for; if not, its fields are
 * dropped. */
static int rm_add_section(RedisModuleInfoCtx *info, const char *name)
{
    struct buf full = {0};
    end_dict(info);
    buf_append_cstr(&full, info->module->name);
    if (name && *name) {
        buf_append_char(&full, '_');
        buf_append_cstr(&full, name);
    }
    info->in_section = info->all || asks(info->words, info->word_count, buf_cstr(&full)) ||
                       asks(info->words, info->word_count, info->module->name);
    if (info->in_section) {
        buf_append_cstr(info->out, info->is_first ? "# " : "\r\n# ");
        append_safely(info->out, buf_slice(&full));
        buf_append_cstr(info->out, "\r\n");
        info->is_first = false;
    }
    buf_deinit(&full);
    return info->in_section ? REDISMODULE_OK : REDISMODULE_ERR;
}

static void append_name(RedisModuleInfoCtx *info, const char *field)
{
    buf_append_cstr(info->out, info->module->name);
    buf_append_char(info->out, '_');
    append_safely(info->out, slice_cstr(field));
    buf_append_char(info->out, ':');
}

static int rm_begin_dict(RedisModuleInfoCtx *info, const char *name)
{
    if (!info->in_section) {
        return REDISMODULE_ERR;
    }
    end_dict(info);
    append_name(info, name);
    info->in_dict = true;
    info->dict_has_items = false;
    return REDISMODULE_OK;
}

static int rm_end_dict(RedisModuleInfoCtx *info)
{
    if (!info->in_dict) {
        return REDISMODULE_ERR;
    }
    end_dict(info);
    return REDISMODULE_OK;
}

/* Begins a field, or an item of the field that is open; end_field ends it. */
static bool begin_field(RedisModuleInfoCtx *info, const char *field)
{
    if (!info->in_section) {
        return false;
    }
    if (info->in_dict) {
        buf_append_cstr(info->out, info->dict_has_items ? "," : "");
        append_safely(info->out, slice_cstr(field));
        buf_append_char(info->out, '=');
        info->dict_has_items = true;
    } else {
        append_name(info, field);
    }
    return true;
}

static int end_field(RedisModuleInfoCtx *info)
{
    buf_append_cstr(info->out, info->in_dict ? "" : "\r\n");
    return REDISMODULE_OK;
}

static int add_text(RedisModuleInfoCtx *info, const char *field, struct slice value)
{
    if (!begin_field(info, field)) {
        return REDISMODULE_ERR;
    }
    buf_append_slice(info->out, value); /* as it is, as in Redis */
    return end_field(info);
}

static int rm_add_string(RedisModuleInfoCtx *info, const char *field, RedisModuleString *value)
{
    return add_text(info, field, text_slice(value));
}

static int rm_add_cstring(RedisModuleInfoCtx *info, const char *field, const char *value)
{
    return add_text(info, field, slice_cstr(value));
}

static int rm_add_double(RedisModuleInfoCtx *info, const char *field, double value)
{
    if (!begin_field(info, field)) {
        return REDISMODULE_ERR;
    }
    buf_printf(info->out, "%.17g", value);
    return end_field(info);
}

static int rm_add_long_long(RedisModuleInfoCtx *info, const char *field, long long value)
{
    if (!begin_field(info, field)) {
        return REDISMODULE_ERR;
    }
    buf_printf(info->out, "%lld", value);
    return end_field(info);
}

static int rm_add_ulong_long(RedisModuleInfoCtx *info, const char *field, unsigned long long value)
{
    if (!begin_field(info, field)) {
        return REDISMODULE_ERR;
    }
    buf_printf(info->out, "%llu", value);
    return end_field(info);
}

const struct api_function info_functions[] = {
    API(RegisterInfoFunc, rm_register),
    API(InfoAddSection, rm_add_section),
    API(InfoBeginDictField, rm_begin_dict),
    API(InfoEndDictField, rm_end_dict),
    API(InfoAddFieldString, rm_add_string),
    API(InfoAddFieldCString, rm_add_cstring),
    API(InfoAddFieldDouble, rm_add_double),
    API(InfoAddFieldLongLong, rm_add_long_long),
    API(InfoAddFieldULongLong, rm_add_ulong_long),
    {NULL, NULL},
};
