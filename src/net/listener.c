/* See listener.h. */
#include "net/listener.h"

#include "base/clock.h"
#include "base/inbox.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "engine/auth.h"
#include "engine/gil.h"
#include "engine/shutdown.h"
#include "net/assign.h"
#include "net/client.h"
#include "net/socket.h"
#include "net/tls_settings.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Connections accepted in one callback, before others have a turn. */
#define ACCEPTS_A_CALL 64
/* How long nothing is accepted when the system has no descriptor or memory to give: asking again at
 * once would fail at once. */
#define ACCEPT_PAUSE_MS 100
/* TCP sockets for both ports, and a Unix socket. */
#define LISTENERS_MAX (2 * BIND_MAX + 1)

enum listening_kind { LISTENING_TCP, LISTENING_TLS, LISTENING_UNIX };

struct listening {
    int fd;
    enum listening_kind kind;
    int port;
    char address[INET6_ADDRSTRLEN + 2]; /* as bind has it */
    struct event *event;                /* NULL until the main thread watches it */
    int64_t keepalive_s; /* what its connections inherit as tcp-keepalive; -1: nothing */
    bool all_inherit;    /* nobody waits to be accepted who came before that was set */
    struct listening *next_dropped;
};

/* The sets of sockets are world state: CONFIG SET changes them on its thread, the main thread,
 * awake, watches and closes what has changed. Events are the main thread's. */
static struct {
    struct event_base *base;
    struct listening *sockets[LISTENERS_MAX];
    int count;
    struct listening
        *dropped; /* still open: closed by the main thread unless they are wanted again before */
    struct event *pause_timer;
    struct inbox inbox; /* what other threads want of the main thread's loop */
    struct event *inbox_event;
    uint64_t complained_s; /* when accept() failures were last logged */
} state;

/* ---- one connection ---- */

static const char denied[] =
    "-DENIED This server runs in protected mode: it has no password and accepts connections from "
    "this machine only. Connect through the loopback address, set a password with requirepass, or "
    "switch protected mode off (CONFIG SET protected-mode no, or protected-mode in keydb.conf) if "
    "nobody else can reach it.\r\n";

const char *listener_denial(bool local)
{
    if (!net_settings.protected_mode || local || auth_required()) {
        return NULL;
    }
    stats_add(STAT_REJECTED, 1);
    return denied;
}

static void reject(int fd, enum listening_kind kind, const char *text)
{
    /* Best effort: a fresh socket takes a line; who has gone misses nothing. TLS has no words
     * before its handshake. */
    if (kind != LISTENING_TLS) {
        ssize_t ignored = send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)ignored;
    }
    close(fd);
}

/* Connections inherit most settings of the socket that listens, which spares each of them five
 * system calls. */
static void let_inherit(struct listening *l)
{
    if (l->kind != LISTENING_UNIX && l->keepalive_s != net_settings.tcp_keepalive_s) {
        l->keepalive_s = net_settings.tcp_keepalive_s;
        l->all_inherit = false;
        socket_prepare_tcp(l->fd, (int)l->keepalive_s, 0);
    }
}

static void prepare_client(int fd, const struct listening *l)
{
    uint32_t mark = (uint32_t)net_settings.socket_mark_id;
    if (l->kind != LISTENING_UNIX && (mark || !l->all_inherit)) {
        socket_prepare_tcp(fd, (int)net_settings.tcp_keepalive_s, mark);
    }
}

static void accept_client(int fd, const struct listening *l, const char *peer, bool local)
{
    enum listening_kind kind = l->kind;
    unsigned flags_of_end;
    if (shutdown_is_soft(&flags_of_end)) {
        stats_add(STAT_REJECTED, 1);
        reject(fd, kind, "-ERR The server is shutting down softly\r\n");
        return;
    }
    int64_t reserved = local ? 0 : net_settings.maxclients_reserved;
    if ((int64_t)client_count() + reserved >= net_settings.maxclients) {
        stats_add(STAT_REJECTED, 1);
        reject(fd, kind, "-ERR max number of clients reached\r\n");
        return;
    }
    const char *denial = kind == LISTENING_TLS ? NULL /* told later */ : listener_denial(local);
    if (denial) {
        reject(fd, kind, denial);
        return;
    }
    prepare_client(fd, l);
    stats_add(STAT_CONNECTIONS, 1);
    uint32_t flags = (kind == LISTENING_UNIX ? CLIENT_UNIX : 0) | (local ? CLIENT_LOCAL : 0);
    struct client *c =
        kind == LISTENING_TLS ? client_create_tls(fd, peer, flags) : client_create(fd, peer, flags);
    if (c) {
        assign_client(c, assign_thread());
    } else {
        stats_add(STAT_REJECTED, 1);
        close(fd);
    }
}

static void enable(bool enabled)
{
    for (int i = 0; i < state.count; i++) {
        struct event *event = state.sockets[i]->event;
        if (event && enabled) {
            event_add(event, NULL);
        } else if (event) {
            event_del(event);
        }
    }
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    enable(true);
}

/* accept() failed for want of something: others go on being served, and it is tried again soon. */
static void pause_accepting(int error)
{
    uint64_t now_s = clock_mono_us() / 1000000;
    stats_add(STAT_ACCEPT_ERRORS, 1);
    if (now_s - state.complained_s >= 10 || state.complained_s == 0) {
        state.complained_s = now_s;
        log_warning("Can't accept a connection: %s", strerror(error));
    }
    struct timeval soon = {.tv_usec = ACCEPT_PAUSE_MS * 1000};
    enable(false);
    event_add(state.pause_timer, &soon);
}

static bool lacks_resources(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

static void accept_some(struct listening *l)
{
    let_inherit(l);
    for (int i = 0; i < ACCEPTS_A_CALL; i++) {
        char peer[SOCKET_ADDRESS_MAX];
        bool local;
        int fd = socket_accept(l->fd, peer, &local);
        if (fd >= 0) {
            accept_client(fd, l, peer, local);
        } else if (lacks_resources(errno)) {
            pause_accepting(errno);
            return;
        } else if (errno == EAGAIN) {
            l->all_inherit = true;
            return;
        } else if (errno != EINTR) {
            /* The connection's own trouble (ECONNABORTED, network errors): the next one may be
             * fine. */
            stats_add(STAT_ACCEPT_ERRORS, 1);
        }
    }
}

static void on_connection(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    gil_wake();
    accept_some(arg);
    gil_sleep();
}

/* ---- the set of sockets ---- */

static struct listening *create_listening(int fd_take, const char *address, int port,
                                          enum listening_kind kind)
{
    struct listening *l = mem_calloc(1, sizeof(*l));
    l->fd = fd_take;
    l->port = port;
    l->kind = kind;
    l->keepalive_s = -1;
    snprintf(l->address, sizeof(l->address), "%s", kind == LISTENING_UNIX ? "" : address);
    return l;
}

static void destroy_listening(struct listening *l)
{
    if (l->event) {
        event_free(l->event);
    }
    close(l->fd);
    mem_free(l);
}

/* An address with a leading minus may be missing on this machine. */
static bool is_optional_failure(const char *address, int error)
{
    return address[0] == '-' && (error == EADDRNOTAVAIL || error == EAFNOSUPPORT ||
                                 error == EPROTONOSUPPORT || error == ENOPROTOOPT);
}

static bool listens_there(const struct listening *l, const char *address, int port,
                          enum listening_kind kind)
{
    return l->kind == kind && l->port == port && strcmp(l->address, address) == 0;
}

/* The socket that listens there already, or NULL. */
static struct listening *find_listening(const char *address, int port, enum listening_kind kind)
{
    for (int i = 0; i < state.count; i++) {
        if (listens_there(state.sockets[i], address, port, kind)) {
            return state.sockets[i];
        }
    }
    struct listening *l = state.dropped;
    while (l && !listens_there(l, address, port, kind)) {
        l = l->next_dropped;
    }
    return l;
}

static bool is_among(const struct listening *l, struct listening *const *sockets, int count)
{
    for (int i = 0; i < count; i++) {
        if (sockets[i] == l) {
            return true;
        }
    }
    return false;
}

static bool is_dropped(const struct listening *l)
{
    const struct listening *d = state.dropped;
    while (d && d != l) {
        d = d->next_dropped;
    }
    return d != NULL;
}

/* While the set changes, an address may come beside "*" of the same port, or the other way round:
 * the old socket is closed only when the new one listens. */
static void share_ports(bool shared)
{
    for (int i = 0; i < state.count; i++) {
        socket_share_port(state.sockets[i]->fd, shared);
    }
    for (struct listening *l = state.dropped; l; l = l->next_dropped) {
        socket_share_port(l->fd, shared);
    }
}

/* Closes those of `sockets` that were opened for a set that is not to be. */
static void close_new(struct listening **sockets, int count)
{
    for (int i = 0; i < count; i++) {
        if (!is_among(sockets[i], state.sockets, state.count) && !is_dropped(sockets[i])) {
            destroy_listening(sockets[i]);
        }
    }
}

/* Adds the sockets of one port, opening those that are missing. False when one fails (told in the
 * log). */
static bool open_port(int port, enum listening_kind kind, struct listening **sockets, int *count)
{
    for (int i = 0; port > 0 && i < net_settings.bind_count; i++) {
        const char *address = net_settings.bind[i];
        const char *bare = address + (address[0] == '-');
        struct listening *known = find_listening(bare, port, kind);
        int fd = known ? -1
                       : socket_listen_tcp(bare, port, (int)net_settings.tcp_backlog,
                                           (uint32_t)net_settings.socket_mark_id,
                                           state.count > 0 || state.dropped);
        if (known) {
            sockets[(*count)++] = known;
        } else if (fd >= 0) {
            sockets[(*count)++] = create_listening(fd, bare, port, kind);
        } else if (is_optional_failure(address, errno)) {
            log_verbose("Not listening on %s: %s", bare, strerror(errno));
        } else {
            log_warning("Can't listen on %s port %d: %s", bare, port, strerror(errno));
            return false;
        }
    }
    return true;
}

/* Collects the TCP sockets that the settings ask for. -1 when one fails; those opened for it are
 * closed again. */
static int open_tcp(struct listening **sockets)
{
    int count = 0, port = (int)net_settings.port, tls_port = (int)tls_settings.port;
    if (port > 0 && port == tls_port) {
        /* Our own sockets may share a port while the set changes: they would for good. */
        log_warning("port and tls-port are both %d", port);
        return -1;
    }
    if (open_port(port, LISTENING_TCP, sockets, &count) &&
        open_port(tls_port, LISTENING_TLS, sockets, &count)) {
        return count;
    }
    close_new(sockets, count);
    return -1;
}

/* Makes `sockets` the set in use; those that are not in it are dropped. Boot, or world. */
static void choose(struct listening **sockets, int count)
{
    for (int i = 0; i < state.count; i++) {
        struct listening *l = state.sockets[i];
        if (!is_among(l, sockets, count)) {
            l->next_dropped = state.dropped;
            state.dropped = l;
        }
    }
    for (struct listening **link = &state.dropped; *link;) {
        if (is_among(*link, sockets, count)) {
            *link = (*link)->next_dropped;
        } else {
            link = &(*link)->next_dropped;
        }
    }
    memcpy(state.sockets, sockets, (size_t)count * sizeof(struct listening *));
    state.count = count;
}

/* Closes what was dropped and watches what is new. Main thread, awake. */
static void settle(void)
{
    while (state.dropped) {
        struct listening *l = state.dropped;
        state.dropped = l->next_dropped;
        destroy_listening(l);
    }
    for (int i = 0; i < state.count; i++) {
        struct listening *l = state.sockets[i];
        if (!l->event) {
            l->event = event_new(state.base, l->fd, EV_READ | EV_PERSIST, on_connection, l);
            event_add(l->event, NULL);
        }
    }
}

static void receive_change(struct inbox_message *message, void *receiver)
{
    (void)receiver;
    mem_free(message);
    settle();
}

static void on_inbox(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    gil_wake();
    inbox_receive(&state.inbox, NULL);
    gil_sleep();
}

/* ---- public verbs ---- */

static bool open_unix(struct listening **sockets, int *count)
{
    const char *path = net_settings.unixsocket;
    if (!path || !path[0]) {
        return true;
    }
    int fd =
        socket_listen_unix(path, (int)net_settings.unixsocketperm, (int)net_settings.tcp_backlog);
    if (fd < 0) {
        log_warning("Can't listen on Unix socket %s: %s", path, strerror(errno));
        return false;
    }
    sockets[(*count)++] = create_listening(fd, path, 0, LISTENING_UNIX);
    return true;
}

bool listener_open(void)
{
    struct listening *sockets[LISTENERS_MAX];
    int count = open_tcp(sockets);
    if (count < 0 || !open_unix(sockets, &count)) {
        return false;
    }
    if (count == 0) {
        log_warning("Nothing to listen on: set port or tls-port and bind, or unixsocket");
        return false;
    }
    choose(sockets, count);
    return true;
}

void listener_start(struct event_base *base)
{
    state.base = base;
    state.pause_timer = evtimer_new(base, on_pause_over, NULL);
    inbox_init(&state.inbox);
    state.inbox_event = event_new(base, state.inbox.event_fd, EV_READ | EV_PERSIST, on_inbox, NULL);
    event_add(state.inbox_event, NULL);
    settle();
}

void listener_stop(void)
{
    bool had_unix = false;
    if (state.inbox_event) {
        inbox_receive(&state.inbox, NULL); /* a change that came too late for the loop */
    }
    for (int i = 0; i < state.count; i++) {
        had_unix |= state.sockets[i]->kind == LISTENING_UNIX;
        destroy_listening(state.sockets[i]);
    }
    state.count = 0;
    if (had_unix) {
        unlink(net_settings.unixsocket);
    }
    if (state.inbox_event) {
        event_free(state.inbox_event);
        event_free(state.pause_timer);
        inbox_deinit(&state.inbox);
        state.inbox_event = state.pause_timer = NULL;
    }
}

bool listener_restart(void)
{
    struct listening *sockets[LISTENERS_MAX];
    if (!state.base) {
        return true; /* not started yet: the configuration is being read */
    }
    share_ports(true);
    int count = open_tcp(sockets);
    share_ports(false);
    if (count < 0) {
        return false;
    }
    for (int i = 0; i < state.count; i++) {
        if (state.sockets[i]->kind == LISTENING_UNIX) {
            sockets[count++] = state.sockets[i];
        }
    }
    choose(sockets, count);
    struct inbox_message *message = mem_alloc(sizeof(*message));
    message->receive = receive_change;
    inbox_post_take(&state.inbox, message);
    return true;
}

int listener_port(void)
{
    for (int i = 0; i < state.count; i++) {
        if (state.sockets[i]->kind != LISTENING_UNIX) {
            return socket_local_port(state.sockets[i]->fd);
        }
    }
    return 0;
}

int listener_count(void)
{
    return state.count;
}
