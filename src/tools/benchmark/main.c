/*
 * keydb-benchmark: measures how fast a server answers. Takes redis-benchmark's options and prints
 * what redis-benchmark prints; see README.md for what is added.
 */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/program.h"
#include "tools/benchmark/catalogue.h"
#include "tools/benchmark/load.h"
#include "tools/benchmark/options.h"
#include "tools/benchmark/report.h"

#define MIX_MAX 16
#define STDIN_MAX_BYTES (512u << 20)

struct session {
    const struct bench_options *options;
    struct bench_fill fill;
    char *data;
    char *config_save;
    char *config_appendonly;
    uint64_t seed;
};

/* One load: templates with weights under a title. */
struct job {
    const char *title;
    size_t payload_bytes;
    struct bench_request requests[MIX_MAX];
    double weights[MIX_MAX];
    size_t count;
};

static void job_deinit(struct job *job)
{
    for (size_t i = 0; i < job->count; i++) {
        bench_request_deinit(&job->requests[i]);
    }
    job->count = 0;
}

static int fail(const char *message)
{
    fprintf(stderr, "%s\n", message);
    return -1;
}

/* Letters that no compression of the server's makes small. */
static char *payload_create(size_t len, uint64_t seed)
{
    char *data = malloc(len + 1);
    uint32_t state = (uint32_t)seed | 1;
    for (size_t i = 0; data != NULL && i < len; i++) {
        state = state * UINT32_C(1664525) + UINT32_C(1013904223);
        data[i] = (char)('A' + (state >> 24) % 26);
    }
    return data;
}

static int job_run(const struct session *session, struct job *job)
{
    const struct bench_options *options = session->options;
    struct bench_report_progress progress = {.title = job->title};
    bool shows_progress =
        options->format == BENCH_FORMAT_FULL || options->format == BENCH_FORMAT_QUIET;
    const struct bench_plan plan = {
        .target = &options->target,
        .requests = job->requests,
        .weights = job->weights,
        .request_count = job->count,
        .clients = options->clients,
        .threads = options->threads > 0 ? options->threads : 1,
        .total = options->requests,
        .duration_ns = options->duration_ns,
        .rate = options->rate,
        .keepalive = options->keepalive,
        .sequential = options->sequential,
        .keyspace = options->keyspace,
        .seed = session->seed,
        .show_errors = options->show_errors,
        .progress = shows_progress ? bench_report_progress : NULL,
        .progress_data = &progress,
    };
    struct bench_outcome outcome;
    int rc = bench_load_run(&plan, &outcome);
    bench_report_progress_clear(&progress);
    if (rc == 0) {
        const struct bench_report report = {
            .options = options,
            .title = job->title,
            .payload_bytes = job->payload_bytes,
            .config_save = session->config_save,
            .config_appendonly = session->config_appendonly,
        };
        bench_report_result(&report, &outcome);
    } else {
        fail(outcome.failure);
    }
    bench_hist_destroy(&outcome.latency);
    return rc;
}

static int run_test(const struct session *session, const struct bench_test *test)
{
    struct job job = {
        .title = test->title, .payload_bytes = session->options->data_size_bytes, .weights = {1}};
    if (bench_catalogue_build(test, &session->fill, &job.requests[0]) != 0) {
        return fail("The requests do not fit in memory (1 GiB a pipeline at most)");
    }
    job.count = 1;
    int rc = job_run(session, &job);
    job_deinit(&job);
    return rc;
}

static int run_selected(const struct session *session)
{
    const struct bench_test *test = NULL;
    while ((test = bench_catalogue_next(test)) != NULL) {
        if (bench_catalogue_selects(session->options->tests, test) &&
            run_test(session, test) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Adds `name=weight` to the job. */
static int mix_add(const struct session *session, struct job *job, char *item)
{
    char *equals = strchr(item, '=');
    double weight = 1;
    if (equals != NULL) {
        char *end = NULL;
        *equals = '\0';
        weight = strtod(equals + 1, &end);
        if (end == equals + 1 || *end != '\0' || !(weight > 0) || weight > 1e9) {
            return fail("--mix: a weight is a number above 0");
        }
    }
    const struct bench_test *test = bench_catalogue_find(item);
    if (test == NULL || job->count == MIX_MAX) {
        return fail(test == NULL ? "--mix: there is no such test" : "--mix: too many tests");
    }
    if (bench_catalogue_build(test, &session->fill, &job->requests[job->count]) != 0) {
        return fail("The requests do not fit in memory (1 GiB a pipeline at most)");
    }
    job->weights[job->count++] = weight;
    return 0;
}

static int run_mix(const struct session *session)
{
    struct job job = {.title = session->options->mix,
                      .payload_bytes = session->options->data_size_bytes};
    char *list = strdup(session->options->mix);
    int rc = list != NULL ? 0 : fail("out of memory");
    char *state = list;
    char *item;
    while (rc == 0 && (item = strsep(&state, ",")) != NULL) {
        rc = mix_add(session, &job, item);
    }
    if (rc == 0) {
        rc = job_run(session, &job);
    }
    free(list);
    job_deinit(&job);
    return rc;
}

/* Reads standard input to its end; NULL when it is too long or there is no memory. */
static char *read_stdin(size_t *len)
{
    size_t room = 4096;
    char *text = malloc(room);
    *len = 0;
    while (text != NULL) {
        size_t got = fread(text + *len, 1, room - *len, stdin);
        *len += got;
        if (got == 0 && *len < room) {
            return text;
        }
        if (*len < room) {
            continue;
        }
        char *grown = room < STDIN_MAX_BYTES ? realloc(text, room * 2) : NULL;
        if (grown == NULL) {
            free(text);
            return NULL;
        }
        text = grown;
        room *= 2;
    }
    return NULL;
}

/* The words of the command with blanks between them, as a title. */
static char *command_title(int argc, const char *const *argv)
{
    size_t size = 1;
    for (int i = 0; i < argc; i++) {
        size += strlen(argv[i]) + 1;
    }
    char *title = calloc(size, 1);
    size_t used = 0;
    for (int i = 0; title != NULL && i < argc; i++) {
        int wrote = snprintf(title + used, size - used, "%s%s", i > 0 ? " " : "", argv[i]);
        assert(wrote >= 0 && (size_t)wrote < size - used);
        used += (size_t)wrote;
    }
    return title;
}

static int run_command(const struct session *session)
{
    const struct bench_options *options = session->options;
    int argc = options->argc;
    struct job job = {.weights = {1}};
    char *input = NULL;
    char *title = command_title(argc, (const char *const *)options->argv);
    const char **argv = calloc((size_t)argc + 1, sizeof(argv[0]));
    size_t *lens = calloc((size_t)argc + 1, sizeof(lens[0]));
    int rc = -1;
    if (argv == NULL || lens == NULL || title == NULL) {
        fail("out of memory");
        goto done;
    }
    for (int i = 0; i < argc; i++) {
        argv[i] = options->argv[i];
        lens[i] = strlen(argv[i]);
    }
    if (options->last_from_stdin) {
        argv[argc] = input = read_stdin(&lens[argc]);
        if (input == NULL) {
            fail("Standard input does not fit in memory (512 MiB at most)");
            goto done;
        }
        argc++;
    }
    if (bench_catalogue_build_custom(argc, argv, lens, &session->fill, &job.requests[0]) != 0) {
        fail("The requests do not fit in memory (1 GiB a pipeline at most)");
        goto done;
    }
    job.count = 1;
    job.title = title;
    job.payload_bytes = job.requests[0].single_len;
    do {
        rc = job_run(session, &job);
    } while (rc == 0 && options->loop);
done:
    job_deinit(&job);
    free(input);
    free(title);
    free(argv);
    free(lens);
    return rc;
}

static int run_idle(const struct session *session)
{
    char failure[BENCH_LOAD_ERROR_MAX];
    printf("Creating %u idle connections and waiting forever (Ctrl+C when done)\n",
           session->options->clients);
    fflush(stdout);
    (void)bench_load_idle(&session->options->target, session->options->clients, failure,
                          sizeof(failure));
    return fail(failure);
}

static int run(const struct session *session)
{
    const struct bench_options *options = session->options;
    if (options->idle) {
        return run_idle(session);
    }
    bench_report_head(options);
    if (options->argc > 0) {
        return run_command(session);
    }
    int rc;
    do {
        rc = options->mix != NULL ? run_mix(session) : run_selected(session);
    } while (rc == 0 && options->loop);
    return rc;
}

/* The two settings of the server that say most about its speed. */
static void config_fetch(struct session *session)
{
    const struct bench_target *target = &session->options->target;
    session->config_save = bench_target_config(target, "save");
    if (session->config_save != NULL) {
        session->config_appendonly = bench_target_config(target, "appendonly");
    }
    if (session->config_save == NULL || session->config_appendonly == NULL) {
        fputs("WARNING: Could not fetch server CONFIG\n", stderr);
    }
}

static int session_run(const struct bench_options *options)
{
    struct session session = {.options = options};
    session.seed = options->seeded ? options->seed : clock_mono_ns() ^ ((uint64_t)getpid() << 40);
    session.data = payload_create(options->data_size_bytes, session.seed);
    if (session.data == NULL) {
        return fail("out of memory");
    }
    session.fill = (struct bench_fill){
        .data = session.data,
        .data_len = options->data_size_bytes,
        .random = options->random,
        .pipeline = options->pipeline,
    };
    if (options->format == BENCH_FORMAT_FULL && !options->idle) {
        config_fetch(&session);
    }
    int rc = run(&session);
    free(session.data);
    free(session.config_save);
    free(session.config_appendonly);
    return rc;
}

int main(int argc, char **argv)
{
    /* sendfile cannot be told not to signal; its error is enough. */
    signal(SIGPIPE, SIG_IGN);
    program_setup("keydb-benchmark", argv[0]);
    struct bench_options options;
    enum bench_parse parse = bench_options_parse(&options, argc, argv);
    int status = parse == BENCH_PARSE_EXIT_ERROR ? 1 : 0;
    if (parse == BENCH_PARSE_RUN) {
        status = session_run(&options) == 0 ? 0 : 1;
    }
    bench_options_deinit(&options);
    return status;
}
