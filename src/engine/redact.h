/* Which arguments of a call are secrets, for all who write calls down (slow log, MONITOR, logs of
 * ACL violations). State: none; CONFIG's option tables are read. */
#ifndef ENGINE_REDACT_H
#define ENGINE_REDACT_H

#include "engine/call.h"

/* What stands in the place of a secret. */
#define REDACTED_TEXT "(redacted)"

/* True when argv[i] is a password or may hold one: AUTH's, HELLO's AUTH, ACL SETUSER's rules,
 * MIGRATE's AUTH and AUTH2, CONFIG SET's values of OPTION_SENSITIVE options. 0 <= i < argc. */
bool call_argument_is_sensitive(const struct call *c, int i);

#endif
