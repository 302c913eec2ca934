/* Children that modules fork: one at a time. The child runs the module's code on a copy of all
 * memory, with pipes and files open but no sockets (engine/fork_child.h). It may log, and look at
 * keys as they were; nothing of it is heard outside; it ends by ExitFromChild. When it has ended
 * its module is told, in exclusive mode. State: keyspace; whether there is one, atomic. */
#include "module/fork.h"

#include "base/log.h"
#include "engine/cron.h"
#include "engine/fork_child.h"
#include "module/context.h"
#include "persist/child_report.h"

#include <errno.h>

/* How often the cron looks whether the child has ended. */
#define LOOK_PERIOD_MS 100

static struct {
    int pid; /* 0: none */
    struct module *module;
    RedisModuleForkDoneHandler done; /* NULL: nobody wants to know */
    void *user_data;
} child;

/* ---- its end ---- */

static void forget(void) REQUIRES(keyspace_lock)
{
    child.module->running--;
    child.pid = 0;
    fork_child_note_module(false);
}

static void tell_if_ended(void) REQUIRES(keyspace_lock)
{
    struct child_end end;
    if (!fork_child_has_ended(&child.pid, &end)) {
        return;
    }
    RedisModuleCtx ctx;
    context_begin(&ctx, child.module, ACCESS_EXCLUSIVE);
    RedisModuleForkDoneHandler done = child.done;
    void *user_data = child.user_data;
    forget(); /* it may fork the next one */
    log_notice("The child of module '%s' has ended%s", ctx.module->name,
               end.signal ? " by a signal" : "");
    if (done) {
        done(end.signal ? -1 : end.error, end.signal, user_data);
    }
    context_end(&ctx);
}

static void look(int64_t wall_ms UNUSED)
{
    if (fork_child_module_runs()) {
        keyspace_lock_exclusive();
        tell_if_ended();
        keyspace_unlock_exclusive();
    }
}

void fork_setup(void)
{
    static const struct cron_job job = {
        .name = "module-fork", .period_ms = LOOK_PERIOD_MS, .run = look};
    cron_register(&job);
}

void fork_teardown(void)
{
    fork_child_kill(&child.pid);
    fork_child_note_module(false);
}

/* ---- for modules ---- */

/* In the parent the child's pid, 0 in the child; -1 with errno: EEXIST while there is another. */
static int rm_fork(RedisModuleForkDoneHandler done, void *user_data)
{
    keyspace_assert_exclusive();
    RedisModuleCtx *ctx = context_current();
    if (child.pid != 0 || !ctx) {
        errno = EEXIST;
        return -1;
    }
    int pid = child_report_fork(CHILD_MODULE, FORK_CHILD_KEEP_FILES);
    if (pid > 0) {
        child.pid = pid;
        child.module = ctx->module;
        child.done = done;
        child.user_data = user_data;
        child.module->running++; /* it is not unloaded meanwhile */
        fork_child_note_module(true);
        log_notice("Module '%s' has forked a child: %d", child.module->name, pid);
    }
    return pid;
}

/* In the child, now and then: how much memory the two no longer share is measured for INFO. */
static void rm_heartbeat(double progress UNUSED)
{
    child_report_keys(0);
}

static int rm_exit(int status)
{
    if (fork_child_is_here()) {
        child_report_exit(status);
    }
    return REDISMODULE_ERR;
}

/* The handler is not called then. */
static int rm_kill(int pid)
{
    keyspace_assert_exclusive();
    if (child.pid == 0 || pid != child.pid) {
        return REDISMODULE_ERR;
    }
    fork_child_kill(&child.pid);
    forget();
    return REDISMODULE_OK;
}

const struct api_function fork_functions[] = {
    API(Fork, rm_fork),
    API(SendChildHeartbeat, rm_heartbeat),
    API(ExitFromChild, rm_exit),
    API(KillForkChild, rm_kill),
    {NULL, NULL},
};
