/* See convert.h. */
#include "script/convert.h"

#include "script/reply_cursor.h"

#include <assert.h>
#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- RESP to Lua ---- */

static void push_slice(lua_State *L, struct slice s)
{
    lua_pushlstring(L, s.ptr, s.len);
}

/* {name = text} */
static void push_named(lua_State *L, const char *name, struct slice text)
{
    lua_createtable(L, 0, 1);
    lua_pushstring(L, name);
    push_slice(L, text);
    lua_rawset(L, -3);
}

static void push_value(lua_State *L, struct reply_cursor *at);

static void push_array(lua_State *L, struct reply_cursor *at, int64_t count)
{
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 1; i <= count; i++) {
        push_value(L, at);
        lua_rawseti(L, -2, (int)i);
    }
}

/* {map = {k = v}} or {set = {k = true}} */
static void push_keyed(lua_State *L, struct reply_cursor *at, const char *name, int64_t count,
                       bool has_values)
{
    lua_createtable(L, 0, 1);
    lua_pushstring(L, name);
    lua_createtable(L, 0, (int)count);
    for (int64_t i = 0; i < count; i++) {
        push_value(L, at);
        if (has_values) {
            push_value(L, at);
        } else {
            lua_pushboolean(L, 1);
        }
        if (lua_isnil(L, -2)) {
            lua_pop(L, 2);
        } else {
            lua_rawset(L, -3);
        }
    }
    lua_rawset(L, -3);
}

static void push_verbatim(lua_State *L, struct slice body)
{
    assert(body.len >= 4);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "verbatim_string");
    lua_createtable(L, 0, 2);
    lua_pushliteral(L, "string");
    push_slice(L, slice_of(body.ptr + 4, body.len - 4));
    lua_rawset(L, -3);
    lua_pushliteral(L, "format");
    push_slice(L, slice_of(body.ptr, 3));
    lua_rawset(L, -3);
    lua_rawset(L, -3);
}

static void push_double(lua_State *L, struct slice text)
{
    char digits[64];
    size_t len = text.len < sizeof(digits) ? text.len : sizeof(digits) - 1;
    memcpy(digits, text.ptr, len);
    digits[len] = '\0';
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "double");
    lua_pushnumber(L, strtod(digits, NULL));
    lua_rawset(L, -3);
}

static void push_error(lua_State *L, struct slice text)
{
    push_named(L, "err", text);
    /* The engine has counted it. */
    lua_pushliteral(L, "ignore_error_stats_update");
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
}

/* What has a count or length behind its type. */
static void push_counted(lua_State *L, struct reply_cursor *at, char type)
{
    int64_t n = reply_take_number(at);
    if (n < 0) {
        lua_pushboolean(L, 0);
        return;
    }
    switch (type) {
    case '$':
        push_slice(L, reply_take_body(at, n));
        break;
    case '=':
        push_verbatim(L, reply_take_body(at, n));
        break;
    case '%':
        push_keyed(L, at, "map", n, true);
        break;
    case '~':
        push_keyed(L, at, "set", n, false);
        break;
    case '|': /* an attribute, and what it belongs to */
        push_keyed(L, at, "map", n, true);
        lua_pop(L, 1);
        push_value(L, at);
        break;
    default:
        assert(type == '*' || type == '>');
        push_array(L, at, n);
    }
}

static void push_value(lua_State *L, struct reply_cursor *at)
{
    luaL_checkstack(L, 8, "a reply is nested too deeply");
    char type = reply_take(at, 1).ptr[0];
    switch (type) {
    case ':':
        lua_pushnumber(L, (lua_Number)reply_take_number(at));
        break;
    case '+':
        push_named(L, "ok", reply_take_line(at));
        break;
    case '-':
        push_error(L, reply_take_line(at));
        break;
    case '_':
        reply_take_line(at);
        lua_pushnil(L);
        break;
    case '#':
        lua_pushboolean(L, reply_take_line(at).ptr[0] == 't');
        break;
    case ',':
        push_double(L, reply_take_line(at));
        break;
    case '(':
        push_named(L, "big_number", reply_take_line(at));
        break;
    default:
        push_counted(L, at, type);
    }
}

void convert_push(lua_State *L, const struct reply *reply)
{
    struct reply_cursor at = {.piece = reply->pieces};
    assert(reply->piece_count > 0);
    push_value(L, &at);
}

/* ---- Lua to RESP ---- */

/* Pushes the field of the table on top; false (and nothing pushed) unless it is of the type. */
static bool push_field(lua_State *L, const char *name, int type)
{
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    if (lua_type(L, -1) == type) {
        return true;
    }
    lua_pop(L, 1);
    return false;
}

static struct slice text_at_top(lua_State *L)
{
    struct slice text;
    text.ptr = lua_tolstring(L, -1, &text.len);
    return text;
}

static int64_t integer_of(double number)
{
    /* What a cast gives on the machines that Redis runs on. */
    return number >= -9223372036854775808.0 && number < 9223372036854775808.0 ? (int64_t)number
                                                                              : INT64_MIN;
}

/* Writes the pairs of the table on top as a map, or its keys as a set, and pops it. */
static void reply_keyed(lua_State *L, struct reply *out, bool booleans, bool has_values)
{
    uint32_t handle = reply_deferred(out);
    uint64_t count = 0;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        if (has_values) {
            lua_pushvalue(L, -2);
            convert_reply(L, out, booleans);
        } else {
            lua_pop(L, 1);
            lua_pushvalue(L, -1);
        }
        convert_reply(L, out, booleans);
        count++;
    }
    if (has_values) {
        reply_set_deferred_map(out, handle, count);
    } else {
        reply_set_deferred_set(out, handle, count);
    }
    lua_pop(L, 1);
}

static void reply_elements(lua_State *L, struct reply *out, bool booleans)
{
    uint32_t handle = reply_deferred(out);
    uint64_t count = 0;
    for (;; count++) {
        lua_rawgeti(L, -1, (int)count + 1);
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            break;
        }
        convert_reply(L, out, booleans);
    }
    reply_set_deferred_array(out, handle, count);
}

/* {verbatim_string = {format =, string =}}: the inner table is on top. False when it is none. */
static bool reply_verbatim_table(lua_State *L, struct reply *out)
{
    char format[4] = "   ";
    if (!push_field(L, "format", LUA_TSTRING)) {
        return false;
    }
    struct slice given = text_at_top(L);
    memcpy(format, given.ptr, given.len < 3 ? given.len : 3);
    lua_pop(L, 1);
    if (!push_field(L, "string", LUA_TSTRING)) {
        return false;
    }
    reply_verbatim(out, format, text_at_top(L));
    lua_pop(L, 1);
    return true;
}

/* One line of text: CR and LF are no part of it. */
static void reply_line(lua_State *L, struct reply *out, bool is_error)
{
    struct slice text = text_at_top(L);
    if (is_error) {
        reply_error_slice(out, text);
    } else {
        reply_status_slice(out, text);
    }
    lua_pop(L, 1);
}

/* The text on top is a number only by the script's word: CR and LF become blanks in RESP2 too. */
static void reply_digits(lua_State *L, struct reply *out)
{
    if (memchr(lua_tostring(L, -1), '\n', lua_objlen(L, -1)) ||
        memchr(lua_tostring(L, -1), '\r', lua_objlen(L, -1))) {
        lua_getfield(L, LUA_GLOBALSINDEX, "string");
        lua_getfield(L, -1, "gsub");
        lua_replace(L, -2);
        lua_insert(L, -2);
        lua_pushliteral(L, "[\r\n]");
        lua_pushliteral(L, " ");
        lua_call(L, 3, 1);
    }
    reply_big_number(out, text_at_top(L));
    lua_pop(L, 1);
}

/* A table that stands for a RESP type of its own; false when it is an array. */
static bool reply_typed(lua_State *L, struct reply *out, bool booleans)
{
    if (push_field(L, "err", LUA_TSTRING)) {
        reply_line(L, out, true);
    } else if (push_field(L, "ok", LUA_TSTRING)) {
        reply_line(L, out, false);
    } else if (push_field(L, "double", LUA_TNUMBER)) {
        reply_double(out, lua_tonumber(L, -1));
        lua_pop(L, 1);
    } else if (push_field(L, "map", LUA_TTABLE)) {
        reply_keyed(L, out, booleans, true);
    } else if (push_field(L, "set", LUA_TTABLE)) {
        reply_keyed(L, out, booleans, false);
    } else if (push_field(L, "big_number", LUA_TSTRING)) {
        reply_digits(L, out);
    } else if (push_field(L, "verbatim_string", LUA_TTABLE)) {
        bool whole = reply_verbatim_table(L, out);
        lua_pop(L, 1);
        return whole;
    } else {
        return false;
    }
    return true;
}

static void reply_table(lua_State *L, struct reply *out, bool booleans)
{
    if (!reply_typed(L, out, booleans)) {
        reply_elements(L, out, booleans);
    }
}

static void reply_boolean(struct reply *out, bool value, bool booleans)
{
    if (booleans) {
        reply_bool(out, value);
    } else if (value) {
        reply_i64(out, 1);
    } else {
        reply_null(out);
    }
}

/* Free slots that each value has: a map takes four (itself, a key and its value, and the key once
 * more). With the fifth, nested values end as deep as Redis's, which has one more below them; there
 * too they end whatever they are. */
#define REPLY_SLOTS 5

void convert_reply(lua_State *L, struct reply *out, bool booleans)
{
    if (unlikely(!lua_checkstack(L, REPLY_SLOTS))) {
        reply_error(out, "ERR reached lua stack limit");
        lua_pop(L, 1);
        return;
    }
    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        reply_bulk(out, text_at_top(L));
        break;
    case LUA_TNUMBER:
        reply_i64(out, integer_of(lua_tonumber(L, -1)));
        break;
    case LUA_TBOOLEAN:
        reply_boolean(out, lua_toboolean(L, -1), booleans);
        break;
    case LUA_TTABLE:
        reply_table(L, out, booleans);
        break;
    default:
        reply_null(out);
    }
    lua_pop(L, 1);
}

size_t convert_number(char *out, double number)
{
    return num_format_double(out, number);
}
