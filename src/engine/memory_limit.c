/* See memory_limit.h. */
#include "engine/memory_limit.h"

#include "base/spike.h"
#include "engine/gate.h"
#include "engine/tracking.h"

#define REFUSAL "OOM command not allowed when used memory > 'maxmemory'."
#define ABORTED "EXECABORT Transaction discarded because of: " REFUSAL

const char memory_limit_refusal[] = REFUSAL;

/* Crossing calls end with the gate as the variable says: who writes the gate last looks once more
 * at the variable, which its own caller and every other one had written before. */
static void follow_eviction(void)
{
    bool failing;
    do {
        failing = atomic_load(&evict_failing);
        gate_set(GATE_MEMORY, failing);
    } while (failing != atomic_load(&evict_failing));
}

void memory_limit_setup(void)
{
    evict_set_listener(follow_eviction);
}

enum evict_result memory_limit_keep(int64_t wall_us)
{
    if (gate_is_loading() || gate_busy_refusal()) {
        return EVICT_WITHIN; /* what is loaded is to be there as saved; a script holds the lock */
    }
    tracking_writer = 0;
    uint64_t begin = spike_begin();
    enum evict_result result = evict_run(wall_us / 1000);
    spike_end("eviction-cycle", begin);
    return result;
}

/* What ends a transaction, or the connection, is never refused for what would be queued. */
static bool is_queued(const struct call *c)
{
    enum command_transaction kind = c->cmd->row->transaction;
    bool watches = kind == TRANSACTION_BESIDE && c->cmd->first_key != 0;
    return c->session->in_transaction &&
           (kind == TRANSACTION_QUEUED || kind == TRANSACTION_OPENS || watches);
}

bool memory_limit_concerns(const struct call *c, uint32_t flags)
{
    return flags & CMD_DENYOOM || (!c->nested && is_queued(c));
}

const char *memory_limit_now(const struct session *s)
{
    bool refuses = atomic_load_explicit(&evict_failing, memory_order_relaxed) && !s->internal;
    return refuses ? memory_limit_refusal : NULL;
}

void memory_limit_refuse(struct call *c)
{
    if (c->refusal.ptr || !c->cmd || !(transaction_flags(c) & CMD_DENYOOM) ||
        c->session->internal) {
        return;
    }
    if (!c->execution) {
        c->refusal = slice_cstr(memory_limit_refusal);
    } else if (!c->execution->refusal.ptr) {
        c->execution->refusal = SLICE(ABORTED);
    }
}
