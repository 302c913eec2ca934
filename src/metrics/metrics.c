/* See metrics.h. */
#include "metrics/metrics.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/gil.h"
#include "metrics/access.h"
#include "metrics/big_keys.h"
#include "metrics/exposition.h"
#include "metrics/http.h"
#include "metrics/page.h"
#include "metrics/settings.h"
#include "metrics/status.h"
#include "net/open_files.h"
#include "net/settings.h"
#include "net/socket.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Connections that wait to be accepted. */
#define BACKLOG 64
/* Of the thread's loop, its inbox, and the socket that listens, with its successor. */
#define OWN_FDS 4

struct metrics_settings metrics_settings;

/* Where is listened, or will be. */
struct place {
    int port; /* 0: nowhere */
    int fd;   /* the thread's, once it has it */
    char bind[64];
};

/* World state. */
static struct {
    bool started;
    int64_t start_s;
    struct place in_force;
    bool is_prepared; /* a CONFIG SET has opened another place, which settle() decides about */
    struct place prepared;
} state = {.in_force = {.fd = -1}};

/* ---- answers ---- */

struct route {
    const char *path;
    void (*answer)(const struct http_request *r, const struct visitor *v, struct http_answer *a);
    bool own_pages_only; /* see is_asked_by_name */
};

static bool accepts_open_metrics(struct slice accept)
{
    static const char type[] = "application/openmetrics-text";
    return accept.len > 0 && memmem(accept.ptr, accept.len, type, sizeof(type) - 1);
}

static void answer_metrics(const struct http_request *r, const struct visitor *v UNUSED,
                           struct http_answer *a)
{
    struct figures f = {.count = 0};
    struct exposition x = {.out = &a->body, .open_metrics = accepts_open_metrics(r->accept)};
    figures_collect(&f);
    exposition_write_others(&x, state.start_s);
    exposition_write_figures(&x, &f);
    exposition_end(&x);
    figures_deinit(&f);
    a->type = x.open_metrics ? OPEN_METRICS_TYPE : PROMETHEUS_TYPE;
}

static void answer_page(const struct http_request *r UNUSED, const struct visitor *v UNUSED,
                        struct http_answer *a)
{
    struct slice html = page_html();
    a->type = "text/html; charset=utf-8";
    page_add_policy(a->fields);
    buf_append_slice(&a->body, html);
}

static void answer_status(const struct http_request *r UNUSED, const struct visitor *v,
                          struct http_answer *a)
{
    a->type = "application/json";
    status_write(&a->body, v);
}

static void answer_big_keys(const struct http_request *r, const struct visitor *v,
                            struct http_answer *a)
{
    if (!v->sees_keys) {
        a->status = 403;
        return;
    }
    a->type = "application/json";
    if (slice_equal(r->query, SLICE("start"))) {
        big_keys_start();
    }
    big_keys_write(&a->body);
}

static const struct route routes[] = {
    {"/metrics", answer_metrics, false},
    {"/", answer_page, true},
    {"/status.json", answer_status, true},
    {"/big-keys.json", answer_big_keys, true},
};

/* Pages of other sites can have a browser ask here by a name of theirs that leads to this machine;
 * they know no password. So who gives none asks by an address, or as localhost. */
static bool is_asked_by_name(struct slice host)
{
    const char *colon = host.len > 0 ? memrchr(host.ptr, ':', host.len) : NULL;
    if (host.len == 0 || host.ptr[0] == '[') {
        return false;
    }
    size_t len = colon ? (size_t)(colon - host.ptr) : host.len;
    if (slice_equal_nocase(slice_of(host.ptr, len), "localhost")) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (host.ptr[i] != '.' && (host.ptr[i] < '0' || host.ptr[i] > '9')) {
            return true;
        }
    }
    return false;
}

static void handle(const struct http_request *r, const struct http_peer *peer,
                   struct http_answer *a)
{
    struct visitor v;
    const struct route *route = routes;
    const struct route *end = routes + sizeof(routes) / sizeof(routes[0]);
    gil_assert_awake();
    while (route < end && !slice_equal(r->path, slice_cstr(route->path))) {
        route++;
    }
    a->status = access_check(r, peer, &v, a->fields);
    if (a->status != 200) {
        return;
    }
    if (route == end) {
        a->status = 404;
    } else if (route->own_pages_only && !r->authorization.ptr && is_asked_by_name(r->host)) {
        a->status = 403;
    } else {
        route->answer(r, &v, a);
    }
}

/* ---- where it listens ---- */

static bool is_same_place(const struct place *p)
{
    return p->port == (int)metrics_settings.port &&
           (p->port == 0 || strcmp(p->bind, metrics_settings.bind) == 0);
}

/* World. Opens what the settings say. False with errno set. */
static bool open_place(struct place *p)
{
    *p = (struct place){.port = (int)metrics_settings.port, .fd = -1};
    size_t len = strlen(metrics_settings.bind);
    if (p->port == 0) {
        return true;
    }
    if (len >= sizeof(p->bind)) {
        errno = EADDRNOTAVAIL;
        return false;
    }
    memcpy(p->bind, metrics_settings.bind, len + 1);
    p->fd = socket_listen_tcp(p->bind, p->port, BACKLOG, (uint32_t)net_settings.socket_mark_id,
                              state.in_force.fd >= 0);
    return p->fd >= 0;
}

static void drop_prepared(void)
{
    if (state.is_prepared && state.prepared.fd >= 0) {
        close(state.prepared.fd);
    }
    state.is_prepared = false;
}

/* World. The place in force stays until it is known that all of the CONFIG SET is accepted. */
static bool apply_place(const struct option *option UNUSED, const char **error)
{
    if (!state.started) {
        return true;
    }
    drop_prepared();
    if (is_same_place(&state.in_force)) {
        return true;
    }
    if (state.in_force.fd >= 0) {
        socket_share_port(state.in_force.fd, true); /* "127.0.0.1" beside "*" */
    }
    state.is_prepared = open_place(&state.prepared);
    int reason = errno;
    if (state.in_force.fd >= 0) {
        socket_share_port(state.in_force.fd, false);
    }
    if (!state.is_prepared) {
        log_warning("Can't listen for metrics on %s port %d: %s", metrics_settings.bind,
                    (int)metrics_settings.port, strerror(reason));
        *error = "Unable to listen on this port. Check server logs.";
    }
    return state.is_prepared;
}

/* World. */
static void settle_place(bool accepted)
{
    if (state.is_prepared && accepted) {
        state.in_force = state.prepared;
        state.is_prepared = false;
        http_listen_take(state.in_force.fd);
    }
    drop_prepared();
}

void metrics_setup(void)
{
    if (metrics_settings.port > 0) {
        open_files_reserve(HTTP_CONNECTIONS_MAX + OWN_FDS);
    }
}

bool metrics_start(void)
{
    gil_wake(); /* clients may change the settings already */
    state.start_s = clock_wall_ms() / 1000;
    if (!open_place(&state.in_force)) {
        log_warning("Can't listen for metrics on %s port %d: %s", metrics_settings.bind,
                    (int)metrics_settings.port, strerror(errno));
    } else if (http_start(handle)) {
        state.started = true;
        http_listen_take(state.in_force.fd);
    }
    gil_sleep();
    return state.started;
}

void metrics_stop(void)
{
    gil_wake();
    state.started = false;
    gil_sleep();
    http_stop();
    big_keys_teardown();
    state.in_force = (struct place){.fd = -1};
}

void metrics_leave_to_parent(void)
{
    if (state.in_force.fd >= 0) {
        close(state.in_force.fd);
    }
}

void metrics_teardown(void)
{
    mem_free(metrics_settings.bind);
    mem_free(metrics_settings.token);
    metrics_settings = (struct metrics_settings){.port = 0};
}

const struct option metrics_options[] = {
    {.name = "metrics-port",
     .type = OPTION_INT,
     .target = &metrics_settings.port,
     .initial = "0",
     .min = 0,
     .max = 65535,
     .apply = apply_place,
     .settle = settle_place},
    {.name = "metrics-bind",
     .type = OPTION_STRING,
     .target = &metrics_settings.bind,
     .initial = "127.0.0.1",
     .apply = apply_place,
     .settle = settle_place},
    {.name = "metrics-token",
     .type = OPTION_STRING,
     .flags = OPTION_SENSITIVE,
     .target = &metrics_settings.token,
     .initial = ""},
    {.name = NULL},
};
