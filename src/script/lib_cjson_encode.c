/* cjson.encode: a Lua value as JSON. See lib_priv.h. */
#include "script/lib_priv.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct encoder {
    lua_State *L;
    const struct lib_json_settings *settings;
    struct lib_bytes out;
    uint32_t steps;
};

static void put_value(struct encoder *e, int depth);

static void put_text(struct encoder *e, const char *text)
{
    lib_bytes_append(&e->out, text, strlen(text));
}

/* The escapes that are one letter; 0 for those that are \u00xx. */
static char short_escape(unsigned char c)
{
    switch (c) {
    case '"':
    case '\\':
    case '/':
        return (char)c;
    case '\b':
        return 'b';
    case '\t':
        return 't';
    case '\n':
        return 'n';
    case '\f':
        return 'f';
    case '\r':
        return 'r';
    default:
        return 0;
    }
}

static void put_string(struct encoder *e, const char *text, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    lib_bytes_put(&e->out, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        char letter = short_escape(c);
        lib_step(e->L, &e->steps);
        if (letter) {
            lib_bytes_put(&e->out, '\\');
            lib_bytes_put(&e->out, letter);
        } else if (c < 0x20 || c == 0x7f) {
            char escape[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
            lib_bytes_append(&e->out, escape, sizeof(escape));
        } else {
            lib_bytes_put(&e->out, (char)c);
        }
    }
    lib_bytes_put(&e->out, '"');
}

NORETURN static void refuse(struct encoder *e, const char *type, const char *why)
{
    luaL_error(e->L, "Cannot serialise %s: %s", type, why);
    __builtin_unreachable();
}

/* Significant digits of numbers, unless a script sets others, and the whole numbers that have no
 * more. */
#define USUAL_PRECISION 14
#define USUAL_WHOLE_MAX 99999999999999.0

/* Whether %.14g writes all digits of the number, and nothing else. */
static bool is_usual_whole(const struct encoder *e, lua_Number n)
{
    return e->settings->precision == USUAL_PRECISION && n >= -USUAL_WHOLE_MAX &&
           n <= USUAL_WHOLE_MAX && n == (lua_Number)(int64_t)n && (n != 0 || !signbit(n));
}

static void put_number(struct encoder *e, lua_Number n)
{
    char text[40];
    if (is_usual_whole(e, n)) {
        lib_bytes_append(&e->out, text, num_format_i64(text, (int64_t)n));
        return;
    }
    if (isnan(n) || isinf(n)) {
        if (e->settings->encode_invalid == LIB_JSON_INVALID_REFUSE) {
            refuse(e, "number", "must not be NaN or Inf");
        }
        if (e->settings->encode_invalid == LIB_JSON_INVALID_NULL) {
            put_text(e, "null");
        } else {
            put_text(e, isnan(n) ? "nan" : n > 0 ? "inf" : "-inf");
        }
        return;
    }
    int len = snprintf(text, sizeof(text), "%.*g", e->settings->precision, n);
    lib_bytes_append(&e->out, text, (size_t)len);
}

/* The length of the table on top of the stack as an array, with holes; 0 when it is none, because
 * some key is no positive integer, or because it is empty. */
static int array_length(struct encoder *e)
{
    lua_Number longest = 0;
    lua_Number items = 0;
    lua_State *L = e->L;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        lua_Number key = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
        lib_step(L, &e->steps);
        if (!(key >= 1 && key <= INT32_MAX && floor(key) == key)) {
            lua_pop(L, 1);
            return 0;
        }
        longest = key > longest ? key : longest;
        items++;
    }
    const struct lib_json_settings *s = e->settings;
    if (s->sparse_ratio > 0 && longest > items * s->sparse_ratio && longest > s->sparse_safe) {
        if (!s->sparse_convert) {
            refuse(e, "table", "excessively sparse array");
        }
        return 0;
    }
    return (int)longest;
}

static void put_array(struct encoder *e, int length, int depth)
{
    lib_bytes_put(&e->out, '[');
    for (int i = 1; i <= length; i++) {
        if (i > 1) {
            lib_bytes_put(&e->out, ',');
        }
        lua_rawgeti(e->L, -1, i);
        put_value(e, depth);
        lua_pop(e->L, 1);
    }
    lib_bytes_put(&e->out, ']');
}

static void put_object(struct encoder *e, int depth)
{
    lua_State *L = e->L;
    bool first = true;
    lib_bytes_put(&e->out, '{');
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        if (!first) {
            lib_bytes_put(&e->out, ',');
        }
        first = false;
        switch (lua_type(L, -2)) {
        case LUA_TNUMBER:
            lib_bytes_put(&e->out, '"');
            put_number(e, lua_tonumber(L, -2));
            lib_bytes_put(&e->out, '"');
            break;
        case LUA_TSTRING: {
            size_t len;
            const char *key = lua_tolstring(L, -2, &len);
            put_string(e, key, len);
            break;
        }
        default:
            refuse(e, luaL_typename(L, -2), "table key must be a number or string");
        }
        lib_bytes_put(&e->out, ':');
        put_value(e, depth);
        lua_pop(L, 1);
    }
    lib_bytes_put(&e->out, '}');
}

static void put_table(struct encoder *e, int depth)
{
    /* The stack of a C function has some thousand slots, whatever the setting says. */
    if (depth > e->settings->encode_depth_max || !lua_checkstack(e->L, 8)) {
        luaL_error(e->L, "Cannot serialise, excessive nesting (%d)", depth);
    }
    int length = array_length(e);
    if (length > 0) {
        put_array(e, length, depth);
    } else {
        put_object(e, depth);
    }
}

/* Writes the value on top of the stack, which stays there. */
static void put_value(struct encoder *e, int depth)
{
    lua_State *L = e->L;
    lib_step(L, &e->steps);
    switch (lua_type(L, -1)) {
    case LUA_TSTRING: {
        size_t len;
        const char *text = lua_tolstring(L, -1, &len);
        put_string(e, text, len);
        return;
    }
    case LUA_TNUMBER:
        put_number(e, lua_tonumber(L, -1));
        return;
    case LUA_TBOOLEAN:
        put_text(e, lua_toboolean(L, -1) ? "true" : "false");
        return;
    case LUA_TTABLE:
        put_table(e, depth + 1);
        return;
    case LUA_TNIL:
        put_text(e, "null");
        return;
    case LUA_TLIGHTUSERDATA:
        if (!lua_touserdata(L, -1)) {
            put_text(e, "null");
            return;
        }
        break;
    default:
        break;
    }
    refuse(e, luaL_typename(L, -1), "type not supported");
}

int lib_json_encode(lua_State *L)
{
    luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
    struct encoder e = {.L = L, .settings = lib_json_settings(L)};
    lib_bytes_init(&e.out, L);
    lua_pushvalue(L, 1);
    put_value(&e, 0);
    lua_pop(L, 1);
    lib_bytes_push(&e.out);
    return 1;
}
