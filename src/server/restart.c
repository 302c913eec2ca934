/* See restart.h. */
#include "server/restart.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/fork_child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Tells the new program that it is one, and how long it is to wait. */
#define DELAY_VARIABLE "KEYDB_RESTART_DELAY_MS"
#define OOM_PATH "/proc/self/oom_score_adj"
#define SIGNALS_MAX 65

static struct {
    char program[PATH_MAX], directory[PATH_MAX];
    char **argv;
    int argc;
    bool was;
    sigset_t mask;
    bool ignored[SIGNALS_MAX];
    cpu_set_t cores;
    bool has_cores;
    char oom[16]; /* empty: not known */
    int64_t wished_ms;
    bool is_wished;
} begin;

/* ---- the start ---- */

static size_t read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, size - 1) : 0;
    if (fd >= 0) {
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

/* Children of the program before, which nobody knows any more. */
static void end_children(void)
{
    char path[64], text[256];
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    while (read_text(path, text, sizeof(text)) > 0) {
        int child = (int)strtol(text, NULL, 10);
        if (child <= 0) {
            break;
        }
        fork_child_kill(&child);
    }
}

static void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) < 0 && errno == EINTR) {
    }
}

static void begin_again(const char *delay)
{
    int64_t ms = strtoll(delay, NULL, 10);
    begin.was = true;
    unsetenv(DELAY_VARIABLE);
    end_children();
    sleep_ms(ms > 0 ? ms : 0);
}

static void note_signals(void)
{
    sigprocmask(SIG_SETMASK, NULL, &begin.mask);
    for (int i = 1; i < SIGNALS_MAX; i++) {
        struct sigaction action;
        begin.ignored[i] = sigaction(i, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
    }
}

void restart_setup(int argc, char **argv)
{
    const char *delay = getenv(DELAY_VARIABLE);
    ssize_t len = readlink("/proc/self/exe", begin.program, sizeof(begin.program) - 1);
    begin.program[len > 0 ? len : 0] = '\0';
    if (!getcwd(begin.directory, sizeof(begin.directory))) {
        begin.directory[0] = '\0';
    }
    begin.argv = mem_alloc((size_t)(argc + 1) * sizeof(char *));
    for (int i = 0; i < argc; i++) {
        begin.argv[i] = mem_dup(argv[i], strlen(argv[i]));
    }
    begin.argv[argc] = NULL;
    begin.argc = argc;
    note_signals();
    begin.has_cores = sched_getaffinity(0, sizeof(begin.cores), &begin.cores) == 0;
    read_text(OOM_PATH, begin.oom, sizeof(begin.oom));
    if (delay) {
        begin_again(delay);
    }
}

void restart_teardown(void)
{
    for (int i = 0; i < begin.argc; i++) {
        mem_free(begin.argv[i]);
    }
    mem_free(begin.argv);
    begin.argv = NULL;
    begin.argc = 0;
}

bool restart_was(void)
{
    return begin.was;
}

/* ---- the end ---- */

bool restart_is_possible(const char **error)
{
    if (begin.argc > 1 && strcmp(begin.argv[begin.argc - 1], "-") == 0) {
        *error = "ERR the configuration came from standard input, which cannot be read again";
        return false;
    }
    if (!begin.program[0] || access(begin.program, X_OK) < 0 || !begin.directory[0]) {
        *error = "ERR the program or the directory it was started in is not there any more";
        return false;
    }
    return true;
}

static void put_back_signals(void)
{
    for (int i = 1; i < SIGNALS_MAX; i++) {
        struct sigaction action = {.sa_handler = begin.ignored[i] ? SIG_IGN : SIG_DFL};
        sigaction(i, &action, NULL); /* those that cannot be changed never were */
    }
    pthread_sigmask(SIG_SETMASK, &begin.mask, NULL);
}

static void put_back_oom_score(void)
{
    int fd = begin.oom[0] ? open(OOM_PATH, O_WRONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (write(fd, begin.oom, strlen(begin.oom)) < 0) {
            log_verbose("oom_score_adj stays as it is: %s", strerror(errno));
        }
        close(fd);
    }
}

/* From here on only calls that need nothing of other threads, which may hold anything. */
void restart_now(int64_t delay_ms)
{
    char delay[32];
    snprintf(delay, sizeof(delay), "%" PRId64, delay_ms);
    if (setenv(DELAY_VARIABLE, delay, 1) < 0 || chdir(begin.directory) < 0) {
        log_warning("Cannot restart: %s", strerror(errno));
        unsetenv(DELAY_VARIABLE);
        return;
    }
    put_back_oom_score();
    if (begin.has_cores) {
        sched_setaffinity(0, sizeof(begin.cores), &begin.cores);
    }
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    put_back_signals();
    execve(begin.program, begin.argv, environ);
    log_warning("Cannot restart %s: %s", begin.program, strerror(errno));
    unsetenv(DELAY_VARIABLE);
}

void restart_wish(int64_t delay_ms)
{
    begin.wished_ms = delay_ms;
    begin.is_wished = true;
}

void restart_if_wished(void)
{
    if (begin.is_wished) {
        restart_now(begin.wished_ms);
    }
}
