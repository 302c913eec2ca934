/* See missing.h. */
#include "module/missing.h"

#include "engine/modules.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define PREFIX "RedisModule_"
#define NAME(returns, name, parameters) #name,
static const char *const names[] = {KEYDBMODULE_FUNCTIONS(NAME)};
#undef NAME
#define NAMES (sizeof(names) / sizeof(names[0]))

static const int caught[] = {SIGSEGV, SIGABRT};
#define CAUGHT (sizeof(caught) / sizeof(caught[0]))

struct missing_guard {
    const void *variables[NAMES]; /* the module's, by function; NULL: not asked for */
    unsigned asked;
    const char *running; /* modules_running: another one's code is not this load's */
    size_t called;       /* index of the function that it called; NAMES: unknown */
    bool gave_up;
    sigjmp_buf out;
    struct sigaction before[CAUGHT];
    struct missing_guard *outer; /* of a load that this one is part of */
};

static _Thread_local struct missing_guard *guard;

void missing_note(const char *name, const void *variable)
{
    for (size_t i = 0; guard && i < NAMES; i++) {
        if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) == 0 &&
            strcmp(names[i], name + sizeof(PREFIX) - 1) == 0) {
            guard->asked += !guard->variables[i];
            guard->variables[i] = variable;
            return;
        }
    }
}

/* ---- which function was called ---- */

static size_t find_variable(const struct missing_guard *g, uintptr_t address)
{
    size_t i = 0;
    while (i < NAMES && (uintptr_t)g->variables[i] != address) {
        i++;
    }
    return address ? i : NAMES;
}

#if defined(__x86_64__)
#define GENERAL_REGISTERS 16 /* the first ones of gregs */

static bool calls_null(const ucontext_t *context)
{
    return context->uc_mcontext.gregs[REG_RIP] == 0;
}

static uintptr_t register_at(const ucontext_t *context, int i)
{
    return (uintptr_t)context->uc_mcontext.gregs[i];
}

/* "call *offset(%rip)", FF 15 and the offset, names the variable itself. */
static uintptr_t called_address(const ucontext_t *context)
{
    const unsigned char *behind;
    int32_t offset;
    memcpy(&behind, (const void *)context->uc_mcontext.gregs[REG_RSP], sizeof(behind));
    memcpy(&offset, behind - sizeof(offset), sizeof(offset));
    return behind[-6] == 0xFF && behind[-5] == 0x15 ? (uintptr_t)behind + (uintptr_t)offset : 0;
}
#elif defined(__aarch64__)
#define GENERAL_REGISTERS 31

static bool calls_null(const ucontext_t *context)
{
    return context->uc_mcontext.pc == 0;
}

static uintptr_t register_at(const ucontext_t *context, int i)
{
    return context->uc_mcontext.regs[i];
}

static uintptr_t called_address(const ucontext_t *context)
{
    (void)context;
    return 0;
}
#else
#define GENERAL_REGISTERS 0

static bool calls_null(const ucontext_t *context)
{
    (void)context;
    return false; /* it crashes, as it would on an older server */
}

static uintptr_t register_at(const ucontext_t *context, int i)
{
    (void)context, (void)i;
    return 0;
}

static uintptr_t called_address(const ucontext_t *context)
{
    (void)context;
    return 0;
}
#endif

/* Else a register still has the address of the variable, nearly always. */
static size_t find_called(const struct missing_guard *g, const ucontext_t *context)
{
    size_t found = find_variable(g, called_address(context));
    for (int i = 0; found == NAMES && i < GENERAL_REGISTERS; i++) {
        found = find_variable(g, register_at(context, i));
    }
    return found;
}

/* ---- leaving OnLoad ---- */

/* From an abort to who called it there are fewer frames than that, our own with them. */
#define ABORT_FRAMES 24

static const void *object_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* Behind frame `i` and those of the same object. */
static int skip_object(void *const *frames, int count, int i)
{
    const void *object = i < count ? object_of(frames[i]) : NULL;
    while (i < count && object_of(frames[i]) == object) {
        i++;
    }
    return i;
}

/* Whether abort() was called by foreign code, and not by the server that it has called. The frames:
 * this handler's, those of the C library, who called abort. */
static bool module_gave_up(void)
{
    void *frames[ABORT_FRAMES];
    int count = backtrace(frames, ABORT_FRAMES);
    int caller = skip_object(frames, count, skip_object(frames, count, 0));
    return caller < count && object_of(frames[caller]) != object_of((const void *)names);
}

/* What is not ours goes to whom it went before: the report of crashes, or the system. */
static void pass_on(int number, siginfo_t *info, void *context, const struct sigaction *before)
{
    sigaction(number, before, NULL);
    if (before->sa_flags & SA_SIGINFO) {
        before->sa_sigaction(number, info, context);
    } else if (number == SIGABRT) {
        raise(number);
    } /* a fault comes again by itself */
}

static struct missing_guard *outermost; /* whose handlers are there; another thread may fault */

static void on_signal(int number, siginfo_t *info, void *context)
{
    struct missing_guard *g = guard;
    bool is_ours = g && g->asked > 0 && g->running == modules_running && info->si_code != SI_USER;
    if (is_ours && number == SIGSEGV && calls_null(context)) {
        g->called = find_called(g, context);
        siglongjmp(g->out, 1);
    }
    if (is_ours && number == SIGABRT && module_gave_up()) {
        g->gave_up = true;
        siglongjmp(g->out, 1);
    }
    pass_on(number, info, context, &outermost->before[number == caught[0] ? 0 : 1]);
}

static void begin(struct missing_guard *g)
{
    *g = (struct missing_guard){.called = NAMES, .running = modules_running, .outer = guard};
    if (!guard) {
        struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        sigemptyset(&action.sa_mask);
        outermost = g;
        for (size_t i = 0; i < CAUGHT; i++) {
            sigaction(caught[i], NULL, &g->before[i]);
        }
        for (size_t i = 0; i < CAUGHT; i++) {
            sigaction(caught[i], &action, NULL);
        }
    }
    guard = g;
}

static void end_guard(struct missing_guard *g)
{
    guard = g->outer;
    for (size_t i = 0; !guard && i < CAUGHT; i++) {
        sigaction(caught[i], &g->before[i], NULL);
    }
}

static void append_asked(struct buf *out, const struct missing_guard *g)
{
    for (size_t i = 0; i < NAMES; i++) {
        if (g->variables[i]) {
            buf_append_cstr(out, out->len > 0 ? ", " : "");
            buf_append_cstr(out, names[i]);
        }
    }
}

void missing_run_load(missing_load load, RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                      struct missing_load_end *end)
{
    struct missing_guard g;
    *end = (struct missing_load_end){.result = REDISMODULE_ERR, .cut_off = true};
    begin(&g);
    if (sigsetjmp(g.out, 1) == 0) {
        end->result = load(ctx, argv, argc);
        end->cut_off = false;
    }
    end_guard(&g);
    end->gave_up = g.gave_up;
    if (g.called < NAMES) {
        buf_append_cstr(&end->called, names[g.called]);
    }
    append_asked(&end->asked, &g);
}
