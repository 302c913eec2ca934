/* Between log.c and log_syslog.c: <syslog.h> defines LOG_NOTICE and its like as macros, so it and
 * log.h cannot meet in one file. */
#ifndef BASE_LOG_PRIV_H
#define BASE_LOG_PRIV_H

/* Connects to the system's log daemon as `ident` (copied) with an RFC 5424 facility number. */
void log_syslog_open(const char *ident, int facility);
/* Disconnects. */
void log_syslog_close(void);
/* Sends a message with an RFC 5424 severity number. Any thread, also in forked children. */
void log_syslog_send(int severity, const char *message);

#endif
