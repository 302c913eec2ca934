/* Values and replies as the debugger shows them, in Redis's forms: see debugger_priv.h.
 *
 *   "text" 3.5 true nil {1; 2} {["k"]="v"} "function@0x55d0c0"
 *   a reply: 3 "text" NULL "+OK" "-ERR ..." [1,2] {"k" => "v"} ~(1,2) */
#include "script/debugger_priv.h"
#include "script/reply_cursor.h"

#include <string.h>

/* Tables within tables, and what of the stack one of them takes. */
#define DEPTH_MAX 10
#define SLOTS_A_TABLE 8

static void show_text(struct buf *out, struct slice text, size_t limit)
{
    size_t room = out->len < limit ? limit - out->len : 0;
    buf_append_quoted(out, slice_of(text.ptr, text.len < room ? text.len : room));
}

/* ---- values ---- */

/* The keys of the table on top are 1, 2, 3 ... in this order. */
static bool is_array(lua_State *L)
{
    int expected = 1;
    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        lua_pop(L, 1);
        if (lua_type(L, -1) != LUA_TNUMBER || lua_tonumber(L, -1) != expected) {
            lua_pop(L, 1);
            return false;
        }
        expected++;
    }
    return true;
}

static void show_top(lua_State *L, struct buf *out, size_t limit, int depth);

/* The table on top. */
static void show_plain_table(lua_State *L, struct buf *out, size_t limit, int depth)
{
    bool array = is_array(L), some = false;
    buf_append_char(out, '{');
    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        if (out->len > limit) {
            lua_pop(L, 2);
            return;
        }
        buf_append_cstr(out, some ? "; " : "");
        some = true;
        if (!array) {
            buf_append_char(out, '[');
            lua_pushvalue(L, -2);
            show_top(L, out, limit, depth);
            lua_pop(L, 1);
            buf_append_cstr(out, "]=");
        }
        show_top(L, out, limit, depth);
        lua_pop(L, 1);
    }
    buf_append_char(out, '}');
}

/* The same of one that may be frozen: what stands behind it. */
static void show_table(lua_State *L, struct buf *out, size_t limit, int depth)
{
    bool frozen = freeze_push_target(L, -1);
    show_plain_table(L, out, limit, depth);
    lua_pop(L, frozen);
}

static void show_top(lua_State *L, struct buf *out, size_t limit, int depth)
{
    struct slice text;
    if (depth >= DEPTH_MAX || !lua_checkstack(L, SLOTS_A_TABLE)) {
        buf_append_cstr(out, "<max recursion level reached! Nested table?>");
        return;
    }
    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        text.ptr = lua_tolstring(L, -1, &text.len);
        show_text(out, text, limit);
        break;
    case LUA_TBOOLEAN:
        buf_append_cstr(out, lua_toboolean(L, -1) ? "true" : "false");
        break;
    case LUA_TNUMBER:
        buf_printf(out, "%g", lua_tonumber(L, -1));
        break;
    case LUA_TNIL:
        buf_append_cstr(out, "nil");
        break;
    case LUA_TTABLE:
        show_table(L, out, limit, depth + 1);
        break;
    default:
        buf_printf(out, "\"%s@%p\"", luaL_typename(L, -1), lua_topointer(L, -1));
    }
}

void debugger_show_value(lua_State *L, int index, struct buf *out, size_t limit)
{
    lua_pushvalue(L, index);
    show_top(L, out, limit, 0);
    lua_pop(L, 1);
}

/* ---- replies ---- */

/* A reply of ours is as deep as its commands make it: a few levels. */
static void show_reply(struct reply_cursor *at, struct buf *out, size_t limit);

static void show_aggregate(struct reply_cursor *at, struct buf *out, size_t limit, const char *open,
                           const char *close)
{
    int64_t count = reply_take_number(at);
    if (count < 0) {
        buf_append_cstr(out, "NULL");
        return;
    }
    buf_append_cstr(out, open);
    for (int64_t i = 0; i < count && out->len <= limit; i++) {
        buf_append_cstr(out, i > 0 ? "," : "");
        show_reply(at, out, limit);
    }
    buf_append_cstr(out, close);
}

static void show_map(struct reply_cursor *at, struct buf *out, size_t limit)
{
    int64_t pairs = reply_take_number(at);
    buf_append_char(out, '{');
    for (int64_t i = 0; i < pairs && out->len <= limit; i++) {
        buf_append_cstr(out, i > 0 ? "," : "");
        show_reply(at, out, limit);
        buf_append_cstr(out, " => ");
        if (out->len <= limit) {
            show_reply(at, out, limit);
        }
    }
    buf_append_char(out, '}');
}

/* With its sign, quoted. */
static void show_line(struct reply_cursor *at, char sign, struct buf *out, size_t limit)
{
    struct buf line = {0};
    buf_append_char(&line, sign);
    buf_append_slice(&line, reply_take_line(at));
    show_text(out, buf_slice(&line), limit);
    buf_deinit(&line);
}

static void show_bulk(struct reply_cursor *at, struct buf *out, size_t limit)
{
    int64_t len = reply_take_number(at);
    if (len < 0) {
        buf_append_cstr(out, "NULL");
    } else {
        show_text(out, reply_take_body(at, len), limit);
    }
}

static void show_reply(struct reply_cursor *at, struct buf *out, size_t limit)
{
    char type = reply_take(at, 1).ptr[0];
    switch (type) {
    case ':':
        buf_append_slice(out, reply_take_line(at));
        break;
    case '$':
    case '=':
        show_bulk(at, out, limit);
        break;
    case '+':
    case '-':
        show_line(at, type, out, limit);
        break;
    case '*':
    case '>':
        show_aggregate(at, out, limit, "[", "]");
        break;
    case '~':
        show_aggregate(at, out, limit, "~(", ")");
        break;
    case '%':
        show_map(at, out, limit);
        break;
    case '_':
        (void)reply_take_line(at);
        buf_append_cstr(out, "(null)");
        break;
    case '#':
        buf_append_cstr(out, reply_take_line(at).ptr[0] == 't' ? "#true" : "#false");
        break;
    default:
        buf_append_cstr(out, "(double) ");
        buf_append_slice(out, reply_take_line(at));
    }
}

void debugger_show_reply(const struct reply *reply, struct buf *out, size_t limit)
{
    struct reply_cursor at = {reply->pieces, 0};
    show_reply(&at, out, limit);
}
