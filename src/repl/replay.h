/* Running what another server has run already: one call, within the hold of whoever replays. State:
 * none. */
#ifndef REPL_REPLAY_H
#define REPL_REPLAY_H

#include "engine/execute.h"

/* Runs a prepared call to its end, all its slices; c->failed tells of an error. Within the calling
 * thread's exclusive hold, which a call that needs the world interrupts: then the GIL is held in
 * shared mode. The call's reply stands between reply_begin and reply_end. */
void replay_run(struct call *c) REQUIRES(keyspace_lock);

#endif
