/* Statistics of commands and errors: calls, time, rejected, failed, and a latency histogram for
 * each command, kept per thread and summed when asked. Errors by code, at most 128 different ones.
 * State: atomic lines of each thread; the error table is behind a leaf lock. */
#ifndef ENGINE_CMDSTATS_H
#define ENGINE_CMDSTATS_H

#include "base/histogram.h"
#include "base/option.h"
#include "engine/command.h"

struct cmdstats {
    uint64_t calls, time_ns, rejected, failed;
};

/* Boot, after all commands are registered. */
void cmdstats_setup(void);
void cmdstats_teardown(void);
/* Commands have been added: makes room for them. World. */
void cmdstats_grow(void);
/* Records `calls` calls that took `time_ns` in all. Calling thread's line. */
void cmdstats_record(const struct command *cmd, uint64_t calls, uint64_t time_ns);
void cmdstats_rejected(const struct command *cmd);
void cmdstats_failed(const struct command *cmd);
/* Sum over threads. */
struct cmdstats cmdstats_sum(const struct command *cmd);
/* Sum of the histograms in `sum`, which is a histogram already; false when the command has no
 * samples. */
bool cmdstats_histogram(const struct command *cmd, struct histogram *sum);
/* Counts an error reply by its code (the first word of `text`). */
void errorstats_record(struct slice text);
/* Calls `visit` for each code. */
void errorstats_each(void (*visit)(const char *code, uint64_t count, void *context), void *context);
/* CONFIG RESETSTAT; LATENCY HISTOGRAM's RESET. World. */
void cmdstats_reset(void);

/* latency-tracking, latency-tracking-info-percentiles. */
extern const struct option cmdstats_options[];
#define CMDSTATS_PERCENTILES_MAX 16
/* Percentiles to show in INFO latencystats; count returned, at most CMDSTATS_PERCENTILES_MAX. */
int cmdstats_percentiles(const double **percentiles);
bool cmdstats_tracking(void);

#endif
