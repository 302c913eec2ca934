/* Real nodes of a group of active replicas in one process: each has databases of its own in the one
 * keyspace, its commands are the engine's, and its own writes come through the door. Links deliver
 * when the test says so. */
#ifndef TESTS_UNIT_ACTIVE_REAL_H
#define TESTS_UNIT_ACTIVE_REAL_H

#include "active/node.h"

#define REAL_NODES_MAX 5
#define REAL_DBS 2 /* of each node */
#define REAL_START_MS 1800000000000LL
#define REAL_QUEUE_MAX 512
#define REAL_NARROW_LINES 8

struct real_message {
    struct origin_id id;
    struct unit *unit;
};

/* From one node to another. */
struct real_link {
    struct real_message queue[REAL_QUEUE_MAX];
    int first, count;
    uint64_t sent[REAL_NODES_MAX + 1]; /* by the sender's index */
};

struct real_group {
    int nodes;
    int64_t now_ms;
    int64_t skew_ms[REAL_NODES_MAX];
    struct node *node[REAL_NODES_MAX];
    int referees; /* nodes behind those */
    int narrow;   /* 0, or how many of the lines that clients write (program.c) */
    size_t narrow_lines[REAL_NARROW_LINES];
    struct real_link links[REAL_NODES_MAX][REAL_NODES_MAX]; /* [receiver][sender] */
    struct real_clock {
        struct real_group *group;
        int number;
    } clock[REAL_NODES_MAX];
};

/* cmocka group fixtures: the keyspace, the commands, the door. */
int real_setup(void **state);
int real_teardown(void **state);

/* Nodes in empty databases, which know of one another; rules to break: enum merge_break. */
void real_group_init(struct real_group *g, int nodes, size_t log_bytes, unsigned broken);
/* The same, of nodes that have never heard of one another. */
void real_group_init_strangers(struct real_group *g, int nodes, size_t log_bytes);
void real_group_deinit(struct real_group *g);

/* A client of the node runs commands, words separated by blanks; several are a transaction. The
 * last reply's bytes, NUL-terminated, until the next call. */
const char *real_run(struct real_group *g, int node, int db, int count, const char *const *lines);
const char *real_run_one(struct real_group *g, int node, int db, const char *line);
/* SWAPDB of the node's two databases, by a client of its. */
void real_swap_databases(struct real_group *g, int node);

/* A client of the node writes something: one to four commands on keys k0..k9 with members m0..m5,
 * of all types. */
void real_write_something(struct real_group *g, int node);
/* From here on it writes few kinds of commands, for one type, on two keys with two members: what is
 * rare otherwise, for it takes three or four certain writes of one member, is usual then. */
void real_narrow(struct real_group *g);

/* The sender puts its next unit for the receiver under way; false when there is none. */
bool real_send(struct real_group *g, int receiver, int sender);
/* The receiver takes one; false when there is none. */
bool real_deliver(struct real_group *g, int receiver, int sender);
/* The sender's clocks are told, where nothing is under way. */
void real_tell_clocks(struct real_group *g, int receiver, int sender);
void real_tick(struct real_group *g, int node);
/* The node's sweep comes by a key: so much of it was taken away. */
uint64_t real_sweep(struct real_group *g, int node, int db, const char *name);
/* Delivers all until nothing moves any more; false when it does not come to rest. */
bool real_settle(struct real_group *g);

/* The next write of node 0's logs in the one order; `told`: so many of each origin's (by its index)
 * were before. NULL: that was all. */
struct unit *real_next_in_order(const struct real_group *g, const uint64_t *told);
/* One more node, beside the group, that is told all that node 0 knows, in the one order. Its
 * number.
 */
int real_add_referee(struct real_group *g);

/* What a key of a node holds, deadlines included; 0 when it is missing. The same for the same
 * content. */
uint64_t real_digest(struct real_group *g, int node, int db, const char *key);
struct dot real_dot(struct real_group *g, int node, int db, const char *key);

/* An origin whose node's id is that letter all over. */
static inline struct origin_id origin_named(char letter, uint64_t epoch)
{
    struct origin_id id = {.epoch = epoch};
    memset(id.node, letter, sizeof(id.node));
    return id;
}

/* The commands of a unit of the node's own as text, " | " between them, each with its database
 * ("0: set a 1"); "none": it is not in its log. Until the next call. */
const char *real_unit_text(const struct real_group *g, int node, uint64_t sequence);
/* How many units it has told. */
uint64_t real_position(const struct real_group *g, int node);
/* A unit of an origin that is none of the group's, as it comes to that node by a link. */
enum receiver_result real_take(struct real_group *g, int node, const struct origin_id *id,
                               uint64_t sequence, uint64_t stamp, int db, const char *commands);

#endif
