/* See memory.h. */
#include "net/memory.h"

#include "base/mem.h"
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

struct held_request *memory_hold_request(const struct request *request)
{
    struct held_request *held = mem_alloc(sizeof(*held) + request_copy_bytes(request));
    held->request = request_copy(request, held->bytes);
    return held;
}
