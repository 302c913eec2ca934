/* See function_store.h. */
#include "engine/function_store.h"

#include "base/mem.h"

static const struct function_store_ops *set_ops;

/* Sources, each in memory of its own. */
struct sources {
    struct slice *codes;
    size_t count;
};

static struct sources aside;

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

struct slice function_store_name(size_t index)
{
    return set_ops->name(index);
}

size_t function_store_find(struct slice name)
{
    for (size_t i = 0; i < function_store_count(); i++) {
        if (slice_equal(function_store_name(i), name)) {
            return i;
        }
    }
    return SIZE_MAX;
}

bool function_store_name_of(struct slice code, struct buf *name)
{
    return set_ops && set_ops->name_of(code, name);
}

bool function_store_remove(struct slice name)
{
    keyspace_assert_exclusive();
    return set_ops && set_ops->remove(name);
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

static void note(struct sources *s, struct slice code)
{
    s->codes = mem_realloc(s->codes, (s->count + 1) * sizeof(*s->codes));
    s->codes[s->count++] = slice_of(mem_dup(code.ptr, code.len), code.len);
}

static void drop(struct sources *s)
{
    for (size_t i = 0; i < s->count; i++) {
        mem_free((char *)(uintptr_t)s->codes[i].ptr);
    }
    mem_free(s->codes);
    *s = (struct sources){0};
}

void function_store_note_aside(struct slice code)
{
    note(&aside, code);
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

bool function_store_add_aside(bool replace, struct buf *error)
{
    struct sources before = {0};
    struct buf ignored = {0};
    bool fine = true;
    keyspace_assert_exclusive();
    for (size_t i = 0; i < function_store_count(); i++) {
        note(&before, function_store_code(i));
    }
    for (size_t i = 0; fine && i < aside.count; i++) {
        fine = function_store_load(aside.codes[i], replace, error);
    }
    if (!fine && set_ops && !set_ops->replace(before.codes, before.count, &ignored)) {
        buf_append_cstr(error, "; and libraries that were there are lost");
    }
    buf_deinit(&ignored);
    drop(&before);
    return fine;
}

void function_store_drop_aside(void)
{
    drop(&aside);
}
