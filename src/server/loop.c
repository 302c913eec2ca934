/* See loop.h. */
#include "server/loop.h"

#include "base/clock.h"
#include "base/inbox.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spike.h"
#include "engine/cron.h"
#include "engine/gate.h"
#include "engine/gil.h"
#include "engine/shutdown.h"
#include "keyspace/evict.h"
#include "keyspace/expire.h"
#include "keyspace/lock.h"
#include "persist/rdb_file.h"
#include "server/options.h"
#include "server/signal_options.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
    struct event *signals[2], *cron, *stop, *inbox_event;
    struct inbox inbox;
    int64_t hz;          /* that the cron event is armed with */
    bool over;           /* nothing that is posted runs any more */
    _Atomic bool asked;  /* a signal has asked for the end already */
    _Atomic int unheard; /* SIGINTs that the loop has not come to yet */
    void (*notify)(int); /* libevent's handler, which ours stands before */
} state;

/* Share of the time that the sweep of expired keys may take, in percent (Redis: 25 at effort 1). */
#define SWEEP_PERCENT 25
/* The same of evicting keys while nobody writes. */
#define EVICT_PERCENT 25

static void arm_cron(void)
{
    state.hz = server_settings.hz;
    struct timeval period = {.tv_sec = state.hz == 1, .tv_usec = 1000000 / state.hz % 1000000};
    event_add(state.cron, &period);
}

static void on_cron(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    gil_wake();
    int64_t now_ms = clock_wall_ms();
    if (cron_is_paused() || keyspace_is_busy()) {
        gil_sleep();
        return;
    }
    cron_run(now_ms);
    if (!gate_is_loading()) {
        now_ms = keyspace_time_ms(now_ms);
        uint64_t begin = spike_begin();
        expire_sweep(now_ms, 1000000 / server_settings.hz * SWEEP_PERCENT / 100);
        spike_end("expire-cycle", begin);
        begin = spike_begin();
        evict_cron(now_ms, 1000000 / server_settings.hz * EVICT_PERCENT / 100);
        spike_end("eviction-cycle", begin);
    }
    if (state.hz != server_settings.hz) {
        arm_cron();
    }
    gil_sleep();
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
    (void)what;
    (void)arg;
    const char *name = number == SIGINT ? "SIGINT" : "SIGTERM";
    if (number == SIGINT) {
        state.unheard--;
    }
    unsigned soft_flags;
    if (shutdown_signals_softly() && !state.asked && !shutdown_is_soft(&soft_flags)) {
        log_warning("Received %s: shutting down softly", name);
        shutdown_request_soft(signal_shutdown_flags((int)number));
        return;
    }
    state.asked = true;
    log_warning("Received %s scheduling shutdown...", name);
    shutdown_request(signal_shutdown_flags((int)number));
}

/* SIGINT's handler, in the main thread. Who asks again is obeyed here and now: the loop may stand
 * in a save that takes long, or wait for a command that does. What is asked softly is asked once
 * more before. */
static void on_interrupt(int number)
{
    int saved_errno = errno;
    int before = atomic_fetch_add(&state.unheard, 1);
    if (state.asked || before > (shutdown_signals_softly() ? 1 : 0)) {
        char rest[RDB_FILE_TEMPORARY_BYTES];
        log_in_handler("Received SIGINT again: exiting at once");
        rdb_file_temporary_name((int)getpid(), rest);
        unlink(rest);
        _exit(1);
    }
    state.notify(number);
    errno = saved_errno;
}

/* libevent's handler has been set; ours goes before it. */
static void watch_interrupts(void)
{
    struct sigaction action;
    sigaction(SIGINT, NULL, &action);
    state.notify = action.sa_handler;
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, NULL);
}

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    event_base_loopbreak(arg);
}

/* ---- messages ---- */

struct function_message {
    struct inbox_message message;
    void (*function)(void);
};

static void run_function(struct inbox_message *message, void *receiver)
{
    struct function_message *m = (struct function_message *)message;
    (void)receiver;
    if (!state.over) {
        m->function();
    }
    mem_free(m);
}

void loop_post(void (*function)(void))
{
    struct function_message *m = mem_alloc(sizeof(*m));
    *m = (struct function_message){.message = {.receive = run_function}, .function = function};
    inbox_post_take(&state.inbox, &m->message);
}

static void on_inbox(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    inbox_receive(&state.inbox, NULL);
}

struct event_base *loop_create(void)
{
    struct event_base *base = event_base_new();
    if (!base) {
        log_warning("Can't create the main event loop");
        exit(1);
    }
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, as some start us, no child's end would be known */
    state.signals[0] = evsignal_new(base, SIGTERM, on_signal, NULL);
    state.signals[1] = evsignal_new(base, SIGINT, on_signal, NULL);
    state.cron = event_new(base, -1, EV_PERSIST, on_cron, NULL);
    state.stop = event_new(base, shutdown_event_fd(), EV_READ | EV_PERSIST, on_stop, base);
    inbox_init(&state.inbox);
    state.inbox_event = event_new(base, state.inbox.event_fd, EV_READ | EV_PERSIST, on_inbox, NULL);
    event_add(state.inbox_event, NULL);
    event_add(state.signals[0], NULL);
    event_add(state.signals[1], NULL);
    watch_interrupts();
    event_add(state.stop, NULL);
    arm_cron();
    return base;
}

unsigned loop_run(struct event_base *base)
{
    unsigned flags = 0;
    /* Who asks again while replicas are waited for has waited enough. */
    state.asked = shutdown_wait_left_ms() >= 0;
    while (!shutdown_requested(&flags)) {
        event_base_dispatch(base);
    }
    return flags;
}

void loop_destroy(struct event_base *base)
{
    event_free(state.signals[0]);
    event_free(state.signals[1]);
    event_free(state.cron);
    event_free(state.stop);
    event_free(state.inbox_event);
    state.over = true;
    inbox_receive(&state.inbox, NULL); /* what came too late to run in the loop is freed */
    inbox_deinit(&state.inbox);
    event_base_free(base);
}
