/* See spike.h. */
#include "base/spike.h"

#include "base/clock.h"
#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>

static struct {
    _Atomic uint64_t threshold_ms; /* 0: nobody watches */
    void (*listener)(const char *event, uint64_t duration_ms);
} spike;

void spike_set_listener(void (*listener)(const char *event, uint64_t duration_ms))
{
    spike.listener = listener;
}

void spike_watch(uint64_t threshold_ms)
{
    atomic_store_explicit(&spike.threshold_ms, threshold_ms, memory_order_relaxed);
}

uint64_t spike_begin(void)
{
    bool watched = atomic_load_explicit(&spike.threshold_ms, memory_order_relaxed) > 0;
    return unlikely(watched) ? clock_ticks() : 0;
}

void spike_end(const char *event, uint64_t begin)
{
    if (likely(begin == 0)) {
        return;
    }
    uint64_t duration_ms = clock_ticks_to_ns(clock_ticks() - begin) / 1000000;
    uint64_t threshold_ms = atomic_load_explicit(&spike.threshold_ms, memory_order_relaxed);
    if (threshold_ms > 0 && duration_ms >= threshold_ms && spike.listener) {
        spike.listener(event, duration_ms);
    }
}
