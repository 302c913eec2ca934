/* See link.h. hiredis makes the socket and reads replies; bytes and waiting are ours, so that TLS
 * is the one that clients have (net/tls.h). */
#include "repl/link.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/tls.h"
#include "net/tls_settings.h"

#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Between two looks at link->stop. */
#define SLICE_MS 100
#define READ_BYTES 16384

char *link_source_address;

static int64_t now_ms(void)
{
    return (int64_t)(clock_mono_us() / 1000);
}

static int64_t deadline_of(const struct link *l)
{
    int64_t now = now_ms();
    int64_t deadline = l->timeout_ms > INT64_MAX - now ? INT64_MAX : now + l->timeout_ms;
    return l->end_ms > 0 && l->end_ms < deadline ? l->end_ms : deadline;
}

/* Waits until the socket is ready; false at the deadline or when the end is wanted. */
static bool wait_ready(const struct link *l, short events, int64_t deadline_ms)
{
    struct pollfd p = {.fd = l->fd, .events = events};
    for (;;) {
        int64_t left = deadline_ms - now_ms();
        if (left <= 0 || (l->stop && *l->stop)) {
            return false;
        }
        int got = poll(&p, 1, left < SLICE_MS ? (int)left : SLICE_MS);
        if (got > 0) {
            return true;
        }
        if (got < 0 && errno != EINTR) {
            return false;
        }
    }
}

/* ---- bytes ---- */

ssize_t link_receive(struct link *l, char *bytes, size_t room)
{
    enum tls_status status;
    if (!l->tls) {
        return recv(l->fd, bytes, room, MSG_DONTWAIT);
    }
    (void)link_unsent(l); /* what the protocol has to answer goes first */
    size_t got = tls_receive(l->tls, bytes, room, &status);
    if (got > 0 || status == TLS_ENDED) {
        return (ssize_t)got;
    }
    errno = EAGAIN;
    return -1;
}

ssize_t link_send(struct link *l, const char *bytes, size_t len)
{
    if (!l->tls) {
        return send(l->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    struct iovec vector = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
    if (link_unsent(l)) {
        errno = EAGAIN;
        return -1;
    }
    return tls_send(l->tls, &vector, 1);
}

bool link_unsent(struct link *l)
{
    return l->tls && tls_unsent(l->tls) && tls_flush(l->tls) == TLS_WAITS;
}

/* ---- connecting ---- */

/* 0 or the errno value of a connection that could not be made. */
static int connect_error(const struct link *l)
{
    int error = 0;
    socklen_t len = sizeof(error);
    return getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : errno;
}

void link_prepare(struct link *l)
{
    if (tls_settings.replication) {
        l->tls = tls_create_link();
        l->broken = !l->tls;
    }
}

static bool greet(struct link *l, int64_t deadline_ms)
{
    char why[TLS_WHY_MAX];
    enum tls_status status;
    tls_attach(l->tls, l->fd);
    while ((status = tls_greet(l->tls, why)) == TLS_WAITS) {
        if (!wait_ready(l, link_unsent(l) ? POLLIN | POLLOUT : POLLIN, deadline_ms)) {
            snprintf(l->why, sizeof(l->why), "no answer to TLS in time");
            return false;
        }
    }
    if (status == TLS_ENDED) {
        log_warning("TLS to another server: %s", why);
        snprintf(l->why, sizeof(l->why), "TLS: %.*s", (int)sizeof(l->why) - 6, why);
    }
    return status == TLS_DONE;
}

bool link_connect(struct link *l, const char *host, int port, const char *source)
{
    l->end_ms = l->total_ms > 0 ? now_ms() + l->total_ms : 0;
    int64_t deadline_ms = deadline_of(l);
    l->context = source && source[0] ? redisConnectBindNonBlock(host, port, source)
                                     : redisConnectNonBlock(host, port);
    l->fd = l->context ? l->context->fd : -1;
    int error;
    l->why[0] = '\0';
    if (!l->context || l->context->err) {
        snprintf(l->why, sizeof(l->why), "%s", l->context ? l->context->errstr : "no memory");
    } else if (!wait_ready(l, POLLOUT, deadline_ms)) {
        snprintf(l->why, sizeof(l->why), "no answer in time");
    } else if ((error = connect_error(l)) != 0) {
        snprintf(l->why, sizeof(l->why), "%s", strerror(error));
    } else if (l->broken) {
        snprintf(l->why, sizeof(l->why), "TLS is not set up");
    } else if (!l->tls || greet(l, deadline_ms)) {
        return true;
    }
    link_close(l);
    return false;
}

void link_close(struct link *l)
{
    tls_destroy(&l->tls);
    if (l->context) {
        redisFree(l->context);
        l->context = NULL;
    }
    buf_deinit(&l->out);
}

/* ---- requests and replies ---- */

void link_format(struct buf *out, int argc, const struct slice *argv)
{
    buf_printf(out, "*%d\r\n", argc);
    for (int i = 0; i < argc; i++) {
        buf_printf(out, "$%zu\r\n", argv[i].len);
        buf_append_slice(out, argv[i]);
        buf_append_cstr(out, "\r\n");
    }
}

void link_add(struct link *l, int argc, const struct slice *argv)
{
    link_format(&l->out, argc, argv);
}

bool link_flush(struct link *l)
{
    size_t sent = 0;
    while (sent < l->out.len || link_unsent(l)) {
        if (!wait_ready(l, POLLOUT, deadline_of(l))) {
            return false;
        }
        ssize_t got = sent < l->out.len ? link_send(l, l->out.data + sent, l->out.len - sent) : 0;
        if (got < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
        sent += got > 0 ? (size_t)got : 0;
    }
    buf_deinit(&l->out);
    return true;
}

static enum link_reply classify(const redisReply *reply, char text[LINK_TEXT_BYTES])
{
    text[0] = '\0';
    if (reply->type != REDIS_REPLY_ERROR) {
        return LINK_FINE;
    }
    int len = reply->len < LINK_TEXT_BYTES ? (int)reply->len : LINK_TEXT_BYTES - 1;
    snprintf(text, LINK_TEXT_BYTES, "%.*s", len, reply->str);
    return LINK_ERROR;
}

/* Reads what there is into hiredis's reader; false: broken, or the time is over. */
static bool read_some(struct link *l, int64_t deadline_ms)
{
    char bytes[READ_BYTES];
    ssize_t got;
    while ((got = link_receive(l, bytes, sizeof(bytes))) < 0) {
        short events = link_unsent(l) ? POLLIN | POLLOUT : POLLIN;
        if ((errno != EAGAIN && errno != EINTR) || !wait_ready(l, events, deadline_ms)) {
            return false;
        }
    }
    return got > 0 && redisReaderFeed(l->context->reader, bytes, (size_t)got) == REDIS_OK;
}

enum link_reply link_read(struct link *l, char text[LINK_TEXT_BYTES])
{
    void *reply = NULL;
    int64_t deadline_ms = deadline_of(l);
    for (;;) {
        if (redisReaderGetReply(l->context->reader, &reply) != REDIS_OK) {
            return LINK_BROKEN;
        }
        if (reply) {
            enum link_reply result = classify(reply, text);
            freeReplyObject(reply);
            return result;
        }
        if (!read_some(l, deadline_ms)) {
            return LINK_BROKEN;
        }
    }
}

const struct option link_options[] = {
    {.name = "bind-source-addr",
     .type = OPTION_STRING,
     .flags = OPTION_NULLABLE,
     .target = &link_source_address,
     .initial = ""},
    {.name = NULL},
};
