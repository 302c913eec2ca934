/* See sync.h. */
#include "repl/sync.h"

#include "base/log.h"
#include "base/thread.h"
#include "engine/gate.h"
#include "engine/gil.h"
#include "repl/backlog.h"
#include "repl/departure.h"
#include "repl/peers.h"
#include "repl/failover.h"
#include "repl/follow.h"
#include "repl/replica.h"
#include "repl/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Between two looks at what time brings, while there is anything to look after. */
#define TICK_MS 100
/* While a transfer waits for its replicas, or its child. */
#define WAIT_MS 5
/* Signs of life are counted in seconds, and looked at once a second. */
#define SIGNS_LATE_MS 2000
/* A transfer's bytes that its slowest replica has not taken: no more are read then. */
#define AHEAD_BYTES ((uint64_t)8 * 1024 * 1024)

struct sync_settings sync_settings;

static struct {
    pthread_t thread;
    bool started;
    int wake_fd;
    _Atomic bool stop;
    struct transfer *transfer;
    int64_t ping_ms, second_ms; /* when they were last done; ping_ms 0: no replica was there */
    int64_t lonely_ms;          /* since when there is no replica; 0: there is one */
} sync_state = {.wake_fd = -1};

void sync_wake(void)
{
    uint64_t one = 1;
    if (sync_state.wake_fd >= 0) {
        ssize_t ignored = write(sync_state.wake_fd, &one, sizeof(one));
        (void)ignored; /* it is readable already */
    }
}

bool sync_apply(const struct option *option, const char **error)
{
    (void)option;
    (void)error;
    sync_judge();
    sync_wake();
    return true;
}

/* A script that takes long is not waited for: transfers go on beside it, and silent replicas are
 * found; what needs the keyspace is done when it is over. */

/* ---- beginning a transfer ---- */

/* Those that wait for the same parts of the data set as the one who came first. */
struct census {
    unsigned left_out;
    int waiting, waiting_eof; /* for a transfer; those of them that know a mark */
    int64_t longest_ms;       /* waiting for it */
    int64_t now_ms;
};

static void count_waiting(struct replica *r, void *context)
{
    struct census *c = context;
    if (atomic_load(&r->state) == REPLICA_WAIT_START && !atomic_load(&r->closing) &&
        (c->waiting == 0 || r->left_out == c->left_out)) {
        c->left_out = r->left_out;
        int64_t waited_ms = c->now_ms - atomic_load(&r->heard_ms);
        c->waiting++;
        c->waiting_eof += r->knows_eof;
        c->longest_ms = waited_ms > c->longest_ms ? waited_ms : c->longest_ms;
    }
}

struct beginning {
    struct transfer *transfer;
    bool by_pipe;
    unsigned left_out;
};

/* Has a replica that waits take part. The list's lock, and the keyspace lock in exclusive mode. */
static void join(struct replica *r, void *context)
{
    struct beginning *b = context;
    keyspace_assert_exclusive();
    if (atomic_load(&r->state) != REPLICA_WAIT_START || (b->by_pipe && !r->knows_eof) ||
        r->left_out != b->left_out) {
        return;
    }
    r->transfer = transfer_join(b->transfer, &r->transferred);
    r->joined = b->transfer;
    r->stalled_ms = 0;
    backlog_begin_reader(&r->stream);
    atomic_store(&r->sent_offset, r->stream.position);
    if (!r->is_old) {
        buf_printf(&r->text, "+FULLRESYNC %s %" PRIu64 "\r\n", backlog_id(), r->stream.position);
    }
    atomic_store(&r->heard_ms, replica_clock_ms());
    atomic_store_explicit(&r->state, REPLICA_SYNCING, memory_order_release);
}

static void doom_waiting(struct replica *r, void *context)
{
    (void)context;
    if (atomic_load(&r->state) == REPLICA_WAIT_START) {
        atomic_store(&r->closing, true);
    }
}

static void begin_transfer(bool by_pipe, unsigned left_out)
{
    if (!keyspace_try_exclusive()) {
        return;
    }
    struct beginning b = {.by_pipe = by_pipe,
                          .left_out = left_out,
                          .transfer = transfer_start(by_pipe, backlog_stream_db(), left_out)};
    if (b.transfer) {
        replicas_each(join, &b);
    } else {
        replicas_each(doom_waiting, NULL);
    }
    keyspace_unlock_exclusive();
    sync_state.transfer = b.transfer;
    feeds_wake();
}

/* Replicas that come soon after one another share a transfer by pipe. One of parts only is by pipe
 * whatever repl-diskless-sync says: who asks for that knows the mark, and no file is made that is
 * not the data set. */
static void consider_transfer(int64_t now_ms)
{
    struct census c = {.now_ms = now_ms};
    replicas_each(count_waiting, &c);
    if (c.waiting == 0) {
        return;
    }
    bool diskless = sync_settings.diskless && c.waiting_eof > 0;
    bool full =
        sync_settings.diskless_max_replicas > 0 && c.waiting >= sync_settings.diskless_max_replicas;
    if (!diskless || full || c.longest_ms >= sync_settings.diskless_delay_s * 1000) {
        begin_transfer(diskless || c.left_out, c.left_out);
    }
}

/* ---- the transfer that runs ---- */

struct slowest {
    const struct transfer *transfer;
    int count;
    uint64_t bytes;
};

static void find_slowest(struct replica *r, void *context)
{
    struct slowest *s = context;
    /* Acquire: r->transfer was set before the state. A replica that is done with the transfer
     * has another state, and its thread clears the pointer. */
    if (atomic_load_explicit(&r->state, memory_order_acquire) == REPLICA_SYNCING &&
        r->joined == s->transfer) {
        uint64_t got = atomic_load_explicit(&r->got_bytes, memory_order_relaxed);
        s->count++;
        s->bytes = got < s->bytes ? got : s->bytes;
    }
}

/* Moves the transfer on; returns how long to wait before the next step. */
static int step_transfer(void)
{
    struct transfer *t = sync_state.transfer;
    struct slowest s = {.transfer = t, .bytes = UINT64_MAX};
    replicas_each(find_slowest, &s);
    if (s.count == 0) {
        log_notice("No replica wants the data set any more");
        transfer_abandon(t);
    } else if (transfer_bytes(t) > s.bytes && transfer_bytes(t) - s.bytes > AHEAD_BYTES) {
        return WAIT_MS;
    } else {
        transfer_step(t);
        feeds_wake();
    }
    if (transfer_state(t) != TRANSFER_RUNNING) {
        feeds_wake();
        transfer_release(&sync_state.transfer);
        return 0;
    }
    return transfer_poll_fd(t) < 0 ? WAIT_MS : -1;
}

/* ---- what time brings ---- */

/* For how long it has taken nothing of a transfer's bytes that were there to be taken. While the
 * child is slow that is not the replica's fault. */
static int64_t stalled_for_ms(struct replica *r, int64_t now_ms)
{
    uint64_t got = atomic_load(&r->got_bytes);
    bool over = r->joined != sync_state.transfer; /* all its bytes are there */
    if ((!over && got >= transfer_bytes(sync_state.transfer)) || r->stalled_ms == 0 ||
        r->stalled_at != got) {
        r->stalled_ms = now_ms;
        r->stalled_at = got;
    }
    return now_ms - r->stalled_ms;
}

static void look_at_replica(struct replica *r, void *context)
{
    int64_t now_ms = *(int64_t *)context;
    enum replica_state state = atomic_load_explicit(&r->state, memory_order_acquire);
    int64_t silent_ms = now_ms - SIGNS_LATE_MS - atomic_load(&r->heard_ms);
    if (state == REPLICA_WAIT_START || state == REPLICA_SYNCING) {
        atomic_store(&r->newline_due, true);
    }
    /* While it waits it has nothing to say or to take. What came with SYNC never says anything: its
     * output limit is its bound. Who loads what it got says so from time to time, and who wanted
     * nothing more has to go. */
    bool tells = !r->is_old && (state == REPLICA_ONLINE || state == REPLICA_WAIT_ACK);
    if (state == REPLICA_SYNCING) {
        tells = true;
        silent_ms = stalled_for_ms(r, now_ms);
    }
    if (tells && silent_ms > sync_settings.timeout_s * 1000 && !atomic_load(&r->closing)) {
        log_warning("Replica %s:%" PRId64 " is silent for more than repl-timeout: disconnecting",
                    r->ip, r->port);
        atomic_store(&r->closing, true);
    }
}

struct good {
    int64_t now_ms;
    int count;
};

static void count_good(struct replica *r, void *context)
{
    struct good *g = context;
    int64_t lag_ms = g->now_ms - atomic_load(&r->heard_ms);
    g->count += atomic_load(&r->state) == REPLICA_ONLINE && !r->rdb_only &&
                lag_ms <= sync_settings.min_replicas_max_lag_s * 1000;
}

int sync_good_replicas(void)
{
    struct good g = {.now_ms = replica_clock_ms()};
    replicas_each(count_good, &g);
    return g.count + peers->heard_since(g.now_ms - sync_settings.min_replicas_max_lag_s * 1000);
}

void sync_judge(void)
{
    bool wanted = !follow_is_replica() && sync_settings.min_replicas > 0 &&
                  sync_settings.min_replicas_max_lag_s > 0;
    gate_set(GATE_FEW_REPLICAS, wanted && sync_good_replicas() < sync_settings.min_replicas);
}

static bool ping(void)
{
    if (!keyspace_try_exclusive()) {
        return false;
    }
    if (backlog_is_on()) {
        backlog_tell(SLICE("*1\r\n$4\r\nPING\r\n"));
    }
    keyspace_unlock_exclusive();
    return true;
}

/* The backlog goes when there has been no replica for so long. */
static void forget_backlog(int64_t now_ms)
{
    if (replicas_count() > 0 || follow_is_replica()) {
        sync_state.lonely_ms = 0;
        return;
    }
    if (sync_state.lonely_ms == 0) {
        sync_state.lonely_ms = now_ms;
    }
    if (sync_settings.backlog_ttl_s == 0 ||
        (now_ms - sync_state.lonely_ms) / 1000 < sync_settings.backlog_ttl_s) {
        return;
    }
    if (!keyspace_try_exclusive()) {
        return;
    }
    if (replicas_count() == 0 && backlog_is_on()) {
        log_notice("No replica for %" PRId64 " seconds: the backlog is freed",
                   sync_settings.backlog_ttl_s);
        backlog_turn_off();
    }
    keyspace_unlock_exclusive();
}

static void tick(void)
{
    int64_t now_ms = replica_clock_ms();
    sync_judge();
    departure_tick();
    if (!keyspace_is_busy()) {
        failover_tick();
    }
    if (!sync_state.transfer) {
        consider_transfer(now_ms);
    }
    if (replicas_count() == 0 || follow_is_replica()) {
        sync_state.ping_ms = 0;
    } else if (sync_state.ping_ms == 0) { /* the thread slept while there were none */
        sync_state.ping_ms = now_ms;
    } else if (now_ms - sync_state.ping_ms >= sync_settings.ping_period_s * 1000) {
        sync_state.ping_ms = ping() ? now_ms : sync_state.ping_ms;
    }
    if (now_ms - sync_state.second_ms >= 1000) {
        sync_state.second_ms = now_ms;
        replicas_each(look_at_replica, &now_ms);
        forget_backlog(now_ms);
        feeds_wake();
    }
}

/* ---- the thread ---- */

/* True when there is anything to look after, or that is not to be known beside a script. */
static bool is_busy(void)
{
    if (!keyspace_try_shared()) {
        return true;
    }
    bool on = backlog_is_on();
    keyspace_unlock_shared();
    return on || replicas_count() + peers->count() > 0 || sync_settings.min_replicas > 0;
}

/* Sleeps until the transfer can go on, somebody wakes us, or it is time. `wait_ms` -1: the transfer
 * is to be polled. */
static void sleep_some(int wait_ms, bool busy)
{
    struct pollfd fds[2] = {{.fd = sync_state.wake_fd, .events = POLLIN}, {.fd = -1}};
    if (sync_state.transfer && wait_ms < 0) {
        fds[1] = (struct pollfd){.fd = transfer_poll_fd(sync_state.transfer), .events = POLLIN};
    }
    int timeout_ms = busy ? TICK_MS : -1;
    poll(fds, 2, sync_state.transfer && wait_ms >= 0 ? wait_ms : timeout_ms);
    uint64_t count;
    if (fds[0].revents) {
        ssize_t ignored = read(sync_state.wake_fd, &count, sizeof(count));
        (void)ignored;
    }
}

static void *run(void *argument) NO_THREAD_SAFETY_ANALYSIS
{
    (void)argument;
    thread_enter("sync");
    int64_t ticked_ms = 0;
    while (!sync_state.stop) {
        int wait_ms = -1;
        gil_wake();
        if (sync_state.transfer) {
            wait_ms = step_transfer();
        }
        if (!sync_state.transfer || replica_clock_ms() - ticked_ms >= TICK_MS) {
            tick();
            ticked_ms = replica_clock_ms();
        }
        bool busy = is_busy();
        gil_sleep();
        sleep_some(wait_ms, busy);
    }
    if (sync_state.transfer) {
        transfer_abandon(sync_state.transfer);
        transfer_release(&sync_state.transfer);
    }
    thread_leave();
    return NULL;
}

void sync_start(void)
{
    sync_state.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = sync_state.wake_fd < 0 ? errno : thread_start(&sync_state.thread, run, NULL);
    if (error) {
        log_warning("Can't start the thread of replication: %s", strerror(error));
        return;
    }
    sync_state.started = true;
}

void sync_stop(void)
{
    if (sync_state.started) {
        sync_state.stop = true;
        sync_wake();
        pthread_join(sync_state.thread, NULL);
        sync_state.started = false;
    }
}
