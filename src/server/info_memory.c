/* INFO's memory section. */
#include "server/sections_priv.h"
#include "base/field.h"
#include "base/stats.h"
#include "commands/memory_figures.h"
#include "keyspace/evict.h"
#include "keyspace/reclaim.h"
#include "script/script.h"

/* "field_ratio" and "field_bytes". */
static void info_append_ratio(struct buf *out, const char *field, size_t part, size_t whole)
{
    field_part_text(out, field, "_ratio:");
    field_part_fixed(out, "", memory_ratio(part, whole), 2);
    field_part_text(out, "\r\n", field);
    field_i64(out, "_bytes", memory_excess(part, whole));
}

static void info_append_percent(struct buf *out, const char *field, double percent)
{
    field_part_text(out, field, ":");
    field_part_fixed(out, "", percent, 2);
    buf_append_cstr(out, "%\r\n");
}

static void info_write_usage(struct buf *out, const struct memory_figures *f)
{
    info_append_bytes(out, "used_memory", f->used);
    info_append_bytes(out, "used_memory_rss", f->rss);
    info_append_bytes(out, "used_memory_peak", f->peak);
    info_append_percent(out, "used_memory_peak_perc", memory_peak_percent(f));
    field_u64(out, "used_memory_overhead", f->overhead);
    field_u64(out, "used_memory_startup", f->startup);
    field_u64(out, "used_memory_dataset", f->dataset);
    info_append_percent(out, "used_memory_dataset_perc", memory_dataset_percent(f));
    field_u64(out, "allocator_allocated", f->allocator.allocated_bytes);
    field_u64(out, "allocator_active", f->allocator.active_bytes);
    field_u64(out, "allocator_resident", f->allocator.resident_bytes);
}

static void info_write_scripts(struct buf *out)
{
    struct script_figures f = script_figures();
    info_append_bytes(out, "used_memory_lua", f.vm_eval_bytes);
    field_u64(out, "used_memory_vm_eval", f.vm_eval_bytes);
    field_u64(out, "used_memory_scripts_eval", f.scripts_bytes);
    field_u64(out, "number_of_cached_scripts", f.scripts);
    field_u64(out, "number_of_functions", f.functions);
    field_u64(out, "number_of_libraries", f.libraries);
    field_u64(out, "used_memory_vm_functions", f.vm_functions_bytes);
    info_append_bytes(out, "used_memory_vm_total", f.vm_eval_bytes + f.vm_functions_bytes);
    field_u64(out, "used_memory_functions", f.functions_bytes);
    info_append_bytes(out, "used_memory_scripts", f.scripts_bytes + f.functions_bytes);
}

static void info_write_buffers(struct buf *out, const struct memory_figures *f)
{
    field_u64(out, "mem_not_counted_for_evict", f->replicas + f->aof);
    field_u64(out, "mem_replication_backlog", f->backlog);
    field_u64(out, "mem_total_replication_buffers", f->backlog + f->replicas);
    field_u64(out, "mem_clients_slaves", f->replicas);
    field_u64(out, "mem_clients_normal", f->clients);
    field_u64(out, "mem_cluster_links", 0);
    field_u64(out, "mem_aof_buffer", f->aof);
    field_text(out, "mem_allocator", mem_allocator_name());
    field_u64(out, "active_defrag_running", 0);
    field_u64(out, "lazyfree_pending_objects", reclaim_pending());
    field_u64(out, "lazyfreed_objects", stats_sum(STAT_LAZYFREED));
    field_text(out, "storage_provider", "none");
}

static void info_write_memory(struct buf *out)
{
    struct memory_figures f;
    uint64_t total, available;
    memory_figures_collect_lately(&f);
    bool told = memory_figures_of_machine(&total, &available);
    info_write_usage(out, &f);
    info_append_bytes(out, "total_system_memory", told ? total : 0);
    info_write_scripts(out);
    info_append_bytes(out, "maxmemory", (uint64_t)evict_limit_bytes);
    info_append_option(out, "maxmemory_policy", "maxmemory-policy", "noeviction");
    info_append_ratio(out, "allocator_frag", f.allocator.active_bytes, f.allocator.allocated_bytes);
    info_append_ratio(out, "allocator_rss", f.allocator.resident_bytes, f.allocator.active_bytes);
    info_append_ratio(out, "rss_overhead", f.rss, f.allocator.resident_bytes);
    info_append_ratio(out, "mem_fragmentation", f.rss, f.used);
    info_write_buffers(out, &f);
    if (told) {
        field_u64(out, "available_system_memory", available);
    } else {
        field_text(out, "available_system_memory", "unavailable");
    }
}

const struct info_section memory_sections[] = {
    {.name = "memory", .title = "Memory", .in_default = true, .write = info_write_memory},
    {.name = NULL},
};
