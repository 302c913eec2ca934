/* See replay.h. */
#include "repl/replay.h"

#include "base/clock.h"

#include <assert.h>

/* Runs a call that needs the world. */
static void run_world(struct call *c) REQUIRES(keyspace_lock) NO_THREAD_SAFETY_ANALYSIS
{
    keyspace_unlock_exclusive();
    gil_stop_world();
    c->held = ACCESS_WORLD;
    call_run(c);
    gil_resume_world();
    keyspace_lock_exclusive();
}

void replay_run(struct call *c)
{
    uint64_t begin = clock_ticks();
    if (call_access(c) == ACCESS_WORLD) {
        run_world(c);
    } else {
        c->held = ACCESS_EXCLUSIVE;
        call_run(c);
    }
    while (c->continuation.step && !call_continue(c)) {
    }
    c->duration_ticks = clock_ticks() - begin;
    assert(!c->waits && !c->needs_exclusive);
}
