/* The server's figures by HTTP, and a page that shows them: /metrics for Prometheus, / for people,
 * /status.json for that page, /big-keys.json for its walk over all keys. State: the settings are
 * world, the listening socket's owner is http.h's thread. */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include "base/compiler.h"
#include "base/option.h"

#include <stdbool.h>

/* Sets aside the descriptors that this may need, if there is a port. Boot, before net_setup(). */
void metrics_setup(void);
/* Opens metrics-port, if there is one, and serves it from now on. False (logged) when it cannot be.
 * Main thread, asleep, when the server threads are there. */
bool metrics_start(void) MUST_CHECK;
/* Ends that. Main thread, before the server threads end. */
void metrics_stop(void);
/* In a child of fork: lets go of the listening socket, so that the port is free when the server
 * ends before its child. */
void metrics_leave_to_parent(void);
/* Frees the settings. Shutdown. */
void metrics_teardown(void);
/* metrics-port, metrics-bind, metrics-token. */
extern const struct option metrics_options[];

#endif
