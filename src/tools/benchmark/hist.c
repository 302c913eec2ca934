/* The latency histogram of hist.h. */
#include "tools/benchmark/hist.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Values below 2^EXACT_BITS have a bucket each; 2^HALF_BITS buckets for each power above. */
#define EXACT_BITS 11
#define HALF_BITS (EXACT_BITS - 1)
#define EXACT_COUNT (1u << EXACT_BITS)
#define HALF_COUNT (1u << HALF_BITS)
#define MAX_BITS 40
#define BUCKET_COUNT (EXACT_COUNT + (MAX_BITS - EXACT_BITS) * HALF_COUNT)

static_assert(((UINT64_C(1) << MAX_BITS) - 1) == BENCH_HIST_MAX_NS, "limits agree");

#define STEP_FINE_NS UINT64_C(100000)
#define STEP_COARSE_NS UINT64_C(1000000)
#define STEP_FINE_END_NS UINT64_C(2000000)

struct bench_hist {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t buckets[BUCKET_COUNT];
};

static size_t bucket_of(uint64_t value_ns)
{
    if (value_ns < EXACT_COUNT) {
        return value_ns;
    }
    unsigned shift = 63u - (unsigned)__builtin_clzll(value_ns) - HALF_BITS;
    size_t index =
        EXACT_COUNT + (size_t)(shift - 1) * HALF_COUNT + (value_ns >> shift) - HALF_COUNT;
    assert(index < BUCKET_COUNT);
    return index;
}

static uint64_t bucket_upper(size_t index)
{
    assert(index < BUCKET_COUNT);
    if (index < EXACT_COUNT) {
        return index;
    }
    unsigned shift = (unsigned)((index - EXACT_COUNT) / HALF_COUNT) + 1;
    uint64_t mantissa = (index - EXACT_COUNT) % HALF_COUNT + HALF_COUNT;
    return ((mantissa + 1) << shift) - 1;
}

/* Bucket bounds above the exact maximum would report a latency that nobody saw. */
static uint64_t bucket_upper_seen(const struct bench_hist *hist, size_t index)
{
    uint64_t upper_ns = bucket_upper(index);
    return upper_ns < hist->max_ns ? upper_ns : hist->max_ns;
}

struct bench_hist *bench_hist_create(void)
{
    return calloc(1, sizeof(struct bench_hist));
}

void bench_hist_destroy(struct bench_hist **hist)
{
    assert(hist != NULL);
    free(*hist);
    *hist = NULL;
}

void bench_hist_record(struct bench_hist *hist, uint64_t value_ns, uint64_t times)
{
    assert(hist != NULL);
    if (times == 0) {
        return;
    }
    if (value_ns > BENCH_HIST_MAX_NS) {
        value_ns = BENCH_HIST_MAX_NS;
    }
    if (hist->count == 0 || value_ns < hist->min_ns) {
        hist->min_ns = value_ns;
    }
    if (value_ns > hist->max_ns) {
        hist->max_ns = value_ns;
    }
    hist->count += times;
    hist->sum_ns += value_ns * times;
    hist->buckets[bucket_of(value_ns)] += times;
}

void bench_hist_merge(struct bench_hist *into, const struct bench_hist *from)
{
    assert(into != NULL && from != NULL && into != from);
    if (from->count == 0) {
        return;
    }
    if (into->count == 0 || from->min_ns < into->min_ns) {
        into->min_ns = from->min_ns;
    }
    if (from->max_ns > into->max_ns) {
        into->max_ns = from->max_ns;
    }
    into->count += from->count;
    into->sum_ns += from->sum_ns;
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        into->buckets[i] += from->buckets[i];
    }
}

uint64_t bench_hist_count(const struct bench_hist *hist)
{
    return hist->count;
}

uint64_t bench_hist_min(const struct bench_hist *hist)
{
    return hist->min_ns;
}

uint64_t bench_hist_max(const struct bench_hist *hist)
{
    return hist->max_ns;
}

uint64_t bench_hist_sum(const struct bench_hist *hist)
{
    return hist->sum_ns;
}

uint64_t bench_hist_percentile(const struct bench_hist *hist, double percentile)
{
    assert(percentile >= 0 && percentile <= 100);
    if (hist->count == 0) {
        return 0;
    }
    /* The factor takes back what binary fractions of a percent add: 11.3 % of 20000 is 2260. */
    uint64_t rank = (uint64_t)ceil(percentile / 100.0 * (double)hist->count * (1 - 1e-12));
    if (rank == 0) {
        rank = 1;
    }
    uint64_t seen = 0;
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        seen += hist->buckets[i];
        if (seen >= rank) {
            return bucket_upper_seen(hist, i);
        }
    }
    return hist->max_ns;
}

void bench_hist_walk_start(struct bench_hist_walk *walk, const struct bench_hist *hist)
{
    assert(walk != NULL && hist != NULL);
    *walk = (struct bench_hist_walk){.hist = hist, .done = hist->count == 0};
}

static double share_percent(const struct bench_hist_walk *walk)
{
    return 100.0 * (double)walk->cumulative / (double)walk->hist->count;
}

/* From 0 to 50, 75, 87.5: each step covers half of what is left. */
static double percentile_after(double percentile)
{
    return percentile + (100.0 - percentile) / 2;
}

bool bench_hist_walk_percentile(struct bench_hist_walk *walk, struct bench_hist_row *row)
{
    const struct bench_hist *hist = walk->hist;
    if (walk->done) {
        return false;
    }
    if (walk->cumulative == hist->count) {
        *row = (struct bench_hist_row){100.0, hist->max_ns, hist->count};
        walk->done = true;
        return true;
    }
    while (walk->cumulative < hist->count) {
        size_t i = walk->bucket++;
        walk->cumulative += hist->buckets[i];
        if (hist->buckets[i] == 0 || share_percent(walk) < walk->next_percentile) {
            continue;
        }
        *row = (struct bench_hist_row){walk->next_percentile, bucket_upper_seen(hist, i),
                                       walk->cumulative};
        double passed =
            walk->cumulative == hist->count ? walk->next_percentile : share_percent(walk);
        do {
            walk->next_percentile = percentile_after(walk->next_percentile);
        } while (walk->next_percentile <= passed);
        return true;
    }
    assert(false && "the last bucket always reaches its percentile");
    return false;
}

/* The printed bound at or above `value_ns`. */
static uint64_t linear_bound(uint64_t value_ns)
{
    uint64_t step_ns = value_ns <= STEP_FINE_END_NS ? STEP_FINE_NS : STEP_COARSE_NS;
    return (value_ns + step_ns - 1) / step_ns * step_ns;
}

bool bench_hist_walk_linear(struct bench_hist_walk *walk, struct bench_hist_row *row)
{
    const struct bench_hist *hist = walk->hist;
    if (walk->done || walk->cumulative == hist->count) {
        walk->done = true;
        return false;
    }
    while (hist->buckets[walk->bucket] == 0) {
        walk->bucket++;
    }
    uint64_t bound_ns = linear_bound(bucket_upper_seen(hist, walk->bucket));
    while (walk->cumulative < hist->count && bucket_upper_seen(hist, walk->bucket) <= bound_ns) {
        walk->cumulative += hist->buckets[walk->bucket++];
    }
    *row = (struct bench_hist_row){share_percent(walk), bound_ns, walk->cumulative};
    return true;
}
