/* What SIGINT and SIGTERM mean: shutdown-on-sigint, shutdown-on-sigterm. State: atomic: a signal
 * is heard while a long command keeps the world. */
#ifndef SERVER_SIGNAL_OPTIONS_H
#define SERVER_SIGNAL_OPTIONS_H

#include "base/option.h"

extern const struct option signal_options[];

/* The flags (engine/shutdown.h) with which that signal asks for the end; 0: as SHUTDOWN without
 * words. */
unsigned signal_shutdown_flags(int signal_number);

#endif
