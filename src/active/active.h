/* The server as an active replica: the one node of this process (node.h), whom it takes
 * writes from (peer_links.h) and who takes them from it (peer_feed.h). A server without
 * `active-replica yes` has no node and pays for none of this.
 *
 * What the runtime does for its node: it is attached while commands may run, settled whenever the
 * keyspace lock is let go of after writes (keyspace_set_end_work), ticked by the cron, asked what
 * becomes of what is due, told what has expired under a writer, and its clock is the one that
 * deadlines are judged by (keyspace_time_ms).
 *
 * `active-replica yes` is refused as long as something is missing (DESIGN.md, "What is built").
 * Builds with KEYDB_DEBUG take it, as a test seam, when the environment has KEYDB_ACTIVE_PREVIEW=1;
 * it begins with what its files tell of it (restored.h): dots, positions, conflicts; with
 * data that no node has written it counts them as its first write.
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

/* Whether this server can be an active replica at all: the test seam. */
bool active_is_preview(void);
/* Boot, before options are read: commands, and what replication asks (repl/peers.h). */
void active_register(void);
/* Boot, before other logs are registered; its reverse. */
void active_setup(void);
void active_teardown(void);
/* Boot, before the data set is loaded: what its files tell is heard. */
void active_prepare(void);
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

/* active-replica, multi-master, multi-master-no-forward, allow-write-during-load. */
extern const struct option active_options[];

#endif
