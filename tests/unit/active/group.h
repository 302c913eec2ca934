/* A group of active replicas in one process: nodes, each with a clock, origins, logs, a window and
 * a model of the data, and links between them whose messages arrive when the test says so. */
#ifndef TESTS_UNIT_ACTIVE_GROUP_H
#define TESTS_UNIT_ACTIVE_GROUP_H

#include "model.h"
#include "active/hlc.h"
#include "active/origin_log.h"

#define GROUP_NODES_MAX 5
#define GROUP_ORIGINS_MAX 64

enum group_topology {
    GROUP_PAIR,
    GROUP_MESH,
    GROUP_RING,
    GROUP_STAR,
    GROUP_CHAIN,
    GROUP_TOPOLOGIES
};

struct group_options {
    int nodes;
    enum group_topology topology;
    size_t log_bytes; /* and so the window's */
    unsigned broken;  /* enum merge_break */
    bool directly;    /* a node sends its own writes only */
    bool strangers;   /* nodes hear of one another only by their links */
    uint64_t pieces;  /* not 0: data sets are merged some keys at a time, drawn from this */
};

struct message;

/* What a node would find in its files. */
struct saved {
    struct origin rows[GROUP_ORIGINS_MAX];
    uint32_t count;
    uint64_t clock;
    struct model model;
    struct buf conflicts; /* database, key name; each */
};

struct node {
    struct group *group;
    int number;
    struct origins origins;
    uint16_t self;
    uint64_t last_epoch; /* in a file of its own, written before the first write of an epoch */
    struct hlc clock;
    int64_t skew_ms;
    struct merge merge;
    struct origin_log *log;
    struct model model;
    struct saved saved;
    uint64_t stable_seen;
    struct message *merged; /* the data set that it is merging, NULL */
    int merged_keys;        /* so far */
    uint16_t met_index[GROUP_ORIGINS_MAX];
    struct merge_snapshot snapshot;
    struct version_vector *merged_cover;
};

/* From `sender` to `receiver`. */
struct link {
    bool wanted, connected;
    uint64_t sent[GROUP_ORIGINS_MAX]; /* by the sender's index */
    struct message *first, *last;
    int queued;
};

/* A unit that some node made, for who looks at the end. */
struct made {
    struct origin_id id;
    struct unit *unit; /* its dot's index is the maker's */
};

struct group {
    struct group_options options;
    int64_t now_ms;
    struct node nodes[GROUP_NODES_MAX];
    struct link links[GROUP_NODES_MAX][GROUP_NODES_MAX]; /* [receiver][sender] */
    struct made *made;
    uint32_t made_count, made_capacity;
    const char *fault; /* what went wrong first */
    uint64_t states, digests, merges, restarts;
    uint64_t pieces; /* a generator of its own: histories stay what they are */
    uint64_t lowest_sequence_lost;
};

void group_init(struct group *g, const struct group_options *options);
void group_deinit(struct group *g);
/* True where the topology has a link between the two. */
bool group_linked(const struct group *g, int a, int b);
/* Cuts or mends both directions; what is under way is lost. */
void group_cut(struct group *g, int a, int b, bool cut);

/* A node runs a client's commands (told forms, in the request protocol) and tells them as a unit of
 * its own. False, and nothing has happened, when one fails. */
bool node_write(struct node *n, int db, struct slice commands);
/* The node's files hold what it has now. */
void node_save(struct node *n);
/* The node ends, and begins a new epoch from its files. */
void node_restart(struct node *n);
/* States whose time has come are told, and what is stable leaves the window. */
void node_tend(struct node *n);

/* The sender puts something under way; false when there is nothing. */
bool lane_send(struct group *g, int receiver, int sender);
/* The sender tells its clocks. */
void link_send_clocks(struct group *g, int receiver, int sender);
/* The receiver takes one message; false when there is none. */
bool link_deliver(struct group *g, int receiver, int sender);
/* Mends all links and delivers until nothing moves any more; false when it does not come to rest.
 */
bool group_settle(struct group *g);
/* NULL when all nodes hold the same, else a text about the first difference (static). */
const char *group_difference(const struct group *g);
/* How far all nodes have come with an origin. */
uint64_t group_position(const struct group *g, const struct origin_id *id);

#endif
