/* struct: C structs as strings. A format is a row of options:
 *
 *   < > =       byte order: little, big, the machine's            b B h H l L i I T   integers
 *   ![N]        align to the option's size, to N at most          iN IN               of N bytes
 * (32 at most) x           one byte of padding, a zero                       f d IEEE numbers cN c
 * N bytes (one) of a string                         s                   up to a zero byte c0
 * packed: the whole string; unpacked: as many bytes as the number before it says
 *
 * What it gives and refuses is as the oracle has it. Every size is checked before it is added. */
#include "script/lib_priv.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#define INTEGER_BYTES_MAX 32
/* The widest alignment there is: what "!" alone asks for. */
#define ALIGN_NATIVE 8

struct format {
    lua_State *L;
    const char *at; /* the next option */
    bool big_endian;
    size_t align;
    /* Of the option that was read last: */
    char letter;
    size_t size;    /* bytes; 0 for what has no fixed size */
    size_t padding; /* bytes before it */
};

/* ---- formats ---- */

/* Digits at the format's place, or `absent` where there are none. */
static size_t read_size(struct format *f, size_t absent)
{
    if (!isdigit((unsigned char)*f->at)) {
        return absent;
    }
    size_t n = 0;
    while (isdigit((unsigned char)*f->at)) {
        n = n * 10 + (size_t)(*f->at++ - '0');
        if (n > INT_MAX) {
            luaL_error(f->L, "integral size overflow");
        }
    }
    return n;
}

static size_t option_size(struct format *f)
{
    switch (f->letter) {
    case 'b':
    case 'B':
    case 'x':
        return 1;
    case 'h':
    case 'H':
        return sizeof(short);
    case 'l':
    case 'L':
        return sizeof(long);
    case 'T':
        return sizeof(size_t);
    case 'f':
        return sizeof(float);
    case 'd':
        return sizeof(double);
    case 'c':
        return read_size(f, 1);
    case 'i':
    case 'I': {
        size_t size = read_size(f, sizeof(int));
        if (size > INTEGER_BYTES_MAX) {
            luaL_error(f->L, "integral size %d is larger than limit of %d", (int)size,
                       INTEGER_BYTES_MAX);
        }
        return size;
    }
    default:
        return 0;
    }
}

/* Takes in an option that only says how others are laid out. */
static bool read_control(struct format *f)
{
    switch (f->letter) {
    case ' ':
        return true;
    case '<':
    case '=':
        f->big_endian = false;
        return true;
    case '>':
        f->big_endian = true;
        return true;
    case '!': {
        size_t align = read_size(f, ALIGN_NATIVE);
        if (align == 0 || (align & (align - 1)) != 0) {
            luaL_error(f->L, "alignment %d is not a power of 2", (int)align);
        }
        f->align = align;
        return true;
    }
    default:
        return false;
    }
}

/* Bytes that bring `offset` to where something of `size` bytes may begin. Sizes that are no power
 * of two are laid out as the next smaller one would allow, as the oracle does. */
static size_t padding_at(const struct format *f, size_t offset)
{
    if (f->letter == 'c' || f->letter == 's' || f->letter == 'x' || f->size == 0) {
        return 0;
    }
    size_t align = f->size < f->align ? f->size : f->align;
    return align <= 1 ? 0 : (align - (offset & (align - 1))) & (align - 1);
}

/* Reads the next option of a format that began at offset 0; false at its end. */
static bool next_option(struct format *f, size_t offset)
{
    while (*f->at) {
        f->letter = *f->at++;
        if (read_control(f)) {
            continue;
        }
        f->size = option_size(f);
        f->padding = padding_at(f, offset);
        return true;
    }
    return false;
}

static void format_init(struct format *f, lua_State *L)
{
    *f = (struct format){.L = L, .at = luaL_checkstring(L, 1), .align = 1};
}

static int bad_option(struct format *f)
{
    return luaL_argerror(f->L, 1, lua_pushfstring(f->L, "invalid format option '%c'", f->letter));
}

/* ---- pack ---- */

static void put_zeros(struct lib_bytes *out, size_t count)
{
    while (count-- > 0) {
        lib_bytes_put(out, 0);
    }
}

/* Numbers beyond 64 bits lose their upper ones; what is no number is what the machine makes of it.
 */
static uint64_t integer_bits(lua_Number n)
{
    if (n >= -0x1p63 && n < 0x1p63) {
        return (uint64_t)(int64_t)n;
    }
    if (n >= 0x1p63 && n < 0x1p64) {
        return (uint64_t)n;
    }
    return n < 0 ? UINT64_C(1) << 63 : 0;
}

/* The lowest `size` bytes of a number; beyond the eighth they are zero. */
static void put_integer(const struct format *f, struct lib_bytes *out, uint64_t bits)
{
    for (size_t i = 0; i < f->size; i++) {
        size_t byte = f->big_endian ? f->size - 1 - i : i;
        lib_bytes_put(out, byte < 8 ? (char)(bits >> (byte * 8)) : 0);
    }
}

static void put_ieee(const struct format *f, struct lib_bytes *out, lua_Number n)
{
    uint64_t bits = 0;
    if (f->letter == 'f') {
        float narrow = (float)n;
        uint32_t narrow_bits;
        memcpy(&narrow_bits, &narrow, sizeof(narrow_bits));
        bits = narrow_bits;
    } else {
        memcpy(&bits, &n, sizeof(bits));
    }
    put_integer(f, out, bits);
}

static void put_string(const struct format *f, struct lib_bytes *out, int arg)
{
    size_t len;
    const char *text = luaL_checklstring(f->L, arg, &len);
    if (f->letter == 's') {
        lib_bytes_append(out, text, len);
        lib_bytes_put(out, 0);
        return;
    }
    size_t size = f->size == 0 ? len : f->size;
    /* Told of the next argument, as the oracle does. */
    luaL_argcheck(f->L, len >= size, arg + 1, "string too short");
    lib_bytes_append(out, text, size);
}

static int struct_pack(lua_State *L)
{
    struct format f;
    struct lib_bytes out;
    format_init(&f, L);
    lua_pushnil(L); /* stands behind the last argument: what is missing is told as nil */
    lib_bytes_init(&out, L);
    int args = lua_gettop(L) - 2;
    for (int arg = 2; next_option(&f, out.len);) {
        /* The buffer lies behind the arguments, and is none. */
        int from = arg <= args ? arg : args + 1;
        put_zeros(&out, f.padding);
        switch (f.letter) {
        case 'b':
        case 'B':
        case 'h':
        case 'H':
        case 'l':
        case 'L':
        case 'T':
        case 'i':
        case 'I':
            put_integer(&f, &out, integer_bits(luaL_checknumber(L, from)));
            break;
        case 'f':
        case 'd':
            put_ieee(&f, &out, luaL_checknumber(L, from));
            break;
        case 'c':
        case 's':
            put_string(&f, &out, from);
            break;
        case 'x':
            lib_bytes_put(&out, 0);
            continue;
        default:
            return bad_option(&f);
        }
        arg++;
    }
    lib_bytes_push(&out);
    return 1;
}

/* ---- unpack ---- */

static uint64_t get_bits(const struct format *f, const unsigned char *data)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < f->size && i < 8; i++) {
        bits |= (uint64_t)data[f->big_endian ? f->size - 1 - i : i] << (i * 8);
    }
    return bits;
}

static void push_integer(const struct format *f, const unsigned char *data)
{
    uint64_t bits = get_bits(f, data);
    if (isupper((unsigned char)f->letter)) {
        lua_pushnumber(f->L, (lua_Number)bits);
        return;
    }
    if (f->size > 0 && f->size < 8) {
        int unused = 64 - (int)f->size * 8;
        bits = (uint64_t)((int64_t)(bits << unused) >> unused);
    }
    lua_pushnumber(f->L, (lua_Number)(int64_t)bits);
}

static void push_ieee(const struct format *f, const unsigned char *data)
{
    uint64_t bits = get_bits(f, data);
    if (f->letter == 'f') {
        uint32_t narrow_bits = (uint32_t)bits;
        float narrow;
        memcpy(&narrow, &narrow_bits, sizeof(narrow));
        lua_pushnumber(f->L, (lua_Number)narrow);
    } else {
        double n;
        memcpy(&n, &bits, sizeof(n));
        lua_pushnumber(f->L, n);
    }
}

/* The bytes that a c option takes. For c0 the number that was unpacked before it says so, and is
 * taken off the results. */
static size_t bytes_of_c(const struct format *f, size_t left, int *results)
{
    lua_State *L = f->L;
    if (f->size > 0) {
        luaL_argcheck(L, f->size <= left, 2, "data string too short");
        return f->size;
    }
    if (*results == 0 || lua_type(L, -1) != LUA_TNUMBER) {
        luaL_error(L, "format 'c0' needs a previous size");
    }
    lua_Number size = lua_tonumber(L, -1);
    luaL_argcheck(L, size >= 0 && size <= (lua_Number)left, 2, "data string too short");
    lua_pop(L, 1);
    --*results;
    return (size_t)size;
}

/* Unpacks one option from what is left of the data; returns the bytes that it took. */
static size_t unpack_option(struct format *f, const unsigned char *data, size_t left, int *results)
{
    size_t taken = f->size;
    switch (f->letter) {
    case 'b':
    case 'B':
    case 'h':
    case 'H':
    case 'l':
    case 'L':
    case 'T':
    case 'i':
    case 'I':
        push_integer(f, data);
        break;
    case 'f':
    case 'd':
        push_ieee(f, data);
        break;
    case 'c':
        taken = bytes_of_c(f, left, results);
        lua_pushlstring(f->L, (const char *)data, taken);
        break;
    case 's': {
        const unsigned char *zero = left > 0 ? memchr(data, 0, left) : NULL;
        if (!zero) {
            luaL_error(f->L, "unfinished string in data");
        }
        taken = (size_t)(zero - data) + 1;
        lua_pushlstring(f->L, (const char *)data, taken - 1);
        break;
    }
    case 'x':
        return taken;
    default:
        bad_option(f);
    }
    ++*results;
    return taken;
}

static int struct_unpack(lua_State *L)
{
    struct format f;
    size_t len;
    uint32_t steps = 0;
    format_init(&f, L);
    const unsigned char *data = (const unsigned char *)luaL_checklstring(L, 2, &len);
    int64_t position = lib_opt_integer(L, 3, 1, -1, INT64_MAX);
    luaL_argcheck(L, position != 0, 3, "offset must be 1 or greater");
    /* Before the first byte is as far off as behind the last. */
    size_t offset = position < 0 ? len + 1 : (size_t)position - 1;
    int results = 0;
    while (next_option(&f, offset)) {
        lib_step(L, &steps);
        luaL_argcheck(
            L, offset <= len && f.padding <= len - offset && f.size <= len - offset - f.padding, 2,
            "data string too short");
        luaL_checkstack(L, 2, "too many results"); /* the option's, and the position */
        offset += f.padding;
        offset += unpack_option(&f, data + offset, len - offset, &results);
    }
    lua_pushinteger(L, (lua_Integer)offset + 1);
    return results + 1;
}

static int struct_size(lua_State *L)
{
    struct format f;
    size_t total = 0;
    format_init(&f, L);
    while (next_option(&f, total)) {
        if (f.letter == 's') {
            luaL_argerror(L, 1, "option 's' has no fixed size");
        }
        if (f.letter == 'c' && f.size == 0) {
            luaL_argerror(L, 1, "option 'c0' has no fixed size");
        }
        total +=
            f.padding + f.size; /* each below 2^31, and a format of 2^32 options none can send */
    }
    lua_pushnumber(L, (lua_Number)total);
    return 1;
}

static const luaL_Reg struct_functions[] = {
    {"pack", struct_pack},
    {"unpack", struct_unpack},
    {"size", struct_size},
    {NULL, NULL},
};

void lib_open_struct(lua_State *L)
{
    lua_newtable(L);
    lib_register(L, struct_functions);
    lua_setglobal(L, "struct");
}
