/* The network as the server sees it. */
#ifndef NET_NET_H
#define NET_NET_H

#include "base/compiler.h"
#include "engine/command.h"
#include "engine/cron.h"
#include "net/settings.h"

#include <stdbool.h>

struct event_base;

/* CLIENT, QUIT, RESET, MONITOR. */
extern const struct command_row client_commands[];

/* Boot: registers INFO sections and cron jobs; raises the limit of open files as far as maxclients
 * needs, or lowers maxclients with a warning. After configuration is loaded. */
void net_setup(void);
/* Starts the server threads, and accepting (what listener_open has opened) in the main thread's
 * loop. False (logged) when TLS cannot be had. */
bool net_start(struct event_base *main_base) MUST_CHECK;
/* Stops accepting, ends the server threads, closes all clients. Main thread. */
void net_stop(void);

#endif
