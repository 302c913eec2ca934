/* See run.h. */
#include "module/run.h"

#include "base/buf.h"
#include "base/mem.h"
#include "engine/busy.h"
#include "engine/execute.h"
#include "module/blocked.h"
#include "module/text.h"

#include <assert.h>

/* Arguments that need no block of their own. */
#define FEW_ARGUMENTS 16
/* Calls for which a command that has blocked its client is expected to do so again. */
#define EXPECTED_CALLS 256

static RedisModuleString **make_arguments(RedisModuleString **few, const struct slice *argv,
                                          struct blob **blobs, int argc)
{
    RedisModuleString **arguments = few;
    if (argc > FEW_ARGUMENTS) {
        arguments = mem_alloc((size_t)argc * sizeof(RedisModuleString *));
    }
    for (int i = 0; i < argc; i++) {
        arguments[i] = text_create_argument(argv[i], blobs ? blobs[i] : NULL);
    }
    return arguments;
}

static void free_arguments(RedisModuleString **few, RedisModuleString **arguments, int argc)
{
    for (int i = 0; i < argc; i++) {
        text_release(arguments[i]);
    }
    if (arguments != few) {
        mem_free(arguments);
    }
}

/* A command that has blocked a client is expected to do so again, for some calls: what follows them
 * is not even parsed. One that seldom does is cheap most of the time. */
static void note_blocking(struct module_command *m, bool blocks) REQUIRES(keyspace_lock);
static void note_blocking(struct module_command *m, bool blocks)
{
    unsigned expected = atomic_load_explicit(&m->expected, memory_order_relaxed);
    if (unlikely(blocks || expected > 0)) {
        atomic_store_explicit(&m->expected, blocks ? EXPECTED_CALLS : expected - 1,
                              memory_order_relaxed);
    }
}

/* What it needs of the world it has asked for now (world.h), and has been marked with. */
static void note_tried(struct module_command *m, const struct call *c)
{
    bool had = c->held == ACCESS_WORLD || (c->held == ACCESS_EXCLUSIVE && !c->nested);
    if (unlikely(had && !atomic_load_explicit(&m->tried, memory_order_relaxed))) {
        atomic_store_explicit(&m->tried, true, memory_order_relaxed);
    }
}

static void run_held(struct call *c) REQUIRES(keyspace_lock)
{
    struct module_command *m = run_command_of(c->cmd);
    RedisModuleString *few[FEW_ARGUMENTS];
    RedisModuleString **arguments = make_arguments(few, c->argv, c->blobs, c->argc);
    RedisModuleCtx ctx;
    context_begin_call(&ctx, m->module, c);
    struct reply_mark before = reply_mark(c->reply);
    m->function(&ctx, arguments, c->argc);
    c->propagated = true; /* only what it has told itself */
    note_blocking(m, ctx.blocks);
    note_tried(m, c);
    if (ctx.blocks) {
        blocked_park(&ctx, before);
    }
    context_end(&ctx);
    free_arguments(few, arguments, c->argc);
}

struct beside {
    struct call *call;
    bool ran;
};

static void run_within(void *argument) NO_THREAD_SAFETY_ANALYSIS
{
    struct beside *b = argument;
    b->ran = true;
    run_held(b->call);
}

/* A command that may run beside a script, or a module's, that takes long: within it, on its thread,
 * since no two run at the same time. */
static void run_beside(struct call *c)
{
    struct beside b = {.call = c};
    busy_run_within(run_within, &b);
    if (!b.ran) {
        reply_error(c->reply, "ERR the server ends");
    }
}

void run_command(struct call *c) NO_THREAD_SAFETY_ANALYSIS
{
    if (c->retry) {
        blocked_retry(c);
    } else if (c->held == ACCESS_NONE) {
        run_beside(c);
    } else if (c->held == ACCESS_WORLD) {
        keyspace_lock_exclusive();
        run_held(c);
        if (c->held == ACCESS_WORLD) { /* else it has been given back: context.c, Yield */
            keyspace_unlock_exclusive();
        }
    } else {
        run_held(c);
    }
}

bool run_may_wait(const struct call *c)
{
    return atomic_load_explicit(&run_command_of(c->cmd)->expected, memory_order_relaxed) > 0;
}

void run_container(struct call *c)
{
    struct buf text = {0};
    call_append_unknown_sub(c, c->cmd, &text);
    reply_error_slice(c->reply, buf_slice(&text));
    buf_deinit(&text);
}

static void ask(struct module_command *m, const struct slice *argv, struct key_request *request)
    REQUIRES(keyspace_lock)
{
    RedisModuleString *few[FEW_ARGUMENTS];
    RedisModuleString **arguments = make_arguments(few, argv, NULL, request->argc);
    RedisModuleCtx ctx;
    context_begin(&ctx, m->module, ACCESS_EXCLUSIVE);
    ctx.key_request = request;
    m->function(&ctx, arguments, request->argc);
    context_end(&ctx);
    free_arguments(few, arguments, request->argc);
}

struct question {
    struct module_command *command;
    const struct slice *argv;
    struct key_request request;
};

/* Perhaps in the thread whose script takes long (busy.h). */
static void ask_held(void *question)
{
    struct question *q = question;
    keyspace_assert_exclusive();
    ask(q->command, q->argv, &q->request);
}

static int find(const struct command *c, const struct slice *argv, struct key_request request)
{
    struct question q = {run_command_of(c), argv, request};
    busy_run_within(ask_held, &q);
    return q.request.count;
}

int run_find_keys(const struct command *c, const struct slice *argv, int argc,
                  struct key_place *places, int max)
{
    return find(c, argv, (struct key_request){.places = places, .max = max, .argc = argc});
}

int run_find_channels(const struct command *c, const struct slice *argv, int argc,
                      struct key_place *places, int max)
{
    return find(c, argv,
                (struct key_request){.places = places, .max = max, .argc = argc, .channels = true});
}

bool run_is_barrier(const struct call *c)
{
    const struct module_command *m = run_command_of(c->cmd);
    return atomic_load_explicit(&m->is_barrier, memory_order_relaxed);
}

void run_note_barrier(const struct command *c)
{
    struct module_command *m = run_command_of(c);
    if (m) {
        atomic_store_explicit(&m->is_barrier, true, memory_order_relaxed);
    }
}

bool run_may_need_world(const struct command *c)
{
    const struct module_command *m = run_command_of(c);
    return m && m->function && !atomic_load_explicit(&m->tried, memory_order_relaxed);
}

void run_note_refused(const struct command *c)
{
    struct module_command *m = run_command_of(c);
    if (m) {
        atomic_store_explicit(&m->tried, false, memory_order_relaxed);
    }
}

void run_want_world(const struct command *c)
{
    struct module_command *m = run_command_of(c);
    if (!m || m->row.flags & CMD_WORLD) {
        return;
    }
    m->row.flags |= CMD_WORLD;
    bool fine = command_follow_row((struct command *)command_by_id(m->id));
    assert(fine);
    (void)fine;
}
