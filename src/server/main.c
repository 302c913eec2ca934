/* keydb-server: the command line. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/program.h"
#include "engine/config.h"
#include "server/boot.h"
#include "server/build_info.h"
#include "server/proc_title.h"
#include "server/restart.h"
#include "server/system_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A configuration is a few kilobytes; more is some other file. */
#define STDIN_MAX_BYTES (16 * 1024 * 1024)
#define STDIN_CHUNK_BYTES (64 * 1024)

static const char usage[] =
    "Usage: %s [/path/to/keydb.conf] [--name value ...] [-]\n"
    "\n"
    "Every option of keydb.conf can be given as --name value ...; the command line wins over the\n"
    "file. With a last argument - lines from standard input come between the two.\n"
    "\n"
    "Options:\n"
    "  -v, --version   Print the version.\n"
    "  -h, --help      Print this text.\n"
    "  --check-system  Say what of this machine's settings harms a server. The status is 1 if\n"
    "                  something does.\n"
    "\n"
    "Examples:\n"
    "  keydb-server\n"
    "  keydb-server /etc/keydb/keydb.conf\n"
    "  keydb-server --port 7777 --server-threads 4\n"
    "  keydb-server /etc/keydb/keydb.conf --loglevel verbose\n";

/* Scripts look for the name that Redis's server has. */
static void print_version(void)
{
    printf("%s server v=%s sha=%s:0 malloc=%s bits=%zu build=%s\n",
           program_is_redis() ? "Redis" : "KeyDB", program_version(), build_git_sha(),
           mem_allocator_name(), sizeof(void *) * 8, build_id());
}

/* Whether a Sentinel is wanted: as in Redis by the name it is called by, or anywhere on the command
 * line. */
static bool is_sentinel_wanted(int argc, char **argv)
{
    bool wanted = strcmp(program_called(), "redis-sentinel") == 0 ||
                  strcmp(program_called(), "keydb-sentinel") == 0;
    for (int i = 1; i < argc; i++) {
        wanted |= strcmp(argv[i], "--sentinel") == 0;
    }
    return wanted;
}

/* Answers the arguments that are not about serving; -1 when there are none. */
static int answer_at_once(int argc, char **argv)
{
    const char *first = argc >= 2 ? argv[1] : "";
    if (strcmp(first, "-v") == 0 || strcmp(first, "--version") == 0) {
        print_version();
        return 0;
    }
    if (strcmp(first, "-h") == 0 || strcmp(first, "--help") == 0) {
        printf(usage, program_name());
        return 0;
    }
    if (strcmp(first, "--check-system") == 0) {
        return system_check_print() ? 0 : 1;
    }
    /* Whether the program was built with FLASH, as scripts ask KeyDB's. */
    if (strcmp(first, "--is-flash-enabled") == 0) {
        return 1;
    }
    if (strcmp(first, "--test-memory") == 0) {
        fprintf(stderr, "%s: %s does not exist yet\n", program_name(), first);
        return 1;
    }
    if (is_sentinel_wanted(argc, argv)) {
        fprintf(stderr, "%s: there is no Sentinel in keydb-server yet\n", program_called());
        return 1;
    }
    return -1;
}

/* An option's name or, where a value is due, a value that looks like one. */
static bool has_dashes(const char *arg)
{
    return strncmp(arg, "--", 2) == 0;
}

/* Whether the argument is a name alone: "--port", and not "--port 6379" in one. */
static bool is_one_word(const char *arg)
{
    struct slice words[2];
    struct buf scratch = {0};
    int count = option_split_line(slice_cstr(arg), words, 2, &scratch);
    buf_deinit(&scratch);
    return count == 1;
}

/* Writes "--name value ..." arguments as lines of a configuration file. What follows a name alone
 * is its value, also where it begins with dashes (passwords do). But as in Redis `--save` before
 * another name or at the end is `--save ""`: so do scripts spell an empty list. */
static void join_arguments(int argc, char **argv, struct buf *text)
{
    bool value_is_due = false;
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];
        if (!has_dashes(arg) || value_is_due) {
            buf_append_char(text, ' ');
            buf_append_quoted(text, slice_cstr(arg));
            value_is_due = false;
            continue;
        }
        buf_append_cstr(text, text->len ? "\n" : "");
        buf_append_cstr(text, arg + 2);
        value_is_due = is_one_word(arg);
        if ((i + 1 == argc || has_dashes(argv[i + 1])) &&
            slice_equal_nocase(slice_cstr(arg), "--save")) {
            buf_append_cstr(text, " \"\"");
            value_is_due = false;
        }
    }
}

/* What standard input holds, as lines of a configuration file. */
static bool load_standard_input(void)
{
    struct buf text = {0};
    ssize_t got;
    do {
        got = read(STDIN_FILENO, buf_reserve(&text, STDIN_CHUNK_BYTES), STDIN_CHUNK_BYTES);
        text.len += got > 0 ? (size_t)got : 0;
    } while (text.len <= STDIN_MAX_BYTES && (got > 0 || (got < 0 && errno == EINTR)));
    bool ok = got == 0;
    if (ok) {
        ok = config_load_text(buf_slice(&text), "standard input");
    } else {
        fprintf(stderr, "Fatal error, can't read the configuration from standard input: %s\n",
                strerror(got < 0 ? errno : EFBIG));
    }
    buf_deinit(&text);
    return ok;
}

/* The file, then standard input, then the command line: what is said later wins. */
static bool load_configuration(int argc, char **argv)
{
    int next = 1;
    if (next < argc && strncmp(argv[next], "--", 2) != 0) {
        if (!config_load_file(argv[next++])) {
            return false;
        }
    }
    bool from_stdin = argc > next && strcmp(argv[argc - 1], "-") == 0;
    if (from_stdin && !load_standard_input()) {
        return false;
    }
    struct buf text = {0};
    join_arguments(argc - next - from_stdin, argv + next, &text);
    bool ok = config_load_text(buf_slice(&text), "the command line");
    buf_deinit(&text);
    return ok;
}

#if KEYDB_DEBUG
/* Test seam of debug and sanitizer builds: allocations whose size a client chose fail above this
 * many bytes. */
static void obey_fail_above(void)
{
    const char *text = getenv("KEYDB_FAIL_ALLOCATIONS_ABOVE");
    if (text) {
        mem_fail_above(strtoull(text, NULL, 10));
    }
}
#endif

int main(int argc, char **argv)
{
    program_setup("keydb-server", argv[0]);
#if KEYDB_DEBUG
    obey_fail_above();
#endif
    int status = answer_at_once(argc, argv);
    if (status >= 0) {
        return status;
    }
    restart_setup(argc, argv);
    proc_title_setup(argc, argv);
    boot_prepare();
    if (!load_configuration(argc, argv)) {
        return 1;
    }
    status = boot_run();
    if (status == 0) {
        restart_if_wished();
    }
    restart_teardown();
    return status;
}
