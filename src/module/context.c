/* See context.h, and what modules ask of their context and of themselves. */
#include "module/context.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "engine/busy.h"
#include "engine/doubts.h"
#include "engine/execute.h"
#include "engine/gate.h"
#include "engine/modules.h"
#include "engine/propagate.h"
#include "engine/shutdown.h"
#include "module/replicate.h"
#include "module/users.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* Chunks of a context's pool. */
#define POOL_CHUNK_BYTES ((size_t)8 * 1024)

/* ---- life ---- */

static _Thread_local RedisModuleCtx *current;

RedisModuleCtx *context_current(void)
{
    return current;
}

/* The module's code is about to run. */
static void begin_running(RedisModuleCtx *ctx)
{
    const struct module *m = ctx->module;
    ctx->module->running++;
    ctx->outer = modules_running;
    ctx->around = current;
    current = ctx;
    modules_running = m->name ? m->name : m->path;
}

static void init(RedisModuleCtx *ctx, struct module *m, enum call_access held, int64_t now_ms)
{
    memset(ctx, 0, offsetof(RedisModuleCtx, few_owned));
    ctx->get_api = api_get;
    ctx->module = m;
    ctx->held = held;
    ctx->now_ms = now_ms;
    ctx->owned = ctx->few_owned;
    ctx->lengths = ctx->few_lengths;
    ctx->owned_capacity = ctx->length_capacity = CONTEXT_FEW;
    arena_init(&ctx->pool, POOL_CHUNK_BYTES);
}

void context_begin(RedisModuleCtx *ctx, struct module *m, enum call_access held)
{
    init(ctx, m, held, clock_wall_ms());
    begin_running(ctx);
}

void context_begin_at(RedisModuleCtx *ctx, struct module *m, int64_t now_ms)
{
    init(ctx, m, ACCESS_EXCLUSIVE, now_ms);
    begin_running(ctx);
}

void context_begin_call(RedisModuleCtx *ctx, struct module *m, struct call *c)
{
    init(ctx, m, c->held, c->now_ms);
    ctx->call = c;
    ctx->session = c->session;
    ctx->reply = c->reply;
    begin_running(ctx);
}

/* Whose contexts know no module. */
static struct module nobody = {.name = (char *)"?", .path = (char *)"?"};

void context_init_detached(RedisModuleCtx *ctx, struct module *m)
{
    init(ctx, m ? m : &nobody, ACCESS_EXCLUSIVE, clock_wall_ms());
    ctx->alone = true;
}

void context_enter(RedisModuleCtx *ctx)
{
    ctx->now_ms = keyspace_time_ms(clock_wall_ms());
    begin_running(ctx);
}

static void end_yielding(RedisModuleCtx *ctx)
{
    if (unlikely(ctx->yields)) {
        busy_end();
        ctx->yields = false;
    }
}

void context_leave(RedisModuleCtx *ctx)
{
    end_yielding(ctx);
    if (unlikely(modules_listen)) {
        modules_tell(true);
    }
    users_settle(ctx);
    context_end_unit(ctx);
    ctx->module->running--;
    current = ctx->around;
    modules_running = ctx->outer;
}

/* A module that has begun an aggregate and never told its length has broken its reply. */
static void end_lengths(RedisModuleCtx *ctx)
{
    if (ctx->length_count > 0) {
        log_warning("Module %s has replied an array whose length it never told (command %s)",
                    ctx->module->name ? ctx->module->name : "?",
                    ctx->call ? ctx->call->cmd->full_name : "none");
    }
    while (ctx->length_count > 0) {
        reply_set_deferred_array(ctx->reply, ctx->lengths[--ctx->length_count], 0);
    }
    if (ctx->lengths != ctx->few_lengths) {
        mem_free(ctx->lengths);
    }
}

static void free_owned_block(RedisModuleCtx *ctx)
{
    if (ctx->owned != ctx->few_owned) {
        mem_free(ctx->owned);
    }
}

void context_free_owned(RedisModuleCtx *ctx)
{
    while (ctx->owned_count > 0) {
        const struct context_owned owned = ctx->owned[--ctx->owned_count];
        owned.destroy(owned.thing);
    }
}

void context_deinit_detached(RedisModuleCtx *ctx)
{
    assert(ctx->owned_count == 0 && !ctx->in_unit);
    free_owned_block(ctx);
    end_lengths(ctx);
    arena_deinit(&ctx->pool);
}

void context_end(RedisModuleCtx *ctx)
{
    context_free_owned(ctx);
    free_owned_block(ctx);
    end_lengths(ctx);
    end_yielding(ctx);
    if (unlikely(modules_listen) && !ctx->call && !ctx->looks) {
        modules_tell(!call_running); /* of what it has done, as one with it */
    }
    users_settle(ctx);
    context_end_unit(ctx);
    arena_deinit(&ctx->pool);
    ctx->module->running--;
    modules_running = ctx->outer;
    current = ctx->around;
}

void context_begin_unit(RedisModuleCtx *ctx)
{
    if (!ctx->in_unit) {
        propagate_begin_unit();
        ctx->in_unit = true;
    }
}

void context_end_unit(RedisModuleCtx *ctx)
{
    if (ctx->in_unit) {
        replicate_keys(ctx);
        propagate_end_unit();
        ctx->in_unit = false;
    }
}

/* A block of twice the size with what is in a full one, which is freed unless it is the context's
 * own `few`. */
static void *grown(void *block, const void *few, unsigned *capacity, size_t element_bytes)
{
    size_t had = *capacity * element_bytes;
    *capacity *= 2;
    if (block != few) {
        return mem_realloc(block, 2 * had);
    }
    return memcpy(mem_alloc(2 * had), few, had);
}

void context_note_length(RedisModuleCtx *ctx, uint32_t handle)
{
    if (ctx->length_count == ctx->length_capacity) {
        ctx->lengths =
            grown(ctx->lengths, ctx->few_lengths, &ctx->length_capacity, sizeof(*ctx->lengths));
    }
    ctx->lengths[ctx->length_count++] = handle;
}

void context_own(RedisModuleCtx *ctx, void *thing, void (*destroy)(void *thing))
{
    if (!ctx || !ctx->auto_memory) {
        return;
    }
    if (ctx->owned_count == ctx->owned_capacity) {
        ctx->owned = grown(ctx->owned, ctx->few_owned, &ctx->owned_capacity, sizeof(*ctx->owned));
    }
    ctx->owned[ctx->owned_count++] = (struct context_owned){thing, destroy};
}

bool context_disown(RedisModuleCtx *ctx, const void *thing)
{
    if (!ctx || !ctx->auto_memory) {
        return false;
    }
    for (unsigned i = ctx->owned_count; i > 0; i--) {
        if (ctx->owned[i - 1].thing == thing) {
            memmove(&ctx->owned[i - 1], &ctx->owned[i],
                    (ctx->owned_count - i) * sizeof(*ctx->owned));
            ctx->owned_count--;
            return true;
        }
    }
    return false;
}

int context_db(const RedisModuleCtx *ctx)
{
    return ctx->session ? ctx->session->db_index : ctx->db_index;
}

/* ---- the module itself ---- */

static void rm_set_module_attribs(RedisModuleCtx *ctx, const char *name, int version,
                                  int api_version)
{
    struct module *m = ctx->module;
    if (!m->name) { /* later words are as in Redis: none */
        m->name = mem_dup(name, strlen(name));
        m->version = version;
        m->api_version = api_version;
    }
}

static int rm_is_module_name_busy(const char *name)
{
    bool busy = loaded_find(slice_cstr(name)) != NULL;
    if (busy && current) { /* RedisModule_Init asks */
        loaded_note_fault(current->module, "a module of the name", name, loaded_is_taken);
    }
    return busy;
}

static void rm_set_module_options(RedisModuleCtx *ctx, int options)
{
    ctx->module->options = options;
}

static int rm_get_module_options_all(void)
{
    return REDISMODULE_OPTIONS_HANDLE_IO_ERRORS | REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED |
           REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD |
           REDISMODULE_OPTIONS_ALLOW_NESTED_KEYSPACE_NOTIFICATIONS;
}

static int rm_get_server_version(void)
{
    return REDIS_COMPAT_VERSION_NUM;
}

/* ---- memory of the context ---- */

static void rm_auto_memory(RedisModuleCtx *ctx)
{
    ctx->auto_memory = true;
}

static void *rm_pool_alloc(RedisModuleCtx *ctx, size_t bytes)
{
    return bytes ? arena_alloc(&ctx->pool, bytes) : NULL;
}

/* ---- long calls ---- */

/* A command of a script or a transaction goes on without the world, and others are awake: they are
 * told that it takes long. The keyspace lock is kept beyond the call, until that is over. */
static void give_world_back(RedisModuleCtx *ctx)
{
    doubts_give_back();
    ctx->held = ctx->call->held = ACCESS_EXCLUSIVE;
}

/* From its first Yield on a call is one that may take long, as a script is: past
 * busy-reply-threshold others are told so instead of waiting, and each Yield serves the clients of
 * this thread. Other threads' are served all the time, so nothing is to be done for whoever wants
 * no clients served, nor while the world stands, unless it can be spared. */
static void rm_yield(RedisModuleCtx *ctx, int flags, const char *busy_reply)
{
    static struct session nobodys = {.internal = true};
    static const struct call nobodys_call = {.session = &nobodys};
    keyspace_assert_exclusive();
    if (!(flags & REDISMODULE_YIELD_FLAG_CLIENTS) ||
        (ctx->held == ACCESS_WORLD && !(ctx->call && doubts_is_spare()))) {
        return;
    }
    gate_set_module_text(busy_reply);
    if (!busy_has_begun()) {
        const struct call *c = ctx->call ? ctx->call : call_running;
        const char *name = c ? c->cmd->full_name : ctx->module->name;
        busy_begin(BUSY_MODULE, slice_cstr(name), c ? c : &nobodys_call);
        ctx->yields = true;
    }
    busy_poll();
    if (unlikely(ctx->held == ACCESS_WORLD && keyspace_is_busy())) {
        give_world_back(ctx);
    }
    if (unlikely(busy_is_at_end())) { /* nobody can take the module's code from where it stands */
        shutdown_at_once();
    }
}

/* ---- who calls, and how ---- */

static int rm_get_selected_db(RedisModuleCtx *ctx)
{
    return context_db(ctx);
}

static int rm_select_db(RedisModuleCtx *ctx, int id)
{
    if (id < 0 || id >= db_count()) {
        return REDISMODULE_ERR;
    }
    if (ctx->session) {
        ctx->session->db_index = id;
    } else {
        ctx->db_index = id;
    }
    return REDISMODULE_OK;
}

static unsigned long long rm_get_client_id(RedisModuleCtx *ctx)
{
    return ctx->session ? ctx->session->id : ctx->client_id;
}

static const char *rm_get_current_command_name(RedisModuleCtx *ctx)
{
    return ctx && ctx->call ? ctx->call->cmd->full_name : NULL;
}

const struct api_function context_functions[] = {
    API(GetApi, api_get),
    API(SetModuleAttribs, rm_set_module_attribs),
    API(IsModuleNameBusy, rm_is_module_name_busy),
    API(SetModuleOptions, rm_set_module_options),
    API(GetModuleOptionsAll, rm_get_module_options_all),
    API(GetServerVersion, rm_get_server_version),
    API(AutoMemory, rm_auto_memory),
    API(PoolAlloc, rm_pool_alloc),
    API(Yield, rm_yield),
    API(GetSelectedDb, rm_get_selected_db),
    API(SelectDb, rm_select_db),
    API(GetClientId, rm_get_client_id),
    API(GetCurrentCommandName, rm_get_current_command_name),
    {NULL, NULL},
};
