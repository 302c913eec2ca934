/* What the handlers of the set family share. State: none of its own. */
#ifndef COMMANDS_SETS_PRIV_H
#define COMMANDS_SETS_PRIV_H

#include "engine/call.h"
#include "value/set.h"

/* Deletes the key when its set has become empty, and tells so; after the change itself was told. */
void sets_delete_empty(struct keyref *ref) REQUIRES(keyspace_lock);
/* Replies a member as a bulk string. */
void sets_reply_member(struct reply *r, struct set_member *m);
/* set_visit_fn that replies the member; the context is the reply. */
void sets_visit_reply(struct set_member *m, void *reply);
/* Replies all members, without a head. */
void sets_reply_members(struct reply *r, const struct entry *e) REQUIRES_SHARED(keyspace_lock);

#endif
