/* See upstream.h. */
#include "net/upstream.h"

#include <stddef.h>

static const struct upstream_ops *ops;

void upstream_set_ops(const struct upstream_ops *set)
{
    ops = set;
}

bool upstream_look(struct upstream *facts)
{
    return ops && ops->look(facts);
}

void upstream_cut(void)
{
    if (ops) {
        ops->cut();
    }
}
