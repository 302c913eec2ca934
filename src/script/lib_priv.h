/* What the libraries' files share. State: that of the Lua state they belong to. */
#ifndef SCRIPT_LIB_PRIV_H
#define SCRIPT_LIB_PRIV_H

#include "base/compiler.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest string that a library function makes: what a value may have by default. */
#define LIB_BYTES_MAX ((size_t)512 << 20)
/* Steps of work inside C between two calls of the hook; a step is tens of nanoseconds. */
#define LIB_STEPS_A_CALL 65536

/* Settings of a cjson table; scripts may change them for themselves. */
struct lib_json_settings {
    bool sparse_convert; /* too sparse an array becomes an object instead of an error */
    int sparse_ratio;    /* more than this many slots an item is sparse; 0: never */
    int sparse_safe;     /* up to this index no array is */
    int encode_depth_max;
    int decode_depth_max;
    int precision;      /* significant digits of numbers, 1 to 14 */
    bool keep_buffer;   /* what cjson.encode_keep_buffer reports; buffers belong to the collector */
    int encode_invalid; /* LIB_JSON_INVALID_*: NaN and infinities */
    bool decode_invalid; /* numbers that JSON does not have: 0x1, 01, nan, inf */
};

enum { LIB_JSON_INVALID_REFUSE, LIB_JSON_INVALID_WRITE, LIB_JSON_INVALID_NULL };

struct lib_state {
    uint64_t random_common; /* the generator that all scripts draw from */
    uint64_t random_own;    /* after math.randomseed, until the script's end */
    bool random_seeded;
    struct lib_json_settings json;
    uint32_t steps;
};

/* The state's; the first upvalue of every function that lib_register registers. */
static inline struct lib_state *lib_state(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* Pushes the state's struct, a userdata that lives as long as the Lua state. */
struct lib_state *lib_push_state(lua_State *L);

/* Sets the functions as fields of the table on top of the stack, with the state's struct as
 * upvalue. */
void lib_register(lua_State *L, const luaL_Reg *functions);

/* Calls the state's count hook, if there is one; the hook may raise an error. */
void lib_call_hook(lua_State *L);
/* Counts a step of work inside C and calls the hook when it is time. */
static inline void lib_step(lua_State *L, uint32_t *steps)
{
    if (unlikely(++*steps % LIB_STEPS_A_CALL == 0)) {
        lib_call_hook(L);
    }
}

/* A numeric argument as an integer, cut to the given range; NaN is the lower end. Raises for what
 * is no number. The second form has a default. */
int64_t lib_check_integer(lua_State *L, int arg, int64_t min, int64_t max);
int64_t lib_opt_integer(lua_State *L, int arg, int64_t absent, int64_t min, int64_t max);

/* ---- bytes: text that grows in a userdata on the Lua stack, so that an error loses nothing ----
 */

#define LIB_BYTES_FIRST 256

struct lib_bytes {
    lua_State *L;
    int slot; /* of the userdata; nil as long as `first` is enough */
    char *data;
    size_t len;
    size_t cap;
    char first[LIB_BYTES_FIRST];
};

/* Starts with an empty text, in the struct, which must stay where it is; takes one stack slot,
 * which must not be popped before lib_bytes_push. The others need two more for a moment. Asked of
 * Lua, that would be refused behind arguments that are as many as may be, though each function in C
 * begins with room for LUA_MINSTACK values beyond its arguments: whoever has pushed more sees to
 * the room himself. */
void lib_bytes_init(struct lib_bytes *b, lua_State *L);
/* Room for `more` bytes behind the text. Raises "resulting string too large" past LIB_BYTES_MAX. */
void lib_bytes_grow(struct lib_bytes *b, size_t more);
void lib_bytes_append(struct lib_bytes *b, const void *data, size_t len);
/* Pushes the text as a Lua string. */
void lib_bytes_push(struct lib_bytes *b);

static inline void lib_bytes_put(struct lib_bytes *b, char c)
{
    if (unlikely(b->len == b->cap)) {
        lib_bytes_grow(b, 1);
    }
    b->data[b->len++] = c;
}

/* ---- the libraries: each sets globals, and leaves the stack as it was ---- */

/* Lua's base library, and its string, table and math as they are; the next four replace parts. */
void lib_open_base(lua_State *L);
/* string's rep and what matches patterns; needs lib_open_base before. */
void lib_open_string(lua_State *L);
/* table's insert, concat and sort; needs lib_open_base before. */
void lib_open_table(lua_State *L);
/* math's random and randomseed; needs lib_open_base before. */
void lib_open_math(lua_State *L);
/* os with its clock only. */
void lib_open_os(lua_State *L);
/* cjson, with settings that script_reset_libraries puts back. */
void lib_open_cjson(lua_State *L);
/* cmsgpack: pack, unpack, unpack_one, unpack_limit. */
void lib_open_cmsgpack(lua_State *L);
/* struct: pack, unpack, size. */
void lib_open_struct(lua_State *L);
/* bit, from lua-bitop. */
void lib_open_bit(lua_State *L);

/* cjson's settings as a new state has them. */
void lib_json_defaults(struct lib_json_settings *settings);
/* The halves of cjson: one Lua function each, settings as the second upvalue or the state's own. */
int lib_json_encode(lua_State *L);
int lib_json_decode(lua_State *L);
struct lib_json_settings *lib_json_settings(lua_State *L);

#endif
