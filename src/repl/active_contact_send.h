/* The sender of MERGE: all that a node has, as records (active_contact.h). It is of one moment: the
 * positions and the clock are noted in one exclusive hold, and the data set is told in the same
 * hold, or by a child that was forked in it. State: keyspace; changes nothing. */
#ifndef REPL_ACTIVE_CONTACT_SEND_H
#define REPL_ACTIVE_CONTACT_SEND_H

#include "keyspace/lock.h"
#include "repl/active_node.h"

/* Where the records go, in order, in pieces of any length; false: nobody wants more. */
typedef bool (*active_contact_write_fn)(struct slice bytes, void *context);
/* One: into the open file or pipe that `context`, an int, is. */
bool active_contact_write_fd(struct slice bytes, void *context);

/* The moment: what our clients have written in this hold is settled, and the clock is told. Good
 * for this hold, and in a child forked in it. Not while the node is meeting somebody itself
 * (active_node_is_meeting): then some keys have more than its positions say. */
struct active_moment {
    const struct active_origins *origins;
    uint64_t clock;
    int first_db, dbs;
};
struct active_moment active_contact_moment(struct active_node *n) REQUIRES(keyspace_lock);
/* Tells everything; false when the writer did not take it all. For a child as well: takes no lock,
 * logs nothing. */
bool active_contact_tell(const struct active_moment *moment, active_contact_write_fn write,
                         void *context) MUST_CHECK REQUIRES_SHARED(keyspace_lock);

#endif
