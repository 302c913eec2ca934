/* MIGRATE: moves keys to another server. What goes over the network goes there on a thread of its
 * own, outside every lock, while the client waits (engine/block.h) and the world goes on. A key
 * that was changed meanwhile is sent once more; it is deleted here only when the other server has
 * what is here, so nothing that was written is lost.
 *
 * Inside of a transaction or a script nobody can wait: there the network is waited for under the
 * lock, as Redis does everywhere. That is bounded: all of it may take the call's time-out, but a
 * second at most, and the host must be an address, since looking up a name has no bound. What the
 * other server has confirmed by then is moved, the rest stays here, and the reply is -IOERR.
 *
 * State: jobs belong to the thread that works on them; whether one is done is keyspace state. */
#ifndef REPL_MIGRATE_H
#define REPL_MIGRATE_H

#include "engine/command.h"

extern const struct command_row migrate_commands[];

/* Ends the threads; jobs that wait are dropped. Their clients are gone. */
void migrate_teardown(void);

#endif
