/* See loader.h. */
#include "module/loader.h"

#include "base/log.h"
#include "base/mem.h"
#include "engine/call.h"
#include "engine/modules.h"
#include "module/auth.h"
#include "module/commands.h"
#include "module/configs.h"
#include "module/context.h"
#include "module/key_events.h"
#include "module/filters.h"
#include "module/promises.h"
#include "module/server_events.h"
#include "module/shared_apis.h"
#include "module/text.h"
#include "module/types.h"
#include "module/timers.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

typedef int (*load_function)(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
typedef int (*unload_function)(void *ctx);

/* ---- records ---- */

static struct slice *copy_args(const struct slice *args, int count)
{
    size_t bytes = (size_t)count * sizeof(*args);
    for (int i = 0; i < count; i++) {
        bytes += args[i].len;
    }
    struct slice *copy = mem_alloc(bytes);
    char *at = (char *)(copy + count);
    for (int i = 0; i < count; i++) {
        copy[i] = slice_of(at, args[i].len);
        memcpy(at, args[i].ptr, args[i].len);
        at += args[i].len;
    }
    return copy;
}

static struct module *create(const char *path, void *library, const struct slice *args, int count)
{
    struct module *m = mem_calloc(1, sizeof(*m));
    m->path = mem_dup(path, strlen(path));
    m->library = library;
    m->args = copy_args(args, count);
    m->arg_count = count;
    return m;
}

static void destroy(struct module *m)
{
    mem_free(m->name);
    mem_free(m->path);
    mem_free(m->args);
    buf_deinit(&m->fault);
    mem_free(m);
}

void loader_teardown(void)
{
    for (const struct module *m = loaded_first(); m; m = loaded_first()) {
        loaded_remove((struct module *)m);
        commands_forget((struct module *)m);
        shared_apis_withdraw((struct module *)m);
        types_forget(m);
        configs_forget((struct module *)m);
        destroy((struct module *)m);
    }
}

/* ---- loading ---- */

/* An address of the library as a function (POSIX lets that be). */
static void fetch_symbol(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof(symbol));
}

/* Runs OnLoad, in the world and with the keyspace lock, as any code of modules runs. What it
 * returns. */
static int run_load(struct module *m, load_function load) REQUIRES(gil)
{
    RedisModuleString **argv = mem_alloc((size_t)m->arg_count * sizeof(RedisModuleString *));
    RedisModuleCtx ctx;
    for (int i = 0; i < m->arg_count; i++) {
        argv[i] = text_create(m->args[i]);
    }
    keyspace_lock_exclusive();
    context_begin(&ctx, m, ACCESS_WORLD);
    m->loading = true;
    int result = load(&ctx, argv, m->arg_count);
    m->loading = false;
    context_end(&ctx);
    keyspace_unlock_exclusive();
    for (int i = 0; i < m->arg_count; i++) {
        text_release(argv[i]);
    }
    mem_free(argv);
    return result;
}

/* What every module must be before its code is let in. */
static void *open_library(const char *path, struct buf *error)
{
    struct stat status;
    if (stat(path, &status) == 0 && !(status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH))) {
        buf_printf(error, "%s may not be executed: it lacks the permission", path);
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        buf_append_cstr(error, dlerror());
    }
    return library;
}

/* Takes back all that OnLoad has registered. False when values of its types are there already: its
 * code must stay for them. */
static bool withdraw(struct module *m) REQUIRES(gil)
{
    commands_remove(m);
    shared_apis_withdraw(m);
    configs_withdraw(m);
    filters_withdraw(m);
    module_auth_withdraw(m);
    command_category_give_back(m->categories);
    keyspace_lock_exclusive();
    promises_withdraw(m);
    timers_remove(m);
    key_events_withdraw(m);
    server_events_withdraw(m);
    keyspace_unlock_exclusive();
    return types_withdraw(m);
}

static void tell_change(const struct module *m, unsigned part)
{
    modules_news(MODULES_MODULE, part,
                 &(struct modules_facts){.name = m->name, .first = m->version});
}

/* Why it is not let in, if it is not. */
static bool is_refused(struct module *m, bool agrees, struct buf *error)
{
    if (agrees && m->name && loaded_find(slice_cstr(m->name))) {
        buf_printf(error, "%s: another module has the name '%s'", m->path, m->name);
        return true;
    }
    if (agrees && m->name && configs_are_loaded(m)) {
        return false;
    }
    buf_printf(error, "%s: its OnLoad %s", m->path,
               !agrees   ? "refused"
               : m->name ? "has options, and has not called RedisModule_LoadConfigs"
                         : "has not called RedisModule_Init");
    if (!agrees && m->fault.len > 0) {
        buf_printf(error, ", after it was told that %s", buf_cstr(&m->fault));
    }
    return true;
}

/* A module that has not been let in goes. */
static void give_up(struct module *m) REQUIRES(gil)
{
    if (!withdraw(m)) {
        log_warning("%s has made values before its OnLoad failed: its types and its code stay",
                    m->path);
        return;
    }
    dlclose(m->library);
    destroy(m);
}

bool loader_load(const char *path, const struct slice *args, int arg_count, struct buf *error)
{
    void *library = open_library(path, error);
    load_function load = NULL;
    if (!library) {
        return false;
    }
    fetch_symbol(library, "RedisModule_OnLoad", &load);
    if (!load) {
        buf_printf(error, "%s has no RedisModule_OnLoad: it is no module", path);
        dlclose(library);
        return false;
    }
    struct module *m = create(path, library, args, arg_count);
    if (is_refused(m, run_load(m, load) == REDISMODULE_OK, error)) {
        give_up(m);
        return false;
    }
    loaded_add(m);
    log_notice("Module '%s' loaded from %s", m->name, path);
    tell_change(m, 0);
    return true;
}

/* ---- unloading ---- */

static bool may_unload(struct module *m, struct buf *error) REQUIRES(gil)
{
    unload_function unload = NULL;
    if (m->running > 0) { /* it calls MODULE UNLOAD, or waits for the world in another call */
        buf_append_cstr(error, "the module is running");
        return false;
    }
    if (types_are_there(m)) {
        buf_append_cstr(error,
                        "the module exports one or more module-side data types, can't unload");
        return false;
    }
    if (m->blocked > 0) {
        buf_append_cstr(error, "the module has blocked clients. Please wait for them to be "
                               "unblocked and try again");
        return false;
    }
    if (m->timers > 0) {
        buf_append_cstr(error, "the module holds timer that is not fired. Please stop the timer or "
                               "wait until it fires.");
        return false;
    }
    if (shared_apis_are_used(m)) {
        buf_append_cstr(error, "the module exports APIs used by other modules. Please unload them "
                               "first and try again");
        return false;
    }
    fetch_symbol(m->library, "RedisModule_OnUnload", &unload);
    if (!unload) {
        return true;
    }
    RedisModuleCtx ctx;
    keyspace_lock_exclusive();
    context_begin(&ctx, m, ACCESS_WORLD);
    bool agrees = unload(&ctx) == REDISMODULE_OK;
    context_end(&ctx);
    keyspace_unlock_exclusive();
    if (!agrees) {
        buf_append_cstr(error, "the module does not let itself be unloaded now");
    }
    return agrees;
}

bool loader_unload(struct slice name, struct buf *error)
{
    struct module *m = loaded_find(name);
    if (!m) {
        buf_append_cstr(error, "no such module with that name");
        return false;
    }
    if (!may_unload(m, error)) {
        return false;
    }
    bool gone = withdraw(m);
    assert(gone);
    (void)gone;
    loaded_remove(m);
    tell_change(m, 1);
    if (dlclose(m->library) != 0) {
        log_warning("Module '%s' could not be closed: %s", m->name, dlerror());
    }
    log_notice("Module '%s' unloaded", m->name);
    destroy(m);
    return true;
}
