/* See shared_apis.h. */
#include "module/shared_apis.h"

#include "base/mem.h"
#include "module/context.h"

#include <string.h>

struct shared_api {
    char *name;
    void *function;
    struct module *module; /* whose it is */
    struct shared_api *next;
};

/* That `user` has asked for something of `module`, once or more. */
struct shared_use {
    const struct module *user, *module;
    struct shared_use *next;
};

static struct shared_api *apis;
static struct shared_use *uses;

static struct shared_api *find(const char *name)
{
    struct shared_api *a = apis;
    while (a && strcmp(a->name, name) != 0) {
        a = a->next;
    }
    return a;
}

static void note_use(const struct module *user, const struct module *module)
{
    for (const struct shared_use *u = uses; u; u = u->next) {
        if (u->user == user && u->module == module) {
            return;
        }
    }
    struct shared_use *u = mem_alloc(sizeof(*u));
    *u = (struct shared_use){user, module, uses};
    uses = u;
}

bool shared_apis_are_used(const struct module *m)
{
    const struct shared_use *u = uses;
    while (u && u->module != m) {
        u = u->next;
    }
    return u;
}

void shared_apis_withdraw(struct module *m)
{
    for (struct shared_api **link = &apis; *link;) {
        struct shared_api *a = *link;
        if (a->module == m) {
            *link = a->next;
            mem_free(a->name);
            mem_free(a);
        } else {
            link = &a->next;
        }
    }
    for (struct shared_use **link = &uses; *link;) {
        struct shared_use *u = *link;
        if (u->user == m || u->module == m) {
            *link = u->next;
            mem_free(u);
        } else {
            link = &u->next;
        }
    }
}

static void append_name(struct buf *out, size_t begin, const struct module *m)
{
    buf_append_cstr(out, out->len > begin ? "|" : "");
    buf_append_cstr(out, m->name);
}

void shared_apis_append_used(struct buf *out, const struct module *m)
{
    size_t begin = out->len;
    for (const struct shared_use *u = uses; u; u = u->next) {
        if (u->user == m) {
            append_name(out, begin, u->module);
        }
    }
}

void shared_apis_append_users(struct buf *out, const struct module *m)
{
    size_t begin = out->len;
    for (const struct shared_use *u = uses; u; u = u->next) {
        if (u->module == m) {
            append_name(out, begin, u->user);
        }
    }
}

/* ---- for modules ---- */

static int rm_export(RedisModuleCtx *ctx, const char *name, void *function)
{
    if (find(name)) {
        return REDISMODULE_ERR;
    }
    struct shared_api *a = mem_alloc(sizeof(*a));
    *a = (struct shared_api){mem_dup(name, strlen(name)), function, ctx->module, apis};
    apis = a;
    return REDISMODULE_OK;
}

static void *rm_get(RedisModuleCtx *ctx, const char *name)
{
    const struct shared_api *a = find(name);
    if (!a) {
        return NULL;
    }
    if (a->module != ctx->module) {
        note_use(ctx->module, a->module);
    }
    return a->function;
}

const struct api_function shared_functions[] = {
    API(ExportSharedAPI, rm_export),
    API(GetSharedAPI, rm_get),
    {NULL, NULL},
};
