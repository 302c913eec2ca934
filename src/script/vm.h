/* Interpreters: Lua states with bounded memory, safe libraries and an environment that no script
 * can change. Scripts of EVAL have one, libraries of functions another.
 *
 * All tables that scripts share (the globals, the libraries, the metatable of strings) are frozen:
 * what a script sees is an empty stand-in whose metatable reads through to the table and refuses
 * writes. Lua's own raw access would write into the stand-in, so every function that writes to a
 * table without asking its metatable is replaced or guarded (guards.c).
 *
 * State: keyspace; exclusive mode, except for what says so. */
#ifndef SCRIPT_VM_H
#define SCRIPT_VM_H

#include "base/compiler.h"
#include "base/slice.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* What one interpreter may hold at most: Redis has no bound, and a script that needs more is
 * mistaken. Lua reports an ordinary error, "not enough memory". */
#define VM_MEMORY_MAX_BYTES ((size_t)1 << 30)
/* Longest source: the parser keeps all that it makes until it is done. */
#define VM_SOURCE_MAX_BYTES ((size_t)32 << 20)

/* What each script needs stands in the registry under small integers, the fastest look-up that Lua
 * has. All are set before the first script or luaL_ref, which takes numbers behind them. */
enum vm_slot {
    VM_GLOBALS = 1, /* the globals' own table */
    /* functions of run.c, so that a run need not make closures of them */
    VM_RUN,
    VM_CALL_SCRIPT,
    VM_ON_ERROR,
    VM_WRITE_REPLY,
    /* texts: pushed from here, they are neither hashed nor made anew */
    VM_NAME_KEYS,
    VM_NAME_ARGV,
    VM_RECENT, /* a table: functions of the scripts that eval.c has found last */
};

struct vm {
    lua_State *L;
    _Atomic size_t bytes; /* held by the state; any thread may read */
};

/* Makes an interpreter. `extend` adds to the globals (an unfrozen table on top of the stack) before
 * they are frozen; it leaves the stack as it was. Aborts when there is no memory for it. */
void vm_init(struct vm *vm, void (*extend)(lua_State *L));
/* Frees everything in it. */
void vm_deinit(struct vm *vm);
/* Bytes that it holds. Any thread. */
static inline size_t vm_bytes(const struct vm *vm)
{
    return atomic_load_explicit(&((struct vm *)vm)->bytes, memory_order_relaxed);
}
/* Gives memory back when a script has left much of it behind. */
void vm_tidy(struct vm *vm);

/* Compiles source text as luaL_loadbuffer does, with the checks that Lua 5.1 lacks: no bytecode, no
 * long bracket of absurd level, a bounded length; and nothing is collected while the parser runs
 * (it does not anchor all that it makes). */
int vm_load(lua_State *L, struct slice source, const char *chunk_name) MUST_CHECK;
/* Pushes what is in a slot; never raises. */
static inline void vm_push_slot(lua_State *L, enum vm_slot slot)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, slot);
}
/* Pops a value into a slot. */
static inline void vm_set_slot(lua_State *L, enum vm_slot slot)
{
    lua_rawseti(L, LUA_REGISTRYINDEX, slot);
}
/* Pushes the globals' own table, which only C may write. */
static inline void vm_push_globals(lua_State *L)
{
    vm_push_slot(L, VM_GLOBALS);
}
/* Pops a table: the globals that scripts see from now on (their own table again, if it is that). */
void vm_set_globals(lua_State *L);
/* An __index that raises "nonexistent global variable". */
int vm_no_such_global(lua_State *L);

/* ---- frozen tables (freeze.c) ---- */

/* Replaces the table on top of the stack by its stand-in. */
void freeze_table(lua_State *L);
/* True when the value at `index` is a stand-in; frozen_target also pushes what it stands for. */
bool freeze_is_frozen(lua_State *L, int index);
bool freeze_push_target(lua_State *L, int index);
/* Raises "Attempt to modify a readonly table" if the value is a stand-in. */
void freeze_check(lua_State *L, int index);

/* ---- the basic functions (guards.c) ---- */

/* Replaces the functions of the globals (table on top of the stack) that need a guard. */
void guards_install(lua_State *L);

#endif
