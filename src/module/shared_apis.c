/* See shared_apis.h. */
#include "module/shared_apis.h"

#include "base/lock.h"
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

static struct lock shared_lock = LOCK_INIT(LOCK_RANK_MODULES, "modules' shared functions");
static struct shared_api *apis GUARDED_BY(shared_lock);
static struct shared_use *uses GUARDED_BY(shared_lock);

static struct shared_api *find(const char *name) REQUIRES(shared_lock);
static struct shared_api *find(const char *name)
{
    struct shared_api *a = apis;
    while (a && strcmp(a->name, name) != 0) {
        a = a->next;
    }
    return a;
}

static void note_use(const struct module *user, const struct module *module) REQUIRES(shared_lock);
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
    lock_acquire(&shared_lock);
    const struct shared_use *u = uses;
    while (u && u->module != m) {
        u = u->next;
    }
    lock_release(&shared_lock);
    return u;
}

void shared_apis_withdraw(struct module *m)
{
    lock_acquire(&shared_lock);
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
    lock_release(&shared_lock);
}

static void append_name(struct buf *out, size_t begin, const struct module *m)
{
    buf_append_cstr(out, out->len > begin ? "|" : "");
    buf_append_cstr(out, m->name);
}

void shared_apis_append_used(struct buf *out, const struct module *m)
{
    size_t begin = out->len;
    lock_acquire(&shared_lock);
    for (const struct shared_use *u = uses; u; u = u->next) {
        if (u->user == m) {
            append_name(out, begin, u->module);
        }
    }
    lock_release(&shared_lock);
}

void shared_apis_append_users(struct buf *out, const struct module *m)
{
    size_t begin = out->len;
    lock_acquire(&shared_lock);
    for (const struct shared_use *u = uses; u; u = u->next) {
        if (u->module == m) {
            append_name(out, begin, u->user);
        }
    }
    lock_release(&shared_lock);
}

/* ---- for modules ---- */

static int rm_export(RedisModuleCtx *ctx, const char *name, void *function)
{
    lock_acquire(&shared_lock);
    bool is_free = !find(name);
    if (is_free) {
        struct shared_api *a = mem_alloc(sizeof(*a));
        *a = (struct shared_api){mem_dup(name, strlen(name)), function, ctx->module, apis};
        apis = a;
    }
    lock_release(&shared_lock);
    if (!is_free) {
        loaded_note_fault(ctx->module, "the shared function", name, loaded_is_taken);
    }
    return is_free ? REDISMODULE_OK : REDISMODULE_ERR;
}

static void *rm_get(RedisModuleCtx *ctx, const char *name)
{
    lock_acquire(&shared_lock);
    const struct shared_api *a = find(name);
    void *function = a ? a->function : NULL;
    if (a && a->module != ctx->module) {
        note_use(ctx->module, a->module);
    }
    lock_release(&shared_lock);
    return function;
}

const struct api_function shared_functions[] = {
    API(ExportSharedAPI, rm_export),
    API(GetSharedAPI, rm_get),
    {NULL, NULL},
};
