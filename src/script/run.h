/* A script that runs: who called it, what it may do, what it has done, and its end as a reply.
 *
 * One script runs at a time, under the keyspace lock in exclusive mode. Its commands are calls of
 * the caller's own session, nested in the call that runs the script: the caller's user is checked
 * for each of them. What the script sets of the session (SELECT) holds until its end.
 *
 * State: keyspace. */
#ifndef SCRIPT_RUN_H
#define SCRIPT_RUN_H

#include "engine/busy.h"
#include "engine/call.h"
#include "script/vm.h"

/* What a script may do, as its shebang line or its registration says. */
enum script_flag {
    SCRIPT_NO_WRITES = 1 << 0,
    SCRIPT_ALLOW_OOM = 1 << 1,
    SCRIPT_ALLOW_STALE = 1 << 2,
    SCRIPT_NO_CLUSTER = 1 << 3,
    SCRIPT_ALLOW_CROSS_SLOT_KEYS = 1 << 4,
    SCRIPT_UNDECLARED = 1 << 5, /* ours: no shebang, so that it says nothing of itself */
};
/* Names of the bits 0.., NULL-terminated. */
extern const char *const script_flag_names[];
/* The bit of a flag's name, 0 when there is none. */
unsigned script_flag_of(struct slice name);

struct debugger;

struct script_run {
    struct debugger *debugger; /* whose session it is (debugger.h); NULL: it is not debugged */
    struct call *c;    /* argv: name of the command, script, count of keys, keys, arguments */
    struct slice name; /* SHA1 or the function's name; as errors show it */
    int key_count;
    unsigned flags;     /* enum script_flag */
    bool is_function;   /* keys and arguments are its parameters, not globals */
    bool command_is_ro; /* EVAL_RO and its kin */
    /* Called protected: pushes the function to run; or replies why there is none, pushes nothing
     * and returns false. */
    bool (*push_function)(lua_State *L, struct script_run *run);
    /* set while it runs */
    struct vm *vm;
    bool has_globals; /* KEYS and ARGV are set */
    bool read_only;   /* writes are refused */
    bool has_written;
    bool has_acted;       /* done what may not be done twice, since it began */
    bool has_world;       /* which was stopped for it (world.h) */
    bool asks;            /* it has called a command that needs the world, or may */
    bool stale;           /* as it began: a replica without its primary, told not to serve that */
    bool short_of_memory; /* as it began: nothing that needs memory before the first write */
    int resp;             /* 2, or 3 after redis.setresp(3) */
    uint64_t unpolled_ticks; /* spent in commands since the last look at the clock */
    struct arena *arena;
    struct reply *reply; /* of its commands */
};

/* Flags of a call (enum command_flag), from those of its command and those of its script: what
 * command.h calls flags_of. */
uint32_t run_command_flags(uint32_t flags, unsigned script_flags);
/* Reads the count of keys at argument 2; false with the error replied. */
bool run_parse_keys(struct script_run *run) MUST_CHECK;
/* Whether it may run at all; false with the error replied. */
bool run_is_allowed(struct script_run *run) MUST_CHECK;
/* Sets the slots of a new interpreter that runs take (vm.h). May raise. */
void run_install(lua_State *L);
/* Runs the script that run->push_function finds, and replies what it returns, or its error. False:
 * it has replied nothing, and must be found and run once more, in the world, which stands now
 * (world.h). */
bool run_execute(struct vm *vm, struct script_run *run) MUST_CHECK REQUIRES(keyspace_lock);
/* The script that is running; NULL between scripts, and while a library is loaded. */
struct script_run *run_current(void);
/* While one of its commands puts libraries in the place of those that there are: as if none ran;
 * and back. It is no function. */
struct script_run *run_set_aside(void);
void run_take_up(struct script_run *run);

/* Replies an error that is a value of Lua on top of the stack (a table as run_push_error makes, or
 * a text), and pops it. */
void run_reply_error(lua_State *L, struct call *c, const struct slice *name);
/* Pushes an error as redis.error_reply makes it: {err = text}. */
void run_push_error(lua_State *L, const char *text);
/* Message handler for lua_pcall: makes a table of any error, with the place where it happened. */
int run_on_error(lua_State *L);

/* True when the script has to end: who catches errors raises them again. */
bool run_is_killed(void);
/* Ends the script, so that run_execute returns false: raises an error that nothing catches. */
int run_begin_anew(lua_State *L);
/* What the hook does: looks at the clock, and raises an error when the script has to end. For C
 * code that may go on for long without Lua's instructions. */
void run_poll(lua_State *L);

/* True when the script has used so much of the thread's stack that no coroutine may begin a new
 * level: there is room left for all that one level may call. */
bool run_stack_is_deep(void);

/* A library of functions is being loaded, in so much time (an error of Lua says that it is over).
 */
void run_begin_loading(lua_State *L, uint64_t limit_ms);
void run_end_loading(void);

/* Frees what is kept between runs. */
void run_teardown(void);

#endif
