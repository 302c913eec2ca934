/* Where a caller comes from, as far as commands that may be kept to local clients need to know.
 * Pure. */
#ifndef COMMANDS_PEER_H
#define COMMANDS_PEER_H

#include "engine/session.h"

/* True for Unix sockets, loopback addresses, and sessions that are nobody's client. */
bool peer_is_local(const struct session *s);

#endif
