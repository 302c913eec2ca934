/* See function_store.h. */
#include "engine/function_store.h"

#include "base/mem.h"

static const struct function_store_ops *set_ops;

/* Sources, each in memory of its own. */
static struct {
    struct slice *codes;
    size_t count;
} aside;

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

bool function_store_load(struct slice code, bool replace, struct buf *error)
{
    keyspace_assert_exclusive();
    if (!set_ops) {
        buf_append_cstr(error, "this program runs no functions");
        return false;
    }
    return set_ops->load(code, replace, error);
}

void function_store_flush(void)
{
    keyspace_assert_exclusive();
    if (set_ops) {
        set_ops->flush();
    }
}

/* ---- aside ---- */

void function_store_note_aside(struct slice code)
{
    aside.codes = mem_realloc(aside.codes, (aside.count + 1) * sizeof(*aside.codes));
    aside.codes[aside.count++] = slice_of(mem_dup(code.ptr, code.len), code.len);
}

bool function_store_take_aside(struct buf *error)
{
    keyspace_assert_exclusive();
    if (set_ops) {
        return set_ops->replace(aside.codes, aside.count, error);
    }
    if (aside.count > 0) {
        buf_append_cstr(error, "this program runs no functions");
    }
    return aside.count == 0;
}

void function_store_drop_aside(void)
{
    for (size_t i = 0; i < aside.count; i++) {
        mem_free((char *)(uintptr_t)aside.codes[i].ptr);
    }
    mem_free(aside.codes);
    aside.codes = NULL;
    aside.count = 0;
}
