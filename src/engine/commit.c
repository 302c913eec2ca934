/* See commit.h. */
#include "engine/commit.h"

#include <assert.h>
#include <time.h>

/* One wait for the disk. */
#define YIELD_NS (2 * 1000 * 1000)

struct commit_state commit;

static void (*told)(void);

void commit_set_listener(void (*listener)(void))
{
    told = listener;
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
    if (told) {
        told();
    }
}
