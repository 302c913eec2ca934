/* See main_loop.h. */
#include "module/main_loop.h"

#include "base/clock.h"
#include "engine/gil.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"

#include <assert.h>
#include <event2/event.h>
#include <stddef.h>
#include <time.h>

/* Steps of one hold, and the time after which none begins in it: callbacks of modules take as long
 * as they like. */
#define STEPS_A_HOLD 64
#define HOLD_MAX_US 100
/* When to look again beside a script that takes long. */
#define BUSY_PAUSE_US (10 * 1000)
/* Longest time that the timer is set for. */
#define TIMER_MAX_US ((int64_t)3600 * 1000 * 1000)

static struct {
    struct event_base *base;
    struct inbox inbox;
    struct event *inbox_event, *again, *timer;
    struct main_job *first, **last; /* received, not run */
    bool (*timer_step)(void);
} state;

/* ---- holds ---- */

bool main_loop_begin_hold(void) NO_THREAD_SAFETY_ANALYSIS
{
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    gil_wake();
    if (keyspace_try_exclusive()) {
        return true;
    }
    gil_sleep();
    nanosleep(&pause, NULL); /* a descriptor that is ready would be told again at once */
    return false;
}

void main_loop_let_go(void) NO_THREAD_SAFETY_ANALYSIS
{
    for (;;) {
        if (expire_has_notes()) {
            expire_run_notes(keyspace_time_ms(clock_wall_ms()));
        }
        bool more = expire_has_notes();
        keyspace_unlock_exclusive();
        reclaim_run();
        if (!more) {
            return;
        }
        keyspace_lock_exclusive();
    }
}

void main_loop_end_hold(void) NO_THREAD_SAFETY_ANALYSIS
{
    main_loop_let_go();
    gil_sleep();
}

static void set(struct event *e, int64_t after_us)
{
    after_us = after_us < 0 ? 0 : after_us > TIMER_MAX_US ? TIMER_MAX_US : after_us;
    struct timeval after = {.tv_sec = after_us / 1000000, .tv_usec = after_us % 1000000};
    event_add(e, &after);
}

/* Takes steps until there is none, in holds; false when the lock is not to be had. */
static bool take_steps(bool (*step)(void))
{
    for (bool more = true; more;) {
        if (!main_loop_begin_hold()) {
            return false;
        }
        uint64_t until_us = clock_mono_us() + HOLD_MAX_US;
        for (int i = 0; i < STEPS_A_HOLD && more && (i == 0 || clock_mono_us() < until_us); i++) {
            more = step();
        }
        main_loop_end_hold();
    }
    return true;
}

/* ---- jobs ---- */

static bool run_job(bool alive)
{
    struct main_job *job = state.first;
    if (!job) {
        return false;
    }
    state.first = job->next;
    if (!state.first) {
        state.last = &state.first;
    }
    job->run(job, alive);
    return true;
}

static bool run_live_job(void)
{
    return run_job(true);
}

static void run_jobs(void)
{
    if (state.first && !take_steps(run_live_job)) {
        set(state.again, BUSY_PAUSE_US);
    }
}

static void receive(struct inbox_message *message, void *receiver)
{
    struct main_job *job = (struct main_job *)message;
    (void)receiver;
    job->next = NULL;
    *state.last = job;
    state.last = &job->next;
}

void main_loop_post(struct main_job *job)
{
    job->message.receive = receive;
    inbox_post_take(&state.inbox, &job->message);
}

static void on_inbox(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    inbox_receive(&state.inbox, NULL);
    run_jobs();
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    run_jobs();
}

/* ---- the timer ---- */

void main_loop_set_timer(bool (*step)(void))
{
    state.timer_step = step;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    if (!take_steps(state.timer_step)) {
        set(state.timer, BUSY_PAUSE_US);
    }
}

void main_loop_arm(int64_t at_us)
{
    if (!state.timer) {
        return; /* main_loop_start asks anew */
    }
    if (at_us == INT64_MAX) {
        event_del(state.timer);
    } else {
        set(state.timer, at_us - (int64_t)clock_mono_us());
    }
}

/* ---- life ---- */

struct event_base *main_loop_base(void)
{
    return state.base;
}

void main_loop_setup(void)
{
    inbox_init(&state.inbox);
    state.last = &state.first;
}

void main_loop_start(struct event_base *base)
{
    state.base = base;
    state.inbox_event = event_new(base, state.inbox.event_fd, EV_READ | EV_PERSIST, on_inbox, NULL);
    state.again = event_new(base, -1, 0, on_again, NULL);
    state.timer = event_new(base, -1, 0, on_timer, NULL);
    event_add(state.inbox_event, NULL);
    set(state.timer, 0);
}

void main_loop_stop(void)
{
    if (state.base) {
        event_free(state.inbox_event);
        event_free(state.again);
        event_free(state.timer);
        state.inbox_event = state.again = state.timer = NULL;
        state.base = NULL;
    }
}

void main_loop_teardown(void)
{
    assert(!state.base);
    inbox_receive(&state.inbox, NULL);
    while (run_job(false)) {
        inbox_receive(&state.inbox, NULL); /* a job may have posted another */
    }
    /* The inbox stays: threads of modules go on until the process ends, and may post. */
}
