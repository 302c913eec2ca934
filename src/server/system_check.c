/* See system_check.h. */
#include "server/system_check.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* Reads the first line of a small file; false when it cannot be read. */
static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    bool ok = file && fgets(line, (int)size, file) != NULL;
    if (file) {
        fclose(file);
    }
    return ok;
}

static bool overcommit_is_fine(void)
{
    char line[64];
    return !read_line("/proc/sys/vm/overcommit_memory", line, sizeof(line)) || line[0] == '1';
}

static bool thp_is_fine(void)
{
    char line[128];
    return !read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof(line)) ||
           !strstr(line, "[always]");
}

static bool accept_queue_is_fine(int64_t tcp_backlog)
{
    char line[64];
    return !read_line("/proc/sys/net/core/somaxconn", line, sizeof(line)) ||
           strtoll(line, NULL, 10) >= tcp_backlog;
}

void system_check_warn(int64_t tcp_backlog)
{
    if (!accept_queue_is_fine(tcp_backlog)) {
        log_warning("tcp-backlog is %lld, but net.core.somaxconn is lower and wins: raise it with "
                    "sysctl net.core.somaxconn=%lld",
                    (long long)tcp_backlog, (long long)tcp_backlog);
    }
    if (!overcommit_is_fine()) {
        log_warning("vm.overcommit_memory is not 1: allocations may fail while memory is free. Set "
                    "it with sysctl vm.overcommit_memory=1");
    }
}

void system_check_disable_thp(void)
{
    if (!thp_is_fine() && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
        log_warning("Transparent huge pages are 'always' and could not be switched off for this "
                    "process: memory use may grow. echo madvise > "
                    "/sys/kernel/mm/transparent_hugepage/enabled");
    }
}

bool system_check_print(void)
{
    const struct {
        const char *name;
        bool fine;
        const char *advice;
    } checks[] = {
        {"vm.overcommit_memory", overcommit_is_fine(), "sysctl vm.overcommit_memory=1"},
        {"transparent huge pages", thp_is_fine(),
         "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"},
        {"net.core.somaxconn", accept_queue_is_fine(511), "sysctl net.core.somaxconn=511"},
    };
    bool all = true;
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        printf("[%s] %s%s%s\n", checks[i].fine ? "OK" : "WARNING", checks[i].name,
               checks[i].fine ? "" : ": ", checks[i].fine ? "" : checks[i].advice);
        all &= checks[i].fine;
    }
    return all;
}
