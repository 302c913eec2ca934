/* ACL LOG: the latest denials, the newest first; and their counts. A denial like one of the last
 * minute (same user, reason, object and context) counts that one up. State: behind a leaf lock; the
 * counters are atomic. */
#ifndef ENGINE_ACL_LOG_H
#define ENGINE_ACL_LOG_H

#include "engine/acl.h"

/* Notes a denial of `object` to the session, as `user`. Any thread that owns the session. */
void acl_log_note(const struct session *s, const struct command *cmd, enum acl_verdict verdict,
                  enum acl_context context, struct slice user, struct slice object);
/* Replies up to `count` entries (negative: none). */
void acl_log_reply(struct reply *reply, int64_t count);
/* Forgets all entries. */
void acl_log_reset(void);
/* Denials of that kind since the start or CONFIG RESETSTAT. */
uint64_t acl_log_denied(enum acl_verdict verdict);
/* CONFIG RESETSTAT. */
void acl_log_reset_counters(void);
/* acllog-max-len. */
extern const struct option acl_log_options[];

#endif
