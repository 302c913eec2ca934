/* The threads of a load, as in load.h. */
#include "tools/benchmark/load.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "tools/benchmark/worker.h"

#define PROGRESS_NS UINT64_C(250000000)
/* Descriptors beside the connections: standard streams, epolls, a connection that is being made. */
#define SPARE_FDS 64

struct load {
    struct bench_crew crew;
    pthread_barrier_t barrier;
    bool barrier_ready;
    struct bench_worker **workers;
    pthread_t *threads;
    uint32_t thread_count;
};

static uint64_t process_cpu_ns(void)
{
    struct timespec used;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0) {
        return 0;
    }
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* Asks for as many descriptors as the connections need; what is refused shows when connecting. */
static void descriptors_reserve(uint32_t clients, uint32_t threads)
{
    struct rlimit limit;
    rlim_t need = (rlim_t)clients + 2 * (rlim_t)threads + SPARE_FDS;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < need) {
        limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void load_deinit(struct load *load)
{
    for (uint32_t i = 0; load->workers != NULL && i < load->thread_count; i++) {
        bench_worker_destroy(&load->workers[i]);
    }
    if (load->barrier_ready) {
        pthread_barrier_destroy(&load->barrier);
    }
    pthread_mutex_destroy(&load->crew.failure_lock);
    free(load->crew.greeting.bytes);
    free(load->workers);
    free(load->threads);
}

static int load_init(struct load *load, const struct bench_plan *plan)
{
    *load = (struct load){.thread_count = plan->threads};
    load->crew.plan = plan;
    pthread_mutex_init(&load->crew.failure_lock, NULL);
    load->workers = calloc(plan->threads, sizeof(load->workers[0]));
    load->threads = calloc(plan->threads, sizeof(load->threads[0]));
    if (load->workers == NULL || load->threads == NULL ||
        bench_target_greeting(plan->target, &load->crew.greeting) != 0 ||
        pthread_barrier_init(&load->barrier, NULL, plan->threads + 1) != 0) {
        return -1;
    }
    load->barrier_ready = true;
    load->crew.start = &load->barrier;
    for (uint32_t i = 0; i < plan->threads; i++) {
        uint32_t share = plan->clients / plan->threads + (i < plan->clients % plan->threads);
        load->workers[i] = bench_worker_create(&load->crew, i, share);
        if (load->workers[i] == NULL) {
            return -1;
        }
    }
    return 0;
}

/*
 * A barrier with missing threads would wait for ever, so a thread that cannot be created leaves the
 * process no way to go on.
 */
static void threads_start(struct load *load)
{
    for (uint32_t i = 0; i < load->thread_count; i++) {
        int error = pthread_create(&load->threads[i], NULL, bench_worker_main, load->workers[i]);
        if (error != 0) {
            fprintf(stderr, "Could not create a thread: %s\n", strerror(error));
            exit(1);
        }
    }
}

static void progress_tell(const struct load *load)
{
    const struct bench_plan *plan = load->crew.plan;
    struct bench_progress progress = {.elapsed_ns = clock_mono_ns() - load->crew.start_ns};
    for (uint32_t i = 0; i < load->thread_count; i++) {
        bench_worker_progress(load->workers[i], &progress);
    }
    plan->progress(plan->progress_data, &progress);
}

/* Waits for the threads, telling how they stand in the meantime. */
static void threads_join(struct load *load)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    for (uint32_t i = 0; i < load->thread_count; i++) {
        while (load->crew.plan->progress != NULL) {
            uint64_t ns = (uint64_t)until.tv_nsec + PROGRESS_NS;
            until.tv_sec += (time_t)(ns / 1000000000);
            until.tv_nsec = (long)(ns % 1000000000);
            if (pthread_timedjoin_np(load->threads[i], NULL, &until) != ETIMEDOUT) {
                break;
            }
            progress_tell(load);
        }
        if (load->crew.plan->progress == NULL) {
            pthread_join(load->threads[i], NULL);
        }
    }
}

int bench_load_run(const struct bench_plan *plan, struct bench_outcome *outcome)
{
    assert(plan != NULL && outcome != NULL && plan->request_count > 0);
    assert(plan->threads > 0 && plan->threads <= plan->clients);
    assert(plan->total > 0 || plan->duration_ns > 0);
    *outcome = (struct bench_outcome){.latency = bench_hist_create()};
    struct load load;
    descriptors_reserve(plan->clients, plan->threads);
    if (load_init(&load, plan) != 0 || outcome->latency == NULL) {
        snprintf(outcome->failure, sizeof(outcome->failure), "out of memory or descriptors");
        load_deinit(&load);
        return -1;
    }
    threads_start(&load);
    pthread_barrier_wait(&load.barrier);
    uint64_t cpu_ns = process_cpu_ns();
    load.crew.start_ns = clock_mono_ns();
    pthread_barrier_wait(&load.barrier);
    threads_join(&load);
    outcome->generator_cpu_ns = process_cpu_ns() - cpu_ns;
    for (uint32_t i = 0; i < load.thread_count; i++) {
        bench_worker_collect(load.workers[i], outcome);
    }
    memcpy(outcome->failure, load.crew.failure, sizeof(outcome->failure));
    load_deinit(&load);
    return outcome->failure[0] == '\0' ? 0 : -1;
}

int bench_load_idle(const struct bench_target *target, uint32_t clients, char *failure,
                    size_t failure_size)
{
    assert(target != NULL && clients > 0 && failure != NULL);
    const struct bench_plan plan = {.target = target, .clients = clients, .threads = 1};
    struct load load;
    descriptors_reserve(clients, 1);
    if (load_init(&load, &plan) != 0) {
        snprintf(failure, failure_size, "out of memory or descriptors");
        load_deinit(&load);
        return -1;
    }
    load.crew.start = NULL;
    bench_worker_main(load.workers[0]);
    snprintf(failure, failure_size, "%s", load.crew.failure);
    load_deinit(&load);
    return -1;
}
