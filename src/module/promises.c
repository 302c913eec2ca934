/* See promises.h. */
#include "module/promises.h"

#include "base/clock.h"
#include "base/mem.h"
#include "engine/parked.h"
#include "module/call_replies.h"
#include "module/main_loop.h"
#include "module/timers.h"

#include <assert.h>
#include <stdatomic.h>

struct promise {
    struct main_job job;    /* the call has its reply: the handler is to be called */
    struct session session; /* the call's */
    struct parked_call *parked;
    struct module *module; /* NULL: it has gone */
    RedisModuleOnUnblocked handler;
    void *private_data;
    uint64_t timer;        /* 0: none */
    bool over;             /* no call is parked any more */
    _Atomic uint32_t refs; /* the reply, and the wait */
    struct promise *next, *previous;
};

/* All that are not over. State: keyspace. */
static struct promise *first;

/* ---- life ---- */

void promises_release(struct promise *p)
{
    if (atomic_fetch_sub(&p->refs, 1) == 1) {
        mem_free(p);
    }
}

static void link_first(struct promise *p)
{
    p->next = first;
    if (first) {
        first->previous = p;
    }
    first = p;
}

static void unlink_promise(struct promise *p)
{
    *(p->previous ? &p->previous->next : &first) = p->next;
    if (p->next) {
        p->next->previous = p->previous;
    }
}

static void stop_timer(struct promise *p) REQUIRES(keyspace_lock)
{
    if (p->timer) {
        timers_stop(p->timer);
        p->timer = 0;
    }
}

/* The parked call is done: nothing of it is left but the reply that the module holds. */
static void end(struct promise *p) NO_THREAD_SAFETY_ANALYSIS
{
    assert(!p->over);
    p->over = true;
    unlink_promise(p);
    stop_timer(p);
    if (p->module) {
        p->module->blocked--;
    }
    parked_destroy(&p->parked);
    session_deinit(&p->session); /* it has no user who is told */
    promises_release(p);
}

/* ---- the end of waiting ---- */

/* Calls the handler, which may make other calls, abort others', and let this promise's reply go. */
static void tell(struct promise *p) REQUIRES(keyspace_lock)
{
    const struct reply *reply = parked_reply(p->parked);
    RedisModuleCtx ctx;
    parked_account(p->parked, clock_wall_us());
    if (p->module && p->handler) {
        context_begin(&ctx, p->module, ACCESS_EXCLUSIVE);
        ctx.db_index = p->session.db_index;
        p->handler(&ctx, reply->piece_count > 0 ? call_reply_create(NULL, reply) : NULL,
                   p->private_data);
        context_end(&ctx);
    }
    end(p);
}

static void run_job(struct main_job *job, bool alive) NO_THREAD_SAFETY_ANALYSIS
{
    struct promise *p = (struct promise *)((char *)job - offsetof(struct promise, job));
    if (alive) {
        tell(p);
    } else {
        end(p);
    }
}

/* parked_finish: within the hold of the writer, or within another node's words, amid which no
 * module may run. */
static void on_finish(struct parked_call *parked, void *owner)
{
    struct promise *p = owner;
    keyspace_assert_exclusive();
    assert(p->parked == parked);
    if (parked_is_tried(parked)) {
        tell(p);
    } else {
        main_loop_post(&p->job);
    }
}

static void on_timeout(RedisModuleCtx *ctx, void *promise)
{
    struct promise *p = promise;
    (void)ctx;
    keyspace_assert_exclusive();
    p->timer = 0;
    if (parked_end(p->parked, PARKED_TIMED_OUT)) {
        tell(p);
    }
}

/* ---- making one ---- */

static void start_timer(struct promise *p, RedisModuleCtx *ctx) REQUIRES(keyspace_lock)
{
    int64_t deadline_ms = parked_deadline_ms(p->parked);
    if (deadline_ms != INT64_MAX) {
        p->timer = timers_start(ctx, (uint64_t)deadline_ms * 1000, on_timeout, p);
    }
}

RedisModuleCallReply *promises_make(RedisModuleCtx *ctx, struct call *c, unsigned targets)
{
    struct promise *p = mem_calloc(1, sizeof(*p));
    p->job.run = run_job;
    p->parked = c->parked;
    p->module = ctx->module;
    p->module->blocked++;
    p->refs = 2;
    session_init_internal(&p->session);
    p->session.db_index = c->session->db_index;
    p->session.proto = c->session->proto;
    link_first(p);
    parked_adopt(p->parked, &p->session, targets);
    parked_add_ticks(p->parked, c->duration_ticks);
    parked_enqueue(p->parked, on_finish, p);
    if (c->held == ACCESS_WORLD) { /* the lock was let go of since it was run */
        parked_look_again(p->parked);
    }
    start_timer(p, ctx);
    return call_reply_create_promise(ctx, p);
}

/* ---- for modules ---- */

static void rm_set_unblock_handler(RedisModuleCallReply *reply, RedisModuleOnUnblocked handler,
                                   void *private_data)
{
    keyspace_assert_exclusive();
    struct promise *p = call_reply_promise(reply);
    if (p) {
        p->handler = handler;
        p->private_data = private_data;
    }
}

static int rm_abort(RedisModuleCallReply *reply, void **private_data)
{
    keyspace_assert_exclusive();
    struct promise *p = call_reply_promise(reply);
    if (!p || p->over || parked_is_tried(p->parked) || !parked_end(p->parked, PARKED_GONE)) {
        return REDISMODULE_ERR;
    }
    if (private_data) {
        *private_data = p->private_data;
    }
    end(p);
    return REDISMODULE_OK;
}

const struct api_function promise_functions[] = {
    API(CallReplyPromiseSetUnblockHandler, rm_set_unblock_handler),
    API(CallReplyPromiseAbort, rm_abort),
    {NULL, NULL},
};

/* ---- the end of modules ---- */

/* What has its reply already is the job's to end. */
static void drop(struct promise *p) REQUIRES(keyspace_lock)
{
    stop_timer(p);
    if (parked_end(p->parked, PARKED_GONE)) {
        end(p);
    } else {
        p->module = NULL;
    }
}

void promises_withdraw(const struct module *m)
{
    for (struct promise *p = first, *next; p; p = next) {
        next = p->next;
        if (p->module == m) {
            drop(p);
        }
    }
}

void promises_teardown(void) NO_THREAD_SAFETY_ANALYSIS
{
    for (struct promise *p = first, *next; p; p = next) {
        next = p->next;
        drop(p);
    }
}
