/* Which arguments of a call are secrets, for all who write calls down (slow log, MONITOR, logs of
 * ACL violations). State: none; CONFIG's option tables are read. */
#ifndef ENGINE_REDACT_H
#define ENGINE_REDACT_H

#include "engine/call.h"

/* What stands in the place of a secret. */
#define REDACTED_TEXT "(redacted)"

/* The handler of the call says that argv[i] is a secret, 0 < i < argc: it is shown nowhere from
 * then on. Of many arguments all from the 31st on are hidden together. */
void call_mark_secret(struct call *c, int i);
/* True when argv[i] is marked so, or a password or may hold one: AUTH's, HELLO's AUTH, ACL
 * SETUSER's rules, MIGRATE's AUTH and AUTH2, CONFIG SET's values of OPTION_SENSITIVE options. 0 <=
 * i < argc. */
bool call_argument_is_sensitive(const struct call *c, int i);

#endif
