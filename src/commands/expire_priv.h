/* What the commands that set times to expire share: of keys (keys_expire.c), fields
 * (hashes_expire.c), members (members_expire.c). State: none of its own. */
#ifndef COMMANDS_EXPIRE_PRIV_H
#define COMMANDS_EXPIRE_PRIV_H

#include "engine/call.h"

#define MS_PER_SECOND 1000

enum expire_condition {
    EXPIRE_NX = 1 << 0, /* only without an expiry */
    EXPIRE_XX = 1 << 1, /* only with one */
    EXPIRE_GT = 1 << 2, /* only to a later one; none counts as the latest */
    EXPIRE_LT = 1 << 3, /* only to an earlier one */
};

/* The condition that a word names, in any case; 0 for other words. */
uint32_t expire_condition_of(struct slice word);
/* True when the conditions let `at_ms` replace `current_ms`. ENTRY_NO_EXPIRY is later than every
 * time. */
bool expire_allowed(uint32_t conditions, int64_t current_ms, int64_t at_ms);
/* The absolute time that argument `arg` names, in units of `unit_ms` counted from `base_ms`; false
 * with an error replied. Times before now, and before 1970, are fine. */
bool expire_parse_time(struct call *c, int arg, int64_t base_ms, int64_t unit_ms,
                       int64_t *at_ms) MUST_CHECK;

/* Propagates (engine/propagate.h), instead of the call, that key 0 expires at that time; that it
 * was deleted. */
void expire_propagate_key(struct call *c, int64_t at_ms) REQUIRES(keyspace_lock);
void expire_propagate_deletion(struct call *c, bool lazily) REQUIRES(keyspace_lock);

#endif
