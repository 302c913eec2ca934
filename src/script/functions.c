/* See functions.h. */
#include "script/functions.h"

#include "base/mem.h"
#include "engine/execute.h"
#include "engine/function_store.h"
#include "script/api.h"
#include "script/world.h"

#include <assert.h>
#include <stdlib.h>

/* How long the loading of a library may take: nobody can end it. A client's as in Redis. */
#define LOAD_MS 500
#define LOAD_TRUSTED_MS 60000

/* Its address is the registry's key of the globals while a library is loaded. */
static const char load_globals_key;

static struct {
    struct vm vm;
    struct library **libraries;    /* by name */
    const struct function **index; /* by name, letters compared without case */
    _Atomic uint64_t library_count, function_count;
    _Atomic size_t bytes;
} all;

uint64_t functions_library_count(void)
{
    return atomic_load_explicit(&all.library_count, memory_order_relaxed);
}

uint64_t functions_function_count(void)
{
    return atomic_load_explicit(&all.function_count, memory_order_relaxed);
}

const struct library *functions_library_at(int index)
{
    return all.libraries[index];
}

/* ---- finding ---- */

static int compare_names(const char *a, struct slice b)
{
    size_t len = strlen(a), shorter = len < b.len ? len : b.len;
    int order = strncasecmp(a, b.ptr, shorter);
    return order ? order : (len > b.len) - (len < b.len);
}

const struct function *functions_find(struct slice name)
{
    uint64_t low = 0, high = functions_function_count();
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int order = compare_names(all.index[middle]->name, name);
        if (order == 0) {
            return all.index[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

static int find_library(struct slice name)
{
    for (int i = 0; i < (int)functions_library_count(); i++) {
        if (slice_equal(slice_cstr(all.libraries[i]->name), name)) {
            return i;
        }
    }
    return -1;
}

/* ---- the collection ---- */

static int by_function_name(const void *a, const void *b)
{
    const struct function *const *x = a, *const *y = b;
    return strcasecmp((*x)->name, (*y)->name);
}

static int by_library_name(const void *a, const void *b)
{
    const struct library *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Makes `count` libraries (the array is taken over) the collection. */
static void set_collection_take(struct library **libraries_take, int count)
{
    uint64_t functions = 0;
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        functions += (uint64_t)libraries_take[i]->count;
        bytes += sizeof(struct library) + libraries_take[i]->code_len +
                 (size_t)libraries_take[i]->capacity * sizeof(struct function);
    }
    mem_free(all.libraries);
    mem_free(all.index);
    all.libraries = libraries_take;
    all.index = functions ? mem_alloc(functions * sizeof(struct function *)) : NULL;
    uint64_t at = 0;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < libraries_take[i]->count; k++) {
            all.index[at++] = &libraries_take[i]->functions[k];
        }
    }
    if (count > 0) {
        qsort(all.libraries, (size_t)count, sizeof(struct library *), by_library_name);
        qsort(all.index, functions, sizeof(struct function *), by_function_name);
    }
    atomic_store(&all.library_count, (uint64_t)count);
    atomic_store(&all.function_count, functions);
    atomic_store(&all.bytes, bytes);
}

/* Called protected. */
static int forget_functions(lua_State *L)
{
    const struct library *l = lua_touserdata(L, 1);
    for (int i = 0; i < l->count; i++) {
        luaL_unref(L, LUA_REGISTRYINDEX, l->functions[i].ref);
    }
    return 0;
}

void functions_free(struct library *l)
{
    if (lua_cpcall(all.vm.L, forget_functions, l) != 0) {
        lua_settop(all.vm.L, 0); /* no memory: they stay until the next FLUSH */
    }
    for (int i = 0; i < l->count; i++) {
        mem_free(l->functions[i].name);
        mem_free(l->functions[i].description);
    }
    mem_free(l->functions);
    mem_free(l->name);
    mem_free(l->code);
    mem_free(l);
}

/* Whether a function's name is in one of the libraries. */
static bool has_function(struct library *const *libraries, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < libraries[i]->count; k++) {
            if (strcasecmp(libraries[i]->functions[k].name, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Whether the library may join the first `count` ones; else says why. */
static bool may_join(struct library *const *libraries, int count, const struct library *l,
                     struct buf *error)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(libraries[i]->name, l->name) == 0) {
            buf_printf(error, "Library %s already exists", l->name);
            return false;
        }
    }
    for (int k = 0; k < l->count; k++) {
        if (has_function(libraries, count, l->functions[k].name)) {
            buf_printf(error, "Function %s already exists", l->functions[k].name);
            return false;
        }
    }
    return true;
}

static bool is_among(struct library *const *libraries, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(libraries[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

bool functions_adopt_take(struct library **libraries_take, int count, bool replace, bool flush,
                          struct buf *error)
{
    int before = (int)functions_library_count(), kept = 0, gone = 0;
    struct library **next = mem_alloc((size_t)(before + count + 1) * sizeof(*next));
    struct library **dropped = mem_alloc((size_t)(before + 1) * sizeof(*dropped));
    bool fits = true;
    for (int i = 0; i < before; i++) {
        bool goes = flush || (replace && is_among(libraries_take, count, all.libraries[i]->name));
        if (goes) {
            dropped[gone++] = all.libraries[i];
        } else {
            next[kept++] = all.libraries[i];
        }
    }
    for (int i = 0; i < count && fits; i++) {
        fits = may_join(next, kept, libraries_take[i], error);
        next[kept++] = libraries_take[i];
    }
    if (fits) {
        set_collection_take(next, kept);
        for (int i = 0; i < gone; i++) {
            functions_free(dropped[i]);
        }
    } else {
        for (int i = 0; i < count; i++) {
            functions_free(libraries_take[i]);
        }
        mem_free(next);
    }
    mem_free(dropped);
    return fits;
}

bool functions_delete(struct slice name)
{
    int at = find_library(name), count = (int)functions_library_count();
    if (at < 0) {
        return false;
    }
    struct library *gone = all.libraries[at];
    struct library **next = mem_alloc((size_t)count * sizeof(*next));
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (i != at) {
            next[kept++] = all.libraries[i];
        }
    }
    set_collection_take(next, kept);
    functions_free(gone);
    return true;
}

/* ---- loading ---- */

struct load {
    struct library *library;
    struct slice code;
    struct buf *error;
    bool done;
};

/* Appends the error on top of the stack. */
static void append_error(lua_State *L, struct buf *error)
{
    size_t len = 0;
    if (lua_istable(L, -1)) {
        lua_pushliteral(L, "err");
        lua_rawget(L, -2);
    }
    const char *text = lua_tolstring(L, -1, &len);
    buf_append(error, text ? text : "unknown error", text ? len : strlen("unknown error"));
}

/* Called protected. */
static int run_code(lua_State *L)
{
    struct load *load = lua_touserdata(L, 1);
    lua_pushcfunction(L, run_on_error);
    if (vm_load(L, load->code, "@user_function") != 0) {
        buf_append_cstr(load->error, "Error compiling function: ");
        append_error(L, load->error);
        return 0;
    }
    lua_pushlightuserdata(L, (void *)&load_globals_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    vm_set_globals(L);
    if (lua_pcall(L, 0, 0, 2) != 0) {
        buf_append_cstr(load->error, "Error registering functions: ");
        append_error(L, load->error);
        return 0;
    }
    load->done = true;
    return 0;
}

static int restore_globals(lua_State *L)
{
    vm_push_globals(L);
    vm_set_globals(L);
    return 0;
}

static bool load_code(struct load *load, bool trusted)
{
    lua_State *L = all.vm.L;
    functions_set_loading(load->library);
    run_begin_loading(L, trusted ? LOAD_TRUSTED_MS : LOAD_MS);
    if (lua_cpcall(L, run_code, load) != 0) {
        append_error(L, load->error);
    }
    run_end_loading();
    functions_set_loading(NULL);
    lua_settop(L, 0);
    if (lua_cpcall(L, restore_globals, NULL) != 0) {
        abort(); /* it allocates nothing */
    }
    if (load->done && load->library->count == 0) {
        buf_append_cstr(load->error, "No functions registered");
        load->done = false;
    }
    return load->done;
}

/* Whether no library has that name; else says so. */
static bool is_new_name(const struct library *l, struct buf *error)
{
    bool is_new = find_library(slice_cstr(l->name)) < 0;
    if (!is_new) {
        buf_printf(error, "Library '%s' already exists", l->name);
    }
    return is_new;
}

struct library *functions_compile(struct slice code, bool trusted, bool new_name, struct buf *error)
{
    struct library *l = mem_calloc(1, sizeof(*l));
    struct load load = {.library = l, .error = error};
    if (functions_read_metadata(code, l, &load.code, error) &&
        (!new_name || is_new_name(l, error)) && load_code(&load, trusted)) {
        l->code = mem_dup(code.ptr, code.len);
        l->code_len = code.len;
        return l;
    }
    functions_free(l);
    return NULL;
}

/* ---- calling ---- */

struct function_call {
    struct script_run run;
    int ref;
    bool observed;
};

static bool push_function(lua_State *L, struct script_run *run)
{
    const struct function_call *f = (const struct function_call *)run;
    lua_rawgeti(L, LUA_REGISTRYINDEX, f->ref);
    return true;
}

/* False with an error replied. It may have gone since the last time. */
static bool find(struct function_call *f) REQUIRES(keyspace_lock);
static bool find(struct function_call *f)
{
    struct call *c = f->run.c;
    const struct function *found = functions_find(c->argv[1]);
    if (!found) {
        reply_error(c->reply, "ERR Function not found");
        return false;
    }
    f->ref = found->ref;
    f->run.name = slice_cstr(found->name);
    f->run.flags = found->flags;
    if (!run_parse_keys(&f->run) || !run_is_allowed(&f->run)) {
        return false;
    }
    if (!f->observed) {
        f->observed = true;
        call_observe(c);
    }
    return true;
}

void functions_call(struct call *c, bool read_only)
{
    struct function_call f = {.run = {.c = c,
                                      .is_function = true,
                                      .command_is_ro = read_only,
                                      .push_function = push_function}};
    world_enter(&f.run);
    while (find(&f) && !run_execute(&all.vm, &f.run)) {
    }
    world_leave(&f.run);
}

/* ---- for data sets ---- */

static size_t store_count(void)
{
    return functions_library_count();
}

static struct slice store_code(size_t index) REQUIRES_SHARED(keyspace_lock)
{
    const struct library *l = functions_library_at((int)index);
    return slice_of(l->code, l->code_len);
}

static struct slice store_name(size_t index) REQUIRES_SHARED(keyspace_lock)
{
    return slice_cstr(functions_library_at((int)index)->name);
}

static bool store_remove(struct slice name) NO_THREAD_SAFETY_ANALYSIS
{
    return functions_delete(name);
}

static bool store_load(struct slice code, bool replace, struct buf *error) NO_THREAD_SAFETY_ANALYSIS
{
    struct library *l = functions_compile(code, true, false, error);
    return l && functions_adopt_take(&l, 1, replace, false, error);
}

static void store_flush(void) NO_THREAD_SAFETY_ANALYSIS
{
    functions_flush();
}

static bool store_replace(const struct slice *codes, size_t count,
                          struct buf *error) NO_THREAD_SAFETY_ANALYSIS
{
    struct library **libraries = mem_alloc((count + 1) * sizeof(*libraries));
    size_t done = 0;
    bool fine = true;
    while (fine && done < count) {
        libraries[done] = functions_compile(codes[done], true, false, error);
        fine = libraries[done] != NULL;
        done += fine;
    }
    if (fine) {
        fine = functions_adopt_take(libraries, (int)count, false, true, error);
    } else {
        for (size_t i = 0; i < done; i++) {
            functions_free(libraries[i]);
        }
    }
    mem_free(libraries);
    return fine;
}

static const struct function_store_ops store_ops = {.count = store_count,
                                                    .code = store_code,
                                                    .load = store_load,
                                                    .flush = store_flush,
                                                    .replace = store_replace,
                                                    .name = store_name,
                                                    .name_of = functions_name_of,
                                                    .remove = store_remove};

/* ---- life ---- */

static void extend(lua_State *L)
{
    run_install(L);
    api_install_for_functions(L);
    lua_pushlightuserdata(L, (void *)&load_globals_key);
    functions_push_load_globals(L);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

static void make_interpreter(void)
{
    vm_init(&all.vm, extend);
}

void functions_setup(void)
{
    make_interpreter();
    function_store_set_ops(&store_ops);
}

static void free_all(void) NO_THREAD_SAFETY_ANALYSIS
{
    for (int i = 0; i < (int)functions_library_count(); i++) {
        functions_free(all.libraries[i]);
    }
    set_collection_take(NULL, 0);
    vm_deinit(&all.vm);
}

void functions_teardown(void)
{
    function_store_set_ops(NULL);
    free_all();
}

void functions_flush(void)
{
    assert(!run_current());
    free_all();
    make_interpreter();
}

void functions_add_figures(struct script_figures *figures)
{
    figures->vm_functions_bytes = vm_bytes(&all.vm);
    figures->functions_bytes = atomic_load_explicit(&all.bytes, memory_order_relaxed);
    figures->functions = functions_function_count();
    figures->libraries = functions_library_count();
}
