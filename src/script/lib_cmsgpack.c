/* cmsgpack: Lua values as MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md) and
 * back. What the specification leaves open (which tables are arrays, which numbers are integers,
 * what cannot be packed) is as the oracle has it: old data has to be read. bin and ext forms are
 * not known to it.
 *
 * Own code and not msgpack-c: that one nests to 32 levels at most and allocates outside of Lua's
 * memory. */
#include "script/lib_priv.h"

#include <math.h>
#include <string.h>

/* Tables within tables; deeper ones are packed as nil. */
#define PACK_NESTING_MAX 16

enum {
    M_FIXMAP = 0x80,
    M_FIXARRAY = 0x90,
    M_FIXSTR = 0xa0,
    M_NIL = 0xc0,
    M_FALSE = 0xc2,
    M_TRUE = 0xc3,
    M_FLOAT32 = 0xca,
    M_FLOAT64 = 0xcb,
    M_UINT8 = 0xcc, /* then 16, 32, 64 */
    M_INT8 = 0xd0,  /* then 16, 32, 64 */
    M_STR8 = 0xd9,  /* then 16, 32 */
    M_ARRAY16 = 0xdc,
    M_ARRAY32 = 0xdd,
    M_MAP16 = 0xde,
    M_MAP32 = 0xdf,
};

/* ---- pack ---- */

struct packer {
    lua_State *L;
    struct lib_bytes out;
    uint32_t steps;
};

static void pack_value(struct packer *p, int level);

/* A first byte and `bytes` bytes of a number, the highest first. */
static void put_head(struct packer *p, int first, uint64_t value, int bytes)
{
    lib_bytes_put(&p->out, (char)first);
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
        lib_bytes_put(&p->out, (char)(value >> shift));
    }
}

/* The head of something with a count, in the shortest form there is: `fix` for counts below
 * `fix_max`, then, unless it is 0, `form8`, then the two wider ones. */
static void put_count(struct packer *p, size_t count, int fix, size_t fix_max, int form8,
                      int form16)
{
    if (count < fix_max) {
        put_head(p, fix | (int)count, 0, 0);
    } else if (form8 && count <= UINT8_MAX) {
        put_head(p, form8, count, 1);
    } else if (count <= UINT16_MAX) {
        put_head(p, form16, count, 2);
    } else if (count <= UINT32_MAX) {
        put_head(p, form16 + 1, count, 4);
    } else {
        luaL_error(p->L, "resulting string too large");
    }
}

static void pack_integer(struct packer *p, int64_t n)
{
    uint64_t bits = (uint64_t)n;
    if (n >= 0) {
        if (n < 128) {
            put_head(p, (int)n, 0, 0);
        } else if (n <= UINT8_MAX) {
            put_head(p, M_UINT8, bits, 1);
        } else if (n <= UINT16_MAX) {
            put_head(p, M_UINT8 + 1, bits, 2);
        } else if (n <= UINT32_MAX) {
            put_head(p, M_UINT8 + 2, bits, 4);
        } else {
            put_head(p, M_UINT8 + 3, bits, 8);
        }
    } else if (n >= -32) {
        put_head(p, (int)(bits & 0xff), 0, 0);
    } else if (n >= INT8_MIN) {
        put_head(p, M_INT8, bits, 1);
    } else if (n >= INT16_MIN) {
        put_head(p, M_INT8 + 1, bits, 2);
    } else if (n >= INT32_MIN) {
        put_head(p, M_INT8 + 2, bits, 4);
    } else {
        put_head(p, M_INT8 + 3, bits, 8);
    }
}

/* Whole numbers within 64 bits are integers; others are floats where those hold them exactly. */
static void pack_number(struct packer *p, lua_Number n)
{
    if (n >= -0x1p63 && n < 0x1p63 && floor(n) == n) {
        pack_integer(p, (int64_t)n);
        return;
    }
    float narrow = (float)n;
    if ((lua_Number)narrow == n) {
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof(bits));
        put_head(p, M_FLOAT32, bits, 4);
    } else {
        uint64_t bits;
        memcpy(&bits, &n, sizeof(bits));
        put_head(p, M_FLOAT64, bits, 8);
    }
}

/* Is the table on top of the stack an array: are its keys exactly 1 to their number? Tells that,
 * too. */
static bool is_array(struct packer *p, size_t *count)
{
    lua_State *L = p->L;
    lua_Number longest = 0;
    bool positive = true;
    *count = 0;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        lib_step(L, &p->steps);
        lua_Number key = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
        positive = positive && key >= 1 && floor(key) == key;
        longest = key > longest ? key : longest;
        ++*count;
    }
    return positive && longest == (lua_Number)*count;
}

static void pack_table(struct packer *p, int level)
{
    lua_State *L = p->L;
    size_t count;
    luaL_checkstack(L, 6, "in a table to be packed");
    if (is_array(p, &count)) {
        put_count(p, count, M_FIXARRAY, 16, 0, M_ARRAY16);
        for (size_t i = 1; i <= count; i++) {
            lua_rawgeti(L, -1, (int)i);
            pack_value(p, level);
            lua_pop(L, 1);
        }
        return;
    }
    put_count(p, count, M_FIXMAP, 16, 0, M_MAP16);
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pushvalue(L, -2);
        pack_value(p, level);
        lua_pop(L, 1);
        pack_value(p, level);
        lua_pop(L, 1);
    }
}

/* Packs the value on top of the stack, which stays there. */
static void pack_value(struct packer *p, int level)
{
    lua_State *L = p->L;
    lib_step(L, &p->steps);
    switch (lua_type(L, -1)) {
    case LUA_TSTRING: {
        size_t len;
        const char *text = lua_tolstring(L, -1, &len);
        put_count(p, len, M_FIXSTR, 32, M_STR8, M_STR8 + 1);
        lib_bytes_append(&p->out, text, len);
        return;
    }
    case LUA_TNUMBER:
        pack_number(p, lua_tonumber(L, -1));
        return;
    case LUA_TBOOLEAN:
        put_head(p, lua_toboolean(L, -1) ? M_TRUE : M_FALSE, 0, 0);
        return;
    case LUA_TTABLE:
        if (level < PACK_NESTING_MAX) {
            pack_table(p, level + 1);
            return;
        }
        break;
    default:
        break;
    }
    put_head(p, M_NIL, 0, 0);
}

static int msgpack_pack(lua_State *L)
{
    int count = lua_gettop(L);
    luaL_argcheck(L, count > 0, 0, "MessagePack pack needs input.");
    luaL_argcheck(L, lua_checkstack(L, 8), 0, "Too many arguments for MessagePack pack.");
    struct packer p = {.L = L};
    lib_bytes_init(&p.out, L);
    for (int i = 1; i <= count; i++) {
        lua_pushvalue(L, i);
        pack_value(&p, 0);
        lua_pop(L, 1);
    }
    lib_bytes_push(&p.out);
    return 1;
}

/* ---- unpack ---- */

struct unpacker {
    lua_State *L;
    const unsigned char *at;
    const unsigned char *end;
    uint32_t steps;
};

static void unpack_value(struct unpacker *u);

static void need(struct unpacker *u, uint64_t bytes)
{
    if (bytes > (uint64_t)(u->end - u->at)) {
        luaL_error(u->L, "Missing bytes in input.");
    }
}

static uint64_t take_number(struct unpacker *u, int bytes)
{
    uint64_t value = 0;
    need(u, (uint64_t)bytes);
    for (int i = 0; i < bytes; i++) {
        value = value << 8 | *u->at++;
    }
    return value;
}

static void unpack_string(struct unpacker *u, uint64_t len)
{
    need(u, len);
    lua_pushlstring(u->L, (const char *)u->at, (size_t)len);
    u->at += len;
}

static void nest(struct unpacker *u, uint64_t items)
{
    luaL_checkstack(u->L, 8, "nested too deeply");
    lua_newtable(u->L);
    /* Each is a byte at least: a false count is found before it costs anything. */
    need(u, items);
}

static void unpack_array(struct unpacker *u, uint64_t count)
{
    nest(u, count);
    for (uint64_t i = 1; i <= count; i++) {
        unpack_value(u);
        lua_rawseti(u->L, -2, (int)i);
    }
}

static void unpack_map(struct unpacker *u, uint64_t count)
{
    nest(u, count * 2);
    for (uint64_t i = 0; i < count; i++) {
        unpack_value(u);
        unpack_value(u);
        lua_settable(u->L, -3);
    }
}

static void unpack_float(struct unpacker *u, int bytes)
{
    uint64_t bits = take_number(u, bytes);
    if (bytes == 4) {
        uint32_t narrow_bits = (uint32_t)bits;
        float narrow;
        memcpy(&narrow, &narrow_bits, sizeof(narrow));
        lua_pushnumber(u->L, (lua_Number)narrow);
    } else {
        double wide;
        memcpy(&wide, &bits, sizeof(wide));
        lua_pushnumber(u->L, wide);
    }
}

/* Signed numbers of 1, 2, 4 or 8 bytes. Unsigned ones of 8 bytes are read as signed, too: the
 * oracle does. */
static int64_t sign_extend(uint64_t value, int bytes)
{
    int unused = 64 - bytes * 8;
    return (int64_t)(value << unused) >> unused;
}

/* The forms from 0xc0 to 0xdf. */
static void unpack_formed(struct unpacker *u, int form)
{
    switch (form) {
    case M_NIL:
        lua_pushnil(u->L);
        return;
    case M_FALSE:
    case M_TRUE:
        lua_pushboolean(u->L, form == M_TRUE);
        return;
    case M_FLOAT32:
        unpack_float(u, 4);
        return;
    case M_FLOAT64:
        unpack_float(u, 8);
        return;
    case M_UINT8:
    case M_UINT8 + 1:
    case M_UINT8 + 2:
        lua_pushnumber(u->L, (lua_Number)take_number(u, 1 << (form - M_UINT8)));
        return;
    case M_UINT8 + 3:
    case M_INT8 + 3:
        lua_pushnumber(u->L, (lua_Number)(int64_t)take_number(u, 8));
        return;
    case M_INT8:
    case M_INT8 + 1:
    case M_INT8 + 2: {
        int bytes = 1 << (form - M_INT8);
        lua_pushnumber(u->L, (lua_Number)sign_extend(take_number(u, bytes), bytes));
        return;
    }
    case M_STR8:
    case M_STR8 + 1:
    case M_STR8 + 2:
        unpack_string(u, take_number(u, 1 << (form - M_STR8)));
        return;
    case M_ARRAY16:
    case M_ARRAY32:
        unpack_array(u, take_number(u, form == M_ARRAY16 ? 2 : 4));
        return;
    case M_MAP16:
    case M_MAP32:
        unpack_map(u, take_number(u, form == M_MAP16 ? 2 : 4));
        return;
    default:
        luaL_error(u->L, "Bad data format in input.");
    }
}

static void unpack_value(struct unpacker *u)
{
    lib_step(u->L, &u->steps);
    int form = (int)take_number(u, 1);
    if (form < M_FIXMAP) {
        lua_pushinteger(u->L, form);
    } else if (form < M_FIXARRAY) {
        unpack_map(u, (uint64_t)form & 0x0f);
    } else if (form < M_FIXSTR) {
        unpack_array(u, (uint64_t)form & 0x0f);
    } else if (form < M_NIL) {
        unpack_string(u, (uint64_t)form & 0x1f);
    } else if (form < 0xe0) {
        unpack_formed(u, form);
    } else {
        lua_pushinteger(u->L, form - 0x100);
    }
}

/* As many as the stack holds beside the argument. */
#define RESULTS_MAX (LUAI_MAXCSTACK - 1)

/* Room for so many at first. */
#define FEW_RESULTS 16

/* Results are the next offset, unless it is 0, and the `count` values of the table at 2, which
 * leaves the stack: the values were put there, so that each had the whole stack for what nests in
 * it, and the results have it now. */
static int spread(lua_State *L, int count, lua_Integer next_offset)
{
    int results = count + (next_offset != 0);
    lua_remove(L, 1);
    luaL_checkstack(L, results, "in function mp_unpack_full");
    if (next_offset != 0) {
        lua_pushinteger(L, next_offset);
    }
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(L, 1, i);
    }
    return results;
}

/* Up to `limit` values (0: all) from `offset` on. With `tells_offset` the first result is where the
 * next one begins, -1 at the end. */
static int unpack_from(lua_State *L, int64_t limit, int64_t offset, bool tells_offset)
{
    size_t len;
    const unsigned char *data = (const unsigned char *)luaL_checklstring(L, 1, &len);
    if (offset < 0 || limit < 0) {
        return luaL_error(L, "Invalid request to unpack with offset of %d and limit of %d.",
                          (int)offset, (int)len);
    }
    if ((uint64_t)offset > len) {
        return luaL_error(L, "Start offset %d greater than input length %d.", (int)offset,
                          (int)len);
    }
    struct unpacker u = {.L = L, .at = data + offset, .end = data + len};
    int count = 0;
    lua_settop(L, 1);
    size_t left = len - (size_t)offset; /* each value is a byte at least */
    lua_createtable(L, left < FEW_RESULTS ? (int)left : FEW_RESULTS, 0);
    while (u.at < u.end && (limit == 0 || count < limit)) {
        if (count == RESULTS_MAX) {
            return luaL_error(L, "stack overflow (too many return values at once; use unpack_one "
                                 "or unpack_limit instead.)");
        }
        unpack_value(&u);
        lua_rawseti(L, 2, ++count);
    }
    return spread(L, count, !tells_offset ? 0 : u.at < u.end ? (lua_Integer)(u.at - data) : -1);
}

static int msgpack_unpack(lua_State *L)
{
    return unpack_from(L, 0, 0, false);
}

static int msgpack_unpack_one(lua_State *L)
{
    int64_t offset = lib_opt_integer(L, 2, 0, INT32_MIN, INT32_MAX);
    return unpack_from(L, 1, offset, true);
}

static int msgpack_unpack_limit(lua_State *L)
{
    int64_t limit = lib_check_integer(L, 2, INT32_MIN, INT32_MAX);
    int64_t offset = lib_opt_integer(L, 3, 0, INT32_MIN, INT32_MAX);
    return unpack_from(L, limit, offset, limit != 0);
}

static const luaL_Reg msgpack_functions[] = {
    {"pack", msgpack_pack},
    {"unpack", msgpack_unpack},
    {"unpack_one", msgpack_unpack_one},
    {"unpack_limit", msgpack_unpack_limit},
    {NULL, NULL},
};

void lib_open_cmsgpack(lua_State *L)
{
    lua_newtable(L);
    lib_register(L, msgpack_functions);
    lua_pushliteral(L, "cmsgpack");
    lua_setfield(L, -2, "_NAME");
    /* The library whose results and texts ours has: scripts may ask for its version. */
    lua_pushliteral(L, "lua-cmsgpack 0.4.0");
    lua_setfield(L, -2, "_VERSION");
    lua_setglobal(L, "cmsgpack");
}
