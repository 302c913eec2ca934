/* See oom_score.h. */
#include "server/oom_score.h"

#include "base/log.h"
#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OOM_PATH "/proc/self/oom_score_adj"
/* The kernel's limits, and those of the option's values, which may be relative. */
#define OOM_MAX 1000
#define OOM_VALUE_MAX 2000

enum oom_mode { OOM_NO, OOM_RELATIVE, OOM_ABSOLUTE };

static struct {
    int mode;
    int64_t values[OOM_ROLE_COUNT];
    int64_t at_start;
    bool changed; /* another value than that of the start is in force */
    enum oom_role role;
} oom;

void oom_score_setup(void)
{
    char text[32] = "";
    int fd = open(OOM_PATH, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t got = read(fd, text, sizeof(text) - 1);
        text[got > 0 ? got : 0] = '\0';
        close(fd);
    }
    oom.at_start = strtoll(text, NULL, 10);
}

static bool write_value(int64_t value)
{
    char text[32];
    int len = snprintf(text, sizeof(text), "%lld", (long long)value);
    int fd = open(OOM_PATH, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, (size_t)len) == len;
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
    return written;
}

/* Sets the value for the role that is noted; false with errno set. */
static bool put_into_force(void)
{
    if (oom.mode == OOM_NO && !oom.changed) {
        return true;
    }
    int64_t value = oom.mode == OOM_NO ? oom.at_start : oom.values[oom.role];
    value += oom.mode == OOM_RELATIVE ? oom.at_start : 0;
    value = value > OOM_MAX ? OOM_MAX : value < -OOM_MAX ? -OOM_MAX : value;
    oom.changed = oom.mode != OOM_NO;
    return write_value(value);
}

void oom_score_apply(enum oom_role role)
{
    oom.role = role;
    if (!put_into_force() && role != OOM_CHILD) {
        log_warning("Can't set oom_score_adj: %s", strerror(errno));
    }
}

/* ---- options ---- */

static bool parse_values(const struct option *option UNUSED, const struct slice *words, int count,
                         const char **error)
{
    int64_t values[OOM_ROLE_COUNT];
    if (count != OOM_ROLE_COUNT) {
        *error = "wrong number of arguments";
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (!num_parse_i64(words[i], &values[i]) || values[i] < -OOM_VALUE_MAX ||
            values[i] > OOM_VALUE_MAX) {
            *error = "Invalid oom-score-adj-values, elements must be between -2000 and 2000.";
            return false;
        }
        if (i > 0 && values[i] < values[i - 1]) {
            log_warning("oom-score-adj-values should not fall from primary to replica to child");
        }
    }
    memcpy(oom.values, values, sizeof(values));
    return true;
}

static void format_values(const struct option *option UNUSED, struct buf *out)
{
    for (int i = 0; i < OOM_ROLE_COUNT; i++) {
        buf_printf(out, "%s%lld", i ? " " : "", (long long)oom.values[i]);
    }
}

static bool apply(const struct option *option UNUSED, const char **error)
{
    *error = "Failed to apply new oom_score_adj configuration, check server logs.";
    if (put_into_force()) {
        return true;
    }
    log_warning("Can't set oom_score_adj: %s", strerror(errno));
    return false;
}

static const struct option_enum modes[] = {{"no", OOM_NO},
                                           {"yes", OOM_RELATIVE},
                                           {"relative", OOM_RELATIVE},
                                           {"absolute", OOM_ABSOLUTE},
                                           {NULL, 0}};

const struct option oom_options[] = {
    {.name = "oom-score-adj",
     .type = OPTION_ENUM,
     .target = &oom.mode,
     .initial = "no",
     .enum_names = modes,
     .apply = apply},
    {.name = "oom-score-adj-values",
     .type = OPTION_CUSTOM,
     .flags = OPTION_MULTI,
     .initial = "0 200 800",
     .parse = parse_values,
     .format = format_values,
     .apply = apply},
    {.name = NULL},
};
