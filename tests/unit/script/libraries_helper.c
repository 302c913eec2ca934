/* See libraries_helper.h. */
#include "script/libraries_helper.h"

#include "script/libraries.h"

#include <stdlib.h>
#include <string.h>

static size_t held_bytes;

static void *bounded(void *context, void *ptr, size_t old_size, size_t new_size)
{
    (void)context;
    if (new_size == 0) {
        free(ptr);
        held_bytes -= old_size;
        return NULL;
    }
    if (new_size > old_size && held_bytes + (new_size - old_size) > LUA_BYTES_MAX) {
        return NULL;
    }
    void *block = realloc(ptr, new_size);
    held_bytes += block ? new_size - old_size : 0;
    return block;
}

static int open_all(lua_State *L)
{
    script_open_libraries(L);
    return 0;
}

lua_State *libraries_state(void)
{
    held_bytes = 0;
    lua_State *L = lua_newstate(bounded, NULL);
    assert_non_null(L);
    assert_int_equal(lua_cpcall(L, open_all, NULL), 0);
    return L;
}

/* Shows results so that they can be compared as text: %s is the expression. */
static const char wrapper[] =
    "local t={pcall(function() %s%s end)} local n=0 for k in pairs(t) do if k>n then n=k end end\n"
    "local function show(v) if type(v)=='string' then local o=v:sub(1,400):gsub('[^%%w%%p ]',"
    "function(c) return ('\\\\%%03d'):format(c:byte()) end) return o elseif type(v)=='table' then "
    "local s={} for k,x in pairs(v) do s[#s+1]=tostring(k)..'='..show(x) end table.sort(s) "
    "return '{'..table.concat(s,' ')..'}' elseif type(v)=='number' then "
    "return ('%%.17g'):format(v) else return (tostring(v):gsub(': 0x%%x+','')) end end\n"
    "for i=1,n do t[i]=show(t[i]) end return table.concat(t,' | ')";

static const char *evaluate(lua_State *L, const char *source)
{
    size_t size = sizeof(wrapper) + strlen(source) + 16;
    char *text = malloc(size);
    assert_non_null(text);
    snprintf(text, size, wrapper, strstr(source, "return") ? "" : "return ", source);
    lua_settop(L, 0);
    int status = luaL_loadbuffer(L, text, strlen(text), "@user_script");
    free(text);
    if (status == 0) {
        status = lua_pcall(L, 0, 1, 0);
    }
    return lua_tostring(L, -1);
}

void check_expression(lua_State *L, const char *source, const char *expected)
{
    const char *result = evaluate(L, source);
    size_t len = strlen(expected);
    if (len > 0 && expected[len - 1] == '*') {
        if (strncmp(result, expected, len - 1) != 0) {
            fail_msg("%s\n  gives    %s\n  and not  %s", source, result, expected);
        }
    } else if (strcmp(result, expected) != 0) {
        fail_msg("%s\n  gives    %s\n  and not  %s", source, result, expected);
    }
}

void check_expressions(lua_State *L, const struct expression *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_expression(L, rows[i].source, rows[i].expected);
    }
}

void check_in_each_state(const struct expression *rows, size_t count)
{
    for (int greedy = 0; greedy < 2; greedy++) {
        lua_State *L = libraries_state();
        if (greedy) {
            lua_gc(L, LUA_GCSETPAUSE, 0);
            lua_gc(L, LUA_GCSETSTEPMUL, 1 << 20);
        }
        check_expressions(L, rows, count);
        lua_close(L);
    }
}
