/*
 * Prints results in the shapes that redis-benchmark's users read: full, quiet, CSV; and as JSON.
 *
 * State: none; everything goes to standard output.
 */
#ifndef TOOLS_BENCHMARK_REPORT_H
#define TOOLS_BENCHMARK_REPORT_H

#include <stddef.h>

#include "tools/benchmark/load.h"
#include "tools/benchmark/options.h"

/* What a report says of one test. */
struct bench_report {
    const struct bench_options *options;
    const char *title;
    size_t payload_bytes;
    const char *config_save; /* the server's settings; NULL: not known, not printed */
    const char *config_appendonly;
};

/* Prints the line above all results, where the format has one (CSV). */
void bench_report_head(const struct bench_options *options);

/* Prints the result of one test. */
void bench_report_result(const struct bench_report *report, const struct bench_outcome *outcome);

/*
 * Shows on one line, which the next call and the result write over, how a test stands since the
 * last call. `data` is a struct bench_report_progress; fits struct bench_plan's `progress`.
 */
void bench_report_progress(void *data, const struct bench_progress *progress);

/* What bench_report_progress remembers between calls; start with title and zeros. */
struct bench_report_progress {
    const char *title;
    struct bench_progress last;
    int width; /* characters to write over */
};

/* Writes over what bench_report_progress has shown. */
void bench_report_progress_clear(struct bench_report_progress *state);

#endif
