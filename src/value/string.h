/* The string type: bytes up to proto-max-bulk-len, kept as an integer where the text is one,
 * embedded in the entry where short, in a blob where long. State: keyspace. All verbs that take
 * `struct entry **` may move the entry; the caller stores the new pointer back in its slot
 * (keyspace/db.h does). */
#ifndef VALUE_STRING_H
#define VALUE_STRING_H

#include "value/entry.h"

extern const struct value_ops string_ops;

/* Room that string_view needs for an integer's text. */
#define STRING_VIEW_BYTES 24

/* The string's bytes: a view into the entry or its blob, or of the text formatted into `scratch`
 * (STRING_VIEW_BYTES). Valid while the lock is held and the entry unchanged. Shared mode. */
struct slice string_view(const struct entry *e, char *scratch);
/* True when the string's bytes stand in the entry itself, as most do; *view is them then. */
static inline bool string_inline_view(const struct entry *e, struct slice *view)
{
    if (unlikely(entry_encoding(e) != ENCODING_EMBEDDED)) {
        return false;
    }
    struct slice key = entry_key(e);
    *view = slice_of(key.ptr + key.len, e->embedded_len);
    return true;
}
/* Length in bytes. */
size_t string_len(const struct entry *e);
/* The blob of a string that has one, else NULL (borrowed). */
struct blob *string_blob(const struct entry *e);
/* True and the value when the whole string is the canonical text of a 64-bit integer. */
bool string_get_integer(const struct entry *e, int64_t *value) MUST_CHECK;

/* A new string entry in its best encoding. Without lock. */
struct entry *string_create(struct slice key, struct slice value, int64_t expiry_ms);
/* The same with a blob that is already there; one reference passes to the entry. */
struct entry *string_create_blob(struct slice key, struct blob *blob_take, int64_t expiry_ms);

/* Makes the string writable in place with room for `len` bytes in total, bytes beyond the old
 * length zeroed, and its length `len`; the encoding is raw afterwards. Returns where the bytes are,
 * NULL when memory is not to be had. A shared blob is copied first. */
char *string_make_writable(struct entry **e, size_t len);

#endif
