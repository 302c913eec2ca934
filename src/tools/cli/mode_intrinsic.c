/* --intrinsic-latency: see modes.h.
 *
 * A short piece of work is done over and over. What it takes longer at times is what the kernel and
 * whoever else runs here take away; no server on this machine can have a better latency. */
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"
#include "tools/cli/modes.h"

/* Steps of one piece of work: some hundred nanoseconds, so that the clock's own cost is small. */
#define INTRINSIC_STEPS 256

/* Several pieces between two looks at whether it is to end. */
#define INTRINSIC_RUNS 64

/* Each step needs the one before. */
static uint64_t work(uint64_t seed)
{
    for (int i = 0; i < INTRINSIC_STEPS; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    }
    return seed;
}

static void print_result(long long runs, long long elapsed_ns, long long max_us)
{
    double average_us = (double)elapsed_ns / 1000 / (double)runs;
    printf("\n%lld total runs (avg latency: %.4f microseconds / %.2f nanoseconds per run).\n", runs,
           average_us, average_us * 1000);
    printf("Worst run took %.0fx longer than the average latency.\n", (double)max_us / average_us);
}

int mode_intrinsic_latency(struct session *s)
{
    session_catch_interrupts(s);
    volatile uint64_t sink = 1; /* the work's result is wanted, says this */
    long long start_ns = (long long)clock_mono_ns();
    long long end_ns = start_ns + s->o->intrinsic_s * 1000000000;
    long long before_ns = start_ns;
    long long runs = 0;
    long long max_us = 0;
    do {
        for (int i = 0; i < INTRINSIC_RUNS; i++) {
            sink = work(sink);
            long long after_ns = (long long)clock_mono_ns();
            long long us = (after_ns - before_ns) / 1000;
            if (us > max_us) {
                max_us = us;
                printf("Max latency so far: %lld microseconds.\n", max_us);
                fflush(stdout);
                after_ns = (long long)clock_mono_ns(); /* printing is not what is measured */
            }
            before_ns = after_ns;
            runs++;
        }
    } while (before_ns < end_ns && session_interrupted == 0);
    print_result(runs, before_ns - start_ns, max_us);
    return 0;
}
