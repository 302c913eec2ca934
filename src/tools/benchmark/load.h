/*
 * Loads a server: threads with connections of their own send a plan's requests and time the
 * replies.
 *
 * Each thread runs one epoll loop. A connection has at most one pipeline under way; when its last
 * reply has come, the next one is patched and sent (closed loop), or it waits for the next due
 * moment (plan.rate).
 */
#ifndef TOOLS_BENCHMARK_LOAD_H
#define TOOLS_BENCHMARK_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/benchmark/hist.h"
#include "tools/benchmark/request.h"
#include "tools/benchmark/target.h"

#define BENCH_LOAD_ERROR_MAX 256

/* How a running load stands. */
struct bench_progress {
    uint64_t requests;
    uint64_t latency_sum_ns;
    uint64_t elapsed_ns;
};

/* What to do; immutable while bench_load_run works. */
struct bench_plan {
    const struct bench_target *target;
    const struct bench_request *requests; /* templates of equal pipeline */
    const double *weights;                /* one a template; their sum is above 0 */
    size_t request_count;
    uint32_t clients;
    uint32_t threads;
    uint64_t total;       /* requests, rounded up to whole pipelines; 0: no limit */
    uint64_t duration_ns; /* 0: no limit; one of the two must be set */
    double rate;          /* requests a second of all threads; 0: closed loop */
    bool keepalive;
    bool sequential;   /* slots count up instead of being random */
    uint64_t keyspace; /* slots hold numbers below this */
    uint64_t seed;
    bool show_errors; /* go on after an error reply */
    /* Called about four times a second from the calling thread; NULL: not wanted. */
    void (*progress)(void *data, const struct bench_progress *progress);
    void *progress_data;
};

/* What came of it. */
struct bench_outcome {
    uint64_t requests;                  /* replies received */
    uint64_t errors;                    /* of them error replies */
    uint64_t elapsed_ns;                /* from the first send to the last reply */
    uint64_t generator_cpu_ns;          /* CPU time of this process meanwhile */
    struct bench_hist *latency;         /* owned by the caller */
    char failure[BENCH_LOAD_ERROR_MAX]; /* empty: all went well */
};

/*
 * Connects all clients, then runs `plan` and waits for its end. Returns 0 with *outcome filled, or
 * -1 with outcome->failure saying why (no connection, an error reply without show_errors, a closed
 * connection, bytes that are no RESP, no memory). Free outcome->latency in both cases.
 */
int bench_load_run(const struct bench_plan *plan, struct bench_outcome *outcome);

/*
 * Connects `clients` and keeps the connections, sending nothing but the greeting, until the process
 * is ended. Returns only on failure: -1 with the reason in `failure`.
 */
int bench_load_idle(const struct bench_target *target, uint32_t clients, char *failure,
                    size_t failure_size);

#endif
