/* What the log holds of a crash: on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT (assertions, lack
 * of memory) the signal, the place, a backtrace, the command that ran, the threads, a few figures,
 * and what modules add (RegisterInfoFunc). Then the signal does what it would have done without us.
 *
 * All of it happens in the signal's handler, on a stack of its own (base/thread.h), by functions
 * that are safe there (signal-safety(7)): no lock, no allocation, no stdio. What other threads may
 * change meanwhile is read as it is. Modules, whose code is not that careful, are asked by a child,
 * for two seconds at most. The first thread that crashes writes; others wait for its end.
 * State: the settings are world state. */
#ifndef SERVER_CRASH_REPORT_H
#define SERVER_CRASH_REPORT_H

#include "base/option.h"

/* Boot, when the log is open: handlers from now on, unless crash-log-enabled is no. */
void crash_report_setup(void);

/* crash-log-enabled, use-exit-on-panic. */
extern const struct option crash_options[];

#endif
