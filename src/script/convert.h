/* Values between RESP and Lua, as Redis 7.2 converts them.
 *
 *   RESP                         Lua                                   RESP
 *   :n                           number                                :n (cut to an integer)
 *   $bytes                       string                                $bytes
 *   +text                        {ok = text}                           +text
 *   -text                        {err = text}                          -text
 *   *n ...                       array                                 *n, up to the first nil
 *   $-1, *-1                     false                                 $-1
 *   _ (RESP3)                    nil                                   $-1 or _
 *   #t, #f                       true, false                           :1 and $-1; #t, #f after
 *                                                                      setresp(3)
 *   ,x                           {double = x}                          , or $
 *   %n, ~n                       {map = {k = v}}, {set = {k = true}}   % or *, ~ or *
 *   (digits                      {big_number = digits}                 ( or $
 *   =format:text                 {verbatim_string = {format=, string=}} = or $
 *
 * State: none of its own. */
#ifndef SCRIPT_CONVERT_H
#define SCRIPT_CONVERT_H

#include "resp/reply.h"

#include <lua.h>
#include <stdbool.h>

/* Pushes the value of a whole reply (ended). Raises Lua's errors. */
void convert_push(lua_State *L, const struct reply *reply);
/* Writes the value on top of the stack and pops it. `booleans`: true and false are such (the script
 * has asked for RESP3). Raises Lua's errors (no memory). */
void convert_reply(lua_State *L, struct reply *out, bool booleans);
/* The text of a number as commands get it from redis.call. `out` holds 32 bytes. */
size_t convert_number(char *out, double number);

#endif
