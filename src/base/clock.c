/* Clock readings, and the scale between the time stamp counter and nanoseconds. */
#include "base/clock.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#define NS_PER_S 1000000000ULL
/* How long the counter is measured; an error of 100 ns in the readings is then 0.002 %. */
#define CLOCK_MEASURE_NS 5000000ULL

static _Atomic int64_t skew_us;
static bool tick_is_tsc;
/* Nanoseconds a tick in units of 2^-32. */
static uint64_t ns_per_tick_q32 = 1ULL << 32;

static uint64_t clock_read_ns(clockid_t id)
{
    struct timespec now;
    int failed = clock_gettime(id, &now);
    assert(failed == 0);
    (void)failed;
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

int64_t clock_wall_us(void)
{
    return (int64_t)(clock_read_ns(CLOCK_REALTIME) / 1000) +
           atomic_load_explicit(&skew_us, memory_order_relaxed);
}

int64_t clock_wall_ms(void)
{
    return clock_wall_us() / 1000;
}

uint64_t clock_mono_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_mono_us(void)
{
    return clock_mono_ns() / 1000;
}

uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
    if (tick_is_tsc) {
        return __rdtsc();
    }
#endif
    return clock_mono_ns();
}

uint64_t clock_ticks_to_ns(uint64_t ticks)
{
    return (uint64_t)(((__uint128_t)ticks * ns_per_tick_q32) >> 32);
}

void clock_set_skew_ms(int64_t skew_ms)
{
    atomic_store_explicit(&skew_us, skew_ms * 1000, memory_order_relaxed);
}

#if defined(__x86_64__)
/* True when the counter runs at one rate in all power states (CPUID 0x80000007, EDX bit 8). */
static bool clock_tsc_is_invariant(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 8)) != 0;
}
#endif

void clock_setup(void)
{
#if defined(__x86_64__)
    if (!clock_tsc_is_invariant()) {
        return;
    }
    uint64_t start_ns = clock_mono_ns();
    uint64_t start_ticks = __rdtsc();
    struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)CLOCK_MEASURE_NS};
    nanosleep(&pause, NULL);
    uint64_t ticks = __rdtsc() - start_ticks;
    uint64_t ns = clock_mono_ns() - start_ns;
    /* A counter that stands still or runs backwards (broken virtual machines) is not used. */
    if (ticks < 1000 || ticks > 1ULL << 40 || ns == 0) {
        return;
    }
    ns_per_tick_q32 = (uint64_t)(((__uint128_t)ns << 32) / ticks);
    tick_is_tsc = ns_per_tick_q32 != 0;
#endif
}
