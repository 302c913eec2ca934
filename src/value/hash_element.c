/* See hash_element.h for the layout. */
#include "value/hash_element.h"

#include "base/mem.h"

#include <assert.h>

/* The table wants entries aligned to 16 bytes, which the allocator gives to blocks of 16 and more.
 */
#define BLOCK_STEP ((size_t)16)

static inline size_t block_bytes(uint8_t flags, size_t field_len, size_t embedded_len)
{
    size_t bytes =
        sizeof(struct hash_element) + (flags & HASH_ELEMENT_LONG_FIELD ? sizeof(uint64_t) : 0) +
        (flags & HASH_ELEMENT_BLOB ? sizeof(struct blob *) : 0) + field_len + embedded_len;
    return (bytes + BLOCK_STEP - 1) & ~(BLOCK_STEP - 1);
}

static inline size_t element_bytes(const struct hash_element *el)
{
    return block_bytes(el->flags, hash_element_field(el).len, el->embedded_len);
}

static inline void copy_bytes(char *to, struct slice from)
{
    /* Nothing may have no address, which memcpy does not take. */
    if (likely(from.len > 0)) {
        memcpy(to, from.ptr, from.len);
    }
}

/* The blob that an element keeps for `value`, with a reference, NULL when it is short enough to be
 * embedded. */
static struct blob *keep_blob(struct slice value, struct blob *blob)
{
    if (likely(value.len <= HASH_ELEMENT_EMBEDDED_MAX)) {
        return NULL;
    }
    assert(!blob || blob->len == value.len);
    return blob ? blob_acquire(blob) : blob_create_copy(value);
}

struct hash_element *hash_element_create(struct slice field, struct slice value, struct blob *blob)
{
    struct blob *kept = keep_blob(value, blob);
    uint8_t flags = (uint8_t)((field.len > UINT8_MAX ? HASH_ELEMENT_LONG_FIELD : 0) |
                              (kept ? HASH_ELEMENT_BLOB : 0));
    size_t embedded_len = kept ? 0 : value.len;
    struct hash_element *el = mem_alloc(block_bytes(flags, field.len, embedded_len));
    el->flags = flags;
    el->short_field_len = (uint8_t)field.len;
    el->embedded_len = (uint16_t)embedded_len;
    char *at = el->body;
    if (flags & HASH_ELEMENT_LONG_FIELD) {
        uint64_t len = field.len;
        memcpy(at, &len, sizeof(len));
        at += sizeof(len);
    }
    if (kept) {
        memcpy(at, &kept, sizeof(struct blob *));
        at += sizeof(struct blob *);
    }
    copy_bytes(at, field);
    if (!kept) {
        copy_bytes(at + field.len, value);
    }
    return el;
}

void hash_element_destroy(struct hash_element **el)
{
    struct hash_element *dropped = *el;
    *el = NULL;
    if (!dropped) {
        return;
    }
    struct blob *blob = hash_element_blob(dropped);
    size_t bytes = element_bytes(dropped);
    if (unlikely(blob != NULL)) {
        blob_release(&blob);
    }
    mem_free_sized(dropped, bytes);
}

struct hash_element *hash_element_copy(const struct hash_element *el)
{
    size_t bytes = element_bytes(el);
    struct hash_element *copy = mem_alloc(bytes);
    memcpy(copy, el, bytes);
    struct blob *blob = hash_element_blob(el);
    if (blob) {
        /* Nobody changes a blob that is shared: the copy is a reference. */
        blob_acquire(blob);
    }
    return copy;
}

struct hash_element *hash_element_store(struct hash_element *el_take, struct slice value,
                                        struct blob *blob)
{
    struct slice field = hash_element_field(el_take);
    if (likely(!(el_take->flags & HASH_ELEMENT_BLOB) && value.len <= HASH_ELEMENT_EMBEDDED_MAX &&
               block_bytes(el_take->flags, field.len, value.len) == element_bytes(el_take))) {
        copy_bytes((char *)field.ptr + field.len, value);
        el_take->embedded_len = (uint16_t)value.len;
        return el_take;
    }
    struct hash_element *fresh = hash_element_create(field, value, blob);
    hash_element_destroy(&el_take);
    return fresh;
}

size_t hash_element_memory_bytes(const struct hash_element *el)
{
    struct blob *blob = hash_element_blob(el);
    return mem_good_size(element_bytes(el)) + (blob ? mem_usable_size(blob) : 0);
}
