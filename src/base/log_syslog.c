/* The way to the system's log daemon. */
#include "base/log_priv.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

/* Longest name that lines begin with. */
#define IDENT_BYTES 64

/* syslog(3) holds a lock of libc. This one is taken around every call and before every fork, so
 * that no child inherits libc's lock from a thread that it does not have. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
/* openlog(3) keeps the pointer. */
static char current_ident[IDENT_BYTES];

static void log_syslog_lock(void)
{
    pthread_mutex_lock(&guard);
}

static void log_syslog_unlock(void)
{
    pthread_mutex_unlock(&guard);
}

static void log_syslog_register(void)
{
    if (pthread_atfork(log_syslog_lock, log_syslog_unlock, log_syslog_unlock) != 0) {
        abort();
    }
}

void log_syslog_open(const char *ident, int facility)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, log_syslog_register);
    log_syslog_lock();
    closelog();
    snprintf(current_ident, sizeof(current_ident), "%s", ident != NULL ? ident : "");
    openlog(current_ident, LOG_PID | LOG_NDELAY | LOG_NOWAIT, facility << 3);
    log_syslog_unlock();
}

void log_syslog_close(void)
{
    log_syslog_lock();
    closelog();
    log_syslog_unlock();
}

void log_syslog_send(int severity, const char *message)
{
    log_syslog_lock();
    syslog(severity, "%s", message);
    log_syslog_unlock();
}
