/* See gil.h. */
#include "engine/gil.h"

#include "base/lock.h"
#include "base/thread.h"
#include "keyspace/lock.h"

struct brlock gil = {.rank = LOCK_RANK_GIL, .name = "gil"};

static _Thread_local bool has_world;

void gil_wake(void)
{
    brlock_acquire_shared(&gil, thread_slot());
}

void gil_sleep(void)
{
    brlock_release_shared(&gil, thread_slot());
}

void gil_stop_world(void)
{
    brlock_release_shared(&gil, thread_slot());
    brlock_acquire_exclusive(&gil, thread_slot());
    has_world = true;
}

bool gil_try_stop_world(void) NO_THREAD_SAFETY_ANALYSIS
{
    if (keyspace_is_busy()) {
        return false;
    }
    brlock_release_shared(&gil, thread_slot());
    if (brlock_try_exclusive(&gil, thread_slot(), keyspace_busy_flag())) {
        has_world = true;
        return true;
    }
    brlock_acquire_shared(&gil, thread_slot());
    return false;
}

void gil_resume_world(void)
{
    has_world = false;
    brlock_release_exclusive(&gil, thread_slot());
    brlock_acquire_shared(&gil, thread_slot());
}

void gil_keep_awake(void)
{
    has_world = false;
    brlock_downgrade(&gil, thread_slot());
}

bool gil_has_world(void)
{
    return has_world;
}

void gil_assert_world(void)
{
    lock_rank_assert_held(LOCK_RANK_GIL);
}

void gil_assert_awake(void)
{
    lock_rank_assert_held(LOCK_RANK_GIL);
}
