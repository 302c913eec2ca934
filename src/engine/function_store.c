/* See function_store.h. */
#include "engine/function_store.h"

static const struct function_store_ops *set_ops;

void function_store_set_ops(const struct function_store_ops *ops)
{
    set_ops = ops;
}

size_t function_store_count(void)
{
    return set_ops ? set_ops->count() : 0;
}

struct slice function_store_code(size_t index)
{
    return set_ops->code(index);
}

bool function_store_load(struct slice code, struct buf *error)
{
    keyspace_assert_exclusive();
    if (!set_ops) {
        buf_append_cstr(error, "this program runs no functions");
        return false;
    }
    return set_ops->load(code, error);
}

void function_store_flush(void)
{
    keyspace_assert_exclusive();
    if (set_ops) {
        set_ops->flush();
    }
}
