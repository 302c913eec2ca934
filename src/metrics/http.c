/* See http.h. */
#include "metrics/http.h"

#include "base/inbox.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "engine/gil.h"
#include "net/socket.h"

#include <assert.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/listener.h>
#include <stdio.h>

/* Of a head; of a body, which nobody wants; of what is read ahead, which has to hold either. */
#define HEAD_MAX_BYTES ((ev_ssize_t)8 * 1024)
#define BODY_MAX_BYTES ((ev_ssize_t)1024)
#define AHEAD_MAX_BYTES ((size_t)16 * 1024)
/* Those that evhttp does not know, too: it has no 405. */
#define ALL_METHODS 0xffff

struct connection {
    struct bufferevent *stream;       /* a reference */
    struct evhttp_connection *served; /* NULL until evhttp has made it */
    bool answering;                   /* its time to ask is over */
    struct event *timer;
};

static struct {
    pthread_t thread;
    bool started;
    http_handler handler;
    struct inbox inbox;
    /* The thread's own. */
    bool stopping;
    bool starved; /* accept() failed, for want of descriptors: it is not tried until `retry` */
    struct event_base *base;
    struct evhttp *server;
    struct evhttp_bound_socket *bound; /* NULL: listens nowhere */
    struct event *inbox_event, *retry, *step_event;
    unsigned open; /* connections */
    void (*step)(void);
} http;

/* ---- listening ---- */

static void watch_listener(void)
{
    if (!http.bound) {
        return;
    }
    struct evconnlistener *listener = evhttp_bound_socket_get_listener(http.bound);
    if (http.open < HTTP_CONNECTIONS_MAX && !http.starved) {
        evconnlistener_enable(listener);
    } else {
        evconnlistener_disable(listener);
    }
}

static void on_accept_error(struct evconnlistener *listener, void *arg)
{
    static const struct timeval second = {.tv_sec = 1};
    (void)listener;
    (void)arg;
    http.starved = true;
    event_add(http.retry, &second);
    watch_listener();
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    http.starved = false;
    watch_listener();
}

static void listen_with(int fd_take)
{
    if (http.bound) {
        evhttp_del_accept_socket(http.server, http.bound); /* and closes it */
        http.bound = NULL;
    }
    if (fd_take >= 0) {
        http.bound = evhttp_accept_socket_with_handle(http.server, fd_take);
        assert(http.bound);
        evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(http.bound), on_accept_error);
        watch_listener();
    }
}

/* ---- connections ---- */

static void forget(struct connection *c)
{
    assert(http.open > 0);
    /* A child of fork may hold the socket, too: closed while it is watched, it would be told of
     * until that child ends. */
    bufferevent_disable(c->stream, EV_READ | EV_WRITE);
    bufferevent_decref(c->stream);
    event_free(c->timer);
    mem_free(c);
    http.open--;
    watch_listener();
}

static void on_close(struct evhttp_connection *served, void *arg)
{
    struct connection *c = arg;
    assert(c->served == served);
    forget(c);
}

/* evhttp has made its connection, or could not. */
static bool adopt(struct connection *c)
{
    void *owner;
    bufferevent_getcb(c->stream, NULL, NULL, NULL, &owner);
    if (!owner) {
        return false;
    }
    c->served = owner;
    assert(evhttp_connection_get_bufferevent(c->served) == c->stream);
    evhttp_connection_set_closecb(c->served, on_close, c);
    return true;
}

/* First at once; then when the time to ask, or to read the answer, is over. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    static const struct timeval limit = {.tv_sec = HTTP_TIME_S};
    struct connection *c = arg;
    (void)fd;
    (void)what;
    if (!c->served) {
        if (adopt(c)) {
            event_add(c->timer, &limit);
        } else {
            forget(c);
        }
    } else if (!c->answering && evbuffer_get_length(bufferevent_get_output(c->stream)) > 0) {
        c->answering = true; /* to make it may have taken all the time */
        event_add(c->timer, &limit);
    } else {
        evhttp_connection_free(c->served); /* calls on_close() */
    }
}

/* evhttp asks for a stream just before it makes a connection. It tells of a connection's end
 * whoever has asked for that, but shows nobody a connection that has made no request. The stream's
 * callbacks are given it, however: adopt() takes it from there when evhttp returns to the loop,
 * before a byte is read. */
static struct bufferevent *open_stream(struct event_base *base, void *arg)
{
    struct connection *c = mem_calloc(1, sizeof(*c));
    (void)arg;
    c->stream = bufferevent_socket_new(base, -1, 0);
    c->timer = evtimer_new(base, on_timer, c);
    assert(c->stream && c->timer);
    bufferevent_setwatermark(c->stream, EV_READ, 0, AHEAD_MAX_BYTES);
    bufferevent_incref(c->stream);
    event_active(c->timer, EV_TIMEOUT, 0);
    http.open++;
    watch_listener();
    return c->stream;
}

/* ---- requests ---- */

static struct slice field_of(struct evhttp_request *r, const char *name)
{
    const char *value = evhttp_find_header(evhttp_request_get_input_headers(r), name);
    return value ? slice_cstr(value) : slice_of(NULL, 0);
}

static const char *reason(int status)
{
    switch (status) {
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    default:
        return "OK";
    }
}

static void make_answer(struct evhttp_request *r, const struct http_peer *peer,
                        struct http_answer *a)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(r);
    const char *query = evhttp_uri_get_query(uri);
    struct http_request request = {
        .path = slice_cstr(evhttp_uri_get_path(uri)),
        .query = query ? slice_cstr(query) : slice_of(NULL, 0),
        .authorization = field_of(r, "Authorization"),
        .accept = field_of(r, "Accept"),
        .host = field_of(r, "Host"),
    };
    enum evhttp_cmd_type method = evhttp_request_get_command(r);
    if (!request.host.ptr && r->minor > 0) {
        a->status = 400; /* all but HTTP/1.0 have to say it */
    } else if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
        r->type = EVHTTP_REQ_GET; /* evhttp would keep a CONNECT's connection */
        a->status = 405;
        evhttp_add_header(a->fields, "Allow", "GET, HEAD");
    } else {
        gil_wake();
        http.handler(&request, peer, a);
        gil_sleep();
    }
}

static void send_answer(struct evhttp_request *r, struct http_answer *a)
{
    char length[24];
    struct evbuffer *body = evbuffer_new();
    if (!a->type) {
        buf_printf(&a->body, "%d %s\n", a->status, reason(a->status));
        a->type = "text/plain; charset=utf-8";
    }
    snprintf(length, sizeof(length), "%zu", a->body.len);
    evhttp_add_header(a->fields, "Connection", "close");
    evhttp_add_header(a->fields, "Cache-Control", "no-store");
    evhttp_add_header(a->fields, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(a->fields, "Content-Type", a->type);
    evhttp_add_header(a->fields, "Content-Length", length);
    if (evhttp_request_get_command(r) != EVHTTP_REQ_HEAD) {
        evbuffer_add(body, a->body.data, a->body.len);
    }
    /* Neither a wish of the client's nor the host that it names changes how the connection ends. */
    evhttp_remove_header(evhttp_request_get_input_headers(r), "Connection");
    r->flags &= ~EVHTTP_PROXY_REQUEST;
    evhttp_send_reply(r, a->status, reason(a->status), body);
    evbuffer_free(body);
}

static void on_request(struct evhttp_request *r, void *arg)
{
    struct bufferevent *stream =
        evhttp_connection_get_bufferevent(evhttp_request_get_connection(r));
    char address[SOCKET_ADDRESS_MAX];
    struct http_peer peer = {.address = address};
    struct http_answer a = {.fields = evhttp_request_get_output_headers(r)};
    (void)arg;
    peer.local = socket_peer(bufferevent_getfd(stream), address);
    make_answer(r, &peer, &a);
    send_answer(r, &a);
    buf_deinit(&a.body);
    /* A client that has sent all it will may say so before it has read the answer. */
    bufferevent_disable(stream, EV_READ);
}

/* ---- the thread ---- */

struct listen_message {
    struct inbox_message message;
    int fd;
};

static void receive_listen(struct inbox_message *message, void *receiver)
{
    struct listen_message *m = (struct listen_message *)message;
    (void)receiver;
    listen_with(m->fd);
    mem_free(m);
}

void http_listen_take(int fd_take)
{
    struct listen_message *m = mem_alloc(sizeof(*m));
    *m = (struct listen_message){.message = {.receive = receive_listen}, .fd = fd_take};
    inbox_post_take(&http.inbox, &m->message);
}

static void receive_stop(struct inbox_message *message, void *receiver)
{
    (void)receiver;
    mem_free(message);
    http.stopping = true;
}

static void on_inbox(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    inbox_receive(&http.inbox, NULL);
}

static void on_step(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    http.step();
}

void http_call_later(void (*step)(void), unsigned wait_ms)
{
    struct timeval wait = {.tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000};
    http.step = step;
    event_add(http.step_event, &wait);
}

static void *run(void *arg)
{
    (void)arg;
    thread_enter("metrics");
    while (!http.stopping) {
        event_base_loop(http.base, EVLOOP_ONCE);
    }
    listen_with(-1);
    evhttp_free(http.server); /* closes its connections */
    thread_leave();
    return NULL;
}

/* The thread's end has freed the server, or it was not started. */
static void destroy_loop(void)
{
    event_free(http.inbox_event);
    event_free(http.retry);
    event_free(http.step_event);
    event_base_free(http.base);
    inbox_deinit(&http.inbox);
}

static bool create_loop(void)
{
    struct event_config *config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK); /* one thread uses it */
    http.base = event_base_new_with_config(config);
    event_config_free(config);
    if (!http.base) {
        log_warning("Can't create the event loop for metrics");
        return false;
    }
    inbox_init(&http.inbox);
    http.inbox_event =
        event_new(http.base, http.inbox.event_fd, EV_READ | EV_PERSIST, on_inbox, NULL);
    http.retry = evtimer_new(http.base, on_retry, NULL);
    http.step_event = evtimer_new(http.base, on_step, NULL);
    event_add(http.inbox_event, NULL);
    return true;
}

static void create_server(void)
{
    http.server = evhttp_new(http.base);
    assert(http.server);
    evhttp_set_bevcb(http.server, open_stream, NULL);
    evhttp_set_gencb(http.server, on_request, NULL);
    evhttp_set_allowed_methods(http.server, ALL_METHODS);
    evhttp_set_max_headers_size(http.server, HEAD_MAX_BYTES);
    evhttp_set_max_body_size(http.server, BODY_MAX_BYTES);
    /* An answer to who still sends would be lost. */
    evhttp_set_flags(http.server, EVHTTP_SERVER_LINGERING_CLOSE);
}

bool http_start(http_handler handler)
{
    http.handler = handler;
    http.stopping = http.starved = false;
    if (!create_loop()) {
        return false;
    }
    create_server();
    int error = thread_start(&http.thread, run, NULL);
    http.started = error == 0;
    if (error) {
        log_warning("Can't start the thread for metrics: %s", strerror(error));
        evhttp_free(http.server);
        destroy_loop();
    }
    return http.started;
}

void http_stop(void)
{
    if (!http.started) {
        return;
    }
    struct inbox_message *m = mem_alloc(sizeof(*m));
    m->receive = receive_stop;
    inbox_post_take(&http.inbox, m);
    pthread_join(http.thread, NULL);
    destroy_loop();
    http.started = false;
}
