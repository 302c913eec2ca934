/* The basic functions that would get round frozen tables, the parser's checks or the memory bound,
 * written anew. See vm.h. */
#include "script/run.h"
#include "script/vm.h"

/* Puts what a stand-in stands for in its place among the arguments. */
static void look_through(lua_State *L, int index)
{
    if (freeze_push_target(L, index)) {
        lua_replace(L, index);
    }
}

static int guarded_rawset(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    luaL_checkany(L, 3);
    freeze_check(L, 1);
    lua_settop(L, 3);
    lua_rawset(L, 1);
    return 1;
}

static int guarded_rawget(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    look_through(L, 1);
    lua_rawget(L, 1);
    return 1;
}

static int guarded_next(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    look_through(L, 1);
    if (lua_next(L, 1)) {
        return 2;
    }
    lua_pushnil(L);
    return 1;
}

/* Upvalue: next. The table itself is never handed out, only its stand-in. */
static int guarded_pairs(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

static int guarded_getmetatable(lua_State *L)
{
    luaL_checkany(L, 1);
    if (freeze_is_frozen(L, 1) || !lua_getmetatable(L, 1)) {
        lua_pushnil(L);
    } else {
        luaL_getmetafield(L, 1, "__metatable");
    }
    return 1;
}

static int guarded_setmetatable(lua_State *L)
{
    int type = lua_type(L, 2);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argcheck(L, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
    freeze_check(L, 1);
    if (luaL_getmetafield(L, 1, "__metatable")) {
        return luaL_error(L, "cannot change a protected metatable");
    }
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

/* A script that is to end does not catch the error which ends it. */
static void pass_on_the_end(lua_State *L)
{
    if (run_is_killed()) {
        lua_error(L);
    }
}

/* An error that a command has made is a table; who catches it gets its text, as Redis 7 has it. */
static int guarded_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    if (status != 0) {
        pass_on_the_end(L);
    }
    if (status != 0 && lua_istable(L, -1)) {
        lua_pushliteral(L, "err");
        lua_rawget(L, -2);
        if (lua_isstring(L, -1)) {
            lua_replace(L, -2);
        } else {
            lua_pop(L, 1);
        }
    }
    luaL_checkstack(L, 1, "no room for the results");
    lua_pushboolean(L, status == 0);
    lua_insert(L, 1);
    return lua_gettop(L);
}

/* Upvalue: the script's handler, which does not run for the error that ends it: hooks are off then.
 */
static int handle_error(lua_State *L)
{
    if (!run_is_killed()) {
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_insert(L, 1);
        lua_call(L, 1, 1);
    }
    return 1;
}

static int guarded_xpcall(lua_State *L)
{
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    lua_pushcclosure(L, handle_error, 1);
    lua_insert(L, 1);
    int status = lua_pcall(L, 0, LUA_MULTRET, 1);
    if (status != 0) {
        pass_on_the_end(L);
    }
    lua_pushboolean(L, status == 0);
    lua_replace(L, 1);
    return lua_gettop(L);
}

/* ---- coroutines ---- */

/* Why a coroutine cannot be resumed, NULL when it can. */
static const char *state_of(lua_State *L, lua_State *co)
{
    lua_Debug frame;
    if (co == L) {
        return "running";
    }
    if (lua_status(co) == LUA_YIELD) {
        return NULL;
    }
    if (lua_status(co) == 0 && lua_getstack(co, 0, &frame) > 0) {
        return "normal";
    }
    return lua_status(co) != 0 || lua_gettop(co) == 0 ? "dead" : NULL;
}

/* Resumes `co` with `count` arguments from the top of L; gives the count of results, or -1 and an
 * error, pushed on L. */
static int resume(lua_State *L, lua_State *co, int count)
{
    run_poll(L);
    const char *why_not = state_of(L, co);
    if (why_not) {
        lua_pushfstring(L, "cannot resume %s coroutine", why_not);
        return -1;
    }
    /* Coroutines that resume one another take C stack, and Lua 5.1 counts the calls of each alone.
     */
    if (run_stack_is_deep()) {
        lua_pushliteral(L, "C stack overflow");
        return -1;
    }
    if (!lua_checkstack(co, count)) {
        return luaL_error(L, "too many arguments to resume");
    }
    lua_xmove(L, co, count);
    int status = lua_resume(co, count);
    if (status != 0 && status != LUA_YIELD) {
        lua_xmove(co, L, 1);
        pass_on_the_end(L);
        return -1;
    }
    int results = lua_gettop(co);
    if (!lua_checkstack(L, results + 1)) {
        return luaL_error(L, "too many results to resume");
    }
    lua_xmove(co, L, results);
    return results;
}

static int guarded_resume(lua_State *L)
{
    lua_State *co = lua_tothread(L, 1);
    luaL_argcheck(L, co, 1, "coroutine expected");
    int results = resume(L, co, lua_gettop(L) - 1);
    lua_pushboolean(L, results >= 0);
    lua_insert(L, results >= 0 ? -(results + 1) : -2);
    return results >= 0 ? results + 1 : 2;
}

/* Upvalue: the coroutine. */
static int call_wrapped(lua_State *L)
{
    int results = resume(L, lua_tothread(L, lua_upvalueindex(1)), lua_gettop(L));
    if (results >= 0) {
        return results;
    }
    if (lua_isstring(L, -1)) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int guarded_wrap(lua_State *L)
{
    luaL_argcheck(L, lua_isfunction(L, 1) && !lua_iscfunction(L, 1), 1, "Lua function expected");
    lua_State *co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    lua_pushcclosure(L, call_wrapped, 1);
    return 1;
}

/* What is left of it: a script may not change when others' garbage is collected. */
static int guarded_collectgarbage(lua_State *L)
{
    static const char *const names[] = {"collect", "count", "step", NULL};
    switch (luaL_checkoption(L, 1, "collect", names)) {
    case 1:
        lua_pushnumber(L, lua_gc(L, LUA_GCCOUNT, 0) + lua_gc(L, LUA_GCCOUNTB, 0) / 1024.0);
        return 1;
    case 2:
        lua_pushboolean(L, lua_gc(L, LUA_GCSTEP, 0));
        return 1;
    default:
        lua_gc(L, LUA_GCCOLLECT, 0);
        lua_pushinteger(L, 0);
        return 1;
    }
}

static int load_result(lua_State *L, struct slice source, const char *name)
{
    if (vm_load(L, source, name) == 0) {
        return 1;
    }
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

static int guarded_loadstring(lua_State *L)
{
    struct slice source;
    source.ptr = luaL_checklstring(L, 1, &source.len);
    return load_result(L, source, luaL_optstring(L, 2, source.ptr));
}

/* The pieces are joined first: no script's function runs while the parser does. */
static int guarded_load(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    const char *name = luaL_optstring(L, 2, "=(load)");
    lua_settop(L, 2);
    lua_newtable(L);
    size_t total = 0;
    for (int count = 1;; count++) {
        size_t len = 0;
        lua_pushvalue(L, 1);
        lua_call(L, 0, 1);
        if (lua_isnil(L, -1)) {
            break;
        }
        if (!lua_isstring(L, -1)) {
            return luaL_error(L, "reader function must return a string");
        }
        lua_tolstring(L, -1, &len);
        total += len;
        if (len == 0 || total > VM_SOURCE_MAX_BYTES) {
            break;
        }
        lua_rawseti(L, 3, count);
    }
    lua_settop(L, 3);
    luaL_Buffer joined;
    luaL_buffinit(L, &joined);
    for (int i = 1, n = (int)lua_objlen(L, 3); i <= n; i++) {
        lua_rawgeti(L, 3, i);
        luaL_addvalue(&joined);
    }
    luaL_pushresult(&joined);
    struct slice source;
    source.ptr = lua_tolstring(L, -1, &source.len);
    return load_result(L, source, name);
}

static const luaL_Reg guarded[] = {
    {"rawset", guarded_rawset},
    {"rawget", guarded_rawget},
    {"next", guarded_next},
    {"getmetatable", guarded_getmetatable},
    {"setmetatable", guarded_setmetatable},
    {"pcall", guarded_pcall},
    {"xpcall", guarded_xpcall},
    {"collectgarbage", guarded_collectgarbage},
    {"loadstring", guarded_loadstring},
    {"load", guarded_load},
    {NULL, NULL},
};

void guards_install(lua_State *L)
{
    for (const luaL_Reg *r = guarded; r->name; r++) {
        lua_pushcfunction(L, r->func);
        lua_setfield(L, -2, r->name);
    }
    lua_getfield(L, -1, "next");
    lua_pushcclosure(L, guarded_pairs, 1);
    lua_setfield(L, -2, "pairs");
    lua_getfield(L, -1, "coroutine");
    lua_pushcfunction(L, guarded_resume);
    lua_setfield(L, -2, "resume");
    lua_pushcfunction(L, guarded_wrap);
    lua_setfield(L, -2, "wrap");
    lua_pop(L, 1);
}
