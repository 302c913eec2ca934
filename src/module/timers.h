/* Timers of modules: run by the main thread (main_loop.h), in the order of their times. State:
 * keyspace. */
#ifndef MODULE_TIMERS_H
#define MODULE_TIMERS_H

#include "keyspace/lock.h"
#include "module/context.h"

#include <stdbool.h>

/* Boot and its reverse. */
void timers_setup(void);
void timers_teardown(void);
/* One for the context's module, at a time of clock_mono_us or as soon after that as may be; its id,
 * never 0. And its reverse, before it has fired. */
uint64_t timers_start(const RedisModuleCtx *ctx, uint64_t at_us, RedisModuleTimerProc callback,
                      void *data) REQUIRES(keyspace_lock);
void timers_stop(uint64_t id) REQUIRES(keyspace_lock);
/* Whether the module has one that has not fired; takes all of them away. */
bool timers_has(const struct module *m) REQUIRES(keyspace_lock);
void timers_remove(const struct module *m) REQUIRES(keyspace_lock);

#endif
