/* How sizes are distributed: see histogram.h. */
#include "tools/cli/histogram.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/text.h"

#define FIRST_ROW_SIZES 32768U
#define ROW_COUNTERS 16384U
#define ROW_COUNTERS_LOG2 14

static size_t counters_of(size_t row)
{
    return row == 0 ? FIRST_ROW_SIZES : ROW_COUNTERS;
}

static size_t row_of(unsigned long long size)
{
    if (size < FIRST_ROW_SIZES) {
        return 0;
    }
    return (size_t)(63 - __builtin_clzll(size)) - ROW_COUNTERS_LOG2;
}

/* The smallest size that the counter stands for. */
static unsigned long long size_of(size_t row, size_t i)
{
    return row == 0 ? i : (unsigned long long)(i + ROW_COUNTERS) << row;
}

static unsigned long long largest_size_of(size_t row, size_t i)
{
    return size_of(row, i) + ((1ULL << row) - 1);
}

static double middle_size_of(size_t row, size_t i)
{
    return (double)(size_of(row, i) + ((1ULL << row) >> 1));
}

void histogram_init(struct histogram *h)
{
    memset(h, 0, sizeof(*h));
}

void histogram_deinit(struct histogram *h)
{
    for (size_t row = 0; row < HISTOGRAM_ROWS; row++) {
        free(h->rows[row]);
    }
    histogram_init(h);
}

void histogram_add(struct histogram *h, unsigned long long size)
{
    size_t row = row_of(size);
    assert(row < HISTOGRAM_ROWS);
    if (h->rows[row] == NULL) {
        h->rows[row] = tool_calloc(counters_of(row), sizeof(*h->rows[row]));
    }
    size_t i = row == 0 ? (size_t)size : (size_t)(size >> row) - ROW_COUNTERS;
    assert(i < counters_of(row));
    h->rows[row][i]++;
    h->total++;
}

/* The next counter from (*row, *i) on that has counted something. False: there is none. */
static bool find(const struct histogram *h, size_t *row, size_t *i)
{
    for (; *row < HISTOGRAM_ROWS; (*row)++, *i = 0) {
        for (; h->rows[*row] != NULL && *i < counters_of(*row); (*i)++) {
            if (h->rows[*row][*i] > 0) {
                return true;
            }
        }
    }
    return false;
}

double histogram_mean(const struct histogram *h)
{
    double sum = 0;
    size_t row = 0;
    for (size_t i = 0; find(h, &row, &i); i++) {
        sum += middle_size_of(row, i) * (double)h->rows[row][i];
    }
    return h->total > 0 ? sum / (double)h->total : 0;
}

double histogram_deviation(const struct histogram *h)
{
    double mean = histogram_mean(h);
    double sum = 0;
    size_t row = 0;
    for (size_t i = 0; find(h, &row, &i); i++) {
        double off = middle_size_of(row, i) - mean;
        sum += off * off * (double)h->rows[row][i];
    }
    return h->total > 0 ? sqrt(sum / (double)h->total) : 0;
}

/* Half of what is left to a hundred: 0, 50, 75 ... */
static double next_percentile(double percentile)
{
    return percentile + (100 - percentile) / 2;
}

void histogram_percentiles(const struct histogram *h, histogram_tell *tell, void *context)
{
    double wanted = 0;
    unsigned long long count = 0;
    size_t row = 0;
    for (size_t i = 0; find(h, &row, &i); i++) {
        count += h->rows[row][i];
        if (count == h->total) {
            tell(context, 100, largest_size_of(row, i), count);
            return;
        }
        double reached = 100.0 * (double)count / (double)h->total;
        if (wanted > reached) {
            continue;
        }
        double told = wanted;
        while (wanted <= reached) {
            wanted = next_percentile(wanted);
        }
        tell(context, told, largest_size_of(row, i), count);
    }
}
