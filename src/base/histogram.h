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
/* Steps as LATENCY HISTOGRAM shows them: powers of two of nanoseconds, from 1,024 (labelled 1
 * microsecond) on. */
#define HISTOGRAM_STEP_FIRST_POWER 10
/* The label of the step that ends at 2^power nanoseconds, in microseconds. Clients know the labels
 * of Redis, whose histogram is exact to seven bits, so that a step ends 2^(power-7) later than its
 * power. */
int64_t histogram_step_label_us(unsigned power);
/* The samples of the buckets from `*bucket` on that end within 2^power nanoseconds; moves *bucket
 * behind them. */
uint64_t histogram_step_count(const struct histogram *h, unsigned power, unsigned *bucket);
/* Index of the bucket that holds `value_ns`, and the bucket's inclusive upper edge. */
unsigned histogram_bucket_of(uint64_t value_ns);
uint64_t histogram_bucket_edge_ns(unsigned bucket);

#endif
