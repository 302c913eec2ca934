/* Clients by their ids. The caller of the command that runs is looked at as it is, another one in
 * the world (world.h): where that is not to be had there is no such client. */
#include "module/world.h"

#include "base/buf.h"
#include "engine/acl.h"
#include "engine/auth.h"
#include "engine/redact.h"
#include "engine/tracking.h"
#include "module/text.h"
#include "net/client.h"
#include "net/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is to be done with a client. */
struct visit {
    uint64_t id;
    void (*work)(struct client *c, struct visit *v);
    bool is_found, is_done;
    RedisModuleClientInfoV1 *info;
    struct slice name; /* given */
    struct buf text;   /* told */
};

static void visit_found(void *data) NO_THREAD_SAFETY_ANALYSIS
{
    struct visit *v = data;
    struct client *c = client_find(v->id);
    if (c) {
        v->is_found = true;
        v->work(c, v);
    }
}

/* False, with errno ENOENT, when there is no such client. */
static bool visit(RedisModuleCtx *ctx, struct visit *v) REQUIRES(keyspace_lock)
{
    const struct session *own = ctx ? ctx->session : NULL;
    if (own && own->owner && own->id == v->id) {
        v->is_found = true;
        v->work(client_of(own), v);
    } else if (ctx && ctx->held == ACCESS_WORLD) {
        visit_found(v);
    } else if (ctx && !world_run(ctx, visit_found, v)) {
        v->is_found = false;
    }
    if (!v->is_found) {
        errno = ENOENT;
    }
    return v->is_found;
}

/* The text that a visit has brought; NULL without one. */
static RedisModuleString *give_text(RedisModuleCtx *ctx, struct visit *v)
{
    RedisModuleString *text = v->is_done ? text_give(ctx, text_create(buf_slice(&v->text))) : NULL;
    buf_deinit(&v->text);
    return text;
}

/* ---- what they are ---- */

static uint64_t info_flags(const struct client *c)
{
    return (c->flags & CLIENT_TLS ? REDISMODULE_CLIENTINFO_FLAG_SSL : 0) |
           (c->session.subscriptions > 0 ? REDISMODULE_CLIENTINFO_FLAG_PUBSUB : 0) |
           (c->flags & CLIENT_BLOCKED ? REDISMODULE_CLIENTINFO_FLAG_BLOCKED : 0) |
           (c->session.tracking & TRACKING_ON ? REDISMODULE_CLIENTINFO_FLAG_TRACKING : 0) |
           (c->flags & CLIENT_UNIX ? REDISMODULE_CLIENTINFO_FLAG_UNIXSOCKET : 0) |
           (c->session.in_transaction ? REDISMODULE_CLIENTINFO_FLAG_MULTI : 0);
}

/* "ip:port", "[ip6]:port" or "path:0", as the two of it. */
static void fill_address(const struct client *c, RedisModuleClientInfoV1 *info)
{
    struct slice peer = slice_cstr(c->session.peer);
    const char *colon = strrchr(peer.ptr, ':');
    if (!colon) {
        return;
    }
    peer.len = (size_t)(colon - peer.ptr);
    if (peer.len > 2 && peer.ptr[0] == '[') {
        peer = slice_of(peer.ptr + 1, peer.len - 2);
    }
    size_t len = peer.len < sizeof(info->addr) ? peer.len : sizeof(info->addr) - 1;
    memcpy(info->addr, peer.ptr, len);
    info->port = (uint16_t)strtoul(colon + 1, NULL, 10);
}

static void fill_info(struct client *c, struct visit *v)
{
    if (v->info) {
        *v->info = (RedisModuleClientInfoV1){.version = REDISMODULE_CLIENTINFO_VERSION,
                                             .flags = info_flags(c),
                                             .id = c->session.id,
                                             .db = (uint16_t)c->session.db_index};
        fill_address(c, v->info);
    }
}

/* info may be NULL: whether there is such a client. Its first word says which version it is. */
static int rm_get_info(void *info, uint64_t id)
{
    keyspace_assert_exclusive();
    uint64_t version = REDISMODULE_CLIENTINFO_VERSION;
    if (info) {
        memcpy(&version, info, sizeof(version));
    }
    struct visit v = {.id = id, .work = fill_info, .info = info};
    return version == REDISMODULE_CLIENTINFO_VERSION && visit(context_current(), &v)
               ? REDISMODULE_OK
               : REDISMODULE_ERR;
}

static void tell_name(struct client *c, struct visit *v)
{
    if (c->session.name) {
        buf_append_cstr(&v->text, c->session.name);
        v->is_done = true;
    }
}

/* NULL, ENOENT, also for a client without a name. */
static RedisModuleString *rm_get_name(RedisModuleCtx *ctx, uint64_t id)
{
    keyspace_assert_exclusive();
    struct visit v = {.id = id, .work = tell_name};
    if (visit(ctx, &v) && !v.is_done) {
        errno = ENOENT;
    }
    return give_text(ctx, &v);
}

static void take_name(struct client *c, struct visit *v)
{
    v->is_done = session_set_name(&c->session, v->name);
}

/* EINVAL: the name has blanks or unprintable bytes. */
static int rm_set_name(uint64_t id, RedisModuleString *name)
{
    keyspace_assert_exclusive();
    struct visit v = {.id = id, .work = take_name, .name = text_slice(name)};
    if (visit(context_current(), &v) && !v.is_done) {
        errno = EINVAL;
    }
    return v.is_done ? REDISMODULE_OK : REDISMODULE_ERR;
}

static void tell_user(struct client *c, struct visit *v)
{
    buf_append_cstr(&v->text, c->session.user);
    v->is_done = true;
}

static RedisModuleString *rm_get_user(RedisModuleCtx *ctx, uint64_t id)
{
    keyspace_assert_exclusive();
    struct visit v = {.id = id, .work = tell_user};
    (void)visit(ctx, &v);
    return give_text(ctx, &v);
}

static void tell_certificate(struct client *c, struct visit *v)
{
    v->is_done = c->tls && tls_append_certificate(c->tls, &v->text);
}

/* As PEM; NULL where the client has shown none. */
static RedisModuleString *rm_get_certificate(RedisModuleCtx *ctx, uint64_t id)
{
    keyspace_assert_exclusive();
    struct visit v = {.id = id, .work = tell_certificate};
    (void)visit(ctx, &v);
    return give_text(ctx, &v);
}

/* ---- sending them away ---- */

static void deauthenticate(struct client *c, struct visit *v)
{
    auth_note_change(&c->session);
    acl_start_session(&c->session);
    c->session.authenticated = false;
    if (v->is_done) { /* the caller still gets its reply */
        c->flags |= CLIENT_CLOSE_AFTER_REPLY;
    } else {
        client_close_asap(c);
    }
}

/* It is the default user, and not authenticated, until its connection is closed. */
static int rm_deauthenticate(RedisModuleCtx *ctx, uint64_t id)
{
    keyspace_assert_exclusive();
    struct visit v = {.id = id, .work = deauthenticate};
    v.is_done = ctx->session && ctx->session->id == id;
    return visit(ctx, &v) ? REDISMODULE_OK : REDISMODULE_ERR;
}

/* ---- what they have sent ---- */

/* In MONITOR and the slow log it is not shown. Of the command that runs only. */
static int rm_redact(RedisModuleCtx *ctx, int pos)
{
    if (!ctx || !ctx->call || pos <= 0 || pos >= ctx->call->argc) {
        return REDISMODULE_ERR;
    }
    call_mark_secret(ctx->call, pos);
    return REDISMODULE_OK;
}

const struct api_function client_functions[] = {
    API(RedactClientCommandArgument, rm_redact),
    API(GetClientInfoById, rm_get_info),
    API(GetClientNameById, rm_get_name),
    API(SetClientNameById, rm_set_name),
    API(GetClientUserNameById, rm_get_user),
    API(GetClientCertificate, rm_get_certificate),
    API(DeauthenticateAndCloseClient, rm_deauthenticate),
    {NULL, NULL},
};
