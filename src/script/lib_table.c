/* table.insert, concat and sort: bounded, and ready to be ended; insert writes to no frozen table.
 * See libraries.h. */
#include "script/lib_priv.h"
#include "script/vm.h"

#include <limits.h>
#include <lualib.h>

static int table_insert(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    freeze_check(L, 1);
    struct lib_state *state = lib_state(L);
    int64_t end = (int64_t)lua_objlen(L, 1) + 1;
    int64_t position = end;
    if (lua_gettop(L) == 3) {
        position = lib_check_integer(L, 2, INT_MIN, INT_MAX);
        end = position > end ? position : end;
    } else if (lua_gettop(L) != 2) {
        return luaL_error(L, "wrong number of arguments to 'insert'");
    }
    luaL_argcheck(L, end < INT_MAX, 2, "position out of bounds");
    for (int64_t i = end; i > position; i--) {
        lib_step(L, &state->steps);
        lua_rawgeti(L, 1, (int)(i - 1));
        lua_rawseti(L, 1, (int)i);
    }
    lua_rawseti(L, 1, (int)position);
    return 0;
}

static int table_concat(lua_State *L)
{
    size_t separator_len;
    luaL_checktype(L, 1, LUA_TTABLE);
    const char *separator = luaL_optlstring(L, 2, "", &separator_len);
    int64_t first = lib_opt_integer(L, 3, 1, INT_MIN, INT_MAX);
    int64_t last = lib_opt_integer(L, 4, (int64_t)lua_objlen(L, 1), INT_MIN, INT_MAX);
    struct lib_state *state = lib_state(L);
    struct lib_bytes out;
    lib_bytes_init(&out, L);
    for (int64_t i = first; i <= last; i++) {
        size_t len;
        lib_step(L, &state->steps);
        lua_rawgeti(L, 1, (int)i);
        if (!lua_isstring(L, -1)) {
            return luaL_error(L, "invalid value (%s) at index %d in table for 'concat'",
                              luaL_typename(L, -1), (int)i);
        }
        const char *text = lua_tolstring(L, -1, &len);
        lib_bytes_append(&out, text, len);
        lua_pop(L, 1);
        if (i < last) {
            lib_bytes_append(&out, separator, separator_len);
        }
    }
    lib_bytes_push(&out);
    return 1;
}

/* ---- sort ---- */

/* Comparators that Lua's sort is given in place of none and of one in C: while those run, no
 * instruction of Lua's does that would call the hook, and some orders take a quadratic number of
 * comparisons. */
static int compare_plain(lua_State *L)
{
    lib_step(L, &lib_state(L)->steps);
    lua_pushboolean(L, lua_lessthan(L, 1, 2));
    return 1;
}

/* Upvalue 2: the comparator. */
static int compare_called(lua_State *L)
{
    lib_step(L, &lib_state(L)->steps);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

/* Upvalue 2: Lua's own sort. */
static int table_sort(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (!lua_isnoneornil(L, 2)) {
        luaL_checktype(L, 2, LUA_TFUNCTION);
    }
    lua_settop(L, 2);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushvalue(L, 1);
    if (lua_isnil(L, 2)) {
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_pushcclosure(L, compare_plain, 1);
    } else if (lua_iscfunction(L, 2)) {
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_pushvalue(L, 2);
        lua_pushcclosure(L, compare_called, 2);
    } else {
        lua_pushvalue(L, 2);
    }
    lua_call(L, 2, 0);
    return 0;
}

static const luaL_Reg table_functions[] = {
    {"insert", table_insert},
    {"concat", table_concat},
    {NULL, NULL},
};

void lib_open_table(lua_State *L)
{
    lua_getglobal(L, LUA_TABLIBNAME);
    lib_register(L, table_functions);
    lib_push_state(L);
    lua_getfield(L, -2, "sort");
    lua_pushcclosure(L, table_sort, 2);
    lua_setfield(L, -2, "sort");
    lua_pop(L, 1);
}
