/* The log. Lines look like Redis's: "pid:role dd Mon yyyy HH:MM:SS.mmm level message", to a file
 * that is opened for each line (so that logrotate needs no signal), to standard output, and to
 * syslog. State: settings are world state (changed under the GIL or before threads start); writing
 * a line is safe from any thread, takes no lock of ours but for syslog (one write(2) with O_APPEND)
 * and never allocates. Unprintable bytes of messages are escaped. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_DEBUG_LEVEL, LOG_VERBOSE, LOG_NOTICE, LOG_WARNING, LOG_NOTHING };

/* Writes one line when `level` (not LOG_NOTHING) is at or above the set level. Messages over 1,024
 * bytes are cut. */
void log_write(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);
#define log_debug(...) log_write(LOG_DEBUG_LEVEL, __VA_ARGS__)
#define log_verbose(...) log_write(LOG_VERBOSE, __VA_ARGS__)
#define log_notice(...) log_write(LOG_NOTICE, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__)
/* A warning from a signal's handler: the same line, but never to syslog, which takes a lock. */
void log_in_handler(const char *message);

/* Reads the local time zone's offset, which lines are stamped with. Call at boot and now and then
 * after (the cron), so that a change to or from summer time is seen; never in a forked child. UTC
 * until then. */
void log_setup(void);
/* Settings. `path` "" means standard output; the string is copied. log_set_file returns false (with
 * errno set) when the file cannot be opened for appending. */
void log_set_level(enum log_level level);
enum log_level log_level(void);
bool log_set_file(const char *path) MUST_CHECK;
/* Also sends lines to /dev/log. `ident` is copied (at most 63 bytes); `facility` is RFC 5424's
 * number, 16 for local0. */
void log_set_syslog(bool enabled, const char *ident, int facility);
/* For the report of a crash, in a signal's handler: where lines go, opened (standard output, or the
 * file; -1 when it cannot be opened) and closed again, and bytes written there as they are. No
 * syslog. */
int log_raw_open(void);
void log_raw_close(int fd);
void log_raw(const char *bytes, size_t len);
/* The letter after the pid: 'M' primary, 'S' replica, 'C' child, 'X' sentinel. */
void log_set_role(char role);

#endif
