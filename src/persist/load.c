/* See load.h. */
#include "persist/load.h"

#include "base/clock.h"
#include "base/field.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/thread.h"
#include "engine/gate.h"
#include "engine/gil.h"
#include "engine/modules.h"
#include "persist/aof.h"
#include "persist/notes.h"
#include "persist/save_priv.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Between two lines of progress in the log, and two words to the listener. */
#define LOG_PERIOD_MS 5000
#define TELL_PERIOD_MS 1000
/* Between two words to modules: as often as Redis tells them. */
#define MODULES_PERIOD_BYTES ((uint64_t)2 << 20)

/* In order of preference. */
static const struct load_source *const sources[] = {&aof_load_source, &save_load_source};

int64_t load_key_delay;
static int64_t behind_from_bytes;

enum load_state { STATE_NOTHING, STATE_LOADING, STATE_DONE, STATE_BROKEN };

static struct {
    _Atomic enum load_state state;
    _Atomic bool stop;
    _Atomic bool is_serving; /* loads aside, beside a data set that is served */
    _Atomic uint64_t total_bytes, done_bytes, used_bytes, keys, expired;
    _Atomic int64_t start_ms;
    const struct load_source *source;
    const struct load_listener *listener;
    pthread_t thread;
    bool has_thread;            /* main thread's */
    int64_t logged_ms, told_ms; /* the loading thread's */
    uint64_t modules_bytes;     /* when modules were told last; the same */
    uint64_t keys_since_delay;
} load;

/* The calling thread loads behind the server's back: it holds the GIL in shared mode. */
static _Thread_local bool is_behind;

/* A set is loaded before the server listens if that ends within this time: small ones do, but for
 * an AOF's scripts, which may take any. */
#define FRONT_MS 1000

/* Where the thread that loads stands to the start: in front of it; behind it; or at its end, for
 * which the start waits. The loader goes from FRONT to END, the start from FRONT to BEHIND; whoever
 * comes first decides which of the two has the word on the end. */
enum load_place { PLACE_FRONT, PLACE_BEHIND, PLACE_END };
static _Atomic uint32_t load_place;

static unsigned percent_done(void)
{
    uint64_t total = load.total_bytes, done = load.done_bytes;
    return total ? (unsigned)(100.0 * (double)done / (double)total) : 0;
}

/* Others that want the world have it now. */
static void safe_point(void) NO_THREAD_SAFETY_ANALYSIS
{
    gil_sleep();
    gil_wake();
}

static void tell_modules(bool is_log)
{
    uint64_t total = load.total_bytes, done = load.done_bytes;
    if (done >= load.modules_bytes && done - load.modules_bytes < MODULES_PERIOD_BYTES) {
        return;
    }
    load.modules_bytes = done;
    bool known = is_behind && total > 0 && done <= total;
    struct modules_facts facts = {.first = known ? (int)((double)done / (double)total * 1024) : -1};
    modules_tell_news(MODULES_PROGRESS, is_log, &facts);
}

bool load_step(uint64_t bytes_done, bool is_log)
{
    load.done_bytes = bytes_done;
    if (modules_want(MODULES_PROGRESS)) {
        tell_modules(is_log);
    }
    if (!is_behind) {
        return true;
    }
    int64_t now_ms = clock_mono_us() / 1000;
    if (now_ms - load.told_ms >= TELL_PERIOD_MS) {
        load.told_ms = now_ms;
        load.listener->progress(percent_done());
    }
    if (now_ms - load.logged_ms >= LOG_PERIOD_MS) {
        load.logged_ms = now_ms;
        log_notice("Loading %s: %u %%, %" PRIu64 " keys so far", load.source->name, percent_done(),
                   (uint64_t)load.keys);
    }
    safe_point();
    return !load.stop;
}

/* Keys of a negative key-load-delay that share a microsecond: Redis's meaning of it. */
static bool delay_is_due(void)
{
    return load_key_delay > 0 || ++load.keys_since_delay % (uint64_t)-load_key_delay == 0;
}

void load_delay(void) NO_THREAD_SAFETY_ANALYSIS
{
    if (load.stop || !delay_is_due()) {
        return;
    }
    int64_t us = load_key_delay > 0 ? load_key_delay : 1;
    struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    if (is_behind) {
        gil_sleep();
    }
    nanosleep(&time, NULL);
    if (is_behind) {
        gil_wake();
    }
}

void load_note_keys(uint64_t loaded, uint64_t expired)
{
    load.keys = loaded;
    load.expired = expired;
}

void load_note_used_memory(uint64_t bytes)
{
    load.used_bytes = bytes;
}

bool load_is_complete(void)
{
    return load.state == STATE_DONE;
}

/* ---- the two ways ---- */

static void end(bool fine)
{
    load.state = fine ? STATE_DONE : STATE_BROKEN;
    if (fine) {
        gate_set(GATE_LOADING, false);
    }
}

/* The first who is there moves on from PLACE_FRONT. */
static bool leave_front(enum load_place next)
{
    uint32_t front = PLACE_FRONT;
    return atomic_compare_exchange_strong(&load_place, &front, next);
}

/* Loads in the calling thread, which has the GIL in shared mode. */
static void *run_behind(void *argument)
{
    (void)argument;
    thread_enter("loader");
    gil_wake();
    is_behind = true;
    modules_news(MODULES_LOADING, load.source == &aof_load_source ? 1 : 0, NULL);
    bool fine = load.source->load() == LOAD_FINE;
    modules_news(MODULES_LOADING, fine ? 3 : 4, NULL);
    if (fine) {
        notes_accept();
    }
    bool in_front = leave_front(PLACE_END);
    fine = fine && (in_front || load.listener->loaded());
    end(fine);
    gil_sleep();
    if (in_front) {
        futex_wake(&load_place, 1);
    } else {
        load.listener->ended(fine);
    }
    thread_leave();
    return NULL;
}

static bool start_behind(enum load_place place)
{
    load_place = place;
    gate_set(GATE_LOADING, true);
    int error = thread_start(&load.thread, run_behind, NULL);
    if (error) {
        log_warning("Can't start the thread that loads: %s", strerror(error));
        return false;
    }
    load.has_thread = true;
    return true;
}

static void join_loader(void)
{
    if (load.has_thread) {
        pthread_join(load.thread, NULL);
        load.has_thread = false;
    }
}

/* The start waits for the end of the loading, if that comes soon. */
static enum load_begun wait_in_front(void)
{
    int64_t until_us = clock_mono_us() + FRONT_MS * 1000, left_us = FRONT_MS * 1000;
    while (left_us > 0 && load_place == PLACE_FRONT) {
        futex_wait(&load_place, PLACE_FRONT, (uint64_t)left_us * 1000);
        left_us = until_us - clock_mono_us();
    }
    if (leave_front(PLACE_BEHIND)) {
        return LOAD_BEGUN_BEHIND;
    }
    join_loader();
    return load.state == STATE_DONE ? LOAD_BEGUN_DONE : LOAD_BEGUN_BAD;
}

static const struct load_source *find_source(void)
{
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        if (sources[i]->is_wanted()) {
            return sources[i];
        }
    }
    return NULL;
}

enum load_begun load_begin(const struct load_listener *listener)
{
    assert(load.state == STATE_NOTHING);
    load.source = find_source();
    load.listener = listener;
    load.start_ms = clock_wall_ms();
    if (!load.source) {
        load.state = STATE_DONE;
        return LOAD_BEGUN_DONE;
    }
    load.logged_ms = load.told_ms = clock_mono_us() / 1000;
    load.total_bytes = load.source->bytes();
    load.state = STATE_LOADING;
    bool large = load.total_bytes >= (uint64_t)behind_from_bytes;
    if (!start_behind(large ? PLACE_BEHIND : PLACE_FRONT)) {
        return LOAD_BEGUN_BAD;
    }
    return large ? LOAD_BEGUN_BEHIND : wait_in_front();
}

void load_stop(void)
{
    load.stop = true;
    join_loader();
}

/* ---- again ---- */

static enum load_result load_telling(const struct load_source *source)
{
    bool aside = load.is_serving;
    modules_news(aside ? MODULES_ASYNC_LOAD : MODULES_LOADING, aside ? 0 : 2, NULL);
    enum load_result result = source->load();
    bool fine = result == LOAD_FINE;
    if (aside) {
        modules_news(MODULES_ASYNC_LOAD, fine ? 2 : 1, NULL);
    } else {
        modules_news(MODULES_LOADING, fine ? 3 : 4, NULL);
    }
    return result;
}

enum load_result load_again(const struct load_source *source, enum load_again how,
                            const struct load_listener *listener)
{
    enum load_state before = load.state;
    enum gate gate = how == LOAD_ASIDE_SERVING ? GATE_LOADING_ASIDE : GATE_LOADING;
    assert(before != STATE_LOADING && !load.is_serving);
    assert(how != LOAD_ASIDE_SERVING || before == STATE_DONE);
    load.source = source;
    load.listener = listener;
    load.start_ms = clock_wall_ms();
    load.logged_ms = load.told_ms = (int64_t)(clock_mono_us() / 1000);
    load.total_bytes = source->bytes();
    load.done_bytes = load.used_bytes = load.keys = load.expired = 0;
    load.is_serving = how == LOAD_ASIDE_SERVING;
    load.state = load.is_serving ? before : STATE_LOADING;
    gate_set(gate, true);
    is_behind = true;
    enum load_result result = load_telling(source);
    is_behind = false;
    load.state = result == LOAD_FINE ? STATE_DONE : how == LOAD_OVER ? STATE_BROKEN : before;
    load.is_serving = false;
    gate_set(gate, false);
    return result;
}

void load_accept(void)
{
    enum load_state broken = STATE_BROKEN;
    atomic_compare_exchange_strong(&load.state, &broken, STATE_DONE);
}

/* ---- INFO ---- */

void load_write_info(struct buf *out)
{
    field_i64(out, "loading", load.state == STATE_LOADING);
    field_i64(out, "async_loading", load.is_serving);
}

void load_write_info_progress(struct buf *out)
{
    field_u64(out, "rdb_last_load_keys_expired", load.expired);
    field_u64(out, "rdb_last_load_keys_loaded", load.keys);
    if (load.state != STATE_LOADING && !load.is_serving) {
        return;
    }
    uint64_t total = load.total_bytes, done = load.done_bytes;
    int64_t took_s = (clock_wall_ms() - load.start_ms) / 1000;
    uint64_t left = total > done ? total - done : 0;
    double share = total ? (double)done / (double)total : 0;
    /* As fast as so far; one second is what nobody knows yet. */
    uint64_t eta_s =
        took_s < 1 || done == 0 ? 1 : (uint64_t)((double)left * (double)took_s / (double)done);
    field_i64(out, "loading_start_time", load.start_ms / 1000);
    field_u64(out, "loading_total_bytes", total);
    field_u64(out, "loading_rdb_used_mem", load.used_bytes);
    field_u64(out, "loading_loaded_bytes", done);
    field_fixed(out, "loading_loaded_perc", share * 100.0, 2);
    field_u64(out, "loading_eta_seconds", eta_s);
}

const struct option load_options[] = {
    {.name = "key-load-delay",
     .type = OPTION_INT,
     .flags = OPTION_HIDDEN,
     .target = &load_key_delay,
     .initial = "0",
     .min = INT32_MIN,
     .max = INT32_MAX},
    {.name = "loading-process-events-interval-bytes",
     .type = OPTION_INT,
     .flags = OPTION_HIDDEN,
     .target = &behind_from_bytes,
     .initial = "2097152",
     .min = 1024,
     .max = INT32_MAX},
    {.name = NULL},
};
