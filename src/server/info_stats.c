/* INFO's stats and cpu sections, from the counters of all threads. */
#include "server/rates.h"
#include "server/sections_priv.h"
#include "base/clock.h"
#include "base/field.h"
#include "base/stats.h"
#include "engine/acl_log.h"
#include "engine/cmdstats.h"
#include "engine/fork_child.h"
#include "engine/pubsub.h"
#include "keyspace/evict.h"
#include "keyspace/expire.h"
#include "keyspace/local_expiry.h"
#include "keyspace/lock.h"
#include "net/settings.h"
#include "net/tracking.h"

#include <sys/resource.h>

static double info_seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* ---- Stats ---- */

/* Fields with a rate per second: bytes as kilobytes, others as they are. */
struct info_rate {
    const char *field;
    enum rate rate;
};

static void info_write_traffic(struct buf *out, const uint64_t *stats)
{
    static const struct info_rate rates[] = {
        {"instantaneous_input_kbps", RATE_INPUT_BYTES},
        {"instantaneous_output_kbps", RATE_OUTPUT_BYTES},
        {"instantaneous_input_repl_kbps", RATE_REPL_INPUT_BYTES},
        {"instantaneous_output_repl_kbps", RATE_REPL_OUTPUT_BYTES},
    };
    field_u64(out, "total_connections_received", stats[STAT_CONNECTIONS]);
    field_u64(out, "total_commands_processed", stats[STAT_COMMANDS]);
    field_fixed(out, "instantaneous_ops_per_sec", rates_get(RATE_COMMANDS), 0);
    field_u64(out, "total_net_input_bytes", stats[STAT_NET_INPUT_BYTES]);
    field_u64(out, "total_net_output_bytes", stats[STAT_NET_OUTPUT_BYTES]);
    field_u64(out, "total_net_repl_input_bytes", stats[STAT_REPL_INPUT_BYTES]);
    field_u64(out, "total_net_repl_output_bytes", stats[STAT_REPL_OUTPUT_BYTES]);
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        field_fixed(out, rates[i].field, rates_get(rates[i].rate) / 1024, 2);
    }
    field_u64(out, "rejected_connections", stats[STAT_REJECTED]);
    field_u64(out, "sync_full", stats[STAT_SYNC_FULL]);
    field_u64(out, "sync_partial_ok", stats[STAT_SYNC_PARTIAL_OK]);
    field_u64(out, "sync_partial_err", stats[STAT_SYNC_PARTIAL_REFUSED]);
}

static void info_write_keys(struct buf *out, const uint64_t *stats)
{
    uint64_t exceeded_ms, exceeded_now_ms;
    evict_exceeded_ms(&exceeded_ms, &exceeded_now_ms);
    field_u64(out, "expired_keys", stats[STAT_EXPIRED_KEYS]);
    field_u64(out, "expired_subkeys", stats[STAT_EXPIRED_MEMBERS]);
    field_fixed(out, "expired_stale_perc", expire_stale_percent(), 2);
    field_u64(out, "expired_time_cap_reached_count", expire_time_cap_reached());
    field_u64(out, "expire_cycle_cpu_milliseconds", stats[STAT_EXPIRE_CYCLE_US] / 1000);
    field_u64(out, "evicted_keys", stats[STAT_EVICTED_KEYS]);
    field_u64(out, "evicted_clients", stats[STAT_EVICTED_CLIENTS]);
    field_u64(out, "total_eviction_exceeded_time", exceeded_ms);
    field_u64(out, "current_eviction_exceeded_time", exceeded_now_ms);
    field_u64(out, "keyspace_hits", stats[STAT_KEYSPACE_HITS]);
    field_u64(out, "keyspace_misses", stats[STAT_KEYSPACE_MISSES]);
}

/* What this server has nothing to count of: it keeps no sockets for MIGRATE and moves nothing to
 * defragment. tests/lib/info_fields.py has the reason of each. */
static void info_write_absent(struct buf *out)
{
    static const char *const fields[] = {
        "migrate_cached_sockets",     "active_defrag_hits",       "active_defrag_misses",
        "active_defrag_key_hits",     "active_defrag_key_misses", "total_active_defrag_time",
        "current_active_defrag_time",
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        field_u64(out, fields[i], 0);
    }
}

/* Time that threads were awake, for which their CPU time stands, and time inside the lock. */
static void info_write_loops(struct buf *out, const uint64_t *stats)
{
    uint64_t held_ticks = 0;
    for (unsigned i = 0, used = thread_slots_used(); i < used; i++) {
        struct brlock_stats *s = &keyspace_lock.stats[i];
        held_ticks +=
            brlock_held_ticks(&s->shared_held_ticks) + brlock_held_ticks(&s->exclusive_held_ticks);
    }
    double turns_per_s = rates_get(RATE_TURNS);
    field_u64(out, "eventloop_cycles", stats[STAT_TURNS]);
    field_u64(out, "eventloop_duration_sum", rates_awake_us());
    field_u64(out, "eventloop_duration_cmd_sum", clock_ticks_to_ns(held_ticks) / 1000);
    field_fixed(out, "instantaneous_eventloop_cycles_per_sec", turns_per_s, 0);
    field_fixed(out, "instantaneous_eventloop_duration_usec",
                turns_per_s > 0 ? rates_get(RATE_AWAKE_US) / turns_per_s : 0, 0);
}

/* How many threads wait for the lock, lately and on average. */
static void info_write_contention(struct buf *out)
{
    double waited_s = (double)rates_lock_wait_ns() / 1e9;
    double uptime_s = (double)(clock_wall_ms() / 1000 - info_start_s());
    field_fixed(out, "instantaneous_lock_contention", rates_get(RATE_LOCK_WAIT_NS) / 1e9, 4);
    field_fixed(out, "avg_lock_contention", waited_s / (uptime_s + 1), 6);
    field_u64(out, "storage_provider_read_hits", 0);
    field_u64(out, "storage_provider_read_misses", 0);
}

static void info_add_errors(const char *code UNUSED, uint64_t count, void *context)
{
    *(uint64_t *)context += count;
}

static void info_write_tracking(struct buf *out)
{
    struct tracking_counts tracking = tracking_count();
    field_u64(out, "tracking_total_keys", tracking.keys);
    field_u64(out, "tracking_total_items", tracking.items);
    field_u64(out, "tracking_total_prefixes", tracking.prefixes);
}

/* Where there are several server threads, each reads and writes for its own clients. */
static void info_write_calls(struct buf *out, const uint64_t *stats)
{
    bool threaded = net_settings.server_threads > 1;
    field_u64(out, "total_reads_processed", stats[STAT_READS]);
    field_u64(out, "total_writes_processed", stats[STAT_WRITES]);
    field_u64(out, "io_threaded_reads_processed", threaded ? stats[STAT_READS] : 0);
    field_u64(out, "io_threaded_writes_processed", threaded ? stats[STAT_WRITES] : 0);
    field_u64(out, "client_query_buffer_limit_disconnections", stats[STAT_QUERY_LIMIT_CLOSED]);
    field_u64(out, "client_output_buffer_limit_disconnections", stats[STAT_OUTPUT_LIMIT_CLOSED]);
    /* Replies are built in a buffer of the thread, which is no client's. */
    field_u64(out, "reply_buffer_shrinks", 0);
    field_u64(out, "reply_buffer_expands", 0);
}

static void info_write_denials(struct buf *out)
{
    field_u64(out, "acl_access_denied_auth", acl_log_denied(ACL_DENIED_AUTH));
    field_u64(out, "acl_access_denied_cmd", acl_log_denied(ACL_DENIED_COMMAND));
    field_u64(out, "acl_access_denied_key", acl_log_denied(ACL_DENIED_KEY));
    field_u64(out, "acl_access_denied_channel", acl_log_denied(ACL_DENIED_CHANNEL));
}

static void info_write_stats(struct buf *out)
{
    struct stats_totals totals;
    const uint64_t *stats = totals.value;
    uint64_t error_replies = 0;
    stats_sum_all(&totals);
    info_write_traffic(out, stats);
    info_write_keys(out, stats);
    field_u64(out, "pubsub_channels", pubsub_names(PUBSUB_CHANNEL));
    field_u64(out, "pubsub_patterns", pubsub_names(PUBSUB_PATTERN));
    field_u64(out, "pubsubshard_channels", pubsub_names(PUBSUB_SHARD));
    field_u64(out, "latest_fork_usec", fork_child_latest_us());
    field_u64(out, "total_forks", stats[STAT_FORKS]);
    field_u64(out, "slave_expires_tracked_keys", local_expiry_count());
    info_write_absent(out);
    info_write_tracking(out);
    errorstats_each(info_add_errors, &error_replies);
    field_u64(out, "unexpected_error_replies", stats[STAT_UNEXPECTED_ERRORS]);
    field_u64(out, "total_error_replies", error_replies);
    field_u64(out, "dump_payload_sanitizations", stats[STAT_SANITIZATIONS]);
    info_write_calls(out, stats);
    info_write_loops(out, stats);
    info_write_denials(out);
    info_write_contention(out);
}

/* ---- CPU ---- */

static void info_write_cpu(struct buf *out)
{
    struct rusage self = {0}, children = {0};
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    uint64_t long_waits = 0;
    for (unsigned i = 0, used = thread_slots_used(); i < used; i++) {
        long_waits +=
            atomic_load_explicit(&keyspace_lock.stats[i].long_waits, memory_order_relaxed);
    }
    field_fixed(out, "used_cpu_sys", info_seconds(self.ru_stime), 6);
    field_fixed(out, "used_cpu_user", info_seconds(self.ru_utime), 6);
    field_fixed(out, "used_cpu_sys_children", info_seconds(children.ru_stime), 6);
    field_fixed(out, "used_cpu_user_children", info_seconds(children.ru_utime), 6);
    field_fixed(out, "used_cpu_sys_main_thread", (double)rates_main_thread_sys_us() / 1e6, 6);
    field_fixed(out, "used_cpu_user_main_thread", (double)rates_main_thread_user_us() / 1e6, 6);
    field_i64(out, "server_threads", net_settings.server_threads);
    field_u64(out, "long_lock_waits", long_waits);
}

const struct info_section stats_sections[] = {
    {.name = "stats", .title = "Stats", .in_default = true, .write = info_write_stats},
    {.name = "cpu", .title = "CPU", .in_default = true, .write = info_write_cpu},
    {.name = NULL},
};
