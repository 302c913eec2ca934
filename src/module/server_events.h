/* What modules are told of the server: what lower layers tell by engine/modules.h, and the cron. A
 * callback runs on the thread where it happens, with the keyspace lock in exclusive mode. State:
 * keyspace. */
#ifndef MODULE_SERVER_EVENTS_H
#define MODULE_SERVER_EVENTS_H

#include "keyspace/lock.h"
#include "module/loaded.h"

/* Boot, and its reverse. */
void server_events_setup(void);
void server_events_teardown(void);
/* The module is told no more. */
void server_events_withdraw(const struct module *m) REQUIRES(keyspace_lock);

#endif
