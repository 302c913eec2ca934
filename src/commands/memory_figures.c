/* Adds up the allocator's counts and the tables' sizes. */
#include "commands/memory_figures.h"
#include "keyspace/db.h"

static size_t figures_startup_bytes;
static void (*figures_source)(struct memory_figures *f);

void memory_figures_note_startup(void)
{
    figures_startup_bytes = mem_used_bytes();
}

void memory_figures_set_source(void (*tell)(struct memory_figures *f))
{
    figures_source = tell;
}

void memory_figures_collect(struct memory_figures *f)
{
    *f = (struct memory_figures){.startup = figures_startup_bytes};
    bool taken = keyspace_visit();
    for (int i = 0; i < db_count(); i++) {
        struct db *db = db_at(i);
        f->tables += table_memory_bytes(&db->table);
        f->keys += db_size(db);
    }
    keyspace_leave(taken);
    f->allocator = mem_stats(); /* first: it corrects what follows */
    if (figures_source) {
        figures_source(f);
    }
    f->used = mem_used_bytes();
    f->peak = mem_peak_bytes();
    if (f->peak < f->used) {
        f->peak = f->used;
    }
    f->rss = mem_rss_bytes();
    f->overhead = f->startup + f->clients + f->backlog + f->replicas + f->aof + f->scripts +
                  f->functions + f->tables;
    f->dataset = f->used > f->overhead ? f->used - f->overhead : 0;
}

double memory_ratio(size_t part, size_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

int64_t memory_excess(size_t a, size_t b)
{
    return (int64_t)a - (int64_t)b;
}

double memory_dataset_percent(const struct memory_figures *f)
{
    size_t net = f->used > f->startup ? f->used - f->startup : 1;
    return 100 * memory_ratio(f->dataset, net);
}

double memory_peak_percent(const struct memory_figures *f)
{
    return 100 * memory_ratio(f->used, f->peak);
}
