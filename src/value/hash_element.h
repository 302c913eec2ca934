/* An element of a large hash: a field and its value in one allocation, an entry of the hash's
 * table.
 *
 *   bytes  field
 *   1      flags (enum hash_element_flag); field expiry will be one more
 *   1      length of the field, when not HASH_ELEMENT_LONG_FIELD
 *   2      length of the value, when not HASH_ELEMENT_BLOB
 *   8      length of the field, when HASH_ELEMENT_LONG_FIELD
 *   8      the value's blob, when HASH_ELEMENT_BLOB
 *   n      the field's bytes
 *   m      the value's bytes, when not HASH_ELEMENT_BLOB
 *
 * Blocks come in steps of 16 bytes, so that a value of about the same length is overwritten in
 * place. State: keyspace. */
#ifndef VALUE_HASH_ELEMENT_H
#define VALUE_HASH_ELEMENT_H

#include "base/compiler.h"
#include "base/slice.h"
#include "value/blob.h"

#include <stdint.h>
#include <string.h>

/* Longer values are in blobs: replies refer to them instead of copying, and they are not copied in
 * when the request came with one. */
#define HASH_ELEMENT_EMBEDDED_MAX (16 * 1024 - 1)

enum hash_element_flag {
    HASH_ELEMENT_LONG_FIELD = 1 << 0,
    HASH_ELEMENT_BLOB = 1 << 1,
};

struct hash_element {
    uint8_t flags;
    uint8_t short_field_len;
    uint16_t embedded_len;
    char body[];
};

/* A new element. `blob` is NULL or holds the value whole; a long value then takes a reference to
 * it. */
struct hash_element *hash_element_create(struct slice field, struct slice value, struct blob *blob);
/* Frees an element. Nulls the caller's pointer. */
void hash_element_destroy(struct hash_element **el);
/* A copy of its own; a blob is shared with it. */
struct hash_element *hash_element_copy(const struct hash_element *el);
/* Gives the element another value, in place or as a new element, which is returned; the old one is
 * freed then. */
struct hash_element *hash_element_store(struct hash_element *el_take, struct slice value,
                                        struct blob *blob);
/* Bytes of the element and its blob. */
size_t hash_element_memory_bytes(const struct hash_element *el);

static inline struct slice hash_element_field(const struct hash_element *el)
{
    if (likely(el->flags == 0)) {
        return slice_of(el->body, el->short_field_len);
    }
    const char *at = el->body + (el->flags & HASH_ELEMENT_BLOB ? sizeof(struct blob *) : 0);
    uint64_t len = el->short_field_len;
    if (el->flags & HASH_ELEMENT_LONG_FIELD) {
        memcpy(&len, el->body, sizeof(len));
        at += sizeof(len);
    }
    return slice_of(at, len);
}

/* The blob of a long value, NULL for others (borrowed). */
static inline struct blob *hash_element_blob(const struct hash_element *el)
{
    struct blob *blob = NULL;
    if (unlikely(el->flags & HASH_ELEMENT_BLOB)) {
        memcpy(&blob, el->body + (el->flags & HASH_ELEMENT_LONG_FIELD ? sizeof(uint64_t) : 0),
               sizeof(struct blob *));
    }
    return blob;
}

static inline struct slice hash_element_value(const struct hash_element *el)
{
    struct blob *blob = hash_element_blob(el);
    if (unlikely(blob != NULL)) {
        return blob_slice(blob);
    }
    struct slice field = hash_element_field(el);
    return slice_of(field.ptr + field.len, el->embedded_len);
}

#endif
