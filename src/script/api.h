/* What scripts call: the table `redis` (and `keydb`, the same by another name). State: keyspace. */
#ifndef SCRIPT_API_H
#define SCRIPT_API_H

#include <lua.h>

/* Adds the table to the globals (on top of the stack). */
void api_install(lua_State *L);
/* Adds to the table on top what of it there is while a library of functions is loaded. */
void api_add_load_fields(lua_State *L);
/* SHA1 as 40 hexadecimal digits in lower case, without NUL. */
void api_sha1_hex(const void *bytes, size_t len, char out[40]);

#endif
