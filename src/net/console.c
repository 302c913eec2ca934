/* See console.h. */
#include "net/console.h"

#include "engine/console.h"
#include "net/input.h"
#include "net/output.h"
#include "net/sys.h"
#include "net/tls.h"
#include "net/turn_priv.h"

#include <errno.h>
#include <poll.h>

/* The call's share of the batch that runs; NULL when it is no call of one. */
static const struct batch_client *share_of(const struct call *c)
{
    const struct client *client = client_of(c->session);
    const struct batch *b = client->thread ? client->thread->batch : NULL;
    for (int i = 0; b && i < b->client_count; i++) {
        if (b->clients[i].client == client) {
            return &b->clients[i];
        }
    }
    return NULL;
}

static bool is_caught_up(const struct call *c)
{
    const struct batch_client *bc = share_of(c);
    return bc && bc->calls == c && bc->replied == 0 && output_is_empty(bc->client);
}

static bool is_free(const struct call *c)
{
    return is_caught_up(c) && share_of(c)->count == 1 &&
           input_bytes(client_of(c->session)).len == 0;
}

static int socket_of(const struct session *s)
{
    return client_of(s)->fd;
}

/* False when the time is over. An error shows at the next call for the socket. */
static bool wait_for(const struct client *c, short events, int wait_ms)
{
    struct pollfd p = {.fd = c->fd, .events = events};
    int ready = poll(&p, 1, wait_ms);
    return ready > 0;
}

/* As recv returns it: -1 with EAGAIN when nothing is there. */
static ssize_t receive(const struct client *c, char *bytes, size_t room)
{
    if (!(c->flags & CLIENT_TLS)) {
        return sys_recv(c->fd, bytes, room);
    }
    enum tls_status status;
    size_t got = tls_receive(c->tls, bytes, room, &status);
    if (tls_unsent(c->tls)) {
        (void)tls_flush(c->tls); /* what the protocol has answered by itself */
    }
    if (got > 0 || status == TLS_ENDED) {
        return (ssize_t)got;
    }
    errno = EAGAIN;
    return -1;
}

static ssize_t console_receive(const struct session *s, char *bytes, size_t room, int wait_ms)
{
    struct client *c = client_of(s);
    for (int i = 0; i < 2 && !(c->flags & CLIENT_CLOSE_ASAP); i++) {
        ssize_t got = receive(c, bytes, room);
        if (got > 0) {
            c->net_in_bytes += (uint64_t)got;
            return got;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            return -1;
        }
        if (i == 0 && !wait_for(c, POLLIN, wait_ms)) {
            return 0;
        }
    }
    return c->flags & CLIENT_CLOSE_ASAP ? -1 : 0;
}

static ssize_t transmit(const struct client *c, struct slice bytes)
{
    if (!(c->flags & CLIENT_TLS)) {
        return sys_send(c->fd, bytes.ptr, bytes.len);
    }
    struct iovec vector = {(void *)bytes.ptr, bytes.len};
    return tls_send(c->tls, &vector, 1);
}

/* What TLS has finished goes first. */
static bool is_flushed(const struct session *s)
{
    const struct client *c = client_of(s);
    return !(c->flags & CLIENT_TLS && tls_unsent(c->tls)) || tls_flush(c->tls) != TLS_WAITS;
}

static ssize_t console_send(const struct session *s, struct slice bytes, int wait_ms)
{
    struct client *c = client_of(s);
    if (c->flags & CLIENT_CLOSE_ASAP) {
        return -1;
    }
    if (!wait_for(c, POLLOUT, wait_ms) || !is_flushed(s)) {
        return 0;
    }
    ssize_t sent = transmit(c, bytes);
    if (sent >= 0) {
        c->net_out_bytes += (uint64_t)sent;
        return sent;
    }
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static void leave(const struct session *s)
{
    struct client *c = client_of(s);
    if (c->flags & CLIENT_TLS) {
        tls_leave(c->tls);
    }
    client_close_asap(c);
}

static void end(const struct session *s)
{
    client_of(s)->flags |= CLIENT_CLOSE_AFTER_REPLY;
}

void net_console_setup(void)
{
    static const struct console_ops ops = {is_caught_up, is_free,    socket_of, console_receive,
                                           console_send, is_flushed, leave,     end};
    console_set_ops(&ops);
}
