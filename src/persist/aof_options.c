/* The options of aof.h. */
#include "persist/aof.h"

#include "persist/aof_priv.h"
#include "persist/aof_tail.h"

#include <string.h>

struct aof_settings aof_settings;

bool aof_is_enabled(void)
{
    return aof_settings.enabled;
}

/* The child syncs its file once, at its end. */
static bool without_effect;

static bool check_name(const struct option *option, struct slice text, const char **error)
{
    bool is_file = option->target == &aof_settings.file_name;
    if (text.len == 0) {
        *error = is_file ? "appendfilename can't be empty" : "appenddirname can't be empty";
        return false;
    }
    if (text.len > 200 || memchr(text.ptr, '/', text.len)) {
        *error = is_file ? "appendfilename can't be a path, just a filename"
                         : "appenddirname can't be a path, just a dirname";
        return false;
    }
    return true;
}

static bool apply_enabled(const struct option *option, const char **error)
{
    (void)option;
    return aof_apply_enabled(error);
}

static bool apply_sync(const struct option *option, const char **error)
{
    (void)option;
    (void)error;
    aof_apply_sync();
    return true;
}

static const struct option_enum syncs[] = {
    {"everysec", AOF_SYNC_EVERYSEC}, {"always", AOF_SYNC_ALWAYS}, {"no", AOF_SYNC_NO}, {NULL, 0}};

const struct option aof_options[] = {
    {.name = "appendonly",
     .type = OPTION_BOOL,
     .target = &aof_settings.enabled,
     .initial = "no",
     .apply = apply_enabled},
    {.name = "appendfilename",
     .type = OPTION_STRING,
     .flags = OPTION_IMMUTABLE,
     .target = &aof_settings.file_name,
     .initial = "appendonly.aof",
     .check = check_name},
    {.name = "appenddirname",
     .type = OPTION_STRING,
     .flags = OPTION_IMMUTABLE,
     .target = &aof_settings.dir_name,
     .initial = "appendonlydir",
     .check = check_name},
    {.name = "appendfsync",
     .type = OPTION_ENUM,
     .target = &aof_settings.sync,
     .initial = "everysec",
     .enum_names = syncs,
     .apply = apply_sync},
    {.name = "no-appendfsync-on-rewrite",
     .type = OPTION_BOOL,
     .target = &aof_settings.no_sync_on_rewrite,
     .initial = "no",
     .apply = apply_sync},
    {.name = "auto-aof-rewrite-percentage",
     .type = OPTION_INT,
     .target = &aof_settings.rewrite_percentage,
     .initial = "100",
     .min = 0,
     .max = INT32_MAX},
    {.name = "auto-aof-rewrite-min-size",
     .type = OPTION_MEMORY,
     .target = &aof_settings.rewrite_min_bytes,
     .initial = "64mb",
     .min = 0,
     .max = INT64_MAX},
    {.name = "aof-load-truncated",
     .type = OPTION_BOOL,
     .target = &aof_settings.load_truncated,
     .initial = "yes"},
    {.name = "aof-use-rdb-preamble",
     .type = OPTION_BOOL,
     .target = &aof_settings.rdb_preamble,
     .initial = "yes"},
    {.name = "aof-rewrite-incremental-fsync",
     .type = OPTION_BOOL,
     .flags = OPTION_NO_EFFECT,
     .target = &without_effect,
     .initial = "yes"},
    {.name = "aof-timestamp-enabled",
     .type = OPTION_BOOL,
     .target = &aof_settings.timestamps,
     .initial = "no"},
    {.name = "aof-disable-auto-gc",
     .type = OPTION_BOOL,
     .target = &aof_settings.keeps_history,
     .initial = "no"},
    {.name = NULL},
};
