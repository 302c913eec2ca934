/* What DEBUG's files share: handlers of its subcommands, all run while the world stands still. For
 * commands/debug*.c only. State: none of its own. */
#ifndef COMMANDS_DEBUG_PRIV_H
#define COMMANDS_DEBUG_PRIV_H

#include "engine/call.h"

/* debug.c: the error about arguments that no subcommand takes. */
void debug_reply_unknown(struct call *c) REQUIRES(gil);
/* debug_data.c: keys and tables. argv[1] is the subcommand; its argument count was checked by the
 * table in debug.c. */
void debug_digest(struct call *c) REQUIRES(gil);
void debug_digest_value(struct call *c) REQUIRES(gil);
void debug_populate(struct call *c) REQUIRES(gil);
void debug_htstats(struct call *c) REQUIRES(gil);
void debug_htstats_key(struct call *c) REQUIRES(gil);
void debug_structsize(struct call *c) REQUIRES(gil);
/* debug_values.c: how one value is kept. */
void debug_object(struct call *c) REQUIRES(gil);
void debug_sdslen(struct call *c) REQUIRES(gil);
void debug_listpack(struct call *c) REQUIRES(gil);
void debug_quicklist(struct call *c) REQUIRES(gil);
/* debug_protocol.c: one reply of each type of the protocol. */
void debug_protocol(struct call *c) REQUIRES(gil);
/* debug_malloc.c: the allocator's knobs. */
void debug_mallctl(struct call *c) REQUIRES(gil);
void debug_mallctl_str(struct call *c) REQUIRES(gil);

#endif
