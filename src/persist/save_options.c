/* The options of save.h. */
#include "persist/save.h"

#include "base/num.h"
#include "persist/rdb_file.h"
#include "persist/save_priv.h"

#include <inttypes.h>
#include <string.h>

struct save_settings save_settings;

bool save_has_points(void)
{
    return save_settings.point_count > 0;
}

static struct {
    bool del_sync_files;
    int sanitize_mode;
} without_effect;

/* "seconds changes seconds changes ..."; an empty word forgets those before it. */
static bool parse_save(const struct option *option, const struct slice *words, int count,
                       const char **error)
{
    struct save_point points[SAVE_MAX_POINTS];
    size_t n = 0;
    (void)option;
    *error = "Invalid save parameters";
    for (int i = 0; i < count; i++) {
        int64_t seconds, changes;
        if (words[i].len == 0) {
            n = 0;
            continue;
        }
        if (i + 1 == count || n == SAVE_MAX_POINTS || !num_parse_i64(words[i], &seconds) ||
            !num_parse_i64(words[i + 1], &changes) || seconds < 1 || changes < 0) {
            return false;
        }
        points[n++] = (struct save_point){seconds, (uint64_t)changes};
        i++;
    }
    memcpy(save_settings.points, points, n * sizeof(points[0]));
    save_settings.point_count = n;
    return true;
}

static void format_save(const struct option *option, struct buf *out)
{
    (void)option;
    for (size_t i = 0; i < save_settings.point_count; i++) {
        buf_printf(out, "%s%" PRId64 " %" PRIu64, i ? " " : "", save_settings.points[i].seconds,
                   save_settings.points[i].changes);
    }
}

static bool check_file_name(const struct option *option, struct slice text, const char **error)
{
    (void)option;
    if (text.len == 0 || text.len > 255 || memchr(text.ptr, '/', text.len)) {
        *error = "dbfilename can't be a path, just a filename";
        return false;
    }
    return true;
}

static bool apply_stop_writes(const struct option *option, const char **error)
{
    (void)option;
    (void)error;
    save_judge_writes();
    return true;
}

static const struct option_enum sanitize_modes[] = {
    {"no", 0}, {"yes", 1}, {"clients", 2}, {NULL, 0}};

const struct option save_options[] = {
    {.name = "save",
     .type = OPTION_CUSTOM,
     .flags = OPTION_MULTI | OPTION_WORDLESS | OPTION_REPEAT,
     .initial = "3600 1 300 100 60 10000",
     .parse = parse_save,
     .format = format_save,
     .apply = apply_stop_writes},
    {.name = "dbfilename",
     .type = OPTION_STRING,
     .flags = OPTION_PROTECTED,
     .target = &save_settings.file_name,
     .initial = "dump.rdb",
     .check = check_file_name},
    {.name = "rdbcompression", .type = OPTION_BOOL, .target = &rdb_file_compress, .initial = "yes"},
    {.name = "rdbchecksum",
     .type = OPTION_BOOL,
     .flags = OPTION_IMMUTABLE,
     .target = &rdb_file_checksum,
     .initial = "yes"},
    {.name = "rdb-save-incremental-fsync",
     .type = OPTION_BOOL,
     .target = &rdb_file_sync_often,
     .initial = "yes"},
    {.name = "rdb-key-save-delay",
     .type = OPTION_INT,
     .flags = OPTION_HIDDEN,
     .target = &rdb_file_key_delay,
     .initial = "0",
     .min = INT32_MIN,
     .max = INT32_MAX},
    {.name = "rdb-del-sync-files",
     .type = OPTION_BOOL,
     .flags = OPTION_NO_EFFECT,
     .target = &without_effect.del_sync_files,
     .initial = "no"},
    {.name = "stop-writes-on-bgsave-error",
     .type = OPTION_BOOL,
     .target = &save_settings.stop_writes,
     .initial = "yes",
     .apply = apply_stop_writes},
    {.name = "sanitize-dump-payload",
     .type = OPTION_ENUM,
     .flags = OPTION_NO_EFFECT,
     .target = &without_effect.sanitize_mode,
     .initial = "no",
     .enum_names = sanitize_modes},
    {.name = NULL},
};
