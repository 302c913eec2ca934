/* maxmemory-clients: what all clients' buffers may take together; above it the largest are closed.
 *
 * While the option is set, each thread keeps the sum of what its clients take, and an upper bound
 * of the largest of them; anybody may read both. A thread whose clients have grown adds the sums up
 * at the end of its turn, and above the limit has the thread with the largest client close it: a
 * client is only ever closed by its own thread, which looks at all its clients first, and goes on
 * as long as there is need. Clients that have asked for CLIENT NO-EVICT and replicas do not count.
 *
 * State: sums and bounds are atomic, written by their thread; all else is thread-owned. */
#ifndef NET_CLIENT_MEMORY_H
#define NET_CLIENT_MEMORY_H

#include "net/server_thread.h"

/* True while there is a limit. World; asked once a batch. */
static inline bool client_memory_is_limited(void)
{
    return unlikely(net_settings.maxmemory_clients != 0);
}
/* The client may take more or less than before; its thread. */
void client_memory_note(struct client *c);
/* It leaves its thread. Harmless when it does not count. */
void client_memory_forget(struct client *c);
/* End of a turn, while there is a limit. */
void client_memory_keep(struct server_thread *t);
/* Writes the limit, the sums and the bounds; false when there is no limit. World. */
bool client_memory_describe(struct buf *out);
/* After CONFIG SET: all threads look at all their clients. */
void client_memory_recount_all(void);

#endif
