/* See supervise.h. */
#include "server/supervise.h"

#include "base/clock.h"
#include "base/log.h"
#include "server/options.h"
#include "server/restart.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

static struct {
    bool notify;    /* systemd listens */
    int starter_fd; /* who started us in the background waits there; 0: nobody does */
    char pidfile[4096];
} state;

/* The starting process: ends when the other one listens, or has ended before. */
static void NORETURN wait_for(int fd)
{
    char byte;
    ssize_t got;
    do {
        got = read(fd, &byte, 1);
    } while (got < 0 && errno == EINTR);
    if (got != 1) {
        fprintf(stderr, "The server did not start: its log says why\n");
    }
    _exit(got == 1 ? 0 : 1);
}

void supervise_daemonize(void)
{
    if (restart_was()) {
        return;
    }
    int ends[2];
    pid_t child = pipe2(ends, O_CLOEXEC) < 0 ? -1 : fork();
    if (child < 0) {
        fprintf(stderr, "Can't go to the background: %s\n", strerror(errno));
        exit(1);
    }
    if (child > 0) {
        close(ends[1]);
        wait_for(ends[0]);
    }
    close(ends[0]);
    state.starter_fd = ends[1];
    setsid();
    int null = open("/dev/null", O_RDWR);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        if (null > STDERR_FILENO) {
            close(null);
        }
    }
}

void supervise_listening(void)
{
    if (state.starter_fd > 0) {
        ssize_t ignored = write(state.starter_fd, "", 1);
        (void)ignored;
        close(state.starter_fd);
        state.starter_fd = 0;
    }
}

void supervise_write_pidfile(const char *path)
{
    if (!path[0]) {
        return;
    }
    FILE *file = fopen(path, "we");
    if (!file) {
        log_warning("Can't write the pid file %s: %s", path, strerror(errno));
        return;
    }
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    snprintf(state.pidfile, sizeof(state.pidfile), "%s", path);
}

void supervise_remove_pidfile(void)
{
    if (state.pidfile[0]) {
        unlink(state.pidfile);
        state.pidfile[0] = '\0';
    }
}

void supervise_setup(int supervised)
{
    bool listens = getenv("NOTIFY_SOCKET") != NULL;
    if (supervised == SUPERVISED_UPSTART) {
        if (getenv("UPSTART_JOB")) {
            /* Said once for all: nobody would let it go on a second time. */
            if (!restart_was()) {
                raise(SIGSTOP);
            }
        } else {
            log_warning("supervised is upstart, but UPSTART_JOB is not set: going on unsupervised");
        }
    } else if (supervised == SUPERVISED_SYSTEMD && !listens) {
        log_warning("supervised is systemd, but NOTIFY_SOCKET is not set: going on unsupervised");
    }
    state.notify = listens && (supervised == SUPERVISED_SYSTEMD || supervised == SUPERVISED_AUTO);
}

void supervise_ready(void)
{
    if (state.notify) {
        sd_notify(0, "READY=1\nSTATUS=Ready to accept connections\n");
    }
}

void supervise_status(const char *format, ...)
{
    char text[256], line[272];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (state.notify) {
        snprintf(line, sizeof(line), "STATUS=%s\n", text);
        sd_notify(0, line);
    }
}

void supervise_stopping(void)
{
    if (state.notify) {
        sd_notify(0, "STOPPING=1\nSTATUS=Closing\n");
    }
}

void supervise_restarting(void)
{
    char text[128];
    /* To systemd a unit that stops and goes on has failed; one that reloads has not. */
    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=Restarting\n",
             (unsigned long long)clock_mono_us());
    if (state.notify) {
        sd_notify(0, text);
    }
}

void supervise_extend_timeout_us(unsigned long long more_us)
{
    char line[64];
    if (state.notify) {
        snprintf(line, sizeof(line), "EXTEND_TIMEOUT_USEC=%llu\n", more_us);
        sd_notify(0, line);
    }
}
