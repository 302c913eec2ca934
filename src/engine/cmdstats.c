/* Statistics of commands, errors and latencies. Each thread writes lines of its own (no locked
 * instruction, no shared cache line); who asks adds them up with relaxed loads, so a sum may miss a
 * call that is being recorded. */
#include "engine/cmdstats.h"

#include "base/lock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"

#include <assert.h>
#include <stdatomic.h>

/* Different error codes counted one by one, as many as Redis keeps; scripts can make up any number
 * of them. */
#define ERROR_CODES_MAX 128
/* Longest code, and where the others are counted. */
#define ERROR_CODE_BYTES 32
#define ERROR_CODE_OVERFLOW "ERRORSTATS_OVERFLOW"

/* One command's figures on one thread; written by that thread only. */
struct command_line {
    _Atomic uint64_t calls, time_ns, rejected, failed;
    _Atomic(struct histogram *) latency; /* made at the first sample */
};

struct error_count {
    char code[ERROR_CODE_BYTES];
    size_t len;
    _Atomic uint64_t count;
};

static struct {
    unsigned command_count; /* ids at setup */
    _Atomic(struct command_line *)
        lines[THREAD_MAX]; /* each made by its thread at its first call */
} commands;

/* Codes are only added (under the lock) until a reset, which has the world to itself; so whoever
 * has seen `used` may read the entries below it without the lock. The release store of `used` pairs
 * with the acquire loads. */
static struct {
    struct lock lock;
    _Atomic unsigned used;
    struct error_count codes[ERROR_CODES_MAX + 1]; /* the last one is the overflow's */
} errors = {.lock = LOCK_INIT(LOCK_RANK_STATS, "errorstats")};

static struct {
    bool tracking;
    int count;
    double values[CMDSTATS_PERCENTILES_MAX];
} percentiles;

/* ---- Commands */

void cmdstats_setup(void)
{
    assert(commands.command_count == 0);
    commands.command_count = command_id_count();
}

void cmdstats_teardown(void)
{
    for (unsigned slot = 0; slot < THREAD_MAX; slot++) {
        struct command_line *lines = atomic_load(&commands.lines[slot]);
        for (unsigned id = 0; lines != NULL && id < commands.command_count; id++) {
            mem_free(atomic_load(&lines[id].latency));
        }
        mem_free(lines);
        atomic_store(&commands.lines[slot], NULL);
    }
    commands.command_count = 0;
    atomic_store(&errors.used, 0);
    memset(errors.codes, 0, sizeof(errors.codes));
}

/* The same lines with room for `count` commands. */
static struct command_line *copy_lines(const struct command_line *from, unsigned count)
{
    struct command_line *to = mem_alloc_aligned(CACHE_LINE_BYTES, count * sizeof(*to));
    memset(to, 0, count * sizeof(*to));
    for (unsigned id = 0; id < commands.command_count; id++) {
        atomic_init(&to[id].calls, atomic_load(&from[id].calls));
        atomic_init(&to[id].time_ns, atomic_load(&from[id].time_ns));
        atomic_init(&to[id].rejected, atomic_load(&from[id].rejected));
        atomic_init(&to[id].failed, atomic_load(&from[id].failed));
        atomic_init(&to[id].latency, atomic_load(&from[id].latency));
    }
    return to;
}

void cmdstats_grow(void)
{
    unsigned count = command_id_count();
    if (commands.command_count == 0 || count <= commands.command_count) {
        return;
    }
    for (unsigned slot = 0; slot < THREAD_MAX; slot++) {
        struct command_line *lines = atomic_load(&commands.lines[slot]);
        if (lines != NULL) {
            atomic_store(&commands.lines[slot], copy_lines(lines, count));
            mem_free(lines);
        }
    }
    commands.command_count = count;
}

static struct command_line *make_lines(unsigned slot)
{
    size_t size = commands.command_count * sizeof(struct command_line);
    struct command_line *lines = mem_alloc_aligned(CACHE_LINE_BYTES, size);
    memset(lines, 0, size);
    atomic_store_explicit(&commands.lines[slot], lines, memory_order_release);
    return lines;
}

/* The calling thread's line of a command. */
static inline struct command_line *own_line(const struct command *cmd)
{
    assert(cmd->id < commands.command_count);
    unsigned slot = thread_slot();
    struct command_line *lines = atomic_load_explicit(&commands.lines[slot], memory_order_relaxed);
    if (unlikely(lines == NULL)) {
        lines = make_lines(slot);
    }
    return &lines[cmd->id];
}

/* Adds to a counter that only the calling thread writes. */
static inline void add_own(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

void cmdstats_record(const struct command *cmd, uint64_t calls, uint64_t time_ns)
{
    if (calls == 0) {
        return;
    }
    struct command_line *line = own_line(cmd);
    add_own(&line->calls, calls);
    add_own(&line->time_ns, time_ns);
    if (!percentiles.tracking) {
        return;
    }
    struct histogram *latency = atomic_load_explicit(&line->latency, memory_order_relaxed);
    if (unlikely(latency == NULL)) {
        latency = mem_calloc(1, sizeof(*latency));
        atomic_store_explicit(&line->latency, latency, memory_order_release);
    }
    histogram_record(latency, calls == 1 ? time_ns : time_ns / calls, calls);
}

void cmdstats_rejected(const struct command *cmd)
{
    add_own(&own_line(cmd)->rejected, 1);
}

void cmdstats_failed(const struct command *cmd)
{
    add_own(&own_line(cmd)->failed, 1);
}

struct cmdstats cmdstats_sum(const struct command *cmd)
{
    struct cmdstats sum = {0};
    for (unsigned slot = 0, used = thread_slots_used(); slot < used; slot++) {
        struct command_line *lines =
            atomic_load_explicit(&commands.lines[slot], memory_order_acquire);
        if (lines == NULL || cmd->id >= commands.command_count) {
            continue;
        }
        const struct command_line *line = &lines[cmd->id];
        sum.calls += atomic_load_explicit(&line->calls, memory_order_relaxed);
        sum.time_ns += atomic_load_explicit(&line->time_ns, memory_order_relaxed);
        sum.rejected += atomic_load_explicit(&line->rejected, memory_order_relaxed);
        sum.failed += atomic_load_explicit(&line->failed, memory_order_relaxed);
    }
    return sum;
}

bool cmdstats_histogram(const struct command *cmd, struct histogram *sum)
{
    histogram_clear(sum);
    for (unsigned slot = 0, used = thread_slots_used(); slot < used; slot++) {
        struct command_line *lines =
            atomic_load_explicit(&commands.lines[slot], memory_order_acquire);
        if (lines == NULL || cmd->id >= commands.command_count) {
            continue;
        }
        const struct histogram *latency =
            atomic_load_explicit(&lines[cmd->id].latency, memory_order_acquire);
        if (latency != NULL) {
            histogram_add_relaxed(sum, latency);
        }
    }
    return !histogram_is_empty(sum);
}

void cmdstats_reset(void)
{
    for (unsigned slot = 0; slot < THREAD_MAX; slot++) {
        struct command_line *lines = atomic_load(&commands.lines[slot]);
        for (unsigned id = 0; lines != NULL && id < commands.command_count; id++) {
            atomic_store(&lines[id].calls, 0);
            atomic_store(&lines[id].time_ns, 0);
            atomic_store(&lines[id].rejected, 0);
            atomic_store(&lines[id].failed, 0);
            struct histogram *latency = atomic_load(&lines[id].latency);
            if (latency != NULL) {
                histogram_clear(latency);
            }
        }
    }
    lock_acquire(&errors.lock);
    unsigned used = atomic_load(&errors.used);
    for (unsigned i = 0; i < used; i++) {
        atomic_store(&errors.codes[i].count, 0);
    }
    atomic_store(&errors.codes[ERROR_CODES_MAX].count, 0);
    atomic_store(&errors.used, 0);
    lock_release(&errors.lock);
}

/* ---- Errors */

/* The code of an error text: its first word, "ERR" when that is none of a sensible length. Bytes
 * that would break INFO's lines become '_'. Returns the length; `code` holds ERROR_CODE_BYTES. */
static size_t error_code_of(struct slice text, char *code)
{
    size_t len = 0;
    while (len < text.len && len < ERROR_CODE_BYTES && text.ptr[len] != ' ') {
        len++;
    }
    if (len == text.len || len == ERROR_CODE_BYTES || len == 0) {
        memcpy(code, "ERR", 3);
        return 3;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        code[i] = c <= ' ' || c >= 0x7f || strchr("#:,=", c) != NULL ? '_' : (char)c;
    }
    return len;
}

static struct error_count *find_error(const char *code, size_t len)
{
    unsigned used = atomic_load_explicit(&errors.used, memory_order_acquire);
    for (unsigned i = 0; i < used; i++) {
        struct error_count *e = &errors.codes[i];
        if (e->len == len && memcmp(e->code, code, len) == 0) {
            return e;
        }
    }
    return NULL;
}

static struct error_count *add_error(const char *code, size_t len)
{
    lock_acquire(&errors.lock);
    struct error_count *e = find_error(code, len);
    if (e == NULL) {
        unsigned used = atomic_load_explicit(&errors.used, memory_order_relaxed);
        e = &errors.codes[used];
        if (used < ERROR_CODES_MAX) {
            memcpy(e->code, code, len);
            e->len = len;
            atomic_store_explicit(&errors.used, used + 1, memory_order_release);
        }
    }
    lock_release(&errors.lock);
    return e;
}

void errorstats_record(struct slice text)
{
    char code[ERROR_CODE_BYTES];
    size_t len = error_code_of(text, code);
    struct error_count *e = find_error(code, len);
    if (e == NULL) {
        e = add_error(code, len);
    }
    atomic_fetch_add_explicit(&e->count, 1, memory_order_relaxed);
}

void errorstats_each(void (*visit)(const char *code, uint64_t count, void *context), void *context)
{
    unsigned used = atomic_load_explicit(&errors.used, memory_order_acquire);
    for (unsigned i = 0; i < used; i++) {
        char code[ERROR_CODE_BYTES + 1];
        memcpy(code, errors.codes[i].code, errors.codes[i].len);
        code[errors.codes[i].len] = '\0';
        visit(code, atomic_load_explicit(&errors.codes[i].count, memory_order_relaxed), context);
    }
    uint64_t overflow =
        atomic_load_explicit(&errors.codes[ERROR_CODES_MAX].count, memory_order_relaxed);
    if (overflow > 0) {
        visit(ERROR_CODE_OVERFLOW, overflow, context);
    }
}

/* ---- Options */

int cmdstats_percentiles(const double **values)
{
    *values = percentiles.values;
    return percentiles.count;
}

bool cmdstats_tracking(void)
{
    return percentiles.tracking;
}

static bool percentiles_parse(const struct option *option UNUSED, const struct slice *words,
                              int count, const char **error)
{
    double values[CMDSTATS_PERCENTILES_MAX];
    if (count == 1 && words[0].len == 0) {
        count = 0;
    }
    if (count > CMDSTATS_PERCENTILES_MAX) {
        *error = "Too many latency-tracking-info-percentiles parameters";
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (!num_parse_double(words[i], &values[i])) {
            *error = "Invalid latency-tracking-info-percentiles parameters";
            return false;
        }
        if (!(values[i] >= 0.0 && values[i] <= 100.0)) {
            *error = "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]";
            return false;
        }
    }
    for (int i = 0; i < count; i++) {
        percentiles.values[i] = values[i];
    }
    percentiles.count = count;
    return true;
}

static void percentiles_format(const struct option *option UNUSED, struct buf *out)
{
    for (int i = 0; i < percentiles.count; i++) {
        char text[32];
        size_t len = num_format_double(text, percentiles.values[i]);
        buf_append_cstr(out, i > 0 ? " " : "");
        buf_append(out, text, len);
    }
}

const struct option cmdstats_options[] = {
    {.name = "latency-tracking",
     .type = OPTION_BOOL,
     .target = &percentiles.tracking,
     .initial = "yes"},
    {.name = "latency-tracking-info-percentiles",
     .type = OPTION_CUSTOM,
     .flags = OPTION_MULTI | OPTION_WORDLESS,
     .initial = "50 99 99.9",
     .parse = percentiles_parse,
     .format = percentiles_format},
    {.name = NULL},
};
