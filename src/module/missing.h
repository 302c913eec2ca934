/* Functions of the interface that a module asks for and that are not there yet. Its variable stays
 * NULL, as on an older server, and a good module tests for that. One that calls it all the same, or
 * gives up by abort() then, ends its load and not the server: OnLoad is left where it stands. What
 * the module had begun of its own (memory, threads) stays then, and so does its library. Names that
 * the interface of Redis does not have either are not noted.
 *
 * State: the thread's that loads; while it does, the handlers of SIGSEGV and SIGABRT. */
#ifndef MODULE_MISSING_H
#define MODULE_MISSING_H

#include "base/buf.h"
#include "module/context.h"

typedef int (*missing_load)(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

struct missing_load_end {
    int result;        /* OnLoad's; REDISMODULE_ERR when it was cut off */
    bool cut_off;      /* it called what is not there, or gave up */
    bool gave_up;      /* abort() */
    struct buf called; /* the function that it called, where that can be told; the caller's */
    struct buf asked;  /* all those that it has asked for, "A, B"; the caller's */
};

/* Runs OnLoad. A module may load another one from there. */
void missing_run_load(missing_load load, RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                      struct missing_load_end *end);
/* GetApi has no function of that name, whose address would go into *variable. */
void missing_note(const char *name, const void *variable);

#endif
