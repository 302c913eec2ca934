/* The process among others: going to the background, the pid file, systemd's readiness protocol
 * (sd_notify(3)). */
#ifndef SERVER_SUPERVISE_H
#define SERVER_SUPERVISE_H

#include "base/compiler.h"

/* Leaves the terminal and the starting shell (daemonize yes), which goes on when we listen, or
 * hears that we do not; a process that was restarted has done so. Before threads. */
void supervise_daemonize(void);
/* Connections can be made, though they may have to wait. */
void supervise_listening(void);
/* Writes the pid file when one is wanted; a failure is only logged. Removes it at the end. */
void supervise_write_pidfile(const char *path);
void supervise_remove_pidfile(void);
/* Decides by the option and the environment whether systemd is to be told. */
void supervise_setup(int supervised);
/* Tell systemd, when it listens: ready, a line of status, stopping; more time to start. */
void supervise_ready(void);
void supervise_status(const char *format, ...) PRINTF_LIKE(1, 2);
void supervise_stopping(void);
/* Stopping, but the same process will say that it is ready again. */
void supervise_restarting(void);
void supervise_extend_timeout_us(unsigned long long more_us);

#endif
