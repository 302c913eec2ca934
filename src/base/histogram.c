/* Log-linear histograms. Values below 16 have a bucket each; from there every octave has 16 steps.
 */
#include "base/histogram.h"

#include "base/compiler.h"

#include <assert.h>
#include <stdatomic.h>

/* log2 of HISTOGRAM_STEPS. */
#define STEP_BITS 4
static_assert(1 << STEP_BITS == HISTOGRAM_STEPS, "steps an octave");

unsigned histogram_bucket_of(uint64_t value_ns)
{
    if (value_ns < HISTOGRAM_STEPS) {
        return (unsigned)value_ns;
    }
    unsigned octave = 63 - (unsigned)__builtin_clzll(value_ns);
    unsigned step = (unsigned)(value_ns >> (octave - STEP_BITS)) & (HISTOGRAM_STEPS - 1);
    unsigned bucket = (octave - STEP_BITS + 1) * HISTOGRAM_STEPS + step;
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

uint64_t histogram_bucket_edge_ns(unsigned bucket)
{
    assert(bucket < HISTOGRAM_BUCKETS);
    if (bucket < HISTOGRAM_STEPS) {
        return bucket;
    }
    unsigned shift = bucket / HISTOGRAM_STEPS - 1;
    uint64_t step = bucket % HISTOGRAM_STEPS;
    return ((HISTOGRAM_STEPS + step + 1) << shift) - 1;
}

/* A counter has one writer: load and store are enough, and cheaper than an atomic addition. */
static void histogram_bump(struct histogram *h, unsigned bucket, uint64_t times)
{
    uint64_t before = atomic_load_explicit(&h->count[bucket], memory_order_relaxed);
    atomic_store_explicit(&h->count[bucket], before + times, memory_order_relaxed);
    if (unlikely(before == 0)) {
        _Atomic uint64_t *word = &h->used[bucket / 64];
        uint64_t bits = atomic_load_explicit(word, memory_order_relaxed);
        atomic_store_explicit(word, bits | (uint64_t)1 << bucket % 64, memory_order_release);
    }
}

/* The first used bucket from `from` on; HISTOGRAM_BUCKETS when there is none. */
static unsigned histogram_next_used(const struct histogram *h, unsigned from)
{
    for (unsigned word = from / 64; word < HISTOGRAM_WORDS; word++) {
        uint64_t bits = atomic_load_explicit(&h->used[word], memory_order_acquire);
        if (word == from / 64) {
            bits &= UINT64_MAX << from % 64;
        }
        if (bits) {
            return word * 64 + (unsigned)__builtin_ctzll(bits);
        }
    }
    return HISTOGRAM_BUCKETS;
}

void histogram_record(struct histogram *h, uint64_t value_ns, uint64_t times)
{
    histogram_bump(h, histogram_bucket_of(value_ns), times);
}

void histogram_add_relaxed(struct histogram *into, const struct histogram *from)
{
    for (unsigned i = histogram_next_used(from, 0); i < HISTOGRAM_BUCKETS;
         i = histogram_next_used(from, i + 1)) {
        uint64_t times = atomic_load_explicit(&from->count[i], memory_order_relaxed);
        if (times != 0) {
            histogram_bump(into, i, times);
        }
    }
}

void histogram_clear(struct histogram *h)
{
    for (unsigned i = histogram_next_used(h, 0); i < HISTOGRAM_BUCKETS;
         i = histogram_next_used(h, i + 1)) {
        atomic_store_explicit(&h->count[i], 0, memory_order_relaxed);
    }
    for (unsigned word = 0; word < HISTOGRAM_WORDS; word++) {
        atomic_store_explicit(&h->used[word], 0, memory_order_relaxed);
    }
}

uint64_t histogram_total(const struct histogram *h)
{
    uint64_t total = 0;
    for (unsigned i = histogram_next_used(h, 0); i < HISTOGRAM_BUCKETS;
         i = histogram_next_used(h, i + 1)) {
        total += atomic_load_explicit(&h->count[i], memory_order_relaxed);
    }
    return total;
}

bool histogram_is_empty(const struct histogram *h)
{
    return histogram_next_used(h, 0) == HISTOGRAM_BUCKETS;
}

/* The rank (1..total) of the sample that `percentile` asks for: the smallest with at least that
 * share of all samples at or below it. */
static uint64_t histogram_rank(uint64_t total, double percentile)
{
    double share = percentile < 0 ? 0 : percentile > 100 ? 100 : percentile;
    double exact = share / 100 * (double)total;
    uint64_t rank = (uint64_t)exact;
    if ((double)rank < exact) {
        rank++;
    }
    return rank < 1 ? 1 : rank > total ? total : rank;
}

/* Used buckets, and how many samples are in them and in those before. */
struct histogram_sums {
    uint64_t upto[HISTOGRAM_BUCKETS];
    uint16_t bucket[HISTOGRAM_BUCKETS];
    unsigned count;
};

static void histogram_sum_up(const struct histogram *h, struct histogram_sums *sums)
{
    uint64_t upto = 0;
    sums->count = 0;
    for (unsigned i = histogram_next_used(h, 0); i < HISTOGRAM_BUCKETS;
         i = histogram_next_used(h, i + 1)) {
        upto += atomic_load_explicit(&h->count[i], memory_order_relaxed);
        sums->upto[sums->count] = upto;
        sums->bucket[sums->count++] = (uint16_t)i;
    }
}

void histogram_percentiles_ns(const struct histogram *h, const double *percentiles, int count,
                              uint64_t *values_ns)
{
    struct histogram_sums sums;
    histogram_sum_up(h, &sums);
    uint64_t total = sums.count > 0 ? sums.upto[sums.count - 1] : 0;
    for (int i = 0; i < count; i++) {
        if (total == 0) {
            values_ns[i] = 0;
            continue;
        }
        uint64_t rank = histogram_rank(total, percentiles[i]);
        unsigned low = 0, high = sums.count - 1;
        while (low < high) {
            unsigned middle = (low + high) / 2;
            if (sums.upto[middle] < rank) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        values_ns[i] = histogram_bucket_edge_ns(sums.bucket[low]);
    }
}

uint64_t histogram_percentile_ns(const struct histogram *h, double percentile)
{
    uint64_t value_ns;
    histogram_percentiles_ns(h, &percentile, 1, &value_ns);
    return value_ns;
}

int64_t histogram_step_label_us(unsigned power)
{
    uint64_t edge_ns = ((uint64_t)1 << power) + ((uint64_t)1 << (power - 7)) - 1;
    return (int64_t)(edge_ns / 1000);
}

uint64_t histogram_step_count(const struct histogram *h, unsigned power, unsigned *bucket)
{
    uint64_t count = 0;
    while (*bucket < HISTOGRAM_BUCKETS && histogram_bucket_edge_ns(*bucket) <= (uint64_t)1
                                                                                   << power) {
        count += atomic_load_explicit(&h->count[*bucket], memory_order_relaxed);
        ++*bucket;
    }
    return count;
}
