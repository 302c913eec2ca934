/*
 * A latency histogram: log-linear buckets, three significant digits.
 *
 * Values are nanoseconds. Below 2048 each value has its own bucket; above, each power of two is
 * cut into 1024 equal buckets, so a bucket is never wider than 1/1024 of the values in it. Values
 * over BENCH_HIST_MAX_NS are counted as BENCH_HIST_MAX_NS.
 *
 * State: thread-owned. A worker fills its own histogram; they are merged after the threads ended.
 */
#ifndef TOOLS_BENCHMARK_HIST_H
#define TOOLS_BENCHMARK_HIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 2^40 ns, 18 minutes: no reply that late tells more than "never". */
#define BENCH_HIST_MAX_NS ((UINT64_C(1) << 40) - 1)

struct bench_hist;

/* One row of a distribution: `count` of the values are at most `upper_ns`. */
struct bench_hist_row {
    double percentile;
    uint64_t upper_ns;
    uint64_t count;
};

/* A walk over a histogram in ascending order; plain value, start it with bench_hist_walk_start. */
struct bench_hist_walk {
    const struct bench_hist *hist;
    size_t bucket;
    uint64_t cumulative;
    double next_percentile;
    bool done;
};

/* Returns an empty histogram owned by the caller, or NULL when there is no memory. */
struct bench_hist *bench_hist_create(void);

/* Frees *hist and sets it to NULL; *hist may be NULL. */
void bench_hist_destroy(struct bench_hist **hist);

/* Counts `times` values of `value_ns`. */
void bench_hist_record(struct bench_hist *hist, uint64_t value_ns, uint64_t times);

/* Adds all that `from` has counted to `into`. */
void bench_hist_merge(struct bench_hist *into, const struct bench_hist *from);

/* How many values were counted. */
uint64_t bench_hist_count(const struct bench_hist *hist);

/* The exact smallest value; 0 when nothing was counted. */
uint64_t bench_hist_min(const struct bench_hist *hist);

/* The exact largest value; 0 when nothing was counted. */
uint64_t bench_hist_max(const struct bench_hist *hist);

/* The exact sum of the counted values, in nanoseconds. */
uint64_t bench_hist_sum(const struct bench_hist *hist);

/*
 * The smallest bucket bound that at least `percentile` percent (0 to 100) of the values do not
 * exceed, never above the exact maximum; 0 when nothing was counted.
 */
uint64_t bench_hist_percentile(const struct bench_hist *hist, double percentile);

/* Starts a walk at the smallest value. `hist` must outlive the walk and not change during it. */
void bench_hist_walk_start(struct bench_hist_walk *walk, const struct bench_hist *hist);

/*
 * The next row of the distribution by percentile: 0, 50, 75, 87.5 and so on, each time half of
 * what is left, and 100 at the end. Percentiles that the row before has passed are left out.
 * Returns false after the last row.
 */
bool bench_hist_walk_percentile(struct bench_hist_walk *walk, struct bench_hist_row *row);

/*
 * The next row of the cumulative distribution: bounds are multiples of 100 us up to 2 ms, then of
 * 1 ms. Bounds below which nothing was added are left out. Returns false after the last row.
 */
bool bench_hist_walk_linear(struct bench_hist_walk *walk, struct bench_hist_row *row);

#endif
