/* See snapshot.h. */
#include "engine/snapshot.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

static const struct snapshot_ops *set_ops;
/* Written in exclusive mode or by the world. */
static void (*_Atomic unfinished)(void);

void snapshot_set_ops(const struct snapshot_ops *ops)
{
    set_ops = ops;
}

const struct snapshot_ops *snapshot_ops(void)
{
    assert(set_ops);
    return set_ops;
}

void snapshot_flushed(void)
{
    if (set_ops) {
        set_ops->flushed();
    }
}

void snapshot_set_unfinished(void (*finish)(void))
{
    atomic_store(&unfinished, finish);
}

bool snapshot_is_unfinished(void)
{
    return atomic_load(&unfinished) != NULL;
}

void snapshot_finish(void)
{
    void (*finish)(void) = atomic_load(&unfinished);
    if (finish) {
        finish();
        assert(!snapshot_is_unfinished());
    }
}
