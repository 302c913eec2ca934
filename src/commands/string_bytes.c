/* See string_bytes.h. */
#include "commands/string_bytes.h"

#include "value/string.h"

void string_bytes_reply_no_memory(struct call *c)
{
    reply_error(c->reply, "OOM no memory for a string of this length");
}

uint8_t *string_bytes_open(struct call *c, struct keyref *ref, size_t len)
{
    struct entry *e = ref->entry;
    if (!e) {
        e = entry_create_string(ref->key.name, SLICE(""), ENTRY_NO_EXPIRY);
    }
    char *bytes = string_make_writable(&e, len);
    if (ref->entry) {
        db_moved(ref, e);
    } else if (bytes) {
        db_put(ref, e);
    } else {
        entry_destroy(&e);
    }
    if (!bytes) {
        string_bytes_reply_no_memory(c);
    }
    return (uint8_t *)bytes;
}

void string_bytes_put(struct keyref *ref, struct blob *blob_take)
{
    struct entry *e;
    if (blob_take->len > ENTRY_EMBEDDED_MAX) {
        e = entry_create_pointer(ref->key.name, VALUE_STRING, ENCODING_BLOB, blob_take,
                                 ENTRY_NO_EXPIRY);
    } else {
        e = entry_create_string(ref->key.name, blob_slice(blob_take), ENTRY_NO_EXPIRY);
        blob_release(&blob_take);
    }
    e->flags |= ENTRY_RAW;
    if (ref->entry) {
        event_key_goes(GOING_OVERWRITTEN, ref->db, ref->key.name);
    }
    db_put(ref, e);
}
