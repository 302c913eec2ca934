/* Adds up the allocator's counts and the tables' sizes. */
#include "commands/memory_figures.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/meminfo.h"
#include "keyspace/db.h"

/* Noted while INFO may be asked already. */
static _Atomic size_t figures_startup_bytes;
static void (*figures_source)(struct memory_figures *f);

void memory_figures_note_startup(void)
{
    figures_startup_bytes = mem_used_bytes();
}

void memory_figures_set_source(void (*tell)(struct memory_figures *f))
{
    figures_source = tell;
}

/* What is costly to find out: tens of microseconds, so it is asked for ten times a second. */
struct sample {
    uint64_t at_us; /* clock_mono_us(); 0: none yet */
    struct mem_stats allocator;
    size_t rss;
    uint64_t total, available;
    bool of_machine;
};

static struct {
    struct lock lock;
    struct sample sample;
} recent = {.lock = LOCK_INIT(LOCK_RANK_STATS, "memory sample")};

static struct sample take_sample(uint64_t now_us)
{
    struct sample s = {.at_us = now_us, .allocator = mem_stats(), .rss = mem_rss_bytes()};
    s.of_machine = meminfo_read(&s.total, &s.available);
    lock_acquire(&recent.lock);
    recent.sample = s;
    lock_release(&recent.lock);
    return s;
}

static struct sample recent_sample(void)
{
    uint64_t now_us = clock_mono_us();
    lock_acquire(&recent.lock);
    struct sample s = recent.sample;
    lock_release(&recent.lock);
    bool old = !s.at_us || now_us - s.at_us >= (uint64_t)MEMORY_SAMPLE_MS * 1000;
    return old ? take_sample(now_us) : s;
}

bool memory_figures_of_machine(uint64_t *total, uint64_t *available)
{
    struct sample s = recent_sample();
    *total = s.total;
    *available = s.available;
    return s.of_machine;
}

/* The sample comes first: taking it corrects what mem_used_bytes() tells. */
static void collect(struct memory_figures *f, const struct sample *s)
{
    *f = (struct memory_figures){.startup = figures_startup_bytes};
    bool taken = keyspace_visit();
    for (int i = 0; i < db_count(); i++) {
        struct db *db = db_at(i);
        f->tables += table_memory_bytes(&db->table);
        f->keys += db_size(db);
    }
    keyspace_leave(taken);
    f->allocator = s->allocator;
    if (figures_source) {
        figures_source(f);
    }
    f->used = mem_used_bytes();
    f->peak = mem_peak_bytes();
    if (f->peak < f->used) {
        f->peak = f->used;
    }
    f->rss = s->rss;
    f->overhead = f->startup + f->clients + f->backlog + f->replicas + f->aof + f->scripts +
                  f->functions + f->tables;
    f->dataset = f->used > f->overhead ? f->used - f->overhead : 0;
}

void memory_figures_collect(struct memory_figures *f)
{
    struct sample s = take_sample(clock_mono_us());
    collect(f, &s);
}

void memory_figures_collect_lately(struct memory_figures *f)
{
    struct sample s = recent_sample();
    collect(f, &s);
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
