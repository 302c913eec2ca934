/* How sizes are distributed: counts of them, exact below 32768, and above with a ten-thousandth of
 * the size as precision.
 *
 * A row of counters a power of two, made when its first size comes:
 *   row 0      sizes 0 to 32767, one counter each
 *   row r > 0  sizes 2^(14+r) to 2^(15+r) - 1, 16384 counters of 2^r sizes each
 * A counter stands for the largest of its sizes where sizes are told, and for the middle one in the
 * mean, as HdrHistogram has it, whose percentiles these are too.
 *
 * Owns: the rows, at most 7 MiB. State: plain value of one thread. */
#ifndef TOOLS_CLI_HISTOGRAM_H
#define TOOLS_CLI_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>

#define HISTOGRAM_ROWS 50

struct histogram {
    unsigned long long *rows[HISTOGRAM_ROWS]; /* NULL: no such size yet */
    unsigned long long total;
};

/* Of no sizes; frees the rows; counts a size. */
void histogram_init(struct histogram *h);
void histogram_deinit(struct histogram *h);
void histogram_add(struct histogram *h, unsigned long long size);

/* Of none: 0. */
double histogram_mean(const struct histogram *h);
double histogram_deviation(const struct histogram *h);

/* Calls `tell` for the percentiles 0, 50, 75, 87.5 ... and 100: `count` sizes, which is at least
 * that share of all, are at most `size`. Of percentiles that come to the same count only the last
 * is told; of no sizes none. */
typedef void histogram_tell(void *context, double percentile, unsigned long long size,
                            unsigned long long count);
void histogram_percentiles(const struct histogram *h, histogram_tell *tell, void *context);

#endif
