/* A blob: a reference-counted run of bytes, the body of large strings. Immutable while shared (refs
 * > 1), so a reply may hold a reference and send from it without a copy, whatever happens to the
 * key meanwhile. State: the count is atomic; the bytes belong to the only owner, or to nobody while
 * shared. */
#ifndef VALUE_BLOB_H
#define VALUE_BLOB_H

#include "base/compiler.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdint.h>

struct blob {
    size_t len;      /* bytes in use */
    size_t capacity; /* bytes allocated for `bytes` */
    _Atomic uint32_t refs;
    char bytes[];
};

/* A new blob with one reference, len 0 and room for `capacity` bytes; NULL when memory is not to be
 * had. */
struct blob *blob_try_create(size_t capacity) MUST_CHECK;
/* A new blob holding a copy of `content`, one reference. */
struct blob *blob_create_copy(struct slice content);
/* One reference more; returns the blob. Any thread. */
struct blob *blob_acquire(struct blob *b);
/* One reference less; the last one frees. Nulls the caller's pointer. Any thread. */
void blob_release(struct blob **b);
/* True when the caller's reference is the only one. */
bool blob_is_exclusive(const struct blob *b);
/* Resizes an exclusive blob to `capacity` bytes, no less than it holds; may move it. NULL on
 * failure, the old one then lives on. */
struct blob *blob_try_reserve(struct blob *b, size_t capacity) MUST_CHECK;
/* Resizes an exclusive blob so that it holds at least `capacity` bytes; may move it. NULL on
 * failure, the old one then lives on. */
struct blob *blob_try_grow(struct blob *b, size_t capacity) MUST_CHECK;

static inline struct slice blob_slice(const struct blob *b)
{
    return slice_of(b->bytes, b->len);
}

#endif
