/* See execute.h. */
#include "engine/execute.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/stats.h"
#include "engine/acl.h"
#include "engine/auth.h"
#include "engine/cmdstats.h"
#include "engine/gate.h"
#include "engine/latency.h"
#include "engine/modules.h"
#include "engine/parked.h"
#include "engine/propagate.h"
#include "engine/slowlog.h"
#include "engine/tracking.h"
#include "keyspace/expire.h"
#include "engine/transaction.h"
#include "keyspace/waiting.h"

#include <assert.h>
#include <stdatomic.h>

/* Most keys of a request whose places are collected on the stack; requests with more ask the arena.
 */
#define PLACES_ON_STACK 64

_Thread_local const struct call *call_running;

static struct {
    call_observer observer;
    _Atomic bool observed;
    void (*settle)(void);
} hooks;

void call_set_settle(void (*settle)(void))
{
    hooks.settle = settle;
}

void call_settle_accounts(void)
{
    if (hooks.settle) {
        hooks.settle();
    }
}

void call_set_observer(call_observer observer)
{
    hooks.observer = observer;
}

void call_set_observed(bool observed)
{
    atomic_store_explicit(&hooks.observed, observed, memory_order_relaxed);
}

void call_observe(const struct call *c)
{
    if (unlikely(atomic_load_explicit(&hooks.observed, memory_order_relaxed)) && !c->told) {
        hooks.observer(c, clock_wall_us());
    }
}

/* ---- before ---- */

static void refuse(struct call *c, struct arena *arena, struct buf *text)
{
    char *copy = arena_alloc(arena, text->len + 1);
    memcpy(copy, text->data, text->len);
    c->refusal = slice_of(copy, text->len);
    buf_deinit(text);
}

/* How much of a client's own words an error repeats. */
#define ERROR_ECHO_MAX 128

static int echo_len(struct slice word)
{
    return word.len > ERROR_ECHO_MAX ? ERROR_ECHO_MAX : (int)word.len;
}

void call_append_unknown(const struct call *c, struct buf *text)
{
    buf_printf(text, "ERR unknown command '%.*s', with args beginning with: ", echo_len(c->argv[0]),
               c->argv[0].ptr);
    size_t begin = text->len;
    for (int i = 1; i < c->argc && text->len - begin < ERROR_ECHO_MAX; i++) {
        int room = (int)(ERROR_ECHO_MAX - (text->len - begin));
        int len = c->argv[i].len < (size_t)room ? (int)c->argv[i].len : room;
        buf_printf(text, "'%.*s' ", len, c->argv[i].ptr);
    }
}

static void refuse_unknown(struct call *c, struct arena *arena)
{
    struct buf text = {0};
    call_append_unknown(c, &text);
    refuse(c, arena, &text);
}

void call_reply_unknown(struct call *c)
{
    struct buf text = {0};
    call_append_unknown(c, &text);
    reply_error_slice(c->reply, buf_slice(&text));
    buf_deinit(&text);
}

void call_append_unknown_sub(const struct call *c, const struct command *container,
                             struct buf *text)
{
    buf_printf(text, "ERR unknown subcommand '%.*s'. Try ", echo_len(c->argv[1]), c->argv[1].ptr);
    for (const char *p = container->full_name; *p; p++) {
        buf_append_char(text, *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p);
    }
    buf_append_cstr(text, " HELP.");
}

static void refuse_unknown_sub(struct call *c, const struct command *container, struct arena *arena)
{
    struct buf text = {0};
    call_append_unknown_sub(c, container, &text);
    refuse(c, arena, &text);
}

static void refuse_arity(struct call *c, struct arena *arena)
{
    struct buf text = {0};
    buf_printf(&text, "ERR wrong number of arguments for '%s' command", c->cmd->full_name);
    refuse(c, arena, &text);
}

static void refuse_subscribed(struct call *c, struct arena *arena)
{
    struct buf text = {0};
    buf_printf(&text,
               "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
               "RESET are allowed in this context",
               c->cmd->full_name);
    refuse(c, arena, &text);
}

/* The caller's user may not run the call, and it is refused. */
static bool refuse_denied(struct call *c, struct arena *arena)
{
    struct buf text = {0};
    enum acl_context context =
        c->session->in_transaction ? ACL_CONTEXT_MULTI : ACL_CONTEXT_TOPLEVEL;
    if (acl_check_call(c, context, &text) == ACL_ALLOWED) {
        return false;
    }
    refuse(c, arena, &text);
    return true;
}

/* In RESP2 nothing tells messages from replies: who subscribes may do little else. */
static bool is_only_listening(const struct call *c)
{
    return c->session->subscriptions > 0 && c->session->proto == 2 && !c->nested &&
           !(c->cmd->flags & CMD_SUBSCRIBED);
}

static void refuse_text(struct call *c, const char *text)
{
    c->refusal = slice_cstr(text);
}

/* Why a call that tells by its arguments what it needs must not be queued, or an EXEC of such calls
 * must not run; NULL when it may. */
static const char *told_refusal(const struct call *c) NO_THREAD_SAFETY_ANALYSIS
{
    /* Asked first: the thread's own script may hold the lock (busy.h). */
    const char *why = gate_busy_refusal();
    while (!why && !keyspace_try_exclusive()) {
        why = gate_busy_refusal();
    }
    if (!why) {
        why = gate_refusal_as(c, transaction_told_flags(c));
        keyspace_unlock_exclusive();
    }
    return why;
}

/* A gate is shut for the call. (One that tells by its arguments what it needs, and is not queued,
 * looks at the gates when it runs.) */
static bool refuse_shut(struct call *c)
{
    const char *why = transaction_asks(c) ? told_refusal(c) : gate_refusal(c);
    c->refusal = slice_of(why, why ? strlen(why) : 0);
    return why;
}

static void hash_places(struct call *c, struct arena *arena, const struct key_place *places,
                        int count)
{
    c->keys = arena_alloc(arena, (size_t)count * sizeof(*c->keys));
    c->key_count = count;
    for (int i = 0; i < count; i++) {
        c->keys[i] = key_of(key_place_name(&places[i], c->argv));
    }
}

/* Keys that only the specs can tell. Invalid arguments leave none: the handler finds the fault. */
static void find_spec_keys(struct call *c, struct arena *arena)
{
    struct key_place few[PLACES_ON_STACK];
    int count = command_find_keys(c->cmd, c->argv, c->argc, few, PLACES_ON_STACK);
    if (count > PLACES_ON_STACK) {
        struct key_place *many = arena_alloc(arena, (size_t)count * sizeof(*many));
        command_find_keys(c->cmd, c->argv, c->argc, many, count);
        hash_places(c, arena, many, count);
    } else if (count > 0) {
        hash_places(c, arena, few, count);
    }
}

/* Several keys, at places that the command's row tells. */
static __attribute__((noinline)) void find_row_keys(struct call *c, struct arena *arena)
{
    const struct command *cmd = c->cmd;
    int last = cmd->last_key < 0 ? c->argc + cmd->last_key : cmd->last_key;
    if (last >= c->argc) {
        last = c->argc - 1;
    }
    int count = last < cmd->first_key ? 0 : (last - cmd->first_key) / cmd->key_step + 1;
    c->keys = arena_alloc(arena, (size_t)count * sizeof(*c->keys));
    c->key_count = count;
    for (int i = 0; i < count; i++) {
        c->keys[i] = key_of(c->argv[cmd->first_key + i * cmd->key_step]);
    }
}

/* The same of any command with such a row. */
static ALWAYS_INLINE void find_simple_keys(struct call *c, struct arena *arena)
{
    const struct command *cmd = c->cmd;
    if (unlikely(cmd->first_key != cmd->last_key)) {
        find_row_keys(c, arena);
    } else if (cmd->first_key != 0) {
        c->keys = arena_alloc(arena, sizeof(*c->keys));
        c->key_count = 1;
        c->keys[0] = key_of(c->argv[cmd->first_key]);
    }
}

static void find_keys(struct call *c, struct arena *arena)
{
    if (c->cmd->simple_keys) {
        find_simple_keys(c, arena);
    } else {
        find_spec_keys(c, arena);
    }
}

void call_find_keys(struct call *c, struct arena *arena)
{
    find_keys(c, arena);
}

/* The command that the calling thread found last: most streams repeat themselves. */
static _Thread_local struct {
    const struct command *cmd; /* never a container */
    uint64_t word;             /* its name as it was sent: see name_word */
    size_t len;
} last_found;

/* Up to eight bytes of a name as a number; with the length it tells names apart. */
static inline uint64_t name_word(struct slice name)
{
    if (name.len >= 4) {
        return hash_load32(name.ptr) << 32 | hash_load32(name.ptr + name.len - 4);
    }
    return (uint64_t)(unsigned char)name.ptr[0] << 16 |
           (uint64_t)(unsigned char)name.ptr[name.len >> 1] << 8 |
           (unsigned char)name.ptr[name.len - 1];
}

static inline const struct command *find_command(struct slice name)
{
    if (unlikely(name.len - 1 > 7)) {
        return command_find(name);
    }
    uint64_t word = name_word(name);
    if (likely(name.len == last_found.len && word == last_found.word)) {
        return last_found.cmd;
    }
    const struct command *cmd = command_find(name);
    if (cmd && !cmd->subcommands) {
        last_found.cmd = cmd;
        last_found.word = word;
        last_found.len = name.len;
    }
    return cmd;
}

/* True when the session's user may not run it; the error is the call's refusal then. */
static bool refuse_user(struct call *c, struct arena *arena)
{
    if (unlikely(!c->session->authenticated && auth_required() && !(c->cmd->flags & CMD_NO_AUTH))) {
        refuse_text(c, "NOAUTH Authentication required.");
        return true;
    }
    return unlikely(!acl_is_unlimited(c->session)) && refuse_denied(c, arena);
}

void call_check_user_again(struct call *c, struct arena *arena)
{
    if (c->cmd && !c->refusal.ptr) {
        (void)refuse_user(c, arena);
    }
}

/* Prepares the call of a command that is found, whatever it is. Out of line, so that the usual way
 * saves no registers for it. */
static __attribute__((noinline)) void prepare_found(struct call *c, struct arena *arena)
{
    const struct command *cmd = c->cmd;
    if (unlikely(!command_arity_fits(cmd, c->argc))) {
        refuse_arity(c, arena);
    } else if (refuse_user(c, arena)) {
        assert(c->refusal.ptr);
    } else if (unlikely(is_only_listening(c))) {
        refuse_subscribed(c, arena);
    } else if (gate_any() && refuse_shut(c)) {
        assert(c->refusal.ptr);
    } else {
        find_keys(c, arena);
    }
}

/* The same of what is asked first: a name that is none, or that of a container. */
static __attribute__((noinline)) void prepare_name(struct call *c, const struct command *cmd,
                                                   struct arena *arena)
{
    if (!cmd && !c->session->owner) {
        cmd = command_find_original(c->argv[0]); /* no client's: a log's, a link's, a job's */
    }
    if (!cmd) {
        refuse_unknown(c, arena);
        return;
    }
    if (cmd->subcommands && c->argc > 1) {
        const struct command *sub = command_find_sub(cmd, c->argv[1]);
        if (!sub) {
            refuse_unknown_sub(c, cmd, arena);
            return;
        }
        cmd = sub;
    }
    c->cmd = cmd;
    c->db = db_at(c->session->db_index);
    c->session->last_command = cmd;
    prepare_found(c, arena);
}

/* Nothing about the caller asks for a second look. */
static inline bool is_usual_caller(const struct session *s)
{
    return s->authenticated && acl_is_unlimited(s) && s->subscriptions == 0 && !gate_any();
}

void call_prepare(struct call *c, struct arena *arena)
{
    const struct command *cmd = find_command(c->argv[0]);
    if (unlikely(!cmd || cmd->subcommands)) {
        prepare_name(c, cmd, arena);
        return;
    }
    c->cmd = cmd;
    c->db = db_at(c->session->db_index);
    c->session->last_command = cmd;
    if (likely(command_arity_fits(cmd, c->argc) && is_usual_caller(c->session) &&
               cmd->simple_keys)) {
        find_simple_keys(c, arena);
    } else {
        prepare_found(c, arena);
    }
}

/* ---- the call ---- */

static void reject(struct call *c)
{
    if (c->refusal.ptr == transaction_queued.ptr) {
        reply_status(c->reply, transaction_queued.ptr);
        return;
    }
    reply_error_slice(c->reply, c->refusal);
    errorstats_record(c->refusal);
    if (c->cmd) {
        cmdstats_rejected(c->cmd);
    }
}

/* What is to be kept of a handler's run. */
static inline void note_outcome(struct call *c, uint32_t errors_before) NO_THREAD_SAFETY_ANALYSIS
{
    if (c->dirty) {
        stats_add(STAT_DIRTY, c->dirty);
        if (unlikely(propagate_on)) {
            assert(c->held == ACCESS_EXCLUSIVE || !(c->cmd->flags & CMD_WRITE));
            propagate_call(c);
        }
    }
    if (unlikely(c->reply->errors != errors_before)) {
        c->failed = true;
        if (c->told) {
            return;
        }
        errorstats_record(c->reply->last_error);
        cmdstats_failed(c->cmd);
    }
}

/* Whoever waits for what the call, as a whole, has changed has it before anything else runs. */
static inline void serve_waiters(const struct call *c) NO_THREAD_SAFETY_ANALYSIS
{
    if (c->held == ACCESS_EXCLUSIVE && unlikely(waiting_has_ready()) && !c->nested && !c->retry) {
        keyspace_assert_exclusive();
        parked_serve(c->now_ms);
    }
}

/* Arguments that together are at least this long are worth a look at the memory. */
#define RESERVE_FROM_BYTES ((size_t)1 << 20)
/* What a copy of an argument takes beside its bytes, generously. */
#define RESERVE_EXTRA_BYTES 4096

/* Sets aside what a collection may need for copies of large arguments (strings keep the arguments'
 * own blobs, or try by themselves). False when it is not there: the call then must not run. */
static bool reserve_copies(const struct call *c)
{
    size_t bytes = 0;
    if (!(c->cmd->flags & CMD_WRITE) || c->cmd->categories & CATEGORY_STRING) {
        return true;
    }
    for (int i = 1; i < c->argc; i++) {
        if (c->blobs[i]) {
            bytes += mem_size_class(c->blobs[i]->len + RESERVE_EXTRA_BYTES);
        }
    }
    return bytes < RESERVE_FROM_BYTES || mem_reserve(bytes);
}

static void run_within_memory(struct call *c)
{
    if (likely(c->blobs == NULL)) {
        c->cmd->run(c);
    } else if (reserve_copies(c)) {
        c->cmd->run(c);
        mem_unreserve();
    } else {
        reply_error(c->reply, "OOM no memory for arguments of this length");
    }
}

/* Runs the handler. A reply that there is no memory for becomes an error; what a write has changed
 * stays changed. */
static void run_handler(struct call *c, struct reply_mark before)
{
    reply_allow_loss(c->reply, true);
    run_within_memory(c);
    if (unlikely(reply_take_lost(c->reply))) {
        call_abandon(&c->continuation);
        reply_rewind(c->reply, before);
        reply_error(c->reply, "OOM no memory for a reply of this length");
    }
}

/* What modules do because of a call's events is told to the logs as one with the call. */
static inline bool begin_telling(const struct call *c)
{
    if (c->held != ACCESS_EXCLUSIVE || likely(!modules_listen)) {
        return false;
    }
    propagate_begin_unit();
    return true;
}

static inline void end_telling(const struct call *c, bool told) NO_THREAD_SAFETY_ANALYSIS
{
    if (unlikely(told)) {
        modules_tell(!c->nested);
        propagate_end_unit();
    }
}

void call_run(struct call *c)
{
    if (unlikely(c->refusal.ptr)) {
        reject(c);
        if (c->session->tracking) {
            tracking_after_call(c);
        }
        return;
    }
    struct reply_mark before = reply_mark(c->reply);
    const struct call *outer = call_running;
    bool told = begin_telling(c);
    call_running = c;
    run_handler(c, before);
    call_running = outer;
    if (unlikely(expire_must_rerun())) {
        assert(c->held == ACCESS_SHARED);
        call_abandon(&c->continuation);
        call_need_exclusive(c);
    }
    if (unlikely(c->needs_exclusive)) {
        assert(c->held == ACCESS_SHARED && !c->dirty && !c->continuation.step);
        reply_rewind(c->reply, before);
        return;
    }
    note_outcome(c, before.errors);
    end_telling(c, told);
    if (unlikely(c->session->tracking)) {
        tracking_after_call(c);
    }
    if (unlikely(atomic_load_explicit(&hooks.observed, memory_order_relaxed)) &&
        !(c->cmd->flags & CMD_SKIP_MONITOR) && !c->told && !c->retry) {
        hooks.observer(c, clock_wall_us());
    }
    serve_waiters(c);
}

static bool run_step(struct call *c)
{
    const struct call *outer = call_running;
    call_running = c;
    bool done = c->continuation.step(c, c->continuation.state);
    call_running = outer;
    assert(!expire_must_rerun());
    return done;
}

bool call_continue(struct call *c)
{
    uint32_t errors_before = c->reply->errors;
    assert(c->continuation.step && c->held >= c->continuation.access);
    c->db = db_at(c->session->db_index);
    reply_allow_loss(c->reply, false); /* there is no going back to before the first slice */
    const char *why = gate_any() && !c->nested ? gate_refusal_midway(c) : NULL;
    bool told = begin_telling(c);
    if (unlikely(why)) {
        reply_error(c->reply, why);
    } else if (!run_step(c)) {
        end_telling(c, told);
        return false;
    }
    note_outcome(c, errors_before);
    end_telling(c, told);
    call_abandon(&c->continuation);
    serve_waiters(c);
    return true;
}

void call_abandon(struct continuation *continuation)
{
    if (continuation->destroy) {
        continuation->destroy(continuation->state);
    }
    *continuation = (struct continuation){0};
}

/* ---- after ---- */

static void account_group(struct call *first, uint64_t calls, uint64_t ns_each, int64_t wall_us)
{
    const struct command *cmd = first->cmd;
    if (unlikely(cmd->flags & CMD_TRANSACTION)) {
        for (uint64_t i = 0; i < calls; i++) {
            if (first[i].execution) {
                transaction_account(first[i].execution, wall_us);
            }
        }
    }
    cmdstats_record(cmd, calls, ns_each * calls);
    uint64_t us = ns_each / 1000;
    if (unlikely(slowlog_wants(us)) && !(cmd->flags & CMD_SKIP_SLOWLOG)) {
        for (uint64_t i = 0; i < calls; i++) {
            slowlog_note(&first[i], us, wall_us / 1000000);
        }
    }
    if (unlikely(latency_wants(us / 1000))) {
        latency_note(cmd->flags & CMD_FAST ? "fast-command" : "command", us / 1000,
                     wall_us / 1000000);
    }
}

void call_account(struct call *calls, int count, uint64_t ticks, int64_t wall_us)
{
    int shared = 0, others = 0; /* refused, or still waiting */
    for (int i = 0; i < count; i++) {
        shared += calls[i].duration_ticks == 0;
        others += calls[i].refusal.ptr || calls[i].waits;
    }
    uint64_t ns_shared = shared ? clock_ticks_to_ns(ticks) / (uint64_t)shared : 0;
    stats_add(STAT_COMMANDS, (uint64_t)(count - others));
    for (int i = 0; i < count;) {
        struct call *first = &calls[i];
        uint64_t own = first->duration_ticks;
        int run = 1;
        while (!own && i + run < count && calls[i + run].cmd == first->cmd &&
               !calls[i + run].refusal.ptr && !calls[i + run].duration_ticks) {
            run++;
        }
        if (first->cmd && !first->refusal.ptr && !first->waits) {
            account_group(first, (uint64_t)run, own ? clock_ticks_to_ns(own) : ns_shared, wall_us);
        }
        i += run;
    }
}
