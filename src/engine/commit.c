/* See commit.h. */
#include "engine/commit.h"

#include <assert.h>
#include <time.h>

/* One wait for the disk. */
#define YIELD_NS (2 * 1000 * 1000)

struct commit_state commit = {.doomed = UINT64_MAX};

const struct slice commit_event = {"\0log:on-disk", 12};

static void (*told)(void), (*watched)(void);
static void (*write_until)(uint64_t position, bool waits);

void commit_set_listener(void (*listener)(void))
{
    told = listener;
}

void commit_set_watcher(void (*watcher)(void))
{
    watched = watcher;
}

void commit_set_writer(void (*writer)(uint64_t position, bool waits))
{
    write_until = writer;
}

void commit_write_more(uint64_t position)
{
    if (write_until) {
        write_until(position, true);
    }
}

void commit_put(void)
{
    uint64_t position = commit_appended();
    if (commit_written() < position && write_until) {
        write_until(position, false);
        if (commit_is_gated() || commit_written() < position) {
            commit_kick();
        }
    }
}

void commit_kick(void)
{
    /* Partner: the log's thread stores `asleep` and then looks at `appended` once more, both
     * sequentially consistent. One of the two sees the other's. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&commit.asleep, memory_order_relaxed)) {
        atomic_store_explicit(&commit.asleep, 0, memory_order_relaxed);
        futex_wake(&commit.asleep, 1);
    }
}

void commit_yield(void)
{
    const struct timespec time = {.tv_nsec = YIELD_NS};
    commit_kick();
    nanosleep(&time, NULL);
}

void commit_advance(uint64_t position)
{
    assert(position >= commit_synced());
    atomic_store_explicit(&commit.synced, position, memory_order_release);
    commit_tell();
}

void commit_tell(void)
{
    if (told) {
        told();
    }
}

void commit_set_doomed(uint64_t position)
{
    bool fails = position != UINT64_MAX;
    atomic_store(&commit.doomed, position);
    if (fails != (commit_faults() & 1)) {
        atomic_fetch_add(&commit.faults, 1);
    }
}

/* ---- what is on the disk for good ---- */

bool commit_is_on_disk(uint64_t position)
{
    return atomic_load(&commit.log) == COMMIT_LOGS && atomic_load(&commit.on_disk) >= position;
}

void commit_watch(void)
{
    /* Partner: tell_watchers. Who watches stores the wish and then looks; who tells stores the news
     * and then takes the wish. All are sequentially consistent: one of the two sees the other's. */
    atomic_store(&commit.watched, true);
}

static void tell_watchers(void)
{
    if (atomic_load(&commit.watched) && atomic_exchange(&commit.watched, false) && watched) {
        watched();
    }
}

void commit_advance_on_disk(uint64_t position)
{
    if (position > atomic_load_explicit(&commit.on_disk, memory_order_relaxed)) {
        atomic_store(&commit.on_disk, position);
        tell_watchers();
    }
}

void commit_set_log(enum commit_log log)
{
    if (atomic_exchange(&commit.log, (int)log) != (int)log) {
        atomic_fetch_add(&commit.log_changes, 1);
        tell_watchers();
    }
}
