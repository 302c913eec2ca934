/* Scripts whose modules' commands need the world (engine/doubts.h).
 *
 * A script holds the keyspace lock from its first to its last command, and the GIL ranks before
 * that. So the world is stopped before its first one or not at all: a script that comes to such a
 * command, and has only read by then, ends there and runs once more from its start in the world;
 * one that is known to come to it runs there at once. Where it has done something already, or began
 * within another call, the command runs without, is refused the world should it ask, and the script
 * is noted, for its next run.
 *
 *   enter -> find, execute -> (again: find, execute) -> leave
 *
 * The keyspace lock is let go of while the world is stopped, when nothing of the script has been
 * done. A script that takes long gives the world back (world_let_go): others are served then.
 *
 * State: keyspace. */
#ifndef SCRIPT_WORLD_H
#define SCRIPT_WORLD_H

#include "script/run.h"

/* Before the script is looked up: what was found before may be gone then. */
void world_enter(struct script_run *run) REQUIRES(keyspace_lock);
/* Behind its end. */
void world_leave(struct script_run *run) REQUIRES(keyspace_lock);
/* It has to begin anew in the world before it may run the command. */
bool world_is_wanted(const struct script_run *run, const struct command *cmd) MUST_CHECK;
/* That has ended it: stops the world, for the run that follows. */
void world_stop(struct script_run *run) REQUIRES(keyspace_lock);
/* Runs one of its calls, of a module's command. */
void world_call(struct script_run *run, struct call *n) REQUIRES(keyspace_lock);
/* From here on its commands do without, its own world or that of its EXEC: others are awake again,
 * if it could be spared. */
void world_let_go(struct script_run *run);

#endif
