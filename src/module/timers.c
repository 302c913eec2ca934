/* See timers.h. A timer's id is its time, in microseconds of the monotonic clock, made unique: the
 * tree of ids is the queue. */
#include "module/timers.h"

#include "base/clock.h"
#include "base/mem.h"
#include "ds/radix.h"
#include "module/main_loop.h"

#include <assert.h>

#define ID_BYTES 8

struct timer {
    struct module *module;
    RedisModuleTimerProc callback;
    void *data;
    int db_index;
    uint64_t id;
};

static struct {
    struct radix queue;      /* by id, most significant byte first */
    struct main_job arm_job; /* sets the loop's timer */
    bool arming;             /* it is under way */
    int64_t armed_us;        /* what the loop's timer is set for */
} state = {.armed_us = INT64_MAX};

struct id_text {
    char bytes[ID_BYTES];
};

static struct id_text text_of(uint64_t id)
{
    struct id_text text;
    for (int i = 0; i < ID_BYTES; i++) {
        text.bytes[i] = (char)(id >> (8 * (ID_BYTES - 1 - i)));
    }
    return text;
}

static struct timer *find(uint64_t id)
{
    struct id_text text = text_of(id);
    return radix_find(&state.queue, slice_of(text.bytes, ID_BYTES));
}

static void take_out(const struct timer *t)
{
    struct id_text text = text_of(t->id);
    radix_remove(&state.queue, slice_of(text.bytes, ID_BYTES));
    t->module->timers--;
}

static struct timer *first(void)
{
    struct radix_cursor cursor = radix_first(&state.queue);
    return radix_cursor_valid(&cursor) ? radix_cursor_value(&cursor) : NULL;
}

/* ---- the loop ---- */

/* Main thread, with the lock. */
static void set_loop(void)
{
    const struct timer *t = first();
    state.armed_us = t ? (int64_t)t->id : INT64_MAX;
    main_loop_arm(state.armed_us);
}

static void run_arm(struct main_job *job, bool alive)
{
    (void)job;
    state.arming = false;
    if (alive) {
        set_loop();
    }
}

static void arm(void)
{
    if (!state.arming) {
        state.arming = true;
        main_loop_post(&state.arm_job);
    }
}

/* Runs one timer that is due. Its module may make others, and stop this one's like. */
static bool step(void) NO_THREAD_SAFETY_ANALYSIS
{
    struct timer *t = first();
    if (!t || t->id > clock_mono_us()) {
        set_loop();
        return false;
    }
    take_out(t);
    RedisModuleCtx ctx;
    context_begin(&ctx, t->module, ACCESS_EXCLUSIVE);
    ctx.db_index = t->db_index;
    ctx.alone = true;
    t->callback(&ctx, t->data);
    context_end(&ctx);
    mem_free(t);
    return true;
}

uint64_t timers_start(const RedisModuleCtx *ctx, uint64_t at_us, RedisModuleTimerProc callback,
                      void *data)
{
    struct timer *t = mem_alloc(sizeof(*t));
    *t = (struct timer){.module = ctx->module,
                        .callback = callback,
                        .data = data,
                        .db_index = context_db(ctx),
                        .id = at_us};
    struct id_text text = text_of(t->id);
    while (radix_insert(&state.queue, slice_of(text.bytes, ID_BYTES), t)) {
        text = text_of(++t->id);
    }
    t->module->timers++;
    if ((int64_t)t->id < state.armed_us) {
        arm();
    }
    return t->id;
}

void timers_stop(uint64_t id)
{
    struct timer *t = find(id);
    assert(t);
    take_out(t);
    mem_free(t);
}

/* ---- for modules ---- */

static RedisModuleTimerID rm_create_timer(RedisModuleCtx *ctx, mstime_t period_ms,
                                          RedisModuleTimerProc callback, void *data)
{
    keyspace_assert_exclusive();
    uint64_t wait_us = period_ms > 0 ? (uint64_t)period_ms * 1000 : 0;
    return timers_start(ctx, clock_mono_us() + wait_us, callback, data);
}

static struct timer *find_own(const RedisModuleCtx *ctx, RedisModuleTimerID id)
{
    struct timer *t = find(id);
    return t && t->module == ctx->module ? t : NULL;
}

static int rm_stop_timer(RedisModuleCtx *ctx, RedisModuleTimerID id, void **data)
{
    keyspace_assert_exclusive();
    struct timer *t = find_own(ctx, id);
    if (!t) {
        return REDISMODULE_ERR;
    }
    if (data) {
        *data = t->data;
    }
    timers_stop(id);
    return REDISMODULE_OK;
}

static int rm_get_timer_info(RedisModuleCtx *ctx, RedisModuleTimerID id, uint64_t *remaining_ms,
                             void **data)
{
    keyspace_assert_exclusive();
    const struct timer *t = find_own(ctx, id);
    if (!t) {
        return REDISMODULE_ERR;
    }
    uint64_t now_us = clock_mono_us();
    if (remaining_ms) {
        *remaining_ms = t->id > now_us ? (t->id - now_us) / 1000 : 0;
    }
    if (data) {
        *data = t->data;
    }
    return REDISMODULE_OK;
}

const struct api_function timer_functions[] = {
    API(CreateTimer, rm_create_timer),
    API(StopTimer, rm_stop_timer),
    API(GetTimerInfo, rm_get_timer_info),
    {NULL, NULL},
};

/* ---- life ---- */

bool timers_has(const struct module *m)
{
    return m->timers > 0;
}

void timers_remove(const struct module *m)
{
    struct radix_cursor cursor = radix_first(&state.queue);
    while (radix_cursor_valid(&cursor)) {
        struct timer *t = radix_cursor_value(&cursor);
        if (t->module != m) {
            radix_cursor_next(&cursor);
            continue;
        }
        radix_remove_at(&state.queue, &cursor);
        t->module->timers--;
        mem_free(t);
    }
}

static void release(void *value, void *context)
{
    (void)context;
    mem_free(value);
}

void timers_setup(void)
{
    radix_init(&state.queue);
    state.arm_job.run = run_arm;
    main_loop_set_timer(step);
}

void timers_teardown(void)
{
    radix_deinit(&state.queue, release, NULL);
    state.armed_us = INT64_MAX;
}
