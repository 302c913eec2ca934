/* See lock.h. */
#include "keyspace/lock.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "keyspace/waiting.h"

#include <assert.h>
#ifdef KEYDB_BREAK_LOCK
#include "keyspace/lock_broken.h"
#endif

/* All zero is a free lock; rank and name are for debug builds. */
struct brlock keyspace_lock = {.rank = LOCK_RANK_KEYSPACE, .name = "keyspace"};

/* What the calling thread holds. */
static _Thread_local enum { HOLDS_NOTHING, HOLDS_SHARED, HOLDS_EXCLUSIVE } holds;

static _Atomic bool busy;

bool keyspace_has_work;
_Atomic int64_t keyspace_wall_from_ms;
static _Atomic int64_t last_ms, ahead_ms, heard_mono_ms;
static void (*end_work)(void), (*listener_work)(void);

void keyspace_set_end_work(void (*work)(void))
{
    end_work = work;
}

void keyspace_set_listener_work(void (*work)(void))
{
    listener_work = work;
}

void keyspace_set_clock(struct keyspace_clock clock)
{
    keyspace_assert_exclusive();
    if (clock.ahead_ms != 0) {
        /* In this order: who sees what was heard knows when, or takes it for later. */
        atomic_store_explicit(&heard_mono_ms, clock.heard_mono_ms, memory_order_relaxed);
        atomic_store_explicit(&ahead_ms, clock.ahead_ms, memory_order_release);
        atomic_store_explicit(&keyspace_wall_from_ms, INT64_MAX, memory_order_relaxed);
    }
    if (clock.last_ms > atomic_load_explicit(&last_ms, memory_order_relaxed)) {
        atomic_store_explicit(&last_ms, clock.last_ms, memory_order_relaxed);
        if (atomic_load_explicit(&ahead_ms, memory_order_relaxed) == 0) {
            atomic_store_explicit(&keyspace_wall_from_ms, clock.last_ms, memory_order_relaxed);
        }
    }
}

int64_t keyspace_group_time_ms(int64_t wall_ms)
{
    int64_t last = atomic_load_explicit(&last_ms, memory_order_relaxed);
    int64_t ahead = atomic_load_explicit(&ahead_ms, memory_order_acquire);
    int64_t heard = atomic_load_explicit(&heard_mono_ms, memory_order_relaxed);
    int64_t latest = wall_ms > last ? wall_ms : last;
    if (ahead != 0) {
        int64_t passed = (int64_t)(clock_mono_us() / 1000) - heard;
        ahead += passed > 0 ? clock_slowed(passed) : 0;
    }
    return ahead > latest ? ahead : latest;
}

void keyspace_set_busy(bool now_busy)
{
    atomic_store(&busy, now_busy);
}

bool keyspace_is_busy(void)
{
    return atomic_load_explicit(&busy, memory_order_relaxed);
}

const _Atomic bool *keyspace_busy_flag(void)
{
    return &busy;
}

void keyspace_lock_shared(void)
{
    brlock_acquire_shared(&keyspace_lock, thread_slot());
    holds = HOLDS_SHARED;
}

bool keyspace_try_shared(void) NO_THREAD_SAFETY_ANALYSIS
{
    /* Looked at first: the holder itself may ask. */
    if (unlikely(keyspace_is_busy()) || !brlock_try_shared(&keyspace_lock, thread_slot(), &busy)) {
        return false;
    }
    holds = HOLDS_SHARED;
    return true;
}

/* Each try waits a little (BRLOCK_GIVE_UP_NS) before it gives up. */
bool keyspace_try_shared_for(unsigned patience_ms) NO_THREAD_SAFETY_ANALYSIS
{
    static const _Atomic bool soon = true;
    uint64_t begin_us = clock_mono_us();
    do {
        if (keyspace_is_busy()) {
            return false;
        }
        if (brlock_try_shared(&keyspace_lock, thread_slot(), &soon)) {
            holds = HOLDS_SHARED;
            return true;
        }
    } while (clock_mono_us() - begin_us < (uint64_t)patience_ms * 1000);
    return false;
}

void keyspace_unlock_shared(void)
{
    holds = HOLDS_NOTHING;
    brlock_release_shared(&keyspace_lock, thread_slot());
}

void keyspace_lock_exclusive(void) NO_THREAD_SAFETY_ANALYSIS
{
    holds = HOLDS_EXCLUSIVE;
#ifdef KEYDB_BREAK_LOCK
    if (begin_hold()) {
        return;
    }
#endif
    brlock_acquire_exclusive(&keyspace_lock, thread_slot());
}

bool keyspace_try_exclusive(void) NO_THREAD_SAFETY_ANALYSIS
{
    if (unlikely(keyspace_is_busy())) {
        return false;
    }
#ifdef KEYDB_BREAK_LOCK
    if (begin_hold()) {
        holds = HOLDS_EXCLUSIVE;
        return true;
    }
#endif
    if (!brlock_try_exclusive(&keyspace_lock, thread_slot(), &busy)) {
        return false;
    }
    holds = HOLDS_EXCLUSIVE;
    return true;
}

/* Waiters' calls make work of the other kind, and that may make waiters' keys ready: what is left
 * after two rounds is the next hold's. */
static __attribute__((noinline)) void do_work(void) NO_THREAD_SAFETY_ANALYSIS
{
    for (int round = 0; round < 2; round++) {
        if (listener_work) {
            listener_work();
        }
        if (waiting_has_ready()) {
            /* Changes that no call made (expiry): nobody lets go of them unseen. */
            waiting_serve(keyspace_time_ms(clock_wall_ms()));
        }
        keyspace_has_work = false;
        if (end_work) {
            end_work();
        }
        if (!waiting_has_ready()) {
            return;
        }
    }
    keyspace_has_work = true;
}

void keyspace_unlock_exclusive(void) NO_THREAD_SAFETY_ANALYSIS
{
#ifdef KEYDB_BREAK_LOCK
    if (is_broken()) {
        holds = HOLDS_NOTHING;
        return;
    }
#endif
    if (unlikely(keyspace_has_work)) {
        do_work();
    }
    holds = HOLDS_NOTHING;
    brlock_release_exclusive(&keyspace_lock, thread_slot());
}

bool keyspace_is_exclusive(void)
{
    return holds == HOLDS_EXCLUSIVE;
}

bool keyspace_visit(void) NO_THREAD_SAFETY_ANALYSIS
{
    if (holds != HOLDS_NOTHING) {
        return false;
    }
    keyspace_lock_shared();
    return true;
}

void keyspace_leave(bool taken) NO_THREAD_SAFETY_ANALYSIS
{
    if (taken) {
        keyspace_unlock_shared();
    }
}

void keyspace_assert_shared(void)
{
    lock_rank_assert_held(LOCK_RANK_KEYSPACE);
#if KEYDB_DEBUG
    assert(holds != HOLDS_NOTHING);
#endif
}

void keyspace_assert_exclusive(void)
{
    lock_rank_assert_held(LOCK_RANK_KEYSPACE);
#if KEYDB_DEBUG
    assert(holds == HOLDS_EXCLUSIVE);
#endif
}
