/* See options.h. */
#include "server/options.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct server_settings server_settings;

void server_options_teardown(void)
{
    mem_free(server_settings.pidfile);
    mem_free(server_settings.logfile);
    mem_free(server_settings.syslog_ident);
    memset(&server_settings, 0, sizeof(server_settings));
}

static bool apply_loglevel(const struct option *option, const char **error)
{
    (void)option;
    (void)error;
    log_set_level((enum log_level)server_settings.loglevel);
    return true;
}

/* dir: the working directory itself is the value. */
static bool parse_dir(const struct option *option, const struct slice *words, int count,
                      const char **error)
{
    char path[PATH_MAX];
    (void)option;
    if (count != 1 || words[0].len >= sizeof(path)) {
        *error = "wrong number of arguments";
        return false;
    }
    snprintf(path, sizeof(path), "%.*s", (int)words[0].len, words[0].ptr);
    if (chdir(path) < 0) {
        *error = strerror(errno);
        return false;
    }
    return true;
}

static void format_dir(const struct option *option, struct buf *out)
{
    char path[PATH_MAX];
    (void)option;
    buf_append_cstr(out, getcwd(path, sizeof(path)) ? path : "");
}

static const struct option_enum loglevels[] = {
    {"debug", LOG_DEBUG_LEVEL}, {"verbose", LOG_VERBOSE}, {"notice", LOG_NOTICE},
    {"warning", LOG_WARNING},   {"nothing", LOG_NOTHING}, {NULL, 0},
};

static const struct option_enum supervisions[] = {
    {"upstart", SUPERVISED_UPSTART},
    {"systemd", SUPERVISED_SYSTEMD},
    {"auto", SUPERVISED_AUTO},
    {"no", SUPERVISED_NO},
    {NULL, 0},
};

/* Facilities by their numbers in RFC 5424. */
static const struct option_enum facilities[] = {
    {"user", 1},    {"local0", 16}, {"local1", 17}, {"local2", 18}, {"local3", 19},
    {"local4", 20}, {"local5", 21}, {"local6", 22}, {"local7", 23}, {NULL, 0},
};

#define HZ_MAX 500

/* Any number is taken, as in Redis; the timer keeps to what makes sense. */
static bool parse_hz(const struct option *option, const struct slice *words, int count,
                     const char **error)
{
    int64_t value;
    (void)option;
    if (count != 1 || !num_parse_i64(words[0], &value)) {
        *error = "argument couldn't be parsed into an integer";
        return false;
    }
    if (value < 0 || value > INT32_MAX) {
        *error = "argument must be between 0 and 2147483647 inclusive";
        return false;
    }
    server_settings.hz = value < 1 ? 1 : value > HZ_MAX ? HZ_MAX : value;
    return true;
}

static void format_hz(const struct option *option, struct buf *out)
{
    (void)option;
    buf_printf(out, "%lld", (long long)server_settings.hz);
}

static bool apply_jemalloc(const struct option *option UNUSED, const char **error)
{
    *error = "Unable to enable jemalloc threads";
    return mem_set_background(server_settings.jemalloc_bg_thread);
}

const struct option server_options[] = {
    {.name = "daemonize",
     .type = OPTION_BOOL,
     .flags = OPTION_IMMUTABLE,
     .target = &server_settings.daemonize,
     .initial = "no"},
    {.name = "pidfile",
     .type = OPTION_STRING,
     .flags = OPTION_IMMUTABLE,
     .target = &server_settings.pidfile,
     .initial = ""},
    {.name = "supervised",
     .type = OPTION_ENUM,
     .flags = OPTION_IMMUTABLE,
     .target = &server_settings.supervised,
     .initial = "no",
     .enum_names = supervisions},
    {.name = "databases",
     .type = OPTION_INT,
     .flags = OPTION_IMMUTABLE,
     .target = &server_settings.databases,
     .initial = "16",
     .min = 1,
     .max = INT32_MAX},
    {.name = "dir",
     .type = OPTION_CUSTOM,
     .flags = OPTION_PROTECTED,
     .initial = ".",
     .parse = parse_dir,
     .format = format_dir},
    {.name = "hz", .type = OPTION_CUSTOM, .initial = "10", .parse = parse_hz, .format = format_hz},
    {.name = "loglevel",
     .type = OPTION_ENUM,
     .target = &server_settings.loglevel,
     .initial = "notice",
     .enum_names = loglevels,
     .apply = apply_loglevel},
    {.name = "logfile",
     .type = OPTION_STRING,
     .flags = OPTION_IMMUTABLE,
     .target = &server_settings.logfile,
     .initial = ""},
    {.name = "syslog-enabled",
     .type = OPTION_BOOL,
     .flags = OPTION_IMMUTABLE,
     .target = &server_settings.syslog_enabled,
     .initial = "no"},
    {.name = "syslog-ident",
     .type = OPTION_STRING,
     .flags = OPTION_IMMUTABLE,
     .target = &server_settings.syslog_ident,
     .initial = "keydb"},
    {.name = "syslog-facility",
     .type = OPTION_ENUM,
     .flags = OPTION_IMMUTABLE,
     .target = &server_settings.syslog_facility,
     .initial = "local0",
     .enum_names = facilities},
    {.name = "disable-thp",
     .type = OPTION_BOOL,
     .flags = OPTION_IMMUTABLE,
     .target = &server_settings.disable_thp,
     .initial = "yes"},
    {.name = "jemalloc-bg-thread",
     .type = OPTION_BOOL,
     .target = &server_settings.jemalloc_bg_thread,
     .initial = "yes",
     .apply = apply_jemalloc},
    {.name = NULL},
};
