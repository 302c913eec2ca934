/* Figures in Prometheus's text format 0.0.4, or in OpenMetrics 1.0: each family once, with HELP and
 * TYPE before its samples. HELP says which field of INFO it is. State: none. */
#ifndef METRICS_EXPOSITION_H
#define METRICS_EXPOSITION_H

#include "metrics/figures.h"

/* What answers with these formats are labelled with. */
#define PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define OPEN_METRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct exposition {
    struct buf *out;
    bool open_metrics;
};

/* What table.h has of the figures, and the percentiles of latencystats. */
void exposition_write_figures(struct exposition *x, const struct figures *f);
/* What INFO does not tell: that the server is up, since when (seconds since 1970), the histogram of
 * each command's times, the slow log, spikes of latency. Awake. */
void exposition_write_others(struct exposition *x, int64_t start_s);
/* The end: OpenMetrics has a word for it. */
void exposition_end(struct exposition *x);

#endif
