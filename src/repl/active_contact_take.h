/* The receiver of MERGE: a peer's whole data set (active_contact.h), which first comes aside, into
 * a file, every record of it checked as it comes; when it is there, it is met with ours key by key,
 * in holds of a few milliseconds. So a link that breaks leaves nothing behind, and what is met is
 * whole, whatever becomes of the link.
 *
 *   COMING --its last record--> WHOLE --begin--> THEIRS --> WINDOW --> OURS --> MET
 *      `--a record that is none--> BROKEN
 *
 *   THEIRS   each key of the data set
 *   WINDOW   keys of our window that it does not have
 *   OURS     keys here that it does not have
 *
 * Between holds our clients write on, and peers' units that the data set does not cover are taken;
 * those that it covers wait (ACTIVE_TAKEN_LATER). No states are told, no data set of ours is, and
 * none of our files may be written from the data meanwhile.
 *
 *   while (active_contact_is_meeting(c)) {
 *       if (!active_contact_read(c, &error)) ...the disk; see there
 *       keyspace_lock_exclusive();
 *       active_contact_step(c, node, now_ms, 2000);
 *       keyspace_unlock_exclusive();
 *       reclaim_run();
 *   }
 *
 * State: its owner's; begin and step are for the keyspace's exclusive mode. */
#ifndef REPL_ACTIVE_CONTACT_TAKE_H
#define REPL_ACTIVE_CONTACT_TAKE_H

#include "repl/active_contact.h"
#include "repl/active_node.h"

enum active_contact_phase {
    ACTIVE_CONTACT_COMING,
    ACTIVE_CONTACT_BROKEN, /* to be destroyed, and its link closed */
    ACTIVE_CONTACT_WHOLE,
    ACTIVE_CONTACT_THEIRS,
    ACTIVE_CONTACT_WINDOW,
    ACTIVE_CONTACT_OURS,
    ACTIVE_CONTACT_MET,
};

struct active_contact;

/* Nothing has come. `fd_take`: an empty file, open for reading and writing, best without a name. */
struct active_contact *active_contact_create(int fd_take);
/* Nulls the caller's pointer. Not while it is meeting: that goes to its end. */
void active_contact_destroy(struct active_contact **c);
enum active_contact_phase active_contact_phase(const struct active_contact *c);
static inline bool active_contact_is_meeting(const struct active_contact *c)
{
    return active_contact_phase(c) >= ACTIVE_CONTACT_THEIRS &&
           active_contact_phase(c) <= ACTIVE_CONTACT_OURS;
}
/* Keys that have come; of those, met; and those that were good as values and yet could not be
 * taken, which stand as they are here and are disputed (none, normally). INFO. */
uint64_t active_contact_keys(const struct active_contact *c);
uint64_t active_contact_keys_met(const struct active_contact *c);
uint64_t active_contact_keys_refused(const struct active_contact *c);

/* The next bytes from the link, in any pieces; *consumed of them are the data set's: all, unless it
 * has become WHOLE. COMING only. Returns the phase; BROKEN with *error. No lock. */
enum active_contact_phase active_contact_feed(struct active_contact *c, struct slice data,
                                              size_t *consumed, const char **error);
/* Of a WHOLE one: from now on it is met. False, with *error and nothing changed, when it cannot be
 * (active_node_meet_begin; a database that we do not have; too many origins). While the node is
 * meeting another one: later. */
bool active_contact_begin(struct active_contact *c, struct active_node *n,
                          const char **error) MUST_CHECK REQUIRES(keyspace_lock);
/* Before each step, without the lock: reads what it will need. False when the disk does not give
 * back what was written to it: what is to be done then is the caller's (there is no way back, and
 * no way on: the process ends, as for an AOF that cannot be written). */
bool active_contact_read(struct active_contact *c, const char **error) MUST_CHECK
    EXCLUDES(keyspace_lock);
/* Meets keys until so much time is over, one at least; now_ms as for active_node_tick. */
void active_contact_step(struct active_contact *c, struct active_node *n, int64_t now_ms,
                         uint64_t budget_us) REQUIRES(keyspace_lock);

#endif
