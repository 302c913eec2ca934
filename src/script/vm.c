/* See vm.h. */
#include "script/vm.h"

#include "base/log.h"
#include "base/mem.h"
#include "script/libraries.h"

#include <stdlib.h>
#include <string.h>

/* Highest level of a long bracket, [==...==[. */
#define BRACKET_LEVEL_MAX 100
/* A state that holds more than this after a script, and twice what was live before, is collected.
 */
#define TIDY_FROM_BYTES ((size_t)16 << 20)

/* ---- memory ---- */

static void *allocate(void *context, void *ptr, size_t old_size, size_t new_size)
{
    struct vm *vm = context;
    size_t held = vm_bytes(vm);
    if (new_size == 0) {
        mem_free_sized(ptr, old_size);
        atomic_store_explicit(&vm->bytes, held - old_size, memory_order_relaxed);
        return NULL;
    }
    if (new_size > old_size && new_size - old_size > VM_MEMORY_MAX_BYTES - held) {
        return NULL;
    }
    void *block = mem_try_realloc(ptr, new_size);
    if (!block) {
        /* Lua takes it that shrinking never fails. */
        return new_size <= old_size ? ptr : NULL;
    }
    atomic_store_explicit(&vm->bytes, held - old_size + new_size, memory_order_relaxed);
    return block;
}

void vm_tidy(struct vm *vm)
{
    if (vm_bytes(vm) > TIDY_FROM_BYTES) {
        lua_gc(vm->L, LUA_GCCOLLECT, 0);
    }
}

/* ---- source ---- */

/* Lua 5.1 counts the level of a long bracket in an int and trusts it. */
static bool has_absurd_bracket(struct slice source)
{
    size_t level = 0;
    bool counts = false; /* behind a bracket */
    for (size_t i = 0; i < source.len; i++) {
        char c = source.ptr[i];
        if (c == '=') {
            level += counts;
        } else {
            counts = c == '[' || c == ']';
            level = 0;
        }
        if (level > BRACKET_LEVEL_MAX) {
            return true;
        }
    }
    return false;
}

int vm_load(lua_State *L, struct slice source, const char *chunk_name)
{
    const char *fault = NULL;
    if (source.len > VM_SOURCE_MAX_BYTES) {
        fault = "the source is too long";
    } else if (source.len > 0 && source.ptr[0] == LUA_SIGNATURE[0]) {
        fault = "bytecode can't be loaded";
    } else if (has_absurd_bracket(source)) {
        fault = "a long bracket of too high a level";
    }
    if (fault) {
        lua_pushstring(L, fault);
        return LUA_ERRSYNTAX;
    }
    lua_gc(L, LUA_GCSTOP, 0);
    int status = luaL_loadbuffer(L, source.ptr, source.len, chunk_name);
    lua_gc(L, LUA_GCRESTART, 0);
    return status;
}

/* ---- the environment ---- */

int vm_no_such_global(lua_State *L)
{
    const char *name = lua_isstring(L, 2) ? lua_tostring(L, 2) : luaL_typename(L, 2);
    return luaL_error(L, "Script attempted to access nonexistent global variable '%s'", name);
}

/* What ("").x and getmetatable("") lead to. */
static void freeze_strings(lua_State *L)
{
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_createtable(L, 0, 1);
    lua_getfield(L, LUA_GLOBALSINDEX, "string"); /* frozen by now */
    lua_setfield(L, -2, "__index");
    freeze_table(L);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
}

/* Replaces the table on top by its stand-in, the same one each time: two names of one table stay
 * two names of one. `made`: tables and their stand-ins. */
static void freeze_once(lua_State *L, int made)
{
    lua_pushvalue(L, -1);
    lua_rawget(L, made);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushvalue(L, -1); /* table, table */
        freeze_table(L);
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2); /* table, stand-in, table, stand-in */
        lua_rawset(L, made);
    }
    lua_replace(L, -2);
}

/* Every table among the globals, then the globals themselves. */
static void freeze_environment(lua_State *L)
{
    lua_pushvalue(L, LUA_GLOBALSINDEX);
    int globals = lua_gettop(L);
    lua_newtable(L);
    int made = globals + 1;
    lua_pushnil(L);
    while (lua_next(L, globals)) {
        if (lua_istable(L, -1) && !lua_rawequal(L, -1, globals)) {
            freeze_once(L, made);
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, globals); /* an existing field: the walk may go on */
        } else {
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
    freeze_strings(L);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, vm_no_such_global);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, globals);
    lua_pushvalue(L, globals);
    vm_set_slot(L, VM_GLOBALS);
    freeze_table(L);
    vm_push_globals(L);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "_G");
    lua_pop(L, 1);
    lua_replace(L, LUA_GLOBALSINDEX);
}

void vm_set_globals(lua_State *L)
{
    lua_pushvalue(L, LUA_GLOBALSINDEX);
    lua_getmetatable(L, -1);
    lua_pushliteral(L, "__index");
    lua_pushvalue(L, -4);
    lua_rawset(L, -3);
    lua_pop(L, 3);
}

/* ---- life ---- */

static int build(lua_State *L)
{
    void (*extend)(lua_State *) = *(void (**)(lua_State *))lua_touserdata(L, 1);
    lua_settop(L, 0);
    script_open_libraries(L);
    lua_pushvalue(L, LUA_GLOBALSINDEX);
    guards_install(L);
    extend(L);
    lua_pop(L, 1);
    freeze_environment(L);
    return 0;
}

/* An error that nothing catches: every use of Lua that may raise one is a protected call. */
static int panic(lua_State *L)
{
    log_warning("Lua has raised an error outside of any call: %s", lua_tostring(L, -1));
    abort();
}

void vm_init(struct vm *vm, void (*extend)(lua_State *L))
{
    atomic_store(&vm->bytes, 0);
    vm->L = lua_newstate(allocate, vm);
    if (!vm->L || lua_cpcall(vm->L, build, &extend) != 0) {
        log_warning("Can't create a Lua interpreter: %s",
                    vm->L ? lua_tostring(vm->L, -1) : "no memory");
        abort();
    }
    lua_atpanic(vm->L, panic);
}

void vm_deinit(struct vm *vm)
{
    lua_close(vm->L);
    vm->L = NULL;
}
