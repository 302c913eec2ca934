/* See snapshot.h. */
#include "engine/snapshot.h"

#include <assert.h>
#include <stddef.h>

static const struct snapshot_ops *set_ops;

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
