/* See blob.h. */
#include "value/blob.h"

#include "base/mem.h"

#include <assert.h>

/* Sizes near SIZE_MAX cannot come from anywhere: lengths are bounded by proto-max-bulk-len long
 * before. */
#define BLOB_MAX_BYTES ((size_t)1 << 40)

struct blob *blob_try_create(size_t capacity)
{
    if (capacity > BLOB_MAX_BYTES) {
        return NULL;
    }
    struct blob *b = mem_try_alloc(sizeof(*b) + capacity);
    if (b) {
        b->len = 0;
        b->capacity = capacity;
        atomic_init(&b->refs, 1);
    }
    return b;
}

struct blob *blob_create_copy(struct slice content)
{
    struct blob *b = mem_alloc(sizeof(*b) + content.len);
    b->len = b->capacity = content.len;
    atomic_init(&b->refs, 1);
    if (content.len > 0) {
        memcpy(b->bytes, content.ptr, content.len);
    }
    return b;
}

struct blob *blob_acquire(struct blob *b)
{
    uint32_t before = atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    assert(before > 0 && before < UINT32_MAX / 2);
    (void)before;
    return b;
}

void blob_release(struct blob **b)
{
    struct blob *dropped = *b;
    *b = NULL;
    /* Release orders this owner's reads before the count; acquire orders the free after
     * everybody's. */
    if (dropped && atomic_fetch_sub_explicit(&dropped->refs, 1, memory_order_acq_rel) == 1) {
        mem_free(dropped);
    }
}

bool blob_is_exclusive(const struct blob *b)
{
    /* Acquire: pairs with the release of owners that have gone, whose reads come before our writes.
     */
    return atomic_load_explicit(&((struct blob *)b)->refs, memory_order_acquire) == 1;
}

struct blob *blob_try_reserve(struct blob *b, size_t capacity)
{
    assert(blob_is_exclusive(b) && capacity >= b->len);
    struct blob *moved = mem_try_realloc(b, sizeof(*b) + capacity);
    if (moved) {
        moved->capacity = capacity;
    }
    return moved;
}

struct blob *blob_try_grow(struct blob *b, size_t capacity)
{
    assert(blob_is_exclusive(b));
    if (capacity <= b->capacity) {
        return b;
    }
    /* Half as much again up to a mebibyte: a string that is appended to moves seldom. */
    size_t spare = capacity / 2 < ((size_t)1 << 20) ? capacity / 2 : (size_t)1 << 20;
    return capacity > BLOB_MAX_BYTES ? NULL : blob_try_reserve(b, capacity + spare);
}
