/* See table.h. */
#include "metrics/table.h"

#include <stddef.h>

#define GAUGE(in, of, as)                                                                          \
    {                                                                                              \
        .section = in, .field = of, .name = "redis_" as, .type = METRIC_GAUGE                      \
    }
#define COUNTER(in, of, as)                                                                        \
    {                                                                                              \
        .section = in, .field = of, .name = "redis_" as, .type = METRIC_COUNTER                    \
    }
#define OUR_GAUGE(in, of, as)                                                                      \
    {                                                                                              \
        .section = in, .field = of, .name = "keydb_" as, .type = METRIC_GAUGE                      \
    }
#define OUR_COUNTER(in, of, as)                                                                    \
    {                                                                                              \
        .section = in, .field = of, .name = "keydb_" as, .type = METRIC_COUNTER                    \
    }
#define OUR_GOOD(in, of, as)                                                                       \
    {                                                                                              \
        .section = in, .field = of, .name = "keydb_" as, .value = VALUE_GOOD                       \
    }
#define GOOD(in, of, as)                                                                           \
    {                                                                                              \
        .section = in, .field = of, .name = "redis_" as, .value = VALUE_GOOD                       \
    }
/* A part of each command's line. */
#define OF_COMMANDS(of, as, how)                                                                   \
    {                                                                                              \
        .section = "commandstats", .field = "cmdstat_", .part = of, .open = true,                  \
        .name = "redis_commands_" as, .type = METRIC_COUNTER, .value = how, .labels = {            \
            {"cmd", NULL}                                                                          \
        }                                                                                          \
    }
/* A part of each database's line. */
#define OF_DATABASES(of, as, how)                                                                  \
    {                                                                                              \
        .section = "keyspace", .field = "db", .part = of, .numbered = true,                        \
        .name = "redis_db_" as, .value = how, .labels = {                                          \
            {"db", "*"}                                                                            \
        }                                                                                          \
    }
/* A part of each replica's line. */
#define OF_REPLICAS(of, as)                                                                        \
    {                                                                                              \
        .section = "replication", .field = "slave", .part = of, .numbered = true,                  \
        .name = "redis_connected_slave_" as, .labels = {                                           \
            {"slave_ip", "=ip"},                                                                   \
            {"slave_port", "=port"},                                                               \
            {"slave_state", "=state"},                                                             \
        }                                                                                          \
    }
/* A field of a replica about its primary. */
#define OF_PRIMARY(of, as, how)                                                                    \
    {                                                                                              \
        .section = "replication", .field = of, .name = "redis_" as, .value = how, .labels = {      \
            {"master_host", "master_host"},                                                        \
            {"master_port", "master_port"},                                                        \
        }                                                                                          \
    }
/* A part of each server thread's line. */
#define OF_THREADS(of, as, kind, how)                                                              \
    {                                                                                              \
        .section = "threads", .field = "thread_", .part = of, .numbered = true,                    \
        .name = "keydb_thread_" as, .type = kind, .value = how, .labels = {                        \
            {"thread", NULL}                                                                       \
        }                                                                                          \
    }

const struct metric_row metric_rows[] = {
    {.section = "server",
     .field = "redis_version",
     .name = "redis_instance_info",
     .value = VALUE_ALWAYS,
     .labels = {{"role", "role"},
                {"redis_version", "redis_version"},
                {"redis_build_id", "redis_build_id"},
                {"redis_mode", "redis_mode"},
                {"os", "os"},
                {"maxmemory_policy", "maxmemory_policy"},
                {"tcp_port", "tcp_port"},
                {"run_id", "run_id"},
                {"process_id", "process_id"},
                {"master_replid", "master_replid"},
                {"keydb_version", "keydb_version"}}},
    GAUGE("server", "process_id", "process_id"),
    {.section = "server",
     .field = "server_time_usec",
     .name = "redis_server_time_seconds",
     .value = VALUE_MICRO},
    GAUGE("server", "uptime_in_seconds", "uptime_in_seconds"),
    GAUGE("server", "hz", "hz"),
    GAUGE("server", "shutdown_in_milliseconds", "shutdown_in_milliseconds"),
    GAUGE("server", "lru_clock", "lru_clock"),
    GAUGE("server", "io_threads_active", "io_threads_active"),

    GAUGE("clients", "connected_clients", "connected_clients"),
    GAUGE("clients", "cluster_connections", "cluster_connections"),
    GAUGE("clients", "maxclients", "max_clients"),
    GAUGE("clients", "client_recent_max_input_buffer", "client_recent_max_input_buffer_bytes"),
    GAUGE("clients", "client_recent_max_output_buffer", "client_recent_max_output_buffer_bytes"),
    GAUGE("clients", "blocked_clients", "blocked_clients"),
    GAUGE("clients", "tracking_clients", "tracking_clients"),
    GAUGE("clients", "clients_in_timeout_table", "clients_in_timeout_table"),
    GAUGE("clients", "total_blocking_keys", "total_blocking_keys"),
    GAUGE("clients", "total_blocking_keys_on_nokey", "total_blocking_keys_on_nokey"),

    GAUGE("memory", "used_memory", "memory_used_bytes"),
    GAUGE("memory", "used_memory_rss", "memory_used_rss_bytes"),
    GAUGE("memory", "used_memory_peak", "memory_used_peak_bytes"),
    GAUGE("memory", "used_memory_peak_perc", "memory_used_peak_percentage"),
    GAUGE("memory", "used_memory_overhead", "memory_used_overhead_bytes"),
    GAUGE("memory", "used_memory_startup", "memory_used_startup_bytes"),
    GAUGE("memory", "used_memory_dataset", "memory_used_dataset_bytes"),
    GAUGE("memory", "used_memory_dataset_perc", "memory_used_dataset_percentage"),
    GAUGE("memory", "allocator_allocated", "allocator_allocated_bytes"),
    GAUGE("memory", "allocator_active", "allocator_active_bytes"),
    GAUGE("memory", "allocator_resident", "allocator_resident_bytes"),
    GAUGE("memory", "total_system_memory", "total_system_memory_bytes"),
    GAUGE("memory", "used_memory_lua", "memory_used_lua_bytes"),
    GAUGE("memory", "used_memory_vm_eval", "memory_used_vm_eval_bytes"),
    GAUGE("memory", "used_memory_scripts_eval", "memory_used_scripts_eval_bytes"),
    GAUGE("memory", "number_of_cached_scripts", "number_of_cached_scripts"),
    GAUGE("memory", "number_of_functions", "number_of_functions"),
    GAUGE("memory", "number_of_libraries", "number_of_libraries"),
    GAUGE("memory", "used_memory_vm_functions", "memory_used_vm_functions_bytes"),
    GAUGE("memory", "used_memory_vm_total", "memory_used_vm_total"),
    GAUGE("memory", "used_memory_functions", "memory_used_functions_bytes"),
    GAUGE("memory", "used_memory_scripts", "memory_used_scripts_bytes"),
    GAUGE("memory", "maxmemory", "memory_max_bytes"),
    GAUGE("memory", "allocator_frag_ratio", "allocator_frag_ratio"),
    GAUGE("memory", "allocator_frag_bytes", "allocator_frag_bytes"),
    GAUGE("memory", "allocator_rss_ratio", "allocator_rss_ratio"),
    GAUGE("memory", "allocator_rss_bytes", "allocator_rss_bytes"),
    GAUGE("memory", "rss_overhead_ratio", "rss_overhead_ratio"),
    GAUGE("memory", "rss_overhead_bytes", "rss_overhead_bytes"),
    GAUGE("memory", "mem_fragmentation_ratio", "mem_fragmentation_ratio"),
    GAUGE("memory", "mem_fragmentation_bytes", "mem_fragmentation_bytes"),
    GAUGE("memory", "mem_not_counted_for_evict", "mem_not_counted_for_eviction_bytes"),
    GAUGE("memory", "mem_replication_backlog", "mem_replication_backlog_bytes"),
    GAUGE("memory", "mem_total_replication_buffers", "mem_total_replication_buffers_bytes"),
    GAUGE("memory", "mem_clients_slaves", "mem_clients_slaves"),
    GAUGE("memory", "mem_clients_normal", "mem_clients_normal"),
    GAUGE("memory", "mem_cluster_links", "mem_cluster_links_bytes"),
    GAUGE("memory", "mem_aof_buffer", "mem_aof_buffer_bytes"),
    GAUGE("memory", "active_defrag_running", "active_defrag_running"),
    GAUGE("memory", "lazyfree_pending_objects", "lazyfree_pending_objects"),
    COUNTER("memory", "lazyfreed_objects", "lazyfreed_objects_total"),
    GAUGE("memory", "available_system_memory", "available_system_memory_bytes"),

    GAUGE("persistence", "loading", "loading_dump_file"),
    GAUGE("persistence", "async_loading", "async_loading"),
    GAUGE("persistence", "loading_start_time", "loading_start_timestamp_seconds"),
    GAUGE("persistence", "loading_total_bytes", "loading_total_bytes"),
    GAUGE("persistence", "loading_rdb_used_mem", "loading_rdb_used_mem_bytes"),
    GAUGE("persistence", "loading_loaded_bytes", "loading_loaded_bytes"),
    GAUGE("persistence", "loading_loaded_perc", "loading_loaded_percentage"),
    GAUGE("persistence", "loading_eta_seconds", "loading_eta_seconds"),
    GAUGE("persistence", "current_cow_peak", "current_cow_peak_bytes"),
    GAUGE("persistence", "current_cow_size", "current_cow_size_bytes"),
    GAUGE("persistence", "current_cow_size_age", "current_cow_size_age_seconds"),
    GAUGE("persistence", "current_fork_perc", "current_fork_percentage"),
    GAUGE("persistence", "current_save_keys_processed", "current_save_keys_processed"),
    GAUGE("persistence", "current_save_keys_total", "current_save_keys_total"),
    GAUGE("persistence", "rdb_changes_since_last_save", "rdb_changes_since_last_save"),
    GAUGE("persistence", "rdb_bgsave_in_progress", "rdb_bgsave_in_progress"),
    GAUGE("persistence", "rdb_last_save_time", "rdb_last_save_timestamp_seconds"),
    GOOD("persistence", "rdb_last_bgsave_status", "rdb_last_bgsave_status"),
    GAUGE("persistence", "rdb_last_bgsave_time_sec", "rdb_last_bgsave_duration_sec"),
    GAUGE("persistence", "rdb_current_bgsave_time_sec", "rdb_current_bgsave_duration_sec"),
    COUNTER("persistence", "rdb_saves", "rdb_saves_total"),
    GAUGE("persistence", "rdb_last_cow_size", "rdb_last_cow_size_bytes"),
    GAUGE("persistence", "rdb_last_load_keys_expired", "rdb_last_load_expired_keys"),
    GAUGE("persistence", "rdb_last_load_keys_loaded", "rdb_last_load_loaded_keys"),
    GAUGE("persistence", "aof_enabled", "aof_enabled"),
    GAUGE("persistence", "aof_rewrite_in_progress", "aof_rewrite_in_progress"),
    GAUGE("persistence", "aof_rewrite_scheduled", "aof_rewrite_scheduled"),
    GAUGE("persistence", "aof_last_rewrite_time_sec", "aof_last_rewrite_duration_sec"),
    GAUGE("persistence", "aof_current_rewrite_time_sec", "aof_current_rewrite_duration_sec"),
    GOOD("persistence", "aof_last_bgrewrite_status", "aof_last_bgrewrite_status"),
    COUNTER("persistence", "aof_rewrites", "aof_rewrites_total"),
    GAUGE("persistence", "aof_rewrites_consecutive_failures", "aof_rewrites_consecutive_failures"),
    GOOD("persistence", "aof_last_write_status", "aof_last_write_status"),
    GAUGE("persistence", "aof_last_cow_size", "aof_last_cow_size_bytes"),
    GAUGE("persistence", "module_fork_in_progress", "module_fork_in_progress"),
    GAUGE("persistence", "module_fork_last_cow_size", "module_fork_last_cow_size"),
    GAUGE("persistence", "aof_current_size", "aof_current_size_bytes"),
    GAUGE("persistence", "aof_base_size", "aof_base_size_bytes"),
    GAUGE("persistence", "aof_pending_rewrite", "aof_pending_rewrite"),
    GAUGE("persistence", "aof_buffer_length", "aof_buffer_length"),
    GAUGE("persistence", "aof_pending_bio_fsync", "aof_pending_bio_fsync"),
    COUNTER("persistence", "aof_delayed_fsync", "aof_delayed_fsync"),

    COUNTER("stats", "total_connections_received", "connections_received_total"),
    COUNTER("stats", "total_commands_processed", "commands_processed_total"),
    GAUGE("stats", "instantaneous_ops_per_sec", "instantaneous_ops_per_sec"),
    COUNTER("stats", "total_net_input_bytes", "net_input_bytes_total"),
    COUNTER("stats", "total_net_output_bytes", "net_output_bytes_total"),
    COUNTER("stats", "total_net_repl_input_bytes", "net_repl_input_bytes_total"),
    COUNTER("stats", "total_net_repl_output_bytes", "net_repl_output_bytes_total"),
    GAUGE("stats", "instantaneous_input_kbps", "instantaneous_input_kbps"),
    GAUGE("stats", "instantaneous_output_kbps", "instantaneous_output_kbps"),
    GAUGE("stats", "instantaneous_input_repl_kbps", "instantaneous_input_repl_kbps"),
    GAUGE("stats", "instantaneous_output_repl_kbps", "instantaneous_output_repl_kbps"),
    COUNTER("stats", "rejected_connections", "rejected_connections_total"),
    COUNTER("stats", "sync_full", "replica_resyncs_full"),
    COUNTER("stats", "sync_partial_ok", "replica_partial_resync_accepted"),
    COUNTER("stats", "sync_partial_err", "replica_partial_resync_denied"),
    COUNTER("stats", "expired_keys", "expired_keys_total"),
    COUNTER("stats", "expired_subkeys", "expired_subkeys_total"),
    GAUGE("stats", "expired_stale_perc", "expired_stale_percentage"),
    COUNTER("stats", "expired_time_cap_reached_count", "expired_time_cap_reached_total"),
    COUNTER("stats", "expire_cycle_cpu_milliseconds", "expire_cycle_cpu_time_ms_total"),
    COUNTER("stats", "evicted_keys", "evicted_keys_total"),
    COUNTER("stats", "evicted_clients", "evicted_clients_total"),
    COUNTER("stats", "total_eviction_exceeded_time", "eviction_exceeded_time_ms_total"),
    GAUGE("stats", "current_eviction_exceeded_time", "current_eviction_exceeded_time_ms"),
    COUNTER("stats", "keyspace_hits", "keyspace_hits_total"),
    COUNTER("stats", "keyspace_misses", "keyspace_misses_total"),
    GAUGE("stats", "pubsub_channels", "pubsub_channels"),
    GAUGE("stats", "pubsub_patterns", "pubsub_patterns"),
    GAUGE("stats", "pubsubshard_channels", "pubsubshard_channels"),
    GAUGE("stats", "latest_fork_usec", "latest_fork_usec"),
    COUNTER("stats", "total_forks", "forks_total"),
    GAUGE("stats", "slave_expires_tracked_keys", "slave_expires_tracked_keys"),
    GAUGE("stats", "migrate_cached_sockets", "migrate_cached_sockets_total"),
    COUNTER("stats", "active_defrag_hits", "defrag_hits"),
    COUNTER("stats", "active_defrag_misses", "defrag_misses"),
    COUNTER("stats", "active_defrag_key_hits", "defrag_key_hits"),
    COUNTER("stats", "active_defrag_key_misses", "defrag_key_misses"),
    COUNTER("stats", "total_active_defrag_time", "active_defrag_time_total"),
    GAUGE("stats", "current_active_defrag_time", "current_active_defrag_time"),
    GAUGE("stats", "tracking_total_keys", "tracking_total_keys"),
    GAUGE("stats", "tracking_total_items", "tracking_total_items"),
    GAUGE("stats", "tracking_total_prefixes", "tracking_total_prefixes"),
    COUNTER("stats", "unexpected_error_replies", "unexpected_error_replies"),
    COUNTER("stats", "total_error_replies", "total_error_replies"),
    COUNTER("stats", "dump_payload_sanitizations", "dump_payload_sanitizations"),
    COUNTER("stats", "total_reads_processed", "total_reads_processed"),
    COUNTER("stats", "total_writes_processed", "total_writes_processed"),
    COUNTER("stats", "io_threaded_reads_processed", "io_threaded_reads_processed"),
    COUNTER("stats", "io_threaded_writes_processed", "io_threaded_writes_processed"),
    COUNTER("stats", "client_query_buffer_limit_disconnections",
            "client_query_buffer_limit_disconnections_total"),
    COUNTER("stats", "client_output_buffer_limit_disconnections",
            "client_output_buffer_limit_disconnections_total"),
    COUNTER("stats", "reply_buffer_shrinks", "reply_buffer_shrinks_total"),
    COUNTER("stats", "reply_buffer_expands", "reply_buffer_expands_total"),
    COUNTER("stats", "eventloop_cycles", "eventloop_cycles_total"),
    COUNTER("stats", "eventloop_duration_sum", "eventloop_duration_sum_usec_total"),
    COUNTER("stats", "eventloop_duration_cmd_sum", "eventloop_duration_cmd_sum_usec_total"),
    GAUGE("stats", "instantaneous_eventloop_cycles_per_sec",
          "instantaneous_eventloop_cycles_per_sec"),
    GAUGE("stats", "instantaneous_eventloop_duration_usec",
          "instantaneous_eventloop_duration_usec"),
    COUNTER("stats", "acl_access_denied_auth", "acl_access_denied_auth_total"),
    COUNTER("stats", "acl_access_denied_cmd", "acl_access_denied_cmd_total"),
    COUNTER("stats", "acl_access_denied_key", "acl_access_denied_key_total"),
    COUNTER("stats", "acl_access_denied_channel", "acl_access_denied_channel_total"),
    OUR_GAUGE("stats", "instantaneous_lock_contention", "instantaneous_lock_contention"),
    OUR_GAUGE("stats", "avg_lock_contention", "avg_lock_contention"),
    COUNTER("stats", "storage_provider_read_hits", "storage_provider_read_hits"),
    COUNTER("stats", "storage_provider_read_misses", "storage_provider_read_misses"),

    {.section = "replication",
     .field = "master_host",
     .name = "redis_slave_info",
     .value = VALUE_ALWAYS,
     .labels = {{"master_host", "master_host"},
                {"master_port", "master_port"},
                {"read_only", "slave_read_only"}}},
    OF_PRIMARY("master_link_status", "master_link_up", VALUE_GOOD),
    OF_PRIMARY("master_last_io_seconds_ago", "master_last_io_seconds_ago", VALUE_AS_IS),
    OF_PRIMARY("master_sync_in_progress", "master_sync_in_progress", VALUE_AS_IS),
    OF_PRIMARY("slave_repl_offset", "slave_repl_offset", VALUE_AS_IS),
    OF_PRIMARY("slave_read_repl_offset", "slave_read_repl_offset", VALUE_AS_IS),
    OF_PRIMARY("master_link_down_since_seconds", "master_link_down_since_seconds", VALUE_AS_IS),
    OF_PRIMARY("master_sync_total_bytes", "master_sync_total_bytes", VALUE_AS_IS),
    OF_PRIMARY("master_sync_read_bytes", "master_sync_read_bytes", VALUE_AS_IS),
    OF_PRIMARY("master_sync_left_bytes", "master_sync_left_bytes", VALUE_AS_IS),
    OF_PRIMARY("master_sync_perc", "master_sync_percentage", VALUE_AS_IS),
    OF_PRIMARY("master_sync_last_io_seconds_ago", "master_sync_last_io_seconds_ago", VALUE_AS_IS),
    GOOD("replication", "master_global_link_status", "master_global_link_up"),
    GAUGE("replication", "connected_masters", "connected_masters"),
    GAUGE("replication", "slave_priority", "slave_priority"),
    GAUGE("replication", "slave_read_only", "slave_read_only"),
    GAUGE("replication", "replica_announced", "replica_announced"),
    GAUGE("replication", "connected_slaves", "connected_slaves"),
    GAUGE("replication", "min_slaves_good_slaves", "min_slaves_good_slaves"),
    OF_REPLICAS("lag", "lag_seconds"),
    OF_REPLICAS("offset", "offset_bytes"),
    GAUGE("replication", "master_repl_offset", "master_repl_offset"),
    GAUGE("replication", "second_repl_offset", "second_repl_offset"),
    GAUGE("replication", "repl_backlog_active", "repl_backlog_is_active"),
    GAUGE("replication", "repl_backlog_size", "replication_backlog_bytes"),
    GAUGE("replication", "repl_backlog_first_byte_offset", "repl_backlog_first_byte_offset"),
    GAUGE("replication", "repl_backlog_histlen", "repl_backlog_history_bytes"),
    OUR_GOOD("replication", "repl_backlog_disk_state", "repl_backlog_disk_is_ready"),
    OUR_GAUGE("replication", "repl_backlog_disk_reserve", "repl_backlog_disk_reserve_bytes"),
    OUR_GAUGE("replication", "repl_backlog_disk_first_byte_offset",
              "repl_backlog_disk_first_byte_offset"),
    OUR_GAUGE("replication", "repl_backlog_disk_histlen", "repl_backlog_disk_history_bytes"),
    OUR_GAUGE("replication", "repl_backlog_disk_queued", "repl_backlog_disk_queued_bytes"),
    OUR_COUNTER("replication", "repl_backlog_disk_faults", "repl_backlog_disk_faults_total"),
    OUR_GAUGE("replication", "active_origins", "active_origins"),
    OUR_GAUGE("replication", "active_log_bytes", "active_log_bytes"),
    OUR_GOOD("replication", "active_log_disk_state", "active_log_disk_is_ready"),
    OUR_GAUGE("replication", "active_log_disk_reserve", "active_log_disk_reserve_bytes"),
    OUR_GAUGE("replication", "active_log_disk_bytes", "active_log_disk_bytes"),
    OUR_GAUGE("replication", "active_log_disk_queued", "active_log_disk_queued_bytes"),
    OUR_COUNTER("replication", "active_log_disk_faults", "active_log_disk_faults_total"),
    OUR_COUNTER("replication", "active_own_units", "active_own_units_total"),
    OUR_GAUGE("replication", "active_conflicts", "active_conflicts"),
    OUR_COUNTER("replication", "active_states", "active_states_total"),
    OUR_COUNTER("replication", "active_digests", "active_digests_total"),
    OUR_GAUGE("replication", "active_members", "active_members"),
    OUR_GAUGE("replication", "active_members_agree", "active_members_agree"),
    OUR_GAUGE("replication", "active_waiting_guests", "active_waiting_guests"),
    OUR_GAUGE("replication", "active_sync_receiving", "active_sync_receiving"),
    OUR_GAUGE("replication", "active_sync_merging", "active_sync_merging"),
    OUR_GAUGE("replication", "active_sync_keys", "active_sync_keys"),
    OUR_GAUGE("replication", "active_sync_keys_merged", "active_sync_keys_merged"),

    COUNTER("cpu", "used_cpu_sys", "cpu_sys_seconds_total"),
    COUNTER("cpu", "used_cpu_user", "cpu_user_seconds_total"),
    COUNTER("cpu", "used_cpu_sys_children", "cpu_sys_children_seconds_total"),
    COUNTER("cpu", "used_cpu_user_children", "cpu_user_children_seconds_total"),
    COUNTER("cpu", "used_cpu_sys_main_thread", "cpu_sys_main_thread_seconds_total"),
    COUNTER("cpu", "used_cpu_user_main_thread", "cpu_user_main_thread_seconds_total"),
    GAUGE("cpu", "server_threads", "server_threads_total"),
    COUNTER("cpu", "long_lock_waits", "long_lock_waits_total"),

    OF_COMMANDS("calls", "total", VALUE_AS_IS),
    OF_COMMANDS("usec", "duration_seconds_total", VALUE_MICRO),
    OF_COMMANDS("rejected_calls", "rejected_calls_total", VALUE_AS_IS),
    OF_COMMANDS("failed_calls", "failed_calls_total", VALUE_AS_IS),

    {.section = "errorstats",
     .field = "errorstat_",
     .part = "count",
     .open = true,
     .name = "redis_errors_total",
     .type = METRIC_COUNTER,
     .labels = {{"err", NULL}}},

    GAUGE("cluster", "cluster_enabled", "cluster_enabled"),

    OF_DATABASES("keys", "keys", VALUE_AS_IS),
    OF_DATABASES("expires", "keys_expiring", VALUE_AS_IS),
    OF_DATABASES("avg_ttl", "avg_ttl_seconds", VALUE_MILLI),
    OF_DATABASES("cached_keys", "keys_cached", VALUE_AS_IS),
    OF_DATABASES("subexpiry", "keys_expiring_members", VALUE_AS_IS),

    OF_THREADS("clients", "clients", METRIC_GAUGE, VALUE_AS_IS),
    OF_THREADS("turns", "turns_total", METRIC_COUNTER, VALUE_AS_IS),
    OF_THREADS("commands", "commands_total", METRIC_COUNTER, VALUE_AS_IS),
    OF_THREADS("batches", "batches_total", METRIC_COUNTER, VALUE_AS_IS),
    OF_THREADS("batch_max", "batch_max_commands", METRIC_GAUGE, VALUE_AS_IS),
    OF_THREADS("shared_acquisitions", "lock_shared_acquisitions_total", METRIC_COUNTER,
               VALUE_AS_IS),
    OF_THREADS("exclusive_acquisitions", "lock_exclusive_acquisitions_total", METRIC_COUNTER,
               VALUE_AS_IS),
    OF_THREADS("shared_held_us", "lock_shared_held_seconds_total", METRIC_COUNTER, VALUE_MICRO),
    OF_THREADS("exclusive_held_us", "lock_exclusive_held_seconds_total", METRIC_COUNTER,
               VALUE_MICRO),
    OF_THREADS("waited_us", "lock_wait_seconds_total", METRIC_COUNTER, VALUE_MICRO),
    OF_THREADS("parked", "lock_parks_total", METRIC_COUNTER, VALUE_AS_IS),
    OF_THREADS("cpu_us", "cpu_seconds_total", METRIC_COUNTER, VALUE_MICRO),
    OUR_COUNTER("threads", "lock_shared_commands", "lock_shared_commands_total"),
    OUR_COUNTER("threads", "lock_exclusive_commands", "lock_exclusive_commands_total"),
    OUR_COUNTER("threads", "clients_moved", "clients_moved_total"),

    OUR_GAUGE("keydb", "mvcc_depth", "mvcc_depth"),
    {.section = NULL},
};
