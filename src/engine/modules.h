/* The seam to modules (module/): what the layers below show of them. State: set at boot. */
#ifndef ENGINE_MODULES_H
#define ENGINE_MODULES_H

#include "keyspace/lock.h"
#include "resp/reply.h"

/* Replies the modules that are loaded, as MODULE LIST and HELLO do. Awake. */
void modules_reply_list(struct reply *r);
/* The name of the module whose code the calling thread runs, or that has called the command that it
 * runs; its path while it is being loaded. NULL: none. For the report of a crash. */
extern _Thread_local const char *modules_running;
/* Modules listen to what happens to keys: a call that runs in exclusive mode is a unit then, and
 * before its end they are told of it, and do what that makes them do. Keyspace. */
extern bool modules_listen;
/* Tells them; `last`: nothing of the unit is to come, so what they have put off until then is done
 * as well. */
void modules_tell(bool last) REQUIRES(keyspace_lock);
/* Boot: who tells them. */
void modules_set_teller(void (*tell)(bool last));
/* Boot: who can tell. Without one there are no modules. */
void modules_set_list(void (*reply_list)(struct reply *r));

#endif
