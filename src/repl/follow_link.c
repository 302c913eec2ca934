/* See follow_link.h: the link's bytes. */
#include "base/stats.h"
#include "repl/follow_priv.h"
#include "repl/replica.h"
#include "repl/sync.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool follow_broken(struct follow_link *l, const char *why)
{
    if (l->why[0] == '\0') {
        snprintf(l->why, sizeof(l->why), "%s", why);
    }
    return false;
}

bool follow_refused(struct follow_link *l, const char *what, const char *line)
{
    char why[sizeof(l->why)];
    snprintf(why, sizeof(why), "%s: %.200s", what, line);
    return follow_broken(l, why);
}

/* Waits for the socket: 1 ready, 0 not in time, -1 interrupted. */
static int wait_ready(struct follow_link *l, short events, int64_t deadline_ms)
{
    for (;;) {
        int64_t left = deadline_ms - replica_clock_ms();
        short more = link_unsent(l->link) ? POLLOUT : 0;
        struct pollfd fds[2] = {{.fd = l->link->fd, .events = (short)(events | more)},
                                {.fd = l->wake_fd, .events = POLLIN}};
        if (l->interrupted(l)) {
            return -1;
        }
        int got = poll(fds, 2, left > 0 ? (int)left : 0);
        if (fds[1].revents) {
            uint64_t count;
            ssize_t ignored = read(l->wake_fd, &count, sizeof(count));
            (void)ignored;
            continue;
        }
        if (got > 0) {
            return 1;
        }
        if (got == 0) {
            return 0;
        }
        if (errno != EINTR) {
            return -1;
        }
    }
}

static int64_t usual_deadline(void)
{
    return replica_clock_ms() + sync_settings.timeout_s * 1000;
}

bool follow_send_bytes(struct follow_link *l, struct slice bytes)
{
    int64_t deadline_ms = usual_deadline();
    while (bytes.len > 0 || link_unsent(l->link)) {
        errno = EAGAIN;
        ssize_t sent = bytes.len > 0 ? link_send(l->link, bytes.ptr, bytes.len) : -1;
        if (sent > 0) {
            bytes = slice_of(bytes.ptr + sent, bytes.len - (size_t)sent);
        } else if (sent < 0 && errno == EAGAIN) {
            if (wait_ready(l, POLLOUT, deadline_ms) <= 0) {
                return follow_broken(l, "nothing could be sent within repl-timeout");
            }
        } else if (sent == 0 || errno != EINTR) {
            return follow_broken(l, sent == 0 ? FOLLOW_CLOSED : strerror(errno));
        }
    }
    return true;
}

bool follow_send(struct follow_link *l, int argc, const struct slice *argv)
{
    struct buf out = {0};
    link_format(&out, argc, argv);
    bool ok = follow_send_bytes(l, buf_slice(&out));
    buf_deinit(&out);
    return ok;
}

void follow_send_newline(struct follow_link *l)
{
    ssize_t ignored = link_send(l->link, "\n", 1);
    (void)ignored;
}

int follow_wait(struct follow_link *l, int ms)
{
    int64_t deadline_ms = replica_clock_ms() + ms;
    while (l->begin == l->end) {
        ssize_t got = link_receive(l->link, l->bytes, sizeof(l->bytes));
        if (got > 0) {
            l->begin = 0;
            l->end = (size_t)got;
            stats_add(STAT_REPL_INPUT_BYTES, (uint64_t)got);
        } else if (got < 0 && errno == EAGAIN) {
            int ready = wait_ready(l, POLLIN, deadline_ms);
            if (ready <= 0) {
                return ready;
            }
        } else if (got == 0 || errno != EINTR) {
            (void)follow_broken(l, got == 0 ? FOLLOW_CLOSED : strerror(errno));
            return -1;
        }
    }
    return 1;
}

bool follow_fill(struct follow_link *l)
{
    return follow_wait(l, (int)(usual_deadline() - replica_clock_ms())) > 0 ||
           follow_broken(l, "no answer within repl-timeout");
}

bool follow_line(struct follow_link *l, char line[FOLLOW_LINE_BYTES])
{
    size_t len = 0;
    for (;;) {
        if (!follow_fill(l)) {
            return false;
        }
        char c = l->bytes[l->begin++];
        if (c != '\n') {
            line[len++] = c;
            if (len == FOLLOW_LINE_BYTES) {
                return follow_broken(l, "a line of the handshake is too long");
            }
            continue;
        }
        while (len > 0 && line[len - 1] == '\r') {
            len--;
        }
        if (len > 0) {
            line[len] = '\0';
            return true;
        }
    }
}
