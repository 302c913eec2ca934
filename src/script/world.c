/* See world.h. */
#include "script/world.h"

#include "engine/doubts.h"
#include "engine/execute.h"
#include "keyspace/waiting.h"

#include <assert.h>

/* Whether the keyspace lock may be let go of before the script begins: nothing is under way but the
 * call of a client, which has done nothing yet. */
static bool may_stop(const struct script_run *run)
{
    const struct call *c = run->c;
    return c->held == ACCESS_EXCLUSIVE && !c->nested && !run->debugger && c->session->owner &&
           !c->session->internal && !gil_has_world();
}

void world_enter(struct script_run *run)
{
    if (unlikely(doubts_script(run->c)) && may_stop(run)) {
        world_stop(run);
    }
}

void world_stop(struct script_run *run) NO_THREAD_SAFETY_ANALYSIS
{
    assert(may_stop(run));
    keyspace_unlock_exclusive();
    gil_stop_world();
    keyspace_lock_exclusive();
    doubts_set_spare(true);
    run->has_world = true;
}

void world_let_go(struct script_run *run)
{
    doubts_give_back();
    run->has_world = false;
}

void world_leave(struct script_run *run)
{
    if (unlikely(run->has_world || run->asks)) {
        doubts_note_script(run->c, run->asks);
    }
    if (unlikely(run->has_world)) {
        world_let_go(run);
    }
}

bool world_is_wanted(const struct script_run *run, const struct command *cmd)
{
    return doubts_command(cmd) && !run->has_acted && may_stop(run);
}

static void run_whole(struct call *n)
{
    call_run(n);
    while (n->continuation.step && !call_continue(n)) {
    }
}

/* As EXEC does in the world: the command takes the lock itself. What others wait for is given to
 * nobody before the script is over. */
static void call_in_world(struct call *n) NO_THREAD_SAFETY_ANALYSIS
{
    bool deferred = waiting_is_deferred();
    if (!deferred) {
        waiting_defer(true);
    }
    struct script_run *run = run_set_aside();
    n->held = ACCESS_WORLD;
    keyspace_unlock_exclusive();
    run_whole(n);
    if (n->held == ACCESS_WORLD) { /* else the world has been given back, and the lock kept */
        keyspace_lock_exclusive();
    }
    run_take_up(run);
    if (!deferred) {
        waiting_defer(false);
    }
}

/* Of one that ran in the world it is known behind it whether it asks. */
void world_call(struct script_run *run, struct call *n)
{
    if (unlikely(gil_has_world())) {
        call_in_world(n);
        run->asks |= (n->cmd->flags & CMD_WORLD) != 0;
    } else {
        run->asks |= doubts_command(n->cmd);
        run_whole(n);
    }
}
