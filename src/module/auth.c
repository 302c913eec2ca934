/* Clients that modules authenticate: the caller of the command that runs becomes a user, without a
 * password. Who has done it may want to know, once, when the client ceases to be that user's: it
 * authenticates anew, resets, or ends. State: keyspace. */
#include "module/auth.h"

#include "base/mem.h"
#include "engine/auth.h"
#include "keyspace/lock.h"
#include "module/context.h"
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

static void tell_held(const struct session *s) REQUIRES(keyspace_lock)
{
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

static void tell(struct session *s) NO_THREAD_SAFETY_ANALYSIS
{
    if (keyspace_is_exclusive()) {
        tell_held(s);
    } else {
        keyspace_lock_exclusive();
        tell_held(s);
        keyspace_unlock_exclusive();
    }
}

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
}

void module_auth_teardown(void)
{
    auth_set_watcher(NULL);
    module_auth_withdraw(NULL);
}

/* ---- for modules ---- */

/* Only a connected client, and a user that is on. */
static int become(RedisModuleCtx *ctx, const struct acl_user *user,
                  RedisModuleUserChangedFunc changed, void *user_data, uint64_t *client_id)
    REQUIRES(keyspace_lock)
{
    struct session *s = ctx->session;
    if (!user || !user->enabled || !s || !s->owner) {
        return REDISMODULE_ERR;
    }
    auth_become(s, user);
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

const struct api_function auth_functions[] = {
    API(AuthenticateClientWithUser, rm_with_user),
    API(AuthenticateClientWithACLUser, rm_with_acl_user),
    {NULL, NULL},
};
