/* A Lua state with the libraries of scripts, bounded in memory, and expressions with their results.
 */
#ifndef TESTS_UNIT_SCRIPT_LIBRARIES_HELPER_H
#define TESTS_UNIT_SCRIPT_LIBRARIES_HELPER_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <lauxlib.h>
#include <lua.h>

/* What a state may hold. */
#define LUA_BYTES_MAX ((size_t)64 << 20)

struct expression {
    const char *source; /* an expression, or statements with a return */
    const char *
        expected; /* "true | result | ..." or "false | error", as both.py of the comparison shows */
};

lua_State *libraries_state(void);
/* Evaluates the expressions in order in one state: what one sets the next one sees. */
void check_expressions(lua_State *L, const struct expression *rows, size_t count);
/* The same for one; `expected` may end with "*": anything may follow. */
void check_expression(lua_State *L, const char *source, const char *expected);

/* All of them in a fresh state, and again in one that collects all garbage whenever Lua may do so:
 * what is used and not anchored is gone then. */
void check_in_each_state(const struct expression *rows, size_t count);

#define CHECK_ROWS_IN_EACH_STATE(rows) check_in_each_state(rows, sizeof(rows) / sizeof((rows)[0]))
#define CHECK_ROWS(L, rows) check_expressions(L, rows, sizeof(rows) / sizeof((rows)[0]))

#endif
