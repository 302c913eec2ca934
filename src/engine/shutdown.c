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

static _Atomic unsigned request, soft_request;
static int event_fd = -1;
static const struct shutdown_waiter *waiter;
static void (*at_once)(void);
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

bool shutdown_take(unsigned *flags)
{
    uint64_t count;
    unsigned word = atomic_exchange(&request, 0);
    /* In this order: who asks from here on is seen by his word, if not by the eventfd. */
    ssize_t got = read(event_fd, &count, sizeof(count));
    (void)got;
    atomic_store(&soft_request, 0);
    *flags = word & ~SHUTDOWN_ASKED;
    return (word & SHUTDOWN_ASKED) != 0;
}

void shutdown_set_at_once(void (*last_things)(void))
{
    at_once = last_things;
}

void shutdown_at_once(void)
{
    if (at_once) {
        at_once();
    }
    _exit(0);
}

void shutdown_set_waiter(const struct shutdown_waiter *set)
{
    waiter = set;
}

bool shutdown_wait_begin(unsigned flags)
{
    return waiter && waiter->begin(flags);
}

bool shutdown_wait_end(void)
{
    return waiter && waiter->end();
}

int64_t shutdown_wait_left_ms(void)
{
    return waiter ? waiter->left_ms() : -1;
}

bool shutdown_requested(unsigned *flags)
{
    unsigned word = atomic_load(&request);
    *flags = word & ~SHUTDOWN_ASKED;
    return (word & SHUTDOWN_ASKED) != 0;
}

/* ---- softly ---- */

void shutdown_request_soft(unsigned flags)
{
    atomic_store(&soft_request, flags | SHUTDOWN_ASKED);
}

bool shutdown_is_soft(unsigned *flags)
{
    unsigned word = atomic_load_explicit(&soft_request, memory_order_relaxed);
    *flags = word & ~SHUTDOWN_ASKED;
    return (word & SHUTDOWN_ASKED) != 0;
}

bool shutdown_withdraw_soft(void)
{
    return (atomic_exchange(&soft_request, 0) & SHUTDOWN_ASKED) != 0;
}

int shutdown_event_fd(void)
{
    assert(event_fd >= 0);
    return event_fd;
}

/* ---- options ---- */

int64_t shutdown_timeout_s;
static _Atomic bool softly;

/* Not an OPTION_BOOL, whose value is no atomic. */
static bool parse_softly(const struct option *option UNUSED, const struct slice *words, int count,
                         const char **error)
{
    bool yes = count == 1 && slice_equal_nocase(words[0], "yes");
    if (!yes && (count != 1 || !slice_equal_nocase(words[0], "no"))) {
        *error = "argument must be 'yes' or 'no'";
        return false;
    }
    softly = yes;
    return true;
}

static void format_softly(const struct option *option UNUSED, struct buf *out)
{
    buf_append_cstr(out, softly ? "yes" : "no");
}

bool shutdown_signals_softly(void)
{
    return softly;
}

const struct option shutdown_options[] = {
    {.name = "shutdown-timeout",
     .type = OPTION_INT,
     .target = &shutdown_timeout_s,
     .initial = "10",
     .min = 0,
     .max = INT32_MAX},
    {.name = "soft-shutdown",
     .type = OPTION_CUSTOM,
     .initial = "no",
     .parse = parse_softly,
     .format = format_softly},
    {.name = NULL},
};
