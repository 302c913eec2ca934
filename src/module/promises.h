/* Calls of modules that wait (RM_Call with K): BLPOP and its like, and modules' own commands that
 * block their clients. The call is parked (engine/parked.h), as that of a client is, with a session
 * of its own; the module has a promise instead of a reply, and hears of its end by a handler.
 *
 *   WAITING --served, or timed out: handler--> OVER
 *      `------CallReplyPromiseAbort-----------^
 *
 * The handler is called in the hold in which the call got its reply, and what both of them tell the
 * logs is one unit. Where another node of active replicas has served the call it is the main thread
 * that calls it, a moment later. Rights (the flag C) are looked at once, when the call is made.
 * State: keyspace; a reply that holds a promise may be freed on any thread. */
#ifndef MODULE_PROMISES_H
#define MODULE_PROMISES_H

#include "module/context.h"

struct promise;

/* The call, which the module of the context has made, has been run and waits; `targets`: the logs
 * that it tells (PROPAGATE_TO). The reply is the module's. */
RedisModuleCallReply *promises_make(RedisModuleCtx *ctx, struct call *c, unsigned targets)
    REQUIRES(keyspace_lock);
/* The reply of a promise is freed. Any thread. */
void promises_release(struct promise *p);
/* The module goes, which never began: its calls are aborted. World. */
void promises_withdraw(const struct module *m) REQUIRES(keyspace_lock);
/* Those that are left when the server ends, before the jobs of the main thread. */
void promises_teardown(void);

#endif
