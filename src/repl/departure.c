/* See departure.h. */
#include "repl/departure.h"

#include "base/log.h"
#include "engine/block.h"
#include "engine/shutdown.h"
#include "net/pause.h"
#include "repl/backlog.h"
#include "repl/peers.h"
#include "repl/replica.h"
#include "repl/sync.h"

#include <inttypes.h>

enum departure_stage { DEPARTURE_NONE, DEPARTURE_WAITING, DEPARTURE_LEAVING };

static struct {
    _Atomic enum departure_stage stage;
    _Atomic int64_t deadline_ms; /* monotonic; of WAITING */
    uint64_t own;                /* our last write, as active peers count them; of WAITING */
    unsigned flags;
} departure;

struct lag {
    uint64_t offset;
    int count;
    bool tells; /* into the log */
};

static void look_for_lag(struct replica *r, void *context)
{
    struct lag *lag = context;
    uint64_t have = atomic_load(&r->ack_offset);
    if (r->is_old || r->rdb_only || atomic_load(&r->closing) || have >= lag->offset) {
        return;
    }
    lag->count++;
    if (lag->tells) {
        log_notice("Replica %s:%" PRId64 " has not all of the stream: it acknowledged %" PRIu64
                   " of %" PRIu64,
                   r->ip, r->port, have, lag->offset);
    }
}

/* Who pulls from us as an active replica, and has not said that it has all of our writes. */
static int lagging_peers(bool tells)
{
    int count = peers->on() ? peers->count() - peers->with(departure.own) : 0;
    if (count > 0 && tells) {
        log_notice("%d active replicas have not all of our writes", count);
    } else if (count > 0) {
        peers->ask();
    }
    return count > 0 ? count : 0;
}

static int lagging(bool tells)
{
    struct lag lag = {.offset = backlog_offset(), .tells = tells};
    replicas_each(look_for_lag, &lag);
    return lag.count + lagging_peers(tells);
}

static int all_replicas(void)
{
    return replicas_count() + peers->count();
}

/* Writes wait, and replicas are asked how far they are. */
static void hold_still(void) REQUIRES(gil);
static void hold_still(void)
{
    pause_start(PAUSE_SHUTDOWN, false, PAUSE_NO_END_MS);
    keyspace_lock_exclusive();
    if (backlog_is_on()) {
        backlog_tell(SLICE("*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"));
    }
    backlog_hush(true);
    departure.own = peers->on() ? peers->last_write() : 0;
    keyspace_unlock_exclusive();
}

static bool begin(unsigned flags)
{
    gil_assert_world();
    bool now = (flags & SHUTDOWN_NOW) || shutdown_timeout_s == 0;
    bool first = departure.stage == DEPARTURE_NONE;
    if (first && (now || all_replicas() == 0)) {
        return false;
    }
    if (now) {
        departure.stage = DEPARTURE_LEAVING; /* who waited is overruled */
        return false;
    }
    departure.flags = flags;
    if (first) {
        hold_still();
        log_notice("%d replicas are waited for before the end", all_replicas());
        departure.deadline_ms = replica_clock_ms() + shutdown_timeout_s * 1000;
        departure.stage = DEPARTURE_WAITING;
        sync_wake();
    }
    return true;
}

static bool end(void)
{
    gil_assert_world();
    if (departure.stage == DEPARTURE_NONE) {
        return false;
    }
    departure.stage = DEPARTURE_NONE;
    pause_end(PAUSE_SHUTDOWN);
    keyspace_lock_exclusive();
    backlog_hush(false);
    call_event(SHUTDOWN_CALLED_OFF);
    keyspace_unlock_exclusive();
    log_notice("The end is called off");
    return true;
}

static int64_t left_ms(void)
{
    if (departure.stage != DEPARTURE_WAITING) {
        return -1;
    }
    int64_t left = departure.deadline_ms - replica_clock_ms();
    return left > 0 ? left : 0;
}

/* The wait is over. */
static void leave(void) NO_THREAD_SAFETY_ANALYSIS
{
    gil_stop_world();
    if (departure.stage == DEPARTURE_WAITING) {
        int count = lagging(true);
        if (count > 0) {
            log_warning("%d of %d replicas have not everything: the end waits no longer for them",
                        count, all_replicas());
        }
        departure.stage = DEPARTURE_LEAVING;
        shutdown_request(departure.flags | SHUTDOWN_WAITED);
    }
    gil_resume_world();
}

void departure_tick(void)
{
    if (departure.stage == DEPARTURE_WAITING && (left_ms() == 0 || lagging(false) == 0)) {
        leave();
    }
}

static const struct shutdown_waiter waiter = {.begin = begin, .end = end, .left_ms = left_ms};

void departure_setup(void)
{
    shutdown_set_waiter(&waiter);
}
