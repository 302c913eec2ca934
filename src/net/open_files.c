/* See open_files.h. */
#include "net/open_files.h"

#include "base/log.h"
#include "net/settings.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

/* Of others, who have said so. Immutable after boot. */
static uint64_t reserved_more;

void open_files_reserve(unsigned count)
{
    reserved_more += count;
}

/* Descriptors that are not clients': listeners, loops, inboxes, log and data files. */
static uint64_t reserved_fds(void)
{
    return 32 + 2 * (uint64_t)net_settings.server_threads + reserved_more;
}

uint64_t open_files_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

/* The soft limit after trying to have `wanted`. */
static rlim_t raise_limit(struct rlimit limit, rlim_t wanted)
{
    struct rlimit both = {.rlim_cur = wanted,
                          .rlim_max = limit.rlim_max < wanted ? wanted : limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &both) == 0) {
        return wanted;
    }
    struct rlimit soft = {.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted,
                          .rlim_max = limit.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &soft) == 0 ? soft.rlim_cur : limit.rlim_cur;
}

int64_t open_files_fit(int64_t clients)
{
    struct rlimit limit;
    assert(clients > 0);
    rlim_t wanted = (rlim_t)clients + reserved_fds();
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        log_warning("Can't read the limit of open files: %s", strerror(errno));
        return clients;
    }
    rlim_t got = limit.rlim_cur >= wanted ? wanted : raise_limit(limit, wanted);
    if (got >= wanted) {
        return clients;
    }
    return got > reserved_fds() ? (int64_t)(got - reserved_fds()) : 1;
}
