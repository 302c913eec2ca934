/* Clients that modules block. BlockClient makes a handle; when the command returns, its call is
 * parked (engine/parked.h) for an event that only this handle has, or on keys.
 *
 *   COMMAND --blocked_park--> WAITING --answered: reply or timeout callback--> OVER
 *      `--AbortBlock--> OVER  `--------client gone, CLIENT UNBLOCK ERROR-------^
 *
 * Two users hold a handle: the module, until its UnblockClient has been worked off (clients that
 * wait for keys have none), and the parked call, until it is answered or its client has gone. When
 * both are done the private data is freed; the memory stays for threads' contexts. UnblockClient
 * may come at any time and on any thread, once: it posts a job to the main thread (main_loop.h),
 * which has the parked call tried again; that runs the reply callback and takes what threads have
 * replied behind it. State: keyspace, but for what is said to be otherwise; what threads reply is
 * the module's to keep in order until it unblocks the client. */
#ifndef MODULE_BLOCKED_H
#define MODULE_BLOCKED_H

#include "module/context.h"

/* A command has run and has blocked its client: the call waits from here on. What it has replied
 * since `before` is dropped, and logged: there is one reply. */
void blocked_park(RedisModuleCtx *ctx, struct reply_mark before) REQUIRES(keyspace_lock);
/* The handler of a call that is tried again. */
void blocked_retry(struct call *c) REQUIRES(keyspace_lock);

/* For contexts of threads: the module; a reference for the context, which replies to the client.
 * Any thread. */
struct module *blocked_module(const RedisModuleBlockedClient *b);
void blocked_attach(RedisModuleCtx *ctx, RedisModuleBlockedClient *b);
void blocked_release(RedisModuleBlockedClient *b);

#endif
