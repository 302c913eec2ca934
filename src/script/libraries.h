/* The libraries that scripts see: what Redis offers of Lua's own (base, table, string, math, the
 * clock of os) and cjson, cmsgpack, struct and bit. Functions of Lua 5.1 that overflow, that run
 * long without asking anybody, or that reach what no script may reach are left out or written anew:
 *
 *   left out   dofile, loadfile, print, newproxy, getfenv, setfenv, module, require, package, io,
 * debug, os but os.clock, string.dump anew       unpack; string.rep, find, match, gmatch, gsub;
 * table.insert, concat, sort; math.random, randomseed; bit.tohex
 *
 * What takes long inside C calls the state's count hook now and then, as Lua's own instructions do,
 * so that a script can be ended wherever it is: hooks may raise errors there. Buffers are Lua's
 * memory.
 *
 * Own code instead of Debian's lua-cjson (2.1.0): that one ends the process when memory is short,
 * counts lengths in ints (CVE-2022-24834), keeps its buffers out of the state's memory bound, and
 * its settings are shared by all scripts of a state.
 *
 * State: hangs off the Lua state and goes with it; whoever may touch the state may call these. */
#ifndef SCRIPT_LIBRARIES_H
#define SCRIPT_LIBRARIES_H

#include <lua.h>

/* Opens the libraries into the globals of a fresh state. Raises Lua's memory error; call it inside
 * lua_cpcall. Does not freeze them, and leaves guards of raw access to frozen tables, of the
 * loaders and of the collector to its caller. */
void script_open_libraries(lua_State *L);

/* Puts back what one script could leave behind for the next: the seed of math.random, the settings
 * of cjson. To be called before each script; raises no error. */
void script_reset_libraries(lua_State *L);

#endif
