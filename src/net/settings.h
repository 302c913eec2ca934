/* The network's options as values. State: world. */
#ifndef NET_SETTINGS_H
#define NET_SETTINGS_H

#include "base/option.h"

#include <sys/types.h>

/* Classes of clients with an output buffer limit of their own. */
enum client_class {
    CLIENT_CLASS_NORMAL,
    CLIENT_CLASS_REPLICA,
    CLIENT_CLASS_PUBSUB,
    CLIENT_CLASS_COUNT
};

struct output_limit {
    int64_t hard_bytes, soft_bytes, soft_seconds;
};

#define BIND_MAX 32

struct net_settings {
    int64_t server_threads;
    int affinity_first; /* server-thread-affinity: core of thread 0, -1 when off */
    int64_t min_clients_per_thread;
    bool active_client_balancing;
    int64_t replica_weighting_factor;
    int64_t port;
    char *bind[BIND_MAX];
    int bind_count;
    char *unixsocket;
    int64_t unixsocketperm;
    int64_t tcp_backlog, tcp_keepalive_s, timeout_s, maxclients;
    int64_t maxclients_reserved; /* of maxclients, for clients of this machine */
    int64_t socket_mark_id;
    bool protected_mode;
    int64_t query_buffer_limit_bytes;
    int64_t maxmemory_clients;       /* bytes; negative: percent of maxmemory; 0: no limit */
    int64_t tracking_table_max_keys; /* 0: any number */
    struct output_limit output_limit[CLIENT_CLASS_COUNT];
    bool normal_output_is_limited; /* that of normal clients has a hard limit: asked for each reply
                                    */
};

extern struct net_settings net_settings;
extern const struct option net_options[];

/* Frees the strings. */
void net_settings_teardown(void);

#endif
