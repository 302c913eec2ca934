/* The words of the debugger's client: see debugger_priv.h. Their answers are Redis's, word for
 * word, but for `help`, which is our own. */
#include "script/debugger_priv.h"

#include "base/clock.h"
#include "base/num.h"
#include "engine/busy.h"

#include <limits.h>
#include <stdlib.h>

/* What `list` shows around a line; `whole` is more than there are. */
#define CONTEXT_LINES 5
/* Instructions between two looks at the clock by code of `eval`. */
#define EVAL_INSTRUCTIONS 1000

/* A word as a number as atoi() reads it, cut to an int. */
static int number_of(struct slice word)
{
    char text[32];
    size_t len = word.len < sizeof(text) ? word.len : sizeof(text) - 1;
    memcpy(text, word.ptr, len);
    text[len] = '\0';
    long number = strtol(text, NULL, 10);
    return number > INT_MAX ? INT_MAX : number < INT_MIN ? INT_MIN : (int)number;
}

/* ---- going on ---- */

static bool do_step(struct debugger *d, lua_State *L, const struct slice *words, int count)
{
    (void)L, (void)words, (void)count;
    d->steps = true;
    return true;
}

static bool do_continue(struct debugger *d, lua_State *L, const struct slice *words, int count)
{
    (void)d, (void)L, (void)words, (void)count;
    return true;
}

static bool do_abort(struct debugger *d, lua_State *L, const struct slice *words, int count)
{
    (void)d, (void)words, (void)count;
    run_push_error(L, "ERR script aborted for user request");
    lua_error(L);
    return true;
}

/* ---- the source ---- */

static bool do_list(struct debugger *d, lua_State *L, const struct slice *words, int count)
{
    (void)L;
    int around = d->line, context = CONTEXT_LINES;
    if (count > 1) {
        int line = number_of(words[1]);
        around = line > 0 ? line : around;
    }
    if (count > 2) {
        context = number_of(words[2]);
    }
    debugger_add_source(d, around, context);
    return false;
}

static bool do_whole(struct debugger *d, lua_State *L, const struct slice *words, int count)
{
    (void)L, (void)words, (void)count;
    debugger_add_source(d, 0, 0);
    return false;
}

static bool do_trace(struct debugger *d, lua_State *L, const struct slice *words, int count)
{
    (void)words, (void)count;
    lua_Debug frame;
    int level = 0;
    for (; lua_getstack(L, level, &frame); level++) {
        lua_getinfo(L, "Snl", &frame);
        if (strstr(frame.short_src, "user_script")) {
            debugger_add_linef(d, "%s %s:", level == 0 ? "In" : "From",
                               frame.name ? frame.name : "top level");
            debugger_add_source_line(d, frame.currentline);
        }
    }
    if (level == 0) {
        debugger_add_line(d, SLICE("<error> Can't retrieve Lua stack."));
    }
    return false;
}

/* ---- breakpoints ---- */

static void list_breakpoints(struct debugger *d)
{
    if (d->breakpoint_count == 0) {
        debugger_add_line(d, SLICE("No breakpoints set. Use 'b <line>' to add one."));
        return;
    }
    debugger_add_linef(d, "%d breakpoints set:", d->breakpoint_count);
    for (int i = 0; i < d->breakpoint_count; i++) {
        debugger_add_source_line(d, d->breakpoints[i]);
    }
}

static void add_breakpoint(struct debugger *d, int64_t line)
{
    if (d->breakpoint_count == DEBUGGER_BREAKPOINTS_MAX) {
        debugger_add_line(d, SLICE("Too many breakpoints set."));
    } else if (line > debugger_count_lines(d) || debugger_has_breakpoint(d, (int)line)) {
        debugger_add_line(d, SLICE("Wrong line number."));
    } else {
        d->breakpoints[d->breakpoint_count++] = (int)line;
        debugger_add_source(d, (int)line, 1);
    }
}

static void remove_breakpoint(struct debugger *d, int64_t line)
{
    for (int i = 0; i < d->breakpoint_count; i++) {
        if (d->breakpoints[i] == line) {
            d->breakpoint_count--;
            memmove(&d->breakpoints[i], &d->breakpoints[i + 1],
                    (size_t)(d->breakpoint_count - i) * sizeof(d->breakpoints[0]));
            debugger_add_line(d, SLICE("Breakpoint removed."));
            return;
        }
    }
    debugger_add_line(d, SLICE("No breakpoint in the specified line."));
}

static void break_at(struct debugger *d, struct slice word)
{
    int64_t line;
    if (!num_parse_i64(word, &line) || line == INT64_MIN) {
        struct buf text = {0};
        buf_append_cstr(&text, "Invalid argument:'");
        buf_append_slice(&text, word);
        buf_append_char(&text, '\'');
        debugger_add_line(d, buf_slice(&text));
        buf_deinit(&text);
    } else if (line > 0) {
        add_breakpoint(d, line);
    } else if (line < 0) {
        remove_breakpoint(d, -line);
    } else {
        d->breakpoint_count = 0;
        debugger_add_line(d, SLICE("All breakpoints removed."));
    }
}

static bool do_break(struct debugger *d, lua_State *L, const struct slice *words, int count)
{
    (void)L;
    if (count == 1) {
        list_breakpoints(d);
    }
    for (int i = 1; i < count; i++) {
        break_at(d, words[i]);
    }
    return false;
}

/* ---- values ---- */

/* The value on top, behind `prefix`; pops it. */
static void add_value(struct debugger *d, lua_State *L, const char *prefix)
{
    struct buf text = {0};
    buf_append_cstr(&text, prefix);
    debugger_show_value(L, -1, &text, debugger_line_limit(d));
    debugger_add_cut_line(d, &text);
    buf_deinit(&text);
    lua_pop(L, 1);
}

static void print_all(struct debugger *d, lua_State *L)
{
    lua_Debug frame;
    const char *name;
    int shown = 0;
    bool has_frame = lua_getstack(L, 0, &frame);
    for (int i = 1; has_frame && (name = lua_getlocal(L, &frame, i)); i++) {
        if (strstr(name, "(*temporary)")) {
            lua_pop(L, 1);
            continue;
        }
        struct buf prefix = {0};
        buf_printf(&prefix, "<value> %s = ", name);
        add_value(d, L, buf_cstr(&prefix));
        buf_deinit(&prefix);
        shown++;
    }
    if (shown == 0) {
        debugger_add_line(d, SLICE("No local variables in the current context."));
    }
}

/* Pushes the local of that name, the innermost one; false when there is none. */
static bool push_local(lua_State *L, struct slice wanted)
{
    lua_Debug frame;
    const char *name;
    for (int level = 0; lua_getstack(L, level, &frame); level++) {
        for (int i = 1; (name = lua_getlocal(L, &frame, i)); i++) {
            if (slice_equal(slice_cstr(name), wanted)) {
                return true;
            }
            lua_pop(L, 1);
        }
    }
    return false;
}

static bool do_print(struct debugger *d, lua_State *L, const struct slice *words, int count)
{
    if (count != 2) {
        print_all(d, L);
        return false;
    }
    bool is_global = slice_equal(words[1], SLICE("ARGV")) || slice_equal(words[1], SLICE("KEYS"));
    bool found = push_local(L, words[1]);
    if (!found && is_global) {
        vm_push_globals(L);
        lua_pushlstring(L, words[1].ptr, words[1].len);
        lua_rawget(L, -2);
        lua_replace(L, -2);
        found = true;
    }
    if (found) {
        add_value(d, L, "<value> ");
    } else {
        debugger_add_line(d, SLICE("No such variable."));
    }
    return false;
}

static bool do_maxlen(struct debugger *d, lua_State *L, const struct slice *words, int count)
{
    (void)L;
    if (count == 2) {
        int len = number_of(words[1]);
        d->hinted = true; /* of what he has just used */
        d->maxlen = len == 0 ? 0 : len <= DEBUGGER_LEN_MIN ? DEBUGGER_LEN_MIN : (size_t)len;
    }
    if (d->maxlen) {
        debugger_add_linef(d, "<value> replies are truncated at %zu bytes.", d->maxlen);
    } else {
        debugger_add_line(d, SLICE("<value> replies are unlimited."));
    }
    return false;
}

/* ---- code ---- */

/* Of the code that runs; hooks do not see the session. */
static struct {
    uint64_t begin_ns;
    int64_t limit_ms;
} code;

static void watch_code(lua_State *L, lua_Debug *where)
{
    (void)where;
    run_poll(L);
    if ((clock_mono_ns() - code.begin_ns) / 1000000 >= (uint64_t)code.limit_ms) {
        run_push_error(L, "ERR the code takes too long");
        lua_error(L);
    }
}

/* Runs the function and its arguments on top of `co`, a coroutine of its own: hooks do not run
 * within hooks, and here one has to end what takes long. True: one value is on top. False: the
 * error is. Raises when the script has to end. */
static bool run_aside(struct debugger *d, lua_State *L, lua_State *co, int arguments)
{
    code.begin_ns = clock_mono_ns();
    code.limit_ms = d->limit_ms;
    lua_sethook(co, watch_code, LUA_MASKCOUNT, EVAL_INSTRUCTIONS);
    int status = lua_resume(co, arguments);
    if (run_is_killed()) {
        run_poll(L);
    }
    if (status == 0 || status == LUA_YIELD) {
        lua_settop(co, lua_gettop(co) > 0 ? 1 : 0);
        if (lua_gettop(co) == 0) {
            lua_pushnil(co);
        }
        return true;
    }
    return false;
}

/* The error on top of `co`: a text, or a table as run_push_error makes. */
static void add_error(struct debugger *d, lua_State *co)
{
    struct buf text = {0};
    buf_append_cstr(&text, "<error> ");
    if (lua_istable(co, -1)) {
        lua_pushliteral(co, "err");
        lua_rawget(co, -2);
    }
    size_t len = 0;
    const char *message = lua_tolstring(co, -1, &len);
    buf_append_slice(&text, message ? slice_of(message, len) : SLICE("unknown error"));
    debugger_add_cut_line(d, &text);
    buf_deinit(&text);
}

/* Pushes the code's function on `co`: of an expression, or of statements; false: the error. */
static bool load_code(lua_State *co, const struct slice *words, int count)
{
    static const char expression[] = "return ";
    struct buf text = {0};
    buf_append_cstr(&text, expression);
    for (int i = 1; i < count; i++) {
        buf_append_cstr(&text, i > 1 ? " " : "");
        buf_append_slice(&text, words[i]);
    }
    struct slice whole = buf_slice(&text);
    size_t skip = sizeof(expression) - 1;
    bool good = vm_load(co, whole, "@ldb_eval") == 0;
    if (!good) {
        lua_settop(co, 0);
        good = vm_load(co, slice_of(whole.ptr + skip, whole.len - skip), "@ldb_eval") == 0;
    }
    buf_deinit(&text);
    return good;
}

static bool do_eval(struct debugger *d, lua_State *L, const struct slice *words, int count)
{
    lua_State *co = lua_newthread(L);
    if (load_code(co, words, count) && run_aside(d, L, co, 0)) {
        add_value(d, co, "<retval> ");
    } else {
        add_error(d, co);
    }
    lua_pop(L, 1);
    return false;
}

static bool do_redis(struct debugger *d, lua_State *L, const struct slice *words, int count)
{
    lua_State *co = lua_newthread(L);
    luaL_checkstack(co, count + 2, "too many words");
    vm_push_globals(co);
    lua_getfield(co, -1, "redis");
    lua_getfield(co, -1, "call");
    lua_replace(co, 1);
    lua_settop(co, 1);
    for (int i = 1; i < count; i++) {
        lua_pushlstring(co, words[i].ptr, words[i].len);
    }
    d->steps = true; /* what it runs and is replied is shown */
    bool good = run_aside(d, L, co, count - 1);
    d->steps = false;
    if (!good && lua_type(co, -1) == LUA_TSTRING) {
        add_error(d, co);
    }
    lua_pop(L, 1);
    return false;
}

/* ---- the table ---- */

static bool do_help(struct debugger *d, lua_State *L, const struct slice *words, int count);

static const struct {
    const char *letter, *word;
    int least; /* words */
    bool (*obey)(struct debugger *d, lua_State *L, const struct slice *words, int count);
    const char *help[3];
} rows[] = {
    {"h", "help", 1, do_help, {"[h]elp               What there is to say."}},
    {"s", "step", 1, do_step, {"[s]tep               Runs this line and stops at the next one."}},
    {"n", "next", 1, do_step, {"[n]ext               The same."}},
    {"c", "continue", 1, do_continue, {"[c]ontinue           Runs to the next breakpoint."}},
    {"l",
     "list",
     1,
     do_list,
     {"[l]ist               Shows the lines around this one.",
      "[l]ist [line] [ctx]  Those around a line (0: this one), so many before and after it."}},
    {"w", "whole", 1, do_whole, {"[w]hole              Shows all lines."}},
    {"p",
     "print",
     1,
     do_print,
     {"[p]rint              Shows all local variables.",
      "[p]rint <var>        Shows one of them, also of outer functions, or KEYS or ARGV."}},
    {"b",
     "break",
     1,
     do_break,
     {"[b]reak              Shows the breakpoints.",
      "[b]reak <line>       Sets one; -<line> removes it.", "[b]reak 0            Removes all."}},
    {"t", "trace", 1, do_trace, {"[t]race              Shows who has called this function."}},
    {"e", "eval", 1, do_eval, {"[e]val <code>        Runs Lua code, in a frame of its own."}},
    {"r", "redis", 2, do_redis, {"[r]edis <cmd>        Runs a command of the server."}},
    {"m",
     "maxlen",
     1,
     do_maxlen,
     {"[m]axlen [len]       Where values and replies are cut; 0: nowhere."}},
    {"a",
     "abort",
     1,
     do_abort,
     {"[a]bort              Ends the script. In sync mode what it has changed stays."}},
};

static bool do_help(struct debugger *d, lua_State *L, const struct slice *words, int count)
{
    (void)L, (void)words, (void)count;
    debugger_add_line(d, SLICE("Lua debugger:"));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int k = 0; k < 3 && rows[i].help[k]; k++) {
            debugger_add_line(d, slice_cstr(rows[i].help[k]));
        }
    }
    debugger_add_line(d, SLICE(""));
    debugger_add_line(d, SLICE("In scripts:"));
    debugger_add_line(d, SLICE("redis.debug(...)     Shows values here."));
    debugger_add_line(d, SLICE("redis.breakpoint()   Stops at the next line."));
    return false;
}

bool debugger_obey(struct debugger *d, lua_State *L, const struct slice *words, int count)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (count >= rows[i].least && (slice_equal_nocase(words[0], rows[i].letter) ||
                                       slice_equal_nocase(words[0], rows[i].word))) {
            return rows[i].obey(d, L, words, count);
        }
    }
    debugger_add_line(
        d, SLICE("<error> Unknown Redis Lua debugger command or wrong number of arguments."));
    return false;
}
