/* See vm.h.
 *
 * Invariant: a stand-in is empty for good. Lua then asks its metatable for every read and every
 * write by name; nothing is ever found in the stand-in itself. */
#include "script/vm.h"

/* Its address is the key, in a stand-in's metatable, of the table that it stands for: no script can
 * make such a key. */
static const char target_key;

#define READONLY_TEXT "Attempt to modify a readonly table"

static int refuse_write(lua_State *L)
{
    return luaL_error(L, READONLY_TEXT);
}

void freeze_table(lua_State *L)
{
    lua_newtable(L);
    lua_createtable(L, 0, 4);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, refuse_write);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pushlightuserdata(L, (void *)&target_key);
    lua_pushvalue(L, -4);
    lua_rawset(L, -3);
    lua_setmetatable(L, -2);
    lua_replace(L, -2);
}

bool freeze_push_target(lua_State *L, int index)
{
    if (!lua_istable(L, index) || !lua_getmetatable(L, index)) {
        return false;
    }
    lua_pushlightuserdata(L, (void *)&target_key);
    lua_rawget(L, -2);
    lua_replace(L, -2);
    if (lua_istable(L, -1)) {
        return true;
    }
    lua_pop(L, 1);
    return false;
}

bool freeze_is_frozen(lua_State *L, int index)
{
    bool frozen = freeze_push_target(L, index);
    if (frozen) {
        lua_pop(L, 1);
    }
    return frozen;
}

void freeze_check(lua_State *L, int index)
{
    if (freeze_is_frozen(L, index)) {
        lua_pushliteral(L, READONLY_TEXT);
        lua_error(L);
    }
}
