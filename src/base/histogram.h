/* A log-linear histogram of durations for latency percentiles: 16 linear steps an octave (error
 * under 6.25 %), 1 ns to 9 h; what is longer counts in the last bucket. State: thread-owned while
 * written; readers on other threads sum copies with relaxed loads (histogram_add_relaxed), so
 * counters are 64-bit atomics written by one thread only. */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* Octaves and steps in each. The first 16 ns take the place of one octave, so that the last ends at
 * 2^45 ns. */
#define HISTOGRAM_OCTAVES 42
#define HISTOGRAM_STEPS 16
#define HISTOGRAM_BUCKETS (HISTOGRAM_OCTAVES * HISTOGRAM_STEPS)

#define HISTOGRAM_WORDS ((HISTOGRAM_BUCKETS + 63) / 64)

/* All zeros are an empty one. Most buckets are empty: a bit says which are not. It is set after the
 * first count of its bucket (release, with the acquire of a reader). */
struct histogram {
    _Atomic uint64_t used[HISTOGRAM_WORDS];
    _Atomic uint64_t count[HISTOGRAM_BUCKETS];
};

/* Records `times` samples of `value_ns`. Owner thread only. */
void histogram_record(struct histogram *h, uint64_t value_ns, uint64_t times);
/* Adds the counts of `from` to `into`. Any thread may call it while the owner records. */
void histogram_add_relaxed(struct histogram *into, const struct histogram *from);
/* Sets all counts to 0. Owner thread, or while it stands still. */
void histogram_clear(struct histogram *h);
/* Number of samples; whether there is none, which is cheaper to know (the owner may record one
 * meanwhile). */
uint64_t histogram_total(const struct histogram *h);
bool histogram_is_empty(const struct histogram *h);
/* The values at `count` percentiles (0..100, in any order) in nanoseconds (upper edge of the
 * bucket); 0 when empty. The second one is for one of them. */
void histogram_percentiles_ns(const struct histogram *h, const double *percentiles, int count,
                              uint64_t *values_ns);
uint64_t histogram_percentile_ns(const struct histogram *h, double percentile);
/* Index of the bucket that holds `value_ns`, and the bucket's inclusive upper edge. */
unsigned histogram_bucket_of(uint64_t value_ns);
uint64_t histogram_bucket_edge_ns(unsigned bucket);

#endif
