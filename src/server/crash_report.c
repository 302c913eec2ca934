/* See crash_report.h. */
#include "server/crash_report.h"

#include "base/log.h"
#include "base/stats.h"
#include "base/thread.h"
#include "base/version.h"
#include "engine/execute.h"
#include "engine/info.h"
#include "engine/modules.h"
#include "engine/redact.h"
#include "net/client.h"
#include "server/build_info.h"
#include "server/sections.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define LINE_BYTES 1024
#define FRAMES_MAX 64
/* Of the command: so many arguments, and bytes of each. */
#define ARGUMENTS_MAX 16
#define ARGUMENT_BYTES 128

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

static struct {
    bool enabled, exits; /* the options */
    bool installed;
    struct sigaction before[SIGNAL_COUNT];
    _Atomic long reporter; /* the thread that writes the report */
    char build[64];        /* made at boot: the handler calls nothing for it */
    int64_t start_s;
} crash;

/* ---- a line at a time ---- */

struct line {
    char text[LINE_BYTES];
    size_t len;
};

static void put_bytes(struct line *l, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len && l->len < sizeof(l->text) - 1; i++) {
        l->text[l->len++] = bytes[i];
    }
}

static void put(struct line *l, const char *text)
{
    put_bytes(l, text, strlen(text));
}

static void put_number(struct line *l, uint64_t value, unsigned base)
{
    char digits[20];
    int count = 0;
    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    while (count > 0) {
        put_bytes(l, &digits[--count], 1);
    }
}

static void put_hex(struct line *l, uint64_t value)
{
    put(l, "0x");
    put_number(l, value, 16);
}

/* Bytes that are no printable ASCII as \xHH. */
static void put_escaped(struct line *l, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x20 && c < 0x7f) {
            put_bytes(l, &bytes[i], 1);
        } else {
            put(l, c < 16 ? "\\x0" : "\\x");
            put_number(l, c, 16);
        }
    }
}

static void end_line(struct line *l)
{
    l->text[l->len++] = '\n';
    log_raw(l->text, l->len);
    l->len = 0;
}

static void put_figure(struct line *l, const char *name, uint64_t value)
{
    put(l, name);
    put(l, ":");
    put_number(l, value, 10);
    end_line(l);
}

/* ---- the report ---- */

static const char *signal_name(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGFPE:
        return "SIGFPE";
    case SIGILL:
        return "SIGILL";
    default:
        return "SIGABRT";
    }
}

static uint64_t instruction_pointer(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uint64_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return context->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

static void report_signal(int number, const siginfo_t *info, const ucontext_t *context)
{
    struct line l = {.len = 0};
    put(&l, "=== KEYDB CRASH REPORT begins: keydb-server " KEYDB_VERSION " ");
    put(&l, crash.build);
    put(&l, " ===");
    end_line(&l);
    put(&l, "Process ");
    put_number(&l, (uint64_t)getpid(), 10);
    put(&l, ", thread ");
    put_number(&l, (uint64_t)syscall(SYS_gettid), 10);
    put(&l, ": crashed by signal ");
    put_number(&l, (uint64_t)number, 10);
    put(&l, " (");
    put(&l, signal_name(number));
    put(&l, "), code ");
    put(&l, info->si_code < 0 ? "-" : "");
    put_number(&l, (uint64_t)llabs(info->si_code), 10);
    end_line(&l);
    if (info->si_code > 0) {
        put(&l, "Address that was accessed: ");
        put_hex(&l, (uint64_t)(uintptr_t)info->si_addr);
        end_line(&l);
    } else {
        put(&l, "Sent by process ");
        put_number(&l, (uint64_t)info->si_pid, 10);
        end_line(&l);
    }
    put(&l, "Instruction: ");
    put_hex(&l, instruction_pointer(context));
    end_line(&l);
}

/* Frames as "program(function+offset)": addr2line -e names the line. */
static void report_backtrace(void)
{
    struct line l = {.len = 0};
    void *frames[FRAMES_MAX];
    put(&l, "--- Backtrace (addr2line -Cfe <program> <offset> tells the line)");
    end_line(&l);
    int count = backtrace(frames, FRAMES_MAX);
    int fd = log_raw_open();
    if (fd >= 0) {
        backtrace_symbols_fd(frames, count, fd);
        log_raw_close(fd);
    }
}

static void report_command(void)
{
    struct line l = {.len = 0};
    const struct call *c = call_running;
    put(&l, "--- The command of this thread");
    end_line(&l);
    if (modules_running) { /* its code, or a command that it has called */
        put(&l, "within module ");
        put(&l, modules_running);
        end_line(&l);
    }
    if (!c) {
        put(&l, "none");
        end_line(&l);
        return;
    }
    put(&l, "client id=");
    put_number(&l, c->session->id, 10);
    put(&l, " addr=");
    put(&l, c->session->peer);
    put(&l, " db=");
    put_number(&l, (uint64_t)c->session->db_index, 10);
    put(&l, " cmd=");
    put(&l, c->cmd->full_name);
    end_line(&l);
    for (int i = 0; i < c->argc && i < ARGUMENTS_MAX; i++) {
        size_t len = c->argv[i].len < ARGUMENT_BYTES ? c->argv[i].len : ARGUMENT_BYTES;
        put(&l, "argv[");
        put_number(&l, (uint64_t)i, 10);
        put(&l, "] (");
        put_number(&l, c->argv[i].len, 10);
        put(&l, " bytes): ");
        if (call_argument_is_sensitive(c, i)) {
            put(&l, REDACTED_TEXT);
        } else {
            put_escaped(&l, c->argv[i].ptr, len);
        }
        end_line(&l);
    }
    if (c->argc > ARGUMENTS_MAX) {
        put(&l, "and more arguments: ");
        put_number(&l, (uint64_t)(c->argc - ARGUMENTS_MAX), 10);
        end_line(&l);
    }
}

/* A thread's line: its number, and its name as the system keeps it. */
static void report_thread(const char *tid)
{
    struct line l = {.len = 0};
    char path[64] = "/proc/self/task/", name[32];
    size_t used = strlen(path);
    for (size_t i = 0; tid[i] && used < sizeof(path) - sizeof("/comm"); i++) {
        path[used++] = tid[i];
    }
    memcpy(path + used, "/comm", sizeof("/comm"));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, name, sizeof(name)) : 0;
    if (fd >= 0) {
        close(fd);
    }
    put(&l, "thread ");
    put(&l, tid);
    put(&l, " ");
    put_escaped(&l, name, got > 1 ? (size_t)got - 1 : 0);
    end_line(&l);
}

/* By the system call itself: opendir() allocates. */
static void report_threads(void)
{
    struct line l = {.len = 0};
    char entries[4096] ALIGNED(16);
    put(&l, "--- Threads");
    end_line(&l);
    int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (long got = 1; fd >= 0 && got > 0;) {
        got = syscall(SYS_getdents64, fd, entries, sizeof(entries));
        for (long at = 0; at < got;) {
            const struct dirent64 *entry = (const void *)(entries + at);
            if (entry->d_name[0] != '.') {
                report_thread(entry->d_name);
            }
            at += entry->d_reclen;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

static uint64_t resident_kib(void)
{
    char text[128];
    uint64_t pages = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof(text)) : 0;
    if (fd >= 0) {
        close(fd);
    }
    ssize_t i = 0;
    while (i < got && text[i] != ' ') {
        i++;
    }
    for (i++; i < got && text[i] >= '0' && text[i] <= '9'; i++) {
        pages = pages * 10 + (uint64_t)(text[i] - '0');
    }
    return pages * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
}

static void report_figures(void)
{
    struct line l = {.len = 0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    put(&l, "--- Figures");
    end_line(&l);
    put_figure(&l, "time_s", (uint64_t)now.tv_sec);
    put_figure(&l, "uptime_in_seconds", (uint64_t)(now.tv_sec - crash.start_s));
    put_figure(&l, "connected_clients", client_count());
    put_figure(&l, "total_connections_received", stats_sum(STAT_CONNECTIONS));
    put_figure(&l, "total_commands_processed", stats_sum(STAT_COMMANDS));
    put_figure(&l, "changes", stats_sum(STAT_DIRTY));
    put_figure(&l, "resident_kib", resident_kib());
}

/* ---- what modules add ---- */

/* Their code is foreign, and nothing is known of the state it finds: it may fault, wait for a lock
 * that is never let go of, or need more stack than there is. So a child is asked, which has a copy
 * of all that there is, ends at its first fault, and has so long. */
#define MODULES_MAX_S 2

static void write_lines(const char *bytes, size_t len)
{
    for (size_t begin = 0, i = 0; i < len; i++) {
        if (bytes[i] == '\r' || i + 1 == len) {
            size_t end = bytes[i] == '\r' ? i : len;
            log_raw(bytes + begin, end - begin);
            begin = i + 1;
        }
    }
}

/* The child's: it has this thread only, and dies of what signals do by themselves. */
static _Noreturn void ask_modules(void)
{
    sigset_t all;
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        signal(signals[i], SIG_DFL);
    }
    signal(SIGALRM, SIG_DFL);
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    alarm(MODULES_MAX_S);
    info_report(write_lines);
    _exit(0);
}

/* Waits for its end; false when a signal was that. */
static bool has_told(pid_t child, int *status)
{
    pid_t ended;
    do {
        ended = waitpid(child, status, 0);
    } while (ended < 0 && errno == EINTR);
    return ended == child && !WIFSIGNALED(*status);
}

/* _Fork takes no lock, unlike fork. */
static void report_modules(void)
{
    struct line l = {.len = 0};
    int status = 0;
    if (!info_has_report()) {
        return;
    }
    put(&l, "--- What modules say");
    end_line(&l);
    pid_t child = _Fork();
    if (child == 0) {
        ask_modules();
    }
    if (child < 0 || !has_told(child, &status)) {
        put(&l, "not all of them, or none: what was asked ended by signal ");
        put_number(&l, WIFSIGNALED(status) ? (uint64_t)WTERMSIG(status) : 0, 10);
        end_line(&l);
    }
}

/* ---- the handler ---- */

static void restore_handlers(void)
{
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        sigaction(signals[i], &crash.before[i], NULL);
    }
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    long self = syscall(SYS_gettid), nobody = 0;
    if (!atomic_compare_exchange_strong(&crash.reporter, &nobody, self) && nobody != self) {
        /* Another thread has crashed first; what it does at its end ends this one too. */
        for (;;) {
            pause();
        }
    }
    report_signal(number, info, context);
    report_backtrace();
    report_command();
    report_threads();
    report_figures();
    report_modules();
    struct line l = {.len = 0};
    put(&l,
        "=== KEYDB CRASH REPORT ends. A core dump, if the system keeps them, has the rest. ===");
    end_line(&l);
    restore_handlers();
    if (number == SIGABRT && crash.exits) {
        _exit(1);
    }
    if (info->si_code <= 0 && number != SIGABRT) {
        raise(number); /* comes when this handler returns; a fault comes again by itself */
    }
}

static void install_handlers(void)
{
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        sigaction(signals[i], &action, &crash.before[i]);
    }
}

static void obey_setting(void)
{
    if (crash.enabled && !crash.installed) {
        install_handlers();
    } else if (!crash.enabled && crash.installed) {
        restore_handlers();
    }
    crash.installed = crash.enabled;
}

void crash_report_setup(void)
{
    void *frame;
    /* The first call loads a library, which must not happen in the handler. */
    (void)backtrace(&frame, 1);
    snprintf(crash.build, sizeof(crash.build), "commit %s build %s", build_git_sha(), build_id());
    crash.start_s = (int64_t)time(NULL);
    obey_setting();
}

/* assert()'s end: libc's own writes to standard error only, which a server in the background has
 * not. */
void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)
{
    log_warning("%s:%u: %s: Assertion `%s' failed.", file, line, function, assertion);
    fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, assertion);
    abort();
}

/* ---- options ---- */

static bool apply_enabled(const struct option *option UNUSED, const char **error UNUSED)
{
    obey_setting();
    return true;
}

const struct option crash_options[] = {
    {.name = "crash-log-enabled",
     .type = OPTION_BOOL,
     .target = &crash.enabled,
     .initial = "yes",
     .apply = apply_enabled},
    {.name = "use-exit-on-panic",
     .type = OPTION_BOOL,
     .flags = OPTION_HIDDEN,
     .target = &crash.exits,
     .initial = "no"},
    {.name = NULL},
};
