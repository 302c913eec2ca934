/* See lock.h. The word's states and the parking are those of a three-state futex mutex (0 free, 1
 * held, 2 held with somebody parked; Drepper, "Futexes Are Tricky"). */
#include "base/lock.h"

#include "base/futex.h"
#include "base/thread.h"

#include <assert.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#if KEYDB_DEBUG
/* Ranks held by the calling thread, innermost last. */
static _Thread_local struct {
    uint16_t rank[16];
    const char *name[16];
    int depth;
    bool forbidden; /* lock_forbid */
} held;
#endif

void lock_forbid(void)
{
#if KEYDB_DEBUG
    held.forbidden = true;
#endif
}

void lock_rank_push(uint16_t rank, const char *name)
{
#if KEYDB_DEBUG
    assert(held.depth < 16 && !held.forbidden);
    if (held.depth > 0 && held.rank[held.depth - 1] >= rank) {
        fprintf(stderr, "lock order: '%s' (rank %u) taken while holding '%s' (rank %u)\n", name,
                rank, held.name[held.depth - 1], held.rank[held.depth - 1]);
        abort();
    }
    held.rank[held.depth] = rank;
    held.name[held.depth] = name;
    held.depth++;
#else
    (void)rank;
    (void)name;
#endif
}

void lock_rank_pop(uint16_t rank)
{
#if KEYDB_DEBUG
    assert(held.depth > 0 && held.rank[held.depth - 1] == rank);
    held.depth--;
#else
    (void)rank;
#endif
}

void lock_rank_assert_held(uint16_t rank)
{
#if KEYDB_DEBUG
    for (int i = 0; i < held.depth; i++) {
        if (held.rank[i] == rank) {
            return;
        }
    }
    fprintf(stderr, "lock of rank %u is not held\n", rank);
    abort();
#else
    (void)rank;
#endif
}

/* ---- taking and letting go ---- */

static void take(struct lock *l) NO_THREAD_SAFETY_ANALYSIS
{
    uint32_t seed = thread_slot() + 1;
    for (int round = 0; round <= SPIN_ROUNDS; round++) {
        uint32_t free_word = 0;
        if (atomic_compare_exchange_weak_explicit(&l->word, &free_word, 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            goto held_now;
        }
        spin_pause(&seed);
    }
    while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0) {
        futex_wait(&l->word, 2, 0);
    }
held_now:
    l->owner_slot = (uint16_t)(thread_slot() + 1);
}

static void let_go(struct lock *l) NO_THREAD_SAFETY_ANALYSIS
{
    assert(l->owner_slot == thread_slot() + 1);
    l->owner_slot = 0;
    if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2) {
        futex_wake(&l->word, 1);
    }
}

/* ---- all of them ---- */

/* How often one waits for a lock's holder, when all are to be taken, before one begins anew. */
#define SOON_YIELDS 1000

/* Every lock that was ever taken, behind a lock that has no rank: whoever takes it holds others
 * perhaps, and takes none while he has it. */
static struct {
    struct lock lock;
    struct lock *first;
} all = {.lock = LOCK_INIT(0, "all locks")};

static __attribute__((noinline)) void make_known(struct lock *l)
{
    take(&all.lock);
    if (!atomic_load_explicit(&l->known, memory_order_relaxed)) {
        l->next_known = all.first;
        all.first = l;
        atomic_store_explicit(&l->known, true, memory_order_relaxed);
    }
    let_go(&all.lock);
}

/* Takes it if that is possible soon: its holder may wait for `all` with a lock that we have not
 * made known yet. */
static bool take_soon(struct lock *l) NO_THREAD_SAFETY_ANALYSIS
{
    for (int i = 0; i < SOON_YIELDS; i++) {
        uint32_t free_word = 0;
        if (atomic_compare_exchange_strong_explicit(&l->word, &free_word, 1, memory_order_acquire,
                                                    memory_order_relaxed)) {
            l->owner_slot = (uint16_t)(thread_slot() + 1);
            return true;
        }
        sched_yield();
    }
    return false;
}

/* Takes them in the order of ranks; false when one is held for long: those before it are taken. */
static bool take_all_soon(void)
{
    struct lock *failed = NULL;
    for (unsigned rank = 0; rank <= LOCK_RANK_TEST && !failed; rank++) {
        for (struct lock *l = all.first; l && !failed; l = l->next_known) {
            if (l->rank == rank) {
                l->taken = take_soon(l);
                failed = l->taken ? NULL : l;
            }
        }
    }
    return failed == NULL;
}

/* Locks of the same rank are never held together, so their order among themselves is free. */
void lock_take_all(void)
{
    for (;;) {
        take(&all.lock); /* no lock becomes known from here on: it would be taken behind our back */
        if (take_all_soon()) {
            return;
        }
        lock_let_go_of_all();
        sched_yield();
    }
}

void lock_let_go_of_all(void)
{
    for (struct lock *l = all.first; l; l = l->next_known) {
        if (l->taken) {
            l->taken = false;
            let_go(l);
        }
    }
    let_go(&all.lock);
}

/* ---- one ---- */

void lock_acquire(struct lock *l) NO_THREAD_SAFETY_ANALYSIS
{
    lock_rank_push(l->rank, l->name);
    if (unlikely(!atomic_load_explicit(&l->known, memory_order_relaxed))) {
        make_known(l);
    }
    take(l);
}

void lock_release(struct lock *l) NO_THREAD_SAFETY_ANALYSIS
{
    let_go(l);
    lock_rank_pop(l->rank);
}
