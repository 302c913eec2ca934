/* FAILOVER: the server hands its role to one of its replicas, without a write lost.
 *
 *   NONE --failover_begin--> WAITING --a replica has everything (or time is up, FORCE)--> HANDING
 *    ^                          |                                                            |
 *    |--ABORT, time is up-------'              our PSYNC ... FAILOVER is taken: a replica now |
 *    |------------------------------------------------------------------------------------- -|
 *    `--- refused, ABORT: a primary again ----------------------------------------------------'
 *
 * From WAITING on writes wait and the stream is quiet; in HANDING we follow the target, whom the
 * first PSYNC asks to become a primary. If it does, who waited gets -READONLY; if not, we are a
 * primary again and they go on.
 *
 * State: world, the stage atomic. */
#ifndef REPL_FAILOVER_H
#define REPL_FAILOVER_H

#include "base/slice.h"
#include "engine/gil.h"

#include <stdbool.h>
#include <stdint.h>

/* What was asked for. */
struct failover_request {
    struct slice host; /* of the target; ptr NULL: any */
    int64_t port;
    int64_t timeout_ms; /* 0: none */
    bool force;         /* at the time-out it is done all the same */
};
/* NULL, or why not: an error text that lives forever. */
const char *failover_begin(const struct failover_request *request) REQUIRES(gil);
/* False: there is none. */
bool failover_abort(const char *why) REQUIRES(gil);
/* Any thread. */
bool failover_is_running(void);
/* As INFO says it. */
const char *failover_word(void);

/* ---- the sync thread's, the GIL is held in shared mode ---- */

/* Whether it can go on. */
void failover_tick(void);

/* ---- the following thread's, likewise ---- */

/* True when the PSYNC that comes now asks the other one to become a primary. */
bool failover_hands_over(void);
/* It has answered: took it, or not. */
void failover_answered(bool taken);

#endif
