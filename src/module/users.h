/* RedisModuleUser: a user of a module's own, which is on no list; or one of the server's, found by
 * its name whenever it is asked about, since it may change or go. State: keyspace. */
#ifndef MODULE_USERS_H
#define MODULE_USERS_H

#include "engine/acl.h"
#include "module/api.h"

/* Boot, and its reverse, when no client is left. */
void users_setup(void);
void users_teardown(void);
/* What it stands for, and may do; NULL: the server has no user of that name any more. Awake. */
const struct acl_user *user_acl(const RedisModuleUser *user);
/* The same for a session that becomes it: what is the module's own changes for its sessions, and
 * closes them when it is freed, at the end of the call that does so, where the world is to be had
 * then, else within a moment. */
const struct acl_user *user_for_session(RedisModuleUser *user);
/* The call of this context ends: so it does what waits for that. */
void users_settle(RedisModuleCtx *ctx) REQUIRES(keyspace_lock);

#endif
