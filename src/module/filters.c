/* See filters.h. A request is filtered once, when it has come and before its command is looked for:
 * its arguments become strings, each filter in order of registration may change them, and if one
 * has they become the request's. All of a filter's code runs in exclusive mode, so each request
 * takes the keyspace lock while there are filters. */
#include "module/filters.h"

#include "base/mem.h"
#include "engine/busy.h"
#include "engine/filter.h"
#include "module/context.h"
#include "module/text.h"

#include <string.h>

struct RedisModuleCommandFilter {
    struct module *module;
    RedisModuleCommandFilterFunc function;
    int flags;
    RedisModuleCommandFilter *next;
};

struct RedisModuleCommandFilterCtx {
    RedisModuleString **argv;
    int argc, capacity;
    uint64_t client_id;
    bool is_changed;
};

/* In order of registration. */
static RedisModuleCommandFilter *first;

/* ---- running them ---- */

static void run_one(const RedisModuleCommandFilter *f, RedisModuleCommandFilterCtx *request)
    REQUIRES(keyspace_lock)
{
    const RedisModuleCtx *caller = context_current();
    if (f->flags & REDISMODULE_CMDFILTER_NOSELF && caller && caller->module == f->module) {
        return;
    }
    RedisModuleCtx ctx;
    context_begin(&ctx, f->module, ACCESS_EXCLUSIVE);
    f->function(request);
    context_end(&ctx);
}

static void take_arguments(RedisModuleCommandFilterCtx *f, const struct request *request)
{
    f->argc = f->capacity = request->argc;
    f->argv = mem_alloc((size_t)f->capacity * sizeof(RedisModuleString *));
    for (int i = 0; i < f->argc; i++) {
        f->argv[i] =
            text_create_argument(request->argv[i], request->blobs ? request->blobs[i] : NULL);
    }
}

static void free_arguments(RedisModuleCommandFilterCtx *f)
{
    for (int i = 0; i < f->argc; i++) {
        text_release(f->argv[i]);
    }
    mem_free(f->argv);
}

/* Makes the strings the request's arguments: in the arena, or the blobs that they are. */
static void give_arguments(const RedisModuleCommandFilterCtx *f, struct request *request,
                           struct arena *arena)
{
    size_t count = (size_t)f->argc;
    struct slice *argv = arena_alloc(arena, count * sizeof(*argv));
    struct blob **blobs = NULL;
    if (request->blobs) {
        blobs = arena_alloc(arena, count * sizeof(struct blob *));
        memset(blobs, 0, count * sizeof(struct blob *));
    }
    for (size_t i = 0; i < count; i++) {
        RedisModuleString *s = f->argv[i];
        if (blobs && s->blob && !s->grown) {
            blobs[i] = blob_acquire(s->blob);
            argv[i] = text_slice(s);
        } else {
            char *bytes = arena_alloc(arena, s->len + 1);
            memcpy(bytes, s->ptr, s->len);
            argv[i] = slice_of(bytes, s->len);
        }
    }
    parser_release(request);
    *request = (struct request){f->argc, argv, blobs};
}

static void run_all(void *request)
{
    keyspace_assert_exclusive();
    for (const RedisModuleCommandFilter *f = first; f; f = f->next) {
        run_one(f, request);
    }
}

/* The filters may run in the thread whose script takes long (busy.h); what is this one's is done
 * here. */
static void filter(const struct session *s, struct request *request, struct arena *arena)
{
    RedisModuleCommandFilterCtx f = {.client_id = s->id};
    take_arguments(&f, request);
    busy_run_within(run_all, &f);
    if (f.is_changed) {
        give_arguments(&f, request, arena);
    }
    free_arguments(&f);
}

void filters_setup(void)
{
    filter_set(filter);
}

static void note_any(void)
{
    atomic_store_explicit(&filter_any, first != NULL, memory_order_relaxed);
}

/* Takes out the filter at *at. */
static void drop(RedisModuleCommandFilter **at)
{
    RedisModuleCommandFilter *f = *at;
    *at = f->next;
    mem_free(f);
    note_any();
}

void filters_withdraw(const struct module *m)
{
    for (RedisModuleCommandFilter **at = &first; *at;) {
        if ((*at)->module == m) {
            drop(at);
        } else {
            at = &(*at)->next;
        }
    }
}

void filters_teardown(void)
{
    while (first) {
        drop(&first);
    }
    filter_set(NULL);
}

unsigned filters_count(const struct module *m)
{
    unsigned count = 0;
    for (const RedisModuleCommandFilter *f = first; f; f = f->next) {
        count += f->module == m;
    }
    return count;
}

/* ---- for modules ---- */

static RedisModuleCommandFilter *rm_register(RedisModuleCtx *ctx,
                                             RedisModuleCommandFilterFunc function, int flags)
{
    keyspace_assert_exclusive();
    RedisModuleCommandFilter *f = mem_alloc(sizeof(*f));
    *f = (RedisModuleCommandFilter){ctx->module, function, flags, NULL};
    RedisModuleCommandFilter **last = &first;
    while (*last) {
        last = &(*last)->next;
    }
    *last = f;
    note_any();
    return f;
}

/* A module's own filters only. */
static int rm_unregister(RedisModuleCtx *ctx, RedisModuleCommandFilter *filter)
{
    keyspace_assert_exclusive();
    RedisModuleCommandFilter **at = &first;
    while (*at && *at != filter) {
        at = &(*at)->next;
    }
    if (!*at || (*at)->module != ctx->module) {
        return REDISMODULE_ERR;
    }
    drop(at);
    return REDISMODULE_OK;
}

static int rm_args_count(RedisModuleCommandFilterCtx *f)
{
    return f->argc;
}

/* The filter's, not the module's. */
static RedisModuleString *rm_arg_get(RedisModuleCommandFilterCtx *f, int pos)
{
    return pos >= 0 && pos < f->argc ? f->argv[pos] : NULL;
}

/* Takes over the module's reference to the string, as replacing does. */
static int rm_arg_insert(RedisModuleCommandFilterCtx *f, int pos, RedisModuleString *arg)
{
    if (pos < 0 || pos > f->argc) {
        return REDISMODULE_ERR;
    }
    if (f->argc == f->capacity) {
        f->capacity = 2 * f->capacity + 1;
        f->argv = mem_realloc(f->argv, (size_t)f->capacity * sizeof(RedisModuleString *));
    }
    memmove(&f->argv[pos + 1], &f->argv[pos],
            (size_t)(f->argc - pos) * sizeof(RedisModuleString *));
    f->argv[pos] = arg;
    f->argc++;
    f->is_changed = true;
    return REDISMODULE_OK;
}

static int rm_arg_replace(RedisModuleCommandFilterCtx *f, int pos, RedisModuleString *arg)
{
    if (pos < 0 || pos >= f->argc) {
        return REDISMODULE_ERR;
    }
    text_release(f->argv[pos]);
    f->argv[pos] = arg;
    f->is_changed = true;
    return REDISMODULE_OK;
}

/* The last one stays: a request names a command. */
static int rm_arg_delete(RedisModuleCommandFilterCtx *f, int pos)
{
    if (pos < 0 || pos >= f->argc || f->argc == 1) {
        return REDISMODULE_ERR;
    }
    text_release(f->argv[pos]);
    f->argc--;
    memmove(&f->argv[pos], &f->argv[pos + 1],
            (size_t)(f->argc - pos) * sizeof(RedisModuleString *));
    f->is_changed = true;
    return REDISMODULE_OK;
}

static unsigned long long rm_client_id(RedisModuleCommandFilterCtx *f)
{
    return f->client_id;
}

const struct api_function filter_functions[] = {
    API(RegisterCommandFilter, rm_register),
    API(UnregisterCommandFilter, rm_unregister),
    API(CommandFilterArgsCount, rm_args_count),
    API(CommandFilterArgGet, rm_arg_get),
    API(CommandFilterArgInsert, rm_arg_insert),
    API(CommandFilterArgReplace, rm_arg_replace),
    API(CommandFilterArgDelete, rm_arg_delete),
    API(CommandFilterGetClientId, rm_client_id),
    {NULL, NULL},
};
