/* See mem_debug.h. */
#include "base/mem_debug.h"
#include "base/mem.h"

#include <errno.h>

#if KEYDB_JEMALLOC
#include <jemalloc/jemalloc.h>

static void append_text(void *context, const char *text)
{
    buf_append_cstr(context, text);
}

bool mem_report(struct buf *out)
{
    malloc_stats_print(append_text, out, NULL);
    return true;
}

int mem_control_number(const char *name, const int64_t *set, int64_t *value)
{
    /* The width is the control's affair: a wrong one is refused with EINVAL, so the next is
     * tried. Narrow values land in the low bytes (little endian). */
    static const size_t widths[] = {8, 4, 1};
    int error = EINVAL;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]) && error == EINVAL; i++) {
        uint64_t old = 0;
        uint64_t wanted = set ? (uint64_t)*set : 0;
        size_t old_len = widths[i];
        error = mallctl(name, &old, &old_len, set ? &wanted : NULL, set ? widths[i] : 0);
        *value = (int64_t)old;
    }
    return error;
}

int mem_control_text(const char *name, const char **text)
{
    static const char *const names[] = {
        "version",         "config.malloc_conf",      "opt.dss",         "opt.percpu_arena",
        "opt.thp",         "opt.metadata_thp",        "opt.junk",        "opt.stats_print_opts",
        "opt.prof_prefix", "opt.stats_interval_opts", "opt.zero_realloc"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t len = sizeof(*text);
        if (strcmp(name, names[i]) == 0) {
            return mallctl(name, text, &len, NULL, 0);
        }
    }
    return ENOENT;
}

#else

bool mem_report(struct buf *out)
{
    (void)out;
    return false;
}

int mem_control_number(const char *name, const int64_t *set, int64_t *value)
{
    (void)name;
    (void)set;
    (void)value;
    return ENOENT;
}

int mem_control_text(const char *name, const char **text)
{
    (void)name;
    (void)text;
    return ENOENT;
}

#endif
