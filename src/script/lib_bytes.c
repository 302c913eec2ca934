/* Growing text in Lua's memory. See lib_priv.h. */
#include "script/lib_priv.h"

#include <string.h>

void lib_bytes_init(struct lib_bytes *b, lua_State *L)
{
    b->L = L;
    lua_pushnil(L);
    b->slot = lua_gettop(L);
    b->data = b->first;
    b->len = 0;
    b->cap = LIB_BYTES_FIRST;
}

void lib_bytes_grow(struct lib_bytes *b, size_t more)
{
    if (more <= b->cap - b->len) {
        return;
    }
    if (more > LIB_BYTES_MAX - b->len) {
        luaL_error(b->L, "resulting string too large");
    }
    size_t cap = b->cap * 2;
    while (cap < b->len + more) {
        cap *= 2;
    }
    char *data = lua_newuserdata(b->L, cap);
    memcpy(data, b->data, b->len);
    lua_replace(b->L, b->slot);
    b->data = data;
    b->cap = cap;
}

void lib_bytes_append(struct lib_bytes *b, const void *data, size_t len)
{
    if (len > 0) {
        lib_bytes_grow(b, len);
        memcpy(b->data + b->len, data, len);
        b->len += len;
    }
}

void lib_bytes_push(struct lib_bytes *b)
{
    lua_pushlstring(b->L, b->data, b->len);
}
