/* See overload.h. */
#include "net/overload.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/cron.h"
#include "engine/shutdown.h"
#include "net/assign.h"

#include <stdatomic.h>
#include <sys/resource.h>

/* A look, and the most clients that are closed after one. */
#define OVERLOAD_PERIOD_US (10 * 1000000ull)
#define OVERLOAD_CLOSES_MAX 1000

static int64_t limit_percent;

/* The cron's thread's alone. */
static struct {
    uint64_t at_us, used_us;
} last_look;

static uint64_t cpu_used_us(void)
{
    struct rusage use = {0};
    getrusage(RUSAGE_SELF, &use);
    return ((uint64_t)use.ru_utime.tv_sec + (uint64_t)use.ru_stime.tv_sec) * 1000000 +
           (uint64_t)use.ru_utime.tv_usec + (uint64_t)use.ru_stime.tv_usec;
}

/* One who sends requests and waits for nothing but their replies. */
static bool is_ordinary(const struct client *c)
{
    return !(c->flags & (CLIENT_MONITOR | CLIENT_FED | CLIENT_NO_EVICT)) &&
           client_class_of(c) == CLIENT_CLASS_NORMAL;
}

/* Owner: closes up to so many ordinary clients, the latest first. */
static void close_some(struct server_thread *t, void *argument)
{
    uintptr_t left = (uintptr_t)argument, closed = 0;
    for (struct client *c = t->clients; c && closed < left; c = c->thread_next) {
        if (is_ordinary(c) && !(c->flags & CLIENT_CLOSE_ASAP)) {
            client_close_asap(c);
            closed++;
        }
    }
    log_warning("Overload protection: server thread %d closes %u clients", t->index,
                (unsigned)closed);
}

static void shed_clients(void)
{
    int threads = server_thread_count();
    for (int i = 0; i < threads; i++) {
        struct server_thread *t = server_thread_at(i);
        if (atomic_load_explicit(&t->client_count, memory_order_relaxed) > 0) {
            server_thread_post(t, close_some,
                               (void *)(uintptr_t)(OVERLOAD_CLOSES_MAX / threads + 1));
        }
    }
}

void overload_cron(int64_t wall_ms UNUSED)
{
    uint64_t now_us = clock_mono_us(), used_us = cpu_used_us();
    uint64_t elapsed_us = now_us - last_look.at_us;
    if (limit_percent == 0) {
        last_look.at_us = now_us;
        last_look.used_us = used_us;
        return;
    }
    if (elapsed_us < OVERLOAD_PERIOD_US && !cron_is_eager()) {
        return;
    }
    uint64_t percent = (used_us - last_look.used_us) * 100 / (elapsed_us ? elapsed_us : 1);
    last_look.at_us = now_us;
    last_look.used_us = used_us;
    if (percent > (uint64_t)limit_percent * (uint64_t)server_thread_count()) {
        log_warning("Overload protection: the process used %llu %% of a core",
                    (unsigned long long)percent);
        shed_clients();
    }
}

void overload_end_softly(int64_t wall_ms UNUSED)
{
    unsigned flags;
    if (!shutdown_is_soft(&flags)) {
        return;
    }
    uint64_t replicas = 0;
    for (int i = 0; i < server_thread_count(); i++) {
        replicas += atomic_load_explicit(&server_thread_at(i)->feed_count, memory_order_relaxed);
    }
    if (client_count() <= replicas) {
        log_notice("The last client has gone: the server ends, as it was asked to softly");
        shutdown_withdraw_soft();
        shutdown_request(flags);
    }
}

const struct option overload_options[] = {
    {.name = "overload-protect-percent",
     .type = OPTION_INT,
     .target = &limit_percent,
     .initial = "0",
     .min = 0,
     .max = 200},
    {.name = NULL},
};
