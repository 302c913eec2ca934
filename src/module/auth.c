/* Clients that modules authenticate: the caller of the command that runs becomes a user, without a
 * password. Who has done it may want to know, once, when the client ceases to be that user's: it
 * authenticates anew, resets, or ends. Modules may also be asked by AUTH and HELLO, before
 * passwords are looked at. State: keyspace. */
#include "module/auth.h"

#include "base/mem.h"
#include "engine/auth.h"
#include "engine/busy.h"
#include "module/context.h"
#include "module/run.h"
#include "module/text.h"
#include "module/users.h"

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

struct question {
    struct call *call;
    struct slice user, password;
    struct buf *error;
    enum auth_answer answer;
};

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
static enum auth_answer ask_one(const struct asked *a, const struct question *q)
    REQUIRES(keyspace_lock)
{
    RedisModuleCtx ctx;
    RedisModuleString *user = text_create(q->user), *password = text_create(q->password);
    RedisModuleString *error = NULL;
    context_begin(&ctx, a->module, ACCESS_EXCLUSIVE);
    ctx.session = q->call->session;
    bool handled = a->callback(&ctx, user, password, &error) == REDISMODULE_AUTH_HANDLED;
    bool granted = ctx.granted;
    if (error && handled) {
        take_error(error, q->error);
    }
    if (error) {
        context_disown(&ctx, error);
        text_release(error);
    }
    context_end(&ctx);
    text_release(user);
    text_release(password);
    if (!handled) {
        return AUTH_LEFT;
    }
    return granted ? AUTH_GRANTED : AUTH_DENIED;
}

static void ask_held(void *question)
{
    keyspace_assert_exclusive();
    struct question *q = question;
    q->answer = AUTH_LEFT;
    for (const struct asked *a = first_asked; a && q->answer == AUTH_LEFT; a = a->next) {
        q->answer = ask_one(a, q);
    }
}

/* Beside a script that was ended for the server's end nobody can be asked, nor let in. */
static enum auth_answer ask(struct call *c, struct slice user, struct slice password,
                            struct buf *error)
{
    struct question q = {c, user, password, error, AUTH_DENIED};
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
    int result = become(ctx, user_acl(user), changed, user_data, client_id);
    if (result == REDISMODULE_OK) {
        user_note_session(user);
    }
    return result;
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

const struct api_function auth_functions[] = {
    API(RegisterAuthCallback, rm_register),
    API(AuthenticateClientWithUser, rm_with_user),
    API(AuthenticateClientWithACLUser, rm_with_acl_user),
    {NULL, NULL},
};
