/*
 * One thread of a load: connections, an epoll loop, and what they share with the other threads.
 * Internal to load.c and worker.c.
 *
 * State: a worker is owned by its thread, but for `published_*`; a crew is shared, its fields
 * atomic.
 */
#ifndef TOOLS_BENCHMARK_WORKER_H
#define TOOLS_BENCHMARK_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "tools/benchmark/load.h"

struct bench_worker;

/* What the threads of one load share. */
struct bench_crew {
    const struct bench_plan *plan;
    struct bench_greeting greeting;
    pthread_barrier_t *start;     /* all workers and the caller; NULL: idle connections only */
    _Atomic uint64_t granted;     /* requests handed out to threads */
    _Atomic uint64_t next_number; /* of a sequential plan */
    _Atomic uint64_t last_error_shown_ns;
    _Atomic bool stop;            /* a thread has failed: all end */
    pthread_mutex_t failure_lock; /* leaf; guards `failure` */
    char failure[BENCH_LOAD_ERROR_MAX];
    uint64_t start_ns; /* written before the second barrier */
};

/*
 * Creates a worker with `clients` connections. `index` numbers the workers of a crew. Returns NULL
 * without memory or descriptors. The crew must outlive it.
 */
struct bench_worker *bench_worker_create(struct bench_crew *crew, uint32_t index, uint32_t clients);

/* Closes what the worker has open, frees it and sets *worker to NULL; NULL may be passed. */
void bench_worker_destroy(struct bench_worker **worker);

/*
 * Connects, waits at the crew's barrier twice (ready; started), works off its share, returns NULL.
 * The body of a thread: `worker` is a struct bench_worker. Failures go to the crew.
 */
void *bench_worker_main(void *worker);

/* What the worker has done so far. Any thread. */
void bench_worker_progress(const struct bench_worker *worker, struct bench_progress *progress);

/* Adds the worker's figures to `outcome`. Only when its thread has ended. */
void bench_worker_collect(const struct bench_worker *worker, struct bench_outcome *outcome);

/* Notes the first failure of a crew and tells all its threads to end. Any thread. */
void bench_crew_fail(struct bench_crew *crew, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
