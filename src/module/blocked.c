/* See blocked.h. */
#include "module/blocked_priv.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/parked.h"
#include "keyspace/waiting.h"
#include "module/text.h"
#include "module/threads.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- life ---- */

struct module *blocked_module(const RedisModuleBlockedClient *b)
{
    return b->module;
}

void blocked_attach(RedisModuleCtx *ctx, RedisModuleBlockedClient *b)
{
    atomic_fetch_add(&b->refs, 1);
    ctx->blocked = b;
    ctx->reply = &b->reply;
    ctx->db_index = b->db_index;
    ctx->client_id = b->client_id;
}

void blocked_release(RedisModuleBlockedClient *b)
{
    if (atomic_fetch_sub(&b->refs, 1) > 1) {
        return;
    }
    reply_end(&b->reply);
    reply_deinit(&b->reply);
    for (int i = 0; i < b->key_count; i++) {
        text_release(b->names[i]);
    }
    mem_free(b->names);
    mem_free(b->keys);
    mem_free(b);
}

static void begin_context(RedisModuleCtx *ctx, RedisModuleBlockedClient *b,
                          enum blocked_cause cause) REQUIRES(keyspace_lock)
{
    context_begin(ctx, b->module, ACCESS_EXCLUSIVE);
    ctx->blocked = b;
    ctx->cause = cause;
    ctx->db_index = b->db_index;
    ctx->client_id = b->client_id;
}

/* A user is done with it. `alive`: modules may be called. */
static void end_use(RedisModuleBlockedClient *b, bool alive) NO_THREAD_SAFETY_ANALYSIS
{
    assert(b->users > 0);
    if (--b->users > 0) {
        return;
    }
    if (alive && b->free_private && b->private_data) {
        RedisModuleCtx ctx;
        begin_context(&ctx, b, BLOCKED_END);
        b->free_private(&ctx, b->private_data);
        context_end(&ctx);
    }
    if (alive) {
        b->module->blocked--;
    }
    blocked_release(b);
}

/* The parked call is freed: when nobody was answered, the client has gone. */
static void run_end(struct main_job *job, bool alive) NO_THREAD_SAFETY_ANALYSIS
{
    RedisModuleBlockedClient *b =
        (RedisModuleBlockedClient *)((char *)job - offsetof(RedisModuleBlockedClient, end));
    if (!b->answered) {
        b->answered = true;
        if (alive && b->disconnect_callback) {
            RedisModuleCtx ctx;
            begin_context(&ctx, b, BLOCKED_END);
            b->disconnect_callback(&ctx, b);
            context_end(&ctx);
        }
        b->gone = true; /* as whoever frees the data is told */
    }
    end_use(b, alive);
}

void blocked_settle(RedisModuleBlockedClient *b)
{
    b->settled = true;
    atomic_fetch_add(&b->refs, 1);
    end_use(b, true);
}

void blocked_drop_wait(void *client)
{
    RedisModuleBlockedClient *b = client;
    if (b->settled) {
        blocked_release(b);
    } else {
        main_loop_post(&b->end);
    }
}

static void run_unblock(struct main_job *job, bool alive) NO_THREAD_SAFETY_ANALYSIS
{
    RedisModuleBlockedClient *b =
        (RedisModuleBlockedClient *)((char *)job - offsetof(RedisModuleBlockedClient, unblock));
    if (alive && b->making) { /* its command has let go of the lock for the world: nothing waits */
        main_loop_post(job);
        return;
    }
    b->unblocked = true;
    if (alive && !b->answered && b->keys) {
        waiting_note_change(db_at(b->db_index), b->keys[0].name);
    } else if (alive && !b->answered) {
        call_event(slice_cstr(b->event));
    }
    end_use(b, alive);
}

/* ---- blocking ---- */

RedisModuleBlockedClient *blocked_create(RedisModuleCtx *ctx, RedisModuleCmdFunc reply,
                                         RedisModuleCmdFunc timeout,
                                         void (*free_private)(RedisModuleCtx *, void *),
                                         long long timeout_ms)
{
    static uint64_t last_number; /* keyspace */
    RedisModuleBlockedClient *b = mem_calloc(1, sizeof(*b));
    b->unblock.run = run_unblock;
    b->end.run = run_end;
    b->module = ctx->module;
    b->module->blocked++;
    b->reply_callback = reply;
    b->timeout_callback = timeout;
    b->free_private = free_private;
    b->timeout_ms = timeout_ms > 0 ? timeout_ms : 0;
    b->db_index = context_db(ctx);
    b->client_id = ctx->session ? ctx->session->id : ctx->client_id;
    b->refs = 1;
    snprintf(b->event, sizeof(b->event), "module-%llu", (unsigned long long)++last_number);
    reply_init(&b->reply);
    reply_begin(&b->reply, ctx->session ? ctx->session->proto : 2);
    return b;
}

/* Why the caller cannot be made to wait; NULL: it can. */
static const char *refusal(const RedisModuleCtx *ctx)
{
    const struct call *c = ctx->call;
    if (c->retry) {
        return "ERR Blocking module command called from Reply callback context";
    }
    if (c->held == ACCESS_NONE) {
        return "ERR Blocking module command called beside a command that takes long";
    }
    if (call_may_block(c)) {
        return NULL;
    }
    return c->session->script ? "ERR Blocking module command called from Lua script"
                              : "ERR Blocking module command called from transaction";
}

void blocked_begin_wait(RedisModuleCtx *ctx, RedisModuleBlockedClient *b)
{
    b->users = b->keys ? 1 : 2;
    b->making = ctx;
    ctx->blocks = b;
}

void blocked_begin_idle(RedisModuleBlockedClient *b)
{
    b->answered = b->gone = true;
    b->users = 1;
    if (b->keys) { /* the module unblocks no such client: it ends by itself, later */
        b->asked = true;
        main_loop_post(&b->unblock);
    }
}

/* Whoever cannot wait has the error as its reply. */
static RedisModuleBlockedClient *block(RedisModuleCtx *ctx, RedisModuleBlockedClient *b)
    REQUIRES(keyspace_lock);
static RedisModuleBlockedClient *block(RedisModuleCtx *ctx, RedisModuleBlockedClient *b)
{
    const char *why = ctx->call ? refusal(ctx) : "";
    if (why || ctx->blocks) {
        if (ctx->reply && why && *why) {
            reply_error(ctx->reply, why);
        }
        blocked_begin_idle(b);
    } else {
        blocked_begin_wait(ctx, b);
    }
    return b;
}

static RedisModuleBlockedClient *rm_block_client(RedisModuleCtx *ctx, RedisModuleCmdFunc reply,
                                                 RedisModuleCmdFunc timeout,
                                                 void (*free_private)(RedisModuleCtx *, void *),
                                                 long long timeout_ms)
{
    keyspace_assert_exclusive();
    return block(ctx, blocked_create(ctx, reply, timeout, free_private, timeout_ms));
}

static void hold_keys(RedisModuleBlockedClient *b, RedisModuleString **names, int count)
{
    b->names = mem_alloc((size_t)count * sizeof(*b->names));
    b->keys = mem_alloc((size_t)count * sizeof(*b->keys));
    b->key_count = count;
    for (int i = 0; i < count; i++) {
        b->names[i] = text_acquire(names[i]);
        b->keys[i] = key_of(text_slice(names[i]));
    }
}

static RedisModuleBlockedClient *rm_block_client_on_keys_with_flags(
    RedisModuleCtx *ctx, RedisModuleCmdFunc reply, RedisModuleCmdFunc timeout,
    void (*free_private)(RedisModuleCtx *, void *), long long timeout_ms, RedisModuleString **keys,
    int count, void *private_data, int flags)
{
    keyspace_assert_exclusive();
    RedisModuleBlockedClient *b = blocked_create(ctx, reply, timeout, free_private, timeout_ms);
    if (count > 0) {
        hold_keys(b, keys, count);
    }
    b->private_data = private_data;
    b->when_deleted = flags & REDISMODULE_BLOCK_UNBLOCK_DELETED;
    return block(ctx, b);
}

static RedisModuleBlockedClient *
rm_block_client_on_keys(RedisModuleCtx *ctx, RedisModuleCmdFunc reply, RedisModuleCmdFunc timeout,
                        void (*free_private)(RedisModuleCtx *, void *), long long timeout_ms,
                        RedisModuleString **keys, int count, void *private_data)
{
    return rm_block_client_on_keys_with_flags(ctx, reply, timeout, free_private, timeout_ms, keys,
                                              count, private_data,
                                              REDISMODULE_BLOCK_UNBLOCK_DEFAULT);
}

static struct block wait_of(RedisModuleBlockedClient *b)
{
    /* Modules' clients are tried whatever the key holds: what it means is the module's. */
    return (struct block){.event = b->keys ? slice_of(NULL, 0) : slice_cstr(b->event),
                          .keys = b->keys,
                          .key_count = b->key_count,
                          .when_gone = true};
}

static void on_timeout(struct call *c);

void blocked_park(RedisModuleCtx *ctx, struct reply_mark before)
{
    RedisModuleBlockedClient *b = ctx->blocks;
    struct block wait = wait_of(b);
    struct reply_mark now = reply_mark(ctx->reply);
    if (now.piece_count != before.piece_count || now.run_bytes != before.run_bytes) {
        log_warning("Module %s has replied to a client that it blocks (command %s)",
                    b->module->name, ctx->call->cmd->full_name);
        ctx->length_count = 0;
        reply_rewind(ctx->reply, before);
    }
    wait.timeout_ms = b->timeout_ms;
    wait.on_timeout = on_timeout;
    wait.stays = !b->timeout_callback;
    wait.state = b;
    wait.destroy_state = blocked_drop_wait;
    b->making = NULL;
    ctx->blocks = NULL;
    call_block(ctx->call, &wait);
}

/* ---- the end of waiting ---- */

static void begin_callback(RedisModuleCtx *ctx, RedisModuleBlockedClient *b, struct call *c,
                           enum blocked_cause cause) REQUIRES(keyspace_lock)
{
    parked_add_ticks(c->parked, atomic_exchange(&b->measured_ticks, 0));
    context_begin_call(ctx, b->module, c);
    ctx->blocked = b;
    ctx->cause = cause;
}

/* Calls back with the command's arguments; what it returns. */
static int call_back(RedisModuleBlockedClient *b, struct call *c, RedisModuleCmdFunc function,
                     enum blocked_cause cause, const struct key *ready) REQUIRES(keyspace_lock)
{
    RedisModuleCtx ctx;
    RedisModuleString **arguments = mem_alloc((size_t)c->argc * sizeof(RedisModuleString *));
    for (int i = 0; i < c->argc; i++) {
        arguments[i] = text_create_argument(c->argv[i], c->blobs ? c->blobs[i] : NULL);
    }
    begin_callback(&ctx, b, c, cause);
    ctx.ready_key = ready ? text_create(ready->name) : NULL;
    int result = function(&ctx, arguments, c->argc);
    c->propagated = true;
    context_end(&ctx);
    if (ctx.ready_key) {
        text_release(ctx.ready_key);
    }
    for (int i = 0; i < c->argc; i++) {
        text_release(arguments[i]);
    }
    mem_free(arguments);
    return result;
}

/* What threads have replied. */
static void take_reply(RedisModuleBlockedClient *b, struct call *c)
{
    struct reply *r = &b->reply;
    uint32_t count = reply_end(r);
    if (r->errors == 1 && count == 1 && r->pieces[0].ptr[0] == '-') { /* that, and nothing else */
        reply_error_slice(c->reply, r->last_error);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        reply_raw(c->reply, slice_of(r->pieces[i].ptr, r->pieces[i].len));
    }
}

static void on_timeout(struct call *c) NO_THREAD_SAFETY_ANALYSIS
{
    RedisModuleBlockedClient *b = call_block_state(c);
    b->answered = true;
    if (b->timeout_callback) {
        call_back(b, c, b->timeout_callback, BLOCKED_TIMEOUT, NULL);
    } else {
        reply_null_array(c->reply);
    }
    b->gone = true; /* as Redis tells whoever frees the data: nobody waits any more */
    blocked_settle(b);
}

static void wait_on(RedisModuleBlockedClient *b, struct call *c) REQUIRES(keyspace_lock)
{
    const struct block wait = wait_of(b);
    call_block(c, &wait);
}

/* A client that waits for keys: the module says whether it can be served. */
static void retry_key(RedisModuleBlockedClient *b, struct call *c) REQUIRES(keyspace_lock)
{
    const struct key *ready = waiting_served_key();
    bool there =
        ready && db_read(db_at(b->db_index), ready, c->now_ms, DB_NO_TOUCH | DB_NO_STATS) != NULL;
    if (!ready || (!there && !b->when_deleted) || !b->reply_callback) {
        wait_on(b, c);
        return;
    }
    struct reply_mark before = reply_mark(c->reply);
    if (call_back(b, c, b->reply_callback, BLOCKED_REPLY, ready) == REDISMODULE_OK) {
        b->answered = true;
        blocked_settle(b);
    } else {
        reply_rewind(c->reply, before);
        wait_on(b, c);
    }
}

void blocked_retry(struct call *c)
{
    RedisModuleBlockedClient *b = call_block_state(c);
    if (b->keys && !b->unblocked) {
        retry_key(b, c);
    } else if (b->keys) { /* Redis takes this for its time-out */
        on_timeout(c);
    } else if (!b->unblocked) {
        wait_on(b, c);
    } else {
        b->answered = true;
        if (b->reply_callback) {
            call_back(b, c, b->reply_callback, BLOCKED_REPLY, NULL);
        } else {
            parked_add_ticks(c->parked, atomic_exchange(&b->measured_ticks, 0));
        }
        take_reply(b, c);
        c->propagated = true;
        blocked_settle(b);
    }
}

/* ---- unblocking; any thread, no lock ---- */

static void unblock_on_keys(RedisModuleBlockedClient *b) REQUIRES(keyspace_lock)
{
    if (!b->answered && !atomic_exchange(&b->asked, true)) {
        b->users++;
        main_loop_post(&b->unblock);
    }
}

/* One that waits for keys may be served meanwhile: it needs the lock, which is taken where the
 * module has not seen to that. */
static int rm_unblock_client(RedisModuleBlockedClient *b,
                             void *private_data) NO_THREAD_SAFETY_ANALYSIS
{
    if (!b->keys) {
        if (!atomic_exchange(&b->asked, true)) {
            b->private_data = private_data;
            main_loop_post(&b->unblock);
        }
        return REDISMODULE_OK;
    }
    if (!b->timeout_callback) {
        return REDISMODULE_ERR;
    }
    bool enters = !keyspace_is_exclusive();
    if (enters) {
        threads_enter();
    }
    unblock_on_keys(b);
    if (enters) {
        threads_leave();
    }
    return REDISMODULE_OK;
}

/* Within the command that has blocked its client nothing waits yet: it goes on as if it had not. */
static int rm_abort_block(RedisModuleBlockedClient *b)
{
    b->reply_callback = NULL;
    b->auth_callback = NULL;
    b->disconnect_callback = NULL;
    if (keyspace_is_exclusive() && b->making) {
        b->making->blocks = NULL;
        b->making = NULL;
        b->answered = true;
        b->users = 1; /* the module's, which ends by the job, as that of one who cannot wait */
        if (!atomic_exchange(&b->asked, true)) {
            main_loop_post(&b->unblock);
        }
        return REDISMODULE_OK;
    }
    return rm_unblock_client(b, NULL);
}

static void rm_signal_key_as_ready(RedisModuleCtx *ctx, RedisModuleString *name)
{
    keyspace_assert_exclusive();
    waiting_note_change(db_at(context_db(ctx)), text_slice(name));
}

const struct api_function blocked_functions[] = {
    API(BlockClient, rm_block_client),
    API(BlockClientOnKeys, rm_block_client_on_keys),
    API(BlockClientOnKeysWithFlags, rm_block_client_on_keys_with_flags),
    API(SignalKeyAsReady, rm_signal_key_as_ready),
    API(UnblockClient, rm_unblock_client),
    API(AbortBlock, rm_abort_block),
    {NULL, NULL},
};
