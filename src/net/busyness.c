/* See busyness.h. */
#include "net/busyness.h"

#include "base/clock.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* The busy thread uses at least this much of a core, and this much of one is to spare. */
#define BUSY_PERCENT 40
#define SPARE_PERCENT 50

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t = {0};
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The first line of /proc/stat (proc(5)): cpu user nice system idle iowait ... in clock ticks. */
static uint64_t machine_idle_ns(void)
{
    unsigned long long idle = 0, waiting = 0;
    FILE *file = fopen("/proc/stat", "re");
    if (!file) {
        return 0;
    }
    if (fscanf(file, "cpu %*u %*u %*u %llu %llu", &idle, &waiting) != 2) {
        idle = waiting = 0;
    }
    fclose(file);
    return (idle + waiting) * (1000000000ull / (unsigned long long)sysconf(_SC_CLK_TCK));
}

struct busyness busyness_look(pthread_t thread)
{
    struct busyness b = {.mono_ns = clock_mono_ns(),
                         .process_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
                         .idle_ns = machine_idle_ns()};
    clockid_t id;
    if (pthread_getcpuclockid(thread, &id) == 0) {
        b.thread_ns = clock_ns(id);
    }
    return b;
}

bool busyness_would_help(const struct busyness *from, const struct busyness *to, unsigned cores)
{
    uint64_t elapsed = to->mono_ns - from->mono_ns;
    uint64_t spare = elapsed * SPARE_PERCENT / 100;
    bool idle_known = from->idle_ns > 0 && to->idle_ns > 0;
    return to->thread_ns - from->thread_ns >= elapsed * BUSY_PERCENT / 100 &&
           to->process_ns - from->process_ns + spare <= cores * elapsed &&
           (!idle_known || to->idle_ns - from->idle_ns >= spare);
}
