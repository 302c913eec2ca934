/* See server_thread.h. */
#include "net/server_thread.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/thread_cpus.h"
#include "engine/gil.h"
#include "engine/modules.h"
#include "keyspace/reclaim.h"
#include "net/blocked.h"
#include "net/busy.h"
#include "net/durable.h"
#include "net/input.h"
#include "net/monitor.h"
#include "net/subscriptions.h"
#include "net/tracking.h"
#include "net/turn.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_CHUNK_BYTES ((size_t)64 * 1024)

static struct server_thread **threads;
static int thread_total;
static _Thread_local struct server_thread *self;

int server_thread_count(void)
{
    return thread_total;
}

struct server_thread *server_thread_at(int index)
{
    assert(index >= 0 && index < thread_total);
    return threads[index];
}

struct server_thread *server_thread_self(void)
{
    return self;
}

void server_thread_wake_up(struct server_thread *t) NO_THREAD_SAFETY_ANALYSIS
{
    assert(t == self && !t->awake);
    gil_wake();
    t->awake = true;
    t->wall_us = clock_wall_us();
    t->mono_s = clock_mono_us() / 1000000;
}

static void sleep_now(struct server_thread *t) NO_THREAD_SAFETY_ANALYSIS
{
    assert(t->awake);
    t->awake = false;
    gil_sleep();
}

void server_thread_pause(struct server_thread *t, const struct timespec *time)
{
    sleep_now(t);
    nanosleep(time, NULL);
    server_thread_wake(t);
}

void server_thread_grow_ready(struct server_thread *t)
{
    t->ready_capacity = t->ready_capacity ? 2 * t->ready_capacity : 64;
    t->ready = mem_realloc(t->ready, t->ready_capacity * sizeof(struct client *));
}

/* ---- messages ---- */

struct function_message {
    struct inbox_message message;
    void (*function)(struct server_thread *, void *);
    void *argument;
};

static void run_function(struct inbox_message *message, void *receiver)
{
    struct function_message *m = (struct function_message *)message;
    m->function(receiver, m->argument);
    mem_free(m);
}

void server_thread_post(struct server_thread *t, void (*function)(struct server_thread *, void *),
                        void *argument)
{
    struct function_message *m = mem_alloc(sizeof(*m));
    *m = (struct function_message){
        .message = {.receive = run_function}, .function = function, .argument = argument};
    inbox_post_take(&t->inbox, &m->message);
}

void server_thread_post_all(void (*function)(struct server_thread *, void *), void *argument)
{
    for (int i = 0; i < thread_total; i++) {
        server_thread_post(threads[i], function, argument);
    }
}

static void on_inbox(evutil_socket_t fd, short what, void *arg)
{
    struct server_thread *t = arg;
    (void)fd;
    (void)what;
    server_thread_wake(t);
    inbox_receive(&t->inbox, t);
}

/* ---- life ---- */

static void close_all_clients(struct server_thread *t)
{
    while (t->clients) {
        client_destroy(t->clients);
    }
    t->closing_count = 0;
}

static void pin(struct server_thread *t)
{
    int error = thread_cpus_confine(THREAD_WORK_SERVER);
    if (error) {
        log_warning("Can't confine server thread %d to server_cpulist: %s", t->index,
                    strerror(error));
    }
    if (net_settings.affinity_first < 0) {
        return;
    }
    unsigned core = (unsigned)(net_settings.affinity_first + t->index);
    error = thread_pin(core);
    if (error) {
        log_warning("Can't pin server thread %d to core %u: %s", t->index, core, strerror(error));
    }
}

/* Modules are told that the thread is about to sleep (0), or awake (1). */
static void tell_modules(struct server_thread *t, unsigned part)
{
    if (modules_want(MODULES_EVENT_LOOP) && !keyspace_is_busy()) {
        modules_tell_news(MODULES_EVENT_LOOP, part, NULL);
        turn_deliver_late(t);
    }
}

static void note_cpu_clock(struct server_thread *t)
{
    clockid_t clock;
    if (pthread_getcpuclockid(pthread_self(), &clock) == 0) {
        t->cpu_clock = clock;
    }
}

static void *run(void *arg)
{
    struct server_thread *t = self = arg;
    char name[16];
    snprintf(name, sizeof(name), "server-%d", t->index);
    t->slot = thread_enter(name);
    note_cpu_clock(t);
    pin(t);
    while (!t->stopping) {
        bool blocks = !t->more_to_do && t->unread_count == 0;
        t->more_to_do = false;
        event_base_loop(t->base, EVLOOP_ONCE | (blocks ? 0 : EVLOOP_NONBLOCK));
        server_thread_wake(t);
        tell_modules(t, 1);
        if (unlikely(t->unread_count > 0)) {
            input_receive_unread(t);
        }
        turn_run(t);
        subscriptions_wait_for_others(t);
        tell_modules(t, 0);
        sleep_now(t);
    }
    server_thread_wake(t);
    inbox_receive(&t->inbox, t); /* clients that came meanwhile */
    close_all_clients(t);
    reclaim_run();
    net_busy_leave();
    sleep_now(t);
    thread_leave();
    return NULL;
}

static struct event_base *create_base(void)
{
    struct event_config *config = event_config_new();
    /* One thread uses a base; the clock of events (time-outs of blocked clients) need not be
     * precise. */
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    if (!base) {
        log_warning("Can't create an event loop for a server thread");
        abort();
    }
    return base;
}

static struct server_thread *create(int index)
{
    struct server_thread *t = mem_calloc(1, sizeof(*t));
    t->index = index;
    t->cpu_clock = NO_CPU_CLOCK;
    t->base = create_base();
    inbox_init(&t->inbox);
    t->inbox_event = event_new(t->base, t->inbox.event_fd, EV_READ | EV_PERSIST, on_inbox, t);
    event_add(t->inbox_event, NULL);
    t->input = mem_alloc_aligned(CACHE_LINE_BYTES, INPUT_BUFFER_BYTES);
    arena_init(&t->arena, ARENA_CHUNK_BYTES);
    reply_init(&t->reply);
    t->batch = batch_create();
    blocked_setup_thread(t);
    t->subscriptions = subscriptions_create(t);
    t->tracking = tracking_create();
    return t;
}

static void destroy(struct server_thread *t)
{
    blocked_teardown_thread(t);
    durable_teardown_thread(t);
    event_free(t->inbox_event);
    event_base_free(t->base);
    inbox_deinit(&t->inbox);
    mem_free(t->input);
    arena_deinit(&t->arena);
    subscriptions_destroy(t);
    tracking_destroy(&t->tracking);
    reply_deinit(&t->reply);
    batch_destroy(t->batch);
    mem_free(t->ready);
    mem_free(t->closing);
    mem_free(t->unread);
    mem_free(t->suspended);
    mem_free(t);
}

void server_threads_start(int count)
{
    threads = mem_calloc((size_t)count, sizeof(struct server_thread *));
    thread_total = count;
    for (int i = 0; i < count; i++) {
        threads[i] = create(i);
    }
    for (int i = 0; i < count; i++) {
        int error = thread_start(&threads[i]->pthread, run, threads[i]);
        if (error) {
            log_warning("Can't start server thread %d: %s", i, strerror(error));
            abort();
        }
    }
}

static void stop_thread(struct server_thread *t, void *argument)
{
    (void)argument;
    t->stopping = true;
}

void server_threads_stop(void)
{
    server_thread_post_all(stop_thread, NULL);
    for (int i = 0; i < thread_total; i++) {
        pthread_join(threads[i]->pthread, NULL);
    }
    for (int i = 0; i < thread_total; i++) {
        /* What the others sent after it had ended, clients on their way among it. */
        self = threads[i];
        self->awake = true;
        inbox_receive(&self->inbox, self);
        close_all_clients(self);
    }
    self = NULL;
    for (int i = 0; i < thread_total; i++) {
        destroy(threads[i]);
    }
    mem_free(threads);
    threads = NULL;
    thread_total = 0;
}
