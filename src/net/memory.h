/* Memory limits in the turn: maxmemory before and after each batch. State: thread-owned. */
#ifndef NET_MEMORY_H
#define NET_MEMORY_H

#include "keyspace/evict.h"
#include "net/server_thread.h"

/* The slow part of memory_keep. */
void memory_keep_now(struct server_thread *t) EXCLUDES(keyspace_lock);
/* Before and after each batch: keeps to maxmemory, where the thread has to look. While there is
 * more to evict than one run had time for, the thread does not sleep. */
static inline void memory_keep(struct server_thread *t) EXCLUDES(keyspace_lock)
{
    if (unlikely(evict_due())) {
        memory_keep_now(t);
    }
}
/* True when the thread must look before it runs the batch's next call. */
static inline bool memory_has_outgrown(void)
{
    return unlikely(evict_limit_bytes != 0) && evict_has_outgrown();
}
/* True while what needs memory is refused. */
static inline bool memory_is_short(void)
{
    return atomic_load_explicit(&evict_failing, memory_order_relaxed);
}

#endif
