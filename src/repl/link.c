/* See link.h. hiredis makes the socket and knows the protocol; waiting is done here. */
#include "repl/link.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Between two looks at link->stop. */
#define SLICE_MS 100

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
    struct pollfd p = {.fd = l->context->fd, .events = events};
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

static bool is_connected(const struct link *l)
{
    int error = 0;
    socklen_t len = sizeof(error);
    return getsockopt(l->context->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
}

bool link_connect(struct link *l, const char *host, int port, const char *source)
{
    l->end_ms = l->total_ms > 0 ? now_ms() + l->total_ms : 0;
    l->context = source && source[0] ? redisConnectBindNonBlock(host, port, source)
                                     : redisConnectNonBlock(host, port);
    if (l->context && !l->context->err && wait_ready(l, POLLOUT, deadline_of(l)) &&
        is_connected(l)) {
        return true;
    }
    link_close(l);
    return false;
}

void link_close(struct link *l)
{
    if (l->context) {
        redisFree(l->context);
        l->context = NULL;
    }
}

bool link_add(struct link *l, int argc, const struct slice *argv)
{
    const char **words = mem_alloc((size_t)argc * sizeof(*words));
    size_t *lengths = mem_alloc((size_t)argc * sizeof(*lengths));
    for (int i = 0; i < argc; i++) {
        words[i] = argv[i].ptr;
        lengths[i] = argv[i].len;
    }
    bool ok = redisAppendCommandArgv(l->context, argc, words, lengths) == REDIS_OK;
    mem_free(lengths);
    mem_free(words);
    return ok;
}

bool link_flush(struct link *l)
{
    int done = 0;
    while (!done) {
        if (!wait_ready(l, POLLOUT, deadline_of(l)) ||
            redisBufferWrite(l->context, &done) != REDIS_OK) {
            return false;
        }
    }
    return true;
}

static enum link_reply judge(const redisReply *reply, char text[LINK_TEXT_BYTES])
{
    text[0] = '\0';
    if (reply->type != REDIS_REPLY_ERROR) {
        return LINK_FINE;
    }
    int len = reply->len < LINK_TEXT_BYTES ? (int)reply->len : LINK_TEXT_BYTES - 1;
    snprintf(text, LINK_TEXT_BYTES, "%.*s", len, reply->str);
    return LINK_ERROR;
}

enum link_reply link_read(struct link *l, char text[LINK_TEXT_BYTES])
{
    void *reply = NULL;
    int64_t deadline_ms = deadline_of(l);
    for (;;) {
        if (redisGetReplyFromReader(l->context, &reply) != REDIS_OK) {
            return LINK_BROKEN;
        }
        if (reply) {
            enum link_reply result = judge(reply, text);
            freeReplyObject(reply);
            return result;
        }
        if (!wait_ready(l, POLLIN, deadline_ms) || redisBufferRead(l->context) != REDIS_OK) {
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
