/* Clients whose commands go on in slices (struct continuation). See turn_priv.h. */
#include "base/clock.h"
#include "base/mem.h"
#include "engine/execute.h"
#include "engine/parked.h"
#include "engine/tracking.h"
#include "keyspace/reclaim.h"
#include "net/durable.h"
#include "net/output.h"
#include "net/pause.h"
#include "net/turn_priv.h"

enum slice_outcome { SLICE_GOES_ON, SLICE_DONE, SLICE_PAUSED };

/* The slice that may write. A pause of writes that has begun meanwhile holds for it: what it was to
 * write waits as it would have if it had come later. */
static enum slice_outcome run_exclusive(struct call *call) REQUIRES(keyspace_lock)
{
    if (unlikely(pause_applies(call, call->now_ms))) {
        return SLICE_PAUSED;
    }
    return call_continue(call) ? SLICE_DONE : SLICE_GOES_ON;
}

/* Goes on as well when the lock is not to be had soon. *wrote: the log has grown by it. */
static enum slice_outcome run_slice(struct call *call, bool *wrote)
{
    enum slice_outcome outcome = SLICE_GOES_ON;
    call->held = call->continuation.access;
    tracking_writer = call->session->id;
    if (call->held == ACCESS_NONE) {
        outcome = call_continue(call) ? SLICE_DONE : SLICE_GOES_ON;
    } else if (call->held == ACCESS_SHARED) {
        if (keyspace_try_shared()) {
            outcome = call_continue(call) ? SLICE_DONE : SLICE_GOES_ON;
            keyspace_unlock_shared();
        }
    } else if (keyspace_try_exclusive()) {
        uint64_t log_before = commit_appended();
        outcome = run_exclusive(call);
        *wrote = commit_appended() != log_before;
        keyspace_unlock_exclusive();
        reclaim_run();
    }
    return outcome;
}

/* The command has not written yet, and is not to now: it begins from the start after the pause. */
static void hold_client(struct client *c)
{
    struct request request = {c->continuation_argc, c->continuation_argv, NULL};
    call_abandon(&c->continuation);
    pause_hold(c, &request);
}

/* What a client is told that has its reply; `position`: of the log, that it waits for. */
static void finish_client(struct server_thread *t, struct client *c, struct call *call,
                          uint32_t mark, uint32_t end, uint64_t position)
{
    call->duration_ticks = c->continuation_ticks;
    call_account(call, 1, 0, t->wall_us);
    if (c->flags & (CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP)) {
        c->flags &= ~(uint32_t)CLIENT_REPLY_SKIP;
        return;
    }
    if (unlikely(position)) {
        durable_hold(c, position);
    }
    output_pieces(c, &t->reply, mark, end);
}

/* One slice for one client; true when its command is done, or waits. */
static bool step_client(struct server_thread *t, struct client *c)
{
    struct call call = {.cmd = c->continuation_cmd,
                        .argc = c->continuation_argc,
                        .argv = c->continuation_argv,
                        .session = &c->session,
                        .reply = &t->reply,
                        .now_ms = keyspace_time_ms(t->wall_us / 1000),
                        .continuation = c->continuation};
    bool may_write = call.continuation.access == ACCESS_EXCLUSIVE, wrote = false;
    uint32_t faults = durable_begin_batch();
    uint64_t log_before = may_write ? durable_begin_writes() : 0;
    uint32_t mark = reply_begin(&t->reply, c->session.proto);
    uint64_t begin = clock_ticks() - parked_served_ticks;
    enum slice_outcome outcome = run_slice(&call, &wrote);
    c->continuation = call.continuation;
    c->continuation_ticks += clock_ticks() - parked_served_ticks - begin;
    uint64_t position = may_write ? durable_end_writes(log_before, faults, false) : 0;
    uint32_t end = reply_end(&t->reply);
    if (outcome == SLICE_DONE) {
        finish_client(t, c, &call, mark, end, wrote ? position : 0);
    } else if (outcome == SLICE_PAUSED) {
        hold_client(c);
    }
    if (outcome != SLICE_GOES_ON) {
        mem_free(c->continuation_argv);
        c->continuation_argv = NULL;
        c->flags &= ~(uint32_t)CLIENT_SUSPENDED;
    }
    reply_reset(&t->reply);
    return outcome != SLICE_GOES_ON;
}

const struct timespec turn_busy_pause = {.tv_nsec = 1000000};

void turn_step_suspended(struct server_thread *t)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->suspended_count; i++) {
        struct client *c = t->suspended[i];
        if (c->flags & CLIENT_CLOSE_ASAP) {
            continue;
        }
        if (step_client(t, c)) {
            server_thread_make_ready(t, c);
        } else {
            t->suspended[kept++] = c;
        }
    }
    t->suspended_count = kept;
    turn_run_expire_notes(t);
    if (unlikely(keyspace_is_busy())) {
        server_thread_pause(t, &turn_busy_pause);
    }
    if (kept > 0 || t->ready_count > t->ready_next) {
        t->more_to_do = true;
    }
}
