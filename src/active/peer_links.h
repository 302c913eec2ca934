/* The receiving side of links of active replicas: for each `replicaof` of an active server a thread
 * that connects, pulls (KEYDB.PULL), and gives what comes to the node in bounded holds. A thread
 * each, so that a peer that is dead, stopped or slow holds up nobody else.
 *
 *   CONNECT --socket--> HANDSHAKE --+PULL--> CONNECTED
 *      ^-------- the link breaks, or is refused; a while later --------'
 *
 * Which origin is requested from which of them is decided together (sources.h). Whom we pull from
 * changes while the world stands; what a link knows of its peer is keyspace; the rest is its
 * thread's, and what INFO shows is atomic. */
#ifndef ACTIVE_PEER_LINKS_H
#define ACTIVE_PEER_LINKS_H

#include "base/buf.h"
#include "base/slice.h"
#include "engine/gil.h"
#include "net/upstream.h"
#include "resp/reply.h"

#include <stdbool.h>

struct version_vector;

/* Most servers that one pulls from. */
#define PEER_LINKS_MAX 16

/* The configuration's `replicaof` lines: one more; none at all (host.ptr NULL). Too many: false. */
bool peer_links_configure(struct slice host, int port) MUST_CHECK;
/* CONFIG REWRITE: appends such lines for whom we pull from now; false when those of the files still
 * say it. `in_include`: first one that takes back those of included files. World. */
bool peer_links_put_lines(bool in_include, struct buf *out) MUST_CHECK;
/* Boot's end and its reverse: pulls from those, or without multi-master from the last of them. */
void peer_links_start(void);
void peer_links_stop(void);
/* Before those: a data set that was being merged when the process ended, as the log says (file: its
 * name, empty: none; done: how many of its records the log has; had: merge_snapshot.had, or NULL),
 * is merged to its end. False, logged: it is not there. World. */
bool peer_links_resume(struct slice file, uint64_t done, struct version_vector *had_take) MUST_CHECK
    REQUIRES(gil);
/* There is no node any more, nor a link that is wanted; threads may be on their way to their end.
 */
void peer_links_forget(void) REQUIRES(gil);
/* When no other thread runs any more: lets go of a data set that was being merged at the end. */
void peer_links_teardown(void);
/* REPLICAOF: one more; without multi-master it is the only one then. False: it is there already, or
 * *error is set. */
bool peer_links_add(struct slice host, int port, const char **error) REQUIRES(gil);
/* One less; false: there is no such. */
bool peer_links_remove(struct slice host, int port) REQUIRES(gil);
void peer_links_remove_all(void) REQUIRES(gil);
/* All are cut, and made anew; the facts of the first that stands (net/upstream.h). */
void peer_links_cut(void) REQUIRES(gil);
bool peer_links_look(struct upstream *facts) REQUIRES(gil);

/* INFO replication's lines about those that we pull from: the second one's begin with master_1_. As
 * an offset stands how many units have come by the link. The GIL is held in some mode. */
void peer_links_write_info(struct buf *out);
/* How many there are. The same. */
int peer_links_count(void);
/* Whether some bring a whole data set, which is not merged yet. The same. */
bool peer_links_bring_data(void);
/* Whether the peer of each has told, since it is wanted, what he had before. The same. */
bool peer_links_have_met(void);
/* ROLE's elements for each: host, port, state, how many units of others have come by it. */
void peer_links_reply_roles(struct reply *r) REQUIRES(gil);

/* replica-serve-stale-data, replica-quorum, or links may be others: clients are kept out while too
 * few links stand, or let in. The GIL is held. */
void peer_links_judge_stale(void);
/* allow-write-during-load may be another one. Any thread. */
void peer_links_judge_writes(void);

#endif
