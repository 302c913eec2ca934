/* See fork_child.h. */
#include "engine/fork_child.h"

#include "base/clock.h"
#include "base/inbox.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/spike.h"
#include "base/stats.h"
#include "engine/busy.h"
#include "engine/execute.h"
#include "engine/modules.h"
#include "engine/propagate.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* An exit status has eight bits. */
#define EXIT_MAX 255

/* Children of which modules have been told that they were born, at most. */
#define TOLD_MAX 16

static void (*begin_child)(enum child_kind kind);
static _Atomic int told[TOLD_MAX]; /* their pids; 0: free */
static bool is_child;
static _Atomic uint64_t latest_us;
static _Atomic bool module_runs;

uint64_t fork_child_latest_us(void)
{
    return atomic_load_explicit(&latest_us, memory_order_relaxed);
}

void fork_child_reset_stats(void)
{
    atomic_store_explicit(&latest_us, 0, memory_order_relaxed);
}

void fork_child_note_module(bool runs)
{
    atomic_store_explicit(&module_runs, runs, memory_order_relaxed);
}

bool fork_child_module_runs(void)
{
    return atomic_load_explicit(&module_runs, memory_order_relaxed);
}

bool fork_child_is_here(void)
{
    return is_child;
}

void fork_child_set_begin(void (*begin)(enum child_kind kind))
{
    begin_child = begin;
}

static void close_if_socket(int fd)
{
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) {
        close(fd);
    }
}

/* Without /proc: up to the limit. */
static void close_sockets(void)
{
    DIR *open_files = opendir("/proc/self/fd");
    if (!open_files) {
        long limit = sysconf(_SC_OPEN_MAX);
        for (int fd = 3; fd < limit; fd++) {
            close_if_socket(fd);
        }
        return;
    }
    const struct dirent *file;
    while ((file = readdir(open_files)) != NULL) {
        int fd = (int)strtol(file->d_name, NULL, 10);
        if (fd > 2 && fd != dirfd(open_files)) {
            close_if_socket(fd);
        }
    }
    closedir(open_files);
}

/* Connections that the server closes are to be closed, whatever this process does. */
static void close_files(int keep)
{
    if (keep == FORK_CHILD_KEEP_FILES) {
        close_sockets();
        return;
    }
    if (keep < 3) {
        close_range(3, ~0U, 0);
        return;
    }
    if (keep > 3) {
        close_range(3, (unsigned)keep - 1, 0);
    }
    close_range((unsigned)keep + 1, ~0U, 0);
}

/* Of a child that runs commands: nothing of it is heard outside. */
static void cut_off(void)
{
    log_set_role('C');
    inbox_mute_all();
    propagate_silence();
    call_set_observed(false);
    busy_be_alone();
}

bool fork_child_runs(enum child_kind kind)
{
    bool writes = kind == CHILD_SAVE || kind == CHILD_AOF_REWRITE || kind == CHILD_TRANSFER;
    return kind == CHILD_DEBUGGER || kind == CHILD_MODULE ||
           (writes && modules_want(MODULES_PERSISTENCE)) ||
           (modules_have_types && (writes || kind == CHILD_FULL_SYNC));
}

/* What the child does first. */
static void become_child(enum child_kind kind, int parent, int keep)
{
    is_child = true;
    if (fork_child_runs(kind)) {
        cut_off();
    } else {
        lock_forbid();
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(ECHILD);
    }
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    close_files(keep);
    if (begin_child) {
        begin_child(kind);
    }
}

static void tell_born(int pid)
{
    for (int i = 0; modules_want(MODULES_FORK_CHILD) && i < TOLD_MAX; i++) {
        int none = 0;
        if (atomic_compare_exchange_strong(&told[i], &none, pid)) {
            modules_news_later(MODULES_FORK_CHILD, 0);
            return;
        }
    }
}

/* (It may be the process that takes the server's place, of which nobody was told.) */
static void tell_died(int pid)
{
    for (int i = 0; i < TOLD_MAX; i++) {
        int expected = pid;
        if (atomic_compare_exchange_strong(&told[i], &expected, 0)) {
            modules_news_later(MODULES_FORK_CHILD, 1);
        }
    }
}

int fork_child(enum child_kind kind, int keep)
{
    int parent = (int)getpid();
    bool runs = fork_child_runs(kind);
    assert(!runs || keyspace_is_exclusive());
    uint64_t begin = spike_begin(), begin_us = clock_mono_us();
    if (runs) {
        lock_take_all();
    }
    int pid = (int)fork();
    int error = errno;
    if (runs) {
        lock_let_go_of_all();
    }
    if (pid == 0) {
        become_child(kind, parent, keep);
        return 0;
    }
    if (pid > 0) {
        atomic_store_explicit(&latest_us, clock_mono_us() - begin_us, memory_order_relaxed);
        stats_add(STAT_FORKS, 1);
        if (kind != CHILD_DEBUGGER) {
            tell_born(pid);
        }
    }
    spike_end("fork", begin);
    errno = error;
    return pid;
}

/* ---- its end ---- */

void fork_child_exit(int error)
{
    _exit(error < 0 || error > EXIT_MAX ? EIO : error);
}

static struct child_end end_of(int status)
{
    if (WIFSIGNALED(status)) {
        return (struct child_end){EINTR, WTERMSIG(status)};
    }
    return (struct child_end){WEXITSTATUS(status), 0};
}

/* Waits, or looks with WNOHANG; false: it runs. */
static bool reap(int *pid, int options, struct child_end *end)
{
    int status, got;
    assert(*pid > 0);
    do {
        got = (int)waitpid(*pid, &status, options);
    } while (got < 0 && errno == EINTR);
    if (got == 0) {
        return false;
    }
    *end = got < 0 ? (struct child_end){errno, 0} : end_of(status);
    tell_died(*pid);
    *pid = 0;
    return true;
}

bool fork_child_has_ended(int *pid, struct child_end *end)
{
    return *pid != 0 && reap(pid, WNOHANG, end);
}

struct child_end fork_child_wait(int *pid)
{
    struct child_end end = {0, 0};
    (void)reap(pid, 0, &end);
    return end;
}

void fork_child_kill(int *pid)
{
    if (*pid != 0) {
        kill(*pid, SIGKILL);
        (void)fork_child_wait(pid);
    }
}

const char *fork_child_why(struct child_end end)
{
    return end.signal ? "it was killed" : strerror(end.error);
}
