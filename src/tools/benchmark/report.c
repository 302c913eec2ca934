/* The reports of report.h. */
#include "tools/benchmark/report.h"

#include <assert.h>
#include <stdio.h>

#define NS_PER_MS 1e6
#define NS_PER_S 1e9

static double to_ms(uint64_t ns)
{
    return (double)ns / NS_PER_MS;
}

static double mean_ms(const struct bench_hist *hist)
{
    uint64_t count = bench_hist_count(hist);
    return count == 0 ? 0.0 : to_ms(bench_hist_sum(hist)) / (double)count;
}

static double rate_of(uint64_t requests, uint64_t elapsed_ns)
{
    return elapsed_ns == 0 ? 0.0 : (double)requests * NS_PER_S / (double)elapsed_ns;
}

static double percentile_ms(const struct bench_outcome *outcome, double percentile)
{
    return to_ms(bench_hist_percentile(outcome->latency, percentile));
}

void bench_report_head(const struct bench_options *options)
{
    if (options->format == BENCH_FORMAT_CSV) {
        puts("\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\","
             "\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"");
    }
}

/* Prints `text` between double quotes; a quote or backslash in it gets `escape` before it. */
static void print_quoted(const char *text, char escape_quote, char escape_backslash)
{
    putchar('"');
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '"') {
            putchar(escape_quote);
        } else if (*at == '\\' && escape_backslash != '\0') {
            putchar(escape_backslash);
        } else if ((unsigned char)*at < ' ') {
            putchar('?');
            continue;
        }
        putchar(*at);
    }
    putchar('"');
}

static void report_csv(const struct bench_report *report, const struct bench_outcome *outcome)
{
    int decimals = report->options->precision;
    print_quoted(report->title, '"', '\0');
    printf(",\"%.2f\",\"%.*f\",\"%.*f\",\"%.*f\",\"%.*f\",\"%.*f\",\"%.*f\"\n",
           rate_of(outcome->requests, outcome->elapsed_ns), decimals, mean_ms(outcome->latency),
           decimals, to_ms(bench_hist_min(outcome->latency)), decimals, percentile_ms(outcome, 50),
           decimals, percentile_ms(outcome, 95), decimals, percentile_ms(outcome, 99), decimals,
           to_ms(bench_hist_max(outcome->latency)));
}

static void report_json(const struct bench_report *report, const struct bench_outcome *outcome)
{
    static const struct {
        const char *name;
        double percentile;
    } points[] = {{"p50", 50}, {"p95", 95}, {"p99", 99}, {"p99.9", 99.9}, {"p99.99", 99.99}};
    fputs("{\"test\":", stdout);
    print_quoted(report->title, '\\', '\\');
    printf(",\"requests\":%llu,\"errors\":%llu,\"seconds\":%.6f,\"rps\":%.2f,"
           "\"generator_cpu_seconds\":%.6f,\"latency_ms\":{\"avg\":%.6f,\"min\":%.6f",
           (unsigned long long)outcome->requests, (unsigned long long)outcome->errors,
           (double)outcome->elapsed_ns / NS_PER_S, rate_of(outcome->requests, outcome->elapsed_ns),
           (double)outcome->generator_cpu_ns / NS_PER_S, mean_ms(outcome->latency),
           to_ms(bench_hist_min(outcome->latency)));
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        printf(",\"%s\":%.6f", points[i].name, percentile_ms(outcome, points[i].percentile));
    }
    printf(",\"max\":%.6f}}\n", to_ms(bench_hist_max(outcome->latency)));
}

static void report_quiet(const struct bench_report *report, const struct bench_outcome *outcome)
{
    printf("%s: %.2f requests per second, p50=%.*f msec\n", report->title,
           rate_of(outcome->requests, outcome->elapsed_ns), report->options->precision,
           percentile_ms(outcome, 50));
}

/* What was run, as the full report opens. */
static void print_setting(const struct bench_report *report, const struct bench_outcome *outcome)
{
    const struct bench_options *options = report->options;
    printf("====== %s ======\n", report->title);
    printf("  %llu requests completed in %.2f seconds\n", (unsigned long long)outcome->requests,
           (double)outcome->elapsed_ns / NS_PER_S);
    printf("  %u parallel clients\n", options->clients);
    printf("  %zu bytes payload\n", report->payload_bytes);
    printf("  keep alive: %d\n", options->keepalive ? 1 : 0);
    if (report->config_save != NULL && report->config_appendonly != NULL) {
        printf("  host configuration \"save\": %s\n", report->config_save);
        printf("  host configuration \"appendonly\": %s\n", report->config_appendonly);
    }
    printf("  multi-thread: %s\n", options->threads > 0 ? "yes" : "no");
    if (options->threads > 0) {
        printf("  threads: %u\n", options->threads);
    }
    if (outcome->errors > 0) {
        printf("  error replies: %llu\n", (unsigned long long)outcome->errors);
    }
}

static void print_rows(const struct bench_report *report, const struct bench_outcome *outcome,
                       bool (*next)(struct bench_hist_walk *, struct bench_hist_row *))
{
    struct bench_hist_walk walk;
    struct bench_hist_row row;
    bench_hist_walk_start(&walk, outcome->latency);
    while (next(&walk, &row)) {
        printf("%3.3f%% <= %.*f milliseconds (cumulative count %llu)\n", row.percentile,
               report->options->precision, to_ms(row.upper_ns), (unsigned long long)row.count);
    }
}

static void report_full(const struct bench_report *report, const struct bench_outcome *outcome)
{
    int decimals = report->options->precision;
    print_setting(report, outcome);
    puts("\nLatency by percentile distribution:");
    print_rows(report, outcome, bench_hist_walk_percentile);
    puts("\nCumulative distribution of latencies:");
    print_rows(report, outcome, bench_hist_walk_linear);
    printf("\nSummary:\n  throughput summary: %.2f requests per second\n",
           rate_of(outcome->requests, outcome->elapsed_ns));
    puts("  latency summary (msec):");
    printf("    %9s %9s %9s %9s %9s %9s\n", "avg", "min", "p50", "p95", "p99", "max");
    printf("    %9.*f %9.*f %9.*f %9.*f %9.*f %9.*f\n\n", decimals, mean_ms(outcome->latency),
           decimals, to_ms(bench_hist_min(outcome->latency)), decimals, percentile_ms(outcome, 50),
           decimals, percentile_ms(outcome, 95), decimals, percentile_ms(outcome, 99), decimals,
           to_ms(bench_hist_max(outcome->latency)));
}

void bench_report_result(const struct bench_report *report, const struct bench_outcome *outcome)
{
    assert(report != NULL && outcome != NULL && outcome->latency != NULL);
    switch (report->options->format) {
    case BENCH_FORMAT_FULL:
        report_full(report, outcome);
        break;
    case BENCH_FORMAT_QUIET:
        report_quiet(report, outcome);
        break;
    case BENCH_FORMAT_CSV:
        report_csv(report, outcome);
        break;
    case BENCH_FORMAT_JSON:
        report_json(report, outcome);
        break;
    }
    fflush(stdout);
}

static double progress_mean_ms(uint64_t sum_ns, uint64_t requests)
{
    return requests == 0 ? 0.0 : to_ms(sum_ns) / (double)requests;
}

void bench_report_progress_clear(struct bench_report_progress *state)
{
    if (state->width > 0) {
        printf("\r%*s\r", state->width, "");
        state->width = 0;
    }
    fflush(stdout);
}

void bench_report_progress(void *data, const struct bench_progress *progress)
{
    struct bench_report_progress *state = data;
    assert(state != NULL && progress != NULL);
    uint64_t requests = progress->requests - state->last.requests;
    uint64_t sum_ns = progress->latency_sum_ns - state->last.latency_sum_ns;
    uint64_t elapsed_ns = progress->elapsed_ns - state->last.elapsed_ns;
    bench_report_progress_clear(state);
    state->width =
        printf("%s: rps=%.1f (overall: %.1f) avg_msec=%.3f (overall: %.3f)", state->title,
               rate_of(requests, elapsed_ns), rate_of(progress->requests, progress->elapsed_ns),
               progress_mean_ms(sum_ns, requests),
               progress_mean_ms(progress->latency_sum_ns, progress->requests));
    fflush(stdout);
    state->last = *progress;
}
