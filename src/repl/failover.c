/* See failover.h. */
#include "repl/failover.h"

#include "base/log.h"
#include "net/pause.h"
#include "repl/backlog.h"
#include "repl/follow.h"
#include "repl/replica.h"

#include <stdio.h>
#include <string.h>

enum failover_stage { FAILOVER_NONE, FAILOVER_WAITING, FAILOVER_HANDING };

static struct {
    _Atomic enum failover_stage stage;
    bool named; /* the target was */
    char host[REPLICA_IP_MAX];
    int64_t port;
    int64_t deadline_ms; /* monotonic; 0: none */
    bool force;
} failover;

bool failover_is_running(void)
{
    return failover.stage != FAILOVER_NONE;
}

const char *failover_word(void)
{
    static const char *const words[] = {"no-failover", "waiting-for-sync", "failover-in-progress"};
    return words[failover.stage];
}

/* ---- the target ---- */

struct search {
    uint64_t offset; /* it has to have */
    bool found, online, ready;
    char host[REPLICA_IP_MAX];
    int64_t port;
};

/* The one that was named, or the first that has everything. */
static void look(struct replica *r, void *context)
{
    struct search *s = context;
    bool online = atomic_load(&r->state) == REPLICA_ONLINE && !r->rdb_only && !r->is_old;
    bool ready = online && atomic_load(&r->ack_offset) >= s->offset && !atomic_load(&r->closing);
    bool fits =
        failover.named ? r->port == failover.port && strcmp(r->ip, failover.host) == 0 : ready;
    if (fits && !s->found) {
        s->found = true;
        s->online = online;
        s->ready = ready;
        memcpy(s->host, r->ip, sizeof(s->host));
        s->port = r->port;
    }
}

static struct search find_target(void)
{
    struct search s = {.offset = backlog_offset()};
    replicas_each(look, &s);
    return s;
}

/* ---- begin and end ---- */

static const char *take_target(const struct failover_request *request)
{
    failover.named = request->host.ptr != NULL;
    if (!failover.named) {
        return NULL;
    }
    if (request->host.len >= sizeof(failover.host)) {
        return "ERR FAILOVER target HOST and PORT is not a replica.";
    }
    memcpy(failover.host, request->host.ptr, request->host.len);
    failover.host[request->host.len] = '\0';
    failover.port = request->port;
    struct search s = find_target();
    if (!s.found) {
        return "ERR FAILOVER target HOST and PORT is not a replica.";
    }
    return s.online ? NULL : "ERR FAILOVER target replica is not online.";
}

const char *failover_begin(const struct failover_request *request)
{
    gil_assert_world();
    if (failover_is_running()) {
        return "ERR FAILOVER already in progress.";
    }
    if (follow_is_replica()) {
        return "ERR FAILOVER is not valid when server is a replica.";
    }
    if (replicas_count() == 0) {
        return "ERR FAILOVER requires connected replicas.";
    }
    if (request->force && (!request->timeout_ms || !request->host.ptr)) {
        return "ERR FAILOVER with force option requires both a timeout and target HOST and IP.";
    }
    const char *error = take_target(request);
    if (error) {
        return error;
    }
    failover.force = request->force;
    failover.deadline_ms = request->timeout_ms ? replica_clock_ms() + request->timeout_ms : 0;
    pause_start(PAUSE_FAILOVER, false, PAUSE_NO_END_MS);
    keyspace_lock_exclusive();
    backlog_tell(SLICE("*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"));
    backlog_hush(true);
    keyspace_unlock_exclusive();
    failover.stage = FAILOVER_WAITING;
    log_notice("FAILOVER requested to %s:%lld", failover.named ? failover.host : "any replica",
               failover.named ? (long long)failover.port : 0LL);
    return NULL;
}

static void finish(void) REQUIRES(gil);
static void finish(void)
{
    failover.stage = FAILOVER_NONE;
    keyspace_lock_exclusive();
    backlog_hush(false);
    keyspace_unlock_exclusive();
    pause_end(PAUSE_FAILOVER);
}

bool failover_abort(const char *why)
{
    gil_assert_world();
    if (!failover_is_running()) {
        return false;
    }
    log_warning("The failover is aborted while it is %s: %s", failover_word(), why);
    if (failover.stage == FAILOVER_HANDING) {
        follow_nobody();
    }
    finish();
    return true;
}

/* ---- its way ---- */

static void hand_over(const struct search *target) REQUIRES(gil);
static void hand_over(const struct search *target)
{
    failover.stage = FAILOVER_HANDING;
    follow_set(slice_cstr(target->host), (int)target->port);
}

/* The world stands. */
static void step(void) REQUIRES(gil);
static void step(void)
{
    struct search s = find_target();
    bool late = failover.deadline_ms && replica_clock_ms() >= failover.deadline_ms;
    if (failover.stage != FAILOVER_WAITING) {
        return;
    }
    if (s.ready) {
        log_notice("Replica %s:%lld has everything: it takes over", s.host, (long long)s.port);
        hand_over(&s);
    } else if (late && failover.force) {
        log_warning("The failover to %s:%lld took too long and is forced", failover.host,
                    (long long)failover.port);
        memcpy(s.host, failover.host, sizeof(s.host));
        s.port = failover.port;
        hand_over(&s);
    } else if (late) {
        failover_abort("Replica never caught up before timeout");
    }
}

void failover_tick(void) NO_THREAD_SAFETY_ANALYSIS
{
    if (failover.stage != FAILOVER_WAITING) {
        return;
    }
    gil_stop_world();
    step();
    gil_resume_world();
}

bool failover_hands_over(void)
{
    return failover.stage == FAILOVER_HANDING;
}

void failover_answered(bool taken) NO_THREAD_SAFETY_ANALYSIS
{
    gil_stop_world();
    if (failover.stage == FAILOVER_HANDING && taken) {
        finish();
    } else {
        failover_abort("Failover target rejected psync request");
    }
    gil_resume_world();
}
