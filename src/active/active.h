/* The server as an active replica: the one node of this process (node.h), whom it takes
 * writes from (peer_links.h) and who takes them from it (peer_feed.h). A server without
 * `active-replica yes` has no node and pays for none of this.
 *
 * What the runtime does for its node: it is attached while commands may run, settled whenever the
 * keyspace lock is let go of after writes (keyspace_set_end_work), ticked by the cron, asked what
 * becomes of what is due, told what has expired under a writer, and its clock is the one that
 * deadlines are judged by (keyspace_time_ms).
 *
 * CONFIG SET active-replica makes a server a node and takes that back. Each time it is a new life:
 * what was written before it counts as its first write, as data do that files of a server have
 * which was not active, and what it knew of peers is forgotten.
 *
 * State: settings are world, the node is keyspace. */
#ifndef ACTIVE_ACTIVE_H
#define ACTIVE_ACTIVE_H

#include "base/option.h"
#include "engine/command.h"
#include "engine/gil.h"
#include "active/node.h"

struct active_settings {
    bool on, multi, no_forward; /* active-replica, multi-master, multi-master-no-forward */
    bool write_during_load;     /* allow-write-during-load: clients may write during MERGE */
};
extern struct active_settings active_settings;

/* Boot, before options are read: commands, and what replication asks (repl/peers.h). */
void active_register(void);
/* Boot, before other logs are registered; its reverse. */
void active_setup(void);
void active_teardown(void);
/* Boot, before the data set is loaded: what its files tell is heard. False, logged: the options
 * contradict one another. */
bool active_prepare(void) MUST_CHECK;
/* The data set is loaded and nobody may use it yet. A server that is to be an active replica begins
 * a life as a node. False, logged: it must not go on. The GIL is held in shared mode. */
bool active_begin(void) REQUIRES_SHARED(gil) MUST_CHECK;
/* Whether this server has a node: from active_begin on. The GIL is held. */
bool active_is_on(void);
/* The node; only while active_is_on. */
struct node *active_node(void);
#define ACTIVE_NODE_CHARS 32
/* Its id as 32 hexadecimal digits, no NUL. */
void active_node_text(char text[ACTIVE_NODE_CHARS]);
/* INFO replication's figures about the node. */
void active_write_info(struct buf *out);

/* The settings have changed by CONFIG SET: false, with *error, when they can't be so now. Then,
 * once in its end, whether it was accepted: the server becomes a node, or is none any more. The
 * latter takes a look at each key while the world stands. */
bool active_may_switch(const char **error) MUST_CHECK REQUIRES(gil);
void active_switch(bool accepted) REQUIRES(gil);

/* active-replica, multi-master, multi-master-no-forward, allow-write-during-load. */
extern const struct option active_options[];

#endif
