/* See debugger.h. */
#include "script/debugger.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/busy.h"
#include "engine/console.h"
#include "engine/cron.h"
#include "engine/execute.h"
#include "engine/fork_child.h"
#include "engine/shutdown.h"
#include "script/debugger_priv.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* Between two looks at what others want, while the client says nothing. */
#define WAIT_MS 20
/* Instructions between two looks at the clock (run.c). */
#define HOOK_INSTRUCTIONS 1000
#define READ_BYTES 4096
/* Words of a command that are shown. */
#define SHOWN_WORDS 10
/* Least time between two looks for children that have ended. */
#define REAP_PERIOD_MS 100

/* The session that runs a script, which hooks have no other way to; NULL between scripts. */
static struct debugger *current;

/* Of children; 0: free, -1: about to be forked. */
static _Atomic int children[DEBUGGER_SESSIONS_MAX];

/* ---- children ---- */

static _Atomic int *take_place(void)
{
    for (int i = 0; i < DEBUGGER_SESSIONS_MAX; i++) {
        int free_place = 0;
        if (atomic_compare_exchange_strong(&children[i], &free_place, -1)) {
            return &children[i];
        }
    }
    return NULL;
}

/* Cron's, on the main thread, as the end is. */
static void reap_children(int64_t wall_ms)
{
    (void)wall_ms;
    for (int i = 0; i < DEBUGGER_SESSIONS_MAX; i++) {
        struct child_end end;
        int pid = atomic_load(&children[i]), known = pid;
        if (pid > 0 && fork_child_has_ended(&pid, &end)) {
            log_notice("Debugging session %d has ended%s%s", known, end.error ? ": " : "",
                       end.error ? fork_child_why(end) : "");
            atomic_store(&children[i], 0);
        }
    }
}

void debugger_setup(void)
{
    static const struct cron_job job = {"debugging sessions", REAP_PERIOD_MS, reap_children};
    cron_register(&job);
}

void debugger_teardown(void)
{
    for (int i = 0; i < DEBUGGER_SESSIONS_MAX; i++) {
        int pid = atomic_load(&children[i]);
        if (pid > 0) {
            log_notice("Ending debugging session %d", pid);
            fork_child_kill(&pid);
        }
        atomic_store(&children[i], 0);
    }
}

/* Forks. The parent lets go of the caller; false in the parent. */
static bool become_session(struct call *c) REQUIRES(keyspace_lock);
static bool become_session(struct call *c)
{
    _Atomic int *place = take_place();
    int pid = -1;
    errno = EAGAIN;
    if (place) {
        call_observe(c); /* nobody hears of it from the child */
        pid = fork_child(CHILD_DEBUGGER, console_fd(c));
    }
    if (pid == 0) {
        return true;
    }
    if (place) {
        atomic_store(place, pid > 0 ? pid : 0);
    }
    if (pid < 0) {
        c->session->script_debug = DEBUG_NOT;
        reply_errorf(c->reply, "ERR Fork() failed: can't run EVAL in debugging mode: %s",
                     strerror(errno));
        return false;
    }
    log_notice("Debugging session %d goes on with client %s", pid, c->session->peer);
    console_leave(c);
    return false;
}

/* ---- begin and end ---- */

void debugger_switch(struct call *c)
{
    struct session *s = c->session;
    if (!console_is_caught_up(c)) {
        reply_error(c->reply, "ERR SCRIPT DEBUG must be called outside a pipeline");
        return;
    }
    if (call_arg_is(c, 2, "no")) {
        s->script_debug = DEBUG_NOT;
    } else if (call_arg_is(c, 2, "yes")) {
        s->script_debug = DEBUG_FORKED;
    } else if (call_arg_is(c, 2, "sync")) {
        s->script_debug = DEBUG_IN_SYNC;
    } else {
        reply_error(c->reply, "ERR Use SCRIPT DEBUG YES/SYNC/NO");
        return;
    }
    reply_ok(c->reply);
}

/* The script without line ends behind it. */
static struct slice source_of(const struct call *c)
{
    struct slice source = c->argv[1];
    while (source.len > 0 &&
           (source.ptr[source.len - 1] == '\n' || source.ptr[source.len - 1] == '\r')) {
        source.len--;
    }
    return source.len > 0 ? source : slice_of(NULL, 0); /* no line, or one at least */
}

struct debugger *debugger_begin(struct call *c)
{
    bool forked = c->session->script_debug == DEBUG_FORKED;
    if (!console_is_free(c)) {
        reply_error(c->reply,
                    "ERR EVAL under the debugger must be called outside a pipeline or transaction");
        return NULL;
    }
    int64_t limit_ms = busy_threshold_ms();
    if (forked && !become_session(c)) {
        return NULL;
    }
    if (forked) { /* other clients' replies are the parent's */
        reply_reset(c->reply);
        (void)reply_begin(c->reply, c->session->proto);
    } else {
        log_notice("Debugging session in sync mode with client %s", c->session->peer);
    }
    struct debugger *d = mem_calloc(1, sizeof(*d));
    d->c = c;
    d->forked = forked;
    d->steps = true;
    d->maxlen = DEBUGGER_LEN;
    d->source = source_of(c);
    d->limit_ms = limit_ms ? limit_ms : DEBUGGER_LIMIT_MS;
    return d;
}

/* The child's reply. */
static void send_reply(struct debugger *d)
{
    const struct reply *r = d->c->reply;
    uint32_t count = reply_end(d->c->reply);
    for (uint32_t i = 0; i < count && !d->left; i++) {
        debugger_send_bytes(d, slice_of(r->pieces[i].ptr, r->pieces[i].len));
    }
    for (int i = 0; i < DEBUGGER_SEND_MS / WAIT_MS && !d->left; i++) {
        if (console_is_flushed(d->c)) {
            break;
        }
        d->left = console_write(d->c, SLICE(""), WAIT_MS) < 0;
    }
}

void debugger_end(struct debugger *d_take)
{
    struct debugger *d = d_take;
    assert(current == d || !current);
    current = NULL;
    if (d->lines_lost > 0) {
        debugger_send(d); /* the last line is not one of those that are too many */
    }
    debugger_add_line(d, SLICE("<endsession>"));
    debugger_send(d);
    if (d->forked) {
        send_reply(d);
        fork_child_exit(0);
    }
    log_notice("Debugging session in sync mode ended");
    console_end(d->c);
    debugger_input_deinit(&d->in);
    buf_deinit(&d->lines);
    mem_free(d);
}

/* ---- a stop ---- */

/* In sync mode the server waits for the session's end before its own. */
static bool server_ends(const struct debugger *d)
{
    unsigned flags;
    return !d->forked && shutdown_requested(&flags);
}

/* Waits for bytes of the client, who may have left then; or for the server's end. Raises when the
 * script has to end. */
static void receive(struct debugger *d, lua_State *L)
{
    char bytes[READ_BYTES];
    ssize_t got = 0;
    while (got == 0 && !server_ends(d)) {
        got = console_read(d->c, bytes, sizeof(bytes), WAIT_MS);
        if (!d->forked) {
            run_poll(L);
        }
    }
    if (got > 0) {
        debugger_input_add(&d->in, slice_of(bytes, (size_t)got));
    }
    d->left |= got < 0;
}

/* Does what the client says until the script is to go on, which it is, too, when the client has
 * left, or the server ends. */
static void converse(struct debugger *d, lua_State *L)
{
    while (!d->left && !server_ends(d)) {
        enum debugger_input_result result = debugger_input_next(&d->in);
        if (result == DEBUGGER_INPUT_MORE) {
            receive(d, L);
        } else if (result != DEBUGGER_INPUT_DONE) {
            run_push_error(L, result == DEBUGGER_INPUT_FULL ? "ERR max client buffer reached"
                                                            : "ERR protocol error");
            lua_error(L);
        } else if (debugger_obey(d, L, d->in.words, d->in.count)) {
            return;
        } else {
            debugger_send(d);
        }
    }
    if (d->forked) {
        fork_child_exit(0);
    }
    d->steps = d->stops = false;
    d->breakpoint_count = 0;
}

static void stop(struct debugger *d, lua_State *L, const char *reason)
{
    d->steps = d->stops = false;
    debugger_add_linef(d, "* Stopped at %d, stop reason = %s", d->line, reason);
    debugger_add_source_line(d, d->line);
    debugger_send(d);
    converse(d, L);
    d->resumed_ns = clock_mono_ns();
}

/* Why the script stops where it is; NULL when it goes on. `at_line`: a line begins. */
static const char *stop_reason(const struct debugger *d, bool at_line)
{
    if (d->left) {
        return NULL;
    }
    if (at_line && d->stops) {
        return "redis.breakpoint() called";
    }
    if (at_line && debugger_has_breakpoint(d, d->line)) {
        return "break point";
    }
    if (at_line && d->steps) {
        return "step over";
    }
    uint64_t runs_ms = (clock_mono_ns() - d->resumed_ns) / 1000000;
    return !at_line && runs_ms >= (uint64_t)d->limit_ms ? "timeout reached, infinite loop?" : NULL;
}

static void on_event(lua_State *L, lua_Debug *where)
{
    struct debugger *d = current;
    bool at_line = where->event == LUA_HOOKLINE;
    if (!at_line) {
        run_poll(L);
    }
    lua_getinfo(L, "Sl", where);
    if (!d || strcmp(where->source, "@user_script") != 0) {
        return; /* within a function in C, or of `eval` */
    }
    d->line = where->currentline;
    const char *reason = stop_reason(d, at_line);
    if (reason && !server_ends(d)) {
        stop(d, L, reason);
    }
}

void debugger_attach(struct debugger *d, lua_State *L)
{
    assert(!current);
    current = d;
    d->resumed_ns = clock_mono_ns();
    lua_sethook(L, on_event, LUA_MASKLINE | LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
}

/* ---- what the script does ---- */

void debugger_stop_soon(struct debugger *d)
{
    d->stops = true;
}

void debugger_tell_values(struct debugger *d, lua_State *L)
{
    struct buf line = {0};
    int count = lua_gettop(L);
    buf_printf(&line, "<debug> line %d: ", d->line);
    for (int i = 1; i <= count; i++) {
        debugger_show_value(L, i, &line, DEBUGGER_LINE_BYTES);
        buf_append_cstr(&line, i < count ? ", " : "");
    }
    debugger_add_line(d, buf_slice(&line));
    buf_deinit(&line);
}

void debugger_note_command(struct debugger *d, const struct call *n)
{
    if (!d->steps) {
        return;
    }
    struct buf line = {0};
    buf_append_cstr(&line, "<redis>");
    for (int i = 0; i < n->argc && line.len < DEBUGGER_LINE_BYTES; i++) {
        if (i == SHOWN_WORDS) {
            buf_printf(&line, " ... (%d more)", n->argc - i - 1);
            break;
        }
        buf_append_char(&line, ' ');
        buf_append_slice(&line, n->argv[i]);
    }
    debugger_add_line(d, buf_slice(&line));
    buf_deinit(&line);
}

static void add_error(struct debugger *d, const char *prefix, struct slice text)
{
    struct buf line = {0};
    buf_append_cstr(&line, prefix);
    buf_append_slice(&line, text);
    debugger_add_line(d, buf_slice(&line));
    buf_deinit(&line);
}

void debugger_note_error(struct debugger *d, struct slice text)
{
    static const char code[] = "ERR ";
    size_t skip = sizeof(code) - 1;
    if (!d->steps) {
        return;
    }
    if (text.len > skip && memcmp(text.ptr, code, skip) == 0) {
        text = slice_of(text.ptr + skip, text.len - skip);
    }
    add_error(d, "<error> ", text);
}

void debugger_note_error_reply(struct debugger *d, struct slice text)
{
    if (d->steps) {
        add_error(d, "<error> -", text);
    }
}

void debugger_note_reply(struct debugger *d, const struct reply *reply)
{
    if (!d->steps) {
        return;
    }
    if (reply->errors > 0 && reply->pieces[0].ptr[0] == '-') {
        debugger_note_error_reply(d, reply->last_error);
    }
    struct buf line = {0};
    buf_append_cstr(&line, "<reply> ");
    debugger_show_reply(reply, &line, debugger_line_limit(d));
    debugger_add_cut_line(d, &line);
    buf_deinit(&line);
}
