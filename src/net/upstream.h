/* The link to our primary as CLIENT LIST and CLIENT KILL see it. It is no client, but has a line of
 * its own and can be cut like one. Who has such a link (replication, above) says so here.
 * State: set at boot. */
#ifndef NET_UPSTREAM_H
#define NET_UPSTREAM_H

#include "engine/gil.h"
#include "net/socket.h"

#include <stdbool.h>
#include <stdint.h>

struct upstream {
    uint64_t id; /* among those of clients */
    char peer[SOCKET_ADDRESS_MAX], local[SOCKET_ADDRESS_MAX];
    int fd, db;
    int64_t age_s, idle_s;
};

struct upstream_ops {
    /* The link's facts; false while there is none. */
    bool (*look)(struct upstream *facts);
    /* Cuts it; it is made anew. */
    void (*cut)(void);
};

/* Boot. */
void upstream_set_ops(const struct upstream_ops *ops);
/* See upstream_ops; false without ops as well. World. */
bool upstream_look(struct upstream *facts) REQUIRES(gil);
void upstream_cut(void) REQUIRES(gil);

#endif
