/* RedisModuleUser: a user of a module's own, which is on no list; or one of the server's, found by
 * its name whenever it is asked about, since it may change or go. State: keyspace. */
#ifndef MODULE_USERS_H
#define MODULE_USERS_H

#include "engine/acl.h"
#include "module/api.h"

/* Boot, and its reverse, when no client is left. */
void users_setup(void);
void users_teardown(void);
/* A session becomes a user of the module's own: its clients are closed when the user is freed. */
void user_note_session(RedisModuleUser *user);
/* What it stands for; NULL: the server has no user of that name any more. Awake. */
const struct acl_user *user_acl(const RedisModuleUser *user);

#endif
