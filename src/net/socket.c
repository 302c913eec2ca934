/* See socket.h. */
#include "net/socket.h"

#include "base/num.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Numeric address and port as a sockaddr; 0 when the text is no address. */
static socklen_t resolve(const char *address, int port, struct sockaddr_storage *out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    memset(out, 0, sizeof(*out));
    if (strcmp(address, "*") == 0 || inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        return sizeof(*v4);
    }
    if (strcmp(address, "::*") == 0 || inet_pton(AF_INET6, address, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        return sizeof(*v6);
    }
    return 0;
}

static int close_failed(int fd)
{
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

void socket_share_port(int fd, bool shared)
{
    int value = shared;
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &value, sizeof(value));
}

int socket_listen_tcp(const char *address, int port, int backlog, uint32_t mark, bool beside_own)
{
    struct sockaddr_storage where;
    int yes = 1;
    socklen_t len = resolve(address, port, &where);
    if (len == 0) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (where.ss_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
    }
    if (mark && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0) {
        return close_failed(fd);
    }
    socket_share_port(fd, beside_own);
    if (bind(fd, (struct sockaddr *)&where, len) < 0 || listen(fd, backlog) < 0) {
        return close_failed(fd);
    }
    socket_share_port(fd, false);
    return fd;
}

int socket_listen_unix(const char *path, int mode, int backlog)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(where.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(where.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    unlink(path);
    mode_t before = mode ? umask((mode_t)(0777 & ~mode)) : 0;
    int result = bind(fd, (struct sockaddr *)&where, sizeof(where));
    if (mode) {
        umask(before);
    }
    if (result < 0 || listen(fd, backlog) < 0) {
        return close_failed(fd);
    }
    return fd;
}

void socket_set_delay(int fd, bool delay)
{
    int at_once = !delay;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once)); /* or no TCP: harmless */
}

void socket_prepare_tcp(int fd, int keepalive_s, uint32_t mark)
{
    int yes = 1, probes_idle = keepalive_s > 0;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (mark) {
        setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark));
    }
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &probes_idle, sizeof(probes_idle));
    if (probes_idle) {
        /* Three probes, a third of the time apart: a dead peer is noticed after twice the time. */
        int interval = keepalive_s / 3 > 0 ? keepalive_s / 3 : 1, probes = 3;
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &keepalive_s, sizeof(keepalive_s));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    }
}

/* "a.b.c.d:port". */
static void format_v4(const struct sockaddr_in *from, char *out)
{
    uint32_t ip = ntohl(from->sin_addr.s_addr);
    for (int shift = 24; shift >= 0; shift -= 8) {
        out += num_format_u64(out, ip >> shift & 0xff);
        *out++ = shift > 0 ? '.' : ':';
    }
    out[num_format_u64(out, ntohs(from->sin_port))] = '\0';
}

/* Formats an address; true for loopback and Unix ones. */
static bool format(const struct sockaddr_storage *from, char *out)
{
    char ip[INET6_ADDRSTRLEN];
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
        format_v4(v4, out);
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
        inet_ntop(AF_INET6, &v6->sin6_addr, ip, sizeof(ip));
        snprintf(out, SOCKET_ADDRESS_MAX, "[%s]:%u", ip, ntohs(v6->sin6_port));
        return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    }
    const struct sockaddr_un *local = (const struct sockaddr_un *)from;
    snprintf(out, SOCKET_ADDRESS_MAX, "%s:0", from->ss_family == AF_UNIX ? local->sun_path : "?");
    return true;
}

int socket_local_port(int fd)
{
    struct sockaddr_storage where;
    socklen_t len = sizeof(where);
    if (getsockname(fd, (struct sockaddr *)&where, &len) < 0) {
        return 0;
    }
    return where.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&where)->sin6_port)
                                       : ntohs(((struct sockaddr_in *)&where)->sin_port);
}

bool socket_peer(int fd, char *out)
{
    struct sockaddr_storage from = {0};
    socklen_t len = sizeof(from);
    if (getpeername(fd, (struct sockaddr *)&from, &len) < 0) {
        snprintf(out, SOCKET_ADDRESS_MAX, "?:0");
        return false;
    }
    return format(&from, out);
}

bool socket_local(int fd, char *out)
{
    struct sockaddr_storage from = {0};
    socklen_t len = sizeof(from);
    if (getsockname(fd, (struct sockaddr *)&from, &len) < 0) {
        snprintf(out, SOCKET_ADDRESS_MAX, "?:0");
        return false;
    }
    return format(&from, out);
}

int socket_accept(int listening, char *peer, bool *local)
{
    struct sockaddr_storage from = {0};
    socklen_t len = sizeof(from);
    int fd = accept4(listening, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 && from.ss_family == AF_UNIX) {
        *local = socket_local(fd, peer); /* the path is our end's */
    } else if (fd >= 0) {
        *local = format(&from, peer);
    }
    return fd;
}
