/* What the handlers of the string family share. State: none of its own. */
#ifndef COMMANDS_STRINGS_PRIV_H
#define COMMANDS_STRINGS_PRIV_H

#include "engine/call.h"

/* Replies the string `e`, null when it is NULL; large ones by reference. */
void strings_reply_value(struct call *c, const struct entry *e) REQUIRES_SHARED(keyspace_lock);

/* Makes argument `arg` the value of the opened key, whatever was there, with that expiry
 * (ENTRY_NO_EXPIRY: none): in place where it fits, else as a new entry. Announces nothing but what
 * db_put does. */
void strings_store(struct call *c, struct keyref *ref, int arg, int64_t expiry_ms)
    REQUIRES(keyspace_lock);

/* The expiry of the opened key, ENTRY_NO_EXPIRY without one or without key. */
int64_t strings_expiry_ms(const struct keyref *ref) REQUIRES_SHARED(keyspace_lock);

#endif
