/* See run.h. */
#include "script/run.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/cmdstats.h"
#include "engine/gate.h"
#include "engine/memory_limit.h"
#include "engine/propagate.h"
#include "script/convert.h"
#include "script/debugger.h"
#include "script/libraries.h"
#include "script/world.h"

#include <assert.h>
#include <stdio.h>

#define ARENA_CHUNK_BYTES ((size_t)16 * 1024)

static struct {
    struct script_run *current;
    struct arena arena; /* keys and numbers of one command */
    struct reply reply;
    bool is_set_up;
    bool begins_anew;       /* the run ends, to begin in the world */
    const char *stack;      /* where the run began */
    uint64_t load_until_ns; /* 0: no library is being loaded */
    uint64_t hooked_ticks;  /* when the hook was last left, or served others */
    uint64_t polled_ticks;  /* when others were last looked at */
} state;

const char *const script_flag_names[] = {
    "no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys", NULL};

unsigned script_flag_of(struct slice name)
{
    for (unsigned i = 0; script_flag_names[i]; i++) {
        if (slice_equal(name, slice_cstr(script_flag_names[i]))) {
            return 1u << i;
        }
    }
    return 0;
}

struct script_run *run_current(void)
{
    return state.current;
}

struct script_run *run_set_aside(void)
{
    struct script_run *run = state.current;
    state.current = NULL;
    return run;
}

void run_take_up(struct script_run *run)
{
    assert(!state.current);
    state.current = run;
}

bool run_is_killed(void)
{
    return busy_is_killed() || state.begins_anew;
}

int run_begin_anew(lua_State *L)
{
    state.begins_anew = true;
    run_poll(L);
    return 0;
}

/* ---- before ---- */

uint32_t run_command_flags(uint32_t flags, unsigned script_flags)
{
    if (script_flags & SCRIPT_UNDECLARED) {
        return flags;
    }
    /* What is said replaces the guess: a script that may write has CMD_WRITE, one that may not does
     * not replicate. */
    flags &= ~(uint32_t)(CMD_WRITE | CMD_DENYOOM | CMD_STALE | CMD_MAY_REPLICATE);
    flags |= script_flags & SCRIPT_NO_WRITES ? 0 : CMD_WRITE;
    flags |= script_flags & (SCRIPT_NO_WRITES | SCRIPT_ALLOW_OOM) ? 0 : CMD_DENYOOM;
    return flags | (script_flags & SCRIPT_ALLOW_STALE ? CMD_STALE : 0);
}

bool run_parse_keys(struct script_run *run)
{
    int64_t count;
    struct call *c = run->c;
    if (!call_arg_i64_error(c, 2, &count,
                            run->is_function ? "ERR Bad number of keys provided"
                                             : "ERR value is not an integer or out of range")) {
        return false;
    }
    if (count > c->argc - 3) {
        reply_error(c->reply, "ERR Number of keys can't be greater than number of args");
        return false;
    }
    if (count < 0) {
        reply_error(c->reply, "ERR Number of keys can't be negative");
        return false;
    }
    run->key_count = (int)count;
    return true;
}

/* Why a script that may write must not run now; NULL when it may. */
static const char *write_refusal(const struct script_run *run)
{
    const char *refusal = gate_write_refusal(run->c->session);
    if (!refusal && run->command_is_ro) {
        refusal = "ERR Can not execute a script with write flag using *_ro command.";
    }
    return refusal;
}

/* Why the script must not run at all now; NULL when it may. */
static const char *refusal_of(const struct script_run *run)
{
    static const char no_memory[] =
        "OOM allow-oom flag is not set on the script, can not run it when "
        "used memory > 'maxmemory'";
    const char *short_of_memory = memory_limit_now(run->c->session), *refusal = NULL;
    bool declared = !(run->flags & SCRIPT_UNDECLARED);
    if (declared && !(run->flags & (SCRIPT_NO_WRITES | SCRIPT_ALLOW_OOM)) && short_of_memory) {
        return run->c->nested ? no_memory : short_of_memory;
    }
    if (declared && !run->read_only && run->short_of_memory) {
        return no_memory;
    }
    if (declared && !(run->flags & SCRIPT_NO_WRITES)) {
        refusal = write_refusal(run);
    }
    /* Who says nothing of itself does not say that it may see old data. */
    bool may_be_stale = declared && run->flags & SCRIPT_ALLOW_STALE;
    return refusal || may_be_stale ? refusal : gate_stale_refusal(run->c->session);
}

bool run_is_allowed(struct script_run *run)
{
    const struct session *s = run->c->session;
    run->read_only = run->command_is_ro || run->flags & SCRIPT_NO_WRITES;
    run->short_of_memory = !(run->flags & SCRIPT_ALLOW_OOM) && memory_limit_now(s);
    run->stale = gate_stale_refusal(s) != NULL;
    const char *refusal = refusal_of(run);
    if (refusal) {
        reply_error(run->c->reply, refusal);
    }
    return !refusal;
}

/* ---- errors ---- */

void run_push_error(lua_State *L, const char *text)
{
    if (state.current && unlikely(state.current->debugger)) {
        debugger_note_error(state.current->debugger, slice_cstr(text));
    }
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "err");
    lua_pushstring(L, text);
    lua_rawset(L, -3);
}

/* Pushes the text of the value at 1, whatever it is. */
static void push_text(lua_State *L)
{
    switch (lua_type(L, 1)) {
    case LUA_TSTRING:
    case LUA_TNUMBER:
        lua_pushvalue(L, 1);
        lua_tostring(L, -1);
        break;
    case LUA_TBOOLEAN:
        lua_pushstring(L, lua_toboolean(L, 1) ? "true" : "false");
        break;
    case LUA_TNIL:
        lua_pushliteral(L, "nil");
        break;
    default:
        lua_pushfstring(L, "%s: %p", luaL_typename(L, 1), lua_topointer(L, 1));
    }
}

int run_on_error(lua_State *L)
{
    lua_Debug where;
    bool known = false;
    lua_settop(L, 1);
    /* Level 1 raised it; where that is a function in C, its caller is to blame. */
    for (int level = 1; level <= 2 && lua_getstack(L, level, &where); level++) {
        lua_getinfo(L, "Sl", &where);
        known = true;
        if (where.what[0] != 'C') {
            break;
        }
    }
    if (!lua_istable(L, 1) || freeze_is_frozen(L, 1)) {
        lua_createtable(L, 0, 3);
        lua_pushliteral(L, "err");
        lua_pushliteral(L, "ERR ");
        push_text(L);
        lua_concat(L, 2);
        lua_rawset(L, -3);
    }
    if (known) {
        lua_pushliteral(L, "source");
        lua_pushstring(L, where.source);
        lua_rawset(L, -3);
        lua_pushliteral(L, "line");
        lua_pushinteger(L, where.currentline);
        lua_rawset(L, -3);
    }
    return 1;
}

/* The text of a field of the error on top; the value stays on the stack. ptr NULL when it is none.
 */
static struct slice error_field(lua_State *L, const char *name)
{
    struct slice text = {NULL, 0};
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    if (lua_isstring(L, -1)) {
        text.ptr = lua_tolstring(L, -1, &text.len);
    }
    lua_insert(L, -2);
    return text;
}

static bool is_counted(lua_State *L)
{
    lua_pushliteral(L, "ignore_error_stats_update");
    lua_rawget(L, -2);
    bool counted = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return counted;
}

/* Replies an error that was counted when it happened: not once more, but for the command itself. */
static void reply_counted(struct call *c, struct slice text)
{
    uint32_t errors = c->reply->errors;
    reply_error_slice(c->reply, text);
    c->reply->errors = errors;
    c->failed = true;
    cmdstats_failed(c->cmd);
}

/* Long texts are the script's own: they are not cut, but where memory is short. */
void run_reply_error(lua_State *L, struct call *c, const struct slice *name)
{
    struct buf text = {0};
    bool counted = false;
    int top = lua_gettop(L);
    if (lua_istable(L, -1)) {
        counted = is_counted(L);
        struct slice message = error_field(L, "err");
        struct slice source = error_field(L, "source"), line = error_field(L, "line");
        buf_append_slice(&text, message.ptr ? message : SLICE("ERR unknown error"));
        if (source.ptr && line.ptr) {
            buf_printf(&text, " script: %.*s, on ", (int)name->len, name->ptr);
            buf_append_slice(&text, source);
            buf_printf(&text, ":%.*s.", (int)line.len, line.ptr);
        }
    } else {
        size_t len = 0;
        const char *message = lua_tolstring(L, -1, &len);
        buf_append_cstr(&text, "ERR ");
        buf_append_slice(&text, message ? slice_of(message, len) : SLICE("unknown error"));
    }
    if (counted) {
        reply_counted(c, buf_slice(&text));
    } else {
        reply_error_slice(c->reply, buf_slice(&text));
    }
    buf_deinit(&text);
    lua_settop(L, top - 1);
}

/* ---- the C stack ---- */

/* Threads have 8 MiB; within one coroutine Lua allows 200 calls from C, less than 1 MiB even where
 * a sanitizer's frames are large. */
#define STACK_MAX_BYTES ((size_t)2 << 20)

static __attribute__((noinline)) const char *stack_now(void)
{
    return __builtin_frame_address(0);
}

bool run_stack_is_deep(void)
{
    return state.current && (size_t)(state.stack - stack_now()) > STACK_MAX_BYTES;
}

/* ---- the hook ---- */

#define KILLED_TEXT "ERR Script killed by user with SCRIPT KILL..."

/* Instructions between two calls of the hook, which reads a clock: 10 microseconds, or much more
 * where most are calls of functions in C. */
#define HOOK_INSTRUCTIONS 1000
/* Least time between two looks at what others want. */
#define POLL_NS 1000000

/* Instructions that take long (a comparison of long strings, chains of strings whose hashes Lua's
 * sampling makes equal) are counted in smaller portions. */
#define HOOK_FEW_INSTRUCTIONS 4
#define HOOK_LATE_NS 5000000

/* run_poll, at a time that was read just now. */
static void poll_at(lua_State *L, uint64_t now_ticks);

static void on_count(lua_State *L, lua_Debug *where)
{
    uint64_t now_ticks = clock_ticks();
    bool late = clock_ticks_to_ns(now_ticks - state.hooked_ticks) > HOOK_LATE_NS;
    (void)where;
    if (late && lua_gethookcount(L) == HOOK_INSTRUCTIONS) {
        lua_sethook(L, on_count, LUA_MASKCOUNT, HOOK_FEW_INSTRUCTIONS);
    } else if (!late && lua_gethookcount(L) == HOOK_FEW_INSTRUCTIONS) {
        lua_sethook(L, on_count, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
    }
    state.hooked_ticks = now_ticks;
    poll_at(L, now_ticks);
}

void run_poll(lua_State *L)
{
    poll_at(L, clock_ticks());
}

static void poll_at(lua_State *L, uint64_t now_ticks)
{
    if (!state.current) {
        if (state.load_until_ns && clock_mono_ns() > state.load_until_ns) {
            run_push_error(L, "ERR FUNCTION LOAD timeout");
            lua_error(L);
        }
        return;
    }
    if (clock_ticks_to_ns(now_ticks - state.polled_ticks) >= POLL_NS && !run_is_killed()) {
        busy_poll();
        if (unlikely(keyspace_is_busy())) {
            world_let_go(state.current);
        }
        state.polled_ticks = state.hooked_ticks = clock_ticks();
    }
    if (run_is_killed()) {
        /* At each instruction from now on: whatever catches it does not get far. */
        lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
        lua_sethook(state.current->vm->L, on_count, LUA_MASKCOUNT, 1);
        run_push_error(L, KILLED_TEXT);
        lua_error(L);
    }
}

void run_begin_loading(lua_State *L, uint64_t limit_ms)
{
    state.load_until_ns = clock_mono_ns() + limit_ms * 1000000;
    lua_sethook(L, on_count, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
}

void run_end_loading(void)
{
    state.load_until_ns = 0;
}

/* ---- the run ---- */

static void push_arguments(lua_State *L, const struct call *c, int from, int to)
{
    lua_createtable(L, to - from, 0);
    for (int i = from; i < to; i++) {
        lua_pushlstring(L, c->argv[i].ptr, c->argv[i].len);
        lua_rawseti(L, -2, i - from + 1);
    }
}

static void set_global_from_top(lua_State *L, enum vm_slot name)
{
    vm_push_globals(L);
    vm_push_slot(L, name);
    lua_pushvalue(L, -3);
    lua_rawset(L, -3);
    lua_pop(L, 2);
}

/* Called protected: the function at 1, the run at 2. Returns the script's value. */
static int call_script(lua_State *L)
{
    struct script_run *run = lua_touserdata(L, 2);
    const struct call *c = run->c;
    lua_settop(L, 1);
    push_arguments(L, c, 3, 3 + run->key_count);
    push_arguments(L, c, 3 + run->key_count, c->argc);
    if (!run->is_function) {
        set_global_from_top(L, VM_NAME_ARGV);
        set_global_from_top(L, VM_NAME_KEYS);
        run->has_globals = true;
    }
    lua_call(L, run->is_function ? 2 : 0, 1);
    return 1;
}

static int write_reply(lua_State *L)
{
    struct script_run *run = lua_touserdata(L, 2);
    lua_settop(L, 1);
    if (lua_istable(L, 1) && is_counted(L)) {
        struct slice message = error_field(L, "err");
        if (message.ptr) {
            reply_counted(run->c, message);
            return 0;
        }
    }
    convert_reply(L, run->c->reply, run->resp == 3);
    return 0;
}

/* Replies the value on top, and pops it. Only a table may raise an error on the way. */
static void reply_value(lua_State *L, struct script_run *run)
{
    if (!lua_istable(L, -1)) {
        convert_reply(L, run->c->reply, run->resp == 3);
        return;
    }
    struct reply_mark before = reply_mark(run->c->reply);
    vm_push_slot(L, VM_WRITE_REPLY);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, run);
    if (lua_pcall(L, 2, 0, 0) != 0) {
        reply_rewind(run->c->reply, before);
        run_reply_error(L, run->c, &run->name);
    }
}

/* A script that was told to end may have come to it by another error on the way (a stack that was
 * full at that moment): the error on top says what it is. */
static void name_the_end(lua_State *L)
{
    if (!lua_istable(L, -1)) {
        lua_pop(L, 1);
        run_push_error(L, KILLED_TEXT);
        return;
    }
    lua_pushliteral(L, "err");
    lua_pushliteral(L, KILLED_TEXT);
    lua_rawset(L, -3);
}

/* Called protected: all of a run that uses Lua. */
static int run_protected(lua_State *L)
{
    struct script_run *run = lua_touserdata(L, 1);
    int db_index = run->c->session->db_index;
    vm_push_slot(L, VM_ON_ERROR);
    vm_push_slot(L, VM_CALL_SCRIPT);
    if (!run->push_function(L, run)) {
        return 0;
    }
    lua_pushlightuserdata(L, run);
    int status = lua_pcall(L, 2, 1, 2);
    run->c->session->db_index = db_index;
    if (unlikely(state.begins_anew)) {
        return 0;
    }
    if (status == 0) {
        reply_value(L, run);
    } else {
        if (busy_is_killed()) {
            name_the_end(L);
        }
        run_reply_error(L, run->c, &run->name);
    }
    return 0;
}

/* Not protected: to set to nil what is there needs no memory. */
static void forget_arguments(lua_State *L)
{
    lua_pushnil(L);
    set_global_from_top(L, VM_NAME_KEYS);
    lua_pushnil(L);
    set_global_from_top(L, VM_NAME_ARGV);
}

void run_install(lua_State *L)
{
    static const struct {
        enum vm_slot slot;
        lua_CFunction function;
    } functions[] = {{VM_RUN, run_protected},
                     {VM_CALL_SCRIPT, call_script},
                     {VM_ON_ERROR, run_on_error},
                     {VM_WRITE_REPLY, write_reply}};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        lua_pushcfunction(L, functions[i].function);
        vm_set_slot(L, functions[i].slot);
    }
    lua_pushliteral(L, "KEYS");
    vm_set_slot(L, VM_NAME_KEYS);
    lua_pushliteral(L, "ARGV");
    vm_set_slot(L, VM_NAME_ARGV);
    lua_newtable(L);
    vm_set_slot(L, VM_RECENT);
}

static void begin(struct vm *vm, struct script_run *run)
{
    assert(!state.current);
    if (!state.is_set_up) {
        arena_init(&state.arena, ARENA_CHUNK_BYTES);
        reply_init(&state.reply);
        state.is_set_up = true;
    }
    run->vm = vm;
    run->resp = 2;
    run->has_written = run->has_acted = run->asks = state.begins_anew = false;
    run->arena = &state.arena;
    run->reply = &state.reply;
    run->c->session->script = run;
    state.current = run;
    state.stack = stack_now();
    state.polled_ticks = state.hooked_ticks = clock_ticks();
    if (unlikely(run->debugger)) {
        debugger_attach(run->debugger, vm->L);
    } else {
        lua_sethook(vm->L, on_count, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
    }
    busy_begin(run->is_function ? BUSY_FUNCTION : BUSY_SCRIPT, run->name, run->c);
}

static void end(struct script_run *run)
{
    busy_end();
    state.current = NULL;
    run->c->session->script = NULL;
    reply_end(&state.reply);
    reply_reset(&state.reply);
    arena_reset(&state.arena);
}

bool run_execute(struct vm *vm, struct script_run *run)
{
    lua_State *L = vm->L;
    struct reply_mark before = reply_mark(run->c->reply);
    int db_index = run->c->session->db_index;
    assert(lua_gettop(L) == 0);
    begin(vm, run);
    script_reset_libraries(L);
    propagate_begin_unit();
    vm_push_slot(L, VM_RUN);
    lua_pushlightuserdata(L, run);
    if (lua_pcall(L, 1, 0, 0) != 0) {
        /* No memory, outside of what the script itself can catch. */
        run->c->session->db_index = db_index;
        reply_rewind(run->c->reply, before);
        run_reply_error(L, run->c, &run->name);
    }
    lua_settop(L, 0);
    propagate_aim(PROPAGATE_TO_ALL); /* whatever the script has set */
    if (!busy_is_at_end()) {
        propagate_end_unit();
    }
    end(run);
    if (run->has_globals) { /* else the next run sets those that there are */
        forget_arguments(L);
    }
    vm_tidy(vm);
    if (unlikely(state.begins_anew)) {
        state.begins_anew = false;
        reply_rewind(run->c->reply, before);
        world_stop(run);
        return false;
    }
    return true;
}

void run_teardown(void)
{
    if (state.is_set_up) {
        reply_deinit(&state.reply);
        arena_deinit(&state.arena);
        state.is_set_up = false;
    }
}
