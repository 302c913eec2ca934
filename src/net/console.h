/* A client's connection as the console of a call that it has sent: see engine/console.h. State:
 * thread-owned. */
#ifndef NET_CONSOLE_H
#define NET_CONSOLE_H

/* Boot. */
void net_console_setup(void);

#endif
