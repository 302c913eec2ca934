/* The command line of options.h: one row an option. */
#include "tools/benchmark/options.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "tools/benchmark/catalogue.h"
#include "tools/benchmark/request.h"
#include "tools/benchmark/usage.h"

#define DEFAULT_CLIENTS 50
#define DEFAULT_REQUESTS 100000
#define DEFAULT_DATA_BYTES 3
#define DEFAULT_PRECISION 3
#define NS_PER_S 1e9
/* A year: longer than anybody waits, shorter than what overflows. */
#define DURATION_MAX_S 31536000.0
#define RATE_MAX 1e9

/* What the options say before they are put together. */
struct parse_state {
    struct bench_options *options;
    bool requests_given;
    enum bench_parse verdict;
};

/* Applies one option; `value` is NULL for those that take none. NULL, or what is wrong. */
typedef const char *option_apply(struct parse_state *state, const char *value);

struct option_row {
    const char *name;
    bool takes_value;
    option_apply *apply; /* NULL for TLS's options, which tools/common/secure.h knows */
};

static const char out_of_memory[] = "out of memory";

static bool parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || errno != 0 || *end != '\0' || value < min ||
        value > max) {
        return false;
    }
    *number = value;
    return true;
}

static bool parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *number)
{
    uint64_t wide;
    if (!parse_u64(text, min, max, &wide)) {
        return false;
    }
    *number = (uint32_t)wide;
    return true;
}

static bool parse_real(const char *text, double max, double *number)
{
    char *end = NULL;
    errno = 0;
    double value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !isfinite(value) || value <= 0 ||
        value > max) {
        return false;
    }
    *number = value;
    return true;
}

static const char *apply_host(struct parse_state *state, const char *value)
{
    return bench_target_set(&state->options->target.host, value) == 0 ? NULL : out_of_memory;
}

static const char *apply_port(struct parse_state *state, const char *value)
{
    uint32_t port;
    if (!parse_u32(value, 1, 65535, &port)) {
        return "a port is a number from 1 to 65535";
    }
    state->options->target.port = (int)port;
    return NULL;
}

static const char *apply_socket(struct parse_state *state, const char *value)
{
    return bench_target_set(&state->options->target.socket_path, value) == 0 ? NULL : out_of_memory;
}

static const char *apply_password(struct parse_state *state, const char *value)
{
    return bench_target_set(&state->options->target.password, value) == 0 ? NULL : out_of_memory;
}

static const char *apply_user(struct parse_state *state, const char *value)
{
    return bench_target_set(&state->options->target.user, value) == 0 ? NULL : out_of_memory;
}

static const char *apply_uri(struct parse_state *state, const char *value)
{
    return bench_target_parse_uri(&state->options->target, value);
}

static const char *apply_dbnum(struct parse_state *state, const char *value)
{
    uint32_t dbnum;
    if (!parse_u32(value, 0, 1000000, &dbnum)) {
        return "a database is a number from 0";
    }
    state->options->target.dbnum = (int)dbnum;
    return NULL;
}

static const char *apply_resp3(struct parse_state *state, const char *value)
{
    (void)value;
    state->options->target.resp3 = true;
    return NULL;
}

static const char *apply_tracking(struct parse_state *state, const char *value)
{
    (void)value;
    state->options->target.tracking = true;
    return NULL;
}

static const char *apply_clients(struct parse_state *state, const char *value)
{
    bool good = parse_u32(value, 1, BENCH_CLIENTS_MAX, &state->options->clients);
    return good ? NULL : "clients are a number from 1 to 100000";
}

static const char *apply_requests(struct parse_state *state, const char *value)
{
    bool good = parse_u64(value, 1, UINT64_MAX / 4, &state->options->requests);
    state->requests_given = true;
    return good ? NULL : "requests are a number from 1";
}

static const char *apply_data_size(struct parse_state *state, const char *value)
{
    bool good = parse_u32(value, 1, BENCH_DATA_MAX, &state->options->data_size_bytes);
    return good ? NULL : "a data size is from 1 to 536870912 bytes";
}

static const char *apply_threads(struct parse_state *state, const char *value)
{
    bool good = parse_u32(value, 0, BENCH_THREADS_MAX, &state->options->threads);
    return good ? NULL : "threads are a number from 0 to 500";
}

static const char *apply_keepalive(struct parse_state *state, const char *value)
{
    uint32_t flag;
    if (!parse_u32(value, 0, 1, &flag)) {
        return "keep alive is 0 or 1";
    }
    state->options->keepalive = flag == 1;
    return NULL;
}

static const char *apply_random(struct parse_state *state, const char *value)
{
    state->options->random = true;
    bool good = parse_u64(value, 0, BENCH_KEYSPACE_MAX, &state->options->keyspace);
    /* As redis-benchmark takes it: random numbers below 0 are 0. */
    state->options->keyspace += good && state->options->keyspace == 0;
    return good ? NULL : "a key space is a number from 0 to 1000000000000";
}

static const char *apply_pipeline(struct parse_state *state, const char *value)
{
    bool good = parse_u32(value, 1, BENCH_PIPELINE_MAX, &state->options->pipeline);
    return good ? NULL : "a pipeline is a number from 1 to 1000000";
}

static const char *apply_quiet(struct parse_state *state, const char *value)
{
    (void)value;
    state->options->format = BENCH_FORMAT_QUIET;
    return NULL;
}

static const char *apply_csv(struct parse_state *state, const char *value)
{
    (void)value;
    state->options->format = BENCH_FORMAT_CSV;
    return NULL;
}

static const char *apply_json(struct parse_state *state, const char *value)
{
    (void)value;
    state->options->format = BENCH_FORMAT_JSON;
    return NULL;
}

static const char *apply_precision(struct parse_state *state, const char *value)
{
    uint32_t precision;
    if (!parse_u32(value, 0, 6, &precision)) {
        return "a precision is 0 to 6 decimals";
    }
    state->options->precision = (int)precision;
    return NULL;
}

static const char *apply_loop(struct parse_state *state, const char *value)
{
    (void)value;
    state->options->loop = true;
    return NULL;
}

static const char *apply_tests(struct parse_state *state, const char *value)
{
    static char message[96];
    size_t len = 0;
    const char *unknown = bench_catalogue_unknown(value, &len);
    if (unknown != NULL) {
        snprintf(message, sizeof(message), "there is no test named '%.*s'",
                 (int)(len < 40 ? len : 40), unknown);
        return message;
    }
    state->options->tests = value;
    return NULL;
}

static const char *apply_mix(struct parse_state *state, const char *value)
{
    state->options->mix = value;
    return NULL;
}

static const char *apply_idle(struct parse_state *state, const char *value)
{
    (void)value;
    state->options->idle = true;
    return NULL;
}

static const char *apply_stdin(struct parse_state *state, const char *value)
{
    (void)value;
    state->options->last_from_stdin = true;
    return NULL;
}

static const char *apply_errors(struct parse_state *state, const char *value)
{
    (void)value;
    state->options->show_errors = true;
    return NULL;
}

static const char *apply_seed(struct parse_state *state, const char *value)
{
    state->options->seeded = true;
    bool good = parse_u64(value, 0, UINT64_MAX, &state->options->seed);
    return good ? NULL : "a seed is a number from 0";
}

static const char *apply_duration(struct parse_state *state, const char *value)
{
    double seconds;
    if (!parse_real(value, DURATION_MAX_S, &seconds)) {
        return "a duration is a number of seconds above 0";
    }
    state->options->duration_ns = (uint64_t)(seconds * NS_PER_S);
    return NULL;
}

static const char *apply_rate(struct parse_state *state, const char *value)
{
    return parse_real(value, RATE_MAX, &state->options->rate) ? NULL : "a rate is a number above 0";
}

static const char *apply_sequential(struct parse_state *state, const char *value)
{
    (void)value;
    state->options->sequential = true;
    return NULL;
}

static const char *refuse_cluster(struct parse_state *state, const char *value)
{
    (void)state;
    (void)value;
    return "cluster mode does not exist yet";
}

static const char *answer_help(struct parse_state *state, const char *value)
{
    (void)value;
    bench_usage_print(stdout);
    state->verdict = BENCH_PARSE_EXIT_OK;
    return NULL;
}

static const char *answer_version(struct parse_state *state, const char *value)
{
    (void)value;
    printf("%s %s\n", program_name(), program_version());
    state->verdict = BENCH_PARSE_EXIT_OK;
    return NULL;
}

static const struct option_row rows[] = {
    {"-h", true, apply_host},
    {"-p", true, apply_port},
    {"-s", true, apply_socket},
    {"-u", true, apply_uri},
    {"-a", true, apply_password},
    {"--user", true, apply_user},
    {"--dbnum", true, apply_dbnum},
    {"-3", false, apply_resp3},
    {"--enable-tracking", false, apply_tracking},
    {"-c", true, apply_clients},
    {"--threads", true, apply_threads},
    {"-n", true, apply_requests},
    {"-d", true, apply_data_size},
    {"-P", true, apply_pipeline},
    {"-k", true, apply_keepalive},
    {"-r", true, apply_random},
    {"--sequential", false, apply_sequential},
    {"--seed", true, apply_seed},
    {"-t", true, apply_tests},
    {"--mix", true, apply_mix},
    {"--duration", true, apply_duration},
    {"--rate", true, apply_rate},
    {"-l", false, apply_loop},
    {"-I", false, apply_idle},
    {"-x", false, apply_stdin},
    {"-e", false, apply_errors},
    {"-q", false, apply_quiet},
    {"--csv", false, apply_csv},
    {"--json", false, apply_json},
    {"--precision", true, apply_precision},
    {"--help", false, answer_help},
    {"--version", false, answer_version},
    {"-v", false, answer_version},
    {"--cluster", false, refuse_cluster},
    {"--tls", false, NULL},
    {"--sni", true, NULL},
    {"--cacert", true, NULL},
    {"--cacertdir", true, NULL},
    {"--insecure", false, NULL},
    {"--cert", true, NULL},
    {"--key", true, NULL},
    {"--tls-ciphers", true, NULL},
    {"--tls-ciphersuites", true, NULL},
};

static const struct option_row *row_find(const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

static enum bench_parse complain(const char *option, const char *wrong)
{
    fprintf(stderr, "%s: %s\n%s --help lists the options.\n", option, wrong, program_name());
    return BENCH_PARSE_EXIT_ERROR;
}

/* What can only be judged when all options are read. */
static enum bench_parse options_combine(struct parse_state *state)
{
    struct bench_options *options = state->options;
    if (options->duration_ns > 0 && !state->requests_given) {
        options->requests = 0;
    }
    if (options->target.user != NULL && options->target.password == NULL) {
        return complain("--user", "a user needs a password (-a)");
    }
    const char *wrong = bench_target_prepare(&options->target);
    if (wrong != NULL) {
        return complain("--tls", wrong);
    }
    if (options->sequential && !options->random) {
        return complain("--sequential", "numbers in order need a key space (-r)");
    }
    if (options->rate > 0 && !options->keepalive) {
        return complain("--rate", "a rate needs connections that are kept (-k 1)");
    }
    if (options->last_from_stdin && options->argc == 0) {
        return complain("-x", "standard input is the last argument of a command, which is missing");
    }
    if (options->mix != NULL && options->argc > 0) {
        return complain("--mix", "a mix and a command exclude each other");
    }
    if (options->threads > options->clients) {
        options->threads = options->clients;
    }
    return BENCH_PARSE_RUN;
}

enum bench_parse bench_options_parse(struct bench_options *options, int argc, char **argv)
{
    assert(options != NULL && argc > 0 && argv != NULL);
    *options = (struct bench_options){
        .clients = DEFAULT_CLIENTS,
        .requests = DEFAULT_REQUESTS,
        .data_size_bytes = DEFAULT_DATA_BYTES,
        .keepalive = true,
        .pipeline = 1,
        .precision = DEFAULT_PRECISION,
    };
    struct parse_state state = {.options = options, .verdict = BENCH_PARSE_RUN};
    if (bench_target_init(&options->target) != 0) {
        return complain(argv[0], out_of_memory);
    }
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const struct option_row *row = row_find(argv[i]);
        const char *wrong;
        if (row == NULL) {
            wrong = "there is no such option";
        } else if (row->takes_value && i + 1 == argc) {
            wrong = "a value must follow";
        } else {
            const char *value = row->takes_value ? argv[i + 1] : NULL;
            bool is_tls = secure_wish_take(&options->target.tls, argv[i], value);
            wrong = is_tls ? NULL : row->apply(&state, value);
        }
        if (wrong != NULL) {
            return complain(argv[i], wrong);
        }
        if (state.verdict != BENCH_PARSE_RUN) {
            return state.verdict;
        }
        i += row->takes_value;
    }
    options->argc = argc - i;
    options->argv = argv + i;
    return options_combine(&state);
}

void bench_options_deinit(struct bench_options *options)
{
    assert(options != NULL);
    bench_target_deinit(&options->target);
}
