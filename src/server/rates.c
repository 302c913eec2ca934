/* A ring of snapshots; a rate is the difference of the newest and the oldest over the time between.
 */
#include "server/rates.h"
#include "base/clock.h"
#include "base/stats.h"
#include "keyspace/lock.h"

#include <stdatomic.h>
#include <sys/resource.h>

/* As many looks as Redis averages over. */
#define RATES_LOOKS 16
#define RATES_PERIOD_MS 100

struct rates_look {
    uint64_t at_us;
    uint64_t value[RATE_COUNT];
};

/* Cron's thread only. */
static struct rates_look looks[RATES_LOOKS];
static unsigned look_count;

/* Events per second times 1024, so that a plain integer is published. */
static _Atomic uint64_t rates_scaled[RATE_COUNT];

static _Atomic uint64_t main_user_us, main_sys_us;

static uint64_t rates_us(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

uint64_t rates_awake_us(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return rates_us(usage.ru_utime) + rates_us(usage.ru_stime);
}

/* The cron runs on the main thread. */
static void look_at_main_thread(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_THREAD, &usage);
    atomic_store_explicit(&main_user_us, rates_us(usage.ru_utime), memory_order_relaxed);
    atomic_store_explicit(&main_sys_us, rates_us(usage.ru_stime), memory_order_relaxed);
}

uint64_t rates_main_thread_user_us(void)
{
    return atomic_load_explicit(&main_user_us, memory_order_relaxed);
}

uint64_t rates_main_thread_sys_us(void)
{
    return atomic_load_explicit(&main_sys_us, memory_order_relaxed);
}

uint64_t rates_lock_wait_ns(void)
{
    uint64_t ticks = 0;
    for (unsigned i = 0, used = thread_slots_used(); i < used; i++) {
        ticks += atomic_load_explicit(&keyspace_lock.stats[i].wait_ticks, memory_order_relaxed);
    }
    return clock_ticks_to_ns(ticks);
}

static void rates_look(int64_t wall_ms)
{
    (void)wall_ms;
    static const enum counter counters[] = {
        [RATE_COMMANDS] = STAT_COMMANDS,
        [RATE_INPUT_BYTES] = STAT_NET_INPUT_BYTES,
        [RATE_OUTPUT_BYTES] = STAT_NET_OUTPUT_BYTES,
        [RATE_REPL_INPUT_BYTES] = STAT_REPL_INPUT_BYTES,
        [RATE_REPL_OUTPUT_BYTES] = STAT_REPL_OUTPUT_BYTES,
        [RATE_TURNS] = STAT_TURNS,
    };
    struct rates_look now = {.at_us = clock_mono_us()};
    struct stats_totals totals;
    stats_sum_all(&totals);
    look_at_main_thread();
    for (int i = 0; i < RATE_AWAKE_US; i++) {
        now.value[i] = totals.value[counters[i]];
    }
    now.value[RATE_AWAKE_US] = rates_awake_us();
    now.value[RATE_LOCK_WAIT_NS] = rates_lock_wait_ns();

    if (look_count == 0) { /* what came before the first look was nothing at the start */
        looks[look_count++] = (struct rates_look){.at_us = now.at_us - RATES_PERIOD_MS * 1000};
    }
    unsigned kept = look_count < RATES_LOOKS ? look_count : RATES_LOOKS;
    if (kept) {
        const struct rates_look *oldest = &looks[(look_count - kept) % RATES_LOOKS];
        uint64_t elapsed_us = now.at_us - oldest->at_us;
        for (int i = 0; i < RATE_COUNT && elapsed_us; i++) {
            /* Counters go back to zero at CONFIG RESETSTAT. */
            bool grown = now.value[i] > oldest->value[i];
            double events = grown ? (double)(now.value[i] - oldest->value[i]) : 0;
            double scaled = events * 1e6 * 1024 / (double)elapsed_us;
            atomic_store_explicit(&rates_scaled[i], (uint64_t)scaled, memory_order_relaxed);
        }
    }
    looks[look_count++ % RATES_LOOKS] = now;
}

double rates_get(enum rate which)
{
    return (double)atomic_load_explicit(&rates_scaled[which], memory_order_relaxed) / 1024;
}

const struct cron_job rates_job = {
    .name = "rates", .period_ms = RATES_PERIOD_MS, .run = rates_look};
