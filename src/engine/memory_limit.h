/* maxmemory as calls see it: keeping to the limit, and refusing what would need more. State: see
 * keyspace/evict.h. */
#ifndef ENGINE_MEMORY_LIMIT_H
#define ENGINE_MEMORY_LIMIT_H

#include "engine/transaction.h"
#include "keyspace/evict.h"

/* The calling thread's look at the memory (evict_run), timed for the latency monitor
 * ("eviction-cycle"). A server thread, awake, without the keyspace lock; invalidations go to
 * everybody. Nothing while a data set is loaded. */
enum evict_result memory_limit_keep(int64_t wall_us) EXCLUDES(keyspace_lock);

/* Boot: GATE_MEMORY is shut while memory is over the limit and nothing can be evicted. */
void memory_limit_setup(void);
/* What a refused call is told. */
extern const char memory_limit_refusal[];
/* For the gate: whether the call, whose command and session are known, must not run while it is
 * shut: by its flags, an EXEC's queue included, it may need more memory (CMD_DENYOOM), or MULTI
 * would queue it. */
bool memory_limit_concerns(const struct call *c, uint32_t flags);
/* Why nothing that needs memory may run now, for who runs calls inside his own (scripts): an error
 * text that lives forever, NULL when it may. */
const char *memory_limit_now(const struct session *s);
/* Refuses a call that was prepared before the gate was shut, if it concerns it. Queued it is all
 * the same. */
void memory_limit_refuse(struct call *c);

#endif
