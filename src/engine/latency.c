/* The latency monitor: a fixed table of events, each with a ring of its last spikes. */
#include "engine/latency.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/num.h"
#include "base/spike.h"
#include "engine/slowlog.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* Spikes remembered of an event, as in Redis. */
#define SAMPLES_MAX 160
/* Different events; their names are in our source, so a handful. */
#define EVENTS_MAX 32
/* The graph: columns (the newest samples) and rows of characters. */
#define GRAPH_COLUMNS 80
#define GRAPH_ROWS 4

struct sample {
    int64_t wall_s;
    uint64_t duration_ms;
};

/* A copy of an event is a plain value: replies are made from copies, without the lock. */
struct event {
    char name[LATENCY_NAME_BYTES];
    unsigned next, count; /* ring: the next place, and how many are filled */
    uint64_t max_ms;      /* of all time since the last reset */
    struct sample samples[SAMPLES_MAX];
};

static struct lock latency_lock = LOCK_INIT(LOCK_RANK_LATENCY, "latency");
static struct {
    struct event events[EVENTS_MAX] GUARDED_BY(latency_lock);
    unsigned count GUARDED_BY(latency_lock);
    int64_t threshold_ms; /* world state; 0: off */
} latency;

/* The i-th sample, the oldest first. */
static const struct sample *event_sample(const struct event *e, unsigned i)
{
    assert(i < e->count);
    return &e->samples[(e->next + SAMPLES_MAX - e->count + i) % SAMPLES_MAX];
}

static struct event *find_event(struct slice name) REQUIRES(latency_lock);
static struct event *find_event(struct slice name)
{
    for (unsigned i = 0; i < latency.count; i++) {
        if (slice_equal(name, slice_cstr(latency.events[i].name))) {
            return &latency.events[i];
        }
    }
    return NULL;
}

static struct event *make_event(const char *name) REQUIRES(latency_lock);
static struct event *make_event(const char *name)
{
    assert(latency.count < EVENTS_MAX && strlen(name) < LATENCY_NAME_BYTES);
    struct event *e = &latency.events[latency.count++];
    memset(e, 0, sizeof(*e));
    snprintf(e->name, sizeof(e->name), "%s", name);
    return e;
}

bool latency_wants(uint64_t duration_ms)
{
    return latency.threshold_ms > 0 && duration_ms >= (uint64_t)latency.threshold_ms;
}

void latency_note(const char *event, uint64_t duration_ms, int64_t wall_s)
{
    if (!latency_wants(duration_ms)) {
        return;
    }
    lock_acquire(&latency_lock);
    struct event *e = find_event(slice_cstr(event));
    if (e == NULL && latency.count == EVENTS_MAX) { /* of modules, by what names they like */
        lock_release(&latency_lock);
        return;
    }
    if (e == NULL) {
        e = make_event(event);
    }
    if (e->max_ms < duration_ms) {
        e->max_ms = duration_ms;
    }
    struct sample *last = &e->samples[(e->next + SAMPLES_MAX - 1) % SAMPLES_MAX];
    if (e->count > 0 && last->wall_s == wall_s) {
        /* One sample a second: its worst spike. */
        if (last->duration_ms < duration_ms) {
            last->duration_ms = duration_ms;
        }
    } else {
        e->samples[e->next] = (struct sample){wall_s, duration_ms};
        e->next = (e->next + 1) % SAMPLES_MAX;
        e->count += e->count < SAMPLES_MAX;
    }
    lock_release(&latency_lock);
}

static void on_spike(const char *event, uint64_t duration_ms)
{
    latency_note(event, duration_ms, clock_wall_ms() / 1000);
}

static bool apply_threshold(const struct option *option, const char **error)
{
    (void)option;
    (void)error;
    spike_watch((uint64_t)latency.threshold_ms);
    return true;
}

void latency_setup(void)
{
    spike_set_listener(on_spike);
    spike_watch((uint64_t)latency.threshold_ms);
}

int64_t latency_reset(const struct slice *names, int count)
{
    int64_t reset = 0;
    lock_acquire(&latency_lock);
    if (count == 0) {
        reset = latency.count;
        latency.count = 0;
    }
    for (int i = 0; i < count; i++) {
        struct event *e = find_event(names[i]);
        if (e != NULL) {
            /* The others move up, so that LATEST keeps the order in which they appeared. */
            latency.count--;
            memmove(e, e + 1, (size_t)(&latency.events[latency.count] - e) * sizeof(*e));
            reset++;
        }
    }
    lock_release(&latency_lock);
    return reset;
}

/* Copies the event of that name; false when it has no samples. */
static bool copy_event(struct slice name, struct event *copy)
{
    lock_acquire(&latency_lock);
    const struct event *e = find_event(name);
    if (e != NULL) {
        *copy = *e;
    }
    lock_release(&latency_lock);
    return e != NULL;
}

/* Copies the event at `index`; false when there are not that many. */
static bool copy_event_at(unsigned index, struct event *copy)
{
    lock_acquire(&latency_lock);
    bool there = index < latency.count;
    if (there) {
        *copy = latency.events[index];
    }
    lock_release(&latency_lock);
    return there;
}

bool latency_spike_at(unsigned index, struct latency_spike *spike)
{
    struct event e;
    if (!copy_event_at(index, &e)) {
        return false;
    }
    static_assert(sizeof(spike->event) == sizeof(e.name), "a whole name");
    memcpy(spike->event, e.name, sizeof(e.name));
    const struct sample *last = event_sample(&e, e.count - 1);
    spike->wall_s = last->wall_s;
    spike->duration_ms = last->duration_ms;
    return true;
}

/* ---- Replies */

void latency_reply_latest(struct reply *r)
{
    struct event e;
    uint32_t list = reply_deferred(r);
    unsigned count = 0;
    for (; copy_event_at(count, &e); count++) {
        const struct sample *last = event_sample(&e, e.count - 1);
        reply_array(r, 4);
        reply_bulk_cstr(r, e.name);
        reply_i64(r, last->wall_s);
        reply_i64(r, (int64_t)last->duration_ms);
        reply_i64(r, (int64_t)e.max_ms);
    }
    reply_set_deferred_array(r, list, count);
}

void latency_reply_history(struct reply *r, struct slice event)
{
    struct event e;
    if (!copy_event(event, &e)) {
        reply_array(r, 0);
        return;
    }
    reply_array(r, e.count);
    for (unsigned i = 0; i < e.count; i++) {
        const struct sample *s = event_sample(&e, i);
        reply_array(r, 2);
        reply_i64(r, s->wall_s);
        reply_i64(r, (int64_t)s->duration_ms);
    }
}

/* ---- The graph: one column a sample, its age below it, read downwards ("3", "s") */

/* Appends the row `row` (0 is the top one) of bars. A bar's height is its place between the lowest
 * and the highest sample in steps of half a row: a full row is '|', the bar's end is 'o', or '#'
 * when it takes the upper half. */
static void graph_row(const struct event *e, unsigned first, uint64_t low, uint64_t high,
                      unsigned row, struct buf *out)
{
    unsigned floor = (GRAPH_ROWS - 1 - row) * 2; /* half steps below this row */
    for (unsigned i = first; i < e->count; i++) {
        uint64_t above = event_sample(e, i)->duration_ms - low;
        unsigned height =
            high > low ? (unsigned)((double)above / (double)(high - low) * (GRAPH_ROWS * 2 - 1))
                       : GRAPH_ROWS * 2 - 1;
        char c = ' ';
        if (height == 0 && row == GRAPH_ROWS - 1) {
            c = '_';
        } else if (height > floor + 1) {
            c = '|';
        } else if (height == floor + 1) {
            c = '#';
        } else if (height == floor && height > 0) {
            c = 'o';
        }
        buf_append_char(out, c);
    }
    buf_append_char(out, '\n');
}

/* Appends a sample's age in its largest unit ("12s", "3m", "5h", "2d"). Returns its length. */
static int graph_label(char *label, size_t size, int64_t age_s)
{
    age_s = age_s < 0 ? 0 : age_s;
    if (age_s < 60) {
        return snprintf(label, size, "%" PRId64 "s", age_s);
    }
    if (age_s < 3600) {
        return snprintf(label, size, "%" PRId64 "m", age_s / 60);
    }
    if (age_s < 86400) {
        return snprintf(label, size, "%" PRId64 "h", age_s / 3600);
    }
    return snprintf(label, size, "%" PRId64 "d", age_s / 86400);
}

static void graph_labels(const struct event *e, unsigned first, int64_t now_s, struct buf *out)
{
    char labels[GRAPH_COLUMNS][24];
    int longest = 0;
    for (unsigned i = first; i < e->count; i++) {
        int len =
            graph_label(labels[i - first], sizeof(labels[0]), now_s - event_sample(e, i)->wall_s);
        longest = len > longest ? len : longest;
    }
    for (int line = 0; line < longest; line++) {
        for (unsigned i = first; i < e->count; i++) {
            const char *label = labels[i - first];
            buf_append_char(out, line < (int)strlen(label) ? label[line] : ' ');
        }
        buf_append_char(out, '\n');
    }
}

bool latency_graph(struct slice event, int64_t now_s, struct buf *out)
{
    struct event e;
    if (!copy_event(event, &e)) {
        return false;
    }
    unsigned first = e.count > GRAPH_COLUMNS ? e.count - GRAPH_COLUMNS : 0;
    uint64_t low = UINT64_MAX, high = 0;
    for (unsigned i = first; i < e.count; i++) {
        uint64_t ms = event_sample(&e, i)->duration_ms;
        low = ms < low ? ms : low;
        high = ms > high ? ms : high;
    }
    buf_printf(out, "%s - high %" PRIu64 " ms, low %" PRIu64 " ms (all time high %" PRIu64 " ms)\n",
               e.name, high, low, e.max_ms);
    for (unsigned i = 0; i < GRAPH_COLUMNS; i++) {
        buf_append_char(out, '-');
    }
    buf_append_char(out, '\n');
    for (unsigned row = 0; row < GRAPH_ROWS; row++) {
        graph_row(&e, first, low, high, row, out);
    }
    buf_append_char(out, '\n');
    graph_labels(&e, first, now_s, out);
    return true;
}

/* ---- The doctor */

/* Advice as bits: an event asks for some, each is given once. */
enum advice {
    ADVICE_SLOWLOG = 1 << 0,
    ADVICE_SLOW_COMMANDS = 1 << 1,
    ADVICE_LARGE_KEYS = 1 << 2,
    ADVICE_LAZY = 1 << 3,
    ADVICE_EXPIRY = 1 << 4,
    ADVICE_EVICTION = 1 << 5,
    ADVICE_FORK = 1 << 6,
    ADVICE_DISK = 1 << 7,
    ADVICE_BESIDE_SYNC = 1 << 8,
    ADVICE_BESIDE_CHILD = 1 << 9,
    ADVICE_ALWAYS = 1 << 10,
    ADVICE_FILE_SYSTEM = 1 << 11,
};

static const struct {
    const char *event;
    unsigned advice;
} diagnoses[] = {
    {"command", ADVICE_SLOWLOG | ADVICE_SLOW_COMMANDS | ADVICE_LARGE_KEYS},
    {"fast-command", ADVICE_SLOWLOG | ADVICE_SLOW_COMMANDS | ADVICE_LARGE_KEYS},
    {"fork", ADVICE_FORK},
    {"expire-cycle", ADVICE_EXPIRY | ADVICE_LARGE_KEYS},
    {"expire-del", ADVICE_LARGE_KEYS | ADVICE_LAZY},
    {"eviction-cycle", ADVICE_EVICTION | ADVICE_LARGE_KEYS},
    {"eviction-del", ADVICE_LARGE_KEYS | ADVICE_LAZY},
    {"aof-write", ADVICE_DISK},
    {"aof-write-pending-fsync", ADVICE_BESIDE_SYNC | ADVICE_DISK},
    {"aof-write-active-child", ADVICE_BESIDE_CHILD | ADVICE_DISK},
    {"aof-write-alone", ADVICE_DISK},
    {"aof-fsync-always", ADVICE_ALWAYS | ADVICE_DISK},
    {"aof-fstat", ADVICE_FILE_SYSTEM | ADVICE_DISK},
    {"aof-rename", ADVICE_FILE_SYSTEM | ADVICE_DISK},
    {"rdb-unlink-temp-file", ADVICE_FILE_SYSTEM},
};

static const char *const advice_texts[] = {
    "The slow log does not record every command that counts as a spike here. Lower its threshold, "
    "for example with "
    "'CONFIG SET slowlog-log-slower-than 1000'.",
    "Look into the slow log (SLOWLOG GET) for the commands that took the time, and replace those "
    "whose work grows with "
    "the data by incremental ones (SCAN instead of KEYS, ranges instead of whole collections).",
    "Large keys are expensive to copy and to free. Split them, and delete them with UNLINK.",
    "Keys that expire or are evicted can be freed in the background: set lazyfree-lazy-expire and "
    "lazyfree-lazy-eviction to yes.",
    "Many keys expire at the same moment. Add some random time to their expiries.",
    "Memory is at its limit and writes wait for evictions. Raise maxmemory or write less.",
    "Forking takes long. It grows with memory in use; check that the system's huge pages are not "
    "'always'.",
    "The disk is slow to take what is written. Move other writers away from it, or relax "
    "appendfsync.",
    "Writes to the AOF wait for a sync of the same file. A faster disk helps, or 'appendfsync no', "
    "which leaves the time of syncs to the system.",
    "Writes to the AOF are slow while a child saves or rewrites. Have that done when less is "
    "written, or set no-appendfsync-on-rewrite to yes if you can afford to lose more.",
    "With 'appendfsync always' each reply to a write waits for the disk. If a second of writes may "
    "be lost, 'appendfsync everysec' does not wait.",
    "The file system takes long for a file's name or length. Large files are slow to remove on "
    "some: choose one that frees them in the background.",
};

static unsigned diagnose(const char *event)
{
    unsigned advice = 0;
    for (size_t i = 0; i < sizeof(diagnoses) / sizeof(diagnoses[0]); i++) {
        if (strcmp(event, diagnoses[i].event) == 0) {
            advice |= diagnoses[i].advice;
        }
    }
    return advice;
}

/* Appends one event's line: how many spikes, how long, how far apart. */
static void doctor_event(const struct event *e, unsigned number, int64_t now_s, struct buf *out)
{
    uint64_t sum = 0, deviations = 0;
    for (unsigned i = 0; i < e->count; i++) {
        sum += event_sample(e, i)->duration_ms;
    }
    uint64_t average = sum / e->count;
    for (unsigned i = 0; i < e->count; i++) {
        uint64_t ms = event_sample(e, i)->duration_ms;
        deviations += ms > average ? ms - average : average - ms;
    }
    int64_t span_s = now_s - event_sample(e, 0)->wall_s;
    double period_s = (double)(span_s < 0 ? 0 : span_s) / e->count;
    buf_printf(out,
               "%u. %s: %u latency spikes (average %" PRIu64 "ms, mean deviation %" PRIu64
               "ms, period %.2f sec). Worst all time event %" PRIu64 "ms.\n",
               number, e->name, e->count, average, deviations / e->count, period_s, e->max_ms);
}

void latency_doctor(int64_t now_s, struct buf *out)
{
    struct event e;
    if (latency.threshold_ms == 0) {
        buf_append_cstr(out, "The latency monitor is off. Turn it on with 'CONFIG SET "
                             "latency-monitor-threshold <milliseconds>'.\n");
        return;
    }
    if (!copy_event_at(0, &e)) {
        buf_append_cstr(out,
                        "No latency spike has been observed since the monitor was turned on or "
                        "reset.\n");
        return;
    }
    buf_append_cstr(out, "Latency spikes have been observed on this server.\n\n");
    unsigned advice = 0;
    for (unsigned i = 0; copy_event_at(i, &e); i++) {
        doctor_event(&e, i + 1, now_s, out);
        advice |= diagnose(e.name);
    }
    if (slowlog_wants((uint64_t)latency.threshold_ms * 1000)) {
        advice &= ~(unsigned)ADVICE_SLOWLOG;
    }
    if (advice == 0) {
        return;
    }
    buf_append_cstr(out, "\nAdvice:\n\n");
    for (unsigned i = 0; i < sizeof(advice_texts) / sizeof(advice_texts[0]); i++) {
        if (advice & 1u << i) {
            buf_printf(out, "- %s\n", advice_texts[i]);
        }
    }
}

const struct option latency_options[] = {
    {.name = "latency-monitor-threshold",
     .type = OPTION_INT,
     .target = &latency.threshold_ms,
     .initial = "0",
     .min = 0,
     .max = INT64_MAX,
     .apply = apply_threshold},
    {.name = NULL},
};
