/* bit: Debian's lua-bitop, with a tohex of our own: that one writes before its buffer when it is
 * asked for -2^31 digits (CVE-2024-31449). See libraries.h. */
#include "script/lib_priv.h"

#include <lua-bitop.h>

/* The argument's lowest 32 bits, as the library itself takes them. Upvalue 2: its tobit. */
static uint32_t bits_of(lua_State *L, int arg)
{
    luaL_checknumber(L, arg);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushvalue(L, arg);
    lua_call(L, 1, 1);
    uint32_t bits = (uint32_t)(int32_t)lua_tonumber(L, -1);
    lua_pop(L, 1);
    return bits;
}

/* Up to 8 hexadecimal digits; a negative number asks for capital ones. */
static int bit_tohex(lua_State *L)
{
    uint32_t bits = bits_of(L, 1);
    int64_t count = lib_opt_integer(L, 2, 8, INT32_MIN, INT32_MAX);
    const char *digits = count < 0 ? "0123456789ABCDEF" : "0123456789abcdef";
    char text[8];
    count = count < 0 ? -count : count;
    count = count > 8 ? 8 : count;
    for (int64_t i = count; i-- > 0; bits >>= 4) {
        text[i] = digits[bits & 15];
    }
    lua_pushlstring(L, text, (size_t)count);
    return 1;
}

void lib_open_bit(lua_State *L)
{
    lua_pushcfunction(L, luaopen_bit);
    lua_pushliteral(L, "bit");
    lua_call(L, 1, 0);
    lua_getglobal(L, "bit");
    lib_push_state(L);
    lua_getfield(L, -2, "tobit");
    lua_pushcclosure(L, bit_tohex, 2);
    lua_setfield(L, -2, "tohex");
    lua_pop(L, 1);
}
