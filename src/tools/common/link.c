/* A connection to a server: see link.h. hiredis resolves, connects and formats; reading is ours,
 * because Debian's hiredis (0.14) knows nothing of RESP3. */
#include "tools/common/link.h"

#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/reader.h"
#include "tools/common/text.h"

/* Asked of the socket in one read. */
#define LINK_READ_BYTES (64 * 1024)

/* Not more than this is taken in while something is sent. */
#define LINK_TAKEN_IN_MAX_BYTES (64UL * 1024 * 1024)

struct link {
    int fd;
    struct secure *secure; /* NULL: no TLS */
    struct reader *reader;
    const volatile sig_atomic_t *interrupt; /* may be NULL */
    char error[LINK_ERROR_BYTES];
};

static void set_keepalive(int fd, int idle_s)
{
    int on = 1;
    int probes = 3;
    int interval_s = idle_s / 3 > 0 ? idle_s / 3 : 1;
    /* A connection without probes works as well: failures are of no interest. */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

/* Takes the socket out of a hiredis context, which is freed. */
static struct link *link_from_context(redisContext *context, char *error)
{
    if (context == NULL) {
        snprintf(error, LINK_ERROR_BYTES, "out of memory");
        return NULL;
    }
    if (context->err != 0) {
        snprintf(error, LINK_ERROR_BYTES, "%s", context->errstr);
        redisFree(context);
        return NULL;
    }
    struct link *l = tool_calloc(1, sizeof(*l));
    l->fd = redisFreeKeepFd(context);
    l->reader = reader_create();
    return l;
}

static struct timeval timeval_from_ms(int ms)
{
    struct timeval tv = {ms / 1000, (ms % 1000) * 1000};
    return tv;
}

struct link *link_connect_tcp(const char *host, int port, int timeout_ms, int keepalive_s,
                              char *error)
{
    assert(port >= 1 && port <= 65535);
    redisContext *context = timeout_ms > 0
                                ? redisConnectWithTimeout(host, port, timeval_from_ms(timeout_ms))
                                : redisConnect(host, port);
    struct link *l = link_from_context(context, error);
    if (l != NULL && keepalive_s > 0) {
        set_keepalive(l->fd, keepalive_s);
    }
    return l;
}

struct link *link_connect_unix(const char *path, int timeout_ms, char *error)
{
    redisContext *context = timeout_ms > 0
                                ? redisConnectUnixWithTimeout(path, timeval_from_ms(timeout_ms))
                                : redisConnectUnix(path);
    return link_from_context(context, error);
}

void link_destroy(struct link **l)
{
    if (*l != NULL) {
        secure_destroy(&(*l)->secure);
        close((*l)->fd);
        reader_destroy(&(*l)->reader);
        free(*l);
        *l = NULL;
    }
}

void link_set_interrupt(struct link *l, const volatile sig_atomic_t *flag)
{
    l->interrupt = flag;
}

const char *link_error(const struct link *l)
{
    return l->error;
}

int link_socket(const struct link *l)
{
    return l->fd;
}

static enum link_status set_error(struct link *l, enum link_status status, const char *why)
{
    snprintf(l->error, sizeof(l->error), "%s", why);
    return status;
}

static enum link_status set_errno(struct link *l)
{
    return set_error(l, LINK_IO, strerror(errno));
}

static long long now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (long long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Waits until the socket is ready for `events`; deadline_ms is on now_ms()'s clock, -1 for none.
 * ppoll() takes the flag's test and the wait apart from a signal in between: SIGINT is let in
 * only while waiting. */
static enum link_status wait_ready(struct link *l, short events, long long deadline_ms)
{
    sigset_t block;
    sigset_t before;
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    for (;;) {
        sigprocmask(SIG_BLOCK, &block, &before);
        if (l->interrupt != NULL && *l->interrupt != 0) {
            sigprocmask(SIG_SETMASK, &before, NULL);
            return set_error(l, LINK_INTERRUPTED, "interrupted");
        }
        long long left_ms = deadline_ms < 0 ? -1 : deadline_ms - now_ms();
        struct timespec left = {0, 0};
        if (left_ms > 0) {
            left.tv_sec = left_ms / 1000;
            left.tv_nsec = (left_ms % 1000) * 1000000;
        }
        struct pollfd pfd = {l->fd, events, 0};
        int ready = ppoll(&pfd, 1, deadline_ms < 0 ? NULL : &left, &before);
        int saved_errno = errno;
        sigprocmask(SIG_SETMASK, &before, NULL);
        errno = saved_errno;
        if (ready > 0) {
            return LINK_OK;
        }
        if (ready == 0) {
            return set_error(l, LINK_TIMEOUT, "timed out");
        }
        if (errno != EINTR) {
            return set_errno(l);
        }
    }
}

bool link_secure(struct link *l, struct secure_context *context, char *error)
{
    l->secure = secure_create(context, l->fd);
    if (l->secure == NULL) {
        snprintf(error, LINK_ERROR_BYTES, "out of memory");
        return false;
    }
    for (;;) {
        enum secure_greeting greeting = secure_greet(l->secure, error);
        if (greeting == SECURE_DONE || greeting == SECURE_FAILED) {
            return greeting == SECURE_DONE;
        }
        if (wait_ready(l, greeting == SECURE_READS ? POLLIN : POLLOUT, -1) != LINK_OK) {
            snprintf(error, LINK_ERROR_BYTES, "%s", l->error);
            return false;
        }
    }
}

ssize_t link_receive_some(struct link *l, void *bytes, size_t room)
{
    return l->secure != NULL ? secure_recv(l->secure, bytes, room)
                             : recv(l->fd, bytes, room, MSG_DONTWAIT);
}

ssize_t link_send_some(struct link *l, const void *bytes, size_t len)
{
    return l->secure != NULL ? secure_send(l->secure, bytes, len)
                             : send(l->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool link_pending(const struct link *l)
{
    return l->secure != NULL && secure_pending(l->secure);
}

/* Takes in what the server has sent meanwhile, so that one that does not read on before its answers
 * are read does. False when there is nothing more to be had, or too much. */
static bool take_in(struct link *l)
{
    if (reader_pending(l->reader) > LINK_TAKEN_IN_MAX_BYTES) {
        return false;
    }
    ssize_t n = link_receive_some(l, reader_room(l->reader, LINK_READ_BYTES), LINK_READ_BYTES);
    if (n > 0) {
        reader_received(l->reader, (size_t)n);
    }
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

enum link_status link_send_bytes(struct link *l, const void *data, size_t len)
{
    const char *from = data;
    bool takes_in = true;
    while (len > 0) {
        ssize_t n = link_send_some(l, from, len);
        if (n >= 0) {
            from += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            short events = (short)(POLLOUT | (takes_in ? POLLIN : 0));
            enum link_status status = wait_ready(l, events, -1);
            if (status != LINK_OK) {
                return status;
            }
            takes_in = takes_in && take_in(l);
        } else if (errno != EINTR) {
            return set_errno(l);
        }
    }
    return LINK_OK;
}

enum link_status link_send(struct link *l, const struct word *args, size_t count)
{
    assert(count >= 1 && count <= 1024 * 1024 * 1024);
    const char **argv = tool_malloc(count * sizeof(*argv));
    size_t *lens = tool_malloc(count * sizeof(*lens));
    for (size_t i = 0; i < count; i++) {
        argv[i] = args[i].data;
        lens[i] = args[i].len;
    }
    char *command = NULL;
    int len = redisFormatCommandArgv(&command, (int)count, argv, lens);
    free(argv);
    free(lens);
    if (len < 0) {
        return set_error(l, LINK_IO, "the command is too long");
    }
    enum link_status status = link_send_bytes(l, command, (size_t)len);
    redisFreeCommand(command);
    return status;
}

/* Waits, and feeds the reader with what comes. Nothing may come of it: a signal, or TLS's own. */
static enum link_status receive(struct link *l, long long deadline_ms)
{
    enum link_status status = link_pending(l) ? LINK_OK : wait_ready(l, POLLIN, deadline_ms);
    if (status != LINK_OK) {
        return status;
    }
    char *room = reader_room(l->reader, LINK_READ_BYTES);
    ssize_t n = link_receive_some(l, room, LINK_READ_BYTES);
    if (n > 0) {
        reader_received(l->reader, (size_t)n);
    } else if (n == 0) {
        return set_error(l, LINK_CLOSED, "Server closed the connection");
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        return set_errno(l);
    }
    return LINK_OK;
}

enum link_status link_read(struct link *l, int timeout_ms, struct reply **out)
{
    long long deadline_ms = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
    for (;;) {
        switch (reader_next(l->reader, out)) {
        case READER_REPLY:
            return LINK_OK;
        case READER_ERROR:
            return set_error(l, LINK_PROTOCOL, reader_error(l->reader));
        case READER_MORE:
            break;
        }
        enum link_status status = receive(l, deadline_ms);
        if (status != LINK_OK) {
            return status;
        }
    }
}

enum link_status link_more(struct link *l, int timeout_ms)
{
    long long deadline_ms = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
    size_t before = reader_pending(l->reader);
    enum link_status status = LINK_OK;
    while (status == LINK_OK && reader_pending(l->reader) == before) {
        status = receive(l, deadline_ms);
    }
    return status;
}

const char *link_peek(const struct link *l, size_t *len)
{
    return reader_peek(l->reader, len);
}

void link_skip(struct link *l, size_t count)
{
    reader_skip(l->reader, count);
}
