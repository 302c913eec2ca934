/* See busy.h. */
#include "engine/busy.h"

#include "base/clock.h"
#include "base/futex.h"
#include "base/lock.h"
#include "base/log.h"
#include "engine/gate.h"
#include "keyspace/lock.h"

#include <assert.h>
#include <stdatomic.h>

/* Most arguments of a call that FUNCTION STATS shows. */
#define BUSY_ARGS_SHOWN 128

static struct {
    int64_t threshold_ms;
    void (*serve)(void);
} settings;

/* Who sleeps until the script's thread has run something for it, or will not. */
struct visit {
    void (*run)(void *argument);
    void *argument;
    struct visit *next;
    _Atomic uint32_t fate; /* enum visit_fate; its last touch by the script's thread */
};
enum visit_fate { VISIT_WAITS, VISIT_RAN, VISIT_REFUSED };

static struct {
    struct lock lock;
    struct visit *visits; /* none when none runs */
    const struct call *c; /* NULL: none runs */
    struct slice name;
    enum busy_kind kind;
    unsigned within; /* those that began within it */
    bool has_written;
    bool is_long; /* only the thread that runs it writes */
    uint64_t begin_ns;
    _Atomic bool killed;
    _Atomic bool at_end; /* the server ends: nothing more is served */
} running = {.lock = LOCK_INIT(LOCK_RANK_BUSY, "busy")};

void busy_set_server(void (*serve)(void))
{
    settings.serve = serve;
}

int64_t busy_threshold_ms(void)
{
    return settings.threshold_ms > 0 ? settings.threshold_ms : 0;
}

void busy_be_alone(void)
{
    settings.threshold_ms = 0;
    settings.serve = NULL;
}

static enum gate gate_of(enum busy_kind kind)
{
    static const enum gate gates[] = {
        [BUSY_SCRIPT] = GATE_SCRIPT, [BUSY_FUNCTION] = GATE_FUNCTION, [BUSY_MODULE] = GATE_MODULE};
    return gates[kind];
}

void busy_begin(enum busy_kind kind, struct slice name, const struct call *c)
{
    keyspace_assert_exclusive();
    lock_acquire(&running.lock);
    if (running.c) {
        assert(running.kind == BUSY_MODULE);
        running.within++;
        lock_release(&running.lock);
        return;
    }
    running.c = c;
    running.name = name;
    running.kind = kind;
    running.has_written = running.is_long = false;
    running.begin_ns = clock_mono_ns();
    lock_release(&running.lock);
}

/* Takes the visits out. */
static struct visit *take_visits(void)
{
    struct visit *list = running.visits;
    running.visits = NULL;
    return list;
}

/* Ends visits, each of them run or none. */
static void settle_visits(struct visit *list, enum visit_fate fate)
{
    while (list) {
        struct visit *v = list;
        list = v->next;
        if (fate == VISIT_RAN) {
            v->run(v->argument);
        }
        /* The waiter's stack may be gone right behind the store: only the address is used then. */
        atomic_store_explicit(&v->fate, fate, memory_order_release);
        futex_wake(&v->fate, 1);
    }
}

bool busy_has_begun(void)
{
    keyspace_assert_exclusive();
    return running.c != NULL; /* only a holder changes it */
}

bool busy_has_script(void)
{
    keyspace_assert_exclusive();
    return running.c && (running.kind != BUSY_MODULE || running.within > 0);
}

bool busy_has_function(void)
{
    return busy_has_script() && running.kind != BUSY_SCRIPT;
}

void busy_end(void)
{
    lock_acquire(&running.lock);
    assert(running.c);
    if (running.within > 0) {
        running.within--;
        lock_release(&running.lock);
        return;
    }
    running.c = NULL;
    struct visit *left = take_visits();
    lock_release(&running.lock);
    settle_visits(left, VISIT_REFUSED);
    if (atomic_load(&running.at_end)) {
        return; /* what it has half done is shown to nobody */
    }
    atomic_store_explicit(&running.killed, false, memory_order_relaxed);
    if (running.is_long) {
        keyspace_set_busy(false);
        gate_set(gate_of(running.kind), false);
    }
}

bool busy_note_write(void)
{
    lock_acquire(&running.lock);
    bool goes_on = !atomic_load_explicit(&running.killed, memory_order_relaxed);
    running.has_written |= goes_on;
    lock_release(&running.lock);
    return goes_on;
}

bool busy_is_killed(void)
{
    return unlikely(atomic_load_explicit(&running.killed, memory_order_relaxed));
}

static void log_long(uint64_t elapsed_ms)
{
    if (running.kind == BUSY_MODULE) {
        log_warning("Slow module command detected: still in execution after %llu milliseconds: "
                    "%.*s",
                    (unsigned long long)elapsed_ms, (int)running.name.len, running.name.ptr);
        return;
    }
    log_warning("Slow script detected: still in execution after %llu milliseconds. You can try "
                "killing the script using the %s command. Script name is: %.*s.",
                (unsigned long long)elapsed_ms,
                running.kind == BUSY_SCRIPT ? "SCRIPT KILL" : "FUNCTION KILL",
                (int)running.name.len, running.name.ptr);
}

void busy_poll(void)
{
    uint64_t elapsed_ms = (clock_mono_ns() - running.begin_ns) / 1000000;
    if (settings.threshold_ms <= 0 || elapsed_ms < (uint64_t)settings.threshold_ms) {
        return;
    }
    if (!running.is_long) {
        log_long(elapsed_ms);
        running.is_long = true;
        gate_set(gate_of(running.kind), true);
        keyspace_set_busy(true);
    }
    lock_acquire(&running.lock);
    struct visit *visits = take_visits();
    lock_release(&running.lock);
    settle_visits(visits, VISIT_RAN);
    if (settings.serve) {
        settings.serve();
    }
}

bool busy_is_at_end(void)
{
    return atomic_load(&running.at_end);
}

/* ---- others ---- */

#define UNKILLABLE_TEXT                                                                            \
    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can "    \
    "either wait the script termination or kill the server in a hard way using the SHUTDOWN "      \
    "NOSAVE command."

void busy_kill(struct call *c, enum busy_kind kind)
{
    const char *error = NULL;
    lock_acquire(&running.lock);
    if (!running.c || running.kind == BUSY_MODULE) {
        error = "NOTBUSY No scripts in execution right now.";
    } else if (running.kind != kind) {
        error = running.kind == BUSY_SCRIPT
                    ? "BUSY Redis is busy running a script. You can only call SCRIPT KILL or "
                      "SHUTDOWN NOSAVE."
                    : "BUSY Redis is busy running a script. You can only call FUNCTION KILL or "
                      "SHUTDOWN NOSAVE.";
    } else if (running.has_written) {
        error = UNKILLABLE_TEXT;
    } else {
        atomic_store_explicit(&running.killed, true, memory_order_relaxed);
    }
    lock_release(&running.lock);
    if (error) {
        reply_error(c->reply, error);
    } else {
        reply_ok(c->reply);
    }
}

bool busy_end_for_shutdown(void)
{
    lock_acquire(&running.lock);
    bool ends = running.c && keyspace_is_busy();
    if (ends) {
        atomic_store(&running.at_end, true);
        atomic_store(&running.killed, true);
    }
    lock_release(&running.lock);
    return ends;
}

/* True when the script's thread has run it; false when no script takes long any more. */
static bool visit(void (*run)(void *argument), void *argument)
{
    struct visit v = {.run = run, .argument = argument, .fate = VISIT_WAITS};
    lock_acquire(&running.lock);
    bool waits = running.c && keyspace_is_busy();
    if (waits) {
        v.next = running.visits;
        running.visits = &v;
    }
    lock_release(&running.lock);
    if (!waits) {
        return false;
    }
    uint32_t fate;
    while ((fate = atomic_load_explicit(&v.fate, memory_order_acquire)) == VISIT_WAITS) {
        futex_wait(&v.fate, VISIT_WAITS, 0);
    }
    return fate == VISIT_RAN;
}

void busy_run_within(void (*run)(void *argument), void *argument) NO_THREAD_SAFETY_ANALYSIS
{
    if (keyspace_is_exclusive()) { /* the thread's own script runs */
        run(argument);
        return;
    }
    while (!busy_is_at_end()) {
        if (keyspace_try_exclusive()) {
            run(argument);
            keyspace_unlock_exclusive();
            return;
        }
        if (visit(run, argument)) {
            return;
        }
    }
}

/* The arguments are the running call's: they are copied while it cannot end. */
void busy_reply_running(struct reply *reply)
{
    struct buf copies = {0};
    size_t ends[BUSY_ARGS_SHOWN + 1];
    int count = 0;
    uint64_t elapsed_ms = 0;
    lock_acquire(&running.lock);
    if (running.c && running.kind == BUSY_FUNCTION) {
        elapsed_ms = (clock_mono_ns() - running.begin_ns) / 1000000;
        buf_append_slice(&copies, running.name);
        ends[0] = copies.len;
        count = running.c->argc < BUSY_ARGS_SHOWN ? running.c->argc : BUSY_ARGS_SHOWN;
        for (int i = 0; i < count; i++) {
            buf_append_slice(&copies, running.c->argv[i]);
            ends[i + 1] = copies.len;
        }
    }
    lock_release(&running.lock);
    if (count == 0) {
        reply_null(reply);
        return;
    }
    reply_map(reply, 3);
    reply_bulk_cstr(reply, "name");
    reply_bulk(reply, slice_of(copies.data, ends[0]));
    reply_bulk_cstr(reply, "command");
    reply_array(reply, (uint64_t)count);
    for (int i = 0; i < count; i++) {
        reply_bulk(reply, slice_of(copies.data + ends[i], ends[i + 1] - ends[i]));
    }
    reply_bulk_cstr(reply, "duration_ms");
    reply_i64(reply, (int64_t)elapsed_ms);
    buf_deinit(&copies);
}

const struct option busy_options[] = {
    {.name = "busy-reply-threshold",
     .alias = "lua-time-limit",
     .type = OPTION_INT,
     .target = &settings.threshold_ms,
     .initial = "5000",
     .min = 0,
     .max = INT64_MAX},
    {.name = NULL},
};
