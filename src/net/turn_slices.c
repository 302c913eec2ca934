/* Clients whose commands go on in slices (struct continuation). See turn_priv.h. */
#include "base/clock.h"
#include "base/mem.h"
#include "engine/execute.h"
#include "engine/tracking.h"
#include "net/output.h"
#include "net/turn_priv.h"

/* False as well when the lock is not to be had soon. */
static bool run_slice(struct call *call)
{
    bool done = false;
    call->held = command_access(call->cmd);
    tracking_writer = call->session->id;
    if (call->held == ACCESS_EXCLUSIVE) {
        if (keyspace_try_exclusive()) {
            done = call_continue(call);
            keyspace_unlock_exclusive();
        }
    } else if (keyspace_try_shared()) {
        done = call_continue(call);
        keyspace_unlock_shared();
    }
    return done;
}

/* One slice for one client; true when its command is done. */
static bool step_client(struct server_thread *t, struct client *c)
{
    struct call call = {.cmd = c->continuation_cmd,
                        .argc = c->continuation_argc,
                        .argv = c->continuation_argv,
                        .session = &c->session,
                        .reply = &t->reply,
                        .now_ms = t->wall_us / 1000,
                        .continuation = c->continuation};
    uint32_t mark = reply_begin(&t->reply, c->session.proto);
    uint64_t begin = clock_ticks();
    bool done = run_slice(&call);
    c->continuation = call.continuation;
    c->continuation_ticks += clock_ticks() - begin;
    uint32_t end = reply_end(&t->reply);
    if (done) {
        call.duration_ticks = c->continuation_ticks;
        call_account(&call, 1, 0, t->wall_us);
        mem_free(c->continuation_argv);
        c->continuation_argv = NULL;
        if (c->flags & (CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP)) {
            c->flags &= ~(uint32_t)CLIENT_REPLY_SKIP;
        } else {
            output_pieces(c, &t->reply, mark, end);
        }
        c->flags &= ~(uint32_t)CLIENT_SUSPENDED;
    }
    reply_reset(&t->reply);
    return done;
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
