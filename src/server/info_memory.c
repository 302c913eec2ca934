/* INFO's memory section. */
#include "script/script.h"
#include "server/sections_priv.h"
#include "base/meminfo.h"
#include "base/stats.h"
#include "commands/memory_figures.h"
#include "keyspace/evict.h"
#include "keyspace/reclaim.h"

#include <stdio.h>

static void info_append_ratio(struct buf *out, const char *field, size_t part, size_t whole)
{
    buf_printf(out, "%s_ratio:%.2f\r\n%s_bytes:%lld\r\n", field, memory_ratio(part, whole), field,
               (long long)memory_excess(part, whole));
}

static void info_write_usage(struct buf *out, const struct memory_figures *f)
{
    info_append_bytes(out, "used_memory", f->used);
    info_append_bytes(out, "used_memory_rss", f->rss);
    info_append_bytes(out, "used_memory_peak", f->peak);
    buf_printf(out,
               "used_memory_peak_perc:%.2f%%\r\nused_memory_overhead:%zu\r\n"
               "used_memory_startup:%zu\r\nused_memory_dataset:%zu\r\n"
               "used_memory_dataset_perc:%.2f%%\r\n",
               memory_peak_percent(f), f->overhead, f->startup, f->dataset,
               memory_dataset_percent(f));
    buf_printf(out, "allocator_allocated:%zu\r\nallocator_active:%zu\r\nallocator_resident:%zu\r\n",
               f->allocator.allocated_bytes, f->allocator.active_bytes,
               f->allocator.resident_bytes);
    uint64_t total, available;
    info_append_bytes(out, "total_system_memory", meminfo_read(&total, &available) ? total : 0);
}

static void info_write_scripts(struct buf *out)
{
    struct script_figures f = script_figures();
    info_append_bytes(out, "used_memory_lua", f.vm_eval_bytes);
    buf_printf(out,
               "used_memory_vm_eval:%zu\r\nused_memory_scripts_eval:%zu\r\n"
               "number_of_cached_scripts:%llu\r\nnumber_of_functions:%llu\r\n"
               "number_of_libraries:%llu\r\nused_memory_vm_functions:%zu\r\n",
               f.vm_eval_bytes, f.scripts_bytes, (unsigned long long)f.scripts,
               (unsigned long long)f.functions, (unsigned long long)f.libraries,
               f.vm_functions_bytes);
    info_append_bytes(out, "used_memory_vm_total", f.vm_eval_bytes + f.vm_functions_bytes);
    buf_printf(out, "used_memory_functions:%zu\r\n", f.functions_bytes);
    info_append_bytes(out, "used_memory_scripts", f.scripts_bytes + f.functions_bytes);
}

static void info_write_memory(struct buf *out)
{
    struct memory_figures f;
    memory_figures_collect(&f);
    info_write_usage(out, &f);
    info_write_scripts(out);
    info_append_bytes(out, "maxmemory", (uint64_t)evict_limit_bytes);
    info_append_option(out, "maxmemory_policy", "maxmemory-policy", "noeviction");
    info_append_ratio(out, "allocator_frag", f.allocator.active_bytes, f.allocator.allocated_bytes);
    info_append_ratio(out, "allocator_rss", f.allocator.resident_bytes, f.allocator.active_bytes);
    info_append_ratio(out, "rss_overhead", f.rss, f.allocator.resident_bytes);
    info_append_ratio(out, "mem_fragmentation", f.rss, f.used);
    buf_printf(out,
               "mem_not_counted_for_evict:%zu\r\nmem_replication_backlog:%zu\r\n"
               "mem_total_replication_buffers:%zu\r\nmem_clients_slaves:%zu\r\n"
               "mem_clients_normal:%zu\r\nmem_cluster_links:0\r\nmem_aof_buffer:%zu\r\n"
               "mem_allocator:%s\r\nactive_defrag_running:0\r\n"
               "lazyfree_pending_objects:%llu\r\nlazyfreed_objects:%llu\r\n",
               f.replicas + f.aof, f.backlog, f.backlog + f.replicas, f.replicas, f.clients, f.aof,
               mem_allocator_name(), (unsigned long long)reclaim_pending(),
               (unsigned long long)stats_sum(STAT_LAZYFREED));
    uint64_t total, available;
    buf_append_cstr(out, "storage_provider:none\r\navailable_system_memory:");
    if (meminfo_read(&total, &available)) {
        buf_printf(out, "%llu\r\n", (unsigned long long)available);
    } else {
        buf_append_cstr(out, "unavailable\r\n");
    }
}

const struct info_section memory_sections[] = {
    {.name = "memory", .title = "Memory", .in_default = true, .write = info_write_memory},
    {.name = NULL},
};
