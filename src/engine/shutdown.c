/* The request to end the server: a word of flags and an eventfd, both safe to touch in a signal
 * handler. */
#include "engine/shutdown.h"

#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Beside the flags: somebody asked, perhaps without any flag. */
#define SHUTDOWN_ASKED (1u << 31)

static _Atomic unsigned request;
static int event_fd = -1;
static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler sets the request");

void shutdown_setup(void)
{
    assert(event_fd < 0);
    event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_fd < 0) {
        log_warning("No eventfd for the shutdown request: %s", strerror(errno));
        abort();
    }
}

void shutdown_request(unsigned flags)
{
    int saved_errno = errno;
    atomic_fetch_or(&request, flags | SHUTDOWN_ASKED);
    uint64_t one = 1;
    /* It can only fail with EAGAIN, when it is readable already. */
    ssize_t written = event_fd >= 0 ? write(event_fd, &one, sizeof(one)) : 0;
    (void)written;
    errno = saved_errno;
}

void shutdown_withdraw(void)
{
    uint64_t count;
    ssize_t got = read(event_fd, &count, sizeof(count));
    (void)got;
    atomic_store(&request, 0);
}

bool shutdown_requested(unsigned *flags)
{
    unsigned word = atomic_load(&request);
    *flags = word & ~SHUTDOWN_ASKED;
    return (word & SHUTDOWN_ASKED) != 0;
}

int shutdown_event_fd(void)
{
    assert(event_fd >= 0);
    return event_fd;
}

int64_t shutdown_timeout_s;

const struct option shutdown_options[] = {
    {.name = "shutdown-timeout",
     .type = OPTION_INT,
     .target = &shutdown_timeout_s,
     .initial = "10",
     .min = 0,
     .max = INT32_MAX},
    {.name = NULL},
};
