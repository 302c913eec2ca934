/* The base library without what reaches files, foreign environments or the terminal, and math and
 * os, of which little is replaced. See libraries.h. */
#include "script/lib_priv.h"

#include <limits.h>
#include <lualib.h>
#include <math.h>
#include <time.h>

/* Opens one of Lua's own libraries, which makes its globals. */
static void open_own(lua_State *L, const char *name, lua_CFunction open)
{
    lua_pushcfunction(L, open);
    lua_pushstring(L, name);
    lua_call(L, 1, 0);
}

/* ---- base ---- */

static int unpack_list(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    int64_t first = lib_opt_integer(L, 2, 1, INT_MIN, INT_MAX);
    int64_t last = lib_opt_integer(L, 3, (int64_t)lua_objlen(L, 1), INT_MIN, INT_MAX);
    if (first > last) {
        return 0;
    }
    int64_t count = last - first + 1;
    if (count >= LUAI_MAXCSTACK || !lua_checkstack(L, (int)count)) {
        return luaL_error(L, "too many results to unpack");
    }
    for (int64_t i = first; i <= last; i++) {
        lua_rawgeti(L, 1, (int)i);
    }
    return (int)count;
}

static const luaL_Reg base_functions[] = {{"unpack", unpack_list}, {NULL, NULL}};

void lib_open_base(lua_State *L)
{
    static const char *const left_out[] = {"dofile",  "loadfile", "print",  "newproxy",
                                           "getfenv", "setfenv",  "module", "require"};
    open_own(L, "", luaopen_base);
    lua_pushvalue(L, LUA_GLOBALSINDEX);
    for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++) {
        lua_pushnil(L);
        lua_setfield(L, -2, left_out[i]);
    }
    lib_register(L, base_functions);
    lua_pop(L, 1);
    /* Lua's own string and table functions are kept where they are sound. */
    open_own(L, LUA_STRLIBNAME, luaopen_string);
    open_own(L, LUA_TABLIBNAME, luaopen_table);
    open_own(L, LUA_MATHLIBNAME, luaopen_math);
}

/* ---- math ---- */

/* POSIX's lrand48: x' = (x * 0x5deece66d + 0xb) mod 2^48, of which the upper 31 bits are the
 * result. */
static uint32_t next_random(uint64_t *x)
{
    *x = (*x * UINT64_C(0x5deece66d) + 0xb) & ((UINT64_C(1) << 48) - 1);
    return (uint32_t)(*x >> 17);
}

static int math_random(lua_State *L)
{
    struct lib_state *state = lib_state(L);
    uint64_t *x = state->random_seeded ? &state->random_own : &state->random_common;
    lua_Number r = (lua_Number)(next_random(x) % INT32_MAX) / (lua_Number)INT32_MAX;
    lua_Number low = 1, high;
    switch (lua_gettop(L)) {
    case 0:
        lua_pushnumber(L, r);
        return 1;
    case 1:
        high = (lua_Number)lib_check_integer(L, 1, INT_MIN, INT_MAX);
        luaL_argcheck(L, high >= 1, 1, "interval is empty");
        break;
    case 2:
        low = (lua_Number)lib_check_integer(L, 1, INT_MIN, INT_MAX);
        high = (lua_Number)lib_check_integer(L, 2, INT_MIN, INT_MAX);
        luaL_argcheck(L, low <= high, 2, "interval is empty");
        break;
    default:
        return luaL_error(L, "wrong number of arguments");
    }
    lua_pushnumber(L, floor(r * (high - low + 1)) + low);
    return 1;
}

static int math_randomseed(lua_State *L)
{
    struct lib_state *state = lib_state(L);
    int64_t seed = lib_check_integer(L, 1, INT64_MIN, INT64_MAX);
    state->random_own = (uint64_t)(uint32_t)seed << 16 | 0x330e;
    state->random_seeded = true;
    return 0;
}

static const luaL_Reg math_functions[] = {
    {"random", math_random},
    {"randomseed", math_randomseed},
    {NULL, NULL},
};

void lib_open_math(lua_State *L)
{
    lua_getglobal(L, LUA_MATHLIBNAME);
    lib_register(L, math_functions);
    lua_pop(L, 1);
}

/* ---- os ---- */

static int os_clock(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)clock() / (lua_Number)CLOCKS_PER_SEC);
    return 1;
}

static const luaL_Reg os_functions[] = {{"clock", os_clock}, {NULL, NULL}};

void lib_open_os(lua_State *L)
{
    lua_newtable(L);
    lib_register(L, os_functions);
    lua_setglobal(L, LUA_OSLIBNAME);
}
