/* string.rep and the functions that match patterns: bounded, and ready to be ended. See
 * libraries.h. */
#include "script/lib_pattern.h"
#include "script/lib_priv.h"

#include <ctype.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

/* Characters that make a text a pattern. */
#define SPECIALS "^$*+?.([%-"

static int string_rep(lua_State *L)
{
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    int64_t count = lib_check_integer(L, 2, 0, INT64_MAX);
    if (len == 0 || count == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if ((uint64_t)count > LIB_BYTES_MAX / len) {
        return luaL_error(L, "resulting string too large");
    }
    size_t total = len * (size_t)count;
    char *bytes = lua_newuserdata(L, total);
    memcpy(bytes, text, len);
    for (size_t done = len; done < total;) {
        size_t more = done < total - done ? done : total - done;
        memcpy(bytes + done, bytes, more);
        done += more;
    }
    lua_pushlstring(L, bytes, total);
    return 1;
}

/* ---- find and match ---- */

/* Argument 3, a position from 1 or from the end, as an offset within the subject. */
static size_t start_offset(lua_State *L, size_t len)
{
    int64_t position = lib_opt_integer(L, 3, 1, INT64_MIN + 1, INT64_MAX);
    if (position < 0) {
        position += (int64_t)len + 1;
    }
    if (position < 1) {
        return 0;
    }
    return (uint64_t)position - 1 > len ? len : (size_t)position - 1;
}

static int find_plain(lua_State *L, const char *subject, size_t len, size_t offset)
{
    size_t needle_len;
    const char *needle = lua_tolstring(L, 2, &needle_len);
    /* memmem takes linear time whatever the texts are. */
    const char *at = memmem(subject + offset, len - offset, needle, needle_len);
    if (!at) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, at - subject + 1);
    lua_pushinteger(L, at - subject + (ptrdiff_t)needle_len);
    return 2;
}

static int find_or_match(lua_State *L, bool find)
{
    size_t len;
    const char *subject = luaL_checklstring(L, 1, &len);
    const char *pattern = luaL_checkstring(L, 2);
    size_t offset = start_offset(L, len);
    if (find && (lua_toboolean(L, 4) || !strpbrk(pattern, SPECIALS))) {
        return find_plain(L, subject, len, offset);
    }
    struct pattern_match m;
    pattern_init(&m, L, subject, len, pattern);
    bool anchored = *pattern == '^';
    for (const char *s = subject + offset; s <= m.subject_end; s++) {
        const char *end = pattern_match_at(&m, s, pattern + anchored);
        if (end && find) {
            lua_pushinteger(L, s - subject + 1);
            lua_pushinteger(L, end - subject);
            return pattern_push_captures(&m, NULL, NULL) + 2;
        }
        if (end) {
            return pattern_push_captures(&m, s, end);
        }
        if (anchored) {
            break;
        }
    }
    lua_pushnil(L);
    return 1;
}

static int string_find(lua_State *L)
{
    return find_or_match(L, true);
}

static int string_match(lua_State *L)
{
    return find_or_match(L, false);
}

/* ---- gmatch ---- */

/* Upvalues: subject, pattern, offset of the next try. */
static int gmatch_next(lua_State *L)
{
    size_t len;
    const char *subject = lua_tolstring(L, lua_upvalueindex(1), &len);
    const char *pattern = lua_tostring(L, lua_upvalueindex(2));
    struct pattern_match m;
    pattern_init(&m, L, subject, len, pattern);
    for (size_t at = (size_t)lua_tointeger(L, lua_upvalueindex(3)); at <= len; at++) {
        const char *end = pattern_match_at(&m, subject + at, pattern);
        if (end) {
            size_t next = (size_t)(end - subject);
            lua_pushinteger(L, (lua_Integer)(next == at ? next + 1 : next));
            lua_replace(L, lua_upvalueindex(3));
            return pattern_push_captures(&m, subject + at, end);
        }
    }
    return 0;
}

static int string_gmatch(lua_State *L)
{
    luaL_checkstring(L, 1);
    luaL_checkstring(L, 2);
    lua_settop(L, 2);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, gmatch_next, 3);
    return 1;
}

/* ---- gsub ---- */

/* Argument 3 as text: %0 to %9 stand for captures, % before anything else for that. */
static void append_expanded(struct pattern_match *m, struct lib_bytes *out, const char *s,
                            const char *end)
{
    size_t len;
    const char *text = lua_tolstring(m->L, 3, &len);
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '%') {
            lib_bytes_put(out, text[i]);
            continue;
        }
        i++; /* at the end of the text this is its NUL */
        if (!isdigit((unsigned char)text[i])) {
            lib_bytes_put(out, text[i]);
        } else if (text[i] == '0') {
            lib_bytes_append(out, s, (size_t)(end - s));
        } else {
            size_t capture_len;
            pattern_push_capture(m, text[i] - '1', s, end);
            const char *capture = lua_tolstring(m->L, -1, &capture_len);
            lib_bytes_append(out, capture, capture_len);
            lua_pop(m->L, 1);
        }
    }
}

/* Appends what argument 3 makes of a match. */
static void append_replacement(struct pattern_match *m, struct lib_bytes *out, const char *s,
                               const char *end)
{
    lua_State *L = m->L;
    switch (lua_type(L, 3)) {
    case LUA_TFUNCTION: {
        lua_pushvalue(L, 3);
        int count = pattern_push_captures(m, s, end);
        lua_call(L, count, 1);
        break;
    }
    case LUA_TTABLE:
        pattern_push_capture(m, 0, s, end);
        lua_gettable(L, 3);
        break;
    default:
        append_expanded(m, out, s, end);
        return;
    }
    if (!lua_toboolean(L, -1)) {
        lib_bytes_append(out, s, (size_t)(end - s));
    } else if (lua_isstring(L, -1)) {
        size_t len;
        const char *text = lua_tolstring(L, -1, &len);
        lib_bytes_append(out, text, len);
    } else {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    }
    lua_pop(L, 1);
}

static int string_gsub(lua_State *L)
{
    size_t len;
    const char *subject = luaL_checklstring(L, 1, &len);
    const char *pattern = luaL_checkstring(L, 2);
    int type = lua_type(L, 3);
    luaL_argcheck(L,
                  type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION ||
                      type == LUA_TTABLE,
                  3, "string/function/table expected");
    int64_t count_max = lib_opt_integer(L, 4, (int64_t)len + 1, INT64_MIN, INT64_MAX);
    bool anchored = *pattern == '^';
    struct pattern_match m;
    struct lib_bytes out;
    pattern_init(&m, L, subject, len, pattern);
    lib_bytes_init(&out, L);
    int64_t count = 0;
    const char *s = subject;
    while (count < count_max) {
        const char *end = pattern_match_at(&m, s, pattern + anchored);
        if (end) {
            count++;
            append_replacement(&m, &out, s, end);
        }
        if (end && end > s) {
            s = end;
        } else if (s < m.subject_end) {
            lib_bytes_put(&out, *s++);
        } else {
            break;
        }
        if (anchored) {
            break;
        }
    }
    lib_bytes_append(&out, s, (size_t)(m.subject_end - s));
    lib_bytes_push(&out);
    lua_pushinteger(L, (lua_Integer)count);
    return 2;
}

static const luaL_Reg string_functions[] = {
    {"find", string_find}, {"match", string_match}, {"gmatch", string_gmatch},
    {"gsub", string_gsub}, {"rep", string_rep},     {NULL, NULL},
};

void lib_open_string(lua_State *L)
{
    lua_getglobal(L, LUA_STRLIBNAME);
    lib_register(L, string_functions);
    lua_getfield(L, -1, "gmatch");
    lua_setfield(L, -2, "gfind");
    lua_pushnil(L);
    lua_setfield(L, -2, "dump");
    lua_pop(L, 1);
}
