/* See libraries.h, and lib_priv.h for what the libraries' files share. */
#include "script/libraries.h"

#include "script/lib_priv.h"

/* Its address is the registry's key of the state's struct. */
static const char state_key;

/* The start of POSIX's 48-bit generator, which Redis begins with too. */
#define RANDOM_FIRST UINT64_C(0x1234abcd330e)

struct lib_state *lib_push_state(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&state_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    return lua_touserdata(L, -1);
}

void lib_register(lua_State *L, const luaL_Reg *functions)
{
    for (; functions->name; functions++) {
        lib_push_state(L);
        lua_pushcclosure(L, functions->func, 1);
        lua_setfield(L, -2, functions->name);
    }
}

void lib_call_hook(lua_State *L)
{
    lua_Hook hook = lua_gethook(L);
    lua_Debug where;
    if (hook && (lua_gethookmask(L) & LUA_MASKCOUNT) && lua_getstack(L, 0, &where)) {
        where.event = LUA_HOOKCOUNT;
        where.currentline = -1;
        hook(L, &where);
    }
}

/* ---- numbers ---- */

static int64_t cut_to_range(lua_Number value, int64_t min, int64_t max)
{
    /* Not (value > min), so that NaN ends here as well. */
    if (!(value > (lua_Number)min)) {
        return min;
    }
    return value >= (lua_Number)max ? max : (int64_t)value;
}

int64_t lib_check_integer(lua_State *L, int arg, int64_t min, int64_t max)
{
    return cut_to_range(luaL_checknumber(L, arg), min, max);
}

int64_t lib_opt_integer(lua_State *L, int arg, int64_t absent, int64_t min, int64_t max)
{
    return lua_isnoneornil(L, arg) ? absent : lib_check_integer(L, arg, min, max);
}

/* ---- opening ---- */

static void (*const openers[])(lua_State *L) = {
    lib_open_base,  lib_open_string,   lib_open_table,  lib_open_math, lib_open_os,
    lib_open_cjson, lib_open_cmsgpack, lib_open_struct, lib_open_bit,
};

void script_open_libraries(lua_State *L)
{
    luaL_checkstack(L, 10, "no room to open the libraries");
    lua_pushlightuserdata(L, (void *)&state_key);
    struct lib_state *state = lua_newuserdata(L, sizeof(*state));
    *state = (struct lib_state){.random_common = RANDOM_FIRST};
    lib_json_defaults(&state->json);
    lua_rawset(L, LUA_REGISTRYINDEX);
    for (size_t i = 0; i < sizeof(openers) / sizeof(openers[0]); i++) {
        openers[i](L);
    }
}

void script_reset_libraries(lua_State *L)
{
    struct lib_state *state = lib_push_state(L);
    state->random_seeded = false;
    lib_json_defaults(&state->json);
    lua_pop(L, 1);
}
