/* cjson as a table of functions, and its settings. The halves are in lib_cjson_encode.c and
 * lib_cjson_decode.c. Names, defaults, ranges and texts are those of lua-cjson 2.1.0's manual and
 * of the oracle's answers. */
#include "script/lib_priv.h"

#include <limits.h>

void lib_json_defaults(struct lib_json_settings *settings)
{
    *settings = (struct lib_json_settings){
        .sparse_ratio = 2,
        .sparse_safe = 10,
        .encode_depth_max = 1000,
        .decode_depth_max = 1000,
        .precision = 14,
        .keep_buffer = true,
        .encode_invalid = LIB_JSON_INVALID_REFUSE,
        .decode_invalid = true,
    };
}

struct lib_json_settings *lib_json_settings(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(2));
}

/* ---- settings: without an argument they are only told ---- */

static struct lib_json_settings *settings_for(lua_State *L, int args_max)
{
    luaL_argcheck(L, lua_gettop(L) <= args_max, args_max + 1, "found too many arguments");
    lua_settop(L, args_max);
    return lib_json_settings(L);
}

static int set_integer(lua_State *L, int arg, int *value, int min, int max)
{
    if (!lua_isnil(L, arg)) {
        lua_Number n = luaL_checknumber(L, arg);
        if (!(n >= min && n <= max)) {
            return luaL_argerror(
                L, 1, lua_pushfstring(L, "expected integer between %d and %d", min, max));
        }
        *value = (int)n;
    }
    lua_pushinteger(L, *value);
    return 1;
}

static int set_bool(lua_State *L, int arg, bool *value)
{
    static const char *const names[] = {"off", "on", NULL};
    if (lua_isboolean(L, arg)) {
        *value = lua_toboolean(L, arg);
    } else if (!lua_isnil(L, arg)) {
        *value = luaL_checkoption(L, arg, NULL, names) == 1;
    }
    lua_pushboolean(L, *value);
    return 1;
}

static int set_sparse_array(lua_State *L)
{
    struct lib_json_settings *settings = settings_for(L, 3);
    set_bool(L, 1, &settings->sparse_convert);
    set_integer(L, 2, &settings->sparse_ratio, 0, INT_MAX);
    set_integer(L, 3, &settings->sparse_safe, 0, INT_MAX);
    return 3;
}

static int set_encode_depth(lua_State *L)
{
    return set_integer(L, 1, &settings_for(L, 1)->encode_depth_max, 1, INT_MAX);
}

static int set_decode_depth(lua_State *L)
{
    return set_integer(L, 1, &settings_for(L, 1)->decode_depth_max, 1, INT_MAX);
}

static int set_precision(lua_State *L)
{
    return set_integer(L, 1, &settings_for(L, 1)->precision, 1, 14);
}

static int set_keep_buffer(lua_State *L)
{
    return set_bool(L, 1, &settings_for(L, 1)->keep_buffer);
}

static int set_decode_invalid(lua_State *L)
{
    return set_bool(L, 1, &settings_for(L, 1)->decode_invalid);
}

static int set_encode_invalid(lua_State *L)
{
    static const char *const names[] = {"off", "on", "null", NULL};
    int *value = &settings_for(L, 1)->encode_invalid;
    if (lua_isboolean(L, 1)) {
        *value = lua_toboolean(L, 1) ? LIB_JSON_INVALID_WRITE : LIB_JSON_INVALID_REFUSE;
    } else if (!lua_isnil(L, 1)) {
        *value = luaL_checkoption(L, 1, NULL, names);
    }
    if (*value == LIB_JSON_INVALID_NULL) {
        lua_pushliteral(L, "null");
    } else {
        lua_pushboolean(L, *value == LIB_JSON_INVALID_WRITE);
    }
    return 1;
}

/* ---- the table ---- */

static int new_module(lua_State *L);

static const luaL_Reg functions[] = {
    {"encode", lib_json_encode},
    {"decode", lib_json_decode},
    {"encode_sparse_array", set_sparse_array},
    {"encode_max_depth", set_encode_depth},
    {"decode_max_depth", set_decode_depth},
    {"encode_number_precision", set_precision},
    {"encode_keep_buffer", set_keep_buffer},
    {"encode_invalid_numbers", set_encode_invalid},
    {"decode_invalid_numbers", set_decode_invalid},
    {"new", new_module},
    {NULL, NULL},
};

/* Pushes a table of the functions. On top of the stack are the state's struct and what holds the
 * settings, which it pops. */
static void push_module(lua_State *L)
{
    int settings = lua_gettop(L);
    lua_newtable(L);
    for (const luaL_Reg *f = functions; f->name; f++) {
        lua_pushvalue(L, settings - 1);
        lua_pushvalue(L, settings);
        lua_pushcclosure(L, f->func, 2);
        lua_setfield(L, -2, f->name);
    }
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    lua_pushliteral(L, "cjson");
    lua_setfield(L, -2, "_NAME");
    lua_pushliteral(L, "2.1.0");
    lua_setfield(L, -2, "_VERSION");
    lua_replace(L, settings - 1);
    lua_pop(L, 1);
}

/* A module with settings of its own. */
static int new_module(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lib_json_defaults(lua_newuserdata(L, sizeof(struct lib_json_settings)));
    push_module(L);
    return 1;
}

void lib_open_cjson(lua_State *L)
{
    struct lib_state *state = lib_push_state(L);
    lua_pushlightuserdata(L, &state->json);
    push_module(L);
    lua_setglobal(L, "cjson");
}
