/* keydb-server: the command line. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/version.h"
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
    "Usage: keydb-server [/path/to/keydb.conf] [options] [-]\n"
    "       keydb-server - (read the configuration from standard input)\n"
    "       keydb-server -v or --version\n"
    "       keydb-server -h or --help\n"
    "       keydb-server --check-system\n"
    "\n"
    "Every option of keydb.conf can be given as --name value ...; the command line wins over the\n"
    "file. With a last argument - lines from standard input come between the two.\n"
    "\n"
    "Examples:\n"
    "       keydb-server\n"
    "       keydb-server /etc/keydb/keydb.conf\n"
    "       keydb-server --port 7777 --server-threads 4\n"
    "       keydb-server /etc/keydb/keydb.conf --loglevel verbose\n";

static void print_version(void)
{
    printf("KeyDB server v=%s sha=%s:0 malloc=%s bits=%zu build=%s\n", KEYDB_VERSION,
           build_git_sha(), mem_allocator_name(), sizeof(void *) * 8, build_id());
}

/* Answers the arguments that are not about serving; -1 when there are none. */
static int answer_at_once(int argc, char **argv)
{
    const char *first = argc == 2 ? argv[1] : "";
    if (strcmp(first, "-v") == 0 || strcmp(first, "--version") == 0) {
        print_version();
        return 0;
    }
    if (strcmp(first, "-h") == 0 || strcmp(first, "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (strcmp(first, "--check-system") == 0) {
        return system_check_print() ? 0 : 1;
    }
    /* Whether the program was built with FLASH, as scripts ask KeyDB's. */
    if (strcmp(first, "--is-flash-enabled") == 0) {
        return 1;
    }
    if (argc >= 2 &&
        (strcmp(argv[1], "--test-memory") == 0 || strcmp(argv[1], "--sentinel") == 0)) {
        fprintf(stderr, "keydb-server: %s does not exist yet\n", argv[1]);
        return 1;
    }
    return -1;
}

static bool is_option_name(const char *arg)
{
    return strncmp(arg, "--", 2) == 0 && arg[2];
}

/* Writes "--name value ..." arguments as lines of a configuration file. As in Redis `--save` alone
 * is `--save ""`. */
static void join_arguments(int argc, char **argv, struct buf *text)
{
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];
        if (is_option_name(arg)) {
            bool is_last = i + 1 == argc || is_option_name(argv[i + 1]);
            buf_append_cstr(text, text->len ? "\n" : "");
            buf_append_cstr(text, arg + 2);
            buf_append_cstr(text, is_last && strcmp(arg, "--save") == 0 ? " \"\"" : "");
        } else {
            buf_append_char(text, ' ');
            buf_append_quoted(text, slice_cstr(arg));
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
