/* Listening sockets and accept(). They live in the main thread's event loop, so that no slow
 * command keeps a connection from being accepted; a connection is handed to its server thread at
 * once. State: the main thread's; the set of sockets is world state. */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include "base/compiler.h"

#include <stdbool.h>

struct event_base;

/* Opens all addresses of the settings and listens; logs and returns false when one that must be
 * there fails. Whoever connects waits until listener_start. */
bool listener_open(void) MUST_CHECK;
/* Accepts from now on, in this loop. */
void listener_start(struct event_base *base);
/* Closes all; removes the Unix socket's file. */
void listener_stop(void);
/* World: port, tls-port or bind have changed: opens what is missing of the new set, then has the
 * main thread close what is not in it. False when something cannot be opened (told in the log): the
 * old set stays. */
bool listener_restart(void) MUST_CHECK;
/* The TCP port in use, tls-port without another; 0 without TCP. */
int listener_port(void);
/* What a peer is told that protected mode keeps out, NULL when it is let in; counts the refusal.
 * `local`: it comes from this machine. */
const char *listener_denial(bool local);
/* Number of listening sockets of each kind, for INFO. */
int listener_count(void);

#endif
