/* One thread of a load, as in worker.h. */
#include "tools/benchmark/worker.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/benchmark/reply_skip.h"

/* One recv takes at most this; large replies come in as many events. */
#define RECEIVE_BYTES (256 * 1024)
#define EVENTS_MAX 256
/* How long a thread may overlook that another has failed or that its time is up. */
#define POLL_MS 100
/* A thread takes its share of a limited plan in this many portions, so that all end together. */
#define GRANTS_A_THREAD 64
#define ERROR_SHOW_NS UINT64_C(1000000000)

enum conn_state {
    CONN_CLOSED,
    CONN_CONNECTING,
    CONN_SECURING, /* TLS's handshake */
    CONN_GREETING,
    CONN_READY, /* nothing is under way */
    CONN_BUSY,  /* a pipeline is under way */
};

struct conn {
    int fd;
    struct secure *secure; /* NULL: no TLS */
    enum conn_state state;
    int64_t awaited;                     /* replies still to come */
    uint64_t start_ns;                   /* when the pipeline under way was sent or due */
    const struct bench_request *request; /* whose end `rest` is; NULL: of none, or of a copy */
    const char *rest;                    /* what the socket has not taken yet */
    size_t rest_len;
    char *rest_owned; /* a copy that `rest` points into, or NULL */
    uint64_t errors_seen;
    struct bench_reply_skip skip;
};

struct bench_worker {
    struct bench_crew *crew;
    const struct bench_plan *plan;
    int epoll_fd;
    uint32_t clients;
    uint32_t opening;     /* connections whose greeting is not over */
    uint32_t active;      /* connections that may still send */
    uint32_t ready_count; /* used entries of `ready` */
    bool started;
    bool over;            /* this thread sends nothing any more */
    uint64_t grant;       /* requests that may be sent before asking the crew again */
    uint64_t deadline_ns; /* 0: none */
    double due_ns;        /* next due moment of a plan with a rate */
    double interval_ns;   /* mean time between two sends; 0: closed loop */
    uint64_t random[2];
    uint64_t last_reply_ns;
    uint64_t errors;
    struct conn *conns;
    struct conn **ready; /* connections that wait for a due moment */
    struct bench_request *requests;
    double *thresholds; /* cumulative weights, scaled to 1 */
    char *buffer;
    struct bench_hist *latency;
    uint64_t done;
    uint64_t latency_sum_ns;
    _Atomic uint64_t published_done;
    _Atomic uint64_t published_sum_ns;
};

void bench_crew_fail(struct bench_crew *crew, const char *format, ...)
{
    pthread_mutex_lock(&crew->failure_lock);
    if (crew->failure[0] == '\0') {
        va_list args;
        va_start(args, format);
        vsnprintf(crew->failure, sizeof(crew->failure), format, args);
        va_end(args);
    }
    pthread_mutex_unlock(&crew->failure_lock);
    atomic_store(&crew->stop, true);
}

/* xoroshiro128+: two words of state, well mixed, a few cycles. */
static inline uint64_t random_next(struct bench_worker *worker)
{
    uint64_t s0 = worker->random[0];
    uint64_t s1 = worker->random[1];
    uint64_t result = s0 + s1;
    s1 ^= s0;
    worker->random[0] = ((s0 << 24) | (s0 >> 40)) ^ s1 ^ (s1 << 16);
    worker->random[1] = (s1 << 37) | (s1 >> 27);
    return result;
}

/* splitmix64: spreads seeds that differ in few bits. */
static uint64_t seed_mix(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* From 0 (excluded) to 1 (included). */
static double random_unit(struct bench_worker *worker)
{
    return ((double)(random_next(worker) >> 11) + 1.0) / 9007199254740992.0;
}

static int templates_build(struct bench_worker *worker)
{
    const struct bench_plan *plan = worker->plan;
    worker->thresholds = calloc(plan->request_count + 1, sizeof(worker->thresholds[0]));
    if (worker->thresholds == NULL) {
        return -1;
    }
    worker->requests = calloc(plan->request_count + 1, sizeof(worker->requests[0]));
    if (worker->requests == NULL) {
        return -1;
    }
    for (size_t i = 0; i < plan->request_count; i++) {
        worker->requests[i] = BENCH_REQUEST_EMPTY;
    }
    double sum = 0;
    for (size_t i = 0; i < plan->request_count; i++) {
        sum += plan->weights[i];
        worker->thresholds[i] = sum;
        if (bench_request_copy(&worker->requests[i], &plan->requests[i]) != 0) {
            return -1;
        }
    }
    assert(plan->request_count == 0 || sum > 0);
    for (size_t i = 0; i < plan->request_count; i++) {
        worker->thresholds[i] /= sum;
    }
    return 0;
}

struct bench_worker *bench_worker_create(struct bench_crew *crew, uint32_t index, uint32_t clients)
{
    assert(crew != NULL && clients > 0);
    struct bench_worker *worker = calloc(1, sizeof(*worker));
    if (worker == NULL) {
        return NULL;
    }
    worker->crew = crew;
    worker->plan = crew->plan;
    worker->clients = clients;
    uint64_t seed = crew->plan->seed + ((uint64_t)index << 32);
    worker->random[0] = seed_mix(&seed);
    worker->random[1] = seed_mix(&seed);
    worker->conns = calloc(clients, sizeof(worker->conns[0]));
    worker->ready = calloc(clients, sizeof(worker->ready[0]));
    worker->buffer = malloc(RECEIVE_BYTES);
    worker->latency = bench_hist_create();
    worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (worker->conns == NULL || worker->ready == NULL || worker->buffer == NULL ||
        worker->latency == NULL || worker->epoll_fd < 0 || templates_build(worker) != 0) {
        bench_worker_destroy(&worker);
        return NULL;
    }
    for (uint32_t i = 0; i < clients; i++) {
        worker->conns[i].fd = -1;
    }
    return worker;
}

static void conn_close(struct conn *conn)
{
    secure_destroy(&conn->secure);
    if (conn->fd >= 0) {
        close(conn->fd);
    }
    free(conn->rest_owned);
    conn->rest_owned = NULL;
    conn->rest = NULL;
    conn->rest_len = 0;
    conn->fd = -1;
    conn->state = CONN_CLOSED;
}

void bench_worker_destroy(struct bench_worker **worker)
{
    assert(worker != NULL);
    struct bench_worker *gone = *worker;
    if (gone == NULL) {
        return;
    }
    for (uint32_t i = 0; gone->conns != NULL && i < gone->clients; i++) {
        conn_close(&gone->conns[i]);
    }
    for (size_t i = 0; gone->requests != NULL && i < gone->plan->request_count; i++) {
        bench_request_deinit(&gone->requests[i]);
    }
    if (gone->epoll_fd >= 0) {
        close(gone->epoll_fd);
    }
    bench_hist_destroy(&gone->latency);
    free(gone->conns);
    free(gone->ready);
    free(gone->requests);
    free(gone->thresholds);
    free(gone->buffer);
    free(gone);
    *worker = NULL;
}

static void conn_watch(struct bench_worker *worker, struct conn *conn, int op, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.ptr = conn}};
    if (epoll_ctl(worker->epoll_fd, op, conn->fd, &event) != 0) {
        bench_crew_fail(worker->crew, "epoll_ctl: %s", strerror(errno));
    }
}

/* Tells the user and ends the load. */
static void conn_failed(struct bench_worker *worker, const char *what, const char *why)
{
    char name[160];
    bench_target_name(worker->plan->target, name, sizeof(name));
    bench_crew_fail(worker->crew, "%s %s: %s", what, name, why);
}

static void conn_open(struct bench_worker *worker, struct conn *conn)
{
    char error[128];
    assert(conn->state == CONN_CLOSED);
    conn->fd = bench_target_connect(worker->plan->target, error, sizeof(error));
    if (conn->fd < 0) {
        conn_failed(worker, "Could not connect to server at", error);
        return;
    }
    bench_reply_skip_init(&conn->skip);
    conn->errors_seen = 0;
    conn->awaited = 0;
    conn->state = CONN_CONNECTING;
    worker->opening++;
    conn_watch(worker, conn, EPOLL_CTL_ADD, EPOLLOUT);
}

/* Sends from `rest` up to its end, or to where the template's file takes over. False: failed. */
static bool rest_send(struct bench_worker *worker, struct conn *conn)
{
    const struct bench_request *request = conn->request;
    bool has_file = request != NULL && request->file >= 0 && conn->secure == NULL;
    size_t at = has_file ? request->len - conn->rest_len : 0;
    ssize_t sent;
    if (has_file && at >= request->file_from) {
        off_t offset = (off_t)at;
        sent = sendfile(conn->fd, request->file, &offset, conn->rest_len);
    } else if (conn->secure != NULL) {
        sent = secure_send(conn->secure, conn->rest, conn->rest_len);
    } else {
        size_t len = has_file ? request->file_from - at : conn->rest_len;
        int more = has_file ? MSG_MORE : 0;
        sent = send(conn->fd, conn->rest, len, MSG_NOSIGNAL | MSG_DONTWAIT | more);
    }
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        conn_failed(worker, "Error writing to the server at", strerror(errno));
        return false;
    }
    size_t taken = sent > 0 ? (size_t)sent : 0;
    conn->rest += taken;
    conn->rest_len -= taken;
    return true;
}

/* Sends what is left; the rest waits for EPOLLOUT, which is on when `watched`. */
static void conn_flush(struct bench_worker *worker, struct conn *conn, bool watched)
{
    const char *before = conn->rest;
    if (!rest_send(worker, conn)) {
        return;
    }
    while (conn->secure != NULL && conn->rest_len > 0 && conn->rest != before) {
        before = conn->rest; /* a record was taken: perhaps more are */
        if (!rest_send(worker, conn)) {
            return;
        }
    }
    bool head_went = conn->rest != before && conn->rest_len > 0 && conn->request != NULL &&
                     conn->request->file >= 0 && conn->secure == NULL;
    if (head_went && !rest_send(worker, conn)) {
        return;
    }
    if (conn->rest_len == 0) {
        free(conn->rest_owned);
        conn->rest_owned = NULL;
        if (watched) {
            conn_watch(worker, conn, EPOLL_CTL_MOD, EPOLLIN);
        }
    } else if (!watched) {
        conn_watch(worker, conn, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
    }
}

static struct bench_request *request_pick(struct bench_worker *worker)
{
    size_t last = worker->plan->request_count - 1;
    size_t i = 0;
    if (last > 0) {
        double at = random_unit(worker);
        while (i < last && at > worker->thresholds[i]) {
            i++;
        }
    }
    return &worker->requests[i];
}

static void request_patch(struct bench_worker *worker, struct bench_request *request)
{
    size_t count = request->slot_count;
    uint64_t keyspace = worker->plan->keyspace;
    if (count == 0) {
        return;
    }
    if (worker->plan->sequential) {
        uint64_t number = atomic_fetch_add(&worker->crew->next_number, count);
        for (size_t i = 0; i < count; i++) {
            bench_request_digits(request->bytes + request->slots[i], number++ % keyspace);
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned __int128 scaled = (unsigned __int128)random_next(worker) * keyspace;
        bench_request_digits(request->bytes + request->slots[i], (uint64_t)(scaled >> 64));
    }
}

static void conn_send(struct bench_worker *worker, struct conn *conn, uint64_t start_ns)
{
    assert(conn->state == CONN_READY && conn->rest_len == 0);
    struct bench_request *request = request_pick(worker);
    request_patch(worker, request);
    conn->state = CONN_BUSY;
    conn->awaited = request->pipeline;
    conn->start_ns = start_ns;
    conn->request = request;
    conn->rest = request->bytes;
    conn->rest_len = request->len;
    conn_flush(worker, conn, false);
    if (conn->rest_len > 0 &&
        (request->len - conn->rest_len < request->file_from || conn->secure != NULL)) {
        /* The template is patched again before the socket takes this. */
        conn->rest_owned = malloc(conn->rest_len);
        if (conn->rest_owned == NULL) {
            bench_crew_fail(worker->crew, "out of memory");
            return;
        }
        memcpy(conn->rest_owned, conn->rest, conn->rest_len);
        conn->rest = conn->rest_owned;
        conn->request = NULL;
    }
}

/* Whether one more pipeline may be sent; takes it from the thread's grant. */
static bool grant_take(struct bench_worker *worker, uint64_t now_ns)
{
    const struct bench_plan *plan = worker->plan;
    uint64_t pipeline = plan->requests[0].pipeline;
    if (worker->over || (worker->deadline_ns != 0 && now_ns >= worker->deadline_ns)) {
        worker->over = true;
        return false;
    }
    if (plan->total == 0) {
        return true;
    }
    if (worker->grant == 0) {
        uint64_t portion = plan->total / plan->threads / GRANTS_A_THREAD / pipeline * pipeline;
        if (portion < pipeline) {
            portion = pipeline;
        }
        uint64_t before = atomic_fetch_add(&worker->crew->granted, portion);
        if (before >= plan->total) {
            worker->over = true;
            return false;
        }
        uint64_t left = (plan->total - before + pipeline - 1) / pipeline * pipeline;
        worker->grant = portion < left ? portion : left;
    }
    worker->grant -= pipeline;
    return true;
}

static void conn_retire(struct bench_worker *worker, struct conn *conn)
{
    assert(worker->active > 0);
    worker->active--;
    conn_close(conn);
}

/* A connection has nothing under way: let it send, wait for its turn, or go. */
static void conn_next(struct bench_worker *worker, struct conn *conn, uint64_t now_ns)
{
    if (worker->interval_ns > 0) {
        worker->ready[worker->ready_count++] = conn;
    } else if (grant_take(worker, now_ns)) {
        conn_send(worker, conn, now_ns);
    } else {
        conn_retire(worker, conn);
    }
}

/* Greeted: from here on the connection works. */
static void conn_opened(struct bench_worker *worker, struct conn *conn)
{
    assert(worker->opening > 0);
    worker->opening--;
    conn->state = CONN_READY;
    conn_watch(worker, conn, EPOLL_CTL_MOD, EPOLLIN);
    if (worker->started) {
        /* Opened in the middle of a load without keep-alive; its request was granted before. */
        conn_send(worker, conn, clock_mono_ns());
    }
}

/* The connection stands: sends what it opens with. */
static void conn_greet(struct bench_worker *worker, struct conn *conn)
{
    const struct bench_greeting *greeting = &worker->crew->greeting;
    if (greeting->replies == 0) {
        conn_opened(worker, conn);
        return;
    }
    conn->state = CONN_GREETING;
    conn->awaited = greeting->replies;
    conn->request = NULL;
    conn->rest = greeting->bytes;
    conn->rest_len = greeting->len;
    conn_watch(worker, conn, EPOLL_CTL_MOD, EPOLLIN);
    conn_flush(worker, conn, false);
}

/* The next step of TLS's handshake. */
static void conn_go_on_securing(struct bench_worker *worker, struct conn *conn)
{
    char error[SECURE_ERROR_BYTES];
    switch (secure_greet(conn->secure, error)) {
    case SECURE_DONE:
        conn_greet(worker, conn);
        break;
    case SECURE_READS:
        conn_watch(worker, conn, EPOLL_CTL_MOD, EPOLLIN);
        break;
    case SECURE_WRITES:
        conn_watch(worker, conn, EPOLL_CTL_MOD, EPOLLOUT);
        break;
    case SECURE_FAILED:
        conn_failed(worker, "Could not connect to server at", error);
        break;
    }
}

static void conn_on_connected(struct bench_worker *worker, struct conn *conn)
{
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    if (error != 0) {
        conn_failed(worker, "Could not connect to server at", strerror(error));
        return;
    }
    struct secure_context *secure = worker->plan->target->secure;
    if (secure == NULL) {
        conn_greet(worker, conn);
        return;
    }
    conn->secure = secure_create(secure, conn->fd);
    if (conn->secure == NULL) {
        bench_crew_fail(worker->crew, "out of memory");
        return;
    }
    conn->state = CONN_SECURING;
    conn_go_on_securing(worker, conn);
}

/* An error reply ends the load, unless the user wants to see them pass by. */
static void conn_on_error_reply(struct bench_worker *worker, struct conn *conn, uint64_t now_ns)
{
    struct bench_crew *crew = worker->crew;
    uint64_t fresh = conn->skip.error_count - conn->errors_seen;
    conn->errors_seen = conn->skip.error_count;
    int text_len = (int)conn->skip.error_len;
    if (conn->state == CONN_GREETING || !worker->plan->show_errors) {
        bench_crew_fail(crew, "Error from server: %.*s", text_len, conn->skip.error_text);
        return;
    }
    worker->errors += fresh;
    uint64_t shown_ns = atomic_load(&crew->last_error_shown_ns);
    if ((shown_ns == 0 || now_ns - shown_ns >= ERROR_SHOW_NS) &&
        atomic_compare_exchange_strong(&crew->last_error_shown_ns, &shown_ns, now_ns)) {
        fprintf(stderr, "Error from server: %.*s\n", text_len, conn->skip.error_text);
    }
}

static void conn_pipeline_done(struct bench_worker *worker, struct conn *conn, uint64_t now_ns)
{
    conn->state = CONN_READY;
    if (worker->plan->keepalive) {
        conn_next(worker, conn, now_ns);
        return;
    }
    if (grant_take(worker, now_ns)) {
        conn_close(conn);
        conn_open(worker, conn);
    } else {
        conn_retire(worker, conn);
    }
}

static void conn_on_replies(struct bench_worker *worker, struct conn *conn, int64_t replies)
{
    uint64_t now_ns = clock_mono_ns();
    if (conn->skip.error_count != conn->errors_seen) {
        conn_on_error_reply(worker, conn, now_ns);
    }
    if (replies == 0) {
        return;
    }
    conn->awaited -= replies;
    if (conn->awaited < 0) {
        conn_failed(worker, "Protocol error from", "more replies than requests");
        return;
    }
    if (conn->state == CONN_GREETING) {
        if (conn->awaited == 0) {
            conn_opened(worker, conn);
        }
        return;
    }
    uint64_t latency_ns = now_ns > conn->start_ns ? now_ns - conn->start_ns : 0;
    bench_hist_record(worker->latency, latency_ns, (uint64_t)replies);
    worker->done += (uint64_t)replies;
    worker->latency_sum_ns += latency_ns * (uint64_t)replies;
    worker->last_reply_ns = now_ns;
    if (conn->awaited == 0) {
        conn_pipeline_done(worker, conn, now_ns);
    }
}

static void conn_on_readable(struct bench_worker *worker, struct conn *conn)
{
    ssize_t got = conn->secure != NULL
                      ? secure_recv(conn->secure, worker->buffer, RECEIVE_BYTES)
                      : recv(conn->fd, worker->buffer, RECEIVE_BYTES, MSG_DONTWAIT);
    if (got < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            conn_failed(worker, "Error reading from the server at", strerror(errno));
        }
        return;
    }
    if (got == 0) {
        conn_failed(worker, "Error from", "Server closed the connection");
        return;
    }
    int64_t replies = bench_reply_skip_feed(&conn->skip, worker->buffer, (size_t)got);
    if (replies < 0) {
        conn_failed(worker, "Protocol error from", "bytes that are no RESP reply");
        return;
    }
    conn_on_replies(worker, conn, replies);
}

static bool worker_stopped(const struct bench_worker *worker)
{
    return atomic_load_explicit(&worker->crew->stop, memory_order_relaxed);
}

static void conn_on_event(struct bench_worker *worker, struct conn *conn, uint32_t events)
{
    if (conn->state == CONN_CONNECTING) {
        conn_on_connected(worker, conn);
        return;
    }
    if (conn->state == CONN_SECURING) {
        conn_go_on_securing(worker, conn);
        return;
    }
    if ((events & EPOLLOUT) != 0 && conn->rest_len > 0) {
        conn_flush(worker, conn, true);
    }
    bool readable = (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
    while (readable && conn->state != CONN_CLOSED) {
        conn_on_readable(worker, conn);
        readable = conn->secure != NULL && secure_pending(conn->secure) && !worker_stopped(worker);
    }
}

static void worker_publish(struct bench_worker *worker)
{
    atomic_store_explicit(&worker->published_done, worker->done, memory_order_relaxed);
    atomic_store_explicit(&worker->published_sum_ns, worker->latency_sum_ns, memory_order_relaxed);
}

/* One turn of the loop. A closed connection can have no event left: each comes up once a turn. */
static void worker_turn(struct bench_worker *worker, int timeout_ms)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(worker->epoll_fd, events, EVENTS_MAX, timeout_ms);
    if (count < 0 && errno != EINTR) {
        bench_crew_fail(worker->crew, "epoll_wait: %s", strerror(errno));
    }
    for (int i = 0; i < count && !atomic_load_explicit(&worker->crew->stop, memory_order_relaxed);
         i++) {
        conn_on_event(worker, events[i].data.ptr, events[i].events);
    }
    worker_publish(worker);
}

static void worker_connect(struct bench_worker *worker)
{
    for (uint32_t i = 0; i < worker->clients && !worker_stopped(worker); i++) {
        conn_open(worker, &worker->conns[i]);
    }
    while (worker->opening > 0 && !worker_stopped(worker)) {
        worker_turn(worker, POLL_MS);
    }
}

/* Sends what is due on connections that are free. A late send counts from its due moment. */
static void worker_pace(struct bench_worker *worker)
{
    uint64_t now_ns = clock_mono_ns();
    while (worker->ready_count > 0 && worker->due_ns <= (double)now_ns && !worker_stopped(worker)) {
        if (!grant_take(worker, now_ns)) {
            break;
        }
        conn_send(worker, worker->ready[--worker->ready_count], (uint64_t)worker->due_ns);
        worker->due_ns -= log(random_unit(worker)) * worker->interval_ns;
        now_ns = clock_mono_ns();
    }
    if (worker->deadline_ns != 0 && now_ns >= worker->deadline_ns) {
        worker->over = true;
    }
    while (worker->over && worker->ready_count > 0) {
        conn_retire(worker, worker->ready[--worker->ready_count]);
    }
}

static void worker_load(struct bench_worker *worker)
{
    const struct bench_plan *plan = worker->plan;
    uint64_t start_ns = worker->crew->start_ns;
    worker->started = true;
    worker->active = worker->clients;
    worker->last_reply_ns = start_ns;
    worker->deadline_ns = plan->duration_ns > 0 ? start_ns + plan->duration_ns : 0;
    if (plan->rate > 0) {
        worker->interval_ns = 1e9 * plan->requests[0].pipeline * plan->threads / plan->rate;
        worker->due_ns = (double)start_ns;
    }
    for (uint32_t i = 0; i < worker->clients && !worker_stopped(worker); i++) {
        conn_next(worker, &worker->conns[i], clock_mono_ns());
    }
    while (worker->active > 0 && !worker_stopped(worker)) {
        if (worker->interval_ns > 0) {
            worker_pace(worker);
        }
        worker_turn(worker, worker->interval_ns > 0 ? 0 : POLL_MS);
    }
}

void *bench_worker_main(void *argument)
{
    struct bench_worker *worker = argument;
    assert(worker != NULL && worker->crew != NULL);
    worker_connect(worker);
    if (worker->crew->start == NULL) {
        while (!worker_stopped(worker)) {
            worker_turn(worker, -1);
        }
        return NULL;
    }
    pthread_barrier_wait(worker->crew->start);
    pthread_barrier_wait(worker->crew->start);
    if (!worker_stopped(worker)) {
        worker_load(worker);
    }
    return NULL;
}

void bench_worker_progress(const struct bench_worker *worker, struct bench_progress *progress)
{
    progress->requests += atomic_load_explicit(&worker->published_done, memory_order_relaxed);
    progress->latency_sum_ns +=
        atomic_load_explicit(&worker->published_sum_ns, memory_order_relaxed);
}

void bench_worker_collect(const struct bench_worker *worker, struct bench_outcome *outcome)
{
    assert(worker != NULL && outcome != NULL && outcome->latency != NULL);
    outcome->requests += worker->done;
    outcome->errors += worker->errors;
    uint64_t elapsed_ns = worker->last_reply_ns > worker->crew->start_ns
                              ? worker->last_reply_ns - worker->crew->start_ns
                              : 0;
    if (elapsed_ns > outcome->elapsed_ns) {
        outcome->elapsed_ns = elapsed_ns;
    }
    bench_hist_merge(outcome->latency, worker->latency);
}
