/* Clients that modules authenticate: the caller of the command that runs becomes a user, without a
 * password. Who has done it may want to know, once, when the client ceases to be that user's: it
 * authenticates anew, resets, or ends. Modules may also be asked by AUTH and HELLO, before
 * passwords are looked at, and have them wait for an answer. State: keyspace. */
#include "module/auth.h"

#include "base/mem.h"
#include "engine/auth.h"
#include "engine/busy.h"
#include "engine/parked.h"
#include "module/blocked_priv.h"
#include "module/run.h"
#include "module/text.h"
#include "module/users.h"

#include <string.h>

/* Who wants to know of a client. */
struct watch {
    uint64_t client_id;
    struct module *module;
    RedisModuleUserChangedFunc changed;
    void *user_data;
    struct watch *next;
};

static struct watch *watches;

/* Who is asked: the one that came last first. */
struct asked {
    struct module *module;
    RedisModuleAuthCallback callback;
    struct asked *next;
};

static struct asked *first_asked;

/* ---- telling ---- */

static struct watch *take(uint64_t client_id)
{
    struct watch **at = &watches;
    while (*at && (*at)->client_id != client_id) {
        at = &(*at)->next;
    }
    struct watch *w = *at;
    if (w) {
        *at = w->next;
    }
    return w;
}

/* A client's own thread sleeps while this runs, perhaps in another one (busy.h). */
static void tell_held(void *session)
{
    keyspace_assert_exclusive();
    const struct session *s = session;
    struct watch *w = take(s->id);
    if (!w) {
        return;
    }
    RedisModuleCtx ctx;
    context_begin(&ctx, w->module, ACCESS_EXCLUSIVE);
    w->changed(w->client_id, w->user_data);
    context_end(&ctx);
    mem_free(w);
}

static void tell(struct session *s)
{
    busy_run_within(tell_held, s);
}

/* ---- being asked ---- */

struct auth_question {
    struct call *call;
    struct slice user, password;
    struct buf *error;
    enum auth_answer answer;
};

/* The state of a parked AUTH: modules may block it one after the other, as the chain goes on. */
struct wait {
    RedisModuleBlockedClient *client; /* the handle of the one that does */
    const struct asked *asked;        /* its callback: while it blocks clients it stays */
    char event[EVENT_NAME_BYTES];
};

static void forget_wait(void *state)
{
    struct wait *w = state;
    blocked_drop_wait(w->client);
    mem_free(w);
}

/* CLIENT UNBLOCK leaves it, as Redis does whoever has no time-out callback. */
static void wait_on(struct call *c, struct wait *w) REQUIRES(keyspace_lock)
{
    call_block(c, &(struct block){.event = slice_cstr(w->event),
                                  .when_gone = true,
                                  .stays = true,
                                  .state = c->retry ? NULL : w,
                                  .destroy_state = forget_wait});
}

static void wait_for(struct call *c, const struct asked *a, RedisModuleBlockedClient *b)
    REQUIRES(keyspace_lock)
{
    struct wait *w = c->retry ? call_block_state(c) : mem_calloc(1, sizeof(*w));
    if (c->retry) { /* it waits where it did, for the next one */
        blocked_drop_wait(w->client);
        memcpy(b->event, w->event, sizeof(w->event));
    } else {
        memcpy(w->event, b->event, sizeof(w->event));
    }
    b->making = NULL;
    w->client = b;
    w->asked = a;
    wait_on(c, w);
}

/* An error as the module gives it ("-CODE text", or text without a code), as replies are made. */
static void take_error(RedisModuleString *text, struct buf *error)
{
    struct slice told = text_slice(text);
    if (told.len > 0 && told.ptr[0] == '-') {
        told = slice_of(told.ptr + 1, told.len - 1);
    } else {
        buf_append_cstr(error, "ERR ");
    }
    buf_append_slice(error, told);
}

/* The callback takes no command's place: it replies nothing, and the world is not to be had. */
static enum auth_answer call_back(RedisModuleCtx *ctx, RedisModuleAuthCallback callback,
                                  const struct auth_question *q) REQUIRES(keyspace_lock)
{
    RedisModuleString *user = text_create(q->user), *password = text_create(q->password);
    RedisModuleString *error = NULL;
    ctx->session = q->call->session;
    bool handled = callback(ctx, user, password, &error) == REDISMODULE_AUTH_HANDLED;
    if (error && handled && q->error->len == 0) {
        take_error(error, q->error);
    }
    if (error) {
        context_disown(ctx, error);
        text_release(error);
    }
    text_release(user);
    text_release(password);
    if (!handled) {
        return AUTH_LEFT;
    }
    return ctx->granted ? AUTH_GRANTED : AUTH_DENIED;
}

static enum auth_answer ask_one(const struct asked *a, struct auth_question *q)
    REQUIRES(keyspace_lock)
{
    RedisModuleCtx ctx;
    context_begin(&ctx, a->module, ACCESS_EXCLUSIVE);
    ctx.question = q;
    enum auth_answer answer = call_back(&ctx, a->callback, q);
    if (ctx.blocks) {
        wait_for(q->call, a, ctx.blocks);
        answer = AUTH_WAITS;
    } else if (!ctx.question) { /* it was to wait, and could not */
        answer = AUTH_DENIED;
    }
    context_end(&ctx);
    return answer;
}

/* A parked AUTH is run again. Returns who has blocked it, whose reply callback says what comes of
 * it. */
static const struct asked *resume(struct auth_question *q) REQUIRES(keyspace_lock)
{
    struct wait *w = call_block_state(q->call);
    RedisModuleBlockedClient *b = w->client;
    if (!b->unblocked) {
        wait_on(q->call, w);
        q->answer = AUTH_WAITS;
        return w->asked;
    }
    b->answered = true;
    parked_add_ticks(q->call->parked, atomic_exchange(&b->measured_ticks, 0));
    if (b->auth_callback) {
        RedisModuleCtx ctx;
        context_begin(&ctx, b->module, ACCESS_EXCLUSIVE);
        ctx.blocked = b;
        ctx.cause = BLOCKED_REPLY;
        q->answer = call_back(&ctx, b->auth_callback, q);
        context_end(&ctx);
    }
    blocked_settle(b);
    return w->asked;
}

static void ask_held(void *question)
{
    keyspace_assert_exclusive();
    struct auth_question *q = question;
    const struct asked *a = first_asked;
    q->answer = AUTH_LEFT;
    if (q->call->retry) {
        a = resume(q)->next;
    }
    for (; a && q->answer == AUTH_LEFT; a = a->next) {
        q->answer = ask_one(a, q);
    }
}

/* Beside a script that was ended for the server's end nobody can be asked, nor let in. */
static enum auth_answer ask(struct call *c, struct slice user, struct slice password,
                            struct buf *error)
{
    struct auth_question q = {c, user, password, error, AUTH_DENIED};
    busy_run_within(ask_held, &q);
    return q.answer;
}

/* ---- life ---- */

void module_auth_setup(void)
{
    auth_set_watcher(tell);
}

void module_auth_withdraw(const struct module *m)
{
    for (struct watch **at = &watches; *at;) {
        struct watch *w = *at;
        if (!m || w->module == m) {
            *at = w->next;
            mem_free(w);
        } else {
            at = &w->next;
        }
    }
    for (struct asked **at = &first_asked; *at;) {
        struct asked *a = *at;
        if (!m || a->module == m) {
            *at = a->next;
            mem_free(a);
        } else {
            at = &a->next;
        }
    }
    auth_set_asker(first_asked ? ask : NULL);
}

void module_auth_teardown(void)
{
    auth_set_watcher(NULL);
    module_auth_withdraw(NULL);
}

/* ---- for modules ---- */

/* Only a connected client, not one whose script calls, and a user that is on. */
static int become(RedisModuleCtx *ctx, const struct acl_user *user,
                  RedisModuleUserChangedFunc changed, void *user_data, uint64_t *client_id)
    REQUIRES(keyspace_lock)
{
    struct session *s = ctx->session;
    if (!user || !user->enabled || !s || !s->owner || s->script) {
        return REDISMODULE_ERR;
    }
    auth_become(s, user);
    ctx->granted = true;
    if (ctx->call) {
        run_note_barrier(ctx->call->cmd);
    }
    if (changed) {
        struct watch *w = mem_alloc(sizeof(*w));
        *w = (struct watch){s->id, ctx->module, changed, user_data, watches};
        watches = w;
        s->user_is_watched = true;
    }
    if (client_id) {
        *client_id = s->id;
    }
    return REDISMODULE_OK;
}

static int rm_with_user(RedisModuleCtx *ctx, RedisModuleUser *user,
                        RedisModuleUserChangedFunc changed, void *user_data, uint64_t *client_id)
{
    keyspace_assert_exclusive();
    return become(ctx, user_for_session(user), changed, user_data, client_id);
}

static int rm_with_acl_user(RedisModuleCtx *ctx, const char *name, size_t len,
                            RedisModuleUserChangedFunc changed, void *user_data,
                            uint64_t *client_id)
{
    keyspace_assert_exclusive();
    return become(ctx, acl_user_find(slice_of(name, len)), changed, user_data, client_id);
}

static void rm_register(RedisModuleCtx *ctx, RedisModuleAuthCallback callback)
{
    keyspace_assert_exclusive();
    struct asked *a = mem_alloc(sizeof(*a));
    *a = (struct asked){ctx->module, callback, first_asked};
    first_asked = a;
    auth_set_asker(ask);
}

/* Why the AUTH cannot wait; NULL: it can. */
static const char *wait_refusal(const struct call *c)
{
    if (c->held != ACCESS_EXCLUSIVE) {
        return "ERR Blocking module command called beside a command that takes long";
    }
    return call_may_block(c) ? NULL : "ERR Blocking module command called from transaction";
}

/* Only from a callback that is asked, once. Whoever cannot wait is not let in. */
static RedisModuleBlockedClient *
rm_block_client_on_auth(RedisModuleCtx *ctx, RedisModuleAuthCallback reply,
                        void (*free_private)(RedisModuleCtx *, void *))
{
    keyspace_assert_exclusive();
    struct auth_question *q = ctx->question;
    if (!q || ctx->blocks) {
        return NULL;
    }
    RedisModuleBlockedClient *b = blocked_create(ctx, NULL, NULL, free_private, 0);
    const char *why = wait_refusal(q->call);
    b->auth_callback = reply;
    if (why) {
        blocked_begin_idle(b);
        buf_append_cstr(q->error, why);
        ctx->question = NULL;
    } else {
        blocked_begin_wait(ctx, b);
    }
    return b;
}

const struct api_function auth_functions[] = {
    API(BlockClientOnAuth, rm_block_client_on_auth),
    API(RegisterAuthCallback, rm_register),
    API(AuthenticateClientWithUser, rm_with_user),
    API(AuthenticateClientWithACLUser, rm_with_acl_user),
    {NULL, NULL},
};
