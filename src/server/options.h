/* Options of the server as a whole: process, log, databases, cron. State: world; most are immutable
 * after boot. */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include "base/option.h"

enum supervision { SUPERVISED_NO, SUPERVISED_AUTO, SUPERVISED_SYSTEMD, SUPERVISED_UPSTART };

struct server_settings {
    bool daemonize;
    char *pidfile;
    int supervised;
    int64_t databases;
    int64_t hz;
    char *logfile;
    int loglevel;
    bool syslog_enabled;
    char *syslog_ident;
    int syslog_facility;
    bool disable_thp;
    bool jemalloc_bg_thread;
};

extern struct server_settings server_settings;
extern const struct option server_options[];

/* Frees the strings. */
void server_options_teardown(void);

#endif
