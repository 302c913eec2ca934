/* What scripts call: the table `redis` (and `keydb`, the same by another name). State: keyspace. */
#ifndef SCRIPT_API_H
#define SCRIPT_API_H

#include <lua.h>

/* Adds the table to the globals (on top of the stack), as scripts of EVAL see it, and as functions
 * do: those have no debugger's and none of what scripts had to say when they were replicated. */
void api_install_for_eval(lua_State *L);
void api_install_for_functions(lua_State *L);
/* Adds to the table on top what of it there is while a library of functions is loaded. */
void api_add_load_fields(lua_State *L);
/* SHA1 as 40 hexadecimal digits in lower case, without NUL. */
void api_sha1_hex(const void *bytes, size_t len, char out[40]);

#endif
