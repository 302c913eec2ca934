/* See boot.h. The only file that knows every folder. */
#include "server/boot.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/program.h"
#include "base/thread.h"
#include "base/thread_cpus.h"
#include "base/version.h"
#include "commands/commands.h"
#include "commands/random_limit.h"
#include "engine/acl.h"
#include "engine/acl_log.h"
#include "engine/auth.h"
#include "engine/busy.h"
#include "engine/cmdstats.h"
#include "engine/config.h"
#include "engine/cron.h"
#include "engine/fork_child.h"
#include "engine/gil.h"
#include "engine/identity.h"
#include "engine/latency.h"
#include "engine/memory_limit.h"
#include "engine/modules.h"
#include "engine/parked.h"
#include "engine/propagate.h"
#include "engine/propagation_error.h"
#include "engine/shutdown.h"
#include "engine/slowlog.h"
#include "engine/snapshot.h"
#include "keyspace/access.h"
#include "keyspace/db.h"
#include "keyspace/event.h"
#include "keyspace/evict.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "keyspace/changes.h"
#include "keyspace/watching.h"
#include "metrics/metrics.h"
#include "net/client_memory.h"
#include "net/listener.h"
#include "net/net.h"
#include "net/settings.h"
#include "net/overload.h"
#include "persist/aof.h"
#include "net/tls_settings.h"
#include "persist/load.h"
#include "persist/payload.h"
#include "persist/persist.h"
#include "persist/save.h"
#include "active/active.h"
#include "active/peer_links.h"
#include "module/module.h"
#include "repl/backlog.h"
#include "repl/link.h"
#include "repl/migrate.h"
#include "repl/follow.h"
#include "repl/repl.h"
#include "resp/limits.h"
#include "script/jobs.h"
#include "script/script.h"
#include "server/compat_options.h"
#include "server/crash_report.h"
#include "server/loop.h"
#include "server/oom_score.h"
#include "server/options.h"
#include "server/proc_title.h"
#include "server/restart.h"
#include "server/sections.h"
#include "server/signal_options.h"
#include "server/supervise.h"
#include "server/system_check.h"
#include "value/hash.h"
#include "value/set.h"
#include "value/zset.h"
#include "value/list.h"
#include "value/stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct option *const option_tables[] = {
    net_options,
    server_options,
    resp_options,
    auth_options,
    command_options,
    event_options,
    acl_rule_options,
    acl_file_options,
    acl_log_options,
    expire_options,
    access_options,
    reclaim_options,
    slowlog_options,
    latency_options,
    cmdstats_options,
    config_protect_options,
    hash_options,
    hyperloglog_options,
    list_options,
    set_options,
    zset_options,
    stream_options,
    sort_options,
    save_options,
    load_options,
    aof_options,
    evict_options,
    link_options,
    tls_options,
    signal_options,
    busy_options,
    repl_options,
    active_options,
    follow_options,
    shutdown_options,
    inert_options,
    absent_options,
    crash_options,
    oom_options,
    proc_title_options,
    thread_cpus_options,
    identity_options,
    overload_options,
    random_limit_options,
    propagation_error_options,
    module_options,
    metrics_options,
};

static const struct command_row *const command_tables[] = {
    string_commands,
    string_set_commands,
    string_number_commands,
    string_lcs_commands,
    bit_commands,
    bit_field_commands,
    hyperloglog_commands,
    geo_commands,
    geo_search_commands,
    set_commands,
    set_random_commands,
    set_algebra_commands,
    zset_commands,
    zset_range_commands,
    zset_pop_commands,
    zset_algebra_commands,
    list_commands,
    list_index_commands,
    key_commands,
    key_expire_commands,
    key_scan_commands,
    key_object_commands,
    hash_commands,
    hash_walk_commands,
    hash_expire_commands,
    member_expire_commands,
    transaction_commands,
    connection_commands,
    client_commands,
    introspection_commands,
    config_commands,
    server_commands,
    memory_commands,
    latency_commands,
    slowlog_commands,
    debug_commands,
    module_commands,
    cluster_commands,
    list_blocking_commands,
    zset_blocking_commands,
    stream_commands,
    stream_read_commands,
    stream_info_commands,
    stream_group_commands,
    stream_group_read_commands,
    stream_claim_commands,
    stream_pending_commands,
    stream_peer_commands,
    sort_commands,
    nested_commands,
    pubsub_commands,
    dump_commands,
    save_commands,
    aof_commands,
    migrate_commands,
    acl_commands,
    repl_commands,
    wait_aof_commands,
    script_commands,
    function_commands,
    job_commands,
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

void boot_prepare(void)
{
    clock_setup();
    log_setup();
    hash_setup();
    shutdown_setup();
    for (size_t i = 0; i < COUNT_OF(option_tables); i++) {
        config_register(option_tables[i]);
    }
    for (size_t i = 0; i < COUNT_OF(command_tables); i++) {
        command_register(command_tables[i]);
    }
    active_register();
}

/* Keeps the log's stamps right over a change of summer time. */
static void refresh_log_clock(int64_t wall_ms)
{
    (void)wall_ms;
    log_setup();
}

static const struct cron_job log_job = {
    .name = "log", .period_ms = 60 * 1000, .run = refresh_log_clock};

static const struct cron_job growth_job = {
    .name = "growth", .period_ms = 1000, .run = db_prepare_growth};

static const struct cron_job retired_job = {
    .name = "retired", .period_ms = 1, .run = reclaim_retired};

/* ---- the process's name and standing ---- */

/* How the kernel sees the process goes with its role. */
static void follow_role(int64_t wall_ms)
{
    static int was_replica = -1; /* the cron's thread's alone */
    int replica = follow_is_replica();
    (void)wall_ms;
    if (replica != was_replica) {
        was_replica = replica;
        oom_score_apply(replica ? OOM_REPLICA : OOM_PRIMARY);
    }
    proc_title_set(); /* port and address may have changed */
}

static const struct cron_job role_job = {.name = "role", .period_ms = 1000, .run = follow_role};

/* First thing in a child that writes the data set. */
static void begin_child(enum child_kind kind)
{
    static const char *const titles[] = {
        [CHILD_SAVE] = "keydb-rdb-bgsave",        [CHILD_AOF_REWRITE] = "keydb-aof-rewrite",
        [CHILD_TRANSFER] = "keydb-rdb-to-slaves", [CHILD_FULL_SYNC] = "keydb-to-peers",
        [CHILD_MODULE] = "keydb-module-fork",     [CHILD_DEBUGGER] = "keydb-debug-eval"};
    oom_score_apply(OOM_CHILD);
    /* Cores that are not there: the child runs where its parent does. */
    (void)thread_cpus_confine(kind == CHILD_AOF_REWRITE ? THREAD_WORK_AOF_REWRITE
                                                        : THREAD_WORK_SAVE);
    proc_title_set_child(titles[kind]);
    metrics_leave_to_parent();
}

/* World, or boot. */
static void change_repl_id(void)
{
    keyspace_lock_exclusive();
    backlog_forget_id();
    keyspace_unlock_exclusive();
}

/* World. */
static void truncate_backlog(void)
{
    keyspace_lock_exclusive();
    backlog_forget_kept();
    keyspace_unlock_exclusive();
}

/* The data are others' now than those that replicas have. World. */
static void begin_history(void)
{
    keyspace_lock_exclusive();
    backlog_forget_id();
    backlog_forget_kept();
    follow_dismiss_replicas();
    keyspace_unlock_exclusive();
}

/* DEBUG RESTART, CRASH-AND-RECOVER. An orderly end is that of SHUTDOWN, with the configuration
 * saved where it has a file. World. */
static bool restart(bool orderly, int64_t delay_ms, const char **error) NO_THREAD_SAFETY_ANALYSIS
{
    const char *why;
    if (!restart_is_possible(error)) {
        return false;
    }
    if (!orderly) {
        log_warning("DEBUG CRASH-AND-RECOVER: the program begins anew as it is");
        supervise_restarting();
        restart_now(delay_ms);
    } else if (config_file_path()[0] && !config_rewrite(&why)) {
        log_warning("DEBUG RESTART: cannot save the configuration: %s", why);
    } else if (!shutdown_wait_begin(SHUTDOWN_NOW) && snapshot_ops()->before_exit(SHUTDOWN_NOW)) {
        log_notice("DEBUG RESTART: ending, to begin anew");
        restart_wish(delay_ms);
        shutdown_request(SHUTDOWN_NOW | SHUTDOWN_READY | SHUTDOWN_AGAIN);
        return true;
    } else {
        shutdown_wait_end();
    }
    *error = "ERR failed to restart the server. Check server logs.";
    return false;
}

static void setup_process(void)
{
    thread_cpus_setup();
    int error = thread_cpus_confine(THREAD_WORK_SERVER);
    if (error) {
        log_warning("Can't confine the main thread to server_cpulist: %s", strerror(error));
    }
    if (!mem_set_background(server_settings.jemalloc_bg_thread)) {
        log_warning("The allocator has no background threads to switch");
    }
    oom_score_setup();
    oom_score_apply(OOM_PRIMARY);
    proc_title_set();
    fork_child_set_begin(begin_child);
    crash_report_setup();
    cron_register(&role_job);
    debug_set_backlog(change_repl_id, truncate_backlog);
    debug_set_restart(restart);
    debug_set_client_eviction(client_memory_describe);
}

static bool start_log(void)
{
    log_set_level((enum log_level)server_settings.loglevel);
    log_set_syslog(server_settings.syslog_enabled, server_settings.syslog_ident,
                   server_settings.syslog_facility);
    if (!log_set_file(server_settings.logfile)) {
        fprintf(stderr, "Can't open the log file %s: %s\n", server_settings.logfile,
                strerror(errno));
        return false;
    }
    return true;
}

/* The words of this line, of "Server initialized", "Ready to accept connections tcp" and of the
 * last one are Redis 7.2's: test harnesses and containers wait for them. */
static void greet(void)
{
    log_notice("KeyDB is starting: keydb-server %s with %lld server threads, PID: %d",
               KEYDB_VERSION, (long long)net_settings.server_threads, (int)getpid());
    if (config_file_path()[0]) {
        log_notice("Configuration: %s", config_file_path());
    } else {
        log_notice("No configuration file given: the built-in defaults hold");
    }
}

static void setup(void)
{
    thread_enter(program_name()); /* by which pgrep and killall find the process */
    setup_process();
    if (server_settings.disable_thp) {
        system_check_disable_thp();
    }
    system_check_warn(net_settings.tcp_backlog);
    access_setup();
    memory_limit_setup();
    latency_setup();
    sort_setup();
    cmdstats_setup();
    db_setup((int)server_settings.databases);
    parked_setup();
    propagate_setup();
    propagate_set_payload_writer(payload_write);
    active_setup();
    watching_setup();
    changes_setup();
    reclaim_set_peekers(&gil);
    reclaim_setup();
    sections_setup();
    cron_register(&log_job);
    cron_register(&growth_job);
    cron_register(&retired_job);
    save_setup();
    aof_setup();
    repl_setup();
    script_setup();
    metrics_setup();
    net_setup();
    module_setup();
    module_set_link(follow_is_connected);
    module_set_history(begin_history);
}

static void teardown(void)
{
    aof_teardown();
    script_teardown();
    save_teardown();
    reclaim_teardown();
    repl_teardown();
    active_teardown(); /* whose guests are parked */
    module_end_calls();
    parked_teardown();
    propagate_teardown();
    watching_teardown();
    db_teardown();
    module_teardown();
    cmdstats_teardown();
    sort_teardown();
    acl_teardown();
    command_teardown();
    supervise_remove_pidfile();
    thread_leave();
}

/* The end was asked for; the world stands. True when it is time, with the flags; else the request
 * is off. All that was asked until now is taken at once, before replicas are waited for: who waits
 * asks again as soon as they have everything. */
static bool may_end(unsigned *flags) REQUIRES(gil);
static bool may_end(unsigned *flags)
{
    if (!shutdown_take(flags)) {
        return false;
    }
    if (!(*flags & SHUTDOWN_READY)) {
        if (!(*flags & SHUTDOWN_WAITED) && shutdown_wait_begin(*flags)) {
            return false;
        }
        if (!snapshot_ops()->before_exit(*flags)) {
            shutdown_wait_end();
            return false;
        }
    }
    shutdown_request(*flags | SHUTDOWN_READY); /* for who looks whether the server ends */
    return true;
}

/* A script that takes long is waited for, but for one out of a log that is being loaded: what it
 * does is lost anyway. */
static void stop_world(void) RELEASE_SHARED(gil) ACQUIRE(gil) NO_THREAD_SAFETY_ANALYSIS
{
    if (!gil_try_stop_world()) {
        if (!load_is_complete()) {
            busy_end_for_shutdown();
        }
        gil_stop_world();
    }
}

/* Serves until somebody wants the end and nothing is against it; the flags he gave. */
static unsigned serve_until_end(struct event_base *base)
{
    for (;;) {
        unsigned flags = loop_run(base);
        gil_wake();
        stop_world();
        bool ends = may_end(&flags);
        gil_resume_world();
        gil_sleep();
        if (ends) {
            return flags;
        }
    }
}

/* ---- loading the data set ---- */

/* The systemd unit's start-up limit begins anew with each word of progress. */
#define START_EXTENSION_US (60ULL * 1000 * 1000)

static _Atomic bool load_failed;

static void log_ready(void)
{
    if (net_settings.port > 0) {
        log_notice("Ready to accept connections tcp");
    }
    if (net_settings.unixsocket && net_settings.unixsocket[0]) {
        log_notice("Ready to accept connections unix");
    }
    if (tls_settings.port > 0) {
        log_notice("Ready to accept connections tls");
    }
}

/* Main thread: everything is there. */
static void announce_ready(void)
{
    sections_started();
    if (active_is_on()) {
        peer_links_start();
    }
    log_ready();
    supervise_ready();
}

static void on_load_progress(unsigned percent)
{
    supervise_status("Loading the data set: %u %%", percent);
    supervise_extend_timeout_us(START_EXTENSION_US);
}

/* The world is the loading thread's for a moment. */
static bool on_loaded(void)
{
    gil_assert_awake();
    return active_begin();
}

static void on_load_ended(bool fine)
{
    if (fine) {
        loop_post(announce_ready);
    } else {
        load_failed = true;
        shutdown_request(SHUTDOWN_NOSAVE | SHUTDOWN_READY);
    }
}

static const struct load_listener load_listener = {
    .progress = on_load_progress, .loaded = on_loaded, .ended = on_load_ended};

static bool begin_active(void)
{
    gil_wake();
    bool fine = active_begin();
    gil_sleep();
    return fine;
}

static bool load_users(void)
{
    gil_wake();
    gil_stop_world();
    bool fine = acl_load_at_start();
    gil_resume_world();
    gil_sleep();
    return fine;
}

/* Loads what there is, and serves. False (logged) when one of them cannot be. The addresses come
 * first: when another server has them, its files are left alone, which the loading might mend, and
 * its pid file. */
static bool start(struct event_base *base)
{
    if (!listener_open()) {
        return false;
    }
    supervise_write_pidfile(server_settings.pidfile);
    log_notice("Running mode=standalone, port=%d.", listener_port());
    if (net_settings.unixsocket && net_settings.unixsocket[0]) {
        log_notice("Listening at the Unix socket %s", net_settings.unixsocket);
    }
    log_notice("Server initialized");
    module_start(base);
    if (!module_load_configured() || !load_users() || !active_prepare()) {
        return false;
    }
    enum load_begun begun = load_begin(&load_listener);
    if (begun == LOAD_BEGUN_BAD || (begun == LOAD_BEGUN_DONE && !begin_active()) ||
        !net_start(base) || !metrics_start()) {
        return false;
    }
    supervise_listening();
    repl_start();
    jobs_start();
    if (begun == LOAD_BEGUN_DONE) {
        announce_ready();
    } else {
        on_load_progress(0);
        log_notice("Loading the data set while listening on port %d", listener_port());
    }
    return true;
}

/* Amid a module's command, whose thread has the keyspace lock; the log's thread needs none. */
static void do_last_things(void) NO_THREAD_SAFETY_ANALYSIS
{
    log_warning("A module's command takes long and cannot be ended: the server ends within it");
    supervise_stopping();
    if (!aof_sync()) {
        log_debug("Nothing of a log was synced");
    }
    if (net_settings.unixsocket && net_settings.unixsocket[0]) {
        unlink(net_settings.unixsocket);
    }
    supervise_remove_pidfile();
    log_notice("Redis is now ready to exit, bye bye...");
}

/* When nothing more is saved: from now on their values may be gone. No other thread is left. */
static void tell_modules_of_end(void)
{
    gil_wake();
    modules_news(MODULES_SHUTDOWN, 0, NULL);
    gil_sleep();
}

static int serve(void)
{
    struct event_base *base = loop_create();
    shutdown_set_at_once(do_last_things);
    bool started = start(base);
    unsigned flags = SHUTDOWN_NOSAVE;
    if (started) {
        flags = serve_until_end(base);
        if (flags & SHUTDOWN_AGAIN) {
            supervise_restarting();
        } else {
            supervise_stopping();
        }
    }
    bool failed = !started || load_failed;
    metrics_stop();
    load_stop();
    jobs_stop();
    peer_links_stop();
    repl_stop();
    module_stop();
    net_stop();
    migrate_teardown();
    if (!failed) {
        save_at_exit(flags);
        tell_modules_of_end();
        aof_at_exit();
    }
    loop_destroy(base);
    return failed ? 1 : 0;
}

int boot_run(void)
{
    if (server_settings.daemonize) {
        supervise_daemonize();
    }
    if (!start_log()) {
        return 1;
    }
    greet();
    supervise_setup(server_settings.supervised);
    setup();
    int status = serve();
    teardown();
    log_notice(status ? "The server could not start" : "Redis is now ready to exit, bye bye...");
    server_options_teardown();
    compat_options_teardown();
    proc_title_teardown();
    identity_teardown();
    thread_cpus_teardown();
    metrics_teardown();
    net_settings_teardown();
    tls_settings_teardown();
    config_teardown();
    return status;
}
