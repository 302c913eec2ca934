/* See threads.h. */
#include "module/threads.h"

#include "base/clock.h"
#include "base/futex.h"
#include "base/mem.h"
#include "base/thread.h"
#include "engine/modules.h"
#include "module/blocked.h"
#include "module/main_loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>

/* ---- the module lock: a ticket lock ---- */

/* Invariant: the thread whose ticket is `serving` holds it, when there is one; tickets between that
 * and `next` wait, in their order. */
static struct {
    _Atomic uint32_t next ALIGNED(CACHE_LINE_BYTES);
    _Atomic uint32_t serving ALIGNED(CACHE_LINE_BYTES); /* futex word */
    unsigned slot;                                      /* the holder's */
} module_lock;

static void lock_modules(void)
{
    uint32_t ticket = atomic_fetch_add(&module_lock.next, 1);
    for (uint32_t serving; (serving = atomic_load(&module_lock.serving)) != ticket;) {
        futex_wait(&module_lock.serving, serving, 0);
    }
}

static bool try_lock_modules(void)
{
    uint32_t ticket = atomic_load(&module_lock.serving);
    return atomic_compare_exchange_strong(&module_lock.next, &ticket, ticket + 1);
}

static void unlock_modules(void)
{
    uint32_t served = atomic_fetch_add(&module_lock.serving, 1) + 1;
    if (atomic_load(&module_lock.next) != served) {
        /* All of them look, since the kernel does not know whose ticket it is: a module has few
         * threads. */
        futex_wake(&module_lock.serving, INT_MAX);
    }
}

/* ---- the server's locks ---- */

void threads_setup(void)
{
    module_lock.slot = thread_keep_slot();
}

void threads_stop(void)
{
    lock_modules(); /* and never lets go of it */
}

void threads_enter(void) NO_THREAD_SAFETY_ANALYSIS
{
    lock_modules();
    thread_borrow(module_lock.slot);
    gil_wake();
    keyspace_lock_exclusive();
}

bool threads_try_enter(void) NO_THREAD_SAFETY_ANALYSIS
{
    if (keyspace_is_busy() || brlock_writer_waits(&keyspace_lock) || brlock_writer_waits(&gil) ||
        !try_lock_modules()) {
        return false;
    }
    thread_borrow(module_lock.slot);
    gil_wake();
    if (keyspace_try_exclusive()) {
        return true;
    }
    gil_sleep();
    thread_return();
    unlock_modules();
    return false;
}

void threads_leave(void) NO_THREAD_SAFETY_ANALYSIS
{
    main_loop_let_go(); /* the thread may be none that comes back */
    gil_sleep();
    thread_return();
    unlock_modules();
}

/* ---- contexts ---- */

static RedisModuleCtx *create(struct module *m, RedisModuleBlockedClient *blocked)
{
    RedisModuleCtx *ctx = mem_alloc(sizeof(*ctx));
    context_init_detached(ctx, m);
    if (blocked) {
        blocked_attach(ctx, blocked);
    }
    return ctx;
}

static RedisModuleCtx *rm_get_thread_safe_context(RedisModuleBlockedClient *blocked)
{
    return create(blocked ? blocked_module(blocked) : NULL, blocked);
}

static RedisModuleCtx *rm_get_detached_thread_safe_context(RedisModuleCtx *ctx)
{
    return create(ctx ? ctx->module : NULL, NULL);
}

/* What the context looks after may be keys: they are closed under the lock. */
static void rm_free_thread_safe_context(RedisModuleCtx *ctx) NO_THREAD_SAFETY_ANALYSIS
{
    bool enters = ctx->owned_count > 0 && !keyspace_is_exclusive();
    if (enters) {
        threads_enter();
    }
    context_free_owned(ctx);
    if (enters) {
        threads_leave();
    }
    RedisModuleBlockedClient *blocked = ctx->blocked;
    context_deinit_detached(ctx);
    mem_free(ctx);
    if (blocked) {
        blocked_release(blocked);
    }
}

static void rm_lock(RedisModuleCtx *ctx) NO_THREAD_SAFETY_ANALYSIS
{
    threads_enter();
    if (ctx) {
        context_enter(ctx);
    }
}

static int rm_try_lock(RedisModuleCtx *ctx) NO_THREAD_SAFETY_ANALYSIS
{
    if (!threads_try_enter()) {
        errno = EBUSY;
        return REDISMODULE_ERR;
    }
    if (ctx) {
        context_enter(ctx);
    }
    return REDISMODULE_OK;
}

static void rm_unlock(RedisModuleCtx *ctx) NO_THREAD_SAFETY_ANALYSIS
{
    keyspace_assert_exclusive();
    if (ctx) {
        context_leave(ctx);
    }
    threads_leave();
}

const struct api_function thread_functions[] = {
    API(GetThreadSafeContext, rm_get_thread_safe_context),
    API(GetDetachedThreadSafeContext, rm_get_detached_thread_safe_context),
    API(FreeThreadSafeContext, rm_free_thread_safe_context),
    API(ThreadSafeContextLock, rm_lock),
    API(ThreadSafeContextTryLock, rm_try_lock),
    API(ThreadSafeContextUnlock, rm_unlock),
    {NULL, NULL},
};
