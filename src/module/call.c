/* Commands that modules call. Each is a call of its own, nested in the one that runs, if any: it
 * waits (promises.h) and is told to the logs only where the module says so. Its session is
 * nobody's, in the context's database, and allowed everything, unless the module has its caller's
 * rights checked.
 *
 * A command that needs the world (CONFIG SET, ACL SETUSER) runs while the keyspace lock is let go
 * of, with the world standing. See DESIGN.md, "Calls that need the world". */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "engine/acl.h"
#include "engine/busy.h"
#include "engine/execute.h"
#include "engine/filter.h"
#include "engine/gate.h"
#include "engine/memory_limit.h"
#include "engine/propagate.h"
#include "module/call.h"
#include "module/call_replies.h"
#include "module/context.h"
#include "module/promises.h"
#include "module/users.h"
#include "module/words.h"
#include "module/world.h"

#include <assert.h>
#include <errno.h>

#define ARENA_BYTES ((size_t)8 * 1024)

/* What a call needs; kept from one to the next, one for each level of calls within calls. State:
 * keyspace. */
struct frame {
    struct arena arena;
    struct reply reply;
    struct session session;
    struct frame *next;
};

static struct frame *free_frames;

static struct frame *frame_take(void)
{
    struct frame *f = free_frames;
    if (f) {
        free_frames = f->next;
        return f;
    }
    f = mem_alloc(sizeof(*f));
    arena_init(&f->arena, ARENA_BYTES);
    reply_init(&f->reply);
    return f;
}

static void frame_give_back(struct frame *f) NO_THREAD_SAFETY_ANALYSIS
{
    session_deinit(&f->session);
    reply_end(&f->reply);
    reply_reset(&f->reply);
    arena_reset(&f->arena);
    f->next = free_frames;
    free_frames = f;
}

void call_teardown(void)
{
    while (free_frames) {
        struct frame *f = free_frames;
        free_frames = f->next;
        reply_deinit(&f->reply);
        arena_deinit(&f->arena);
        mem_free(f);
    }
}

/* ---- whether it may run ---- */

/* The world is not to be had (world.h). */
#define NO_WORLD                                                                                   \
    "ERR this command stops all threads, which cannot be amid what has begun without that: "
#define NO_WORLD_NOW                                                                               \
    NO_WORLD "a transaction, or a script that has changed something, can when it runs again"
#define NO_WORLD_HERE                                                                              \
    NO_WORLD "no key event, job behind it or handler of a promise can, a timer can"

/* Why a call does not run: errno and an error's text, which the caller frees. */
struct refusal {
    int error;
    struct buf text;
};

static const struct command *find_command(const struct slice *argv, int argc)
{
    const struct command *cmd = argv[0].len > 0 ? command_find(argv[0]) : NULL;
    if (!cmd && argv[0].len > 0) {
        cmd = command_find_original(argv[0]);
    }
    return cmd && cmd->subcommands && argc > 1 ? command_find_sub(cmd, argv[1]) : cmd;
}

/* What belongs to a client that is connected, of which there is none here. */
static bool needs_client(const struct command *cmd)
{
    return cmd->flags & (CMD_TRANSACTION | CMD_CONFIRMS) ||
           (cmd->flags & CMD_NOSCRIPT &&
            cmd->categories & (CATEGORY_CONNECTION | CATEGORY_PUBSUB | CATEGORY_REPLICATION)) ||
           slice_equal_nocase(command_word(cmd), "monitor") ||
           slice_equal_nocase(command_word(cmd), "sync") ||
           slice_equal_nocase(command_word(cmd), "psync") ||
           slice_equal_nocase(command_word(cmd), "replconf");
}

/* EVAL, SCRIPT, FUNCTION and the like, and what puts another data set, with its functions, in the
 * place of this one. */
static bool moves_scripts(const struct command *cmd)
{
    return cmd->categories & CATEGORY_SCRIPTING || slice_equal_nocase(command_word(cmd), "debug");
}

static bool refuse(struct refusal *r, int error, const char *text)
{
    r->error = error;
    buf_append_cstr(&r->text, text);
    return true;
}

/* Script mode: what scripts may not, and what the server's state forbids. */
static bool refuse_as_script(struct refusal *r, const struct call *n)
{
    const struct session client = {.id = 1};
    const char *why = NULL;
    if (n->cmd->flags & CMD_NOSCRIPT) {
        buf_printf(&r->text, "ERR command '%s' is not allowed on script mode", n->cmd->full_name);
        r->error = ESPIPE;
        return true;
    }
    if (n->cmd->flags & CMD_WRITE) {
        why = gate_write_refusal(&client);
    }
    if (why) {
        return refuse(r, strncmp(why, "READONLY", 8) == 0 ? EROFS : ESPIPE, why);
    }
    why = n->cmd->flags & CMD_STALE ? NULL : gate_stale_refusal(&client);
    return why && refuse(r, ESPIPE, why);
}

static bool refuse_user(struct refusal *r, const RedisModuleCtx *ctx, struct call *n)
{
    const struct acl_user *user = ctx->user ? user_acl(ctx->user) : NULL;
    if (ctx->user && !user) {
        return refuse(r, EACCES, "NOPERM the user whose rights are to be checked is gone");
    }
    if (!user && !ctx->session) {
        return refuse(r, ENOTSUP,
                      "ERR acl verification failed, context is not attached to a client.");
    }
    n->session->acl = user ? user : ctx->session->acl;
    n->session->user = user ? user->name : ctx->session->user;
    if (acl_is_unlimited(n->session) ||
        acl_check_call(n, ACL_CONTEXT_MODULE, &r->text) == ACL_ALLOWED) {
        return false;
    }
    r->error = EACCES;
    return true;
}

/* True when the call must not run. */
static bool is_refused(struct refusal *r, const RedisModuleCtx *ctx, struct call *n, unsigned flags)
{
    const struct session client = {.id = 1};
    if (!n->cmd) {
        const struct command *container = command_find(n->argv[0]);
        if (container) {
            call_append_unknown_sub(n, container, &r->text);
        } else {
            call_append_unknown(n, &r->text);
        }
        r->error = ENOENT;
        return true;
    }
    if (!command_arity_fits(n->cmd, n->argc)) {
        buf_printf(&r->text, "ERR wrong number of arguments for '%s' command", n->cmd->full_name);
        r->error = EINVAL;
        return true;
    }
    if (flags & WORDS_SCRIPT_MODE && refuse_as_script(r, n)) {
        return true;
    }
    if (flags & WORDS_NO_WRITES && n->cmd->flags & CMD_WRITE) {
        buf_printf(&r->text, "ERR Write command '%s' was called while write is not allowed.",
                   n->cmd->full_name);
        r->error = ENOSPC;
        return true;
    }
    if (flags & WORDS_DENY_OOM && n->cmd->flags & CMD_DENYOOM && memory_limit_now(&client)) {
        return refuse(r, ENOSPC, memory_limit_refusal);
    }
    if (ctx->looks && !(n->cmd->flags & CMD_READONLY)) {
        return refuse(r, ENOTSUP, "ERR nothing can be changed while a key is being removed");
    }
    if (needs_client(n->cmd)) {
        return refuse(r, ENOTSUP, "ERR modules cannot call this command: it is for clients");
    }
    if (moves_scripts(n->cmd) && busy_has_script()) {
        return refuse(r, ENOTSUP,
                      "ERR a script runs: no other one begins, comes or goes within it");
    }
    return flags & WORDS_CHECK_USER && refuse_user(r, ctx, n);
}

/* ---- running it ---- */

static void run_whole(struct call *n)
{
    call_run(n);
    while (n->continuation.step && !call_continue(n)) {
    }
}

/* What a call is made with. */
struct making {
    RedisModuleCtx *ctx;
    struct call *call;
    struct arena *arena;
    unsigned flags;
    struct refusal refusal;
    bool is_refused;
};

/* Commands, users and options may have changed while the world was waited for. */
static void run_in_world(void *making)
{
    struct making *m = making;
    struct call *n = m->call;
    n->cmd = find_command(n->argv, n->argc);
    m->is_refused = is_refused(&m->refusal, m->ctx, n, m->flags);
    if (!m->is_refused) {
        call_find_keys(n, m->arena);
        n->held = ACCESS_WORLD;
        run_whole(n);
    }
}

/* Whom the call's changes are told to. */
static unsigned targets_of(unsigned flags)
{
    unsigned targets = flags & WORDS_REPLICATE ? PROPAGATE_TO_ALL : 0;
    if (flags & WORDS_NO_AOF) {
        targets &= ~PROPAGATE_TO_AOF;
    }
    if (flags & WORDS_NO_REPLICAS) {
        targets &= ~(PROPAGATE_TO_REPLICAS | PROPAGATE_TO_PEERS);
    }
    return targets;
}

static void run_aimed(RedisModuleCtx *ctx, struct call *n, unsigned flags)
{
    unsigned aimed = propagate_aimed();
    if (flags & WORDS_REPLICATE) {
        context_begin_unit(ctx);
    }
    propagate_aim(aimed & targets_of(flags));
    n->held = ACCESS_EXCLUSIVE;
    run_whole(n);
    propagate_aim(aimed);
}

/* False when it is refused. */
static bool run_call(struct making *m)
{
    struct call *n = m->call;
    uint64_t begin = clock_ticks();
    if (!(n->cmd->flags & CMD_WORLD)) {
        run_aimed(m->ctx, n, m->flags);
    } else if (!world_run(m->ctx, run_in_world, m)) { /* administration: no log is told of it */
        m->is_refused = refuse(&m->refusal, ENOTSUP, m->ctx->call ? NO_WORLD_NOW : NO_WORLD_HERE);
    }
    uint64_t ticks = clock_ticks() - begin;
    n->duration_ticks = ticks ? ticks : 1;
    if (!m->is_refused) {
        call_account(n, 1, 0, n->now_ms * 1000);
    }
    return !m->is_refused;
}

static RedisModuleCallReply *answer_refusal(RedisModuleCtx *ctx, struct refusal *r, unsigned flags)
{
    RedisModuleCallReply *reply = NULL;
    if (flags & (WORDS_ERRORS | WORDS_DRY_RUN)) {
        reply = call_reply_create_error(ctx, buf_slice(&r->text));
    }
    buf_deinit(&r->text);
    errno = r->error;
    return reply;
}

static RedisModuleCallReply *call_words(RedisModuleCtx *ctx, struct frame *f, const struct words *w)
    REQUIRES(keyspace_lock)
{
    struct call n = {.argc = w->argc,
                     .argv = w->argv,
                     .reply = &f->reply,
                     .session = &f->session,
                     .now_ms = ctx->now_ms,
                     .nested = true,
                     .awaited = w->flags & WORDS_MAY_WAIT};
    struct making m = {.ctx = ctx, .call = &n, .arena = &f->arena, .flags = w->flags};
    n.cmd = find_command(n.argv, n.argc);
    n.db = db_at(f->session.db_index);
    if (is_refused(&m.refusal, ctx, &n, w->flags)) {
        return answer_refusal(ctx, &m.refusal, w->flags);
    }
    if (w->flags & WORDS_DRY_RUN) {
        return NULL;
    }
    call_find_keys(&n, &f->arena);
    reply_begin(&f->reply, f->session.proto);
    bool ran = run_call(&m);
    reply_end(&f->reply);
    if (!ran) {
        return answer_refusal(ctx, &m.refusal, w->flags);
    }
    if (n.waits) {
        return promises_make(ctx, &n, targets_of(w->flags));
    }
    return f->reply.piece_count > 0 ? call_reply_create(ctx, &f->reply) : NULL;
}

static RedisModuleCallReply *call_filtered(RedisModuleCtx *ctx, struct frame *f, struct words *w)
    REQUIRES(keyspace_lock)
{
    if (filter_wanted()) {
        struct request request = {w->argc, w->argv, NULL};
        filter_request(ctx->session ? ctx->session : &f->session, &request, &f->arena);
        w->argc = request.argc;
        w->argv = request.argv;
        errno = 0;
    }
    return call_words(ctx, f, w);
}

static int proto_of(const RedisModuleCtx *ctx, unsigned flags)
{
    if (flags & WORDS_RESP3) {
        return 3;
    }
    return flags & WORDS_RESP_AUTO && ctx->reply ? ctx->reply->proto : 2;
}

static RedisModuleCallReply *rm_call(RedisModuleCtx *ctx, const char *name, const char *format, ...)
{
    keyspace_assert_exclusive();
    struct frame *f = frame_take();
    struct words w;
    va_list arguments;
    session_init_internal(&f->session);
    f->session.db_index = context_db(ctx);
    va_start(arguments, format);
    bool fine = words_parse(&w, &f->arena, name, format, arguments);
    va_end(arguments);
    f->session.proto = fine ? proto_of(ctx, w.flags) : 2;
    errno = fine ? 0 : EBADF;
    RedisModuleCallReply *reply = fine ? call_filtered(ctx, f, &w) : NULL;
    int error = errno;
    frame_give_back(f);
    errno = error;
    return reply;
}

const struct api_function call_functions[] = {
    API(Call, rm_call),
    {NULL, NULL},
};
