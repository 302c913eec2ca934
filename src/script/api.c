/* See api.h. */
#include "script/api.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "engine/acl.h"
#include "engine/cmdstats.h"
#include "engine/execute.h"
#include "engine/filter.h"
#include "engine/gate.h"
#include "engine/memory_limit.h"
#include "engine/propagate.h"
#include "script/convert.h"
#include "script/debugger.h"
#include "script/lib_priv.h"
#include "script/run.h"
#include "script/world.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Longest error text that is made here; what scripts make themselves is not bounded by it. */
#define ERROR_TEXT_MAX 512
/* Commands that take longer together are followed by a look at the clock. */
#define UNPOLLED_MAX_NS 1000000

/* ---- errors ---- */

/* Raises what run_push_error makes. */
static int raise_text(lua_State *L, const char *text)
{
    run_push_error(L, text);
    return lua_error(L);
}

/* An error of a command that did not run is counted now, and not again when it becomes the script's
 * reply. */
static void push_rejection(lua_State *L, const struct command *cmd, struct slice text)
{
    struct script_run *run = run_current();
    if (unlikely(run->debugger)) {
        debugger_note_error(run->debugger, text);
    }
    errorstats_record(text);
    if (cmd) {
        cmdstats_rejected(cmd);
    }
    lua_createtable(L, 0, 2);
    lua_pushliteral(L, "err");
    lua_pushlstring(L, text.ptr, text.len);
    lua_rawset(L, -3);
    lua_pushliteral(L, "ignore_error_stats_update");
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
}

/* ---- commands ---- */

static struct slice number_argument(struct arena *arena, double number)
{
    char *text = arena_alloc(arena, 32);
    return slice_of(text, convert_number(text, number));
}

/* The arguments of the C function as a request; false when one is neither text nor number. Strings
 * stay Lua's: they are on its stack. */
static bool read_arguments(lua_State *L, struct arena *arena, struct call *n)
{
    n->argc = lua_gettop(L);
    n->argv = arena_alloc(arena, (size_t)n->argc * sizeof(*n->argv));
    for (int i = 0; i < n->argc; i++) {
        int type = lua_type(L, i + 1);
        if (type == LUA_TSTRING) {
            n->argv[i].ptr = lua_tolstring(L, i + 1, &n->argv[i].len);
        } else if (type == LUA_TNUMBER) {
            n->argv[i] = number_argument(arena, lua_tonumber(L, i + 1));
        } else {
            return false;
        }
    }
    return true;
}

#define NO_ARGUMENTS_TEXT "ERR Please specify at least one argument for this redis lib call"
#define BAD_ARGUMENTS_TEXT "ERR Lua redis lib command arguments must be strings or integers"

/* The command that a request names, of a container the subcommand; NULL when there is none. */
static const struct command *find_command(const struct call *n)
{
    const struct command *cmd = n->argv[0].len > 0 ? command_find(n->argv[0]) : NULL;
    return cmd && cmd->subcommands && n->argc > 1 ? command_find_sub(cmd, n->argv[1]) : cmd;
}

/* Why the call may not run for want of memory, in the words of refusal_of: as the script began, or
 * now. */
static const char *memory_refusal(const struct script_run *run, const struct call *n)
{
    if (!(n->cmd->flags & CMD_DENYOOM)) {
        return NULL;
    }
    if (n->cmd->flags & CMD_WRITE && run->short_of_memory) {
        return memory_limit_refusal;
    }
    return run->flags & SCRIPT_ALLOW_OOM ? NULL : memory_limit_now(n->session);
}

/* Why the call may not run, as an error's text; NULL when it may. */
static const char *refusal_of(const struct script_run *run, const struct call *n)
{
    if (!n->cmd) {
        return "ERR Unknown Redis command called from script";
    }
    if (!command_arity_fits(n->cmd, n->argc)) {
        return "ERR Wrong number of args calling Redis command from script";
    }
    bool wants_world = n->cmd->flags & CMD_WORLD && !(n->cmd->flags & CMD_MODULE);
    if (wants_world || n->cmd->flags & (CMD_NOSCRIPT | CMD_TRANSACTION)) {
        return "ERR This Redis command is not allowed from script";
    }
    if (run->stale && !(n->cmd->flags & CMD_STALE)) {
        return "ERR Can not execute the command on a stale replica";
    }
    if (run->read_only && n->cmd->flags & (CMD_WRITE | CMD_MAY_REPLICATE)) {
        return "ERR Write commands are not allowed from read-only scripts.";
    }
    if (run->has_written) {
        return NULL; /* a script that has begun to write is not stopped halfway */
    }
    const char *refusal = n->cmd->flags & CMD_WRITE ? gate_write_refusal(n->session) : NULL;
    return refusal ? refusal : memory_refusal(run, n);
}

/* The same of the caller's rights; `text` is where the error goes. */
static bool is_denied(const struct call *n, char *text, size_t size)
{
    struct buf error = {0};
    static const char code[] = "NOPERM ";
    if (acl_is_unlimited(n->session) || acl_check_call(n, ACL_CONTEXT_LUA, &error) == ACL_ALLOWED) {
        return false;
    }
    snprintf(text, size, "ERR ACL failure in script: %s", buf_cstr(&error) + sizeof(code) - 1);
    buf_deinit(&error);
    return true;
}

/* Runs it whole, timed; what takes long does not keep others from being heard. */
static void run_command(lua_State *L, struct script_run *run, struct call *n)
{
    call_find_keys(n, run->arena);
    uint64_t begin = clock_ticks();
    reply_begin(run->reply, run->resp);
    if (unlikely(n->cmd->flags & CMD_MODULE)) {
        keyspace_assert_exclusive();
        world_call(run, n);
    } else {
        call_run(n);
        while (n->continuation.step && !call_continue(n)) {
        }
    }
    reply_end(run->reply);
    uint64_t ticks = clock_ticks() - begin;
    n->duration_ticks = ticks ? ticks : 1;
    call_account(n, 1, 0, n->now_ms * 1000);
    run->unpolled_ticks += ticks;
    if (clock_ticks_to_ns(run->unpolled_ticks) > UNPOLLED_MAX_NS) {
        run->unpolled_ticks = 0;
        run_poll(L);
    }
}

/* Before the first write: a script that was told to end has not written, and one that writes is not
 * told any more. Raises the error of the former. */
static void begin_to_write(lua_State *L, struct script_run *run)
{
    if (!run->has_written) {
        if (!busy_note_write()) {
            run_poll(L);
        }
        run->has_written = true;
    }
}

/* Filters of modules look at what scripts ask for, too. */
static void filter_arguments(const struct script_run *run, struct call *n)
{
    struct request request = {n->argc, n->argv, NULL};
    filter_request(n->session, &request, run->arena);
    n->argc = request.argc;
    n->argv = request.argv;
}

/* A call that may be done twice. */
static bool only_reads(const struct command *cmd)
{
    return (cmd->flags & (CMD_READONLY | CMD_MAY_REPLICATE)) == CMD_READONLY;
}

/* Runs the command of the C function's arguments and pushes its reply, in their place when it has
 * run; true when that is an error. */
static bool call_command(lua_State *L, struct script_run *run, struct call *n)
{
    char denial[ERROR_TEXT_MAX];
    if (filter_wanted()) {
        filter_arguments(run, n);
    }
    n->cmd = find_command(n);
    if (unlikely(run->debugger)) {
        debugger_note_command(run->debugger, n);
    }
    const char *refusal = refusal_of(run, n);
    if (!refusal && is_denied(n, denial, sizeof(denial))) {
        refusal = denial;
    }
    if (refusal) {
        push_rejection(L, n->cmd, slice_cstr(refusal));
        return true;
    }
    if (unlikely(n->cmd->flags & CMD_MODULE) && world_is_wanted(run, n->cmd)) {
        return run_begin_anew(L);
    }
    run->has_acted |= !only_reads(n->cmd);
    if (n->cmd->flags & CMD_WRITE) {
        begin_to_write(L, run);
    }
    run_command(L, run, n);
    if (unlikely(run->debugger)) {
        debugger_note_reply(run->debugger, run->reply);
    }
    lua_settop(L, 0); /* the arguments are done with: as many as there may be leave no room */
    convert_push(L, run->reply);
    return n->reply->errors > 0 && run->reply->pieces[0].ptr[0] == '-';
}

static int call_generic(lua_State *L, bool raises)
{
    struct script_run *run = run_current();
    if (!run) {
        return raise_text(L, "ERR redis.call/pcall can only be called inside a script invocation");
    }
    reply_reset(run->reply);
    arena_reset(run->arena);
    struct call n = {.session = run->c->session,
                     .db = db_at(run->c->session->db_index),
                     .reply = run->reply,
                     .now_ms = run->c->now_ms,
                     .held = run->c->held,
                     .nested = true};
    if (lua_gettop(L) == 0) {
        run_push_error(L, NO_ARGUMENTS_TEXT);
    } else if (!read_arguments(L, run->arena, &n)) {
        run_push_error(L, BAD_ARGUMENTS_TEXT);
    } else if (!call_command(L, run, &n)) {
        return 1;
    }
    return raises ? lua_error(L) : 1;
}

static int redis_call(lua_State *L)
{
    return call_generic(L, true);
}

static int redis_pcall(lua_State *L)
{
    return call_generic(L, false);
}

static int redis_acl_check_cmd(lua_State *L)
{
    struct script_run *run = run_current();
    int at;
    if (!run) {
        return raise_text(L,
                          "ERR redis.acl_check_cmd can only be called inside a script invocation");
    }
    struct call n = {.session = run->c->session};
    if (lua_gettop(L) == 0) {
        return raise_text(L, NO_ARGUMENTS_TEXT);
    }
    if (!read_arguments(L, run->arena, &n)) {
        return raise_text(L, BAD_ARGUMENTS_TEXT);
    }
    n.cmd = find_command(&n);
    if (!n.cmd) {
        return raise_text(L, "ERR Invalid command passed to redis.acl_check_cmd()");
    }
    lua_pushboolean(L, acl_check(n.session->acl, n.cmd, n.argv, n.argc, &at) == ACL_ALLOWED);
    return 1;
}

/* ---- replies ---- */

#define ARGUMENTS_TEXT "ERR wrong number or type of arguments"

static int redis_status_reply(lua_State *L)
{
    if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TSTRING) {
        run_push_error(L, ARGUMENTS_TEXT);
        return 1;
    }
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "ok");
    lua_pushvalue(L, 1);
    lua_rawset(L, -3);
    return 1;
}

/* A text of one word is no code but all that there is to say. */
static int redis_error_reply(lua_State *L)
{
    if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TSTRING) {
        run_push_error(L, ARGUMENTS_TEXT);
        return 1;
    }
    struct slice text;
    text.ptr = lua_tolstring(L, 1, &text.len);
    if (text.len > 0 && text.ptr[0] == '-') {
        text = slice_of(text.ptr + 1, text.len - 1);
    }
    struct script_run *run = run_current();
    if (run && unlikely(run->debugger)) {
        debugger_note_error_reply(run->debugger, text);
    }
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "err");
    lua_pushstring(L, memchr(text.ptr, ' ', text.len) ? "" : "ERR ");
    lua_pushlstring(L, text.ptr, text.len);
    lua_concat(L, 2);
    lua_rawset(L, -3);
    return 1;
}

static int redis_setresp(lua_State *L)
{
    struct script_run *run = run_current();
    if (lua_gettop(L) != 1) {
        return raise_text(L, "ERR redis.setresp() requires one argument.");
    }
    lua_Number version = lua_tonumber(L, 1);
    if (version != 2 && version != 3) {
        return raise_text(L, "ERR RESP version must be 2 or 3.");
    }
    if (!run) {
        return raise_text(L, "ERR redis.setresp can only be called inside a script invocation");
    }
    run->resp = (int)version;
    return 0;
}

/* ---- the rest ---- */

/* EVP_sha1() would be looked up anew, under a lock of OpenSSL's, for each digest. */
static EVP_MD *sha1;

static void fetch_sha1(void)
{
    sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
}

void api_sha1_hex(const void *bytes, size_t len, char out[40])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned sum_len = 0;
    pthread_once(&once, fetch_sha1);
    if (!sha1 || EVP_Digest(bytes, len, sum, &sum_len, sha1, NULL) != 1 || sum_len != 20) {
        log_warning("OpenSSL has no SHA1");
        abort();
    }
    for (int i = 0; i < 20; i++) {
        out[2 * i] = digits[sum[i] >> 4];
        out[2 * i + 1] = digits[sum[i] & 15];
    }
}

static int redis_sha1hex(lua_State *L)
{
    char hex[40];
    size_t len = 0;
    if (lua_gettop(L) != 1) {
        return raise_text(L, "ERR wrong number of arguments");
    }
    const char *bytes = lua_tolstring(L, 1, &len);
    api_sha1_hex(bytes ? bytes : "", bytes ? len : 0, hex);
    lua_pushlstring(L, hex, sizeof(hex));
    return 1;
}

static int redis_log(lua_State *L)
{
    int count = lua_gettop(L);
    if (count < 2) {
        return raise_text(L, "ERR redis.log() requires two arguments or more.");
    }
    if (!lua_isnumber(L, 1)) {
        return raise_text(L, "ERR First argument must be a number (log level).");
    }
    lua_Number level = lua_tonumber(L, 1);
    if (!(level >= LOG_DEBUG_LEVEL && level <= LOG_WARNING)) {
        return raise_text(L, "ERR Invalid debug level.");
    }
    struct lib_bytes line;
    lib_bytes_init(&line, L);
    for (int i = 2; i <= count; i++) {
        if (lua_isstring(L, i)) {
            size_t len;
            const char *text = lua_tolstring(L, i, &len);
            lib_bytes_append(&line, " ", line.len > 0);
            lib_bytes_append(&line, text, len);
        }
    }
    lib_bytes_put(&line, '\0');
    log_write((enum log_level)(int)level, "%s", line.data);
    if (run_current()) {
        run_current()->has_acted = true;
    }
    return 0;
}

static int redis_replicate_commands(lua_State *L)
{
    lua_pushboolean(L, 1);
    return 1;
}

/* Tells whether the script stops. */
static int redis_breakpoint(lua_State *L)
{
    struct script_run *run = run_current();
    bool debugged = run && run->debugger;
    if (debugged) {
        debugger_stop_soon(run->debugger);
    }
    lua_pushboolean(L, debugged);
    return 1;
}

/* Nothing outside of a debugger's session. */
static int redis_debug(lua_State *L)
{
    struct script_run *run = run_current();
    if (run && run->debugger) {
        debugger_tell_values(run->debugger, L);
    }
    return 0;
}

/* Redis's numbers. Peers are replicas, as far as scripts know. */
enum { REPL_NONE = 0, REPL_AOF = 1, REPL_REPLICA = 2, REPL_ALL = 3 };

/* Any number is cut to a whole one, and what is none is 0, as in Redis. */
static int redis_set_repl(lua_State *L)
{
    if (lua_gettop(L) != 1) {
        return raise_text(L, "ERR redis.set_repl() requires one argument.");
    }
    lua_Number flags = lua_tonumber(L, 1);
    if (!(flags > -1 && flags < REPL_ALL + 1)) {
        return raise_text(
            L, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
    }
    unsigned bits = (unsigned)(int)flags;
    propagate_aim((bits & REPL_AOF ? PROPAGATE_TO_AOF : 0) |
                  (bits & REPL_REPLICA ? PROPAGATE_TO_REPLICAS | PROPAGATE_TO_PEERS : 0));
    return 0;
}

static const luaL_Reg functions[] = {
    {"call", redis_call},
    {"pcall", redis_pcall},
    {"acl_check_cmd", redis_acl_check_cmd},
    {"status_reply", redis_status_reply},
    {"error_reply", redis_error_reply},
    {"setresp", redis_setresp},
    {"sha1hex", redis_sha1hex},
    {"log", redis_log},
    {"set_repl", redis_set_repl},
    {NULL, NULL},
};

static const luaL_Reg eval_functions[] = {
    {"replicate_commands", redis_replicate_commands},
    {"breakpoint", redis_breakpoint},
    {"debug", redis_debug},
    {NULL, NULL},
};

static const struct {
    const char *name;
    int value;
} constants[] = {
    {"LOG_DEBUG", LOG_DEBUG_LEVEL}, {"LOG_VERBOSE", LOG_VERBOSE},   {"LOG_NOTICE", LOG_NOTICE},
    {"LOG_WARNING", LOG_WARNING},   {"REPL_NONE", REPL_NONE},       {"REPL_AOF", REPL_AOF},
    {"REPL_SLAVE", REPL_REPLICA},   {"REPL_REPLICA", REPL_REPLICA}, {"REPL_ALL", REPL_ALL},
};

/* The functions and constants whose names begin so; "" takes all. */
static void add_fields(lua_State *L, const char *prefix)
{
    size_t len = strlen(prefix);
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        if (strncmp(constants[i].name, prefix, len) == 0) {
            lua_pushinteger(L, constants[i].value);
            lua_setfield(L, -2, constants[i].name);
        }
    }
    lua_pushliteral(L, REDIS_COMPAT_VERSION);
    lua_setfield(L, -2, "REDIS_VERSION");
    lua_pushinteger(L, REDIS_COMPAT_VERSION_NUM);
    lua_setfield(L, -2, "REDIS_VERSION_NUM");
}

void api_add_load_fields(lua_State *L)
{
    lua_pushcfunction(L, redis_log);
    lua_setfield(L, -2, "log");
    add_fields(L, "LOG_");
}

/* To the table on top. */
static void add_functions(lua_State *L, const luaL_Reg *rows)
{
    for (const luaL_Reg *r = rows; r->name; r++) {
        lua_pushcfunction(L, r->func);
        lua_setfield(L, -2, r->name);
    }
}

/* The table on top becomes a global by its names. */
static void name_table(lua_State *L)
{
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "keydb");
    lua_setfield(L, -2, "redis");
}

void api_install_for_functions(lua_State *L)
{
    lua_newtable(L);
    add_functions(L, functions);
    add_fields(L, "");
    name_table(L);
}

void api_install_for_eval(lua_State *L)
{
    lua_newtable(L);
    add_functions(L, functions);
    add_functions(L, eval_functions);
    add_fields(L, "");
    name_table(L);
}
