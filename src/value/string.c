/* See string.h. */
#include "value/string.h"

#include "base/mem.h"
#include "base/num.h"

#include <openssl/sha.h>

/* Longest string that OBJECT ENCODING calls embstr (Redis 7: what fits 64 bytes beside its object's
 * head). Ours are embedded far beyond; the name is only for those who look at it. */
#define EMBSTR_MAX_BYTES 44

static inline char *embedded_bytes(const struct entry *e)
{
    struct slice key = entry_key(e);
    return (char *)key.ptr + key.len;
}

struct blob *string_blob(const struct entry *e)
{
    return entry_encoding(e) == ENCODING_BLOB ? entry_pointer(e) : NULL;
}

struct slice string_view(const struct entry *e, char *scratch)
{
    assert(entry_type(e) == VALUE_STRING);
    enum encoding encoding = entry_encoding(e);
    if (likely(encoding == ENCODING_EMBEDDED)) {
        return slice_of(embedded_bytes(e), e->embedded_len);
    }
    if (encoding == ENCODING_INTEGER) {
        return slice_of(scratch, num_format_i64(scratch, entry_integer(e)));
    }
    return blob_slice(entry_pointer(e));
}

size_t string_len(const struct entry *e)
{
    char scratch[STRING_VIEW_BYTES];
    return string_view(e, scratch).len;
}

bool string_get_integer(const struct entry *e, int64_t *value)
{
    if (entry_encoding(e) == ENCODING_INTEGER) {
        *value = entry_integer(e);
        return true;
    }
    char scratch[STRING_VIEW_BYTES];
    return num_parse_i64(string_view(e, scratch), value);
}

struct entry *string_create(struct slice key, struct slice value, int64_t expiry_ms)
{
    int64_t integer;
    if (value.len < NUM_I64_MAX_CHARS && num_parse_i64(value, &integer)) {
        return entry_create_integer(key, integer, expiry_ms);
    }
    return entry_create_string(key, value, expiry_ms);
}

struct entry *string_create_blob(struct slice key, struct blob *blob_take, int64_t expiry_ms)
{
    if (blob_take->len > ENTRY_EMBEDDED_MAX) {
        return entry_create_pointer(key, VALUE_STRING, ENCODING_BLOB, blob_take, expiry_ms);
    }
    struct entry *e = string_create(key, blob_slice(blob_take), expiry_ms);
    blob_release(&blob_take);
    return e;
}

/* Another block for the same key's value. */
static void replace(struct entry **e, struct entry *moved_take)
{
    entry_set_clock(moved_take, entry_clock(*e));
    if (unlikely(entry_stamp(*e) != NULL)) {
        moved_take = entry_with_stamp(moved_take, entry_stamp(*e));
    }
    entry_destroy(e);
    *e = moved_take;
}

/* Turns the string into one with an exclusive blob of at least `len` bytes capacity. NULL without
 * memory. */
static struct blob *make_blob(struct entry **e, size_t len)
{
    char scratch[STRING_VIEW_BYTES];
    struct slice old = string_view(*e, scratch);
    struct blob *blob = string_blob(*e);
    if (blob && blob_is_exclusive(blob)) {
        blob = blob_try_grow(blob, len);
        if (blob) {
            entry_set_pointer(*e, blob);
        }
        return blob;
    }
    struct blob *fresh = blob_try_create(len > old.len ? len : old.len);
    if (!fresh) {
        return NULL;
    }
    fresh->len = old.len;
    memcpy(fresh->bytes, old.ptr, old.len);
    struct entry *moved = entry_create_pointer(entry_key(*e), VALUE_STRING, ENCODING_BLOB, fresh,
                                               entry_expiry_ms(*e));
    replace(e, moved);
    return fresh;
}

/* Turns the string into an embedded one of `len` bytes, the old content first. */
static char *make_embedded(struct entry **e, size_t len)
{
    char scratch[STRING_VIEW_BYTES];
    char content[ENTRY_EMBEDDED_MAX];
    struct slice old = string_view(*e, scratch);
    size_t kept = old.len < len ? old.len : len;
    memcpy(content, old.ptr, kept);
    memset(content + kept, 0, len - kept);
    struct slice value = slice_of(content, len);
    if (!entry_overwrite_embedded(*e, value)) {
        struct entry *moved = entry_create_string(entry_key(*e), value, entry_expiry_ms(*e));
        replace(e, moved);
    }
    (*e)->flags |= ENTRY_RAW;
    return embedded_bytes(*e);
}

char *string_make_writable(struct entry **e, size_t len)
{
    assert(entry_type(*e) == VALUE_STRING);
    if (len <= ENTRY_EMBEDDED_MAX && entry_encoding(*e) != ENCODING_BLOB) {
        return make_embedded(e, len);
    }
    struct blob *blob = make_blob(e, len);
    if (!blob) {
        return NULL;
    }
    if (len > blob->len) {
        mem_zero(blob->bytes + blob->len, len - blob->len);
    }
    blob->len = len;
    (*e)->flags |= ENTRY_RAW;
    return blob->bytes;
}

/* ---- the table of operations ---- */

static void destroy(struct entry *e)
{
    if (entry_encoding(e) == ENCODING_BLOB) {
        struct blob *blob = entry_pointer(e);
        blob_release(&blob);
    }
}

static void *copy(const struct entry *e)
{
    /* Blobs are immutable while shared: the copy is a reference. */
    return blob_acquire(entry_pointer(e));
}

static size_t memory(const struct entry *e, size_t samples)
{
    (void)samples;
    struct blob *blob = string_blob(e);
    return blob ? mem_usable_size(blob) : 0;
}

static size_t free_effort(const struct entry *e)
{
    (void)e;
    return 1;
}

static const char *encoding(const struct entry *e)
{
    if (entry_encoding(e) == ENCODING_INTEGER) {
        return "int";
    }
    bool raw = e->flags & ENTRY_RAW || string_len(e) > EMBSTR_MAX_BYTES;
    return raw ? "raw" : "embstr";
}

static void digest(const struct entry *e, uint8_t sum[20])
{
    char scratch[STRING_VIEW_BYTES];
    struct slice view = string_view(e, scratch);
    SHA1((const unsigned char *)view.ptr, view.len, sum);
}

const struct value_ops string_ops = {
    .name = "string",
    .destroy = destroy,
    .copy = copy,
    .memory = memory,
    .free_effort = free_effort,
    .encoding = encoding,
    .digest = digest,
};
