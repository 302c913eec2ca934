/* Accounts of what a turn has run: calls at the end of their phase. Who shows figures (INFO) has
 * what was done so far accounted before. */
#include "net/turn_priv.h"

#include "base/clock.h"
#include "base/stats.h"
#include "engine/execute.h"
#include "engine/parked.h"
#include "engine/transaction.h"

void turn_charge_hold(struct batch *b)
{
    uint64_t served = parked_served_ticks - b->hold.served;
    uint64_t ticks = clock_ticks() - b->hold.begin_ticks - *b->hold.slow_ticks - served;
    b->phase_ticks += ticks;
    b->hold.begin_ticks += ticks;
}

static void account_calls(struct server_thread *t, struct call *calls, int count, int phase_calls)
{
    if (count > 0) {
        call_account(calls, count, t->batch->phase_ticks * (uint64_t)count / (uint64_t)phase_calls,
                     t->wall_us);
    }
}

/* How many of the client's ordinary calls are done: the one that runs is not. */
static int calls_done(const struct batch *b, const struct batch_client *bc)
{
    bool runs = b->running >= bc->calls && b->running < bc->calls + bc->ran;
    return runs ? (int)(b->running - bc->calls) : bc->ran;
}

/* Calls of neighbouring clients are accounted together. Returns how many there were. */
static int account_done(struct server_thread *t, int phase_calls)
{
    struct batch *b = t->batch;
    struct call *first = NULL;
    int count = 0, all = 0;
    uint64_t in_mode[ACCESS_WORLD + 1] = {0};
    struct batch_client *end = b->clients + b->client_count;
    for (struct batch_client *bc = b->clients; bc < end; bc++) {
        int done = calls_done(b, bc) - bc->accounted; /* in this phase */
        if (done == 0) {
            continue;
        }
        if (!first || first + count != bc->calls + bc->accounted) {
            account_calls(t, first, count, phase_calls);
            first = bc->calls + bc->accounted;
            count = 0;
        }
        count += done;
        all += done;
        in_mode[bc->access] += (uint64_t)done;
        bc->accounted += done;
        bc->client->commands += (uint64_t)done;
    }
    account_calls(t, first, count, phase_calls);
    if (in_mode[ACCESS_SHARED] > 0) {
        stats_add(STAT_SHARED_CALLS, in_mode[ACCESS_SHARED]);
    }
    if (in_mode[ACCESS_EXCLUSIVE] > 0) {
        stats_add(STAT_EXCLUSIVE_CALLS, in_mode[ACCESS_EXCLUSIVE]);
    }
    return all;
}

void turn_account_phase(struct server_thread *t)
{
    account_done(t, t->batch->phase_calls);
}

/* Of the phase that runs. Its time so far is charged to those of its calls that are done. */
static void settle_phase(struct server_thread *t)
{
    struct batch *b = t->batch;
    int done = 0;
    for (int i = 0; i < b->client_count; i++) {
        done += calls_done(b, &b->clients[i]) - b->clients[i].accounted;
    }
    if (done > 0 && b->hold.slow_ticks) {
        turn_charge_hold(b);
        b->phase_calls -= account_done(t, done);
        b->phase_ticks = 0;
    }
}

void turn_account_so_far(void)
{
    struct server_thread *t = server_thread_self();
    if (!t || !t->batch->running) {
        return;
    }
    settle_phase(t);
    if (t->batch->running->execution) {
        transaction_settle(t->batch->running->execution, t->wall_us);
    }
}
