/* The command line: see options.h. Each option is a row of the table; nothing else knows them. */
#include "tools/cli/options.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/program.h"
#include "tools/cli/number.h"
#include "tools/cli/usage.h"
#include "tools/common/text.h"

/* A cursor is an unsigned number of 64 bits. */
#define CURSOR_DIGITS_MAX 20

/* More than a person reads, and still nothing for the memory. */
#define TOP_MAX 1000000

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

/* What an option takes. */
enum option_kind {
    OPTION_FLAG,
    OPTION_VALUE,
    OPTION_REFUSED, /* exists in redis-cli or KeyDB's only */
};

struct option_row {
    const char *name;
    enum option_kind kind;
    /* value NULL for flags; itself NULL for TLS's options, which tools/common/secure.h knows */
    void (*apply)(struct options *o, const char *value);
};

/* ---- where to ---- */

static void apply_host(struct options *o, const char *value)
{
    o->host = value;
}

static void apply_port(struct options *o, const char *value)
{
    long long port;
    if (!number_parse(value, 1, 65535, &port)) {
        die("Invalid server port.");
    }
    o->port = (int)port;
}

static void apply_socket(struct options *o, const char *value)
{
    o->unix_path = value;
}

static void apply_db(struct options *o, const char *value)
{
    long long db;
    if (!number_parse(value, 0, INT_MAX, &db)) {
        die("Invalid database number '%s'.", value);
    }
    o->db = (int)db;
}

static void apply_password(struct options *o, const char *value)
{
    o->password = value;
    o->password_on_command_line = true;
}

static void apply_user(struct options *o, const char *value)
{
    o->user = value;
}

static void apply_uri(struct options *o, const char *value)
{
    struct uri *uri = &o->uri;
    uri_deinit(uri);
    const char *wrong = uri_parse(value, uri);
    if (wrong != NULL) {
        die("%s", wrong);
    }
    if (uri->user != NULL) {
        o->user = uri->user;
    }
    if (uri->password != NULL) {
        apply_password(o, uri->password);
    }
    if (uri->host != NULL) {
        o->host = uri->host;
    }
    if (uri->port != 0) {
        o->port = uri->port;
    }
    if (uri->unix_path != NULL) {
        o->unix_path = uri->unix_path;
    }
    if (uri->db >= 0) {
        o->db = uri->db;
    }
    o->tls.wanted |= uri->secure;
}

static void apply_ask_password(struct options *o, const char *value)
{
    (void)value;
    o->ask_password = true;
}

static void apply_no_auth_warning(struct options *o, const char *value)
{
    (void)value;
    o->no_auth_warning = true;
}

/* KeyDB's: there is no message of the day to leave out. */
static void apply_no_motd(struct options *o, const char *value)
{
    (void)o;
    (void)value;
}

static void apply_protocol(struct options *o, enum protocol_wish wish)
{
    if (o->protocol != PROTOCOL_DEFAULT && o->protocol != wish) {
        die("Options -2 and -3 are mutually exclusive.");
    }
    o->protocol = wish;
}

static void apply_resp2(struct options *o, const char *value)
{
    (void)value;
    apply_protocol(o, PROTOCOL_RESP2);
}

static void apply_resp3(struct options *o, const char *value)
{
    (void)value;
    apply_protocol(o, PROTOCOL_RESP3);
}

static void apply_cluster(struct options *o, const char *value)
{
    (void)value;
    o->cluster = true;
}

/* ---- what ---- */

static void apply_repeat(struct options *o, const char *value)
{
    if (!number_parse(value, LLONG_MIN, LLONG_MAX, &o->repeat)) {
        die("Invalid repeat count '%s'.", value);
    }
    o->repeat_given = true;
}

static void apply_interval(struct options *o, const char *value)
{
    if (!number_parse_seconds(value, &o->interval_us)) {
        die("Invalid interval '%s'.", value);
    }
    o->interval_given = true;
}

static void apply_stdin_last(struct options *o, const char *value)
{
    (void)value;
    o->stdin_last_arg = true;
}

static void apply_stdin_tag(struct options *o, const char *value)
{
    o->stdin_tag = value;
}

static void apply_quoted_input(struct options *o, const char *value)
{
    (void)value;
    o->quoted_input = true;
}

static void apply_eval(struct options *o, const char *value)
{
    o->mode = MODE_EVAL;
    o->eval_path = value;
}

static void apply_ldb(struct options *o, const char *value)
{
    (void)value;
    o->ldb = true;
}

static void apply_ldb_sync(struct options *o, const char *value)
{
    (void)value;
    o->ldb = o->ldb_sync = true;
}

static void apply_pattern(struct options *o, const char *value)
{
    free(o->pattern);
    o->pattern = tool_strdup(value);
    o->pattern_len = strlen(value);
}

/* Reads `text` as one quoted string when it starts with a quote, else takes it as it is. */
static bool unquote(const char *text, struct word *out)
{
    struct words words;
    if (text[0] != '"' && text[0] != '\'') {
        out->data = tool_strdup(text);
        out->len = strlen(text);
        return true;
    }
    if (!words_split(text, strlen(text), &words)) {
        return false;
    }
    bool one = words.count == 1;
    if (one) {
        out->data = tool_copy(words.list[0].data, words.list[0].len);
        out->len = words.list[0].len;
    }
    words_deinit(&words);
    return one;
}

static void apply_quoted_pattern(struct options *o, const char *value)
{
    struct word word;
    if (!unquote(value, &word)) {
        die("Invalid quoted string specified for --quoted-pattern.");
    }
    free(o->pattern);
    o->pattern = word.data;
    o->pattern_len = word.len;
}

static void apply_count(struct options *o, const char *value)
{
    if (!number_parse(value, 1, LLONG_MAX, &o->scan_count)) {
        die("Invalid count '%s'.", value);
    }
}

/* MEMORY USAGE's SAMPLES; 0 is all elements. */
static void apply_samples(struct options *o, const char *value, enum cli_mode mode)
{
    if (!number_parse(value, 0, LLONG_MAX, &o->memory_samples)) {
        die("Invalid number of samples '%s'.", value);
    }
    o->mode = mode;
}

static void apply_memkeys_samples(struct options *o, const char *value)
{
    apply_samples(o, value, MODE_MEMKEYS);
}

static void apply_keystats_samples(struct options *o, const char *value)
{
    apply_samples(o, value, MODE_KEYSTATS);
}

static void apply_cursor(struct options *o, const char *value)
{
    size_t digits = strspn(value, "0123456789");
    if (digits == 0 || digits > CURSOR_DIGITS_MAX || value[digits] != '\0') {
        die("Invalid cursor '%s'.", value);
    }
    o->cursor = value;
}

static void apply_top(struct options *o, const char *value)
{
    if (!number_parse(value, 0, TOP_MAX, &o->top)) {
        die("Invalid number of top keys '%s'.", value);
    }
}

static void apply_rdb(struct options *o, const char *value)
{
    o->mode = MODE_RDB;
    o->rdb_path = value;
}

static void apply_functions_rdb(struct options *o, const char *value)
{
    o->mode = MODE_FUNCTIONS_RDB;
    o->rdb_path = value;
}

static void apply_lru_test(struct options *o, const char *value)
{
    if (!number_parse(value, 1, INT_MAX, &o->lru_keys)) {
        die("Invalid number of keys '%s'.", value);
    }
    o->mode = MODE_LRU_TEST;
}

static void apply_intrinsic_latency(struct options *o, const char *value)
{
    if (!number_parse(value, 1, INT_MAX, &o->intrinsic_s)) {
        die("Invalid number of seconds '%s'.", value);
    }
    o->mode = MODE_INTRINSIC_LATENCY;
}

static void apply_pipe_timeout(struct options *o, const char *value)
{
    long long seconds;
    if (!number_parse(value, 0, INT_MAX / 1000, &seconds)) {
        die("Invalid pipe timeout '%s'.", value);
    }
    o->pipe_timeout_s = (int)seconds;
}

/* ---- how to print ---- */

static void set_output(struct options *o, enum output_style style)
{
    o->output = style;
    o->output_given = true;
}

static void apply_raw(struct options *o, const char *value)
{
    (void)value;
    set_output(o, OUTPUT_RAW);
}

static void apply_no_raw(struct options *o, const char *value)
{
    (void)value;
    set_output(o, OUTPUT_TTY);
}

static void apply_csv(struct options *o, const char *value)
{
    (void)value;
    set_output(o, OUTPUT_CSV);
}

static void apply_json(struct options *o, const char *value)
{
    (void)value;
    set_output(o, OUTPUT_JSON);
}

static void apply_quoted_json(struct options *o, const char *value)
{
    (void)value;
    set_output(o, OUTPUT_QUOTED_JSON);
}

static void apply_element_delimiter(struct options *o, const char *value)
{
    o->element_delimiter = value;
}

static void apply_command_delimiter(struct options *o, const char *value)
{
    o->command_delimiter = value;
}

static void apply_show_pushes(struct options *o, const char *value)
{
    if (value[0] == 'y' || value[0] == 'Y') {
        o->show_pushes = true;
    } else if (value[0] == 'n' || value[0] == 'N') {
        o->show_pushes = false;
    } else {
        fprintf(stderr, "Unknown --show-pushes value '%s' (valid: '[y]es', '[n]o')\n", value);
    }
}

static void apply_fail_on_error(struct options *o, const char *value)
{
    (void)value;
    o->fail_on_error = true;
}

static void apply_verbose(struct options *o, const char *value)
{
    (void)value;
    o->verbose = true;
}

static void apply_mono(struct options *o, const char *value)
{
    (void)value;
    o->mono = true;
}

static void apply_help(struct options *o, const char *value)
{
    (void)o;
    (void)value;
    cli_usage_print();
    exit(0);
}

static void apply_version(struct options *o, const char *value)
{
    (void)o;
    (void)value;
    printf("%s %s\n", program_name(), program_version());
    exit(0);
}

static const struct option_row option_rows[] = {
    {"-h", OPTION_VALUE, apply_host},
    {"-p", OPTION_VALUE, apply_port},
    {"-s", OPTION_VALUE, apply_socket},
    {"-n", OPTION_VALUE, apply_db},
    {"-a", OPTION_VALUE, apply_password},
    {"--pass", OPTION_VALUE, apply_password},
    {"--user", OPTION_VALUE, apply_user},
    {"-u", OPTION_VALUE, apply_uri},
    {"--askpass", OPTION_FLAG, apply_ask_password},
    {"--no-auth-warning", OPTION_FLAG, apply_no_auth_warning},
    {"-2", OPTION_FLAG, apply_resp2},
    {"-3", OPTION_FLAG, apply_resp3},
    {"-c", OPTION_FLAG, apply_cluster},
    {"-r", OPTION_VALUE, apply_repeat},
    {"-i", OPTION_VALUE, apply_interval},
    {"-x", OPTION_FLAG, apply_stdin_last},
    {"-X", OPTION_VALUE, apply_stdin_tag},
    {"--quoted-input", OPTION_FLAG, apply_quoted_input},
    {"--eval", OPTION_VALUE, apply_eval},
    {"--pattern", OPTION_VALUE, apply_pattern},
    {"--quoted-pattern", OPTION_VALUE, apply_quoted_pattern},
    {"--count", OPTION_VALUE, apply_count},
    {"--pipe-timeout", OPTION_VALUE, apply_pipe_timeout},
    {"--raw", OPTION_FLAG, apply_raw},
    {"--no-raw", OPTION_FLAG, apply_no_raw},
    {"--csv", OPTION_FLAG, apply_csv},
    {"--json", OPTION_FLAG, apply_json},
    {"--quoted-json", OPTION_FLAG, apply_quoted_json},
    {"-d", OPTION_VALUE, apply_element_delimiter},
    {"-D", OPTION_VALUE, apply_command_delimiter},
    {"--show-pushes", OPTION_VALUE, apply_show_pushes},
    {"-e", OPTION_FLAG, apply_fail_on_error},
    {"--verbose", OPTION_FLAG, apply_verbose},
    {"--help", OPTION_FLAG, apply_help},
    {"--version", OPTION_FLAG, apply_version},
    {"-v", OPTION_FLAG, apply_version},
    {"--tls", OPTION_FLAG, NULL},
    {"--sni", OPTION_VALUE, NULL},
    {"--cacert", OPTION_VALUE, NULL},
    {"--cacertdir", OPTION_VALUE, NULL},
    {"--insecure", OPTION_FLAG, NULL},
    {"--cert", OPTION_VALUE, NULL},
    {"--key", OPTION_VALUE, NULL},
    {"--tls-ciphers", OPTION_VALUE, NULL},
    {"--tls-ciphersuites", OPTION_VALUE, NULL},
    {"--cluster", OPTION_REFUSED, NULL},
    {"--force", OPTION_REFUSED, NULL},
    {"--no-motd", OPTION_FLAG, apply_no_motd},
    {"--mono", OPTION_FLAG, apply_mono},
    {"--rdb", OPTION_VALUE, apply_rdb},
    {"--functions-rdb", OPTION_VALUE, apply_functions_rdb},
    {"--memkeys-samples", OPTION_VALUE, apply_memkeys_samples},
    {"--keystats-samples", OPTION_VALUE, apply_keystats_samples},
    {"--cursor", OPTION_VALUE, apply_cursor},
    {"--top", OPTION_VALUE, apply_top},
    {"--lru-test", OPTION_VALUE, apply_lru_test},
    {"--intrinsic-latency", OPTION_VALUE, apply_intrinsic_latency},
    {"--ldb", OPTION_FLAG, apply_ldb},
    {"--ldb-sync-mode", OPTION_FLAG, apply_ldb_sync},
};

/* Flags that say what to do, and nothing else; of several the last holds. */
static const struct {
    const char *name;
    enum cli_mode mode;
} mode_rows[] = {
    {"--scan", MODE_SCAN},         {"--stat", MODE_STAT},
    {"--latency", MODE_LATENCY},   {"--latency-history", MODE_LATENCY_HISTORY},
    {"--pipe", MODE_PIPE},         {"--replica", MODE_REPLICA},
    {"--slave", MODE_REPLICA},     {"--bigkeys", MODE_BIGKEYS},
    {"--memkeys", MODE_MEMKEYS},   {"--hotkeys", MODE_HOTKEYS},
    {"--keystats", MODE_KEYSTATS}, {"--latency-dist", MODE_LATENCY_DIST},
};

static bool take_mode(struct options *o, const char *name)
{
    for (size_t i = 0; i < sizeof(mode_rows) / sizeof(mode_rows[0]); i++) {
        if (strcmp(mode_rows[i].name, name) == 0) {
            o->mode = mode_rows[i].mode;
            return true;
        }
    }
    return false;
}

static const struct option_row *find_row(const char *name)
{
    for (size_t i = 0; i < sizeof(option_rows) / sizeof(option_rows[0]); i++) {
        if (strcmp(option_rows[i].name, name) == 0) {
            return &option_rows[i];
        }
    }
    return NULL;
}

static void set_defaults(struct options *o)
{
    memset(o, 0, sizeof(*o));
    o->host = "127.0.0.1";
    o->port = 6379;
    o->repeat = 1;
    o->element_delimiter = "\n";
    o->command_delimiter = "\n";
    o->pipe_timeout_s = 30;
    o->memory_samples = -1;
    o->cursor = "0";
    o->top = 10;
    bool terminal = isatty(STDOUT_FILENO) != 0;
    o->output = terminal || getenv("FAKETTY") != NULL ? OUTPUT_TTY : OUTPUT_RAW;
    o->show_pushes = terminal;
    o->password = getenv("REDISCLI_AUTH");
    if (o->password != NULL && o->password[0] == '\0') {
        o->password = NULL;
    }
}

static void check_combinations(const struct options *o)
{
    if (o->ldb && o->eval_path == NULL) {
        die("Options --ldb and --ldb-sync-mode require --eval.\n"
            "Try %s --help for more information.",
            program_name());
    }
    if (o->stdin_last_arg && o->stdin_tag != NULL) {
        die("Options -x and -X are mutually exclusive.");
    }
    if (o->password_on_command_line && !o->no_auth_warning && !o->ask_password) {
        fprintf(stderr, "Warning: Using a password with '-a' or '-u' option on the command line "
                        "interface may not be safe.\n");
    }
}

/* Copies the words that are left after the options. */
static void take_command(struct options *o, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        struct word word = {argv[i], strlen(argv[i])};
        bool quoted = o->quoted_input;
        if (quoted && !unquote(argv[i], &word)) {
            printf("Invalid quoted string\n");
            exit(1);
        }
        words_add(&o->command, word.data, word.len);
        if (quoted) {
            free(word.data);
        }
    }
}

void cli_options_parse(struct options *o, int argc, char **argv)
{
    set_defaults(o);
    int i = 1;
    while (i < argc && argv[i][0] == '-') {
        if (take_mode(o, argv[i])) {
            i++;
            continue;
        }
        const struct option_row *row = find_row(argv[i]);
        bool last = i == argc - 1;
        if (row != NULL && row->kind == OPTION_REFUSED) {
            die("%s: %s does not exist yet", program_name(), argv[i]);
        }
        if (strcmp(argv[i], "-h") == 0 && last) {
            apply_help(o, NULL);
        }
        if (row == NULL || (row->kind == OPTION_VALUE && last)) {
            die("Unrecognized option or bad number of args for: '%s'", argv[i]);
        }
        const char *value = row->kind == OPTION_VALUE ? argv[i + 1] : NULL;
        if (!secure_wish_take(&o->tls, argv[i], value)) {
            row->apply(o, value);
        }
        i += row->kind == OPTION_VALUE ? 2 : 1;
    }
    check_combinations(o);
    take_command(o, argc - i, argv + i);
}

void cli_options_deinit(struct options *o)
{
    uri_deinit(&o->uri);
    words_deinit(&o->command);
    free(o->pattern);
}
