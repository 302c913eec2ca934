/* See memory.h. */
#include "net/memory.h"

#include "engine/memory_limit.h"
#include "net/subscriptions.h"
#include "net/tracking.h"

void memory_keep_now(struct server_thread *t)
{
    if (memory_limit_keep(t->wall_us) == EVICT_RUNNING) {
        t->more_to_do = true;
    }
    subscriptions_wake_others(t);
    tracking_wake_others(t);
}
