/* Periodic jobs: a list made at boot, and when each ran last. */
#include "engine/cron.h"

#include "base/mem.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

struct cron_entry {
    const struct cron_job *job;
    int64_t last_run_ms; /* wall clock */
    bool has_run;
};

/* Immutable after boot but for the times, which the thread that runs the cron owns. */
static struct {
    struct cron_entry *entries;
    unsigned count;
    _Atomic bool paused, eager;
} cron;

void cron_register(const struct cron_job *job)
{
    assert(job->run != NULL && job->name != NULL && job->period_ms > 0);
    cron.entries = mem_realloc(cron.entries, (cron.count + 1) * sizeof(*cron.entries));
    cron.entries[cron.count++] = (struct cron_entry){.job = job};
}

void cron_run(int64_t wall_ms)
{
    for (unsigned i = 0; i < cron.count; i++) {
        struct cron_entry *e = &cron.entries[i];
        int64_t waited_ms = wall_ms - e->last_run_ms;
        /* A clock that was set back must not stop a job for as long. */
        if (e->has_run && waited_ms >= 0 && waited_ms < e->job->period_ms) {
            continue;
        }
        e->has_run = true;
        e->last_run_ms = wall_ms;
        e->job->run(wall_ms);
    }
}

void cron_set_paused(bool paused)
{
    atomic_store(&cron.paused, paused);
}

bool cron_is_paused(void)
{
    return atomic_load(&cron.paused);
}

void cron_set_eager(bool eager)
{
    atomic_store(&cron.eager, eager);
}

bool cron_is_eager(void)
{
    return atomic_load(&cron.eager);
}

void cron_teardown(void)
{
    mem_free(cron.entries);
    cron.entries = NULL;
    cron.count = 0;
}
