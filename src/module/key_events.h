/* What modules are told of keys. An event is noted amid the change and told when the call that made
 * it is over, still within its hold and its unit (engine/modules.h), so that a module may look at
 * keys, and write: no handler is half way through the database then. What no call made (expiry,
 * eviction) is told before the hold ends. An event's name is at one address for good, which is no
 * other name's, as modules expect. State: keyspace. */
#ifndef MODULE_KEY_EVENTS_H
#define MODULE_KEY_EVENTS_H

#include "keyspace/lock.h"
#include "module/loaded.h"

/* Boot and its reverse. */
void key_events_setup(void);
void key_events_teardown(void);
/* The module is told no more. */
void key_events_withdraw(const struct module *m) REQUIRES(keyspace_lock);

#endif
