/* See stats.h. */
#include "base/stats.h"

struct stats_line stats_lines[THREAD_MAX];

uint64_t stats_of_thread(unsigned slot, enum counter which)
{
    return atomic_load_explicit(&stats_lines[slot].value[which], memory_order_relaxed);
}

uint64_t stats_sum(enum counter which)
{
    uint64_t sum = 0;
    for (unsigned i = 0, used = thread_slots_used(); i < used; i++) {
        sum += stats_of_thread(i, which);
    }
    return sum;
}

void stats_sum_all(struct stats_totals *totals)
{
    *totals = (struct stats_totals){{0}};
    for (unsigned i = 0, used = thread_slots_used(); i < used; i++) {
        for (int s = 0; s < STAT_COUNT; s++) {
            totals->value[s] += stats_of_thread(i, (enum counter)s);
        }
    }
}

void stats_reset(void)
{
    for (unsigned i = 0; i < THREAD_MAX; i++) {
        for (int s = 0; s < STAT_COUNT; s++) {
            if (s != STAT_DIRTY) {
                atomic_store_explicit(&stats_lines[i].value[s], 0, memory_order_relaxed);
            }
        }
    }
}
