/* INFO's stats and cpu sections, from the counters of all threads. */
#include "server/rates.h"
#include "server/sections_priv.h"
#include "base/clock.h"
#include "base/stats.h"
#include "engine/acl_log.h"
#include "engine/cmdstats.h"
#include "engine/pubsub.h"
#include "keyspace/evict.h"
#include "keyspace/expire.h"
#include "keyspace/lock.h"
#include "net/settings.h"
#include "net/tracking.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static double info_seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* ---- Stats ---- */

struct info_counter {
    const char *field;
    enum counter stat;
};

static void info_append_counters(struct buf *out, const struct info_counter *counters, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "%s:%" PRIu64 "\r\n", counters[i].field, stats_sum(counters[i].stat));
    }
}
#define INFO_APPEND_COUNTERS(out, table)                                                           \
    info_append_counters(out, table, sizeof(table) / sizeof((table)[0]))

static void info_write_traffic(struct buf *out)
{
    buf_printf(out,
               "total_connections_received:%" PRIu64 "\r\ntotal_commands_processed:%" PRIu64 "\r\n"
               "instantaneous_ops_per_sec:%.0f\r\ntotal_net_input_bytes:%" PRIu64 "\r\n"
               "total_net_output_bytes:%" PRIu64 "\r\n",
               stats_sum(STAT_CONNECTIONS), stats_sum(STAT_COMMANDS), rates_get(RATE_COMMANDS),
               stats_sum(STAT_NET_INPUT_BYTES), stats_sum(STAT_NET_OUTPUT_BYTES));
    buf_printf(
        out,
        "total_net_repl_input_bytes:%" PRIu64 "\r\ntotal_net_repl_output_bytes:%" PRIu64 "\r\n"
        "instantaneous_input_kbps:%.2f\r\ninstantaneous_output_kbps:%.2f\r\n"
        "instantaneous_input_repl_kbps:0.00\r\ninstantaneous_output_repl_kbps:0.00\r\n"
        "rejected_connections:%" PRIu64 "\r\n"
        "sync_full:%" PRIu64 "\r\nsync_partial_ok:%" PRIu64 "\r\nsync_partial_err:%" PRIu64 "\r\n",
        stats_sum(STAT_REPL_INPUT_BYTES), stats_sum(STAT_REPL_OUTPUT_BYTES),
        rates_get(RATE_INPUT_BYTES) / 1024, rates_get(RATE_OUTPUT_BYTES) / 1024,
        stats_sum(STAT_REJECTED), stats_sum(STAT_SYNC_FULL), stats_sum(STAT_SYNC_PARTIAL_OK),
        stats_sum(STAT_SYNC_PARTIAL_REFUSED));
}

static void info_write_keys(struct buf *out)
{
    uint64_t exceeded_ms, exceeded_now_ms;
    evict_exceeded_ms(&exceeded_ms, &exceeded_now_ms);
    buf_printf(
        out,
        "expired_keys:%" PRIu64 "\r\nexpired_subkeys:%" PRIu64 "\r\nexpired_stale_perc:%.2f\r\n"
        "expired_time_cap_reached_count:%" PRIu64 "\r\n"
        "expire_cycle_cpu_milliseconds:%" PRIu64 "\r\n",
        stats_sum(STAT_EXPIRED_KEYS), stats_sum(STAT_EXPIRED_MEMBERS), expire_stale_percent(),
        expire_time_cap_reached(), stats_sum(STAT_EXPIRE_CYCLE_US) / 1000);
    buf_printf(out,
               "evicted_keys:%" PRIu64 "\r\nevicted_clients:%" PRIu64 "\r\n"
               "total_eviction_exceeded_time:%" PRIu64 "\r\ncurrent_eviction_exceeded_time:%" PRIu64
               "\r\n"
               "keyspace_hits:%" PRIu64 "\r\nkeyspace_misses:%" PRIu64 "\r\n",
               stats_sum(STAT_EVICTED_KEYS), stats_sum(STAT_EVICTED_CLIENTS), exceeded_ms,
               exceeded_now_ms, stats_sum(STAT_KEYSPACE_HITS), stats_sum(STAT_KEYSPACE_MISSES));
}

/* Time that threads were awake, for which their CPU time stands, and time inside the lock. */
static void info_write_loops(struct buf *out)
{
    uint64_t held_ticks = 0;
    for (int i = 0; i < BRLOCK_MAX_THREADS; i++) {
        struct brlock_stats *s = &keyspace_lock.stats[i];
        held_ticks += atomic_load_explicit(&s->shared_held_ticks, memory_order_relaxed) +
                      atomic_load_explicit(&s->exclusive_held_ticks, memory_order_relaxed);
    }
    double turns_per_s = rates_get(RATE_TURNS);
    buf_printf(out,
               "eventloop_cycles:%" PRIu64 "\r\neventloop_duration_sum:%" PRIu64 "\r\n"
               "eventloop_duration_cmd_sum:%" PRIu64 "\r\n"
               "instantaneous_eventloop_cycles_per_sec:%.0f\r\n"
               "instantaneous_eventloop_duration_usec:%.0f\r\n",
               stats_sum(STAT_TURNS), rates_awake_us(), clock_ticks_to_ns(held_ticks) / 1000,
               turns_per_s, turns_per_s > 0 ? rates_get(RATE_AWAKE_US) / turns_per_s : 0);
}

/* How many threads wait for the lock, lately and on average. */
static void info_write_contention(struct buf *out, int64_t uptime_s)
{
    double waited_s = (double)rates_lock_wait_ns() / 1e9;
    buf_printf(out,
               "instantaneous_lock_contention:%.4f\r\navg_lock_contention:%.6f\r\n"
               "storage_provider_read_hits:0\r\nstorage_provider_read_misses:0\r\n",
               rates_get(RATE_LOCK_WAIT_NS) / 1e9, waited_s / (double)(uptime_s + 1));
}

static void info_add_errors(const char *code UNUSED, uint64_t count, void *context)
{
    *(uint64_t *)context += count;
}

static void info_write_stats(struct buf *out)
{
    uint64_t error_replies = 0;
    static const struct info_counter closed[] = {
        {"total_reads_processed", STAT_READS},
        {"total_writes_processed", STAT_WRITES},
    };
    static const struct info_counter limits[] = {
        {"client_query_buffer_limit_disconnections", STAT_QUERY_LIMIT_CLOSED},
        {"client_output_buffer_limit_disconnections", STAT_OUTPUT_LIMIT_CLOSED},
    };
    info_write_traffic(out);
    info_write_keys(out);
    buf_printf(out,
               "pubsub_channels:%" PRIu64 "\r\npubsub_patterns:%" PRIu64
               "\r\npubsubshard_channels:%" PRIu64 "\r\n",
               pubsub_names(PUBSUB_CHANNEL), pubsub_names(PUBSUB_PATTERN),
               pubsub_names(PUBSUB_SHARD));
    buf_append_cstr(out, "latest_fork_usec:0\r\ntotal_forks:0\r\nmigrate_cached_sockets:0\r\n"
                         "slave_expires_tracked_keys:0\r\nactive_defrag_hits:0\r\n"
                         "active_defrag_misses:0\r\nactive_defrag_key_hits:0\r\n"
                         "active_defrag_key_misses:0\r\ntotal_active_defrag_time:0\r\n"
                         "current_active_defrag_time:0\r\n");
    struct tracking_counts tracking = tracking_count();
    buf_printf(out,
               "tracking_total_keys:%" PRIu64 "\r\ntracking_total_items:%" PRIu64
               "\r\ntracking_total_prefixes:%" PRIu64 "\r\n",
               tracking.keys, tracking.items, tracking.prefixes);
    errorstats_each(info_add_errors, &error_replies);
    buf_printf(out, "unexpected_error_replies:0\r\ntotal_error_replies:%" PRIu64 "\r\n",
               error_replies);
    buf_append_cstr(out, "dump_payload_sanitizations:0\r\n");
    INFO_APPEND_COUNTERS(out, closed);
    buf_append_cstr(out, "io_threaded_reads_processed:0\r\nio_threaded_writes_processed:0\r\n");
    INFO_APPEND_COUNTERS(out, limits);
    buf_append_cstr(out, "reply_buffer_shrinks:0\r\nreply_buffer_expands:0\r\n");
    info_write_loops(out);
    buf_printf(out,
               "acl_access_denied_auth:%" PRIu64 "\r\nacl_access_denied_cmd:%" PRIu64 "\r\n"
               "acl_access_denied_key:%" PRIu64 "\r\nacl_access_denied_channel:%" PRIu64 "\r\n",
               acl_log_denied(ACL_DENIED_AUTH), acl_log_denied(ACL_DENIED_COMMAND),
               acl_log_denied(ACL_DENIED_KEY), acl_log_denied(ACL_DENIED_CHANNEL));
    info_write_contention(out, clock_wall_ms() / 1000 - info_start_s());
}

/* ---- CPU ---- */

/* Fields 14 and 15 of the main thread's stat file (proc(5)): user and system time in clock ticks.
 */
static void info_main_thread_seconds(double *user, double *sys)
{
    char path[64], text[1024];
    *user = *sys = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", (long)getpid());
    FILE *file = fopen(path, "re");
    if (!file) {
        return;
    }
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[len] = '\0';
    /* The name is in brackets and may hold anything; what follows the last one is plain. */
    const char *rest = strrchr(text, ')');
    unsigned long long user_ticks, sys_ticks;
    if (rest && sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user_ticks,
                       &sys_ticks) == 2) {
        double ticks_per_s = (double)sysconf(_SC_CLK_TCK);
        *user = (double)user_ticks / ticks_per_s;
        *sys = (double)sys_ticks / ticks_per_s;
    }
}

static void info_write_cpu(struct buf *out)
{
    struct rusage self = {0}, children = {0};
    double main_user, main_sys;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    info_main_thread_seconds(&main_user, &main_sys);
    uint64_t long_waits = 0;
    for (int i = 0; i < BRLOCK_MAX_THREADS; i++) {
        long_waits +=
            atomic_load_explicit(&keyspace_lock.stats[i].long_waits, memory_order_relaxed);
    }
    buf_printf(out,
               "used_cpu_sys:%.6f\r\nused_cpu_user:%.6f\r\nused_cpu_sys_children:%.6f\r\n"
               "used_cpu_user_children:%.6f\r\nused_cpu_sys_main_thread:%.6f\r\n"
               "used_cpu_user_main_thread:%.6f\r\nserver_threads:%lld\r\n"
               "long_lock_waits:%" PRIu64 "\r\n",
               info_seconds(self.ru_stime), info_seconds(self.ru_utime),
               info_seconds(children.ru_stime), info_seconds(children.ru_utime), main_sys,
               main_user, (long long)net_settings.server_threads, long_waits);
}

const struct info_section stats_sections[] = {
    {.name = "stats", .title = "Stats", .in_default = true, .write = info_write_stats},
    {.name = "cpu", .title = "CPU", .in_default = true, .write = info_write_cpu},
    {.name = NULL},
};
