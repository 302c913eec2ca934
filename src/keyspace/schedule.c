/* See schedule.h. A binary heap of blocks that know their places in it. */
#include "keyspace/schedule.h"

#include "base/clock.h"
#include "base/futex.h"
#include "base/mem.h"

/* A clock that is set must not keep a job waiting for longer. */
#define LOOK_MS 1000

static struct {
    struct scheduled **heap;
    size_t count, capacity;
    _Atomic int64_t first_ms; /* INT64_MAX: none */
    _Atomic uint64_t shown_count;
    _Atomic uint32_t wakeups; /* futex word */
} schedule = {.first_ms = INT64_MAX};

void schedule_wake(void)
{
    atomic_fetch_add(&schedule.wakeups, 1);
    futex_wake(&schedule.wakeups, 1);
}

/* After each change: what the runner sleeps for. */
static void publish(void)
{
    int64_t before_ms = atomic_load_explicit(&schedule.first_ms, memory_order_relaxed);
    int64_t first_ms = schedule.count ? schedule.heap[0]->due_ms : INT64_MAX;
    atomic_store(&schedule.first_ms, first_ms);
    atomic_store(&schedule.shown_count, schedule.count);
    if (first_ms < before_ms) {
        schedule_wake();
    }
}

/* ---- the heap ---- */

static void put(size_t at, struct scheduled *s)
{
    schedule.heap[at] = s;
    s->at = at;
}

/* Brings what stands at `at` up to where it belongs; returns where that is. */
static size_t rise(size_t at)
{
    struct scheduled *s = schedule.heap[at];
    while (at > 0 && schedule.heap[(at - 1) / 2]->due_ms > s->due_ms) {
        put(at, schedule.heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(at, s);
    return at;
}

/* Down. */
static void sink(size_t at)
{
    struct scheduled *s = schedule.heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < schedule.count &&
            schedule.heap[child + 1]->due_ms < schedule.heap[child]->due_ms) {
            child++;
        }
        if (child >= schedule.count || schedule.heap[child]->due_ms >= s->due_ms) {
            break;
        }
        put(at, schedule.heap[child]);
        at = child;
    }
    put(at, s);
}

static void drop(struct scheduled *s)
{
    size_t at = s->at;
    assert(schedule.heap[at] == s);
    s->job->scheduled = NULL;
    if (at < --schedule.count) {
        put(at, schedule.heap[schedule.count]);
        sink(rise(at));
    }
    mem_free(s);
}

/* ---- for db.c ---- */

void schedule_add(struct db *db, struct entry *e)
{
    struct job *job = job_of(e);
    struct slice key = entry_key(e);
    if (job->scheduled) {
        return;
    }
    if (schedule.count == schedule.capacity) {
        schedule.capacity = schedule.capacity ? schedule.capacity * 2 : 16;
        schedule.heap = mem_realloc(schedule.heap, schedule.capacity * sizeof(struct scheduled *));
    }
    struct scheduled *s = mem_alloc(sizeof(*s) + key.len);
    *s = (struct scheduled){.due_ms = job->due_ms ? job->due_ms : job_next_ms(job, clock_wall_ms()),
                            .db = db,
                            .job = job,
                            .key_len = (uint32_t)key.len};
    if (key.len > 0) {
        memcpy(s->key, key.ptr, key.len);
    }
    job->scheduled = s;
    put(schedule.count++, s);
    rise(s->at);
    publish();
}

void schedule_remove(struct entry *e)
{
    struct job *job = job_of(e);
    assert(job->scheduled);
    job->due_ms = job->scheduled->due_ms; /* it may come back under another name */
    drop(job->scheduled);
    publish();
}

/* Puts the whole heap in order. */
static void sink_all(void)
{
    for (size_t at = schedule.count / 2; at-- > 0;) {
        sink(at);
    }
}

void schedule_flush(struct db *db)
{
    size_t kept = 0;
    if (schedule.count == 0) {
        return;
    }
    for (size_t i = 0; i < schedule.count; i++) {
        struct scheduled *s = schedule.heap[i];
        if (s->db == db) {
            s->job->scheduled = NULL;
            mem_free(s);
        } else {
            put(kept++, s);
        }
    }
    schedule.count = kept;
    sink_all();
    publish();
}

void schedule_swap(struct db *a, struct db *b)
{
    for (size_t i = 0; i < schedule.count; i++) {
        struct scheduled *s = schedule.heap[i];
        s->db = s->db == a ? b : s->db == b ? a : s->db;
    }
}

void schedule_teardown(void)
{
    for (size_t i = 0; i < schedule.count; i++) {
        mem_free(schedule.heap[i]);
    }
    mem_free(schedule.heap);
    schedule.heap = NULL;
    schedule.count = schedule.capacity = 0;
    atomic_store(&schedule.first_ms, INT64_MAX);
    atomic_store(&schedule.shown_count, 0);
}

/* ---- for who runs them ---- */

const struct scheduled *schedule_first(void)
{
    return schedule.count ? schedule.heap[0] : NULL;
}

void schedule_advance(int64_t now_ms)
{
    struct scheduled *s = schedule.heap[0];
    assert(schedule.count > 0 && !s->job->terms.single);
    s->due_ms = job_next_ms(s->job, now_ms);
    sink(0);
    publish();
}

void schedule_leave(int64_t now_ms)
{
    struct scheduled *s = schedule.heap[0];
    assert(schedule.count > 0);
    s->due_ms = s->job->terms.single ? now_ms + LOOK_MS : job_next_ms(s->job, now_ms);
    sink(0);
    publish();
}

static schedule_judge judge;

void schedule_set_judge(schedule_judge set)
{
    judge = set;
}

bool schedule_is_ours(const struct scheduled *s)
{
    return likely(!judge) || judge(s->db, slice_of(s->key, s->key_len));
}

void schedule_skip(int64_t now_ms)
{
    for (size_t i = 0; i < schedule.count; i++) {
        struct scheduled *s = schedule.heap[i];
        if (s->due_ms <= now_ms) {
            s->due_ms = job_next_ms(s->job, now_ms);
        }
    }
    sink_all();
    publish();
}

uint64_t schedule_count(void)
{
    return atomic_load(&schedule.shown_count);
}

bool schedule_sleep(int64_t least_ms)
{
    uint32_t seen = atomic_load(&schedule.wakeups);
    int64_t first_ms = atomic_load(&schedule.first_ms);
    int64_t left_ms = first_ms == INT64_MAX ? INT64_MAX : first_ms - clock_wall_ms();
    int64_t wait_ms = left_ms < LOOK_MS ? left_ms : LOOK_MS;
    wait_ms = wait_ms > least_ms ? wait_ms : least_ms;
    if (left_ms == INT64_MAX) {
        futex_wait(&schedule.wakeups, seen, 0);
    } else if (wait_ms > 0) {
        futex_wait(&schedule.wakeups, seen, (uint64_t)wait_ms * 1000000);
    }
    first_ms = atomic_load(&schedule.first_ms);
    return first_ms != INT64_MAX && first_ms <= clock_wall_ms();
}
