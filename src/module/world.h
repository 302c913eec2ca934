/* What a module asks for that needs the world, while it holds the keyspace lock. */
#ifndef MODULE_WORLD_H
#define MODULE_WORLD_H

#include "module/context.h"

/* Runs `work` in the world, without the keyspace lock: that is let go of before, and others may run
 * between the two locks, once (DESIGN.md, "Calls that need the world"); nobody does behind it.
 * False, with nothing done, when the world is not to be had: others would see half of a transaction
 * or a script, or no command runs. */
bool world_run(RedisModuleCtx *ctx, void (*work)(void *data), void *data) MUST_CHECK;
/* The same when the call is at its end, so that it does not matter who runs between; never amid
 * another one. */
bool world_run_last(RedisModuleCtx *ctx, void (*work)(void *data), void *data);

#endif
