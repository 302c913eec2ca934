/* INFO sections of the network: Clients and Threads. */
#ifndef NET_NET_INFO_H
#define NET_NET_INFO_H

#include <stddef.h>

/* What all clients hold, bytes: of the calling thread's now, of others' when they were asked last
 * (at most once a second, and they are asked again), the fixed part at least. Any thread. */
size_t net_info_client_bytes(void);
/* Registers them. Boot. */
void net_info_setup(void);

#endif
