/* Timers of modules: run by the main thread (main_loop.h), in the order of their times. State:
 * keyspace. */
#ifndef MODULE_TIMERS_H
#define MODULE_TIMERS_H

#include "keyspace/lock.h"
#include "module/loaded.h"

#include <stdbool.h>

/* Boot and its reverse. */
void timers_setup(void);
void timers_teardown(void);
/* Whether the module has one that has not fired; takes all of them away. */
bool timers_has(const struct module *m) REQUIRES(keyspace_lock);
void timers_remove(const struct module *m) REQUIRES(keyspace_lock);

#endif
