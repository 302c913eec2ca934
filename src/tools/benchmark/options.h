/*
 * The command line of keydb-benchmark: redis-benchmark's options and a few of our own.
 *
 * State: written by bench_options_parse, immutable afterwards.
 */
#ifndef TOOLS_BENCHMARK_OPTIONS_H
#define TOOLS_BENCHMARK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/benchmark/target.h"

#define BENCH_CLIENTS_MAX 100000
#define BENCH_THREADS_MAX 500
#define BENCH_PIPELINE_MAX 1000000
/* What a bulk of the protocol may hold. */
#define BENCH_DATA_MAX (512 << 20)

enum bench_format {
    BENCH_FORMAT_FULL,
    BENCH_FORMAT_QUIET,
    BENCH_FORMAT_CSV,
    BENCH_FORMAT_JSON,
};

struct bench_options {
    struct bench_target target;
    uint32_t clients;
    uint64_t requests; /* 0: only `duration_ns` ends a test */
    uint32_t data_size_bytes;
    uint32_t threads; /* 0: --threads was not given, or as 0 */
    bool keepalive;
    bool random;
    uint64_t keyspace; /* of -r */
    uint32_t pipeline;
    enum bench_format format;
    int precision; /* decimals of latencies in milliseconds */
    bool loop;
    const char *tests; /* of -t; NULL: all */
    const char *mix;   /* of --mix; NULL: none */
    bool idle;
    bool last_from_stdin;
    bool show_errors;
    bool seeded;
    uint64_t seed;
    uint64_t duration_ns; /* 0: only `requests` ends a test */
    double rate;          /* requests a second; 0: as fast as replies come */
    bool sequential;
    int argc; /* the command given on the command line; 0: none */
    char **argv;
};

/* What the caller of bench_options_parse is to do. */
enum bench_parse {
    BENCH_PARSE_RUN,
    BENCH_PARSE_EXIT_OK,    /* --help or --version was answered */
    BENCH_PARSE_EXIT_ERROR, /* the mistake was told on standard error */
};

/*
 * Fills *options from the command line. Strings point into argv or belong to the struct; free them
 * with bench_options_deinit in every case.
 */
enum bench_parse bench_options_parse(struct bench_options *options, int argc, char **argv);

/* Frees what the options own. */
void bench_options_deinit(struct bench_options *options);

#endif
