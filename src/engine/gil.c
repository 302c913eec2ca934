/* See gil.h. */
#include "engine/gil.h"

#include "base/lock.h"
#include "base/thread.h"
#include "keyspace/lock.h"

struct brlock gil = {.rank = LOCK_RANK_GIL, .name = "gil"};

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
}

bool gil_try_stop_world(void) NO_THREAD_SAFETY_ANALYSIS
{
    if (keyspace_is_busy()) {
        return false;
    }
    brlock_release_shared(&gil, thread_slot());
    if (brlock_try_exclusive(&gil, thread_slot(), keyspace_busy_flag())) {
        return true;
    }
    brlock_acquire_shared(&gil, thread_slot());
    return false;
}

void gil_resume_world(void)
{
    brlock_release_exclusive(&gil, thread_slot());
    brlock_acquire_shared(&gil, thread_slot());
}

void gil_assert_world(void)
{
    lock_rank_assert_held(LOCK_RANK_GIL);
}

void gil_assert_awake(void)
{
    lock_rank_assert_held(LOCK_RANK_GIL);
}
