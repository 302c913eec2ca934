/* Periodic work as data: a folder exports jobs, the server's cron on the main thread runs those
 * that are due. A job runs with the GIL held in shared mode, without the keyspace lock. State:
 * immutable after boot. */
#ifndef ENGINE_CRON_H
#define ENGINE_CRON_H

#include <stdbool.h>
#include <stdint.h>

struct cron_job {
    const char *name;
    uint32_t period_ms; /* at least 1000/hz apart */
    void (*run)(int64_t wall_ms);
};

/* Boot. */
void cron_register(const struct cron_job *job);
/* Runs what is due; called `hz` times a second. */
void cron_run(int64_t wall_ms);
/* DEBUG PAUSE-CRON: while paused nothing periodic runs, the sweep of expired keys included. World;
 * any thread may ask. */
void cron_set_paused(bool paused);
bool cron_is_paused(void);
/* DEBUG EAGER-BALANCE: while eager, jobs that weigh whether work pays do it wherever there is any.
 * World; any thread may ask. */
void cron_set_eager(bool eager);
bool cron_is_eager(void);
/* Forgets all jobs. Shutdown. */
void cron_teardown(void);

#endif
