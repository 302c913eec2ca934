/* The stream of an active replica of KeyDB (envelope.h), as apply.h runs it: which message is to be
 * run, in whose session, and at what time.
 *
 * Transactions of several authors come interleaved, each command in an envelope of its own. Such a
 * stretch, from a MULTI to where nobody's transaction is open, is run whole, in one hold, once all
 * of it is here: so what is counted as done never stands in the middle of one, and files and
 * replicas of ours begin at places from which the stream can be gone on with.
 *
 * KeyDB tells nothing of what expires. So each message is run at the time at which the one who is
 * followed had run it, by his clock; and what was due by then may be swept (keyspace/expire.h).
 *
 * Where the stream can't be followed exactly (a data set is merged there key by key, a transaction
 * whose beginning is not known ends) it is given up, and everything is fetched anew.
 *
 * State: the following thread's; whether it is on, any thread's. */
#ifndef REPL_ENVELOPED_H
#define REPL_ENVELOPED_H

#include "engine/session.h"
#include "keyspace/lock.h"
#include "repl/envelope.h"

/* Whether the stream that is followed is such a one. */
bool enveloped_is_on(void);
void enveloped_set(bool on);

/* A new connection: transactions that did not end are forgotten. The thread's end: the same. */
void enveloped_reset(void) EXCLUDES(keyspace_lock);
/* Another history: so is how far its authors were. */
void enveloped_begin_history(void);

enum enveloped_result {
    ENVELOPED_RUN,  /* *m is to be run, then enveloped_ran */
    ENVELOPED_DROP, /* it has come before, or is of a transaction that will not end */
    ENVELOPED_WAIT, /* more has to come first: ask again, with the same message */
    ENVELOPED_LOST, /* m->why: the stream cannot be followed any further */
};

struct enveloped_message {
    struct envelope e;
    struct session *session;
    bool selects; /* the session is to hear SELECT e.db first: it is within a transaction */
    int64_t now_ms;
    const char *why;
};

/* The next message, and what has come behind it so far. `plain` is the session of what is in no
 * transaction. */
enum enveloped_result enveloped_take(const struct request *outer, struct slice behind,
                                     struct session *plain, struct arena *arena,
                                     struct enveloped_message *m) MUST_CHECK;
void enveloped_ran(const struct enveloped_message *m);
/* Somebody's transaction is open: the hold goes on. */
bool enveloped_is_amid(void);
/* End of the hold: readers and sweeps may see what is due by now. */
void enveloped_end_hold(void) REQUIRES(keyspace_lock);
/* Behind the hold, before the arena is reset. */
void enveloped_keep(void);

#endif
