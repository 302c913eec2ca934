/* See net.h. */
#include "net/net.h"

#include "base/log.h"
#include "base/thread.h"
#include "engine/execute.h"
#include "engine/gil.h"
#include "engine/pubsub.h"
#include "net/assign.h"
#include "net/busy.h"
#include "net/client_acl.h"
#include "net/console.h"
#include "net/durable.h"
#include "net/listener.h"
#include "net/monitor.h"
#include "net/net_info.h"
#include "net/open_files.h"
#include "net/output.h"
#include "net/overload.h"
#include "net/pause.h"
#include "net/server_thread.h"
#include "net/subscriptions.h"
#include "net/tls.h"
#include "net/tls_context.h"
#include "net/tls_rotation.h"
#include "net/tls_settings.h"
#include "net/tracking.h"
#include "net/turn.h"

#include <errno.h>
#include <string.h>

/* Raises the limit of open files to what maxclients needs, or lowers maxclients to what the limit
 * allows. */
static void fit_maxclients(void)
{
    int64_t wanted = net_settings.maxclients;
    net_settings.maxclients = open_files_fit(wanted);
    if (net_settings.maxclients < wanted) {
        log_warning("maxclients is %lld instead of %lld: the limit of open files is %llu. Raise it "
                    "with ulimit -n or LimitNOFILE.",
                    (long long)net_settings.maxclients, (long long)wanted,
                    (unsigned long long)open_files_limit());
    }
}

/* ---- idle clients and slow readers ---- */

static void check_clients(struct server_thread *t, void *argument)
{
    uint64_t timeout_s = (uint64_t)net_settings.timeout_s;
    (void)argument;
    for (struct client *c = t->clients; c; c = c->thread_next) {
        if (c->flags & CLIENT_GREETING && t->mono_s - c->created_s >= TLS_GREETING_MAX_S) {
            log_verbose("Closing client %s: its TLS handshake takes too long", c->session.peer);
            client_close_asap(c);
        }
        bool exempt = c->flags & (CLIENT_MONITOR | CLIENT_SUSPENDED | CLIENT_PAUSED | CLIENT_FED) ||
                      c->session.subscriptions > 0;
        if (timeout_s > 0 && !exempt && t->mono_s - c->active_s > timeout_s) {
            log_verbose("Closing idle client %s", c->session.peer);
            client_close_asap(c);
        } else if (c->out_first || c->feed) {
            output_check_limits(c);
        }
    }
}

/* Wakes only threads that have clients, and only when there is something to check. */
static void check_clients_cron(int64_t wall_ms)
{
    bool soft_limits = net_settings.output_limit[CLIENT_CLASS_NORMAL].soft_bytes > 0;
    (void)wall_ms;
    for (int i = 0; i < server_thread_count(); i++) {
        struct server_thread *t = server_thread_at(i);
        bool listeners = atomic_load_explicit(&t->monitor_count, memory_order_relaxed) > 0 ||
                         atomic_load_explicit(&t->feed_count, memory_order_relaxed) > 0 ||
                         subscriptions_exist(t) || tls_greeting_count() > 0;
        if (atomic_load_explicit(&t->client_count, memory_order_relaxed) > 0 &&
            (net_settings.timeout_s > 0 || soft_limits || listeners)) {
            server_thread_post(t, check_clients, NULL);
        }
    }
}

static const struct cron_job jobs[] = {
    {.name = "clients", .period_ms = 1000, .run = check_clients_cron},
    {.name = "balance", .period_ms = 1000, .run = assign_balance},
    {.name = "pause", .period_ms = 1, .run = pause_cron},
    {.name = "tls rotation", .period_ms = TLS_ROTATION_PERIOD_MS, .run = tls_rotation_cron},
    {.name = "overload", .period_ms = 1000, .run = overload_cron},
    {.name = "soft end", .period_ms = 1, .run = overload_end_softly},
};

void net_setup(void)
{
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        cron_register(&jobs[i]);
    }
    monitor_setup();
    call_set_settle(turn_account_so_far);
    net_busy_setup();
    net_console_setup();
    client_acl_setup();
    subscriptions_setup((int)net_settings.server_threads);
    tracking_net_setup();
    net_info_setup();
    durable_setup();
    fit_maxclients();
}

bool net_start(struct event_base *main_base)
{
    unsigned cores = thread_core_count();
    /* A spinning waiter only helps while the holder runs on another core. */
    brlock_set_spinning((unsigned)net_settings.server_threads <= cores && cores > 1);
    server_threads_start((int)net_settings.server_threads);
    durable_serve(true);
    gil_wake();
    bool listening = !tls_is_wanted() || tls_context_prepare();
    tls_context_settle(listening);
    if (!listening) {
        log_warning("Failed to configure TLS. Check logs for more info.");
    }
    if (listening) {
        listener_start(main_base);
    }
    gil_sleep();
    return listening;
}

void net_stop(void)
{
    listener_stop();
    durable_serve(false);
    server_threads_stop();
    pubsub_teardown();
    tracking_teardown();
    tls_context_teardown();
    tls_teardown();
}
